/* SPDX-License-Identifier: Apache-2.0 */
/* The two calls of AWS STS that give credentials for a role. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/strings.h"
#include "net/aws_sources.h"
#include "net/sigv4.h"
#include "net/uri.h"

#define ATTEMPTS 3
#define TIMEOUT_NS (30 * PF_NS_PER_SEC)
#define FORM "application/x-www-form-urlencoded; charset=utf-8"
#define ADDRESS_MAX ((size_t)8 * 1024)

/* Where one call goes and what it says. */
struct sts_call {
    const char *action;
    const char *source; /* of the credentials, for people */
    const char *secret; /* that is sent; may be NULL */
    char region[PF_AWS_REGION_MAX];
    struct pf_buf url, body;
};

static void call_done(struct sts_call *call)
{
    pf_buf_done(&call->url);
    pf_aws_wipe(&call->body);
}

static int add_param(struct pf_buf *body, const char *name, const char *value)
{
    int r = value ? pf_buf_printf(body, "&%s=", name) : 0;

    return r == 0 && value ? pf_uri_encode(body, value, strlen(value), "") : r;
}

static int begin(const struct pf_aws_ask *ask, const struct pf_aws_role *role, size_t more,
                 struct sts_call *call, struct pinfold_error *err)
{
    char usual[32];
    int r = pf_aws_ask_region(ask, role->profile, call->region, err);

    snprintf(usual, sizeof(usual), "pinfold-%lld", (long long)time(NULL));
    call->url.limit = ADDRESS_MAX;
    call->body.limit = 4 * PF_AWS_TOKEN_MAX;
    if (r == 0)
        r = pf_aws_endpoint(ask, "sts", "sts", call->region, &call->url, err);
    if (r < 0)
        return r;
    r = pf_buf_append(&call->url, "/", 1);
    if (r == 0)
        r = pf_buf_reserve(&call->body, ADDRESS_MAX + 3 * more);
    if (r == 0)
        r = pf_buf_printf(&call->body, "Action=%s&Version=2011-06-15", call->action);
    if (r == 0)
        r = add_param(&call->body, "RoleArn", role->arn);
    if (r == 0)
        r = add_param(&call->body, "RoleSessionName",
                      role->session_name ? role->session_name : usual);
    if (r == 0)
        r = add_param(&call->body, "ExternalId", role->external_id);
    if (r == 0)
        r = add_param(&call->body, "DurationSeconds", role->duration);
    if (r == -PINFOLD_EVALUE)
        return pf_fail(err, PINFOLD_EVALUE, "STS %s: what the profile says is too long",
                       call->action);
    return r < 0 ? pf_fail_nomem(err) : 0;
}

/* ---- the answer ---- */

/* The code of the error, and the first line of its message: others may quote the request. */
static int refused(const struct sts_call *call, struct pf_aws_reply *reply,
                   struct pinfold_error *err)
{
    struct pf_aws_xml_field fields[] = { { "ErrorResponse/Error/Code", NULL },
                                         { "ErrorResponse/Error/Message", NULL } };
    char what[64], detail[256] = "";

    snprintf(what, sizeof(what), "STS %s", call->action);
    if (pf_aws_xml_read(reply->body.data, reply->body.len, fields, PF_COUNT(fields)) == 0 &&
        fields[0].value) {
        const char *message = fields[1].value ? fields[1].value : "";
        pf_text_hide(fields[1].value, call->secret);
        if (strstr(fields[0].value, "Signature"))
            message = "";
        snprintf(detail, sizeof(detail), "%.60s%s%.*s", fields[0].value, *message ? ": " : "",
                 (int)strcspn(message, "\r\n"), message);
    }
    return pf_aws_refused(what, reply->status, detail, err);
}

static int take_answer(const struct sts_call *call, struct pf_aws_reply *reply,
                       struct pf_aws_credentials *ret, struct pinfold_error *err)
{
    static const char *const names[] = { "AccessKeyId", "SecretAccessKey", "SessionToken",
                                         "Expiration" };
    struct pf_aws_xml_field fields[PF_COUNT(names)];
    char paths[PF_COUNT(names)][160];
    int64_t expires;
    int r;

    for (size_t i = 0; i < PF_COUNT(names); i++) {
        snprintf(paths[i], sizeof(paths[i]), "%sResponse/%sResult/Credentials/%s", call->action,
                 call->action, names[i]);
        fields[i].path = paths[i];
    }
    r = pf_aws_xml_read(reply->body.data, reply->body.len, fields, PF_COUNT(fields));
    if (r < 0)
        return pf_fail(err, PINFOLD_EBACKEND, "STS %s: the answer is not XML", call->action);
    for (size_t i = 0; i < PF_COUNT(names); i++)
        if (!fields[i].value || !*fields[i].value)
            return pf_fail(err, PINFOLD_EBACKEND, "STS %s: the answer has no %s", call->action,
                           names[i]);
    if (pf_aws_time(fields[3].value, &expires) < 0)
        return pf_fail(err, PINFOLD_EBACKEND, "STS %s: Expiration is not a time", call->action);
    const struct pf_aws_keys keys = { fields[0].value, fields[1].value, fields[2].value };
    return pf_aws_take_keys(&keys, expires, call->source, ret, err);
}

