/* SPDX-License-Identifier: Apache-2.0 */
#include "net/agentcore.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/buf.h"
#include "base/cancel.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/strings.h"
#include "net/agentcore_reply.h"
#include "net/agentcore_request.h"
#include "net/curl.h"
#include "net/sigv4.h"

#define MAX_ATTEMPTS 5
#define MAX_ATTEMPTS_TEXT "5"
#define TRANSIENT_NS (50 * PF_NS_PER_MS)
#define THROTTLED_NS PF_NS_PER_SEC
#define BACKOFF_MAX_NS (20 * PF_NS_PER_SEC)
#define HINT_EXTRA_NS (5 * PF_NS_PER_SEC) /* a hint may lengthen a wait by so much */
#define SKEW_SECONDS 240                  /* a clock that is off by less is not the reason */
#define REPLY_MAX ((size_t)8 * 1024 * 1024)
/* Load balancers close what was idle for a minute, some earlier; a command must not be on its way
 * then, for it would not be sent again. */
enum { RUNS_IDLE_SECONDS = 20, MAX_HEADERS = 16 };

struct pf_agentcore {
    char *region, *identifier, *endpoint;
    const char *host; /* in endpoint */
    struct pf_http *http;
    struct pf_aws_provider *provider;
    _Atomic int64_t clock_offset; /* seconds to add to this machine's clock */
};

/* One operation under way, through all its attempts. */
struct operation {
    struct pf_agentcore *client;
    const struct pf_agentcore_request *request;
    const struct pf_agentcore_call *call;
    struct pf_agentcore_stream *stream; /* of a tool; NULL: the reply is JSON */
    struct pf_http_response response;
    struct pf_aws_credentials credentials; /* of the last attempt */
    char invocation[PF_UUID_MAX];
    unsigned attempt; /* from 1 */
    bool renewed, corrected;
};

/* ---- making ---- */

static int check_endpoint(struct pf_agentcore *client, struct pinfold_error *err)
{
    const char *scheme_end = strstr(client->endpoint, "://");
    size_t len = strlen(client->endpoint);

    if (!scheme_end || (strncmp(client->endpoint, "https://", 8) != 0 &&
                        strncmp(client->endpoint, "http://", 7) != 0))
        return pf_fail(err, PINFOLD_EVALUE, "AgentCore: no http(s) endpoint: \"%s\"",
                       PF_QUOTE(client->endpoint));
    client->host = scheme_end + 3;
    if (strchr(client->host, '@')) /* and maybe a password, which errors do not repeat */
        return pf_fail(
                err, PINFOLD_EVALUE,
                "AgentCore: the endpoint has a user name in it: give a host and a port alone");
    if (len > 0 && client->endpoint[len - 1] == '/')
        client->endpoint[len - 1] = '\0';
    if (client->host[0] == '\0' || strpbrk(client->host, "/?#@ \t\r\n\\"))
        return pf_fail(err, PINFOLD_EVALUE,
                       "AgentCore: the endpoint is not a host and a port: "
                       "\"%s\"",
                       PF_QUOTE(client->endpoint));
    return 0;
}

int pf_agentcore_locate(const struct pf_aws_options *options, const char *given, const char *region,
                        char **ret, struct pinfold_error *err)
{
    return pf_aws_service_url(options, given, "bedrock_agentcore", "bedrock-agentcore", region, ret,
                              err);
}

static void client_freep(struct pf_agentcore **client)
{
    pf_agentcore_free(*client);
}

int pf_agentcore_new(const struct pf_agentcore_options *options, struct pf_agentcore **ret,
                     struct pinfold_error *err)
{
    PF_CLEANUP(client_freep) struct pf_agentcore *client = calloc(1, sizeof(*client));
    int r;

    if (!client)
        return pf_fail_nomem(err);
    if (!options->identifier[0])
        return pf_fail(err, PINFOLD_EVALUE, "AgentCore: the code interpreter has no identifier");
    client->http = options->http;
    client->provider = options->provider;
    client->region = strdup(options->region);
    client->identifier = strdup(options->identifier);
    client->endpoint = strdup(options->endpoint);
    if (!client->region || !client->identifier || !client->endpoint)
        return pf_fail_nomem(err);
    r = check_endpoint(client, err);
    if (r == 0)
        *ret = TAKE(client);
    return r;
}

void pf_agentcore_free(struct pf_agentcore *client)
{
    if (!client)
        return;
    free(client->region);
    free(client->identifier);
    free(client->endpoint);
    free(client);
}

