/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Credentials of the machine that we run on: the instance metadata service of EC2. On a machine
 * that is none there is nobody to ask, and the address leads nowhere: so each step has a second.
 */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/random.h"
#include "net/aws_sources.h"
#include "net/uri.h"

#define BASE_IPV4 "http://169.254.169.254"
#define BASE_IPV6 "http://[fd00:ec2::254]"
#define ROLES "/latest/meta-data/iam/security-credentials/"

struct imds {
    struct pf_aws_ask *ask;
    struct pf_buf base;
    struct pf_buf token; /* empty: the first version of the protocol, which has none */
    int attempts;
    int64_t timeout_ns;
};

static void imds_done(struct imds *imds)
{
    pf_buf_done(&imds->base);
    pf_aws_wipe(&imds->token);
}

static bool is_true(const char *variable)
{
    const char *value = pf_aws_env(variable);

    return value && strcasecmp(value, "true") == 0;
}

/* A number of a variable between 1 and most. */
static int number(const char *variable, int most)
{
    const char *text = pf_aws_env(variable);
    long value = text ? strtol(text, NULL, 10) : 1;

    return value < 1 ? 1 : value > most ? most : (int)value;
}

static int find_base(struct imds *imds, struct pinfold_error *err)
{
    const char *named = pf_aws_env("AWS_EC2_METADATA_SERVICE_ENDPOINT");
    const char *mode = pf_aws_env("AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE");
    bool six = (mode && strcasecmp(mode, "ipv6") == 0) || is_true("AWS_IMDS_USE_IPV6");
    struct pf_aws_url url;
    const char *base = named ? named : six ? BASE_IPV6 : BASE_IPV4;
    size_t len = strlen(base);

    while (len > 0 && base[len - 1] == '/')
        len--;
    if (pf_buf_append(&imds->base, base, len) < 0)
        return pf_fail_nomem(err);
    if (pf_aws_url_parse(imds->base.data, &url) < 0)
        return pf_fail(err, PINFOLD_EVALUE,
                       "AWS_EC2_METADATA_SERVICE_ENDPOINT: %s is no http address",
                       PF_QUOTE(imds->base.data));
    imds->attempts = number("AWS_METADATA_SERVICE_NUM_ATTEMPTS", 10);
    imds->timeout_ns = number("AWS_METADATA_SERVICE_TIMEOUT", 60) * PF_NS_PER_SEC;
    return 0;
}

static int send(struct imds *imds, const char *method, const char *path, const char *rest,
                struct pf_aws_reply *ret, struct pinfold_error *err)
{
    PF_CLEANUP(pf_buf_done) struct pf_buf url = PF_BUF_INIT(8 << 10);
    bool put = strcmp(method, "PUT") == 0;
    const struct pf_header ttl = { "x-aws-ec2-metadata-token-ttl-seconds", "21600" };
    const struct pf_header token = { "x-aws-ec2-metadata-token", imds->token.data };
    int r = pf_buf_printf(&url, "%s%s", imds->base.data, path);

    if (r == 0)
        r = pf_uri_encode(&url, rest, strlen(rest), "");
    if (r < 0)
        return pf_fail_nomem(err);
    const struct pf_aws_call call = {
        .what = "IMDS",
        .method = method,
        .url = url.data,
        .headers = put ? &ttl : &token,
        .header_count = put || imds->token.len > 0,
        .body = put ? "" : NULL,
        .attempts = imds->attempts,
        .timeout_ns = imds->timeout_ns,
        .near = true,
    };
    return pf_aws_send(imds->ask, &call, ret, err);
}

/* What stops the search, and what only says that there is no such service. */
static int no_service(struct imds *imds, int r, const struct pinfold_error *local,
                      struct pinfold_error *err)
{
    if (r == -PINFOLD_EOS || r == -PINFOLD_EBACKEND)
        return pf_aws_nothing(imds->ask, "%.90s", local->msg);
    if (err)
        *err = *local;
    return r;
}

/* One line of visible text, as tokens and the names of roles are. */
static bool take_line(struct pf_buf *body)
{
    body->len = body->data ? strcspn(body->data, "\r\n") : 0;
    if (body->len == 0)
        return false;
    body->data[body->len] = '\0';
    for (size_t i = 0; i < body->len; i++)
        if (body->data[i] < 0x21 || body->data[i] > 0x7e)
            return false;
    return true;
}

