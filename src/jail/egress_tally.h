/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Between the proxy and whoever keeps a record of it: an agent decides how many events there are,
 * and must not fill its owner's disk with them. The first of a kind are told one by one; what comes
 * too fast is counted, and told as one event with that count. Nothing is lost without a number.
 *
 * Pure but for the call that tells; one thread.
 */
#ifndef PF_JAIL_EGRESS_TALLY_H
#define PF_JAIL_EGRESS_TALLY_H

#include "jail/egress.h"
#include "jail/egress_address.h"

#define PF_TALLY_SLOTS 32                /* destinations that are told apart at a time */
#define PF_TALLY_EACH 5                  /* told of one destination before it is counted */
#define PF_TALLY_BURST 64                /* told of all together, and one more each second */
#define PF_TALLY_PERIOD_NS 10000000000LL /* what was counted is told after so long */

struct pf_tally_slot {
    bool used;
    enum pf_egress_event_kind kind;
    char host[PF_EGRESS_NAME_MAX + 1];
    uint16_t port;
    const char *protocol; /* of the last one; static */
    char reason[400];     /* likewise */
    unsigned told;
    uint64_t held;
    int64_t due;
};

struct pf_tally {
    pf_egress_event_fn tell; /* NULL: nobody listens, and nothing is counted */
    void *ctx;
    int64_t due; /* of the first slot that is; PF_NEVER when all are empty */
    int64_t filled_at;
    int tokens;
    uint64_t others[PF_EGRESS_KINDS]; /* counted without their destination */
    int64_t others_due;
    struct pf_tally_slot slots[PF_TALLY_SLOTS];
};

void pf_tally_init(struct pf_tally *tally, pf_egress_event_fn tell, void *ctx, int64_t now);

/* An event, which is told now or counted. */
void pf_tally_add(struct pf_tally *tally, const struct pf_egress_event *event, int64_t now);

/* To be called when tally->due has come: tell what was counted. */
void pf_tally_tick(struct pf_tally *tally, int64_t now);

/* Tell all that was counted: the end. */
void pf_tally_flush(struct pf_tally *tally);

#endif
