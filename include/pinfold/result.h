/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Result types of the specification in C form. Each is a plain struct that the caller declares,
 * a call fills, and the matching _done() empties; _done() accepts a zeroed or an already emptied
 * struct. Text carries a length, is also NUL-terminated, and may hold NUL bytes.
 */
#ifndef PINFOLD_RESULT_H
#define PINFOLD_RESULT_H

#include <stdint.h>
#include <sys/types.h>

#include <pinfold/error.h>
#include <pinfold/limits.h>

PINFOLD_BEGIN_DECLS

/* Bytes that the caller owns. */
struct pinfold_bytes {
    char *data; /* NUL-terminated after len; NULL when empty is possible only if len is 0 */
    size_t len;
};

/* A list of strings that the caller owns. File names are raw bytes as the file system has them. */
struct pinfold_strings {
    char **items;
    size_t count;
    size_t capacity; /* private */
};

enum pinfold_stream {
    PINFOLD_STDOUT = 1,
    PINFOLD_STDERR = 2,
};

struct pinfold_spool;

/* ExecuteResult. Text is valid UTF-8: undecodable bytes have become U+FFFD. */
struct pinfold_execute_result {
    char *output; /* stdout, then each line of stderr prefixed "[stderr] ", then notes in brackets
                   */
    size_t output_len;
    size_t stdout_len; /* the first stdout_len bytes of output are stdout alone */
    char *stderr_text; /* stderr alone, without prefixes */
    size_t stderr_len;
    int exit_code;  /* 0..255; 124 on timeout, 128+n after signal n, 126/127 as shells use them */
    bool truncated; /* the byte limit cut something off */
    bool timed_out;
    bool supervisor_lost;        /* something in the sandbox, the command itself perhaps, killed the
                                    process that watches it, and so the command: exit_code is 137, and what
                                    it used is not known. Of the isolated backend alone */
    uint64_t stdout_bytes;       /* raw bytes the command wrote, kept or not */
    uint64_t stderr_bytes;       /* likewise */
    int64_t duration_ns;         /* from spawn to the return of the call, CLOCK_MONOTONIC */
    unsigned background;         /* processes of this command that still run */
    struct pinfold_spool *spool; /* whole output, when asked for; owned by the result */

    /* What the command used. Processes count once they have ended and were waited for: all but
     * those in background, and but those whose parent left them to the kernel (it ignored
     * SIGCHLD). Both are 0 where nobody counts: of commands that run at a service. */
    int64_t cpu_ns;      /* user and system time of the command and all that it started */
    uint64_t peak_bytes; /* most memory that one process had resident, shared pages included; that
                            of the supervisor it was forked from, about 1 MiB, counts as its own */
    uint64_t sandbox_peak_bytes; /* most that the whole sandbox had at one time since its start,
                                    files in memory and caches included; 0 where no control group
                                    counts */

    /* Limits. Some leave no trace and cannot be told: a process that ran into the limit of open
     * files or of a tmpfs only saw EMFILE or ENOSPC. */
    enum pinfold_limit limit; /* that ended the command or made it fail; NONE: no limit did, or it
                                 cannot be told. Memory held by rlimit is a guess: it failed, and
                                 one process had come to three quarters of it */
    unsigned limits_hit;      /* 1 << each limit that stopped something in the sandbox since the end
                                 of the command before this one, background processes included */
    enum pinfold_holder holders[PINFOLD_LIMIT_COUNT]; /* what held each limit */
};

/* FileInfo */
struct pinfold_file_info {
    char *path;   /* relative to the workspace root, '/' separated, no "./" */
    bool is_dir;  /* a directory, or a symbolic link to one inside the root */
    int64_t size; /* bytes; -1 when not available, always -1 for directories */
};

struct pinfold_file_infos {
    struct pinfold_file_info *items; /* sorted by path, bytewise */
    size_t count;
};

/* FileTransferResult */
struct pinfold_transfer_result {
    char *path;                   /* in the workspace */
    struct pinfold_bytes content; /* of a download into memory; empty otherwise */
    struct pinfold_error error;   /* code 0: transferred */
    bool skipped;                 /* existed already and overwrite was off */
};

struct pinfold_transfer_results {
    struct pinfold_transfer_result *items; /* in the order of the request */
    size_t count;
};

/* How a workspace gets its seed. */
enum pinfold_seed_mode {
    PINFOLD_SEED_COPY = 0,
    PINFOLD_SEED_OVERLAY = 1, /* it is shown, read-only, below what is changed */
};

/* WorkspaceSeedResult */
struct pinfold_seed_result {
    uint64_t files_seeded;
    uint64_t bytes_seeded; /* bytes written; of an overlay: the sizes of the files that it shows */
    enum pinfold_seed_mode mode; /* what was done */
    char *fallback; /* why it was copied when an overlay was asked for; NULL: as asked for */
    struct pinfold_strings
            skipped_paths;         /* sorted; a pruned directory is one entry ending in '/' */
    struct pinfold_strings errors; /* one line each: operation, path, cause */
};

