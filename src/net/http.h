/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One HTTP/1.1 client for everything remote: a pool of kept connections, a deadline and a token of
 * cancellation for each request, limits on what comes back. Nothing is followed, decoded or taken
 * from files on the side: no redirects, no netrc, no cookies.
 */
#ifndef PF_NET_HTTP_H
#define PF_NET_HTTP_H

#include <pinfold/cancel.h>
#include <pinfold/error.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "net/sigv4.h"

struct pf_http;

/* Give len bytes of a body. Returns how many were put there, 0 at the end, negative to give up. */
typedef ssize_t (*pf_http_read_fn)(void *ctx, void *data, size_t len);

/* Take bytes of a reply of status 2xx as they arrive. Returns 0, or a negative code, which the call
 * returns; err is the call's. */
typedef int (*pf_http_body_fn)(void *ctx, const void *data, size_t len, struct pinfold_error *err);

struct pf_http_request {
    const char *method, *url;
    const struct pf_header *headers; /* besides host and content-length */
    size_t header_count;
    const void *body; /* NULL: none, unless read_body gives it */
    size_t body_len;
    pf_http_read_fn read_body;
    void *read_ctx;
    /* It must not be acted on twice, whatever becomes of the connection. */
    bool once;
    /* A kept connection that was idle for longer is not used again: its other side may be about to
     * close it, and then nobody knows whether a request on it arrived. 0: two minutes. */
    unsigned idle_seconds;
    bool bypass_proxy;                  /* for addresses of this machine's own surroundings */
    int64_t connect_ns;                 /* to connect within; 0: 10 s */
    int64_t deadline;                   /* of all, on the monotonic clock */
    int64_t idle_ns;                    /* nothing is sent or arrives for so long; 0: no limit */
    struct pinfold_cancel *also_cancel; /* a second token; may be NULL */
    size_t response_max;                /* bytes of a body that is collected */
    pf_http_body_fn on_body;            /* NULL: the body is collected */
    void *on_body_ctx;
};

struct pf_http_response {
    int status;
    struct pf_buf headers; /* name NUL value NUL, names in lower case */
    struct pf_buf body;    /* NUL-terminated; of a status other than 2xx always collected */
};

/* Make a client. Of servers it trusts those that a file of certificates (PEM) vouches for, and no
 * others: the one that the environment names in variable, or else in SSL_CERT_FILE, or else the
 * system's. variable may be NULL. Returns 0, -PINFOLD_ENOMEM, or a failure to load libcurl. */
int pf_http_new(const char *variable, struct pf_http **ret, struct pinfold_error *err);
/* NULL is fine; no call may be under way. A fork may use and free its parent's client: connections
 * that are open stay the parent's. */
void pf_http_free(struct pf_http *http);

/* Send a request and take the reply; any thread. Any status is success. Returns 0,
 * -PINFOLD_ECANCELLED, -PINFOLD_ETIMEOUT, -PINFOLD_EOS (it failed on the way), -PINFOLD_EBACKEND (a
 * reply that is none, or too large), -PINFOLD_EVALUE (the request makes no sense), -PINFOLD_ENOMEM,
 * or what on_body returned. err->retryable says that nothing of the request can have been acted on:
 * it was not sent, or, when it is for once, not all of it. The response is empty on failure. */
int pf_http_perform(struct pf_http *http, const struct pf_http_request *request,
                    struct pf_http_response *ret, struct pinfold_cancel *cancel,
                    struct pinfold_error *err);

/* The last header of that name (in lower case), or NULL. Borrowed from the response. */
const char *pf_http_header(const struct pf_http_response *response, const char *name);

/* How long the server asks to wait, in ns: retry-after-ms, or retry-after in seconds or as a date;
 * -1 if it does not say. */
int64_t pf_http_retry_after(const struct pf_http_response *response);

/* Zeroes the body before it is freed: replies may hold credentials. */
void pf_http_response_done(struct pf_http_response *response);

#endif