/* ---- one attempt ---- */

/* The host header leaves out the port that is the scheme's own, as libcurl's does. */
static int host_of(const struct pf_agentcore *client, struct pf_buf *to)
{
    const char *standard = client->endpoint[4] == 's' ? ":443" : ":80";
    size_t len = strlen(client->host), tail = strlen(standard);

    if (len > tail && strcmp(client->host + len - tail, standard) == 0)
        len -= tail;
    return pf_buf_append(to, client->host, len);
}

struct headers {
    struct pf_header list[MAX_HEADERS];
    size_t count;
};

static void add_header(struct headers *headers, const char *name, const char *value)
{
    if (value)
        headers->list[headers->count++] = (struct pf_header){ name, value };
}

/* Sign what is signed, and leave in headers what is sent; authorization keeps its value. */
static int sign(struct operation *op, struct pf_sigv4_request *to_sign, const char *attempt,
                struct pf_buf *host, struct pf_buf *authorization, struct headers *headers,
                struct pinfold_error *err)
{
    const struct pf_agentcore_request *request = op->request;
    const struct pf_aws_credentials *credentials = &op->credentials;
    const struct pf_aws_keys keys = { credentials->access_key, credentials->secret_key,
                                      credentials->session_token };
    int r = host_of(op->client, host);

    if (r < 0)
        return pf_fail_nomem(err);
    add_header(headers, "content-type", request->has_body ? "application/json" : NULL);
    add_header(headers, "x-amz-date", to_sign->date);
    add_header(headers, "x-amz-content-sha256", to_sign->payload_hash);
    add_header(headers, "x-amz-security-token", credentials->session_token);
    add_header(headers, "x-amzn-code-interpreter-session-id", request->session);
    add_header(headers, "traceparent", op->call->trace_parent);
    add_header(headers, "amz-sdk-invocation-id", op->invocation);
    add_header(headers, "amz-sdk-request", attempt);
    add_header(headers, "host", host->data);
    to_sign->headers = headers->list;
    to_sign->header_count = headers->count;
    r = pf_sigv4_sign(to_sign, &keys, authorization, err);
    headers->count--; /* libcurl writes the host itself */
    add_header(headers, "x-amzn-trace-id", op->call->trace_id);
    add_header(headers, "authorization", authorization->data);
    return r;
}

static int send_signed(struct operation *op, const struct headers *headers,
                       struct pinfold_error *err)
{
    const struct pf_agentcore_request *request = op->request;
    PF_CLEANUP(pf_buf_done) struct pf_buf url = PF_BUF_INIT(32768);
    struct pf_http_request http = {
        .method = request->method,
        .headers = headers->list,
        .header_count = headers->count,
        .body = request->has_body ? request->body.data : NULL,
        .body_len = request->body.len,
        .once = request->runs,
        .idle_seconds = request->runs ? RUNS_IDLE_SECONDS : 0,
        .deadline = op->call->deadline,
        .also_cancel = op->call->also_cancel,
        .response_max = REPLY_MAX,
        .on_body = op->stream ? pf_agentcore_stream_take : NULL,
        .on_body_ctx = op->stream,
    };
    const char *query = request->query.len > 0 ? request->query.data : "";

    if (pf_buf_printf(&url, "%s%s%s%s", op->client->endpoint, request->path.data, *query ? "?" : "",
                      query) < 0)
        return pf_fail_nomem(err);
    http.url = url.data;
    return pf_http_perform(op->client->http, &http, &op->response, op->call->cancel, err);
}

static int attempt_once(struct operation *op, struct pinfold_error *err)
{
    PF_CLEANUP(pf_buf_done) struct pf_buf authorization = PF_BUF_INIT(16384);
    PF_CLEANUP(pf_buf_done) struct pf_buf host = PF_BUF_INIT(1024);
    const struct pf_agentcore_request *request = op->request;
    struct pf_sigv4_request to_sign = {
        .method = request->method,
        .path = request->path.data,
        .query = request->query.len > 0 ? request->query.data : NULL,
        .region = op->client->region,
        .service = "bedrock-agentcore",
    };
    struct headers headers = { .count = 0 };
    char attempt[40];
    int r = pf_aws_provider_get(op->client->provider, op->call->deadline, &op->credentials,
                                op->call->cancel, err);

    if (r < 0)
        return r;
    snprintf(attempt, sizeof(attempt), "attempt=%u; max=" MAX_ATTEMPTS_TEXT, op->attempt);
    pf_sigv4_date((time_t)(time(NULL) + op->client->clock_offset), to_sign.date);
    pf_sha256_hex(request->body.data ? request->body.data : "", request->body.len,
                  to_sign.payload_hash);
    r = sign(op, &to_sign, attempt, &host, &authorization, &headers, err);
    return r < 0 ? r : send_signed(op, &headers, err);
}

