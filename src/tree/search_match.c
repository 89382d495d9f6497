/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Expressions come from models and texts from agents, so neither is trusted. PCRE2 has a limit of
 * its own on steps, but for each start of a match anew. So it calls back at each item of the
 * pattern, where time and cancellation are looked at.
 */
#define PCRE2_CODE_UNIT_WIDTH 8

#include "tree/search.h"

#include <ctype.h>
#include <pcre2.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"

enum {
    PATTERN_MAX = 10000,
    LINE_MAX_BYTES = 64 * 1024,
    CPU_MS = 10000,
    HEAP_KIB = 32 * 1024,
    STEPS = 256, /* between two looks at the clock */
};

struct pf_matcher {
    struct pinfold_cancel *cancel;
    int64_t cpu_deadline; /* of this thread's time */
    unsigned steps;
    bool ended;
    char *text; /* fixed */
    size_t text_len;
    bool ignore_case;
    unsigned char lower[256];
    pcre2_code *code;
    pcre2_match_data *data;
    pcre2_match_context *context;
};

static int64_t cpu_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec * PF_NS_PER_SEC + now.tv_nsec;
}

/* Whether to stop; now and then the clock is asked. */
static bool has_ended(struct pf_matcher *matcher)
{
    if (!matcher->ended && ++matcher->steps % STEPS == 0)
        matcher->ended =
                cpu_now() >= matcher->cpu_deadline || pinfold_cancel_fired(matcher->cancel);
    return matcher->ended;
}

static int on_callout(pcre2_callout_block *block, void *ctx)
{
    (void)block;
    return has_ended(ctx) ? PCRE2_ERROR_CALLOUT : 0;
}

static int fail_expression(int code, size_t at, const char *text, struct pinfold_error *err)
{
    PCRE2_UCHAR words[160];

    if (code == PCRE2_ERROR_HEAP_FAILED || code == PCRE2_ERROR_NOMEMORY)
        return pf_fail_nomem(err);
    if (pcre2_get_error_message(code, words, sizeof(words)) < 0)
        words[0] = '\0';
    return pf_fail(err, PINFOLD_EVALUE, "search: expression %s, at byte %zu: %s", PF_QUOTE(text),
                   at, (const char *)words);
}

static int compile(struct pf_matcher *matcher, struct pinfold_error *err)
{
    uint32_t flags = PCRE2_UTF | PCRE2_MATCH_INVALID_UTF | PCRE2_NEVER_BACKSLASH_C |
                     PCRE2_AUTO_CALLOUT | (matcher->ignore_case ? PCRE2_CASELESS : 0);
    pcre2_compile_context *context = pcre2_compile_context_create(NULL);
    size_t at = 0;
    int code = 0;

    if (!context)
        return pf_fail_nomem(err);
    /* A carriage return at the end of a line belongs to the end. */
    pcre2_set_newline(context, PCRE2_NEWLINE_ANYCRLF);
    matcher->code =
            pcre2_compile((PCRE2_SPTR)matcher->text, matcher->text_len, flags, &code, &at, context);
    pcre2_compile_context_free(context);
    if (!matcher->code)
        return fail_expression(code, at, matcher->text, err);
    matcher->data = pcre2_match_data_create(1, NULL);
    matcher->context = pcre2_match_context_create(NULL);
    if (!matcher->data || !matcher->context)
        return pf_fail_nomem(err);
    pcre2_set_heap_limit(matcher->context, HEAP_KIB);
    pcre2_set_callout(matcher->context, on_callout, matcher);
    return 0;
}

void pf_matcher_free(struct pf_matcher *matcher)
{
    if (!matcher)
        return;
    pcre2_match_data_free(matcher->data);
    pcre2_match_context_free(matcher->context);
    pcre2_code_free(matcher->code);
    free(matcher->text);
    free(matcher);
}

static void matcher_freep(struct pf_matcher **matcher)
{
    pf_matcher_free(*matcher);
}

