/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading text/event-stream: bytes go in as they arrive, whole events come out, as the HTML
 * standard says ("Server-sent events", 9.2.6). An event that its stream ends inside of never comes
 * out.
 *
 * One thing is not the standard's: llama.cpp reports errors on a line of their own, as a field
 * "error"; such a line is an event of type "error".
 */
#ifndef PF_NET_SSE_H
#define PF_NET_SSE_H

#include <pinfold/error.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

#define PF_SSE_EVENT_MAX ((size_t)32 * 1024 * 1024) /* and of one line */
#define PF_SSE_TYPE_MAX 64

/* One event, valid during the call. */
struct pf_sse_event {
    const char *type; /* "message" unless the stream says otherwise; cut to PF_SSE_TYPE_MAX - 1 */
    const char *data; /* NUL-terminated; bytes as they came */
    size_t len;
};

/* Return 0, or a negative code, which ends the reading; err is the call's. */
typedef int (*pf_sse_fn)(void *ctx, const struct pf_sse_event *event, struct pinfold_error *err);

struct pf_sse {
    struct pf_buf line, data;
    char type[PF_SSE_TYPE_MAX];
    bool has_data;
    bool after_cr; /* a LF that comes now belongs to it */
    bool begun;    /* the first line is over: no byte order mark can come */
};

#define PF_SSE_INIT                                                                   \
    {                                                                                 \
        .line = PF_BUF_INIT(PF_SSE_EVENT_MAX), .data = PF_BUF_INIT(PF_SSE_EVENT_MAX), \
    }

/* Take bytes in, and give whole events to fn. Returns 0, what fn returned, -PINFOLD_EBACKEND (an
 * event that is too large) or -PINFOLD_ENOMEM. */
int pf_sse_feed(struct pf_sse *sse, const void *data, size_t len, pf_sse_fn fn, void *ctx,
                struct pinfold_error *err);

/* Whether something of an event has come that is not over yet. */
bool pf_sse_inside(const struct pf_sse *sse);

void pf_sse_done(struct pf_sse *sse);

#endif
