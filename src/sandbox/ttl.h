/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PF_SANDBOX_TTL_H
#define PF_SANDBOX_TTL_H

#include <stdint.h>

#include <pinfold/error.h>

/* Seconds to nanoseconds; PF_NEVER for more than 285 years. -PINFOLD_EVALUE unless more than 0. */
int pf_ttl_ns(double seconds, int64_t *ret, struct pinfold_error *err);

#endif
