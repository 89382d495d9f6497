/* SPDX-License-Identifier: Apache-2.0 */
/* What the drivers share that use the library: dying, and a sandbox with a directory. */
#ifndef BENCH_DRIVER_H
#define BENCH_DRIVER_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pinfold/pinfold.h>

#include "contender.h"

static struct pinfold_error bench_err;

static inline void bench_die(const char *what) __attribute__((noreturn));
static inline void bench_die(const char *what)
{
    fprintf(stderr, "bench: %s: %s\n", what, bench_err.msg[0] ? bench_err.msg : strerror(errno));
    exit(1);
}

enum bench_kind { BENCH_LOCAL, BENCH_ISOLATED, BENCH_OVERLAY };

/* "local", "isolated" or "overlay". */
static inline enum bench_kind bench_kind(const char *name)
{
    return strcmp(name, "local") == 0      ? BENCH_LOCAL
           : strcmp(name, "isolated") == 0 ? BENCH_ISOLATED
                                           : BENCH_OVERLAY;
}

static inline struct pinfold_backend *bench_backend(enum bench_kind kind, const char *root)
{
    struct pinfold_isolated_options isolated = PINFOLD_ISOLATED_OPTIONS_INIT;
    struct pinfold_local_options local = PINFOLD_LOCAL_OPTIONS_INIT;
    struct pinfold_backend *backend;
    int r;

    local.workspace_root = isolated.workspace_root = root;
    if (kind == BENCH_OVERLAY)
        isolated.seed_mode = PINFOLD_SEED_OVERLAY;
    r = kind == BENCH_LOCAL ? pinfold_local_backend_new(&local, &backend, &bench_err)
                            : pinfold_isolated_backend_new(&isolated, &backend, &bench_err);
    if (r < 0)
        bench_die("make a backend");
    return backend;
}

/* A sandbox, not yet started, that flushes everything. seed: NULL for none. */
static inline struct pinfold_sandbox *bench_sandbox(enum bench_kind kind, const char *root,
                                                    const char *seed)
{
    static const char *const nothing[] = { NULL }, *const everything[] = { "*", NULL };
    static const struct pinfold_sync_policy policy = { nothing, everything };
    struct pinfold_sandbox_options options = PINFOLD_SANDBOX_OPTIONS_INIT;
    struct pinfold_sandbox *sandbox;
    static unsigned made;
    char id[32];

    snprintf(id, sizeof(id), "bench-%u", made++);
    options.workspace_id = id;
    options.backend = bench_backend(kind, root);
    options.ttl_seconds = 3600;
    options.seed_from = seed;
    options.sync_policy = &policy;
    if (pinfold_sandbox_new(&options, &sandbox, &bench_err) < 0)
        bench_die("make a sandbox");
    pinfold_backend_unref(options.backend);
    return sandbox;
}

static inline void bench_start(struct pinfold_sandbox *sandbox)
{
    if (pinfold_sandbox_start(sandbox, NULL, NULL, &bench_err) < 0)
        bench_die("start a sandbox");
}

/* Stop it, and end. */
static inline void bench_stop(struct pinfold_sandbox *sandbox)
{
    if (pinfold_sandbox_stop(sandbox, false, NULL, NULL, &bench_err) < 0)
        bench_die("stop a sandbox");
    pinfold_sandbox_free(sandbox);
}

/* The paths of all files of a workspace. */
static inline struct pinfold_search_result bench_files(struct pinfold_sandbox *sandbox)
{
    static const char *const everything[] = { "*", NULL };
    struct pinfold_search_options options = PINFOLD_SEARCH_OPTIONS_INIT;
    struct pinfold_search_result found = { 0 };

    options.names = everything;
    options.everything = true;
    options.max_results = 10000000;
    if (pinfold_sandbox_search(sandbox, &options, &found, NULL, &bench_err) < 0)
        bench_die("list the files");
    return found;
}

/* Give every hundredth file other bytes, of another length each time. Returns how many. */
static inline uint64_t bench_change(struct pinfold_sandbox *sandbox,
                                    const struct pinfold_search_result *files)
{
    static char text[8192];
    static size_t len = 4096;
    uint64_t changed = 0;

    len++;
    memset(text, 'a' + (int)(len % 26), sizeof(text));
    for (size_t i = 63; i < sizeof(text); i += 64)
        text[i] = '\n';
    for (size_t i = 0; i < files->count; i += 100, changed++)
        if (pinfold_sandbox_write_file(sandbox, files->items[i].path, text, len, NULL, &bench_err) <
            0)
            bench_die("change a file");
    return changed;
}

/* Flush, which must write so many files; dest: NULL for where the seed came from. */
static inline void bench_flush(struct pinfold_sandbox *sandbox, const char *dest, uint64_t expected)
{
    struct pinfold_sync_result result = { 0 };

    if (pinfold_sandbox_flush(sandbox, dest, &result, NULL, &bench_err) < 0)
        bench_die("flush");
    if (result.errors.count > 0 || result.files_synced != expected) {
        fprintf(stderr, "bench: flushed %" PRIu64 " files, and not %" PRIu64 "; %zu errors\n",
                result.files_synced, expected, result.errors.count);
        exit(1);
    }
    pinfold_sync_result_done(&result);
}

#endif
