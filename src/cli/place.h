/* SPDX-License-Identifier: Apache-2.0 */
/* Where a server listens: what --http and http.listen say. */
#ifndef PF_CLI_PLACE_H
#define PF_CLI_PLACE_H

#include <netinet/in.h>
#include <stdbool.h>
#include <sys/socket.h>

struct pf_place {
    union {
        struct sockaddr any;
        struct sockaddr_in four;
        struct sockaddr_in6 six;
    } address;
    socklen_t len;
    bool loopback; /* it is of this machine alone */
};

/* Read "127.0.0.1:8765", "[::1]:8765" or "localhost:8765"; no name is looked up. Returns NULL, or
 * what is wrong with it. */
const char *pf_place_read(const char *text, struct pf_place *ret);

#endif
