/* SPDX-License-Identifier: Apache-2.0 */
/* Names, addresses and what kind of address one is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "jail/egress_address.h"

static struct pf_egress_ip ip(const char *text)
{
    struct pf_egress_ip parsed;

    if (!pf_egress_ip_parse(text, strlen(text), &parsed))
        fail_msg("%s is an address", text);
    return parsed;
}

static void the_edges_of_every_special_range_are_special(void **state)
{
    /* first and last address of the range, the one before and the one after where they are public
     */
    static const char *const rows[][4] = {
        { "0.0.0.0", "0.255.255.255", NULL, "1.0.0.0" },
        { "10.0.0.0", "10.255.255.255", "9.255.255.255", "11.0.0.0" },
        { "100.64.0.0", "100.127.255.255", "100.63.255.255", "100.128.0.0" },
        { "127.0.0.0", "127.255.255.255", "126.255.255.255", "128.0.0.0" },
        { "169.254.0.0", "169.254.255.255", "169.253.255.255", "169.255.0.0" },
        { "172.16.0.0", "172.31.255.255", "172.15.255.255", "172.32.0.0" },
        { "192.0.0.0", "192.0.0.255", "191.255.255.255", "192.0.1.0" },
        { "192.0.2.0", "192.0.2.255", "192.0.1.255", "192.0.3.0" },
        { "192.88.99.0", "192.88.99.255", "192.88.98.255", "192.88.100.0" },
        { "192.168.0.0", "192.168.255.255", "192.167.255.255", "192.169.0.0" },
        { "198.18.0.0", "198.19.255.255", "198.17.255.255", "198.20.0.0" },
        { "198.51.100.0", "198.51.100.255", "198.51.99.255", "198.51.101.0" },
        { "203.0.113.0", "203.0.113.255", "203.0.112.255", "203.0.114.0" },
        { "224.0.0.0", "239.255.255.255", "223.255.255.255", NULL },
        { "240.0.0.0", "255.255.255.255", NULL, NULL },
        { "168.63.129.16", "168.63.129.16", "168.63.129.15", "168.63.129.17" },
        { "::", "1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", NULL, "2000::" },
        { "2001:1::", "2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff", NULL, "2001:200::" },
        { "2001:db8::", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff",
          "2001:db7:ffff:ffff:ffff:ffff:ffff:ffff", "2001:db9::" },
        { "3fff::", "3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff",
          "3ffe:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "3fff:1000::" },
        { "4000::", "7fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", NULL, NULL },
        { "8000::", "fbff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", NULL, NULL },
        { "fc00::", "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", NULL, NULL },
        { "fe80::", "febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff", NULL, NULL },
        { "fec0::", "feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", NULL, NULL },
        { "ff00::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", NULL, NULL },
        { "64:ff9b:1::", "64:ff9b:1:ffff:ffff:ffff:ffff:ffff", NULL, NULL },
    };

    (void)state;
    for (size_t i = 0; i < PF_COUNT(rows); i++) {
        for (int edge = 0; edge < 4; edge++) {
            struct pf_egress_ip at;

            if (!rows[i][edge])
                continue;
            at = ip(rows[i][edge]);
            if ((pf_egress_ip_special(&at) != NULL) != (edge < 2))
                fail_msg("%s is %s", rows[i][edge], edge < 2 ? "special" : "public");
        }
    }
}

/* Every special IPv4 address, in every form that carries one, is special there too. */
static void addresses_inside_addresses_are_looked_at(void **state)
{
    static const uint8_t inner[][5] = {
        { 127, 0, 0, 1, 1 },   { 10, 1, 2, 3, 1 },        { 172, 16, 0, 1, 1 },
        { 192, 168, 1, 1, 1 }, { 169, 254, 169, 254, 1 }, { 100, 64, 0, 1, 1 },
        { 224, 0, 0, 1, 1 },   { 255, 255, 255, 255, 1 }, { 0, 0, 0, 0, 1 },
        { 8, 8, 8, 8, 0 },     { 93, 184, 216, 34, 0 },   { 1, 1, 1, 1, 0 },
    };
    static const char *const forms[] = {
        "::ffff:%d.%d.%d.%d",
        "64:ff9b::%02x%02x:%02x%02x",
        "::ffff:0:%02x%02x:%02x%02x",
        "2002:%02x%02x:%02x%02x::1",
        "2001:0:808:808:0:0:%02x%02x:%02x%02x", /* Teredo: written inverted */
        "2001:0:%02x%02x:%02x%02x:0:0:f7f7:f7f7",
        "2a00:1450:1:2:0:5efe:%02x%02x:%02x%02x",
        "2a00:1450:1:2:200:5efe:%02x%02x:%02x%02x",
    };

    (void)state;
    for (size_t form = 0; form < PF_COUNT(forms); form++) {
        for (size_t i = 0; i < PF_COUNT(inner); i++) {
            unsigned flip = form == 4 ? 0xff : 0;
            struct pf_egress_ip at;
            char text[64];

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
            snprintf(text, sizeof text, forms[form], inner[i][0] ^ flip, inner[i][1] ^ flip,
                     inner[i][2] ^ flip, inner[i][3] ^ flip);
#pragma GCC diagnostic pop
            at = ip(text);
            if ((pf_egress_ip_special(&at) != NULL) != inner[i][4])
                fail_msg("%s is %s", text, inner[i][4] ? "special" : "public");
        }
    }
}

