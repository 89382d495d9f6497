/* SPDX-License-Identifier: Apache-2.0 */
#include "mcp/json.h"

#include <pinfold/tool.h>

int pf_mcp_put(json_t *object, const char *key, json_t *value)
{
    return json_object_set_new(object, key, value);
}

int pf_mcp_push(json_t *array, json_t *value)
{
    return json_array_append_new(array, value);
}

json_t *pf_mcp_whole(json_t *value, int bad)
{
    if (!bad)
        return value;
    json_decref(value);
    return NULL;
}

json_t *pf_mcp_text(const char *text, size_t len)
{
    __attribute__((cleanup(pinfold_tool_result_done))) struct pinfold_tool_result clean = { 0 };
    json_t *value = json_stringn(text ? text : "", text ? len : 0);

    /* jansson refuses what is not UTF-8. That is rare, and then the library mends it. */
    if (value || pinfold_tool_result_add_text(&clean, text, len, NULL) < 0)
        return value;
    return json_stringn(clean.items[0].data.data, clean.items[0].data.len);
}

const char *pf_mcp_string(const json_t *object, const char *key, size_t *ret_len)
{
    const json_t *value = json_object_get(object, key);

    if (ret_len)
        *ret_len = json_string_length(value);
    return json_string_value(value);
}

json_int_t pf_mcp_integer(const json_t *object, const char *key, json_int_t missing)
{
    const json_t *value = json_object_get(object, key);

    if (json_is_integer(value))
        return json_integer_value(value);
    /* 5.0 is an integer to a schema. */
    if (json_is_real(value) && json_real_value(value) > -9e15 && json_real_value(value) < 9e15)
        return (json_int_t)json_real_value(value);
    return missing;
}

double pf_mcp_number(const json_t *object, const char *key, double missing)
{
    const json_t *value = json_object_get(object, key);

    return json_is_number(value) ? json_number_value(value) : missing;
}

int pf_mcp_flag(const json_t *object, const char *key, int missing)
{
    const json_t *value = json_object_get(object, key);

    return json_is_boolean(value) ? json_boolean_value(value) : missing;
}
