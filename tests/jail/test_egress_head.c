/* SPDX-License-Identifier: Apache-2.0 */
/* Request heads: what is taken, what it becomes, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "jail/egress.h"
#include "jail/egress_head.h"

/* Parsed from a copy without a NUL behind it, so that a sanitizer sees a read past the end. */
static const char *parse(const char *text, size_t len, struct pf_egress_head *head)
{
    char *exact = malloc(len ? len : 1);
    const char *fault;

    assert_non_null(exact);
    memcpy(exact, text, len);
    fault = pf_egress_head_parse(exact, len, head);
    free(exact);
    return fault;
}

static void assert_rewritten(const char *from, const char *to)
{
    struct pf_egress_head head;
    char out[4096];
    size_t len;

    assert_null(parse(from, strlen(from), &head));
    assert_false(head.connect);
    len = pf_egress_head_rewrite(from, &head, out, sizeof out);
    assert_in_range(len, 1, sizeof out - 1);
    out[len] = 0;
    assert_string_equal(out, to);
}

static void a_request_gets_its_host_from_the_url(void **state)
{
    (void)state;
    assert_rewritten("GET http://Example.ORG/a HTTP/1.1\r\nHost: evil.example\r\nX: y\r\n\r\n",
                     "GET /a HTTP/1.1\r\nHost: example.org\r\nConnection: close\r\nX: y\r\n\r\n");
    assert_rewritten("GET http://example.org:8080 HTTP/1.0\r\n\r\n",
                     "GET / HTTP/1.0\r\nHost: example.org:8080\r\nConnection: close\r\n\r\n");
    assert_rewritten("GET http://[::1]:81?a=b HTTP/1.1\r\n\r\n",
                     "GET /?a=b HTTP/1.1\r\nHost: [::1]:81\r\nConnection: close\r\n\r\n");
    assert_rewritten("OPTIONS http://example.org HTTP/1.1\r\n\r\n",
                     "OPTIONS * HTTP/1.1\r\nHost: example.org\r\nConnection: close\r\n\r\n");
}

static void what_is_for_a_proxy_stays_with_it(void **state)
{
    (void)state;
    assert_rewritten(
            "GET http://a.b/ HTTP/1.1\r\nConnection: X-One , x-two,,keep-alive\r\nx-one: 1\r\n"
            "X-Two: 2\r\nKeep-Alive: 5\r\nUpgrade: h2c\r\nTE: a\r\n"
            "HTTP2-Settings: x\r\nTrailer: x\r\nProxy-Anything: x\r\nX-Three: 3\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a.b\r\nConnection: close\r\nX-Three: 3\r\n\r\n");
}

static void the_framing_is_written_anew(void **state)
{
    (void)state;
    assert_rewritten(
            "POST http://a.b/ HTTP/1.1\r\nContent-Length:  007 \r\n\r\n",
            "POST / HTTP/1.1\r\nHost: a.b\r\nConnection: close\r\nContent-Length: 7\r\n\r\n");
    assert_rewritten("POST http://a.b/ HTTP/1.1\r\nTransfer-Encoding: CHUNKED\r\n\r\n",
                     "POST / HTTP/1.1\r\nHost: a.b\r\nConnection: close\r\n"
                     "Transfer-Encoding: chunked\r\n\r\n");
    /* naming it a header of the connection does not make it go away */
    assert_rewritten(
            "POST http://a.b/ HTTP/1.1\r\nConnection: content-length\r\n"
            "Content-Length: 7\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: a.b\r\nConnection: close\r\nContent-Length: 7\r\n\r\n");
}

static void a_tunnel_is_a_host_and_a_port(void **state)
{
    static const char text[] = "CONNECT Example.org:443 HTTP/1.1\r\nHost: x\r\n\r\n";
    struct pf_egress_head head;
    char out[1024];

    (void)state;
    assert_null(parse(text, sizeof text - 1, &head));
    assert_true(head.connect);
    assert_string_equal(head.host.text, "example.org");
    assert_int_equal(head.port, 443);
    assert_int_equal(head.len, sizeof text - 1);
    assert_int_equal(pf_egress_head_rewrite(text, &head, out, sizeof out), 0);
}

