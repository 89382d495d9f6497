/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening paths beneath a directory that somebody hostile may write to. Every path of an agent
 * goes through here. openat2(RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS) where the kernel has it,
 * else a component-wise walk that expands links itself and never leaves the root.
 *
 * Paths are normalised by pinfold_path_normalize(): relative, no "..", "." for the root.
 */
#ifndef PF_TREE_BENEATH_H
#define PF_TREE_BENEATH_H

#include <sys/types.h>

#include <pinfold/error.h>

/* openat(2) beneath root_fd; O_CLOEXEC is added. Returns a descriptor or -errno: -EXDEV when the
 * path leaves the root, -ELOOP for a loop of links or a final link under O_NOFOLLOW. */
int pf_beneath_open(int root_fd, const char *path, int flags, mode_t mode);

/* Open a file for reading, if that waits for nobody: the names that lead to it are in the kernel's
 * cache, on the root's own file system, and nobody has a lease on it. Returns a descriptor or
 * -errno: for whatever reason, pf_beneath_open() is to be asked then. */
int pf_beneath_open_cached(int root_fd, const char *path);

/* Open the parent directory of path; *ret_name points into path at its last component. With
 * make missing directories are created with 0777 & ~umask. Returns a descriptor or
 * -errno; -EISDIR for the root itself, which has no parent. */
int pf_beneath_open_parent(int root_fd, const char *path, bool make, const char **ret_name);

/* Use the component-wise walk even where openat2 works. For tests. */
void pf_beneath_force_fallback(bool on);

#endif
