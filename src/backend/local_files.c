/* SPDX-License-Identifier: Apache-2.0 */
#include "backend/local_files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "backend/backend.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "tree/copy.h"
#include "tree/file.h"

struct pf_local_root *pf_local_root_new(int fd)
{
    struct pf_local_root *root = malloc(sizeof(*root));

    if (root)
        *root = (struct pf_local_root){ .fd = fd, .refs = 1 };
    return root;
}

struct pf_local_root *pf_local_root_get(struct pf_local_root *root)
{
    __atomic_fetch_add(&root->refs, 1, __ATOMIC_RELAXED);
    return root;
}

void pf_local_root_put(struct pf_local_root *root)
{
    if (!root || __atomic_sub_fetch(&root->refs, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    close(root->fd);
    free(root);
}

void pf_local_root_putp(struct pf_local_root **root)
{
    pf_local_root_put(*root);
}

/* ---- single files ---- */

/* Split an absolute host path into an open parent directory and a name. The application chose the
 * path, so links on the way are followed. */
static int open_host_parent(const char *host_path, bool create, char **ret_path,
                            const char **ret_name, struct pinfold_error *err)
{
    _cleanup_free_ char *path = NULL;
    char *slash;
    int fd, r = pf_path_expand(host_path, &path, err);

    if (r < 0)
        return r;
    slash = strrchr(path, '/'); /* there is one: the path is absolute */
    if (slash[1] == '\0')
        return pf_fail_os(err, EISDIR, "host file %s", PF_QUOTE(host_path));
    *slash = '\0';
    fd = pf_root_open(*path ? path : "/", create, NULL, err);
    if (fd < 0)
        return fd;
    *ret_name = slash + 1;
    *ret_path = TAKE(path);
    return fd;
}

static int upload_host_file(int root_fd, const struct pinfold_upload *file, bool exclusive,
                            struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    _cleanup_free_ char *expanded = NULL, *real = NULL, *path = NULL;
    _cleanup_close_ int dir_fd = -1;
    const char *name;
    uint64_t bytes;
    int r = pf_path_expand(file->host_path, &expanded, err);

    if (r < 0)
        return r;
    real = realpath(expanded, NULL); /* a link the application named is followed */
    if (!real)
        return pf_fail_os(err, errno, "host file %s", PF_QUOTE(file->host_path));
    dir_fd = open_host_parent(real, false, &path, &name, err);
    if (dir_fd < 0)
        return dir_fd;
    return pf_file_copy(dir_fd, name, root_fd, file->path, exclusive, &bytes, cancel, err);
}

static int upload_one(int root_fd, const struct pinfold_upload *file, bool exclusive,
                      struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    if (file->host_path)
        return upload_host_file(root_fd, file, exclusive, cancel, err);
    return pf_file_write(root_fd, file->path, file->data, file->len, exclusive, cancel, err);
}

static int download_one(int root_fd, const struct pinfold_download *file, bool exclusive,
                        struct pinfold_bytes *content, struct pinfold_cancel *cancel,
                        struct pinfold_error *err)
{
    _cleanup_free_ char *path = NULL;
    _cleanup_close_ int dir_fd = -1;
    const char *name;
    uint64_t bytes;

    if (!file->host_path)
        return pf_file_read(root_fd, file->path, PINFOLD_READ_MAX_BYTES, content, cancel, err);
    dir_fd = open_host_parent(file->host_path, true, &path, &name, err);
    if (dir_fd < 0)
        return dir_fd;
    return pf_file_copy(root_fd, file->path, dir_fd, name, exclusive, &bytes, cancel, err);
}

/* Note how one transfer went. Returns what must end the whole call: cancellation, no memory. */
static int record(struct pinfold_transfer_result *result, const char *path, bool exclusive, int r,
                  const struct pinfold_error *one, struct pinfold_error *err)
{
    result->path = strdup(path);
    if (!result->path)
        return pf_fail_nomem(err);
    if (r == 0)
        return 0;
    result->skipped = exclusive && one->sys_errno == EEXIST;
    if (!result->skipped)
        result->error = *one;
    if (r != -PINFOLD_ECANCELLED && r != -PINFOLD_ENOMEM)
        return 0;
    if (err)
        *err = *one;
    return r;
}

int pf_local_upload(int root_fd, const struct pinfold_upload *files, size_t count, bool overwrite,
                    struct pinfold_transfer_results *ret_results, struct pinfold_cancel *cancel,
                    struct pinfold_error *err)
{
    PF_CLEANUP(pinfold_transfer_results_done) struct pinfold_transfer_results results = { 0 };

    if (pf_transfer_results_new(count, &results) < 0)
        return pf_fail_nomem(err);
    for (size_t i = 0; i < count; i++) {
        struct pinfold_error one = PINFOLD_ERROR_INIT;
        int r = upload_one(root_fd, &files[i], !overwrite, cancel, &one);
        r = record(&results.items[i], files[i].path, !overwrite, r, &one, err);
        if (r < 0)
            return r;
    }
    *ret_results = results;
    results = (struct pinfold_transfer_results){ 0 };
    return 0;
}

int pf_local_download(int root_fd, const struct pinfold_download *files, size_t count,
                      bool overwrite, struct pinfold_transfer_results *ret_results,
                      struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    PF_CLEANUP(pinfold_transfer_results_done) struct pinfold_transfer_results results = { 0 };

    if (pf_transfer_results_new(count, &results) < 0)
        return pf_fail_nomem(err);
    for (size_t i = 0; i < count; i++) {
        struct pinfold_error one = PINFOLD_ERROR_INIT;
        int r = download_one(root_fd, &files[i], !overwrite, &results.items[i].content, cancel,
                             &one);
        r = record(&results.items[i], files[i].path, !overwrite && files[i].host_path, r, &one,
                   err);
        if (r < 0)
            return r;
    }
    *ret_results = results;
    results = (struct pinfold_transfer_results){ 0 };
    return 0;
}

/* ---- trees ---- */

/* The host's side of a seed or flush could not be used at all: a prepare error, whatever it was. */
static int prepare_error(struct pinfold_error *err, int r, const char *what)
{
    if (r == -PINFOLD_ENOMEM || r == -PINFOLD_ECANCELLED)
        return r;
    if (err)
        err->code = PINFOLD_EPREPARE;
    return pf_wrap(err, -PINFOLD_EPREPARE, "%s", what);
}

int pf_local_seed(int root_fd, const char *root_name, const struct pinfold_seed_request *request,
                  struct pinfold_seed_result *ret_result, struct pinfold_cancel *cancel,
                  struct pinfold_error *err)
{
    PF_CLEANUP(pf_globs_freep) struct pf_globs *exclude = NULL;
    _cleanup_close_ int source_fd = -1;
    struct pf_copy_result copied = { 0 };
    struct pf_copy_options options = {
        .dst_fd = root_fd,
        .dst_name = root_name,
        .src_name = request->source,
        .empty_dirs = true,
        .links = true,
        .plan = request->plan,
        .on_progress = request->on_progress,
        .on_progress_ctx = request->on_progress_ctx,
        .cancel = cancel,
    };
    int r = pf_globs_new(request->exclude, &exclude, err);

    if (r < 0)
        return r;
    source_fd = pf_root_open(request->source, false, NULL, err);
    if (source_fd < 0)
        return prepare_error(err, source_fd, "seed the workspace");
    options.src_fd = source_fd;
    options.exclude = exclude;
    r = pf_copy_tree(&options, &copied, err);
    ret_result->files_seeded = copied.files;
    ret_result->bytes_seeded = copied.bytes;
    ret_result->skipped_paths = copied.skipped;
    ret_result->errors = copied.errors;
    return r;
}

/* A dry run must not make the destination: what is not there is planned against an empty tree. */
static int open_dest(const struct pinfold_sync_request *request, int *ret_fd,
                     struct pinfold_error *err)
{
    struct pinfold_error local = PINFOLD_ERROR_INIT;

    *ret_fd = pf_root_open(request->dest, !request->plan, NULL, &local);
    if (*ret_fd >= 0 || (request->plan && local.sys_errno == ENOENT))
        return 0;
    if (err)
        *err = local;
    return *ret_fd;
}

/* options has the source. */
static int sync_from(struct pf_copy_options options, const struct pinfold_sync_request *request,
                     struct pinfold_sync_result *ret_result, struct pinfold_cancel *cancel,
                     struct pinfold_error *err)
{
    PF_CLEANUP(pf_globs_freep) struct pf_globs *include = NULL;
    PF_CLEANUP(pf_globs_freep) struct pf_globs *exclude = NULL;
    _cleanup_close_ int dest_fd = -1;
    struct pf_copy_result copied = { 0 };
    int r = pf_globs_new(request->include, &include, err);

    if (r == 0)
        r = pf_globs_new(request->exclude, &exclude, err);
    if (r < 0)
        return r;
    r = open_dest(request, &dest_fd, err);
    if (r < 0)
        return prepare_error(err, r, "flush the workspace");
    options.dst_fd = dest_fd;
    options.dst_name = request->dest;
    options.include = include;
    options.exclude = exclude;
    options.skip_identical = true;
    options.links = options.links_out = request->links;
    options.plan = request->plan;
    options.on_progress = request->on_progress;
    options.on_progress_ctx = request->on_progress_ctx;
    options.cancel = cancel;
    r = pf_copy_tree(&options, &copied, err);
    ret_result->files_synced = copied.files;
    ret_result->bytes_synced = copied.bytes;
    ret_result->errors = copied.errors;
    pinfold_strings_done(&copied.skipped);
    return r;
}

int pf_local_sync(int root_fd, const struct pf_local_overlay *overlay, const char *root_name,
                  const struct pinfold_sync_request *request,
                  struct pinfold_sync_result *ret_result, struct pinfold_cancel *cancel,
                  struct pinfold_error *err)
{
    const struct pf_copy_options options = {
        .src_fd = root_fd,
        .src_name = root_name,
        .src_place = overlay ? &overlay->host_fd : NULL,
        .upper = overlay && overlay->upper,
    };

    return sync_from(options, request, ret_result, cancel, err);
}

int pf_local_sync_copy(const char *path, const struct pinfold_sync_request *request,
                       struct pinfold_sync_result *ret_result, struct pinfold_cancel *cancel,
                       struct pinfold_error *err)
{
    _cleanup_close_ int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const struct pf_copy_options options = { .src_fd = fd, .src_name = path, .src_inside = true };

    if (fd < 0)
        return pf_fail_os(err, errno, "open what was fetched");
    return sync_from(options, request, ret_result, cancel, err);
}
