/* SPDX-License-Identifier: Apache-2.0 */
/* Finding files of a workspace by their names and by what is in them. */
#ifndef PINFOLD_SEARCH_H
#define PINFOLD_SEARCH_H

#include <pinfold/sandbox.h>

PINFOLD_BEGIN_DECLS

struct pinfold_search_options {
    size_t size;
    const char *path;         /* only what is there, or below it; NULL: everything */
    const char *const *names; /* NULL-terminated patterns of policy.h: only files that one of
                                 them matches; NULL: all */
    const char *text;         /* what the files must contain; NULL: names alone */
    size_t text_len;          /* 0: text is NUL-terminated */
    bool regex;               /* text is a regular expression of PCRE2, matched line by line */
    bool ignore_case;         /* of text. Without regex that of ASCII letters alone */
    bool everything;          /* also what the sync policy excludes */
    unsigned context_lines;   /* before and after each line that matches; at most 100 */
    uint64_t max_results;     /* lines that match, or files; 0: 1,000 */
    uint64_t max_per_file;    /* lines that match; 0: no limit of its own */
    uint64_t max_file_bytes;  /* larger files are passed over; 0: 10 MiB */
    uint64_t max_line_bytes;  /* shown of a line, the match within; 0: 500 */
    uint64_t max_cpu_ms;      /* the most time that matching may take; 0: 10,000 */
};

#define PINFOLD_SEARCH_OPTIONS_INIT PINFOLD_SIZED(struct pinfold_search_options)

/* A line, or, when only names are searched, a file: line is 0 then, text is "". */
struct pinfold_search_match {
    char *path;
    uint64_t line;   /* from 1 */
    uint64_t column; /* byte of the match in its line, from 1; 0 for a line of context */
    bool is_context; /* a line around one that matches */
    bool line_cut;   /* text is not the whole line */
    char *text;      /* without its newline; valid UTF-8: other bytes have become U+FFFD */
    size_t text_len; /* may hold NUL bytes */
};

struct pinfold_search_result {
    struct pinfold_search_match *items; /* sorted by path, bytewise, then by line */
    size_t count;
    size_t capacity;  /* private */
    uint64_t matches; /* items that are no context */
    uint64_t files;   /* with a match */
    uint64_t files_searched;
    uint64_t skipped_binary; /* a NUL byte in the first 8,000 */
    uint64_t skipped_large;
    uint64_t skipped_hard; /* given up: the expression takes too much work or memory there */
    bool truncated;        /* there may be more: a limit was reached */
    struct pinfold_strings errors; /* one line each, at most 1,000 */
};

/**
 * Search the files of a workspace. Symbolic links are not followed, FIFOs, sockets and devices not
 * opened; what the sync policy excludes is passed over. With a limit it is the first by path that
 * are found. On a backend without a directory on this machine the files are fetched once, as a
 * flush would, and searched here. Works on views, changes nothing.
 *
 * An expression has all of PCRE2 but \C, and sees one line at a time, without its newline, of which
 * at most 64 KiB are looked at. It is UTF-8; bytes of a file that are none match nothing.
 *
 * sandbox  borrowed, started
 * options  borrowed; text or names is needed
 * ret      receives the result; the caller owns it, pinfold_search_result_done()
 * cancel   borrowed, may be NULL
 * err      borrowed, may be NULL; of an expression: what is wrong and where
 *
 * Returns 0, -PINFOLD_EVALUE (options, a pattern or the expression), -PINFOLD_EPATH, -PINFOLD_EOS
 * (path is not there), -PINFOLD_ESTART, -PINFOLD_ECANCELLED, -PINFOLD_ENOMEM or what the backend
 * returned.
 * Threads: any.
 */
PINFOLD_API int pinfold_sandbox_search(struct pinfold_sandbox *sandbox,
                                       const struct pinfold_search_options *options,
                                       struct pinfold_search_result *ret,
                                       struct pinfold_cancel *cancel, struct pinfold_error *err);

/* Empties what it is given: borrowed struct, owned contents; a zeroed struct is fine.
 * Threads: one at a time per struct. */
PINFOLD_API void pinfold_search_result_done(struct pinfold_search_result *result);

PINFOLD_END_DECLS

#endif
