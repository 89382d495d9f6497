/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"

static void append_grows_and_always_terminates(void **state)
{
    struct pf_buf buf = PF_BUF_INIT(PF_BUF_UNLIMITED);

    (void)state;
    for (size_t i = 0; i < 5000; i++) {
        assert_int_equal(pf_buf_append(&buf, "x", 1), 0);
        assert_int_equal(buf.len, i + 1);
        assert_int_equal(buf.data[buf.len], '\0');
        assert_true(buf.capacity > buf.len);
    }
    pf_buf_done(&buf);
    assert_null(buf.data);
}

static void nul_bytes_are_kept(void **state)
{
    struct pf_buf buf = PF_BUF_INIT(16);

    (void)state;
    assert_int_equal(pf_buf_append(&buf, "a\0b", 3), 0);
    assert_int_equal(pf_buf_append(&buf, NULL, 0), 0);
    assert_int_equal(pf_buf_append_text(&buf, "c"), 0);
    assert_int_equal(buf.len, 4);
    assert_memory_equal(buf.data, "a\0bc", 5);
    pf_buf_done(&buf);
}

static void the_limit_is_exact_and_a_refusal_changes_nothing(void **state)
{
    struct pf_buf buf = PF_BUF_INIT(100);
    char block[100];

    (void)state;
    memset(block, 'y', sizeof(block));
    assert_int_equal(pf_buf_append(&buf, block, 99), 0);
    assert_int_equal(pf_buf_append(&buf, block, 2), -PINFOLD_EVALUE);
    assert_int_equal(pf_buf_append(&buf, block, SIZE_MAX), -PINFOLD_EVALUE);
    assert_int_equal(pf_buf_printf(&buf, "%s", "zz"), -PINFOLD_EVALUE);
    assert_int_equal(buf.len, 99);
    assert_int_equal(buf.data[99], '\0');
    assert_int_equal(pf_buf_append(&buf, "z", 1), 0);
    assert_int_equal(buf.len, 100);
    assert_int_equal(pf_buf_append(&buf, "z", 1), -PINFOLD_EVALUE);
    assert_true(buf.capacity <= 101);
    pf_buf_done(&buf);
}

static void a_limit_of_zero_still_gives_an_empty_text(void **state)
{
    struct pf_buf buf = PF_BUF_INIT(0);
    struct pinfold_bytes bytes = { 0 };

    (void)state;
    assert_int_equal(pf_buf_append(&buf, "z", 1), -PINFOLD_EVALUE);
    assert_int_equal(pf_buf_take(&buf, &bytes), 0);
    assert_string_equal(bytes.data, "");
    pinfold_bytes_done(&bytes);
}

static void printf_appends_and_may_be_long(void **state)
{
    struct pf_buf buf = PF_BUF_INIT(PF_BUF_UNLIMITED);

    (void)state;
    assert_int_equal(pf_buf_printf(&buf, "%s-%d", "a", 1), 0);
    assert_int_equal(pf_buf_printf(&buf, "%s", ""), 0);
    assert_int_equal(pf_buf_printf(&buf, "%5000d", 7), 0);
    assert_int_equal(buf.len, 5003);
    assert_memory_equal(buf.data, "a-1   ", 6);
    assert_string_equal(buf.data + 5002, "7");
    pf_buf_done(&buf);
}

static void take_hands_over_and_leaves_a_usable_buffer(void **state)
{
    struct pf_buf buf = PF_BUF_INIT(5);
    struct pinfold_bytes bytes = { 0 };

    (void)state;
    assert_int_equal(pf_buf_append_text(&buf, "abc"), 0);
    assert_int_equal(pf_buf_take(&buf, &bytes), 0);
    assert_int_equal(bytes.len, 3);
    assert_string_equal(bytes.data, "abc");
    pinfold_bytes_done(&bytes);
    assert_int_equal(buf.len, 0);
    assert_int_equal(pf_buf_append_text(&buf, "123456"), -PINFOLD_EVALUE); /* the limit stays */
    assert_int_equal(pf_buf_append_text(&buf, "12345"), 0);
    pf_buf_done(&buf);
    pf_buf_done(&buf);
}

/* The shell itself says what it makes of it. */
static void a_word_is_what_it_was_to_a_shell(void **state)
{
    struct pf_buf script = PF_BUF_INIT(PF_BUF_UNLIMITED);
    char word[512] = "'", said[sizeof(word)];
    size_t len = strlen(word);
    FILE *shell;

    (void)state;
    for (int byte = 1; byte < 256; byte++)
        word[len++] = (char)byte;
    strcpy(word + len, "''$HOME `id` \\'");
    assert_int_equal(pf_buf_append_text(&script, "printf %s "), 0);
    assert_int_equal(pf_buf_append_word(&script, word), 0);
    assert_int_equal(pf_buf_append_word(&script, ""), 0);
    shell = popen(script.data, "r");
    assert_non_null(shell);
    len = fread(said, 1, sizeof(said), shell);
    assert_int_equal(pclose(shell), 0);
    assert_int_equal(len, strlen(word));
    assert_memory_equal(said, word, len);
    pf_buf_done(&script);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(append_grows_and_always_terminates),
        cmocka_unit_test(nul_bytes_are_kept),
        cmocka_unit_test(the_limit_is_exact_and_a_refusal_changes_nothing),
        cmocka_unit_test(a_limit_of_zero_still_gives_an_empty_text),
        cmocka_unit_test(printf_appends_and_may_be_long),
        cmocka_unit_test(a_word_is_what_it_was_to_a_shell),
        cmocka_unit_test(take_hands_over_and_leaves_a_usable_buffer),
    };

    return cmocka_run_group_tests_name("buf", tests, NULL, NULL);
}
