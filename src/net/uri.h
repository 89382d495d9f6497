/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PF_NET_URI_H
#define PF_NET_URI_H

#include <stdbool.h>

#include "base/buf.h"

/* Append text with everything but A-Z a-z 0-9 - . _ ~ and what is in keep as %XX. Returns 0,
 * -PINFOLD_EVALUE past the buffer's limit, or -PINFOLD_ENOMEM. */
int pf_uri_encode(struct pf_buf *to, const char *text, size_t len, const char *keep);

/* Whether a host of len bytes, as it stands in an address, is this machine: nothing that a resolver
 * could make something else of. libcurl gives "localhost" to no resolver. */
bool pf_host_is_near(const char *host, size_t len);

#endif
