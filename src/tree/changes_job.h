/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of the comparison of a workspace with its seed:
 *
 *   changes.c          the walk through both
 *   changes_compare.c  one path: is it a change, and whose
 *   changes_diff.c     the text
 */
#ifndef PF_TREE_CHANGES_JOB_H
#define PF_TREE_CHANGES_JOB_H

#include <limits.h>

#include "tree/changes.h"
#include "tree/copy_job.h"
#include "tree/dirs.h"
#include "tree/walk.h"

struct pf_changes_job {
    const struct pf_changes_request *request;
    struct pinfold_changes *ret;
    int seed_fd;                               /* -1: there was no seed */
    struct pf_copy_options now_side, old_side; /* what is left out of each */
    int64_t old_limit, now_limit; /* changed at that time or later: since the seed was taken */
    struct pf_walk *walk;         /* of the workspace, or of what was changed in it */
    struct pf_dirs old;           /* the walk's directories in the seed, as far as it has them */
    char *buffer;                 /* PF_DATA_BUFFER bytes */
    /* The depth of a directory that may have got its name since the seed was taken: of what is
     * below it no change time says so. PF_CHANGES_NOT_MOVED: none. */
    unsigned now_moved, old_moved;
};

#define PF_CHANGES_NOT_MOVED UINT_MAX

/* A path on one side. */
struct pf_changes_side {
    bool exists;
    int dir_fd; /* that holds it; borrowed */
    struct stat st;
};

/* All of these return 0 or a negative code: no memory, cancellation. */

/* Both sides are files or links, or one of them is missing. parent_newer: the directory in the seed
 * that holds the path, or would, has changed since the seed was taken. */
int pf_changes_compare(struct pf_changes_job *job, const char *path, const char *name,
                       const struct pf_changes_side *old_side,
                       const struct pf_changes_side *new_side, bool parent_newer,
                       struct pinfold_error *err);

/* It cannot be told what has become of a path: an error, and one that a flush may write over. */
int pf_changes_unknown(struct pf_changes_job *job, const char *path, int sys_errno,
                       struct pinfold_error *err);

/* Whether a flush takes the path, of a file or link: by its patterns. */
bool pf_changes_chosen(const struct pf_changes_request *request, const char *path);

/* Whether the walk of the seed has a directory for entries of this depth. */
static inline bool pf_changes_old_here(const struct pf_changes_job *job, unsigned depth)
{
    return job->seed_fd >= 0 && job->old.count - 1 == depth;
}

#endif
