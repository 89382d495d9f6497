/* SPDX-License-Identifier: Apache-2.0 */
#include "tree/dirs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"

enum { KEEP_OPEN = 16 }; /* innermost levels that keep their descriptor */

static int open_level(const struct pf_dirs *dirs, int parent_fd, const char *name)
{
    int flags = dirs->open_flags | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    int fd = openat(parent_fd, name, flags);

    return fd < 0 ? -errno : fd;
}

static bool is_level(const struct pf_dirs_level *level, int fd)
{
    struct stat st;

    return fstat(fd, &st) == 0 && st.st_dev == level->dev && st.st_ino == level->ino;
}

static int grow(struct pf_dirs *dirs)
{
    size_t capacity = dirs->capacity ? dirs->capacity * 2 : 32;
    struct pf_dirs_level *levels;

    if (dirs->count < dirs->capacity)
        return 0;
    levels = reallocarray(dirs->levels, capacity, sizeof(*levels));
    if (!levels)
        return -ENOMEM;
    dirs->levels = levels;
    dirs->capacity = capacity;
    return 0;
}

static int add_level(struct pf_dirs *dirs, int parent_fd, const char *name)
{
    _cleanup_close_ int fd = open_level(dirs, parent_fd, name);
    struct pf_dirs_level *far;
    struct stat st;

    if (fd < 0)
        return fd;
    if (fstat(fd, &st) < 0)
        return -errno;
    if (grow(dirs) < 0)
        return -ENOMEM;
    dirs->levels[dirs->count++] = (struct pf_dirs_level){
        .fd = TAKE_FD(fd),
        .path_len = dirs->path.len,
        .dev = st.st_dev,
        .ino = st.st_ino,
        .mode = st.st_mode,
    };
    if (dirs->count > KEEP_OPEN + 1) {
        far = &dirs->levels[dirs->count - 1 - KEEP_OPEN];
        if (far->fd >= 0)
            close(far->fd);
        far->fd = -1;
    }
    return 0;
}

int pf_dirs_init(struct pf_dirs *dirs, int root_fd, int open_flags)
{
    *dirs = (struct pf_dirs){
        .open_flags = open_flags,
        .path = PF_BUF_INIT(PF_BUF_UNLIMITED),
    };
    if (pf_buf_reserve(&dirs->path, 1) < 0)
        return -ENOMEM;
    return add_level(dirs, root_fd, ".");
}

void pf_dirs_done(struct pf_dirs *dirs)
{
    for (size_t i = 0; i < dirs->count; i++)
        if (dirs->levels[i].fd >= 0)
            close(dirs->levels[i].fd);
    free(dirs->levels);
    pf_buf_done(&dirs->path);
    *dirs = (struct pf_dirs){ .open_flags = 0 };
}

static void cut_path(struct pf_dirs *dirs, size_t len)
{
    dirs->path.len = len;
    dirs->path.data[len] = '\0';
}

int pf_dirs_push(struct pf_dirs *dirs, const char *name)
{
    size_t before = dirs->path.len;
    int r = 0;

    if (pf_dirs_top(dirs)->fd < 0)
        return -ESTALE;
    if (before > 0)
        r = pf_buf_append(&dirs->path, "/", 1);
    if (r == 0)
        r = pf_buf_append_text(&dirs->path, name);
    r = r < 0 ? -ENOMEM : add_level(dirs, pf_dirs_top(dirs)->fd, name);
    if (r < 0)
        cut_path(dirs, before);
    return r;
}

/* The way that remains when a directory was moved while we were inside it. */
static int reopen_by_names(struct pf_dirs *dirs)
{
    _cleanup_free_ char *names = strdup(dirs->path.data);
    char *save = NULL;
    int fd = dirs->levels[0].fd, next;

    if (!names)
        return -ENOMEM;
    for (char *name = strtok_r(names, "/", &save); name; name = strtok_r(NULL, "/", &save)) {
        next = open_level(dirs, fd, name);
        if (fd != dirs->levels[0].fd)
            close(fd);
        if (next < 0)
            return next;
        fd = next;
    }
    return fd;
}

int pf_dirs_pop(struct pf_dirs *dirs)
{
    _cleanup_close_ int child_fd = pf_dirs_top(dirs)->fd;
    struct pf_dirs_level *level;
    int fd = -ESTALE;

    dirs->count--;
    level = pf_dirs_top(dirs);
    cut_path(dirs, level->path_len);
    if (level->fd >= 0)
        return 0;
    if (child_fd >= 0)
        fd = open_level(dirs, child_fd, "..");
    if (fd < 0 || !is_level(level, fd)) {
        if (fd >= 0)
            close(fd);
        fd = reopen_by_names(dirs);
        if (fd >= 0 && !is_level(level, fd)) {
            close(fd);
            fd = -ESTALE;
        }
    }
    if (fd < 0)
        return fd;
    level->fd = fd;
    return PF_DIRS_REOPENED;
}
