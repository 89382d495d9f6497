/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/model_json.h"

#include <stdint.h>
#include <string.h>

#include "base/error.h"

json_t *pf_json_object_load(const char *text, size_t len, bool *ret_nomem)
{
    json_error_t wrong = { .line = 0 };
    json_t *json = json_loadb(text, len, JSON_ALLOW_NUL, &wrong);

    /* For want of memory jansson often gives no reason at all. */
    *ret_nomem =
            !json && (wrong.text[0] == '\0' || json_error_code(&wrong) == json_error_out_of_memory);
    if (json_is_object(json))
        return json;
    json_decref(json);
    return NULL;
}

const char *pf_json_text(const json_t *object, const char *key, size_t *ret_len)
{
    const json_t *value = json_object_get(object, key);

    if (ret_len)
        *ret_len = json_string_length(value);
    return json_string_value(value);
}

unsigned long long pf_json_count(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    json_int_t number = json_is_integer(value) ? json_integer_value(value) : 0;

    if (json_is_real(value) && json_real_value(value) > 0 && json_real_value(value) < 1e15)
        number = (json_int_t)json_real_value(value);
    return number > 0 && number < INT64_C(1000000000000000) ? (unsigned long long)number : 0;
}

int pf_json_put(json_t *object, const char *key, json_t *value)
{
    return json_object_set_new(object, key, value) == 0 ? 0 : -PINFOLD_ENOMEM;
}

int pf_json_push(json_t *array, json_t *value)
{
    return json_array_append_new(array, value) == 0 ? 0 : -PINFOLD_ENOMEM;
}
