/* SPDX-License-Identifier: Apache-2.0 */
/* What hostile files and expressions do to a search: nothing. */
#include "tree/search.h"

#include "tmp.h"

static struct pinfold_search_result found;
static struct pinfold_error err;

static int search_with(const struct tmp *tmp, struct pinfold_search_options options,
                       struct pinfold_cancel *cancel)
{
    struct pf_search_request request = {
        .root_fd = tmp->fd,
        .path = ".",
        .options = &options,
        .cancel = cancel,
    };

    options.size = sizeof(options);
    pinfold_search_result_done(&found);
    return pf_search(&request, &found, &err);
}

static void search(const struct tmp *tmp, struct pinfold_search_options options)
{
    if (search_with(tmp, options, NULL) < 0)
        fail_msg("%s", err.msg);
}

static int teardown(void **state)
{
    pinfold_search_result_done(&found);
    return tmp_teardown(state);
}

/* So many of one letter, and then another. */
static void put_many(const struct tmp *tmp, const char *name, char c, size_t count)
{
    char *text = malloc(count + 3);

    assert_non_null(text);
    memset(text, c, count);
    memcpy(text + count, "!\n", 3);
    put(tmp->fd, name, text);
    free(text);
}

static void an_expression_that_never_ends_is_given_up(void **state)
{
    const struct tmp *tmp = *state;

    put_many(tmp, "a", 'a', 60000);
    search(tmp,
           (struct pinfold_search_options){ .text = "(a|a)+$", .regex = true, .max_cpu_ms = 50 });
    assert_true(found.truncated);
    assert_int_equal(found.matches, 0);
    /* Each start costs little, and there are many. */
    search(tmp, (struct pinfold_search_options){
                        .text = "a{1,3000}?a{1,3000}?[^a!]", .regex = true, .max_cpu_ms = 50 });
    assert_true(found.truncated);
    assert_int_equal(found.matches, 0);
}

static void a_file_that_is_too_hard_does_not_hide_the_others(void **state)
{
    const struct tmp *tmp = *state;

    put_many(tmp, "a", 'a', 30);
    put(tmp->fd, "b", "aaa\n");
    search(tmp,
           (struct pinfold_search_options){ .text = "(*LIMIT_MATCH=500)^(a|a)+$", .regex = true });
    assert_int_equal(found.skipped_hard, 1);
    assert_int_equal(found.matches, 1);
    assert_string_equal(found.items[0].path, "b");
    assert_true(found.truncated);
}

static void a_search_that_is_cancelled_says_so(void **state)
{
    const struct tmp *tmp = *state;
    struct pinfold_cancel *cancel = NULL;

    put(tmp->fd, "a", "x\n");
    assert_int_equal(pinfold_cancel_new(&cancel, NULL), 0);
    pinfold_cancel_fire(cancel);
    assert_int_equal(search_with(tmp, (struct pinfold_search_options){ .text = "x" }, cancel),
                     -PINFOLD_ECANCELLED);
    pinfold_cancel_free(cancel);
}

static void bytes_that_are_no_text_neither_match_nor_come_out(void **state)
{
    const struct tmp *tmp = *state;

    put(tmp->fd, "a", "\xff\xfe needle \xc3\n\xc3(\n");
    search(tmp, (struct pinfold_search_options){ .text = "needle", .context_lines = 1 });
    assert_int_equal(found.count, 2);
    assert_string_equal(found.items[0].text, "\xef\xbf\xbd\xef\xbf\xbd needle \xef\xbf\xbd");
    assert_string_equal(found.items[1].text, "\xef\xbf\xbd(");
    search(tmp, (struct pinfold_search_options){ .text = "ne+dle.$", .regex = true });
    assert_int_equal(found.matches, 0);
    search(tmp, (struct pinfold_search_options){ .text = "^\\W needle|ne+dle", .regex = true });
    assert_int_equal(found.matches, 1);
}

static void carriage_returns_belong_to_the_ends_of_lines(void **state)
{
    const struct tmp *tmp = *state;

    put(tmp->fd, "a", "one\r\ntwo\r\n");
    search(tmp, (struct pinfold_search_options){ .text = "^two$", .regex = true });
    assert_int_equal(found.matches, 1);
    assert_int_equal(found.items[0].line, 2);
}

