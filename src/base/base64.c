/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base64.h"

#include <stdint.h>
#include <string.h>

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

int pf_base64_encode(const void *data, size_t len, struct pf_buf *to)
{
    const unsigned char *in = data;
    int r = pf_buf_reserve(to, (len + 2) / 3 * 4);
    char *out;

    if (r < 0)
        return r;
    out = to->data + to->len;
    for (size_t at = 0; at < len; at += 3) {
        size_t left = len - at;
        uint32_t three = (uint32_t)in[at] << 16 | (left > 1 ? (uint32_t)in[at + 1] << 8 : 0) |
                         (left > 2 ? in[at + 2] : 0);
        *out++ = digits[three >> 18];
        *out++ = digits[three >> 12 & 63];
        *out++ = left > 1 ? digits[three >> 6 & 63] : '=';
        *out++ = left > 2 ? digits[three & 63] : '=';
    }
    *out = '\0';
    to->len = (size_t)(out - to->data);
    return 0;
}

static int value_of(char c)
{
    const char *at = c ? memchr(digits, c, sizeof(digits) - 1) : NULL;

    return at ? (int)(at - digits) : -1;
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

int pf_base64_decode(const char *text, size_t len, struct pf_buf *to)
{
    int8_t values[256];
    uint32_t four = 0;
    unsigned have = 0, padding = 0;
    int r = pf_buf_reserve(to, len / 4 * 3 + 3);
    char *out;

    if (r < 0)
        return r;
    for (int c = 0; c < 256; c++)
        values[c] = (int8_t)value_of((char)c);
    out = to->data + to->len;
    for (size_t i = 0; i < len; i++) {
        int value = values[(unsigned char)text[i]];
        if (is_space(text[i]))
            continue;
        if (text[i] == '=' && have >= 2 && have + padding < 4) {
            padding++;
            continue;
        }
        if (value < 0 || padding > 0)
            return -PINFOLD_EVALUE;
        four = four << 6 | (uint32_t)value;
        if (++have == 4) {
            *out++ = (char)(four >> 16);
            *out++ = (char)(four >> 8);
            *out++ = (char)four;
            have = 0;
        }
    }
    if (have == 1 || (have > 0 && have + padding != 4))
        return -PINFOLD_EVALUE;
    if (have > 1)
        *out++ = (char)(four >> (have == 2 ? 4 : 10));
    if (have == 3)
        *out++ = (char)(four >> 2);
    *out = '\0';
    to->len = (size_t)(out - to->data);
    return 0;
}
