/* SPDX-License-Identifier: Apache-2.0 */
#include "backend/agentcore_archive.h"
#include "backend/remote_output.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <zlib.h>

#include "base/base64.h"
#include "base/cancel.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/random.h"
#include "tree/data.h"

#define SCRIPT_MAX ((size_t)64 << 20)
#define AT_ONCE (PF_AC_INLINE / 8 * 5) /* bytes that in base64 are less than that */
enum { LAST_ERRNO = 133, BLOCK = 128 * 1024 };

int pf_ac_errno_of(const char *text)
{
    size_t len = text ? strlen(text) : 0;

    while (len > 0 && (text[len - 1] == '\n' || text[len - 1] == '\r'))
        len--;
    for (int number = 1; number <= LAST_ERRNO; number++) {
        const char *words = strerrordesc_np(number); /* as in the locale C */
        size_t tail = words ? strlen(words) : 0;
        if (tail > 0 && len > tail + 2 && memcmp(text + len - tail, words, tail) == 0 &&
            text[len - tail - 2] == ':')
            return number;
    }
    return EIO;
}

static bool is_zero(const char *data, size_t len)
{
    return len == 0 || (data[0] == '\0' && memcmp(data, data + 1, len - 1) == 0);
}

int pf_ac_keep(int fd, const void *data, size_t len)
{
    if (is_zero(data, len))
        return lseek(fd, (off_t)len, SEEK_CUR) < 0 ? -errno : 0;
    return pf_write_all(fd, data, len);
}

/* Unpacking gzip's format from one descriptor into another. */
struct inflating {
    int from, to;
    uint64_t total, limit;
    unsigned char in[BLOCK], out[BLOCK];
    z_stream z;
};

/* One step. Returns 1 at the end, 0 to go on, or a negative code. */
static int inflate_step(struct inflating *job, struct pinfold_error *err)
{
    size_t len;
    int state, r;

    if (job->z.avail_in == 0) {
        ssize_t n = read(job->from, job->in, BLOCK);
        if (n < 0)
            return pf_fail_os(err, errno, "read what was fetched");
        job->z.next_in = job->in;
        job->z.avail_in = (unsigned)n;
    }
    job->z.next_out = job->out;
    job->z.avail_out = BLOCK;
    state = inflate(&job->z, Z_NO_FLUSH);
    if (state == Z_MEM_ERROR) /* its window is made when it is first needed */
        return pf_fail_nomem(err);
    if (state != Z_OK && state != Z_STREAM_END)
        return pf_fail(err, PINFOLD_EBACKEND, "what was fetched is not whole");
    len = BLOCK - job->z.avail_out;
    job->total += len;
    if (job->total > job->limit)
        return pf_fail_os(err, EFBIG, "unpack what was fetched");
    r = pf_ac_keep(job->to, job->out, len);
    return r < 0 ? pf_fail_os(err, -r, "keep what was fetched") : state == Z_STREAM_END;
}

int pf_ac_inflate(int from, int to, uint64_t limit, struct pinfold_cancel *cancel,
                  struct pinfold_error *err)
{
    _cleanup_free_ struct inflating *job = calloc(1, sizeof(*job));
    int r;

    if (!job || inflateInit2(&job->z, 15 + 16) != Z_OK)
        return pf_fail_nomem(err);
    job->from = from;
    job->to = to;
    job->limit = limit;
    do {
        r = pf_cancel_check(cancel, err);
        if (r == 0)
            r = inflate_step(job, err);
    } while (r == 0);
    inflateEnd(&job->z);
    if (r > 0 && ftruncate(to, (off_t)job->total) < 0)
        r = pf_fail_os(err, errno, "keep what was fetched");
    return r < 0 ? r : 0;
}

/* Have the script's output put into parts there; what is small comes at once, in inlined. */
static int prepare(struct pf_ac_box *box, const char *script, const char *id, uint64_t *ret_size,
                   struct pf_buf *inlined, struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    PF_CLEANUP(pf_buf_done) struct pf_buf text = PF_BUF_INIT(SCRIPT_MAX);
    struct pf_ac_output output;
    unsigned long long size = 0;
    const char *rest;
    int status = -1, r;

    /* The script's status goes by a file, as a pipe only has its last command's. */
    if (pf_buf_printf(&text,
                      "export LC_ALL=C; S=%s/" PF_AC_SCRATCH "/%s; "
                      "{ (%s); echo $? >$S.status; } | gzip -1 | split -b %zu -d -a 4 - $S. && "
                      "n=$(cat $S.[0-9]* | wc -c) && echo $(cat $S.status) $n && "
                      "if [ $n -le %zu ] && cat $S.[0-9]* | base64; then rm -f $S.*; fi",
                      box->home, id, script, PF_AC_PART, AT_ONCE) < 0)
        return pf_fail_nomem(err);
    r = pf_ac_run(box, text.data, text.len, PF_AC_INLINE, false, NULL, &output, cancel, err);
    if (r < 0)
        return r;
    if (!output.out.data || output.status != 0 ||
        sscanf(output.out.data, "%d %llu", &status, &size) != 2 || size == 0)
        r = pf_fail_os(err, pf_ac_errno_of(output.errs.data), "prepare to fetch");
    else if (status != 0)
        r = pf_fail_os(err, pf_ac_errno_of(output.errs.data), "fetch");
    *ret_size = size;
    rest = r == 0 ? strchr(output.out.data, '\n') : NULL;
    if (rest && rest[1]) {
        r = pf_base64_decode(rest, strlen(rest), inlined);
        if (r < 0)
            r = r == -PINFOLD_ENOMEM
                        ? pf_fail_nomem(err)
                        : pf_fail(err, PINFOLD_EBACKEND, "what was fetched is not whole");
    }
    pf_ac_output_done(&output);
    return r;
}

static int keep_inlined(const struct pf_buf *inlined, uint64_t size, int fd,
                        struct pinfold_error *err)
{
    int r = inlined->len == size ? pf_write_all(fd, inlined->data, inlined->len) : -EIO;

    return r < 0 ? pf_fail_os(err, -r, "keep what was fetched") : 0;
}

int pf_ac_fetch(struct pf_ac_box *box, const char *script, uint64_t limit, int fd,
                struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    _cleanup_close_ int packed = pf_remote_unnamed(err);
    PF_CLEANUP(pf_buf_done) struct pf_buf inlined = PF_BUF_INIT(2 * AT_ONCE);
    char id[PF_AC_ID_MAX];
    uint64_t size = 0;
    int r;

    if (packed < 0)
        return packed;
    pf_random_hex(id, PF_AC_ID_MAX - 1);
    r = prepare(box, script, id, &size, &inlined, cancel, err);
    /* Gzip's worst is hardly more than what went in. */
    if (r == 0 && size > limit + limit / 100 + 4096)
        r = pf_fail_os(err, EFBIG, "fetch");
    if (r == 0 && inlined.len > 0)
        r = keep_inlined(&inlined, size, packed, err);
    else if (r == 0)
        r = pf_ac_get(box, id, size, packed, cancel, err);
    if (inlined.len == 0)
        pf_ac_forget(box, id);
    if (r == 0 && lseek(packed, 0, SEEK_SET) < 0)
        r = pf_fail_os(err, errno, "read what was fetched");
    return r < 0 ? r : pf_ac_inflate(packed, fd, limit, cancel, err);
}
