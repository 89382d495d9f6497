/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/model_http.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "agent/model.h"
#include "base/cancel.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/strings.h"

#define BODY_MAX ((size_t)256 * 1024 * 1024)
#define BACKOFF_MAX_NS (20 * PF_NS_PER_SEC)
#define ASKED_MAX_NS (60 * PF_NS_PER_SEC)
#define MENDS_MAX 3
/* Once a reply is complete, the end of its transfer is waited for only to keep the connection. */
#define LINGER_NS (500 * PF_NS_PER_MS)
#define SECRET_MAX 16384

/* ---- headers ---- */

void pf_model_header(struct pf_model_headers *headers, const char *name, const char *value)
{
    if (value && headers->count < PF_MODEL_HEADERS_MAX)
        headers->list[headers->count++] = (struct pf_header){ name, value };
}

int pf_model_bearer(struct pf_model_headers *headers, const char *key)
{
    if (!key)
        return 0;
    /* At its full size at once: a buffer that grows leaves copies behind. */
    if (pf_buf_reserve(&headers->secret, strlen(key) + 8) < 0 ||
        pf_buf_printf(&headers->secret, "Bearer %s", key) < 0)
        return -PINFOLD_ENOMEM;
    pf_model_header(headers, "authorization", headers->secret.data);
    return 0;
}

static void headers_done(struct pf_model_headers *headers)
{
    if (headers->secret.data)
        explicit_bzero(headers->secret.data, headers->secret.len);
    pf_buf_done(&headers->secret);
}

/* ---- errors ---- */

void pf_model_trouble_set(struct pf_model_trouble *trouble, int status, const char *type,
                          const char *message)
{
    trouble->status = status;
    snprintf(trouble->type, sizeof(trouble->type), "%s", type ? type : "");
    trouble->message.len = 0;
    /* What is too long, or finds no memory, is no worse for people than a short message. */
    if (message)
        (void)!pf_buf_append(&trouble->message, message, strnlen(message, 4096));
}

static bool passes(const struct pf_model_trouble *trouble)
{
    int status = trouble->status;

    if (trouble->hopeless || trouble->passing)
        return trouble->passing;
    return status == 408 || status == 409 || status == 429 || status >= 500;
}

int pf_model_trouble_fail(const struct pf_model_call *call, const struct pf_model_trouble *trouble,
                          const char *request_id, struct pinfold_error *err)
{
    const struct pf_model_client *client = call->client;
    struct pinfold_error scratch = PINFOLD_ERROR_INIT;
    char *message = trouble->message.data;
    char status[24] = "error in the stream", id[160] = "";

    pf_text_hide(message, client->key);
    pf_text_hide(message, call->secret);
    if (trouble->status)
        snprintf(status, sizeof(status), "HTTP %d", trouble->status);
    /* The request's id stands where it is not what an overlong message loses. */
    if (request_id && *request_id)
        snprintf(id, sizeof(id), " (request %.60s)", PF_QUOTE(request_id));
    pf_fail(&scratch, PINFOLD_EBACKEND, "%s model %.60s: %s%s%s%s%s%s", client->provider,
            PF_QUOTE(client->model), status, trouble->type[0] ? " " : "",
            trouble->type[0] ? PF_QUOTE(trouble->type) : "", id, message && message[0] ? ": " : "",
            message && message[0] ? PF_QUOTE(message) : "");
    return pf_model_refused(trouble->status, passes(trouble), scratch.msg, err);
}

int pf_model_garbled(const struct pf_model_call *call, const char *what, struct pinfold_error *err)
{
    pf_fail(err, PINFOLD_EBACKEND, "%s model %.60s: %s", call->client->provider,
            PF_QUOTE(call->client->model), what);
    if (err)
        err->retryable = 1;
    return -PINFOLD_EBACKEND;
}

/* ---- one attempt ---- */

static int take_body(void *ctx, const void *data, size_t len, struct pinfold_error *err)
{
    struct pf_model_call *call = ctx;
    int r = 0;

    (void)err; /* ours keeps what the client would word anew */
    call->bytes += len;
    if (call->bytes > call->client->max_reply_bytes) {
        pf_fail(&call->failed, PINFOLD_EBACKEND,
                "%s model %.60s: the reply is larger than %zu bytes", call->client->provider,
                PF_QUOTE(call->client->model), call->client->max_reply_bytes);
        return -PINFOLD_EBACKEND;
    }
    if (!call->complete)
        r = call->wire->take(call, data, len, &call->failed);
    if (call->complete)
        call->http.idle_ns = LINGER_NS;
    return r < 0 ? -PINFOLD_EBACKEND : 0;
}

