/* SPDX-License-Identifier: Apache-2.0 */
/* Streams of events: what is sent, what is kept, and who reads it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "mcp/clock.h"
#include "mcp/http_state.h"

/* What is kept of one stream for a client that comes back, besides what it has not read yet. */
enum { KEPT_BYTES = 1024 * 1024, KEPT_EVENTS = 256 };

/* How many streams of a session are kept after their end. */
enum { KEPT_STREAMS = 64 };

/* One write of a response. */
enum { BLOCK = 32 * 1024 };

/* ---- readers ---- */

void pf_http_reader_wake(struct pf_http_reader *reader)
{
    if (!reader || !reader->suspended)
        return;
    reader->suspended = false;
    MHD_resume_connection(reader->connection);
}

/* The stream goes on without this reader, or ends. */
static void release_reader(struct pf_http_stream *stream)
{
    struct pf_http_reader *reader = stream->reader;

    if (!reader)
        return;
    stream->reader = NULL;
    stream->read = reader->at;
    stream->since_ns = pf_mcp_now();
    reader->stream = NULL;
    pf_http_reader_wake(reader);
}

/* Copy as much of the next event as there is room for. Returns 0 when there is none. */
static size_t copy_event(struct pf_http_reader *reader, char *to, size_t room)
{
    struct pf_http_event *event = reader->stream->first;
    size_t len;

    while (event && event->number < reader->at)
        event = event->next;
    if (!event)
        return 0;
    if (event->number > reader->at) { /* those between were dropped */
        reader->at = event->number;
        reader->offset = 0;
    }
    len = event->len - reader->offset < room ? event->len - reader->offset : room;
    memcpy(to, event->text + reader->offset, len);
    reader->offset += len;
    if (reader->offset == event->len) {
        reader->at++;
        reader->offset = 0;
    }
    return len;
}

/* libmicrohttpd wants more of the response. */
static ssize_t read_stream(void *ctx, uint64_t pos, char *to, size_t room)
{
    static const char nothing[] = ":\n\n";
    struct pf_http_reader *reader = ctx;
    struct pf_http *http = reader->http;
    ssize_t n = 0;

    (void)pos;
    pthread_mutex_lock(&http->lock);
    if (reader->gone)
        n = MHD_CONTENT_READER_END_WITH_ERROR;
    else if (!reader->stream || http->stopping)
        n = MHD_CONTENT_READER_END_OF_STREAM;
    else
        n = (ssize_t)copy_event(reader, to, room);
    if (n == 0 && reader->stream->done) {
        n = MHD_CONTENT_READER_END_OF_STREAM;
    } else if (n == 0 && reader->keepalive && room >= strlen(nothing)) {
        n = (ssize_t)strlen(nothing);
        memcpy(to, nothing, (size_t)n);
    } else if (n == 0) {
        /* Not a moment between this and what is sent next: both are under the lock. */
        reader->suspended = true;
        MHD_suspend_connection(reader->connection);
    }
    if (n > 0) {
        reader->keepalive = false;
        reader->wrote_ns = pf_mcp_now();
    }
    pthread_mutex_unlock(&http->lock);
    return n;
}

static void free_reader(void *ctx)
{
    struct pf_http_reader *reader = ctx;
    struct pf_http *http = reader->http;

    pthread_mutex_lock(&http->lock);
    if (reader->stream) {
        reader->stream->reader = NULL;
        reader->stream->read = reader->at;
        reader->stream->since_ns = pf_mcp_now();
        reader->stream->session->used_ns = pf_mcp_now();
    }
    pthread_mutex_unlock(&http->lock);
    free(reader);
}

struct MHD_Response *pf_http_stream_read(struct pf_http_stream *stream, uint64_t from,
                                         struct MHD_Connection *connection,
                                         struct pf_http_connection *place)
{
    struct pf_http_reader *reader = calloc(1, sizeof(*reader));
    struct MHD_Response *response;

