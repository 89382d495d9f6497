/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The workspace as an overlay: the seed read-only at the bottom, on it a layer that hides parts of
 * it, on top what the agent changes. The kernel shows the names of the layers to everybody inside,
 * in /proc/self/mountinfo; so they are names that say nothing.
 */
#include "jail/init.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "jail/jail.h"

static const char step[] = "mount the overlay on the seed";

/* By its path: a descriptor of the owner's would show the mounts of the host, of which no overlay
 * can be made here. */
static int open_seed(const struct pf_plan *plan)
{
    const char *path = (const char *)plan + plan->seed_at;
    int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0)
        init_no_overlay(step, "");
    if (st.st_dev != plan->seed_dev || st.st_ino != plan->seed_ino) {
        errno = ESTALE;
        init_no_overlay(step, "");
    }
    return fd;
}

/* "hidden:/proc/self/fd/N". The numbers here have one digit or two: little is open. */
static void put_lower(char text[static 64], int seed)
{
    static const char start[] = PF_LAYER_HIDDEN ":/proc/self/fd/";
    size_t at = 0;

    for (; start[at]; at++)
        text[at] = start[at];
    if (seed > 9)
        text[at++] = (char)('0' + seed / 10);
    text[at++] = (char)('0' + seed % 10);
    text[at] = '\0';
}

int init_overlay(const struct pf_plan *plan)
{
    int seed = open_seed(plan), fs = (int)syscall(SYS_fsopen, "overlay", FSOPEN_CLOEXEC), fd;
    char lower[64];
    /* Marks in user.* attributes, as trusted.* is not for user namespaces. With it no redirect and
     * no metacopy is followed, whatever attributes the seed has. */
    const char *const options[][2] = { { "lowerdir", lower },
                                       { "upperdir", PF_LAYER_CHANGES },
                                       { "workdir", PF_LAYER_WORK } };

    if (fs < 0)
        init_no_overlay(step, "");
    put_lower(lower, seed);
    for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
        if (syscall(SYS_fsconfig, fs, FSCONFIG_SET_STRING, options[i][0], options[i][1], 0) < 0)
            init_no_overlay(step, options[i][0]);
    if (syscall(SYS_fsconfig, fs, FSCONFIG_SET_FLAG, "userxattr", NULL, 0) < 0 ||
        syscall(SYS_fsconfig, fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
        init_no_overlay(step, "");
    fd = (int)syscall(SYS_fsmount, fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
    if (fd < 0)
        init_no_overlay(step, "");
    close(fs);
    close(seed);
    return fd;
}

void init_give_root(void)
{
    struct mount_attr attr = { .attr_clr = MOUNT_ATTR_RDONLY };
    /* A mount of its own: it stays when the jail goes, and writable where commands may only read.
     */
    int fd = (int)syscall(SYS_open_tree, AT_FDCWD, &PF_JAIL_WORKSPACE[1],
                          OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);

    if (fd < 0 || syscall(SYS_mount_setattr, fd, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0)
        init_no_overlay(step, "for the host's side");
    init_send(PF_INIT_ROOT, fd);
    close(fd);
}
