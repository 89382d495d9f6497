/* SPDX-License-Identifier: Apache-2.0 */
#include "tree/pattern.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"

/* Where the compiler stands; the arrays of the pattern are large enough for the whole source. */
struct compiler {
    const char *source;
    struct pf_pattern *pattern;
    size_t token_count, set_count, text_len;
    struct pinfold_error *err;
};

static int refuse(const struct compiler *compiler, const char *why)
{
    return pf_fail(compiler->err, PINFOLD_EVALUE, "pattern \"%s\": %s", PF_QUOTE(compiler->source),
                   why);
}

static void set_add(struct pf_byte_set *set, unsigned from, unsigned to)
{
    for (unsigned byte = from; byte <= to; byte++)
        set->bits[byte / 64] |= UINT64_C(1) << byte % 64;
}

static bool set_has(const struct pf_byte_set *set, unsigned char byte)
{
    return set->bits[byte / 64] >> byte % 64 & 1;
}

/* The POSIX classes over ASCII, as ranges: <ctype.h> would answer by locale. */
static const struct {
    const char *name;
    const char *ranges; /* pairs of first and last byte */
} classes[] = {
    { "alnum", "azAZ09" },   { "alpha", "azAZ" },
    { "blank", "  \t\t" },   { "cntrl", "\1\37\177\177" },
    { "digit", "09" },       { "graph", "!~" },
    { "lower", "az" },       { "print", " ~" },
    { "punct", "!/:@[`{~" }, { "space", "\t\r  " },
    { "upper", "AZ" },       { "xdigit", "09afAF" },
};

static bool set_add_class(struct pf_byte_set *set, const char *name, size_t len)
{
    for (size_t i = 0; i < PF_COUNT(classes); i++) {
        if (strlen(classes[i].name) != len || memcmp(classes[i].name, name, len) != 0)
            continue;
        for (const char *range = classes[i].ranges; *range; range += 2)
            set_add(set, (unsigned char)range[0], (unsigned char)range[1]);
        return true;
    }
    return false;
}

/* One byte of a set, perhaps escaped. Returns it, or -1 at the end of the segment. */
static int set_byte(const char **at, const char *end)
{
    if (*at < end && **at == '\\')
        ++*at;
    return *at < end ? (unsigned char)*(*at)++ : -1;
}

/* "[:name:]" inside a set. *at stands on it, and ends up behind it. */
static bool parse_class(struct pf_byte_set *set, const char **at, const char *end)
{
    const char *name = *at + 2;
    const char *close = memmem(name, (size_t)(end - name), ":]", 2);

    if (!close || !set_add_class(set, name, (size_t)(close - name)))
        return false;
    *at = close + 2;
    return true;
}

/* One byte or a range of a set. Returns false at the end of the segment. */
static bool parse_range(struct pf_byte_set *set, const char **at, const char *end)
{
    int first = set_byte(at, end), last = first;

    if (end - *at > 1 && (*at)[0] == '-' && (*at)[1] != ']') {
        ++*at;
        last = set_byte(at, end);
    }
    if (first < 0 || last < 0)
        return false;
    set_add(set, (unsigned)first, (unsigned)last);
    return true;
}

/* Parse what follows '['. *at ends up behind the ']'. */
static int parse_set(struct compiler *compiler, const char **at, const char *end)
{
    struct pf_byte_set *set = &compiler->pattern->sets[compiler->set_count];
    const char *p = *at;
    bool negated = p < end && (*p == '!' || *p == '^');

    p += negated;
    /* A ']' that comes first is an ordinary byte. */
    for (bool first = true; first || p == end || *p != ']'; first = false) {
        if (end - p > 1 && p[0] == '[' && p[1] == ':') {
            if (!parse_class(set, &p, end))
                return refuse(compiler, "unknown class of characters in '[...]'");
        } else if (!parse_range(set, &p, end)) {
            return refuse(compiler, "'[' has no ']' (write \"\\[\" for the character itself)");
        }
    }
    *at = p + 1;
    if (negated)
        for (size_t i = 0; i < PF_COUNT(set->bits); i++)
            set->bits[i] = ~set->bits[i];
    compiler->pattern->tokens[compiler->token_count++] =
            (struct pf_token){ .kind = PF_TOKEN_SET, .set = (unsigned)compiler->set_count++ };
    return 0;
}