static void a_mapped_address_is_the_address_it_maps(void **state)
{
    struct pf_egress_ip mapped = ip("::ffff:10.1.2.3");
    struct pf_egress_ip plain = ip("10.1.2.3");
    char text[PF_EGRESS_IP_TEXT];

    (void)state;
    assert_true(pf_egress_ip_equal(&mapped, &plain));
    pf_egress_ip_format(&mapped, text);
    assert_string_equal(text, "10.1.2.3");
}

static void the_metadata_services_are_called_that(void **state)
{
    static const char *const services[] = { "169.254.169.254", "169.254.170.2",
                                            "169.254.170.23",  "100.100.100.200",
                                            "168.63.129.16",   "192.0.0.192",
                                            "fd00:ec2::254",   "fd00:ec2::23",
                                            "fd20:ce::254",    "::ffff:169.254.169.254" };

    (void)state;
    for (size_t i = 0; i < PF_COUNT(services); i++) {
        struct pf_egress_ip at = ip(services[i]);

        assert_string_equal(pf_egress_ip_special(&at)->what, "a cloud metadata service");
    }
}

static void names_are_lowered_and_lose_their_last_dot(void **state)
{
    static const char *const rows[][2] = {
        { "example.org", "example.org" },
        { "WWW.Example.ORG.", "www.example.org" },
        { "_dmarc.x-y.z", "_dmarc.x-y.z" },
        { "localhost", "localhost" },
        { "1.2.3.4x", "1.2.3.4x" },
        { "0xyz", "0xyz" },
        { "xn--mnchen-3ya.de", "xn--mnchen-3ya.de" },
        { "1password.com", "1password.com" },
    };
    struct pf_egress_host host;
    const char *fault;

    (void)state;
    for (size_t i = 0; i < PF_COUNT(rows); i++) {
        assert_true(pf_egress_host_parse(rows[i][0], strlen(rows[i][0]), &host, &fault));
        assert_false(host.is_ip);
        assert_string_equal(host.text, rows[i][1]);
    }
}

static void odd_names_are_refused(void **state)
{
    static const char *const odd[] = {
        "",
        ".",
        "..",
        ".a",
        "a..b",
        "a..",
        "a b",
        "a\tb",
        "a/b",
        "a:b",
        "a@b",
        "a%00b",
        "a\r\nb",
        "a\\b",
        "a*b",
        "*.a",
        "\303\274cher.de",
        "\xe2\x93\x94.com",
        "a\x7f",
        "a;b",
        "a,b",
        "[a]",
        "a#b",
        "a?b",
        /* what some resolvers read as an address */
        "127.1",
        "127.0.1",
        "0x7f.1",
        "0x7f.0.0.1",
        "0X7F.0.0.1",
        "2130706433",
        "0x7f000001",
        "017700000001",
        "0177.0.0.1",
        "127.0.0.01",
        "127.0.0.1.",
        "127.0.0.0x1",
        "0x",
        "127.0.0.0x",
        "1.2.3.4.5",
        "256.1.1.1",
        "1.2.3.256",
        "example.123",
        "fe80::1%eth0",
        "::1%1",
        "::g",
        "1::2::3",
        ":::",
        "::ffff:127.1",
        "::ffff:0x7f.0.0.1",
    };
    struct pf_egress_host host;

    (void)state;
    for (size_t i = 0; i < PF_COUNT(odd); i++) {
        const char *fault = NULL;

        if (pf_egress_host_parse(odd[i], strlen(odd[i]), &host, &fault))
            fail_msg("\"%s\" was taken as %s", odd[i], host.text);
        assert_non_null(fault);
    }
}

