# SPDX-License-Identifier: Apache-2.0
"""Plugins: what brings tools and hooks to an agent together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._hooks import HookRegistry
from ._offload import OffloadStorage, raw_policy
from ._tools import AgentTool

if TYPE_CHECKING:
    from ._agent import Agent


class Plugin:
    """Base of plugins. Methods with @tool are tools of the agent, methods with @hook hooks. One
    object may be given to several agents; what is an agent's own belongs on the agent."""

    #: Its identity: an agent has one of each name.
    name: str = ""

    @property
    def tools(self) -> list[AgentTool]:
        """What it brings; by default its methods that are tools."""
        return [getattr(self, name) for name in self._members()
                if isinstance(getattr(type(self), name), AgentTool)]

    def register_hooks(self, registry: HookRegistry, **kwargs: Any) -> None:
        """Add its hooks; by default its methods that are hooks."""
        for name in self._members():
            if getattr(getattr(type(self), name), "_pinfold_hook", False):
                registry.add_callback(None, getattr(self, name))

    def init_agent(self, agent: Agent) -> Any:
        """Called when it is added to an agent, before its hooks and tools are. May be a
        coroutine."""

    def _members(self) -> list[str]:
        found = dict.fromkeys(name for kind in reversed(type(self).__mro__) for name in vars(kind))
        return [name for name in found if not name.startswith("__")]

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}>"


class SandboxPlugin(Plugin):
    """The workspace tools, whenever the agent has a workspace: execute (when the backend runs
    commands and the agent may change things), read_file, write_file (likewise), list_dir. Attaching
    adds it where it is missing."""

    name = "sandbox"

    def _describe(self) -> Any:
        return self.name


class ContextOffloader(Plugin):
    """Replaces long results of any tool by a preview and references."""

    name = "context_offloader"

    def __init__(self, storage: OffloadStorage, max_result_tokens: int = 2500,
                 preview_tokens: int = 1000, *, include_retrieval_tool: bool = True):
        self._policy = raw_policy(storage, max_result_tokens, preview_tokens,
                                  include_retrieval_tool, None)

    def _describe(self) -> Any:
        return self._policy