static int copy_text(struct pf_matcher *matcher, const struct pinfold_search_options *options)
{
    matcher->text_len = options->text_len ? options->text_len : strlen(options->text);
    matcher->text = malloc(matcher->text_len + 1);
    if (!matcher->text)
        return -PINFOLD_ENOMEM;
    memcpy(matcher->text, options->text, matcher->text_len);
    matcher->text[matcher->text_len] = '\0';
    for (int c = 0; c < 256; c++)
        matcher->lower[c] = (unsigned char)(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
    for (size_t i = 0; matcher->ignore_case && !options->regex && i < matcher->text_len; i++)
        matcher->text[i] = (char)matcher->lower[(unsigned char)matcher->text[i]];
    return 0;
}

int pf_matcher_new(const struct pinfold_search_options *options, struct pinfold_cancel *cancel,
                   struct pf_matcher **ret, struct pinfold_error *err)
{
    PF_CLEANUP(matcher_freep) struct pf_matcher *matcher = calloc(1, sizeof(*matcher));
    uint64_t ms = options->max_cpu_ms ? options->max_cpu_ms : CPU_MS;
    int r = 0;

    if (!matcher)
        return pf_fail_nomem(err);
    matcher->cancel = cancel;
    matcher->ignore_case = options->ignore_case;
    matcher->cpu_deadline = ms > (uint64_t)(PF_NEVER / PF_NS_PER_MS) / 2
                                    ? PF_NEVER
                                    : cpu_now() + (int64_t)ms * PF_NS_PER_MS;
    if (copy_text(matcher, options) < 0)
        return pf_fail_nomem(err);
    if (matcher->text_len == 0 || matcher->text_len > PATTERN_MAX)
        return pf_fail(err, PINFOLD_EVALUE, "search: a text of %zu bytes, not 1 to %d",
                       matcher->text_len, PATTERN_MAX);
    if (options->regex)
        r = compile(matcher, err);
    if (r == 0)
        *ret = TAKE(matcher);
    return r;
}

/* ---- matching ---- */

static int found(size_t at, size_t len, size_t *ret_at, size_t *ret_len)
{
    *ret_at = at;
    *ret_len = len;
    return PF_MATCH_FOUND;
}

/* Compare in lower case; the first byte is looked for in both. */
static bool is_here(const struct pf_matcher *matcher, const char *at)
{
    for (size_t i = 0; i < matcher->text_len; i++)
        if ((char)matcher->lower[(unsigned char)at[i]] != matcher->text[i])
            return false;
    return true;
}

static int find_ignoring_case(struct pf_matcher *matcher, const char *text, size_t len, size_t from,
                              size_t *ret_at, size_t *ret_len)
{
    for (size_t at = from; at + matcher->text_len <= len; at++) {
        if (is_here(matcher, text + at))
            return found(at, matcher->text_len, ret_at, ret_len);
        if (has_ended(matcher))
            return PF_MATCH_NO_TIME;
    }
    return PF_MATCH_NONE;
}

static int find_fixed(struct pf_matcher *matcher, const char *text, size_t len, size_t from,
                      size_t *ret_at, size_t *ret_len)
{
    const char *at;

    if (matcher->ignore_case)
        return find_ignoring_case(matcher, text, len, from, ret_at, ret_len);
    at = memmem(text + from, len - from, matcher->text, matcher->text_len);
    return at ? found((size_t)(at - text), matcher->text_len, ret_at, ret_len) : PF_MATCH_NONE;
}

static int match_line(struct pf_matcher *matcher, const char *line, size_t len)
{
    int r = pcre2_match(matcher->code, (PCRE2_SPTR)line, len, 0, 0, matcher->data,
                        matcher->context);

    if (r >= 0)
        return PF_MATCH_FOUND;
    if (r == PCRE2_ERROR_NOMATCH)
        return PF_MATCH_NONE;
    if (r == PCRE2_ERROR_NOMEMORY)
        return -PINFOLD_ENOMEM;
    return matcher->ended ? PF_MATCH_NO_TIME : PF_MATCH_TOO_HARD;
}

static int find_expression(struct pf_matcher *matcher, const char *text, size_t len, size_t from,
                           size_t *ret_at, size_t *ret_len)
{
    const size_t *pair = pcre2_get_ovector_pointer(matcher->data);

    for (size_t next; from < len; from = next) {
        const char *end = memchr(text + from, '\n', len - from);
        size_t line_len = (end ? (size_t)(end - text) : len) - from;
        int r;
        next = from + line_len + 1;
        if (has_ended(matcher))
            return PF_MATCH_NO_TIME;
        r = match_line(matcher, text + from, line_len < LINE_MAX_BYTES ? line_len : LINE_MAX_BYTES);
        /* With \K a match may start behind its end. */
        if (r == PF_MATCH_FOUND)
            return found(from + pair[0], pair[1] > pair[0] ? pair[1] - pair[0] : 0, ret_at,
                         ret_len);
        if (r != PF_MATCH_NONE)
            return r;
    }
    return PF_MATCH_NONE;
}

int pf_matcher_find(struct pf_matcher *matcher, const char *text, size_t len, size_t from,
                    size_t *ret_at, size_t *ret_len)
{
    if (matcher->ended)
        return PF_MATCH_NO_TIME;
    return matcher->code ? find_expression(matcher, text, len, from, ret_at, ret_len)
                         : find_fixed(matcher, text, len, from, ret_at, ret_len);
}
