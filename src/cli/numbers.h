/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers as options have them. Each takes a value in and returns NULL, or what is wrong with it.
 */
#ifndef PF_CLI_NUMBERS_H
#define PF_CLI_NUMBERS_H

#include <stdint.h>

/* Bytes, more than 0, with a suffix that is a power of 1024. */
const char *pf_take_bytes(uint64_t *slot, const char *value);

/* Limits: bytes, or a number, both more than 0; or "unlimited", which is PINFOLD_UNLIMITED. */
const char *pf_take_byte_limit(uint64_t *slot, const char *value);
const char *pf_take_limit(uint64_t *slot, const char *value);

/* A number greater than 0 that may have a fraction. */
const char *pf_take_decimal(double *slot, double most, const char *value);

#endif
