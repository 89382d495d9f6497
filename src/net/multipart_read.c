/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reader. A part ends before CR LF and the boundary; as a boundary holds no CR, a match that
 * fails can only begin anew at the byte that broke it, and no input is ever looked at twice. A part
 * that says its length is not searched: its content may be whatever it likes.
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "net/multipart.h"

#define HEAD_MAX ((size_t)64 * 1024)

enum state {
    SEARCHING, /* for the first boundary; what comes before it does not count */
    AFTER,     /* a boundary: its line's end, or two dashes */
    DASH,      /* one dash of these */
    LINE_END,  /* CR of that line */
    HEAD,
    BODY,
    OVER,
};

static int wrong(struct pinfold_error *err, const char *what)
{
    return pf_fail(err, PINFOLD_EBACKEND, "a multipart reply %s", what);
}

/* ---- heads ---- */

static int hex_digit(char c)
{
    const char *digits = "0123456789abcdef", *at;

    if (c >= 'A' && c <= 'F')
        c = (char)(c | 0x20);
    at = c ? strchr(digits, c) : NULL;
    return at ? (int)(at - digits) : -1;
}

/* charset'language'text with %XX; in place. Returns the text, or NULL. */
static char *decode_extended(char *value)
{
    char *from = strchr(value, '\''), *start, *to;

    from = from ? strchr(from + 1, '\'') : NULL;
    if (!from)
        return NULL;
    start = to = ++from;
    while (*from) {
        int high = *from == '%' ? hex_digit(from[1]) : -1;
        int low = high >= 0 ? hex_digit(from[2]) : -1;
        *to++ = low >= 0 ? (char)(high << 4 | low) : *from;
        from += low >= 0 ? 3 : 1;
    }
    *to = '\0';
    return start;
}

/* Cut the next "name=value" off the parameters of a header; quotes are taken off the value. Returns
 * what follows, or NULL when there is no further one. */
static char *next_parameter(char *at, char **ret_name, char **ret_value)
{
    char *equals, *to;

    at += strspn(at, "; \t");
    equals = strpbrk(at, "=;");
    if (!equals || *equals == ';')
        return NULL;
    *ret_name = at;
    *equals = '\0';
    at = equals + 1;
    *ret_value = at;
    if (*at != '"') {
        at += strcspn(at, ";");
        if (*at)
            *at++ = '\0';
        return at;
    }
    *ret_value = to = ++at;
    for (; *at && *at != '"'; at++) {
        if (*at == '\\' && at[1])
            at++;
        *to++ = *at;
    }
    if (*at)
        at++;
    *to = '\0';
    return at;
}

static void take_disposition(char *value, struct pf_multipart_part *part)
{
    char *name, *text, *at = strchr(value, ';');
    bool extended = false;

    while (at && (at = next_parameter(at, &name, &text))) {
        if (strcasecmp(name, "name") == 0) {
            part->name = text;
        } else if (strcasecmp(name, "filename") == 0 && !extended) {
            part->filename = text;
        } else if (strcasecmp(name, "filename*") == 0) {
            text = decode_extended(text);
            extended = text != NULL;
            part->filename = extended ? text : part->filename;
        }
    }
}

static bool take_length(const char *value, int64_t *ret)
{
    size_t len = strspn(value, "0123456789");

    if (len == 0 || len > 18 || value[len])
        return false;
    *ret = strtoll(value, NULL, 10);
    return true;
}

static int take_line(char *line, struct pf_multipart_part *part, struct pinfold_error *err)
{
    char *value = strchr(line, ':');
    size_t len;

    if (!value)
        return wrong(err, "has a header without a colon");
    *value++ = '\0';
    value += strspn(value, " \t");
    len = strlen(value);
    while (len > 0 && (value[len - 1] == ' ' || value[len - 1] == '\t'))
        value[--len] = '\0';
    if (strcasecmp(line, "content-disposition") == 0)
        take_disposition(value, part);
    else if (strcasecmp(line, "content-type") == 0)
        part->type = value;
    else if (strcasecmp(line, "content-length") == 0 && !take_length(value, &part->length))
        return wrong(err, "has a length that is none");
    return 0;
}

static int begin_part(struct pf_multipart_parser *parser, struct pinfold_error *err)
{
    struct pf_multipart_part part = { .name = "", .type = "", .length = -1 };
    char *line = parser->head.data, *end;
    int r = 0;

    if (strlen(line) != parser->head.len)
        return wrong(err, "has a NUL in its headers");
    for (; r == 0 && (end = strstr(line, "\r\n")) && end != line; line = end + 2) {
        *end = '\0';
        r = take_line(line, &part, err);
    }
    parser->counted = part.length >= 0;
    parser->left = part.length;
    if (r == 0)
        r = parser->handler.begin(parser->handler.ctx, &part, err);
    parser->head.len = 0;
    parser->matched = 0;
    parser->state = BODY;
    return r;
}

/* Lines up to an empty one. Returns how many bytes were taken, or a negative code. */
static ssize_t take_head(struct pf_multipart_parser *parser, const char *data, size_t len,
                         struct pinfold_error *err)
{
    for (size_t i = 0; i < len; i++) {
        const struct pf_buf *head = &parser->head;
        int r = pf_buf_append(&parser->head, data + i, 1);
        if (r == -PINFOLD_ENOMEM)
            return pf_fail_nomem(err);
        if (r < 0)
            return wrong(err, "has headers that are too long");
        if (data[i] != '\n' || (head->len != 2 && head->len < 4) ||
            memcmp(head->data + head->len - (head->len == 2 ? 2 : 4), "\r\n\r\n",
                   head->len == 2 ? 2 : 4) != 0)
            continue;
        r = begin_part(parser, err);
        return r < 0 ? r : (ssize_t)i + 1;
    }
    return (ssize_t)len;
}

