/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <string.h>

#include <cmocka.h>

#include <pinfold/limits.h>

static void each_limit_and_each_holder_has_a_name_of_its_own(void **state)
{
    (void)state;
    for (int i = 0; i < PINFOLD_LIMIT_COUNT; i++)
        for (int j = 0; j < i; j++)
            assert_string_not_equal(pinfold_limit_name((enum pinfold_limit)i),
                                    pinfold_limit_name((enum pinfold_limit)j));
    for (int i = 0; i <= PINFOLD_HOLDER_OWNER; i++)
        for (int j = 0; j < i; j++)
            assert_string_not_equal(pinfold_holder_name((enum pinfold_holder)i),
                                    pinfold_holder_name((enum pinfold_holder)j));
    assert_string_equal(pinfold_limit_name(PINFOLD_LIMIT_CPU_TIME), "cpu time");
    assert_string_equal(pinfold_holder_name(PINFOLD_HOLDER_CGROUP1), "cgroup v1");
}

static void what_is_no_limit_is_called_none(void **state)
{
    (void)state;
    assert_string_equal(pinfold_limit_name(PINFOLD_LIMIT_COUNT), "none");
    assert_string_equal(pinfold_limit_name((enum pinfold_limit) - 1), "none");
    assert_string_equal(pinfold_holder_name((enum pinfold_holder)99), "none");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_limit_and_each_holder_has_a_name_of_its_own),
        cmocka_unit_test(what_is_no_limit_is_called_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
