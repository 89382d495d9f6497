/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a request wants to go: names and addresses as they are written, and what kind of address
 * one is. Pure functions over hostile bytes; nothing here resolves or connects.
 */
#ifndef PF_JAIL_EGRESS_ADDRESS_H
#define PF_JAIL_EGRESS_ADDRESS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

/* An address of either family. An IPv4 address mapped into IPv6 is kept as the IPv4 address that
 * it is, so that ::ffff:127.0.0.1 is the loopback everywhere. */
struct pf_egress_ip {
    uint8_t len; /* 4 or 16 */
    uint8_t bytes[16];
};

#define PF_EGRESS_IP_TEXT 46   /* INET6_ADDRSTRLEN */
#define PF_EGRESS_NAME_MAX 253 /* what DNS can carry */

/* A destination: an address, or a name that has not been resolved. */
struct pf_egress_host {
    bool is_ip;
    struct pf_egress_ip ip;
    char text[PF_EGRESS_NAME_MAX + 1]; /* lower case, no trailing dot; or the canonical address */
};

/* A range of addresses that are not of the public Internet. */
struct pf_egress_range {
    struct pf_egress_ip net;
    int bits;
    const char *what; /* "a private network", for messages */
};

void pf_egress_ip_from_bytes(const void *bytes, size_t len, struct pf_egress_ip *ret_ip);

/* False for a family that is not IP. */
bool pf_egress_ip_from_sockaddr(const struct sockaddr *from, struct pf_egress_ip *ret_ip);
socklen_t pf_egress_ip_to_sockaddr(const struct pf_egress_ip *ip, uint16_t port,
                                   struct sockaddr_storage *ret_to);

/* Four decimal numbers, or IPv6 without brackets and without a zone; nothing else. */
bool pf_egress_ip_parse(const char *text, size_t len, struct pf_egress_ip *ret_ip);
void pf_egress_ip_format(const struct pf_egress_ip *ip, char text[static PF_EGRESS_IP_TEXT]);
bool pf_egress_ip_equal(const struct pf_egress_ip *a, const struct pf_egress_ip *b);

/* Whether the first bits bits of ip are those of net; false between families. */
bool pf_egress_ip_within(const struct pf_egress_ip *ip, const struct pf_egress_ip *net, int bits);

/* The narrowest special range that ip is in, or NULL when it is an address of the public Internet.
 * An address that carries an IPv4 address (NAT64, 6to4, Teredo, ISATAP) is what it carries. */
const struct pf_egress_range *pf_egress_ip_special(const struct pf_egress_ip *ip);

/* Read a name or an address. False, with a sentence in *ret_fault, for what is neither: odd bytes,
 * an address in a form that only some resolvers understand (127.1, 0x7f.0.0.1, 2130706433), a zone.
 * A fault is a static string. */
bool pf_egress_host_parse(const char *text, size_t len, struct pf_egress_host *ret_host,
                          const char **ret_fault);

/* Read "host:port", "[v6]:port" and, where default_port is not 0, "host" and "[v6]". */
bool pf_egress_authority_parse(const char *text, size_t len, uint16_t default_port,
                               struct pf_egress_host *ret_host, uint16_t *ret_port,
                               const char **ret_fault);

/* A number from 1 to 65535 in plain digits. */
bool pf_egress_port_parse(const char *text, size_t len, uint16_t *ret_port);

#endif
