# SPDX-License-Identifier: Apache-2.0
"""Sessions by workspace id."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import _check as check
from . import _pinfold
from ._backends import adopt, expose
from ._bridge import finish
from ._loop import run
from ._policy import WorkspaceSyncPolicy
from ._results import ManagedSandboxSession, WorkspaceSeedResult, seed_result as _seed_result

BackendFactory = Callable[[], Any]


def _session(raw: tuple[Any, ...]) -> ManagedSandboxSession:
    session_id, backend, prepared, seed, owner_id, created_at, last_used_at = raw
    return ManagedSandboxSession(session_id, expose(backend), prepared, _seed_result(seed),
                                 owner_id, created_at, last_used_at)


class SandboxManager:
    """Gets or creates sessions. Nothing expires by itself: call cleanup_expired() on a schedule."""

    def __init__(self, ttl_seconds: float | None = 3600.0):
        self._core = _pinfold.Manager(
            -1.0 if ttl_seconds is None else check.positive("ttl_seconds", ttl_seconds))
        self.ttl_seconds = ttl_seconds

    def __repr__(self) -> str:
        return f"SandboxManager(ttl_seconds={self.ttl_seconds!r}, id={self._core.id!r})"

    def resolve_workspace_id(self, agent: Any) -> str:
        """The key of an agent's workspace: its own, its session manager's, or its id."""
        manager = getattr(agent, "_session_manager", None) or getattr(agent, "session_manager",
                                                                      None)
        ids = {"workspace_id": getattr(agent, "_sandbox_workspace_id", None),
               "session_id": getattr(manager, "session_id", None),
               "agent_id": getattr(agent, "agent_id", None)}
        check.texts(**ids)
        return self._core.resolve(*ids.values())

    def resolve_session_id(self, agent: Any) -> str:
        """The old name of resolve_workspace_id()."""
        return self.resolve_workspace_id(agent)

    def get_session(self, session_id: str) -> ManagedSandboxSession | None:
        """The session, if there is one; does not count as use."""
        raw = self._core.get_session(session_id)
        return None if raw is None else _session(raw)

    async def get_or_create(self, session_id: str,
                            factory: BackendFactory) -> ManagedSandboxSession:
        """The session there is, or one with a backend of the factory's."""
        return _session(await run(self._core.open(session_id, _made_by(factory), None, 0.0)))

    async def claim_session(self, session_id: str, factory: BackendFactory, owner_id: str,
                            ttl_seconds: float | None = None) -> ManagedSandboxSession:
        """Take a workspace for one owner, and create its backend, in one step."""
        ttl = 0.0 if ttl_seconds is None else check.positive("ttl_seconds", ttl_seconds)
        check.text("owner_id", owner_id)
        return _session(await run(self._core.open(session_id, _made_by(factory), owner_id, ttl)))

    def mark_prepared(self, session_id: str,
                      seed_result: WorkspaceSeedResult | None = None) -> None:
        """Remember that the workspace was seeded."""
        if seed_result is not None:
            check.expect("seed_result", seed_result, WorkspaceSeedResult)
        check.text("session_id", session_id)
        raw = None if seed_result is None else (
            check.whole("files_seeded", seed_result.files_seeded, 0),
            check.whole("bytes_seeded", seed_result.bytes_seeded, 0),
            check.strings("skipped_paths", seed_result.skipped_paths),
            check.strings("errors", seed_result.errors))
        self._core.mark_prepared(session_id, raw)

    async def close_session(self, session_id: str, sync_artifacts: bool = True,
                            agent: Any = None) -> None:
        """Sync if a destination is known, then close the backend. With an agent, its workspace_root
        and workspace_sync_policy say where to and what."""
        policy = getattr(agent, "workspace_sync_policy", None)
        if policy is not None:
            check.expect("agent.workspace_sync_policy", policy, WorkspaceSyncPolicy)
        await run(self._core.close(session_id, sync_artifacts,
                                   getattr(agent, "workspace_root", None),
                                   None if policy is None else policy._raw()))

    async def cleanup_expired(self) -> list[str]:
        """Close every session that was idle for longer than its time; returns their ids."""
        closed: list[str] = await run(self._core.cleanup_expired())
        return closed

    @staticmethod
    def backend_factory_for_session(template: Any, session_id: str) -> BackendFactory:
        """A factory: the template's backend for this workspace, or the instance itself."""
        check.text("session_id", session_id)
        adopt(template, "template")
        if not callable(getattr(template, "build_for_session", None)):
            return lambda: template
        return lambda: template.build_for_session(session_id)


def _made_by(factory: BackendFactory) -> BackendFactory:
    check.function("factory", factory)
    return lambda: finish(factory())
