/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sandbox: one workspace, shared by the agents of this process. The application makes it, starts
 * it, and stops it; agents attach in between.
 */
#ifndef PINFOLD_SANDBOX_H
#define PINFOLD_SANDBOX_H

#include <pinfold/manager.h>

PINFOLD_BEGIN_DECLS

struct pinfold_sandbox;

struct pinfold_sandbox_options {
    size_t size;
    const char *workspace_id;        /* required: not empty, no '/', at most 255 bytes */
    struct pinfold_backend *backend; /* required: an instance or a template; a reference is taken */
    double ttl_seconds;              /* required: > 0, or PINFOLD_TTL_NONE is refused */
    struct pinfold_manager *manager; /* NULL: one of its own with this ttl */
    const char *seed_from; /* host directory copied in (or shown) by start; "~/" is expanded, a
                              relative path is resolved now */
    const char *const *seed_exclude; /* NULL-terminated; added to the default excludes */
    const struct pinfold_sync_policy *sync_policy; /* NULL: pinfold_default_sync_policy() */
    const char *sync_dest;                         /* where flush writes; NULL: seed_from */
    struct pinfold_audit_sink audit;
    pinfold_progress_fn on_progress; /* of seed and flush; may be NULL */
    void *on_progress_ctx;
    const char *const
            *sync_exclude; /* NULL-terminated patterns; what flush leaves alone besides
                              the excludes, and start copies in all the same. NULL: none */
};

#define PINFOLD_SANDBOX_OPTIONS_INIT PINFOLD_SIZED(struct pinfold_sandbox_options)

/* SandboxAttachMode */
enum pinfold_attach_mode {
    PINFOLD_READ_WRITE = 0,
    PINFOLD_READ_ONLY = 1,
};

/* What the agent layer gives to attach. The sandbox knows an agent by its address and asks the
 * layer to wire and unwire tools and hooks. */
struct pinfold_attach_request {
    size_t size;
    void *agent;          /* identity; borrowed until detached */
    const char *agent_id; /* copied; for audit */
    enum pinfold_attach_mode mode;
    /* Wires the agent; on failure it has undone what it did. May be NULL. */
    int (*wire)(void *agent, void *ctx, struct pinfold_error *err);
    /* Unwires the agent; called once per successful attach. May be NULL. */
    void (*unwire)(void *agent, void *ctx);
    void *ctx;
};

/**
 * Make a sandbox. Nothing is created or claimed before pinfold_sandbox_start().
 *
 * options      borrowed, copied
 * ret_sandbox  receives the sandbox; the caller owns it, pinfold_sandbox_free()
 * err          borrowed, may be NULL
 *
 * Returns 0, -PINFOLD_EVALUE (id, ttl or a pattern), -PINFOLD_ETYPE (no backend), -PINFOLD_EOS
 * (current directory unknown) or -PINFOLD_ENOMEM.
 * Threads: any.
 */
PINFOLD_API int pinfold_sandbox_new(const struct pinfold_sandbox_options *options,
                                    struct pinfold_sandbox **ret_sandbox,
                                    struct pinfold_error *err);

/**
 * Free a sandbox; a started one is stopped first, without sync.
 *
 * sandbox  owned, NULL is fine
 *
 * Threads: one, the last.
 */
PINFOLD_API void pinfold_sandbox_free(struct pinfold_sandbox *sandbox);

/**
 * Sandbox.start: create the backend, claim the workspace, seed it. Idempotent: a started sandbox
 * answers with its first seed result. Concurrent callers share one start; when one is cancelled
 * the others still start it. When it fails the backend is closed, the claim released, and it can be
 * tried again.
 *
 * sandbox  borrowed
 * ret      receives a copy of the seed result; the caller owns it; zeroed without seed_from; may
 *          be NULL. Also filled on -PINFOLD_EPREPARE from seeding errors.
 * cancel   borrowed, may be NULL
 * err      borrowed, may be NULL
 *
 * Returns 0, -PINFOLD_ESTART (workspace claimed, or its storage in use), -PINFOLD_EPREPARE (seed
 * missing, not a directory, nested with the workspace, or some path failed), -PINFOLD_ECANCELLED,
 * -PINFOLD_ENOMEM, or what the backend's create returned.
 * Threads: any.
 */
