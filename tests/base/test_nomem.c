/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/cancel.h"
#include "base/error.h"
#include "base/strings.h"

#include "failing_alloc.h"

/* Run a function with its first, second, ... allocation failing until it needs no more. Each
 * failure must be reported and leave nothing behind (the sanitizers see to the latter). Returns how
 * many allocations there were. */
static unsigned fail_each(int (*attempt)(void))
{
    for (unsigned nth = 1;; nth++) {
        failing_alloc_set(nth);
        int r = attempt();
        bool failed = failing_alloc_hit();
        failing_alloc_set(0);
        if (!failed) {
            assert_int_equal(r, 0);
            return nth - 1;
        }
        assert_int_equal(r, -PINFOLD_ENOMEM);
    }
}

static int grow_a_buffer(void)
{
    struct pf_buf buf = PF_BUF_INIT(PF_BUF_UNLIMITED);
    int r = 0;

    for (int i = 0; i < 300 && r == 0; i++) {
        size_t len = buf.len;
        r = i % 2 ? pf_buf_append_text(&buf, "seven..") : pf_buf_printf(&buf, "%07d", i);
        if (r < 0) { /* as it was */
            assert_int_equal(buf.len, len);
            assert_true(len == 0 || buf.data[len] == '\0');
        }
    }
    pf_buf_done(&buf);
    return r;
}

static int take_an_empty_buffer(void)
{
    struct pf_buf buf = PF_BUF_INIT(10);
    struct pinfold_bytes bytes = { (char *)1, 77 };
    int r = pf_buf_take(&buf, &bytes);

    if (r < 0)
        assert_int_equal(bytes.len, 77); /* untouched on failure */
    else
        pinfold_bytes_done(&bytes);
    return r;
}

static void an_impossible_size_is_out_of_memory(void **state)
{
    struct pf_buf buf = PF_BUF_INIT(PF_BUF_UNLIMITED);

    (void)state;
    assert_int_equal(pf_buf_append(&buf, "a", 1), 0);
    failing_alloc_set(1); /* never really asked for: a sanitizer would stop the program */
    assert_int_equal(pf_buf_reserve(&buf, SIZE_MAX - 10), -PINFOLD_ENOMEM);
    assert_true(failing_alloc_hit());
    assert_int_equal(pf_buf_reserve(&buf, SIZE_MAX), -PINFOLD_EVALUE);
    assert_string_equal(buf.data, "a");
    pf_buf_done(&buf);
}

static void a_buffer_survives_every_failure(void **state)
{
    (void)state;
    assert_true(fail_each(grow_a_buffer) >= 5);
    assert_int_equal(fail_each(take_an_empty_buffer), 1);
}

static int make_a_token(void)
{
    struct pinfold_cancel *cancel = NULL;
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    int r = pinfold_cancel_new(&cancel, &err);

    assert_int_equal(err.code, -r);
    assert_int_equal(cancel == NULL, r < 0);
    pinfold_cancel_free(cancel);
    return r;
}

static void a_token_survives_every_failure(void **state)
{
    (void)state;
    assert_int_equal(fail_each(make_a_token), 1);
}

static int fill_a_list(void)
{
    struct pinfold_strings list = { 0 }, copy = { 0 };
    int r = 0;

    for (int i = 0; i < 20 && r == 0; i++) {
        size_t count = list.count;
        r = i % 2 ? pf_strings_add(&list, "text") : pf_strings_addf(&list, "%d", i);
        assert_int_equal(list.count, count + (r == 0));
    }
    if (r == 0)
        r = pf_strings_copy(&copy, &list);
    pinfold_strings_done(&list);
    pinfold_strings_done(&copy);
    return r;
}

static int copy_a_vector(void)
{
    static const char *const strv[] = { "a", "b", "c", NULL };
    char **copy = pf_strv_copy(strv);

    pf_strv_free(copy);
    return copy ? 0 : -PINFOLD_ENOMEM;
}

static void lists_survive_every_failure(void **state)
{
    (void)state;
    assert_true(fail_each(fill_a_list) >= 40);
    assert_int_equal(fail_each(copy_a_vector), 4);
}

static int escape_a_text(void)
{
    char *text = pf_escape("a\n");

    free(text);
    return text ? 0 : -PINFOLD_ENOMEM;
}

static int fill_errors(void)
{
    struct pinfold_error err = PINFOLD_ERROR_INIT;

    pf_fail_os(&err, 2, "read %s", PF_QUOTE("a\n"));
    pf_wrap(&err, 0, "seed");
    pf_fail_nomem(&err);
    return 0;
}

static void errors_need_no_memory(void **state)
{
    (void)state;
    assert_int_equal(fail_each(fill_errors), 0);
    assert_int_equal(fail_each(escape_a_text), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_impossible_size_is_out_of_memory),
        cmocka_unit_test(a_buffer_survives_every_failure),
        cmocka_unit_test(a_token_survives_every_failure),
        cmocka_unit_test(lists_survive_every_failure),
        cmocka_unit_test(errors_need_no_memory),
    };

    return cmocka_run_group_tests_name("nomem", tests, NULL, NULL);
}
