/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/whole_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

enum { LEAST = 4096 };

static int look(int fd, size_t max, struct stat *ret)
{
    if (fstat(fd, ret) < 0)
        return errno;
    if (!S_ISREG(ret->st_mode))
        return S_ISDIR(ret->st_mode) ? EISDIR : EINVAL;
    return ret->st_size > (off_t)max ? EFBIG : 0;
}

/* To the end: the size may be 0 for files that the kernel makes up, and the file may grow. */
static int read_all(int fd, size_t max, struct pf_whole_file *file)
{
    size_t capacity = (size_t)file->st.st_size + 1;
    ssize_t n;

    if (capacity < LEAST)
        capacity = LEAST;
    for (;;) {
        char *more = realloc(file->text, capacity + 1);
        if (!more)
            return ENOMEM;
        file->text = more;
        while ((n = read(fd, more + file->len, capacity - file->len)) > 0)
            file->len += (size_t)n;
        if (n < 0)
            return errno;
        if (file->len > max)
            return EFBIG;
        more[file->len] = '\0';
        if (file->len < capacity)
            return 0;
        capacity *= 2;
    }
}

int pf_whole_file(const char *path, size_t max, struct pf_whole_file *ret)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), error;

    *ret = (struct pf_whole_file){ .text = NULL };
    if (fd < 0)
        return errno;
    error = look(fd, max, &ret->st);
    if (!error)
        error = read_all(fd, max, ret);
    close(fd);
    if (error) {
        free(ret->text);
        ret->text = NULL;
        ret->len = 0;
    }
    return error;
}
