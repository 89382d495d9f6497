/* SPDX-License-Identifier: Apache-2.0 */
/* Inside backend/: trees as archives, and streams out of a session of any size. */
#ifndef PF_BACKEND_AGENTCORE_ARCHIVE_H
#define PF_BACKEND_AGENTCORE_ARCHIVE_H

#include "backend/agentcore.h"
#include "backend/remote_tree.h"

/* The errno behind a message of a command, which ends in the system's words; EIO when it does
 * not. */
int pf_ac_errno_of(const char *text);

/* Append len bytes at a file's offset; nothing but zeros becomes a hole, which the caller ends with
 * ftruncate(): what costs nothing there must cost nothing here. Returns 0 or -errno. */
int pf_ac_keep(int fd, const void *data, size_t len);

/* Unpack gzip's format, at most limit bytes of it, from one descriptor into another, empty one. */
int pf_ac_inflate(int from, int to, uint64_t limit, struct pinfold_cancel *cancel,
                  struct pinfold_error *err);

/* Run a script there and write what it prints, at most limit bytes, into fd, compressed on the way.
 * A script that fails fails as the system's words in its errors say. */
int pf_ac_fetch(struct pf_ac_box *box, const char *script, uint64_t limit, int fd,
                struct pinfold_cancel *cancel, struct pinfold_error *err);

/* Write everything below a directory into fd as a tar archive of files, directories and links. */
int pf_ac_pack(int root_fd, int fd, uint64_t *ret_size, struct pinfold_cancel *cancel,
               struct pinfold_error *err);

/* Unpack such an archive, which somebody hostile may have made, below an empty directory. */
int pf_ac_unpack(int fd, int root_fd, struct pinfold_cancel *cancel, struct pinfold_error *err);

/* ---- agentcore_tree.c ---- */

/* Fails before create and after close. */
int pf_ac_need_session(const struct pf_ac_box *box, struct pinfold_error *err);

/* Fetch what is wanted into a stage; what is not there, or cannot be read, does not come. follow:
 * give what links inside the root lead to in their place; names may be there twice. */
int pf_ac_fetch_stage(struct pf_ac_box *box, const struct pf_remote_wanted *wanted, bool follow,
                      int stage_fd, struct pinfold_cancel *cancel, struct pinfold_error *err);

#endif
