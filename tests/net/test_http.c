/* SPDX-License-Identifier: Apache-2.0 */
/* The client against a server on loopback that says what each test has written down, byte by byte.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "descriptors.h"
#include "net/http.h"
#include "read_request.h"

#define OK_REPLY "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-Odd:  a b \r\n\r\nok"
#define SILENCE ((const char *)1) /* say nothing, and wait for the client to go */

struct server {
    int listener, port;
    pthread_t thread;
    const char *replies[8]; /* to one request each; NULL: hang up */
    bool close_after;       /* each reply */
    bool cut_request;       /* hang up in the middle of it */
    sem_t closed;           /* posted when a connection is */
    /* What came, under the lock of being joined. */
    char requests[8][4096];
    unsigned request_count, connection_count;
};

struct fixture {
    struct server server;
    struct pf_http *http;
    struct pf_http_response response;
    struct pinfold_error err;
    char url[64];
    int descriptors;
};

static void serve(struct server *server, int fd)
{
    char byte;

    while (server->request_count < 8) {
        const char *reply;
        unsigned number = server->request_count;

        if (!read_request(fd, server->requests[number], sizeof(server->requests[number])))
            return;
        server->request_count++;
        reply = server->replies[number];
        if (!reply)
            return;
        if (reply == SILENCE) {
            (void)!read(fd, &byte, 1);
            return;
        }
        if (send(fd, reply, strlen(reply), MSG_NOSIGNAL) < 0 || server->close_after)
            return;
    }
}

