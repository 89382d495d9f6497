# SPDX-License-Identifier: Apache-2.0
"""What the specification has under elsai.execution."""

from pinfold import (DEFAULT_SANDBOX_SEED_EXCLUDES, DEFAULT_SANDBOX_SYNC_INCLUDE,
                     HOST_EXECUTION_TOOL_NAMES, SANDBOX_OFFLOAD_TOOL_NAMES,
                     AgentSandboxDetachedError, ExecuteResult, ExecutionBackend, FileInfo,
                     FileTransferResult, IsolatedSandboxBackend, LocalSandboxBackend,
                     ManagedSandboxSession, Sandbox, SandboxAttachError, SandboxAttachMode,
                     SandboxBackend, SandboxManager, SandboxMutationDeniedError, SandboxPathError,
                     SandboxRef, SandboxStartError, WorkspaceOrchestrator, WorkspacePrepareError,
                     WorkspaceSeedResult, WorkspaceSyncPolicy, WorkspaceSyncResult,
                     close_sandbox_workspace, default_sandbox_sync_policy, prepare_workspace,
                     sandbox_is_active, supports_execution, sync_workspace_artifacts,
                     sync_workspace_for_sandbox, workspace_id_for_context, workspace_id_for_run,
                     workspace_is_prepared)

__all__ = [
    "AgentSandboxDetachedError", "DEFAULT_SANDBOX_SEED_EXCLUDES", "DEFAULT_SANDBOX_SYNC_INCLUDE",
    "ExecuteResult", "ExecutionBackend", "FileInfo", "FileTransferResult",
    "HOST_EXECUTION_TOOL_NAMES", "IsolatedSandboxBackend", "LocalSandboxBackend",
    "ManagedSandboxSession", "SANDBOX_OFFLOAD_TOOL_NAMES", "Sandbox", "SandboxAttachError",
    "SandboxAttachMode", "SandboxBackend", "SandboxManager", "SandboxMutationDeniedError",
    "SandboxPathError", "SandboxRef", "SandboxStartError", "WorkspaceOrchestrator",
    "WorkspacePrepareError", "WorkspaceSeedResult", "WorkspaceSyncPolicy", "WorkspaceSyncResult",
    "close_sandbox_workspace", "default_sandbox_sync_policy", "prepare_workspace",
    "sandbox_is_active", "supports_execution", "sync_workspace_artifacts",
    "sync_workspace_for_sandbox", "workspace_id_for_context", "workspace_id_for_run",
    "workspace_is_prepared",
]
