/* SPDX-License-Identifier: Apache-2.0 */
/* Once a second: who has hung up, who takes too long, and what nobody came back for. A response
 * that waits for its next event is not looked after by libmicrohttpd. */
#include <errno.h>
#include <sys/socket.h>
#include <utlist.h>

#include "mcp/clock.h"
#include "mcp/http_state.h"

/* A whole request comes within this time after its connection was made, or after the request
 * before it; a connection that is idle is closed then, too. */
#define REQUEST_NS (15 * PF_MCP_SECOND)

/* Something is said on a stream that often, so that proxies do not take it for dead. */
#define KEEPALIVE_NS (15 * PF_MCP_SECOND)

/* A stream waits; has its client hung up? */
static void look_at_reader(struct pf_http_reader *reader, int64_t now)
{
    char byte;
    ssize_t n;

    if (!reader->suspended)
        return;
    n = recv(reader->place->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
        reader->gone = true;
    else if (now - reader->wrote_ns >= KEEPALIVE_NS)
        reader->keepalive = true;
    if (reader->gone || reader->keepalive)
        pf_http_reader_wake(reader);
}

/* Nobody reads it: it is kept for a while, and then what it was for is cancelled. */
static void look_at_orphan(struct pf_http_session *session, struct pf_http_stream *stream,
                           int64_t now)
{
    if (!stream->answered || !stream->is_post || now - stream->since_ns < session->http->resume_ns)
        return;
    if (stream->done) {
        pf_http_stream_free(stream);
    } else if (!stream->cancelled) {
        stream->cancelled = true;
        pf_mcp_session_cancel(session->core, stream);
    }
}

/* Returns whether the session is in use. */
static bool look_at_streams(struct pf_http_session *session, int64_t now)
{
    struct pf_http_stream *stream, *next;
    bool used = session->users > 0;

    DL_FOREACH_SAFE(session->streams, stream, next) {
        used |= stream->reader || (stream->is_post && !stream->done);
        if (stream->reader)
            look_at_reader(stream->reader, now);
        else
            look_at_orphan(session, stream, now);
    }
    return used;
}

/* Returns a session that was idle for too long, for the caller to put, or NULL. */
static struct pf_http_session *look(struct pf_http *http, int64_t now)
{
    struct pf_http_connection *connection;
    struct pf_http_session *session, *next, *idle = NULL;

    DL_FOREACH(http->connections, connection) {
        if (connection->receiving && now - connection->since_ns >= REQUEST_NS) {
            shutdown(connection->fd, SHUT_RDWR); /* libmicrohttpd sees its end, and closes it */
            connection->since_ns = now;
        }
    }
    DL_FOREACH_SAFE(http->sessions, session, next) {
        if (look_at_streams(session, now))
            session->used_ns = now;
        else if (!idle && now - session->used_ns >= http->ttl_ns)
            idle = session;
    }
    if (idle) {
        idle->users++;
        pf_http_session_end(idle);
    }
    return idle;
}

void *pf_http_watch(void *ctx)
{
    struct pf_http *http = ctx;
    struct timespec until;

    pthread_mutex_lock(&http->lock);
    while (!http->stopping) {
        struct pf_http_session *idle = look(http, pf_mcp_now());

        if (idle) {
            pthread_mutex_unlock(&http->lock);
            pf_http_session_put(idle);
            pthread_mutex_lock(&http->lock);
            continue;
        }
        until = pf_mcp_after(PF_MCP_SECOND);
        pthread_cond_timedwait(&http->wake, &http->lock, &until);
    }
    pthread_mutex_unlock(&http->lock);
    return NULL;
}
