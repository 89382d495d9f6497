/* SPDX-License-Identifier: Apache-2.0 */
/* What an allow list allows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "jail/egress_rules.h"

/* One entry alone, and a destination; or, with resolved, an address that the destination has. */
struct row {
    const char *entry, *host;
    uint16_t port;
    bool allowed;
    bool own; /* the address is this machine's */
};

static struct pf_egress_rules *rules_of(const char *first, const char *second)
{
    const char *allow[] = { first, second, NULL };
    struct pf_egress_rules *rules = NULL;
    struct pinfold_error error = PINFOLD_ERROR_INIT;

    if (pf_egress_rules_new(allow, &rules, &error) < 0)
        fail_msg("%s", error.msg);
    return rules;
}

static struct pf_egress_host host_of(const char *text)
{
    struct pf_egress_host host;
    const char *fault;

    if (!pf_egress_host_parse(text, strlen(text), &host, &fault))
        fail_msg("%s: %s", text, fault);
    return host;
}

static void check(const struct row *row)
{
    struct pf_egress_rules *rules = rules_of(row->entry, NULL);
    struct pf_egress_host host = host_of(row->host);
    struct pf_egress_verdict verdict =
            row->own ? pf_egress_rules_address(rules, &host, &host.ip, row->port, true)
                     : pf_egress_rules_host(rules, &host, row->port);

    if (verdict.allowed != row->allowed)
        fail_msg("%s: %s port %d is %s", row->entry, row->host, row->port,
                 row->allowed ? "allowed" : "refused");
    assert_true(row->allowed || strlen(verdict.reason) > 0);
    pf_egress_rules_free(rules);
}

static void entries_allow_what_they_name_and_nothing_else(void **state)
{
    static const struct row rows[] = {
        { "example.org", "example.org", 443, true },
        { "example.org", "example.org", 80, true },
        { "example.org", "example.org", 22, false },
        { "example.org", "example.org", 8080, false },
        { "EXAMPLE.org.", "example.org", 443, true },
        { "example.org", "EXAMPLE.ORG.", 443, true },
        { "example.org", "www.example.org", 443, false },
        { "example.org", "badexample.org", 443, false },
        { "example.org", "example.org.evil.net", 443, false },
        { "example.org:22", "example.org", 22, true },
        { "example.org:22", "example.org", 443, false },
        { "*.example.org", "www.example.org", 443, true },
        { "*.example.org", "a.b.example.org", 443, true },
        { "*.example.org", "example.org", 443, false },
        { "*.example.org", "badexample.org", 443, false },
        { "*.example.org", "example.org.evil.net", 443, false },
        { "*.example.org:443", "www.example.org", 443, true },
        { "*.example.org:443", "www.example.org", 80, false },
        { "*", "anything.example", 443, true },
        { "*", "localhost", 443, true }, /* the address it has is still checked */
        { "*", "93.184.216.34", 443, false },
        { "*:8080", "anything.example", 8080, true },
        { "*:8080", "anything.example", 443, false },
        { "93.184.216.34", "93.184.216.34", 443, true },
        { "93.184.216.34", "93.184.216.35", 443, false },
        { "93.184.216.34:22", "93.184.216.34", 22, true },
        { "93.184.216.0/24", "93.184.216.34", 443, true },
        { "93.184.216.0/24", "93.184.217.34", 443, false },
        { "93.184.216.0/24:22", "93.184.216.34", 22, true },
        { "::ffff:93.184.216.34", "93.184.216.34", 443, true },
        { "2606:4700::/32", "2606:4700::1", 443, true },
        { "[2606:4700::1]:22", "2606:4700::1", 22, true },
        { "[2606:4700::/32]:22", "2606:4700::1", 22, true },
        { "[2606:4700::/32]:22", "2606:4700::1", 443, false },
        { "93.184.216.34", "example.org", 443, false },
        { "example.org", "93.184.216.34", 443, false },
    };

    (void)state;
    for (size_t i = 0; i < PF_COUNT(rows); i++)
        check(&rows[i]);
}

static void what_is_not_public_needs_an_entry_of_its_own(void **state)
{
    static const struct row rows[] = {
        { "0.0.0.0/0", "93.184.216.34", 443, true },
        { "0.0.0.0/0", "127.0.0.1", 443, false },
        { "0.0.0.0/0", "10.0.0.1", 443, false },
        { "0.0.0.0/0", "169.254.169.254", 80, false },
        { "0.0.0.0/0", "::ffff:127.0.0.1", 443, false },
        { "::/0", "2606:4700::1", 443, true },
        { "::/0", "::1", 443, false },
        { "::/0", "fd00::1", 443, false },
        { "::/0", "64:ff9b::7f00:1", 443, false },
        { "::/0", "2002:7f00:1::", 443, false },
        { "::/0", "2a00:1450:1:2:0:5efe:7f00:1", 443, false },
        { "127.0.0.1", "127.0.0.1", 443, true },
        { "127.0.0.0/8", "127.0.0.1", 443, true },
        { "126.0.0.0/7", "127.0.0.1", 443, false },
        { "10.0.0.0/8", "10.1.2.3", 443, true },
        { "8.0.0.0/5", "10.1.2.3", 443, false },
        { "10.1.0.0/16", "10.1.2.3", 443, true },
        { "10.1.0.0/16", "10.2.2.3", 443, false },
        { "169.254.0.0/16", "169.254.1.1", 80, true },
        { "169.254.0.0/16", "169.254.169.254", 80, false },
        { "169.254.169.254", "169.254.169.254", 80, true },
        { "fc00::/7", "fd00:ec2::254", 80, false },
        { "fd00:ec2::254", "fd00:ec2::254", 80, true },
        { "64:ff9b::/96", "64:ff9b::7f00:1", 443, true },
        { "[::1]:443", "::1", 443, true },
        { "[::1]:443", "127.0.0.1", 443, false },
        { "2a00:1450:1:2:0:5efe:7f00:1", "2a00:1450:1:2:0:5efe:7f00:1", 443, true },
        { "192.168.1.0/24", "192.168.1.5", 443, true, false },
        { "192.168.1.0/24", "192.168.1.5", 443, false, true },
        { "192.168.1.5", "192.168.1.5", 443, true, true },
        { "0.0.0.0/0", "93.184.216.34", 443, false, true },
        { "93.184.216.34", "93.184.216.34", 443, true, true },
    };

    (void)state;
    for (size_t i = 0; i < PF_COUNT(rows); i++)
        check(&rows[i]);
}