static void each_line_is_told_once_however_close_the_matches_are(void **state)
{
    const struct tmp *tmp = *state;
    static const unsigned expected[] = { 1, 2, 3, 4, 5, 6, 9, 10 };

    put(tmp->fd, "a", "1\n2 x\n3\n4 x x\n5\n6\n7\n8\n9\n10 x");
    search(tmp, (struct pinfold_search_options){ .text = "x", .context_lines = 2 });
    assert_int_equal(found.matches, 3);
    assert_int_equal(found.count, 9);
    for (size_t i = 0; i < 6; i++)
        assert_int_equal(found.items[i].line, expected[i]);
    assert_int_equal(found.items[8].line, 10);
    assert_true(found.items[7].is_context);
    assert_int_equal(found.items[7].line, 9);
}

static void links_are_not_followed_and_pipes_not_opened(void **state)
{
    const struct tmp *tmp = *state;

    put_dir(tmp->fd, "d");
    put(tmp->fd, "d/f", "needle\n");
    put_link(tmp->fd, "link", "d/f");
    put_link(tmp->fd, "dir", "d");
    put_link(tmp->fd, "out", "/etc/passwd");
    assert_int_equal(mkfifoat(tmp->fd, "fifo", 0600), 0);
    search(tmp, (struct pinfold_search_options){ .text = "needle" });
    assert_int_equal(found.count, 1);
    assert_int_equal(found.files_searched, 1);
    assert_int_equal(found.errors.count, 0);
}

static void a_long_line_is_cut_around_its_match_and_not_in_a_character(void **state)
{
    const struct tmp *tmp = *state;
    char line[4096];
    size_t at = 0;

    while (at < 3000)
        at += (size_t)snprintf(line + at, sizeof(line) - at, "\xc3\xa4");
    at += (size_t)snprintf(line + at, sizeof(line) - at, "needle");
    while (at < 4000)
        at += (size_t)snprintf(line + at, sizeof(line) - at, "\xe2\x82\xac");
    put(tmp->fd, "a", line);
    for (size_t max = 8; max < 80; max++) {
        search(tmp, (struct pinfold_search_options){ .text = "needle", .max_line_bytes = max });
        assert_int_equal(found.count, 1);
        assert_int_equal(found.items[0].column, 3001);
        assert_true(found.items[0].line_cut);
        assert_in_range(found.items[0].text_len, max - 5, max);
        assert_null(strstr(found.items[0].text, "\xef\xbf\xbd"));
        if (max >= 20)
            assert_non_null(strstr(found.items[0].text, "needle"));
    }
}

static void what_is_wrong_with_an_expression_is_said(void **state)
{
    const struct tmp *tmp = *state;
    char longest[10002];

    memset(longest, 'a', sizeof(longest) - 1);
    longest[sizeof(longest) - 1] = '\0';
    for (const char *const *bad =
                 (const char *const[]){ "(", "[a", "\\C", "(?<=a*)b", "", longest, "\xff", NULL };
         *bad; bad++) {
        err = (struct pinfold_error)PINFOLD_ERROR_INIT;
        assert_int_equal(search_with(tmp,
                                     (struct pinfold_search_options){ .text = *bad, .regex = true },
                                     NULL),
                         -PINFOLD_EVALUE);
        assert_true(strlen(err.msg) > 10);
    }
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, tmp_setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_expression_that_never_ends_is_given_up),
        TEST(a_file_that_is_too_hard_does_not_hide_the_others),
        TEST(a_search_that_is_cancelled_says_so),
        TEST(bytes_that_are_no_text_neither_match_nor_come_out),
        TEST(carriage_returns_belong_to_the_ends_of_lines),
        TEST(each_line_is_told_once_however_close_the_matches_are),
        TEST(links_are_not_followed_and_pipes_not_opened),
        TEST(a_long_line_is_cut_around_its_match_and_not_in_a_character),
        TEST(what_is_wrong_with_an_expression_is_said),
    };

    return cmocka_run_group_tests_name("search", tests, NULL, NULL);
}