    if (!reader)
        return NULL;
    *reader = (struct pf_http_reader){
        .http = stream->session->http,
        .connection = connection,
        .place = place,
        .at = from,
        .wrote_ns = pf_mcp_now(),
    };
    response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK, read_stream, reader,
                                                 free_reader);
    if (!response) {
        free(reader);
        return NULL;
    }
    /* Whoever read it before has lost the connection and does not know it yet. */
    release_reader(stream);
    reader->stream = stream;
    stream->reader = reader;
    return response;
}

/* ---- streams ---- */

static void drop_first(struct pf_http_stream *stream)
{
    struct pf_http_event *event = stream->first;

    LL_DELETE(stream->first, event);
    if (!stream->first)
        stream->last = NULL;
    stream->bytes -= event->len;
    stream->count--;
    free(event);
}

void pf_http_stream_free(struct pf_http_stream *stream)
{
    release_reader(stream);
    while (stream->first)
        drop_first(stream);
    DL_DELETE(stream->session->streams, stream);
    stream->session->stream_count--;
    free(stream);
}

/* The oldest of those that have ended and that nobody reads goes, when there are too many. */
static void thin_out(struct pf_http_session *session)
{
    struct pf_http_stream *stream, *oldest = NULL;

    if (session->stream_count <= KEPT_STREAMS)
        return;
    DL_FOREACH(session->streams, stream) {
        if (stream->done && !stream->reader && stream->answered &&
            (!oldest || stream->since_ns < oldest->since_ns))
            oldest = stream;
    }
    if (oldest)
        pf_http_stream_free(oldest);
}

struct pf_http_stream *pf_http_stream_new(struct pf_http_session *session, bool is_post)
{
    struct pf_http_stream *stream = calloc(1, sizeof(*stream));

    if (!stream)
        return NULL;
    stream->session = session;
    stream->number = session->next_stream++;
    stream->is_post = is_post;
    stream->next_number = stream->read = 1;
    stream->since_ns = pf_mcp_now();
    DL_APPEND(session->streams, stream);
    session->stream_count++;
    thin_out(session);
    return stream;
}

struct pf_http_stream *pf_http_stream_find(struct pf_http_session *session, unsigned number)
{
    struct pf_http_stream *stream;

    DL_SEARCH_SCALAR(session->streams, stream, number, number);
    return stream;
}

bool pf_http_stream_has(const struct pf_http_stream *stream, uint64_t from)
{
    return from <= stream->next_number &&
           (stream->first ? from >= stream->first->number : from == stream->next_number);
}

/* Make room for len bytes: what has been read goes first, in the order in which it came. */
static bool make_room(struct pf_http_stream *stream, size_t len, bool lossy)
{
    while (stream->first && stream->answered &&
           (stream->bytes + len > KEPT_BYTES || stream->count >= KEPT_EVENTS)) {
        const struct pf_http_reader *reader = stream->reader;
        bool read = !reader || stream->first->number < reader->at;

        /* The rest of an event that has been begun has to follow. */
        if (!read && (lossy || (reader->offset && stream->first->number == reader->at)))
            return !lossy;
        drop_first(stream);
    }
    return true;
}

/* NULL when out of memory. */
static struct pf_http_event *new_event(unsigned stream, uint64_t number, const char *text,
                                       size_t len)
{
    struct pf_http_event *event;
    char head[64];
    int head_len =
            snprintf(head, sizeof(head), "id: %u-%llu\ndata: ", stream, (unsigned long long)number);

    event = malloc(sizeof(*event) + (size_t)head_len + len + 2);
    if (!event)
        return NULL;
    *event = (struct pf_http_event){ .number = number,
                                     .head = (size_t)head_len,
                                     .message_len = len,
                                     .len = (size_t)head_len + len + 2 };
    memcpy(event->text, head, event->head);
    memcpy(event->text + event->head, text, len);
    memcpy(event->text + event->head + len, "\n\n", 2);
    return event;
}

