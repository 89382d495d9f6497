/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LocalSandboxBackend: a host directory as workspace, commands as processes of this user. There is
 * no isolation. What file operations may reach is still bounded by the root directory.
 */
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "backend/backend.h"
#include "backend/local_files.h"
#include "base/cancel.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/strings.h"
#include "proc/env.h"
#include "proc/run.h"
#include "tree/beneath.h"
#include "tree/copy.h"
#include "tree/file.h"
#include "tree/place.h"

enum {
    DEFAULT_TIMEOUT_SECONDS = 120,
    DEFAULT_OUTPUT_BYTES = 100000,
};

struct local {
    char *configured_root;
    char **env;
    bool inherit_env;
    double timeout_seconds;
    size_t max_output_bytes;

    pthread_mutex_t lock; /* guards root, its replacement, and creating the launcher */
    struct pf_local_root *root;
    char *real_root;      /* since the first create; never changes after */
    char storage_key[48]; /* device and inode of the root */
    struct pf_launcher *launcher;
    bool stopped;
};

/* ---- the root directory ---- */

static int open_root(struct local *local, bool create, struct pinfold_error *err)
{
    _cleanup_free_ char *real = NULL;
    _cleanup_close_ int fd = pf_root_open(local->configured_root, create, &real, err);
    struct pf_local_root *root;
    struct stat st;

    if (fd < 0)
        return fd;
    if (faccessat(fd, ".", W_OK | X_OK, AT_EACCESS) < 0)
        return pf_fail_os(err, errno, "workspace %s is not writable", PF_QUOTE(real));
    if (fstat(fd, &st) < 0)
        return pf_fail_os(err, errno, "look at workspace %s", PF_QUOTE(real));
    root = pf_local_root_new(fd);
    if (!root)
        return pf_fail_nomem(err);
    (void)TAKE_FD(fd);
    pf_local_root_put(local->root);
    local->root = root;
    if (!local->real_root)
        local->real_root = TAKE(real);
    snprintf(local->storage_key, sizeof(local->storage_key), "local:%llx:%llx",
             (unsigned long long)st.st_dev, (unsigned long long)st.st_ino);
    return 0;
}

/* Begin an operation: unless it is cancelled already, the root, to give back with
 * pf_local_root_put(). A root that was deleted is an
 * error on every call, and works again as soon as somebody has made it anew. */
static int get_root(struct local *local, struct pf_local_root **ret, struct pinfold_cancel *cancel,
                    struct pinfold_error *err)
{
    struct stat st;
    int r = pf_cancel_check(cancel, err);

    if (r < 0)
        return r;
    pthread_mutex_lock(&local->lock);
    if (!local->root)
        r = pf_fail(err, PINFOLD_ESTART, "workspace %s is not open",
                    PF_QUOTE(local->configured_root));
    else if (fstat(local->root->fd, &st) == 0 && st.st_nlink == 0)
        r = open_root(local, false, err);
    if (r == 0)
        *ret = pf_local_root_get(local->root);
    pthread_mutex_unlock(&local->lock);
    return r < 0 && r != -PINFOLD_ESTART ? pf_wrap(err, r, "workspace root is gone") : r;
}

static int local_create(void *state, struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    struct local *local = state;
    int r;

    (void)cancel;
    pthread_mutex_lock(&local->lock);
    r = open_root(local, true, err);
    local->stopped = false;
    pthread_mutex_unlock(&local->lock);
    return r;
}

static int local_stop_commands(void *state, struct pinfold_error *err)
{
    struct local *local = state;
    struct pf_launcher *launcher = NULL;

    (void)err;
    pthread_mutex_lock(&local->lock);
    local->stopped = true;
    launcher = local->launcher;
    pthread_mutex_unlock(&local->lock);
    if (launcher)
        pf_launcher_stop(launcher);
    return 0;
}

static int local_close(void *state, struct pinfold_error *err)
{
    struct local *local = state;

    local_stop_commands(state, err);
    pf_launcher_free(TAKE(local->launcher));
    pthread_mutex_lock(&local->lock);
    pf_local_root_put(TAKE(local->root));
    *local->storage_key = '\0';
    pthread_mutex_unlock(&local->lock);
    return 0;
}

static const char *local_workspace_root(void *state)
{
    return ((struct local *)state)->real_root;
}

static const char *local_storage_key(void *state)
{
    const struct local *local = state;

    return *local->storage_key ? local->storage_key : NULL;
}

static void local_free(void *state)
{
    struct local *local = state;

    pf_launcher_free(local->launcher);
    pf_local_root_put(local->root);
    pthread_mutex_destroy(&local->lock);
    pf_strv_free(local->env);
    free(local->configured_root);
    free(local->real_root);
    free(local);
}

/* ---- files ---- */

