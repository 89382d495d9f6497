/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/jsonc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/text_stream.h"

/* A text, and the same with blanks instead of comments and of commas that end a list: plain JSON,
 * in which everything is where it was. jansson says whether it is right, so that what walks it
 * afterwards does not have to. */
struct document {
    const char *text;
    char *plain;
    size_t len;
    json_t *root;
    const char *newline;
};

/* A part of a text. */
struct span {
    size_t begin, end;
};

/* An object, and one member of it that was looked for. */
struct object {
    struct span whole;    /* from the brace to behind the other */
    struct span last_key; /* of the last member; empty when there is none */
    struct span last_value;
    bool found;
    struct span value; /* of the member that was found */
};

static int fail(struct pinfold_error *err, int code, const char *what)
{
    *err = (struct pinfold_error){ .code = code };
    snprintf(err->msg, sizeof(err->msg), "%s", what);
    return -code;
}

/* ---- reading ---- */

static size_t blank_comment(char *plain, size_t at, size_t len)
{
    bool line = plain[at + 1] == '/';
    size_t end = at + 2;

    while (end < len && !(line ? plain[end] == '\n'
                               : plain[end - 1] == '*' && plain[end] == '/' && end > at + 2))
        end++;
    if (!line && end < len)
        end++;
    for (size_t i = at; i < end; i++)
        if (plain[i] != '\n' && plain[i] != '\r')
            plain[i] = ' ';
    return end;
}

