/* SPDX-License-Identifier: Apache-2.0 */
#include "jail/limits.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/error.h"
#include "base/number.h"

#define DEFAULT_MEMORY_BYTES (4ULL << 30)
#define DEFAULT_PROCESSES 1024
#define DEFAULT_OPEN_FILES 4096
#define DEFAULT_TMP_BYTES (1ULL << 30)

static void set_default(uint64_t *value, uint64_t fallback)
{
    if (*value == 0)
        *value = fallback;
}

void pf_limits_resolve(struct pinfold_limits *limits)
{
    uint64_t share;

    set_default(&limits->memory_bytes, DEFAULT_MEMORY_BYTES);
    /* There are three of them, and their files stay when those who wrote them are killed: together
     * they must leave some memory to processes. */
    share = limits->memory_bytes / 4;
    set_default(&limits->tmp_bytes, share < DEFAULT_TMP_BYTES ? share : DEFAULT_TMP_BYTES);
    set_default(&limits->processes, DEFAULT_PROCESSES);
    set_default(&limits->cpu_seconds, PINFOLD_UNLIMITED);
    set_default(&limits->open_files, DEFAULT_OPEN_FILES);
    set_default(&limits->file_bytes, PINFOLD_UNLIMITED);
}

/* Before Linux 6.14 there is one pid_max for the whole machine, which root's init could set. */
bool pf_limits_have_pid_max(void)
{
    struct utsname kernel;
    const char *at = kernel.release;
    uint64_t major, minor;

    return uname(&kernel) == 0 && pf_take_number(&at, UINT_MAX, &major) && *at++ == '.' &&
           pf_take_number(&at, UINT_MAX, &minor) && (major > 6 || (major == 6 && minor >= 14));
}

/* Below these a sandbox cannot run even a command that does nothing, and what happens instead says
 * little: found by trying, for each holder. */
#define LEAST_MEMORY_BYTES (1ULL << 20)
#define LEAST_PROCESSES 3           /* the first, a supervisor, the command */
#define MOST_PROCESSES (4ULL << 20) /* that any kernel numbers */
#define LEAST_OPEN_FILES 16
#define LEAST_CPUS 0.01 /* what a control group takes */
#define MOST_CPUS 100000

static int check_number(const char *name, const char *unit, uint64_t value, uint64_t least,
                        uint64_t most, struct pinfold_error *err)
{
    if (value == 0 || value == PINFOLD_UNLIMITED || (value >= least && value <= most))
        return 0;
    if (value > most)
        return pf_fail(err, PINFOLD_EVALUE,
                       "a sandbox has at most %" PRIu64 "%s%s, not %" PRIu64
                       "; or ask for unlimited",
                       most, unit, name, value);
    return pf_fail(err, PINFOLD_EVALUE,
                   "a sandbox needs at least %" PRIu64 "%s%s to run anything, not %" PRIu64, least,
                   unit, name, value);
}

int pf_limits_check(const struct pinfold_limits *limits, struct pinfold_error *err)
{
    int r = check_number("memory", " bytes of ", limits->memory_bytes, LEAST_MEMORY_BYTES,
                         PINFOLD_UNLIMITED, err);

    if (r == 0)
        r = check_number("processes", " ", limits->processes, LEAST_PROCESSES, MOST_PROCESSES, err);
    if (r == 0)
        r = check_number("open files", " ", limits->open_files, LEAST_OPEN_FILES, PINFOLD_UNLIMITED,
                         err);
    if (r < 0 || limits->cpus == 0)
        return r;
    if (!(limits->cpus >= LEAST_CPUS && limits->cpus <= MOST_CPUS)) /* not a number, too */
        return pf_fail(err, PINFOLD_EVALUE, "a sandbox has %g to %d processors (cpus), not %g",
                       LEAST_CPUS, MOST_CPUS, limits->cpus);
    return 0;
}

static enum pinfold_holder unless_unlimited(uint64_t value, enum pinfold_holder holder)
{
    return value == PINFOLD_UNLIMITED ? PINFOLD_HOLDER_NONE : holder;
}

static int hold_processes(const struct pinfold_limits *limits, const struct pf_cgroup *cgroup,
                          enum pinfold_holder *ret, struct pinfold_error *err)
{
    if (limits->processes == PINFOLD_UNLIMITED)
        *ret = PINFOLD_HOLDER_NONE;
    else if (cgroup->limits_processes)
        *ret = cgroup->holder;
    else if (geteuid() != 0)
        *ret = PINFOLD_HOLDER_RLIMIT;
    else if (pf_limits_have_pid_max())
        *ret = PINFOLD_HOLDER_PID_MAX;
    else
        return pf_fail(err, PINFOLD_ENOTSUP,
                       "start a sandbox: nothing can limit its processes: no control group could "
                       "be made, and the kernel exempts root from rlimits; run as another user, or "
                       "ask for unlimited processes");
    return 0;
}

static int hold_cpus(const struct pinfold_limits *limits, const struct pf_cgroup *cgroup,
                     enum pinfold_holder *ret, struct pinfold_error *err)
{
    if (limits->cpus > 0 && !cgroup->limits_cpu)
        return pf_fail(err, PINFOLD_ENOTSUP,
                       "start a sandbox: nothing can limit it to %g processors: no control group "
                       "with the cpu controller could be made; as root mount cgroups, as another "
                       "user start from systemd-run --user --scope -p Delegate=yes",
                       limits->cpus);
    *ret = limits->cpus > 0 ? cgroup->holder : PINFOLD_HOLDER_NONE;
    return 0;
}

int pf_limits_hold(const struct pinfold_limits *limits, const struct pf_cgroup *cgroup,
                   enum pinfold_holder *holders, struct pinfold_error *err)
{
    int r = hold_processes(limits, cgroup, &holders[PINFOLD_LIMIT_PROCESSES], err);

    if (r == 0)
        r = hold_cpus(limits, cgroup, &holders[PINFOLD_LIMIT_CPU_SHARE], err);
    holders[PINFOLD_LIMIT_TIME] = PINFOLD_HOLDER_OWNER;
    holders[PINFOLD_LIMIT_MEMORY] = unless_unlimited(
            limits->memory_bytes, cgroup->limits_memory ? cgroup->holder : PINFOLD_HOLDER_RLIMIT);
    holders[PINFOLD_LIMIT_CPU_TIME] = unless_unlimited(limits->cpu_seconds, PINFOLD_HOLDER_RLIMIT);
    holders[PINFOLD_LIMIT_OPEN_FILES] = unless_unlimited(limits->open_files, PINFOLD_HOLDER_RLIMIT);
    holders[PINFOLD_LIMIT_FILE_SIZE] = unless_unlimited(limits->file_bytes, PINFOLD_HOLDER_RLIMIT);
    holders[PINFOLD_LIMIT_TMP_SIZE] = unless_unlimited(limits->tmp_bytes, PINFOLD_HOLDER_TMPFS);
    return r;
}