static int send_once(struct pf_model_call *call, struct pf_http_response *response,
                     struct pinfold_error *err)
{
    struct pf_model_client *client = call->client;
    PF_CLEANUP(headers_done)
    struct pf_model_headers headers = { .secret = PF_BUF_INIT(SECRET_MAX) };
    PF_CLEANUP(pf_buf_done) struct pf_buf url = PF_BUF_INIT(16384);
    int r;

    if (pf_buf_printf(&url, "%s%s", client->base, call->path) < 0)
        return pf_fail_nomem(err);
    pf_model_header(&headers, "content-type", "application/json");
    r = call->wire->headers(call, &headers, err);
    if (r < 0)
        return r;
    call->http = (struct pf_http_request){
        .method = "POST",
        .url = url.data,
        .headers = headers.list,
        .header_count = headers.count,
        .body = call->body.data,
        .body_len = call->body.len,
        .bypass_proxy = client->near,
        .connect_ns = client->connect_ns,
        .deadline = call->deadline,
        .idle_ns = client->idle_ns,
        .on_body = take_body,
        .on_body_ctx = call,
    };
    call->sent = true;
    return pf_http_perform(client->http, &call->http, response, call->cancel, err);
}

/* The transfer failed. Returns 0 if nothing of the reply is missing. */
static int judge_failure(struct pf_model_call *call, int r, struct pinfold_error *err)
{
    if (call->failed.code) {
        *err = call->failed;
        return -call->failed.code;
    }
    if (r == -PINFOLD_ECANCELLED || r == -PINFOLD_ENOMEM)
        return r;
    if (call->complete) {
        *err = (struct pinfold_error)PINFOLD_ERROR_INIT;
        return 0;
    }
    if (call->sent && (r == -PINFOLD_EOS || r == -PINFOLD_EBACKEND || r == -PINFOLD_ETIMEOUT))
        err->retryable = 1;
    return pf_wrap(err, r, "%s model", call->client->provider);
}

static int refuse(struct pf_model_call *call, struct pf_http_response *response, bool *ret_mended,
                  struct pinfold_error *err)
{
    struct pf_model_trouble trouble = PF_MODEL_TROUBLE_INIT;
    const char *again = pf_http_header(response, "x-should-retry");
    const char *location = pf_http_header(response, "location");
    int r;

    trouble.status = response->status;
    if (response->status >= 300 && response->status < 400)
        pf_model_trouble_set(&trouble, response->status, "redirects are not followed; to",
                             location ? location : "nowhere");
    else
        call->wire->refused(call, response, &trouble);
    if (again && strcmp(again, "true") == 0)
        trouble.passing = true;
    else if (again && strcmp(again, "false") == 0)
        trouble.hopeless = true;
    call->asked_ns = pf_http_retry_after(response);
    *ret_mended = call->wire->mend && call->mended < MENDS_MAX && call->wire->mend(call, &trouble);
    call->mended += *ret_mended;
    r = pf_model_trouble_fail(call, &trouble, pf_http_header(response, call->wire->request_id),
                              err);
    pf_buf_done(&trouble.message);
    return r;
}

/* The reply is there, as far as HTTP goes. */
static int accept_reply(struct pf_model_call *call, const struct pf_http_response *response,
                        struct pinfold_error *err)
{
    const char *type = pf_http_header(response, "content-type");
    const char *id = pf_http_header(response, call->wire->request_id);
    int r = call->wire->end(call, err);

    if (r == -PINFOLD_EBACKEND && type && strncasecmp(type, "text/html", 9) == 0)
        return pf_fail(err, PINFOLD_EBACKEND,
                       "%s model %.60s: %.100s answers with a web page: is the base URL right?",
                       call->client->provider, PF_QUOTE(call->client->model),
                       PF_QUOTE(call->client->base));
    if (r == 0 && id && !call->reply.out->request_id)
        call->reply.out->request_id = strdup(id);
    return r;
}

