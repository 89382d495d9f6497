/* SPDX-License-Identifier: Apache-2.0 */
#include "net/s3.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/strings.h"
#include "base/utf8.h"
#include "net/aws_sources.h"
#include "net/sigv4.h"
#include "net/uri.h"

struct pf_s3 {
    struct pf_http *http;
    struct pf_aws_provider *provider;
    struct pf_aws_options none; /* an ask wants some; the provider has the real ones */
    char *bucket;
    char *scheme, *host, *path; /* "https://", "BUCKET.s3...", "" or "/base" or "/base/BUCKET" */
    char region[PF_AWS_REGION_MAX];
    bool near;
    int attempts;
    int64_t timeout_ns;
};

/* One object, and what becomes of it. */
struct operation {
    struct pf_s3 *s3;
    const char *method, *what; /* what: "put" or "get", for messages */
    const char *key;
    const void *body;
    size_t len;
    const char *content_type; /* NULL: none */
    int64_t deadline;
    struct pinfold_cancel *cancel;
    struct pf_aws_credentials credentials;
    struct pf_aws_reply reply;
};

/* ---- sending ---- */

static int make_path(const struct operation *op, struct pf_buf *path)
{
    int r = pf_buf_printf(path, "%s/", op->s3->path);

    return r < 0 ? r : pf_uri_encode(path, op->key, strlen(op->key), "/");
}

/* Headers of a request; those before host are sent, and all are signed. */
struct headers {
    struct pf_header list[8];
    size_t count;
};

static void add_header(struct headers *headers, const char *name, const char *value)
{
    if (value)
        headers->list[headers->count++] = (struct pf_header){ name, value };
}

static int sign(const struct operation *op, struct pf_sigv4_request *to_sign,
                struct headers *headers, struct pf_buf *authorization, struct pinfold_error *err)
{
    const struct pf_aws_keys keys = { op->credentials.access_key, op->credentials.secret_key,
                                      op->credentials.session_token };
    int r;

    pf_sigv4_date(time(NULL), to_sign->date);
    pf_sha256_hex(op->body ? op->body : "", op->len, to_sign->payload_hash);
    add_header(headers, "content-type", op->content_type);
    add_header(headers, "x-amz-date", to_sign->date);
    add_header(headers, "x-amz-content-sha256", to_sign->payload_hash);
    add_header(headers, "x-amz-security-token", op->credentials.session_token);
    add_header(headers, "host", op->s3->host);
    to_sign->headers = headers->list;
    to_sign->header_count = headers->count;
    r = pf_sigv4_sign(to_sign, &keys, authorization, err);
    headers->count--; /* libcurl writes the host itself */
    add_header(headers, "authorization", authorization->data);
    return r;
}

/* A signature is good for 15 minutes, and so for all the attempts. */
static int send_signed(struct operation *op, struct pinfold_error *err)
{
    PF_CLEANUP(pf_buf_done) struct pf_buf path = PF_BUF_INIT(4 * PF_S3_KEY_MAX + 1024);
    PF_CLEANUP(pf_buf_done) struct pf_buf authorization = PF_BUF_INIT(16384);
    _cleanup_free_ char *url = NULL;
    const struct pf_s3 *s3 = op->s3;
    struct headers headers = { .count = 0 };
    struct pf_sigv4_request to_sign = {
        .method = op->method, .plain_path = true, .region = s3->region, .service = "s3"
    };
    const struct pf_aws_ask ask = {
        .options = &s3->none, .http = s3->http, .deadline = op->deadline, .cancel = op->cancel
    };
    int r = make_path(op, &path);

    if (r < 0 || asprintf(&url, "%s%s%s", s3->scheme, s3->host, path.data) < 0) {
        url = NULL;
        return pf_fail_nomem(err);
    }
    to_sign.path = path.data;
    r = sign(op, &to_sign, &headers, &authorization, err);
    if (r < 0)
        return r;
    const struct pf_aws_call call = {
        .what = op->what,
        .method = op->method,
        .url = url,
        .headers = headers.list,
        .header_count = headers.count,
        .body = op->body,
        .body_len = op->len,
        .attempts = s3->attempts,
        .timeout_ns = s3->timeout_ns,
        .near = s3->near,
        .reply_max = PF_S3_OBJECT_MAX,
    };
    return pf_aws_send(&ask, &call, &op->reply, err);
}

