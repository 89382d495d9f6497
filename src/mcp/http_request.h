/* SPDX-License-Identifier: Apache-2.0 */
/* One request: what its headers say, and whether it may go on. */
#ifndef PF_MCP_HTTP_REQUEST_H
#define PF_MCP_HTTP_REQUEST_H

#include "mcp/http_state.h"

#define PF_HTTP_PATH "/mcp"

/* The headers that mean something here; NULL: there is none. Borrowed from the connection. */
struct pf_http_headers {
    const char *host, *origin, *authorization, *accept, *content_type, *content_length;
    const char *transfer_encoding, *session, *version, *last_event;
    bool twice; /* one of those that have to be alone was not */
};

enum pf_http_method { PF_HTTP_POST, PF_HTTP_GET, PF_HTTP_DELETE, PF_HTTP_OTHER };

/* A request under way. */
struct pf_http_request {
    struct pf_http *http;
    struct pf_http_connection *place;
    enum pf_http_method method;
    struct pf_http_token *token;     /* NULL: it was refused */
    struct pf_http_session *session; /* used; NULL: it begins one */
    unsigned stream;                 /* to go on with, from an event */
    uint64_t event;
    bool resumes;
    char *body;
    size_t len, want;
};

/* Why a request is refused. */
struct pf_http_refusal {
    unsigned status;
    const char *why;
};

void pf_http_headers_read(struct MHD_Connection *connection, struct pf_http_headers *ret);

/* Look at all but the body, and fill the request with token and session. Returns false with the
 * refusal. */
bool pf_http_request_check(struct pf_http_request *request, const char *url, const char *method,
                           const struct pf_http_headers *headers, struct pf_http_refusal *refusal);

#endif
