/* SPDX-License-Identifier: Apache-2.0 */
#include "jail/egress_address.h"

#include <arpa/inet.h>
#include <string.h>

#include "base/cleanup.h"

#define IP(size, ...)                           \
    {                                           \
        .len = (size), .bytes = { __VA_ARGS__ } \
    }
#define V4(...) IP(4, __VA_ARGS__)
#define V6(...) IP(16, __VA_ARGS__)

/* The first row that an address is in counts, so the narrow ones come first. */
static const struct pf_egress_range special4[] = {
    { V4(169, 254, 169, 254), 32, "a cloud metadata service" },
    { V4(169, 254, 170, 2), 32, "a cloud metadata service" },
    { V4(169, 254, 170, 23), 32, "a cloud metadata service" },
    { V4(100, 100, 100, 200), 32, "a cloud metadata service" },
    { V4(168, 63, 129, 16), 32, "a cloud metadata service" },
    { V4(192, 0, 0, 192), 32, "a cloud metadata service" },
    { V4(255, 255, 255, 255), 32, "the broadcast address" },
    { V4(0), 8, "an unspecified address" },
    { V4(10), 8, "a private network" },
    { V4(100, 64), 10, "a provider's private network" },
    { V4(127), 8, "this machine's loopback" },
    { V4(169, 254), 16, "a link-local address" },
    { V4(172, 16), 12, "a private network" },
    { V4(192, 0, 0), 24, "reserved for protocols" },
    { V4(192, 0, 2), 24, "a documentation address" },
    { V4(192, 88, 99), 24, "a 6to4 relay" },
    { V4(192, 168), 16, "a private network" },
    { V4(198, 18), 15, "a benchmark network" },
    { V4(198, 51, 100), 24, "a documentation address" },
    { V4(203, 0, 113), 24, "a documentation address" },
    { V4(224), 4, "a multicast address" },
    { V4(240), 4, "a reserved address" },
};

static const struct pf_egress_range special6[] = {
    { V6(0), 128, "the unspecified address" },
    { V6(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1), 128, "this machine's loopback" },
    { V6(0xfd, 0x00, 0x0e, 0xc2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x02, 0x54), 128,
      "a cloud metadata service" },
    { V6(0xfd, 0x00, 0x0e, 0xc2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x23), 128,
      "a cloud metadata service" },
    { V6(0xfd, 0x20, 0x00, 0xce, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x02, 0x54), 128,
      "a cloud metadata service" },
    { V6(0x00, 0x64, 0xff, 0x9b, 0, 1), 48, "a local NAT64 network" },
    { V6(0x20, 0x01, 0x0d, 0xb8), 32, "a documentation address" },
    { V6(0x20, 0x01), 23, "reserved for protocols" },
    { V6(0x3f, 0xff), 20, "a documentation address" },
    { V6(0xfc), 7, "a private network" },
    { V6(0xfe, 0x80), 10, "a link-local address" },
    { V6(0xfe, 0xc0), 10, "a site-local address" },
    { V6(0xff), 8, "a multicast address" },
    /* Only 2000::/3 has been given out. */
    { V6(0x00), 3, "a reserved address" },
    { V6(0x40), 2, "a reserved address" },
    { V6(0x80), 1, "a reserved address" },
};

/* IPv6 addresses that carry an IPv4 address, at the byte given. */
static const struct carrier {
    struct pf_egress_range range;
    int at;
    uint8_t flip; /* Teredo writes its client inverted */
} carriers[] = {
    { { V6(0x00, 0x64, 0xff, 0x9b), 96, "NAT64 to an address that is not public" }, 12, 0 },
    { { V6(0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff), 96, "IPv4 that is not public, translated" },
      12,
      0 },
    { { V6(0x20, 0x02), 16, "6to4 to an address that is not public" }, 2, 0 },
    { { V6(0x20, 0x01, 0, 0), 32, "Teredo to an address that is not public" }, 12, 0xff },
    { { V6(0x20, 0x01, 0, 0), 32, "Teredo by a server that is not public" }, 4, 0 },
};

void pf_egress_ip_from_bytes(const void *bytes, size_t len, struct pf_egress_ip *ret_ip)
{
    static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
    const uint8_t *from = bytes;

    if (len == 16 && memcmp(from, mapped, sizeof mapped) == 0) {
        from += 12;
        len = 4;
    }
    *ret_ip = (struct pf_egress_ip){ .len = (uint8_t)len };
    memcpy(ret_ip->bytes, from, len);
}