static int local_read_file(void *state, const char *path, struct pinfold_bytes *ret_content,
                           struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    PF_CLEANUP(pf_local_root_putp) struct pf_local_root *root = NULL;
    int r = get_root(state, &root, cancel, err);

    return r < 0 ? r : pf_file_read(root->fd, path, PF_BUF_UNLIMITED, ret_content, cancel, err);
}

static int local_write_file(void *state, const char *path, const void *data, size_t len,
                            bool exclusive, struct pinfold_cancel *cancel,
                            struct pinfold_error *err)
{
    PF_CLEANUP(pf_local_root_putp) struct pf_local_root *root = NULL;
    int r = get_root(state, &root, cancel, err);

    return r < 0 ? r : pf_file_write(root->fd, path, data, len, exclusive, cancel, err);
}

static int local_list_dir(void *state, const char *path, struct pinfold_file_infos *ret_infos,
                          struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    PF_CLEANUP(pf_local_root_putp) struct pf_local_root *root = NULL;
    int r = get_root(state, &root, cancel, err);

    return r < 0 ? r : pf_dir_list(root->fd, path, ret_infos, cancel, err);
}

static int local_remove_file(void *state, const char *path, struct pinfold_cancel *cancel,
                             struct pinfold_error *err)
{
    PF_CLEANUP(pf_local_root_putp) struct pf_local_root *root = NULL;
    int r = get_root(state, &root, cancel, err);

    return r < 0 ? r : pf_file_remove(root->fd, path, err);
}

static int local_move_file(void *state, const char *src, const char *dest,
                           struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    PF_CLEANUP(pf_local_root_putp) struct pf_local_root *root = NULL;
    int r = get_root(state, &root, cancel, err);

    return r < 0 ? r : pf_file_move(root->fd, src, dest, err);
}

static int local_upload_files(void *state, const struct pinfold_upload *files, size_t count,
                              bool overwrite, struct pinfold_transfer_results *ret_results,
                              struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    PF_CLEANUP(pf_local_root_putp) struct pf_local_root *root = NULL;
    int r = get_root(state, &root, cancel, err);

    return r < 0 ? r : pf_local_upload(root->fd, files, count, overwrite, ret_results, cancel, err);
}

static int local_download_files(void *state, const struct pinfold_download *files, size_t count,
                                bool overwrite, struct pinfold_transfer_results *ret_results,
                                struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    PF_CLEANUP(pf_local_root_putp) struct pf_local_root *root = NULL;
    int r = get_root(state, &root, cancel, err);

    return r < 0 ? r
                 : pf_local_download(root->fd, files, count, overwrite, ret_results, cancel, err);
}

static int local_seed_workspace(void *state, const struct pinfold_seed_request *request,
                                struct pinfold_seed_result *ret_result,
                                struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    PF_CLEANUP(pf_local_root_putp) struct pf_local_root *root = NULL;
    struct local *local = state;
    int r = get_root(local, &root, cancel, err);

    return r < 0 ? r : pf_local_seed(root->fd, local->real_root, request, ret_result, cancel, err);
}

static int local_sync_artifacts(void *state, const struct pinfold_sync_request *request,
                                struct pinfold_sync_result *ret_result,
                                struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    PF_CLEANUP(pf_local_root_putp) struct pf_local_root *root = NULL;
    struct local *local = state;
    int r = get_root(local, &root, cancel, err);

    return r < 0 ? r : pf_local_sync(root->fd, local->real_root, request, ret_result, cancel, err);
}

/* ---- commands ---- */

static int get_launcher(struct local *local, struct pf_launcher **ret, struct pinfold_error *err)
{
    int r = 0;

    pthread_mutex_lock(&local->lock);
    if (local->stopped)
        r = pf_fail(err, PINFOLD_ESTART, "workspace %s is stopping",
                    PF_QUOTE(local->configured_root));
    else if (!local->launcher)
        r = pf_launcher_new(&local->launcher, err);
    *ret = local->launcher;
    pthread_mutex_unlock(&local->lock);
    return r;
}

/* Seconds to nanoseconds: 0 is the default, infinity never comes. */
static int timeout_ns(const struct local *local, double seconds, int64_t *ret,
                      struct pinfold_error *err)
{
    if (isnan(seconds) || seconds < 0)
        return pf_fail(err, PINFOLD_EVALUE, "timeout must be more than 0 seconds, not %g", seconds);
    if (seconds <= 0)
        seconds = local->timeout_seconds;
    *ret = seconds >= 9e9 ? PF_NEVER : (int64_t)(seconds * (double)PF_NS_PER_SEC);
    if (*ret == 0)
        *ret = 1;
    return 0;
}

/* What is inherited, then where it runs, then what was asked for: later ones win. The environment
 * is read at each command, not when the backend is made. */