static int parse_tokens(struct compiler *compiler, const char *at, const char *end)
{
    struct pf_token *tokens = compiler->pattern->tokens;
    size_t first = compiler->token_count;
    int r;

    while (at < end) {
        struct pf_token token = { .kind = PF_TOKEN_BYTE };

        if (*at == '[') {
            at++;
            r = parse_set(compiler, &at, end);
            if (r < 0)
                return r;
            continue;
        }
        if (*at == '*')
            token.kind = PF_TOKEN_STAR;
        else if (*at == '?')
            token.kind = PF_TOKEN_ANY;
        else if (*at == '\\' && ++at == end)
            return refuse(compiler, "nothing follows the last '\\'");
        token.byte = (unsigned char)*at++;
        if (token.kind == PF_TOKEN_STAR && compiler->token_count > first &&
            tokens[compiler->token_count - 1].kind == PF_TOKEN_STAR)
            continue; /* "**" inside a name is no more than '*' */
        tokens[compiler->token_count++] = token;
    }
    return 0;
}

/* Give a segment whose tokens are parsed its kind: most are a plain name or "*.ext". */
static void classify(struct compiler *compiler, struct pf_segment *segment)
{
    size_t star = segment->token_count > 0 && segment->tokens[0].kind == PF_TOKEN_STAR;

    segment->kind = PF_SEGMENT_TOKENS;
    for (size_t i = star; i < segment->token_count; i++)
        if (segment->tokens[i].kind != PF_TOKEN_BYTE)
            return;
    segment->kind = star ? PF_SEGMENT_SUFFIX : PF_SEGMENT_LITERAL;
    segment->text = compiler->pattern->text + compiler->text_len;
    segment->text_len = segment->token_count - star;
    for (size_t i = star; i < segment->token_count; i++)
        compiler->pattern->text[compiler->text_len++] = (char)segment->tokens[i].byte;
}

static bool is_any_dirs(const char *start, size_t len)
{
    return len >= 2 && strspn(start, "*") >= len;
}

/* Compile the segment from start to end (a '/' or the end of the pattern). */
static int parse_segment(struct compiler *compiler, const char *start, const char *end)
{
    struct pf_pattern *pattern = compiler->pattern;
    struct pf_segment *segment = &pattern->segments[pattern->segment_count];
    size_t len = (size_t)(end - start);
    int r;

    if (len == 0 || (len == 1 && *start == '.'))
        return 0; /* "a//b" and "./a" say no more than "a/b" and "/a" */
    if (len == 2 && memcmp(start, "..", 2) == 0)
        return refuse(compiler, "a \"..\" component leaves the tree that the pattern is about");
    pattern->segment_count++;
    segment->tokens = pattern->tokens + compiler->token_count;
    if (is_any_dirs(start, len)) {
        segment->kind = PF_SEGMENT_ANY_DIRS;
        return 0;
    }
    r = parse_tokens(compiler, start, end);
    if (r < 0)
        return r;
    segment->token_count = (size_t)(pattern->tokens + compiler->token_count - segment->tokens);
    classify(compiler, segment);
    if (segment->kind == PF_SEGMENT_LITERAL && segment->text_len == 2 &&
        memcmp(segment->text, "..", 2) == 0) /* written "\.." */
        return refuse(compiler, "a \"..\" component leaves the tree that the pattern is about");
    return 0;
}

static size_t count_byte(const char *text, char byte)
{
    size_t count = 0;

    for (; *text; text++)
        count += *text == byte;
    return count;
}

static int allocate(struct pf_pattern *pattern, const char *source)
{
    size_t len = strlen(source);

    pattern->segments = calloc(count_byte(source, '/') + 1, sizeof(*pattern->segments));
    pattern->tokens = calloc(len + 1, sizeof(*pattern->tokens));
    pattern->sets = calloc(count_byte(source, '[') + 1, sizeof(*pattern->sets));
    pattern->text = malloc(len + 1);
    return pattern->segments && pattern->tokens && pattern->sets && pattern->text ? 0
                                                                                  : -PINFOLD_ENOMEM;
}

