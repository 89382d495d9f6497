/* SPDX-License-Identifier: Apache-2.0 */
/* Search in a workspace: the same on every backend. */
#include "spec.h"

static void write_text(struct spec *s, const char *path, const char *text)
{
    spec_ok(s, pinfold_sandbox_write_file(s->sandbox, path, text, strlen(text), NULL, &s->err));
}

static struct pinfold_search_result search(struct spec *s, struct pinfold_search_options options)
{
    struct pinfold_search_result result = { 0 };

    options.size = sizeof(options);
    spec_ok(s, pinfold_sandbox_search(s->sandbox, &options, &result, NULL, &s->err));
    return result;
}

static void check_match(const struct pinfold_search_result *result, size_t i, const char *path,
                        uint64_t line, const char *text)
{
    assert_true(i < result->count);
    assert_string_equal(result->items[i].path, path);
    assert_int_equal(result->items[i].line, line);
    assert_string_equal(result->items[i].text, text);
}

static void fill_for_search(struct spec *s)
{
    spec_start_plain(s);
    write_text(s, "a.c", "int main(void)\n{\n    return 0;\n}\n");
    write_text(s, "src/b.c", "one\nMain\nthree\nmain again\nfive");
    write_text(s, "src/b.h", "/* main */\n");
    write_text(s, ".env", "main=1\n");
    write_text(s, "node_modules/m.c", "main\n");
    spec_ok(s, pinfold_sandbox_write_file(s->sandbox, "src/bin", "main\0main", 9, NULL, &s->err));
}

static void a_text_is_found_with_its_lines(void **state)
{
    struct spec *s = *state;
    struct pinfold_search_result result;

    fill_for_search(s);
    result = search(s, (struct pinfold_search_options){ .text = "main" });
    assert_int_equal(result.count, 3);
    check_match(&result, 0, "a.c", 1, "int main(void)");
    assert_int_equal(result.items[0].column, 5);
    check_match(&result, 1, "src/b.c", 4, "main again");
    check_match(&result, 2, "src/b.h", 1, "/* main */");
    assert_int_equal(result.files, 3);
    assert_int_equal(result.skipped_binary, 1);
    assert_false(result.truncated);
    pinfold_search_result_done(&result);
    result = search(
            s, (struct pinfold_search_options){ .text = "MAIN",
                                                .ignore_case = true,
                                                .path = "src",
                                                .context_lines = 1,
                                                .names = (const char *const[]){ "*.c", NULL } });
    assert_int_equal(result.matches, 2);
    assert_int_equal(result.count, 5);
    check_match(&result, 0, "src/b.c", 1, "one");
    assert_true(result.items[0].is_context);
    check_match(&result, 1, "src/b.c", 2, "Main");
    assert_false(result.items[1].is_context);
    check_match(&result, 2, "src/b.c", 3, "three");
    check_match(&result, 4, "src/b.c", 5, "five");
    pinfold_search_result_done(&result);
    result = search(s, (struct pinfold_search_options){ .text = "main", .everything = true });
    assert_int_equal(result.files, 5);
    pinfold_search_result_done(&result);
}

static void an_expression_is_found_line_by_line(void **state)
{
    struct spec *s = *state;
    struct pinfold_search_options options = PINFOLD_SEARCH_OPTIONS_INIT;
    struct pinfold_search_result result;

    fill_for_search(s);
    result = search(s,
                    (struct pinfold_search_options){ .text = "^\\s+return\\b.*;$", .regex = true });
    assert_int_equal(result.count, 1);
    check_match(&result, 0, "a.c", 3, "    return 0;");
    pinfold_search_result_done(&result);
    options.text = "(unclosed";
    options.regex = true;
    spec_refuses(s, PINFOLD_EVALUE,
                 pinfold_sandbox_search(s->sandbox, &options, &result, NULL, &s->err));
    assert_non_null(strstr(s->err.msg, "(unclosed"));
}

static void names_are_found_by_patterns(void **state)
{
    struct spec *s = *state;
    struct pinfold_search_result result;
    struct pinfold_search_options options = PINFOLD_SEARCH_OPTIONS_INIT;

    fill_for_search(s);
    result = search(s, (struct pinfold_search_options){
                               .names = (const char *const[]){ "*.c", "src/*.h", NULL } });
    assert_int_equal(result.count, 3);
    check_match(&result, 0, "a.c", 0, "");
    check_match(&result, 2, "src/b.h", 0, "");
    pinfold_search_result_done(&result);
    result = search(s, (struct pinfold_search_options){ .names = (const char *const[]){ "*", NULL },
                                                        .max_results = 2 });
    assert_int_equal(result.count, 2);
    assert_true(result.truncated);
    pinfold_search_result_done(&result);
    spec_refuses(s, PINFOLD_EVALUE,
                 pinfold_sandbox_search(s->sandbox, &options, &result, NULL, &s->err));
    options.text = "x";
    options.path = "missing";
    spec_refuses(s, PINFOLD_EOS,
                 pinfold_sandbox_search(s->sandbox, &options, &result, NULL, &s->err));
    assert_int_equal(s->err.sys_errno, ENOENT);
}

static void limits_of_a_search_are_told(void **state)
{
    struct spec *s = *state;
    struct pinfold_search_result result;

    spec_start_plain(s);
    write_text(s, "a.py", "x\nx\nx\n");
    write_text(s, "b.py", "x\n");
    write_text(s, "c.py", "a very long line in which the x is found somewhere\n");
    result = search(s, (struct pinfold_search_options){ .text = "x", .max_results = 4 });
    assert_int_equal(result.matches, 4);
    assert_true(result.truncated);
    pinfold_search_result_done(&result);
    result = search(s, (struct pinfold_search_options){
                               .text = "x", .max_per_file = 1, .max_line_bytes = 12 });
    assert_int_equal(result.matches, 3);
    assert_true(result.truncated);
    assert_true(result.items[2].line_cut);
    assert_int_equal(result.items[2].text_len, 12);
    assert_non_null(strchr(result.items[2].text, 'x'));
    pinfold_search_result_done(&result);
    result = search(s, (struct pinfold_search_options){ .text = "x", .max_file_bytes = 5 });
    assert_int_equal(result.matches, 1);
    assert_int_equal(result.skipped_large, 2);
    pinfold_search_result_done(&result);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SPEC_TEST(a_text_is_found_with_its_lines),
        SPEC_TEST(an_expression_is_found_line_by_line),
        SPEC_TEST(names_are_found_by_patterns),
        SPEC_TEST(limits_of_a_search_are_told),
    };

    return spec_run_tests("search", tests);
}
