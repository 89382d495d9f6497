/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one tree copier, for seeding and for flushing: a walk of the source, and a few threads that
 * copy batches of files. What differs between the two is in the options.
 */
#ifndef PF_TREE_COPY_H
#define PF_TREE_COPY_H

#include "base/cancel.h"
#include "tree/glob.h"

#include <pinfold/backend.h>

struct pf_copy_options {
    int src_fd, dst_fd;   /* borrowed; dst_fd -1 (with plan set): compare with an empty tree */
    bool src_inside;      /* the source may lie inside the destination: under a name that nobody
                             who made it knows, so that it does not grow by what is copied */
    const int *src_place; /* where the source lies on the host too; may be NULL */
    const char *src_name, *dst_name; /* host paths, for messages */
    const struct pf_globs *include;  /* NULL: everything */
    const struct pf_globs *exclude;  /* wins over include */
    bool empty_dirs;                 /* seed: create directories even when nothing goes into them */
    bool links;                /* seed: recreate links that stay inside the source; else a matched
                                  link is an error */
    bool links_out;            /* with links: those, too, that leave the source */
    bool skip_identical;       /* flush: leave files with the same bytes alone */
    bool upper;                /* flush: the source is an upper layer, with whiteouts in it */
    bool fsync_files;          /* flush: no; kept for durability options */
    struct pinfold_plan *plan; /* not NULL: change nothing, list */
    pinfold_progress_fn on_progress;
    void *on_progress_ctx;
    struct pinfold_cancel *cancel;
};

/* A character device of this number says in a layer of an overlay that the layers below do not have
 * the name. */
#define PF_WHITEOUT_DEVICE 0

struct pf_copy_result {
    uint64_t files, bytes;
    struct pinfold_strings skipped; /* sorted */
    struct pinfold_strings errors;  /* sorted by path */
};

/* Copy. Single paths that fail are in ret->errors and the rest is done. Returns 0,
 * -PINFOLD_EPREPARE (the roots are nested), -PINFOLD_ECANCELLED or -PINFOLD_ENOMEM. Same roots: 0
 * with nothing done. */
int pf_copy_tree(const struct pf_copy_options *options, struct pf_copy_result *ret,
                 struct pinfold_error *err);

/* What a plan says of what is left out. */
#define PF_COPY_EXCLUDED "excluded by a pattern"
#define PF_COPY_UNMATCHED "not matched by an include pattern"
#define PF_COPY_NO_FILE "no regular file but a FIFO, socket or device"

/* Add to a plan; reason is static text. Returns 0 or -PINFOLD_ENOMEM. */
int pf_copy_plan_add(struct pinfold_plan *plan, const char *path, bool is_dir,
                     enum pinfold_plan_action action, int64_t size, const char *reason);
void pf_copy_plan_sort(struct pinfold_plan *plan);

#endif
