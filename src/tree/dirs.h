/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stack of directories, each inside the one before: any depth, any length of path, and few
 * descriptors. Only the root and the innermost levels stay open; one that was closed is opened
 * again through ".." of its child, or by its names from the root, and must have the same device
 * and inode. No link is ever followed.
 */
#ifndef PF_TREE_DIRS_H
#define PF_TREE_DIRS_H

#include <sys/types.h>

#include "base/buf.h"

struct pf_dirs_level {
    int fd;          /* -1: closed */
    size_t path_len; /* of the path that leads here */
    dev_t dev;
    ino_t ino;
    mode_t mode;
};

struct pf_dirs {
    int open_flags; /* O_PATH or O_RDONLY */
    struct pf_dirs_level *levels;
    size_t count, capacity; /* levels[0] is the root */
    struct pf_buf path;     /* of the innermost level, relative to the root; "" for the root */
};

/* Start with root_fd, which is opened anew. Returns 0, -ENOMEM or what open(2) says. */
int pf_dirs_init(struct pf_dirs *dirs, int root_fd, int open_flags);
void pf_dirs_done(struct pf_dirs *dirs);

/* Enter the subdirectory name of the innermost level. Returns 0 or -errno, and then nothing has
 * changed. */
int pf_dirs_push(struct pf_dirs *dirs, const char *name);

enum { PF_DIRS_REOPENED = 1 };

/* Leave the innermost level, not the root. Returns 0, PF_DIRS_REOPENED when the level above had
 * been closed (its read position is the start), or -errno when it could not be opened again: it is
 * innermost now, with fd -1. */
int pf_dirs_pop(struct pf_dirs *dirs);

static inline struct pf_dirs_level *pf_dirs_top(const struct pf_dirs *dirs)
{
    return &dirs->levels[dirs->count - 1];
}

#endif