static void blank_comments(char *plain, size_t len)
{
    bool in_text = false;
    size_t i = 0;

    while (i < len) {
        if (in_text && plain[i] == '\\')
            i++;
        else if (plain[i] == '"')
            in_text = !in_text;
        else if (!in_text && plain[i] == '/' && i + 1 < len &&
                 (plain[i + 1] == '/' || plain[i + 1] == '*')) {
            i = blank_comment(plain, i, len);
            continue;
        }
        i++;
    }
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static size_t skip_space(const char *plain, size_t at, size_t len)
{
    while (at < len && is_space(plain[at]))
        at++;
    return at;
}

static void blank_commas(char *plain, size_t len)
{
    bool in_text = false;

    for (size_t i = 0; i < len; i++) {
        if (in_text && plain[i] == '\\')
            i++;
        else if (plain[i] == '"')
            in_text = !in_text;
        else if (!in_text && plain[i] == ',') {
            size_t next = skip_space(plain, i + 1, len);
            if (next < len && (plain[next] == '}' || plain[next] == ']'))
                plain[i] = ' ';
        }
    }
}

static void close_document(struct document *document)
{
    free(document->plain);
    json_decref(document->root);
}

static int open_document(struct document *ret, const char *text, size_t len, bool comments,
                         struct pinfold_error *err)
{
    char said[JSON_ERROR_TEXT_LENGTH + 64];
    json_error_t wrong;

    *ret = (struct document){ .text = text, .len = len, .plain = malloc(len + 1) };
    if (!ret->plain)
        return fail(err, PINFOLD_ENOMEM, "out of memory");
    memcpy(ret->plain, text, len);
    ret->plain[len] = '\0';
    /* A mark of the byte order that some editors put there. */
    if (len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
        memset(ret->plain, ' ', 3);
    if (comments) {
        blank_comments(ret->plain, len);
        blank_commas(ret->plain, len);
    }
    ret->newline = strstr(text, "\r\n") ? "\r\n" : "\n";
    ret->root = json_loadb(ret->plain, len, JSON_REJECT_DUPLICATES, &wrong);
    if (ret->root && json_is_object(ret->root))
        return 0;
    if (ret->root)
        return fail(err, PINFOLD_EVALUE, "it holds no JSON object");
    snprintf(said, sizeof(said), "line %d: %s", wrong.line, wrong.text);
    return fail(err, PINFOLD_EVALUE, said);
}

/* ---- walking, in text that is known to be right ---- */

static size_t skip_text(const char *plain, size_t at)
{
    for (at++; plain[at] != '"'; at++)
        at += plain[at] == '\\';
    return at + 1;
}

static size_t skip_value(const char *plain, size_t at)
{
    size_t depth = 0;

    do {
        if (plain[at] == '"') {
            at = skip_text(plain, at);
        } else if (plain[at] == '{' || plain[at] == '[') {
            depth++;
            at++;
        } else if (plain[at] == '}' || plain[at] == ']') {
            depth--;
            at++;
        } else if (depth) {
            at++;
        } else {
            at += strcspn(plain + at, ",}] \t\r\n");
        }
    } while (depth);
    return at;
}

static bool is_key(const char *plain, struct span key, const char *name)
{
    json_t *text = json_loadb(plain + key.begin, key.end - key.begin, JSON_DECODE_ANY, NULL);
    bool same = text && strcmp(json_string_value(text), name) == 0;

    json_decref(text);
    return same;
}

/* Look at the object that begins at a brace, for a member. */
static struct object look(const struct document *document, size_t at, const char *name)
{
    const char *plain = document->plain;
    struct object object = { .whole.begin = at };

    at = skip_space(plain, at + 1, document->len);
    while (plain[at] != '}') {
        struct span key = { at, skip_text(plain, at) };
        size_t colon = skip_space(plain, key.end, document->len);
        struct span value = { .begin = skip_space(plain, colon + 1, document->len) };

        value.end = skip_value(plain, value.begin);
        object.last_key = key;
        object.last_value = value;
        if (is_key(plain, key, name)) {
            object.found = true;
            object.value = value;
        }
        at = skip_space(plain, value.end, document->len);
        if (plain[at] == ',')
            at = skip_space(plain, at + 1, document->len);
    }
    object.whole.end = at + 1;
    return object;
}

/* ---- writing ---- */

/* The blanks that the line of a place begins with. */
static struct span indent_at(const struct document *document, size_t at)
{
    struct span indent = { at, at };

    while (indent.begin > 0 && document->text[indent.begin - 1] != '\n')
        indent.begin--;
    indent.end = indent.begin;
    while (indent.end < at &&
           (document->text[indent.end] == ' ' || document->text[indent.end] == '\t'))
        indent.end++;
    return indent;
}

/* A value over several lines, each but the first indented. NULL: out of memory. */
static char *print_value(const struct document *document, json_t *value, const char *indent)
{
    char *text = json_dumps(value, JSON_INDENT(2) | JSON_ENSURE_ASCII);
    size_t len = 0;
    char *whole = NULL;
    FILE *out = pf_text_stream(&whole, &len);

    for (const char *c = text; out && c && *c; c++) {
        if (*c != '\n')
            fputc(*c, out);
        else
            fprintf(out, "%s%s", document->newline, indent);
    }
    free(text);
    if (out && fclose(out) == 0 && text)
        return whole;
    free(whole);
    return NULL;
}

/* A place where the text is changed: what is between the two ends is replaced. */
struct splice {
    struct span at;
    const char *text;
};

static char *splice(const struct document *document, const struct splice *splices, size_t count)
{
    size_t len = 0, at = 0;
    char *whole = NULL;
    FILE *out = pf_text_stream(&whole, &len);

    for (size_t i = 0; out && i < count; i++) {
        fwrite(document->text + at, 1, splices[i].at.begin - at, out);
        fputs(splices[i].text, out);
        at = splices[i].at.end;
    }
    if (out)
        fwrite(document->text + at, 1, document->len - at, out);
    if (out && fclose(out) == 0)
        return whole;
    free(whole);
    return NULL;
}

/* Where a member goes that becomes the last: behind the comma that follows the last now, if there
 * is one, and behind a comment on that line. */
static size_t behind_last(const struct document *document, const struct object *object,
                          bool *ret_has_comma)
{
    const char *text = document->text, *plain = document->plain;
    size_t close = object->whole.end - 1;
    size_t at = object->last_value.end;
    size_t end;

    /* Only a comma that was blanked can be here, besides comments; one within a comment has
     * something before it on its line that is no blank. */
    for (end = at; end < close && is_space(text[end]); end++)
        ;
    *ret_has_comma = end < close && text[end] == ',';
    if (*ret_has_comma)
        at = end + 1;
    for (end = at; end < close && text[end] != '\n'; end++)
        ;
    /* A comment over several lines would be cut in two: then it goes before it. */
    if (end < close && memchr(text + at, '/', end - at) && !strstr(plain + at, "*/") &&
        memmem(text + at, end - at, "//", 2))
        at = end - (text[end - 1] == '\r');
    return at;
}

static char *append_member(const struct document *document, const struct object *object,
                           const char *name, json_t *value)
{
    bool has_comma = false, several = object->last_key.end > 0;
    struct span outer = indent_at(document, object->whole.begin);
    struct span inner = indent_at(document, object->last_key.begin);
    /* On lines of its own, unless the members before it are not. */
    bool on_line = !several || inner.end == object->last_key.begin;
    char indent[128], *member = NULL, *whole = NULL, *printed;
    size_t at = several ? behind_last(document, object, &has_comma) : object->whole.begin + 1;

    if (several)
        snprintf(indent, sizeof(indent), "%.*s", on_line ? (int)(inner.end - inner.begin) : 0,
                 document->text + inner.begin);
    else
        snprintf(indent, sizeof(indent), "%.*s%s", (int)(outer.end - outer.begin),
                 document->text + outer.begin,
                 outer.end > outer.begin && document->text[outer.begin] == '\t' ? "\t" : "  ");
    printed = print_value(document, value, indent);
    if (printed && asprintf(&member, "%s%s\"%s\": %s%s", on_line ? document->newline : " ", indent,
                            name, printed, has_comma ? "," : "") < 0)
        member = NULL;
    if (member && several) {
        struct splice both[] = {
            { { object->last_value.end, object->last_value.end }, has_comma ? "" : "," },
            { { at, at }, member },
        };
        whole = splice(document, both, 2);
    } else if (member) {
        char end[160];
        struct splice both[] = {
            { { at, at }, member },
            { { object->whole.end - 1, object->whole.end - 1 }, end },
        };
        /* The brace goes to a line of its own, unless it has one. */
        bool has_line = memchr(document->text + at, '\n', object->whole.end - at) != NULL;
        snprintf(end, sizeof(end), "%s%.*s", has_line ? "" : document->newline,
                 has_line ? 0 : (int)(outer.end - outer.begin), document->text + outer.begin);
        whole = splice(document, both, 2);
    }
    free(member);
    free(printed);
    return whole;
}

static char *replace_value(const struct document *document, const struct object *object,
                           json_t *value)
{
    struct span line = indent_at(document, object->value.begin);
    char indent[128], *printed, *whole = NULL;

    snprintf(indent, sizeof(indent), "%.*s", (int)(line.end - line.begin),
             document->text + line.begin);
    printed = print_value(document, value, indent);
    if (printed)
        whole = splice(document, &(struct splice){ object->value, printed }, 1);
    free(printed);
    return whole;
}

/* The changed text has to mean what it should: what was there, and the member. */
static int check(const struct document *before, const char *text, bool comments,
                 const char *section, const char *name, json_t *value, struct pinfold_error *err)
{
    json_t *wanted = json_deep_copy(before->root);
    struct document after;
    int r = open_document(&after, text, strlen(text), comments, err);

    if (wanted && !json_object_get(wanted, section))
        json_object_set_new(wanted, section, json_object());
    json_object_set(json_object_get(wanted, section), name, value);
    if (r < 0 || !json_equal(wanted, after.root))
        r = fail(err, PINFOLD_EVALUE, "it is written in a way that cannot be changed safely");
    close_document(&after);
    json_decref(wanted);
    return r;
}

static char *change(const struct document *document, const char *section, const char *name,
                    json_t *value, struct pinfold_error *err)
{
    size_t brace = skip_space(document->plain, 0, document->len);
    struct object root = look(document, brace, section);
    json_t *wrapped;
    char *text;

    if (root.found && document->plain[root.value.begin] == '{') {
        struct object inner = look(document, root.value.begin, name);
        return inner.found ? replace_value(document, &inner, value)
                           : append_member(document, &inner, name, value);
    }
    if (root.found) {
        fail(err, PINFOLD_EVALUE, "its section of servers is no object");
        return NULL;
    }
    wrapped = json_pack("{s:O}", name, value);
    text = wrapped ? append_member(document, &root, section, wrapped) : NULL;
    json_decref(wrapped);
    return text;
}

int pf_jsonc_set(const char *text, size_t len, bool comments, const char *section, const char *name,
                 json_t *value, char **ret_text, struct pinfold_error *err)
{
    struct document document;
    char *changed = NULL;
    int r;

    if (skip_space(text, 0, len) == len) {
        text = "{}\n";
        len = 3;
    }
    r = open_document(&document, text, len, comments, err);
    if (r == 0) {
        fail(err, PINFOLD_ENOMEM, "out of memory");
        changed = change(&document, section, name, value, err);
        r = changed ? check(&document, changed, comments, section, name, value, err) : -err->code;
    }
    close_document(&document);
    if (r == 0)
        *ret_text = changed;
    else
        free(changed);
    return r;
}