/* ---- bodies ---- */

static int give(struct pf_multipart_parser *parser, const void *data, size_t len,
                struct pinfold_error *err)
{
    if (len == 0 || parser->state == SEARCHING)
        return 0;
    if (parser->counted)
        return wrong(err, "has a part that is longer than it says");
    return parser->handler.data(parser->handler.ctx, data, len, err);
}

static ssize_t take_counted(struct pf_multipart_parser *parser, const char *data, size_t len,
                            struct pinfold_error *err)
{
    int r;

    if ((uint64_t)parser->left < len)
        len = (size_t)parser->left;
    parser->left -= (int64_t)len;
    r = parser->handler.data(parser->handler.ctx, data, len, err);
    return r < 0 ? r : (ssize_t)len;
}

static int boundary_seen(struct pf_multipart_parser *parser, struct pinfold_error *err)
{
    int r = parser->state == BODY ? parser->handler.end(parser->handler.ctx, err) : 0;

    parser->matched = 0;
    parser->state = AFTER;
    return r;
}

/* Up to a boundary, or all of it. Bytes that might have begun one are given when they have not. */
static ssize_t search(struct pf_multipart_parser *parser, const char *data, size_t len,
                      struct pinfold_error *err)
{
    size_t at = 0, matched = parser->matched;
    int r = 0;

    while (r == 0 && at < len) {
        if (matched > 0 && data[at] == parser->delimiter[matched]) {
            at++;
            if (++matched < parser->delimiter_len)
                continue;
            r = boundary_seen(parser, err);
            return r < 0 ? r : (ssize_t)at;
        }
        r = give(parser, parser->delimiter, matched, err);
        matched = 0;
        if (r == 0) {
            const char *cr = memchr(data + at, '\r', len - at);
            size_t plain = cr ? (size_t)(cr - data) - at : len - at;
            r = give(parser, data + at, plain, err);
            at += plain + (cr != NULL);
            matched = cr != NULL;
        }
    }
    parser->matched = matched;
    return r < 0 ? r : (ssize_t)at;
}

/* One byte of the line that a boundary ends. */
static int after_boundary(struct pf_multipart_parser *parser, char c, struct pinfold_error *err)
{
    bool blank = c == ' ' || c == '\t';

    if (parser->state == AFTER && c == '-')
        parser->state = DASH;
    else if (parser->state == AFTER && c == '\r')
        parser->state = LINE_END;
    else if (parser->state == DASH && c == '-')
        parser->state = OVER;
    else if (parser->state == LINE_END && c == '\n')
        parser->state = HEAD;
    else if (parser->state != AFTER || !blank)
        return wrong(err, "has something behind a boundary");
    return 0;
}

static ssize_t step(struct pf_multipart_parser *parser, const char *data, size_t len,
                    struct pinfold_error *err)
{
    int r;

    switch ((enum state)parser->state) {
    case HEAD:
        return take_head(parser, data, len, err);
    case BODY:
        if (parser->counted && parser->left > 0)
            return take_counted(parser, data, len, err);
        return search(parser, data, len, err);
    case SEARCHING:
        return search(parser, data, len, err);
    case OVER:
        return (ssize_t)len; /* what follows the last boundary does not count */
    default:
        r = after_boundary(parser, *data, err);
        return r < 0 ? r : 1;
    }
}

int pf_multipart_feed(struct pf_multipart_parser *parser, const void *data, size_t len,
                      struct pinfold_error *err)
{
    const char *at = data;

    while (len > 0) {
        ssize_t n = step(parser, at, len, err);
        if (n < 0)
            return (int)n;
        at += n;
        len -= (size_t)n;
    }
    return 0;
}

int pf_multipart_finish(struct pf_multipart_parser *parser, struct pinfold_error *err)
{
    return parser->state == OVER ? 0 : wrong(err, "ends too early");
}

/* ---- life ---- */

int pf_multipart_parser_init(struct pf_multipart_parser *parser, const char *content_type,
                             const struct pf_multipart_handler *handler, struct pinfold_error *err)
{
    _cleanup_free_ char *type = strdup(content_type);
    char *name, *value, *boundary = NULL, *at;

    *parser = (struct pf_multipart_parser){ .handler = *handler, .head = PF_BUF_INIT(HEAD_MAX) };
    if (!type)
        return pf_fail_nomem(err);
    at = strncasecmp(type, "multipart/", 10) == 0 ? strchr(type, ';') : NULL;
    while (at && (at = next_parameter(at, &name, &value)))
        if (strcasecmp(name, "boundary") == 0)
            boundary = value;
    if (!boundary || !*boundary || strlen(boundary) > 70 || strpbrk(boundary, "\r\n"))
        return pf_fail(err, PINFOLD_EBACKEND, "a reply that is not multipart: \"%s\"",
                       PF_QUOTE(content_type));
    memcpy(parser->delimiter, "\r\n--", 4);
    memcpy(parser->delimiter + 4, boundary, strlen(boundary) + 1);
    parser->delimiter_len = strlen(parser->delimiter);
    parser->matched = 2; /* the first boundary may stand at the very start */
    return 0;
}

void pf_multipart_parser_done(struct pf_multipart_parser *parser)
{
    pf_buf_done(&parser->head);
}
