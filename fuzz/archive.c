/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What comes back from another machine: archives of tar, unpacked below a directory, which nothing
 * may leave; and gzip's format, whole and in pieces. The first byte chooses. The sums of tar's
 * headers are put right first: no mutation would get past them by chance.
 */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/remote_archive.h"
#include "base/cleanup.h"
#include "tree/remove.h"
#include "fuzz.h"
#include "../tests/tempdir.h"

enum { RECORD = 512, SUM_AT = 148, SUM_LEN = 8, SIZE_AT = 124, SIZE_LEN = 12 };

static int memory_file(const uint8_t *data, size_t size)
{
    int fd = memfd_create("fuzz", MFD_CLOEXEC);

    demand(fd >= 0 && write(fd, data, size) == (ssize_t)size && lseek(fd, 0, SEEK_SET) == 0);
    return fd;
}

/* ---- a place to unpack in ---- */

static char place[PATH_MAX]; /* holds the root, and nothing else */

static void leave_place(void)
{
    rmdir(place);
}

static int open_place(void)
{
    if (!place[0]) {
        demand(test_tempdir("pf-fuzz", place, sizeof(place)) != NULL);
        atexit(leave_place);
    }
    return open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static int make_root(int place_fd)
{
    demand(mkdirat(place_fd, "root", 0700) == 0);
    return openat(place_fd, "root", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static int is_entry(const struct dirent *entry)
{
    return strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
}

static void empty_place(int place_fd)
{
    struct dirent **entries = NULL;
    int count = scandir(place, &entries, is_entry, alphasort);

    demand(count == 1 && strcmp(entries[0]->d_name, "root") == 0);
    free(entries[0]);
    free(entries);
    demand(pf_tree_remove(place_fd, "root", NULL) == 0);
}

/* ---- tar ---- */

static uint64_t size_of(const uint8_t *header)
{
    char digits[SIZE_LEN + 1] = "";

    memcpy(digits, header + SIZE_AT, SIZE_LEN);
    return strtoull(digits, NULL, 8);
}

/* As far as the sizes can be sizes. */
static void mend_sums(uint8_t *data, size_t size)
{
    for (size_t at = 0; size - at >= RECORD;) {
        uint8_t *header = data + at;
        uint64_t len = size_of(header);
        unsigned sum = SUM_LEN * ' ';
        char text[SUM_LEN];

        for (size_t i = 0; i < RECORD; i++)
            sum += i >= SUM_AT && i < SUM_AT + SUM_LEN ? 0 : header[i];
        if (sum == SUM_LEN * ' ')
            return; /* the end */
        snprintf(text, sizeof(text), "%06o", sum);
        memcpy(header + SUM_AT, text, SUM_LEN - 1);
        header[SUM_AT + SUM_LEN - 1] = ' ';
        at += RECORD;
        if (len > size - at)
            return;
        at += (len + RECORD - 1) / RECORD * RECORD;
        if (at > size)
            return;
    }
}

/* What was unpacked is packed, and that is an archive. */
static void pack_again(int root_fd)
{
    _cleanup_close_ int packed = memory_file(NULL, 0), plain = memory_file(NULL, 0);
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    uint64_t size;

    demand(pf_remote_pack(root_fd, packed, &size, NULL, &err) == 0);
    demand(lseek(packed, 0, SEEK_END) == (off_t)size && lseek(packed, 0, SEEK_SET) == 0);
    demand(pf_remote_inflate(packed, plain, UINT64_MAX, NULL, &err) == 0);
}

static void fuzz_tar(const uint8_t *data, size_t size, bool mend)
{
    uint8_t *copy = (uint8_t *)copy_text(data, size);
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    int place_fd = open_place(), root_fd = make_root(place_fd), fd, r;

    if (mend)
        mend_sums(copy, size);
    fd = memory_file(copy, size);
    demand(place_fd >= 0 && root_fd >= 0);
    r = pf_remote_unpack(fd, root_fd, NULL, &err);
    demand((r == 0) == (err.code == 0) && (r == 0 || err.msg[0]));
    /* One that says it is enormous is not packed. */
    if (r == 0 && size <= 4 * RECORD)
        pack_again(root_fd);
    close(fd);
    close(root_fd);
    empty_place(place_fd);
    close(place_fd);
    free(copy);
}

/* ---- gzip ---- */

enum { LIMIT = 1 << 20 };

static int inflate_pieces(const uint8_t *data, size_t size, size_t piece, int to)
{
    PF_CLEANUP(pf_inflater_freep) struct pf_inflater *inflater = NULL;
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    int r = pf_inflater_new(to, LIMIT, &inflater, &err);

    demand(r == 0);
    for (size_t at = 0; r == 0 && at < size; at += piece)
        r = pf_inflater_take(inflater, data + at, size - at < piece ? size - at : piece, &err);
    if (r == 0)
        r = pf_inflater_end(inflater, &err);
    demand((r == 0) == (err.code == 0));
    return r;
}

static void fuzz_gzip(const uint8_t *data, size_t size, size_t piece)
{
    _cleanup_close_ int whole = memory_file(NULL, 0), parts = memory_file(NULL, 0);
    _cleanup_close_ int from = memory_file(data, size), streamed = memory_file(NULL, 0);
    struct stat a, b, c;
    int r = inflate_pieces(data, size, size + 1, whole);

    demand(inflate_pieces(data, size, piece, parts) == r);
    demand(pf_remote_inflate(from, streamed, LIMIT, NULL, NULL) == r);
    demand(fstat(whole, &a) == 0 && fstat(parts, &b) == 0 && fstat(streamed, &c) == 0);
    if (r == 0)
        demand(a.st_size == b.st_size && a.st_size == c.st_size && a.st_size <= LIMIT);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    if (data[0] < 2)
        fuzz_tar(data + 1, size - 1, data[0] == 0);
    else
        fuzz_gzip(data + 1, size - 1, data[0]);
    return 0;
}
