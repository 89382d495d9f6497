/* SPDX-License-Identifier: Apache-2.0 */
/* What an agent does a million times is told a few times, and every one of them is counted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "jail/egress_tally.h"

#define SECOND PF_NS_PER_SEC
#define START (1000 * SECOND)

/* What was told: how often, for how many, and the last. */
struct heard {
    int calls;
    uint64_t total, last_count;
    char host[300], reason[400];
    uint16_t port;
    enum pf_egress_event_kind kind;
};

static void hear(void *ctx, const struct pf_egress_event *event)
{
    struct heard *heard = ctx;

    heard->calls++;
    heard->total += event->count;
    heard->last_count = event->count;
    heard->port = event->port;
    heard->kind = event->kind;
    snprintf(heard->host, sizeof heard->host, "%s", event->host);
    snprintf(heard->reason, sizeof heard->reason, "%s", event->reason);
}

static void add(struct pf_tally *tally, const char *host, int port, int64_t now)
{
    struct pf_egress_event event = { .kind = PF_EGRESS_REFUSED,
                                     .protocol = "connect",
                                     .host = host,
                                     .port = (uint16_t)port,
                                     .reason = "no",
                                     .count = 1 };

    pf_tally_add(tally, &event, now);
}

static void the_first_are_told_at_once_and_the_rest_as_a_number(void **state)
{
    struct heard heard = { 0 };
    struct pf_tally tally;

    (void)state;
    pf_tally_init(&tally, hear, &heard, START);
    for (int i = 0; i < 1000; i++)
        add(&tally, "a.example", 443, START);
    assert_int_equal(heard.calls, PF_TALLY_EACH);
    assert_int_equal(tally.due, START + PF_TALLY_PERIOD_NS);
    pf_tally_tick(&tally, tally.due - 1);
    assert_int_equal(heard.calls, PF_TALLY_EACH);
    pf_tally_tick(&tally, tally.due);
    assert_int_equal(heard.calls, PF_TALLY_EACH + 1);
    assert_int_equal(heard.last_count, 1000 - PF_TALLY_EACH);
    assert_string_equal(heard.host, "a.example");
    assert_string_equal(heard.reason, "no");
    assert_int_equal(heard.port, 443);
    assert_int_equal(heard.kind, PF_EGRESS_REFUSED);
}

static void a_destination_that_fell_silent_is_told_anew(void **state)
{
    struct heard heard = { 0 };
    struct pf_tally tally;

    (void)state;
    pf_tally_init(&tally, hear, &heard, START);
    add(&tally, "a.example", 443, START);
    pf_tally_tick(&tally, tally.due);
    assert_int_equal(tally.due, PF_NEVER);
    for (int i = 0; i < PF_TALLY_EACH; i++)
        add(&tally, "a.example", 443, START + 20 * SECOND);
    assert_int_equal(heard.calls, 1 + PF_TALLY_EACH);
    assert_int_equal(heard.total, 1 + PF_TALLY_EACH);
}

static void hosts_ports_and_kinds_are_told_apart(void **state)
{
    struct pf_egress_event failed = {
        .kind = PF_EGRESS_FAILED, .protocol = "", .host = "a", .port = 1, .reason = "", .count = 1
    };
    struct heard heard = { 0 };
    struct pf_tally tally;

    (void)state;
    pf_tally_init(&tally, hear, &heard, START);
    for (int i = 0; i < PF_TALLY_EACH; i++)
        add(&tally, "a", 1, START);
    add(&tally, "a", 2, START);
    add(&tally, "b", 1, START);
    pf_tally_add(&tally, &failed, START);
    assert_int_equal(heard.calls, PF_TALLY_EACH + 3);
}

/* An hour of an agent that does its worst, two hundred times a second; name makes that of the host.
 * Everything is counted, and little is told. */
static void flood(void (*name)(char *to, size_t size, int second, int i))
{
    struct heard heard = { 0 };
    struct pf_tally tally;
    uint64_t sent = 0;
    char host[32];

    pf_tally_init(&tally, hear, &heard, START);
    for (int second = 0; second < 3600; second++) {
        int64_t now = START + second * SECOND;

        for (int i = 0; i < 200; i++, sent++) {
            name(host, sizeof(host), second, i);
            add(&tally, host, 443, now);
        }
        if (now >= tally.due)
            pf_tally_tick(&tally, now);
    }
    pf_tally_flush(&tally);
    assert_int_equal(heard.total, sent);
    assert_in_range(heard.calls, 100, PF_TALLY_BURST + 3600 + 3600 / 10 + PF_TALLY_SLOTS + 1);
}

static void name_anew(char *to, size_t size, int second, int i)
{
    snprintf(to, size, "h%d-%d", second, i);
}

static void a_flood_of_names_is_bounded_and_counted(void **state)
{
    (void)state;
    flood(name_anew);
}

/* So that it is the sums that would be many. */
static void name_again(char *to, size_t size, int second, int i)
{
    snprintf(to, size, "h%d", i % PF_TALLY_SLOTS + second / 10 % 2 * 100);
}

static void a_flood_of_sums_is_bounded_and_counted(void **state)
{
    (void)state;
    flood(name_again);
}

static void what_was_counted_is_told_at_the_end(void **state)
{
    struct heard heard = { 0 };
    struct pf_tally tally;

    (void)state;
    pf_tally_init(&tally, hear, &heard, START);
    for (int i = 0; i < 100; i++)
        add(&tally, "a.example", 443, START);
    pf_tally_flush(&tally);
    assert_int_equal(heard.calls, PF_TALLY_EACH + 1);
    assert_int_equal(heard.total, 100);
    pf_tally_flush(&tally);
    assert_int_equal(heard.total, 100);
}

static void without_a_listener_nothing_is_kept(void **state)
{
    struct pf_tally tally;

    (void)state;
    pf_tally_init(&tally, NULL, NULL, START);
    for (int i = 0; i < 100; i++)
        add(&tally, "a.example", 443, START);
    assert_int_equal(tally.due, PF_NEVER);
    pf_tally_flush(&tally);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_are_told_at_once_and_the_rest_as_a_number),
        cmocka_unit_test(a_destination_that_fell_silent_is_told_anew),
        cmocka_unit_test(hosts_ports_and_kinds_are_told_apart),
        cmocka_unit_test(a_flood_of_names_is_bounded_and_counted),
        cmocka_unit_test(a_flood_of_sums_is_bounded_and_counted),
        cmocka_unit_test(what_was_counted_is_told_at_the_end),
        cmocka_unit_test(without_a_listener_nothing_is_kept),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