static void *run_server(void *arg)
{
    struct server *server = arg;
    int fd;

    while ((fd = accept4(server->listener, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
        char some[1000];
        server->connection_count++;
        if (server->cut_request)
            (void)!read(fd, some, sizeof(some));
        else
            serve(server, fd);
        close(fd);
        sem_post(&server->closed);
    }
    return NULL;
}

static void stop_server(struct server *server)
{
    if (server->listener < 0)
        return;
    shutdown(server->listener, SHUT_RDWR); /* wakes accept() */
    pthread_join(server->thread, NULL);
    close(server->listener);
    server->listener = -1;
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t len = sizeof(address);

    assert_non_null(f);
    sem_init(&f->server.closed, 0, 0);
    assert_int_equal(pf_http_new(NULL, &f->http, &f->err), 0);
    f->descriptors = count_descriptors();
    f->server.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(f->server.listener, (void *)&address, sizeof(address)), 0);
    assert_int_equal(listen(f->server.listener, 8), 0);
    assert_int_equal(getsockname(f->server.listener, (void *)&address, &len), 0);
    f->server.port = ntohs(address.sin_port);
    snprintf(f->url, sizeof(f->url), "http://127.0.0.1:%d/path?q=secret", f->server.port);
    pthread_create(&f->server.thread, NULL, run_server, &f->server);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    pf_http_response_done(&f->response);
    pf_http_free(f->http); /* kept connections end, and the server's read with them */
    stop_server(&f->server);
    assert_int_equal(count_descriptors(), f->descriptors);
    free(f);
    return 0;
}

static struct pf_http_request get(struct fixture *f)
{
    return (struct pf_http_request){ .method = "GET",
                                     .url = f->url,
                                     .bypass_proxy = true,
                                     .deadline = pf_clock_deadline(60 * PF_NS_PER_SEC),
                                     .response_max = 1000 };
}

static int perform(struct fixture *f, const struct pf_http_request *request)
{
    pf_http_response_done(&f->response);
    f->err = (struct pinfold_error)PINFOLD_ERROR_INIT;
    return pf_http_perform(f->http, request, &f->response, NULL, &f->err);
}

static void a_request_is_sent_as_given_and_the_reply_taken(void **state)
{
    struct fixture *f = *state;
    struct pf_http_request request = get(f);
    const struct pf_header headers[] = { { "x-one", "1" }, { "Content-Type", "application/json" } };

    f->server.replies[0] = OK_REPLY;
    f->server.replies[1] = "HTTP/1.1 404 Not Found\r\nTransfer-Encoding: chunked\r\n\r\n"
                           "3\r\nab\0\r\n1\r\nc\r\n0\r\n\r\n";
    request.method = "PUT";
    request.headers = headers;
    request.header_count = 2;
    request.body = "{\"a\":1}";
    request.body_len = 7;
    assert_int_equal(perform(f, &request), 0);
    assert_int_equal(f->response.status, 200);
    assert_string_equal(f->response.body.data, "ok");
    assert_string_equal(pf_http_header(&f->response, "x-odd"), "a b");
    assert_null(pf_http_header(&f->response, "x-none"));

    f->server.replies[1] = "HTTP/1.1 404 Not Found\r\nTransfer-Encoding: chunked\r\n\r\n"
                           "3\r\nabc\r\n1\r\nd\r\n0\r\n\r\n";
    request = get(f);
    assert_int_equal(perform(f, &request), 0);
    assert_int_equal(f->response.status, 404);
    assert_string_equal(f->response.body.data, "abcd");
    pf_http_free(TAKE(f->http));
    stop_server(&f->server);
    assert_int_equal(f->server.connection_count, 1); /* it was kept */
    assert_true(strncmp(f->server.requests[0], "PUT /path?q=secret HTTP/1.1\r\n", 28) == 0);
    assert_non_null(strstr(f->server.requests[0], "\r\nx-one: 1\r\n"));
    assert_non_null(strstr(f->server.requests[0], "\r\nContent-Type: application/json\r\n"));
    assert_non_null(strstr(f->server.requests[0], "\r\nContent-Length: 7\r\n"));
    assert_non_null(strstr(f->server.requests[0], "\r\n\r\n{\"a\":1}"));
    assert_null(strcasestr(f->server.requests[0], "\r\nExpect:"));
    assert_null(strcasestr(f->server.requests[0], "\r\nAccept:"));
    assert_null(strcasestr(f->server.requests[1], "\r\nContent-"));
}

static void a_header_cannot_become_two(void **state)
{
    struct fixture *f = *state;
    struct pf_http_request request = get(f);
    const struct pf_header bad[] = { { "x", "a\r\nEvil: 1" }, { "x\ny", "a" }, { "x y", "a" } };

    request.header_count = 1;
    for (size_t i = 0; i < PF_COUNT(bad); i++) {
        request.headers = &bad[i];
        assert_int_equal(perform(f, &request), -PINFOLD_EVALUE);
    }
    stop_server(&f->server);
    assert_int_equal(f->server.connection_count, 0);
}

static void what_cannot_be_reached_may_be_tried_again(void **state)
{
    struct fixture *f = *state;
    struct pf_http_request request = get(f);

    stop_server(&f->server);
    assert_int_equal(perform(f, &request), -PINFOLD_EOS);
    assert_int_equal(f->err.retryable, 1);
    assert_int_equal(f->err.sys_errno, ECONNREFUSED);
    assert_non_null(strstr(f->err.msg, "GET http://127.0.0.1:"));
    assert_null(strstr(f->err.msg, "secret")); /* nothing of the query */
}

static void a_reply_that_is_cut_is_an_error(void **state)
{
    static const char *const cut[] = {
        "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabc",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
        "HTTP/1.1 200 OK\r\nContent-Le",
        "HTTP/1.1 100 Continue\r\n\r\n",
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 O",
        "nonsense\r\n\r\n",
        NULL,
    };
    struct fixture *f = *state;
    struct pf_http_request request = get(f);

    f->server.close_after = true;
    for (size_t i = 0; i < PF_COUNT(cut); i++) {
        f->server.replies[i] = cut[i];
        if (perform(f, &request) == 0)
            fail_msg("reply %zu counts as whole: %d \"%s\"", i, f->response.status,
                     f->response.body.data);
        if (f->err.retryable)
            fail_msg("reply %zu: %s", i, f->err.msg);
        assert_null(f->response.body.data);
    }
}

static void a_reply_that_is_too_large_is_an_error(void **state)
{
    struct fixture *f = *state;
    struct pf_http_request request = get(f);

    f->server.replies[0] = OK_REPLY;
    request.response_max = 1;
    assert_int_equal(perform(f, &request), -PINFOLD_EBACKEND);
    assert_non_null(strstr(f->err.msg, "too large"));
}

static void a_header_of_a_reply_cannot_become_two(void **state)
{
    struct fixture *f = *state;
    struct pf_http_request request = get(f);

    f->server.close_after = true;
    f->server.replies[0] = "HTTP/1.1 200 OK\r\nX-A: b\rX-C: d\r\nContent-Length: 0\r\n\r\n";
    assert_int_equal(perform(f, &request), -PINFOLD_EBACKEND);
    assert_non_null(strstr(f->err.msg, "control byte"));
    assert_false(f->err.retryable);
}

static void silence_ends_at_the_deadline(void **state)
{
    struct fixture *f = *state;
    struct pf_http_request request = get(f);

    f->server.replies[0] = SILENCE;
    request.deadline = pf_clock_deadline(50 * PF_NS_PER_MS);
    assert_int_equal(perform(f, &request), -PINFOLD_ETIMEOUT);
    assert_int_equal(f->err.retryable, 0);
    assert_true(pf_clock_now() >= request.deadline);
}

static void silence_ends_sooner_where_that_is_asked_for(void **state)
{
    struct fixture *f = *state;
    struct pf_http_request request = get(f);
    int64_t begin = pf_clock_now();

    f->server.replies[0] = SILENCE;
    request.idle_ns = 50 * PF_NS_PER_MS;
    assert_int_equal(perform(f, &request), -PINFOLD_ETIMEOUT);
    assert_non_null(strstr(f->err.msg, "nothing arrived for too long"));
    assert_true(pf_clock_now() - begin >= request.idle_ns);
    assert_true(pf_clock_now() < request.deadline);
}

static void *fire_soon(void *cancel)
{
    poll(NULL, 0, 50);
    pinfold_cancel_fire(cancel);
    return NULL;
}

static void a_cancelled_request_ends_at_once(void **state)
{
    struct fixture *f = *state;
    struct pf_http_request request = get(f);
    struct pinfold_cancel *cancel;
    pthread_t thread;

    f->server.replies[0] = SILENCE;
    assert_int_equal(pinfold_cancel_new(&cancel, &f->err), 0);
    pthread_create(&thread, NULL, fire_soon, cancel);
    assert_int_equal(pf_http_perform(f->http, &request, &f->response, cancel, &f->err),
                     -PINFOLD_ECANCELLED);
    pthread_join(thread, NULL);
    /* And once fired, nothing is sent. */
    assert_int_equal(pf_http_perform(f->http, &request, &f->response, cancel, &f->err),
                     -PINFOLD_ECANCELLED);
    pinfold_cancel_free(cancel);
    pf_http_free(TAKE(f->http));
    stop_server(&f->server);
    assert_int_equal(f->server.request_count, 1);
}

/* A kept connection that dies when the next request is on it: libcurl would send that again. */
static void what_must_not_be_sent_twice_is_not(void **state)
{
    struct fixture *f = *state;
    struct pf_http_request request = get(f);

    f->server.replies[0] = OK_REPLY;
    f->server.replies[1] = NULL;
    f->server.replies[2] = OK_REPLY;
    request.method = "POST";
    request.body = "run";
    request.body_len = 3;
    request.once = true;
    assert_int_equal(perform(f, &request), 0);
    assert_int_equal(perform(f, &request), -PINFOLD_EOS);
    assert_int_equal(f->err.retryable, 0);
    assert_non_null(strstr(f->err.msg, "the connection ended before the reply"));
    f->server.replies[2] = NULL; /* and on a connection of its own */
    assert_int_equal(perform(f, &request), -PINFOLD_EOS);
    assert_int_equal(f->err.retryable, 0);
    pf_http_free(TAKE(f->http));
    stop_server(&f->server);
    assert_int_equal(f->server.request_count, 3);
}

/* One that was closed while nothing was on it is noticed before it is used. */
static void a_connection_that_was_closed_in_between_is_not_used(void **state)
{
    struct fixture *f = *state;
    struct pf_http_request request = get(f);

    f->server.replies[0] = OK_REPLY;
    f->server.replies[1] = OK_REPLY;
    f->server.close_after = true;
    request.method = "POST";
    request.body = "run";
    request.body_len = 3;
    request.once = true;
    assert_int_equal(perform(f, &request), 0);
    sem_wait(&f->server.closed);
    assert_int_equal(perform(f, &request), 0);
    pf_http_free(TAKE(f->http));
    stop_server(&f->server);
    assert_int_equal(f->server.connection_count, 2);
    assert_int_equal(f->server.request_count, 2);
}

static void a_connection_that_was_idle_for_too_long_is_not_used(void **state)
{
    struct fixture *f = *state;
    struct pf_http_request request = get(f);

    f->server.replies[0] = OK_REPLY;
    f->server.replies[1] = OK_REPLY;
    f->server.replies[2] = OK_REPLY;
    assert_int_equal(perform(f, &request), 0);
    poll(NULL, 0, 2100); /* libcurl counts whole seconds */
    request.idle_seconds = 3600;
    assert_int_equal(perform(f, &request), 0);
    poll(NULL, 0, 2100);
    request.idle_seconds = 1;
    assert_int_equal(perform(f, &request), 0);
    pf_http_free(TAKE(f->http));
    stop_server(&f->server);
    assert_int_equal(f->server.connection_count, 2);
}

/* The server has one connection at a time: on another than its parent's a fork waits in vain. */
static void a_fork_leaves_its_parents_connections_alone(void **state)
{
    struct fixture *f = *state;
    struct pf_http_request request = get(f);
    pid_t child;
    int status;

    f->server.replies[0] = OK_REPLY;
    f->server.replies[1] = OK_REPLY;
    assert_int_equal(perform(f, &request), 0);
    child = fork();
    if (child == 0) {
        request.deadline = pf_clock_deadline(200 * PF_NS_PER_MS);
        status = perform(f, &request) == -PINFOLD_ETIMEOUT ? 0 : 1;
        pf_http_free(f->http);
        _exit(status);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(f->server.request_count, 1);
    assert_int_equal(perform(f, &request), 0);
}

/* A request of which only a part arrived cannot have been acted on. */
static void what_arrived_in_part_may_be_tried_again(void **state)
{
    struct fixture *f = *state;
    struct pf_http_request request = get(f);
    size_t len = 64 << 20;
    _cleanup_free_ char *body = calloc(1, len);

    assert_non_null(body);
    f->server.cut_request = true;
    request.method = "POST";
    request.body = body;
    request.body_len = len;
    request.once = true;
    assert_int_equal(perform(f, &request), -PINFOLD_EOS);
    assert_int_equal(f->err.retryable, 1);
    request.once = false; /* whoever may repeat asks nobody */
    assert_int_equal(perform(f, &request), -PINFOLD_EOS);
    assert_int_equal(f->err.retryable, 0);
}

static ssize_t give_letters(void *ctx, void *data, size_t len)
{
    size_t *left = ctx;
    size_t n = *left < len ? *left : len;

    n = n > 100 ? 100 : n;
    memset(data, 'x', n);
    *left -= n;
    return (ssize_t)n;
}

static int count_bytes(void *ctx, const void *data, size_t len, struct pinfold_error *err)
{
    (void)data;
    (void)err;
    *(size_t *)ctx += len;
    return 0;
}

static int refuse_bytes(void *ctx, const void *data, size_t len, struct pinfold_error *err)
{
    (void)ctx;
    (void)data;
    (void)len;
    err->code = PINFOLD_EENCODING;
    return -PINFOLD_EENCODING;
}

static void bodies_stream_both_ways(void **state)
{
    struct fixture *f = *state;
    struct pf_http_request request = get(f);
    size_t left = 1000, got = 0;

    f->server.replies[0] = OK_REPLY;
    f->server.replies[1] = "HTTP/1.1 500 Oops\r\nContent-Length: 3\r\n\r\nbad";
    f->server.replies[2] = OK_REPLY;
    request.method = "POST";
    request.body_len = left;
    request.read_body = give_letters;
    request.read_ctx = &left;
    request.on_body = count_bytes;
    request.on_body_ctx = &got;
    assert_int_equal(perform(f, &request), 0);
    assert_int_equal(left, 0);
    assert_int_equal(got, 2);
    left = 1000;
    assert_int_equal(perform(f, &request), 0);
    assert_int_equal(f->response.status, 500);
    assert_string_equal(f->response.body.data, "bad"); /* what went wrong is collected */
    assert_int_equal(got, 2);
    left = 1000;
    request.on_body = refuse_bytes;
    assert_int_equal(perform(f, &request), -PINFOLD_EENCODING);
    assert_int_equal(f->err.code, PINFOLD_EENCODING);
}

static void only_http_is_spoken(void **state)
{
    static const char *const urls[] = { "file:///etc/passwd", "ftp://127.0.0.1/", "not an address",
                                        "http://user:password@127.0.0.1/" };
    struct fixture *f = *state;
    struct pf_http_request request = get(f);

    for (size_t i = 0; i < PF_COUNT(urls); i++) {
        request.url = urls[i];
        assert_int_equal(perform(f, &request), -PINFOLD_EVALUE);
    }
}

static void redirects_are_not_followed(void **state)
{
    struct fixture *f = *state;
    struct pf_http_request request = get(f);

    f->server.replies[0] = "HTTP/1.1 302 Found\r\nLocation: /other\r\nContent-Length: 0\r\n\r\n";
    assert_int_equal(perform(f, &request), 0);
    assert_int_equal(f->response.status, 302);
    assert_string_equal(f->response.body.data, "");
}

/* What follows the last chunk is neither the head of another reply, nor the end of this one's. */
static void trailers_do_not_break_a_reply(void **state)
{
    struct fixture *f = *state;
    struct pf_http_request request = get(f);

    f->server.replies[0] = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX-Odd: yes\r\n\r\n"
                           "2\r\nok\r\n0\r\nX-Sum: 1\r\nX-Odd: no\r\n\r\n";
    assert_int_equal(perform(f, &request), 0);
    assert_string_equal(f->response.body.data, "ok");
    assert_string_equal(pf_http_header(&f->response, "x-odd"), "yes");
}

/* ---- names ---- */

static sem_t names_stuck;
static bool names_stick;

/* libcurl's, too: a name server that does not answer. */
__attribute__((visibility("default"))) int getaddrinfo(const char *node, const char *service,
                                                       const struct addrinfo *hints,
                                                       struct addrinfo **ret)
{
    (void)node;
    (void)service;
    (void)hints;
    *ret = NULL;
    if (names_stick)
        sem_wait(&names_stuck);
    return EAI_AGAIN;
}

/* Whoever waits for the name does so for ever. */
static void a_name_that_is_not_found_is_not_waited_for(void **state)
{
    struct fixture *f = *state;
    struct pf_http_request request = get(f);

    sem_init(&names_stuck, 0, 0);
    names_stick = true;
    request.url = "http://service.example/";
    request.deadline = pf_clock_deadline(50 * PF_NS_PER_MS);
    assert_int_equal(perform(f, &request), -PINFOLD_ETIMEOUT);
    sem_post(&names_stuck);
    pf_http_free(TAKE(f->http));
    while (count_descriptors() > f->descriptors + 1) /* and the listener: then nobody waits */
        poll(NULL, 0, 10);
}

/* ---- proxies ---- */

static const char *const proxy_variables[] = { "http_proxy", "https_proxy", "HTTPS_PROXY",
                                               "all_proxy",  "ALL_PROXY",   "no_proxy",
                                               "NO_PROXY" };

/* All of them, to be set anew by each step of a test. */
static int tear_down_proxies(void **state)
{
    for (size_t i = 0; i < PF_COUNT(proxy_variables); i++)
        unsetenv(proxy_variables[i]);
    return tear_down(state);
}

static int set_up_proxies(void **state)
{
    for (size_t i = 0; i < PF_COUNT(proxy_variables); i++)
        unsetenv(proxy_variables[i]);
    return set_up(state);
}

static void set_proxy(const struct fixture *f, const char *variable, const char *before)
{
    char value[512];

    snprintf(value, sizeof(value), "%s127.0.0.1:%d", before, f->server.port);
    setenv(variable, value, 1);
}

static struct pf_http_request get_service(struct fixture *f)
{
    struct pf_http_request request = get(f);

    request.url = "https://service.example/path?q=secret";
    request.bypass_proxy = false;
    return request;
}

static void assert_proxy_is_named(const struct fixture *f, const char *variable)
{
    char named[64];

    snprintf(named, sizeof(named), "127.0.0.1:%d)", f->server.port);
    if (!strstr(f->err.msg, named) || !strstr(f->err.msg, variable) ||
        !strstr(f->err.msg, "GET https://service.example by ") || strstr(f->err.msg, "secret") ||
        strstr(f->err.msg, "sesame"))
        fail_msg("%s %s: %s", variable, named, f->err.msg);
}

/* By whatever it refuses. The service's own reply comes to nobody's mind. */
static void a_proxy_that_refuses_is_named(void **state)
{
    static const char *const replies[] = {
        "HTTP/1.1 403 Forbidden\r\nContent-Length: 4\r\n\r\nbody",
        "HTTP/1.1 407 Who?\r\nProxy-Authenticate: Basic realm=\"x\"\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 302 Found\r\nLocation: http://elsewhere.example/\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 502 Bad Gateway\r\n\r\n",
        "HTTP/1.1 20",
        "<html>\r\n\r\n",
        NULL,
    };
    struct fixture *f = *state;
    struct pf_http_request request = get_service(f);

    f->server.close_after = true;
    set_proxy(f, "https_proxy", "http://user:sesame@");
    for (size_t i = 0; i < PF_COUNT(replies); i++) {
        f->server.replies[i] = replies[i];
        assert_true(perform(f, &request) < 0);
        assert_proxy_is_named(f, "https_proxy");
    }
    stop_server(&f->server);
    assert_int_equal(f->server.request_count, PF_COUNT(replies));
    for (unsigned i = 0; i < f->server.request_count; i++) {
        assert_int_equal(
                strncmp(f->server.requests[i], "CONNECT service.example:443 HTTP/1.1\r\n", 38), 0);
        assert_null(strstr(f->server.requests[i], "secret"));
    }
    assert_true(perform(f, &request) < 0); /* it is not there any more */
    assert_proxy_is_named(f, "https_proxy");
}

static void a_proxy_that_goes_on_for_ever_is_left_at_the_deadline(void **state)
{
    static char endless[3 << 20];
    struct fixture *f = *state;
    struct pf_http_request request = get_service(f);

    set_proxy(f, "all_proxy", "");
    f->server.replies[0] = SILENCE;
    f->server.replies[1] = "HTTP/1.1 407 No\r\nContent-Length: 1000000000\r\n\r\nbegun";
    f->server.replies[2] = "HTTP/1.1 200 Yes\r\n\r\n"; /* and then no TLS */
    for (int i = 0; i < 3; i++) {
        request.deadline = pf_clock_deadline(100 * PF_NS_PER_MS);
        assert_int_equal(perform(f, &request), -PINFOLD_ETIMEOUT);
        assert_proxy_is_named(f, "all_proxy");
    }
    memset(endless, 'x', sizeof(endless) - 1);
    memcpy(endless, "HTTP/1.1 200 Yes\r\nX:", 20);
    f->server.replies[3] = endless;
    request.deadline = pf_clock_deadline(60 * PF_NS_PER_SEC);
    assert_true(perform(f, &request) < 0);
    assert_int_not_equal(f->err.code, PINFOLD_ETIMEOUT);
    assert_proxy_is_named(f, "all_proxy");
}

/* Many passwords make no address, and libcurl repeats what makes none. */
static void the_password_of_a_proxy_is_in_no_error(void **state)
{
    static const char *const before[] = {
        "http://user:sesame@",   "htp://user:sesame@",    "http://user:sesame#1@",
        "http://us er:sesame@",  "user:sesame/@",         "http://user:1://sesame@",
        "http://user:sesame:1@", "http://user:@:sesame@", "http://user:sesame?x@y@",
    };
    struct fixture *f = *state;
    struct pf_http_request request = get_service(f);
    char longest[400] = "nosuch://user:sesame";

    memset(longest + 20, 'x', sizeof(longest) - 22);
    longest[sizeof(longest) - 2] = '@';
    f->server.replies[0] = NULL;
    for (size_t i = 0; i <= PF_COUNT(before); i++) {
        set_proxy(f, "HTTPS_PROXY", i < PF_COUNT(before) ? before[i] : longest);
        assert_true(perform(f, &request) < 0);
        assert_proxy_is_named(f, "HTTPS_PROXY");
    }
}

/* The server is the proxy, and hangs up; nobody is where the addresses lead. */
static void the_way_goes_where_the_environment_says(void **state)
{
    static const struct {
        const char *variable, *no_proxy, *url;
        bool by_proxy;
    } ways[] = {
        { "https_proxy", NULL, "https://a.service.example/", true },
        { "https_proxy", "", "https://a.service.example/", true },
        { "https_proxy", "ervice.example,b.service.example", "https://a.service.example/", true },
        { "https_proxy", "x.example,, service.example", "https://a.service.example:8443/", false },
        { "https_proxy", "x.example .Service.example", "HTTPS://A.service.example/", false },
        { "https_proxy", "127.0.0.3,2", "https://127.0.0.2:9/", true },
        { "https_proxy", "127.0.0.3,127.0.0.2", "https://127.0.0.2:9/", false },
        { "ALL_PROXY", "*", "https://a.service.example/", false },
        { "http_proxy", NULL, "https://a.service.example/", false },
        { "https_proxy", NULL, "http://a.service.example/", false },
        { "http_proxy", NULL, "http://a.service.example/", true },
        { "all_proxy", NULL, "http://a.service.example/", true },
        { "all_proxy", "::1", "https://[::1]:9/", false },
    };
    struct fixture *f = *state;
    struct pf_http_request request = get_service(f);
    unsigned asked = 0;

    names_stick = false;
    f->server.close_after = true;
    for (size_t i = 0; i < PF_COUNT(ways); i++) {
        set_proxy(f, ways[i].variable, "");
        if (ways[i].no_proxy)
            setenv("NO_PROXY", ways[i].no_proxy, 1);
        request.url = ways[i].url;
        assert_true(perform(f, &request) < 0);
        if (ways[i].by_proxy)
            sem_wait(&f->server.closed);
        asked += ways[i].by_proxy;
        if (ways[i].by_proxy != (strstr(f->err.msg, ways[i].variable) != NULL))
            fail_msg("%zu: %s", i, f->err.msg);
        unsetenv(ways[i].variable);
        unsetenv("NO_PROXY");
    }
    stop_server(&f->server);
    assert_int_equal(f->server.connection_count, asked);
}

#define TEST_PROXIES(name) cmocka_unit_test_setup_teardown(name, set_up_proxies, tear_down_proxies)
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_request_is_sent_as_given_and_the_reply_taken),
        TEST(a_header_cannot_become_two),
        TEST(what_cannot_be_reached_may_be_tried_again),
        TEST(a_reply_that_is_cut_is_an_error),
        TEST(a_reply_that_is_too_large_is_an_error),
        TEST(a_header_of_a_reply_cannot_become_two),
        TEST(silence_ends_at_the_deadline),
        TEST(silence_ends_sooner_where_that_is_asked_for),
        TEST(a_cancelled_request_ends_at_once),
        TEST(what_must_not_be_sent_twice_is_not),
        TEST(a_connection_that_was_closed_in_between_is_not_used),
        TEST(a_connection_that_was_idle_for_too_long_is_not_used),
        TEST(a_fork_leaves_its_parents_connections_alone),
        TEST(what_arrived_in_part_may_be_tried_again),
        TEST(bodies_stream_both_ways),
        TEST(only_http_is_spoken),
        TEST(redirects_are_not_followed),
        TEST(trailers_do_not_break_a_reply),
        TEST(a_name_that_is_not_found_is_not_waited_for),
        TEST_PROXIES(a_proxy_that_refuses_is_named),
        TEST_PROXIES(a_proxy_that_goes_on_for_ever_is_left_at_the_deadline),
        TEST_PROXIES(the_password_of_a_proxy_is_in_no_error),
        TEST_PROXIES(the_way_goes_where_the_environment_says),
    };

    return cmocka_run_group_tests_name("http", tests, NULL, NULL);
}
