/* SPDX-License-Identifier: Apache-2.0 */
#include "net/daytona_send.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>

#include "base/cancel.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "net/uri.h"

/* The daemon looks at this: from 0.167 on it gives the streams of a log apart. */
#define SDK_VERSION "0.218.0"
#define JSON_TYPE "application/json"
#define BODY_MAX ((size_t)256 << 20)
enum { MAX_HEADERS = 10, TRANSPORT_RETRIES = 2, THROTTLE_RETRIES = 4, WAIT_MAX_SECONDS = 60 };

int pf_daytona_new(const struct pf_daytona_config *config, struct pf_http *http,
                   struct pf_daytona **ret, struct pinfold_error *err)
{
    struct pf_daytona *client = calloc(1, sizeof(*client));

    if (!client)
        return pf_fail_nomem(err);
    client->config = config;
    client->http = http;
    client->bearer = (struct pf_buf)PF_BUF_INIT(64 << 10);
    if (pf_buf_printf(&client->bearer, "Bearer %s", config->token) < 0) {
        pf_daytona_free(client);
        return pf_fail_nomem(err);
    }
    *ret = client;
    return 0;
}

void pf_daytona_free(struct pf_daytona *client)
{
    if (!client)
        return;
    if (client->bearer.data)
        explicit_bzero(client->bearer.data, client->bearer.len);
    pf_buf_done(&client->bearer);
    free(client);
}

void pf_daytona_request_done(struct pf_daytona_request *request)
{
    pf_buf_done(&request->url);
}

int pf_daytona_url(struct pf_daytona_request *request, const char *text, const char *value,
                   struct pinfold_error *err)
{
    int r = pf_buf_append_text(&request->url, text);

    if (r == 0 && value)
        r = pf_uri_encode(&request->url, value, strlen(value), "");
    if (r == -PINFOLD_EVALUE)
        return pf_fail(err, PINFOLD_EVALUE, "Daytona %s: the address is too long",
                       request->operation);
    return r < 0 ? pf_fail_nomem(err) : 0;
}

/* ---- one attempt ---- */

struct headers {
    struct pf_header list[MAX_HEADERS];
    size_t count;
};

static void add_header(struct headers *headers, const char *name, const char *value)
{
    if (value)
        headers->list[headers->count++] = (struct pf_header){ name, value };
}

static void add_headers(struct headers *headers, const struct pf_daytona *client,
                        const struct pf_daytona_request *request)
{
    const char *type = request->json ? JSON_TYPE : request->content_type;

    add_header(headers, "Accept", request->accept ? request->accept : JSON_TYPE);
    add_header(headers, "Content-Type", type);
    add_header(headers, "Authorization", client->bearer.data);
    add_header(headers, "X-Daytona-Source", "pinfold");
    add_header(headers, "X-Daytona-SDK-Version", SDK_VERSION);
    add_header(headers, "X-Daytona-Organization-ID", client->config->organization);
    add_header(headers, "Range", request->range);
}

static bool only_asks(const char *method)
{
    return strcmp(method, "GET") == 0 || strcmp(method, "PUT") == 0 ||
           strcmp(method, "DELETE") == 0;
}

static int attempt(struct pf_daytona *client, const struct pf_daytona_request *request,
                   const struct pf_buf *body, const struct pf_daytona_call *call,
                   struct pf_http_response *ret, struct pinfold_error *err)
{
    struct headers headers = { .count = 0 };
    bool has_body = request->read_body || strcmp(request->method, "POST") == 0;
    struct pf_http_request http = {
        .method = request->method,
        .url = request->url.data,
        .body = has_body && !request->read_body ? (body->data ? body->data : "") : NULL,
        .body_len = request->read_body ? request->body_len : body->len,
        .read_body = request->read_body,
        .read_ctx = request->read_ctx,
        .once = !only_asks(request->method),
        .deadline = call->deadline,
        .idle_ns = call->idle_ns,
        .also_cancel = call->also_cancel,
        .response_max = request->reply_max ? request->reply_max : PF_DAYTONA_REPLY_MAX,
        .on_body = request->on_body,
        .on_body_ctx = request->on_body_ctx,
    };

    add_headers(&headers, client, request);
    http.headers = headers.list;
    http.header_count = headers.count;
    return pf_http_perform(client->http, &http, ret, call->cancel, err);
}

/* ---- what a refusal says ---- */

/* Where services of different ages put their words. */
static const char *message_in(const json_t *body)
{
    const json_t *errors = json_object_get(body, "errors");
    const char *text = json_string_value(json_object_get(body, "message"));

    if (!text)
        text = json_string_value(json_object_get(body, "error"));
    if (!text)
        text = json_string_value(json_array_get(errors, 0));
    return text;
}

