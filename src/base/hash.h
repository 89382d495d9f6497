/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PF_BASE_HASH_H
#define PF_BASE_HASH_H

#include <stddef.h>

#define PF_SHA256_HEX 64

/* SHA-256 of data as lower-case hexadecimal digits and a NUL. */
void pf_sha256_hex(const void *data, size_t len, char hex[static PF_SHA256_HEX + 1]);

#endif
