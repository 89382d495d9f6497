/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/model_bedrock.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "agent/model.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/hash.h"
#include "net/aws_sources.h"
#include "net/sigv4.h"
#include "net/uri.h"

/* ---- requests ---- */

static int sign(struct pf_model_call *call, struct pf_model_headers *headers,
                struct pinfold_error *err)
{
    struct pf_bedrock_stream *stream = call->ctx;
    const struct pf_bedrock *model = stream->model;
    const struct pf_aws_keys keys = { stream->credentials.access_key,
                                      stream->credentials.secret_key,
                                      stream->credentials.session_token };
    struct pf_sigv4_request to_sign = {
        .method = "POST",
        .path = model->whole,
        .headers = headers->list,
        .region = model->region,
        .service = "bedrock",
    };
    int r;

    pf_sigv4_date(time(NULL), stream->date);
    memcpy(to_sign.date, stream->date, sizeof(stream->date));
    pf_sha256_hex(call->body.data, call->body.len, to_sign.payload_hash);
    pf_model_header(headers, "x-amz-date", stream->date);
    pf_model_header(headers, "x-amz-security-token", stream->credentials.session_token);
    call->secret = stream->credentials.session_token;
    pf_model_header(headers, "host", model->host);
    to_sign.header_count = headers->count;
    r = pf_sigv4_sign(&to_sign, &keys, &headers->secret, err);
    headers->count--; /* libcurl writes the host itself */
    pf_model_header(headers, "authorization", headers->secret.data);
    return r;
}

static int add_headers(struct pf_model_call *call, struct pf_model_headers *headers,
                       struct pinfold_error *err)
{
    struct pf_bedrock_stream *stream = call->ctx;
    int r;

    if (!stream->model->provider)
        return pf_model_bearer(headers, call->client->key) < 0 ? pf_fail_nomem(err) : 0;
    call->secret = NULL;
    pf_aws_credentials_done(&stream->credentials);
    r = pf_aws_provider_get(stream->model->provider, call->deadline, &stream->credentials,
                            call->cancel, err);
    return r < 0 ? r : sign(call, headers, err);
}

/* Credentials that the service calls expired are fetched anew, once. */
static bool mend(struct pf_model_call *call, const struct pf_model_trouble *trouble)
{
    struct pf_bedrock_stream *stream = call->ctx;

    if (stream->renewed || !stream->model->provider ||
        (strcmp(trouble->type, "ExpiredTokenException") != 0 &&
         strcmp(trouble->type, "ExpiredToken") != 0))
        return false;
    pf_aws_provider_expire(stream->model->provider, &stream->credentials);
    stream->renewed = true;
    return true;
}

static const struct pf_model_wire wire = {
    .headers = add_headers,
    .take = pf_bedrock_take,
    .end = pf_bedrock_end,
    .reset = pf_bedrock_reset,
    .refused = pf_bedrock_refused,
    .mend = mend,
    .request_id = "x-amzn-requestid",
};

static int converse(void *state, const struct pinfold_model_request *request,
                    struct pinfold_model_reply *ret, struct pinfold_cancel *cancel,
                    struct pinfold_error *err)
{
    struct pf_bedrock *model = state;
    struct pf_bedrock_stream stream = { .model = model, .events = PF_EVENT_STREAM_INIT };
    PF_CLEANUP(pf_model_call_done)
    struct pf_model_call call = {
        .client = &model->client,
        .wire = &wire,
        .ctx = &stream,
        .reply = { .request = request, .out = ret },
        .path = model->path,
        .cancel = cancel,
    };
    _cleanup_pf_json_ json_t *body = pf_bedrock_body(&model->client, request);
    int r = pf_model_call_body(&call, body, err);

    return r < 0 ? r : pf_model_call_perform(&call, err);
}

/* ---- the model ---- */

static void bedrock_free(void *state)
{
    struct pf_bedrock *model = state;

    if (!model)
        return;
    pf_aws_provider_free(model->provider);
    pf_model_client_done(&model->client);
    free(model->path);
    free(model->whole);
    free(model->host);
    free(model);
}

