/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keyword pattern: regular expressions as ECMAScript has them, by PCRE2 told to differ as
 * little as it can. Schemas and inputs come from anybody, and a pattern like (a*)*b is a way to
 * keep a process busy: the steps of a match are counted, over all places where it could begin, and
 * a match that takes too many of them is given up.
 */
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "agent/schema_parts.h"
#include "base/cleanup.h"

#include <pinfold/error.h>

enum {
    PATTERN_MAX = 16 * 1024,
    NEST_MAX = 100,
    HEAP_KIB = 64 * 1024, /* for what a match may have to come back to */
    STEPS_MAX = 10 * 1000 * 1000,
};

static void code_freep(pcre2_code **code)
{
    pcre2_code_free(*code);
}

static void compile_context_freep(pcre2_compile_context **context)
{
    pcre2_compile_context_free(*context);
}

static void match_context_freep(pcre2_match_context **context)
{
    pcre2_match_context_free(*context);
}

static void match_data_freep(pcre2_match_data **data)
{
    pcre2_match_data_free(*data);
}

/* Returns code, or NULL with *ret_error, an error of PCRE2's. */
static pcre2_code *compile(const char *pattern, size_t len, int *ret_error, size_t *ret_at)
{
    /* \C would cut characters; a callout before each item is where steps are counted. */
    static const uint32_t options = PCRE2_UTF | PCRE2_NEVER_UCP | PCRE2_NEVER_BACKSLASH_C |
                                    PCRE2_DOLLAR_ENDONLY | PCRE2_ALT_BSUX |
                                    PCRE2_ALLOW_EMPTY_CLASS | PCRE2_MATCH_UNSET_BACKREF |
                                    PCRE2_AUTO_CALLOUT;
    PF_CLEANUP(compile_context_freep)
    pcre2_compile_context *context = pcre2_compile_context_create(NULL);

    *ret_error = PCRE2_ERROR_NOMEMORY;
    *ret_at = 0;
    if (!context)
        return NULL;
    pcre2_set_newline(context, PCRE2_NEWLINE_ANYCRLF);
    pcre2_set_max_pattern_length(context, PATTERN_MAX);
    pcre2_set_parens_nest_limit(context, NEST_MAX);
    pcre2_set_compile_extra_options(context, PCRE2_EXTRA_ALT_BSUX);
    return pcre2_compile((PCRE2_SPTR)pattern, len, options, ret_error, ret_at, context);
}

static bool is_nomem(int error)
{
    /* The second one is what compiling says. */
    return error == PCRE2_ERROR_NOMEMORY || error == PCRE2_ERROR_HEAP_FAILED;
}

int pf_pattern_check(const char *pattern, size_t len, char wrong[static PF_PATTERN_WRONG_MAX])
{
    int error;
    size_t at;
    PF_CLEANUP(code_freep) pcre2_code *code = compile(pattern, len, &error, &at);
    char text[PF_PATTERN_WRONG_MAX - 40] = "";

    if (code)
        return 0;
    if (is_nomem(error))
        return -PINFOLD_ENOMEM;
    pcre2_get_error_message(error, (PCRE2_UCHAR *)text, sizeof(text));
    snprintf(wrong, PF_PATTERN_WRONG_MAX, "at byte %zu: %s", at, text);
    return -PINFOLD_EVALUE;
}

/* Steps are items tried, and characters that were passed between two of them. */
struct meter {
    uint64_t steps;
    size_t at;
};

static int count_steps(pcre2_callout_block *block, void *ctx)
{
    struct meter *meter = ctx;

    meter->steps +=
            1 + (block->current_position > meter->at ? block->current_position - meter->at : 0);
    meter->at = block->current_position;
    return meter->steps > STEPS_MAX ? PCRE2_ERROR_CALLOUT : 0;
}

int pf_pattern_match(const char *pattern, size_t len, const char *text, size_t text_len)
{
    int error;
    size_t at;
    struct meter meter = { 0 };
    PF_CLEANUP(code_freep) pcre2_code *code = compile(pattern, len, &error, &at);
    PF_CLEANUP(match_data_freep)
    pcre2_match_data *data = code ? pcre2_match_data_create(1, NULL) : NULL;
    PF_CLEANUP(match_context_freep)
    pcre2_match_context *context = data ? pcre2_match_context_create(NULL) : NULL;
    int r;

    if (!context)
        return -PINFOLD_ENOMEM; /* whether it compiles was seen when the schema was checked */
    pcre2_set_heap_limit(context, HEAP_KIB);
    pcre2_set_callout(context, count_steps, &meter);
    r = pcre2_match(code, (PCRE2_SPTR)text, text_len, 0, PCRE2_NO_UTF_CHECK, data, context);
    if (r >= 0 || r == PCRE2_ERROR_NOMATCH)
        return r >= 0;
    return is_nomem(r) ? -PINFOLD_ENOMEM : -PINFOLD_ETIMEOUT;
}
