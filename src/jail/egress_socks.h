/* SPDX-License-Identifier: Apache-2.0 */
/* SOCKS5, as far as a client that connects needs it. Pure functions over hostile bytes. */
#ifndef PF_JAIL_EGRESS_SOCKS_H
#define PF_JAIL_EGRESS_SOCKS_H

#include "jail/egress_address.h"

/* The replies of RFC 1928, 6. */
enum pf_egress_socks_reply {
    PF_SOCKS_DONE = 0,
    PF_SOCKS_REFUSED = 2,
    PF_SOCKS_UNREACHABLE = 4,
    PF_SOCKS_NO_COMMAND = 7,
    PF_SOCKS_NO_ADDRESS = 8,
};

#define PF_SOCKS_ANSWER_MAX 10

struct pf_egress_socks {
    enum { PF_SOCKS_GREETING, PF_SOCKS_LOGIN, PF_SOCKS_REQUEST, PF_SOCKS_READY } stage;
    struct pf_egress_host host; /* when ready */
    uint16_t port;
    const char *fault; /* when it has failed: a static string */
};

/* Take one message off the front of data. Returns the bytes it had, 0 when it is not whole yet, or
 * -1 with socks->fault set. Either way, answer receives what to send (maybe nothing). */
ssize_t pf_egress_socks_take(struct pf_egress_socks *socks, const uint8_t *data, size_t len,
                             uint8_t answer[static PF_SOCKS_ANSWER_MAX], size_t *ret_answer_len);

/* The answer to the request. Returns its length. */
size_t pf_egress_socks_answer(enum pf_egress_socks_reply reply,
                              uint8_t answer[static PF_SOCKS_ANSWER_MAX]);

#endif
