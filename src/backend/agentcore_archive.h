/* SPDX-License-Identifier: Apache-2.0 */
/* Inside backend/: trees as archives, and streams out of a session of any size. */
#ifndef PF_BACKEND_AGENTCORE_ARCHIVE_H
#define PF_BACKEND_AGENTCORE_ARCHIVE_H

#include <pinfold/temp_workspace.h>

#include "backend/agentcore.h"
#include "backend/remote_output.h"
#include "backend/remote_tree.h"

/* Unpack gzip's format, at most limit bytes of it, from one descriptor into another, empty one. */
int pf_ac_inflate(int from, int to, uint64_t limit, struct pinfold_cancel *cancel,
                  struct pinfold_error *err);

/* Run a script there and write what it prints, at most limit bytes, into fd, compressed on the way.
 * A script that fails fails as the system's words in its errors say. */
int pf_ac_fetch(struct pf_ac_box *box, const char *script, uint64_t limit, int fd,
                struct pinfold_cancel *cancel, struct pinfold_error *err);

/* ---- agentcore_tree.c ---- */

struct pf_remote pf_ac_remote(struct pf_ac_box *box);

/* Fails before create and after close. */
int pf_ac_need_session(const struct pf_ac_box *box, struct pinfold_error *err);

#endif
