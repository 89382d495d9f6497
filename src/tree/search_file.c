/* SPDX-License-Identifier: Apache-2.0 */
#include "tree/search.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/utf8.h"

enum {
    LINE_BYTES = 500,
    CONTEXT_MAX = 100,
};

/* A file that is being searched. */
struct scan {
    const struct pinfold_search_options *options;
    const char *path;
    const char *text;
    size_t len;
    struct pinfold_search_result *ret;
    uint64_t context;
    uint64_t line; /* number of the line that starts at... */
    size_t line_at;
    uint64_t told;   /* the last line that was added; 0: none */
    size_t told_end; /* where the next one starts */
};

int pf_search_add(struct pinfold_search_result *ret, const struct pinfold_search_match *match)
{
    size_t capacity = ret->capacity ? ret->capacity * 2 : 64;
    struct pinfold_search_match *items;

    if (ret->count == ret->capacity) {
        items = reallocarray(ret->items, capacity, sizeof(*items));
        if (!items)
            return -PINFOLD_ENOMEM;
        ret->items = items;
        ret->capacity = capacity;
    }
    ret->items[ret->count++] = *match;
    return 0;
}

static bool append(void *ctx, const char *text, size_t len)
{
    return pf_buf_append(ctx, text, len) == 0;
}

/* Valid UTF-8 of any bytes. */
static int decode(const char *text, size_t len, struct pinfold_bytes *ret)
{
    PF_CLEANUP(pf_buf_done) struct pf_buf out = PF_BUF_INIT(PF_BUF_UNLIMITED);
    struct pf_utf8 state = { 0 };

    if (!pf_utf8_decode(&state, text, len, append, &out) || !pf_utf8_finish(&state, append, &out))
        return -PINFOLD_ENOMEM;
    return pf_buf_take(&out, ret);
}

static size_t line_end(const struct scan *scan, size_t at)
{
    const char *end = memchr(scan->text + at, '\n', scan->len - at);

    return end ? (size_t)(end - scan->text) : scan->len;
}

static bool is_inside_character(char c)
{
    return ((unsigned char)c & 0xc0) == 0x80;
}

/* Which part of a line that is too long to show: the start, or what is around the match. */
static void choose_part(const struct scan *scan, size_t *start, size_t *end, size_t match_at)
{
    size_t max = scan->options->max_line_bytes ? scan->options->max_line_bytes : LINE_BYTES;
    size_t from = *start, line_end_at = *end;

    if (line_end_at - from <= max)
        return;
    if (match_at - *start > max / 2)
        from = match_at - max / 4;
    if (line_end_at - from < max)
        from = line_end_at - max;
    *end = from + max; /* text[*end] is there, or the line's end */
    while (from < match_at && is_inside_character(scan->text[from]))
        from++;
    while (*end > match_at && *end < line_end_at && is_inside_character(scan->text[*end]))
        --*end;
    *start = from;
}

/* Add the line that starts at `at`. match_at: where in the text it matches; SIZE_MAX: context. */
static int tell(struct scan *scan, uint64_t line, size_t at, size_t match_at)
{
    size_t start = at, end = line_end(scan, at);
    bool is_context = match_at == SIZE_MAX;
    struct pinfold_bytes text = { 0 };
    struct pinfold_search_match match = {
        .line = line,
        .column = is_context ? 0 : match_at - at + 1,
        .is_context = is_context,
    };

    scan->told = line;
    scan->told_end = end < scan->len ? end + 1 : scan->len;
    choose_part(scan, &start, &end, is_context ? at : match_at);
    match.line_cut = start != at || (end < scan->len && scan->text[end] != '\n');
    match.path = strdup(scan->path);
    if (!match.path || decode(scan->text + start, end - start, &text) < 0) {
        free(match.path);
        return -PINFOLD_ENOMEM;
    }
    match.text = text.data;
    match.text_len = text.len;
    if (pf_search_add(scan->ret, &match) == 0)
        return 0;
    free(match.path);
    free(match.text);
    return -PINFOLD_ENOMEM;
}

/* Context after the last line told, up to the line before the given one. */
static int tell_after(struct scan *scan, uint64_t last_match, uint64_t before)
{
    int r = 0;

    while (r == 0 && last_match && scan->told_end < scan->len &&
           scan->told < last_match + scan->context && scan->told + 1 < before)
        r = tell(scan, scan->told + 1, scan->told_end, SIZE_MAX);
    return r;
}

static size_t line_before(const struct scan *scan, size_t at)
{
    const char *newline = at > 1 ? memrchr(scan->text, '\n', at - 1) : NULL;

    return newline ? (size_t)(newline + 1 - scan->text) : 0;
}

static int tell_before(struct scan *scan)
{
    size_t at = scan->line_at;
    uint64_t line = scan->line;
    int r = 0;

    while (line > 1 && line - 1 > scan->told && scan->line - line < scan->context) {
        at = line_before(scan, at);
        line--;
    }
    for (; r == 0 && line < scan->line; line++) {
        r = tell(scan, line, at, SIZE_MAX);
        at = scan->told_end;
    }
    return r;
}

/* Bring line and line_at to the line that has the offset. */
static void go_to(struct scan *scan, size_t at)
{
    for (;;) {
        size_t end = line_end(scan, scan->line_at);
        if (at <= end || end == scan->len)
            return;
        scan->line_at = end + 1;
        scan->line++;
    }
}

int pf_search_file(struct pf_matcher *matcher, const struct pinfold_search_options *options,
                   const char *path, const char *text, size_t len, uint64_t max,
                   struct pinfold_search_result *ret, uint64_t *ret_matches)
{
    struct scan scan = {
        .options = options,
        .path = path,
        .text = text,
        .len = len,
        .ret = ret,
        .context = options->context_lines < CONTEXT_MAX ? options->context_lines : CONTEXT_MAX,
        .line = 1,
    };
    uint64_t last_match = 0;
    size_t from = 0, at = 0, match_len;
    int found = PF_MATCH_NONE, r = 0;

    *ret_matches = 0;
    while (r == 0 && from < len) {
        found = pf_matcher_find(matcher, text, len, from, &at, &match_len);
        if (found != PF_MATCH_FOUND || *ret_matches == max)
            break;
        go_to(&scan, at);
        r = tell_after(&scan, last_match, scan.line);
        if (r == 0)
            r = tell_before(&scan);
        if (r == 0)
            r = tell(&scan, scan.line, scan.line_at, at);
        last_match = scan.line;
        ++*ret_matches;
        from = scan.told_end;
        found = PF_MATCH_NONE;
    }
    if (r == 0)
        r = tell_after(&scan, last_match, UINT64_MAX);
    return r < 0 ? r : found;
}
