/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replies of servers, through libcurl: collected or streamed they are the same, and every header is
 * a name and a value. libcurl is led to a socket of this process, which answers before it is
 * asked.
 */
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "net/curl.h"
#include "net/http.h"
#include "fuzz.h"

#undef curl_easy_setopt
enum { REPLY_MAX = 64 * 1024, KEPT_MAX = 4096 };

CURLcode __real_curl_easy_setopt(CURL *easy, CURLoption option, ...);
CURLcode __wrap_curl_easy_setopt(CURL *easy, CURLoption option, void *value);

static struct {
    const uint8_t *data;
    size_t size;
    char name[32]; /* abstract: of no file */
    int listener, ours;
} server = { .listener = -1, .ours = -1 };

static void listen_once(void)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    socklen_t len;

    if (server.listener >= 0)
        return;
    snprintf(server.name, sizeof(server.name), "pf-fuzz-%d", (int)getpid());
    memcpy(address.sun_path + 1, server.name, strlen(server.name));
    len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(server.name));
    server.listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    demand(server.listener >= 0 && bind(server.listener, (struct sockaddr *)&address, len) == 0 &&
           listen(server.listener, 8) == 0);
}

/* libcurl is connected, and about to send the request. */
static int answer(void *ctx, char *ip, char *own_ip, int port, int own_port)
{
    int room = 4 * REPLY_MAX;

    (void)ctx;
    (void)ip;
    (void)own_ip;
    (void)port;
    (void)own_port;
    demand(server.ours < 0); /* there is one reply */
    server.ours = accept4(server.listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    demand(server.ours >= 0);
    demand(setsockopt(server.ours, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room)) == 0);
    demand(server.size == 0 ||
           send(server.ours, server.data, server.size, MSG_NOSIGNAL) == (ssize_t)server.size);
    demand(shutdown(server.ours, SHUT_WR) == 0);
    return CURL_PREREQFUNC_OK;
}

CURLcode __wrap_curl_easy_setopt(CURL *easy, CURLoption option, void *value)
{
    if (option == CURLOPT_URL) {
        __real_curl_easy_setopt(easy, CURLOPT_ABSTRACT_UNIX_SOCKET, server.name);
        __real_curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, answer);
    }
    return __real_curl_easy_setopt(easy, option, value);
}

static int take_body(void *ctx, const void *data, size_t len, struct pinfold_error *err)
{
    demand(len > 0);
    return pf_buf_append(ctx, data, len) < 0
                   ? pf_fail(err, PINFOLD_EBACKEND, "the reply is too large")
                   : 0;
}

static void check_headers(const struct pf_http_response *response)
{
    const char *at = response->headers.data, *end = at ? at + response->headers.len : NULL;

    while (at && at < end) {
        const char *value = at + strlen(at) + 1;
        demand(value < end && !strpbrk(at, "ABCDEFGHIJKLMNOPQRSTUVWXYZ:"));
        demand(!strpbrk(value, "\r\n"));
        demand(pf_http_header(response, at) != NULL);
        at = value + strlen(value) + 1;
    }
    demand(at == end);
    demand(pf_http_retry_after(response) >= -1);
}

static int perform(struct pf_buf *streamed, struct pf_http_response *response)
{
    struct pf_http_request request = { .method = "GET",
                                       .url = "http://127.0.0.1:1/",
                                       .bypass_proxy = true,
                                       .once = true,
                                       .deadline = pf_clock_deadline(10 * PF_NS_PER_SEC),
                                       .response_max = KEPT_MAX,
                                       .on_body = streamed ? take_body : NULL,
                                       .on_body_ctx = streamed };
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    struct pf_http *http;
    int r;

    demand(pf_http_new(NULL, &http, &err) == 0);
    r = pf_http_perform(http, &request, response, NULL, &err);
    demand((r == 0) == (err.code == 0) && (r == 0 || err.msg[0]));
    demand(r != -PINFOLD_ETIMEOUT);
    if (r == 0)
        check_headers(response);
    pf_http_free(http);
    if (server.ours >= 0)
        close(TAKE_FD(server.ours));
    return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    PF_CLEANUP(pf_buf_done) struct pf_buf streamed = PF_BUF_INIT(KEPT_MAX);
    struct pf_http_response collected = { 0 }, other = { 0 };
    const struct pf_buf *body;
    bool ok;

    if (size > REPLY_MAX)
        return 0;
    listen_once();
    server.data = data;
    server.size = size;
    ok = perform(NULL, &collected) == 0;
    /* What is no success is collected in either case, and then has more room. */
    if (perform(&streamed, &other) == 0 && ok) {
        body = other.status >= 200 && other.status < 300 ? &streamed : &other.body;
        demand(collected.status == other.status && collected.body.len == body->len);
        demand(body->len == 0 || memcmp(collected.body.data, body->data, body->len) == 0);
    }
    pf_http_response_done(&collected);
    pf_http_response_done(&other);
    return 0;
}