PINFOLD_API int pinfold_sandbox_start(struct pinfold_sandbox *sandbox,
                                      struct pinfold_seed_result *ret,
                                      struct pinfold_cancel *cancel, struct pinfold_error *err);

/**
 * Sandbox.stop: detach all agents, kill running commands, flush if sync is set and a destination
 * is known, close the backend, release the claim. Everything is torn down whatever fails. A
 * sandbox that is not started is a no-op.
 *
 * sandbox  borrowed
 * sync     whether to flush before closing
 * ret      receives the result of the flush; the caller owns it; zeroed when there was none; may
 *          be NULL
 * cancel   borrowed, may be NULL; stops the flush, never the teardown
 * err      borrowed, may be NULL
 *
 * Returns 0, -PINFOLD_EPREPARE (the flush reported errors), -PINFOLD_ECANCELLED, or what the
 * backend's close returned.
 * Threads: any.
 */
PINFOLD_API int pinfold_sandbox_stop(struct pinfold_sandbox *sandbox, bool sync,
                                     struct pinfold_sync_result *ret, struct pinfold_cancel *cancel,
                                     struct pinfold_error *err);

/**
 * Kill what runs in the workspace, what earlier commands left in the background included, and
 * refuse new commands until the sandbox is stopped and started again. Files can be read, compared
 * and flushed as before, and no command changes them any more: what was looked at is what comes
 * home. Who else uses this workspace is stopped as well. On remote backends nothing outlives its
 * command anyway.
 *
 * sandbox  borrowed, started
 * err      borrowed, may be NULL
 *
 * Returns 0 when all of it has ended, -PINFOLD_ESTART, -PINFOLD_EDENIED (a view) or
 * -PINFOLD_ENOMEM.
 * Threads: any.
 */
PINFOLD_API int pinfold_sandbox_stop_commands(struct pinfold_sandbox *sandbox,
                                              struct pinfold_error *err);

/**
 * Sandbox.is_started.
 *
 * sandbox  borrowed
 *
 * Returns true after a successful start until stop, or until the manager expired it.
 * Threads: any.
 */
PINFOLD_API bool pinfold_sandbox_is_started(struct pinfold_sandbox *sandbox);

/**
 * Sandbox.owner_id: the token of the current start cycle.
 *
 * sandbox  borrowed
 * ret_id   receives the token, or NULL when not started; the caller owns it, free()
 * err      borrowed, may be NULL
 *
 * Returns 0 or -PINFOLD_ENOMEM.
 * Threads: any.
 */
PINFOLD_API int pinfold_sandbox_owner_id(struct pinfold_sandbox *sandbox, char **ret_id,
                                         struct pinfold_error *err);

/**
 * Sandbox.ref: a handle stub; allowed before start.
 *
 * sandbox  borrowed
 * ret_ref  receives the stub; the caller owns it, pinfold_sandbox_ref_done()
 * err      borrowed, may be NULL
 *
 * Returns 0 or -PINFOLD_ENOMEM.
 * Threads: any.
 */
PINFOLD_API int pinfold_sandbox_ref(struct pinfold_sandbox *sandbox,
                                    struct pinfold_sandbox_ref *ret_ref, struct pinfold_error *err);

/**
 * Sandbox.add_files: put files into the workspace. All are tried; those that could be written
 * stay even when others failed.
 *
 * sandbox    borrowed
 * files      borrowed, count of them; paths as an agent or a person writes them
 * overwrite  false: leave files that exist alone
 * ret_paths  receives the paths written, in the order given; the caller owns them; may be NULL;
 *            also filled on -PINFOLD_EOS
 * cancel     borrowed, may be NULL
 * err        borrowed, may be NULL; names the first file that failed and how many did
 *
 * Returns 0, -PINFOLD_EPATH, -PINFOLD_EOS, -PINFOLD_ESTART, -PINFOLD_ECANCELLED, -PINFOLD_ENOMEM.
 * Threads: any.
 */
PINFOLD_API int pinfold_sandbox_add_files(struct pinfold_sandbox *sandbox,
                                          const struct pinfold_upload *files, size_t count,
                                          bool overwrite, struct pinfold_strings *ret_paths,
                                          struct pinfold_cancel *cancel, struct pinfold_error *err);

