# SPDX-License-Identifier: Apache-2.0
"""What the specification has under elsai.plugins.sandbox."""

from pinfold import (SandboxPlugin, ensure_sandbox_mutation_allowed, format_execute_result,
                     list_workspace_dir, read_workspace_file, run_command, write_workspace_file)

__all__ = ["SandboxPlugin", "ensure_sandbox_mutation_allowed", "format_execute_result",
           "list_workspace_dir", "read_workspace_file", "run_command", "write_workspace_file"]
