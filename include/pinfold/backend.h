/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Execution backends: where commands and file operations really run. A backend is a table of
 * functions and a state; the protocols ExecutionBackend and SandboxBackend of the specification
 * are this table without and with execute.
 *
 * A template is a backend whose table has build_for_session: it holds a configuration, and makes
 * one backend per workspace. A backend without that function is used as it is.
 *
 * Paths given to operations are relative to the workspace root, normalised ("a/b", "." for the
 * root), and hold no "..": the caller has seen to it with pinfold_path_normalize().
 */
#ifndef PINFOLD_BACKEND_H
#define PINFOLD_BACKEND_H

#include <pinfold/cancel.h>
#include <pinfold/error.h>
#include <pinfold/limits.h>
#include <pinfold/policy.h>
#include <pinfold/result.h>
#include <pinfold/terminal.h>

PINFOLD_BEGIN_DECLS

struct pinfold_backend;

/* Receives output as it arrives: raw bytes, at most 256 KiB a call, from the thread that called
 * execute. Return 0 to go on, or PINFOLD_OUTPUT_ENOUGH to let the command go on and hear no more of
 * this stream; anything else stops the command as a cancellation does. */
#define PINFOLD_OUTPUT_ENOUGH 0x7fffffff
typedef int (*pinfold_output_fn)(void *ctx, enum pinfold_stream stream, const char *data,
                                 size_t len);

/* Receives progress of a seed or a flush, at most every 50 ms, from the thread that called.
 * files and bytes count what has been copied so far. */
typedef void (*pinfold_progress_fn)(void *ctx, uint64_t files, uint64_t bytes);

/* What to run. Zero means default in every field. */
struct pinfold_execute_options {
    size_t size;             /* sizeof(struct pinfold_execute_options) */
    const char *command;     /* a shell command line, run by /bin/sh -c */
    size_t command_len;      /* bytes of command; 0: it is NUL-terminated */
    const char *const *argv; /* instead of command: an argument vector, NULL-terminated */
    const char *cwd;         /* inside the workspace; NULL: its root */
    const char *const *env;  /* NULL-terminated "NAME=value" entries that win over all others */
    double timeout_seconds;  /* wall clock from the start; 0: the backend's default; < 0: refused */
    size_t max_output_bytes; /* of stdout and stderr together, kept in the result; 0: the
                                backend's default */
    bool keep_tail;          /* when output is cut keep its head and its tail instead of its head */
    bool discard_output;     /* keep nothing in the result: for callers that stream */
    uint64_t spool_bytes;    /* > 0: also keep up to this many raw bytes in unnamed files, and
                                give a handle to page through them: of stderr what stdout leaves,
                                and never less than a quarter; the result then keeps head and
                                tail */
    pinfold_output_fn on_output; /* may be NULL */
    void *on_output_ctx;
};

#define PINFOLD_EXECUTE_OPTIONS_INIT PINFOLD_SIZED(struct pinfold_execute_options)

struct pinfold_seed_request {
    size_t size;
    const char *source;              /* absolute path of a host directory */
    const char *const *exclude;      /* NULL-terminated patterns: all of them, defaults included */
    struct pinfold_plan *plan;       /* not NULL: change nothing, list what would be done */
    pinfold_progress_fn on_progress; /* may be NULL */
    void *on_progress_ctx;
};

struct pinfold_sync_request {
    size_t size;
    const char *dest;           /* absolute path of a host directory; created when missing */
    const char *const *include; /* NULL-terminated patterns */
    const char *const *exclude; /* NULL-terminated patterns; they win over include */
    struct pinfold_plan *plan;  /* as above */
    pinfold_progress_fn on_progress;
    void *on_progress_ctx;
    bool links; /* symbolic links come as they are: for a copy to look at. Else each is an error
                   that dest does not have; so it may stay on a backend without open_root */
};

enum pinfold_network_outcome {
    PINFOLD_NETWORK_REFUSED, /* by the rules, or because the request was malformed */
    PINFOLD_NETWORK_FAILED,  /* allowed, and not reached */
    PINFOLD_NETWORK_OPENED,
};

/* What became of connections that a sandbox asked its way out for. Strings are borrowed for the
 * time of the call, and printable ASCII of bounded length. */