static const char *advice(const struct pf_daytona *client, int status)
{
    switch (status) {
    case 401:
        return client->config->organization
                       ? ": the credentials are not good: check DAYTONA_JWT_TOKEN, which expires"
                       : ": the credentials are not good: check DAYTONA_API_KEY";
    case 403:
        return ": not allowed: check the organization, and what the key may do";
    case 409:
        return ": it conflicts with what is there, or is still changing";
    case 502:
    case 503:
    case 504:
        return ": the sandbox or the service cannot be reached now";
    default:
        return "";
    }
}

/* A service may quote what it was sent, and names of headers come in lower case. */
static bool holds_secret(const struct pf_daytona *client, const char *text)
{
    return strcasestr(text, client->config->token) != NULL;
}

const char *pf_daytona_words(const struct pf_daytona *client, const char *text)
{
    return holds_secret(client, text) ? "(the service quotes the credential)" : text;
}

int pf_daytona_retry_after(const struct pf_http_response *response)
{
    const char *at = response->headers.data, *end = at ? at + response->headers.len : NULL;

    /* "Retry-After", or with the name of what counts behind it. */
    while (at && at < end) {
        const char *value = at + strlen(at) + 1;
        char *rest;
        if (strncmp(at, "retry-after", 11) == 0 && *value >= '0' && *value <= '9') {
            long seconds = strtol(value, &rest, 10);
            if (*rest == '\0' && seconds >= 0 && seconds < 100000)
                return (int)seconds;
        }
        at = value + strlen(value) + 1;
    }
    return -1;
}

/* Which of the service's limits it was: "X-RateLimit-Remaining-NAME" is 0. */
static const char *throttler(const struct pf_http_response *response)
{
    static const char prefix[] = "x-ratelimit-remaining-";
    const char *at = response->headers.data, *end = at ? at + response->headers.len : NULL;

    while (at && at < end) {
        const char *value = at + strlen(at) + 1;
        if (strncmp(at, prefix, sizeof(prefix) - 1) == 0 && strcmp(value, "0") == 0)
            return at + sizeof(prefix) - 1;
        at = value + strlen(value) + 1;
    }
    return NULL;
}

static void say_throttled(const struct pf_daytona *client, const char *operation,
                          const struct pf_http_response *response, struct pinfold_error *err)
{
    int seconds = pf_daytona_retry_after(response);
    const char *name = throttler(response);
    char when[48] = "later";

    if (seconds >= 0)
        snprintf(when, sizeof(when), "in %d s", seconds);
    pf_fail(err, PINFOLD_EBACKEND, "Daytona %s: 429: too many requests%s%s: try again %s",
            operation, name ? " of " : "", name ? PF_QUOTE(pf_daytona_words(client, name)) : "",
            when);
}

int pf_daytona_refused(const struct pf_daytona *client, const char *operation,
                       const struct pf_http_response *response, struct pinfold_error *err)
{
    int status = response->status;
    json_auto_t *body =
            json_loadb(response->body.data ? response->body.data : "", response->body.len, 0, NULL);
    const char *text = message_in(body);
    enum pinfold_code code = status == 408 ? PINFOLD_ETIMEOUT : PINFOLD_EBACKEND;

    /* An edge answers in HTML, of which nobody wants to read a line. */
    if (!text && !body && response->body.len > 0 && response->body.data[0] != '<')
        text = response->body.data;
    if (text && (!*text || holds_secret(client, text)))
        text = NULL;
    if (status == 429)
        say_throttled(client, operation, response, err);
    else if (text)
        pf_fail(err, code, "Daytona %s: %d%s: \"%s\"", operation, status, advice(client, status),
                PF_QUOTE(text));
    else
        pf_fail(err, code, "Daytona %s: %d%s", operation, status, advice(client, status));
    err->http_status = status;
    err->retryable = status == 429 || status == 409;
    return -(int)code;
}

/* ---- attempts ---- */

/* Returns 1 after the wait, or a negative code when it would be too long or was called off. */
static int wait_for(const struct pf_daytona_call *call, int64_t ns, struct pinfold_error *err)
{
    int64_t until = pf_clock_deadline(ns);
    int r;

    if (until >= call->deadline)
        return 0;
    r = pf_cancel_wait(call->cancel, call->also_cancel, until, err);
    return r < 0 ? r : 1;
}

static int64_t transport_delay(unsigned retry)
{
    unsigned char chance = 0;

    if (getrandom(&chance, 1, GRND_NONBLOCK) < 1)
        chance = 128;
    return (250 * (int64_t)retry + chance * 100 / 255) * PF_NS_PER_MS;
}

