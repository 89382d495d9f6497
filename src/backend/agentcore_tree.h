/* SPDX-License-Identifier: Apache-2.0 */
/* Inside backend/: streams out of a session, of any size, and files through a stage. */
#ifndef PF_BACKEND_AGENTCORE_TREE_H
#define PF_BACKEND_AGENTCORE_TREE_H

#include "backend/agentcore.h"
#include "backend/remote_tree.h"

/* Run a script there and write what it prints, at most limit bytes, into fd, compressed on the way.
 * A script that fails fails as the system's words in its errors say. */
int pf_ac_fetch(struct pf_ac_box *box, const char *script, uint64_t limit, int fd,
                struct pinfold_cancel *cancel, struct pinfold_error *err);

/* Fails before create and after close. */
int pf_ac_need_session(const struct pf_ac_box *box, struct pinfold_error *err);

/* The box for what remote backends share. */
struct pf_remote pf_ac_remote(struct pf_ac_box *box);

#endif
