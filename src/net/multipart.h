/* SPDX-License-Identifier: Apache-2.0 */
/*
 * multipart/form-data in both directions, in memory that does not grow with the files: a writer
 * that knows its length before it begins, and a reader that takes its input in pieces of any size.
 */
#ifndef PF_NET_MULTIPART_H
#define PF_NET_MULTIPART_H

#include <pinfold/error.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"

/* ---- writing ---- */

enum { PF_BOUNDARY_MAX = 64 };

struct pf_multipart_piece;

struct pf_multipart_writer {
    char boundary[PF_BOUNDARY_MAX];
    struct pf_buf text; /* all headers and fields behind each other */
    struct pf_multipart_piece *pieces;
    size_t count, capacity;
    uint64_t total; /* of the whole body */
    size_t at;      /* the piece that is being read, and how much of it has been */
    uint64_t offset;
};

void pf_multipart_writer_init(struct pf_multipart_writer *writer);
void pf_multipart_writer_done(struct pf_multipart_writer *writer);

/* Add a field of text. Returns 0 or -PINFOLD_ENOMEM, as do the next two. */
int pf_multipart_add_text(struct pf_multipart_writer *writer, const char *name, const char *text);

/* Add a file: size bytes at data, or, when data is NULL, of a descriptor from its start. Both are
 * borrowed until the writer is done with. */
int pf_multipart_add_file(struct pf_multipart_writer *writer, const char *name,
                          const char *filename, const void *data, int fd, uint64_t size);

/* The end; then total is known, and the body can be read. */
int pf_multipart_close(struct pf_multipart_writer *writer);

/* Give the next bytes: a pf_http_read_fn. Fails with -PINFOLD_EOS, errno set, when a file cannot be
 * read, or has become shorter than was said (EIO). */
ssize_t pf_multipart_read(void *writer, void *data, size_t len);

/* ---- reading ---- */

/* The head of one part. Text is valid until the callback returns. */
struct pf_multipart_part {
    const char *name;     /* "" when there is none */
    const char *filename; /* from filename* when it is there, else from filename; NULL: neither */
    const char *type;     /* "" when there is none */
    int64_t length;       /* what the part's Content-Length says; -1: nothing */
};

/* Each returns 0, or a negative code, which pf_multipart_feed() returns. */
struct pf_multipart_handler {
    int (*begin)(void *ctx, const struct pf_multipart_part *part, struct pinfold_error *err);
    int (*data)(void *ctx, const void *data, size_t len, struct pinfold_error *err);
    int (*end)(void *ctx, struct pinfold_error *err);
    void *ctx;
};

struct pf_multipart_parser {
    struct pf_multipart_handler handler;
    char delimiter[PF_BOUNDARY_MAX + 80]; /* CR LF - - boundary */
    size_t delimiter_len;
    int state;
    size_t matched; /* bytes of the delimiter that have been seen */
    bool counted;   /* the part said its length */
    int64_t left;   /* of it */
    struct pf_buf head;
};

/* Begin, with the value of a Content-Type header. Returns 0 or -PINFOLD_EBACKEND (it is no
 * multipart type with a boundary of 1 to 70 characters). */
int pf_multipart_parser_init(struct pf_multipart_parser *parser, const char *content_type,
                             const struct pf_multipart_handler *handler, struct pinfold_error *err);
void pf_multipart_parser_done(struct pf_multipart_parser *parser);

/* Take a piece. Returns 0, -PINFOLD_EBACKEND (it is not multipart, or a part is not as long as it
 * said), -PINFOLD_ENOMEM, or what the handler returned; nothing may be fed after a failure. */
int pf_multipart_feed(struct pf_multipart_parser *parser, const void *data, size_t len,
                      struct pinfold_error *err);

/* The input is over. Returns 0, or -PINFOLD_EBACKEND when the last boundary has not come. */
int pf_multipart_finish(struct pf_multipart_parser *parser, struct pinfold_error *err);

#endif
