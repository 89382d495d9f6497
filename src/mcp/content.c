/* SPDX-License-Identifier: Apache-2.0 */
#include "mcp/content.h"

#include <stdlib.h>
#include <string.h>

json_t *pf_mcp_base64(const void *data, size_t len)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const unsigned char *in = data;
    size_t size = (len + 2) / 3 * 4;
    char *text = malloc(size + 1), *out = text;
    json_t *value;

    if (!text)
        return NULL;
    for (size_t i = 0; i < len; i += 3) {
        unsigned second = i + 1 < len ? in[i + 1] : 0, third = i + 2 < len ? in[i + 2] : 0;
        unsigned group = (unsigned)in[i] << 16 | second << 8 | third;

        *out++ = digits[group >> 18];
        *out++ = digits[group >> 12 & 63];
        *out++ = i + 1 < len ? digits[group >> 6 & 63] : '=';
        *out++ = i + 2 < len ? digits[group & 63] : '=';
    }
    value = json_stringn_nocheck(text, size);
    free(text);
    return value;
}

const char *pf_mcp_image_type(const struct pinfold_bytes *bytes)
{
    static const struct {
        const char *start;
        size_t len;
        const char *type;
    } kinds[] = {
        { "\x89PNG\r\n\x1a\n", 8, "image/png" },
        { "\xff\xd8\xff", 3, "image/jpeg" },
        { "GIF87a", 6, "image/gif" },
        { "GIF89a", 6, "image/gif" },
    };

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (bytes->len > kinds[i].len && memcmp(bytes->data, kinds[i].start, kinds[i].len) == 0)
            return kinds[i].type;
    if (bytes->len > 12 && memcmp(bytes->data, "RIFF", 4) == 0 &&
        memcmp(bytes->data + 8, "WEBP", 4) == 0)
        return "image/webp";
    return NULL;
}

/* What a URI may have as it is, of RFC 3986: the unreserved characters, and the slash. */
static bool is_plain(char byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
           (byte >= '0' && byte <= '9') || (byte && strchr("-._~/", byte));
}

json_t *pf_mcp_uri(const char *path)
{
    static const char hex[] = "0123456789ABCDEF";
    size_t len = strlen(PF_MCP_FILE_URI);
    char *text = malloc(len + 3 * strlen(path) + 1), *out = text;
    json_t *value;

    if (!text)
        return NULL;
    memcpy(out, PF_MCP_FILE_URI, len);
    out += len;
    for (const char *in = path; *in; in++) {
        if (is_plain(*in)) {
            *out++ = *in;
        } else {
            *out++ = '%';
            *out++ = hex[(unsigned char)*in >> 4];
            *out++ = hex[*in & 15];
        }
    }
    value = json_stringn_nocheck(text, (size_t)(out - text));
    free(text);
    return value;
}

static int from_hex(char digit)
{
    static const char digits[] = "0123456789abcdef";
    const char *at = digit ? strchr(digits, digit | 0x20) : NULL;

    return at ? (int)(at - digits) : -1;
}

char *pf_mcp_decode(const char *text)
{
    char *path = malloc(strlen(text) + 1), *out = path;

    for (const char *in = text; path && *in; in++) {
        int high = *in == '%' ? from_hex(in[1]) : -1, low = high < 0 ? -1 : from_hex(in[2]);

        if (*in == '%' && (low < 0 || (high == 0 && low == 0))) {
            free(path);
            return NULL;
        }
        *out++ = *in == '%' ? (char)(high << 4 | low) : *in;
        in += *in == '%' ? 2 : 0;
    }
    if (path)
        *out = '\0';
    return path;
}

int pf_mcp_read_whole(struct pinfold_sandbox *sandbox, const char *path, struct pinfold_bytes *ret,
                      bool *ret_text, struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    __attribute__((
            cleanup(pinfold_transfer_results_done))) struct pinfold_transfer_results got = { 0 };
    struct pinfold_download what = { .path = path };
    int r = pinfold_sandbox_read_file(sandbox, path, ret, cancel, err);

    *ret_text = r == 0;
    if (r != -PINFOLD_EENCODING)
        return r;
    r = pinfold_sandbox_download_files(sandbox, &what, 1, true, &got, cancel, err);
    if (r == 0) {
        *ret = got.items[0].content;
        got.items[0].content = (struct pinfold_bytes){ 0 };
    }
    return r;
}
