/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/strings.h"

static void a_list_grows_and_keeps_its_order(void **state)
{
    struct pinfold_strings list = { 0 };
    char text[16];

    (void)state;
    for (int i = 0; i < 1000; i++)
        assert_int_equal(pf_strings_addf(&list, "item %d", i), 0);
    assert_int_equal(list.count, 1000);
    for (int i = 0; i < 1000; i++) {
        snprintf(text, sizeof(text), "item %d", i);
        assert_string_equal(list.items[i], text);
    }
    pinfold_strings_done(&list);
}

static void add_copies_and_take_does_not(void **state)
{
    struct pinfold_strings list = { 0 };
    char original[] = "mine", *taken = strdup("yours");

    (void)state;
    assert_int_equal(pf_strings_add(&list, original), 0);
    original[0] = 'X';
    assert_string_equal(list.items[0], "mine");
    assert_int_equal(pf_strings_take(&list, taken), 0);
    assert_ptr_equal(list.items[1], taken);
    assert_int_equal(pf_strings_take(&list, NULL), -PINFOLD_ENOMEM); /* a strdup that failed */
    assert_int_equal(list.count, 2);
    pinfold_strings_done(&list);
}

static void copy_appends(void **state)
{
    struct pinfold_strings from = { 0 }, to = { 0 };

    (void)state;
    assert_int_equal(pf_strings_copy(&to, &from), 0);
    assert_int_equal(to.count, 0);
    assert_int_equal(pf_strings_add(&from, "b"), 0);
    assert_int_equal(pf_strings_add(&to, "a"), 0);
    assert_int_equal(pf_strings_copy(&to, &from), 0);
    assert_int_equal(to.count, 2);
    assert_string_equal(to.items[1], "b");
    assert_ptr_not_equal(to.items[1], from.items[0]);
    pinfold_strings_done(&from);
    pinfold_strings_done(&to);
}

static void sort_is_by_bytes_not_by_locale(void **state)
{
    static const char *const in[] = { "b", "\xff", "a/b", "a", "B", "a.b", "\xc3\xa9" };
    static const char *const out[] = { "B", "a", "a.b", "a/b", "b", "\xc3\xa9", "\xff" };
    struct pinfold_strings list = { 0 };

    (void)state;
    pf_strings_sort(&list); /* empty */
    for (size_t i = 0; i < 7; i++)
        assert_int_equal(pf_strings_add(&list, in[i]), 0);
    pf_strings_sort(&list);
    for (size_t i = 0; i < 7; i++)
        assert_string_equal(list.items[i], out[i]);
    pinfold_strings_done(&list);
}

static void vectors_join_and_null_counts_as_empty(void **state)
{
    static const char *const one[] = { "a", "b", NULL };
    static const char *const none[] = { NULL };
    static const char *const two[] = { "c", NULL };
    const char *const *lists[] = { one, NULL, none, two };
    char **joined = pf_strv_concat(lists, 4);

    (void)state;
    assert_non_null(joined);
    assert_int_equal(pf_strv_count((const char *const *)joined), 3);
    assert_string_equal(joined[0], "a");
    assert_string_equal(joined[2], "c");
    assert_ptr_not_equal(joined[0], one[0]);
    pf_strv_free(joined);
    assert_int_equal(pf_strv_count(NULL), 0);
    assert_int_equal(pf_strv_count(none), 0);
    pf_strv_free(NULL);
}

static void copying_nothing_gives_an_empty_vector(void **state)
{
    _cleanup_strv_ char **copy = pf_strv_copy(NULL);

    (void)state;
    assert_non_null(copy);
    assert_null(copy[0]);
}

static void secrets_are_hidden_wherever_they_are(void **state)
{
    static const struct {
        const char *text, *secret, *want;
    } rows[] = {
        { "no, 12345678!", "12345678", "no, [secret]!" },
        { "123456789123456789", "123456789", "[secret][secret]" },
        { "a secret-of-nobody, secret-of-nobody", "secret-of-nobody", "a [secret], [secret]" },
        { "[secret] [secret]", "[secret]", "[secret] [secret]" },
        { "aaaaaaaaaaaa", "aaaaaaaaa", "[secret]aaa" },
        { "1234567 is a word", "1234567", "1234567 is a word" },
        { "1234567", "12345678", "1234567" },
        { "text", "", "text" },
        { "text", NULL, "text" },
        { "", "12345678", "" },
    };
    char text[64];

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        snprintf(text, sizeof(text), "%s", rows[i].text);
        pf_text_hide(text, rows[i].secret);
        assert_string_equal(text, rows[i].want);
    }
    pf_text_hide(NULL, "12345678");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_list_grows_and_keeps_its_order),
        cmocka_unit_test(add_copies_and_take_does_not),
        cmocka_unit_test(copy_appends),
        cmocka_unit_test(sort_is_by_bytes_not_by_locale),
        cmocka_unit_test(vectors_join_and_null_counts_as_empty),
        cmocka_unit_test(copying_nothing_gives_an_empty_vector),
        cmocka_unit_test(secrets_are_hidden_wherever_they_are),
    };

    return cmocka_run_group_tests_name("strings", tests, NULL, NULL);
}
