# SPDX-License-Identifier: Apache-2.0
"""Helpers for tools of one's own, in whatever workspace the agent has; and the workspace itself."""

from __future__ import annotations

from . import _check as check
from . import _pinfold
from ._agent import Agent
from ._check import StrPath
from ._errors import WorkspacePrepareError
from ._loop import run
from ._results import (ExecuteResult, FileInfo, WorkspaceSeedResult, WorkspaceSyncResult,
                       seed_result, sync_result)


def _core(agent: Agent) -> _pinfold.Agent:
    if not isinstance(agent, Agent):
        raise TypeError(f"agent: an Agent is required, not {type(agent).__name__}")
    return agent._core


# ---- for tools ----

async def run_command(agent: Agent, command: str, cwd: str | None = None) -> str:
    """Run a shell command; returns the exit code and the output, as the execute tool tells them."""
    text: str = await run(_core(agent).run_command(command, None, cwd, None, None, False, 0, False))
    return text


async def read_workspace_file(agent: Agent, path: StrPath, offset: int = 0,
                              limit: int | None = None) -> str:
    """A text file, or some of its lines."""
    text: str = await run(_core(agent).read_lines(path, offset, limit))
    return text


async def write_workspace_file(agent: Agent, path: StrPath, content: str | bytes) -> None:
    """Write one file, and the directories that lead to it."""
    await run(_core(agent).write_file(path, content))


async def list_workspace_dir(agent: Agent, path: StrPath) -> list[FileInfo]:
    """One directory; "." is the root."""
    return [FileInfo(*entry) for entry in await run(_core(agent).list_dir(path))]


def format_execute_result(result: ExecuteResult) -> str:
    """A result as the execute tool tells it: the exit code, then the output."""
    check.expect("result", result, ExecuteResult)
    check.expect("result.output", result.output, str)
    return _pinfold.format_result(check.whole("result.exit_code", result.exit_code, 0,
                                              check.INT32_MAX), result.output)


def ensure_sandbox_mutation_allowed(agent: Agent) -> None:
    """Raises SandboxMutationDeniedError for a read-only agent, AgentSandboxDetachedError for one
    without a workspace."""
    _core(agent).ensure_mutation()


# ---- the workspace of an agent's own ----

async def prepare_workspace(agent: Agent) -> WorkspaceSeedResult | None:
    """Create the backend and seed it, unless that was done. None: nothing was seeded."""
    try:
        done = seed_result(await run(_core(agent).prepare()))
    except WorkspacePrepareError as error:
        error.result = seed_result(getattr(error, "partial", None))
        raise
    return done if done and (done.files_seeded or done.skipped_paths) else None


async def sync_workspace_artifacts(agent: Agent) -> WorkspaceSyncResult | None:
    """Write the workspace's artifacts to workspace_root. None: there is nothing, or nowhere."""
    try:
        return sync_result(await run(_core(agent).sync()))
    except WorkspacePrepareError as error:
        error.result = sync_result(getattr(error, "partial", None))
        raise


async def close_sandbox_workspace(agent: Agent, sync_artifacts: bool = True) -> None:
    """Sync if wanted, then close the session, whatever the sync did."""
    await run(_core(agent).close(sync_artifacts))


def sandbox_is_active(agent: Agent) -> bool:
    """Whether the mode is not OFF and there is a workspace, or a backend to make one of."""
    return _core(agent).is_active


def workspace_is_prepared(agent: Agent) -> bool:
    """Whether the agent's own workspace was prepared, and lives."""
    return _core(agent).is_prepared
