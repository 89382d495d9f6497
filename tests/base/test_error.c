/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "base/utf8.h"

/* One line of valid, printable UTF-8 that fits. */
static void check_quoted(const char *quoted)
{
    size_t len = strlen(quoted);

    assert_true(len < PF_QUOTE_MAX);
    assert_true(pf_utf8_valid(quoted, len, NULL));
    for (size_t i = 0; i < len; i++)
        assert_true((unsigned char)quoted[i] >= 0x20 && quoted[i] != 0x7f);
}

/* Quote from exact heap blocks, so that a sanitizer sees the first byte too far on either side. */
static char *quote_new(const char *text, size_t len)
{
    char *copy = malloc(len + 1), *buffer = malloc(PF_QUOTE_MAX);

    assert_non_null(copy);
    assert_non_null(buffer);
    memcpy(copy, text, len);
    copy[len] = '\0';
    assert_ptr_equal(pf_quote(copy, buffer), buffer);
    check_quoted(buffer);
    free(copy);
    return buffer;
}

static void expect_quote(const char *text, const char *expected)
{
    char *quoted = quote_new(text, strlen(text));

    assert_string_equal(quoted, expected);
    free(quoted);
}

static void every_code_has_the_name_of_its_exception(void **state)
{
    (void)state;
    assert_string_equal(pinfold_code_name(0), "OK");
    assert_string_equal(pinfold_code_name(PINFOLD_EPATH), "SandboxPathError");
    assert_string_equal(pinfold_code_name(-PINFOLD_ESTART), "SandboxStartError");
    assert_string_equal(pinfold_code_name(-PINFOLD_EATTACH), "SandboxAttachError");
    assert_string_equal(pinfold_code_name(PINFOLD_EDETACHED), "AgentSandboxDetachedError");
    assert_string_equal(pinfold_code_name(PINFOLD_EDENIED), "SandboxMutationDeniedError");
    assert_string_equal(pinfold_code_name(PINFOLD_EPREPARE), "WorkspacePrepareError");
    for (int code = 0; code <= PINFOLD_EBUSY; code++)
        assert_string_not_equal(pinfold_code_name(code), "UnknownError");
    assert_string_equal(pinfold_code_name(PINFOLD_EBUSY + 1), "UnknownError");
    assert_string_equal(pinfold_code_name(INT_MAX), "UnknownError");
    assert_string_equal(pinfold_code_name(INT_MIN), "UnknownError");
}

static void fail_fills_the_error_and_returns_its_code(void **state)
{
    struct pinfold_error err = { 7, 7, 7, 7, "old" };

    (void)state;
    assert_int_equal(pf_fail(&err, PINFOLD_EVALUE, "ttl %d: must be > 0", -1), -PINFOLD_EVALUE);
    assert_int_equal(err.code, PINFOLD_EVALUE);
    assert_int_equal(err.sys_errno, 0);
    assert_int_equal(err.http_status, 0);
    assert_int_equal(err.retryable, 0);
    assert_string_equal(err.msg, "ttl -1: must be > 0");
    assert_int_equal(pf_fail(NULL, PINFOLD_EVALUE, "nobody listens"), -PINFOLD_EVALUE);
}

static void fail_os_says_what_the_system_said(void **state)
{
    struct pinfold_error err = PINFOLD_ERROR_INIT;

    (void)state;
    assert_int_equal(pf_fail_os(&err, ENOENT, "read %s", "a"), -PINFOLD_EOS);
    assert_int_equal(err.code, PINFOLD_EOS);
    assert_int_equal(err.sys_errno, ENOENT);
    assert_string_equal(err.msg, "read a: No such file or directory");
    assert_int_equal(pf_fail_os(&err, 99999, "read a"), -PINFOLD_EOS);
    assert_string_equal(err.msg, "read a: unknown error");
    assert_int_equal(pf_fail_os(NULL, ENOENT, "read a"), -PINFOLD_EOS);
}