/* Returns 1 (a token, or none where the first version is to be tried), 0 or a negative code. */
static int get_token(struct imds *imds, struct pinfold_error *err)
{
    struct pinfold_error local = PINFOLD_ERROR_INIT;
    PF_CLEANUP(pf_aws_reply_done) struct pf_aws_reply reply = { 0 };
    int r = send(imds, "PUT", "/latest/api/token", "", &reply, &local);
    bool older;

    if (r == 0 && reply.status == 200) {
        if (!take_line(&reply.body))
            return pf_aws_nothing(imds->ask, "IMDS: an odd token");
        imds->token = reply.body;
        reply.body = (struct pf_buf){ 0 };
        return 1;
    }
    /* Inside a container the answer to PUT may get lost on its way, by the limit of hops: then
     * the older way may still work. Where not even a connection came about it does not. */
    older = r == 0 ? reply.status == 403 || reply.status == 404 || reply.status == 405
                   : r == -PINFOLD_EBACKEND && !local.retryable;
    if (older && !is_true("AWS_EC2_METADATA_V1_DISABLED"))
        return 1;
    return r < 0 ? no_service(imds, r, &local, err)
                 : pf_aws_nothing(imds->ask, "IMDS: HTTP %d for a token", reply.status);
}

/* GET; returns 1 and a reply of status 200, 0 or a negative code. */
static int get(struct imds *imds, const char *role, struct pf_aws_reply *reply,
               struct pinfold_error *err)
{
    struct pinfold_error local = PINFOLD_ERROR_INIT;
    int r = send(imds, "GET", ROLES, role, reply, &local);

    if (r < 0)
        return no_service(imds, r, &local, err);
    if (reply->status != 200)
        return pf_aws_nothing(imds->ask, "IMDS: HTTP %d", reply->status);
    return 1;
}

/* Keys that are nearly over are what the service has when it cannot renew them itself. They are
 * likely good for longer than they say, and asking again at once makes its trouble worse. */
static void stretch(struct pf_aws_credentials *credentials)
{
    int64_t now = pf_aws_now();
    char hex[9];

    if (credentials->expires - now >= PF_AWS_EXPIRY_NS)
        return;
    pf_random_hex(hex, 8);
    credentials->expires = now + PF_AWS_EXPIRY_NS +
                           (120 + (int64_t)(strtoul(hex, NULL, 16) % 480)) * PF_NS_PER_SEC;
}

static int take_answer(struct imds *imds, const struct pf_aws_reply *reply,
                       struct pf_aws_credentials *ret, struct pinfold_error *err)
{
    const char *wrong;
    _cleanup_json_ json_t *json = pf_aws_json_load(reply->body.data, reply->body.len, &wrong);
    int r;

    if (json && !json_object_get(json, "AccessKeyId") && pf_aws_json_text(json, "Code"))
        return pf_aws_nothing(imds->ask, "IMDS: %.40s", pf_aws_json_text(json, "Code"));
    r = pf_aws_json_metadata(&reply->body, "IMDS", "instance metadata", ret, err);
    if (r > 0)
        stretch(ret);
    return r;
}

int pf_aws_imds(struct pf_aws_ask *ask, struct pf_aws_credentials *ret, struct pinfold_error *err)
{
    PF_CLEANUP(imds_done) struct imds imds = { .ask = ask, .base = PF_BUF_INIT(4096) };
    PF_CLEANUP(pf_aws_reply_done) struct pf_aws_reply role = { 0 }, reply = { 0 };
    int r;

    if (is_true("AWS_EC2_METADATA_DISABLED"))
        return pf_aws_nothing(ask, "IMDS: AWS_EC2_METADATA_DISABLED");
    r = find_base(&imds, err);
    if (r == 0)
        r = get_token(&imds, err);
    if (r > 0)
        r = get(&imds, "", &role, err);
    if (r > 0 && !take_line(&role.body))
        return pf_aws_nothing(ask, "IMDS: the machine has no role");
    if (r > 0)
        r = get(&imds, role.body.data, &reply, err);
    return r > 0 ? take_answer(&imds, &reply, ret, err) : r;
}
