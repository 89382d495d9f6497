/* SPDX-License-Identifier: Apache-2.0 */
/* Inside jail/: the owner's side of the plan. */
#ifndef PF_JAIL_COMPOSE_H
#define PF_JAIL_COMPOSE_H

#include "base/buf.h"
#include "jail/jail.h"
#include "jail/plan.h"

/* Write the plan for config, whose limits are resolved; the caller frees it. Returns 0 or a
 * negative code: -PINFOLD_EVALUE (a directory that cannot be shown), -PINFOLD_EOS, -PINFOLD_ENOMEM.
 */
int pf_plan_compose(const struct pf_jail_config *config, struct pf_plan **ret,
                    struct pinfold_error *err);

/* The parts of a plan, in the order in which they are performed: only when everything is made may
 * the root become read-only, and only what is mounted before that becomes so with it, which is
 * cheaper than one by one. */
struct pf_draft {
    struct pf_buf made, shown, mounted;
};

/* Append operations; return 0 or a negative code. Targets are absolute, as seen inside, or relative
 * to the root. */
int pf_plan_add(struct pf_draft *draft, struct pf_op op, const char *target, const char *text,
                size_t text_len);
int pf_plan_etc(struct pf_draft *draft, enum pinfold_net net);
int pf_plan_way_out(struct pf_draft *draft, bool own_etc); /* compose_net.c */

#endif