static char **command_env(const struct local *local, const char *cwd, const char *const *extra)
{
    _cleanup_free_ char *pwd = NULL;
    int len = strcmp(cwd, ".") == 0 ? asprintf(&pwd, "PWD=%s", local->real_root)
                                    : asprintf(&pwd, "PWD=%s/%s", local->real_root, cwd);

    if (len < 0) {
        pwd = NULL;
        return NULL;
    }
    return pf_env_merge(
            (const char *const *const[]){
                    local->inherit_env ? (const char *const *)environ : NULL,
                    (const char *const[]){ pwd, NULL },
                    (const char *const *)local->env,
                    extra,
            },
            4);
}

static int local_execute(void *state, const struct pinfold_execute_options *options,
                         struct pinfold_execute_result *ret_result, struct pinfold_cancel *cancel,
                         struct pinfold_error *err)
{
    PF_CLEANUP(pf_local_root_putp) struct pf_local_root *root = NULL;
    struct local *local = state;
    const char *cwd = options->cwd ? options->cwd : ".";
    struct pf_run_request request = {
        .command = options->command,
        .command_len = options->command && options->command_len == 0 ? strlen(options->command)
                                                                     : options->command_len,
        .argv = options->argv,
        .output_limit =
                options->max_output_bytes ? options->max_output_bytes : local->max_output_bytes,
        .keep_tail = options->keep_tail,
        .discard = options->discard_output,
        .spool_limit = options->spool_bytes,
        .on_output = options->on_output,
        .on_output_ctx = options->on_output_ctx,
        .cancel = cancel,
    };
    _cleanup_strv_ char **env = NULL;
    _cleanup_close_ int cwd_fd = -1;
    struct pf_launcher *launcher = NULL;
    int r = timeout_ns(local, options->timeout_seconds, &request.timeout_ns, err);

    if (r == 0)
        r = pf_env_check(options->env, err);
    if (r == 0)
        r = get_root(local, &root, cancel, err);
    if (r == 0)
        r = get_launcher(local, &launcher, err);
    if (r < 0)
        return r;
    cwd_fd = pf_beneath_open(root->fd, cwd, O_PATH | O_DIRECTORY, 0);
    if (cwd_fd < 0)
        return pf_fail_at(err, -cwd_fd, "enter directory", cwd);
    env = command_env(local, cwd, options->env);
    if (!env)
        return pf_fail_nomem(err);
    request.cwd_fd = cwd_fd;
    request.envp = (const char *const *)env;
    return pf_run(launcher, &request, ret_result, err);
}

static const struct pinfold_backend_ops local_ops = {
    .size = sizeof(struct pinfold_backend_ops),
    .type_name = "LocalSandboxBackend",
    .create = local_create,
    .close = local_close,
    .stop_commands = local_stop_commands,
    .read_file = local_read_file,
    .write_file = local_write_file,
    .list_dir = local_list_dir,
    .remove_file = local_remove_file,
    .move_file = local_move_file,
    .seed_workspace = local_seed_workspace,
    .sync_artifacts = local_sync_artifacts,
    .upload_files = local_upload_files,
    .download_files = local_download_files,
    .execute = local_execute,
    .workspace_root = local_workspace_root,
    .storage_key = local_storage_key,
    .free = local_free,
};

static int check_options(const struct pinfold_local_options *options, struct pinfold_error *err)
{
    if (options->size != sizeof(*options))
        return pf_fail(err, PINFOLD_EVALUE, "LocalSandboxBackend: options of %zu bytes, not %zu",
                       options->size, sizeof(*options));
    if (!options->workspace_root || !*options->workspace_root)
        return pf_fail(err, PINFOLD_EVALUE, "LocalSandboxBackend: workspace_root is required");
    if (isnan(options->timeout_seconds) || options->timeout_seconds < 0)
        return pf_fail(err, PINFOLD_EVALUE,
                       "LocalSandboxBackend: timeout must be more than 0 seconds, not %g",
                       options->timeout_seconds);
    return pf_env_check(options->env, err);
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
    pthread_mutex_init(&local->lock, NULL);
    r = pf_path_expand(options->workspace_root, &local->configured_root, err);
    if (r < 0)
        return r;
    local->env = pf_strv_copy(options->env);
    if (!local->env)
        return pf_fail_nomem(err);
    local->inherit_env = !options->no_inherit_env;
    local->timeout_seconds =
            options->timeout_seconds > 0 ? options->timeout_seconds : DEFAULT_TIMEOUT_SECONDS;
    local->max_output_bytes =
            options->max_output_bytes ? options->max_output_bytes : DEFAULT_OUTPUT_BYTES;
    r = pinfold_backend_new(&local_ops, local, NULL, ret_backend, err);
    if (r < 0)
        return r;
    pf_log(PINFOLD_LOG_WARNING,
           "LocalSandboxBackend does not isolate: commands run on this host as this user, in %s",
           PF_QUOTE(local->configured_root));
    (void)TAKE(local);
    return 0;
}
