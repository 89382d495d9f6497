/* SPDX-License-Identifier: Apache-2.0 */
#include "schemas.h"

static void a_missing_parameter_is_named(void **state)
{
    static const char schema[] = "{\"type\":\"object\",\"properties\":{\"path\":{\"type\":"
                                 "\"string\"},\"n\":{\"type\":\"integer\"}},"
                                 "\"required\":[\"path\"]}";

    (void)state;
    assert_string_equal(check(schema, "{}"), "- path: is required, and missing\n");
    assert_string_equal(check(schema, "{\"path\":\"a\"}"), "");
    assert_string_equal(check(schema, "{\"path\":\"a\",\"n\":1}"), "");
    assert_string_equal(check(schema, "[]"), "- expected object, got an array\n");
}

static void an_unknown_parameter_is_told_what_there_is(void **state)
{
    (void)state;
    assert_string_equal(check(ONE("\"type\":\"string\""), "{\"b\":1}"),
                        "- b: there is no such parameter; there are: a\n");
    assert_string_equal(check("{\"type\":\"object\"}", "{\"b\":1}"),
                        "- b: there is no such parameter; there is none\n");
    assert_string_equal(check("{\"type\":\"object\",\"additionalProperties\":true}", "{\"b\":1}"),
                        "");
    assert_string_equal(
            check("{\"type\":\"object\",\"additionalProperties\":{\"type\":\"integer\"}}",
                  "{\"b\":\"x\"}"),
            "- b: expected integer, got the string \"x\"\n");
    /* Further in, objects are open unless they say otherwise. */
    assert_string_equal(check(ONE("\"type\":\"object\""), "{\"a\":{\"x\":1}}"), "");
    assert_string_equal(
            check(ONE("\"type\":\"object\",\"additionalProperties\":false"), "{\"a\":{\"x\":1}}"),
            "- a.x: there is no such parameter; there is none\n");
}

static void types_are_checked_and_nothing_is_guessed(void **state)
{
    static const struct {
        const char *type, *good, *bad, *got;
    } cases[] = {
        { "string", "\"x\"", "1", "1" },      { "integer", "5", "\"5\"", "the string \"5\"" },
        { "integer", "5.0", "5.5", "5.5" },   { "integer", "-3", "1e300", "1e+300" },
        { "number", "0.5", "true", "true" },  { "boolean", "false", "0", "0" },
        { "array", "[]", "{}", "an object" }, { "object", "{}", "null", "null" },
        { "null", "null", "false", "false" },
    };
    char schema[128], value[128], said[128];

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        snprintf(schema, sizeof(schema), ONE("\"type\":\"%s\""), cases[i].type);
        snprintf(value, sizeof(value), "{\"a\":%s}", cases[i].good);
        assert_string_equal(check(schema, value), "");
        snprintf(value, sizeof(value), "{\"a\":%s}", cases[i].bad);
        snprintf(said, sizeof(said), "- a: expected %s, got %s\n", cases[i].type, cases[i].got);
        assert_string_equal(check(schema, value), said);
    }
    assert_string_equal(check(ONE("\"type\":[\"string\",\"null\"]"), "{\"a\":null}"), "");
    assert_string_equal(check(ONE("\"type\":[\"string\",\"null\"]"), "{\"a\":1}"),
                        "- a: expected string or null, got 1\n");
}