/**
 * Sandbox.download_files: fetch files to host paths, or into memory where host_path is NULL. All
 * are tried.
 *
 * sandbox      borrowed
 * files        borrowed, count of them
 * overwrite    false: leave host files that exist alone
 * ret_results  receives one result per file, in order; the caller owns them; may be NULL; also
 *              filled on -PINFOLD_EOS
 * cancel       borrowed, may be NULL
 * err          borrowed, may be NULL
 *
 * Returns 0, -PINFOLD_EPATH, -PINFOLD_EOS (a file could not be read or written),
 * -PINFOLD_ESTART, -PINFOLD_ECANCELLED or -PINFOLD_ENOMEM.
 * Threads: any.
 */
PINFOLD_API int pinfold_sandbox_download_files(struct pinfold_sandbox *sandbox,
                                               const struct pinfold_download *files, size_t count,
                                               bool overwrite,
                                               struct pinfold_transfer_results *ret_results,
                                               struct pinfold_cancel *cancel,
                                               struct pinfold_error *err);

/**
 * Sandbox.delete_files: delete files. A symbolic link is deleted, not followed. All are tried.
 *
 * sandbox  borrowed
 * paths    borrowed, NULL-terminated
 * cancel   borrowed, may be NULL
 * err      borrowed, may be NULL; sys_errno ENOENT (missing) or EISDIR (a directory)
 *
 * Returns 0, -PINFOLD_EPATH, -PINFOLD_EOS, -PINFOLD_ESTART, -PINFOLD_ECANCELLED, -PINFOLD_ENOMEM.
 * Threads: any.
 */
PINFOLD_API int pinfold_sandbox_delete_files(struct pinfold_sandbox *sandbox,
                                             const char *const *paths,
                                             struct pinfold_cancel *cancel,
                                             struct pinfold_error *err);

/**
 * Sandbox.move_file: move or rename one file. An existing file at dest is replaced, its parents
 * are created, the mode is kept. Moving a file onto itself does nothing. On failure src is still
 * there.
 *
 * sandbox  borrowed
 * src      borrowed
 * dest     borrowed
 * cancel   borrowed, may be NULL
 * err      borrowed, may be NULL
 *
 * Returns 0, -PINFOLD_EPATH, -PINFOLD_EOS (EISDIR for a directory on either side),
 * -PINFOLD_ESTART, -PINFOLD_ECANCELLED or -PINFOLD_ENOMEM.
 * Threads: any.
 */
PINFOLD_API int pinfold_sandbox_move_file(struct pinfold_sandbox *sandbox, const char *src,
                                          const char *dest, struct pinfold_cancel *cancel,
                                          struct pinfold_error *err);

/**
 * Sandbox.read_file: a whole file as text, exactly as stored, of at most PINFOLD_READ_MAX_BYTES.
 *
 * sandbox   borrowed
 * path      borrowed
 * ret_text  receives the text; the caller owns it, pinfold_bytes_done()
 * cancel    borrowed, may be NULL
 * err       borrowed, may be NULL
 *
 * Returns 0, -PINFOLD_EPATH, -PINFOLD_EOS (EFBIG: too large), -PINFOLD_EENCODING (not UTF-8: use
 * pinfold_sandbox_download_files()), -PINFOLD_ESTART, -PINFOLD_ECANCELLED or -PINFOLD_ENOMEM.
 * Threads: any.
 */
PINFOLD_API int pinfold_sandbox_read_file(struct pinfold_sandbox *sandbox, const char *path,
                                          struct pinfold_bytes *ret_text,
                                          struct pinfold_cancel *cancel, struct pinfold_error *err);

/* The largest file that pinfold_sandbox_try_read_file() reads. */
#define PINFOLD_TRY_READ_MAX_BYTES ((size_t)64 * 1024)

/**
 * pinfold_sandbox_read_file() for threads that must not wait, of event loops say: the file is
 * small, on a disk of this machine, and the kernel has it in memory. It takes some microseconds,
 * and as long as another thread takes to change a table.
 *
 * sandbox   borrowed
 * path      borrowed
 * ret_text  receives the text; the caller owns it, pinfold_bytes_done()
 *
 * Returns 1, or 0 when that was not possible, for whatever reason: pinfold_sandbox_read_file() has
 * the text, or knows why not.
 * Threads: any.
 */
