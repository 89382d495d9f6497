/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A walker for trees of any depth and size: no recursion on the C stack, no path length limit, a
 * bounded number of descriptors (ancestors that were closed are reopened through ".." and must
 * have the same device and inode), directories read in batches of 256 KiB.
 */
#ifndef PF_TREE_WALK_H
#define PF_TREE_WALK_H

#include <sys/stat.h>

#include "base/cancel.h"

#include <pinfold/result.h>

struct pf_walk;

enum pf_walk_type {
    PF_WALK_FILE, /* regular */
    PF_WALK_LINK,
    PF_WALK_DIR,      /* before its contents; pf_walk_skip() leaves them out */
    PF_WALK_DIR_DONE, /* after its contents, or after they were skipped */
    PF_WALK_SPECIAL,  /* FIFO, socket, device */
    PF_WALK_ERROR,    /* a directory could not be read, vanished or changed place: see error */
};

struct pf_walk_entry {
    enum pf_walk_type type;
    const char *path; /* relative to the root, any length; valid until the next step */
    size_t path_len;
    const char *name; /* last component, points into path */
    int dir_fd;       /* the directory that holds name; borrowed, valid until the next step */
    unsigned depth;   /* 0 for entries of the root */
    struct pinfold_error error;
};

/* Start at root_fd (borrowed; its offset is not used: the walker opens "." anew). */
int pf_walk_new(int root_fd, struct pf_walk **ret, struct pinfold_error *err);

/* The next entry. Returns 1, 0 at the end, or -PINFOLD_ENOMEM. Errors of single directories are
 * entries, and the walk goes on. */
int pf_walk_next(struct pf_walk *walk, struct pf_walk_entry *ret);

/* Do not descend into the PF_WALK_DIR that was just returned. */
void pf_walk_skip(struct pf_walk *walk);
void pf_walk_free(struct pf_walk *walk);
void pf_walk_freep(struct pf_walk **walk);

#endif
