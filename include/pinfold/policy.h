/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which files travel: the patterns of seed and flush, and the identifiers of workspaces.
 *
 * Patterns follow one rule everywhere: paths are relative and '/' separated; matching is
 * case-sensitive and bytewise; a pattern without '/' (except a trailing one) matches a name at any
 * depth; an inner or leading '/' anchors it at the root; a trailing '/' matches directories only;
 * "**" spans directories; '*', '?' and '[...]' never match '/' and may match a leading dot; a
 * matched directory stands for everything below it; "a/" followed by "**" needs something below
 * a. A leading '!' or a ".." component is refused.
 */
#ifndef PINFOLD_POLICY_H
#define PINFOLD_POLICY_H

#include <pinfold/error.h>
#include <pinfold/result.h>

PINFOLD_BEGIN_DECLS

/* DEFAULT_SANDBOX_SEED_EXCLUDES: .git, node_modules, __pycache__, .venv, .env, *.pem,
 * credentials.json, secrets/ -- NULL-terminated. ".env" is exact: ".env.local" needs a pattern. */
PINFOLD_API extern const char *const pinfold_default_seed_excludes[];

/* DEFAULT_SANDBOX_SYNC_INCLUDE: src and everything below it, tests likewise, *.md, *.py, *.json,
 * *.yaml, *.yml, dist and build with everything below -- NULL-terminated. Anything else, *.c or a
 * Makefile say, is not synced unless the policy includes it. */
PINFOLD_API extern const char *const pinfold_default_sync_includes[];

/* WorkspaceSyncPolicy.exclude_patterns when none are given: .git, node_modules, __pycache__,
 * .venv -- NULL-terminated. */
PINFOLD_API extern const char *const pinfold_default_policy_excludes[];

/* HOST_EXECUTION_TOOL_NAMES: shell, python_repl, file_read, file_write, environment --
 * NULL-terminated. */
PINFOLD_API extern const char *const pinfold_host_execution_tool_names[];

/* SANDBOX_OFFLOAD_TOOL_NAMES: execute, read_file, write_file, list_dir -- NULL-terminated. */
PINFOLD_API extern const char *const pinfold_sandbox_offload_tool_names[];

/* WorkspaceSyncPolicy. Borrowed by every call that takes it, copied by every object that keeps
 * it. */
struct pinfold_sync_policy {
    const char *const
            *exclude_patterns; /* NULL-terminated; NULL: pinfold_default_policy_excludes */
    const char *const *sync_include_patterns; /* NULL-terminated; NULL: the default includes;
                                                 an empty list: sync nothing */
};

/**
 * The policy that a Sandbox uses when none is given: the default includes, and as excludes the
 * eight of pinfold_default_seed_excludes.
 *
 * Returns a policy that points to static memory.
 * Threads: any.
 */
PINFOLD_API struct pinfold_sync_policy pinfold_default_sync_policy(void);

/**
 * Check patterns as every object that takes patterns does.
 *
 * patterns  borrowed, NULL-terminated; NULL is an empty list
 * err       borrowed, may be NULL; names the pattern and what is wrong with it
 *
 * Returns 0, -PINFOLD_EVALUE (names nothing, leading '!', a ".." component, an unclosed '[', an
 * unknown class in it, or a last backslash: a pattern that silently matched nothing would let
 * through what it was meant to keep out) or -PINFOLD_ENOMEM.
 * Threads: any.
 */
PINFOLD_API int pinfold_patterns_check(const char *const *patterns, struct pinfold_error *err);

/**
 * Match a relative path against patterns, as seed and flush do. A path below a matching directory
 * matches.
 *
 * patterns  borrowed, NULL-terminated
 * path      borrowed, relative, '/' separated
 * is_dir    whether path names a directory
 * err       borrowed, may be NULL
 *
 * Returns 1 (matches), 0 (does not), -PINFOLD_EVALUE or -PINFOLD_ENOMEM.
 * Threads: any.
 */
PINFOLD_API int pinfold_patterns_match(const char *const *patterns, const char *path, bool is_dir,
                                       struct pinfold_error *err);

/**
 * workspace_id_for_run: "graph-" followed by the run id.
 *
 * run_id  borrowed; not empty, no '/', at most 255 bytes with the prefix
 * ret_id  receives the id; the caller owns it, free()
 * err     borrowed, may be NULL
 *
 * Returns 0, -PINFOLD_EVALUE or -PINFOLD_ENOMEM.
 * Threads: any.
 */
PINFOLD_API int pinfold_workspace_id_for_run(const char *run_id, char **ret_id,
                                             struct pinfold_error *err);

/**
 * workspace_id_for_context: the context id, or the context id followed by ":shared-ws".
 *
 * context_id  borrowed; not empty, no '/', at most 255 bytes with the suffix
 * shared      whether the whole team shares one workspace
 * ret_id      receives the id; the caller owns it, free()
 * err         borrowed, may be NULL
 *
 * Returns 0, -PINFOLD_EVALUE or -PINFOLD_ENOMEM.
 * Threads: any.
 */
PINFOLD_API int pinfold_workspace_id_for_context(const char *context_id, bool shared, char **ret_id,
                                                 struct pinfold_error *err);

PINFOLD_END_DECLS

#endif