static void choices_and_bounds_are_checked(void **state)
{
    (void)state;
    assert_string_equal(check(ONE("\"enum\":[\"get\",\"set\"]"), "{\"a\":\"put\"}"),
                        "- a: expected one of [\"get\", \"set\"], got the string \"put\"\n");
    assert_string_equal(check(ONE("\"enum\":[\"get\",\"set\"]"), "{\"a\":\"set\"}"), "");
    assert_string_equal(check(ONE("\"const\":1"), "{\"a\":2}"), "- a: expected 1, got 2\n");
    assert_string_equal(check(ONE("\"const\":1"), "{\"a\":1}"), "");
    assert_string_equal(check(ONE("\"minimum\":1,\"maximum\":3"), "{\"a\":0}"),
                        "- a: must be at least 1, got 0\n");
    assert_string_equal(check(ONE("\"minimum\":1,\"maximum\":3"), "{\"a\":3}"), "");
    assert_string_equal(check(ONE("\"maximum\":3"), "{\"a\":3.5}"),
                        "- a: must be at most 3, got 3.5\n");
    assert_string_equal(check(ONE("\"exclusiveMinimum\":0"), "{\"a\":0}"),
                        "- a: must be more than 0, got 0\n");
    assert_string_equal(check(ONE("\"exclusiveMaximum\":2"), "{\"a\":2}"),
                        "- a: must be less than 2, got 2\n");
    assert_string_equal(check(ONE("\"minLength\":2"), "{\"a\":\"\\u00e9\"}"),
                        "- a: must have at least 2 characters, has 1\n");
    assert_string_equal(check(ONE("\"maxLength\":1"), "{\"a\":\"\\u20ac\"}"), "");
    assert_string_equal(check(ONE("\"minItems\":1"), "{\"a\":[]}"),
                        "- a: must have at least 1 items, has 0\n");
    assert_string_equal(check(ONE("\"maxItems\":1"), "{\"a\":[1,2]}"),
                        "- a: must have at most 1 items, has 2\n");
}

static void what_is_inside_is_found_by_its_path(void **state)
{
    static const char schema[] =
            ONE("\"type\":\"array\",\"items\":{\"type\":\"object\",\"properties\":{\"old\":{"
                "\"type\":\"string\"}},\"required\":[\"old\"]}");

    (void)state;
    assert_string_equal(check(schema, "{\"a\":[{\"old\":\"x\"},{\"old\":7},{}]}"),
                        "- a[1].old: expected string, got 7\n- a[2].old: is required, and "
                        "missing\n");
}

static void forms_can_be_combined(void **state)
{
    static const char any[] = ONE("\"anyOf\":[{\"type\":\"string\"},{\"type\":\"null\"}]");
    static const char exactly[] = ONE("\"oneOf\":[{\"type\":\"integer\"},{\"minimum\":5}]");
    static const char all[] = ONE("\"allOf\":[{\"type\":\"integer\"},{\"minimum\":5}]");

    (void)state;
    assert_string_equal(check(any, "{\"a\":null}"), "");
    assert_string_equal(check(any, "{\"a\":1}"),
                        "- a: 1 fits none of the 2 forms that the schema allows\n");
    assert_string_equal(check(exactly, "{\"a\":1}"), "");
    assert_string_equal(check(exactly, "{\"a\":6}"),
                        "- a: 6 fits 2 of the 2 forms of which it must fit exactly one\n");
    assert_string_equal(check(all, "{\"a\":4}"), "- a: must be at least 5, got 4\n");
    assert_string_equal(check(all, "{\"a\":5}"), "");
}

static void references_lead_into_the_schema(void **state)
{
    static const char schema[] =
            "{\"type\":\"object\",\"properties\":{\"a\":{\"$ref\":\"#/$defs/tree\"}},"
            "\"$defs\":{\"tree\":{\"type\":\"array\",\"items\":{\"$ref\":\"#/$defs/tree\"}}}}";
    static const char circle[] = "{\"type\":\"object\",\"properties\":{\"a\":{\"$ref\":"
                                 "\"#/properties/a\"}}}";

    (void)state;
    assert_string_equal(check(schema, "{\"a\":[[],[[]]]}"), "");
    assert_string_equal(check(schema, "{\"a\":[[1]]}"), "- a[0][0]: expected array, got 1\n");
    assert_non_null(strstr(check(circle, "{\"a\":1}"), "nested deeper than 64 levels"));
}

static void problems_end_after_a_few(void **state)
{
    const char *said = check(ONE("\"type\":\"array\",\"items\":{\"type\":\"string\"}"),
                             "{\"a\":[1,2,3,4,5,6,7,8,9],\"b\":0}");
    unsigned lines = 0;

    (void)state;
    for (const char *at = said; *at; at++)
        lines += *at == '\n';
    assert_int_equal(lines, 6);
}

