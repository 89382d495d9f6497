/* SPDX-License-Identifier: Apache-2.0 */
/* Inside net/: what is sent to the service, before it is signed. */
#ifndef PF_NET_AGENTCORE_REQUEST_H
#define PF_NET_AGENTCORE_REQUEST_H

#include "net/agentcore.h"

struct pf_agentcore_request {
    const char *method;
    const char *operation; /* for messages */
    struct pf_buf path;    /* encoded once */
    struct pf_buf query;   /* without '?'; may be empty */
    struct pf_buf body;
    bool has_body;
    bool runs;                                     /* sent twice, something could run twice */
    const char *session, *trace_id, *trace_parent; /* headers; may be NULL, borrowed */
};

#define PF_AGENTCORE_BODY_MAX ((size_t)200 * 1024 * 1024)
#define PF_AGENTCORE_REQUEST_INIT                              \
    {                                                          \
        .path = PF_BUF_INIT(8192), .query = PF_BUF_INIT(8192), \
        .body = PF_BUF_INIT(PF_AGENTCORE_BODY_MAX),            \
    }

/* Fill a request that was initialised as above. Each returns 0, -PINFOLD_EVALUE (too large, or text
 * that is not UTF-8) or -PINFOLD_ENOMEM. */
int pf_agentcore_request_start(struct pf_agentcore_request *request, const char *identifier,
                               json_t *members, struct pinfold_error *err);
int pf_agentcore_request_stop(struct pf_agentcore_request *request, const char *identifier,
                              const char *session, const char *token, struct pinfold_error *err);
int pf_agentcore_request_get(struct pf_agentcore_request *request, const char *identifier,
                             const char *session, struct pinfold_error *err);
int pf_agentcore_request_list(struct pf_agentcore_request *request, const char *identifier,
                              json_t *members, struct pinfold_error *err);
int pf_agentcore_request_invoke(struct pf_agentcore_request *request, const char *identifier,
                                const char *session, const char *tool, json_t *arguments,
                                struct pinfold_error *err);
void pf_agentcore_request_done(struct pf_agentcore_request *request);

/* A random UUID of version 4. */
enum { PF_UUID_MAX = 37 };
void pf_agentcore_uuid(char ret[static PF_UUID_MAX]);

#endif