struct pinfold_network_event {
    size_t size;
    enum pinfold_network_outcome outcome;
    const char *protocol; /* "connect", "http", "socks5", or "" when it got no further than that */
    const char *host;     /* a name or an address; "" when none could be read, or for several */
    uint16_t port;        /* 0 likewise */
    const char *reason;   /* one line; "" when there is nothing to say */
    uint64_t count;       /* 1; more: so many that came too fast to be told one by one, of which
                             protocol and reason describe the last */
};

typedef void (*pinfold_network_fn)(void *ctx, const struct pinfold_network_event *event);

/* One file to put into a workspace: from memory, or from a host file when host_path is set. */
struct pinfold_upload {
    const char *path;
    const void *data;
    size_t len;
    const char *host_path; /* a regular file; a directory is an error */
};

/* The largest file that the backends of this library read into memory (read_file, and
 * download_files without a host_path); a larger one is EFBIG. An agent makes a sparse file of any
 * size for nothing, and must not fill the memory of whoever reads it. */
#define PINFOLD_READ_MAX_BYTES ((size_t)256 * 1024 * 1024)

/* One file to fetch: to a host file, or into memory when host_path is NULL. */
struct pinfold_download {
    const char *path;
    const char *host_path; /* parents are created; replaced atomically */
};

/*
 * The functions of a backend. NULL means not supported, except for create, close and free, where
 * it means nothing to do. All take the backend's state first, and return 0 or a negative
 * pinfold_code. They may be called from several threads at once.
 */
struct pinfold_backend_ops {
    size_t size;           /* sizeof(struct pinfold_backend_ops) */
    const char *type_name; /* class name of the specification, e.g. "LocalSandboxBackend" */

    /* Templates: make the backend of one workspace. The caller owns a reference to it. */
    int (*build_for_session)(void *state, const char *workspace_id,
                             struct pinfold_backend **ret_backend, struct pinfold_error *err);

    int (*create)(void *state, struct pinfold_cancel *cancel, struct pinfold_error *err);
    /* Kills what still runs, waits for it, gives everything back. Called once after create. */
    int (*close)(void *state, struct pinfold_error *err);
    /* Kills running commands and refuses new ones; close still follows. Optional. */
    int (*stop_commands)(void *state, struct pinfold_error *err);

    int (*read_file)(void *state, const char *path, struct pinfold_bytes *ret_content,
                     struct pinfold_cancel *cancel, struct pinfold_error *err);
    /* Parents are created, the file is replaced atomically; exclusive: EEXIST if it is there. */
    int (*write_file)(void *state, const char *path, const void *data, size_t len, bool exclusive,
                      struct pinfold_cancel *cancel, struct pinfold_error *err);
    int (*list_dir)(void *state, const char *path, struct pinfold_file_infos *ret_infos,
                    struct pinfold_cancel *cancel, struct pinfold_error *err);
    /* A file or a symbolic link itself; a directory is EISDIR. */
    int (*remove_file)(void *state, const char *path, struct pinfold_cancel *cancel,
                       struct pinfold_error *err);
    /* Optional: without it a move is read, write, verify, delete. */
    int (*move_file)(void *state, const char *src, const char *dest, struct pinfold_cancel *cancel,
                     struct pinfold_error *err);

    /* Return 0 with the errors in the result when single paths failed. */
    int (*seed_workspace)(void *state, const struct pinfold_seed_request *request,
                          struct pinfold_seed_result *ret_result, struct pinfold_cancel *cancel,
                          struct pinfold_error *err);
    int (*sync_artifacts)(void *state, const struct pinfold_sync_request *request,
                          struct pinfold_sync_result *ret_result, struct pinfold_cancel *cancel,
                          struct pinfold_error *err);

    /* One result per request, in its order; return 0 even when single files failed. */
    int (*upload_files)(void *state, const struct pinfold_upload *files, size_t count,
                        bool overwrite, struct pinfold_transfer_results *ret_results,
                        struct pinfold_cancel *cancel, struct pinfold_error *err);
    int (*download_files)(void *state, const struct pinfold_download *files, size_t count,
                          bool overwrite, struct pinfold_transfer_results *ret_results,
                          struct pinfold_cancel *cancel, struct pinfold_error *err);

    /* The one function that SandboxBackend adds. */
    int (*execute)(void *state, const struct pinfold_execute_options *options,
                   struct pinfold_execute_result *ret_result, struct pinfold_cancel *cancel,
                   struct pinfold_error *err);

