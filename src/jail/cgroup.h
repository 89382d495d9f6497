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

/* Make groups with these limits (already resolved: no zeroes) and put a process into them; what it
 * forks later is in them too. Best effort: ret says what is in force. Also removes groups of owners
 * that are dead. -PINFOLD_ENOMEM or 0. */
int pf_cgroup_join(uint64_t memory_bytes, uint64_t processes, pid_t pid, struct pf_cgroup *ret);

/* Remove the groups. Everything in them must be gone. */
void pf_cgroup_done(struct pf_cgroup *cgroup);

#endif