static void texts_are_held_to_patterns_and_formats(void **state)
{
    (void)state;
    assert_string_equal(check(ONE("\"pattern\":\"^[a-z]+$\""), "{\"a\":\"abc\"}"), "");
    assert_string_equal(check(ONE("\"pattern\":\"^[a-z]+$\""), "{\"a\":\"abc\\n\"}"),
                        "- a: must match the pattern ^[a-z]+$, got the string \"abc\n\"\n");
    assert_string_equal(check(ONE("\"pattern\":\"b\""), "{\"a\":\"abc\"}"), "");
    assert_string_equal(check(ONE("\"pattern\":\"^.$\""), "{\"a\":\"\\u20ac\"}"), "");
    assert_string_equal(check(ONE("\"pattern\":\"^b\""), "{\"a\":7}"), "");
    assert_string_equal(check(ONE("\"format\":\"date\""), "{\"a\":\"2024-02-29\"}"), "");
    assert_string_equal(check(ONE("\"format\":\"date\""), "{\"a\":\"2026-02-29\"}"),
                        "- a: must have the format date, got the string \"2026-02-29\"\n");
    assert_string_equal(check(ONE("\"format\":\"of-my-own\""), "{\"a\":\"x\"}"), "");
}

static void a_schema_that_is_none_is_refused(void **state)
{
    static const char *const bad[] = {
        "{}",
        "[]",
        "{\"type\":\"string\"}",
        "{\"type\":\"object\",\"properties\":[]}",
        ONE("\"type\":\"strin\""),
        ONE("\"type\":[\"string\",1]"),
        ONE("\"minimum\":\"1\""),
        ONE("\"minLength\":1.5"),
        ONE("\"required\":[1]"),
        ONE("\"enum\":{}"),
        ONE("\"anyOf\":{}"),
        ONE("\"items\":1"),
        ONE("\"$ref\":\"#/$defs/none\""),
        ONE("\"$ref\":\"http://example.com\""),
        ONE("\"$ref\":7"),
        ONE("\"pattern\":7"),
        ONE("\"pattern\":\"(\""),
        ONE("\"pattern\":\"\\\\C\""),
        ONE("\"patternProperties\":{\"[\":{}}"),
        ONE("\"multipleOf\":0"),
        ONE("\"minItems\":-1"),
        ONE("\"uniqueItems\":1"),
        ONE("\"not\":1"),
        ONE("\"dependencies\":{\"a\":1}"),
        /* Behind a reference, where nothing else leads. */
        "{\"type\":\"object\",\"properties\":{\"a\":{\"$ref\":\"#/$defs/x\"}},\"$defs\":{\"x\":{"
        "\"$ref\":7}}}",
        "{\"type\":\"object\",\"properties\":{\"a\":{\"$ref\":\"#/odd\"}},\"odd\":{\"anyOf\":[{"
        "\"type\":[7]}]}}",
    };
    struct pinfold_error err = PINFOLD_ERROR_INIT;

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        json_t *schema = parse(bad[i]);

        err.msg[0] = '\0';
        if (pf_schema_check_input(schema, &err) != -PINFOLD_EVALUE)
            fail_msg("accepted: %s", bad[i]);
        assert_ptr_equal(strstr(err.msg, "input schema: "), err.msg);
        json_decref(schema);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_missing_parameter_is_named),
        cmocka_unit_test(an_unknown_parameter_is_told_what_there_is),
        cmocka_unit_test(types_are_checked_and_nothing_is_guessed),
        cmocka_unit_test(choices_and_bounds_are_checked),
        cmocka_unit_test(what_is_inside_is_found_by_its_path),
        cmocka_unit_test(forms_can_be_combined),
        cmocka_unit_test(references_lead_into_the_schema),
        cmocka_unit_test(problems_end_after_a_few),
        cmocka_unit_test(texts_are_held_to_patterns_and_formats),
        cmocka_unit_test(a_schema_that_is_none_is_refused),
    };

    return cmocka_run_group_tests_name("schema", tests, NULL, NULL);
}
