/* SPDX-License-Identifier: Apache-2.0 */
/*
 * IsolatedSandboxBackend: the workspace is a host directory, and commands run in a jail that shows
 * it to them as /workspace. The host side of every file operation is that of the local backend.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <pinfold/temp_workspace.h>

#include "backend/directory.h"
#include "backend/isolated_env.h"
#include "backend/layers.h"
#include "backend/pty.h"
#include "backend/quota.h"
#include "backend/verdict.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/log.h"
#include "base/strings.h"
#include "jail/egress.h"
#include "jail/jail.h"
#include "proc/env.h"
#include "tree/beneath.h"
#include "tree/place.h"
#include "tree/usage.h"

struct isolated {
    struct pf_directory dir; /* first: the operations of directory.h take it for the state */
    bool own_root;           /* a temporary one, deleted by close */
    struct pinfold_temp_workspace *temporary;
    bool workspace_read_only;
    char **ro, **rw;
    char *rootfs;
    enum pinfold_net net;
    char **net_allow;
    struct pinfold_limits limits;
    enum pinfold_seed_mode seed_mode;
    struct pf_layers layers; /* of an overlay that is in force */
    pthread_mutex_t opening; /* guards jail, which with an overlay is opened when first needed */
    struct pf_jail *jail;
    struct pf_egress *egress; /* the way out, with PINFOLD_NET_ALLOW */
    struct pf_quota quota;
    struct pf_verdict verdict;
    pinfold_network_fn on_network;
    void *on_network_ctx;
    bool is_view; /* its jail is opened when first needed, too */
};

/* ---- life ---- */

/* On the proxy's thread. */
static void note_egress(void *ctx, const struct pf_egress_event *event)
{
    const struct isolated *isolated = ctx;
    struct pinfold_network_event told = {
        .size = sizeof(told),
        .outcome = event->kind == PF_EGRESS_REFUSED  ? PINFOLD_NETWORK_REFUSED
                   : event->kind == PF_EGRESS_FAILED ? PINFOLD_NETWORK_FAILED
                                                     : PINFOLD_NETWORK_OPENED,
        .protocol = event->protocol,
        .host = event->host,
        .port = event->port,
        .reason = event->reason,
        .count = event->count,
    };

    if (event->kind == PF_EGRESS_CLOSED)
        return;
    if (told.outcome != PINFOLD_NETWORK_OPENED)
        pf_log(PINFOLD_LOG_INFO, "network: %s:%u %s %llu time(s): %s", PF_QUOTE(event->host),
               (unsigned)event->port,
               told.outcome == PINFOLD_NETWORK_REFUSED ? "refused" : "not reached",
               (unsigned long long)event->count, event->reason);
    if (isolated->on_network)
        isolated->on_network(isolated->on_network_ctx, &told);
}

static void isolated_watch_network(void *state, pinfold_network_fn fn, void *ctx)
{
    struct isolated *isolated = state;

    isolated->on_network = fn;
    isolated->on_network_ctx = ctx;
}

static int open_egress(struct isolated *isolated, struct pinfold_error *err)
{
    struct pf_egress_rules *rules = NULL;
    int socket, r;

    if (isolated->net != PINFOLD_NET_ALLOW)
        return 0;
    r = pf_egress_rules_new((const char *const *)isolated->net_allow, &rules, err);
    if (r < 0)
        return r;
    socket = pf_jail_take_proxy_socket(isolated->jail);
    r = pf_egress_start(socket, rules, note_egress, isolated, &isolated->egress, err);
    if (r < 0) {
        pf_egress_rules_free(rules);
        if (socket >= 0)
            close(socket);
    }
    return r;
}

static int make_root(struct isolated *isolated, struct pinfold_error *err)
{
    int r = pinfold_temp_workspace_new(&isolated->temporary, err);

    if (r < 0)
        return r;
    isolated->dir.configured_root = strdup(pinfold_temp_workspace_path(isolated->temporary));
    return isolated->dir.configured_root ? 0 : pf_fail_nomem(err);
}

