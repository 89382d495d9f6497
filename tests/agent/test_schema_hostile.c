/* SPDX-License-Identifier: Apache-2.0 */
/* Schemas and inputs that want to keep the checker busy. */
#include "schemas.h"

/* {"a":"xxx..."}; the caller frees it. */
static char *long_input(char c, size_t len)
{
    char *text = malloc(len + 16);

    assert_non_null(text);
    memcpy(text, "{\"a\":\"", 6);
    memset(text + 6, c, len);
    memcpy(text + 6 + len, "\"}", 3);
    return text;
}

/* Each of these would take hours, or for ever, if the steps were not counted. */
static void hostile_patterns_are_given_up(void **state)
{
    static const char *const patterns[] = {
        ONE("\"pattern\":\"^(a*)*[bc]\""),
        ONE("\"pattern\":\"(a|aa)+[bc]\""),
        ONE("\"pattern\":\"a*[bc]\""),
        ONE("\"pattern\":\"^(a?){50}a{50}c\""),
        ONE("\"pattern\":\"(?=(a+))a*[bc]\\\\1\""),
        ONE("\"pattern\":\"^(?:(a)|b)*\\\\1+$c\""),
        ONE("\"not\":{\"pattern\":\"a*[bc]\"}"),
        ONE("\"anyOf\":[{\"pattern\":\"a*[bc]\"},true]"),
    };
    char *input = long_input('a', 1000000);

    (void)state;
    for (size_t i = 0; i < sizeof(patterns) / sizeof(*patterns); i++)
        if (!strstr(check(patterns[i], input), "too long"))
            fail_msg("%s: %s", patterns[i], check(patterns[i], input));
    free(input);
}

static void long_texts_match_ordinary_patterns(void **state)
{
    char *input = long_input('a', 2000000);

    (void)state;
    assert_string_equal(check(ONE("\"pattern\":\"^[a-z]+$\""), input), "");
    assert_string_equal(check(ONE("\"pattern\":\"^[^<>]*$\""), input), "");
    assert_string_equal(check(ONE("\"pattern\":\"\\\\S\""), input), "");
    free(input);
}

static void schemas_that_refer_to_themselves_end(void **state)
{
    static const char schema[] =
            "{\"type\":\"object\",\"properties\":{\"a\":{\"$ref\":\"#/$defs/x\"}},\"$defs\":{"
            "\"x\":{\"anyOf\":[{\"allOf\":[{\"$ref\":\"#/$defs/x\"},{\"$ref\":\"#/$defs/x\"}]},"
            "{\"not\":{\"$ref\":\"#/$defs/x\"}}]}}}";

    (void)state;
    assert_true(strlen(check(schema, "{\"a\":1}")) > 0);
}

static void many_items_are_told_apart_quickly(void **state)
{
    size_t count = 300000, len = 0;
    char *text = malloc(count * 8 + 64);

    (void)state;
    assert_non_null(text);
    len = (size_t)sprintf(text, "{\"a\":[");
    for (size_t i = 0; i < count; i++)
        len += (size_t)sprintf(text + len, "%s%zu", i ? "," : "", i);
    snprintf(text + len, 64, "]}");
    assert_string_equal(check(ONE("\"uniqueItems\":true"), text), "");
    snprintf(text + len, 64, ",7.0]}");
    assert_string_equal(check(ONE("\"uniqueItems\":true"), text),
                        "- a: has an item twice, and all must differ\n");
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hostile_patterns_are_given_up),
        cmocka_unit_test(long_texts_match_ordinary_patterns),
        cmocka_unit_test(schemas_that_refer_to_themselves_end),
        cmocka_unit_test(many_items_are_told_apart_quickly),
    };

    return cmocka_run_group_tests_name("schema_hostile", tests, NULL, NULL);
}
