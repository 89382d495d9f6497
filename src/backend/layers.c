/* SPDX-License-Identifier: Apache-2.0 */
#include "backend/layers.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "jail/plan.h"
#include "tree/beneath.h"
#include "tree/file.h"
#include "tree/hide.h"
#include "tree/remove.h"

/* A copy has to do. */
static int copy_instead(char *why, size_t size, const char *reason)
{
    snprintf(why, size, "%s", reason);
    return 1;
}

static bool is_empty(int dir_fd)
{
    int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *entry;
    bool empty = dir;

    if (!dir && fd >= 0)
        close(fd);
    while (empty && (entry = readdir(dir)))
        empty = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0;
    if (dir)
        closedir(dir);
    return empty;
}

/* An overlay marks what it replaces in extended attributes; without them a directory that was
 * removed could not be made again. */
static bool has_attributes(int fd)
{
    static const char name[] = "user.pinfold.probe";

    return fsetxattr(fd, name, "", 0, 0) == 0 && fremovexattr(fd, name) == 0;
}

static int make_directories(struct pf_layers *layers, char *why, size_t size)
{
    struct stat st;

    layers->made = true;
    if (fstat(layers->host_fd, &st) < 0 ||
        mkdirat(layers->host_fd, PF_LAYER_CHANGES, st.st_mode & 0777) < 0 ||
        mkdirat(layers->host_fd, PF_LAYER_HIDDEN, 0700) < 0 ||
        mkdirat(layers->host_fd, PF_LAYER_WORK, 0700) < 0)
        return copy_instead(why, size, "the layers cannot be made in the workspace");
    layers->changes_fd = openat(layers->host_fd, PF_LAYER_CHANGES,
                                O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (layers->changes_fd < 0 || !has_attributes(layers->changes_fd))
        return copy_instead(why, size,
                            "the file system of the workspace has no extended attributes; TMPDIR "
                            "may name a directory on another one");
    return 0;
}

static int fill_hidden(const struct pf_layers *layers, const struct pinfold_seed_request *request,
                       struct pinfold_seed_result *ret_result, char *why, size_t size,
                       struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    PF_CLEANUP(pf_globs_freep) struct pf_globs *exclude = NULL;
    _cleanup_close_ int hidden_fd = openat(layers->host_fd, PF_LAYER_HIDDEN,
                                           O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct pf_copy_result seen = { 0 };
    int r = pf_globs_new(request->exclude, &exclude, err);

    if (r < 0)
        return r;
    r = pf_hide_tree(&(struct pf_copy_options){ .src_fd = layers->seed_fd,
                                                .dst_fd = hidden_fd,
                                                .src_name = request->source,
                                                .dst_name = "the workspace",
                                                .exclude = exclude,
                                                .on_progress = request->on_progress,
                                                .on_progress_ctx = request->on_progress_ctx,
                                                .cancel = cancel },
                     &seen, why, size, err);
    if (r != 0)
        return r;
    ret_result->files_seeded = seen.files;
    ret_result->bytes_seeded = seen.bytes;
    ret_result->skipped_paths = seen.skipped;
    ret_result->errors = seen.errors;
    return 0;
}

/* Returns 1 for what the copier shall judge: it has the words for a seed that cannot be. */
static int open_seed(struct pf_layers *layers, const struct pinfold_seed_request *request,
                     char *why, size_t size)
{
    enum pf_root_relation relation;

    layers->seed_fd = pf_root_open(request->source, false, NULL, NULL);
    if (layers->seed_fd < 0)
        return copy_instead(why, size, "the seed cannot be opened");
    if (pf_roots_relation(layers->seed_fd, layers->host_fd, &relation, NULL) < 0 ||
        relation != PF_ROOTS_APART)
        return copy_instead(why, size, "the seed and the workspace are not apart");
    if (!is_empty(layers->host_fd))
        return copy_instead(why, size, "the workspace is not empty");
    return 0;
}

int pf_layers_make(struct pf_layers *layers, int host_fd,
                   const struct pinfold_seed_request *request,
                   struct pinfold_seed_result *ret_result, char *why, size_t size,
                   struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    int r;

    layers->host_fd = fcntl(host_fd, F_DUPFD_CLOEXEC, 0);
    if (layers->host_fd < 0)
        return pf_fail_os(err, errno, "open the workspace");
    r = open_seed(layers, request, why, size);
    if (r == 0)
        r = make_directories(layers, why, size);
    if (r == 0)
        r = fill_hidden(layers, request, ret_result, why, size, cancel, err);
    if (r != 0)
        pf_layers_done(layers, true);
    return r;
}

bool pf_layers_hide(int root_fd, const struct pinfold_seed_result *result)
{
    enum { ENOUGH = 16 };

    for (size_t i = 0; i < result->skipped_paths.count && i < ENOUGH; i++) {
        _cleanup_free_ char *path = strdup(result->skipped_paths.items[i]);
        size_t len = path ? strlen(path) : 0;
        int fd;
        if (!path)
            return false;
        if (len > 0 && path[len - 1] == '/')
            path[len - 1] = '\0';
        fd = pf_beneath_open(root_fd, path, O_PATH | O_NOFOLLOW, 0);
        if (fd >= 0)
            close(fd);
        if (fd != -ENOENT && fd != -ENAMETOOLONG)
            return false;
    }
    return true;
}

bool pf_layers_on(const struct pf_layers *layers, const char *dest)
{
    struct stat seed, there;

    return layers->made && fstat(layers->seed_fd, &seed) == 0 && stat(dest, &there) == 0 &&
           seed.st_dev == there.st_dev && seed.st_ino == there.st_ino;
}

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

void pf_layers_done(struct pf_layers *layers, bool all)
{
    close_fd(&layers->changes_fd);
    close_fd(&layers->seed_fd);
    if (layers->made) {
        pf_tree_remove(layers->host_fd, PF_LAYER_HIDDEN, NULL);
        pf_tree_remove(layers->host_fd, PF_LAYER_WORK, NULL);
        if (all)
            pf_tree_remove(layers->host_fd, PF_LAYER_CHANGES, NULL);
        layers->made = false;
    }
    close_fd(&layers->host_fd);
}