/* The jail's part in execution. Commands may be refused already. */
static int start_launcher(struct isolated *isolated, struct pinfold_error *err)
{
    struct pf_directory *dir = &isolated->dir;
    struct pf_launcher *launcher = NULL;
    bool stopped;
    int r = pf_launcher_new_in_jail(pf_jail_socket(isolated->jail),
                                    pf_jail_resident(isolated->jail), &launcher, err);

    if (r < 0)
        return r;
    pf_verdict_init(&isolated->verdict, isolated->jail, &isolated->limits);
    pf_quota_hold(&isolated->quota, isolated->verdict.holders);
    isolated->quota.launcher = launcher;
    pthread_mutex_lock(&dir->lock);
    dir->launcher = launcher;
    stopped = dir->stopped;
    pthread_mutex_unlock(&dir->lock);
    if (stopped)
        pf_launcher_stop(launcher);
    return 0;
}

/* Open the jail with the workspace's directory at its place, or an overlay of its layers on seed.
 * Returns PF_JAIL_NO_OVERLAY as pf_jail_open() does. */
static int open_jail(struct isolated *isolated, const char *seed, struct pinfold_error *err)
{
    int r = pf_jail_open(
            &(struct pf_jail_config){
                    .workspace_fd = seed ? isolated->layers.host_fd : isolated->dir.root->fd,
                    .seed = seed,
                    .seed_fd = isolated->layers.seed_fd,
                    .workspace_read_only = isolated->workspace_read_only,
                    .ro = (const char *const *)isolated->ro,
                    .rw = (const char *const *)isolated->rw,
                    .rootfs = isolated->rootfs,
                    .net = isolated->net,
                    .limits = isolated->limits,
            },
            &isolated->jail, err);

    if (r == 0)
        r = open_egress(isolated, err);
    if (r == 0)
        r = start_launcher(isolated, err);
    return r;
}

/* Commands before a seed or without one, and those of a view. When it fails the next command tries
 * again. */
static int need_jail(struct isolated *isolated, struct pinfold_error *err)
{
    int r = 0;

    if (isolated->seed_mode != PINFOLD_SEED_OVERLAY && !isolated->is_view)
        return 0; /* create has opened it */
    pthread_mutex_lock(&isolated->opening);
    if (!isolated->jail)
        r = open_jail(isolated, NULL, err);
    if (r < 0) {
        pf_egress_stop(TAKE(isolated->egress));
        pf_jail_close(TAKE(isolated->jail));
    }
    pthread_mutex_unlock(&isolated->opening);
    return r;
}

static int isolated_close(void *state, struct pinfold_error *err)
{
    struct isolated *isolated = state;

    pf_quota_done(&isolated->quota);
    pf_directory_close(&isolated->dir);
    pf_egress_stop(TAKE(isolated->egress));
    pf_jail_close(TAKE(isolated->jail));
    pf_layers_done(&isolated->layers, false);
    if (!isolated->own_root)
        return 0;
    free(TAKE(isolated->dir.configured_root));
    free(TAKE(isolated->dir.real_root));
    return pinfold_temp_workspace_free(TAKE(isolated->temporary), err);
}

/* The rights of root end at the walls: inside, its commands are an ordinary user. */
static void warn_of_owner(const struct pf_directory *dir)
{
    struct stat st;

    if (geteuid() == 0 && fstat(dir->root->fd, &st) == 0 && st.st_uid != 0 &&
        !(st.st_mode & S_IWOTH))
        pf_log(PINFOLD_LOG_WARNING,
               "workspace %s belongs to user %u, and commands cannot write to it; run as that user",
               PF_QUOTE(dir->real_root), (unsigned)st.st_uid);
}

static int isolated_create(void *state, struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    struct isolated *isolated = state;
    int r = 0;

    (void)cancel;
    if (isolated->own_root)
        r = make_root(isolated, err);
    if (r == 0)
        r = pf_directory_open(&isolated->dir, err);
    if (r == 0)
        warn_of_owner(&isolated->dir);
    if (r == 0)
        r = pf_quota_init(&isolated->quota, isolated->dir.root->fd,
                          isolated->limits.workspace_bytes, err);
    if (r == 0 && isolated->seed_mode == PINFOLD_SEED_COPY)
        r = open_jail(isolated, NULL, err);
    if (r < 0)
        isolated_close(state, NULL);
    return r;
}

static const char *isolated_workspace_root(void *state)
{
    (void)state;
    return PF_JAIL_WORKSPACE;
}

