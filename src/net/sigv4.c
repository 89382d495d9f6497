/* SPDX-License-Identifier: Apache-2.0 */
#include "net/sigv4.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/strings.h"
#include "net/uri.h"

#define ALGORITHM "AWS4-HMAC-SHA256"
#define KEY_BYTES 32
#define CANONICAL_MAX ((size_t)1024 * 1024)

void pf_sigv4_date(time_t now, char ret_date[static PF_SIGV4_DATE_MAX])
{
    struct tm utc = { 0 };

    gmtime_r(&now, &utc);
    if (strftime(ret_date, PF_SIGV4_DATE_MAX, "%Y%m%dT%H%M%SZ", &utc) == 0)
        ret_date[0] = '\0'; /* a year of five digits: no service takes it */
}

/* Append the path without "." and "" segments, ".." taking the one before it along, everything
 * encoded once more. */
static int add_path(struct pf_buf *to, const char *path)
{
    size_t start = to->len;
    int r = 0;

    while (*path && r == 0) {
        size_t len;

        path += strspn(path, "/");
        len = strcspn(path, "/");
        if (len == 2 && strncmp(path, "..", 2) == 0) {
            while (to->len > start && to->data[--to->len] != '/') {
            }
        } else if (len > 0 && !(len == 1 && *path == '.')) {
            r = pf_buf_append(to, "/", 1);
            if (r == 0)
                r = pf_uri_encode(to, path, len, "");
        }
        path += len;
        if (r == 0 && *path == '/' && path[1] == '\0')
            r = pf_buf_append(to, "/", 1); /* one at the end stays */
    }
    return r == 0 && to->len == start ? pf_buf_append(to, "/", 1) : r;
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The parameters in the order of their bytes; one without '=' gets it. */
static int add_query(struct pf_buf *to, const char *query)
{
    PF_CLEANUP(pinfold_strings_done) struct pinfold_strings params = { 0 };
    int r = 0;

    for (const char *at = query ? query : ""; *at && r == 0;) {
        int len = (int)strcspn(at, "&");
        if (len > 0)
            r = pf_strings_addf(&params, "%.*s%s", len, at,
                                memchr(at, '=', (size_t)len) ? "" : "=");
        at += len;
        at += *at == '&';
    }
    if (r == 0 && params.count > 0)
        qsort(params.items, params.count, sizeof(*params.items), compare_texts);
    for (size_t i = 0; i < params.count && r == 0; i++)
        r = pf_buf_printf(to, "%s%s", i ? "&" : "", params.items[i]);
    return r;
}

static int compare_names(const void *a, const void *b)
{
    return strcasecmp((*(const struct pf_header *const *)a)->name,
                      (*(const struct pf_header *const *)b)->name);
}

static int add_lower(struct pf_buf *to, const char *name)
{
    int r = 0;

    for (; *name && r == 0; name++) {
        char c = *name >= 'A' && *name <= 'Z' ? (char)(*name | 0x20) : *name;
        r = pf_buf_append(to, &c, 1);
    }
    return r;
}

/* Runs of spaces count as one, and those around a value not at all. */
static int add_value(struct pf_buf *to, const char *value)
{
    size_t start = to->len;
    int r = 0;

    while (*value && r == 0) {
        size_t word;

        value += strspn(value, " \t");
        word = strcspn(value, " \t");
        if (word > 0 && to->len > start)
            r = pf_buf_append(to, " ", 1);
        if (r == 0)
            r = pf_buf_append(to, value, word);
        value += word;
    }
    return r;
}

/* Returns the request's headers in order of their names, or NULL. */
static const struct pf_header **sorted_headers(const struct pf_sigv4_request *request)
{
    const struct pf_header **sorted = calloc(request->header_count + 1, sizeof(struct pf_header *));

    if (!sorted)
        return NULL;
    for (size_t i = 0; i < request->header_count; i++)
        sorted[i] = &request->headers[i];
    qsort(sorted, request->header_count, sizeof(struct pf_header *), compare_names);
    return sorted;
}

static int add_names(struct pf_buf *to, const struct pf_header *const *headers)
{
    int r = 0;

    for (size_t i = 0; headers[i] && r == 0; i++) {
        if (i > 0)
            r = pf_buf_append(to, ";", 1);
        if (r == 0)
            r = add_lower(to, headers[i]->name);
    }
    return r;
}

static int add_headers(struct pf_buf *to, const struct pf_header *const *headers)
{
    int r = 0;

    for (size_t i = 0; headers[i] && r == 0; i++) {
        r = add_lower(to, headers[i]->name);
        if (r == 0)
            r = pf_buf_append(to, ":", 1);
        if (r == 0)
            r = add_value(to, headers[i]->value);
        if (r == 0)
            r = pf_buf_append(to, "\n", 1);
    }
    return r;
}

static int canonical(const struct pf_sigv4_request *request, const struct pf_header *const *headers,
                     struct pf_buf *to)
{
    int r = pf_buf_printf(to, "%s\n", request->method);

    if (r == 0)
        r = request->plain_path ? pf_buf_append_text(to, request->path)
                                : add_path(to, request->path);
    if (r == 0)
        r = pf_buf_append(to, "\n", 1);
    if (r == 0)
        r = add_query(to, request->query);
    if (r == 0)
        r = pf_buf_append(to, "\n", 1);
    if (r == 0)
        r = add_headers(to, headers);
    if (r == 0)
        r = pf_buf_append(to, "\n", 1);
    if (r == 0)
        r = add_names(to, headers);
    return r < 0 ? r : pf_buf_printf(to, "\n%s", request->payload_hash);
}

int pf_sigv4_canonical(const struct pf_sigv4_request *request, struct pf_buf *ret)
{
    _cleanup_free_ const struct pf_header **headers = sorted_headers(request);

    return headers ? canonical(request, headers, ret) : -PINFOLD_ENOMEM;
}

/* key and ret_key may be the same. */
static int hmac(const unsigned char *key, size_t key_len, const char *text,
                unsigned char ret_key[static KEY_BYTES])
{
    unsigned char out[EVP_MAX_MD_SIZE];
    unsigned int len = 0;
    const unsigned char *done =
            HMAC(EVP_sha256(), key, (int)key_len, (const void *)text, strlen(text), out, &len);

    if (done && len == KEY_BYTES)
        memcpy(ret_key, out, KEY_BYTES);
    OPENSSL_cleanse(out, sizeof(out));
    return done && len == KEY_BYTES ? 0 : -PINFOLD_ENOMEM; /* all that can fail is memory */
}

/* The key that signs for one day, region and service, derived from the secret one. */
static int derive_key(const struct pf_sigv4_request *request, const char *secret,
                      unsigned char ret_key[static KEY_BYTES])
{
    const char day[] = { request->date[0], request->date[1], request->date[2],
                         request->date[3], request->date[4], request->date[5],
                         request->date[6], request->date[7], '\0' };
    const char *const parts[] = { request->region, request->service, "aws4_request" };
    size_t len = strlen(secret);
    char *start = malloc(len + 5);
    int r;

    if (!start)
        return -PINFOLD_ENOMEM;
    memcpy(start, "AWS4", sizeof("AWS4"));
    memcpy(start + 4, secret, len + 1);
    r = hmac((const unsigned char *)start, len + 4, day, ret_key);
    OPENSSL_cleanse(start, len + 5);
    free(start);
    for (size_t i = 0; i < PF_COUNT(parts) && r == 0; i++)
        r = hmac(ret_key, KEY_BYTES, parts[i], ret_key);
    return r;
}

/* Sign the canonical request of canonical->data. */
static int sign(const struct pf_sigv4_request *request, const char *secret, const char *scope,
                const struct pf_buf *text, char ret_hex[static 2 * KEY_BYTES + 1])
{
    static const char digits[] = "0123456789abcdef";
    PF_CLEANUP(pf_buf_done) struct pf_buf to_sign = PF_BUF_INIT(4096);
    unsigned char key[KEY_BYTES] = { 0 };
    char hash[PF_SHA256_HEX + 1];
    int r;

    pf_sha256_hex(text->data, text->len, hash);
    r = pf_buf_printf(&to_sign, ALGORITHM "\n%s\n%s\n%s", request->date, scope, hash);
    if (r == 0)
        r = derive_key(request, secret, key);
    if (r == 0)
        r = hmac(key, KEY_BYTES, to_sign.data, key); /* key is the signature now */
    for (size_t i = 0; i < KEY_BYTES; i++) {
        ret_hex[2 * i] = digits[key[i] >> 4];
        ret_hex[2 * i + 1] = digits[key[i] & 15];
    }
    ret_hex[PF_SHA256_HEX] = '\0';
    OPENSSL_cleanse(key, sizeof(key));
    return r;
}

/* The text holds the session token, a secret too. It was given all its room at once, so that
 * growing has left no copy. */
static void wipe(struct pf_buf *text)
{
    if (text->data)
        OPENSSL_cleanse(text->data, text->len);
    pf_buf_done(text);
}

static int reserve_all(const struct pf_sigv4_request *request, struct pf_buf *text)
{
    size_t room =
            3 * strlen(request->path) + 2 * strlen(request->query ? request->query : "") + 256;

    for (size_t i = 0; i < request->header_count; i++)
        room += 2 * strlen(request->headers[i].name) + strlen(request->headers[i].value) + 4;
    return pf_buf_reserve(text, room);
}

int pf_sigv4_sign(const struct pf_sigv4_request *request, const struct pf_aws_keys *keys,
                  struct pf_buf *ret_authorization, struct pinfold_error *err)
{
    _cleanup_free_ const struct pf_header **headers = sorted_headers(request);
    PF_CLEANUP(wipe) struct pf_buf text = PF_BUF_INIT(CANONICAL_MAX);
    PF_CLEANUP(pf_buf_done) struct pf_buf scope = PF_BUF_INIT(1024);
    char signature[2 * KEY_BYTES + 1];
    int r = headers ? reserve_all(request, &text) : -PINFOLD_ENOMEM;

    if (r == 0)
        r = canonical(request, headers, &text);
    if (r == 0)
        r = pf_buf_printf(&scope, "%.8s/%s/%s/aws4_request", request->date, request->region,
                          request->service);
    if (r == 0)
        r = sign(request, keys->secret_key, scope.data, &text, signature);
    if (r == 0)
        r = pf_buf_printf(ret_authorization,
                          ALGORITHM " Credential=%s/%s, SignedHeaders=", keys->access_key,
                          scope.data);
    if (r == 0)
        r = add_names(ret_authorization, headers);
    if (r == 0)
        r = pf_buf_printf(ret_authorization, ", Signature=%s", signature);
    if (r == -PINFOLD_ENOMEM)
        return pf_fail_nomem(err);
    return r < 0 ? pf_fail(err, PINFOLD_EVALUE, "sign a request: it is too large") : 0;
}
