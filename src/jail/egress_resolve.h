/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One name being resolved, with c-ares: getaddrinfo() blocks, and is not to be had in a static
 * program. Everything it waits for shows as one readable descriptor.
 */
#ifndef PF_JAIL_EGRESS_RESOLVE_H
#define PF_JAIL_EGRESS_RESOLVE_H

#include <pinfold/error.h>

#include "jail/egress_address.h"

#define PF_EGRESS_ADDRESSES 16 /* more of a name are not tried */

struct pf_egress_lookup;

/* Ask for a name that the rules allow. servers is NULL for the system's.
 *
 * Each lookup reads the system's configuration anew: a sandbox outlives a change of networks.
 *
 * Returns 0, -PINFOLD_EOS or -PINFOLD_ENOMEM. */
int pf_egress_lookup_new(const char *name, const char *servers,
                         struct pf_egress_lookup **ret_lookup, struct pinfold_error *err);
void pf_egress_lookup_free(struct pf_egress_lookup *lookup);

int pf_egress_lookup_fd(const struct pf_egress_lookup *lookup);

/* When pf_egress_lookup_work() is to be called even if the descriptor is quiet. */
int64_t pf_egress_lookup_deadline(const struct pf_egress_lookup *lookup);

/* Go on. True when it is over: either there are addresses, or there is a fault. */
bool pf_egress_lookup_work(struct pf_egress_lookup *lookup);

size_t pf_egress_lookup_addresses(const struct pf_egress_lookup *lookup,
                                  const struct pf_egress_ip **ret_ips);
const char *pf_egress_lookup_fault(const struct pf_egress_lookup *lookup);

#endif
