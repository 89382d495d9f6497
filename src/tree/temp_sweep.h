/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Deleting temporary workspaces, and what killed owners have left of them. Reading a directory like
 * /tmp takes longer than most of what a short run does, and nobody has to wait for it.
 *
 * Async-signal-safe, and allocates nothing: for processes whose owner has ended.
 */
#ifndef PF_TREE_TEMP_SWEEP_H
#define PF_TREE_TEMP_SWEEP_H

#include <stdbool.h>

#include <pinfold/error.h>

/* The name of one that lives, with so many hexadecimal digits after it. */
#define PF_TEMP_NAME "pinfold-run-"
enum { PF_TEMP_DIGITS = 16 };

/* Delete the workspace at path whose directory, with its lock, is fd. Returns 0 or -PINFOLD_EOS. */
int pf_temp_delete_locked(int fd, const char *path, struct pinfold_error *err);

/* Delete the workspace at path if it is one, this user's, and nobody has its lock. Returns whether
 * it is still there, and it may be worth while to come back: it has an owner, or something is being
 * written into it. */
bool pf_temp_delete_left(const char *path);

/* Delete those without an owner, once, in the directory that a workspace is in, or was. */
void pf_temp_sweep_beside(const char *workspace);

/* Somebody does it when this process ends: as if it had just been done. */
void pf_temp_sweep_follows(void);

#endif