/* ---- what to do about an error ---- */

static bool is_transient(int status)
{
    return status == 500 || status == 502 || status == 503 || status == 504;
}

/* Set the clock by the reply's. Returns whether that can have been the reason. */
static bool correct_clock(struct operation *op)
{
    const char *date = pf_http_header(&op->response, "date");
    time_t server = date ? curl_getdate(date, NULL) : -1;
    int64_t offset, before = op->client->clock_offset;

    if (server < 0 || op->corrected)
        return false;
    offset = (int64_t)server - (int64_t)time(NULL);
    if (llabs((long long)(offset - before)) < SKEW_SECONDS)
        return false;
    op->client->clock_offset = offset;
    op->corrected = true;
    return true;
}

enum remedy {
    GIVE_UP,
    AT_ONCE,   /* something was put right: try again */
    LATER,     /* a failure that passes */
    THROTTLED, /* we were too quick: nothing was done */
};

static enum remedy remedy_for(struct operation *op, const struct pf_agentcore_trouble *trouble)
{
    int status = op->response.status;
    bool first = !op->stream || !op->stream->failed || op->stream->failed_first;

    if (status == 429 || (first && pf_agentcore_trouble_is(trouble, "ThrottlingException")))
        return THROTTLED;
    if (is_transient(status))
        return op->request->runs ? GIVE_UP : LATER;
    /* Whoever was not let in has not run anything. */
    if (pf_agentcore_trouble_is(trouble, "ExpiredTokenException") ||
        pf_agentcore_trouble_is(trouble, "ExpiredToken")) {
        if (op->renewed)
            return GIVE_UP;
        pf_aws_provider_expire(op->client->provider, &op->credentials);
        op->renewed = true;
        return AT_ONCE;
    }
    if (status >= 400 && status < 500 &&
        (status == 403 || pf_agentcore_trouble_is(trouble, "RequestTimeTooSkewed")) &&
        correct_clock(op))
        return AT_ONCE;
    return GIVE_UP;
}

static int64_t random_part(int64_t of)
{
    uint32_t number = 0;

    if (getrandom(&number, sizeof(number), 0) != sizeof(number))
        number = UINT32_MAX / 2;
    return (int64_t)((double)of * ((double)number / ((double)UINT32_MAX + 1)));
}

static int64_t number_header(const struct operation *op, const char *name)
{
    const char *text = pf_http_header(&op->response, name);
    char *end;
    long long number = text ? strtoll(text, &end, 10) : -1;

    return text && end != text && *end == '\0' && number >= 0 && number < 1000000 ? number : -1;
}

static int64_t delay_for(const struct operation *op, enum remedy remedy)
{
    int64_t base = remedy == THROTTLED ? THROTTLED_NS : TRANSIENT_NS;
    int64_t longest = base << (op->attempt - 1), delay, hint;
    int64_t seconds = number_header(op, "retry-after");
    int64_t ms = number_header(op, "x-amz-retry-after");

    delay = random_part(longest < BACKOFF_MAX_NS ? longest : BACKOFF_MAX_NS);
    hint = ms >= 0 ? ms * PF_NS_PER_MS : seconds >= 0 ? seconds * PF_NS_PER_SEC : 0;
    if (hint > delay + HINT_EXTRA_NS)
        hint = delay + HINT_EXTRA_NS;
    return hint > delay ? hint : delay;
}

/* Wait before the next attempt. Returns 1, 0 when the deadline comes first, or
 * -PINFOLD_ECANCELLED. */
static int wait_for(const struct operation *op, int64_t delay, struct pinfold_error *err)
{
    int64_t until = pf_clock_deadline(delay);
    int r;

    if (until >= op->call->deadline)
        return 0;
    r = pf_cancel_wait(op->call->cancel, op->call->also_cancel, until, err);
    return r < 0 ? r : 1;
}

/* ---- an operation ---- */

