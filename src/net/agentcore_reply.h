/* SPDX-License-Identifier: Apache-2.0 */
/* Inside net/: reading what the service answers, errors and event streams. */
#ifndef PF_NET_AGENTCORE_REPLY_H
#define PF_NET_AGENTCORE_REPLY_H

#include "net/agentcore.h"

enum { PF_AGENTCORE_CODE_MAX = 64 };

/* What is wrong, in the service's words. */
struct pf_agentcore_trouble {
    char code[PF_AGENTCORE_CODE_MAX]; /* "ThrottlingException"; "" when none was given */
    struct pf_buf message;            /* as it came: for people only behind pf_quote() */
};

#define PF_AGENTCORE_TROUBLE_INIT      \
    {                                  \
        .message = PF_BUF_INIT(100000) \
    }

/* The error in a reply that is not 2xx: from the header, or the body's code, or its __type. */
void pf_agentcore_trouble_read(const struct pf_http_response *response,
                               struct pf_agentcore_trouble *ret);
bool pf_agentcore_trouble_is(const struct pf_agentcore_trouble *trouble, const char *code);
/* There is no such session any more. */
bool pf_agentcore_trouble_gone(const struct pf_agentcore_trouble *trouble);

/* The stream of a reply, as it comes in. */
struct pf_agentcore_stream {
    struct pf_event_stream events;
    struct pf_agentcore_result result;
    size_t bytes;      /* of payloads so far */
    unsigned messages; /* of any kind */
    bool failed;       /* an exception or an error came: trouble says which, and the rest is read
                          without being used, so that the connection can be kept */
    bool failed_first; /* and it was the first message: no tool has said anything */
    struct pf_agentcore_trouble trouble;
};

#define PF_AGENTCORE_STREAM_INIT                                              \
    {                                                                         \
        .events = PF_EVENT_STREAM_INIT, .trouble = PF_AGENTCORE_TROUBLE_INIT, \
    }

/* A pf_http_body_fn: ctx is the stream. */
int pf_agentcore_stream_take(void *ctx, const void *data, size_t len, struct pinfold_error *err);
/* The body is over. Returns 0, or -PINFOLD_EBACKEND when that was inside a message. */
int pf_agentcore_stream_end(const struct pf_agentcore_stream *stream, struct pinfold_error *err);
void pf_agentcore_stream_done(struct pf_agentcore_stream *stream);

#endif
