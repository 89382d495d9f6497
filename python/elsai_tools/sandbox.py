# SPDX-License-Identifier: Apache-2.0
"""What the specification has under elsai_tools.sandbox."""

from pinfold import AgentCoreSandboxTemplate

#: Not there. The specification has None for backends whose package is missing, and Sandbox says so.
DaytonaSandboxTemplate = None

__all__ = ["AgentCoreSandboxTemplate", "DaytonaSandboxTemplate"]
