/* SPDX-License-Identifier: Apache-2.0 */
/* What the workspace tools answer: the parts of rows 37 to 44 and 76 that are about tools. */
#include "agents.h"

static void row_037_a_bad_path_is_a_result_and_no_end(void **state)
{
    struct spec *s = *state;

    spec_start_plain(s);
    new_attached(s, PINFOLD_READ_WRITE);
    refuses(s, "read_file", "{\"path\":\"../etc/passwd\"}", "../etc/passwd");
    refuses(s, "write_file", "{\"path\":\"/etc/x\",\"content\":\"\"}", "/etc/x");
    refuses(s, "list_dir", "{\"path\":\"none\"}", "none");
    refuses(s, "execute", "{\"command\":\"true\",\"cwd\":\"none\"}", "none");
    refuses(s, "read_file", "{\"path\":\"\"}", "empty");
}

static void row_039_a_binary_file_is_a_short_error(void **state)
{
    struct spec *s = *state;

    spec_start_plain(s);
    new_attached(s, PINFOLD_READ_WRITE);
    spec_put_bytes(s, "ws/bin",
                   "\x7f"
                   "ELF\xff\xfe\0\1",
                   8);
    refuses(s, "read_file", "{\"path\":\"bin\"}", "UnicodeDecodeError");
    assert_true(result.items[0].data.len < 300);
}

static void row_040_what_is_read_is_what_is_stored(void **state)
{
    struct spec *s = *state;

    spec_start_plain(s);
    new_attached(s, PINFOLD_READ_WRITE);
    spec_put(s, "ws/a",
             "\xef\xbb\xbf"
             "one\r\ntwo");
    answers(s, "read_file", "{\"path\":\"a\"}",
            "\xef\xbb\xbf"
            "one\r\ntwo");
}

static void row_042_offsets_and_limits_are_lenient(void **state)
{
    struct spec *s = *state;

    spec_start_plain(s);
    new_attached(s, PINFOLD_READ_WRITE);
    spec_put(s, "ws/a", "1\n2\n3\n");
    answers(s, "read_file", "{\"path\":\"a\",\"offset\":-5,\"limit\":null}", "1\n2\n3\n");
    answers(s, "read_file", "{\"path\":\"a\",\"limit\":0}", "");
    answers(s, "read_file", "{\"path\":\"a\",\"offset\":3}",
            "[The file has 3 lines; offset 3 is past its end.]");
    answers(s, "read_file", "{\"path\":\"a\",\"offset\":1,\"limit\":1}",
            "2\n[Lines 2 to 2 of 3. Continue with offset=2.]");
    answers(s, "read_file", "{\"path\":\"a\",\"offset\":1}", "2\n3\n");
}

static void row_043_an_empty_file_is_said_to_be_empty(void **state)
{
    struct spec *s = *state;

    spec_start_plain(s);
    new_attached(s, PINFOLD_READ_WRITE);
    spec_put(s, "ws/a", "");
    answers(s, "read_file", "{\"path\":\"a\"}", "[The file is empty.]");
    answers(s, "execute", "{\"command\":\"mkdir d\"}", "exit code: 0\n<no output>");
    answers(s, "list_dir", "{\"path\":\"d\"}", "[The directory is empty.]");
}

static void row_044_a_long_file_is_paged_by_whole_lines(void **state)
{
    struct spec *s = *state;
    const char *text;
    char input[64];
    unsigned long next = 0;
    unsigned pages = 0;

    spec_start_plain(s);
    new_attached(s, PINFOLD_READ_WRITE);
    answers(s, "execute", "{\"command\":\"seq 1 60000 > long\"}", "exit code: 0\n<no output>");
    do {
        snprintf(input, sizeof(input), "{\"path\":\"long\",\"offset\":%lu}", next);
        call(s, "read_file", input);
        text = result.items[0].data.data;
        assert_true(result.items[0].data.len < 100200);
        assert_int_equal(strtoul(text, NULL, 10), next + 1); /* nothing is lost between pages */
        text = strstr(text, "[Cut after 100000 bytes: the file has 60000 lines. Continue with "
                            "offset=");
        if (text)
            next = strtoul(strrchr(text, '=') + 1, NULL, 10);
        pages++;
    } while (text && pages < 10);
    assert_int_equal(pages, 4);
    assert_true(strstr(result.items[0].data.data, "\n60000\n"));
}

static void row_044_a_line_without_end_is_cut_and_said_to_be(void **state)
{
    struct spec *s = *state;

    spec_start_plain(s);
    new_attached(s, PINFOLD_READ_WRITE);
    answers(s, "execute",
            "{\"command\":\"head -c 300000 /dev/zero | tr '\\\\0' x > one; echo; echo end >> "
            "one\"}",
            "exit code: 0\n\n");
    call(s, "read_file", "{\"path\":\"one\"}");
    assert_true(result.items[0].data.len < 100200);
    assert_non_null(strstr(result.items[0].data.data,
                           "[Line 1 is longer than 100000 bytes and was cut here. Continue with "
                           "offset=1.]"));
}

static void row_076_a_failing_command_is_no_error_of_the_tool(void **state)
{
    struct spec *s = *state;

    spec_start_plain(s);
    new_attached(s, PINFOLD_READ_WRITE);
    answers(s, "execute", "{\"command\":\"echo out; echo bad >&2; exit 3\"}",
            "exit code: 3\nout\n[stderr] bad\n");
}

static void row_030_names_that_are_not_text_are_escaped(void **state)
{
    struct spec *s = *state;

    spec_start_plain(s);
    new_attached(s, PINFOLD_READ_WRITE);
    spec_put(s,
             "ws/a\xff"
             "b",
             "12345");
    spec_dir(s, "ws/sub");
    answers(s, "list_dir", "{\"path\":\".\"}", "a\\xffb  5 bytes\nsub/\n");
}

static void row_055_the_root_can_be_listed_and_a_file_cannot(void **state)
{
    struct spec *s = *state;

    spec_start_plain(s);
    new_attached(s, PINFOLD_READ_WRITE);
    spec_put(s, "ws/a", "1");
    answers(s, "list_dir", "{\"path\":\"\"}", "a  1 bytes\n");
    refuses(s, "list_dir", "{\"path\":\"a\"}", "Not a directory");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SPEC_TEST(row_037_a_bad_path_is_a_result_and_no_end),
        SPEC_TEST(row_039_a_binary_file_is_a_short_error),
        SPEC_TEST(row_040_what_is_read_is_what_is_stored),
        SPEC_TEST(row_042_offsets_and_limits_are_lenient),
        SPEC_TEST(row_043_an_empty_file_is_said_to_be_empty),
        SPEC_TEST(row_044_a_long_file_is_paged_by_whole_lines),
        SPEC_TEST(row_044_a_line_without_end_is_cut_and_said_to_be),
        SPEC_TEST(row_076_a_failing_command_is_no_error_of_the_tool),
        SPEC_TEST(row_030_names_that_are_not_text_are_escaped),
        SPEC_TEST(row_055_the_root_can_be_listed_and_a_file_cannot),
    };

    return cmocka_run_group_tests_name("rows of agents' tools", tests, NULL, NULL);
}