static void no_byte_but_those_of_names_is_in_a_name(void **state)
{
    static const char good[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.";
    struct pf_egress_host host;
    const char *fault;

    (void)state;
    for (int byte = 0; byte < 256; byte++) {
        const char name[] = { 'a', (char)byte, 'b' };
        bool taken = pf_egress_host_parse(name, sizeof name, &host, &fault);

        assert_int_equal(taken, byte != 0 && strchr(good, byte) != NULL);
    }
}

static void names_are_as_long_as_names_may_be(void **state)
{
    char name[300];
    struct pf_egress_host host;
    const char *fault;

    (void)state;
    memset(name, 'a', sizeof name);
    for (int i = 63; i < 300; i += 64)
        name[i] = '.';
    assert_true(pf_egress_host_parse(name, 253, &host, &fault));
    assert_false(pf_egress_host_parse(name, 254, &host, &fault));
    name[63] = 'a';
    assert_false(pf_egress_host_parse(name, 80, &host, &fault));
}

static void an_authority_is_a_host_and_a_port(void **state)
{
    static const struct {
        const char *text, *host;
        uint16_t port;
    } rows[] = {
        { "a.b:1", "a.b", 1 },
        { "a.b", "a.b", 80 },
        { "[::1]:65535", "::1", 65535 },
        { "[::1]", "::1", 80 },
        { "1.2.3.4:5", "1.2.3.4", 5 },
        { "a:0", NULL, 0 },
        { "a:", NULL, 0 },
        { "a:65536", NULL, 0 },
        { "a:080", NULL, 0 },
        { "a:+80", NULL, 0 },
        { "a: 80", NULL, 0 },
        { "a:80 ", NULL, 0 },
        { "a:0x50", NULL, 0 },
        { ":80", NULL, 0 },
        { "", NULL, 0 },
        { "::1", NULL, 0 },
        { "::1:80", NULL, 0 },
        { "[::1", NULL, 0 },
        { "[::1]x", NULL, 0 },
        { "[::1]80", NULL, 0 },
        { "[a.b]:80", NULL, 0 },
        { "[1.2.3.4]:80", NULL, 0 },
        { "[]:80", NULL, 0 },
        { "a:80:90", NULL, 0 },
        { "[::1%lo]:80", NULL, 0 },
        { "user@a:80", NULL, 0 },
    };
    struct pf_egress_host host;
    const char *fault;
    uint16_t port;

    (void)state;
    for (size_t i = 0; i < PF_COUNT(rows); i++) {
        bool taken = pf_egress_authority_parse(rows[i].text, strlen(rows[i].text), 80, &host, &port,
                                               &fault);

        if (taken != (rows[i].host != NULL))
            fail_msg("\"%s\" is %s", rows[i].text, taken ? "taken" : "refused");
        if (taken) {
            assert_string_equal(host.text, rows[i].host);
            assert_int_equal(port, rows[i].port);
        }
    }
    assert_false(pf_egress_authority_parse("a.b", 3, 0, &host, &port, &fault));
}

static void prefixes_are_compared_bit_by_bit(void **state)
{
    struct pf_egress_ip a = ip("10.1.2.255");
    struct pf_egress_ip b = ip("10.1.2.254");
    struct pf_egress_ip c = ip("::");

    (void)state;
    for (int bits = 0; bits <= 32; bits++)
        assert_int_equal(pf_egress_ip_within(&a, &b, bits), bits < 32);
    assert_false(pf_egress_ip_within(&a, &c, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_edges_of_every_special_range_are_special),
        cmocka_unit_test(addresses_inside_addresses_are_looked_at),
        cmocka_unit_test(a_mapped_address_is_the_address_it_maps),
        cmocka_unit_test(the_metadata_services_are_called_that),
        cmocka_unit_test(names_are_lowered_and_lose_their_last_dot),
        cmocka_unit_test(odd_names_are_refused),
        cmocka_unit_test(no_byte_but_those_of_names_is_in_a_name),
        cmocka_unit_test(names_are_as_long_as_names_may_be),
        cmocka_unit_test(an_authority_is_a_host_and_a_port),
        cmocka_unit_test(prefixes_are_compared_bit_by_bit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