PINFOLD_API int pinfold_sandbox_try_read_file(struct pinfold_sandbox *sandbox, const char *path,
                                              struct pinfold_bytes *ret_text);

/**
 * Some lines of a text file. Lines end at '\n' only and keep it.
 *
 * sandbox    borrowed
 * path       borrowed
 * offset     lines to skip; negative counts as 0
 * limit      lines to return; 0 or less: none
 * ret_text   receives the lines; the caller owns it
 * ret_lines  receives how many lines the file has; may be NULL
 * cancel     borrowed, may be NULL
 * err        borrowed, may be NULL
 *
 * Returns as pinfold_sandbox_read_file().
 * Threads: any.
 */
PINFOLD_API int pinfold_sandbox_read_lines(struct pinfold_sandbox *sandbox, const char *path,
                                           int64_t offset, int64_t limit,
                                           struct pinfold_bytes *ret_text, uint64_t *ret_lines,
                                           struct pinfold_cancel *cancel,
                                           struct pinfold_error *err);

/**
 * How much of such lines fits a result of max bytes: whole lines, or of the first one, when it
 * alone is longer, a part that ends with a whole character. At least one character does.
 *
 * text       borrowed, valid UTF-8
 * max        bytes
 * ret_lines  receives how many lines that is, a part of one included; may be NULL
 *
 * Returns the number of bytes.
 * Threads: any.
 */
PINFOLD_API size_t pinfold_fit_lines(const struct pinfold_bytes *text, size_t max,
                                     uint64_t *ret_lines);

/**
 * Write one file: parents are created, the file is replaced atomically and keeps its mode.
 *
 * sandbox  borrowed
 * path     borrowed
 * data     borrowed, len bytes
 * cancel   borrowed, may be NULL
 * err      borrowed, may be NULL
 *
 * Returns 0, -PINFOLD_EPATH, -PINFOLD_EOS, -PINFOLD_ESTART, -PINFOLD_ECANCELLED, -PINFOLD_ENOMEM.
 * Threads: any.
 */
PINFOLD_API int pinfold_sandbox_write_file(struct pinfold_sandbox *sandbox, const char *path,
                                           const void *data, size_t len,
                                           struct pinfold_cancel *cancel,
                                           struct pinfold_error *err);

/**
 * List one directory: one level, hidden names included, sorted bytewise.
 *
 * sandbox    borrowed
 * path       borrowed; "." or "" is the root
 * ret_infos  receives the entries; the caller owns them, pinfold_file_infos_done()
 * cancel     borrowed, may be NULL
 * err        borrowed, may be NULL
 *
 * Returns 0, -PINFOLD_EPATH, -PINFOLD_EOS (ENOENT, ENOTDIR, ...), -PINFOLD_ESTART,
 * -PINFOLD_ECANCELLED or -PINFOLD_ENOMEM.
 * Threads: any.
 */
PINFOLD_API int pinfold_sandbox_list_dir(struct pinfold_sandbox *sandbox, const char *path,
                                         struct pinfold_file_infos *ret_infos,
                                         struct pinfold_cancel *cancel, struct pinfold_error *err);

/**
 * Run a command in the workspace. The command's own failure is a result, not an error.
 *
 * sandbox     borrowed
 * options     borrowed
 * ret_result  receives the result; the caller owns it, pinfold_execute_result_done(); also filled
 *             with the partial output on -PINFOLD_ECANCELLED
 * cancel      borrowed, may be NULL; kills the command and all it started before the call returns
 * err         borrowed, may be NULL
 *
 * Returns 0, -PINFOLD_EVALUE (timeout or env), -PINFOLD_EPATH or -PINFOLD_EOS (cwd),
 * -PINFOLD_ENOTSUP (the backend cannot run commands), -PINFOLD_ESTART, -PINFOLD_ECANCELLED,
 * -PINFOLD_EBACKEND or -PINFOLD_ENOMEM.
 * Threads: any.
 */
PINFOLD_API int pinfold_sandbox_execute(struct pinfold_sandbox *sandbox,
                                        const struct pinfold_execute_options *options,
                                        struct pinfold_execute_result *ret_result,
                                        struct pinfold_cancel *cancel, struct pinfold_error *err);

