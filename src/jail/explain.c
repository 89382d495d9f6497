/* SPDX-License-Identifier: Apache-2.0 */
#include "jail/explain.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
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

const char *pf_jail_switched_off(void)
{
    for (size_t i = 0; i < PF_COUNT(switches); i++)
        if (read_number(switches[i].path) == switches[i].bad)
            return switches[i].advice;
    return NULL;
}

const char *pf_jail_explain(int sys_errno)
{
    const char *advice;

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
               "--security-opt systempaths=unconfined";
    }
}
