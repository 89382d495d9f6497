/* SPDX-License-Identifier: Apache-2.0 */
#include "base/utf8.h"

#include <stdint.h>
#include <string.h>

static const char replacement[] = "\xef\xbf\xbd"; /* U+FFFD */

/* The length of the valid prefix of one character, and in *need how long a whole one would be
 * (0 when the first byte cannot start one). Follows table 3-7 of the Unicode standard: only the
 * second byte has ranges of its own. */
static size_t scan(const char *text, size_t len, size_t *need)
{
    unsigned char first = (unsigned char)text[0];
    unsigned char low = 0x80, high = 0xbf;
    size_t have = 1;

    *need = first < 0x80 ? 1 : first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    if (first > 0xf4)
        *need = 0;
    if (first == 0xe0)
        low = 0xa0; /* overlong */
    else if (first == 0xed)
        high = 0x9f; /* surrogates */
    else if (first == 0xf0)
        low = 0x90; /* overlong */
    else if (first == 0xf4)
        high = 0x8f; /* above U+10FFFF */
    while (have < *need && have < len) {
        unsigned char next = (unsigned char)text[have];
        if (next < low || next > high)
            break;
        low = 0x80;
        high = 0xbf;
        have++;
    }
    return have;
}

size_t pf_utf8_width(const char *text, size_t len)
{
    size_t need, have = scan(text, len, &need);

    return have == need ? need : 0;
}

size_t pf_utf8_floor(const char *text, size_t len)
{
    size_t need, back = len < 4 ? len : 4;

    for (size_t i = 1; i <= back; i++) {
        unsigned char byte = (unsigned char)text[len - i];
        if ((byte & 0xc0) == 0x80)
            continue;
        scan(text + len - i, i, &need);
        return need > i ? len - i : len;
    }
    return len;
}

/* How many leading bytes are ASCII, eight at a time. */
static size_t ascii_run(const char *text, size_t len)
{
    size_t at = 0;
    uint64_t word;

    for (; at + sizeof(word) <= len; at += sizeof(word)) {
        memcpy(&word, text + at, sizeof(word));
        if (word & UINT64_C(0x8080808080808080))
            break;
    }
    while (at < len && (unsigned char)text[at] < 0x80)
        at++;
    return at;
}

/* How many leading bytes are whole valid characters. */
static size_t valid_run(const char *text, size_t len)
{
    size_t at = 0, width;

    while (at < len) {
        at += ascii_run(text + at, len - at);
        if (at == len || (width = pf_utf8_width(text + at, len - at)) == 0)
            break;
        at += width;
    }
    return at;
}

bool pf_utf8_valid(const char *text, size_t len, size_t *ret_bad)
{
    size_t at = valid_run(text, len);

    if (at < len && ret_bad)
        *ret_bad = at;
    return at == len;
}

static bool emit_replacement(pf_utf8_sink sink, void *ctx)
{
    return sink(ctx, replacement, sizeof(replacement) - 1);
}

/* Complete the character that the last piece left unfinished. Returns how many bytes of data that
 * took, and in *go whether to go on. */
static size_t finish_partial(struct pf_utf8 *state, const char *data, size_t len, pf_utf8_sink sink,
                             void *ctx, bool *go)
{
    size_t used = 0, need, have;

    *go = true;
    while (state->partial_len > 0 && used < len) {
        state->partial[state->partial_len] = data[used];
        have = scan(state->partial, state->partial_len + 1, &need);
        if (have <= state->partial_len) { /* this byte does not continue it */
            state->partial_len = 0;
            *go = emit_replacement(sink, ctx);
            break;
        }
        used++;
        state->partial_len++;
        if (have == need) {
            state->partial_len = 0;
            *go = sink(ctx, state->partial, need);
        }
    }
    return used;
}

bool pf_utf8_decode(struct pf_utf8 *state, const char *data, size_t len, pf_utf8_sink sink,
                    void *ctx)
{
    bool go;
    size_t at = finish_partial(state, data, len, sink, ctx, &go);

    while (go && at < len) {
        size_t need, have, run = valid_run(data + at, len - at);
        if (run > 0 && !sink(ctx, data + at, run))
            return false;
        at += run;
        if (at == len)
            break;
        have = scan(data + at, len - at, &need);
        if (at + have == len && have < need) { /* cut by the end of the piece */
            memcpy(state->partial, data + at, have);
            state->partial_len = (unsigned)have;
            break;
        }
        go = emit_replacement(sink, ctx);
        at += have;
    }
    return go;
}

bool pf_utf8_finish(struct pf_utf8 *state, pf_utf8_sink sink, void *ctx)
{
    if (state->partial_len == 0)
        return true;
    state->partial_len = 0;
    return emit_replacement(sink, ctx);
}
