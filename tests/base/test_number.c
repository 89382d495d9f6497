/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/number.h"

static void numbers_up_to_the_most_are_read(void **state)
{
    static const uint64_t mosts[] = { 0, 1, 9, 10, 255, INT64_MAX, UINT64_MAX - 1, UINT64_MAX };
    char text[64];

    (void)state;
    for (size_t i = 0; i < sizeof(mosts) / sizeof(mosts[0]); i++) {
        for (uint64_t below = 0; below <= 20 && below <= mosts[i]; below++) {
            const char *at = text;
            uint64_t number = 7;
            snprintf(text, sizeof(text), "%" PRIu64 " more", mosts[i] - below);
            assert_true(pf_take_number(&at, mosts[i], &number));
            assert_true(number == mosts[i] - below);
            assert_string_equal(at, " more");
        }
    }
}

static void larger_ones_are_refused_and_nothing_changes(void **state)
{
    static const struct {
        const char *text;
        uint64_t most;
    } cases[] = {
        { "1", 0 },
        { "256", 255 },
        { "2550", 255 },
        { "9223372036854775808", INT64_MAX },
        { "18446744073709551615", UINT64_MAX - 1 },
        { "18446744073709551616", UINT64_MAX },
        { "18446744073709551620", UINT64_MAX },
        { "28446744073709551615", UINT64_MAX },
        { "184467440737095516150", UINT64_MAX },
        { "99999999999999999999999999999999999999", UINT64_MAX },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *at = cases[i].text;
        uint64_t number = 7;
        assert_false(pf_take_number(&at, cases[i].most, &number));
        assert_ptr_equal(at, cases[i].text);
        assert_true(number == 7);
    }
}

static void only_digits_are_a_number(void **state)
{
    static const char *const texts[] = { "", " 1", "+1", "-1", "-", "x1", "\n1", "\t1", ".5" };

    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        const char *at = texts[i];
        uint64_t number = 7;
        assert_false(pf_take_number(&at, UINT64_MAX, &number));
        assert_ptr_equal(at, texts[i]);
        assert_true(number == 7);
    }
}

static void what_stands_behind_is_left(void **state)
{
    static const char *const texts[] = { "007", "10x", "0x10", "3.5", "12 13", "1-", "9\n" };

    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        const char *at = texts[i];
        char *end;
        uint64_t number, wanted = strtoull(texts[i], &end, 10);
        assert_true(pf_take_number(&at, UINT64_MAX, &number));
        assert_true(number == wanted);
        assert_ptr_equal(at, end);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_up_to_the_most_are_read),
        cmocka_unit_test(larger_ones_are_refused_and_nothing_changes),
        cmocka_unit_test(only_digits_are_a_number),
        cmocka_unit_test(what_stands_behind_is_left),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
