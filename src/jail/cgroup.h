/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Control groups for a jail, where this process may make them: version 1 as root, version 2 where a
 * manager has delegated controllers. They count the sandbox as a whole, and what they count tells
 * whether a limit ended something in it.
 */
#ifndef PF_JAIL_CGROUP_H
#define PF_JAIL_CGROUP_H

#include <stdbool.h>
#include <sys/types.h>

#include <pinfold/limits.h>

#include "proc/keeper.h"

enum { PF_CGROUP_MAX = 3 }; /* directories: pids, memory and cpu, or one for all */

struct pf_cgroup {
    char *dirs[PF_CGROUP_MAX];          /* made by us; NULL when there is none */
    struct pf_kept kept[PF_CGROUP_MAX]; /* of each */
    enum pinfold_holder holder;         /* CGROUP1, CGROUP2 or NONE */
    bool limits_processes, limits_memory, limits_cpu;
    int memory_events, memory_peak; /* files that count; -1: there is none */
};

/* What has been counted since the groups were made; 0 where nothing counts. */
struct pf_cgroup_counts {
    uint64_t memory_kills; /* processes that were killed because memory_bytes were used up */
    uint64_t refused_forks;
    uint64_t peak_bytes;
};

/* Where the machine has its groups. For tests: another place, whose files are made when opened. */
struct pf_cgroup_place {
    const char *root; /* hierarchies of version 1 are directories in it, or it is version 2 */
    const char *self; /* as /proc/self/cgroup */
    int create;       /* O_CREAT or 0 */
};

/* Make groups with these limits (resolved: no zeroes but in cpus, 0 being none). Best effort: ret
 * says what they limit, and must stay where it is until it is done. Also removes groups of owners
 * that are dead and had no keeper. place NULL: this machine. */
void pf_cgroup_make(const struct pf_cgroup_place *place, const struct pinfold_limits *limits,
                    struct pf_cgroup *ret);

/* Open the ways in: a process that writes "0" to each of these is in the groups, and what it forks
 * later is too. To be put there by somebody else takes a lock that the kernel gives only after a
 * grace period of all processors, milliseconds on a busy machine; for the process itself, alone, it
 * does not (version 1). Returns how many were stored in fds, or -errno. */
int pf_cgroup_entries(const struct pf_cgroup *cgroup, int fds[static PF_CGROUP_MAX]);

/* One read each; forks only when asked for. */
void pf_cgroup_count(const struct pf_cgroup *cgroup, bool forks, struct pf_cgroup_counts *ret);

/* Remove the groups. Everything in them must be gone. A zeroed struct is not fine: its descriptors
 * would be 0; PF_CGROUP_INIT is. */
void pf_cgroup_done(struct pf_cgroup *cgroup);

#define PF_CGROUP_INIT                          \
    {                                           \
        .memory_events = -1, .memory_peak = -1, \
    }

#endif
