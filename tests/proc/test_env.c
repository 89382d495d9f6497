/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/strings.h"
#include "proc/env.h"

static void later_lists_win_and_keep_the_first_place(void **state)
{
    static const char *const host[] = { "A=1", "B=2", "AB=3", NULL };
    static const char *const own[] = { "B=two", "C=4", "B=zwei", NULL };
    const char *const *lists[] = { host, NULL, own };
    _cleanup_strv_ char **merged = pf_env_merge(lists, 3);

    (void)state;
    assert_non_null(merged);
    assert_int_equal(pf_strv_count((const char *const *)merged), 4);
    assert_string_equal(merged[0], "A=1");
    assert_string_equal(merged[1], "B=zwei");
    assert_string_equal(merged[2], "AB=3");
    assert_string_equal(merged[3], "C=4");
}

static void no_lists_make_an_empty_environment(void **state)
{
    const char *const *lists[] = { NULL };
    _cleanup_strv_ char **merged = pf_env_merge(lists, 1);

    (void)state;
    assert_non_null(merged);
    assert_null(merged[0]);
}

static void many_entries_are_merged(void **state)
{
    enum { MANY = 5000 };
    static char texts[MANY][16];
    static const char *list[MANY + 1];
    const char *const *lists[] = { list, list };

    (void)state;
    for (int i = 0; i < MANY; i++) {
        snprintf(texts[i], sizeof(texts[i]), "V%d=%d", i, i);
        list[i] = texts[i];
    }
    _cleanup_strv_ char **merged = pf_env_merge(lists, 2);
    assert_non_null(merged);
    assert_int_equal(pf_strv_count((const char *const *)merged), MANY);
    assert_string_equal(merged[MANY - 1], "V4999=4999");
}

static void entries_must_be_NAME_and_value(void **state)
{
    static const char *const good[] = { "A=", "B==x", NULL };
    static const char *const nameless[] = { "A=1", "=hunter2", NULL };
    static const char *const bare[] = { "hunter2", NULL };
    struct pinfold_error err = PINFOLD_ERROR_INIT;

    (void)state;
    assert_int_equal(pf_env_check(NULL, &err), 0);
    assert_int_equal(pf_env_check(good, &err), 0);
    assert_int_equal(pf_env_check(nameless, &err), -PINFOLD_EVALUE);
    assert_non_null(strstr(err.msg, "entry 2"));
    assert_null(strstr(err.msg, "hunter2")); /* messages reach the audit */
    assert_int_equal(pf_env_check(bare, &err), -PINFOLD_EVALUE);
    assert_non_null(strstr(err.msg, "entry 1"));
    assert_null(strstr(err.msg, "hunter2"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(later_lists_win_and_keep_the_first_place),
        cmocka_unit_test(no_lists_make_an_empty_environment),
        cmocka_unit_test(many_entries_are_merged),
        cmocka_unit_test(entries_must_be_NAME_and_value),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
