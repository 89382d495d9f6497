/* SPDX-License-Identifier: Apache-2.0 */
/* Moving the bytes of one open file into another, the cheapest way the file systems offer. */
#ifndef PF_TREE_DATA_H
#define PF_TREE_DATA_H

#include <stdbool.h>
#include <stdint.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>

#define PF_DATA_BUFFER ((size_t)256 * 1024)

/* Told after each chunk how many bytes it had. Returns 0, or what the copy is to return. */
typedef int (*pf_data_fn)(void *ctx, uint64_t bytes);

struct pf_data_copy {
    int src_fd, dst_fd;  /* borrowed; dst is empty, both stand at their start */
    char *buffer;        /* borrowed, PF_DATA_BUFFER bytes */
    pf_data_fn on_chunk; /* may be NULL */
    void *ctx;
    const char *failed; /* out: the step that failed, for messages */
};

/* Copy a regular file of which *st was taken before: by reflink, by copy_file_range(2) or through
 * the buffer; holes stay holes. ret_bytes receives the bytes copied: the file's size. Of a source
 * that changes meanwhile the copy is not whole: see pf_data_changed() afterwards. Returns 0,
 * -errno, or what on_chunk returned. */
int pf_data_copy(struct pf_data_copy *copy, const struct stat *st, uint64_t *ret_bytes);

/* Whether the file has changed between two fstat(2). The change time cannot be set back. */
bool pf_data_changed(const struct stat *before, const struct stat *after);

/* Compare two regular files; buffer and on_chunk as above. Of what is a hole in both nothing is
 * read, nor of a hole against data. Where the files stand afterwards is not said. A file that
 * changes meanwhile is not the same. Returns 1 (same), 0, -errno, or what on_chunk returned. */
int pf_data_same(int fd_a, int fd_b, char *buffer, pf_data_fn on_chunk, void *ctx);

/* write(2) all of it. Returns 0 or -errno. */
int pf_write_all(int fd, const void *data, size_t len);

/* read(2) until len bytes or the end. Returns how many, or -errno. */
ssize_t pf_read_all(int fd, void *data, size_t len);

#endif
