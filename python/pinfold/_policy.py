# SPDX-License-Identifier: Apache-2.0
"""Which files travel, and how workspaces are named."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum

from . import _check as check
from . import _pinfold

#: Never copied into a workspace.
DEFAULT_SANDBOX_SEED_EXCLUDES: tuple[str, ...] = tuple(_pinfold.DEFAULT_SEED_EXCLUDES)
#: What a flush brings home when the policy does not say.
DEFAULT_SANDBOX_SYNC_INCLUDE: tuple[str, ...] = tuple(_pinfold.DEFAULT_SYNC_INCLUDES)
#: Tools of the host that are blocked in sandbox mode.
HOST_EXECUTION_TOOL_NAMES: frozenset[str] = frozenset(_pinfold.HOST_EXECUTION_TOOL_NAMES)
#: Tools whose results may be offloaded.
SANDBOX_OFFLOAD_TOOL_NAMES: frozenset[str] = frozenset(_pinfold.SANDBOX_OFFLOAD_TOOL_NAMES)


class SandboxAttachMode(str, Enum):
    """What an attached agent may do."""

    READ_WRITE = "read_write"
    READ_ONLY = "read_only"


@dataclass
class WorkspaceSyncPolicy:
    """Globs of what is seeded and flushed. sync_include_patterns None: the default kinds; an empty
    list: nothing."""

    exclude_patterns: Sequence[str] = field(
        default_factory=lambda: list(_pinfold.DEFAULT_POLICY_EXCLUDES))
    sync_include_patterns: Sequence[str] | None = None

    def __post_init__(self) -> None:
        check.strings("exclude_patterns", self.exclude_patterns)
        if self.sync_include_patterns is not None:
            check.strings("sync_include_patterns", self.sync_include_patterns)
        for patterns in self.exclude_patterns, self.sync_include_patterns or ():
            _pinfold.match(patterns, "x", False)  # ValueError for what is no pattern

    def _raw(self) -> tuple[Sequence[str], Sequence[str] | None]:
        return self.exclude_patterns, self.sync_include_patterns


def default_sandbox_sync_policy() -> WorkspaceSyncPolicy:
    """The policy of a Sandbox that is given none."""
    return WorkspaceSyncPolicy(list(_pinfold.SANDBOX_POLICY_EXCLUDES),
                               list(DEFAULT_SANDBOX_SYNC_INCLUDE))


def workspace_id_for_run(run_id: str) -> str:
    """The workspace of a graph's or a workflow's run."""
    return _pinfold.workspace_id_for_run(run_id)


def workspace_id_for_context(context_id: str, shared: bool = False) -> str:
    """The workspace of an A2A context, or the one that its team shares."""
    return _pinfold.workspace_id_for_context(context_id, shared)