static void a_name_brings_its_public_addresses_and_no_others(void **state)
{
    struct pf_egress_rules *rules = rules_of("example.org", "10.0.0.0/8:5432");
    struct pf_egress_host name = host_of("example.org");
    struct pf_egress_host public = host_of("93.184.216.34");
    struct pf_egress_host private = host_of("10.1.2.3");

    (void)state;
    assert_true(pf_egress_rules_address(rules, &name, &public.ip, 443, false).allowed);
    assert_false(pf_egress_rules_address(rules, &name, &public.ip, 443, true).allowed);
    assert_false(pf_egress_rules_address(rules, &name, &private.ip, 443, false).allowed);
    assert_true(pf_egress_rules_address(rules, &name, &private.ip, 5432, false).allowed);
    pf_egress_rules_free(rules);
}

static void nothing_is_allowed_by_an_empty_list(void **state)
{
    struct pf_egress_rules *rules = rules_of(NULL, NULL);
    struct pf_egress_host host = host_of("example.org");
    struct pf_egress_verdict verdict = pf_egress_rules_host(rules, &host, 443);

    (void)state;
    assert_false(verdict.allowed);
    assert_string_equal(verdict.reason, "this sandbox may not reach port 443 of that name; "
                                        "--net allow=example.org would allow it");
    pf_egress_rules_free(rules);
}

static void a_reason_names_the_entry_that_would_do(void **state)
{
    static const struct {
        const char *host;
        uint16_t port;
        const char *entry;
    } rows[] = {
        { "example.org", 22, "allow=example.org:22 would" },
        { "127.0.0.1", 443, "127.0.0.1 is this machine's loopback; --net allow=127.0.0.1 would" },
        { "::1", 80, "allow=::1 would" },
        { "::1", 8080, "allow=[::1]:8080 would" },
        { "169.254.169.254", 80, "a cloud metadata service; --net allow=169.254.169.254 would" },
    };

    (void)state;
    for (size_t i = 0; i < PF_COUNT(rows); i++) {
        struct pf_egress_rules *rules = rules_of("other.example", NULL);
        struct pf_egress_host host = host_of(rows[i].host);
        struct pf_egress_verdict verdict = pf_egress_rules_host(rules, &host, rows[i].port);

        assert_false(verdict.allowed);
        if (!strstr(verdict.reason, rows[i].entry))
            fail_msg("%s: %s", rows[i].host, verdict.reason);
        pf_egress_rules_free(rules);
    }
}

static void an_entry_that_means_nothing_is_named(void **state)
{
    static const char *const bad[] = {
        "",
        "*.",
        "**",
        "a*",
        "*a.b",
        "*.*.a",
        "a..b",
        "a b",
        "a:",
        "a:0",
        "a:65536",
        "a:x",
        "http://a",
        "a/b",
        "127.1",
        "0x7f000001",
        "10.0.0.0/33",
        "10.0.0.0/",
        "10.0.0.0/x",
        "10.0.0.1/8",
        "::1/129",
        "fd00::1/8",
        "[::1",
        "[::1]x",
        "[a.b]:80",
        "[10.0.0.1]:80",
        "*.10.0.0.1",
        "fe80::1%lo",
        "10.0.0.0/08",
        "a/24",
        "*.[::1]",
        "[]:80",
        ":80",
        "example.org:443:80",
    };

    (void)state;
    for (size_t i = 0; i < PF_COUNT(bad); i++) {
        const char *allow[] = { "example.org", bad[i], NULL };
        struct pf_egress_rules *rules = NULL;
        struct pinfold_error error = PINFOLD_ERROR_INIT;

        if (pf_egress_rules_new(allow, &rules, &error) != -PINFOLD_EVALUE)
            fail_msg("\"%s\" was taken", bad[i]);
        assert_null(rules);
        assert_non_null(strstr(error.msg, "allow entry \""));
        assert_non_null(strstr(error.msg, bad[i]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(entries_allow_what_they_name_and_nothing_else),
        cmocka_unit_test(what_is_not_public_needs_an_entry_of_its_own),
        cmocka_unit_test(a_name_brings_its_public_addresses_and_no_others),
        cmocka_unit_test(nothing_is_allowed_by_an_empty_list),
        cmocka_unit_test(a_reason_names_the_entry_that_would_do),
        cmocka_unit_test(an_entry_that_means_nothing_is_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
