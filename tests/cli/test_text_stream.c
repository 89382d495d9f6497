/* SPDX-License-Identifier: Apache-2.0 */
/* Streams that become texts, with each allocation made to fail in turn. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli/text_stream.h"
#include "failing_alloc.h"

enum { LINES = 2000, WIDE = 100000 };

static void print(FILE *to)
{
    static char wide[WIDE];

    memset(wide, 'w', sizeof(wide));
    for (int i = 0; i < LINES; i++)
        fprintf(to, "line %d\n", i);
    fwrite(wide, 1, sizeof(wide), to);
    fputs("\nend", to);
}

static void assert_whole(const char *text, size_t len)
{
    char line[32];

    assert_int_equal(strlen(text), len);
    for (int i = 0; i < LINES; i++) {
        int width = snprintf(line, sizeof(line), "line %d\n", i);
        assert_memory_equal(text, line, width);
        text += width;
    }
    assert_int_equal(strspn(text, "w"), WIDE);
    assert_string_equal(text + WIDE, "\nend");
}

static void what_is_printed_is_the_text(void **state)
{
    char *text = NULL;
    size_t len = 7;
    FILE *to = pf_text_stream(&text, &len);

    (void)state;
    assert_non_null(to);
    print(to);
    assert_false(ferror(to));
    assert_int_equal(fclose(to), 0);
    assert_whole(text, len);
    free(text);
}

static void nothing_is_a_text_too(void **state)
{
    char *text = NULL;
    size_t len = 7;
    FILE *to = pf_text_stream(&text, &len);

    (void)state;
    assert_non_null(to);
    assert_int_equal(fclose(to), 0);
    assert_string_equal(text, "");
    assert_int_equal(len, 0);
    free(text);
}

static void it_says_how_much_there_is(void **state)
{
    char *text;
    size_t len;
    FILE *to = pf_text_stream(&text, &len);

    (void)state;
    for (long at = 0; at < 100000; at += 10) {
        assert_int_equal(ftell(to), at);
        fputs("ten bytes\n", to);
    }
    assert_int_equal(fseek(to, 0, SEEK_SET), -1);
    fclose(to);
    assert_int_equal(len, 100000);
    free(text);
}

static void without_memory_it_is_whole_or_it_fails(void **state)
{
    unsigned failures = 0;

    (void)state;
    for (unsigned nth = 1; nth < 100; nth++) {
        char *text = NULL;
        size_t len = 0;
        FILE *to;
        failing_alloc_set(nth);
        to = pf_text_stream(&text, &len);
        if (to) {
            bool told;
            print(to);
            told = ferror(to);
            told |= fclose(to) != 0;
            assert_int_equal(told, failing_alloc_hit());
            assert_int_equal(strlen(text), len);
            if (!told)
                assert_whole(text, len);
        }
        free(text);
        failures += failing_alloc_hit();
    }
    failing_alloc_set(0);
    assert_in_range(failures, 4, 98); /* two to begin with, and some on the way */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_printed_is_the_text),
        cmocka_unit_test(nothing_is_a_text_too),
        cmocka_unit_test(it_says_how_much_there_is),
        cmocka_unit_test(without_memory_it_is_whole_or_it_fails),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
