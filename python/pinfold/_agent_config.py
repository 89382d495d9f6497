# SPDX-License-Identifier: Apache-2.0
"""What an agent is made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from . import _check as check
from . import _pinfold
from ._check import StrPath
from ._hooks import HookProvider
from ._messages import Message
from ._offload import SandboxOutputOffloadPolicy
from ._plugins import Plugin
from ._policy import SandboxAttachMode, WorkspaceSyncPolicy
from ._sandbox import Sandbox, SandboxView
from ._manager import SandboxManager
from ._tools import AnyTool


class SandboxMode(str, Enum):
    """Where an agent's tools work."""

    #: No workspace; host tools run.
    OFF = "off"
    #: Host tools are blocked.
    SANDBOX = "sandbox"
    #: Workspace tools and host tools, for development.
    LOCAL_DEV = "local_dev"

    @property
    def _number(self) -> int:
        return list(SandboxMode).index(self)


@dataclass(kw_only=True)
class AgentConfig:
    """The configuration of an agent. It works either in sandbox, which others may share, or, by
    execution_backend and what follows, in a workspace of its own."""

    #: A model of pinfold, an object with converse(), or "PROVIDER:NAME"; None: PINFOLD_MODEL.
    model: Any = None
    system_prompt: str | None = None
    tools: Sequence[AnyTool] = ()
    hooks: Sequence[HookProvider] = ()
    plugins: Sequence[Plugin] = ()
    messages: Sequence[Message] = ()
    agent_id: str | None = None
    name: str | None = None
    #: Anything with a session_id.
    session_manager: Any = None
    #: Of a reply; None: the model's own.
    max_tokens: int | None = None
    #: Replies of one invocation.
    max_turns: int = 200
    #: Calls of one reply that run at once.
    max_parallel_tools: int = 8

    #: A shared workspace, started: the agent is attached to it when it is made.
    sandbox: Sandbox | None = None
    sandbox_attach_mode: SandboxAttachMode = SandboxAttachMode.READ_WRITE
    #: With sandbox, OFF counts as SANDBOX.
    sandbox_mode: SandboxMode = SandboxMode.OFF
    #: None: results of tools stay whole.
    sandbox_output_offload: SandboxOutputOffloadPolicy | None = None
    #: Of a workspace of its own: a backend or a template.
    execution_backend: Any = None
    #: Likewise: the host directory that it is seeded from, and synced to.
    workspace_root: StrPath | None = None
    workspace_sync_policy: WorkspaceSyncPolicy = field(default_factory=WorkspaceSyncPolicy)
    #: Likewise; None: one of its own.
    sandbox_manager: SandboxManager | None = None
    #: Likewise: its key. None: the session manager's session_id, else agent_id.
    workspace_id: str | None = None

    def __post_init__(self) -> None:
        self.sandbox_attach_mode = check.choice("sandbox_attach_mode", SandboxAttachMode,
                                                self.sandbox_attach_mode)
        self.sandbox_mode = check.choice("sandbox_mode", SandboxMode, self.sandbox_mode)
        check.texts(system_prompt=self.system_prompt, agent_id=self.agent_id, name=self.name,
                    workspace_id=self.workspace_id)
        for name in "tools", "hooks", "plugins", "messages":
            check.iterable(name, getattr(self, name))
        if self.workspace_root is not None:
            check.path("workspace_root", self.workspace_root)
        session_id = getattr(self.session_manager, "session_id", None)
        if session_id is not None:
            check.text("session_manager.session_id", session_id)
        if self.sandbox is not None and not isinstance(self.sandbox, SandboxView):
            raise TypeError(f"sandbox: a Sandbox is required, not {self.sandbox!r}")
        if self.sandbox_manager is not None:
            check.expect("sandbox_manager", self.sandbox_manager, SandboxManager)
        if self.sandbox_output_offload is not None:
            check.expect("sandbox_output_offload", self.sandbox_output_offload,
                         SandboxOutputOffloadPolicy)
        check.expect("workspace_sync_policy", self.workspace_sync_policy, WorkspaceSyncPolicy)
        check.count("max_tokens", self.max_tokens, check.UINT32_MAX)
        check.whole("max_turns", self.max_turns, 1, check.UINT32_MAX)
        check.whole("max_parallel_tools", self.max_parallel_tools, 1, check.UINT32_MAX)
        _pinfold.check_agent_config(None if self.sandbox is None else self.sandbox._core,
                                    self.sandbox_mode._number, self.agent_id, session_id)