static void isolated_free(void *state)
{
    struct isolated *isolated = state;

    pf_quota_done(&isolated->quota);
    pf_egress_stop(isolated->egress);
    pf_jail_close(isolated->jail);
    pf_layers_done(&isolated->layers, false);
    pthread_mutex_destroy(&isolated->opening);
    pf_directory_done(&isolated->dir);
    pf_strv_free(isolated->ro);
    pf_strv_free(isolated->rw);
    pf_strv_free(isolated->net_allow);
    free(isolated->rootfs);
    free(isolated);
}

/* ---- overlay seeding ---- */

/* From here on the workspace is what the jail shows, to the host's side too. */
static int enter_overlay(struct isolated *isolated, struct pinfold_error *err)
{
    struct pf_directory *dir = &isolated->dir;
    _cleanup_close_ int fd = pf_jail_take_root(isolated->jail);
    struct pf_local_root *root = fd < 0 ? NULL : pf_local_root_new(fd);

    if (fd < 0)
        return pf_fail(err, PINFOLD_EBACKEND, "start a sandbox: it gives no way into its overlay");
    if (!root)
        return pf_fail_nomem(err);
    (void)TAKE_FD(fd);
    pthread_mutex_lock(&dir->lock);
    pf_local_root_put(dir->root);
    dir->root = root;
    pthread_mutex_unlock(&dir->lock);
    return 0;
}

static const char used_already[] = "commands have run in the sandbox, or it was seeded";

/* The jail of a seed. Not when there is one already: nothing can be mounted in it any more. */
static int seeded_jail(struct isolated *isolated, const char *seed, struct pinfold_error *err)
{
    int r = PF_JAIL_NO_OVERLAY;

    pthread_mutex_lock(&isolated->opening);
    if (isolated->jail)
        pf_fail(err, PINFOLD_ESTART, "%s", used_already);
    else
        r = open_jail(isolated, seed, err);
    pthread_mutex_unlock(&isolated->opening);
    return r;
}

/* Returns PF_JAIL_NO_OVERLAY when a copy has to do, and why says why. */
static int seed_overlay(struct isolated *isolated, const struct pinfold_seed_request *request,
                        struct pinfold_seed_result *ret_result, char *why, size_t size,
                        struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    struct pinfold_error cause = PINFOLD_ERROR_INIT;
    bool used;
    int r;

    pthread_mutex_lock(&isolated->opening);
    used = isolated->jail != NULL;
    pthread_mutex_unlock(&isolated->opening);
    if (used) {
        snprintf(why, size, "%s", used_already);
        return PF_JAIL_NO_OVERLAY;
    }
    r = pf_layers_make(&isolated->layers, isolated->dir.root->fd, request, ret_result, why, size,
                       cancel, err);
    if (r != 0)
        return r;
    r = seeded_jail(isolated, request->source, &cause);
    if (r == 0)
        r = enter_overlay(isolated, &cause);
    if (r == 0 && pf_layers_hide(isolated->dir.root->fd, ret_result)) {
        ret_result->mode = PINFOLD_SEED_OVERLAY;
        return 0;
    }
    if (r == 0)
        return pf_fail(err, PINFOLD_EBACKEND,
                       "start a sandbox: this kernel's overlay shows what is hidden in the seed; "
                       "seed by copying");
    pinfold_seed_result_done(ret_result);
    if (r == PF_JAIL_NO_OVERLAY) {
        pf_layers_done(&isolated->layers, true);
        snprintf(why, size, "%s", cause.msg);
    } else if (err) {
        *err = cause;
    }
    return r;
}

static int seed_by_copy(struct isolated *isolated, const struct pinfold_seed_request *request,
                        const char *why, struct pinfold_seed_result *ret_result,
                        struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    int r = need_jail(isolated, err);

    if (r < 0)
        return r;
    r = pf_directory_seed_workspace(isolated, request, ret_result, cancel, err);
    if (r < 0)
        return r;
    pf_log(PINFOLD_LOG_WARNING, "the seed %s is copied, an overlay cannot be had: %s",
           PF_QUOTE(request->source), why);
    ret_result->fallback = strdup(why);
    return ret_result->fallback ? 0 : pf_fail_nomem(err);
}

