# SPDX-License-Identifier: Apache-2.0
"""What the specification has under elsai_tools.sandbox."""

from pinfold import AgentCoreSandboxTemplate, DaytonaSandboxTemplate

__all__ = ["AgentCoreSandboxTemplate", "DaytonaSandboxTemplate"]