static void fail_os_turns_enomem_into_its_own_code(void **state)
{
    struct pinfold_error err = PINFOLD_ERROR_INIT;

    (void)state;
    assert_int_equal(pf_fail_os(&err, ENOMEM, "map a"), -PINFOLD_ENOMEM);
    assert_int_equal(err.code, PINFOLD_ENOMEM);
    assert_int_equal(pf_fail_os(NULL, ENOMEM, "map a"), -PINFOLD_ENOMEM);
    assert_int_equal(pf_fail_nomem(&err), -PINFOLD_ENOMEM);
    assert_string_equal(err.msg, "out of memory");
}

static void passing_failures_are_marked_as_worth_a_retry(void **state)
{
    struct pinfold_error err = PINFOLD_ERROR_INIT;

    (void)state;
    pf_fail_os(&err, EMFILE, "open a");
    assert_int_equal(err.retryable, 1);
    pf_fail_os(&err, EACCES, "open a");
    assert_int_equal(err.retryable, 0);
}

static void a_long_message_keeps_the_operation_and_the_cause(void **state)
{
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    char path[3001];

    (void)state;
    for (size_t len = 180; len < sizeof(path); len++) {
        memset(path, 'p', len);
        path[len] = '\0';
        pf_fail_os(&err, EACCES, "copy %s to /dest", path);
        assert_true(strlen(err.msg) < sizeof(err.msg));
        assert_memory_equal(err.msg, "copy ppp", 8);
        assert_non_null(strstr(err.msg, ": Permission denied"));
    }
    assert_non_null(strstr(err.msg, "ppp..."));
}

static void a_cut_message_stays_valid_utf8(void **state)
{
    static const char euro[] = "\xe2\x82\xac";
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    char path[3001];

    (void)state;
    for (size_t shift = 0; shift < 4; shift++)
        for (size_t count = 60; count < 800; count += 7) {
            memset(path, 'x', shift);
            for (size_t i = 0; i < count; i++)
                memcpy(path + shift + 3 * i, euro, 3);
            path[shift + 3 * count] = '\0';
            pf_fail(&err, PINFOLD_EPATH, "%s", path);
            assert_true(strlen(err.msg) < sizeof(err.msg));
            assert_true(pf_utf8_valid(err.msg, strlen(err.msg), NULL));
            pf_wrap(&err, 0, "%s", path);
            assert_true(pf_utf8_valid(err.msg, strlen(err.msg), NULL));
        }
}

static void wrap_puts_context_in_front_and_keeps_the_rest(void **state)
{
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    int r = pf_fail_os(&err, EBUSY, "rename a");

    (void)state;
    assert_int_equal(pf_wrap(&err, r, "seed %d of %d", 1, 2), -PINFOLD_EOS);
    assert_string_equal(err.msg, "seed 1 of 2: rename a: Device or resource busy");
    assert_int_equal(err.code, PINFOLD_EOS);
    assert_int_equal(err.sys_errno, EBUSY);
    assert_int_equal(err.retryable, 1);
    assert_int_equal(pf_wrap(NULL, -7, "nobody listens"), -7);
}

static void wraps_nest_and_the_innermost_cause_survives(void **state)
{
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    int r = pf_fail_os(&err, ENOSPC, "write a/b/c");

    (void)state;
    for (int i = 0; i < 200; i++) {
        pf_wrap(&err, r, "context number %d", i);
        assert_true(strlen(err.msg) < sizeof(err.msg));
        assert_non_null(strstr(err.msg, "write a/b/c: No space left on device"));
    }
    assert_memory_equal(err.msg, "context number 199: context number 198", 38);
}

static void wrap_may_quote_the_message_that_it_wraps(void **state)
{
    struct pinfold_error err = PINFOLD_ERROR_INIT;

    (void)state;
    pf_fail(&err, PINFOLD_EVALUE, "inner");
    pf_wrap(&err, 0, "(%s)", err.msg);
    assert_string_equal(err.msg, "(inner): inner");
}

static void quote_leaves_ordinary_names_alone(void **state)
{
    (void)state;
    expect_quote("", "");
    expect_quote("src/main.c", "src/main.c");
    expect_quote("na\xc3\xafve \xe2\x82\xac \xf0\x9f\x98\x80",
                 "na\xc3\xafve \xe2\x82\xac \xf0\x9f\x98\x80");
}

