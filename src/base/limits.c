/* SPDX-License-Identifier: Apache-2.0 */
#include <pinfold/limits.h>

#include "base/cleanup.h"

const char *pinfold_limit_name(enum pinfold_limit limit)
{
    static const char *const names[] = {
        [PINFOLD_LIMIT_NONE] = "none",
        [PINFOLD_LIMIT_TIME] = "time",
        [PINFOLD_LIMIT_MEMORY] = "memory",
        [PINFOLD_LIMIT_PROCESSES] = "processes",
        [PINFOLD_LIMIT_CPU_TIME] = "cpu time",
        [PINFOLD_LIMIT_CPU_SHARE] = "cpu share",
        [PINFOLD_LIMIT_OPEN_FILES] = "open files",
        [PINFOLD_LIMIT_FILE_SIZE] = "file size",
        [PINFOLD_LIMIT_TMP_SIZE] = "tmp size",
        [PINFOLD_LIMIT_WORKSPACE] = "workspace",
        [PINFOLD_LIMIT_DISK] = "disk",
    };

    _Static_assert(PF_COUNT(names) == PINFOLD_LIMIT_COUNT, "each limit has a name");
    return (unsigned)limit < PF_COUNT(names) ? names[limit] : names[0];
}

const char *pinfold_holder_name(enum pinfold_holder holder)
{
    static const char *const names[] = {
        [PINFOLD_HOLDER_NONE] = "none",         [PINFOLD_HOLDER_CGROUP2] = "cgroup v2",
        [PINFOLD_HOLDER_CGROUP1] = "cgroup v1", [PINFOLD_HOLDER_RLIMIT] = "rlimit",
        [PINFOLD_HOLDER_PID_MAX] = "pid_max",   [PINFOLD_HOLDER_TMPFS] = "tmpfs",
        [PINFOLD_HOLDER_OWNER] = "owner",
    };

    return (unsigned)holder < PF_COUNT(names) ? names[holder] : names[0];
}