static int isolated_seed(void *state, const struct pinfold_seed_request *request,
                         struct pinfold_seed_result *ret_result, struct pinfold_cancel *cancel,
                         struct pinfold_error *err)
{
    struct isolated *isolated = state;
    char why[256] = "";
    int r;

    if (isolated->seed_mode != PINFOLD_SEED_OVERLAY || request->plan)
        return pf_directory_seed_workspace(state, request, ret_result, cancel, err);
    r = seed_overlay(isolated, request, ret_result, why, sizeof(why), cancel, err);
    return r == PF_JAIL_NO_OVERLAY ? seed_by_copy(isolated, request, why, ret_result, cancel, err)
                                   : r;
}

/* Back to the seed only what was changed can differ. To any other place all is compared. */
static int isolated_sync(void *state, const struct pinfold_sync_request *request,
                         struct pinfold_sync_result *ret_result, struct pinfold_cancel *cancel,
                         struct pinfold_error *err)
{
    PF_CLEANUP(pf_local_root_putp) struct pf_local_root *root = NULL;
    struct isolated *isolated = state;
    const struct pf_layers *layers = &isolated->layers;
    struct pf_local_overlay overlay = { layers->host_fd, pf_layers_on(layers, request->dest) };
    int r;

    if (!layers->made)
        return pf_directory_sync_artifacts(state, request, ret_result, cancel, err);
    r = pf_directory_get_root(&isolated->dir, &root, cancel, err);
    return r < 0 ? r
                 : pf_local_sync(overlay.upper ? layers->changes_fd : root->fd, &overlay,
                                 isolated->dir.real_root, request, ret_result, cancel, err);
}

/* ---- commands ---- */

/* A result that says what the limits had to do with it. */
static int run_limited(struct isolated *isolated, struct pf_run_request *request,
                       struct pinfold_execute_result *ret, struct pinfold_error *err)
{
    int r = pf_quota_admit(&isolated->quota, 0, err), noted;
    enum pinfold_limit stopped;
    uint64_t kills;

    if (r < 0)
        return pf_wrap(err, r, "run a command");
    kills = pf_verdict_begin(&isolated->verdict);
    pf_quota_attach(&isolated->quota, request);
    r = pf_run(isolated->dir.launcher, request, ret, err);
    stopped = pf_quota_detach(&isolated->quota, request, ret->background > 0);
    if (r < 0 && r != -PINFOLD_ECANCELLED)
        return r;
    noted = pf_verdict_end(&isolated->verdict, kills, stopped, ret, r < 0 ? NULL : err);
    if (noted < 0 && r == 0)
        pinfold_execute_result_done(ret);
    return r < 0 ? r : noted;
}

/* All that starting a command takes. */
struct job {
    struct pf_run_request request;
    char *pwd;
    char **env;
};

static void job_done(struct job *job)
{
    free(job->pwd);
    pf_strv_free(job->env);
}

/* extra: more of an environment; may be NULL. */
static int prepare(struct isolated *isolated, const struct pinfold_execute_options *options,
                   const char *const *extra, struct job *job, struct pinfold_cancel *cancel,
                   struct pinfold_error *err)
{
    PF_CLEANUP(pf_local_root_putp) struct pf_local_root *root = NULL;
    const char *cwd = options->cwd ? options->cwd : ".";
    _cleanup_close_ int cwd_fd = -1;
    int r = pf_env_check(options->env, err);

    job->pwd = pf_directory_pwd(PF_JAIL_WORKSPACE, cwd);
    if (r == 0)
        r = pf_directory_get_root(&isolated->dir, &root, cancel, err);
    if (r == 0)
        r = need_jail(isolated, err);
    if (r < 0)
        return r;
    /* Only to say what is wrong with it, as for files: what enters the jail is the path. */
    cwd_fd = pf_beneath_open(root->fd, cwd, O_PATH | O_DIRECTORY, 0);
    if (cwd_fd < 0)
        return pf_fail_at(err, -cwd_fd, "enter directory", cwd);
    if (job->pwd)
        job->env = pf_env_merge(
                (const char *const *const[]){
                        base_env,
                        extra,
                        isolated->egress ? proxy_env : NULL,
                        isolated->egress && isolated->rootfs ? rootfs_env : NULL,
                        (const char *const[]){ job->pwd, NULL },
                        (const char *const *)isolated->dir.env,
                        options->env,
                },
                7);
    if (!job->env)
        return pf_fail_nomem(err);
    r = pf_directory_request(&isolated->dir, options, (const char *const *)job->env, cancel,
                             &job->request, err);
    job->request.cwd_path = job->pwd + strlen("PWD=");
    return r;
}