/* ---- what a refusal says ---- */

struct trouble {
    char code[64], message[160], region[PF_AWS_REGION_MAX];
};

static void copy_text(const struct operation *op, char *to, size_t size, char *text)
{
    size_t len;

    pf_text_hide(text, op->credentials.session_token);
    pf_text_hide(text, op->credentials.secret_key);
    len = text ? strlen(text) : 0;
    if (len >= size)
        len = pf_utf8_floor(text, size - 1);
    if (len > 0)
        memcpy(to, text, len);
    to[len] = '\0';
}

/* The body is overwritten. One that is no XML, as of a proxy, says nothing. */
static void read_trouble(struct operation *op, struct trouble *ret)
{
    struct pf_aws_xml_field fields[] = { { .path = "Error/Code" },
                                         { .path = "Error/Message" },
                                         { .path = "Error/Region" } };
    const char *header = pf_aws_reply_header(&op->reply, "x-amz-bucket-region");
    _cleanup_free_ char *region = header ? strdup(header) : NULL;
    struct pf_buf *body = &op->reply.body;

    *ret = (struct trouble){ "", "", "" };
    if (body->len > 0 && pf_aws_xml_read(body->data, body->len, fields, PF_COUNT(fields)) == 0) {
        copy_text(op, ret->code, sizeof(ret->code), fields[0].value);
        copy_text(op, ret->message, sizeof(ret->message), fields[1].value);
    }
    copy_text(op, ret->region, sizeof(ret->region), region ? region : fields[2].value);
}

static bool is_code(const struct trouble *trouble, const char *code)
{
    return strcmp(trouble->code, code) == 0;
}

static int refused(const struct operation *op, const struct trouble *trouble,
                   struct pinfold_error *err)
{
    int status = op->reply.status;
    bool elsewhere = trouble->region[0] && strcmp(trouble->region, op->s3->region) != 0 &&
                     (status == 301 || status == 307 || status == 400);
    bool denied = status == 401 || status == 403, passes = status == 429 || status >= 500;
    enum pinfold_code code = denied                                        ? PINFOLD_EOS
                             : elsewhere || (status / 100 == 4 && !passes) ? PINFOLD_EVALUE
                                                                           : PINFOLD_EBACKEND;

    if (elsewhere)
        pf_fail(err, code, "%s: the bucket %s is in the region %s, not %s", op->what,
                PF_QUOTE(op->s3->bucket), PF_QUOTE(trouble->region), op->s3->region);
    else
        pf_fail(err, code, "%s of bucket %s: HTTP %d%s%s%s%s", op->what, PF_QUOTE(op->s3->bucket),
                status, trouble->code[0] ? " " : "", PF_QUOTE(trouble->code),
                trouble->message[0] ? ": " : "", PF_QUOTE(trouble->message));
    if (err) {
        err->http_status = status;
        err->retryable = passes;
        err->sys_errno = denied ? EACCES : 0;
    }
    return -(int)code;
}

