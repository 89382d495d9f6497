/* SPDX-License-Identifier: Apache-2.0 */
#include "net/uri.h"

#include <arpa/inet.h>
#include <string.h>
#include <strings.h>

static bool is_unreserved(unsigned char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.' || c == '_' || c == '~';
}

int pf_uri_encode(struct pf_buf *to, const char *text, size_t len, const char *keep)
{
    static const char digits[] = "0123456789ABCDEF";
    int r = 0;

    for (size_t i = 0; i < len && r == 0; i++) {
        unsigned char c = (unsigned char)text[i];
        const char encoded[3] = { '%', digits[c >> 4], digits[c & 15] };

        if (is_unreserved(c) || (c != '\0' && strchr(keep, c)))
            r = pf_buf_append(to, text + i, 1);
        else
            r = pf_buf_append(to, encoded, sizeof(encoded));
    }
    return r;
}

bool pf_host_is_near(const char *host, size_t len)
{
    char text[64];
    struct in_addr v4;

    if (len >= sizeof(text))
        return false;
    memcpy(text, host, len);
    text[len] = '\0';
    if (strcasecmp(text, "localhost") == 0 || strcmp(text, "[::1]") == 0 ||
        strcmp(text, "::1") == 0)
        return true;
    return inet_pton(AF_INET, text, &v4) == 1 && ntohl(v4.s_addr) >> 24 == 127;
}
