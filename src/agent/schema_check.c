/* SPDX-License-Identifier: Apache-2.0 */
/* The schema itself: once it was checked, nothing of it surprises who checks values by it. */
#include <stdlib.h>
#include <string.h>

#include "agent/schema.h"
#include "agent/schema_parts.h"
#include "base/cleanup.h"
#include "base/error.h"

/* Schemas that were looked at already: several references may lead to one. */
struct seen {
    const json_t *root;
    const json_t **schemas;
    size_t count, capacity;
};

static int check_schema(struct seen *seen, const json_t *schema, unsigned depth,
                        struct pinfold_error *err);

/* ---- references ---- */

static int hex_value(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* One part of a pointer, up to the next '/', with the escapes of a URI and those of pointers
 * undone. Returns its length, or SIZE_MAX for what is too long. */
static size_t take_part(const char **at, char *to, size_t size)
{
    size_t len = 0;

    while (**at && **at != '/') {
        char c = *(*at)++;

        if (c == '%' && hex_value((*at)[0]) >= 0 && hex_value((*at)[1]) >= 0) {
            c = (char)(16 * hex_value((*at)[0]) + hex_value((*at)[1]));
            *at += 2;
        }
        if (c == '~' && (**at == '0' || **at == '1'))
            c = *(*at)++ == '0' ? '~' : '/';
        if (len == size)
            return SIZE_MAX;
        to[len++] = c;
    }
    return len;
}

static const json_t *step(const json_t *at, const char *part, size_t len)
{
    size_t index = 0;

    if (!json_is_array(at))
        return json_object_getn(at, part, len);
    if (len == 0 || len > 6)
        return NULL;
    for (size_t i = 0; i < len; i++) {
        if (part[i] < '0' || part[i] > '9')
            return NULL;
        index = 10 * index + (size_t)(part[i] - '0');
    }
    return json_array_get(at, index);
}

const json_t *pf_schema_resolve(const json_t *root, const char *reference)
{
    const json_t *at = root;
    char part[256];

    if (*reference++ != '#')
        return NULL;
    while (at && *reference == '/') {
        size_t len;

        reference++;
        len = take_part(&reference, part, sizeof(part));
        at = len == SIZE_MAX ? NULL : step(at, part, len);
    }
    return *reference ? NULL : at;
}

static int check_reference(struct seen *seen, const json_t *schema, unsigned depth,
                           struct pinfold_error *err)
{
    const json_t *reference = json_object_get(schema, "$ref"), *target;

    if (!reference)
        return 0;
    if (!json_is_string(reference))
        return pf_fail(err, PINFOLD_EVALUE, "\"$ref\" is no string");
    target = pf_schema_resolve(seen->root, json_string_value(reference));
    if (!target)
        return pf_fail(err, PINFOLD_EVALUE, "\"$ref\" leads nowhere: %s",
                       PF_QUOTE(json_string_value(reference)));
    return check_schema(seen, target, depth + 1, err);
}

/* ---- values of keywords ---- */

static bool is_type(const json_t *type)
{
    static const char *const known[] = { "string", "integer", "number", "boolean",
                                         "object", "array",   "null" };

    for (size_t i = 0; json_is_string(type) && i < PF_COUNT(known); i++)
        if (strcmp(json_string_value(type), known[i]) == 0)
            return true;
    return false;
}

static int check_types(const json_t *schema, struct pinfold_error *err)
{
    const json_t *type = json_object_get(schema, "type");
    json_t *one;
    size_t i;

    if (type && !json_is_array(type) && !is_type(type))
        return pf_fail(err, PINFOLD_EVALUE, "\"type\" names no type");
    json_array_foreach(type, i, one)
        if (!is_type(one))
            return pf_fail(err, PINFOLD_EVALUE, "\"type\" names no type");
    return 0;
}

static bool is_names(const json_t *list)
{
    json_t *one;
    size_t i;

    if (!json_is_array(list))
        return false;
    json_array_foreach(list, i, one)
        if (!json_is_string(one))
            return false;
    return true;
}

/* Whether a value is of a kind: n(umber), m(ore than 0), c(ount), a(rray), names (s), t(ext),
 * o(bject), b(oolean). */
static bool is_kind(const json_t *value, char kind)
{
    switch (kind) {
    case 'n':
        return json_is_number(value);
    case 'm':
        return json_is_number(value) && json_number_value(value) > 0;
    case 'c':
        return pf_json_whole(value) && json_number_value(value) >= 0;
    case 'a':
        return json_is_array(value);
    case 's':
        return is_names(value);
    case 't':
        return json_is_string(value);
    case 'o':
        return json_is_object(value);
    default:
        return json_is_boolean(value);
    }
}

static int check_kinds(const json_t *schema, struct pinfold_error *err)
{
    static const struct {
        const char *name;
        char kind;
    } keywords[] = {
        { "required", 's' },
        { "enum", 'a' },
        { "minimum", 'n' },
        { "maximum", 'n' },
        { "exclusiveMinimum", 'n' },
        { "exclusiveMaximum", 'n' },
        { "multipleOf", 'm' },
        { "minItems", 'c' },
        { "maxItems", 'c' },
        { "minLength", 'c' },
        { "maxLength", 'c' },
        { "minProperties", 'c' },
        { "maxProperties", 'c' },
        { "minContains", 'c' },
        { "maxContains", 'c' },
        { "pattern", 't' },
        { "format", 't' },
        { "uniqueItems", 'b' },
        { "properties", 'o' },
        { "patternProperties", 'o' },
        { "dependentSchemas", 'o' },
        { "dependentRequired", 'o' },
        { "dependencies", 'o' },
        { "prefixItems", 'a' },
        { "anyOf", 'a' },
        { "oneOf", 'a' },
        { "allOf", 'a' },
    };

    for (size_t i = 0; i < PF_COUNT(keywords); i++) {
        const json_t *value = json_object_get(schema, keywords[i].name);

        if (value && !is_kind(value, keywords[i].kind))
            return pf_fail(err, PINFOLD_EVALUE, "\"%s\" has a value of the wrong kind",
                           keywords[i].name);
    }
    return 0;
}

static int check_pattern(const char *pattern, size_t len, struct pinfold_error *err)
{
    char wrong[PF_PATTERN_WRONG_MAX];
    int r = pf_pattern_check(pattern, len, wrong);

    if (r == -PINFOLD_ENOMEM)
        return pf_fail_nomem(err);
    return r < 0 ? pf_fail(err, PINFOLD_EVALUE, "the pattern %s is none, %s", PF_QUOTE(pattern),
                           wrong)
                 : 0;
}

static int check_patterns(const json_t *schema, struct pinfold_error *err)
{
    const json_t *pattern = json_object_get(schema, "pattern");
    const char *key;
    json_t *unused;
    int r = pattern ? check_pattern(json_string_value(pattern), json_string_length(pattern), err)
                    : 0;

    json_object_foreach(json_object_get(schema, "patternProperties"), key, unused)
        if (r == 0)
            r = check_pattern(key, strlen(key), err);
    return r;
}

/* ---- schemas in schemas ---- */

/* dependencies and dependentRequired may have lists of names in the place of schemas. */
static bool may_be_names(const char *keyword)
{
    return strncmp(keyword, "depend", 6) == 0 && strcmp(keyword, "dependentSchemas") != 0;
}

static int check_nested(struct seen *seen, const json_t *parent, const char *keyword,
                        unsigned depth, struct pinfold_error *err)
{
    json_t *list = json_object_get(parent, keyword);
    bool names = may_be_names(keyword);
    const char *key;
    json_t *one;
    size_t i;
    int r = 0;

    json_array_foreach(list, i, one)
        if (r == 0)
            r = check_schema(seen, one, depth, err);
    json_object_foreach(list, key, one) {
        if (r == 0 && !(names && is_names(one)))
            r = check_schema(seen, one, depth, err);
    }
    return r < 0 ? pf_wrap(err, r, "%s", keyword) : 0;
}

static int check_inside(struct seen *seen, const json_t *schema, unsigned depth,
                        struct pinfold_error *err)
{
    static const char *const nested[] = {
        "properties",
        "patternProperties",
        "dependentSchemas",
        "dependentRequired",
        "dependencies",
        "anyOf",
        "oneOf",
        "allOf",
        "prefixItems",
    };
    static const char *const single[] = { "items",
                                          "additionalProperties",
                                          "additionalItems",
                                          "contains",
                                          "propertyNames",
                                          "not",
                                          "if",
                                          "then",
                                          "else" };
    int r = 0;

    for (size_t i = 0; r == 0 && i < PF_COUNT(nested); i++)
        r = check_nested(seen, schema, nested[i], depth + 1, err);
    for (size_t i = 0; r == 0 && i < PF_COUNT(single); i++) {
        const json_t *one = json_object_get(schema, single[i]);

        if (json_is_array(one) && strcmp(single[i], "items") == 0)
            r = check_nested(seen, schema, single[i], depth + 1, err);
        else if (one)
            r = check_schema(seen, one, depth + 1, err);
    }
    return r;
}

/* Returns 1 when a schema was there already, 0, or -PINFOLD_ENOMEM. */
static int note(struct seen *seen, const json_t *schema)
{
    size_t capacity = seen->capacity ? 2 * seen->capacity : 32;
    const json_t **schemas;

    for (size_t i = 0; i < seen->count; i++)
        if (seen->schemas[i] == schema)
            return 1;
    if (seen->count == seen->capacity) {
        schemas = reallocarray(seen->schemas, capacity, sizeof(const json_t *));
        if (!schemas)
            return -PINFOLD_ENOMEM;
        seen->schemas = schemas;
        seen->capacity = capacity;
    }
    seen->schemas[seen->count++] = schema;
    return 0;
}

static int check_schema(struct seen *seen, const json_t *schema, unsigned depth,
                        struct pinfold_error *err)
{
    int r;

    if (json_is_boolean(schema))
        return 0;
    if (!json_is_object(schema))
        return pf_fail(err, PINFOLD_EVALUE, "a schema is no object");
    if (depth >= PF_SCHEMA_DEPTH_MAX)
        return pf_fail(err, PINFOLD_EVALUE, "nested deeper than %d levels", PF_SCHEMA_DEPTH_MAX);
    r = note(seen, schema);
    if (r != 0)
        return r < 0 ? pf_fail_nomem(err) : 0;
    r = check_types(schema, err);
    if (r == 0)
        r = check_kinds(schema, err);
    if (r == 0)
        r = check_patterns(schema, err);
    if (r == 0)
        r = check_reference(seen, schema, depth, err);
    return r < 0 ? r : check_inside(seen, schema, depth, err);
}

int pf_schema_check(const json_t *schema, struct pinfold_error *err)
{
    struct seen seen = { .root = schema };
    int r = check_schema(&seen, schema, 0, err);

    free(seen.schemas);
    return r < 0 ? pf_wrap(err, r, "input schema") : 0;
}

int pf_schema_check_input(const json_t *schema, struct pinfold_error *err)
{
    const json_t *type = json_object_get(schema, "type");
    int r = pf_schema_check(schema, err);

    if (r == 0 && !(json_is_string(type) && strcmp(json_string_value(type), "object") == 0))
        r = pf_fail(err, PINFOLD_EVALUE, "input schema: its \"type\" must be \"object\"");
    return r;
}

bool pf_schema_names_all(const json_t *schema)
{
    static const char *const others[] = { "$ref",        "allOf", "anyOf",
                                          "oneOf",       "if",    "dependentSchemas",
                                          "dependencies" };

    for (size_t i = 0; i < PF_COUNT(others); i++)
        if (json_object_get(schema, others[i]))
            return false;
    return true;
}
