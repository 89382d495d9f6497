/* SPDX-License-Identifier: Apache-2.0 */
/* Files of a size that no one could read, and how much of them was read. */
#ifndef TESTS_TREE_SPARSE_H
#define TESTS_TREE_SPARSE_H

#include "tmp.h"

enum { LITTLE = 8 * 1024 * 1024 }; /* more than what surrounds the test reads, for /proc say */

/* Bytes that this process has ever read. */
static inline uint64_t bytes_read(void)
{
    FILE *file = fopen("/proc/self/io", "re");
    unsigned long long bytes = 0;
    int found = file ? fscanf(file, "rchar: %llu", &bytes) : 0;

    if (file)
        (void)fclose(file);
    assert_int_equal(found, 1);
    return bytes;
}

/* As large as the file system takes, 15 TiB at most; data at the start, before a hole in the
 * middle, and at the end. Returns its size. */
static inline off_t put_huge(int dir_fd, const char *name, const char *end)
{
    off_t size = (off_t)15 << 40;
    int fd = openat(dir_fd, name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

    assert_true(fd >= 0);
    while (ftruncate(fd, size) < 0) {
        assert_int_equal(errno, EFBIG);
        size /= 2;
        assert_true(size > (off_t)1 << 30);
    }
    assert_int_equal(pwrite(fd, "start", 5, 0), 5);
    assert_int_equal(pwrite(fd, "middle", 6, size / 2), 6);
    assert_int_equal(pwrite(fd, end, strlen(end), size - (off_t)strlen(end)), strlen(end));
    close(fd);
    return size;
}

#endif
