/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Everything happens in the text itself: keys and values are its own bytes with NULs put between
 * them, and lines that continue a value are moved up to it. So no secret has a second copy.
 */
#include "net/aws_ini.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "base/utf8.h"

enum {
    LINES_MAX = 64 * 1024,
    SECTIONS_MAX = 8 * 1024,
    KEYS_MAX = 256, /* in one section */
};

struct reader {
    struct pf_ini *ini;
    size_t line;
    char *value_end;   /* of the last key's; NULL: nothing to continue */
    size_t key_indent; /* of that key */
};

struct line {
    char *start, *end; /* without white space around it */
    size_t indent;
};

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\v' || c == '\f';
}

static bool is_line_end(char c)
{
    return c == '\n' || c == '\r';
}

static struct line trim(char *start, char *end)
{
    char *first = start;

    while (first < end && is_blank(*first))
        first++;
    while (end > first && is_blank(end[-1]))
        end--;
    return (struct line){ first, end, (size_t)(first - start) };
}

static const char *take_section(struct reader *reader, struct line line)
{
    struct pf_ini *ini = reader->ini;
    char *close = memrchr(line.start, ']', (size_t)(line.end - line.start));

    if (!close || close == line.start + 1)
        return "a section without a name";
    *close = '\0';
    for (size_t i = 0; i < ini->section_count; i++)
        if (strcmp(ini->sections[i].name, line.start + 1) == 0)
            return "a section that is there twice";
    if (ini->section_count == SECTIONS_MAX)
        return "too many sections";
    ini->sections[ini->section_count++] =
            (struct pf_ini_section){ line.start + 1, ini->pair_count, 0 };
    reader->value_end = NULL;
    return NULL;
}

static const char *take_key(struct reader *reader, struct line line)
{
    struct pf_ini *ini = reader->ini;
    char *sign = line.start;
    struct pf_ini_section *section;
    struct line key, value;

    while (sign < line.end && *sign != '=' && *sign != ':')
        sign++;
    if (sign == line.end)
        return "neither a section nor key = value";
    if (ini->section_count == 0)
        return "a key before the first section";
    key = trim(line.start, sign);
    value = trim(sign + 1, line.end);
    if (key.start == key.end)
        return "a value without a key";
    for (char *c = key.start; c < key.end; c++)
        if (*c >= 'A' && *c <= 'Z')
            *c = (char)(*c | 0x20);
    *key.end = '\0';
    *value.end = '\0';
    section = &ini->sections[ini->section_count - 1];
    if (pf_ini_get(ini, section, key.start))
        return "a key that is there twice";
    if (section->count == KEYS_MAX)
        return "too many keys in a section";
    section->count++;
    ini->pairs[ini->pair_count++] = (struct pf_ini_pair){ key.start, value.start };
    reader->value_end = value.end;
    reader->key_indent = line.indent;
    return NULL;
}

/* A line that is further in than the key belongs to its value. */
static void continue_value(struct reader *reader, struct line line)
{
    size_t len = (size_t)(line.end - line.start);

    *reader->value_end = '\n';
    memmove(reader->value_end + 1, line.start, len);
    reader->value_end += 1 + len;
    *reader->value_end = '\0';
}

static const char *take_line(struct reader *reader, struct line line)
{
    if (line.start == line.end || *line.start == '#' || *line.start == ';')
        return NULL;
    if (reader->value_end && line.indent > reader->key_indent) {
        continue_value(reader, line);
        return NULL;
    }
    return *line.start == '[' ? take_section(reader, line) : take_key(reader, line);
}

/* Sections and keys are no more than lines. */
static int make_room(struct pf_ini *ini, struct pinfold_error *err)
{
    size_t lines = 1, keys = 1, sections = 1;

    for (size_t i = 0; i < ini->text.len; i++) {
        lines += is_line_end(ini->text.data[i]);
        keys += ini->text.data[i] == '=' || ini->text.data[i] == ':';
        sections += ini->text.data[i] == '[';
    }
    if (lines > LINES_MAX)
        return pf_fail(err, PINFOLD_EVALUE, "too many lines");
    keys = keys < lines ? keys : lines;
    sections = sections < SECTIONS_MAX ? sections : SECTIONS_MAX;
    ini->pairs = calloc(keys, sizeof(*ini->pairs));
    ini->sections = calloc(sections, sizeof(*ini->sections));
    return ini->pairs && ini->sections ? 0 : pf_fail_nomem(err);
}

static int parse(struct pf_ini *ini, struct pinfold_error *err)
{
    struct reader reader = { .ini = ini };
    char *at = ini->text.data, *end = at ? at + ini->text.len : NULL;
    int r;

    if (!at)
        return 0;
    if (memchr(at, '\0', ini->text.len) || !pf_utf8_valid(at, ini->text.len, NULL))
        return pf_fail(err, PINFOLD_EVALUE, "it is not UTF-8 text");
    r = make_room(ini, err);
    while (r == 0 && at < end) {
        char *line_end = at;
        const char *wrong;
        bool pair;

        while (line_end < end && !is_line_end(*line_end))
            line_end++;
        pair = line_end + 1 < end && line_end[0] == '\r' && line_end[1] == '\n';
        reader.line++;
        wrong = take_line(&reader, trim(at, line_end));
        if (wrong)
            r = pf_fail(err, PINFOLD_EVALUE, "line %zu: %s", reader.line, wrong);
        at = line_end + 1 + pair;
    }
    return r;
}

int pf_ini_parse(struct pf_ini *ini, const char *path, struct pinfold_error *err)
{
    int r = parse(ini, err);

    return r < 0 ? pf_wrap(err, r, "read %s", PF_QUOTE(path)) : 0;
}

const char *pf_ini_get(const struct pf_ini *ini, const struct pf_ini_section *section,
                       const char *key)
{
    for (size_t i = 0; i < section->count; i++)
        if (strcmp(ini->pairs[section->first + i].key, key) == 0)
            return ini->pairs[section->first + i].value;
    return NULL;
}

const char *pf_ini_nested(const char *value, const char *key, size_t *ret_len)
{
    size_t key_len = strlen(key);

    while (*value) {
        const char *line = value + strspn(value, "\n"), *end = line + strcspn(line, "\n");
        const char *sign = memchr(line, '=', (size_t)(end - line));

        if (sign && strncasecmp(line, key, key_len) == 0 &&
            strspn(line + key_len, " \t") == (size_t)(sign - line) - key_len) {
            sign += 1 + strspn(sign + 1, " \t");
            *ret_len = (size_t)(end - sign);
            return sign;
        }
        value = end;
    }
    return NULL;
}

void pf_ini_done(struct pf_ini *ini)
{
    if (ini->text.data)
        explicit_bzero(ini->text.data, ini->text.len);
    pf_buf_done(&ini->text);
    free(ini->sections);
    free(ini->pairs);
    *ini = (struct pf_ini){ 0 };
}
