/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reader of multipart replies. However its input is cut into pieces, it must say the same; and
 * what the writer wrote of the input, it must give back. The first byte chooses the pieces.
 */
#include <stdio.h>

#include "net/multipart.h"
#include "fuzz.h"

/* All that the reader says, behind each other. */
struct heard {
    struct pf_buf text;
    int open;
};

static int begin(void *ctx, const struct pf_multipart_part *part, struct pinfold_error *err)
{
    struct heard *heard = ctx;

    (void)err;
    demand(!heard->open && part->name && part->type && part->length >= -1);
    heard->open = 1;
    return pf_buf_printf(&heard->text, "<%s|%s|%s|%lld>", part->name,
                         part->filename ? part->filename : "", part->type, (long long)part->length);
}

static int take(void *ctx, const void *data, size_t len, struct pinfold_error *err)
{
    struct heard *heard = ctx;

    (void)err;
    demand(heard->open && len > 0);
    return pf_buf_append(&heard->text, data, len);
}

static int end(void *ctx, struct pinfold_error *err)
{
    struct heard *heard = ctx;

    (void)err;
    demand(heard->open);
    heard->open = 0;
    return pf_buf_append(&heard->text, "</>", 3);
}

static int parse(const uint8_t *data, size_t size, size_t piece, struct heard *heard)
{
    const struct pf_multipart_handler handler = { begin, take, end, heard };
    struct pf_multipart_parser parser;
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    int r = pf_multipart_parser_init(&parser, "multipart/form-data; boundary=B-B", &handler, &err);

    demand(r == 0);
    *heard = (struct heard){ .text = PF_BUF_INIT(PF_BUF_UNLIMITED) };
    for (size_t at = 0; r == 0 && at < size; at += piece)
        r = pf_multipart_feed(&parser, data + at, size - at < piece ? size - at : piece, &err);
    if (r == 0)
        r = pf_multipart_finish(&parser, &err);
    demand(r == 0 ? err.code == 0 && !heard->open : err.code == -r && err.msg[0]);
    pf_multipart_parser_done(&parser);
    return r;
}

static void fuzz_reader(const uint8_t *data, size_t size, size_t piece)
{
    struct heard whole, cut;
    int r = parse(data, size, size + 1, &whole);

    demand(parse(data, size, piece, &cut) == r);
    /* After a failure less may have been given when the pieces were large. */
    if (r == 0)
        demand(whole.text.len == cut.text.len &&
               (whole.text.len == 0 || memcmp(whole.text.data, cut.text.data, cut.text.len) == 0));
    pf_buf_done(&whole.text);
    pf_buf_done(&cut.text);
}

static void fuzz_writer(const uint8_t *data, size_t size, size_t piece)
{
    struct pf_multipart_writer writer;
    struct pf_buf body = PF_BUF_INIT(PF_BUF_UNLIMITED);
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    struct heard heard = { .text = PF_BUF_INIT(PF_BUF_UNLIMITED) };
    const struct pf_multipart_handler handler = { begin, take, end, &heard };
    struct pf_multipart_parser parser;
    char type[128], block[256];
    ssize_t n;

    pf_multipart_writer_init(&writer);
    demand(pf_multipart_add_text(&writer, "p", "text") == 0 &&
           pf_multipart_add_file(&writer, "f", "a", data ? data : (const uint8_t *)"", -1, size) ==
                   0 &&
           pf_multipart_close(&writer) == 0);
    while ((n = pf_multipart_read(&writer, block, piece)) > 0)
        demand(pf_buf_append(&body, block, (size_t)n) == 0);
    demand(n == 0 && body.len == writer.total);
    snprintf(type, sizeof(type), "multipart/form-data; boundary=%s", writer.boundary);
    demand(pf_multipart_parser_init(&parser, type, &handler, &err) == 0);
    demand(pf_multipart_feed(&parser, body.data, body.len, &err) == 0);
    demand(pf_multipart_finish(&parser, &err) == 0);
    demand(heard.text.len == size + strlen("<p|||-1>text</><f|a|application/octet-stream|-1></>"));
    demand(size == 0 || memcmp(heard.text.data + heard.text.len - 3 - size, data, size) == 0);
    pf_multipart_parser_done(&parser);
    pf_multipart_writer_done(&writer);
    pf_buf_done(&body);
    pf_buf_done(&heard.text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    fuzz_reader(data + 1, size - 1, (size_t)(data[0] % 64) + 1);
    fuzz_writer(data + 1, size - 1, (size_t)data[0] + 1);
    return 0;
}
