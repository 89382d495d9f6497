/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests of AWS credentials: a directory that is the home, an environment without AWS variables,
 * and a server on loopback that stands for every service. Include after cmocka.h.
 */
#ifndef TESTS_NET_AWS_FIXTURE_H
#define TESTS_NET_AWS_FIXTURE_H

#include <arpa/inet.h>
#include <ftw.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "descriptors.h"
#include "net/aws_credentials.h"
#include "net/aws_sources.h"
#include "read_request.h"
#include "tempdir.h"

#define REQUESTS_MAX 64
#define STALL ((char *)1) /* say nothing, and wait for the client to go */

struct aws_server {
    int listener, port;
    pthread_t thread;
    /* What to say to a request: a whole reply on the heap, STALL, or NULL to hang up. */
    char *(*answer)(void *ctx, const char *request);
    void *ctx;
    pthread_mutex_t lock; /* guards what follows */
    char *requests[REQUESTS_MAX];
    int count;
};

struct aws_fixture {
    struct aws_server server;
    struct pf_http *http;
    struct pinfold_error err;
    struct pf_aws_credentials got;
    char dir[256], url[64];
    int descriptors;
};

/* ---- the server: one request a connection ---- */

static inline void *aws_serve(void *arg)
{
    struct aws_server *server = arg;
    static char text[64 * 1024];
    int fd;

    while ((fd = accept4(server->listener, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
        char *reply = NULL, byte;
        if (read_request(fd, text, sizeof(text))) {
            pthread_mutex_lock(&server->lock);
            if (server->count < REQUESTS_MAX)
                server->requests[server->count++] = strdup(text);
            pthread_mutex_unlock(&server->lock);
            reply = server->answer ? server->answer(server->ctx, text) : NULL;
        }
        if (reply == STALL)
            (void)!read(fd, &byte, 1);
        else if (reply)
            (void)!send(fd, reply, strlen(reply), MSG_NOSIGNAL);
        if (reply != STALL)
            free(reply);
        close(fd);
    }
    return NULL;
}

static inline int aws_request_count(struct aws_fixture *f)
{
    int count;

    pthread_mutex_lock(&f->server.lock);
    count = f->server.count;
    pthread_mutex_unlock(&f->server.lock);
    return count;
}

/* Forget the requests so far. */
static inline void aws_forget(struct aws_fixture *f)
{
    pthread_mutex_lock(&f->server.lock);
    while (f->server.count > 0)
        free(f->server.requests[--f->server.count]);
    pthread_mutex_unlock(&f->server.lock);
}

static inline void aws_start_server(struct aws_server *server)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t len = sizeof(address);

    pthread_mutex_init(&server->lock, NULL);
    server->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(server->listener, (void *)&address, sizeof(address)), 0);
    assert_int_equal(listen(server->listener, 64), 0);
    assert_int_equal(getsockname(server->listener, (void *)&address, &len), 0);
    server->port = ntohs(address.sin_port);
    assert_int_equal(pthread_create(&server->thread, NULL, aws_serve, server), 0);
}

/* ---- replies ---- */

static inline char *aws_reply(int status, const char *body)
{
    char *reply = NULL;

    assert_true(asprintf(&reply,
                         "HTTP/1.1 %d X\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n%s",
                         status, strlen(body), body) > 0);
    return reply;
}

/* Seconds from now as the services write times. */
static inline const char *aws_in(int seconds, char text[static 32])
{
    time_t when = time(NULL) + seconds;
    struct tm utc;

    gmtime_r(&when, &utc);
    strftime(text, 32, "%Y-%m-%dT%H:%M:%SZ", &utc);
    return text;
}

static inline char *aws_metadata_reply(const char *id, const char *token, int seconds)
{
    char *body = NULL, *reply, when[32];

    assert_true(asprintf(&body,
                         "{\"Code\":\"Success\",\"AccessKeyId\":\"%s\",\"SecretAccessKey\":\"s\","
                         "\"Token\":\"%s\",\"Expiration\":\"%s\"}",
                         id, token, aws_in(seconds, when)) > 0);
    reply = aws_reply(200, body);
    free(body);
    return reply;
}