static void hide_secrets(const struct operation *op, char *text)
{
    pf_text_hide(text, op->credentials.session_token);
    pf_text_hide(text, op->credentials.secret_key);
}

static void hide_trouble(const struct operation *op, struct pf_agentcore_trouble *trouble)
{
    hide_secrets(op, trouble->code);
    hide_secrets(op, trouble->message.data);
}

/* What the service calls the request, for its support. */
static const char *request_id(const struct operation *op, char buffer[static PF_QUOTE_MAX])
{
    const char *header = pf_http_header(&op->response, "x-amzn-requestid");
    _cleanup_free_ char *text = header ? strdup(header) : NULL;

    if (!text)
        return "without an id";
    hide_secrets(op, text);
    return pf_quote(text, buffer);
}

static int fail_with(const struct operation *op, const struct pf_agentcore_trouble *trouble,
                     enum remedy remedy, struct pinfold_error *err)
{
    char id[PF_QUOTE_MAX];
    const char *message = trouble->message.data ? trouble->message.data : "";
    bool gone = pf_agentcore_trouble_gone(trouble);

    if (gone && op->call->session_gone)
        *op->call->session_gone = true;
    /* The request's id stands where it is not what an overlong message loses. */
    pf_fail(err, PINFOLD_EBACKEND, "AgentCore %s: HTTP %d %s (request %s)%s%s",
            op->request->operation, op->response.status,
            trouble->code[0] ? PF_QUOTE(trouble->code) : "without an error code",
            request_id(op, id), *message ? ": " : "", PF_QUOTE(message));
    if (err) {
        err->http_status = op->response.status;
        err->retryable = remedy == THROTTLED || remedy == LATER ||
                         pf_agentcore_trouble_is(trouble, "ServiceQuotaExceededException");
    }
    return -PINFOLD_EBACKEND;
}

static void operation_done(struct operation *op)
{
    pf_http_response_done(&op->response);
    pf_aws_credentials_done(&op->credentials);
}

static void reset_attempt(struct operation *op)
{
    operation_done(op);
    op->credentials = (struct pf_aws_credentials){ 0 };
    if (op->stream) {
        pf_agentcore_stream_done(op->stream);
        *op->stream = (struct pf_agentcore_stream)PF_AGENTCORE_STREAM_INIT;
    }
}

/* The service answered. Returns 0 when that was a success, 1 to try again after *ret_remedy, or how
 * it failed. */
static int judge(struct operation *op, enum remedy *ret_remedy, struct pinfold_error *err)
{
    struct pf_agentcore_trouble own = PF_AGENTCORE_TROUBLE_INIT;
    struct pf_agentcore_trouble *trouble = op->stream ? &op->stream->trouble : &own;
    int status = op->response.status, r = 0;

    if (status >= 200 && status < 300) {
        if (op->stream)
            r = pf_agentcore_stream_end(op->stream, err);
        if (r == 0 && (!op->stream || !op->stream->failed))
            return 0;
        if (!op->stream->failed)
            return pf_wrap(err, r, "AgentCore %s", op->request->operation);
    } else {
        pf_agentcore_trouble_read(&op->response, trouble);
    }
    *ret_remedy = remedy_for(op, trouble);
    hide_trouble(op, trouble);
    r = fail_with(op, trouble, *ret_remedy, err);
    pf_buf_done(&own.message);
    return *ret_remedy == GIVE_UP ? r : 1;
}

/* There was no answer, or half of one. */
static int judge_failure(const struct operation *op, int r, enum remedy *ret_remedy,
                         struct pinfold_error *err)
{
    bool unsent = err->retryable, broken = r == -PINFOLD_EOS || r == -PINFOLD_EBACKEND;

    if (r == -PINFOLD_ENOMEM || r == -PINFOLD_ECANCELLED)
        return r;
    pf_wrap(err, r, "AgentCore %s", op->request->operation);
    err->retryable = unsent || (broken && !op->request->runs);
    *ret_remedy = LATER;
    return broken && err->retryable ? 1 : r;
}

static int perform(struct operation *op, struct pinfold_error *err)
{
    struct pinfold_error one = PINFOLD_ERROR_INIT, before;
    enum remedy remedy = GIVE_UP;
    int r, waited;

    pf_agentcore_uuid(op->invocation);
    for (op->attempt = 1;; op->attempt++) {
        before = one;
        one = (struct pinfold_error)PINFOLD_ERROR_INIT;
        reset_attempt(op);
        r = attempt_once(op, &one);
        r = r < 0 ? judge_failure(op, r, &remedy, &one) : judge(op, &remedy, &one);
        if (r == 0)
            return 0;
        if (r < 0 || op->attempt == MAX_ATTEMPTS)
            break;
        waited = remedy == AT_ONCE ? 1 : wait_for(op, delay_for(op, remedy), &one);
        if (waited <= 0)
            break;
    }
    pf_tell_before(&one, &before);
    if (err)
        *err = one;
    return -one.code;
}

