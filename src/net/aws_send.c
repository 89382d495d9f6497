/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/cancel.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/random.h"
#include "net/aws_sources.h"

#define FIRST_PAUSE_NS (100 * PF_NS_PER_MS)

void pf_aws_reply_done(struct pf_aws_reply *reply)
{
    pf_aws_wipe(&reply->body);
    pf_buf_done(&reply->headers);
    reply->status = 0;
}

const char *pf_aws_reply_header(const struct pf_aws_reply *reply, const char *name)
{
    return pf_http_header(&(struct pf_http_response){ .headers = reply->headers }, name);
}

/* The body of a success goes to a buffer that never grows, and so leaves no copies. */
static int take_body(void *ctx, const void *data, size_t len, struct pinfold_error *err)
{
    struct pf_aws_reply *reply = ctx;

    (void)err;
    return pf_buf_append(&reply->body, data, len);
}

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int send_once(const struct pf_aws_ask *ask, const struct pf_aws_call *call,
                     struct pf_aws_reply *reply, struct pinfold_error *err)
{
    size_t max = call->reply_max ? call->reply_max : PF_AWS_REPLY_MAX;
    const struct pf_http_request request = {
        .method = call->method,
        .url = call->url,
        .headers = call->headers,
        .header_count = call->header_count,
        .body = call->body,
        .body_len = call->body_len,
        .once = call->once,
        .bypass_proxy = call->near,
        .connect_ns = earlier(call->timeout_ns, 10 * PF_NS_PER_SEC),
        .deadline = earlier(ask->deadline, pf_clock_deadline(2 * call->timeout_ns)),
        .response_max = max,
        .on_body = take_body,
        .on_body_ctx = reply,
    };
    struct pf_http_response response = { 0 };
    int r;

    pf_aws_reply_done(reply);
    reply->body.limit = max;
    if (!call->reply_max && pf_buf_reserve(&reply->body, max) < 0)
        return pf_fail_nomem(err);
    r = pf_http_perform(ask->http, &request, &response, ask->cancel, err);
    if (r < 0)
        return r;
    reply->status = response.status;
    if (response.status < 200 || response.status > 299)
        r = response.body.len > PF_AWS_REPLY_MAX
                    ? 0
                    : pf_buf_append(&reply->body, response.body.data, response.body.len);
    reply->headers = response.headers;
    response.headers = (struct pf_buf)PF_BUF_INIT(0);
    pf_http_response_done(&response);
    return r < 0 ? pf_fail_nomem(err) : 0;
}

static int pause_for(const struct pf_aws_ask *ask, int64_t ns, struct pinfold_error *err)
{
    int64_t until = pf_clock_deadline(ns);
    int r = pf_cancel_wait(ask->cancel, NULL, earlier(until, ask->deadline), err);

    if (r == 0 && until > ask->deadline)
        r = pf_fail(err, PINFOLD_ETIMEOUT, "wait to ask again");
    return r;
}

/* Between nothing and 100 ms, 200 ms, 400 ms...: many that were refused at once shall not come
 * again at once. */
static int64_t backoff(int attempt)
{
    char hex[9];

    pf_random_hex(hex, 8);
    return (int64_t)strtoul(hex, NULL, 16) * (FIRST_PAUSE_NS << (attempt < 6 ? attempt : 6)) >> 32;
}

/* Whether another attempt may do better; what the caller wants to stop for is left alone. */
static bool may_help(const struct pf_aws_ask *ask, const struct pf_aws_call *call, int r,
                     int status, bool unsent)
{
    if (r == 0)
        return status == 429 || status >= 500;
    if (r != -PINFOLD_EOS && r != -PINFOLD_ETIMEOUT && r != -PINFOLD_EBACKEND)
        return false;
    return pf_clock_now() < ask->deadline && (!call->once || unsent);
}

int pf_aws_send(const struct pf_aws_ask *ask, const struct pf_aws_call *call,
                struct pf_aws_reply *ret, struct pinfold_error *err)
{
    struct pinfold_error local = PINFOLD_ERROR_INIT, before = local;
    int r = 0;

    for (int attempt = 0; attempt < call->attempts; attempt++) {
        before = local;
        if (attempt > 0 &&
            (r = pause_for(ask, call->pause_ns ? call->pause_ns : backoff(attempt - 1), &local)) <
                    0)
            break;
        r = send_once(ask, call, ret, &local);
        if (!may_help(ask, call, r, ret->status, local.retryable))
            break;
        if (r == 0)
            pf_aws_refused("attempt", ret->status, "", &local);
    }
    if (r == 0)
        return 0;
    pf_aws_reply_done(ret);
    pf_tell_before(&local, &before);
    /* An attempt's own time was too short: for whoever waits that is a service that is down. */
    if (r == -PINFOLD_ETIMEOUT && pf_clock_now() < ask->deadline) {
        r = -PINFOLD_EBACKEND;
        local.code = PINFOLD_EBACKEND;
    }
    if (err)
        *err = local;
    return pf_wrap(err, r, "%s", call->what);
}

int pf_aws_refused(const char *what, int status, const char *detail, struct pinfold_error *err)
{
    pf_fail(err, PINFOLD_EBACKEND, "%s: the answer was HTTP %d%s%s", what, status,
            *detail ? ": " : "", PF_QUOTE(detail));
    if (err)
        err->http_status = status;
    return -PINFOLD_EBACKEND;
}
