/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether two files hold the same bytes. A command can make a file of many terabytes in a moment,
 * all of it a hole: what costs time here is data alone, which also took time and room to write.
 */
#include "tree/data.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

enum { HALF = PF_DATA_BUFFER / 2 };

/* One of the files, and the data that comes next in it: none when it starts at the end. */
struct side {
    int fd;
    char *buffer;     /* HALF bytes */
    struct stat st;   /* as it was at the start */
    off_t data, hole; /* data from here to there; nothing but a hole before */
};

static int start_side(struct side *side, int fd, char *buffer)
{
    *side = (struct side){ .fd = fd, .buffer = buffer };
    return fstat(fd, &side->st) < 0 ? -errno : 0;
}

/* Who looks where a file's data is also sees whether it is still the file of the start: or else
 * somebody who writes ahead of the comparison and makes holes behind it would never let it end.
 * Returns 1, 0 (it has changed), -errno. */
static int is_unchanged(const struct side *side)
{
    struct stat now;

    if (fstat(side->fd, &now) < 0)
        return -errno;
    return !pf_data_changed(&side->st, &now);
}

/* Find the data at an offset or after it, unless it is known. Where a file system does not tell,
 * all is data. Returns as is_unchanged(). */
static int find_data(struct side *side, off_t at)
{
    off_t size = side->st.st_size;

    if (at < side->hole || side->data == size)
        return 1;
    side->data = lseek(side->fd, at, SEEK_DATA);
    if (side->data < 0)
        side->data = errno == ENXIO ? size : at;
    if (side->data > size)
        side->data = size;
    side->hole = side->data < size ? lseek(side->fd, side->data, SEEK_HOLE) : size;
    if (side->hole <= side->data || side->hole > size)
        side->hole = size; /* not told, or changed since: to be read */
    return is_unchanged(side);
}

static bool has_data(const struct side *side, off_t at)
{
    return side->data <= at;
}

static off_t least(off_t a, off_t b)
{
    return a < b ? a : b;
}

/* Where what both have at an offset, data or hole, ends in one of them, or the buffer does. */
static off_t end_of_piece(const struct side *a, const struct side *b, off_t at)
{
    off_t end_a = has_data(a, at) ? a->hole : a->data;
    off_t end_b = has_data(b, at) ? b->hole : b->data;
    off_t end = least(end_a, end_b);

    return has_data(a, at) || has_data(b, at) ? least(end, at + HALF) : end;
}

/* Returns 1, 0 (shorter than it was), -errno. */
static int read_piece(const struct side *side, off_t at, size_t len)
{
    ssize_t n;

    if (lseek(side->fd, at, SEEK_SET) < 0)
        return -errno;
    n = pf_read_all(side->fd, side->buffer, len);
    return n < 0 ? (int)n : (size_t)n == len;
}

static bool is_zero(const char *data, size_t len)
{
    return data[0] == 0 && memcmp(data, data + 1, len - 1) == 0;
}

/* Returns 1 (the same), 0, -errno. */
static int compare_piece(const struct side *a, const struct side *b, off_t at, size_t len)
{
    bool in_a = has_data(a, at), in_b = has_data(b, at);
    int r = in_a ? read_piece(a, at, len) : 1;

    if (r > 0 && in_b)
        r = read_piece(b, at, len);
    if (r <= 0)
        return r;
    if (in_a && in_b)
        return memcmp(a->buffer, b->buffer, len) == 0;
    return is_zero(in_a ? a->buffer : b->buffer, len);
}

/* The same up to the size that both have. */
static int compare_pieces(struct side *a, struct side *b, pf_data_fn on_chunk, void *ctx)
{
    off_t size = a->st.st_size, end;
    int r;

    for (off_t at = 0; at < size; at = end) {
        r = find_data(a, at);
        if (r > 0)
            r = find_data(b, at);
        if (r <= 0)
            return r;
        end = end_of_piece(a, b, at);
        if (!has_data(a, at) && !has_data(b, at))
            continue;
        r = compare_piece(a, b, at, (size_t)(end - at));
        if (r <= 0)
            return r;
        r = on_chunk ? on_chunk(ctx, (uint64_t)(end - at)) : 0;
        if (r < 0)
            return r;
    }
    return 1;
}

int pf_data_same(int fd_a, int fd_b, char *buffer, pf_data_fn on_chunk, void *ctx)
{
    struct side a, b;
    int r = start_side(&a, fd_a, buffer);

    if (r == 0)
        r = start_side(&b, fd_b, buffer + HALF);
    if (r < 0)
        return r;
    if (a.st.st_size != b.st.st_size)
        return 0;
    if (a.st.st_size <= HALF) /* to read it costs less than to look for holes */
        a.hole = b.hole = a.st.st_size;
    r = compare_pieces(&a, &b, on_chunk, ctx);
    if (r > 0)
        r = is_unchanged(&a);
    return r > 0 ? is_unchanged(&b) : r;
}