    /* Optional: a command on a terminal. cwd of the options is not NULL, and they name at most one
     * of command and argv. The terminal may be closed after close, and before free. */
    int (*open_terminal)(void *state, const struct pinfold_terminal_options *options,
                         struct pinfold_terminal **ret_terminal, struct pinfold_cancel *cancel,
                         struct pinfold_error *err);

    /* Optional: another backend on the same workspace, which commands in it cannot change: for them
     * it is mounted read-only, at the same path, without any network, and with processes and a /tmp
     * of their own. Its table has execute and the operations that read. The caller owns a reference
     * to it, creates it, and closes it before this one. Valid after create, until close. */
    int (*view)(void *state, struct pinfold_backend **ret_view, struct pinfold_error *err);

    /* The workspace root as commands see it, for stripping absolute paths; NULL result: none.
     * Valid after create, until close. */
    const char *(*workspace_root)(void *state);
    /* A text that is equal for two backends exactly when they share storage; two workspaces never
     * claim one. Valid after create. NULL function or result: storage is never shared. */
    const char *(*storage_key)(void *state);

    void (*free)(void *state); /* the last reference is gone */

    /* Whom to tell about the network, NULL for nobody. Called before create and after close, never
     * between them; fn is then called from a thread of the backend's, one at a time, and not after
     * close has returned. Optional. */
    void (*watch_network)(void *state, pinfold_network_fn fn, void *ctx);

    /* read_file, if that waits for nobody and the file has at most limit bytes. Returns whether it
     * was; if not, for whatever reason, read_file is asked. Optional. */
    bool (*try_read_file)(void *state, const char *path, size_t limit,
                          struct pinfold_bytes *ret_content);

    /* Optional, of backends whose workspace is a directory of this machine: descriptors of it, for
     * looking at much of it at once (changes, search). *ret_root: the workspace as commands see it.
     * *ret_upper: of an overlay what was changed in it, else -1. Both are the caller's to close.
     * Valid after create, until close. Without it the files are fetched by sync_artifacts. */
    int (*open_root)(void *state, int *ret_root, int *ret_upper, struct pinfold_cancel *cancel,
                     struct pinfold_error *err);

    /* Optional: write_file for a file that is there and has these very bytes, else EAGAIN. Without
     * it the file is read again before it is written. */
    int (*replace_file)(void *state, const char *path, const struct pinfold_bytes *expected,
                        const void *data, size_t len, struct pinfold_cancel *cancel,
                        struct pinfold_error *err);
    /* Optional: delete a directory, not the root; when it is not empty, ENOTEMPTY or with recursive
     * all that is in it. Without it a command does. */
    int (*remove_dir)(void *state, const char *path, bool recursive, struct pinfold_cancel *cancel,
                      struct pinfold_error *err);
    /* Optional: move a file, link or directory, not the root; no_replace: EEXIST when something is
     * there. EXDEV, for a directory, lets a command do it; so does having no such function. */
    int (*move_path)(void *state, const char *src, const char *dest, bool no_replace,
                     struct pinfold_cancel *cancel, struct pinfold_error *err);
};

/**
 * Make a backend from a table and a state.
 *
 * ops          borrowed for ever: static storage
 * state        owned by the backend from success on; ops->free releases it
 * id           copied; NULL makes one from the type name and eight random hex digits
 * ret_backend  receives the backend; the caller owns one reference, pinfold_backend_unref()
 * err          borrowed, may be NULL
 *
 * Returns 0, -PINFOLD_EVALUE (a table of the wrong size, or without a type name), -PINFOLD_ENOMEM.
 * Threads: any.
 */
PINFOLD_API int pinfold_backend_new(const struct pinfold_backend_ops *ops, void *state,
                                    const char *id, struct pinfold_backend **ret_backend,
                                    struct pinfold_error *err);

/**
 * Take another reference.
 *
 * backend  borrowed
 *
 * Returns backend, for the caller to own.
 * Threads: any.
 */
PINFOLD_API struct pinfold_backend *pinfold_backend_ref(struct pinfold_backend *backend);

/**
 * Give a reference back; the last one frees the backend.
 *
 * backend  owned, NULL is fine
 *
 * Threads: any.
 */
PINFOLD_API void pinfold_backend_unref(struct pinfold_backend *backend);

/**
 * ExecutionBackend.id.
 *
 * backend  borrowed
 *
 * Returns text that lives as long as the backend.
 * Threads: any.
 */
PINFOLD_API const char *pinfold_backend_id(const struct pinfold_backend *backend);

