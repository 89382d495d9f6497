/* SPDX-License-Identifier: Apache-2.0 */
/*
 * UTF-8: validation, and decoding of a byte stream that arrives in pieces. What is replaced, and by
 * how many U+FFFD, is what the Unicode standard recommends and Python's errors="replace" does: one
 * for each maximal part of a broken character.
 */
#ifndef PF_BASE_UTF8_H
#define PF_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* The width in bytes of the character at text (len > 0 bytes are there): 1 to 4; 0 when it is
 * broken or cut short. */
size_t pf_utf8_width(const char *text, size_t len);

/* The largest n <= len that does not end inside a character of a valid text. */
size_t pf_utf8_floor(const char *text, size_t len);

/* Whether all of text is valid UTF-8; ret_bad, may be NULL, receives the offset of the first
 * byte that is not. */
bool pf_utf8_valid(const char *text, size_t len, size_t *ret_bad);

/* Decoder state: the bytes of a character that has not arrived whole. Zero-initialised. */
struct pf_utf8 {
    char partial[4];
    unsigned partial_len;
};

/* Receives valid UTF-8; returns false to stop. */
typedef bool (*pf_utf8_sink)(void *ctx, const char *text, size_t len);

/* Decode the next piece. Returns false when the sink stopped; the rest of the piece is lost. */
bool pf_utf8_decode(struct pf_utf8 *state, const char *data, size_t len, pf_utf8_sink sink,
                    void *ctx);

/* The stream is over: a character cut short becomes one U+FFFD. */
bool pf_utf8_finish(struct pf_utf8 *state, pf_utf8_sink sink, void *ctx);

#endif