/* Whoever is throttled for bad credentials must not go on with them. */
static int64_t throttle_delay(const struct pf_http_response *response, unsigned retry)
{
    int seconds = pf_daytona_retry_after(response);
    const char *name = throttler(response);

    if (retry > THROTTLE_RETRIES || (name && strcmp(name, "failed-auth") == 0))
        return -1;
    if (seconds < 0)
        seconds = 1 << (retry - 1);
    return seconds > WAIT_MAX_SECONDS ? -1 : seconds * PF_NS_PER_SEC;
}

static int encode(const struct pf_daytona_request *request, struct pf_buf *body,
                  struct pinfold_error *err)
{
    char *text = request->json ? json_dumps(request->json, JSON_COMPACT) : NULL;

    if (!request->json)
        return 0;
    if (!text)
        return pf_fail_nomem(err);
    body->data = text;
    body->len = strlen(text);
    body->capacity = body->len + 1;
    return 0;
}

static int one_try(struct pf_daytona *client, struct pf_daytona_request *request,
                   const struct pf_buf *body, const struct pf_daytona_call *call,
                   struct pf_http_response *ret, struct pinfold_error *err)
{
    int r = attempt(client, request, body, call, ret, err);

    /* An address may hold what the service made up. */
    if (r < 0 && holds_secret(client, err->msg))
        snprintf(err->msg, sizeof(err->msg), "the service names the credential in an address");
    if (r < 0 && err->code == 0) /* a body that could not be read says no more */
        return pf_fail_os(err, EIO, "Daytona %s: read what is to be sent", request->operation);
    return r == 0 || r == -PINFOLD_ENOMEM ? r : pf_wrap(err, r, "Daytona %s", request->operation);
}

int pf_daytona_send_any(struct pf_daytona *client, struct pf_daytona_request *request,
                        const struct pf_daytona_call *call, struct pf_http_response *ret,
                        struct pinfold_error *err)
{
    PF_CLEANUP(pf_buf_done) struct pf_buf body = PF_BUF_INIT(BODY_MAX);
    int r = encode(request, &body, err);

    return r < 0 ? r : one_try(client, request, &body, call, ret, err);
}

/* How long to wait before the request may go again; -1: it may not. */
static int64_t delay_for(const struct pf_daytona_request *request, int r,
                         const struct pf_http_response *response, struct pinfold_error *err,
                         unsigned *transport, unsigned *throttled)
{
    if (request->read_body)
        return -1; /* it has been read */
    if (err->http_status == 429)
        return throttle_delay(response, ++*throttled);
    if (r == -PINFOLD_EOS && !request->on_body && (err->retryable || only_asks(request->method)) &&
        ++*transport <= TRANSPORT_RETRIES)
        return transport_delay(*transport);
    return -1;
}

int pf_daytona_send(struct pf_daytona *client, struct pf_daytona_request *request,
                    const struct pf_daytona_call *call, struct pf_http_response *ret,
                    struct pinfold_error *err)
{
    PF_CLEANUP(pf_buf_done) struct pf_buf body = PF_BUF_INIT(BODY_MAX);
    struct pinfold_error before = PINFOLD_ERROR_INIT;
    unsigned transport = 0, throttled = 0;
    int r = encode(request, &body, err);

    while (r == 0) {
        int64_t delay;
        int waited;
        *err = (struct pinfold_error)PINFOLD_ERROR_INIT;
        r = one_try(client, request, &body, call, ret, err);
        if (r == 0 && ret->status >= 200 && ret->status < 300)
            return 0;
        if (r == 0)
            r = pf_daytona_refused(client, request->operation, ret, err);
        delay = delay_for(request, r, ret, err, &transport, &throttled);
        pf_http_response_done(ret);
        pf_tell_before(err, &before);
        if (delay < 0)
            return r;
        waited = wait_for(call, delay, err);
        if (waited <= 0)
            return waited < 0 ? waited : r;
        before = *err;
        r = 0;
    }
    return r;
}

int pf_daytona_send_json(struct pf_daytona *client, struct pf_daytona_request *request,
                         const struct pf_daytona_call *call, json_t **ret,
                         struct pinfold_error *err)
{
    struct pf_http_response response = { 0 };
    int r = pf_daytona_send(client, request, call, &response, err);

    if (r < 0)
        return r;
    *ret = json_loadb(response.body.data ? response.body.data : "", response.body.len,
                      JSON_ALLOW_NUL | JSON_DECODE_ANY, NULL);
    pf_http_response_done(&response);
    return *ret ? 0
                : pf_fail(err, PINFOLD_EBACKEND, "Daytona %s: the reply is no JSON",
                          request->operation);
}

int pf_daytona_send_plain(struct pf_daytona *client, struct pf_daytona_request *request,
                          const struct pf_daytona_call *call, struct pinfold_error *err)
{
    struct pf_http_response response = { 0 };
    int r = pf_daytona_send(client, request, call, &response, err);

    if (r == 0)
        pf_http_response_done(&response);
    return r;
}
