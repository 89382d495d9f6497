/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/place.h"

#include <arpa/inet.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns whether name is an address of the family. */
static bool take_address(struct pf_place *place, bool six, const char *name, uint16_t port)
{
    if (six) {
        place->address.six.sin6_family = AF_INET6;
        place->address.six.sin6_port = htons(port);
        place->len = sizeof(place->address.six);
        if (inet_pton(AF_INET6, name, &place->address.six.sin6_addr) != 1)
            return false;
        place->loopback = IN6_IS_ADDR_LOOPBACK(&place->address.six.sin6_addr);
        return true;
    }
    place->address.four.sin_family = AF_INET;
    place->address.four.sin_port = htons(port);
    place->len = sizeof(place->address.four);
    if (inet_pton(AF_INET, name, &place->address.four.sin_addr) != 1)
        return false;
    place->loopback = ntohl(place->address.four.sin_addr.s_addr) >> 24 == 127;
    return true;
}

const char *pf_place_read(const char *text, struct pf_place *ret)
{
    const char *colon = strrchr(text, ':');
    char *end;
    long port = colon ? strtol(colon + 1, &end, 10) : -1;
    char name[INET6_ADDRSTRLEN];
    bool six;
    size_t len;

    if (!colon || colon == text || colon[1] < '0' || colon[1] > '9' || *end || port > 65535)
        return "not of the form ADDRESS:PORT, such as 127.0.0.1:8765; port 0 takes a free one";
    six = *text == '[' && colon[-1] == ']';
    len = (size_t)(colon - text) - (six ? 2 : 0);
    snprintf(name, sizeof(name), "%.*s", (int)(len < sizeof(name) ? len : 0), text + six);
    if (!six && strcmp(name, "localhost") == 0)
        snprintf(name, sizeof(name), "127.0.0.1");
    *ret = (struct pf_place){ 0 };
    return take_address(ret, six, name, (uint16_t)port)
                   ? NULL
                   : "an address is 127.0.0.1, [::1], localhost, or another in numbers";
}
