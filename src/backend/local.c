/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LocalSandboxBackend: a host directory as workspace, commands as processes of this user. There is
 * no isolation. What file operations may reach is still bounded by the root directory.
 */
#include <fcntl.h>
#include <stdlib.h>

#include "backend/directory.h"
#include "backend/pty.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/log.h"
#include "base/strings.h"
#include "proc/env.h"
#include "proc/keeper.h"
#include "tree/beneath.h"
#include "tree/place.h"
#include "tree/temp_sweep.h"

struct local {
    struct pf_directory dir; /* first: the operations of directory.h take it for the state */
    bool inherit_env;
    bool process_ends;
};

static int local_create(void *state, struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    (void)cancel;
    return pf_directory_open(state, err);
}

static int local_close(void *state, struct pinfold_error *err)
{
    const struct local *local = state;

    pf_directory_stop_commands(state, err);
    if (local->process_ends)
        pf_keeper_let_go();
    if (local->dir.launcher && pf_launcher_has_left_one(local->dir.launcher))
        pf_temp_sweep_follows();
    pf_directory_close(state);
    return 0;
}

static const char *local_workspace_root(void *state)
{
    return ((struct local *)state)->dir.real_root;
}

static void local_free(void *state)
{
    struct local *local = state;

    pf_directory_done(&local->dir);
    free(local);
}

/* ---- commands ---- */

static int get_launcher(struct local *local, struct pf_launcher **ret, struct pinfold_error *err)
{
    struct pf_directory *dir = &local->dir;
    int r = 0;

    pthread_mutex_lock(&dir->lock);
    if (dir->stopped)
        r = pf_fail(err, PINFOLD_ESTART, "workspace %s is stopping",
                    PF_QUOTE(dir->configured_root));
    else if (!dir->launcher)
        r = pf_launcher_new(&dir->launcher, err);
    if (r == 0 && local->process_ends)
        pf_launcher_let_stay(dir->launcher, pf_temp_sweep_beside, dir->real_root);
    *ret = dir->launcher;
    pthread_mutex_unlock(&dir->lock);
    return r;
}

/* What is inherited, then where it runs, then what was asked for: later ones win. The environment
 * is read at each command, not when the backend is made. term: what a terminal is when nobody says,
 * and what was asked for with it, over what the backend has; both may be NULL. */
static char **command_env(const struct local *local, const char *cwd,
                          const char *const term[static 2], const char *const *extra)
{
    _cleanup_free_ char *pwd = pf_directory_pwd(local->dir.real_root, cwd);

    if (!pwd)
        return NULL;
    return pf_env_merge(
            (const char *const *const[]){
                    local->inherit_env ? (const char *const *)environ : NULL,
                    (const char *const[]){ pwd, term[0], NULL },
                    (const char *const *)local->dir.env,
                    (const char *const[]){ term[1], NULL },
                    extra,
            },
            5);
}

/* All that starting a command takes. */
struct job {
    struct pf_launcher *launcher;
    struct pf_run_request request;
    char **env;
    int cwd_fd;
};

static void job_done(struct job *job)
{
    pf_strv_free(job->env);
    if (job->cwd_fd >= 0)
        close(job->cwd_fd);
}

/* term: as in command_env(). */
static int prepare(struct local *local, const struct pinfold_execute_options *options,
                   const char *const term[static 2], struct job *job, struct pinfold_cancel *cancel,
                   struct pinfold_error *err)
{
    PF_CLEANUP(pf_local_root_putp) struct pf_local_root *root = NULL;
    const char *cwd = options->cwd ? options->cwd : ".";
    int r = pf_env_check(options->env, err);

    if (r == 0)
        r = pf_directory_get_root(&local->dir, &root, cancel, err);
    if (r == 0)
        r = get_launcher(local, &job->launcher, err);
    if (r < 0)
        return r;
    job->cwd_fd = pf_beneath_open(root->fd, cwd, O_PATH | O_DIRECTORY, 0);
    if (job->cwd_fd < 0)
        return pf_fail_at(err, -job->cwd_fd, "enter directory", cwd);
    job->env = command_env(local, cwd, term, options->env);
    if (!job->env)
        return pf_fail_nomem(err);
    r = pf_directory_request(&local->dir, options, (const char *const *)job->env, cancel,
                             &job->request, err);
    job->request.cwd_fd = job->cwd_fd;
    return r;
}

