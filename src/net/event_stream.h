/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading application/vnd.amazon.eventstream: bytes go in as they arrive, whole messages come out.
 * Strict: a checksum that is wrong, a length that cannot be, or an end inside a message is an
 * error.
 */
#ifndef PF_NET_EVENT_STREAM_H
#define PF_NET_EVENT_STREAM_H

#include <pinfold/error.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

/* The service sends a file of 35 MB in one message of 47 MB. */
#define PF_EVENT_MESSAGE_MAX ((size_t)192 * 1024 * 1024)
#define PF_EVENT_HEADERS_MAX ((size_t)128 * 1024)

/* One message, valid until the next call. Text is not NUL-terminated. */
struct pf_event {
    const unsigned char *headers, *payload;
    size_t headers_len, payload_len;
};

struct pf_event_text {
    const char *data; /* NULL: no such header, or none that is text */
    size_t len;
};

struct pf_event_stream {
    struct pf_buf buf;
    size_t used; /* of the buffer, by the message given last */
};

#define PF_EVENT_STREAM_INIT                         \
    {                                                \
        .buf = PF_BUF_INIT(2 * PF_EVENT_MESSAGE_MAX) \
    }

/* Take bytes in. Returns 0 or -PINFOLD_ENOMEM, with err filled. */
int pf_event_stream_feed(struct pf_event_stream *stream, const void *data, size_t len,
                         struct pinfold_error *err);

/* Returns 1 and the next message, 0 when more bytes are needed, or -PINFOLD_EBACKEND, after which
 * the stream is of no use. */
int pf_event_stream_next(struct pf_event_stream *stream, struct pf_event *ret,
                         struct pinfold_error *err);

/* The stream has ended: 0, or -PINFOLD_EBACKEND when it did so inside a message. */
int pf_event_stream_end(const struct pf_event_stream *stream, struct pinfold_error *err);

/* A header that is text, by its whole name. */
struct pf_event_text pf_event_header(const struct pf_event *event, const char *name);

void pf_event_stream_done(struct pf_event_stream *stream);

#endif
