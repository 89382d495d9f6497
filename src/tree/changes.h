/* SPDX-License-Identifier: Apache-2.0 */
/* Comparing a workspace with the seed folder it was made from. */
#ifndef PF_TREE_CHANGES_H
#define PF_TREE_CHANGES_H

#include <pinfold/changes.h>

#include "tree/glob.h"
#include "tree/seed_mark.h"

struct pf_changes_request {
    int root_fd;                     /* the workspace; borrowed */
    int upper_fd;                    /* of an overlay: what was changed in it; else -1 */
    const struct pf_seed_mark *mark; /* without a source: there was no seed */
    bool fetched;                    /* root_fd is a copy of the workspace: its times say nothing */
    const struct pf_globs *include, *exclude; /* of a flush */
    const struct pf_globs *seed_exclude;      /* NULL when there was no seed */
    const char *path;                         /* normalised */
    const struct pinfold_changes_options *options;
    struct pinfold_cancel *cancel;
};

/* List. ret is zeroed by the caller. Both return what pinfold_sandbox_changes() does. */
int pf_changes_find(const struct pf_changes_request *request, struct pinfold_changes *ret,
                    struct pinfold_error *err);

/* Write the diff of what was found, if the options want one. */
int pf_changes_write(const struct pf_changes_request *request, struct pinfold_changes *changes,
                     struct pinfold_error *err);

/* The seed's directory, -1 when there was none, or a negative code. */
int pf_changes_open_seed(const struct pf_seed_mark *mark, struct pinfold_error *err);

/* Add a line, unless there are too many. Returns 0 or -PINFOLD_ENOMEM. */
int pf_changes_note(struct pinfold_strings *list, const char *format, ...) PINFOLD_PRINTF(2, 3);

#endif