bool pf_egress_ip_from_sockaddr(const struct sockaddr *from, struct pf_egress_ip *ret_ip)
{
    if (from->sa_family == AF_INET) {
        const struct sockaddr_in *in = (const void *)from;

        pf_egress_ip_from_bytes(&in->sin_addr, 4, ret_ip);
        return true;
    }
    if (from->sa_family == AF_INET6) {
        const struct sockaddr_in6 *in6 = (const void *)from;

        pf_egress_ip_from_bytes(&in6->sin6_addr, 16, ret_ip);
        return true;
    }
    return false;
}

socklen_t pf_egress_ip_to_sockaddr(const struct pf_egress_ip *ip, uint16_t port,
                                   struct sockaddr_storage *ret_to)
{
    memset(ret_to, 0, sizeof *ret_to);
    if (ip->len == 4) {
        struct sockaddr_in *in = (void *)ret_to;

        in->sin_family = AF_INET;
        in->sin_port = htons(port);
        memcpy(&in->sin_addr, ip->bytes, 4);
        return sizeof *in;
    }
    struct sockaddr_in6 *in6 = (void *)ret_to;

    in6->sin6_family = AF_INET6;
    in6->sin6_port = htons(port);
    memcpy(&in6->sin6_addr, ip->bytes, 16);
    return sizeof *in6;
}

bool pf_egress_ip_parse(const char *text, size_t len, struct pf_egress_ip *ret_ip)
{
    char copy[PF_EGRESS_IP_TEXT];
    uint8_t bytes[16];

    if (len == 0 || len >= sizeof copy || memchr(text, 0, len))
        return false;
    memcpy(copy, text, len);
    copy[len] = 0;
    /* inet_pton is the strict one: no octal, no hexadecimal, no short forms, no zones. */
    if (inet_pton(AF_INET, copy, bytes) == 1)
        pf_egress_ip_from_bytes(bytes, 4, ret_ip);
    else if (inet_pton(AF_INET6, copy, bytes) == 1)
        pf_egress_ip_from_bytes(bytes, 16, ret_ip);
    else
        return false;
    return true;
}

void pf_egress_ip_format(const struct pf_egress_ip *ip, char text[static PF_EGRESS_IP_TEXT])
{
    inet_ntop(ip->len == 4 ? AF_INET : AF_INET6, ip->bytes, text, PF_EGRESS_IP_TEXT);
}

bool pf_egress_ip_equal(const struct pf_egress_ip *a, const struct pf_egress_ip *b)
{
    return a->len == b->len && memcmp(a->bytes, b->bytes, a->len) == 0;
}

bool pf_egress_ip_within(const struct pf_egress_ip *ip, const struct pf_egress_ip *net, int bits)
{
    size_t whole = (size_t)bits / 8;
    unsigned rest = (unsigned)bits % 8;

    if (ip->len != net->len || memcmp(ip->bytes, net->bytes, whole) != 0)
        return false;
    return rest == 0 || ((ip->bytes[whole] ^ net->bytes[whole]) >> (8 - rest)) == 0;
}

static const struct pf_egress_range *find_range(const struct pf_egress_range *table, size_t count,
                                                const struct pf_egress_ip *ip)
{
    for (size_t i = 0; i < count; i++) {
        if (pf_egress_ip_within(ip, &table[i].net, table[i].bits))
            return &table[i];
    }
    return NULL;
}

static bool carries_special(const struct pf_egress_ip *ip, int at, uint8_t flip)
{
    struct pf_egress_ip inner = { .len = 4 };

    for (int i = 0; i < 4; i++)
        inner.bytes[i] = ip->bytes[at + i] ^ flip;
    return find_range(special4, PF_COUNT(special4), &inner);
}

const struct pf_egress_range *pf_egress_ip_special(const struct pf_egress_ip *ip)
{
    static const struct pf_egress_range isatap = { V6(0), 128, "ISATAP to an address not public" };
    const struct pf_egress_range *found;
    bool carrier = false;

    if (ip->len == 4)
        return find_range(special4, PF_COUNT(special4), ip);
    for (size_t i = 0; i < PF_COUNT(carriers); i++) {
        const struct carrier *row = &carriers[i];

        if (!pf_egress_ip_within(ip, &row->range.net, row->range.bits))
            continue;
        if (carries_special(ip, row->at, row->flip))
            return &row->range;
        carrier = true;
    }
    found = carrier ? NULL : find_range(special6, PF_COUNT(special6), ip);
    /* ISATAP can be in any prefix: it shows in the second half, "[02]00:5efe" and the address. No
     * network lies within its range, which leaves the entries for one address. */
    if (!found && (ip->bytes[8] & 0xfd) == 0 && memcmp(ip->bytes + 9, "\0\x5e\xfe", 3) == 0 &&
        carries_special(ip, 12, 0))
        return &isatap;
    return found;
}

