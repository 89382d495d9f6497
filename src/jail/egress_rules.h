/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which destinations an owner allows: the one place where that is decided.
 *
 * A name is checked before it is resolved, and each address it has is checked before it is dialled.
 */
#ifndef PF_JAIL_EGRESS_RULES_H
#define PF_JAIL_EGRESS_RULES_H

#include "jail/egress.h"
#include "jail/egress_address.h"

/* Whether a request may go on, and if not, why. */
struct pf_egress_verdict {
    bool allowed;
    char reason[400]; /* one line that names the entry that would allow it */
};

/* A destination as it was asked for. An allowed name is still to be resolved. */
struct pf_egress_verdict pf_egress_rules_host(const struct pf_egress_rules *rules,
                                              const struct pf_egress_host *host, uint16_t port);

/* An address that is about to be dialled, for host (its text alone is used, for the reason). own
 * says whether it belongs to this machine. */
struct pf_egress_verdict pf_egress_rules_address(const struct pf_egress_rules *rules,
                                                 const struct pf_egress_host *host,
                                                 const struct pf_egress_ip *ip, uint16_t port,
                                                 bool own);

const struct pf_egress_tuning *pf_egress_rules_tuning(const struct pf_egress_rules *rules);

#endif
