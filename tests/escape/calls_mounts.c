/* SPDX-License-Identifier: Apache-2.0 */
/* New namespaces, and everything that changes a tree of mounts. */
#include "calls.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static long new_namespace(int flag)
{
    return unshare(flag == CLONE_NEWUSER ? flag : NEW_USER_AND(flag));
}

static long unshare_user(void)
{
    return new_namespace(CLONE_NEWUSER);
}
static long unshare_mount(void)
{
    return new_namespace(CLONE_NEWNS);
}
static long unshare_pid(void)
{
    return new_namespace(CLONE_NEWPID);
}
static long unshare_net(void)
{
    return new_namespace(CLONE_NEWNET);
}
static long unshare_ipc(void)
{
    return new_namespace(CLONE_NEWIPC);
}
static long unshare_uts(void)
{
    return new_namespace(CLONE_NEWUTS);
}
static long unshare_cgroup(void)
{
    return new_namespace(CLONE_NEWCGROUP);
}
static long unshare_time(void)
{
    return new_namespace(CLONE_NEWTIME);
}

static long wait_if_parent(long pid)
{
    if (pid == 0)
        _exit(0);
    if (pid > 0)
        waitpid((pid_t)pid, NULL, __WALL);
    return pid;
}

static long clone_user(void)
{
    return wait_if_parent(syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0));
}

static long clone_high_bits(void) /* the kernel looks at the lower half alone */
{
    return wait_if_parent(
            syscall(SYS_clone, 0xffffffff00000000UL | CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0));
}

static long clone3_user(void)
{
    struct clone_args args = { .flags = CLONE_NEWUSER, .exit_signal = SIGCHLD };

    return wait_if_parent(syscall(SYS_clone3, &args, sizeof(args)));
}

static long setns_pid1(void)
{
    int fd = open("/proc/1/ns/mnt", O_RDONLY);

    return fd < 0 ? -1 : setns(fd, 0);
}

static long setns_pidfd(void)
{
    int fd = (int)syscall(SYS_pidfd_open, getppid(), 0);

    return fd < 0 ? -1 : setns(fd, CLONE_NEWNS);
}

/* As if the filter had let it: so that the mounts below are tried in either case. */
static void hide(void)
{
    if (own_namespace(CLONE_NEWNS))
        mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);
}

static long mount_tmpfs(void)
{
    hide();
    return mount("x", "/tmp", "tmpfs", 0, NULL);
}
static long mount_proc(void)
{
    hide();
    return mount("x", "/tmp", "proc", 0, NULL);
}
static long mount_bind(void)
{
    hide();
    return mount("/usr", "/tmp", NULL, MS_BIND | MS_REC, NULL);
}

static long mount_overlay(void)
{
    hide();
    return mount("x", "/tmp", "overlay", 0, "lowerdir=/usr:/proc");
}

static long remount_root(void)
{
    hide();
    return mount(NULL, "/", NULL, MS_REMOUNT | MS_BIND | MS_NOSUID | MS_NODEV | MS_RELATIME, NULL);
}

static long remount_usr(void)
{
    hide();
    mount("/usr", "/usr", NULL, MS_BIND | MS_REC, NULL);
    return mount(NULL, "/usr", NULL, MS_REMOUNT | MS_BIND | MS_NOSUID | MS_NODEV | MS_RELATIME,
                 NULL);
}

static long make_shared(void)
{
    hide();
    return mount(NULL, "/", NULL, MS_SHARED | MS_REC, NULL);
}

static long unmount_mask(void)
{
    hide();
    mount("/dev/null", "/proc/keys", NULL, MS_BIND, NULL);
    return umount2("/proc/keys", MNT_DETACH);
}

static long unmount_proc(void)
{
    hide();
    mount("x", "/tmp", "tmpfs", 0, NULL);
    return umount2("/tmp", MNT_DETACH);
}

static long fs_open(void)
{
    hide();
    return syscall(SYS_fsopen, "tmpfs", 0);
}

static long fs_config(void) /* the overflow of CVE-2022-0185 starts so */
{
    hide();
    long fd = syscall(SYS_fsopen, "tmpfs", 0);
    return syscall(SYS_fsconfig, fd, 1, "mode", "0700", 0);
}

static long open_tree_clone(void)
{
    hide();
    return syscall(SYS_open_tree, AT_FDCWD, "/usr", 1 /* OPEN_TREE_CLONE */);
}

static long move_mount_tree(void)
{
    hide();
    long tree = syscall(SYS_open_tree, AT_FDCWD, "/usr", 1 | AT_RECURSIVE);
    return syscall(SYS_move_mount, tree, "", AT_FDCWD, "/tmp", 4 /* MOVE_MOUNT_F_EMPTY_PATH */);
}

static long mount_attributes(void)
{
    uint64_t attr[4] = { 0, 0, 0, 0 };

    hide();
    return syscall(SYS_mount_setattr, AT_FDCWD, "/", 0, attr, sizeof(attr));
}

static long pivot(void)
{
    hide();
    mount("x", "/tmp", "tmpfs", 0, NULL);
    return chdir("/tmp") < 0 ? -1 : syscall(SYS_pivot_root, ".", ".");
}

/* The classic: a root below the working directory, whose .. then leads out. */
static long chroot_breakout(void)
{
    hide();
    return chroot("/tmp");
}

const struct attack mounts_attacks[] = {
    ATTACK(unshare_user),    ATTACK(unshare_mount),   ATTACK(unshare_pid),
    ATTACK(unshare_net),     ATTACK(unshare_ipc),     ATTACK(unshare_uts),
    ATTACK(unshare_cgroup),  ATTACK(unshare_time),    ATTACK(clone_user),
    ATTACK(clone_high_bits), ATTACK(clone3_user),     ATTACK(setns_pid1),
    ATTACK(setns_pidfd),     ATTACK(mount_tmpfs),     ATTACK(mount_proc),
    ATTACK(mount_bind),      ATTACK(mount_overlay),   ATTACK(remount_root),
    ATTACK(remount_usr),     ATTACK(make_shared),     ATTACK(unmount_mask),
    ATTACK(unmount_proc),    ATTACK(fs_open),         ATTACK(fs_config),
    ATTACK(open_tree_clone), ATTACK(move_mount_tree), ATTACK(mount_attributes),
    ATTACK(pivot),           ATTACK(chroot_breakout), { NULL, NULL },
};
