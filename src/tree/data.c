/* SPDX-License-Identifier: Apache-2.0 */
#include "tree/data.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* After which progress is told and cancellation seen. */
#define KERNEL_CHUNK ((size_t)4 * 1024 * 1024)

int pf_write_all(int fd, const void *data, size_t len)
{
    const char *at = data;
    ssize_t n;

    while (len > 0) {
        n = write(fd, at, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : -EIO;
        at += n;
        len -= (size_t)n;
    }
    return 0;
}

ssize_t pf_read_all(int fd, void *data, size_t len)
{
    size_t done = 0;
    ssize_t n;

    while (done < len) {
        n = read(fd, (char *)data + done, len - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        if (n == 0)
            break;
        done += (size_t)n;
    }
    return (ssize_t)done;
}

bool pf_data_changed(const struct stat *before, const struct stat *after)
{
    return before->st_size != after->st_size || before->st_mtim.tv_sec != after->st_mtim.tv_sec ||
           before->st_mtim.tv_nsec != after->st_mtim.tv_nsec ||
           before->st_ctim.tv_sec != after->st_ctim.tv_sec ||
           before->st_ctim.tv_nsec != after->st_ctim.tv_nsec;
}

static int fail(struct pf_data_copy *copy, const char *step, int result)
{
    copy->failed = step;
    return result;
}

static int told(struct pf_data_copy *copy, size_t bytes)
{
    return copy->on_chunk ? copy->on_chunk(copy->ctx, bytes) : 0;
}

/* Copy the bytes from one offset on, to an end or the end of the file, through the buffer. Both
 * files stand at the offset. */
static int copy_by_buffer(struct pf_data_copy *copy, uint64_t left)
{
    ssize_t n;
    int r;

    while (left > 0) {
        size_t want = left < PF_DATA_BUFFER ? (size_t)left : PF_DATA_BUFFER;

        n = pf_read_all(copy->src_fd, copy->buffer, want);
        if (n < 0)
            return fail(copy, "read", (int)n);
        if (n == 0)
            return 0; /* shorter than it was: the caller compares fstat(2) */
        r = pf_write_all(copy->dst_fd, copy->buffer, (size_t)n);
        if (r < 0)
            return fail(copy, "write", r);
        r = told(copy, (size_t)n);
        if (r < 0)
            return r;
        left -= (uint64_t)n;
    }
    return 0;
}

/* As copy_by_buffer(), within the kernel: that touches each byte once. Where it cannot, or says
 * that there is nothing (which it also says of some files that are not empty), the buffer takes
 * over from wherever both files stand, and meets a real error again. */
static int copy_in_kernel(struct pf_data_copy *copy, uint64_t left)
{
    ssize_t n;
    int r;

    while (left > 0) {
        size_t want = left < KERNEL_CHUNK ? (size_t)left : KERNEL_CHUNK;

        n = copy_file_range(copy->src_fd, NULL, copy->dst_fd, NULL, want, 0);
        if (n <= 0)
            break;
        r = told(copy, (size_t)n);
        if (r < 0)
            return r;
        left -= (uint64_t)n;
    }
    return copy_by_buffer(copy, left);
}

/* Whether the source is still as it was. Returns 1, 0 or -errno. */
static int is_unchanged(const struct pf_data_copy *copy, const struct stat *st)
{
    struct stat now;

    if (fstat(copy->src_fd, &now) < 0)
        return -errno;
    return !pf_data_changed(st, &now);
}

/* The data between holes only. What is skipped at the end is made by the size. A source that
 * changes is left at once, for the caller to see: somebody who writes ahead of the copy and makes
 * holes behind it would never let it end. */
static int copy_sparse(struct pf_data_copy *copy, const struct stat *st)
{
    off_t size = st->st_size, data = 0, hole = 0;
    int r;

    if (ftruncate(copy->dst_fd, size) < 0)
        return fail(copy, "set the size", -errno);
    while (hole < size) {
        data = lseek(copy->src_fd, hole, SEEK_DATA);
        if (data < 0 && errno == ENXIO)
            break;
        if (data < 0 || (hole = lseek(copy->src_fd, data, SEEK_HOLE)) < 0 ||
            lseek(copy->src_fd, data, SEEK_SET) < 0)
            return fail(copy, "look for holes", -errno);
        r = is_unchanged(copy, st);
        if (r <= 0)
            return r < 0 ? fail(copy, "look at", r) : 0;
        if (lseek(copy->dst_fd, data, SEEK_SET) < 0)
            return fail(copy, "seek", -errno);
        r = copy_in_kernel(copy, (uint64_t)(hole - data));
        if (r < 0)
            return r;
    }
    return 0;
}

int pf_data_copy(struct pf_data_copy *copy, const struct stat *st, uint64_t *ret_bytes)
{
    uint64_t size = (uint64_t)st->st_size;
    bool sparse = (uint64_t)st->st_blocks * 512 < size;

    *ret_bytes = size;
    if (size == 0)
        return 0;
    if (size > PF_DATA_BUFFER && ioctl(copy->dst_fd, FICLONE, copy->src_fd) == 0)
        return told(copy, size);
    if (size <= PF_DATA_BUFFER)
        return copy_by_buffer(copy, size); /* one read, one write */
    return sparse ? copy_sparse(copy, st) : copy_in_kernel(copy, size);
}