static inline char *aws_sts_reply(const char *action, const char *id, int seconds)
{
    char *body = NULL, *reply, when[32];

    assert_true(asprintf(&body,
                         "<%sResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\">\n"
                         "  <%sResult><AssumedRoleUser><Arn>arn:x</Arn></AssumedRoleUser>"
                         "<Credentials><AccessKeyId>%s</AccessKeyId>"
                         "<SecretAccessKey>s&amp;s</SecretAccessKey>"
                         "<SessionToken>ststoken</SessionToken><Expiration>%s</Expiration>"
                         "</Credentials></%sResult><ResponseMetadata/></%sResponse>\n",
                         action, action, id, aws_in(seconds, when), action, action) > 0);
    reply = aws_reply(200, body);
    free(body);
    return reply;
}

/* ---- the surroundings ---- */

/* Write a file below the home; its name may have folders. */
static inline void aws_file(const struct aws_fixture *f, const char *name, const char *text)
{
    char path[512];
    FILE *file;

    snprintf(path, sizeof(path), "%s/%s", f->dir, name);
    for (char *slash = path + strlen(f->dir) + 1; (slash = strchr(slash, '/')); *slash++ = '/') {
        *slash = '\0';
        mkdir(path, 0700);
    }
    file = fopen(path, "we");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

/* Take away all that could lead outside, and have every endpoint lead to the server. */
static inline void aws_environment(const struct aws_fixture *f)
{
    static const char *const proxies[] = { "http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy",
                                           "ALL_PROXY" };

    for (size_t i = 0; environ[i];) {
        char name[256];
        if (strncmp(environ[i], "AWS_", 4) == 0) {
            snprintf(name, sizeof(name), "%.*s", (int)strcspn(environ[i], "="), environ[i]);
            unsetenv(name);
        } else {
            i++;
        }
    }
    for (size_t i = 0; i < sizeof(proxies) / sizeof(proxies[0]); i++)
        unsetenv(proxies[i]);
    setenv("HOME", f->dir, 1);
    setenv("AWS_EC2_METADATA_DISABLED", "true", 1);
    setenv("AWS_REGION", "us-west-2", 1);
    setenv("AWS_ENDPOINT_URL_STS", f->url, 1);
    setenv("AWS_ENDPOINT_URL_SSO", f->url, 1);
    setenv("AWS_ENDPOINT_URL_SSO_OIDC", f->url, 1);
}

static inline int aws_remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

static inline int aws_set_up(void **state)
{
    struct aws_fixture *f = calloc(1, sizeof(*f));

    assert_non_null(f);
    assert_int_equal(pf_http_new(NULL, &f->http, &f->err), 0);
    f->descriptors = count_descriptors();
    assert_non_null(test_tempdir("pinfold-aws", f->dir, sizeof(f->dir)));
    aws_start_server(&f->server);
    snprintf(f->url, sizeof(f->url), "http://127.0.0.1:%d", f->server.port);
    aws_environment(f);
    *state = f;
    return 0;
}

static inline int aws_tear_down(void **state)
{
    struct aws_fixture *f = *state;

    pf_aws_credentials_done(&f->got);
    pf_http_free(f->http);
    shutdown(f->server.listener, SHUT_RDWR); /* wakes accept() */
    pthread_join(f->server.thread, NULL);
    close(f->server.listener);
    aws_forget(f);
    nftw(f->dir, aws_remove_one, 16, FTW_DEPTH | FTW_PHYS);
    assert_true(count_descriptors() <= f->descriptors);
    free(f);
    return 0;
}

static inline int64_t aws_soon(void)
{
    return pf_clock_deadline(60 * PF_NS_PER_SEC);
}

/* Ask once, as the application with these options would (NULL: none). */
static inline int aws_get(struct aws_fixture *f, const struct pf_aws_options *options)
{
    static const struct pf_aws_options none;
    struct pf_aws_provider *provider = NULL;
    int r;

    pf_aws_credentials_done(&f->got);
    f->err = (struct pinfold_error)PINFOLD_ERROR_INIT;
    r = pf_aws_provider_new(options ? options : &none, f->http, &provider, &f->err);
    if (r == 0)
        r = pf_aws_provider_get(provider, aws_soon(), &f->got, NULL, &f->err);
    pf_aws_provider_free(provider);
    return r;
}

/* A header of a recorded or received request, up to its line end; the caller frees it. */
static inline char *aws_header(const char *request, const char *name)
{
    char wanted[80];
    const char *at, *end = strstr(request, "\r\n\r\n");

    snprintf(wanted, sizeof(wanted), "\r\n%s:", name);
    at = strcasestr(request, wanted);
    if (!at || at > end)
        return NULL;
    at += strlen(wanted);
    at += strspn(at, " ");
    return strndup(at, strcspn(at, "\r"));
}

#endif
