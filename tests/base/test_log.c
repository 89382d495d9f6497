/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/log.h"
#include "base/utf8.h"

struct record {
    int calls;
    enum pinfold_log_level level;
    char line[1024];
};

static void keep(void *ctx, enum pinfold_log_level level, const char *message)
{
    struct record *record = ctx;

    record->calls++;
    record->level = level;
    assert_true(strlen(message) < sizeof(record->line));
    strcpy(record->line, message);
}

static void nothing_is_said_without_a_handler(void **state)
{
    struct record record = { 0 };

    (void)state;
    pf_log(PINFOLD_LOG_ERROR, "into the %s", "void");
    pinfold_log_set_handler(keep, &record);
    pinfold_log_set_handler(NULL, NULL);
    pf_log(PINFOLD_LOG_ERROR, "still nothing");
    assert_int_equal(record.calls, 0);
}

static void the_handler_gets_level_and_text(void **state)
{
    struct record record = { 0 };

    (void)state;
    pinfold_log_set_handler(keep, &record);
    pf_log(PINFOLD_LOG_WARNING, "no isolation in %s", "/tmp/x");
    pinfold_log_set_handler(NULL, NULL);
    assert_int_equal(record.calls, 1);
    assert_int_equal(record.level, PINFOLD_LOG_WARNING);
    assert_string_equal(record.line, "no isolation in /tmp/x");
}

static void a_long_line_is_cut_between_characters(void **state)
{
    struct record record = { 0 };
    char text[1003];

    (void)state;
    pinfold_log_set_handler(keep, &record);
    for (size_t shift = 0; shift < 3; shift++) {
        memset(text, 'x', shift);
        for (size_t at = shift; at + 3 < sizeof(text); at += 3)
            memcpy(text + at, "\xe2\x82\xac", 4);
        pf_log(PINFOLD_LOG_INFO, "%s", text);
        assert_true(strlen(record.line) > 500);
        assert_true(pf_utf8_valid(record.line, strlen(record.line), NULL));
    }
    pinfold_log_set_handler(NULL, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_said_without_a_handler),
        cmocka_unit_test(the_handler_gets_level_and_text),
        cmocka_unit_test(a_long_line_is_cut_between_characters),
    };

    return cmocka_run_group_tests_name("log", tests, NULL, NULL);
}
