/* SPDX-License-Identifier: Apache-2.0 */
#include "tree/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "tree/beneath.h"
#include "tree/data.h"
#include "tree/place.h"
#include "tree/remove.h"
#include "tree/temp.h"

enum {
    CHUNK = 1024 * 1024, /* between two looks at the cancellation token */
    ANY_ACCESS = 0777,   /* the permission bits that travel: no set-id, no sticky */
};

/* Open a regular file for reading. O_NONBLOCK: a FIFO without a writer would hang. */
static int open_regular(int root_fd, const char *path, struct stat *ret_st)
{
    _cleanup_close_ int fd = pf_beneath_open(root_fd, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
    int r;

    if (fd < 0)
        return fd == -ENXIO ? -ENODEV : fd; /* a socket */
    if (fstat(fd, ret_st) < 0)
        return -errno;
    r = pf_check_regular(ret_st->st_mode);
    return r < 0 ? r : TAKE_FD(fd);
}

int pf_file_too_large(const char *path, size_t limit, struct pinfold_error *err)
{
    return pf_fail_os(err, EFBIG,
                      "read \"%s\": it has more than the %zu bytes that are read into memory; "
                      "download it to a file instead",
                      PF_QUOTE(path), limit);
}

/* Read to the end, whatever the size said: it may be 0 for files that a file system makes up. */
static int read_rest(int fd, const char *path, struct pf_buf *buf, struct pinfold_cancel *cancel,
                     struct pinfold_error *err)
{
    size_t room;
    ssize_t n;
    int r;

    for (;;) {
        r = pf_cancel_check(cancel, err);
        if (r < 0)
            return r;
        room = buf->capacity - buf->len - 1;
        n = pf_read_all(fd, buf->data + buf->len, room < CHUNK ? room : CHUNK);
        if (n < 0)
            return pf_fail_at(err, (int)-n, "read", path);
        buf->len += (size_t)n;
        if ((size_t)n < room && n < CHUNK) {
            buf->data[buf->len] = '\0';
            return 0;
        }
        r = pf_buf_reserve(buf, 1);
        if (r < 0)
            return r == -PINFOLD_ENOMEM ? pf_fail_nomem(err)
                                        : pf_file_too_large(path, buf->limit - 1, err);
    }
}

int pf_file_read(int root_fd, const char *path, size_t limit, struct pinfold_bytes *ret,
                 struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    __attribute__((cleanup(pf_buf_done))) struct pf_buf buf = PF_BUF_INIT(limit);
    _cleanup_close_ int fd = -1;
    struct stat st;
    int r;

    fd = open_regular(root_fd, path, &st);
    if (fd < 0)
        return pf_fail_at(err, -fd, "read", path);
    if ((uint64_t)st.st_size > limit)
        return pf_file_too_large(path, limit, err);
    /* One byte more than there is, to see the end in the same read. */
    buf.limit = limit + (limit < PF_BUF_UNLIMITED);
    if (pf_buf_reserve(&buf, (size_t)st.st_size + 1) < 0)
        return pf_fail_nomem(err);
    r = read_rest(fd, path, &buf, cancel, err);
    if (r < 0)
        return r;
    if (buf.len > limit)
        return pf_file_too_large(path, limit, err);
    return pf_buf_take(&buf, ret);
}

static int write_chunks(int fd, const char *path, const char *data, size_t len,
                        struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    int r;

    for (size_t at = 0; at < len; at += CHUNK) {
        r = pf_cancel_check(cancel, err);
        if (r < 0)
            return r;
        r = pf_write_all(fd, data + at, len - at < CHUNK ? len - at : CHUNK);
        if (r < 0)
            return pf_fail_at(err, -r, "write", path);
    }
    return 0;
}

/* Find where to write, and refuse what cannot be replaced by a file. */
static int find_target(struct pf_place *place, int root_fd, const char *path, bool exclusive)
{
    int flags = PF_PLACE_MAKE_PARENTS | (exclusive ? 0 : PF_PLACE_FOLLOW);
    int r = pf_place_find(place, root_fd, path, flags);

    if (r < 0 || !place->exists)
        return r;
    return exclusive ? -EEXIST : pf_check_regular(place->st.st_mode);
}

/* The file at a place, as it is now, must have these bytes. */
static int check_expected(const struct pf_place *place, const char *path,
                          const struct pinfold_bytes *expected, struct pinfold_cancel *cancel,
                          struct pinfold_error *err)
{
    PF_CLEANUP(pinfold_bytes_done) struct pinfold_bytes now = { 0 };
    struct pinfold_error one = PINFOLD_ERROR_INIT;
    int r = pf_file_read(place->dir_fd, place->name, expected->len, &now, cancel, &one);

    if (r == 0 && now.len == expected->len &&
        (now.len == 0 || memcmp(now.data, expected->data, now.len) == 0))
        return 0;
    if (r == 0 || one.sys_errno == EFBIG || one.sys_errno == ENOENT)
        return pf_file_changed(path, err);
    if (err)
        *err = one;
    return r;
}

int pf_file_changed(const char *path, struct pinfold_error *err)
{
    int r = pf_fail_os(err, EAGAIN, "edit \"%s\": it was changed meanwhile; read it again",
                       PF_QUOTE(path));

    if (err)
        err->retryable = 1;
    return r;
}

/* expected: NULL, or what must be there until it is replaced. */
static int write_file(int root_fd, const char *path, const void *data, size_t len, bool exclusive,
                      const struct pinfold_bytes *expected, struct pinfold_cancel *cancel,
                      struct pinfold_error *err)
{
    _cleanup_place_ struct pf_place place = { .dir_fd = -1 };
    _cleanup_temp_ struct pf_temp temp = PF_TEMP_INIT;
    mode_t mode;
    int r;

    r = pf_cancel_check(cancel, err);
    if (r < 0)
        return r;
    r = find_target(&place, root_fd, path, exclusive);
    if (r == 0 && expected && !place.exists)
        r = -ENOENT;
    if (r < 0)
        return pf_fail_at(err, -r, "write", path);
    mode = place.exists ? place.st.st_mode & ANY_ACCESS : 0644;
    r = pf_temp_open(&temp, place.dir_fd, mode);
    if (r == 0 && place.exists && fchmod(temp.fd, mode) < 0)
        r = -errno;
    if (r < 0)
        return pf_fail_at(err, -r, "write", path);
    r = write_chunks(temp.fd, path, data, len, cancel, err);
    if (r == 0 && expected)
        r = check_expected(&place, path, expected, cancel, err);
    if (r < 0)
        return r;
    r = pf_temp_place(&temp, place.name, exclusive);
    return r < 0 ? pf_fail_at(err, -r, "write", path) : 0;
}

int pf_file_write(int root_fd, const char *path, const void *data, size_t len, bool exclusive,
                  struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    return write_file(root_fd, path, data, len, exclusive, NULL, cancel, err);
}

int pf_file_replace(int root_fd, const char *path, const struct pinfold_bytes *expected,
                    const void *data, size_t len, struct pinfold_cancel *cancel,
                    struct pinfold_error *err)
{
    return write_file(root_fd, path, data, len, false, expected, cancel, err);
}

/* What pf_file_copy() is about, for its messages and its helpers. */
struct file_copy {
    int src_root_fd, dst_root_fd;
    const char *src, *dst;
    bool exclusive;
    struct pinfold_cancel *cancel;
    struct pinfold_error *err;
};

static int fail_copy(const struct file_copy *copy, int sys_errno, const char *step,
                     const char *path)
{
    int r = pf_fail_at(copy->err, sys_errno, step, path);

    return pf_wrap(copy->err, r, "copy to \"%s\"", PF_QUOTE(copy->dst));
}

static int check_between_chunks(void *ctx, uint64_t bytes)
{
    const struct file_copy *copy = ctx;

    (void)bytes;
    return pinfold_cancel_fired(copy->cancel) ? -ECANCELED : 0;
}

/* One try. Returns 0, 1 when the source changed meanwhile, or a negative code. */
static int try_copy(const struct file_copy *copy, uint64_t *ret_bytes)
{
    _cleanup_place_ struct pf_place place = { .dir_fd = -1 };
    _cleanup_temp_ struct pf_temp temp = PF_TEMP_INIT;
    _cleanup_free_ char *buffer = NULL;
    _cleanup_close_ int src_fd = -1;
    struct stat before, after;
    struct pf_data_copy data;
    struct file_copy ctx = *copy;
    int r;

    src_fd = open_regular(copy->src_root_fd, copy->src, &before);
    if (src_fd < 0)
        return fail_copy(copy, -src_fd, "read", copy->src);
    r = find_target(&place, copy->dst_root_fd, copy->dst, copy->exclusive);
    if (r < 0)
        return fail_copy(copy, -r, "write", copy->dst);
    *ret_bytes = 0;
    if (place.exists && place.st.st_dev == before.st_dev && place.st.st_ino == before.st_ino)
        return 0; /* the same file under two names */
    buffer = malloc(PF_DATA_BUFFER);
    if (!buffer)
        return pf_fail_nomem(copy->err);
    r = pf_temp_open(&temp, place.dir_fd, before.st_mode & ANY_ACCESS);
    if (r == 0 && fchmod(temp.fd, before.st_mode & ANY_ACCESS) < 0)
        r = -errno;
    if (r < 0)
        return fail_copy(copy, -r, "write", copy->dst);
    data = (struct pf_data_copy){
        .src_fd = src_fd,
        .dst_fd = temp.fd,
        .buffer = buffer,
        .on_chunk = check_between_chunks,
        .ctx = &ctx,
    };
    r = pf_data_copy(&data, &before, ret_bytes);
    if (r == -ECANCELED)
        return pf_cancel_check(copy->cancel, copy->err);
    if (r < 0)
        return fail_copy(copy, -r, data.failed, copy->src);
    if (fstat(src_fd, &after) < 0)
        return fail_copy(copy, errno, "read", copy->src);
    if (pf_data_changed(&before, &after))
        return 1;
    r = pf_temp_place(&temp, place.name, copy->exclusive);
    return r < 0 ? fail_copy(copy, -r, "write", copy->dst) : 0;
}

int pf_file_copy(int src_root_fd, const char *src, int dst_root_fd, const char *dst, bool exclusive,
                 uint64_t *ret_bytes, struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    struct file_copy copy = { src_root_fd, dst_root_fd, src, dst, exclusive, cancel, err };
    uint64_t bytes = 0;
    int r = pf_cancel_check(cancel, err);

    if (r == 0)
        r = try_copy(&copy, &bytes);
    if (r == 1)
        r = try_copy(&copy, &bytes);
    if (r == 1)
        return pf_fail(err, PINFOLD_EOS, "copy \"%s\": it changes while it is read", PF_QUOTE(src));
    if (r == 0 && ret_bytes)
        *ret_bytes = bytes;
    return r;
}

int pf_file_remove(int root_fd, const char *path, struct pinfold_error *err)
{
    _cleanup_place_ struct pf_place place = { .dir_fd = -1 };
    int r = pf_place_find(&place, root_fd, path, 0);

    if (r == 0 && !place.exists)
        r = -ENOENT;
    if (r == 0 && S_ISDIR(place.st.st_mode))
        r = -EISDIR;
    if (r == 0 && unlinkat(place.dir_fd, place.name, 0) < 0)
        r = -errno;
    return r < 0 ? pf_fail_at(err, -r, "remove", path) : 0;
}

static int fail_move(struct pinfold_error *err, int sys_errno, const char *src, const char *dst,
                     const char *path)
{
    int r = pf_fail_at(err, sys_errno, "look up", path);

    return pf_wrap(err, r, "move \"%s\" to \"%s\"", PF_QUOTE(src), PF_QUOTE(dst));
}

/* Between two file systems that are mounted in the tree. */
static int move_by_copy(int root_fd, const char *src, const char *dst, struct pinfold_error *err)
{
    int r = pf_file_copy(root_fd, src, root_fd, dst, false, NULL, NULL, err);

    return r < 0 ? r : pf_file_remove(root_fd, src, err);
}

/* Both ends of a move. */
struct ends {
    struct pf_place from, to;
};

static void ends_done(struct ends *ends)
{
    pf_place_done(&ends->from);
    pf_place_done(&ends->to);
}

/* Find them, with the parents of the second. */
static int find_ends(struct ends *ends, int root_fd, const char *src, const char *dst, int flags,
                     struct pinfold_error *err)
{
    size_t len = strlen(src);
    int r = pf_place_find(&ends->from, root_fd, src, 0);

    if (r == 0)
        r = !ends->from.exists                                          ? -ENOENT
            : S_ISDIR(ends->from.st.st_mode) && !(flags & PF_MOVE_DIRS) ? -EISDIR
                                                                        : 0;
    if (r < 0)
        return fail_move(err, -r, src, dst, src);
    if (S_ISDIR(ends->from.st.st_mode) && strncmp(dst, src, len) == 0 && dst[len] == '/')
        return fail_move(err, EINVAL, src, dst, dst); /* before parents are made, in itself */
    r = pf_place_find(&ends->to, root_fd, dst, PF_PLACE_MAKE_PARENTS);
    if (r == 0 && ends->to.exists)
        r = flags & PF_MOVE_NO_REPLACE ? -EEXIST : S_ISDIR(ends->to.st.st_mode) ? -EISDIR : 0;
    return r < 0 ? fail_move(err, -r, src, dst, dst) : 0;
}

int pf_file_move(int root_fd, const char *src, const char *dst, int flags,
                 struct pinfold_error *err)
{
    PF_CLEANUP(ends_done) struct ends ends = { .from.dir_fd = -1, .to.dir_fd = -1 };
    const struct pf_place *from = &ends.from, *to = &ends.to;
    unsigned how = flags & PF_MOVE_NO_REPLACE ? RENAME_NOREPLACE : 0;
    int r = find_ends(&ends, root_fd, src, dst, flags, err);

    if (r < 0)
        return r;
    if (to->exists && from->st.st_dev == to->st.st_dev && from->st.st_ino == to->st.st_ino)
        return 0;
    if (renameat2(from->dir_fd, from->name, to->dir_fd, to->name, how) == 0)
        return 0;
    if (errno == EXDEV && S_ISREG(from->st.st_mode) && !how)
        return move_by_copy(root_fd, src, dst, err);
    return pf_fail_os(err, errno, "move \"%s\" to \"%s\"", PF_QUOTE(src), PF_QUOTE(dst));
}

int pf_dir_remove(int root_fd, const char *path, bool recursive, struct pinfold_error *err)
{
    _cleanup_place_ struct pf_place place = { .dir_fd = -1 };
    int r = pf_place_find(&place, root_fd, path, 0);

    if (r == 0 && !place.exists)
        r = -ENOENT;
    if (r == 0 && !S_ISDIR(place.st.st_mode))
        r = -ENOTDIR;
    if (r < 0)
        return pf_fail_at(err, -r, "remove", path);
    if (unlinkat(place.dir_fd, place.name, AT_REMOVEDIR) == 0)
        return 0;
    if (errno == EEXIST)
        errno = ENOTEMPTY;
    if (errno != ENOTEMPTY || !recursive)
        return pf_fail_os(err, errno, "remove \"%s\"", PF_QUOTE(path));
    return pf_tree_remove(place.dir_fd, place.name, err);
}
