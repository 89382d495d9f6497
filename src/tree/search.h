/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finding files beneath a root, and lines in them:
 *
 *   search.c         which files, and the limits
 *   search_file.c    the lines of one file, with what surrounds them
 *   search_match.c   one text in one line: fixed, or an expression whose work is bounded
 */
#ifndef PF_TREE_SEARCH_H
#define PF_TREE_SEARCH_H

#include <pinfold/search.h>

#include "tree/glob.h"

struct pf_search_request {
    int root_fd;                    /* borrowed */
    const struct pf_globs *exclude; /* NULL: nothing */
    const struct pf_globs *names;   /* NULL: all */
    const char *path;               /* normalised */
    const struct pinfold_search_options *options;
    struct pinfold_cancel *cancel;
};

/* ret is zeroed by the caller. Returns what pinfold_sandbox_search() does. */
int pf_search(const struct pf_search_request *request, struct pinfold_search_result *ret,
              struct pinfold_error *err);

/* ---- search_match.c ---- */

struct pf_matcher;

enum {
    PF_MATCH_NONE = 0,
    PF_MATCH_FOUND = 1,
    PF_MATCH_TOO_HARD, /* the expression takes too much, here */
    PF_MATCH_NO_TIME,  /* the time for all of it is used up, or it is cancelled */
};

/* Compile. max_cpu_ms counts from now. Returns 0, -PINFOLD_EVALUE or -PINFOLD_ENOMEM. */
int pf_matcher_new(const struct pinfold_search_options *options, struct pinfold_cancel *cancel,
                   struct pf_matcher **ret, struct pinfold_error *err);
void pf_matcher_free(struct pf_matcher *matcher);

/* The first match in text from an offset on, which is the start of a line: where, and how long.
 * Returns one of the enumeration or -PINFOLD_ENOMEM. */
int pf_matcher_find(struct pf_matcher *matcher, const char *text, size_t len, size_t from,
                    size_t *ret_at, size_t *ret_len);

/* ---- search_file.c ---- */

/* Add what matches in a file, at most max lines. Returns one of the enumeration (NONE: it was
 * searched to its end) or -PINFOLD_ENOMEM. *ret_matches counts. FOUND: there were more than max. */
int pf_search_file(struct pf_matcher *matcher, const struct pinfold_search_options *options,
                   const char *path, const char *text, size_t len, uint64_t max,
                   struct pinfold_search_result *ret, uint64_t *ret_matches);

/* Add an item; takes over nothing. */
int pf_search_add(struct pinfold_search_result *ret, const struct pinfold_search_match *match);

#endif