/* Returns 1 (done), 0 (no such object) or how it failed. */
static int perform(struct operation *op, struct pinfold_error *err)
{
    struct trouble trouble;
    int r = 0;

    if (!pf_s3_key_fits(op->key))
        return pf_fail(err, PINFOLD_EVALUE, "%s: \"%s\" cannot be a key", op->what,
                       PF_QUOTE(op->key));
    op->deadline = pf_clock_deadline(op->s3->timeout_ns);
    for (bool again = true;;) {
        pf_aws_credentials_done(&op->credentials);
        r = pf_aws_provider_get(op->s3->provider, op->deadline, &op->credentials, op->cancel, err);
        if (r == 0)
            r = send_signed(op, err);
        if (r < 0)
            return r;
        if (op->reply.status >= 200 && op->reply.status < 300)
            return 1;
        read_trouble(op, &trouble);
        /* Expired credentials are fetched anew, once. */
        if (!again ||
            (!is_code(&trouble, "ExpiredToken") && !is_code(&trouble, "TokenRefreshRequired")))
            break;
        pf_aws_provider_expire(op->s3->provider, &op->credentials);
        again = false;
    }
    if (op->reply.status == 404 && !is_code(&trouble, "NoSuchBucket"))
        return 0;
    return refused(op, &trouble, err);
}

static void operation_done(struct operation *op)
{
    pf_aws_credentials_done(&op->credentials);
    pf_aws_reply_done(&op->reply);
}

/* ---- the two operations ---- */

bool pf_s3_key_fits(const char *key)
{
    size_t len = strlen(key);

    if (len == 0 || len > PF_S3_KEY_MAX || !pf_utf8_valid(key, len, NULL))
        return false;
    for (const char *at = key; at; at = strchr(at, '/')) {
        at += at != key; /* over the slash */
        size_t part = strcspn(at, "/");
        if ((part == 1 || part == 2) && strspn(at, ".") == part)
            return false;
    }
    return true;
}

/* The value of a header, whatever it came from. */
static const char *header_value(const char *content_type)
{
    const char *at = content_type;

    while (*at >= ' ' && *at <= '~')
        at++;
    return *content_type > ' ' && !*at ? content_type : "application/octet-stream";
}

int pf_s3_put(struct pf_s3 *s3, const char *key, const void *data, size_t len,
              const char *content_type, struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    PF_CLEANUP(operation_done)
    struct operation op = {
        .s3 = s3,
        .method = "PUT",
        .what = "S3 put",
        .key = key,
        .body = len > 0 ? data : "", /* even none has a length */
        .len = len,
        .content_type = header_value(content_type),
        .cancel = cancel,
    };
    int r = len > PF_S3_OBJECT_MAX
                    ? pf_fail(err, PINFOLD_EVALUE, "S3 put: %zu bytes are more than %zu", len,
                              PF_S3_OBJECT_MAX)
                    : perform(&op, err);

    if (r != 0)
        return r < 0 ? r : 0;
    /* What is not there must be the bucket. */
    pf_fail(err, PINFOLD_EVALUE, "S3 put: there is no bucket %s", PF_QUOTE(s3->bucket));
    if (err)
        err->http_status = op.reply.status;
    return -PINFOLD_EVALUE;
}

int pf_s3_get(struct pf_s3 *s3, const char *key, struct pinfold_bytes *ret_data, char **ret_type,
              struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    PF_CLEANUP(operation_done)
    struct operation op = {
        .s3 = s3, .method = "GET", .what = "S3 get", .key = key, .cancel = cancel
    };
    const char *type;
    int r = perform(&op, err);

    if (r <= 0)
        return r;
    type = pf_aws_reply_header(&op.reply, "content-type");
    *ret_type = strdup(type ? type : "application/octet-stream");
    if (!*ret_type)
        return pf_fail_nomem(err);
    if (pf_buf_take(&op.reply.body, ret_data) < 0) {
        free(TAKE(*ret_type));
        return pf_fail_nomem(err);
    }
    return 1;
}

/* ---- where the bucket is ---- */

/* Whether a name is fit to be one part of a host below AWS's: what has dots has no certificate. */
static bool is_label(const char *bucket)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789-";
    size_t len = strlen(bucket);

    return len >= 3 && len <= 63 && strspn(bucket, allowed) == len && bucket[0] != '-' &&
           bucket[len - 1] != '-';
}