/* WorkspaceSyncResult */
struct pinfold_sync_result {
    uint64_t files_synced; /* files written; identical ones are left alone and not counted */
    uint64_t bytes_synced;
    struct pinfold_strings errors;
};

/* What a dry run says of one path. */
enum pinfold_plan_action {
    PINFOLD_PLAN_COPY,      /* would be created */
    PINFOLD_PLAN_OVERWRITE, /* exists at the destination with other bytes */
    PINFOLD_PLAN_IDENTICAL, /* exists at the destination with the same bytes: left alone */
    PINFOLD_PLAN_SKIP,      /* would not be copied; reason says why */
    PINFOLD_PLAN_ERROR,     /* could not be copied; reason says why */
};

struct pinfold_plan_entry {
    char *path; /* relative; a directory ends in '/' */
    enum pinfold_plan_action action;
    int64_t size;       /* bytes that would be written; 0 for directories and skips */
    const char *reason; /* static text such as "excluded by a pattern"; "" for copies */
};

struct pinfold_plan {
    struct pinfold_plan_entry *items; /* sorted by path, bytewise */
    size_t count;
    size_t capacity;       /* private */
    uint64_t files, bytes; /* what would be copied */
};

/* SandboxRef: a handle stub, for this process only. */
struct pinfold_sandbox_ref {
    char *workspace_id;
    char *backend_type; /* for example "LocalSandboxBackend" */
    char *manager_id;   /* may be NULL */
};

/**
 * ExecuteResult.success: whether the exit code is 0.
 *
 * result  borrowed
 *
 * Returns true for exit code 0.
 * Threads: any.
 */
PINFOLD_API bool pinfold_execute_result_success(const struct pinfold_execute_result *result);

/**
 * Format a result as the execute tool shows it: the first line is the exit code, then the output
 * or "<no output>". Frozen by a golden test.
 *
 * result    borrowed
 * ret_text  receives the text; the caller owns it, pinfold_bytes_done()
 * err       borrowed, may be NULL
 *
 * Returns 0 or -PINFOLD_ENOMEM.
 * Threads: any.
 */
PINFOLD_API int pinfold_execute_result_format(const struct pinfold_execute_result *result,
                                              struct pinfold_bytes *ret_text,
                                              struct pinfold_error *err);

/**
 * How many bytes of a stream the spool holds: its first ones. Less than the stream's total when the
 * cap was hit, of which stderr has what stdout leaves, and never less than a quarter.
 *
 * spool   borrowed
 * stream  PINFOLD_STDOUT or PINFOLD_STDERR
 *
 * Returns the number of bytes that pinfold_spool_read() can reach; 0 when stream is neither.
 * Threads: any.
 */
PINFOLD_API uint64_t pinfold_spool_size(const struct pinfold_spool *spool,
                                        enum pinfold_stream stream);

/**
 * Read a page of a spooled stream: the raw bytes as the command wrote them.
 *
 * spool   borrowed
 * stream  PINFOLD_STDOUT or PINFOLD_STDERR
 * offset  bytes from the stream's start
 * buffer  borrowed, receives up to size bytes
 * err     borrowed, may be NULL
 *
 * Returns the number of bytes read (0 at the end), -PINFOLD_EVALUE when stream is neither, or
 * -PINFOLD_EOS.
 * Threads: any.
 */
PINFOLD_API ssize_t pinfold_spool_read(const struct pinfold_spool *spool,
                                       enum pinfold_stream stream, uint64_t offset, void *buffer,
                                       size_t size, struct pinfold_error *err);

/**
 * Free a spool that was taken out of a result (set result.spool to NULL when you take it).
 *
 * spool  owned, NULL is fine
 *
 * Threads: one, the last.
 */
PINFOLD_API void pinfold_spool_free(struct pinfold_spool *spool);

/* Each empties what it is given: borrowed struct, owned contents; a zeroed struct is fine.
 * Threads: one at a time per struct. */
PINFOLD_API void pinfold_bytes_done(struct pinfold_bytes *bytes);
PINFOLD_API void pinfold_strings_done(struct pinfold_strings *strings);
PINFOLD_API void pinfold_execute_result_done(struct pinfold_execute_result *result);
PINFOLD_API void pinfold_file_infos_done(struct pinfold_file_infos *infos);
PINFOLD_API void pinfold_transfer_results_done(struct pinfold_transfer_results *results);
PINFOLD_API void pinfold_seed_result_done(struct pinfold_seed_result *result);
PINFOLD_API void pinfold_sync_result_done(struct pinfold_sync_result *result);
PINFOLD_API void pinfold_plan_done(struct pinfold_plan *plan);
PINFOLD_API void pinfold_sandbox_ref_done(struct pinfold_sandbox_ref *ref);

PINFOLD_END_DECLS

#endif
