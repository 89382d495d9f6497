/* SPDX-License-Identifier: Apache-2.0 */
/* Where the HTTP transport listens, and how it begins and ends. */
#include "mcp/http_serve.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cli/place.h"
#include "cli/say.h"
#include "mcp/clock.h"
#include "mcp/http.h"
#include "mcp/http_request.h"
#include "mcp/stop.h"

enum { CONNECTIONS_MAX = 512, CONNECTION_MEMORY = 32 * 1024, IDLE_SECONDS = 15 };
#define DEFAULT_RESUME_SECONDS 15.0
#define DEFAULT_TTL_SECONDS 3600.0

static int fail(struct pinfold_error *err, int code, int error, const char *what, const char *why)
{
    *err = (struct pinfold_error){ .code = code, .sys_errno = error };
    snprintf(err->msg, sizeof(err->msg), "--http %.80s: %.150s", what,
             error ? pf_error_words(error) : why);
    return -code;
}

/* ---- where ---- */

/* Returns a socket that listens, or a negative code. */
static int listen_at(const struct pf_options *options, struct pf_place *ret,
                     struct pinfold_error *err)
{
    const char *why = pf_place_read(options->http, ret);
    int fd, one = 1;

    /* The option's check has found nothing wrong with it. */
    if (why)
        return fail(err, PINFOLD_EVALUE, 0, options->http, why);
    fd = socket(ret->address.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return fail(err, PINFOLD_EOS, errno, options->http, "");
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    if (bind(fd, &ret->address.any, ret->len) < 0 || listen(fd, 128) < 0 ||
        getsockname(fd, &ret->address.any, &ret->len) < 0) {
        int saved = errno;
        close(fd);
        return fail(err, PINFOLD_EOS, saved, options->http, "");
    }
    return fd;
}

/* ---- what is told ---- */

/* Address and new tokens go to stdout, which nobody else uses: a program can read them there, and
 * they are in no log. */
static void tell(const struct pf_http *http, const struct pf_place *place)
{
    char name[INET6_ADDRSTRLEN] = "";
    bool six = place->address.any.sa_family == AF_INET6;

    inet_ntop(place->address.any.sa_family,
              six ? (const void *)&place->address.six.sin6_addr
                  : (const void *)&place->address.four.sin_addr,
              name, sizeof(name));
    printf("listening http://%s%s%s:%d" PF_HTTP_PATH "\n", six ? "[" : "", name, six ? "]" : "",
           ntohs(place->address.four.sin_port));
    for (size_t i = 0; i < http->tokens.count; i++) {
        const struct pf_http_token *token = &http->tokens.items[i];
        if (token->made)
            printf("token %s %s %s\n", token->name,
                   token->mode == PINFOLD_READ_ONLY ? "read_only" : "read_write", token->value);
    }
    (void)fflush(stdout);
}

/* ---- life ---- */

static unsigned connections_max(void)
{
    struct rlimit files;

    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur / 4 < CONNECTIONS_MAX)
        return (unsigned)(files.rlim_cur / 4);
    return CONNECTIONS_MAX;
}

static int start(struct pf_http *http, int fd, struct pinfold_error *err)
{
    http->daemon = MHD_start_daemon(
            MHD_USE_EPOLL_INTERNAL_THREAD | MHD_USE_ITC | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL,
            pf_http_handle, http, MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_NOTIFY_COMPLETED,
            pf_http_completed, http, MHD_OPTION_NOTIFY_CONNECTION, pf_http_connected, http,
            MHD_OPTION_CONNECTION_LIMIT, connections_max(), MHD_OPTION_CONNECTION_MEMORY_LIMIT,
            (size_t)CONNECTION_MEMORY, MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_SECONDS,
            MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_END);
    return http->daemon ? 0 : fail(err, PINFOLD_EOS, errno, "start", "libmicrohttpd cannot start");
}

/* Everybody ends: what is under way is cancelled, and what waits is woken. */
static void stop(struct pf_http *http)
{
    struct pf_http_session *session;

    pthread_mutex_lock(&http->lock);
    http->stopping = true;
    pthread_cond_broadcast(&http->wake);
    while ((session = http->sessions)) {
        session->users++;
        pf_http_session_end(session);
        pthread_mutex_unlock(&http->lock);
        pf_http_session_put(session);
        pthread_mutex_lock(&http->lock);
    }
    pthread_mutex_unlock(&http->lock);
}

static void serve(struct pf_http *http, const struct pf_place *place)
{
    struct pollfd signalled = { .fd = pf_mcp_stop_fd(), .events = POLLIN };
    int listening;

    tell(http, place);
    while (poll(&signalled, 1, -1) < 0 && errno == EINTR)
        ;
    listening = MHD_quiesce_daemon(http->daemon);
    if (listening >= 0)
        close(listening);
    stop(http);
}

static int run(struct pf_http *http, const struct pf_options *options, struct pinfold_error *err)
{
    struct pf_place place;
    pthread_t watch;
    int fd = listen_at(options, &place, err);
    int r = fd < 0 ? fd : start(http, fd, err);

    if (r < 0) {
        if (fd >= 0)
            close(fd);
        return r;
    }
    r = pthread_create(&watch, NULL, pf_http_watch, http);
    if (r) {
        MHD_stop_daemon(http->daemon);
        return fail(err, PINFOLD_EOS, r, "start a thread", "");
    }
    serve(http, &place);
    pthread_join(watch, NULL);
    MHD_stop_daemon(http->daemon);
    return 0;
}

int pf_mcp_serve_http(struct pf_mcp_server *server, const struct pf_options *options,
                      struct pinfold_error *err)
{
    double resume = options->resume_seconds > 0 ? options->resume_seconds : DEFAULT_RESUME_SECONDS;
    double ttl = options->ttl_seconds > 0 ? options->ttl_seconds : DEFAULT_TTL_SECONDS;
    struct pf_http http = {
        .server = server,
        .names = { .more = options->http_hosts, .any_address = options->http_anywhere },
        .resume_ns = (int64_t)(resume * 1e9),
        .ttl_ns = (int64_t)(ttl * 1e9),
    };
    int r = pf_http_tokens_load(options->tokens, options->read_only, &http.tokens, err);

    if (r < 0)
        return r;
    pthread_mutex_init(&http.lock, NULL);
    pf_mcp_cond_init(&http.wake);
    r = run(&http, options, err);
    pthread_cond_destroy(&http.wake);
    pthread_mutex_destroy(&http.lock);
    pf_http_tokens_done(&http.tokens);
    return r;
}
