/* SPDX-License-Identifier: Apache-2.0 */
/* From two captured streams to the texts of a result. */
#include "proc/capture.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/spool.h"

/* What a stream could give if the budget were its own. */
static size_t available(const struct pf_stream *stream)
{
    size_t limit = stream->head.limit;

    return stream->full ? limit : stream->head.len;
}

/* The last byte but n of a stream that has a ring. */
static char byte_from_end(const struct pf_stream *stream, size_t n)
{
    uint64_t at = stream->text_bytes - n;

    return at < stream->head.len ? stream->head.data[at]
                                 : stream->ring[(at - stream->head.len) % stream->ring_size];
}

/* The head and the tail of what was longer than its share. */
static int join_tail(const struct pf_stream *stream, size_t share, struct pf_buf *text,
                     size_t *ret_kept)
{
    size_t head = share / 2, tail = share - share / 2;
    int r;

    if (head > stream->head.len)
        head = stream->head.len;
    head = pf_utf8_floor(stream->head.data, head);

    /* Do not start inside a character. */
    while (tail > 0 && ((unsigned char)byte_from_end(stream, tail) & 0xc0) == 0x80)
        tail--;
    r = pf_buf_append(text, stream->head.data, head);
    if (r == 0 && head > 0 && text->data[head - 1] != '\n')
        r = pf_buf_append(text, "\n", 1);
    if (r == 0)
        r = pf_buf_printf(text, "[... %" PRIu64 " bytes omitted ...]\n",
                          stream->text_bytes - head - tail);
    if (r == 0)
        r = pf_buf_reserve(text, tail);
    for (size_t i = tail; r == 0 && i > 0; i--)
        text->data[text->len++] = byte_from_end(stream, i);
    if (r == 0)
        text->data[text->len] = '\0';
    *ret_kept = head + tail;
    return r;
}

/* Cut a stream to its share of the budget. text is the caller's, empty. */
static int cut(struct pf_capture *capture, struct pf_stream *stream, size_t share,
               struct pf_buf *text, bool *truncated, size_t *ret_kept)
{
    *text = (struct pf_buf)PF_BUF_INIT(PF_BUF_UNLIMITED);
    if (stream->full || stream->head.len > share) {
        *truncated = true;
        if (capture->keep_tail && stream->head.len > 0)
            return join_tail(stream, share, text, ret_kept);
        if (stream->head.len > share)
            stream->head.len = pf_utf8_floor(stream->head.data, share);
        if (stream->head.data)
            stream->head.data[stream->head.len] = '\0';
    }
    *ret_kept = stream->head.len;
    *text = stream->head;
    text->limit = PF_BUF_UNLIMITED;
    stream->head = (struct pf_buf)PF_BUF_INIT(0);
    return 0;
}

static int start_line(struct pf_buf *out)
{
    return out->len > 0 && out->data[out->len - 1] != '\n' ? pf_buf_append(out, "\n", 1) : 0;
}

static int append_prefixed(struct pf_buf *out, const struct pf_buf *text)
{
    static const char prefix[] = "[stderr] ";
    int r = text->len > 0 ? start_line(out) : 0;

    for (size_t at = 0; r == 0 && at < text->len;) {
        const char *line = text->data + at;
        const char *end = memchr(line, '\n', text->len - at);
        size_t len = end ? (size_t)(end - line) + 1 : text->len - at;
        r = pf_buf_append(out, prefix, sizeof(prefix) - 1);
        if (r == 0)
            r = pf_buf_append(out, line, len);
        at += len;
    }
    return r;
}

static int append_notes(const struct pf_capture *capture, const char *notes, bool truncated,
                        size_t kept, struct pf_buf *out)
{
    uint64_t total = capture->streams[0].raw_bytes + capture->streams[1].raw_bytes;
    int spool_errno = capture->spool ? pf_spool_errno(capture->spool) : 0;
    int r = 0;

    if (truncated || notes[0] != '\0' || spool_errno != 0 || capture->spool_error.code != 0)
        r = start_line(out);
    if (r == 0 && truncated)
        r = pf_buf_printf(out, "[output truncated: kept %zu of %" PRIu64 " bytes]\n", kept, total);
    if (r == 0 && capture->spool_error.code != 0)
        r = pf_buf_printf(out, "[output not spooled: %s]\n", capture->spool_error.msg);
    if (r == 0 && spool_errno != 0) {
        const char *reason = strerrordesc_np(spool_errno);
        r = pf_buf_printf(out, "[spool incomplete: %s]\n", reason ? reason : "write failed");
    }
    return r == 0 ? pf_buf_append_text(out, notes) : r;
}

static int give(struct pf_buf *text, char **ret, size_t *ret_len)
{
    struct pinfold_bytes bytes;
    int r = pf_buf_take(text, &bytes);

    if (r == 0) {
        *ret = bytes.data;
        *ret_len = bytes.len;
    }
    return r;
}

int pf_capture_finish(struct pf_capture *capture, const char *notes,
                      struct pinfold_execute_result *ret, struct pinfold_error *err)
{
    struct pf_stream *out = &capture->streams[0], *errs = &capture->streams[1];
    __attribute__((cleanup(pf_buf_done))) struct pf_buf text = PF_BUF_INIT(PF_BUF_UNLIMITED);
    __attribute__((cleanup(pf_buf_done))) struct pf_buf err_text = PF_BUF_INIT(PF_BUF_UNLIMITED);
    size_t limit = out->head.limit, reserve = limit / 4, share, kept = 0, err_kept = 0;
    bool truncated = false;
    int r;

    pf_capture_end_text(capture);
    if (out->failed || errs->failed)
        return pf_fail_nomem(err);
    /* stderr gets what stdout leaves, and never less than a quarter. */
    share = limit - available(out) > reserve ? limit - available(out) : reserve;
    if (share > available(errs))
        share = available(errs);
    r = cut(capture, out, limit - share, &text, &truncated, &kept);
    if (r == 0)
        r = cut(capture, errs, share, &err_text, &truncated, &err_kept);
    ret->stdout_len = text.len;
    if (r == 0)
        r = append_prefixed(&text, &err_text);
    if (r == 0)
        r = append_notes(capture, notes, truncated && !capture->request->discard, kept + err_kept,
                         &text);
    if (r == 0)
        r = give(&text, &ret->output, &ret->output_len);
    if (r == 0)
        r = give(&err_text, &ret->stderr_text, &ret->stderr_len);
    if (r < 0)
        return pf_fail_nomem(err);
    ret->truncated = truncated && !capture->request->discard;
    ret->stdout_bytes = out->raw_bytes;
    ret->stderr_bytes = errs->raw_bytes;
    ret->spool = capture->spool;
    capture->spool = NULL;
    return 0;
}
