/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/random.h"
#include "net/multipart.h"

#define TEXT_MAX ((size_t)256 << 20)

/* A stretch of the body. The texts are one buffer, which may still move, hence offsets. */
struct pf_multipart_piece {
    const void *data; /* NULL: of text or of fd */
    int fd;           /* -1: of text */
    size_t start;     /* in text */
    uint64_t size;
};

void pf_multipart_writer_init(struct pf_multipart_writer *writer)
{
    *writer = (struct pf_multipart_writer){ .text = PF_BUF_INIT(TEXT_MAX) };
    memset(writer->boundary, '-', 26); /* as the service's own clients draw it */
    pf_random_hex(writer->boundary + 26, 24);
}

void pf_multipart_writer_done(struct pf_multipart_writer *writer)
{
    pf_buf_done(&writer->text);
    free(writer->pieces);
    writer->pieces = NULL;
}

static int add_piece(struct pf_multipart_writer *writer, const struct pf_multipart_piece *piece)
{
    struct pf_multipart_piece *grown;
    size_t capacity = writer->capacity ? 2 * writer->capacity : 8;

    if (writer->count == writer->capacity) {
        grown = reallocarray(writer->pieces, capacity, sizeof(*grown));
        if (!grown)
            return -PINFOLD_ENOMEM;
        writer->pieces = grown;
        writer->capacity = capacity;
    }
    writer->pieces[writer->count++] = *piece;
    writer->total += piece->size;
    return 0;
}

/* What was appended to the text since start becomes a piece, or part of the last one. */
static int end_text(struct pf_multipart_writer *writer, size_t start)
{
    const struct pf_multipart_piece piece = { .fd = -1,
                                              .start = start,
                                              .size = writer->text.len - start };
    struct pf_multipart_piece *last = writer->count ? &writer->pieces[writer->count - 1] : NULL;

    if (!last || last->fd >= 0 || last->data)
        return add_piece(writer, &piece);
    last->size += piece.size;
    writer->total += piece.size;
    return 0;
}

/* Names of files may hold what would end the quotes: HTML's rule for forms. */
static int add_quoted(struct pf_buf *to, const char *text)
{
    int r = pf_buf_append(to, "\"", 1);

    for (; r == 0 && *text; text++) {
        if (*text == '"' || *text == '\r' || *text == '\n')
            r = pf_buf_printf(to, "%%%02X", (unsigned)*text);
        else
            r = pf_buf_append(to, text, 1);
    }
    return r == 0 ? pf_buf_append(to, "\"", 1) : r;
}

static int add_head(struct pf_multipart_writer *writer, const char *name, const char *filename)
{
    struct pf_buf *text = &writer->text;
    int r = pf_buf_printf(text, "--%s\r\nContent-Disposition: form-data; name=", writer->boundary);

    if (r == 0)
        r = add_quoted(text, name);
    if (r == 0 && filename) {
        r = pf_buf_append_text(text, "; filename=");
        if (r == 0)
            r = add_quoted(text, filename);
        if (r == 0)
            r = pf_buf_append_text(text, "\r\nContent-Type: application/octet-stream");
    }
    return r == 0 ? pf_buf_append_text(text, "\r\n\r\n") : r;
}

/* A limit that was passed is no more memory, too. */
static int no_room(int r)
{
    return r < 0 ? -PINFOLD_ENOMEM : 0;
}

int pf_multipart_add_text(struct pf_multipart_writer *writer, const char *name, const char *text)
{
    size_t start = writer->text.len;
    int r = add_head(writer, name, NULL);

    if (r == 0)
        r = pf_buf_append_text(&writer->text, text);
    if (r == 0)
        r = pf_buf_append_text(&writer->text, "\r\n");
    return no_room(r < 0 ? r : end_text(writer, start));
}

int pf_multipart_add_file(struct pf_multipart_writer *writer, const char *name,
                          const char *filename, const void *data, int fd, uint64_t size)
{
    const struct pf_multipart_piece piece = { .data = data, .fd = data ? -1 : fd, .size = size };
    size_t start = writer->text.len;
    int r = add_head(writer, name, filename);

    if (r == 0)
        r = end_text(writer, start);
    if (r == 0 && size > 0)
        r = add_piece(writer, &piece);
    start = writer->text.len;
    if (r == 0)
        r = pf_buf_append_text(&writer->text, "\r\n");
    return no_room(r < 0 ? r : end_text(writer, start));
}

int pf_multipart_close(struct pf_multipart_writer *writer)
{
    size_t start = writer->text.len;
    int r = pf_buf_printf(&writer->text, "--%s--\r\n", writer->boundary);

    return no_room(r < 0 ? r : end_text(writer, start));
}

static ssize_t read_piece(const struct pf_multipart_writer *writer,
                          const struct pf_multipart_piece *piece, void *data, size_t len)
{
    uint64_t left = piece->size - writer->offset;
    ssize_t n;

    if (len > left)
        len = (size_t)left;
    if (piece->data || piece->fd < 0) {
        const char *from = piece->data ? piece->data : writer->text.data + piece->start;
        memcpy(data, from + writer->offset, len);
        return (ssize_t)len;
    }
    n = pread(piece->fd, data, len, (off_t)writer->offset);
    if (n == 0)
        errno = EIO;
    return n > 0 ? n : -PINFOLD_EOS;
}

ssize_t pf_multipart_read(void *ctx, void *data, size_t len)
{
    struct pf_multipart_writer *writer = ctx;
    size_t done = 0;

    while (done < len && writer->at < writer->count) {
        const struct pf_multipart_piece *piece = &writer->pieces[writer->at];
        ssize_t n = read_piece(writer, piece, (char *)data + done, len - done);
        if (n < 0)
            return n;
        done += (size_t)n;
        writer->offset += (uint64_t)n;
        if (writer->offset == piece->size) {
            writer->at++;
            writer->offset = 0;
        }
    }
    return (ssize_t)done;
}
