/* SPDX-License-Identifier: Apache-2.0 */
/* What the comparison with Python (test_utf8_python.py) does not reach. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/utf8.h"

struct text {
    char data[64];
    size_t len;
    int calls_left; /* the sink stops when they are used up */
};

static bool collect(void *ctx, const char *data, size_t len)
{
    struct text *text = ctx;

    assert_true(pf_utf8_valid(data, len, NULL));
    assert_true(len > 0 && text->len + len <= sizeof(text->data));
    memcpy(text->data + text->len, data, len);
    text->len += len;
    return --text->calls_left > 0;
}

static void width_is_that_of_a_whole_character(void **state)
{
    (void)state;
    assert_int_equal(pf_utf8_width("a", 1), 1);
    assert_int_equal(pf_utf8_width("", 1), 1); /* NUL is a character */
    assert_int_equal(pf_utf8_width("\xc3\xa9", 2), 2);
    assert_int_equal(pf_utf8_width("\xe2\x82\xac", 3), 3);
    assert_int_equal(pf_utf8_width("\xf0\x9f\x98\x80zz", 6), 4);
}

static void width_is_0_for_what_is_broken_or_cut(void **state)
{
    static const char *const broken[] = {
        "\x80",
        "\xff",
        "\xc0\x80",
        "\xc1\xbf",
        "\xed\xa0\x80",
        "\xe0\x9f\xbf",
        "\xf0\x8f\xbf\xbf",
        "\xf4\x90\x80\x80",
        "\xc3(",
        "\xe2\x82(",
        "\xc3",
        "\xe2\x82",
        "\xf0\x9f\x98",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(broken) / sizeof(*broken); i++)
        assert_int_equal(pf_utf8_width(broken[i], strlen(broken[i])), 0);
}

static void floor_never_cuts_a_character(void **state)
{
    static const char text[] =
            "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"; /* starts: 0 1 3 6, end 10 */
    static const size_t floors[] = { 0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10 };

    (void)state;
    for (size_t len = 0; len < sizeof(floors) / sizeof(*floors); len++)
        assert_int_equal(pf_utf8_floor(text, len), floors[len]);
}

static void floor_of_broken_text_stays_within_three_bytes(void **state)
{
    (void)state;
    for (size_t len = 0; len <= 8; len++) {
        size_t floor = pf_utf8_floor("\x80\x80\x80\x80\x80\x80\xf0\x80", len);
        assert_true(floor <= len && len - floor <= 3);
    }
}

static void valid_tells_where_the_first_bad_byte_is(void **state)
{
    size_t bad = 99;

    (void)state;
    assert_true(pf_utf8_valid("", 0, &bad));
    assert_true(pf_utf8_valid("0123456\xc3\xa9", 9, &bad));
    assert_int_equal(bad, 99); /* untouched when all is well */
    assert_false(pf_utf8_valid("01234567\xc3", 9, &bad));
    assert_int_equal(bad, 8);
    assert_false(pf_utf8_valid("\xff", 1, NULL));
}

static void a_sink_that_stops_is_not_called_again(void **state)
{
    struct pf_utf8 decoder = { 0 };
    struct text text = { .calls_left = 1 };

    (void)state;
    assert_false(pf_utf8_decode(&decoder,
                                "ab\xff"
                                "cd",
                                5, collect, &text));
    assert_int_equal(text.len, 2);
    assert_int_equal(text.calls_left, 0);
}

static void a_sink_that_stops_at_a_carried_character_is_not_called_again(void **state)
{
    struct pf_utf8 decoder = { 0 };
    struct text text = { .calls_left = 1 };

    (void)state;
    assert_true(pf_utf8_decode(&decoder, "\xe2\x82", 2, collect, &text));
    assert_int_equal(text.len, 0);
    assert_false(pf_utf8_decode(&decoder,
                                "\xac"
                                "tail",
                                5, collect, &text));
    assert_int_equal(text.len, 3);
    assert_memory_equal(text.data, "\xe2\x82\xac", 3);
}

static void finish_replaces_a_cut_character_once(void **state)
{
    struct pf_utf8 decoder = { 0 };
    struct text text = { .calls_left = 9 };

    (void)state;
    assert_true(pf_utf8_finish(&decoder, collect, &text)); /* nothing to finish */
    assert_int_equal(text.len, 0);
    assert_true(pf_utf8_decode(&decoder, "\xf0\x9f\x98", 3, collect, &text));
    assert_true(pf_utf8_finish(&decoder, collect, &text));
    assert_true(pf_utf8_finish(&decoder, collect, &text));
    assert_int_equal(text.len, 3);
    assert_memory_equal(text.data, "\xef\xbf\xbd", 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(width_is_that_of_a_whole_character),
        cmocka_unit_test(width_is_0_for_what_is_broken_or_cut),
        cmocka_unit_test(floor_never_cuts_a_character),
        cmocka_unit_test(floor_of_broken_text_stays_within_three_bytes),
        cmocka_unit_test(valid_tells_where_the_first_bad_byte_is),
        cmocka_unit_test(a_sink_that_stops_is_not_called_again),
        cmocka_unit_test(a_sink_that_stops_at_a_carried_character_is_not_called_again),
        cmocka_unit_test(finish_replaces_a_cut_character_once),
    };

    return cmocka_run_group_tests_name("utf8", tests, NULL, NULL);
}
