/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PF_BASE_BASE64_H
#define PF_BASE_BASE64_H

#include "base/buf.h"

/* Append data in base64, on one line, padded. Returns 0, -PINFOLD_EVALUE past the buffer's limit,
 * or -PINFOLD_ENOMEM. */
int pf_base64_encode(const void *data, size_t len, struct pf_buf *to);

/* Append what base64 text stands for; white space in it does not count. Returns 0, -PINFOLD_EVALUE
 * (it is not base64, or not whole, or past the buffer's limit) or -PINFOLD_ENOMEM. */
int pf_base64_decode(const char *text, size_t len, struct pf_buf *to);

#endif