/**
 * Run a command in the workspace on a terminal of its own; without one, an interactive shell: in
 * an isolated sandbox /bin/bash or else /bin/sh, on the local backend $SHELL. Returns when it has
 * been started.
 *
 * While the terminal is open the sandbox counts as in use, so that it does not expire. Stopping the
 * sandbox kills the command; the terminal is still to be closed, before the sandbox is freed.
 *
 * sandbox       borrowed
 * options       borrowed; NULL for defaults
 * ret_terminal  receives the terminal; the caller owns it, pinfold_terminal_close()
 * cancel        borrowed, may be NULL; stops the opening, and not the terminal afterwards
 * err           borrowed, may be NULL
 *
 * Returns 0, -PINFOLD_EVALUE (both command and argv, an empty command, timeout or env),
 * -PINFOLD_EPATH or -PINFOLD_EOS (cwd; no terminal left), -PINFOLD_ENOTSUP (the backend has no
 * terminals), -PINFOLD_ESTART, -PINFOLD_ECANCELLED, -PINFOLD_EBACKEND or -PINFOLD_ENOMEM.
 * Threads: any.
 */
PINFOLD_API int pinfold_sandbox_open_terminal(struct pinfold_sandbox *sandbox,
                                              const struct pinfold_terminal_options *options,
                                              struct pinfold_terminal **ret_terminal,
                                              struct pinfold_cancel *cancel,
                                              struct pinfold_error *err);

/**
 * Sandbox.flush: write the workspace's artifacts to the host, as the sync policy says. Never
 * deletes; identical files are left alone.
 *
 * sandbox     borrowed
 * dest        borrowed; NULL: sync_dest, else seed_from
 * ret_result  receives the result; the caller owns it, pinfold_sync_result_done(); may be NULL
 * cancel      borrowed, may be NULL
 * err         borrowed, may be NULL
 *
 * Returns 1 (synced: see ret_result->errors), 0 (no destination is configured: nothing done),
 * -PINFOLD_ESTART, -PINFOLD_EPREPARE (the destination is unusable, or nested with the
 * workspace), -PINFOLD_ECANCELLED or -PINFOLD_ENOMEM.
 * Threads: any.
 */
PINFOLD_API int pinfold_sandbox_flush(struct pinfold_sandbox *sandbox, const char *dest,
                                      struct pinfold_sync_result *ret_result,
                                      struct pinfold_cancel *cancel, struct pinfold_error *err);

/**
 * As pinfold_sandbox_flush(), but leave some paths at the destination as they are: what somebody
 * has changed there meanwhile, for example (<pinfold/changes.h> tells).
 *
 * sandbox     borrowed
 * dest        as there
 * except      borrowed, NULL-terminated; paths as changes have them, relative to the workspace
 *             root, and no patterns; each stands for all below it, too. NULL: none
 * ret_result  as there
 * cancel      borrowed, may be NULL
 * err         borrowed, may be NULL
 *
 * Returns as pinfold_sandbox_flush(), or -PINFOLD_EVALUE (an empty path).
 * Threads: any.
 */
PINFOLD_API int pinfold_sandbox_flush_except(struct pinfold_sandbox *sandbox, const char *dest,
                                             const char *const *except,
                                             struct pinfold_sync_result *ret_result,
                                             struct pinfold_cancel *cancel,
                                             struct pinfold_error *err);

/**
 * sync_workspace_for_sandbox: another name of pinfold_sandbox_flush().
 *
 * sandbox, dest, ret_result, cancel, err  as there
 *
 * Returns as there.
 * Threads: any.
 */
PINFOLD_API int pinfold_sync_workspace_for_sandbox(struct pinfold_sandbox *sandbox,
                                                   const char *dest,
                                                   struct pinfold_sync_result *ret_result,
                                                   struct pinfold_cancel *cancel,
                                                   struct pinfold_error *err);

/**
 * Dry run of seeding: what start would copy or skip, and why. Works before start (then as if the
 * workspace were empty) and changes nothing.
 *
 * sandbox   borrowed
 * ret_plan  receives the plan; the caller owns it, pinfold_plan_done()
 * cancel    borrowed, may be NULL
 * err       borrowed, may be NULL
 *
 * Returns 1 (planned), 0 (no seed_from), -PINFOLD_EPREPARE, -PINFOLD_ECANCELLED, -PINFOLD_ENOMEM.
 * Threads: any.
 */