static int parse(struct compiler *compiler)
{
    struct pf_pattern *pattern = compiler->pattern;
    const char *at = compiler->source, *end;
    int r;

    if (*at == '\0')
        return refuse(compiler, "it is empty");
    if (*at == '!')
        return refuse(compiler, "a leading '!' is not supported: patterns cannot be taken back "
                                "(write \"\\!\" for the character itself)");
    for (;; at = end + 1) {
        end = strchrnul(at, '/');
        r = parse_segment(compiler, at, end);
        if (r < 0)
            return r;
        if (*end == '\0')
            break;
        /* The last '/' asks for a directory, any other one anchors. */
        if (end[1] == '\0')
            pattern->dir_only = true;
        else if (end[strspn(end, "/")] != '\0' || end == compiler->source)
            pattern->anchored = true;
    }
    if (pattern->segment_count == 0)
        return refuse(compiler, "it names nothing below the root");
    return 0;
}

int pf_pattern_compile(const char *source, struct pf_pattern *ret, struct pinfold_error *err)
{
    struct pf_pattern pattern = { .anchored = false };
    struct compiler compiler = { .source = source, .pattern = &pattern, .err = err };
    int r = allocate(&pattern, source);

    r = r < 0 ? pf_fail_nomem(err) : parse(&compiler);
    if (r < 0) {
        pf_pattern_done(&pattern);
        return r;
    }
    *ret = pattern;
    return 0;
}

void pf_pattern_done(struct pf_pattern *pattern)
{
    free(pattern->segments);
    free(pattern->tokens);
    free(pattern->sets);
    free(pattern->text);
    *pattern = (struct pf_pattern){ .anchored = false };
}

static bool token_match(const struct pf_pattern *pattern, const struct pf_token *token,
                        unsigned char byte)
{
    switch (token->kind) {
    case PF_TOKEN_BYTE:
        return token->byte == byte;
    case PF_TOKEN_SET:
        return set_has(&pattern->sets[token->set], byte);
    case PF_TOKEN_ANY:
    case PF_TOKEN_STAR:
        break;
    }
    return true;
}

/*
 * A star first matches nothing. On a mismatch only the last star met takes one byte more: what an
 * earlier star could gain, the last one can as well. So the cost is at most len * token_count,
 * whatever the pattern.
 */
static bool tokens_match(const struct pf_pattern *pattern, const struct pf_segment *segment,
                         const char *name, size_t len)
{
    const size_t none = SIZE_MAX;
    size_t token = 0, at = 0, star = none, star_at = 0;

    while (at < len) {
        const struct pf_token *tokens = segment->tokens;

        if (token < segment->token_count && tokens[token].kind == PF_TOKEN_STAR) {
            star = token++;
            star_at = at;
        } else if (token < segment->token_count &&
                   token_match(pattern, &tokens[token], (unsigned char)name[at])) {
            token++;
            at++;
        } else if (star != none) {
            token = star + 1;
            at = ++star_at;
        } else {
            return false;
        }
    }
    while (token < segment->token_count && segment->tokens[token].kind == PF_TOKEN_STAR)
        token++;
    return token == segment->token_count;
}

bool pf_segment_match(const struct pf_pattern *pattern, const struct pf_segment *segment,
                      const char *name, size_t len)
{
    size_t text_len = segment->text_len;

    switch (segment->kind) {
    case PF_SEGMENT_LITERAL:
        return len == text_len && memcmp(name, segment->text, len) == 0;
    case PF_SEGMENT_SUFFIX:
        return len >= text_len && memcmp(name + len - text_len, segment->text, text_len) == 0;
    case PF_SEGMENT_TOKENS:
        return tokens_match(pattern, segment, name, len);
    case PF_SEGMENT_ANY_DIRS:
        break;
    }
    return true;
}
