/* SPDX-License-Identifier: Apache-2.0 */
/* Giving everything up: after this PID 1 and all that it ever starts can only run programs. */
#include "jail/init.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <linux/securebits.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "seccomp_filter.h"

/* The hard limit is a grace above the soft one. */
static void limit_softly(int resource, uint64_t value, uint64_t grace, const char *name)
{
    struct rlimit now;
    rlim_t soft = value, hard = value > UINT64_MAX - grace ? RLIM_INFINITY : value + grace;

    if (getrlimit(resource, &now) < 0)
        init_fail("read the limit", name);
    if (hard > now.rlim_max) /* what the owner may not have, nobody inside may */
        hard = now.rlim_max;
    if (soft > hard)
        soft = hard;
    now = (struct rlimit){ soft, hard };
    if (setrlimit(resource, &now) < 0)
        init_fail("set the limit", name);
}

static void limit(int resource, uint64_t value, const char *name)
{
    limit_softly(resource, value, 0, name);
}

_Static_assert(RLIM_INFINITY == UINT64_MAX, "no limit is the same number on both sides");

static void set_limits(const struct pf_plan *plan, const struct pf_init_groups *groups)
{
    /* Not 0, with which core dumps are still piped to a handler that runs as root on the host; of 1
     * byte neither a handler nor a file gets any. */
    limit(RLIMIT_CORE, 1, "of core dumps");
    limit(RLIMIT_NPROC, groups->processes, "of processes");
    /* SIGXCPU comes first, which tells what it was; a second later SIGKILL. */
    limit_softly(RLIMIT_CPU, plan->cpu_seconds, 1, "of processor time");
    limit(RLIMIT_NOFILE, plan->open_files, "of open files");
    limit(RLIMIT_FSIZE, plan->file_bytes, "of the size of files");
    /* Not the address space, of which many programs reserve more than they ever use. */
    limit(RLIMIT_DATA, groups->data_bytes, "of memory");
}

void init_empty_bounding_set(void)
{
    for (unsigned long cap = 0; cap < 64; cap++)
        if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0) {
            if (errno == EINVAL && cap > CAP_AUDIT_READ)
                break; /* beyond the last one of this kernel */
            init_fail("empty the bounding set", "of capabilities");
        }
}

static void drop_capabilities(void)
{
    enum {
        BITS = SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP |
               SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_KEEP_CAPS_LOCKED |
               SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED,
    };
    struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
    const struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = { 0 };

    if (prctl(PR_SET_SECUREBITS, (unsigned long)BITS, 0, 0, 0) < 0)
        init_fail("lock the securebits", "");
    if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0 ||
        syscall(SYS_capset, &header, none) < 0)
        init_fail("give up the capabilities", "");
}

static void install(const struct sock_filter *filter, size_t count)
{
    const struct sock_fprog program = { (unsigned short)count,
                                        (struct sock_filter *)(uintptr_t)filter };

    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0)
        init_fail("install the seccomp filter (CONFIG_SECCOMP_FILTER)", "");
}

void init_lock(const struct pf_plan *plan, const struct pf_init_groups *groups)
{
    static const struct sock_filter filter[] = { PF_SECCOMP_FILTER };
    static const struct sock_filter alone[] = { PF_SECCOMP_ALONE };

    set_limits(plan, groups);
    /* Owned by nobody of the jail: its memory, descriptors and root are closed to all inside, and
     * to those forked from it until they execute. */
    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
        init_fail("close its own memory", "");
    drop_capabilities();
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        init_fail("refuse new privileges", "");
    init_landlock(plan);
    if (plan->alone)
        install(alone, PF_COUNT(alone));
    install(filter, PF_COUNT(filter));
}
