/* SPDX-License-Identifier: Apache-2.0 */
#include "backend/directory.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cancel.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/strings.h"
#include "proc/command.h"
#include "proc/env.h"
#include "tree/file.h"

enum {
    DEFAULT_TIMEOUT_SECONDS = 120,
    DEFAULT_OUTPUT_BYTES = 100000,
};

/* ---- making ---- */

int pf_directory_check(const char *class_name, double timeout_seconds, const char *const *env,
                       struct pinfold_error *err)
{
    if (isnan(timeout_seconds) || timeout_seconds < 0)
        return pf_fail(err, PINFOLD_EVALUE, "%s: timeout must be more than 0 seconds, not %g",
                       class_name, timeout_seconds);
    return pf_env_check(env, err);
}

int pf_directory_init(struct pf_directory *dir, const char *workspace_root, double timeout_seconds,
                      size_t max_output_bytes, const char *const *env, struct pinfold_error *err)
{
    int r = workspace_root ? pf_path_expand(workspace_root, &dir->configured_root, err) : 0;

    if (r < 0)
        return r;
    pthread_mutex_init(&dir->lock, NULL);
    dir->timeout_seconds = timeout_seconds > 0 ? timeout_seconds : DEFAULT_TIMEOUT_SECONDS;
    dir->max_output_bytes = max_output_bytes ? max_output_bytes : DEFAULT_OUTPUT_BYTES;
    dir->env = pf_strv_copy(env);
    return dir->env ? 0 : pf_fail_nomem(err);
}

void pf_directory_done(struct pf_directory *dir)
{
    pf_launcher_free(dir->launcher);
    pf_local_root_put(dir->root);
    pthread_mutex_destroy(&dir->lock);
    pf_strv_free(dir->env);
    free(dir->configured_root);
    free(dir->real_root);
}

/* ---- the root directory ---- */

static int open_root(struct pf_directory *dir, bool create, struct pinfold_error *err)
{
    _cleanup_free_ char *real = NULL;
    _cleanup_close_ int fd = pf_root_open(dir->configured_root, create, &real, err);
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
    pf_local_root_put(dir->root);
    dir->root = root;
    if (!dir->real_root)
        dir->real_root = TAKE(real);
    snprintf(dir->storage_key, sizeof(dir->storage_key), "local:%llx:%llx",
             (unsigned long long)st.st_dev, (unsigned long long)st.st_ino);
    return 0;
}

int pf_directory_get_root(struct pf_directory *dir, struct pf_local_root **ret,
                          struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    struct stat st;
    int r = pf_cancel_check(cancel, err);

    if (r < 0)
        return r;
    pthread_mutex_lock(&dir->lock);
    if (!dir->root)
        r = pf_fail(err, PINFOLD_ESTART, "workspace %s is not open",
                    PF_QUOTE(dir->configured_root));
    else if (fstat(dir->root->fd, &st) == 0 && st.st_nlink == 0)
        r = dir->fixed
                    ? pf_fail_os(err, ENOENT, "workspace %s was deleted", PF_QUOTE(dir->real_root))
                    : open_root(dir, false, err);
    if (r == 0)
        *ret = pf_local_root_get(dir->root);
    pthread_mutex_unlock(&dir->lock);
    return r < 0 && r != -PINFOLD_ESTART ? pf_wrap(err, r, "workspace root is gone") : r;
}

int pf_directory_open(struct pf_directory *dir, struct pinfold_error *err)
{
    int r;

    pthread_mutex_lock(&dir->lock);
    r = open_root(dir, true, err);
    dir->stopped = false;
    pthread_mutex_unlock(&dir->lock);
    return r;
}

void pf_directory_close(struct pf_directory *dir)
{
    pf_directory_stop_commands(dir, NULL);
    pf_launcher_free(TAKE(dir->launcher));
    pthread_mutex_lock(&dir->lock);
    pf_local_root_put(TAKE(dir->root));
    *dir->storage_key = '\0';
    pthread_mutex_unlock(&dir->lock);
}

int pf_directory_stop_commands(void *state, struct pinfold_error *err)
{
    struct pf_directory *dir = state;
    struct pf_launcher *launcher = NULL;

    (void)err;
    pthread_mutex_lock(&dir->lock);
    dir->stopped = true;
    launcher = dir->launcher;
    pthread_mutex_unlock(&dir->lock);
    if (launcher)
        pf_launcher_stop(launcher);
    return 0;
}

