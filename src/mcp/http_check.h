/* SPDX-License-Identifier: Apache-2.0 */
/* What the headers of a request say. No state, no allocation: strangers write these. */
#ifndef PF_MCP_HTTP_CHECK_H
#define PF_MCP_HTTP_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The names that we are asked by. A page of another site can have its own name lead to this
 * machine, but it cannot make a browser say one of ours. */
struct pf_http_names {
    const char *const *more; /* NULL-terminated, besides this machine's loopback */
    bool any_address;        /* addresses of other machines, too: no site has one for its name */
};

/* Whether a Host header, or an Origin, is one of ours. */
bool pf_http_host_ok(const struct pf_http_names *names, const char *host);
bool pf_http_origin_ok(const struct pf_http_names *names, const char *origin);

/* Whether an Accept header takes a type, such as "text/event-stream". */
bool pf_http_accepts(const char *accept, const char *type);

/* Whether a Content-Type header is JSON. */
bool pf_http_is_json(const char *type);

/* Read the length of a body: digits alone. */
bool pf_http_length(const char *text, uint64_t *ret);

/* Read an id of ours, "STREAM-EVENT". */
bool pf_http_event_id(const char *text, unsigned *ret_stream, uint64_t *ret_event);

/* Whether a token is the one in "Bearer TOKEN". How long it takes depends on the length of what was
 * sent, and not on what is right about it. */
bool pf_http_bearer_is(const char *authorization, const char *token, size_t len);

#endif
