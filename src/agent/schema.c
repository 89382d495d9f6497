/* SPDX-License-Identifier: Apache-2.0 */
/* Checking a value. Both schema and value come from anybody: the work is bounded in all ways. */
#include "agent/schema.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "agent/schema_parts.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/number.h"
#include "base/utf8.h"

enum { PROBLEMS_MAX = 6, SHOWN_MAX = 48 };

/* Values checked against schemas: as many as the longest input has, and some for each. Schemas that
 * refer to themselves in several ways could want 2^64. */
#define STEPS_MAX ((uint64_t)5 * 1000 * 1000)

/* Where in the value we are: a chain on the stack, printed only when something is wrong. */
struct place {
    const struct place *up;
    const char *key; /* NULL: an item of an array */
    size_t index;
};

/* What all checkers of one value share. */
struct run {
    const json_t *root;
    bool closed; /* the root has no properties but those that it names */
    uint64_t steps;
    bool spent; /* they were too many */
    bool nomem;
};

struct checker {
    struct run *run;
    struct pf_buf *wrong; /* NULL: only whether */
    unsigned problems;
    unsigned depth;
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
    c->run->nomem |= r < 0;
}

/* Whether it fits, without a word. */
static bool fits(struct checker *c, const json_t *schema, const json_t *value)
{
    struct checker quiet = { .run = c->run, .depth = c->depth };

    validate(&quiet, schema, value, NULL);
    return quiet.problems == 0;
}

/* ---- keywords ---- */

