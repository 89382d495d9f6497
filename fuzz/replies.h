/* SPDX-License-Identifier: Apache-2.0 */
/*
 * In place of the HTTP client: the rest of an input is cut at bytes of 0x1e into replies, each of
 * which begins with two bytes, that choose its status and its headers. After the last one the
 * connection is dead. The target is linked with --wrap=pf_http_perform.
 */
#ifndef PF_FUZZ_REPLIES_H
#define PF_FUZZ_REPLIES_H

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "net/http.h"
#include "fuzz.h"

#define REPLY_END 0x1e
#define FUZZ_SECRET "secret-of-nobody"

int __wrap_pf_http_perform(struct pf_http *http, const struct pf_http_request *request,
                           struct pf_http_response *ret, struct pinfold_cancel *cancel,
                           struct pinfold_error *err);

static struct {
    const uint8_t *at, *end;
} replies;

static inline void add_reply_header(struct pf_http_response *response, const char *name,
                                    const char *value)
{
    demand(pf_buf_append(&response->headers, name, strlen(name) + 1) == 0);
    demand(pf_buf_append(&response->headers, value, strlen(value) + 1) == 0);
}

static inline void add_reply_headers(struct pf_http_response *response, uint8_t choice)
{
    static const char *const types[] = { "application/json; charset=utf-8",
                                         "multipart/form-data; boundary=B-B", "text/plain",
                                         "application/vnd.amazon.eventstream" };

    add_reply_header(response, "content-type", types[choice % 4]);
    if (choice & 4)
        add_reply_header(response, "retry-after", "1000");
    if (choice & 8)
        add_reply_header(response, "x-ratelimit-remaining-" FUZZ_SECRET, "0");
    if (choice & 16)
        add_reply_header(response, "x-amzn-errortype", "ThrottlingException:http://x");
    if (choice & 32) {
        add_reply_header(response, "x-amzn-requestid", "id-" FUZZ_SECRET "-token");
        add_reply_header(response, "date", "Sun, 06 Nov 1994 08:49:37 GMT");
    }
}

int __wrap_pf_http_perform(struct pf_http *http, const struct pf_http_request *request,
                           struct pf_http_response *ret, struct pinfold_cancel *cancel,
                           struct pinfold_error *err)
{
    static const int statuses[] = { 200, 200, 200, 200, 400, 401, 403, 404,
                                    408, 409, 429, 500, 503, 206, 302, 204 };
    const uint8_t *data = replies.at, *end;
    uint8_t choice;

    (void)http;
    (void)cancel;
    *ret = (struct pf_http_response){ .headers = PF_BUF_INIT(4096),
                                      .body = PF_BUF_INIT(PF_BUF_UNLIMITED) };
    if (replies.end - data < 2)
        return pf_fail_os(err, ECONNRESET, "GET %s", request->url);
    ret->status = statuses[data[0] % 16];
    choice = data[1];
    data += 2;
    end = memchr(data, REPLY_END, (size_t)(replies.end - data));
    replies.at = end ? end + 1 : replies.end;
    end = end ? end : replies.end;
    add_reply_headers(ret, choice);
    if (!request->on_body || ret->status < 200 || ret->status > 299) {
        demand(pf_buf_append(&ret->body, data, (size_t)(end - data)) == 0);
        return 0;
    }
    for (size_t piece = 1 + choice % 64, left; data < end; data += left < piece ? left : piece) {
        int r;
        left = (size_t)(end - data);
        r = request->on_body(request->on_body_ctx, data, left < piece ? left : piece, err);
        if (r < 0) {
            pf_http_response_done(ret);
            return r;
        }
    }
    return 0;
}

/* An error has words, and none of them is the secret. */
static inline void check_outcome(int r, const struct pinfold_error *err)
{
    demand(r >= 0 || (err->code == -r && err->msg[0]));
    demand(!strstr(err->msg, FUZZ_SECRET));
    for (const char *at = err->msg; r < 0 && *at; at++)
        demand((unsigned char)*at >= 0x20 && *at != 0x7f);
}

#endif