static int perform(const struct pf_aws_ask *ask, const struct sts_call *sts,
                   const struct pf_header *headers, size_t header_count,
                   struct pf_aws_credentials *ret, struct pinfold_error *err)
{
    PF_CLEANUP(pf_aws_reply_done) struct pf_aws_reply reply = { 0 };
    char what[64];
    const struct pf_aws_call call = {
        .what = what,
        .method = "POST",
        .url = sts->url.data,
        .headers = headers,
        .header_count = header_count,
        .body = sts->body.data,
        .body_len = sts->body.len,
        .attempts = ATTEMPTS,
        .timeout_ns = TIMEOUT_NS,
    };
    int r;

    snprintf(what, sizeof(what), "STS %s", sts->action);
    r = pf_aws_send(ask, &call, &reply, err);
    if (r < 0)
        return r;
    return reply.status == 200 ? take_answer(sts, &reply, ret, err) : refused(sts, &reply, err);
}

/* ---- AssumeRole ---- */

/* Sign, and send. */
static int perform_signed(const struct pf_aws_ask *ask, const struct sts_call *call,
                          const struct pf_aws_credentials *source, struct pf_aws_credentials *ret,
                          struct pinfold_error *err)
{
    PF_CLEANUP(pf_buf_done) struct pf_buf authorization = PF_BUF_INIT(16 << 10);
    const struct pf_aws_keys keys = { source->access_key, source->secret_key,
                                      source->session_token };
    struct pf_sigv4_request request = { .method = "POST", .region = call->region };
    struct pf_header headers[5];
    char host[300];
    struct pf_aws_url url;
    size_t count = 0;
    int r;

    if (pf_aws_url_parse(call->url.data, &url) < 0 || url.authority_len >= sizeof(host))
        return pf_fail(err, PINFOLD_EVALUE, "STS %s: the endpoint's host is too long",
                       call->action);
    snprintf(host, sizeof(host), "%.*s", (int)url.authority_len, url.authority);
    pf_sigv4_date(time(NULL), request.date);
    pf_sha256_hex(call->body.data, call->body.len, request.payload_hash);
    headers[count++] = (struct pf_header){ "content-type", FORM };
    headers[count++] = (struct pf_header){ "x-amz-date", request.date };
    if (keys.session_token)
        headers[count++] = (struct pf_header){ "x-amz-security-token", keys.session_token };
    headers[count] = (struct pf_header){ "host", host };
    request.path = url.path;
    request.service = "sts";
    request.headers = headers;
    request.header_count = count + 1;
    r = pf_sigv4_sign(&request, &keys, &authorization, err);
    if (r < 0)
        return r;
    headers[count++] = (struct pf_header){ "authorization", authorization.data };
    return perform(ask, call, headers, count, ret, err);
}

int pf_aws_sts_assume(const struct pf_aws_ask *ask, const struct pf_aws_role *role,
                      const struct pf_aws_credentials *source, struct pf_aws_credentials *ret,
                      struct pinfold_error *err)
{
    PF_CLEANUP(call_done)
    struct sts_call call = { .action = "AssumeRole", .source = "profile (role)" };
    int r = 0;

    if (role->duration && (strlen(role->duration) > 6 ||
                           role->duration[strspn(role->duration, "0123456789")] != '\0'))
        r = pf_fail(err, PINFOLD_EVALUE, "AWS profile %s: duration_seconds is not a number",
                    PF_QUOTE(role->profile));
    if (r == 0)
        r = begin(ask, role, 0, &call, err);
    call.secret = source->session_token;
    return r < 0 ? r : perform_signed(ask, &call, source, ret, err);
}

/* ---- AssumeRoleWithWebIdentity ---- */

int pf_aws_sts_web_identity(const struct pf_aws_ask *ask, const struct pf_aws_role *role,
                            const char *token_file, struct pf_aws_credentials *ret,
                            struct pinfold_error *err)
{
    static const struct pf_header header = { "content-type", FORM };
    PF_CLEANUP(call_done)
    struct sts_call call = { .action = "AssumeRoleWithWebIdentity", .source = "web identity" };
    _cleanup_wipe_ struct pf_buf token = { 0 };
    int r = pf_aws_read_token(token_file, &token, err);

    if (r == 0)
        r = begin(ask, role, token.len, &call, err);
    if (r < 0)
        return r;
    call.secret = token.data;
    r = add_param(&call.body, "WebIdentityToken", token.data);
    return r < 0 ? pf_fail_nomem(err) : perform(ask, &call, &header, 1, ret, err);
}
