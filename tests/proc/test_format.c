/* SPDX-License-Identifier: Apache-2.0 */
/* The text that models see is frozen here. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <string.h>

#include <pinfold/result.h>

static void assert_format(struct pinfold_execute_result result, const char *golden, size_t len)
{
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    struct pinfold_bytes text = { 0 };

    assert_int_equal(pinfold_execute_result_format(&result, &text, &err), 0);
    assert_int_equal(text.len, len);
    assert_memory_equal(text.data, golden, len + 1);
    pinfold_bytes_done(&text);
}

static void the_exit_code_comes_first_and_then_the_output(void **state)
{
    char output[] = "hello\n[stderr] oops\n[output truncated: kept 6 of 9 bytes]\n";
    char stderr_text[] = "oops\n";
    struct pinfold_execute_result result = { .output = output,
                                             .output_len = sizeof(output) - 1,
                                             .stdout_len = 6,
                                             .stderr_text = stderr_text,
                                             .stderr_len = 5,
                                             .exit_code = 3,
                                             .truncated = true };
    static const char golden[] =
            "exit code: 3\nhello\n[stderr] oops\n[output truncated: kept 6 of 9 bytes]\n";

    (void)state;
    assert_format(result, golden, sizeof(golden) - 1);
}

static void no_output_is_said_in_words(void **state)
{
    static const char golden[] = "exit code: 0\n<no output>";

    (void)state;
    assert_format((struct pinfold_execute_result){ 0 }, golden, sizeof(golden) - 1);
}

static void nul_bytes_are_kept(void **state)
{
    char output[] = "a\0b";
    static const char golden[] = "exit code: 0\na\0b";

    (void)state;
    assert_format((struct pinfold_execute_result){ .output = output, .output_len = 3 }, golden,
                  sizeof(golden) - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_exit_code_comes_first_and_then_the_output),
        cmocka_unit_test(no_output_is_said_in_words),
        cmocka_unit_test(nul_bytes_are_kept),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
