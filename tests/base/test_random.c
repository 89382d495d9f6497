/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"

static void exactly_as_many_digits_as_asked_and_a_nul(void **state)
{
    char text[200];

    (void)state;
    for (size_t digits = 0; digits < 190; digits++) {
        memset(text, 'Z', sizeof(text));
        pf_random_hex(text, digits);
        assert_int_equal(strspn(text, "0123456789abcdef"), digits);
        assert_int_equal(strlen(text), digits);
        assert_int_equal(text[digits + 1], 'Z');
    }
}

static void every_digit_occurs_and_no_two_texts_are_alike(void **state)
{
    char one[4097], two[4097];

    (void)state;
    pf_random_hex(one, 4096);
    pf_random_hex(two, 4096);
    assert_string_not_equal(one, two);
    for (const char *digit = "0123456789abcdef"; *digit; digit++)
        assert_non_null(strchr(one, *digit));   /* missing one: a chance of 10^-114 */
    assert_memory_not_equal(one, one + 64, 64); /* the pool is refilled */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exactly_as_many_digits_as_asked_and_a_nul),
        cmocka_unit_test(every_digit_occurs_and_no_two_texts_are_alike),
    };

    return cmocka_run_group_tests_name("random", tests, NULL, NULL);
}