static bool has_type(const json_t *value, const char *type)
{
    return strcmp(type, "string") == 0    ? json_is_string(value)
           : strcmp(type, "integer") == 0 ? pf_json_whole(value)
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
    json_array_foreach(type, i, one) {
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

    if (constant && pf_json_compare(constant, value) != 0)
        choices = NULL;
    else if (!choices)
        return;
    json_array_foreach(choices, i, one)
        if (pf_json_compare(one, value) == 0)
            return;
    list = c->wrong ? json_dumps(choices ? choices : constant, JSON_ENCODE_ANY) : NULL;
    problem(c, place, "expected %s%.160s, got %s", choices ? "one of " : "", list ? list : "",
            describe(value, shown));
}

/* Of real numbers only what comes out whole is a multiple. */
static bool is_multiple(const json_t *value, const json_t *of)
{
    double quotient;

    if (json_is_integer(value) && json_is_integer(of))
        return json_integer_value(of) == -1 ||
               json_integer_value(value) % json_integer_value(of) == 0;
    quotient = json_number_value(value) / json_number_value(of);
    /* So large a number has no room for a fraction. */
    return isfinite(quotient) && (fabs(quotient) >= 0x1p63 || pf_is_whole(quotient));
}

static void check_number(struct checker *c, const json_t *schema, const json_t *value,
                         const struct place *place)
{
    const json_t *low = json_object_get(schema, "minimum");
    const json_t *high = json_object_get(schema, "maximum");
    const json_t *above = json_object_get(schema, "exclusiveMinimum");
    const json_t *below = json_object_get(schema, "exclusiveMaximum");
    const json_t *multiple = json_object_get(schema, "multipleOf");
    char shown[96];

    describe(value, shown);
    if (low && pf_json_compare(value, low) < 0)
        problem(c, place, "must be at least %g, got %s", json_number_value(low), shown);
    if (high && pf_json_compare(value, high) > 0)
        problem(c, place, "must be at most %g, got %s", json_number_value(high), shown);
    if (above && pf_json_compare(value, above) <= 0)
        problem(c, place, "must be more than %g, got %s", json_number_value(above), shown);
    if (below && pf_json_compare(value, below) >= 0)
        problem(c, place, "must be less than %g, got %s", json_number_value(below), shown);
    if (multiple && !is_multiple(value, multiple))
        problem(c, place, "must be a multiple of %g, got %s", json_number_value(multiple), shown);
}

/* minItems and their like: how long something is, in units. */
static void check_length(struct checker *c, const json_t *schema, const char *min_name,
                         const char *max_name, size_t length, const char *unit,
                         const struct place *place)
{
    const json_t *min = json_object_get(schema, min_name);
    const json_t *max = json_object_get(schema, max_name);

    if (min && (double)length < json_number_value(min))
        problem(c, place, "must have at least %.0f %s, has %zu", json_number_value(min), unit,
                length);
    if (max && (double)length > json_number_value(max))
        problem(c, place, "must have at most %.0f %s, has %zu", json_number_value(max), unit,
                length);
}

static size_t count_characters(const json_t *value)
{
    const char *text = json_string_value(value);
    size_t count = 0;

    for (size_t i = 0; i < json_string_length(value); i++)
        count += ((unsigned char)text[i] & 0xc0) != 0x80;
    return count;
}

/* Returns whether a text has a pattern; not, and a problem, when that cannot be found out. */
static bool has_pattern(struct checker *c, const char *pattern, size_t len, const char *text,
                        size_t text_len, const struct place *place)
{
    int r = pf_pattern_match(pattern, len, text, text_len);

    c->run->nomem |= r == -PINFOLD_ENOMEM;
    if (r == -PINFOLD_ETIMEOUT) {
        c->run->spent |= !c->wrong; /* in the dark no form may count as one that does not fit */
        problem(c, place, "took too long to compare with the pattern %.80s; send less", pattern);
    }
    return r == 1;
}

static void check_string(struct checker *c, const json_t *schema, const json_t *value,
                         const struct place *place)
{
    const json_t *pattern = json_object_get(schema, "pattern");
    const char *format = json_string_value(json_object_get(schema, "format"));
    const char *text = json_string_value(value);
    unsigned before = c->problems;
    char shown[96];

    check_length(c, schema, "minLength", "maxLength", count_characters(value), "characters", place);
    if (pattern &&
        !has_pattern(c, json_string_value(pattern), json_string_length(pattern), text,
                     json_string_length(value), place) &&
        c->problems == before)
        problem(c, place, "must match the pattern %.120s, got %s", json_string_value(pattern),
                describe(value, shown));
    if (format && !pf_format_fits(format, text, json_string_length(value)))
        problem(c, place, "must have the format %.40s, got %s", format, describe(value, shown));
}

/* How many items fit. */
static void check_contains(struct checker *c, const json_t *schema, const json_t *value,
                           const struct place *place)
{
    const json_t *wanted = json_object_get(schema, "contains");
    const json_t *min = json_object_get(schema, "minContains");
    const json_t *max = json_object_get(schema, "maxContains");
    double least = min ? json_number_value(min) : 1, found = 0;
    json_t *item;
    size_t i;

    if (!wanted)
        return;
    json_array_foreach(value, i, item)
        found += fits(c, wanted, item);
    if (found < least)
        problem(c, place, "must contain at least %.0f items of a certain form, has %.0f", least,
                found);
    if (max && found > json_number_value(max))
        problem(c, place, "must contain at most %.0f items of a certain form, has %.0f",
                json_number_value(max), found);
}

static void check_array(struct checker *c, const json_t *schema, const json_t *value,
                        const struct place *place)
{
    const json_t *items = json_object_get(schema, "items");
    const json_t *first = json_object_get(schema, "prefixItems");
    json_t *item;
    size_t i;

    if (json_is_array(items)) { /* as it was before 2020 */
        first = items;
        items = json_object_get(schema, "additionalItems");
    }
    check_length(c, schema, "minItems", "maxItems", json_array_size(value), "items", place);
    json_array_foreach(value, i, item) {
        const json_t *its = json_array_get(first, i);

        if (c->problems >= PROBLEMS_MAX || (!items && !its))
            break;
        validate(c, its ? its : items, item, &(struct place){ .up = place, .index = i });
    }
    if (json_is_true(json_object_get(schema, "uniqueItems"))) {
        int unique = pf_json_unique(value);

        c->run->nomem |= unique < 0;
        if (unique == 0)
            problem(c, place, "has an item twice, and all must differ");
    }
    check_contains(c, schema, value, place);
}

/* "no such parameter" is of use only to those who are told what there is. */
static void unknown_property(struct checker *c, const json_t *properties, const struct place *place)
{
    char names[160] = "";
    const char *key;
    json_t *unused;

    json_object_foreach((json_t *)(uintptr_t)properties, key, unused)
        snprintf(names + strlen(names), sizeof(names) - strlen(names), "%s%s", *names ? ", " : "",
                 key);
    problem(c, place, "there is no such parameter; there %s", *names ? "are: " : "is none");
    if (c->wrong && *names && c->problems <= PROBLEMS_MAX) {
        c->wrong->len--; /* onto the same line */
        c->run->nomem |= pf_buf_printf(c->wrong, "%s\n", names) < 0;
    }
}

/* Check one property against all that is said of it by name. Returns whether anything is. */
static bool check_named(struct checker *c, const json_t *schema, const json_t *value,
                        const struct place *place)
{
    const json_t *its = json_object_get(json_object_get(schema, "properties"), place->key);
    json_t *patterns = json_object_get(schema, "patternProperties"), *one;
    const char *pattern;
    bool named = its;

    if (its)
        validate(c, its, value, place);
    json_object_foreach(patterns, pattern, one) {
        if (!has_pattern(c, pattern, strlen(pattern), place->key, strlen(place->key), place))
            continue;
        validate(c, one, value, place);
        named = true;
    }
    return named;
}

static void check_properties(struct checker *c, const json_t *schema, const json_t *value,
                             const struct place *place)
{
    const json_t *additional = json_object_get(schema, "additionalProperties");
    const json_t *names = json_object_get(schema, "propertyNames");
    const char *key;
    json_t *one;

    json_object_foreach((json_t *)(uintptr_t)value, key, one) {
        struct place here = { .up = place, .key = key };
        bool named;

        if (c->problems >= PROBLEMS_MAX)
            break;
        if (names) {
            json_t *name = json_string(key);
            c->run->nomem |= !name;
            if (name)
                validate(c, names, name, &here);
            json_decref(name);
        }
        named = check_named(c, schema, one, &here);
        if (!named && json_is_object(additional))
            validate(c, additional, one, &here);
        else if (!named && (json_is_false(additional) ||
                            (!additional && c->run->closed && schema == c->run->root)))
            unknown_property(c, json_object_get(schema, "properties"), &here);
    }
}

static void check_required(struct checker *c, const json_t *names, const json_t *value,
                           const struct place *place)
{
    json_t *one;
    size_t i;

    json_array_foreach(names, i, one)
        if (!json_object_get(value, json_string_value(one)))
            problem(c, &(struct place){ .up = place, .key = json_string_value(one) },
                    "is required, and missing");
}

/* What a property brings with it: names of others, or a schema. */
static void check_dependent(struct checker *c, const json_t *schema, const json_t *value,
                            const struct place *place)
{
    static const char *const keywords[] = { "dependentRequired", "dependentSchemas",
                                            "dependencies" };
    const char *key;
    json_t *one;

    for (size_t i = 0; i < PF_COUNT(keywords); i++) {
        json_object_foreach(json_object_get(schema, keywords[i]), key, one) {
            if (!json_object_get(value, key))
                continue;
            if (json_is_array(one))
                check_required(c, one, value, place);
            else
                validate(c, one, value, place);
        }
    }
}

static void check_object(struct checker *c, const json_t *schema, const json_t *value,
                         const struct place *place)
{
    check_required(c, json_object_get(schema, "required"), value, place);
    check_length(c, schema, "minProperties", "maxProperties", json_object_size(value), "members",
                 place);
    check_properties(c, schema, value, place);
    check_dependent(c, schema, value, place);
}

static void check_forms(struct checker *c, const json_t *schema, const json_t *value,
                        const struct place *place)
{
    const json_t *any = json_object_get(schema, "anyOf");
    const json_t *exactly = json_object_get(schema, "oneOf");
    const json_t *none = json_object_get(schema, "not");
    unsigned matches = 0;
    char shown[96];
    json_t *one;
    size_t i;

    json_array_foreach(any, i, one)
        matches += matches == 0 && fits(c, one, value);
    if (any && matches == 0)
        problem(c, place, "%s fits none of the %zu forms that the schema allows",
                describe(value, shown), json_array_size(any));
    matches = 0;
    json_array_foreach(exactly, i, one)
        matches += fits(c, one, value);
    if (exactly && matches != 1)
        problem(c, place, "%s fits %u of the %zu forms of which it must fit exactly one",
                describe(value, shown), matches, json_array_size(exactly));
    if (none && fits(c, none, value))
        problem(c, place, "%s has a form that the schema forbids", describe(value, shown));
}

static void check_combined(struct checker *c, const json_t *schema, const json_t *value,
                           const struct place *place)
{
    const json_t *condition = json_object_get(schema, "if"), *then;
    json_t *one;
    size_t i;

    json_array_foreach(json_object_get(schema, "allOf"), i, one)
        validate(c, one, value, place);
    check_forms(c, schema, value, place);
    if (!condition)
        return;
    then = json_object_get(schema, fits(c, condition, value) ? "then" : "else");
    if (then)
        validate(c, then, value, place);
}

static void validate(struct checker *c, const json_t *schema, const json_t *value,
                     const struct place *place)
{
    const json_t *reference = json_object_get(schema, "$ref");

    if (c->depth >= PF_SCHEMA_DEPTH_MAX) {
        problem(c, place, "is nested deeper than %d levels of the schema", PF_SCHEMA_DEPTH_MAX);
        return;
    }
    c->run->spent |= ++c->run->steps > STEPS_MAX;
    if (c->run->spent || c->run->nomem)
        return;
    if (json_is_false(schema))
        problem(c, place, "nothing is allowed here");
    c->depth++;
    if (reference)
        validate(c, pf_schema_resolve(c->run->root, json_string_value(reference)), value, place);
    if (check_type(c, json_object_get(schema, "type"), value, place)) {
        check_choice(c, schema, value, place);
        if (json_is_number(value))
            check_number(c, schema, value, place);
        if (json_is_string(value))
            check_string(c, schema, value, place);
        if (json_is_array(value))
            check_array(c, schema, value, place);
        if (json_is_object(value))
            check_object(c, schema, value, place);
        check_combined(c, schema, value, place);
    }
    c->depth--;
}

int pf_schema_validate(const json_t *schema, const json_t *value, bool closed, struct pf_buf *wrong)
{
    struct run run = { .root = schema, .closed = closed };
    struct checker c = { .run = &run, .wrong = wrong };

    validate(&c, schema, value, NULL);
    if (run.spent)
        problem(&c, NULL, "comparing it with the schema takes too long; send less, or simpler");
    if (c.problems > PROBLEMS_MAX)
        run.nomem |= pf_buf_printf(wrong, "- and more\n") < 0;
    return run.nomem ? -PINFOLD_ENOMEM : c.problems == 0;
}
