/* SPDX-License-Identifier: Apache-2.0 */
/* A client of Daytona's, and a server on loopback that answers it as it is told. Include after
 * cmocka.h. */
#ifndef TESTS_NET_DAYTONA_FIXTURE_H
#define TESTS_NET_DAYTONA_FIXTURE_H

#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "descriptors.h"
#include "net/daytona.h"
#include "read_request.h"

#define SID "11111111-2222-4333-8444-555555555555"
#define KEY "dtn_fake_key_for_recording"
#define SESSION "sess-0001"
#define COMMAND "a8be2791-182a-4df4-9350-297526a5f002"
enum { MAX_REPLIES = 8, REQUEST_MAX = 65536, REPLY_MAX = 1 << 18 };

static struct fixture {
    int listener, descriptors;
    pthread_t thread;
    struct pf_buf replies[MAX_REPLIES]; /* the last one again and again; empty: hang up */
    bool silent;                        /* an empty one is silence instead */
    unsigned reply_count, request_count;
    char requests[MAX_REPLIES][REQUEST_MAX];
    struct pf_http *http;
    struct pf_daytona_config config;
    struct pf_daytona *client;
    struct pf_daytona_toolbox toolbox;
    struct pf_daytona_call call;
    struct pinfold_error err;
} * f;

/* ---- the server ---- */

static inline void serve(int fd)
{
    static char text[REQUEST_MAX];

    while (read_request(fd, text, REQUEST_MAX)) {
        unsigned at = f->request_count < MAX_REPLIES ? f->request_count : MAX_REPLIES - 1;
        const struct pf_buf *reply;
        memcpy(f->requests[at], text, REQUEST_MAX);
        f->request_count++;
        reply = &f->replies[at < f->reply_count ? at : f->reply_count - 1];
        if (reply->len == 0 && f->silent)
            continue; /* the next read waits for the client to go */
        if (reply->len == 0 || send(fd, reply->data, reply->len, MSG_NOSIGNAL) < 0)
            return;
        if (memmem(reply->data, reply->len, "Connection: close", 17))
            return;
    }
}

static inline void *run_server(void *arg)
{
    int fd;

    (void)arg;
    while ((fd = accept4(f->listener, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
        serve(fd);
        shutdown(fd, SHUT_RDWR);
        close(fd);
    }
    return NULL;
}

static inline int set_up(void **state)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t len = sizeof(address);

    f = calloc(1, sizeof(*f));
    assert_non_null(f);
    f->descriptors = count_descriptors();
    f->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(f->listener, (void *)&address, sizeof(address)), 0);
    assert_int_equal(listen(f->listener, 8), 0);
    assert_int_equal(getsockname(f->listener, (void *)&address, &len), 0);
    setenv("no_proxy", "127.0.0.1", 1);
    assert_int_equal(pf_http_new(NULL, &f->http, &f->err), 0);
    f->config.token = strdup(KEY);
    assert_true(asprintf(&f->config.api_url, "http://127.0.0.1:%d/api", ntohs(address.sin_port)) >
                0);
    assert_int_equal(pf_daytona_new(&f->config, f->http, &f->client, &f->err), 0);
    f->toolbox.client = f->client;
    assert_true(asprintf(&f->toolbox.base, "http://127.0.0.1:%d/toolbox/" SID,
                         ntohs(address.sin_port)) > 0);
    f->call.deadline = pf_clock_deadline(60 * PF_NS_PER_SEC);
    /* They do not move: the server may still be leaving send() when the next reply is written. */
    for (int i = 0; i < MAX_REPLIES; i++) {
        f->replies[i] = (struct pf_buf)PF_BUF_INIT(REPLY_MAX);
        assert_int_equal(pf_buf_reserve(&f->replies[i], REPLY_MAX), 0);
    }
    pthread_create(&f->thread, NULL, run_server, NULL);
    *state = f;
    return 0;
}

static inline int tear_down(void **state)
{
    (void)state;
    pf_daytona_toolbox_done(&f->toolbox);
    pf_daytona_free(f->client);
    pf_http_free(f->http);
    shutdown(f->listener, SHUT_RDWR);
    pthread_join(f->thread, NULL);
    close(f->listener);
    pf_daytona_config_done(&f->config);
    for (int i = 0; i < MAX_REPLIES; i++)
        pf_buf_done(&f->replies[i]);
    assert_int_equal(count_descriptors(), f->descriptors);
    free(f);
    return 0;
}

static inline void answer(const char *head, const void *body, size_t len)
{
    struct pf_buf *reply = &f->replies[f->reply_count++];

    assert_int_equal(pf_buf_printf(reply, "HTTP/1.1 %s\r\nContent-Length: %zu\r\n\r\n", head, len),
                     0);
    assert_int_equal(pf_buf_append(reply, body, len), 0);
}

static inline void answer_text(const char *head, const char *body)
{
    answer(head, body, strlen(body));
}

static inline void forget(void)
{
    for (unsigned i = 0; i < MAX_REPLIES; i++)
        f->replies[i].len = 0;
    f->reply_count = f->request_count = 0;
    f->err = (struct pinfold_error)PINFOLD_ERROR_INIT;
}

#endif
