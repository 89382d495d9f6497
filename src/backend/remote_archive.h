/* SPDX-License-Identifier: Apache-2.0 */
/* Inside backend/: trees as archives on their way to another machine and back, and what comes from
 * there in gzip's format. Whatever comes may have been made by somebody hostile. */
#ifndef PF_BACKEND_REMOTE_ARCHIVE_H
#define PF_BACKEND_REMOTE_ARCHIVE_H

#include <stdint.h>

#include <pinfold/cancel.h>
#include <pinfold/error.h>

/* Write everything below a directory into fd as a tar archive of files, directories and links,
 * compressed. */
int pf_remote_pack(int root_fd, int fd, uint64_t *ret_size, struct pinfold_cancel *cancel,
                   struct pinfold_error *err);

/* Unpack such an archive, not compressed, below an empty directory. */
int pf_remote_unpack(int fd, int root_fd, struct pinfold_cancel *cancel, struct pinfold_error *err);

/* Append len bytes at a file's offset; nothing but zeros becomes a hole, which the caller ends with
 * ftruncate(): what costs nothing there must cost nothing here. Returns 0 or -errno. */
int pf_remote_keep(int fd, const void *data, size_t len);

/* Unpacks gzip's format into an empty file as it comes, at most limit bytes of it. */
struct pf_inflater;
int pf_inflater_new(int fd, uint64_t limit, struct pf_inflater **ret, struct pinfold_error *err);
/* The next bytes; what comes after the end does not count. ctx is the inflater. */
int pf_inflater_take(void *ctx, const void *data, size_t len, struct pinfold_error *err);
/* All have come: fails when that was not the end. */
int pf_inflater_end(const struct pf_inflater *inflater, struct pinfold_error *err);
void pf_inflater_freep(struct pf_inflater **inflater);

/* The same from one descriptor into another. */
int pf_remote_inflate(int from, int to, uint64_t limit, struct pinfold_cancel *cancel,
                      struct pinfold_error *err);

#endif
