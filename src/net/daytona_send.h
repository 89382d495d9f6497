/* SPDX-License-Identifier: Apache-2.0 */
/* Inside net/: sending one request to Daytona, and what its refusals mean. */
#ifndef PF_NET_DAYTONA_SEND_H
#define PF_NET_DAYTONA_SEND_H

#include "base/cleanup.h"
#include "net/daytona.h"

/* As JSON in memory a reply takes up to some twenty times its size. Only what an agent may rightly
 * make large is let in large: lists of files, what a script says, and logs. */
#define PF_DAYTONA_REPLY_MAX ((size_t)8 << 20)
#define PF_DAYTONA_LARGE_MAX ((size_t)64 << 20)

struct pf_daytona {
    const struct pf_daytona_config *config; /* borrowed, as is http */
    struct pf_http *http;
    struct pf_buf bearer; /* the header's value */
};

struct pf_daytona_request {
    const char *method;
    const char *operation;    /* for messages */
    struct pf_buf url;        /* from its scheme to its query */
    const json_t *json;       /* the body; NULL: empty, or read_body */
    const char *content_type; /* of read_body */
    pf_http_read_fn read_body;
    void *read_ctx;
    uint64_t body_len;
    const char *accept; /* NULL: JSON */
    const char *range;  /* NULL: all of it */
    size_t reply_max;   /* 0: PF_DAYTONA_REPLY_MAX */
    pf_http_body_fn on_body;
    void *on_body_ctx;
};

#define PF_DAYTONA_URL_MAX ((size_t)64 * 1024)
#define PF_DAYTONA_REQUEST(verb, what)                                                 \
    {                                                                                  \
        .method = (verb), .operation = (what), .url = PF_BUF_INIT(PF_DAYTONA_URL_MAX), \
    }

/* A request of the enclosing block, called request. */
#define PF_DAYTONA_BEGIN(verb, what)    \
    PF_CLEANUP(pf_daytona_request_done) \
    struct pf_daytona_request request = PF_DAYTONA_REQUEST(verb, what)
void pf_daytona_request_done(struct pf_daytona_request *request);

/* Build an address: text as it is, then a value that is encoded. Returns 0, or -PINFOLD_EVALUE or
 * -PINFOLD_ENOMEM with err filled. */
int pf_daytona_url(struct pf_daytona_request *request, const char *text, const char *value,
                   struct pinfold_error *err);

/* Send it once. Any status is success; the response is the caller's then. */
int pf_daytona_send_any(struct pf_daytona *client, struct pf_daytona_request *request,
                        const struct pf_daytona_call *call, struct pf_http_response *ret,
                        struct pinfold_error *err);

/* Send it, and again where that is harmless. Returns 0 for a status of 2xx; the response is the
 * caller's then. Fails as described in net/daytona.h. */
int pf_daytona_send(struct pf_daytona *client, struct pf_daytona_request *request,
                    const struct pf_daytona_call *call, struct pf_http_response *ret,
                    struct pinfold_error *err);

/* The same for a reply that is JSON. */
int pf_daytona_send_json(struct pf_daytona *client, struct pf_daytona_request *request,
                         const struct pf_daytona_call *call, json_t **ret,
                         struct pinfold_error *err);

/* The same for one of which only the status counts. */
int pf_daytona_send_plain(struct pf_daytona *client, struct pf_daytona_request *request,
                          const struct pf_daytona_call *call, struct pinfold_error *err);

/* Fill err for a status that is no success. Returns -PINFOLD_EBACKEND or -PINFOLD_ETIMEOUT. */
int pf_daytona_refused(const struct pf_daytona *client, const char *operation,
                       const struct pf_http_response *response, struct pinfold_error *err);

/* Whether it is the status of a process. */
bool pf_daytona_is_status(const json_t *status);

/* The seconds that a 429 asks to wait, -1 when it does not say. */
int pf_daytona_retry_after(const struct pf_http_response *response);

#endif
