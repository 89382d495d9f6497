/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes on their way to a person or a program: decoded in pieces they are what they are in one, and
 * valid; a terminal gets nothing that it could obey. The first byte chooses the pieces.
 */
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/utf8.h"
#include "cli/say.h"
#include "fuzz.h"

static bool append(void *ctx, const char *text, size_t len)
{
    demand(len > 0 && pf_utf8_valid(text, len, NULL));
    return pf_buf_append(ctx, text, len) == 0;
}

static void decode(const char *data, size_t size, size_t piece, struct pf_buf *to)
{
    struct pf_utf8 state = { 0 };

    for (size_t at = 0; at < size; at += piece)
        demand(pf_utf8_decode(&state, data + at, size - at < piece ? size - at : piece, append,
                              to));
    demand(pf_utf8_finish(&state, append, to));
}

static void fuzz_decoder(const char *data, size_t size, size_t piece)
{
    PF_CLEANUP(pf_buf_done) struct pf_buf whole = PF_BUF_INIT(PF_BUF_UNLIMITED);
    PF_CLEANUP(pf_buf_done) struct pf_buf parts = PF_BUF_INIT(PF_BUF_UNLIMITED);
    size_t bad = size;
    bool valid = pf_utf8_valid(data, size, &bad);

    decode(data, size, size + 1, &whole);
    decode(data, size, piece, &parts);
    demand(whole.len == parts.len &&
           (whole.len == 0 || memcmp(whole.data, parts.data, whole.len) == 0));
    demand(bad <= size && pf_utf8_valid(data, bad, NULL));
    demand(valid == (bad == size && whole.len == size &&
                     (size == 0 || memcmp(whole.data, data, size) == 0)));
    for (size_t cut = 0; valid && cut <= size; cut++) {
        size_t floor = pf_utf8_floor(data, cut);
        demand(floor <= cut && cut - floor < 4 && pf_utf8_valid(data, floor, NULL));
    }
}

static void check_safe(const char *text, size_t len)
{
    demand(strlen(text) == len && pf_utf8_valid(text, len, NULL));
    for (size_t i = 0; i < len; i++)
        demand((unsigned char)text[i] >= 0x20 && text[i] != 0x7f);
    /* The controls of C1 are two bytes. */
    for (size_t i = 1; i < len; i++)
        demand(text[i - 1] != '\xc2' || (unsigned char)text[i] >= 0xa0);
}

static void fuzz_quoting(const char *text)
{
    char buffer[PF_QUOTE_MAX];
    _cleanup_free_ char *escaped = pf_escape(text), *printable = pf_printable(text);

    demand(escaped && printable);
    check_safe(escaped, strlen(escaped));
    check_safe(printable, strlen(printable));
    demand(pf_quote(text, buffer) == buffer && strlen(buffer) < PF_QUOTE_MAX);
    check_safe(buffer, strlen(buffer));
    demand(strlen(escaped) >= PF_QUOTE_MAX || strcmp(buffer, escaped) == 0);
    for (const char *at = printable; *at; at += pf_printable_char(at))
        demand(pf_printable_char(at) > 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    _cleanup_free_ char *text = NULL;

    if (size == 0)
        return 0;
    text = copy_text(data + 1, size - 1);
    fuzz_decoder(text, size - 1, 1 + data[0] % 8);
    fuzz_quoting(text);
    return 0;
}