static int isolated_execute(void *state, const struct pinfold_execute_options *options,
                            struct pinfold_execute_result *ret_result,
                            struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    PF_CLEANUP(job_done) struct job job = { 0 };
    struct isolated *isolated = state;
    int r = prepare(isolated, options, NULL, &job, cancel, err);

    return r < 0 ? r : run_limited(isolated, &job.request, ret_result, err);
}

/* What the user of a sandbox would log in to. The prompt means something to bash alone. */
static const char login_shell[] = "[ -x /bin/bash ] && SHELL=/bin/bash exec /bin/bash -i\n"
                                  "unset PS1; exec /bin/sh -i";
static const char prompt[] = "PS1=\\u@\\h:\\w\\$ ";

static int isolated_open_terminal(void *state, const struct pinfold_terminal_options *options,
                                  struct pinfold_terminal **ret_terminal,
                                  struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    PF_CLEANUP(job_done) struct job job = { 0 };
    _cleanup_free_ char *term = pf_pty_term(options);
    struct isolated *isolated = state;
    struct pinfold_execute_options what;
    int r = pf_pty_options(options, login_shell, &what, err);

    if (r == 0 && !term)
        r = pf_fail_nomem(err);
    if (r == 0)
        r = prepare(isolated, &what, (const char *const[]){ term, prompt, NULL }, &job, cancel,
                    err);
    if (r == 0)
        r = pf_quota_admit(&isolated->quota, 0, err);
    if (r < 0)
        return r;
    pf_quota_attach(&isolated->quota, &job.request);
    r = pf_pty_open(isolated->dir.launcher, &job.request, options, ret_terminal, err);
    /* It runs on, and is watched as what a command leaves behind. */
    pf_quota_detach(&isolated->quota, &job.request, r == 0);
    return r;
}

/* ---- what adds to the workspace from outside ---- */

static int isolated_write_file(void *state, const char *path, const void *data, size_t len,
                               bool exclusive, struct pinfold_cancel *cancel,
                               struct pinfold_error *err)
{
    struct isolated *isolated = state;
    int r = pf_quota_admit(&isolated->quota, len + PF_USAGE_PER_ENTRY, err);

    return r < 0 ? pf_wrap(err, r, "write %s", PF_QUOTE(path))
                 : pf_directory_write_file(state, path, data, len, exclusive, cancel, err);
}

static int isolated_upload_files(void *state, const struct pinfold_upload *files, size_t count,
                                 bool overwrite, struct pinfold_transfer_results *ret_results,
                                 struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    struct isolated *isolated = state;
    uint64_t bytes = 0;
    int r;

    for (size_t i = 0; i < count; i++)
        bytes += files[i].len + PF_USAGE_PER_ENTRY;
    r = pf_quota_admit(&isolated->quota, bytes, err);
    return r < 0 ? pf_wrap(err, r, "upload files")
                 : pf_directory_upload_files(state, files, count, overwrite, ret_results, cancel,
                                             err);
}

static int isolated_seed_workspace(void *state, const struct pinfold_seed_request *request,
                                   struct pinfold_seed_result *ret_result,
                                   struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    struct isolated *isolated = state;
    int r = isolated_seed(state, request, ret_result, cancel, err);

    if (r < 0 || request->plan)
        return r;
    r = pf_quota_seeded(&isolated->quota, err);
    if (r < 0)
        pinfold_seed_result_done(ret_result);
    return r < 0 ? pf_wrap(err, r, "seed") : 0;
}

/* ---- what takes away from it ---- */

static int isolated_remove_file(void *state, const char *path, struct pinfold_cancel *cancel,
                                struct pinfold_error *err)
{
    struct isolated *isolated = state;
    int r = pf_directory_remove_file(state, path, cancel, err);

    if (r == 0)
        pf_quota_shrunk(&isolated->quota);
    return r;
}

static int isolated_view(void *state, struct pinfold_backend **ret_view, struct pinfold_error *err);

