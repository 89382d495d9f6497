/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files that are written before they have their name: without any where the file system can do
 * that, so that nothing is left of one when we are killed, else under a temporary name in the
 * directory they will live in. What replaces another file has a temporary name between two system
 * calls, and so does a link.
 */
#ifndef PF_TREE_TEMP_H
#define PF_TREE_TEMP_H

#include <stdbool.h>
#include <sys/types.h>

#define PF_TEMP_PREFIX ".pinfold-"
#define PF_TEMP_MAX 32

/* A temporary file that is removed again unless it was placed. */
struct pf_temp {
    int dir_fd;             /* borrowed */
    int fd;                 /* owned; -1 for a link */
    char name[PF_TEMP_MAX]; /* "" when there is nothing to remove: placed, or without a name */
};

#define PF_TEMP_INIT           \
    {                          \
        .dir_fd = -1, .fd = -1 \
    }

/* Create a file in dir_fd, open for writing. Returns 0 or -errno. */
int pf_temp_open(struct pf_temp *temp, int dir_fd, mode_t mode);

/* Create a symbolic link. Returns 0 or -errno. */
int pf_temp_link(struct pf_temp *temp, int dir_fd, const char *target);

/* Close, and give it its name: what is there is replaced, or with exclusive -EEXIST, decided by
 * the kernel. Returns 0 or -errno. */
int pf_temp_place(struct pf_temp *temp, const char *name, bool exclusive);

/* Close and remove what was not placed. Keeps errno. */
void pf_temp_done(struct pf_temp *temp);

#define _cleanup_temp_ __attribute__((cleanup(pf_temp_done)))

#endif
