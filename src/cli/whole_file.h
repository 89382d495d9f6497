/* SPDX-License-Identifier: Apache-2.0 */
/* Files that are read whole, whatever is there by their name. */
#ifndef PF_CLI_WHOLE_FILE_H
#define PF_CLI_WHOLE_FILE_H

#include <stddef.h>
#include <sys/stat.h>

struct pf_whole_file {
    char *text; /* to free(); a NUL stands behind it */
    size_t len; /* without that NUL; the file may hold others */
    struct stat st;
};

/* Read a regular file of at most max bytes; a FIFO is not waited for. Returns 0, or an errno and no
 * text: EISDIR for a directory, EINVAL for what is no regular file, EFBIG for what is too large. */
int pf_whole_file(const char *path, size_t max, struct pf_whole_file *ret);

#endif
