# SPDX-License-Identifier: Apache-2.0
"""Pinfold: workspaces in which AI agents may run anything. See docs/python.md."""

from __future__ import annotations

import json
import logging

from . import _errors, _pinfold
from ._backends import (UNLIMITED, ExecutionBackend, IsolatedSandboxBackend, Limits,
                        LocalSandboxBackend, SandboxBackend, adopt as _adopt, supports_execution)
from ._errors import (AgentSandboxDetachedError, SandboxAttachError, SandboxBackendError,
                      SandboxCancelledError, SandboxDecodeError, SandboxError,
                      SandboxMutationDeniedError, SandboxPathError, SandboxStartError,
                      WorkspacePrepareError)
from ._loop import audit_logger as _audit_logger
from ._manager import SandboxManager
from ._policy import (DEFAULT_SANDBOX_SEED_EXCLUDES, DEFAULT_SANDBOX_SYNC_INCLUDE,
                      HOST_EXECUTION_TOOL_NAMES, SANDBOX_OFFLOAD_TOOL_NAMES, SandboxAttachMode,
                      WorkspaceSyncPolicy, default_sandbox_sync_policy, workspace_id_for_context,
                      workspace_id_for_run)
from ._remote import (AgentCoreSandboxBackend, AgentCoreSandboxTemplate, DaytonaSandboxBackend,
                      DaytonaSandboxTemplate)
from ._results import (ExecuteResult, FileInfo, FileTransferResult, ManagedSandboxSession,
                       PlanEntry, SandboxRef, Spool, TerminalExit, WorkspaceSeedResult,
                       WorkspaceSyncResult)
from ._sandbox import Sandbox, SandboxView, sync_workspace_for_sandbox
from ._terminal import Terminal

__version__ = _pinfold.VERSION

__all__ = [
    "AgentCoreSandboxBackend", "AgentCoreSandboxTemplate", "AgentSandboxDetachedError",
    "DEFAULT_SANDBOX_SEED_EXCLUDES", "DEFAULT_SANDBOX_SYNC_INCLUDE", "DaytonaSandboxBackend",
    "DaytonaSandboxTemplate", "ExecuteResult",
    "ExecutionBackend", "FileInfo", "FileTransferResult", "HOST_EXECUTION_TOOL_NAMES",
    "IsolatedSandboxBackend", "Limits", "LocalSandboxBackend", "ManagedSandboxSession",
    "PlanEntry", "SANDBOX_OFFLOAD_TOOL_NAMES", "Sandbox", "SandboxAttachError",
    "SandboxAttachMode", "SandboxBackend", "SandboxBackendError", "SandboxCancelledError",
    "SandboxDecodeError", "SandboxError", "SandboxManager", "SandboxMutationDeniedError",
    "SandboxPathError", "SandboxRef", "SandboxStartError", "SandboxView", "Spool", "Terminal",
    "TerminalExit", "UNLIMITED", "WorkspacePrepareError", "WorkspaceSeedResult",
    "WorkspaceSyncPolicy", "WorkspaceSyncResult", "default_sandbox_sync_policy",
    "supports_execution", "sync_workspace_for_sandbox", "workspace_id_for_context",
    "workspace_id_for_run",
]


def _audit(text: str) -> None:
    """One audit event: the line has it as JSON, the record as a dict."""
    if not _audit_logger.isEnabledFor(logging.INFO):
        return
    event = json.loads(text)
    _audit_logger.info("%s %s", event["event"], text,
                       extra={"event": event["event"], "audit": event})


def _log(level: int, text: str) -> None:
    logging.getLogger("elsai.sandbox").log(level, "%s", text)


_pinfold.set_hooks(_errors.make_error, _errors.explain, _audit, _log, _adopt)