static void everything_that_can_be_read_in_two_ways_is_refused(void **state)
{
#define OK "GET http://a.b/ HTTP/1.1\r\n"
    static const char *const bad[] = {
        "",
        "\r\n",
        "\r\n" OK "\r\n",
        OK,
        OK "A: b\r\n",
        " " OK "\r\n",
        "GET  http://a.b/ HTTP/1.1\r\n\r\n",
        "GET http://a.b/  HTTP/1.1\r\n\r\n",
        "GET http://a.b/ HTTP/1.1 \r\n\r\n",
        "GET\thttp://a.b/ HTTP/1.1\r\n\r\n",
        "GET http://a.b/ http/1.1\r\n\r\n",
        "GET http://a.b/ HTTP/1.2\r\n\r\n",
        "GET http://a.b/ HTTP/1.10\r\n\r\n",
        "GET http://a.b/ HTTP/2.0\r\n\r\n",
        "GET http://a.b/\r\n\r\n",
        "GET\r\n\r\n",
        "G(T http://a.b/ HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a.b\r\n\r\n",
        "GET * HTTP/1.1\r\nHost: a.b\r\n\r\n",
        "GET https://a.b/ HTTP/1.1\r\n\r\n",
        "GET ftp://a.b/ HTTP/1.1\r\n\r\n",
        "GET http:///x HTTP/1.1\r\n\r\n",
        "GET http://a.b@c.d/ HTTP/1.1\r\n\r\n",
        "GET http://a.b:80:81/ HTTP/1.1\r\n\r\n",
        "GET http://a.b:/ HTTP/1.1\r\n\r\n",
        "GET http://a.b\\@c.d/ HTTP/1.1\r\n\r\n",
        "GET http://a.b#@c.d/ HTTP/1.1\r\n\r\n",
        "GET http://a.b/#x HTTP/1.1\r\n\r\n",
        "GET http://a%2eb/ HTTP/1.1\r\n\r\n",
        "GET http://a.b/\xff HTTP/1.1\r\n\r\n",
        "GET http://127.1/ HTTP/1.1\r\n\r\n",
        "GET http://[fe80::1%25lo]/ HTTP/1.1\r\n\r\n",
        "CONNECT a.b HTTP/1.1\r\n\r\n",
        "CONNECT http://a.b:80/ HTTP/1.1\r\n\r\n",
        "CONNECT a.b:80/ HTTP/1.1\r\n\r\n",
        "CONNECT a.b:443@c.d:443 HTTP/1.1\r\n\r\n",
        "CONNECT a.b:443 HTTP/1.1\r\nContent-Length: 1\r\n\r\n",
        "CONNECT a.b:443 HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n",
        "connect a.b:443 HTTP/1.1\r\n\r\n",
        OK "A : b\r\n\r\n",
        OK "A\t: b\r\n\r\n",
        OK ": b\r\n\r\n",
        OK "A\r\n\r\n",
        OK "A b: c\r\n\r\n",
        OK "A: b\r\n c\r\n\r\n",
        OK "A: b\r\n\tc\r\n\r\n",
        OK " A: b\r\n\r\n",
        OK "A: b\n\r\n",
        OK "A: b\nC: d\r\n\r\n",
        OK "A: b\rC: d\r\n\r\n",
        OK "A: b\r\r\n\r\n",
        OK "A: b\x01\r\n\r\n",
        OK "A: b\x7f\r\n\r\n",
        OK "A\x80: b\r\n\r\n",
        OK "Host: a\r\nHost: a\r\n\r\n",
        OK "Connection: a\r\nConnection: b\r\n\r\n",
        OK "Content-Length: 1\r\nContent-Length: 1\r\n\r\n",
        OK "Content-Length: 1\r\ncontent-length: 2\r\n\r\n",
        OK "Content-Length: 1, 1\r\n\r\n",
        OK "Content-Length: -1\r\n\r\n",
        OK "Content-Length: +1\r\n\r\n",
        OK "Content-Length: 0x1\r\n\r\n",
        OK "Content-Length: 1 2\r\n\r\n",
        OK "Content-Length:\r\n\r\n",
        OK "Content-Length: 9999999999999999999\r\n\r\n",
        OK "Transfer-Encoding: gzip\r\n\r\n",
        OK "Transfer-Encoding: gzip, chunked\r\n\r\n",
        OK "Transfer-Encoding: chunked, chunked\r\n\r\n",
        OK "Transfer-Encoding: \013chunked\r\n\r\n",
        OK "Transfer-Encoding: chunked;x\r\n\r\n",
        OK "Transfer-Encoding:\r\n\r\n",
        OK "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
        OK "Transfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n",
        OK "Content-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n",
        "GET http://a.b/ HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n",
        OK "\r\nmore",
    };
    struct pf_egress_head head;

    (void)state;
    assert_null(parse(OK "\r\n", strlen(OK "\r\n"), &head));
    for (size_t i = 0; i < PF_COUNT(bad); i++) {
        if (!parse(bad[i], strlen(bad[i]), &head))
            fail_msg("taken: %s", bad[i]);
    }
    assert_non_null(parse(OK "A: b\0c\r\n\r\n", sizeof OK "A: b\0c\r\n\r\n" - 1, &head));
}