static void bedrock_freep(struct pf_bedrock **model)
{
    bedrock_free(*model);
}

/* The name of a model may be an ARN, with ':' and '/' in it: one segment of the path all the
 * same. */
static int make_paths(struct pf_bedrock *model, struct pinfold_error *err)
{
    PF_CLEANUP(pf_buf_done) struct pf_buf path = PF_BUF_INIT(16384);
    struct pf_aws_url url;

    if (pf_aws_url_parse(model->client.base, &url) < 0)
        return pf_fail(err, PINFOLD_EVALUE,
                       "bedrock model: the endpoint \"%s\" is no plain address",
                       PF_QUOTE(model->client.base));
    if (pf_buf_append_text(&path, "/model/") < 0 ||
        pf_uri_encode(&path, model->client.model, strlen(model->client.model), "") < 0 ||
        pf_buf_append_text(&path, "/converse-stream") < 0)
        return pf_fail(err, PINFOLD_EVALUE, "bedrock model: the name of the model is too long");
    model->path = strdup(path.data);
    model->host = strndup(url.authority, url.authority_len);
    if (!model->path || !model->host || asprintf(&model->whole, "%s%s", url.path, path.data) < 0) {
        model->whole = NULL;
        return pf_fail_nomem(err);
    }
    return 0;
}

/* Signatures do not give the secret away, but a session's token is as good as a password. */
static int check_plain(const struct pf_bedrock *model, const struct pinfold_model_options *options,
                       struct pinfold_error *err)
{
    if (strncasecmp(model->client.base, "https://", 8) == 0 || model->client.near ||
        options->allow_plain_http)
        return 0;
    return pf_fail(
            err, PINFOLD_EVALUE,
            "bedrock model: requests would go to %s in plain text: use https, or allow plain "
            "http",
            PF_QUOTE(model->client.base));
}

static int set_up(struct pf_bedrock *model, const struct pinfold_model_options *options,
                  struct pinfold_error *err)
{
    struct pinfold_model_options own = *options;
    bool given = options->access_key || options->secret_key || options->profile;
    const struct pf_aws_options aws = {
        options->access_key, options->secret_key, options->session_token,
        options->profile,    options->region,
    };
    const char *base = options->base_url && *options->base_url ? options->base_url : NULL;
    const struct pf_model_defaults defaults = { .provider = "bedrock",
                                                .key_env = "AWS_BEARER_TOKEN_BEDROCK",
                                                .trust_env = PF_AWS_CA_BUNDLE };
    _cleanup_free_ char *url = NULL;
    int r = pf_aws_region(&aws, model->region, err);

    if (r == 0)
        r = pf_aws_service_url(&aws, base, "bedrock_runtime", "bedrock-runtime", model->region,
                               &url, err);
    if (r < 0)
        return pf_wrap(err, r, "bedrock model");
    own.base_url = url;
    /* What the caller names stands before what the environment holds. */
    if (!own.api_key && given)
        own.api_key = "";
    r = pf_model_client_init(&model->client, &defaults, &own, err);
    if (r == 0)
        r = check_plain(model, options, err);
    if (r == 0 && !model->client.key)
        r = pf_aws_provider_new(&aws, model->client.http, &model->provider, err);
    return r < 0 ? r : make_paths(model, err);
}

int pinfold_model_bedrock_new(const struct pinfold_model_options *options,
                              struct pinfold_model **ret_model, struct pinfold_error *err)
{
    static const struct pinfold_model_ops ops = {
        .size = sizeof(ops), .provider = "bedrock", .converse = converse, .free = bedrock_free
    };
    PF_CLEANUP(bedrock_freep) struct pf_bedrock *model = calloc(1, sizeof(*model));
    int r = model ? set_up(model, options, err) : pf_fail_nomem(err);

    if (r == 0)
        r = pinfold_model_new(&ops, model, model->client.model, ret_model, err);
    if (r == 0)
        model = NULL;
    return r;
}