const char *pf_directory_storage_key(void *state)
{
    const struct pf_directory *dir = state;

    return *dir->storage_key ? dir->storage_key : NULL;
}

/* ---- files ---- */

/* The first read has the time for it; a workspace of which nobody reads does not pay for it. */
static void ask_whether_prompt(struct pf_local_root *root)
{
    if (__atomic_load_n(&root->prompt, __ATOMIC_RELAXED) == 0)
        __atomic_store_n(&root->prompt, pf_file_system_is_prompt(root->fd) ? 1 : -1,
                         __ATOMIC_RELAXED);
}

int pf_directory_read_file(void *state, const char *path, struct pinfold_bytes *ret_content,
                           struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    PF_CLEANUP(pf_local_root_putp) struct pf_local_root *root = NULL;
    int r = pf_directory_get_root(state, &root, cancel, err);

    if (r < 0)
        return r;
    ask_whether_prompt(root);
    return pf_file_read(root->fd, path, PINFOLD_READ_MAX_BYTES, ret_content, cancel, err);
}

/* The root, if it is open and nobody is at it. */
static struct pf_local_root *try_root(struct pf_directory *dir)
{
    struct pf_local_root *root = NULL;
    struct stat st;

    if (pthread_mutex_trylock(&dir->lock) != 0)
        return NULL;
    if (dir->root && __atomic_load_n(&dir->root->prompt, __ATOMIC_RELAXED) > 0 &&
        fstat(dir->root->fd, &st) == 0 && st.st_nlink > 0)
        root = pf_local_root_get(dir->root);
    pthread_mutex_unlock(&dir->lock);
    return root;
}

bool pf_directory_try_read_file(void *state, const char *path, size_t limit,
                                struct pinfold_bytes *ret_content)
{
    PF_CLEANUP(pf_local_root_putp) struct pf_local_root *root = try_root(state);

    return root && pf_file_read_cached(root->fd, path, limit, ret_content);
}

int pf_directory_write_file(void *state, const char *path, const void *data, size_t len,
                            bool exclusive, struct pinfold_cancel *cancel,
                            struct pinfold_error *err)
{
    PF_CLEANUP(pf_local_root_putp) struct pf_local_root *root = NULL;
    int r = pf_directory_get_root(state, &root, cancel, err);

    return r < 0 ? r : pf_file_write(root->fd, path, data, len, exclusive, cancel, err);
}

int pf_directory_list_dir(void *state, const char *path, struct pinfold_file_infos *ret_infos,
                          struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    PF_CLEANUP(pf_local_root_putp) struct pf_local_root *root = NULL;
    int r = pf_directory_get_root(state, &root, cancel, err);

    return r < 0 ? r : pf_dir_list(root->fd, path, ret_infos, cancel, err);
}

int pf_directory_remove_file(void *state, const char *path, struct pinfold_cancel *cancel,
                             struct pinfold_error *err)
{
    PF_CLEANUP(pf_local_root_putp) struct pf_local_root *root = NULL;
    int r = pf_directory_get_root(state, &root, cancel, err);

    return r < 0 ? r : pf_file_remove(root->fd, path, err);
}

int pf_directory_move_file(void *state, const char *src, const char *dest,
                           struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    PF_CLEANUP(pf_local_root_putp) struct pf_local_root *root = NULL;
    int r = pf_directory_get_root(state, &root, cancel, err);

    return r < 0 ? r : pf_file_move(root->fd, src, dest, 0, err);
}

int pf_directory_replace_file(void *state, const char *path, const struct pinfold_bytes *expected,
                              const void *data, size_t len, struct pinfold_cancel *cancel,
                              struct pinfold_error *err)
{
    PF_CLEANUP(pf_local_root_putp) struct pf_local_root *root = NULL;
    int r = pf_directory_get_root(state, &root, cancel, err);

    return r < 0 ? r : pf_file_replace(root->fd, path, expected, data, len, cancel, err);
}

int pf_directory_remove_dir(void *state, const char *path, bool recursive,
                            struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    PF_CLEANUP(pf_local_root_putp) struct pf_local_root *root = NULL;
    int r = pf_directory_get_root(state, &root, cancel, err);

    return r < 0 ? r : pf_dir_remove(root->fd, path, recursive, err);
}

