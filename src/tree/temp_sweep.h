/* SPDX-License-Identifier: Apache-2.0 */
/* Deleting what killed owners have left of their temporary workspaces. Reading a directory like
 * /tmp takes longer than most of what a short run does, and nobody has to wait for it. */
#ifndef PF_TREE_TEMP_SWEEP_H
#define PF_TREE_TEMP_SWEEP_H

/* Do it, once, in the directory that a workspace is in, or was. Async-signal-safe, and allocates
 * nothing: for a supervisor whose owner has ended. */
void pf_temp_sweep_beside(const char *workspace);

/* Somebody does it when this process ends: as if it had just been done. */
void pf_temp_sweep_follows(void);

#endif
