/* SPDX-License-Identifier: Apache-2.0 */
/* The documented defaults, and patterns for callers that have only a list of them. */
#include <pinfold/policy.h>

#include <string.h>

#include "base/cleanup.h"
#include "tree/below.h"
#include "tree/glob.h"

const char *const pinfold_default_seed_excludes[] = {
    ".git",  "node_modules",     "__pycache__", ".venv", ".env",
    "*.pem", "credentials.json", "secrets/",    NULL,
};

const char *const pinfold_default_sync_includes[] = {
    "src/**", "tests/**", "*.md", "*.py", "*.json", "*.yaml", "*.yml", "dist/**", "build/**", NULL,
};

const char *const pinfold_default_policy_excludes[] = {
    ".git", "node_modules", "__pycache__", ".venv", NULL,
};

const char *const pinfold_host_execution_tool_names[] = {
    "shell", "python_repl", "file_read", "file_write", "environment", NULL,
};

const char *const pinfold_sandbox_offload_tool_names[] = {
    "execute", "read_file", "write_file", "list_dir", NULL,
};

struct pinfold_sync_policy pinfold_default_sync_policy(void)
{
    return (struct pinfold_sync_policy){
        .exclude_patterns = pinfold_default_seed_excludes,
        .sync_include_patterns = pinfold_default_sync_includes,
    };
}

int pinfold_patterns_check(const char *const *patterns, struct pinfold_error *err)
{
    PF_CLEANUP(pf_globs_freep) struct pf_globs *globs = NULL;

    return pf_globs_new(patterns, &globs, err);
}

int pinfold_patterns_match(const char *const *patterns, const char *path, bool is_dir,
                           struct pinfold_error *err)
{
    PF_CLEANUP(pf_globs_freep) struct pf_globs *globs = NULL;
    size_t len = strlen(path);
    int r = pf_globs_new(patterns, &globs, err);

    if (r < 0)
        return r;
    while (len > 0 && path[len - 1] == '/') {
        is_dir = true;
        len--;
    }
    return len > 0 && pf_globs_match_whole(globs, path, len, is_dir);
}