bool pf_egress_port_parse(const char *text, size_t len, uint16_t *ret_port)
{
    unsigned port = 0;

    if (len == 0 || len > 5 || text[0] == '0')
        return false;
    for (size_t i = 0; i < len; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
        port = port * 10 + (unsigned)(text[i] - '0');
    }
    if (port > UINT16_MAX)
        return false;
    *ret_port = (uint16_t)port;
    return true;
}

/* Whether the last label is a number, decimal or hexadecimal: no top level domain is, and what a
 * resolver makes of such a name ("127.1") is an address. */
static bool ends_in_number(const char *name)
{
    const char *dot = strrchr(name, '.');
    const char *last = dot ? dot + 1 : name;

    if (last[0] == '0' && last[1] == 'x')
        return last[2 + strspn(last + 2, "0123456789abcdef")] == 0;
    return last[strspn(last, "0123456789")] == 0;
}

/* Lower-case a name into to, or say what is wrong with it. */
static const char *copy_name(const char *text, size_t len, char *to)
{
    size_t label = 0;

    for (size_t i = 0; i < len; i++) {
        char c = text[i];

        if (c >= 'A' && c <= 'Z')
            c = (char)(c - 'A' + 'a');
        if (c == '.') {
            if (label == 0)
                return "an empty label in the name";
            label = 0;
        } else if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_') {
            if (++label > 63)
                return "a label of more than 63 bytes in the name";
        } else if (c == '*') {
            return "a '*' that is not the whole first label of the name, as in *.example.org";
        } else if (c & 0x80) {
            return "a name that is not ASCII: its form in DNS begins with xn--";
        } else {
            return "a byte in the name that no host name has";
        }
        to[i] = c;
    }
    to[len] = 0;
    return label == 0 ? "an empty label in the name" : NULL;
}

static bool fault(const char **ret_fault, const char *what)
{
    *ret_fault = what;
    return false;
}

bool pf_egress_host_parse(const char *text, size_t len, struct pf_egress_host *ret_host,
                          const char **ret_fault)
{
    struct pf_egress_host host = { 0 };
    const char *wrong;

    if (pf_egress_ip_parse(text, len, &host.ip)) {
        host.is_ip = true;
        pf_egress_ip_format(&host.ip, host.text);
        *ret_host = host;
        return true;
    }
    if (len > 0 && text[len - 1] == '.')
        len--;
    if (len == 0)
        return fault(ret_fault, "no host name");
    if (len > PF_EGRESS_NAME_MAX)
        return fault(ret_fault, "a host name of more than 253 bytes");
    wrong = copy_name(text, len, host.text);
    if (wrong)
        return fault(ret_fault, wrong);
    if (ends_in_number(host.text))
        return fault(ret_fault, "an address that is not in its plain form");
    *ret_host = host;
    return true;
}

bool pf_egress_authority_parse(const char *text, size_t len, uint16_t default_port,
                               struct pf_egress_host *ret_host, uint16_t *ret_port,
                               const char **ret_fault)
{
    bool brackets = len > 0 && text[0] == '[';
    const char *end = text + len;
    const char *host = text + brackets;
    const char *host_end = memchr(host, brackets ? ']' : ':', (size_t)(end - host));
    const char *colon;

    if (brackets && !host_end)
        return fault(ret_fault, "no ']' after '['");
    if (!host_end)
        host_end = end;
    colon = host_end + brackets;
    *ret_port = default_port;
    if (colon < end) {
        if (*colon != ':' || !pf_egress_port_parse(colon + 1, (size_t)(end - colon - 1), ret_port))
            return fault(ret_fault, "no port from 1 to 65535 after the host");
    } else if (default_port == 0) {
        return fault(ret_fault, "no port after the host");
    }
    /* Brackets are for IPv6 and for nothing else. */
    if (brackets && !memchr(host, ':', (size_t)(host_end - host)))
        return fault(ret_fault, "no IPv6 address between the brackets");
    return pf_egress_host_parse(host, (size_t)(host_end - host), ret_host, ret_fault);
}