static void append(struct pf_http_stream *stream, const char *text, size_t len, bool lossy)
{
    struct pf_http_event *event;

    if (!make_room(stream, len, lossy))
        return;
    event = new_event(stream->number, stream->next_number, text, len);
    if (!event)
        return;
    stream->next_number++;
    if (stream->last)
        stream->last->next = event;
    else
        stream->first = event;
    stream->last = event;
    stream->bytes += event->len;
    stream->count++;
    pf_http_reader_wake(stream->reader);
}

void pf_http_stream_prime(struct pf_http_stream *stream)
{
    struct pf_http_event *event = new_event(stream->number, 0, "", 0);

    if (!event)
        return;
    LL_PREPEND(stream->first, event);
    if (!stream->last)
        stream->last = event;
    stream->bytes += event->len;
    stream->count++;
    stream->read = 0;
}

/* ---- what the session says ---- */

static void send_message(void *ctx, void *origin, const char *text, size_t len, bool lossy)
{
    struct pf_http_session *session = ctx;
    struct pf_http_stream *stream;

    pthread_mutex_lock(&session->http->lock);
    stream = origin ? origin : session->own;
    if (!session->ended && !stream->done)
        append(stream, text, len, lossy);
    pthread_mutex_unlock(&session->http->lock);
}

static void end_message(void *ctx, void *origin)
{
    struct pf_http_session *session = ctx;
    struct pf_http_stream *stream = origin;

    if (!stream)
        return;
    pthread_mutex_lock(&session->http->lock);
    stream->done = true;
    stream->since_ns = session->used_ns = pf_mcp_now();
    pf_http_reader_wake(stream->reader);
    pthread_mutex_unlock(&session->http->lock);
}

const struct pf_mcp_transport pf_http_transport = { .send = send_message, .done = end_message };

/* ---- sessions ---- */

struct pf_http_session *pf_http_session_new(struct pf_http *http, struct pf_http_token *token)
{
    struct pf_http_session *session = calloc(1, sizeof(*session));

    if (!session)
        return NULL;
    session->http = http;
    session->token = token;
    session->users = 1;
    session->used_ns = pf_mcp_now();
    session->own = pf_http_stream_new(session, false);
    if (!session->own || pf_http_random(session->id, sizeof(session->id) - 1, NULL) < 0) {
        if (session->own)
            pf_http_stream_free(session->own);
        free(session);
        return NULL;
    }
    session->own->answered = true;
    DL_APPEND(http->sessions, session);
    http->session_count++;
    token->sessions++;
    return session;
}

struct pf_http_session *pf_http_session_get(struct pf_http *http, const struct pf_http_token *token,
                                            const char *id)
{
    struct pf_http_session *session;

    DL_FOREACH(http->sessions, session) {
        if (session->token == token && strcmp(session->id, id) == 0) {
            session->users++;
            session->used_ns = pf_mcp_now();
            return session;
        }
    }
    return NULL;
}

void pf_http_session_end(struct pf_http_session *session)
{
    struct pf_http_stream *stream;

    if (session->ended)
        return;
    session->ended = true;
    DL_DELETE(session->http->sessions, session);
    session->http->session_count--;
    session->token->sessions--;
    DL_FOREACH(session->streams, stream)
        release_reader(stream);
}

void pf_http_session_put(struct pf_http_session *session)
{
    struct pf_http *http = session->http;
    bool over;

    pthread_mutex_lock(&http->lock);
    over = --session->users == 0 && session->ended;
    pthread_mutex_unlock(&http->lock);
    if (!over)
        return;
    /* After this nobody sends any more. */
    pf_mcp_session_end(session->core);
    pthread_mutex_lock(&http->lock);
    while (session->streams)
        pf_http_stream_free(session->streams);
    pthread_mutex_unlock(&http->lock);
    free(session);
}