static const struct pinfold_backend_ops isolated_ops = {
    .size = sizeof(struct pinfold_backend_ops),
    .type_name = "IsolatedSandboxBackend",
    .create = isolated_create,
    .close = isolated_close,
    .stop_commands = pf_directory_stop_commands,
    .read_file = pf_directory_read_file,
    .write_file = isolated_write_file,
    .list_dir = pf_directory_list_dir,
    .remove_file = isolated_remove_file,
    .move_file = pf_directory_move_file,
    .seed_workspace = isolated_seed_workspace,
    .sync_artifacts = isolated_sync,
    .upload_files = isolated_upload_files,
    .download_files = pf_directory_download_files,
    .execute = isolated_execute,
    .open_terminal = isolated_open_terminal,
    .view = isolated_view,
    .workspace_root = isolated_workspace_root,
    .storage_key = pf_directory_storage_key,
    .free = isolated_free,
    .watch_network = isolated_watch_network,
};

/* What of it reads. Its root is open from the start, and is its parent's. */
static const struct pinfold_backend_ops view_ops = {
    .size = sizeof(struct pinfold_backend_ops),
    .type_name = "IsolatedSandboxBackend",
    .close = isolated_close,
    .stop_commands = pf_directory_stop_commands,
    .read_file = pf_directory_read_file,
    .list_dir = pf_directory_list_dir,
    .download_files = pf_directory_download_files,
    .execute = isolated_execute,
    .open_terminal = isolated_open_terminal,
    .workspace_root = isolated_workspace_root,
    .free = isolated_free,
};

/* ---- making ---- */

static int check_absolute(const char *const *paths, const char *option, struct pinfold_error *err)
{
    for (size_t i = 0; paths && paths[i]; i++)
        if (paths[i][0] != '/')
            return pf_fail(err, PINFOLD_EVALUE,
                           "IsolatedSandboxBackend: %s %s must be an absolute path", option,
                           PF_QUOTE(paths[i]));
    return 0;
}

static int check_net(const struct pinfold_isolated_options *options, struct pinfold_error *err)
{
    struct pf_egress_rules *rules = NULL;
    int r;

    if (options->net != PINFOLD_NET_ALLOW)
        return 0;
    r = pf_egress_rules_new(options->net_allow, &rules, err);
    pf_egress_rules_free(rules);
    return r;
}

#define MOST_CPUS 100000

static int check_options(const struct pinfold_isolated_options *options, struct pinfold_error *err)
{
    int r;

    if (options->size != sizeof(*options))
        return pf_fail(err, PINFOLD_EVALUE, "IsolatedSandboxBackend: options of %zu bytes, not %zu",
                       options->size, sizeof(*options));
    if (options->seed_mode > PINFOLD_SEED_OVERLAY)
        return pf_fail(err, PINFOLD_EVALUE, "IsolatedSandboxBackend: no seed mode of kind %d",
                       (int)options->seed_mode);
    if (options->net > PINFOLD_NET_ALLOW)
        return pf_fail(err, PINFOLD_EVALUE, "IsolatedSandboxBackend: no network of kind %d",
                       (int)options->net);
    if (!(options->limits.cpus >= 0 && options->limits.cpus <= MOST_CPUS)) /* not a number too */
        return pf_fail(err, PINFOLD_EVALUE, "IsolatedSandboxBackend: cpus must be 0 to %d, not %g",
                       MOST_CPUS, options->limits.cpus);
    r = check_net(options, err);
    if (r < 0)
        return r;
    r = check_absolute(options->ro, "ro", err);
    if (r == 0)
        r = check_absolute(options->rw, "rw", err);
    if (r == 0 && options->rootfs)
        r = check_absolute((const char *const[]){ options->rootfs, NULL }, "rootfs", err);
    if (r < 0)
        return r;
    return pf_directory_check("IsolatedSandboxBackend", options->timeout_seconds, options->env,
                              err);
}

static int copy_options(struct isolated *isolated, const struct pinfold_isolated_options *options,
                        struct pinfold_error *err)
{
    int r = pf_directory_init(&isolated->dir, options->workspace_root, options->timeout_seconds,
                              options->max_output_bytes, options->env, err);