static void quote_escapes_what_steers_a_terminal_or_is_not_utf8(void **state)
{
    (void)state;
    expect_quote("a\nb\x1b[2J\x7f", "a\\x0ab\\x1b[2J\\x7f");
    expect_quote("\xc2\x9b"
                 "31m",
                 "\\xc2\\x9b31m"); /* C1: CSI */
    expect_quote("\xff\xc3(\xed\xa0\x80", "\\xff\\xc3(\\xed\\xa0\\x80");
    expect_quote("back\\x41", "back\\\\x41"); /* cannot pass for an escape */
    expect_quote("\xe2\x82", "\\xe2\\x82");
}

static void quote_keeps_the_end_of_a_long_path(void **state)
{
    char path[5001], *quoted;

    (void)state;
    memset(path, 'd', 5000);
    memcpy(path, "/start/", 7);
    memcpy(path + 5000 - 10, "/wanted.py", 10);
    path[5000] = '\0';
    quoted = quote_new(path, 5000);
    assert_int_equal(strlen(quoted), PF_QUOTE_MAX - 1);
    assert_memory_equal(quoted, "/start/d", 8);
    assert_non_null(strstr(quoted, "ddd...ddd"));
    assert_string_equal(quoted + strlen(quoted) - 11, "d/wanted.py");
    free(quoted);
}

static void quote_is_exact_around_its_limit(void **state)
{
    char text[PF_QUOTE_MAX + 1], *quoted;

    (void)state;
    memset(text, 'a', sizeof(text));
    quoted = quote_new(text, PF_QUOTE_MAX - 1);
    assert_int_equal(strlen(quoted), PF_QUOTE_MAX - 1);
    assert_null(strstr(quoted, "..."));
    free(quoted);
    quoted = quote_new(text, PF_QUOTE_MAX);
    assert_int_equal(strlen(quoted), PF_QUOTE_MAX - 1);
    assert_non_null(strstr(quoted, "..."));
    free(quoted);
}

/* Every unit is whole: a backslash is doubled, or "x" and two digits follow it. */
static void check_escapes_are_whole(const char *quoted)
{
    for (const char *at = quoted; (at = strchr(at, '\\')); at += at[1] == 'x' ? 4 : 2) {
        assert_true(at[1] == '\\' || at[1] == 'x');
        if (at[1] == 'x')
            assert_int_equal(strspn(at + 2, "0123456789abcdef") >= 2, 1);
    }
}

static void quote_never_overflows_nor_splits_whatever_it_is_made_of(void **state)
{
    static const char *const units[] = { "a",        "\x01",     "\\",           "\xff",
                                         "\x80",     "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80",
                                         "\xf0\x9f", "\xc2\x9b", "\\\x01" };
    char text[5101];

    (void)state;
    for (size_t a = 0; a < sizeof(units) / sizeof(*units); a++)
        for (size_t b = 0; b < sizeof(units) / sizeof(*units); b++)
            for (size_t target = 20; target <= 5000; target += target < 300 ? 1 : 1567) {
                size_t len = 0, turn = 0;
                /* mostly a, with b at the places where the cuts may fall */
                while (len < target) {
                    const char *unit = (turn++ % 3 == 2) ? units[b] : units[a];
                    memcpy(text + len, unit, strlen(unit));
                    len += strlen(unit);
                }
                char *quoted = quote_new(text, len);
                check_escapes_are_whole(quoted);
                if (len >= PF_QUOTE_MAX) {
                    const char *mark = strstr(quoted, "...");
                    assert_non_null(mark);
                    assert_true(mark - quoted >= 33 && strlen(mark) >= 3 + 60); /* both ends show */
                }
                free(quoted);
            }
}

static void quote_macro_lives_as_long_as_the_expression(void **state)
{
    struct pinfold_error err = PINFOLD_ERROR_INIT;

    (void)state;
    pf_fail(&err, PINFOLD_EVALUE, "move %s to %s", PF_QUOTE("a\n"), PF_QUOTE("b"));
    assert_string_equal(err.msg, "move a\\x0a to b");
}

