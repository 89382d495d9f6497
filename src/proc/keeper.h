/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What this process has made outside of itself, and must not leave behind when it is killed: a
 * process beside it, the keeper, removes that then. It runs while there is anything to keep.
 */
#ifndef PF_PROC_KEEPER_H
#define PF_PROC_KEEPER_H

#include <stddef.h>

#define PF_KEEPER_NAME "pinfold-keeper" /* what its program is called with, and shows */
#define PF_KEEPER_PROGRAM "pinfold-init"

/* What is kept; the first byte of an entry in the list that the program finds as its input: kind,
 * path, NUL. */
enum pf_kept_kind {
    PF_KEPT_GROUP = 'g',     /* a control group, which is empty once all is over */
    PF_KEPT_WORKSPACE = 'w', /* a temporary workspace, which has a lock */
};

/* One thing. In the struct of who makes it, which must stay where it is meanwhile. */
struct pf_kept {
    const char *path;
    size_t size; /* of path, with its NUL */
    char kind;
    unsigned process; /* whose it is */
    struct pf_kept *before, *next;
};

/* From now on path, absolute and borrowed, is removed when this process ends in whatever way before
 * it has said otherwise, or executes another program. To be called before path is made. Best
 * effort: where no keeper can be had the next run sweeps. A fork of this process has nothing to
 * keep. */
void pf_keeper_add(struct pf_kept *kept, enum pf_kept_kind kind, const char *path);

/* It is gone, or shall stay. The last one waits until the keeper has ended. What was not added, or
 * is another process's, is fine. */
void pf_keeper_drop(struct pf_kept *kept);

/* This process is about to end: nobody waits for the keeper any more but the next one, if there is
 * one after all. Who adopts orphans reaps it. */
void pf_keeper_let_go(void);

#endif
