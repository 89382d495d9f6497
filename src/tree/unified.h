/* SPDX-License-Identifier: Apache-2.0 */
/* The diff of one file as text, in git's form of unified diffs. */
#ifndef PF_TREE_UNIFIED_H
#define PF_TREE_UNIFIED_H

#include "base/buf.h"
#include "tree/differ.h"

struct pf_diff_side {
    unsigned mode;       /* git's; 0: there is no such file */
    struct pf_text text; /* content, or the target of a link */
};

struct pf_diff_file {
    const char *path; /* the same on both sides */
    struct pf_diff_side old_side, new_side;
    unsigned context;
};

/* Whether git would call it binary: a NUL byte in the first 8,000. */
bool pf_text_is_binary(struct pf_text text);

/* Append the diff, or with binary the line that says so instead of its hunks. A change of type is
 * to be given as two files. Returns 0, -PINFOLD_EVALUE past the buffer's limit, or -PINFOLD_ENOMEM.
 */
int pf_unified_file(struct pf_buf *out, const struct pf_diff_file *file, bool binary);

/* Append "prefix" and the path, in quotes and escaped where git does that: control characters, '"',
 * '\' and bytes beyond ASCII. */
int pf_unified_name(struct pf_buf *out, const char *prefix, const char *path);

#endif
