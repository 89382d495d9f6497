/* SPDX-License-Identifier: Apache-2.0 */
#include "tree/glob.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/strings.h"
#include "tree/pattern.h"

struct pf_globs {
    size_t count;
    struct pf_pattern patterns[];
};

void pf_globs_free(struct pf_globs *globs)
{
    for (size_t i = 0; globs && i < globs->count; i++)
        pf_pattern_done(&globs->patterns[i]);
    free(globs);
}

void pf_globs_freep(struct pf_globs **globs)
{
    pf_globs_free(*globs);
}

int pf_globs_new(const char *const *patterns, struct pf_globs **ret, struct pinfold_error *err)
{
    size_t count = pf_strv_count(patterns);
    PF_CLEANUP(pf_globs_freep)
    struct pf_globs *globs = calloc(1, sizeof(*globs) + count * sizeof(globs->patterns[0]));

    if (!globs)
        return pf_fail_nomem(err);
    for (; globs->count < count; globs->count++) {
        int r = pf_pattern_compile(patterns[globs->count], &globs->patterns[globs->count], err);
        if (r < 0)
            return r;
    }
    *ret = TAKE(globs);
    return 0;
}

/* Components of a path, one at a time. */
struct components {
    const char *at, *end;
};

static bool next_component(struct components *path, const char **name, size_t *len)
{
    const char *slash;

    if (path->at >= path->end)
        return false;
    slash = memchr(path->at, '/', (size_t)(path->end - path->at));
    *name = path->at;
    *len = (size_t)((slash ? slash : path->end) - path->at);
    path->at += *len + 1;
    return true;
}

/*
 * Match a whole path against a pattern's segments: tokens_match() one level up. "**" first stands
 * for no directory; on a mismatch the last one met takes one component more. A "**" at the end
 * needs at least one component.
 */
static bool path_match(const struct pf_pattern *pattern, const char *path, size_t len)
{
    const struct pf_segment *segments = pattern->segments;
    struct components rest = { path, path + len }, retry = { NULL, NULL };
    size_t count = pattern->segment_count, at = 0, retry_at = 0, name_len;
    const char *name;

    for (;;) {
        if (at < count && segments[at].kind == PF_SEGMENT_ANY_DIRS) {
            if (++at == count && rest.at < rest.end)
                return true;
            retry = rest;
            retry_at = at;
            continue;
        }
        if (!next_component(&rest, &name, &name_len))
            return at == count && (at == 0 || segments[at - 1].kind != PF_SEGMENT_ANY_DIRS);
        if (at < count && pf_segment_match(pattern, &segments[at], name, name_len)) {
            at++;
            continue;
        }
        if (!retry.at || !next_component(&retry, &name, &name_len))
            return false;
        rest = retry;
        at = retry_at;
    }
}

bool pf_globs_match(const struct pf_globs *globs, const char *path, size_t len, bool is_dir)
{
    const char *slash = memrchr(path, '/', len);
    const char *name = slash ? slash + 1 : path;
    size_t name_len = (size_t)(path + len - name);

    for (size_t i = 0; i < globs->count; i++) {
        const struct pf_pattern *pattern = &globs->patterns[i];

        if (pattern->dir_only && !is_dir)
            continue;
        if (pattern->anchored ? path_match(pattern, path, len)
                              : pf_segment_match(pattern, pattern->segments, name, name_len))
            return true;
    }
    return false;
}

/* Whether the directory path can lead to a match of an anchored pattern: its components match the
 * pattern's first ones, and the pattern goes on, or a "**" comes first. */
static bool leads_to(const struct pf_pattern *pattern, const char *path, size_t len)
{
    struct components rest = { path, path + len };
    const char *name;
    size_t name_len;

    for (size_t at = 0; at < pattern->segment_count; at++) {
        if (pattern->segments[at].kind == PF_SEGMENT_ANY_DIRS ||
            !next_component(&rest, &name, &name_len))
            return true;
        if (!pf_segment_match(pattern, &pattern->segments[at], name, name_len))
            return false;
    }
    return false;
}

bool pf_globs_could_match_below(const struct pf_globs *globs, const char *path, size_t len)
{
    for (size_t i = 0; i < globs->count; i++)
        if (!globs->patterns[i].anchored || leads_to(&globs->patterns[i], path, len))
            return true;
    return false;
}
