/* SPDX-License-Identifier: Apache-2.0 */
/* Relative paths, and what lies below what: questions of walkers that look at a part of a tree. */
#ifndef PF_TREE_BELOW_H
#define PF_TREE_BELOW_H

#include <string.h>

#include "tree/glob.h"

/* Whether path is the other, or lies below it. "." is above everything. */
static inline bool pf_is_at_or_below(const char *path, const char *other)
{
    size_t len = strlen(other);

    return strcmp(other, ".") == 0 ||
           (strncmp(path, other, len) == 0 && (path[len] == '/' || path[len] == '\0'));
}

/* Whether the patterns match the path or a directory on the way to it. */
static inline bool pf_globs_match_whole(const struct pf_globs *globs, const char *path, size_t len,
                                        bool is_dir)
{
    for (size_t i = 1; i < len; i++)
        if (path[i] == '/' && pf_globs_match(globs, path, i, true))
            return true;
    return pf_globs_match(globs, path, len, is_dir);
}

#endif
