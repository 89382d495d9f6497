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

int pf_temp_open(struct pf_temp *temp, int dir_fd, mode_t mode)
{
    make_name(temp);
    temp->dir_fd = dir_fd;
    temp->fd =
            openat(dir_fd, temp->name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
    if (temp->fd >= 0)
        return 0;
    temp->name[0] = '\0';
    return -errno;
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

/* For file systems whose rename cannot refuse to replace. */
static int place_by_link(struct pf_temp *temp, const char *name)
{
    if (linkat(temp->dir_fd, temp->name, temp->dir_fd, name, 0) < 0)
        return -errno;
    return 0; /* pf_temp_done() removes the other name */
}

int pf_temp_place(struct pf_temp *temp, const char *name, bool exclusive)
{
    int fd = temp->fd;

    temp->fd = -1;
    if (fd >= 0 && close(fd) < 0 && errno != EINTR) /* network file systems report here */
        return -errno;
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
