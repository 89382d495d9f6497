/* SPDX-License-Identifier: Apache-2.0 */
/* One section of a TOML file that is somebody else's. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/install.h"
#include "cli/text_stream.h"
#include "cli/toml.h"

#define SECTION "mcp_servers"

static int fail(struct pinfold_error *err, int code, const char *what)
{
    *err = (struct pinfold_error){ .code = code };
    snprintf(err->msg, sizeof(err->msg), "%s", what);
    return -code;
}

/* ---- writing ---- */

static void print_text(FILE *out, const char *text)
{
    fputc('"', out);
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\')
            fprintf(out, "\\%c", c);
        else if (c < 0x20 || c == 0x7f)
            fprintf(out, "\\u%04x", c);
        else
            fputc(c, out);
    }
    fputc('"', out);
}

static void print_list(FILE *out, const json_t *list)
{
    const json_t *item;
    size_t i;

    fputc('[', out);
    json_array_foreach(list, i, item) {
        fputs(i ? ", " : "", out);
        print_text(out, json_string_value(item));
    }
    fputc(']', out);
}

char *pf_install_toml_section(const char *name, json_t *value)
{
    char *text = NULL;
    size_t len;
    FILE *out = pf_text_stream(&text, &len);
    const char *key;
    json_t *member;

    if (!out)
        return NULL;
    fprintf(out, "[" SECTION ".%s]\n", name);
    json_object_foreach(value, key, member) {
        fprintf(out, "%s = ", key);
        if (json_is_array(member))
            print_list(out, member);
        else
            print_text(out, json_string_value(member));
        fputc('\n', out);
    }
    if (fclose(out) == 0)
        return text;
    free(text);
    return NULL;
}

/* ---- reading ---- */

/* What a file says besides the section, and where that is. */
struct survey {
    const char *own; /* "mcp_servers.NAME" */
    FILE *rest;
    unsigned first, last; /* lines of the section; 0: it is not there */
};

static int look(void *ctx, const struct pf_toml_item *item)
{
    struct survey *survey = ctx;
    size_t len = strlen(survey->own);

    if (strncmp(item->path, survey->own, len) == 0 &&
        (!item->path[len] || item->path[len] == '.')) {
        if (!survey->first || item->line < survey->first)
            survey->first = item->line;
        if (item->last > survey->last)
            survey->last = item->last;
        return 0;
    }
    /* The parent is there as soon as the section is. */
    if (strcmp(item->path, SECTION) != 0)
        fprintf(survey->rest, "%d %s %d %zu:%s\n", (int)item->type, item->path, item->index,
                strlen(item->text), item->text);
    return 0;
}

/* Returns 0 with the rest, to free(), and the lines. */
static int survey(const char *text, size_t len, const char *own, struct survey *ret,
                  char **ret_rest, struct pinfold_error *err)
{
    size_t size;
    int r;

    *ret = (struct survey){ .own = own, .rest = pf_text_stream(ret_rest, &size) };
    if (!ret->rest)
        return fail(err, PINFOLD_ENOMEM, "out of memory");
    r = pf_toml_read("it", text, len, look, ret, err);
    if (fclose(ret->rest) != 0 && r == 0)
        r = fail(err, PINFOLD_ENOMEM, "out of memory");
    return r;
}

/* Where a line begins, from 1; the end of the text when there are not so many. */
static size_t line_at(const char *text, size_t len, unsigned line)
{
    size_t at = 0;

    while (--line && at < len) {
        const char *end = memchr(text + at, '\n', len - at);
        at = end ? (size_t)(end - text) + 1 : len;
    }
    return at;
}

static char *replace(const char *text, size_t len, const struct survey *found, const char *section)
{
    size_t begin = found->first ? line_at(text, len, found->first) : len;
    size_t end = found->first ? line_at(text, len, found->last + 1) : len;
    bool gap = !found->first && len;
    char *whole = NULL;

    /* A new section comes last, a blank line before it. */
    if (asprintf(&whole, "%.*s%s%s%s", (int)begin, text,
                 gap ? (text[len - 1] == '\n' ? "\n" : "\n\n") : "", section, text + end) < 0)
        return NULL;
    return whole;
}

int pf_install_toml(const char *text, size_t len, const char *name, json_t *value, char **ret_text,
                    struct pinfold_error *err)
{
    struct survey found, after;
    char own[96], *rest = NULL, *other = NULL, *section, *whole = NULL;
    int r;

    snprintf(own, sizeof(own), SECTION ".%s", name);
    section = pf_install_toml_section(name, value);
    r = section ? survey(text, len, own, &found, &rest, err)
                : fail(err, PINFOLD_ENOMEM, "out of memory");
    if (r == 0) {
        whole = replace(text, len, &found, section);
        r = whole ? survey(whole, strlen(whole), own, &after, &other, err)
                  : fail(err, PINFOLD_ENOMEM, "out of memory");
        /* Everything else has to mean what it did. */
        if (r == -PINFOLD_EVALUE || (r == 0 && (!after.first || strcmp(rest, other) != 0)))
            r = fail(err, PINFOLD_EVALUE, "it is written in a way that cannot be changed safely");
    }
    if (r == 0)
        *ret_text = whole;
    else
        free(whole);
    free(section);
    free(rest);
    free(other);
    return r;
}