int pf_directory_move_path(void *state, const char *src, const char *dest, bool no_replace,
                           struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    PF_CLEANUP(pf_local_root_putp) struct pf_local_root *root = NULL;
    int r = pf_directory_get_root(state, &root, cancel, err);

    return r < 0 ? r
                 : pf_file_move(root->fd, src, dest,
                                PF_MOVE_DIRS | (no_replace ? PF_MOVE_NO_REPLACE : 0), err);
}

int pf_directory_upload_files(void *state, const struct pinfold_upload *files, size_t count,
                              bool overwrite, struct pinfold_transfer_results *ret_results,
                              struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    PF_CLEANUP(pf_local_root_putp) struct pf_local_root *root = NULL;
    int r = pf_directory_get_root(state, &root, cancel, err);

    return r < 0 ? r : pf_local_upload(root->fd, files, count, overwrite, ret_results, cancel, err);
}

int pf_directory_download_files(void *state, const struct pinfold_download *files, size_t count,
                                bool overwrite, struct pinfold_transfer_results *ret_results,
                                struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    PF_CLEANUP(pf_local_root_putp) struct pf_local_root *root = NULL;
    int r = pf_directory_get_root(state, &root, cancel, err);

    return r < 0 ? r
                 : pf_local_download(root->fd, files, count, overwrite, ret_results, cancel, err);
}

int pf_directory_seed_workspace(void *state, const struct pinfold_seed_request *request,
                                struct pinfold_seed_result *ret_result,
                                struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    PF_CLEANUP(pf_local_root_putp) struct pf_local_root *root = NULL;
    struct pf_directory *dir = state;
    int r = pf_directory_get_root(dir, &root, cancel, err);

    return r < 0 ? r : pf_local_seed(root->fd, dir->real_root, request, ret_result, cancel, err);
}

int pf_directory_sync_artifacts(void *state, const struct pinfold_sync_request *request,
                                struct pinfold_sync_result *ret_result,
                                struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    PF_CLEANUP(pf_local_root_putp) struct pf_local_root *root = NULL;
    struct pf_directory *dir = state;
    int r = pf_directory_get_root(dir, &root, cancel, err);

    return r < 0 ? r
                 : pf_local_sync(root->fd, NULL, dir->real_root, request, ret_result, cancel, err);
}

int pf_directory_open_root(void *state, int *ret_root, int *ret_upper,
                           struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    PF_CLEANUP(pf_local_root_putp) struct pf_local_root *root = NULL;
    int fd, r = pf_directory_get_root(state, &root, cancel, err);

    if (r < 0)
        return r;
    fd = fcntl(root->fd, F_DUPFD_CLOEXEC, 0);
    if (fd < 0)
        return pf_fail_os(err, errno, "open the workspace");
    *ret_root = fd;
    *ret_upper = -1;
    return 0;
}

/* ---- commands ---- */

/* Seconds to nanoseconds: 0 is the default, infinity never comes. */
static int timeout_ns(const struct pf_directory *dir, double seconds, int64_t *ret,
                      struct pinfold_error *err)
{
    if (isnan(seconds) || seconds < 0)
        return pf_fail(err, PINFOLD_EVALUE, "timeout must be more than 0 seconds, not %g", seconds);
    if (seconds <= 0)
        seconds = dir->timeout_seconds;
    *ret = seconds >= 9e9 ? PF_NEVER : (int64_t)(seconds * (double)PF_NS_PER_SEC);
    if (*ret == 0)
        *ret = 1;
    return 0;
}

int pf_directory_request(const struct pf_directory *dir,
                         const struct pinfold_execute_options *options, const char *const *env,
                         struct pinfold_cancel *cancel, struct pf_run_request *ret,
                         struct pinfold_error *err)
{
    *ret = pf_command_request(options, dir->max_output_bytes, cancel);
    ret->envp = env;
    return timeout_ns(dir, options->timeout_seconds, &ret->timeout_ns, err);
}

char *pf_directory_pwd(const char *root, const char *cwd)
{
    char *pwd = NULL;
    int len = strcmp(cwd, ".") == 0 ? asprintf(&pwd, "PWD=%s", root)
                                    : asprintf(&pwd, "PWD=%s/%s", root, cwd);

    return len < 0 ? NULL : pwd;
}
