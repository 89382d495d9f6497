/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PF_BASE_CANCEL_H
#define PF_BASE_CANCEL_H

#include <pinfold/cancel.h>

/* A descriptor that polls readable once the token has fired; -1 for NULL. Borrowed. */
int pf_cancel_fd(const struct pinfold_cancel *cancel);

/* 0, or -PINFOLD_ECANCELLED with err filled once the token has fired. */
int pf_cancel_check(const struct pinfold_cancel *cancel, struct pinfold_error *err);

#endif
