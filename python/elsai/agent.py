# SPDX-License-Identifier: Apache-2.0
"""What the specification has under elsai.agent."""

from pinfold import (Agent, AgentConfig, AgentResult, SandboxAttachMode, SandboxMode,
                     SandboxOutputOffloadPolicy, WorkspaceSyncPolicy)

__all__ = ["Agent", "AgentConfig", "AgentResult", "SandboxAttachMode", "SandboxMode",
           "SandboxOutputOffloadPolicy", "WorkspaceSyncPolicy"]
