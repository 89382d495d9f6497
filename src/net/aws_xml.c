/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A reader for the small documents of STS. It knows elements, attributes (skipped), text and the
 * five entities that XML itself has, and refuses all else: no document types, so no entities of a
 * document's own, no CDATA, no instructions. Text is decoded in place.
 */
#include <string.h>

#include "base/utf8.h"
#include "net/aws_sources.h"

enum {
    DEPTH_MAX = 16,
    PATH_MAX_BYTES = 512,
};

struct reader {
    char *at, *end;
    char path[PATH_MAX_BYTES]; /* of the element that is open */
    size_t marks[DEPTH_MAX];   /* the length of path before each element in it */
    unsigned depth;
    bool leaf;  /* the element that is open has had no element in it */
    char *text; /* of that element, while it is a leaf */
    struct pf_aws_xml_field *fields;
    size_t field_count;
};

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool is_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.' || c == ':';
}

static void skip_space(struct reader *reader)
{
    while (reader->at < reader->end && is_space(*reader->at))
        reader->at++;
}

static bool skip_text(struct reader *reader, const char *text)
{
    size_t len = strlen(text);

    if ((size_t)(reader->end - reader->at) < len || memcmp(reader->at, text, len) != 0)
        return false;
    reader->at += len;
    return true;
}

static size_t name_len(const struct reader *reader)
{
    size_t len = 0;

    while (reader->at + len < reader->end && is_name(reader->at[len]))
        len++;
    return len;
}

/* name = "value", with either quote; nothing of them is used. */
static bool skip_attribute(struct reader *reader)
{
    char quote;

    reader->at += name_len(reader);
    skip_space(reader);
    if (!skip_text(reader, "="))
        return false;
    skip_space(reader);
    quote = reader->at < reader->end ? *reader->at : '\0';
    if (quote != '"' && quote != '\'')
        return false;
    reader->at++;
    while (reader->at < reader->end && *reader->at != quote && *reader->at != '<')
        reader->at++;
    return skip_text(reader, quote == '"' ? "\"" : "'");
}

static bool skip_attributes(struct reader *reader)
{
    for (;;) {
        char *before = reader->at;

        skip_space(reader);
        if (name_len(reader) == 0)
            return true;
        if (before == reader->at || !skip_attribute(reader))
            return false;
    }
}

static bool open_element(struct reader *reader)
{
    size_t len = name_len(reader), used = strlen(reader->path);

    if (len == 0 || reader->depth == DEPTH_MAX || used + len + 2 > sizeof(reader->path))
        return false;
    reader->marks[reader->depth++] = used;
    if (used > 0)
        reader->path[used++] = '/';
    memcpy(reader->path + used, reader->at, len);
    reader->path[used + len] = '\0';
    reader->at += len;
    return skip_attributes(reader);
}

/* The element ends, whose text ends at text_end. */
static bool close_element(struct reader *reader, char *text_end)
{
    for (size_t i = 0; i < reader->field_count; i++) {
        struct pf_aws_xml_field *field = &reader->fields[i];
        if (strcmp(field->path, reader->path) != 0)
            continue;
        if (!reader->leaf || field->value)
            return false;
        field->value = reader->text;
        *text_end = '\0';
    }
    reader->path[reader->marks[--reader->depth]] = '\0';
    reader->leaf = false;
    return true;
}

static bool take_end_tag(struct reader *reader, char *text_end)
{
    const char *name = reader->path + reader->marks[reader->depth - 1];
    size_t len = name_len(reader);

    name += *name == '/';
    if (len != strlen(name) || memcmp(reader->at, name, len) != 0)
        return false;
    reader->at += len;
    skip_space(reader);
    return skip_text(reader, ">") && close_element(reader, text_end);
}

/* &name; as one byte: no service has to spell others so. */
static bool take_entity(struct reader *reader, char **to)
{
    static const struct {
        const char *name;
        char value;
    } known[] = { { "&lt;", '<' },    { "&gt;", '>' },   { "&amp;", '&' },  { "&quot;", '"' },
                  { "&apos;", '\'' }, { "&#34;", '"' },  { "&#39;", '\'' }, { "&#xA;", '\n' },
                  { "&#xD;", '\r' },  { "&#10;", '\n' }, { "&#13;", '\r' } };

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (skip_text(reader, known[i].name)) {
            *(*to)++ = known[i].value;
            return true;
        }
    }
    return false;
}

/* From behind a tag to behind the next one. */
static bool take_content(struct reader *reader)
{
    char *to = reader->at;

    reader->text = to;
    while (reader->at < reader->end && *reader->at != '<') {
        if (*reader->at != '&')
            *to++ = *reader->at++;
        else if (!take_entity(reader, &to))
            return false;
    }
    if (!skip_text(reader, "<"))
        return false;
    if (skip_text(reader, "/"))
        return take_end_tag(reader, to);
    if (!open_element(reader))
        return false;
    reader->leaf = true;
    if (!skip_text(reader, "/>"))
        return skip_text(reader, ">");
    reader->text = to; /* any place in the element's own bytes will do */
    return close_element(reader, to);
}

/* Before and after the one element there is white space alone, and a declaration at the start. */
static bool take_document(struct reader *reader)
{
    if (skip_text(reader, "<?xml") && (!skip_attributes(reader) || !skip_text(reader, "?>")))
        return false;
    skip_space(reader);
    if (!skip_text(reader, "<") || !open_element(reader))
        return false;
    reader->leaf = true;
    if (skip_text(reader, "/>"))
        reader->depth = 0;
    else if (!skip_text(reader, ">"))
        return false;
    while (reader->depth > 0)
        if (!take_content(reader))
            return false;
    skip_space(reader);
    return reader->at == reader->end;
}

int pf_aws_xml_read(char *text, size_t len, struct pf_aws_xml_field *fields, size_t count)
{
    struct reader reader = { .at = text, .end = text + len, .fields = fields };

    reader.field_count = count;
    for (size_t i = 0; i < count; i++)
        fields[i].value = NULL;
    if (len > PF_AWS_REPLY_MAX || memchr(text, '\0', len) || !pf_utf8_valid(text, len, NULL) ||
        !take_document(&reader)) {
        for (size_t i = 0; i < count; i++)
            fields[i].value = NULL;
        return -PINFOLD_EVALUE;
    }
    return 0;
}
