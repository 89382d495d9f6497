/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The head of an HTTP/1 request to a proxy, read strictly: whatever two readers could understand
 * differently is refused rather than passed on. Pure functions over hostile bytes.
 */
#ifndef PF_JAIL_EGRESS_HEAD_H
#define PF_JAIL_EGRESS_HEAD_H

#include "jail/egress_address.h"

enum pf_egress_framing { PF_EGRESS_NO_BODY, PF_EGRESS_LENGTH, PF_EGRESS_CHUNKED };

struct pf_egress_head {
    bool connect; /* a tunnel; otherwise one request, to be rewritten */
    struct pf_egress_host host;
    uint16_t port;
    enum pf_egress_framing framing;
    uint64_t content_length;
    size_t len; /* bytes of the head, with the empty line */
};

/* Look for the end of a head: its length with the empty line, or 0 when there is none yet. A bare
 * LF ends a line here, so that a head of those is read, and refused, at once. *scanned says where
 * the search went on last (0 at first), so that a head that comes byte by byte costs no more. */
size_t pf_egress_head_end(const char *data, size_t len, size_t *scanned);

/* Read a whole head of len bytes. Returns NULL, or what is wrong with it: a static string. */
const char *pf_egress_head_parse(const char *data, size_t len, struct pf_egress_head *ret_head);

/* What PF_EGRESS_HEAD_MAX bytes can grow to: Host, Connection and the framing are written anew. */
#define PF_EGRESS_HEAD_GROWTH ((size_t)512)

/* Write a request that pf_egress_head_parse() took as its origin shall see it: target in origin
 * form, Host from the URL, nothing that is between the client and a proxy. Returns the length, or 0
 * when size is less than len + PF_EGRESS_HEAD_GROWTH. */
size_t pf_egress_head_rewrite(const char *data, const struct pf_egress_head *head, char *to,
                              size_t size);

/* Where a request's body ends. */
struct pf_egress_body {
    enum pf_egress_framing framing;
    uint64_t left; /* of the body, or of the chunk */
    uint8_t state;
    uint8_t digits;
};

void pf_egress_body_init(struct pf_egress_body *body, const struct pf_egress_head *head);
bool pf_egress_body_ended(const struct pf_egress_body *body);

/* How many of the next len bytes belong to the body, or -1 when its chunks are malformed. */
ssize_t pf_egress_body_take(struct pf_egress_body *body, const char *data, size_t len);

#endif
