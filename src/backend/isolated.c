/* SPDX-License-Identifier: Apache-2.0 */
/*
 * IsolatedSandboxBackend: the workspace is a host directory, and commands run in a jail that shows
 * it to them as /workspace. The host side of every file operation is that of the local backend.
 */
#include "backend/isolated.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/strings.h"
#include "jail/limits.h"
#include "tree/file.h"
#include "tree/usage.h"

/* ---- what adds to the workspace from outside ---- */

static int isolated_write_file(void *state, const char *path, const void *data, size_t len,
                               bool exclusive, struct pinfold_cancel *cancel,
                               struct pinfold_error *err)
{
    struct pf_isolated *isolated = state;
    int r = pf_quota_admit(&isolated->quota, len + PF_USAGE_PER_ENTRY, err);

    return r < 0 ? pf_wrap(err, r, "write %s", PF_QUOTE(path))
                 : pf_directory_write_file(state, path, data, len, exclusive, cancel, err);
}

/* What a file will take. One that cannot be looked at is refused when it is copied. */
static uint64_t size_of(const struct pinfold_upload *file)
{
    _cleanup_free_ char *expanded = NULL;
    struct stat st;

    if (!file->host_path)
        return file->len;
    if (pf_path_expand(file->host_path, &expanded, NULL) < 0 || stat(expanded, &st) < 0 ||
        !S_ISREG(st.st_mode))
        return 0;
    return (uint64_t)st.st_size;
}

static int isolated_upload_files(void *state, const struct pinfold_upload *files, size_t count,
                                 bool overwrite, struct pinfold_transfer_results *ret_results,
                                 struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    struct pf_isolated *isolated = state;
    uint64_t bytes = 0;
    int r;

    for (size_t i = 0; i < count; i++)
        bytes += size_of(&files[i]) + PF_USAGE_PER_ENTRY;
    r = pf_quota_admit(&isolated->quota, bytes, err);
    return r < 0 ? pf_wrap(err, r, "upload files")
                 : pf_directory_upload_files(state, files, count, overwrite, ret_results, cancel,
                                             err);
}

static int isolated_replace_file(void *state, const char *path,
                                 const struct pinfold_bytes *expected, const void *data, size_t len,
                                 struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    struct pf_isolated *isolated = state;
    int r = pf_quota_admit(&isolated->quota, len + PF_USAGE_PER_ENTRY, err);

    return r < 0 ? pf_wrap(err, r, "write %s", PF_QUOTE(path))
                 : pf_directory_replace_file(state, path, expected, data, len, cancel, err);
}

/* ---- what takes away from it ---- */

static int isolated_remove_file(void *state, const char *path, struct pinfold_cancel *cancel,
                                struct pinfold_error *err)
{
    struct pf_isolated *isolated = state;
    int r = pf_directory_remove_file(state, path, cancel, err);

    if (r == 0)
        pf_quota_shrunk(&isolated->quota);
    return r;
}

static int isolated_remove_dir(void *state, const char *path, bool recursive,
                               struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    struct pf_isolated *isolated = state;
    int r = pf_directory_remove_dir(state, path, recursive, cancel, err);

    if (r == 0)
        pf_quota_shrunk(&isolated->quota);
    return r;
}

static int isolated_view(void *state, struct pinfold_backend **ret_view, struct pinfold_error *err);

static const struct pinfold_backend_ops isolated_ops = {
    .size = sizeof(struct pinfold_backend_ops),
    .type_name = "IsolatedSandboxBackend",
    .create = pf_isolated_create,
    .close = pf_isolated_close,
    .stop_commands = pf_directory_stop_commands,
    .read_file = pf_directory_read_file,
    .try_read_file = pf_directory_try_read_file,
    .write_file = isolated_write_file,
    .list_dir = pf_directory_list_dir,
    .remove_file = isolated_remove_file,
    .move_file = pf_directory_move_file,
    .seed_workspace = pf_isolated_seed_workspace,
    .sync_artifacts = pf_isolated_sync,
    .upload_files = isolated_upload_files,
    .download_files = pf_directory_download_files,
    .execute = pf_isolated_execute,
    .open_terminal = pf_isolated_open_terminal,
    .view = isolated_view,
    .workspace_root = pf_isolated_workspace_root,
    .storage_key = pf_directory_storage_key,
    .free = pf_isolated_free,
    .watch_network = pf_isolated_watch_network,
    .open_root = pf_isolated_open_root,
    .replace_file = isolated_replace_file,
    .remove_dir = isolated_remove_dir,
    .move_path = pf_directory_move_path,
};

/* What of it reads. Its root is open from the start, and is its parent's. */
static const struct pinfold_backend_ops view_ops = {
    .size = sizeof(struct pinfold_backend_ops),
    .type_name = "IsolatedSandboxBackend",
    .close = pf_isolated_close,
    .stop_commands = pf_directory_stop_commands,
    .read_file = pf_directory_read_file,
    .try_read_file = pf_directory_try_read_file,
    .list_dir = pf_directory_list_dir,
    .download_files = pf_directory_download_files,
    .execute = pf_isolated_execute,
    .open_terminal = pf_isolated_open_terminal,
    .workspace_root = pf_isolated_workspace_root,
    .free = pf_isolated_free,
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

    /* Whoever names what may be reached does not mean all of it, nor nothing. */
    if (options->net != PINFOLD_NET_ALLOW && options->net_allow && options->net_allow[0])
        return pf_fail(err, PINFOLD_EVALUE,
                       "IsolatedSandboxBackend: net_allow without PINFOLD_NET_ALLOW");
    if (options->net != PINFOLD_NET_ALLOW)
        return 0;
    r = pf_egress_rules_new(options->net_allow, &rules, err);
    pf_egress_rules_free(rules);
    return r;
}

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
    r = pf_limits_check(&options->limits, err);
    if (r == 0)
        r = check_net(options, err);
    if (r < 0)
        return r;
    r = check_absolute(options->ro, "ro", err);
    if (r == 0)
        r = check_absolute(options->rw, "rw", err);
    if (r == 0 && options->rootfs)
        r = check_absolute((const char *const[]){ options->rootfs, NULL }, "rootfs", err);
    if (r == 0)
        r = pf_jail_check_shown(options->ro, err);
    if (r == 0)
        r = pf_jail_check_shown(options->rw, err);
    if (r < 0)
        return r;
    return pf_directory_check("IsolatedSandboxBackend", options->timeout_seconds, options->env,
                              err);
}

static int copy_options(struct pf_isolated *isolated,
                        const struct pinfold_isolated_options *options, struct pinfold_error *err)
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

static void isolated_freep(struct pf_isolated **isolated)
{
    if (*isolated)
        pf_isolated_free(*isolated);
}

static struct pf_isolated *new_isolated(void)
{
    struct pf_isolated *isolated = calloc(1, sizeof(*isolated));

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
    PF_CLEANUP(isolated_freep) struct pf_isolated *isolated = NULL;
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
static int view_options(const struct pf_isolated *parent, char ***ret_ro,
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
    PF_CLEANUP(isolated_freep) struct pf_isolated *view = new_isolated();
    struct pf_isolated *parent = state;
    struct pinfold_isolated_options options;
    _cleanup_strv_ char **ro = NULL;
    int r;

    if (!view)
        return pf_fail_nomem(err);
    r = view_options(parent, &ro, &options, err);
    if (r == 0)
        r = copy_options(view, &options, err);
    if (r < 0)
        return r;
    view->is_view = true;
    view->lender = parent->layers.made ? parent : NULL;
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