static void the_end_is_found_however_the_head_comes(void **state)
{
    static const struct {
        const char *text;
        size_t end;
    } rows[] = {
        { "a\r\n\r\nrest", 5 }, { "a\r\nb\r\n\r\n", 8 }, { "a\n\nrest", 3 }, { "a\n\r\nrest", 4 },
        { "a\r\n\r", 0 },       { "a\r\n\rb\n\r\n", 8 }, { "\r\n\r\n", 4 },  { "", 0 },
        { "abc", 0 },
    };

    (void)state;
    for (size_t i = 0; i < PF_COUNT(rows); i++) {
        size_t len = strlen(rows[i].text);
        size_t scanned = 0;
        size_t at_once;
        size_t end = 0;

        at_once = pf_egress_head_end(rows[i].text, len, &scanned);
        assert_int_equal(at_once, rows[i].end);
        scanned = 0;
        for (size_t some = 1; some <= len && end == 0; some++)
            end = pf_egress_head_end(rows[i].text, some, &scanned);
        assert_int_equal(end, rows[i].end);
    }
}

/* A request with so many header lines, the last of them as long as the head may be. */
static size_t fill(char *text, size_t size, int lines)
{
    static const char first[] = "GET http://a/ HTTP/1.1\r\n";
    size_t len = sizeof first - 1;

    memcpy(text, first, len);
    for (int i = 1; i < lines; i++) {
        memcpy(text + len, "a:\r\n", 4);
        len += 4;
    }
    memset(text + len, 'x', size - len);
    text[len + 1] = ':';
    memcpy(text + size - 4, "\r\n\r\n", 4);
    return size;
}

static void the_largest_head_fits_when_it_is_rewritten(void **state)
{
    static char text[PF_EGRESS_HEAD_MAX];
    static char out[PF_EGRESS_HEAD_MAX + PF_EGRESS_HEAD_GROWTH];
    struct pf_egress_head head;
    size_t len = fill(text, sizeof text, 128);

    (void)state;
    assert_null(parse(text, len, &head));
    assert_int_equal(pf_egress_head_rewrite(text, &head, out, len), 0);
    assert_in_range(pf_egress_head_rewrite(text, &head, out, sizeof out), 1, sizeof out);
}

static void there_is_an_end_to_header_lines(void **state)
{
    static char text[PF_EGRESS_HEAD_MAX];
    struct pf_egress_head head;

    (void)state;
    assert_string_equal(parse(text, fill(text, sizeof text, 129), &head),
                        "more than 128 header lines");
    snprintf(text, sizeof text, "GET http://a/ HTTP/1.1\r\nConnection: %0257d\r\n\r\n", 0);
    assert_non_null(strstr(parse(text, strlen(text), &head), "a very long one"));
}

static ssize_t take(const char *text, size_t step, bool *ret_ended)
{
    struct pf_egress_head head = { .framing = PF_EGRESS_CHUNKED };
    struct pf_egress_body body;
    size_t len = strlen(text);
    ssize_t total = 0;

    pf_egress_body_init(&body, &head);
    for (size_t at = 0; at < len && !pf_egress_body_ended(&body); at += step) {
        ssize_t taken = pf_egress_body_take(&body, text + at, step < len - at ? step : len - at);

        if (taken < 0)
            return -1;
        total += taken;
    }
    *ret_ended = pf_egress_body_ended(&body);
    return total;
}

static void chunks_end_where_they_say(void **state)
{
    static const struct {
        const char *text;
        ssize_t taken;
        bool ended;
    } rows[] = {
        { "0\r\n\r\nGET", 5, true },
        { "5\r\nhello\r\n0\r\n\r\nX", 15, true },
        { "A\r\n0123456789\r\n000\r\n\r\n", 22, true },
        { "5\r\nhel", 6, false },
        { "5;x=y\r\nhello\r\n0\r\n\r\n", -1, false },
        { "5\nhello\r\n0\r\n\r\n", -1, false },
        { "5\r\nhelloX\r\n", -1, false },
        { "\r\n", -1, false },
        { " 5\r\n", -1, false },
        { "0x5\r\n", -1, false },
        { "-5\r\n", -1, false },
        { "1000000000000000\r\n", -1, false },
        { "0\r\nTrailer: x\r\n\r\n", -1, false },
    };

    (void)state;
    for (size_t i = 0; i < PF_COUNT(rows); i++) {
        for (size_t step = 1; step < 30; step += 4) {
            bool ended = false;
            ssize_t taken = take(rows[i].text, step, &ended);

            if (taken != rows[i].taken || ended != rows[i].ended)
                fail_msg("%s in steps of %zu: %zd", rows[i].text, step, taken);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_gets_its_host_from_the_url),
        cmocka_unit_test(what_is_for_a_proxy_stays_with_it),
        cmocka_unit_test(the_framing_is_written_anew),
        cmocka_unit_test(a_tunnel_is_a_host_and_a_port),
        cmocka_unit_test(everything_that_can_be_read_in_two_ways_is_refused),
        cmocka_unit_test(the_end_is_found_however_the_head_comes),
        cmocka_unit_test(the_largest_head_fits_when_it_is_rewritten),
        cmocka_unit_test(there_is_an_end_to_header_lines),
        cmocka_unit_test(chunks_end_where_they_say),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
