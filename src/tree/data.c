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

/* The data between holes only. What is skipped at the end is made by the size. */
static int copy_sparse(struct pf_data_copy *copy, uint64_t size)
{
    off_t data = 0, hole = 0;
    int r;

    if (ftruncate(copy->dst_fd, (off_t)size) < 0)
        return fail(copy, "set the size", -errno);
    while ((uint64_t)hole < size) {
        data = lseek(copy->src_fd, hole, SEEK_DATA);
        if (data < 0 && errno == ENXIO)
            break;
        if (data < 0 || (hole = lseek(copy->src_fd, data, SEEK_HOLE)) < 0 ||
            lseek(copy->src_fd, data, SEEK_SET) < 0)
            return fail(copy, "look for holes", -errno);
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
    return sparse ? copy_sparse(copy, size) : copy_in_kernel(copy, size);
}

int pf_data_same(int fd_a, int fd_b, char *buffer, pf_data_fn on_chunk, void *ctx)
{
    enum { HALF = PF_DATA_BUFFER / 2 };
    ssize_t a, b;
    int r;

    do {
        a = pf_read_all(fd_a, buffer, HALF);
        if (a < 0)
            return (int)a;
        b = pf_read_all(fd_b, buffer + HALF, HALF);
        if (b < 0)
            return (int)b;
        if (a != b || memcmp(buffer, buffer + HALF, (size_t)a) != 0)
            return 0;
        r = on_chunk ? on_chunk(ctx, (uint64_t)a) : 0;
        if (r < 0)
            return r;
    } while (a == HALF);
    return 1;
}
