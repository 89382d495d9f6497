# SPDX-License-Identifier: Apache-2.0
"""Pinfold: workspaces in which AI agents may run anything. See docs/python.md."""

from __future__ import annotations

import json
import logging

from . import _errors, _pinfold
from ._agent import Agent, AgentResult, WorkspaceOrchestrator
from ._agent_config import AgentConfig, SandboxMode
from ._backends import (UNLIMITED, ExecutionBackend, IsolatedSandboxBackend, Limits,
                        LocalSandboxBackend, SandboxBackend, adopt as _adopt, supports_execution)
from ._errors import (AgentSandboxDetachedError, ConcurrencyException, SandboxAttachError,
                      SandboxBackendError, SandboxCancelledError, SandboxDecodeError,
                      SandboxError, SandboxMutationDeniedError, SandboxPathError,
                      SandboxStartError, WorkspacePrepareError)
from ._hooks import (AfterInvocationEvent, AfterModelCallEvent, AfterToolCallEvent,
                     AgentInitializedEvent, BeforeInvocationEvent, BeforeModelCallEvent,
                     BeforeToolCallEvent, HookEvent, HookProvider, HookRegistry, MessageAddedEvent,
                     hook)
from ._loop import audit_logger as _audit_logger
from ._manager import SandboxManager
from ._models import (AnthropicModel, BedrockModel, Model, ModelReply, ModelRequest, ModelUsage,
                      OpenAIModel, ScriptedModel)
from ._offload import (FileStorage, InMemoryStorage, S3Storage, SandboxOutputOffloadPolicy,
                       Storage)
from ._plugins import ContextOffloader, Plugin, SandboxPlugin
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
from ._tools import AgentTool, ToolContext, host_tools, tool
from ._workspace import (close_sandbox_workspace, ensure_sandbox_mutation_allowed,
                         format_execute_result, list_workspace_dir, prepare_workspace,
                         read_workspace_file, run_command, sandbox_is_active,
                         sync_workspace_artifacts, workspace_is_prepared, write_workspace_file)

__version__ = _pinfold.VERSION

__all__ = [
    "AfterInvocationEvent", "AfterModelCallEvent", "AfterToolCallEvent", "Agent", "AgentConfig",
    "AgentCoreSandboxBackend", "AgentCoreSandboxTemplate", "AgentInitializedEvent", "AgentResult",
    "AgentSandboxDetachedError", "AgentTool", "AnthropicModel", "BedrockModel",
    "BeforeInvocationEvent", "BeforeModelCallEvent", "BeforeToolCallEvent", "ConcurrencyException",
    "ContextOffloader", "DEFAULT_SANDBOX_SEED_EXCLUDES", "DEFAULT_SANDBOX_SYNC_INCLUDE",
    "DaytonaSandboxBackend", "DaytonaSandboxTemplate", "ExecuteResult", "ExecutionBackend",
    "FileInfo", "FileStorage", "FileTransferResult", "HOST_EXECUTION_TOOL_NAMES", "HookEvent",
    "HookProvider", "HookRegistry", "InMemoryStorage", "IsolatedSandboxBackend", "Limits",
    "LocalSandboxBackend", "ManagedSandboxSession", "MessageAddedEvent", "Model", "ModelReply",
    "ModelRequest", "ModelUsage", "OpenAIModel", "PlanEntry", "Plugin", "S3Storage",
    "SANDBOX_OFFLOAD_TOOL_NAMES", "Sandbox", "SandboxAttachError", "SandboxAttachMode",
    "SandboxBackend", "SandboxBackendError", "SandboxCancelledError", "SandboxDecodeError",
    "SandboxError", "SandboxManager", "SandboxMode", "SandboxMutationDeniedError",
    "SandboxOutputOffloadPolicy", "SandboxPathError", "SandboxPlugin", "SandboxRef",
    "SandboxStartError", "SandboxView", "ScriptedModel", "Spool", "Storage", "Terminal",
    "TerminalExit", "ToolContext", "UNLIMITED", "WorkspaceOrchestrator", "WorkspacePrepareError",
    "WorkspaceSeedResult", "WorkspaceSyncPolicy", "WorkspaceSyncResult", "close_sandbox_workspace",
    "default_sandbox_sync_policy", "ensure_sandbox_mutation_allowed", "format_execute_result",
    "hook", "host_tools", "list_workspace_dir", "prepare_workspace", "read_workspace_file",
    "run_command", "sandbox_is_active", "supports_execution", "sync_workspace_artifacts",
    "sync_workspace_for_sandbox", "tool", "workspace_id_for_context", "workspace_id_for_run",
    "workspace_is_prepared", "write_workspace_file",
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
