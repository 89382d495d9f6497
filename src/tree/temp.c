/* SPDX-License-Identifier: Apache-2.0 */
#include "tree/temp.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/random.h"

static void make_name(struct pf_temp *temp)
{
    enum { DIGITS = 16 };
    char digits[DIGITS + 1];

    pf_random_hex(digits, DIGITS);
    snprintf(temp->name, sizeof(temp->name), PF_TEMP_PREFIX "%s.tmp", digits);
}

/* With a name, where the file system has no files without one. */
static int open_named(struct pf_temp *temp, mode_t mode)
{
    make_name(temp);
    temp->fd = openat(temp->dir_fd, temp->name,
                      O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
    if (temp->fd >= 0)
        return 0;
    temp->name[0] = '\0';
    return -errno;
}

int pf_temp_open(struct pf_temp *temp, int dir_fd, mode_t mode)
{
    temp->dir_fd = dir_fd;
    temp->fd = openat(dir_fd, ".", O_WRONLY | O_TMPFILE | O_CLOEXEC, mode);
    if (temp->fd >= 0)
        return 0;
    /* EISDIR: of a kernel or a file system that takes it for an ordinary open of a directory */
    return errno == EOPNOTSUPP || errno == EISDIR ? open_named(temp, mode) : -errno;
}

int pf_temp_link(struct pf_temp *temp, int dir_fd, const char *target)
{
    make_name(temp);
    temp->dir_fd = dir_fd;
    if (symlinkat(target, dir_fd, temp->name) == 0)
        return 0;
    temp->name[0] = '\0';
    return -errno;
}

/* Network file systems report late that they could not write: when a descriptor is closed. */
static int finish(struct pf_temp *temp)
{
    int fd = temp->fd;

    temp->fd = -1;
    return fd >= 0 && close(fd) < 0 && errno != EINTR ? -errno : 0;
}

/* For file systems whose rename cannot refuse to replace. */
static int place_by_link(struct pf_temp *temp, const char *name)
{
    if (linkat(temp->dir_fd, temp->name, temp->dir_fd, name, 0) < 0)
        return -errno;
    return 0; /* pf_temp_done() removes the other name */
}

/* Give a file without a name one. Returns 0 or -errno: -EEXIST when it is taken. */
static int link_unnamed(const struct pf_temp *temp, const char *name)
{
    char path[40];

    snprintf(path, sizeof(path), "/proc/self/fd/%d", temp->fd);
    return linkat(AT_FDCWD, path, temp->dir_fd, name, AT_SYMLINK_FOLLOW) < 0 ? -errno : 0;
}

int pf_temp_place(struct pf_temp *temp, const char *name, bool exclusive)
{
    int r;

    if (temp->name[0] == '\0') {
        r = link_unnamed(temp, name);
        if (r != -EEXIST || exclusive)
            return r;
        make_name(temp); /* a link never replaces, a rename does */
        r = link_unnamed(temp, temp->name);
        if (r < 0) {
            temp->name[0] = '\0';
            return r;
        }
    }
    r = finish(temp);
    if (r < 0)
        return r;
    if (renameat2(temp->dir_fd, temp->name, temp->dir_fd, name, exclusive ? RENAME_NOREPLACE : 0) <
        0)
        return exclusive && errno == EINVAL ? place_by_link(temp, name) : -errno;
    temp->name[0] = '\0';
    return 0;
}

void pf_temp_done(struct pf_temp *temp)
{
    int saved = errno;

    if (temp->fd >= 0)
        close(temp->fd);
    if (temp->name[0])
        unlinkat(temp->dir_fd, temp->name, 0);
    *temp = (struct pf_temp)PF_TEMP_INIT;
    errno = saved;
}