/**
 * The backend's table, for wrapping a backend in another and for calling it directly.
 *
 * backend  borrowed
 *
 * Returns the table given at creation.
 * Threads: any.
 */
PINFOLD_API const struct pinfold_backend_ops *
pinfold_backend_get_ops(const struct pinfold_backend *backend);

/**
 * The backend's state, to pass to the functions of its table.
 *
 * backend  borrowed
 *
 * Returns the state given at creation.
 * Threads: any.
 */
PINFOLD_API void *pinfold_backend_get_state(const struct pinfold_backend *backend);

/**
 * supports_execution: whether execute tools should be registered for a backend.
 *
 * backend  borrowed, NULL is fine
 *
 * Returns true when the backend, or what its template builds, has execute.
 * Threads: any.
 */
PINFOLD_API bool pinfold_supports_execution(const struct pinfold_backend *backend);

/**
 * Check and normalise a path that somebody else wrote: lexically, without touching a file system.
 * Relative paths are taken beneath the root; an absolute path must lie under root, which is
 * stripped; "a/../b" is "b"; what leaves the root is refused. "~" is an ordinary name.
 *
 * path      borrowed, len bytes; a NUL byte among them is refused
 * root      borrowed; the workspace root as the author of path sees it; NULL: no absolute path
 *           is accepted
 * ret_path  receives the normalised path, "." for the root; the caller owns it, free()
 * err       borrowed, may be NULL
 *
 * Returns 0, -PINFOLD_EPATH (empty, leaves the root, absolute elsewhere, NUL byte, longer than
 * 4,095 bytes) or -PINFOLD_ENOMEM.
 * Threads: any.
 */
PINFOLD_API int pinfold_path_normalize(const char *path, size_t len, const char *root,
                                       char **ret_path, struct pinfold_error *err);

/* LocalSandboxBackend: the host itself, without isolation. For development only. */
struct pinfold_local_options {
    size_t size;
    const char *workspace_root; /* required; created when missing; "~/" is expanded */
    double timeout_seconds;     /* default of a command; 0: 120 */
    size_t max_output_bytes;    /* 0: 100,000 */
    bool no_inherit_env;        /* inherit_env=False: commands get exactly env (and PWD) */
    const char *const *env;     /* NULL-terminated "NAME=value"; wins over what is inherited */
    /* This process ends right after close: do not wait there for the supervisor of the last
     * command, which holds the workspace's directory and ends when this process has. It then also
     * sweeps beside the workspace, so that pinfold_temp_workspace_free() does not. That does not
     * wait either for the process that would delete the workspace of a killed owner. Saves a
     * short-lived program that removes the workspace 0.2 ms, or milliseconds where the disk is
     * busy. Who adopts orphans reaps both. */
    bool process_ends;
};

#define PINFOLD_LOCAL_OPTIONS_INIT PINFOLD_SIZED(struct pinfold_local_options)

/**
 * Make a LocalSandboxBackend. Logs a warning: commands run on the host without isolation. The
 * caller's workspace_root is never deleted.
 *
 * options      borrowed, copied
 * ret_backend  receives the backend; the caller owns one reference, pinfold_backend_unref()
 * err          borrowed, may be NULL
 *
 * Returns 0, -PINFOLD_EVALUE (no root, timeout negative or not a number, a malformed env entry)
 * or -PINFOLD_ENOMEM.
 * Threads: any.
 */
PINFOLD_API int pinfold_local_backend_new(const struct pinfold_local_options *options,
                                          struct pinfold_backend **ret_backend,
                                          struct pinfold_error *err);

enum pinfold_net {
    PINFOLD_NET_NONE = 0, /* a loopback of its own and nothing else */
    PINFOLD_NET_HOST,     /* the host's network */
    PINFOLD_NET_ALLOW,    /* only the names in net_allow, through a proxy in this process */
};

/* IsolatedSandboxBackend: this machine, behind namespaces, seccomp and Landlock, without root.
 * The workspace is /workspace to commands. Commands get a fixed small environment and env, and
 * nothing of this process's environment. */