static int local_execute(void *state, const struct pinfold_execute_options *options,
                         struct pinfold_execute_result *ret_result, struct pinfold_cancel *cancel,
                         struct pinfold_error *err)
{
    static const char *const no_term[2] = { NULL, NULL };
    PF_CLEANUP(job_done) struct job job = { .cwd_fd = -1 };
    int r = prepare(state, options, no_term, &job, cancel, err);

    return r < 0 ? r : pf_run(job.launcher, &job.request, ret_result, err);
}

static int local_open_terminal(void *state, const struct pinfold_terminal_options *options,
                               struct pinfold_terminal **ret_terminal,
                               struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    static const char shell[] = "exec \"${SHELL:-/bin/sh}\" -i";
    PF_CLEANUP(job_done) struct job job = { .cwd_fd = -1 };
    _cleanup_free_ char *term = pf_pty_term(options);
    const char *terms[2] = { NULL, NULL };
    struct pinfold_execute_options what;
    int r = pf_pty_options(options, shell, &what, err);

    terms[options->term != NULL] = term;

    if (r == 0 && !term)
        r = pf_fail_nomem(err);
    if (r == 0)
        r = prepare(state, &what, terms, &job, cancel, err);
    return r < 0 ? r
                 : pf_pty_open(job.launcher, &job.request, options, NULL, NULL, ret_terminal, err);
}

static const struct pinfold_backend_ops local_ops = {
    .size = sizeof(struct pinfold_backend_ops),
    .type_name = "LocalSandboxBackend",
    .create = local_create,
    .close = local_close,
    .stop_commands = pf_directory_stop_commands,
    .read_file = pf_directory_read_file,
    .try_read_file = pf_directory_try_read_file,
    .write_file = pf_directory_write_file,
    .list_dir = pf_directory_list_dir,
    .remove_file = pf_directory_remove_file,
    .move_file = pf_directory_move_file,
    .seed_workspace = pf_directory_seed_workspace,
    .sync_artifacts = pf_directory_sync_artifacts,
    .upload_files = pf_directory_upload_files,
    .download_files = pf_directory_download_files,
    .execute = local_execute,
    .open_terminal = local_open_terminal,
    .workspace_root = local_workspace_root,
    .storage_key = pf_directory_storage_key,
    .open_root = pf_directory_open_root,
    .replace_file = pf_directory_replace_file,
    .remove_dir = pf_directory_remove_dir,
    .move_path = pf_directory_move_path,
    .free = local_free,
};

static int check_options(const struct pinfold_local_options *options, struct pinfold_error *err)
{
    if (options->size != sizeof(*options))
        return pf_fail(err, PINFOLD_EVALUE, "LocalSandboxBackend: options of %zu bytes, not %zu",
                       options->size, sizeof(*options));
    if (!options->workspace_root || !*options->workspace_root)
        return pf_fail(err, PINFOLD_EVALUE, "LocalSandboxBackend: workspace_root is required");
    return pf_directory_check("LocalSandboxBackend", options->timeout_seconds, options->env, err);
}

static void local_freep(struct local **local)
{
    if (*local)
        local_free(*local);
}

int pinfold_local_backend_new(const struct pinfold_local_options *options,
                              struct pinfold_backend **ret_backend, struct pinfold_error *err)
{
    PF_CLEANUP(local_freep) struct local *local = NULL;
    int r = check_options(options, err);

    if (r < 0)
        return r;
    local = calloc(1, sizeof(*local));
    if (!local)
        return pf_fail_nomem(err);
    local->inherit_env = !options->no_inherit_env;
    local->process_ends = options->process_ends;
    r = pf_directory_init(&local->dir, options->workspace_root, options->timeout_seconds,
                          options->max_output_bytes, options->env, err);
    if (r == 0)
        r = pinfold_backend_new(&local_ops, local, NULL, ret_backend, err);
    if (r < 0)
        return r;
    pf_log(PINFOLD_LOG_WARNING,
           "LocalSandboxBackend does not isolate: commands run on this host as this user, in %s",
           PF_QUOTE(local->dir.configured_root));
    (void)TAKE(local);
    return 0;
}