    if (r < 0)
        return r;
    isolated->dir.fixed = true; /* the jail shows the directory that it was given */
    isolated->own_root = !options->workspace_root;
    isolated->workspace_read_only = options->workspace_read_only;
    isolated->net = options->net;
    isolated->limits = options->limits;
    isolated->seed_mode = options->seed_mode;
    isolated->ro = pf_strv_copy(options->ro);
    isolated->rw = pf_strv_copy(options->rw);
    isolated->net_allow = pf_strv_copy(options->net_allow);
    isolated->rootfs = options->rootfs ? strdup(options->rootfs) : NULL;
    if (!isolated->ro || !isolated->rw || !isolated->net_allow ||
        (options->rootfs && !isolated->rootfs))
        return pf_fail_nomem(err);
    return 0;
}

static void isolated_freep(struct isolated **isolated)
{
    if (*isolated)
        isolated_free(*isolated);
}

static struct isolated *new_isolated(void)
{
    struct isolated *isolated = calloc(1, sizeof(*isolated));

    if (!isolated)
        return NULL;
    isolated->layers = (struct pf_layers)PF_LAYERS_INIT;
    pthread_mutex_init(&isolated->opening, NULL);
    return isolated;
}

int pinfold_isolated_backend_new(const struct pinfold_isolated_options *options,
                                 struct pinfold_backend **ret_backend, struct pinfold_error *err)
{
    static const struct pinfold_isolated_options defaults = PINFOLD_ISOLATED_OPTIONS_INIT;
    PF_CLEANUP(isolated_freep) struct isolated *isolated = NULL;
    int r;

    if (!options)
        options = &defaults;
    r = check_options(options, err);
    if (r < 0)
        return r;
    isolated = new_isolated();
    if (!isolated)
        return pf_fail_nomem(err);
    r = copy_options(isolated, options, err);
    if (r == 0)
        r = pinfold_backend_new(&isolated_ops, isolated, NULL, ret_backend, err);
    if (r == 0)
        (void)TAKE(isolated);
    return r;
}

/* ---- views ---- */

/* The options of a view: the parent's, without what could change something or lead out. */
static int view_options(const struct isolated *parent, char ***ret_ro,
                        struct pinfold_isolated_options *ret, struct pinfold_error *err)
{
    const char *const *shown[] = { (const char *const *)parent->ro,
                                   (const char *const *)parent->rw };

    *ret_ro = pf_strv_concat(shown, PF_COUNT(shown));
    if (!*ret_ro)
        return pf_fail_nomem(err);
    *ret = (struct pinfold_isolated_options){
        .size = sizeof(*ret),
        .workspace_root = parent->dir.real_root,
        .timeout_seconds = parent->dir.timeout_seconds,
        .max_output_bytes = parent->dir.max_output_bytes,
        .env = (const char *const *)parent->dir.env,
        .ro = (const char *const *)*ret_ro,
        .rootfs = parent->rootfs,
        .net = PINFOLD_NET_NONE,
        .limits = parent->limits,
        .workspace_read_only = true,
    };
    return 0;
}

static int isolated_view(void *state, struct pinfold_backend **ret_view, struct pinfold_error *err)
{
    PF_CLEANUP(isolated_freep) struct isolated *view = new_isolated();
    struct isolated *parent = state;
    struct pinfold_isolated_options options;
    _cleanup_strv_ char **ro = NULL;
    int r;

    /* Its mount is the jail's own, and what is mounted in one jail cannot be shown in another. */
    if (parent->layers.made)
        return pf_fail(
                err, PINFOLD_ENOTSUP,
                "view: a workspace on an overlay of its seed has no read-only views; seed it "
                "by copying");
    if (!view)
        return pf_fail_nomem(err);
    r = view_options(parent, &ro, &options, err);
    if (r == 0)
        r = copy_options(view, &options, err);
    if (r < 0)
        return r;
    view->is_view = true;
    view->quota.limit_bytes = PINFOLD_UNLIMITED; /* it adds nothing; its parent's watch goes on */
    view->dir.real_root = strdup(parent->dir.real_root);
    if (!view->dir.real_root)
        return pf_fail_nomem(err);
    /* The directory itself, whatever its name leads to by now. */
    r = pf_directory_get_root(&parent->dir, &view->dir.root, NULL, err);
    if (r == 0)
        r = pinfold_backend_new(&view_ops, view, NULL, ret_view, err);
    if (r == 0)
        (void)TAKE(view);
    return r;
}
