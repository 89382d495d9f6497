/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside the HTTP transport. Three kinds of threads meet here: that of libmicrohttpd, which calls
 * http.c and the readers of streams; those of the pool, which send; and the one that watches. One
 * lock, http->lock, protects everything below. It is never held while the protocol's session is
 * called, except to cancel, and nobody waits for a client while holding it: what a client does not
 * read is kept, up to a bound, or lost.
 */
#ifndef PF_MCP_HTTP_STATE_H
#define PF_MCP_HTTP_STATE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <microhttpd.h>

#include "mcp/http_check.h"
#include "mcp/http_tokens.h"
#include "mcp/session.h"

struct pf_http;
struct pf_http_session;

/* One event of a stream, as it goes over the wire. */
struct pf_http_event {
    struct pf_http_event *next;
    uint64_t number;
    size_t head; /* bytes before the message itself */
    size_t message_len;
    size_t len;
    char text[];
};

/* A response that is a stream, on one connection. */
struct pf_http_reader {
    struct pf_http *http;
    struct pf_http_stream *stream; /* NULL: it is over, or another reader has it */
    struct MHD_Connection *connection;
    struct pf_http_connection *place;
    uint64_t at;   /* the event that goes next */
    size_t offset; /* of it, how much has gone */
    bool suspended;
    bool gone;      /* the client has hung up */
    bool keepalive; /* say something, whatever it is */
    int64_t wrote_ns;
};

/* What belongs to one POST, or to none: messages of the server's own. It outlives the connections
 * that carry it. */
struct pf_http_stream {
    struct pf_http_session *session;
    unsigned number;
    struct pf_http_event *first, *last; /* what is kept, for who comes back */
    size_t bytes;
    unsigned count;
    uint64_t next_number;          /* from 1; 0 is the event without a message */
    uint64_t read;                 /* what the last reader would have been given next */
    struct pf_http_reader *reader; /* NULL: nobody reads */
    bool is_post;
    bool answered;    /* the response to the POST is a stream, or was sent */
    bool done;        /* no more events come */
    bool cancelled;   /* nobody came back for it */
    int64_t since_ns; /* nobody reads it; later: and it is done */
    struct pf_http_stream *prev, *next;
};

/* One client, from initialize to DELETE or until it was idle for too long. */
struct pf_http_session {
    struct pf_http *http;
    struct pf_http_token *token;
    struct pf_mcp_session *core;
    char id[33];
    unsigned users; /* who has it in his hands besides the list */
    bool ended;
    unsigned next_stream;
    unsigned stream_count;
    struct pf_http_stream *streams;
    struct pf_http_stream *own; /* of messages that belong to no request */
    int64_t used_ns;
    struct pf_http_session *prev, *next;
};

/* A TCP connection. */
struct pf_http_connection {
    int fd;
    bool receiving;   /* a request has to come, or the rest of it */
    int64_t since_ns; /* that began */
    struct pf_http_connection *prev, *next;
};

struct pf_http {
    struct pf_mcp_server *server;
    struct MHD_Daemon *daemon;
    struct pf_http_tokens tokens;
    struct pf_http_names names;
    int64_t resume_ns, ttl_ns;

    pthread_mutex_t lock;
    pthread_cond_t wake; /* the watch, to end */
    bool stopping;
    struct pf_http_session *sessions;
    unsigned session_count;
    struct pf_http_connection *connections;
};

/* ---- streams: the lock is held, except where it says otherwise ---- */

extern const struct pf_mcp_transport pf_http_transport;

struct pf_http_stream *pf_http_stream_new(struct pf_http_session *session, bool is_post);
void pf_http_stream_free(struct pf_http_stream *stream);

/* Begin with an event without a message, so that the client knows from where to go on. */
void pf_http_stream_prime(struct pf_http_stream *stream);

/* Find one of a session by its number; NULL. */
struct pf_http_stream *pf_http_stream_find(struct pf_http_session *session, unsigned number);

/* Whether all events from a number on are still there, or still to come. */
bool pf_http_stream_has(const struct pf_http_stream *stream, uint64_t from);

/* A response that gives the stream from an event on, to the one client that now reads it. NULL when
 * out of memory. */
struct MHD_Response *pf_http_stream_read(struct pf_http_stream *stream, uint64_t from,
                                         struct MHD_Connection *connection,
                                         struct pf_http_connection *place);

/* Have the reader look again, if it waits. */
void pf_http_reader_wake(struct pf_http_reader *reader);

/* ---- sessions: the lock is held ---- */

/* Make one, with one user: the caller. NULL when out of memory; the core has to be set. */
struct pf_http_session *pf_http_session_new(struct pf_http *http, struct pf_http_token *token);

/* Find one that is this token's, and use it; NULL. */
struct pf_http_session *pf_http_session_get(struct pf_http *http, const struct pf_http_token *token,
                                            const char *id);

/* It is over: nobody finds it any more, and its readers end. */
void pf_http_session_end(struct pf_http_session *session);

/* Use it no more. Called without the lock; the last one frees what has ended. */
void pf_http_session_put(struct pf_http_session *session);

/* ---- the thread that watches: hang-ups, slow requests, what nobody came back for ---- */

void *pf_http_watch(void *http);

#endif
