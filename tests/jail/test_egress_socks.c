/* SPDX-License-Identifier: Apache-2.0 */
/* SOCKS5 messages, whole and in pieces. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "jail/egress_socks.h"

#define BYTES(text) (const uint8_t *)(text), sizeof(text) - 1

struct talk {
    struct pf_egress_socks socks;
    uint8_t answer[PF_SOCKS_ANSWER_MAX];
    size_t answer_len;
};

/* Less than the whole message is not taken, and not answered. */
static ssize_t say(struct talk *talk, const uint8_t *data, size_t len)
{
    for (size_t some = 0; some < len; some++) {
        struct pf_egress_socks before = talk->socks;

        if (pf_egress_socks_take(&talk->socks, data, some, talk->answer, &talk->answer_len) != 0)
            return -1;
        assert_int_equal(talk->answer_len, 0);
        assert_memory_equal(&before, &talk->socks, sizeof before);
    }
    return pf_egress_socks_take(&talk->socks, data, len, talk->answer, &talk->answer_len);
}

static void a_name_is_taken_by_its_length(void **state)
{
    struct talk talk = { 0 };

    (void)state;
    assert_int_equal(say(&talk, BYTES("\5\2\2\0")), 4);
    assert_memory_equal(talk.answer, "\5\0", 2);
    assert_int_equal(say(&talk, BYTES("\5\1\0\3\x0b"
                                      "Example.org\1\xbb")),
                     18);
    assert_int_equal(talk.socks.stage, PF_SOCKS_READY);
    assert_string_equal(talk.socks.host.text, "example.org");
    assert_int_equal(talk.socks.port, 443);
}

static void any_login_will_do(void **state)
{
    struct talk talk = { 0 };

    (void)state;
    assert_int_equal(say(&talk, BYTES("\5\1\2")), 3);
    assert_memory_equal(talk.answer, "\5\2", 2);
    assert_int_equal(say(&talk, BYTES("\1\4user\6secret")), 13);
    assert_memory_equal(talk.answer, "\1\0", 2);
    assert_int_equal(say(&talk, BYTES("\5\1\0\1\1\2\3\4\0\x50")), 10);
    assert_string_equal(talk.socks.host.text, "1.2.3.4");
}

static void an_unknown_way_to_log_in_is_refused(void **state)
{
    struct talk talk = { 0 };

    (void)state;
    assert_int_equal(say(&talk, BYTES("\5\1\1")), -1);
    assert_memory_equal(talk.answer, "\5\xff", 2);
}

static void assert_refused(const uint8_t *data, size_t len, int reply)
{
    struct talk talk = { .socks.stage = PF_SOCKS_REQUEST };

    assert_int_equal(say(&talk, data, len), -1);
    if (talk.answer_len == 0) /* refused before the end of it: ask for the answer */
        assert_int_equal(
                pf_egress_socks_take(&talk.socks, data, len, talk.answer, &talk.answer_len), -1);
    assert_int_equal(talk.answer_len, 10);
    assert_int_equal(talk.answer[1], reply);
    assert_non_null(talk.socks.fault);
}

static void everything_else_is_refused_with_its_code(void **state)
{
    (void)state;
    assert_refused(BYTES("\5\2\0\1\1\2\3\4\0\x50"), PF_SOCKS_NO_COMMAND);
    assert_refused(BYTES("\4\1\0\1\1\2\3\4\0\x50"), PF_SOCKS_NO_COMMAND);
    assert_refused(BYTES("\5\1\1\1\1\2\3\4\0\x50"), PF_SOCKS_NO_COMMAND);
    assert_refused(BYTES("\5\1\0\2\1\2\3\4\0\x50"), PF_SOCKS_NO_ADDRESS);
    assert_refused(BYTES("\5\1\0\1\1\2\3\4\0\0"), PF_SOCKS_REFUSED);
    assert_refused(BYTES("\5\1\0\3\0\1\xbb"), PF_SOCKS_REFUSED);
    assert_refused(BYTES("\5\1\0\3\5a\0.b.\1\xbb"), PF_SOCKS_REFUSED);
    assert_refused(BYTES("\5\1\0\3\5"
                         "127.1\1\xbb"),
                   PF_SOCKS_REFUSED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_name_is_taken_by_its_length),
        cmocka_unit_test(any_login_will_do),
        cmocka_unit_test(an_unknown_way_to_log_in_is_refused),
        cmocka_unit_test(everything_else_is_refused_with_its_code),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
