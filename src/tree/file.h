/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whole-file operations on normalised paths beneath a root directory. Nothing here follows a link
 * out of the root, hangs on a FIFO, or leaves half a file: writes go to a temporary name in the
 * same directory and are renamed. Messages name the operation and the path.
 */
#ifndef PF_TREE_FILE_H
#define PF_TREE_FILE_H

#include "base/cancel.h"
#include "base/buf.h"

#include <pinfold/result.h>

/* Open a host directory that the application named: absolute or relative to the current
 * directory, links are followed. create: make it and its parents. ret_real, may be NULL, receives
 * the resolved absolute path, free(). Returns a descriptor or a negative code. */
int pf_root_open(const char *path, bool create, char **ret_real, struct pinfold_error *err);

/* "~/x" and "~" become paths under $HOME; other paths are made absolute. free() the result. */
int pf_path_expand(const char *path, char **ret_path, struct pinfold_error *err);

enum pf_root_relation {
    PF_ROOTS_APART,
    PF_ROOTS_SAME,
    PF_ROOTS_NESTED, /* one lies inside the other */
};

/* How two open directories lie to each other, by walking up from each with device and inode. */
int pf_roots_relation(int fd_a, int fd_b, enum pf_root_relation *ret, struct pinfold_error *err);

/* Read a regular file whole, up to limit bytes (PF_BUF_UNLIMITED). Size is checked before reading;
 * one that grows past the limit while it is read is an error. */
int pf_file_read(int root_fd, const char *path, size_t limit, struct pinfold_bytes *ret,
                 struct pinfold_cancel *cancel, struct pinfold_error *err);

/* Whether pf_file_read_cached() can be asked here. May itself wait for a server: asked once. */
bool pf_file_system_is_prompt(int root_fd);

/* The same without waiting, not even for a disk: only what the kernel has in memory, on a file
 * system that is prompt, and up to limit bytes. Returns whether that was possible; if not, for
 * whatever reason, pf_file_read() is to be asked. */
bool pf_file_read_cached(int root_fd, const char *path, size_t limit, struct pinfold_bytes *ret);

/* How that fails: with EFBIG, and what to do instead. */
int pf_file_too_large(const char *path, size_t limit, struct pinfold_error *err);

/* Write: parents created, replaced atomically, an existing file's mode kept, a new one 0644 &
 * ~umask. exclusive: EEXIST when it is there, decided by the kernel. */
int pf_file_write(int root_fd, const char *path, const void *data, size_t len, bool exclusive,
                  struct pinfold_cancel *cancel, struct pinfold_error *err);

/* Copy one regular file between two roots with the same guarantees; mode bits travel (0777).
 * Data goes by reflink or through a buffer; holes stay holes. */
int pf_file_copy(int src_root_fd, const char *src, int dst_root_fd, const char *dst, bool exclusive,
                 uint64_t *ret_bytes, struct pinfold_cancel *cancel, struct pinfold_error *err);

/* Unlink a file or a link itself. A directory is EISDIR. */
int pf_file_remove(int root_fd, const char *path, struct pinfold_error *err);

/* The same for a file that is there, while it has the bytes expected; else EAGAIN. Nobody can
 * change it in place between the last look and the rename without a race that both can lose. */
int pf_file_replace(int root_fd, const char *path, const struct pinfold_bytes *expected,
                    const void *data, size_t len, struct pinfold_cancel *cancel,
                    struct pinfold_error *err);

/* How that fails. */
int pf_file_changed(const char *path, struct pinfold_error *err);

/* Delete a directory, not the root, empty or with recursive whatever is in it. A link is ENOTDIR.
 */
int pf_dir_remove(int root_fd, const char *path, bool recursive, struct pinfold_error *err);

enum pf_move_flags {
    PF_MOVE_DIRS = 1,       /* directories too; else they are EISDIR */
    PF_MOVE_NO_REPLACE = 2, /* EEXIST, decided by the kernel */
};

/* rename(2) with the rules of move_file: same inode is a no-op, a directory at dst is EISDIR,
 * parents of dst are created. */
int pf_file_move(int root_fd, const char *src, const char *dst, int flags,
                 struct pinfold_error *err);

/* One level, sorted bytewise, paths relative to the root. */
int pf_dir_list(int root_fd, const char *path, struct pinfold_file_infos *ret,
                struct pinfold_cancel *cancel, struct pinfold_error *err);

/* By path, bytewise. One pass where they are sorted already. */
void pf_infos_sort(struct pinfold_file_infos *infos);

/* In infos that are sorted; NULL: it is not among them. */
const struct pinfold_file_info *pf_infos_find(const struct pinfold_file_infos *infos,
                                              const char *path);

#endif
