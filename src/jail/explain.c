/* SPDX-License-Identifier: Apache-2.0 */
#include "jail/explain.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

/* A number out of /proc, or -1. */
static long read_number(const char *path)
{
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    char text[32];
    ssize_t len = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

    if (len <= 0)
        return -1;
    text[len] = '\0';
    return strtol(text, NULL, 10);
}

static const struct {
    const char *path;
    long bad;
    const char *advice;
} switches[] = {
    { "/proc/sys/kernel/unprivileged_userns_clone", 0,
      "user namespaces are off: sysctl kernel.unprivileged_userns_clone=1" },
    { "/proc/sys/kernel/apparmor_restrict_unprivileged_userns", 1,
      "AppArmor restricts user namespaces: sysctl kernel.apparmor_restrict_unprivileged_userns=0" },
    { "/proc/sys/user/max_user_namespaces", 0,
      "user namespaces are off: sysctl user.max_user_namespaces=10000" },
    { "/proc/sys/user/max_mnt_namespaces", 0,
      "mount namespaces are off: sysctl user.max_mnt_namespaces=10000" },
    { "/proc/sys/user/max_pid_namespaces", 0,
      "process namespaces are off: sysctl user.max_pid_namespaces=10000" },
    { "/proc/sys/user/max_net_namespaces", 0,
      "network namespaces are off: sysctl user.max_net_namespaces=10000" },
    { "/proc/sys/user/max_ipc_namespaces", 0,
      "ipc namespaces are off: sysctl user.max_ipc_namespaces=10000" },
    { "/proc/sys/user/max_uts_namespaces", 0,
      "uts namespaces are off: sysctl user.max_uts_namespaces=10000" },
    { "/proc/sys/user/max_cgroup_namespaces", 0,
      "cgroup namespaces are off: sysctl user.max_cgroup_namespaces=10000" },
};

static bool same_file(const char *a, const char *b)
{
    struct stat one, other;

    /* What cannot be looked at is no proof. */
    return stat(a, &one) < 0 || stat(b, &other) < 0 ||
           (one.st_dev == other.st_dev && one.st_ino == other.st_ino);
}

/* The kernel makes no user namespace for a process whose root is not that of its mount namespace.
 * Then mostly no mount is at "/", and otherwise the first process has another root; in a chroot
 * that is a mount an ordinary user, and who has a mount namespace of his own, does not see it. */
static bool is_chrooted(void)
{
    struct statx root;

    if (statx(AT_FDCWD, "/", 0, 0, &root) == 0 &&
        (root.stx_attributes_mask & ~root.stx_attributes & STATX_ATTR_MOUNT_ROOT))
        return true;
    return same_file("/proc/1/ns/mnt", "/proc/self/ns/mnt") && !same_file("/proc/1/root", "/");
}

const char *pf_jail_switched_off(void)
{
    if (is_chrooted())
        return "this process is in a chroot, in which Linux makes no user namespaces: start it "
               "outside, or enter the tree by pivot_root as containers do";
    if (access("/proc/self", F_OK) < 0)
        return "/proc is not mounted, or not that of this process namespace: mount -t proc proc "
               "/proc";
    for (size_t i = 0; i < PF_COUNT(switches); i++)
        if (read_number(switches[i].path) == switches[i].bad)
            return switches[i].advice;
    return NULL;
}

const char *pf_jail_explain(int sys_errno)
{
    const char *advice;

    if (sys_errno == ENOENT && access("/proc/self", F_OK) < 0)
        return pf_jail_switched_off();
    if (sys_errno != EPERM && sys_errno != EACCES && sys_errno != ENOSPC && sys_errno != EINVAL &&
        sys_errno != ENOSYS)
        return "";
    advice = pf_jail_switched_off();
    if (advice)
        return advice;
    switch (sys_errno) {
    case ENOSPC:
        return "too many namespaces, or too deep: see sysctl user.max_user_namespaces";
    case EINVAL:
    case ENOSYS:
        return "the kernel is too old or built without it: Linux 5.12 with namespaces is needed";
    default:
        return "in a container, run that with --security-opt seccomp=unconfined "
               "--security-opt systempaths=unconfined; in a chroot it cannot be: start it outside";
    }
}
