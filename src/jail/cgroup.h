/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Control groups for a jail, where this process may make them: version 1 as root, version 2 where a
 * manager has delegated controllers. They count the sandbox as a whole; and for an owner who is
 * root they are the only limit of processes, because the kernel exempts its uid 0 from
 * RLIMIT_NPROC.
 */
#ifndef PF_JAIL_CGROUP_H
#define PF_JAIL_CGROUP_H

#include <sys/types.h>

#include <pinfold/backend.h>

enum { PF_CGROUP_MAX = 2 }; /* pids and memory, one directory or two */

struct pf_cgroup {
    char *dirs[PF_CGROUP_MAX]; /* made by us; NULL when there is none */
    bool limits_processes, limits_memory;
};

/* Make groups with these limits (already resolved: no zeroes). Best effort: ret says what they
 * limit. Also removes groups of owners that are dead. */
void pf_cgroup_make(uint64_t memory_bytes, uint64_t processes, struct pf_cgroup *ret);

/* Open the ways in: a process that writes "0" to each of these is in the groups, and what it forks
 * later is too. To be put there by somebody else takes a lock that the kernel gives only after a
 * grace period of all processors, milliseconds on a busy machine; for the process itself, alone, it
 * does not (version 1). Returns how many were stored in fds, or -errno. */
int pf_cgroup_entries(const struct pf_cgroup *cgroup, int fds[static PF_CGROUP_MAX]);

/* Remove the groups. Everything in them must be gone. */
void pf_cgroup_done(struct pf_cgroup *cgroup);

#endif
