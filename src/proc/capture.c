/* SPDX-License-Identifier: Apache-2.0 */
#include "proc/capture.h"

#include <fcntl.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/spool.h"

enum {
    SMALL_READ = 16 * 1024,
    LARGE_READ = 256 * 1024, /* also the most that a callback gets */
    BUSY_AFTER = 64 * 1024,  /* bytes: a default pipe full */
    BUSY_PIPE = 1024 * 1024,
    MAX_SPLICE = 1024 * 1024,
};

void pf_capture_init(struct pf_capture *capture, const struct pf_run_request *request)
{
    size_t limit = request->discard ? 0 : request->output_limit;

    *capture = (struct pf_capture){ .request = request, .null = -1 };
    if (limit > PF_BUF_UNLIMITED)
        limit = PF_BUF_UNLIMITED;
    for (int i = 0; i < 2; i++) {
        capture->streams[i].fd = -1;
        capture->streams[i].id = i == 0 ? PINFOLD_STDOUT : PINFOLD_STDERR;
        capture->streams[i].head.limit = limit;
    }
    if (request->spool_limit > 0)
        pf_spool_new(request->spool_limit, &capture->spool, &capture->spool_error);
    capture->keep_tail = (request->keep_tail || request->spool_limit > 0) && limit > 0;
}

void pf_capture_done(struct pf_capture *capture)
{
    for (int i = 0; i < 2; i++) {
        struct pf_stream *stream = &capture->streams[i];
        if (stream->fd >= 0)
            close(stream->fd);
        stream->fd = -1;
        pf_buf_done(&stream->head);
        free(TAKE(stream->ring));
    }
    free(TAKE(capture->block));
    if (capture->null >= 0)
        close(capture->null);
    capture->null = -1;
    pinfold_spool_free(TAKE(capture->spool));
}

/* The last bytes of the text stay in the ring: byte n after the head is at n modulo its size. */
static void put_ring(struct pf_stream *stream, const char *text, size_t len)
{
    uint64_t at = stream->text_bytes - stream->head.len;

    if (len > stream->ring_size) {
        at += len - stream->ring_size;
        text += len - stream->ring_size;
        len = stream->ring_size;
    }
    while (len > 0) {
        size_t slot = (size_t)(at % stream->ring_size);
        size_t span = len < stream->ring_size - slot ? len : stream->ring_size - slot;
        memcpy(stream->ring + slot, text, span);
        at += span;
        text += span;
        len -= span;
    }
}

static bool take_text(void *ctx, const char *text, size_t len)
{
    struct pf_stream *stream = ctx;
    size_t fits = stream->full ? 0 : stream->head.limit - stream->head.len;

    if (fits < len) {
        fits = pf_utf8_floor(text, fits);
        stream->full = true;
    } else {
        fits = len;
    }
    if (fits > 0 && pf_buf_append(&stream->head, text, fits) < 0) {
        stream->failed = true;
        return false;
    }
    stream->text_bytes += fits;
    if (fits == len)
        return true;
    if (stream->ring_size > 0 && !stream->ring) {
        stream->ring = malloc(stream->ring_size);
        if (!stream->ring) {
            stream->failed = true;
            return false;
        }
    }
    if (stream->ring)
        put_ring(stream, text + fits, len - fits);
    stream->text_bytes += len - fits;
    return true;
}

static bool is_heard(const struct pf_capture *capture, const struct pf_stream *stream)
{
    return capture->request->on_output && !capture->declined && !stream->sated;
}

/* Somebody looks at what comes, or keeps it. */
static bool is_wanted(const struct pf_capture *capture, const struct pf_stream *stream)
{
    return is_heard(capture, stream) || pf_spool_wants(capture->spool, stream->id) ||
           (!capture->request->discard && (!stream->full || capture->keep_tail));
}

void pf_capture_close(struct pf_stream *stream)
{
    close(stream->fd);
    stream->fd = -1;
}

/* Throw away what is in the pipe without copying it. Returns bytes, 0 at the end, -1 with errno
 * (EINVAL: cannot be done here). */
static ssize_t throw_away(struct pf_capture *capture, const struct pf_stream *stream)
{
    if (capture->null == -1)
        capture->null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (capture->null < 0) {
        capture->null = -2;
        errno = EINVAL;
        return -1;
    }
    return splice(stream->fd, NULL, capture->null, NULL, MAX_SPLICE, SPLICE_F_NONBLOCK);
}

/* A larger pipe means fewer wake-ups; a command that says little shall not pay for it. Neither
 * step has to work. */
static void note_traffic(struct pf_capture *capture, struct pf_stream *stream)
{
    if (stream->busy || stream->raw_bytes < BUSY_AFTER)
        return;
    stream->busy = true;
    fcntl(stream->fd, F_SETPIPE_SZ, BUSY_PIPE);
    if (!capture->block && is_wanted(capture, stream))
        capture->block = malloc(LARGE_READ);
}

static int use(struct pf_capture *capture, struct pf_stream *stream, const char *data, size_t len,
               struct pinfold_error *err)
{
    const struct pf_run_request *request = capture->request;
    int answer = 0;

    if (pf_spool_wants(capture->spool, stream->id))
        pf_spool_write(capture->spool, stream->id, data, len);
    if (!request->discard && (!stream->full || capture->keep_tail)) {
        if (capture->keep_tail)
            stream->ring_size = stream->head.limit - stream->head.limit / 2;
        pf_utf8_decode(&stream->utf8, data, len, take_text, stream);
        if (stream->failed)
            return pf_fail_nomem(err);
    }
    if (is_heard(capture, stream))
        answer = request->on_output(request->on_output_ctx, stream->id, data, len);
    if (answer == PINFOLD_OUTPUT_ENOUGH) {
        stream->sated = true;
    } else if (answer != 0) {
        capture->declined = true;
        return pf_fail(err, PINFOLD_ECANCELLED, "cancelled by the receiver of the output");
    }
    return 0;
}

int pf_capture_read(struct pf_capture *capture, struct pf_stream *stream, struct pinfold_error *err)
{
    char small[SMALL_READ], *buffer = capture->block ? capture->block : small;
    size_t size = capture->block ? LARGE_READ : SMALL_READ;
    bool wanted = is_wanted(capture, stream);
    ssize_t len;
    int r;

    note_traffic(capture, stream);
    len = wanted ? read(stream->fd, buffer, size) : throw_away(capture, stream);
    if (len < 0 && !wanted && errno == EINVAL)
        len = read(stream->fd, buffer, size);
    if (len < 0)
        return errno == EINTR || errno == EAGAIN
                       ? 0
                       : pf_fail_os(err, errno, "read the output of the command");
    if (len == 0) {
        pf_capture_close(stream);
        return 0;
    }
    stream->raw_bytes += (size_t)len;
    r = wanted ? use(capture, stream, buffer, (size_t)len, err) : 0;
    /* What was thrown away has not come by here, and may have been more. */
    if (wanted && capture->request->secret)
        explicit_bzero(buffer, (size_t)len);
    return r;
}

void pf_capture_end_text(struct pf_capture *capture)
{
    for (int i = 0; i < 2; i++) {
        struct pf_stream *stream = &capture->streams[i];
        if (!stream->full || capture->keep_tail)
            pf_utf8_finish(&stream->utf8, take_text, stream);
    }
}
