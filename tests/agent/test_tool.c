/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/tool.h"

static int run_nothing(void *ctx, struct pinfold_tool_call *call,
                       struct pinfold_tool_result *ret_result, struct pinfold_error *err)
{
    (void)ctx;
    (void)call;
    (void)ret_result;
    (void)err;
    return 0;
}

static struct pinfold_tool_options options_of(const char *name, const char *schema)
{
    struct pinfold_tool_options options = PINFOLD_TOOL_OPTIONS_INIT;

    options.name = name;
    options.description = "Does it.";
    options.input_schema = schema;
    options.run = run_nothing;
    return options;
}

static void note_free(void *ctx)
{
    (*(int *)ctx)++;
}

static void a_tool_keeps_what_it_was_made_of(void **state)
{
    struct pinfold_tool_options options =
            options_of("do-it_2", "{ \"type\": \"object\", \"properties\": {} }");
    struct pinfold_tool *tool = NULL;
    int freed = 0;

    (void)state;
    options.ctx = &freed;
    options.free = note_free;
    assert_int_equal(pinfold_tool_new(&options, &tool, NULL), 0);
    assert_string_equal(pinfold_tool_name(tool), "do-it_2");
    assert_string_equal(pinfold_tool_description(tool), "Does it.");
    assert_string_equal(pinfold_tool_input_schema(tool), "{\"type\":\"object\",\"properties\":{}}");
    pinfold_tool_unref(pinfold_tool_ref(tool));
    assert_int_equal(freed, 0);
    pinfold_tool_unref(tool);
    assert_int_equal(freed, 1);
    pinfold_tool_unref(NULL);
}

static void bad_names_and_schemas_are_refused(void **state)
{
    static const char *const names[] = {
        "",         "a b", "a.b",
        "\xc3\xa9", NULL,  "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
    };
    struct pinfold_tool_options options;
    struct pinfold_tool *tool = NULL;
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    int freed = 0;

    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        options = options_of(names[i], NULL);
        assert_int_equal(pinfold_tool_new(&options, &tool, &err), -PINFOLD_EVALUE);
    }
    options = options_of("x", "{\"type\":");
    options.ctx = &freed;
    options.free = note_free;
    assert_int_equal(pinfold_tool_new(&options, &tool, &err), -PINFOLD_EVALUE);
    assert_non_null(strstr(err.msg, "tool x: input schema: line 1 column 8"));
    options = options_of("x", NULL);
    options.run = NULL;
    assert_int_equal(pinfold_tool_new(&options, &tool, &err), -PINFOLD_EVALUE);
    options = options_of("x", NULL);
    options.size--;
    assert_int_equal(pinfold_tool_new(&options, &tool, &err), -PINFOLD_EVALUE);
    assert_null(tool);
    assert_int_equal(freed, 0); /* a context stays the caller's on failure */
}

static struct pinfold_tool *reader(void)
{
    struct pinfold_tool_options options = options_of(
            "read", "{\"type\":\"object\",\"properties\":{\"path\":{\"type\":\"string\"},"
                    "\"n\":{\"type\":\"integer\"},\"x\":{\"type\":\"number\"},"
                    "\"b\":{\"type\":\"boolean\"}},\"required\":[\"path\"]}");
    struct pinfold_tool *tool = NULL;

    assert_int_equal(pinfold_tool_new(&options, &tool, NULL), 0);
    return tool;
}

static void what_is_wrong_with_an_input_is_told_in_words(void **state)
{
    struct pinfold_tool *tool = reader();
    struct pinfold_bytes wrong = { 0 };

    (void)state;
    assert_int_equal(pinfold_tool_check_input(tool, "{\"path\":\"a\"}", 12, &wrong, NULL), 1);
    assert_int_equal(wrong.len, 0);
    pinfold_bytes_done(&wrong);
    assert_int_equal(pinfold_tool_check_input(tool, "{\"path\":", 8, &wrong, NULL), 0);
    assert_non_null(strstr(wrong.data, "The input of read is not valid JSON: line 1 column 8"));
    pinfold_bytes_done(&wrong);
    assert_int_equal(pinfold_tool_check_input(tool, "{\"path\":1}", 10, &wrong, NULL), 0);
    assert_string_equal(wrong.data, "The input of read is not valid. Nothing was run.\n"
                                    "- path: expected string, got 1\n");
    pinfold_bytes_done(&wrong);
    assert_int_equal(pinfold_tool_check_input(tool, "", 0, &wrong, NULL), 0);
    assert_non_null(strstr(wrong.data, "path: is required"));
    pinfold_bytes_done(&wrong);
    pinfold_tool_unref(tool);
}

