/* SPDX-License-Identifier: Apache-2.0 */
#include "tree/usage.h"

#include <fcntl.h>

#include "base/error.h"
#include "tree/walk.h"

static uint64_t size_of(const struct pf_walk_entry *entry)
{
    struct stat st;
    uint64_t bytes;

    if (fstatat(entry->dir_fd, entry->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return PF_USAGE_PER_ENTRY;
    bytes = (uint64_t)st.st_blocks * 512;
    if (st.st_nlink > 1 && !S_ISDIR(st.st_mode))
        bytes /= st.st_nlink;
    return bytes > PF_USAGE_PER_ENTRY ? bytes : PF_USAGE_PER_ENTRY;
}

int pf_tree_usage(int root_fd, uint64_t enough, uint64_t *ret_bytes, struct pinfold_error *err)
{
    __attribute__((cleanup(pf_walk_freep))) struct pf_walk *walk = NULL;
    struct pf_walk_entry entry;
    uint64_t bytes = 0;
    int r = pf_walk_new(root_fd, &walk, err);

    if (r < 0)
        return r;
    while (bytes <= enough && (r = pf_walk_next(walk, &entry)) > 0)
        if (entry.type != PF_WALK_DIR_DONE && entry.type != PF_WALK_ERROR)
            bytes += size_of(&entry);
    if (r < 0)
        return pf_fail_nomem(err);
    *ret_bytes = bytes;
    return 0;
}
