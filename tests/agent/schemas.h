/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of JSON Schema share. */
#ifndef TESTS_AGENT_SCHEMAS_H
#define TESTS_AGENT_SCHEMAS_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/schema.h"

static inline json_t *parse(const char *text)
{
    json_error_t wrong;
    json_t *json = json_loads(text, JSON_DECODE_ANY, &wrong);

    if (!json)
        fail_msg("%s: %s", text, wrong.text);
    return json;
}

/* What the schema says of a value: "" when it is valid. */
static inline const char *check(const char *schema_text, const char *value_text)
{
    static char text[4096];
    struct pf_buf wrong = PF_BUF_INIT(sizeof(text) - 1);
    json_t *schema = parse(schema_text), *value = parse(value_text);
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    int r;

    assert_int_equal(pf_schema_check_input(schema, &err), 0);
    r = pf_schema_validate(schema, value, true, &wrong);
    assert_int_equal(r, wrong.len == 0);
    memcpy(text, wrong.data ? wrong.data : "", wrong.len);
    text[wrong.len] = '\0';
    pf_buf_done(&wrong);
    json_decref(schema);
    json_decref(value);
    return text;
}

/* The schema of an object whose property "a" has this one. */
#define ONE(rest) "{\"type\":\"object\",\"properties\":{\"a\":{" rest "}}}"

#endif