static int attempt(struct pf_model_call *call, bool *ret_mended, struct pinfold_error *err)
{
    PF_CLEANUP(pf_http_response_done) struct pf_http_response response = { 0 };
    int r = send_once(call, &response, err);

    call->asked_ns = -1;
    if (r < 0) {
        r = judge_failure(call, r, err);
        return r < 0 ? r : call->wire->end(call, err);
    }
    if (response.status < 200 || response.status > 299)
        return refuse(call, &response, ret_mended, err);
    return accept_reply(call, &response, err);
}

/* ---- attempts ---- */

/* Between a half and the whole of a time that doubles: many that were refused at once shall not
 * come again at once. */
static int64_t backoff(const struct pf_model_call *call)
{
    int64_t longest = call->client->backoff_ns, half;
    uint32_t dice = 0;

    for (unsigned i = 1; i < call->attempt && longest < BACKOFF_MAX_NS; i++)
        longest *= 2;
    if (longest > BACKOFF_MAX_NS)
        longest = BACKOFF_MAX_NS;
    if (getrandom(&dice, sizeof(dice), GRND_NONBLOCK) != sizeof(dice))
        dice = UINT32_MAX / 2;
    half = longest / 2;
    return half + (int64_t)((double)half * ((double)dice / (double)UINT32_MAX));
}

/* Whether there is another attempt, and after which delay. */
static bool goes_on(const struct pf_model_call *call, int r, const struct pinfold_error *err,
                    int64_t *ret_delay)
{
    if (r == -PINFOLD_ECANCELLED || r == -PINFOLD_ENOMEM || !err->retryable || call->reply.told ||
        call->attempt >= call->client->attempts || call->asked_ns > ASKED_MAX_NS)
        return false;
    *ret_delay = backoff(call);
    if (call->asked_ns > *ret_delay)
        *ret_delay = call->asked_ns;
    return pf_clock_deadline(*ret_delay) < call->deadline;
}

static void begin_again(struct pf_model_call *call)
{
    call->wire->reset(call);
    pf_reply_done(&call->reply);
    call->bytes = 0;
    call->complete = call->sent = false;
    call->failed = (struct pinfold_error)PINFOLD_ERROR_INIT;
}

int pf_model_call_perform(struct pf_model_call *call, struct pinfold_error *err)
{
    struct pinfold_error one = PINFOLD_ERROR_INIT, before;
    int64_t delay = 0;
    int r;

    call->deadline = pf_clock_deadline(call->client->timeout_ns);
    for (call->attempt = 1;; call->attempt++) {
        bool mended = false;
        before = one;
        one = (struct pinfold_error)PINFOLD_ERROR_INIT;
        begin_again(call);
        r = attempt(call, &mended, &one);
        if (r == 0)
            break;
        if (mended) {
            one = before; /* what was put right is no reason to wait */
            call->attempt--;
            continue;
        }
        if (!goes_on(call, r, &one, &delay))
            break;
        r = pf_reply_retry(&call->reply, &one, call->attempt, delay, &one);
        if (r == 0)
            r = pf_cancel_wait(call->cancel, NULL, pf_clock_deadline(delay), &one);
        if (r < 0)
            break;
    }
    call->reply.out->attempts = call->attempt + call->mended;
    pf_tell_before(&one, &before);
    if (r < 0 && err)
        *err = one;
    return r;
}

int pf_model_call_body(struct pf_model_call *call, json_t *json, struct pinfold_error *err)
{
    size_t len;

    if (!json || (call->client->extra && json_object_update(json, call->client->extra) < 0))
        return pf_fail_nomem(err);
    len = json_dumpb(json, NULL, 0, JSON_COMPACT);
    call->body = (struct pf_buf)PF_BUF_INIT(BODY_MAX);
    if (len > BODY_MAX)
        return pf_fail(err, PINFOLD_EVALUE,
                       "%s model: the conversation is %zu bytes, more than %zu",
                       call->client->provider, len, BODY_MAX);
    if (len == 0 || pf_buf_reserve(&call->body, len) < 0)
        return pf_fail_nomem(err);
    call->body.len = json_dumpb(json, call->body.data, len, JSON_COMPACT);
    call->body.data[call->body.len] = '\0';
    return call->body.len == len ? 0 : pf_fail_nomem(err);
}

void pf_model_call_done(struct pf_model_call *call)
{
    call->wire->reset(call);
    pf_reply_done(&call->reply);
    pf_buf_done(&call->body);
}