static void an_input_of_ten_megabytes_is_refused_with_a_reason(void **state)
{
    enum { LEN = 10 * 1024 * 1024 };
    struct pinfold_tool *tool = reader();
    struct pinfold_bytes wrong = { 0 };
    char *text = malloc(LEN);

    (void)state;
    assert_non_null(text);
    memset(text, 'a', LEN);
    memcpy(text, "{\"path\":\"", 9);
    memcpy(text + LEN - 2, "\"}", 2);
    assert_int_equal(pinfold_tool_check_input(tool, text, LEN, &wrong, NULL), 0);
    assert_non_null(strstr(wrong.data, "at most 4194304 are taken"));
    pinfold_bytes_done(&wrong);
    free(text);
    pinfold_tool_unref(tool);
}

static void an_input_nested_without_end_is_refused(void **state)
{
    enum { LEN = 100000 };
    struct pinfold_tool *tool = reader();
    struct pinfold_bytes wrong = { 0 };
    char *text = malloc(LEN);

    (void)state;
    assert_non_null(text);
    memset(text, '[', LEN);
    assert_int_equal(pinfold_tool_check_input(tool, text, LEN, &wrong, NULL), 0);
    assert_non_null(strstr(wrong.data, "not valid JSON"));
    pinfold_bytes_done(&wrong);
    free(text);
    pinfold_tool_unref(tool);
}

static void a_call_gives_its_parameters(void **state)
{
    static const char text[] =
            "{\"path\":\"a\\u0000b\",\"n\":5.0,\"x\":2,\"b\":true,\"none\":null}";
    struct pinfold_tool_call call = { .id = "t1", .text = text, .len = sizeof(text) - 1 };
    size_t len = 0;

    (void)state;
    call.input = json_loads(text, JSON_ALLOW_NUL, NULL);
    assert_non_null(call.input);
    assert_string_equal(pinfold_tool_call_id(&call), "t1");
    assert_memory_equal(pinfold_tool_call_string(&call, "path", &len), "a\0b", 4);
    assert_int_equal(len, 3);
    assert_int_equal(pinfold_tool_call_integer(&call, "n", 7), 5);
    assert_int_equal(pinfold_tool_call_integer(&call, "none", 7), 7);
    assert_int_equal(pinfold_tool_call_integer(&call, "path", 7), 7);
    assert_true(pinfold_tool_call_number(&call, "x", 0) > 1.9);
    assert_true(pinfold_tool_call_bool(&call, "b", false));
    assert_true(pinfold_tool_call_bool(&call, "missing", true));
    assert_null(pinfold_tool_call_string(&call, "missing", &len));
    assert_int_equal(len, 0);
    assert_string_equal(pinfold_tool_call_input(&call, NULL), text);
    assert_null(pinfold_tool_call_agent(&call));
    json_decref(call.input);
}

static void results_hold_blocks_of_every_kind(void **state)
{
    struct pinfold_tool_result result = { 0 };
    struct pinfold_tool_content image = { .kind = PINFOLD_TOOL_IMAGE };
    struct pinfold_tool_content json = { .kind = PINFOLD_TOOL_JSON };
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    char bytes[] = "\x89PNG", value[] = "{\"a\":1}", bad[] = "{", format[] = "png";

    (void)state;
    assert_int_equal(pinfold_tool_result_add_text(&result, "a\xff", 2, NULL), 0);
    assert_string_equal(result.items[0].data.data, "a\xef\xbf\xbd");
    image.data = (struct pinfold_bytes){ bytes, 4 };
    assert_int_equal(pinfold_tool_result_add(&result, &image, &err), -PINFOLD_EVALUE);
    image.format = format;
    assert_int_equal(pinfold_tool_result_add(&result, &image, &err), 0);
    json.data = (struct pinfold_bytes){ bad, 1 };
    assert_int_equal(pinfold_tool_result_add(&result, &json, &err), -PINFOLD_EVALUE);
    json.data = (struct pinfold_bytes){ value, 7 };
    assert_int_equal(pinfold_tool_result_add(&result, &json, &err), 0);
    assert_int_equal(result.count, 3);
    assert_string_equal(result.items[1].format, "png");
    assert_string_equal(result.items[2].data.data, "{\"a\":1}");
    assert_int_equal(pf_tool_result_fail(&result, "no: %s", "such"), 0);
    assert_int_equal(result.count, 1);
    assert_true(result.is_error);
    assert_string_equal(result.items[0].data.data, "no: such");
    pinfold_tool_result_done(&result);
    pinfold_tool_result_done(&result);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tool_keeps_what_it_was_made_of),
        cmocka_unit_test(bad_names_and_schemas_are_refused),
        cmocka_unit_test(what_is_wrong_with_an_input_is_told_in_words),
        cmocka_unit_test(an_input_of_ten_megabytes_is_refused_with_a_reason),
        cmocka_unit_test(an_input_nested_without_end_is_refused),
        cmocka_unit_test(a_call_gives_its_parameters),
        cmocka_unit_test(results_hold_blocks_of_every_kind),
    };

    return cmocka_run_group_tests_name("tool", tests, NULL, NULL);
}
