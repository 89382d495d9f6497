/* SPDX-License-Identifier: Apache-2.0 */
/* Server-sent events, whole and in pieces. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "net/sse.h"

static struct pinfold_error err;

/* What came out: "type(data)" for each event. */
struct heard {
    char text[4096];
    size_t len;
    int events, stop_at;
};

static int hear(void *ctx, const struct pf_sse_event *event, struct pinfold_error *ignored)
{
    struct heard *heard = ctx;

    (void)ignored;
    assert_int_equal(event->data[event->len], 0);
    heard->len += (size_t)snprintf(heard->text + heard->len, sizeof(heard->text) - heard->len,
                                   "%s(%s)", event->type, event->data);
    heard->events++;
    return heard->events == heard->stop_at ? -PINFOLD_ECANCELLED : 0;
}

/* Read a text in pieces. Returns whether it ended inside an event. */
static bool read_in_pieces(const char *text, size_t len, size_t piece, struct heard *heard)
{
    PF_CLEANUP(pf_sse_done) struct pf_sse sse = PF_SSE_INIT;

    *heard = (struct heard){ .events = 0 };
    for (size_t at = 0; at < len; at += piece)
        assert_int_equal(pf_sse_feed(&sse, text + at, len - at < piece ? len - at : piece, hear,
                                     heard, &err),
                         0);
    return pf_sse_inside(&sse);
}

static const struct {
    const char *text, *heard;
    bool inside;
} cases[] = {
    { "", "", false },
    { "data: a\n\n", "message(a)", false },
    { "data:a\n\n", "message(a)", false },
    { "data:  a\n\n", "message( a)", false },
    { "data\n\n", "message()", false },
    { "data: a\ndata\ndata: b\n\n", "message(a\n\nb)", false },
    { "event: ping\ndata: {}\n\ndata: x\n\n", "ping({})message(x)", false },
    { "event: ping\n\ndata: x\n\n", "message(x)", false },
    { "data: x\nevent: late\n\n", "late(x)", false },
    { ": comment\n\n:\ndata: a\n: b\n\n", "message(a)", false },
    { "id: 7\nretry: 10\nnonsense\ndata: a\nDATA: b\n\n", "message(a)", false },
    { "data: a\r\n\r\ndata: b\r\r", "message(a)message(b)", false },
    { "data: a\r\rdata: b\n\r\n", "message(a)message(b)", false },
    { "\n\n\r\n\r\rdata: a\n\n", "message(a)", false },
    { "\xef\xbb\xbf"
      "data: a\n\n",
      "message(a)", false },
    { "data: a\n\n\xef\xbb\xbf"
      "data: b\n\n",
      "message(a)", false },
    { "data: a", "", true },
    { "data: a\n", "", true },
    { "data: a\n\ndata: b\n", "message(a)", true },
    { "error: {\"code\": 500}\n\n", "error({\"code\": 500})", false },
    { "data: a:b: c\n\n", "message(a:b: c)", false },
    { "event: 0123456789012345678901234567890123456789012345678901234567890123456789\ndata\n\n",
      "012345678901234567890123456789012345678901234567890123456789012()", false },
};

static void events_are_read_as_the_standard_says(void **state)
{
    struct heard heard;

    (void)state;
    for (size_t i = 0; i < PF_COUNT(cases); i++)
        for (size_t piece = 1; piece <= 12; piece++) {
            bool inside = read_in_pieces(cases[i].text, strlen(cases[i].text), piece, &heard);
            if (strcmp(heard.text, cases[i].heard) != 0 || inside != cases[i].inside)
                fail_msg("\"%s\" by %zu: \"%s\", not \"%s\"", cases[i].text, piece, heard.text,
                         cases[i].heard);
        }
}

/* Whatever is cut, what came out before is a beginning of what comes out in the end. */
static void a_cut_takes_events_away_and_changes_none(void **state)
{
    struct heard all, some;

    (void)state;
    for (size_t i = 0; i < PF_COUNT(cases); i++) {
        size_t len = strlen(cases[i].text);
        read_in_pieces(cases[i].text, len, len + 1, &all);
        for (size_t cut = 0; cut < len; cut++) {
            read_in_pieces(cases[i].text, cut, cut + 1, &some);
            assert_memory_equal(all.text, some.text, some.len);
        }
    }
}

static void nul_bytes_and_broken_text_are_handed_on(void **state)
{
    static const char text[] = "data: a\0b\xff\n\n";
    PF_CLEANUP(pf_sse_done) struct pf_sse sse = PF_SSE_INIT;
    struct heard heard = { .events = 0 };

    (void)state;
    assert_int_equal(pf_sse_feed(&sse, text, sizeof(text) - 1, hear, &heard, &err), 0);
    assert_int_equal(heard.events, 1);
    assert_string_equal(heard.text, "message(a)"); /* as far as C reads it */
}

static void a_reader_may_have_enough(void **state)
{
    PF_CLEANUP(pf_sse_done) struct pf_sse sse = PF_SSE_INIT;
    struct heard heard = { .stop_at = 2 };

    (void)state;
    assert_int_equal(pf_sse_feed(&sse, "data: 1\n\ndata: 2\n\ndata: 3\n\n", 27, hear, &heard, &err),
                     -PINFOLD_ECANCELLED);
    assert_string_equal(heard.text, "message(1)message(2)");
}

static void events_have_a_largest_size(void **state)
{
    static char megabyte[1 << 20];
    const char *const begins[] = { "data: ", "", "data: x\ndata: " };

    (void)state;
    for (size_t i = 0; i < PF_COUNT(begins); i++) {
        PF_CLEANUP(pf_sse_done) struct pf_sse sse = PF_SSE_INIT;
        struct heard heard = { .events = 0 };
        int r = 0, fed = 0;
        memset(megabyte, i == 1 ? 'x' : 'y', sizeof(megabyte));
        for (; fed < 40 && r == 0; fed++) {
            r = pf_sse_feed(&sse, begins[i], fed == 0 || i == 2 ? strlen(begins[i]) : 0, hear,
                            &heard, &err);
            if (r == 0)
                r = pf_sse_feed(&sse, megabyte, sizeof(megabyte), hear, &heard, &err);
            if (r == 0 && i == 2)
                r = pf_sse_feed(&sse, "\n", 1, hear, &heard, &err);
        }
        assert_int_equal(r, -PINFOLD_EBACKEND);
        assert_int_equal(err.code, PINFOLD_EBACKEND);
        assert_in_range(fed, 31, 34);
        assert_int_equal(heard.events, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_are_read_as_the_standard_says),
        cmocka_unit_test(a_cut_takes_events_away_and_changes_none),
        cmocka_unit_test(nul_bytes_and_broken_text_are_handed_on),
        cmocka_unit_test(a_reader_may_have_enough),
        cmocka_unit_test(events_have_a_largest_size),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
