/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/schema.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/number.h"
#include "base/utf8.h"

/* How deep schemas nest, references included: one that refers to itself must end somewhere. */
enum { DEPTH_MAX = 64, PROBLEMS_MAX = 6, SHOWN_MAX = 48 };

/* Where in the value we are: a chain on the stack, printed only when something is wrong. */
struct place {
    const struct place *up;
    const char *key; /* NULL: an item of an array */
    size_t index;
};

struct checker {
    const json_t *root;
    struct pf_buf *wrong; /* NULL: only whether */
    unsigned problems;
    unsigned depth;
    bool nomem;
};

static void validate(struct checker *c, const json_t *schema, const json_t *value,
                     const struct place *place);

/* ---- saying what is wrong ---- */

static void print_place(struct pf_buf *out, const struct place *place, int *r)
{
    if (!place || *r < 0)
        return;
    print_place(out, place->up, r);
    if (*r == 0 && place->key)
        *r = pf_buf_printf(out, "%s%.64s", place->up ? "." : "", place->key);
    else if (*r == 0)
        *r = pf_buf_printf(out, "[%zu]", place->index);
}

/* A value as a model recognises it: short. */
static const char *describe(const json_t *value, char text[static 96])
{
    size_t len;

    switch (json_typeof(value)) {
    case JSON_STRING:
        len = json_string_length(value);
        if (len > SHOWN_MAX)
            len = pf_utf8_floor(json_string_value(value), SHOWN_MAX);
        snprintf(text, 96, "the string \"%.*s\"%s", (int)len, json_string_value(value),
                 len < json_string_length(value) ? "..." : "");
        break;
    case JSON_INTEGER:
        snprintf(text, 96, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
        break;
    case JSON_REAL:
        snprintf(text, 96, "%.15g", json_real_value(value));
        break;
    case JSON_OBJECT:
        return "an object";
    case JSON_ARRAY:
        return "an array";
    case JSON_TRUE:
        return "true";
    case JSON_FALSE:
        return "false";
    case JSON_NULL:
    default:
        return "null";
    }
    return text;
}

/* Note one problem, "place: text". */
static void problem(struct checker *c, const struct place *place, const char *format, ...)
        PINFOLD_PRINTF(3, 4);
static void problem(struct checker *c, const struct place *place, const char *format, ...)
{
    char text[256];
    va_list args;
    int r = 0;

    if (c->problems++ >= PROBLEMS_MAX || !c->wrong)
        return;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    text[pf_utf8_floor(text, strlen(text))] = '\0';
    r = pf_buf_append_text(c->wrong, "- ");
    print_place(c->wrong, place, &r);
    if (r == 0)
        r = pf_buf_printf(c->wrong, "%s%s\n", place ? ": " : "", text);
    c->nomem |= r < 0;
}

/* Whether it fits, without a word. */
static bool fits(struct checker *c, const json_t *schema, const json_t *value)
{
    struct checker quiet = { .root = c->root, .depth = c->depth };

    validate(&quiet, schema, value, NULL);
    return quiet.problems == 0;
}

/* ---- keywords ---- */

static bool is_whole(const json_t *value)
{
    return json_is_integer(value) || (json_is_real(value) && pf_is_whole(json_real_value(value)));
}

static bool has_type(const json_t *value, const char *type)
{
    return strcmp(type, "string") == 0    ? json_is_string(value)
           : strcmp(type, "integer") == 0 ? is_whole(value)
           : strcmp(type, "number") == 0  ? json_is_number(value)
           : strcmp(type, "boolean") == 0 ? json_is_boolean(value)
           : strcmp(type, "object") == 0  ? json_is_object(value)
           : strcmp(type, "array") == 0   ? json_is_array(value)
                                          : json_is_null(value);
}

static bool check_type(struct checker *c, const json_t *type, const json_t *value,
                       const struct place *place)
{
    char shown[96], names[96] = "";
    json_t *one;
    size_t i;

    if (!type || (json_is_string(type) && has_type(value, json_string_value(type))))
        return true;
    json_array_foreach(type, i, one)
    {
        if (has_type(value, json_string_value(one)))
            return true;
        snprintf(names + strlen(names), sizeof(names) - strlen(names), "%s%s", i ? " or " : "",
                 json_string_value(one));
    }
    problem(c, place, "expected %s, got %s", json_is_string(type) ? json_string_value(type) : names,
            describe(value, shown));
    return false;
}

static void check_choice(struct checker *c, const json_t *schema, const json_t *value,
                         const struct place *place)
{
    const json_t *constant = json_object_get(schema, "const");
    const json_t *choices = json_object_get(schema, "enum");
    _cleanup_free_ char *list = NULL;
    char shown[96];
    json_t *one;
    size_t i;

    if (constant && !json_equal(constant, value))
        choices = NULL;
    else if (!choices)
        return;
    json_array_foreach(choices, i, one) if (json_equal(one, value)) return;
    list = json_dumps(choices ? choices : constant, JSON_ENCODE_ANY);
    problem(c, place, "expected %s%.160s, got %s", choices ? "one of " : "", list ? list : "",
            describe(value, shown));
}

static void check_number(struct checker *c, const json_t *schema, const json_t *value,
                         const struct place *place)
{
    const json_t *low = json_object_get(schema, "minimum");
    const json_t *high = json_object_get(schema, "maximum");
    const json_t *above = json_object_get(schema, "exclusiveMinimum");
    const json_t *below = json_object_get(schema, "exclusiveMaximum");
    double number = json_number_value(value);
    char shown[96];

    describe(value, shown);
    if (low && number < json_number_value(low))
        problem(c, place, "must be at least %g, got %s", json_number_value(low), shown);
    if (high && number > json_number_value(high))
        problem(c, place, "must be at most %g, got %s", json_number_value(high), shown);
    if (above && !(number > json_number_value(above)))
        problem(c, place, "must be more than %g, got %s", json_number_value(above), shown);
    if (below && !(number < json_number_value(below)))
        problem(c, place, "must be less than %g, got %s", json_number_value(below), shown);
}

/* minItems and their like: how long something is, in units. */
static void check_length(struct checker *c, const json_t *schema, const char *min_name,
                         const char *max_name, size_t length, const char *unit,
                         const struct place *place)
{
    const json_t *min = json_object_get(schema, min_name);
    const json_t *max = json_object_get(schema, max_name);

    if (min && (json_int_t)length < json_integer_value(min))
        problem(c, place, "must have at least %lld %s, has %zu", (long long)json_integer_value(min),
                unit, length);
    if (max && (json_int_t)length > json_integer_value(max))
        problem(c, place, "must have at most %lld %s, has %zu", (long long)json_integer_value(max),
                unit, length);
}

static size_t count_characters(const json_t *value)
{
    const char *text = json_string_value(value);
    size_t count = 0;

    for (size_t i = 0; i < json_string_length(value); i++)
        count += ((unsigned char)text[i] & 0xc0) != 0x80;
    return count;
}

static void check_array(struct checker *c, const json_t *schema, const json_t *value,
                        const struct place *place)
{
    const json_t *items = json_object_get(schema, "items");
    json_t *item;
    size_t i;

    check_length(c, schema, "minItems", "maxItems", json_array_size(value), "items", place);
    json_array_foreach(value, i, item)
    {
        if (!items || c->problems >= PROBLEMS_MAX)
            break;
        validate(c, items, item, &(struct place){ .up = place, .index = i });
    }
}

/* "no such parameter" is of use only to those who are told what there is. */
static void unknown_property(struct checker *c, const json_t *properties, const struct place *place)
{
    char names[160] = "";
    const char *key;
    json_t *unused;

    json_object_foreach((json_t *)(uintptr_t)properties, key, unused) snprintf(
            names + strlen(names), sizeof(names) - strlen(names), "%s%s", *names ? ", " : "", key);
    problem(c, place, "there is no such parameter; there %s", *names ? "are: " : "is none");
    if (c->wrong && *names && c->problems <= PROBLEMS_MAX) {
        c->wrong->len--; /* onto the same line */
        c->nomem |= pf_buf_printf(c->wrong, "%s\n", names) < 0;
    }
}

static void check_object(struct checker *c, const json_t *schema, const json_t *value,
                         const struct place *place)
{
    const json_t *properties = json_object_get(schema, "properties");
    const json_t *required = json_object_get(schema, "required");
    const json_t *additional = json_object_get(schema, "additionalProperties");
    const char *key;
    json_t *one;
    size_t i;

    json_array_foreach(required, i, one) if (!json_object_get(value, json_string_value(one)))
            problem(c, &(struct place){ .up = place, .key = json_string_value(one) },
                    "is required, and missing");
    json_object_foreach((json_t *)(uintptr_t)value, key, one)
    {
        const json_t *its = json_object_get(properties, key);
        struct place here = { .up = place, .key = key };

        if (c->problems >= PROBLEMS_MAX)
            break;
        if (its || json_is_object(additional))
            validate(c, its ? its : additional, one, &here);
        else if (json_is_false(additional) || (!additional && schema == c->root))
            unknown_property(c, properties, &here);
    }
}

static void check_combined(struct checker *c, const json_t *schema, const json_t *value,
                           const struct place *place)
{
    const json_t *any = json_object_get(schema, "anyOf");
    const json_t *exactly = json_object_get(schema, "oneOf");
    unsigned matches = 0;
    char shown[96];
    json_t *one;
    size_t i;

    json_array_foreach(json_object_get(schema, "allOf"), i, one) validate(c, one, value, place);
    json_array_foreach(any, i, one) matches += matches == 0 && fits(c, one, value);
    if (any && matches == 0)
        problem(c, place, "%s fits none of the %zu forms that the schema allows",
                describe(value, shown), json_array_size(any));
    matches = 0;
    json_array_foreach(exactly, i, one) matches += fits(c, one, value);
    if (exactly && matches != 1)
        problem(c, place, "%s fits %u of the %zu forms of which it must fit exactly one",
                describe(value, shown), matches, json_array_size(exactly));
}

/* What "#", "#/$defs/name" or "#/definitions/name/properties/x" stands for, or NULL. The two
 * escapes of JSON pointers are for names that nobody gives. */
static const json_t *resolve(const json_t *root, const char *reference)
{
    const json_t *at = root;

    if (*reference++ != '#')
        return NULL;
    while (at && *reference == '/') {
        size_t len = strcspn(++reference, "/");
        at = json_object_getn(at, reference, len);
        reference += len;
    }
    return *reference ? NULL : at;
}

static void validate(struct checker *c, const json_t *schema, const json_t *value,
                     const struct place *place)
{
    const json_t *reference = json_object_get(schema, "$ref");

    if (c->depth >= DEPTH_MAX) {
        problem(c, place, "is nested deeper than %d levels of the schema", DEPTH_MAX);
        return;
    }
    if (json_is_false(schema))
        problem(c, place, "nothing is allowed here");
    c->depth++;
    if (reference)
        validate(c, resolve(c->root, json_string_value(reference)), value, place);
    if (check_type(c, json_object_get(schema, "type"), value, place)) {
        check_choice(c, schema, value, place);
        if (json_is_number(value))
            check_number(c, schema, value, place);
        if (json_is_string(value))
            check_length(c, schema, "minLength", "maxLength", count_characters(value), "characters",
                         place);
        if (json_is_array(value))
            check_array(c, schema, value, place);
        if (json_is_object(value))
            check_object(c, schema, value, place);
        check_combined(c, schema, value, place);
    }
    c->depth--;
}

int pf_schema_validate(const json_t *schema, const json_t *value, struct pf_buf *wrong)
{
    struct checker c = { .root = schema, .wrong = wrong };

    validate(&c, schema, value, NULL);
    if (c.problems > PROBLEMS_MAX)
        c.nomem |= pf_buf_printf(wrong, "- and more\n") < 0;
    return c.nomem ? -PINFOLD_ENOMEM : c.problems == 0;
}

/* ---- the schema itself ---- */

static bool is_type(const json_t *type)
{
    static const char *const known[] = { "string", "integer", "number", "boolean",
                                         "object", "array",   "null" };

    for (size_t i = 0; json_is_string(type) && i < PF_COUNT(known); i++)
        if (strcmp(json_string_value(type), known[i]) == 0)
            return true;
    return false;
}

static int check_schema(const json_t *root, const json_t *schema, unsigned depth,
                        struct pinfold_error *err);

static int check_schemas(const json_t *root, const json_t *parent, const char *keyword,
                         unsigned depth, struct pinfold_error *err)
{
    json_t *list = json_object_get(parent, keyword);
    bool object = strcmp(keyword, "properties") == 0;
    const char *key;
    json_t *one;
    size_t i;
    int r = 0;

    if (list && (object ? !json_is_object(list) : !json_is_array(list)))
        return pf_fail(err, PINFOLD_EVALUE, "\"%s\" is no %s", keyword,
                       object ? "object" : "array");
    json_array_foreach(list, i, one) if (r == 0) r = check_schema(root, one, depth, err);
    json_object_foreach(list, key, one) if (r == 0) r = check_schema(root, one, depth, err);
    return r < 0 ? pf_wrap(err, r, "%s", keyword) : 0;
}

static int check_types(const json_t *schema, struct pinfold_error *err)
{
    const json_t *type = json_object_get(schema, "type");
    const json_t *reference = json_object_get(schema, "$ref");
    json_t *one;
    size_t i;

    if (type && !json_is_array(type) && !is_type(type))
        return pf_fail(err, PINFOLD_EVALUE, "\"type\" names no type");
    json_array_foreach(type, i, one) if (!is_type(one)) return pf_fail(err, PINFOLD_EVALUE,
                                                                       "\"type\" names no type");
    json_array_foreach(
            json_object_get(schema, "required"), i,
            one) if (!json_is_string(one)) return pf_fail(err, PINFOLD_EVALUE,
                                                          "\"required\" has what is no string");
    if (reference && !json_is_string(reference))
        return pf_fail(err, PINFOLD_EVALUE, "\"$ref\" is no string");
    return 0;
}

/* Keywords whose value must be of one kind: n(umber), i(nteger), a(rray). */
static int check_kinds(const json_t *schema, struct pinfold_error *err)
{
    static const struct {
        const char *name;
        char kind;
    } keywords[] = {
        { "required", 'a' },         { "enum", 'a' },     { "minimum", 'n' },
        { "maximum", 'n' },          { "minItems", 'i' }, { "exclusiveMinimum", 'n' },
        { "exclusiveMaximum", 'n' }, { "maxItems", 'i' }, { "minLength", 'i' },
        { "maxLength", 'i' },
    };

    for (size_t i = 0; i < PF_COUNT(keywords); i++) {
        const json_t *value = json_object_get(schema, keywords[i].name);

        if (value && !(keywords[i].kind == 'a'   ? json_is_array(value)
                       : keywords[i].kind == 'n' ? json_is_number(value)
                                                 : json_is_integer(value)))
            return pf_fail(err, PINFOLD_EVALUE, "\"%s\" has a value of the wrong kind",
                           keywords[i].name);
    }
    return 0;
}

static int check_schema(const json_t *root, const json_t *schema, unsigned depth,
                        struct pinfold_error *err)
{
    static const char *const nested[] = { "properties", "anyOf", "oneOf", "allOf" };
    static const char *const single[] = { "items", "additionalProperties" };
    const json_t *reference = json_object_get(schema, "$ref");
    int r;

    if (json_is_boolean(schema))
        return 0;
    if (!json_is_object(schema))
        return pf_fail(err, PINFOLD_EVALUE, "a schema is no object");
    if (depth >= DEPTH_MAX)
        return pf_fail(err, PINFOLD_EVALUE, "nested deeper than %d levels", DEPTH_MAX);
    r = check_types(schema, err);
    if (r == 0)
        r = check_kinds(schema, err);
    if (r == 0 && reference && !resolve(root, json_string_value(reference)))
        r = pf_fail(err, PINFOLD_EVALUE, "\"$ref\" leads nowhere: %s",
                    PF_QUOTE(json_string_value(reference)));
    for (size_t i = 0; r == 0 && i < PF_COUNT(nested); i++)
        r = check_schemas(root, schema, nested[i], depth + 1, err);
    for (size_t i = 0; r == 0 && i < PF_COUNT(single); i++)
        if (json_object_get(schema, single[i]))
            r = check_schema(root, json_object_get(schema, single[i]), depth + 1, err);
    return r;
}

int pf_schema_check(const json_t *schema, struct pinfold_error *err)
{
    const json_t *type = json_object_get(schema, "type");
    int r = check_schema(schema, schema, 0, err);

    if (r == 0 && !(json_is_string(type) && strcmp(json_string_value(type), "object") == 0))
        r = pf_fail(err, PINFOLD_EVALUE, "its \"type\" must be \"object\"");
    return r < 0 ? pf_wrap(err, r, "input schema") : 0;
}
