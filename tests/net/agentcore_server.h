/* SPDX-License-Identifier: Apache-2.0 */
/* For tests of the client: a server on loopback that says what it is told, and the client. Include
 * after cmocka.h. */
#ifndef TESTS_NET_AGENTCORE_SERVER_H
#define TESTS_NET_AGENTCORE_SERVER_H

#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "descriptors.h"
#include "net/agentcore.h"
#include "read_request.h"

#define TEXT_REPLY(status, headers, body) "HTTP/1.1 " status "\r\n" headers "\r\n" body
#define OK_START TEXT_REPLY("200 OK", "Content-Length: 19\r\n", "{\"sessionId\":\"S1\"}\n")
#define BUSY                            \
    TEXT_REPLY("429 Too Many Requests", \
               "Content-Length: 2\r\nx-amzn-errortype: ThrottlingException\r\n", "{}")
#define BROKEN TEXT_REPLY("500 Oops", "Content-Length: 2\r\n", "{}")
#define EXPIRED                 \
    TEXT_REPLY("403 Forbidden", \
               "Content-Length: 2\r\nx-amzn-errortype: ExpiredTokenException\r\n", "{}")

#define SILENCE "" /* no reply, until the client goes */

enum { MAX_REQUESTS = 8, REQUEST_MAX = 32768 };

struct server {
    int listener, port;
    pthread_t thread;
    pthread_mutex_t
            answering; /* held while a reply is sent: the client may have it before the end */
    const char *replies[MAX_REQUESTS]; /* the last one again and again; NULL: hang up */
    size_t lengths[MAX_REQUESTS];      /* 0: of the text */
    bool close_after;
    char *requests[MAX_REQUESTS];
    unsigned request_count;
};

static struct fixture {
    struct server server;
    struct pf_http *http;
    struct pf_aws_provider *provider;
    struct pf_agentcore *client;
    struct pinfold_error err;
    struct pf_agentcore_call call;
    int descriptors;
} * f;

/* ---- the server ---- */

static inline bool send_all(int fd, const char *data, size_t len)
{
    while (len > 0) {
        ssize_t n = send(fd, data, len, MSG_NOSIGNAL);
        if (n <= 0)
            return false;
        data += n;
        len -= (size_t)n;
    }
    return true;
}

/* Under the lock. Returns whether the connection stays. */
static bool answer(struct server *server, int fd, const char *text)
{
    unsigned at = server->request_count < MAX_REQUESTS ? server->request_count : MAX_REQUESTS - 1;

    if (server->request_count < MAX_REQUESTS)
        server->requests[at] = strdup(text);
    server->request_count++;
    while (at > 0 && !server->replies[at] && !server->lengths[at])
        at--;
    return server->replies[at] &&
           send_all(fd, server->replies[at],
                    server->lengths[at] ? server->lengths[at] : strlen(server->replies[at])) &&
           !server->close_after;
}

static inline void serve(struct server *server, int fd)
{
    static char text[REQUEST_MAX];
    bool stays = true;

    while (stays && read_request(fd, text, REQUEST_MAX)) {
        pthread_mutex_lock(&server->answering);
        stays = answer(server, fd, text);
        pthread_mutex_unlock(&server->answering);
    }
}

static inline void *run_server(void *arg)
{
    struct server *server = arg;
    int fd;

    while ((fd = accept4(server->listener, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
        serve(server, fd);
        close(fd);
    }
    return NULL;
}

/* ---- the fixture ---- */

static inline void start_client(const char *identifier)
{
    char endpoint[64];
    struct pf_agentcore_options options = { .region = "us-west-2",
                                            .identifier = identifier,
                                            .endpoint = endpoint,
                                            .http = f->http,
                                            .provider = f->provider };

    snprintf(endpoint, sizeof(endpoint), "http://127.0.0.1:%d", f->server.port);
    pf_agentcore_free(TAKE(f->client));
    assert_int_equal(pf_agentcore_new(&options, &f->client, &f->err), 0);
}

static inline int set_up(void **state)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    const struct pf_aws_options keys = { .access_key = "AKIAFAKEFAKEFAKEFAKE",
                                         .secret_key = "fakeSecretKey",
                                         .session_token = "fakeToken==" };
    socklen_t len = sizeof(address);

    f = calloc(1, sizeof(*f));
    assert_non_null(f);
    assert_int_equal(pf_http_new(NULL, &f->http, &f->err), 0);
    f->descriptors = count_descriptors();
    f->server.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(f->server.listener, (void *)&address, sizeof(address)), 0);
    assert_int_equal(listen(f->server.listener, 8), 0);
    assert_int_equal(getsockname(f->server.listener, (void *)&address, &len), 0);
    f->server.port = ntohs(address.sin_port);
    setenv("no_proxy", "127.0.0.1", 1);
    assert_int_equal(pf_aws_provider_new(&keys, f->http, &f->provider, &f->err), 0);
    start_client("aws.codeinterpreter.v1");
    f->call.deadline = pf_clock_deadline(60 * PF_NS_PER_SEC);
    pthread_mutex_init(&f->server.answering, NULL);
    pthread_create(&f->server.thread, NULL, run_server, &f->server);
    *state = f;
    return 0;
}

static inline void forget_requests(void)
{
    pthread_mutex_lock(&f->server.answering);
    for (unsigned i = 0; i < MAX_REQUESTS; i++)
        free(TAKE(f->server.requests[i]));
    f->server.request_count = 0;
    pthread_mutex_unlock(&f->server.answering);
}

/* From here on the server does not look at the first reply. */
static inline void withdraw_reply(void)
{
    pthread_mutex_lock(&f->server.answering);
    f->server.close_after = false;
    f->server.replies[0] = NULL;
    f->server.lengths[0] = 0;
    pthread_mutex_unlock(&f->server.answering);
}

static inline int tear_down(void **state)
{
    (void)state;
    pf_agentcore_free(f->client);
    pf_aws_provider_free(f->provider);
    pf_http_free(f->http); /* kept connections end, and the server's read with them */
    shutdown(f->server.listener, SHUT_RDWR);
    pthread_join(f->server.thread, NULL);
    close(f->server.listener);
    assert_int_equal(count_descriptors(), f->descriptors);
    forget_requests();
    pthread_mutex_destroy(&f->server.answering);
    free(f);
    return 0;
}

#define WITH_SERVER(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

#endif
