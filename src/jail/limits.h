/* SPDX-License-Identifier: Apache-2.0 */
/* Inside jail/: what the limits of a jail come to, and which mechanism holds each. */
#ifndef PF_JAIL_LIMITS_H
#define PF_JAIL_LIMITS_H

#include "jail/cgroup.h"

#include <pinfold/error.h>

/* Refuse what no command could run with, or no kernel takes: -PINFOLD_EVALUE. */
int pf_limits_check(const struct pinfold_limits *limits, struct pinfold_error *err);

/* Replace zeroes by defaults: what has none becomes PINFOLD_UNLIMITED. cpus and workspace_bytes
 * stay as they are. */
void pf_limits_resolve(struct pinfold_limits *limits);

/* Say what holds resolved limits, given the groups that could be made. Limits that nothing would
 * hold are refused rather than forgotten: -PINFOLD_ENOTSUP. What the owner looks after is not
 * filled in. holders has PINFOLD_LIMIT_COUNT entries. */
int pf_limits_hold(const struct pinfold_limits *limits, const struct pf_cgroup *cgroup,
                   enum pinfold_holder *holders, struct pinfold_error *err);

/* The kernel does not count the processes of an owner who is root for rlimits; but the numbers for
 * them can run out. Whether they can be made to. */
bool pf_limits_have_pid_max(void);

#endif
