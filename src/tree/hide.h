/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Seeding without copying: a layer of an overlay that lies on the seed and hides of it what a copy
 * would leave out. It holds a whiteout for each such entry, the directories that lead there, and
 * those whose mode a copy would change: set-id bits go, and the owner has all rights.
 */
#ifndef PF_TREE_HIDE_H
#define PF_TREE_HIDE_H

#include "tree/copy.h"

/*
 * Fill dst_fd, which is empty, with what hides of src_fd whatever a copy with the same options
 * leaves out. ret is what that copy would give: files and bytes are those that are to be seen.
 *
 * Returns 0, 1 when the seed cannot be shown as it is (why receives the reason, of at most size
 * bytes), or what pf_copy_tree() returns.
 */
int pf_hide_tree(const struct pf_copy_options *options, struct pf_copy_result *ret, char *why,
                 size_t size, struct pinfold_error *err);

#endif
