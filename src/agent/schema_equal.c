/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/schema_parts.h"
#include "base/cleanup.h"
#include "base/number.h"

#include <pinfold/error.h>

bool pf_json_whole(const json_t *value)
{
    return json_is_integer(value) || (json_is_real(value) && pf_is_whole(json_real_value(value)));
}

/* Numbers are one kind. */
static int kind_of(const json_t *value)
{
    return json_is_real(value) ? JSON_INTEGER : (int)json_typeof(value);
}

static int compare_numbers(const json_t *a, const json_t *b)
{
    long double x, y;

    if (json_is_integer(a) && json_is_integer(b))
        return (json_integer_value(a) > json_integer_value(b)) -
               (json_integer_value(a) < json_integer_value(b));
    x = json_is_integer(a) ? (long double)json_integer_value(a) : (long double)json_real_value(a);
    y = json_is_integer(b) ? (long double)json_integer_value(b) : (long double)json_real_value(b);
    return (x > y) - (x < y);
}

static int compare_strings(const json_t *a, const json_t *b)
{
    size_t x = json_string_length(a), y = json_string_length(b);
    int r = memcmp(json_string_value(a), json_string_value(b), x < y ? x : y);

    return r ? r : (x > y) - (x < y);
}

static int compare_arrays(const json_t *a, const json_t *b)
{
    size_t x = json_array_size(a), y = json_array_size(b);

    for (size_t i = 0; i < x && i < y; i++) {
        int r = pf_json_compare(json_array_get(a, i), json_array_get(b, i));
        if (r)
            return r;
    }
    return (x > y) - (x < y);
}

/* The least key, after those up to after, of which the value in b is missing or another; the order
 * of a and b is that of their values there. Both have as many keys. */
static int compare_objects(const json_t *a, const json_t *b)
{
    const char *key, *least = NULL;
    json_t *value;

    if (json_object_size(a) != json_object_size(b))
        return json_object_size(a) > json_object_size(b) ? 1 : -1;
    json_object_foreach((json_t *)(uintptr_t)a, key, value) {
        const json_t *other = json_object_get(b, key);
        if ((!other || pf_json_compare(value, other) != 0) && (!least || strcmp(key, least) < 0))
            least = key;
    }
    if (!least)
        return 0;
    /* b may lack a smaller key of its own that a does not have. */
    json_object_foreach((json_t *)(uintptr_t)b, key, value)
        if (!json_object_get(a, key) && strcmp(key, least) < 0)
            return -1;
    value = json_object_get(b, least);
    return value ? pf_json_compare(json_object_get(a, least), value) : 1;
}

int pf_json_compare(const json_t *a, const json_t *b)
{
    int x = kind_of(a), y = kind_of(b);

    if (x != y)
        return x > y ? 1 : -1;
    switch (x) {
    case JSON_INTEGER:
        return compare_numbers(a, b);
    case JSON_STRING:
        return compare_strings(a, b);
    case JSON_ARRAY:
        return compare_arrays(a, b);
    case JSON_OBJECT:
        return compare_objects(a, b);
    default:
        return 0;
    }
}

static int compare_items(const void *a, const void *b)
{
    return pf_json_compare(*(const json_t *const *)a, *(const json_t *const *)b);
}

int pf_json_unique(const json_t *array)
{
    size_t count = json_array_size(array);
    _cleanup_free_ const json_t **items = calloc(count + 1, sizeof(const json_t *));

    if (!items)
        return -PINFOLD_ENOMEM;
    for (size_t i = 0; i < count; i++)
        items[i] = json_array_get(array, i);
    qsort(items, count, sizeof(const json_t *), compare_items);
    for (size_t i = 1; i < count; i++)
        if (pf_json_compare(items[i - 1], items[i]) == 0)
            return 0;
    return 1;
}
