/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The line differ: which lines of a text are not in another, and the other way round. Lines end at
 * '\n' and have it; a last line without one is another line than the same with it.
 */
#ifndef PF_TREE_DIFFER_H
#define PF_TREE_DIFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pf_text {
    const char *data; /* borrowed */
    size_t len;
};

/* A text in lines. */
struct pf_lines {
    const char *data; /* borrowed */
    size_t *starts;   /* count + 1 of them: the last is the text's length */
    bool *changed;    /* of each line: it has none that goes with it on the other side */
    size_t count;
};

struct pf_diff {
    struct pf_lines old_side, new_side;
};

/*
 * Compare. Lines that are not changed go together in their order: the first with the first, and so
 * on. The number of changed ones is the least possible for texts that differ little. For others the
 * work is bounded: it grows with the length of the texts and not with its square, and there may be
 * more changed lines than need be. Returns 0 or -PINFOLD_ENOMEM.
 */
int pf_diff_texts(struct pf_text old_text, struct pf_text new_text, struct pf_diff *ret);
void pf_diff_done(struct pf_diff *diff);

#endif