static int json_operation(struct pf_agentcore *client, const struct pf_agentcore_request *request,
                          const struct pf_agentcore_call *call, json_t **ret,
                          struct pinfold_error *err)
{
    struct operation op = { .client = client, .request = request, .call = call };
    json_error_t wrong;
    json_t *reply = NULL;
    int r = perform(&op, err);

    if (r == 0) {
        reply = json_loadb(op.response.body.data ? op.response.body.data : "", op.response.body.len,
                           JSON_ALLOW_NUL, &wrong);
        if (json_is_object(reply)) {
            *ret = reply;
        } else {
            json_decref(reply);
            r = pf_fail(err, PINFOLD_EBACKEND, "AgentCore %s: the reply is no JSON object",
                        request->operation);
        }
    }
    operation_done(&op);
    return r;
}

int pf_agentcore_start(struct pf_agentcore *client, json_t *members,
                       const struct pf_agentcore_call *call, json_t **ret,
                       struct pinfold_error *err)
{
    PF_CLEANUP(pf_agentcore_request_done)
    struct pf_agentcore_request request = PF_AGENTCORE_REQUEST_INIT;
    int r = pf_agentcore_request_start(&request, client->identifier, members, err);

    if (r == 0)
        r = json_operation(client, &request, call, ret, err);
    if (r == 0 && !json_is_string(json_object_get(*ret, "sessionId"))) {
        json_decref(TAKE(*ret));
        r = pf_fail(err, PINFOLD_EBACKEND, "AgentCore start session: no sessionId came back");
    }
    return r;
}

int pf_agentcore_stop(struct pf_agentcore *client, const char *session, const char *token,
                      const struct pf_agentcore_call *call, json_t **ret, struct pinfold_error *err)
{
    PF_CLEANUP(pf_agentcore_request_done)
    struct pf_agentcore_request request = PF_AGENTCORE_REQUEST_INIT;
    int r = pf_agentcore_request_stop(&request, client->identifier, session, token, err);

    return r < 0 ? r : json_operation(client, &request, call, ret, err);
}

int pf_agentcore_get(struct pf_agentcore *client, const char *session,
                     const struct pf_agentcore_call *call, json_t **ret, struct pinfold_error *err)
{
    PF_CLEANUP(pf_agentcore_request_done)
    struct pf_agentcore_request request = PF_AGENTCORE_REQUEST_INIT;
    int r = pf_agentcore_request_get(&request, client->identifier, session, err);

    return r < 0 ? r : json_operation(client, &request, call, ret, err);
}

int pf_agentcore_list(struct pf_agentcore *client, json_t *members,
                      const struct pf_agentcore_call *call, json_t **ret, struct pinfold_error *err)
{
    PF_CLEANUP(pf_agentcore_request_done)
    struct pf_agentcore_request request = PF_AGENTCORE_REQUEST_INIT;
    int r = pf_agentcore_request_list(&request, client->identifier, members, err);

    return r < 0 ? r : json_operation(client, &request, call, ret, err);
}

int pf_agentcore_invoke(struct pf_agentcore *client, const char *session, const char *tool,
                        json_t *arguments, const struct pf_agentcore_call *call,
                        struct pf_agentcore_result *ret, struct pinfold_error *err)
{
    PF_CLEANUP(pf_agentcore_request_done)
    struct pf_agentcore_request request = PF_AGENTCORE_REQUEST_INIT;
    PF_CLEANUP(pf_agentcore_stream_done)
    struct pf_agentcore_stream stream = PF_AGENTCORE_STREAM_INIT;
    struct operation op = {
        .client = client, .request = &request, .call = call, .stream = &stream
    };
    int r = pf_agentcore_request_invoke(&request, client->identifier, session, tool, arguments,
                                        err);

    if (r == 0)
        r = perform(&op, err);
    operation_done(&op);
    if (r == 0) {
        *ret = stream.result;
        stream.result = (struct pf_agentcore_result){ 0 };
    }
    return r;
}