PINFOLD_API int pinfold_sandbox_plan_seed(struct pinfold_sandbox *sandbox,
                                          struct pinfold_plan *ret_plan,
                                          struct pinfold_cancel *cancel, struct pinfold_error *err);

/**
 * Dry run of flush: what it would write, leave alone or skip, and why. Changes nothing.
 *
 * sandbox   borrowed, started
 * dest      as in pinfold_sandbox_flush()
 * ret_plan  receives the plan; the caller owns it, pinfold_plan_done()
 * cancel    borrowed, may be NULL
 * err       borrowed, may be NULL
 *
 * Returns as pinfold_sandbox_flush().
 * Threads: any.
 */
PINFOLD_API int pinfold_sandbox_plan_flush(struct pinfold_sandbox *sandbox, const char *dest,
                                           struct pinfold_plan *ret_plan,
                                           struct pinfold_cancel *cancel,
                                           struct pinfold_error *err);

/**
 * A read-only view of a started sandbox: a second handle on the same workspace, for whoever may
 * look at everything and change nothing, a reviewer say. Its commands run in a jail of their own,
 * in which the workspace is mounted read-only, there is no network whatever the sandbox has, and
 * /tmp, the home directory, the processes and the limits are the view's own. What the sandbox
 * changes in the workspace is seen at once. Directories shown with rw are read-only too.
 *
 * A view is used through the functions above:
 *   execute, read_file, read_lines, list_dir, download_files  as there
 *   is_started, owner_id, ref, view, free                     as there
 *   all others (start, stop, add_files, write_file, delete_files, move_file, flush, plan_flush,
 *   attach)  fail with -PINFOLD_EDENIED, do nothing, and are audited as refused
 * In its jail the kernel answers EROFS to whatever would change the workspace. Sockets of family
 * AF_UNIX cannot be made there but as connected pairs: over one that it meets in the workspace, a
 * helper of the writer's could hand in a descriptor open for writing.
 *
 * It costs next to nothing before its first command, which starts the jail. Its operations count as
 * use of the sandbox. It ends with the sandbox's stop or expiry, which kill its commands; after
 * that, and after another start, its operations fail with -PINFOLD_ESTART. A sandbox may have any
 * number of views.
 *
 * sandbox   borrowed, started; need not outlive the view
 * name      copied; stands in audit events as their view; NULL: "view-" and eight random hex digits
 * ret_view  receives the view; the caller owns it, pinfold_sandbox_free(), which kills its commands
 * err       borrowed, may be NULL
 *
 * Returns 0, -PINFOLD_ENOTSUP (the backend has no views: of ours the isolated one alone has),
 * -PINFOLD_EVALUE (an empty name), -PINFOLD_ESTART or -PINFOLD_ENOMEM. What the kernel refuses to a
 * jail is an error of the first command. Threads: any.
 */
PINFOLD_API int pinfold_sandbox_view(struct pinfold_sandbox *sandbox, const char *name,
                                     struct pinfold_sandbox **ret_view, struct pinfold_error *err);

/**
 * Sandbox.attach: bind an agent to this sandbox. Attaching again in the same mode does nothing.
 * When wiring fails nothing of the attach remains.
 *
 * sandbox  borrowed
 * request  borrowed, copied
 * err      borrowed, may be NULL
 *
 * Returns 0, -PINFOLD_EATTACH (not started, attached elsewhere or in another mode, wiring failed)
 * or -PINFOLD_ENOMEM.
 * Threads: any.
 */
PINFOLD_API int pinfold_sandbox_attach(struct pinfold_sandbox *sandbox,
                                       const struct pinfold_attach_request *request,
                                       struct pinfold_error *err);

/**
 * Sandbox.detach: undo an attach. An agent that is not attached here is a no-op.
 *
 * sandbox  borrowed
 * agent    the identity given to attach
 *
 * Threads: any.
 */
PINFOLD_API void pinfold_sandbox_detach(struct pinfold_sandbox *sandbox, void *agent);

PINFOLD_END_DECLS

#endif
