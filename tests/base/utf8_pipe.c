/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decodes records from stdin to stdout, for comparison with another decoder. A record is a 16 bit
 * length (little endian) and as many bytes. The answer is a 16 bit length and the decoded text,
 * then a 16 bit offset of the first byte that is not UTF-8 (0xffff: all is).
 *
 * Each record is decoded whole, in two pieces at every split, and byte by byte. When one of these
 * gives something else than the whole, the answer is that one, so that the comparison fails.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

struct text {
    char data[3 * 65536];
    size_t len;
};

static bool collect(void *ctx, const char *data, size_t len)
{
    struct text *text = ctx;

    if (len > sizeof(text->data) - text->len)
        return false;
    memcpy(text->data + text->len, data, len);
    text->len += len;
    return true;
}

/* Decode in pieces of first bytes and then of step bytes. */
static bool decode(const char *data, size_t len, size_t first, size_t step, struct text *text)
{
    struct pf_utf8 state = { 0 };
    size_t size = first;

    text->len = 0;
    for (size_t at = 0; at < len; at += size, size = step) {
        if (size > len - at)
            size = len - at;
        if (!pf_utf8_decode(&state, data + at, size, collect, text))
            return false;
    }
    return pf_utf8_finish(&state, collect, text);
}

static bool put_u16(size_t value)
{
    return putchar((int)(value & 0xff)) != EOF && putchar((int)(value >> 8)) != EOF;
}

static bool answer(const char *data, size_t len)
{
    static struct text whole, split;
    const struct text *say = &whole;
    size_t bad = 0xffff;

    if (!decode(data, len, len, len, &whole))
        return false;
    for (size_t first = 0; first <= len && say == &whole; first++) {
        size_t step = first == 0 ? 1 : len; /* 0 stands for: byte by byte */
        if (!decode(data, len, first ? first : 1, step, &split))
            return false;
        if (split.len != whole.len || memcmp(split.data, whole.data, whole.len) != 0)
            say = &split;
    }
    pf_utf8_valid(data, len, &bad);
    return put_u16(say->len) && fwrite(say->data, 1, say->len, stdout) == say->len && put_u16(bad);
}

int main(void)
{
    static char data[20000];
    unsigned char head[2];

    while (fread(head, 1, 2, stdin) == 2) {
        size_t len = (size_t)(head[0] | head[1] << 8);
        if (len > sizeof(data) || fread(data, 1, len, stdin) != len || !answer(data, len))
            return 1;
    }
    return fflush(stdout) == 0 ? 0 : 1;
}
