/* SPDX-License-Identifier: Apache-2.0 */
/* Where a file beneath a root really lives: the directory that holds it and its name there, after
 * the links that lead to it. What is replaced by a rename must be known that way. */
#ifndef PF_TREE_PLACE_H
#define PF_TREE_PLACE_H

#include <limits.h>
#include <sys/stat.h>

#include <pinfold/error.h>

struct pf_place {
    int dir_fd; /* owned, O_PATH; -1 when not found */
    char name[NAME_MAX + 1];
    bool exists;
    struct stat st; /* when it exists */
};

enum pf_place_flags {
    PF_PLACE_MAKE_PARENTS = 1,
    PF_PLACE_FOLLOW = 2, /* a final link leads on, as long as it stays beneath the root */
};

/* Returns 0 or -errno: -EXDEV when a link leaves the root. */
int pf_place_find(struct pf_place *place, int root_fd, const char *path, int flags);
void pf_place_done(struct pf_place *place);

#define _cleanup_place_ __attribute__((cleanup(pf_place_done)))

/* Fail for a path beneath a root: -EXDEV becomes PINFOLD_EPATH and words. */
int pf_fail_at(struct pinfold_error *err, int sys_errno, const char *operation, const char *path);

/* -EISDIR for a directory, -ENODEV for what else is no regular file, 0. */
int pf_check_regular(mode_t mode);

#endif
