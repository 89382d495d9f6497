/* SPDX-License-Identifier: Apache-2.0 */
/* How much space a tree takes. */
#ifndef PF_TREE_USAGE_H
#define PF_TREE_USAGE_H

#include <stdint.h>

#include <pinfold/error.h>

#define PF_USAGE_PER_ENTRY 4096 /* each entry counts as no less: names take space too */

/* Add up what lies beneath root_fd (borrowed): the blocks of each file, shared between its links.
 * Stops when there is more than enough, so that a tree which grows while it is looked at ends too.
 * What cannot be looked at does not count. Returns 0 or -PINFOLD_ENOMEM. */
int pf_tree_usage(int root_fd, uint64_t enough, uint64_t *ret_bytes, struct pinfold_error *err);

#endif
