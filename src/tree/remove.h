/* SPDX-License-Identifier: Apache-2.0 */
/* Deleting trees that an agent made. Links are not followed, and modes do not matter. Allocates
 * nothing and takes no lock: a supervisor may do it. */
#ifndef PF_TREE_REMOVE_H
#define PF_TREE_REMOVE_H

#include <pinfold/error.h>

/* Delete a directory and everything below it. */
int pf_tree_remove(int parent_fd, const char *name, struct pinfold_error *err);

/* Delete everything below a directory that is open for reading. */
int pf_tree_empty(int root_fd, struct pinfold_error *err);

/* Open a directory of this user's for emptying it, and take back the rights to it that its maker
 * may have taken away. Returns a descriptor, or -1 with errno. */
int pf_tree_open_owned(int parent_fd, const char *name);

#endif