static void escape_shortens_nothing(void **state)
{
    char text[5001], *escaped;

    (void)state;
    memset(text, '\x01', 5000);
    text[5000] = '\0';
    escaped = pf_escape(text);
    assert_non_null(escaped);
    assert_int_equal(strlen(escaped), 20000);
    assert_memory_equal(escaped + 19996, "\\x01", 5);
    free(escaped);
    escaped = pf_escape("caf\xc3\xa9\xc3\\");
    assert_string_equal(escaped, "caf\xc3\xa9\\xc3\\\\");
    free(escaped);
}

static void who_ran_out_of_time_tells_what_was_said_before(void **state)
{
    struct pinfold_error err = PINFOLD_ERROR_INIT, before = PINFOLD_ERROR_INIT;
    char reason[200];

    (void)state;
    pf_fail(&err, PINFOLD_ETIMEOUT, "run: no answer in time");
    pf_tell_before(&err, &before);
    assert_string_equal(err.msg, "run: no answer in time");
    pf_fail(&before, PINFOLD_EBACKEND, "run: HTTP 429");
    before.http_status = 429;
    pf_tell_before(&err, &before);
    assert_int_equal(err.code, PINFOLD_ETIMEOUT);
    assert_int_equal(err.http_status, 429);
    assert_string_equal(err.msg, "run: no answer in time; before that: run: HTTP 429");
    pf_fail(&before, PINFOLD_ETIMEOUT, "run: no answer in time");
    pf_fail(&err, PINFOLD_ETIMEOUT, "run: nothing arrived for too long");
    pf_tell_before(&err, &before); /* both only waited */
    assert_string_equal(err.msg, "run: nothing arrived for too long");
    pf_fail(&before, PINFOLD_EBACKEND, "run: HTTP 429");
    pf_fail(&err, PINFOLD_EVALUE, "run: no such tool");
    pf_tell_before(&err, &before); /* it says why by itself */
    assert_string_equal(err.msg, "run: no such tool");
    memset(reason, 'r', sizeof(reason) - 1);
    reason[sizeof(reason) - 1] = '\0';
    pf_fail(&before, PINFOLD_EBACKEND, "%s", reason);
    pf_fail(&err, PINFOLD_ETIMEOUT, "run: no answer in time, and a long way to say so, it is");
    pf_tell_before(&err, &before);
    assert_int_equal(strlen(err.msg), sizeof(err.msg) - 1);
    assert_non_null(strstr(err.msg, "run: no answer in time"));
    assert_non_null(strstr(err.msg, "..."));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_code_has_the_name_of_its_exception),
        cmocka_unit_test(fail_fills_the_error_and_returns_its_code),
        cmocka_unit_test(who_ran_out_of_time_tells_what_was_said_before),
        cmocka_unit_test(fail_os_says_what_the_system_said),
        cmocka_unit_test(fail_os_turns_enomem_into_its_own_code),
        cmocka_unit_test(passing_failures_are_marked_as_worth_a_retry),
        cmocka_unit_test(a_long_message_keeps_the_operation_and_the_cause),
        cmocka_unit_test(a_cut_message_stays_valid_utf8),
        cmocka_unit_test(wrap_puts_context_in_front_and_keeps_the_rest),
        cmocka_unit_test(wraps_nest_and_the_innermost_cause_survives),
        cmocka_unit_test(wrap_may_quote_the_message_that_it_wraps),
        cmocka_unit_test(quote_leaves_ordinary_names_alone),
        cmocka_unit_test(quote_escapes_what_steers_a_terminal_or_is_not_utf8),
        cmocka_unit_test(quote_keeps_the_end_of_a_long_path),
        cmocka_unit_test(quote_is_exact_around_its_limit),
        cmocka_unit_test(quote_never_overflows_nor_splits_whatever_it_is_made_of),
        cmocka_unit_test(quote_macro_lives_as_long_as_the_expression),
        cmocka_unit_test(escape_shortens_nothing),
    };

    return cmocka_run_group_tests_name("error", tests, NULL, NULL);
}
