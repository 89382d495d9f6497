/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Audit: one structured event for each lifecycle step and each mutation. An event never carries a
 * command's text, a file's content or output: a command appears as its length and the first 16
 * hex digits of its SHA-256.
 */
#ifndef PINFOLD_AUDIT_H
#define PINFOLD_AUDIT_H

#include <stdint.h>

#include <pinfold/error.h>

PINFOLD_BEGIN_DECLS

/* One event. Pointers are borrowed for the time of the call; NULL and -1 mean "does not apply".
 * Paths have bytes that are not printable UTF-8 written as \xNN. */
struct pinfold_audit_event {
    size_t size;
    const char *event; /* sandbox.start, sandbox.stop, sandbox.add_files, sandbox.download_files,
                          sandbox.delete_files, sandbox.move_file, sandbox.write_file,
                          sandbox.edit_file, sandbox.execute, sandbox.open_terminal,
                          sandbox.close_terminal, sandbox.stop_commands, sandbox.flush,
                          sandbox.expire, sandbox.view, sandbox.view_end, attach, detach,
                          sandbox.network_open, sandbox.network_refuse, sandbox.network_fail */
    int64_t time_ns;   /* CLOCK_REALTIME */
    const char *workspace_id;
    const char *owner_id;
    const char *backend_type;
    const char *view; /* name of the read-only view through which it was done, or tried */
    const char *agent_id;
    const char *mode;         /* attach mode: "read_write" or "read_only" */
    const char *path;         /* a path in the workspace, or the destination of a flush */
    const char *const *paths; /* NULL-terminated; of an event about several files */
    const char *dest;         /* second path of a move */
    int64_t files;            /* files seeded, synced, added, ... */
    int64_t bytes;
    int64_t errors;             /* how many errors the result lists */
    int64_t command_len;        /* bytes of the command's UTF-8 */
    const char *command_sha256; /* 16 hex digits */
    const char *inferred_op;    /* for example "shell_delete"; a guess, never used to decide */
    const char *cwd;
    int exit_code;
    int truncated; /* 0 or 1 */
    int timed_out; /* 0 or 1 */
    int64_t duration_ns;
    int64_t cpu_ns; /* these three as in struct pinfold_execute_result */
    int64_t peak_bytes;
    const char *limit; /* pinfold_limit_name() of the limit that ended the command */
    const char *error; /* the exception's name when the operation failed */
    const char *error_message;
    /* Of the network: what a sandbox with an allow list asked for, and got or did not. Never what
     * went through a connection. */
    const char *protocol; /* "connect", "http" or "socks5" */
    const char *host;     /* a name or an address; NULL when none could be read, or for several */
    int port;             /* 1 to 65535 */
    const char *reason;   /* why not */
    int64_t count;        /* connections this stands for: more than one when they came too fast to
                             be told one by one; protocol and reason are those of the last */
};

/* Receives events, from the thread that caused them, those of the network from a thread of the
 * backend's, possibly several at once. Must not call back into the sandbox that the event is about,
 * nor wait for a thread that is in a call of it: stopping waits for the last event. */
typedef void (*pinfold_audit_fn)(void *ctx, const struct pinfold_audit_event *event);

/* Where events go. Copied by the objects that take it; ctx is borrowed for their life. */
struct pinfold_audit_sink {
    pinfold_audit_fn emit; /* NULL: no audit */
    void *ctx;
};

struct pinfold_audit_file;

/**
 * Open a sink that appends each event to a file as one JSON object a line.
 *
 * path      borrowed; created with mode 0600 when missing; a regular file or a character device:
 *           no symbolic link, and no FIFO, which could make everything wait for who reads it
 * ret_file  receives the sink; the caller owns it, pinfold_audit_file_close()
 * err       borrowed, may be NULL
 *
 * Returns 0, -PINFOLD_EVALUE (it is something else), -PINFOLD_EOS or -PINFOLD_ENOMEM.
 * Threads: any.
 */
PINFOLD_API int pinfold_audit_file_open(const char *path, struct pinfold_audit_file **ret_file,
                                        struct pinfold_error *err);

/**
 * The sink to pass to sandboxes and managers. Every line is written by one write(2).
 *
 * file  borrowed; must outlive every object that the sink is given to
 *
 * Returns a sink that points to file.
 * Threads: any.
 */
PINFOLD_API struct pinfold_audit_sink pinfold_audit_file_sink(struct pinfold_audit_file *file);

/**
 * Close the sink.
 *
 * file  owned, NULL is fine
 * err   borrowed, may be NULL; tells the first write that failed since it was opened
 *
 * Returns 0 or -PINFOLD_EOS when an event could not be written.
 * Threads: one, the last.
 */
PINFOLD_API int pinfold_audit_file_close(struct pinfold_audit_file *file,
                                         struct pinfold_error *err);

/**
 * Format an event as one JSON object without a newline; what does not apply is left out.
 *
 * event     borrowed
 * ret_json  receives the text; the caller owns it, free()
 * err       borrowed, may be NULL
 *
 * Returns 0 or -PINFOLD_ENOMEM.
 * Threads: any.
 */
PINFOLD_API int pinfold_audit_event_json(const struct pinfold_audit_event *event, char **ret_json,
                                         struct pinfold_error *err);

PINFOLD_END_DECLS

#endif
