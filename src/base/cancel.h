/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PF_BASE_CANCEL_H
#define PF_BASE_CANCEL_H

#include <stdint.h>

#include <pinfold/cancel.h>

/* A token that also counts as fired once parent (NULL: none) has. parent must outlive it. */
int pf_cancel_new_linked(const struct pinfold_cancel *parent, struct pinfold_cancel **ret_cancel,
                         struct pinfold_error *err);

/* A descriptor that polls readable once the token has fired; -1 for NULL. Borrowed; only to be
 * polled. */
int pf_cancel_fd(const struct pinfold_cancel *cancel);

/* 0, or -PINFOLD_ECANCELLED with err filled once the token has fired. */
int pf_cancel_check(const struct pinfold_cancel *cancel, struct pinfold_error *err);

/* Wait until a moment (CLOCK_MONOTONIC in ns, as pf_clock_deadline() gives it), or until one of two
 * tokens has fired. Either may be NULL. Returns 0, or -PINFOLD_ECANCELLED with err filled. */
int pf_cancel_wait(const struct pinfold_cancel *cancel, const struct pinfold_cancel *also,
                   int64_t until, struct pinfold_error *err);

void pf_cancel_freep(struct pinfold_cancel **cancel);

#endif
