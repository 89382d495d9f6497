/* SPDX-License-Identifier: Apache-2.0 */
/* Listing one directory. */
#include "tree/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "tree/beneath.h"
#include "tree/place.h"

enum { BATCH = 64 * 1024 };

struct listing {
    int root_fd, dir_fd;
    const char *path;
    struct pinfold_file_infos infos;
    size_t capacity;
};

/* Look through a link, as far as it stays beneath the root. */
static void follow(const struct listing *listing, struct pinfold_file_info *info)
{
    _cleanup_close_ int fd = pf_beneath_open(listing->root_fd, info->path, O_PATH, 0);
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0)
        return;
    info->is_dir = S_ISDIR(st.st_mode);
    if (S_ISREG(st.st_mode))
        info->size = st.st_size;
}

static int add(struct listing *listing, const char *name)
{
    struct pinfold_file_info info = { .size = -1 }, *items;
    size_t capacity = listing->capacity ? listing->capacity * 2 : 16;
    struct stat st;
    bool top = strcmp(listing->path, ".") == 0;

    if (fstatat(listing->dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return 0; /* it has vanished, or nothing can be said about it */
    if (listing->infos.count == listing->capacity) {
        items = reallocarray(listing->infos.items, capacity, sizeof(*items));
        if (!items)
            return -ENOMEM;
        listing->infos.items = items;
        listing->capacity = capacity;
    }
    if (asprintf(&info.path, "%s%s%s", top ? "" : listing->path, top ? "" : "/", name) < 0)
        return -ENOMEM;
    info.is_dir = S_ISDIR(st.st_mode);
    if (S_ISREG(st.st_mode))
        info.size = st.st_size;
    if (S_ISLNK(st.st_mode))
        follow(listing, &info);
    listing->infos.items[listing->infos.count++] = info;
    return 0;
}

static bool is_dot(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* Returns 1 at the end, 0 to go on, or -errno. */
static int list_batch(struct listing *listing, char *batch)
{
    ssize_t len = getdents64(listing->dir_fd, batch, BATCH);
    int r = 0;

    if (len <= 0)
        return len < 0 ? -errno : 1;
    for (ssize_t at = 0; at < len && r == 0;) {
        const struct dirent64 *entry = (const struct dirent64 *)(const void *)(batch + at);

        at += entry->d_reclen;
        if (!is_dot(entry->d_name))
            r = add(listing, entry->d_name);
    }
    return r;
}

static void listing_done(struct listing *listing)
{
    if (listing->dir_fd >= 0)
        close(listing->dir_fd);
    pinfold_file_infos_done(&listing->infos);
}

int pf_dir_list(int root_fd, const char *path, struct pinfold_file_infos *ret,
                struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    __attribute__((cleanup(listing_done))) struct listing listing = { .root_fd = root_fd,
                                                                      .path = path,
                                                                      .dir_fd = -1 };
    _cleanup_free_ char *batch = malloc(BATCH);
    int r;

    if (!batch)
        return pf_fail_nomem(err);
    listing.dir_fd = pf_beneath_open(root_fd, path, O_RDONLY | O_DIRECTORY | O_NONBLOCK, 0);
    if (listing.dir_fd < 0)
        return pf_fail_at(err, -listing.dir_fd, "list directory", path);
    do {
        r = pf_cancel_check(cancel, err);
        if (r < 0)
            return r;
        r = list_batch(&listing, batch);
        if (r < 0)
            return pf_fail_at(err, -r, "list directory", path);
    } while (r == 0);
    pf_infos_sort(&listing.infos);
    *ret = listing.infos;
    listing.infos = (struct pinfold_file_infos){ .items = NULL };
    return 0;
}

/* ---- in order ---- */

static int compare(const void *a, const void *b)
{
    const struct pinfold_file_info *left = a, *right = b;

    return strcmp(left->path, right->path);
}

void pf_infos_sort(struct pinfold_file_infos *infos)
{
    size_t sorted = 1;

    while (sorted < infos->count && compare(&infos->items[sorted - 1], &infos->items[sorted]) <= 0)
        sorted++;
    if (sorted < infos->count)
        qsort(infos->items, infos->count, sizeof(*infos->items), compare);
}

static int compare_path(const void *path, const void *info)
{
    return strcmp(path, ((const struct pinfold_file_info *)info)->path);
}

const struct pinfold_file_info *pf_infos_find(const struct pinfold_file_infos *infos,
                                              const char *path)
{
    return infos->count == 0
                   ? NULL
                   : bsearch(path, infos->items, infos->count, sizeof(*infos->items), compare_path);
}