struct pinfold_isolated_options {
    size_t size;
    const char *workspace_root; /* host directory; NULL: a temporary one, deleted by close */
    double timeout_seconds;     /* default of a command; 0: 120 */
    size_t max_output_bytes;    /* 0: 100,000 */
    const char *const *env;     /* NULL-terminated "NAME=value" */
    const char *const *ro;      /* more host directories to show read-only, at the same path */
    const char *const *rw;      /* more host directories to show writable, at the same path */
    const char *rootfs;         /* a directory to use as root instead of the host's system
                                   directories; read-only */
    enum pinfold_net net;
    const char *const *net_allow; /* what PINFOLD_NET_ALLOW opens, and refused with any other net;
                                     NULL-terminated: "name", "*.name"
                                     (all below it), "*" (any public name), "address" or "network",
                                     "10.0.0.0/8" say; each with ":port" or meaning 80 and 443; IPv6
                                     with a port in brackets; a string may hold several, with
                                     commas. Addresses that are not public need one for themselves:
                                     docs/security.md */
    struct pinfold_limits limits;
    bool workspace_read_only; /* commands cannot write to the workspace */
    /* PINFOLD_SEED_OVERLAY: a seed is not copied but shown below what is changed. workspace_root
     * then is empty at the start, and holds in the end what was changed, in changes/. What can
     * fail in create fails when it is seeded, or with the first command. Where an overlay cannot
     * be had the seed is copied, and the result says why. */
    enum pinfold_seed_mode seed_mode;
};

#define PINFOLD_ISOLATED_OPTIONS_INIT PINFOLD_SIZED(struct pinfold_isolated_options)

/**
 * Make an IsolatedSandboxBackend. Nothing is started before create. There is no fallback: where
 * the kernel cannot isolate, create fails and says what is missing.
 *
 * options      borrowed, copied; NULL for defaults
 * ret_backend  receives the backend; the caller owns one reference, pinfold_backend_unref()
 * err          borrowed, may be NULL
 *
 * Returns 0, -PINFOLD_EVALUE (a malformed option) or -PINFOLD_ENOMEM.
 * Threads: any.
 */
PINFOLD_API int pinfold_isolated_backend_new(const struct pinfold_isolated_options *options,
                                             struct pinfold_backend **ret_backend,
                                             struct pinfold_error *err);

/* What isolation is made of. */
enum pinfold_probe_item {
    PINFOLD_PROBE_USER_NAMESPACE, /* needed, as are the next ones up to PROC */
    PINFOLD_PROBE_MOUNT_NAMESPACE,
    PINFOLD_PROBE_PID_NAMESPACE,
    PINFOLD_PROBE_NET_NAMESPACE,
    PINFOLD_PROBE_IPC_NAMESPACE,
    PINFOLD_PROBE_UTS_NAMESPACE,
    PINFOLD_PROBE_CGROUP_NAMESPACE,
    PINFOLD_PROBE_MOUNT_API, /* mounts by descriptors, Linux 5.12 */
    PINFOLD_PROBE_SECCOMP,
    PINFOLD_PROBE_PROC,     /* a fresh /proc may be mounted */
    PINFOLD_PROBE_OVERLAY,  /* for overlay seeds; without it they are copied */
    PINFOLD_PROBE_LANDLOCK, /* a second wall; number is its ABI */
    PINFOLD_PROBE_CGROUP2,  /* a delegated group, for limits of the whole sandbox */
    PINFOLD_PROBE_CGROUP1,  /* the same of the older kind: memory and pids */
    PINFOLD_PROBE_SANDBOX,  /* needed: a whole sandbox was started, and ended */
    PINFOLD_PROBE_COUNT,
};

struct pinfold_probe_answer {
    const char *name; /* static text */
    bool works, needed;
    int number;       /* a version, where there is one */
    int sys_errno;    /* what the system said */
    char detail[240]; /* of what failed, or "" */
    const char *hint; /* static text: how to turn it on; NULL when it works */
};

struct pinfold_isolated_probe {
    bool possible; /* everything that is needed works */
    struct pinfold_probe_answer answers[PINFOLD_PROBE_COUNT];
    /* What holds each limit, indexed by enum pinfold_limit: as a sandbox has them by default, and
     * what would hold those that are off by default. */
    enum pinfold_holder holders[PINFOLD_LIMIT_COUNT];
};

/**
 * Find out by trying what isolation this machine offers. Each attempt is real and takes a bounded
 * time; nothing stays behind.
 *
 * ret  receives the answers, indexed by enum pinfold_probe_item
 *
 * Returns whether an isolated sandbox can be started.
 * Threads: any.
 */
PINFOLD_API bool pinfold_isolated_probe(struct pinfold_isolated_probe *ret);

PINFOLD_END_DECLS

#endif
