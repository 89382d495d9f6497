/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "backend/remote_archive.h"
#include "base/cancel.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "tree/data.h"

enum { BLOCK = 128 * 1024 };

struct pf_inflater {
    z_stream z;
    int fd;
    bool over;
    uint64_t total, limit;
    unsigned char out[BLOCK];
};

static bool is_zero(const char *data, size_t len)
{
    return len == 0 || (data[0] == '\0' && memcmp(data, data + 1, len - 1) == 0);
}

int pf_remote_keep(int fd, const void *data, size_t len)
{
    if (is_zero(data, len))
        return lseek(fd, (off_t)len, SEEK_CUR) < 0 ? -errno : 0;
    return pf_write_all(fd, data, len);
}

int pf_inflater_new(int fd, uint64_t limit, struct pf_inflater **ret, struct pinfold_error *err)
{
    _cleanup_free_ struct pf_inflater *inflater = calloc(1, sizeof(*inflater));

    if (!inflater || inflateInit2(&inflater->z, 15 + 16) != Z_OK)
        return pf_fail_nomem(err);
    inflater->fd = fd;
    inflater->limit = limit;
    *ret = TAKE(inflater);
    return 0;
}

void pf_inflater_freep(struct pf_inflater **inflater)
{
    if (*inflater)
        inflateEnd(&(*inflater)->z);
    free(*inflater);
}

int pf_inflater_take(void *ctx, const void *data, size_t len, struct pinfold_error *err)
{
    struct pf_inflater *inflater = ctx;
    int state = Z_OK, r = 0;

    inflater->z.next_in = (unsigned char *)(uintptr_t)data;
    inflater->z.avail_in = (unsigned)len;
    while (r == 0 && !inflater->over && state != Z_BUF_ERROR) {
        inflater->z.next_out = inflater->out;
        inflater->z.avail_out = BLOCK;
        state = inflate(&inflater->z, Z_NO_FLUSH);
        if (state == Z_MEM_ERROR) /* its window is made when it is first needed */
            return pf_fail_nomem(err);
        /* First: how much comes with what is wrong depends on where the pieces end. */
        inflater->total += BLOCK - inflater->z.avail_out;
        if (inflater->total > inflater->limit)
            return pf_fail_os(err, EFBIG, "unpack what was fetched");
        if (state != Z_OK && state != Z_STREAM_END && state != Z_BUF_ERROR)
            return pf_fail(err, PINFOLD_EBACKEND, "what was fetched is not whole");
        inflater->over = state == Z_STREAM_END;
        r = pf_remote_keep(inflater->fd, inflater->out, BLOCK - inflater->z.avail_out);
    }
    return r < 0 ? pf_fail_os(err, -r, "keep what was fetched") : 0;
}

int pf_inflater_end(const struct pf_inflater *inflater, struct pinfold_error *err)
{
    if (!inflater->over)
        return pf_fail(err, PINFOLD_EBACKEND, "what was fetched is not whole");
    if (ftruncate(inflater->fd, (off_t)inflater->total) < 0) /* the last bytes may be a hole */
        return pf_fail_os(err, errno, "keep what was fetched");
    return 0;
}

int pf_remote_inflate(int from, int to, uint64_t limit, struct pinfold_cancel *cancel,
                      struct pinfold_error *err)
{
    PF_CLEANUP(pf_inflater_freep) struct pf_inflater *inflater = NULL;
    _cleanup_free_ char *block = malloc(BLOCK);
    ssize_t n = 1;
    int r = block ? pf_inflater_new(to, limit, &inflater, err) : pf_fail_nomem(err);

    while (r == 0 && n > 0 && !inflater->over) {
        r = pf_cancel_check(cancel, err);
        if (r < 0)
            return r;
        n = read(from, block, BLOCK);
        r = n < 0 ? pf_fail_os(err, errno, "read what was fetched")
                  : pf_inflater_take(inflater, block, (size_t)n, err);
    }
    return r < 0 ? r : pf_inflater_end(inflater, err);
}
