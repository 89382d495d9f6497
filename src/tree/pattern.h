/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One compiled glob pattern. It is cut at '/' into segments, and each segment into tokens; sets
 * in brackets become 256-bit maps. So matching never parses, and never sees a malformed pattern.
 */
#ifndef PF_TREE_PATTERN_H
#define PF_TREE_PATTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pinfold/error.h>

struct pf_byte_set {
    uint64_t bits[4];
};

struct pf_token {
    enum { PF_TOKEN_BYTE, PF_TOKEN_ANY, PF_TOKEN_STAR, PF_TOKEN_SET } kind;
    unsigned char byte;
    unsigned set; /* index into the pattern's sets */
};

struct pf_segment {
    enum {
        PF_SEGMENT_LITERAL,  /* text */
        PF_SEGMENT_SUFFIX,   /* '*' and then text */
        PF_SEGMENT_TOKENS,   /* everything else */
        PF_SEGMENT_ANY_DIRS, /* "**" */
    } kind;
    const char *text; /* literal bytes, unescaped */
    size_t text_len;
    const struct pf_token *tokens;
    size_t token_count;
};

struct pf_pattern {
    bool anchored; /* matches whole paths; else it has one segment, which matches names */
    bool dir_only;
    struct pf_segment *segments;
    size_t segment_count;
    struct pf_token *tokens; /* of all segments */
    struct pf_byte_set *sets;
    char *text; /* literal bytes of all segments */
};

/* Compile source into *ret. Returns 0, -PINFOLD_EVALUE (err names the pattern) or -PINFOLD_ENOMEM;
 * on failure there is nothing to free. */
int pf_pattern_compile(const char *source, struct pf_pattern *ret, struct pinfold_error *err);
void pf_pattern_done(struct pf_pattern *pattern);

/* Whether the segment, any kind but PF_SEGMENT_ANY_DIRS, matches one path component. */
bool pf_segment_match(const struct pf_pattern *pattern, const struct pf_segment *segment,
                      const char *name, size_t len);

#endif
