/* SPDX-License-Identifier: Apache-2.0 */
/* The temporary workspace of a run. */
#ifndef PF_CLI_WORKSPACE_H
#define PF_CLI_WORKSPACE_H

/* Make a directory with mode 0700 under $TMPDIR, or /tmp. Returns its path, to free(), or NULL
 * after having said why. */
char *pf_workspace_make(void);

/* Remove it with everything below, however deep, whatever its names and modes; links are not
 * followed. Says so when something stays. */
void pf_workspace_remove(const char *path);

#endif
