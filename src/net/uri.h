/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PF_NET_URI_H
#define PF_NET_URI_H

#include "base/buf.h"

/* Append text with everything but A-Z a-z 0-9 - . _ ~ and what is in keep as %XX. Returns 0,
 * -PINFOLD_EVALUE past the buffer's limit, or -PINFOLD_ENOMEM. */
int pf_uri_encode(struct pf_buf *to, const char *text, size_t len, const char *keep);

#endif