/* Other services allow more than AWS does today, as AWS itself once did. */
static bool is_bucket(const char *bucket)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "0123456789-._";
    size_t len = bucket ? strlen(bucket) : 0;

    return len >= 1 && len <= 255 && strspn(bucket, allowed) == len && bucket[0] != '.';
}

static bool ends_in(const char *text, size_t len, const char *end)
{
    size_t end_len = strlen(end);

    return len > end_len && strncasecmp(text + len - end_len, end, end_len) == 0 &&
           text[len - end_len - 1] == '.';
}

static int take_endpoint(struct pf_s3 *s3, const char *endpoint, bool plain_allowed,
                         struct pinfold_error *err)
{
    struct pf_aws_url url;
    bool virtual;

    if (pf_aws_url_parse(endpoint, &url) < 0 || strchr(url.path, '?'))
        return pf_fail(err, PINFOLD_EVALUE, "S3: the endpoint \"%s\" is no http or https address",
                       strchr(endpoint, '@') ? "one with a user name" : PF_QUOTE(endpoint));
    s3->near = pf_host_is_near(url.host, url.host_len);
    /* Signatures do not give the secret away, but a session's token is as good as a password. */
    if (!url.https && !s3->near && !plain_allowed)
        return pf_fail(err, PINFOLD_EVALUE,
                       "S3: requests would go to %s in plain text: use https, or allow plain http",
                       PF_QUOTE(endpoint));
    virtual = is_label(s3->bucket) &&
              ends_in(url.host, url.host_len, pf_aws_dns_suffix(s3->region));
    s3->scheme = strdup(url.https ? "https://" : "http://");
    if (!s3->scheme || asprintf(&s3->host, "%s%s%.*s", virtual ? s3->bucket : "",
                                virtual ? "." : "", (int)url.authority_len, url.authority) < 0) {
        s3->host = NULL;
        return pf_fail_nomem(err);
    }
    if (asprintf(&s3->path, "%s%s%s", url.path, virtual ? "" : "/", virtual ? "" : s3->bucket) <
        0) {
        s3->path = NULL;
        return pf_fail_nomem(err);
    }
    return 0;
}

static void s3_freep(struct pf_s3 **s3)
{
    pf_s3_free(*s3);
}

static int set_up(struct pf_s3 *s3, const struct pf_s3_options *options, struct pinfold_error *err)
{
    _cleanup_free_ char *endpoint = NULL;
    int r;

    if (!is_bucket(options->bucket))
        return pf_fail(err, PINFOLD_EVALUE, "S3: \"%s\" cannot be the name of a bucket",
                       PF_QUOTE(options->bucket ? options->bucket : ""));
    s3->bucket = strdup(options->bucket);
    if (!s3->bucket)
        return pf_fail_nomem(err);
    s3->attempts = options->attempts;
    s3->timeout_ns = options->timeout_ns;
    r = pf_aws_region(&options->aws, s3->region, err);
    if (r == 0)
        r = pf_aws_service_url(&options->aws, options->endpoint, "s3", "s3", s3->region, &endpoint,
                               err);
    if (r == 0)
        r = take_endpoint(s3, endpoint, options->allow_plain_http, err);
    if (r == 0)
        r = pf_http_new(PF_AWS_CA_BUNDLE, &s3->http, err);
    return r < 0 ? r : pf_aws_provider_new(&options->aws, s3->http, &s3->provider, err);
}

int pf_s3_new(const struct pf_s3_options *options, struct pf_s3 **ret, struct pinfold_error *err)
{
    PF_CLEANUP(s3_freep) struct pf_s3 *s3 = calloc(1, sizeof(*s3));
    int r = s3 ? set_up(s3, options, err) : pf_fail_nomem(err);

    if (r == 0)
        *ret = TAKE(s3);
    return r;
}

void pf_s3_free(struct pf_s3 *s3)
{
    if (!s3)
        return;
    pf_aws_provider_free(s3->provider);
    pf_http_free(s3->http);
    free(s3->bucket);
    free(s3->scheme);
    free(s3->host);
    free(s3->path);
    free(s3);
}
