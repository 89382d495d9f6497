/* SPDX-License-Identifier: Apache-2.0 */
/* Streamable HTTP, by libmicrohttpd: one endpoint, to which a client posts messages, and from which
 * it gets streams of events. */
#include "mcp/http.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "mcp/clock.h"
#include "mcp/http_request.h"
#include "mcp/http_serve.h"

enum { SESSIONS_MAX = 256, SESSIONS_OF_ONE = 128 };

/* ---- responses ---- */

/* Queue a response and let it go; NULL is want of memory, and closes the connection. */
static enum MHD_Result queue(struct MHD_Connection *connection, unsigned status,
                             struct MHD_Response *response)
{
    enum MHD_Result result = MHD_NO;

    if (response) {
        MHD_add_response_header(response, "Cache-Control", "no-store");
        result = MHD_queue_response(connection, status, response);
        MHD_destroy_response(response);
    }
    return result;
}

static struct MHD_Response *json_response(const char *text, size_t len)
{
    struct MHD_Response *response =
            MHD_create_response_from_buffer(len, (void *)(uintptr_t)text, MHD_RESPMEM_MUST_COPY);

    if (response)
        MHD_add_response_header(response, "Content-Type", "application/json");
    return response;
}

static struct MHD_Response *refusal_response(const char *why)
{
    char text[256];
    int len = snprintf(text, sizeof(text),
                       "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32000,"
                       "\"message\":\"%s\"}}\n",
                       why);

    return json_response(text, (size_t)len);
}

static enum MHD_Result refuse(struct MHD_Connection *connection,
                              const struct pf_http_refusal *refusal)
{
    struct MHD_Response *response = refusal_response(refusal->why);

    if (response && refusal->status == MHD_HTTP_UNAUTHORIZED)
        MHD_add_response_header(response, "WWW-Authenticate", "Bearer realm=\"pinfold\"");
    if (response && refusal->status == MHD_HTTP_METHOD_NOT_ALLOWED)
        MHD_add_response_header(response, "Allow", "POST, GET, DELETE");
    return queue(connection, refusal->status, response);
}

static enum MHD_Result refuse_with(struct MHD_Connection *connection, unsigned status,
                                   const char *why)
{
    return refuse(connection, &(struct pf_http_refusal){ status, why });
}

static enum MHD_Result say_nothing(struct MHD_Connection *connection, unsigned status)
{
    return queue(connection, status,
                 MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT));
}

static struct MHD_Response *as_stream(struct MHD_Response *response)
{
    if (response) {
        MHD_add_response_header(response, "Content-Type", "text/event-stream");
        MHD_add_response_header(response, "X-Accel-Buffering", "no"); /* nginx shall pass it on */
    }
    return response;
}

/* ---- POST ---- */

/* Whether a message is an error; one without an id answers what was no request. */
static bool is_error(const struct pf_http_event *event, bool without_id)
{
    json_t *value = json_loadb(event->text + event->head, event->message_len, 0, NULL);
    bool found = json_object_get(value, "error") &&
                 (!without_id || json_is_null(json_object_get(value, "id")));

    json_decref(value);
    return found;
}

/* Make the session that an initialize begins. Returns whether there is room for it. */
static bool begin_session(struct pf_http_request *request, struct pf_http_refusal *refusal)
{
    struct pf_http *http = request->http;
    struct pf_mcp_session_options options = {
        .name = request->token->name,
        .mode = request->token->mode,
        .transport = &pf_http_transport,
    };
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    struct pf_http_session *session = NULL;

    pthread_mutex_lock(&http->lock);
    if (http->session_count < SESSIONS_MAX && request->token->sessions < SESSIONS_OF_ONE)
        session = pf_http_session_new(http, request->token);
    pthread_mutex_unlock(&http->lock);
    options.ctx = session;
    if (session && pf_mcp_session_new(http->server, &options, &session->core, &err) < 0) {
        pthread_mutex_lock(&http->lock);
        pf_http_session_end(session);
        pthread_mutex_unlock(&http->lock);
        pf_http_session_put(session);
        session = NULL;
    }
    if (!session)
        *refusal = (struct pf_http_refusal){ MHD_HTTP_SERVICE_UNAVAILABLE,
                                             "too many sessions; end one, or come back later" };
    request->session = session;
    return session != NULL;
}

/* What was posted has been answered at once, by one message or by none: a response without a
 * stream. The lock is held. */
static struct MHD_Response *plain_response(const struct pf_http_stream *stream,
                                           const struct pf_http_session *begun, unsigned *status)
{
    const struct pf_http_event *event = stream->first;
    struct MHD_Response *response;

    if (!event) {
        *status = MHD_HTTP_ACCEPTED;
        return MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);
    }
    response = json_response(event->text + event->head, event->message_len);
    *status = is_error(event, true) ? MHD_HTTP_BAD_REQUEST : MHD_HTTP_OK;
    if (response && begun)
        MHD_add_response_header(response, "Mcp-Session-Id", begun->id);
    return response;
}

static enum MHD_Result answer_post(struct pf_http_request *request,
                                   struct MHD_Connection *connection, struct pf_http_stream *stream,
                                   bool begins)
{
    struct pf_http *http = request->http;
    struct pf_http_session *session = request->session;
    const char *version = pf_mcp_session_version(session->core);
    struct MHD_Response *response;
    unsigned status = MHD_HTTP_OK;

    pthread_mutex_lock(&http->lock);
    if (begins && !version) {
        /* What came does not begin a session: an error of initialize says why. */
        status = MHD_HTTP_BAD_REQUEST;
        response = stream->first && is_error(stream->first, false)
                           ? plain_response(stream, NULL, &(unsigned){ 0 })
                           : refusal_response("no Mcp-Session-Id");
        pf_http_session_end(session);
    } else if (stream->done && stream->count <= 1) {
        response = plain_response(stream, begins ? session : NULL, &status);
        pf_http_stream_free(stream);
    } else {
        if (version && strcmp(version, "2025-11-25") >= 0)
            pf_http_stream_prime(stream);
        stream->answered = true;
        response = as_stream(pf_http_stream_read(stream, stream->read, connection, request->place));
    }
    pthread_mutex_unlock(&http->lock);
    return queue(connection, status, response);
}

static enum MHD_Result post(struct pf_http_request *request, struct MHD_Connection *connection)
{
    struct pf_http *http = request->http;
    bool begins = !request->session;
    struct pf_http_stream *stream;
    struct pf_http_refusal refusal;

    if (begins && !begin_session(request, &refusal))
        return refuse(connection, &refusal);
    pthread_mutex_lock(&http->lock);
    stream = pf_http_stream_new(request->session, true);
    pthread_mutex_unlock(&http->lock);
    if (!stream)
        return MHD_NO;
    if (pf_mcp_receive(request->session->core, request->body, request->len, stream))
        return answer_post(request, connection, stream, begins);
    pthread_mutex_lock(&http->lock);
    pf_http_stream_free(stream);
    if (begins)
        pf_http_session_end(request->session);
    pthread_mutex_unlock(&http->lock);
    return begins ? refuse_with(connection, MHD_HTTP_BAD_REQUEST, "no Mcp-Session-Id")
                  : say_nothing(connection, MHD_HTTP_ACCEPTED);
}

/* ---- GET and DELETE ---- */

static enum MHD_Result get(struct pf_http_request *request, struct MHD_Connection *connection)
{
    struct pf_http_session *session = request->session;
    struct pf_http_stream *stream = session->own;
    struct MHD_Response *response = NULL;
    uint64_t from;
    bool there;

    pthread_mutex_lock(&request->http->lock);
    if (request->resumes)
        stream = pf_http_stream_find(session, request->stream);
    from = request->resumes || !stream ? request->event + 1 : stream->read;
    there = stream && !session->ended &&
            (!request->resumes || (stream->answered && pf_http_stream_has(stream, from)));
    if (there)
        response = pf_http_stream_read(stream, from, connection, request->place);
    pthread_mutex_unlock(&request->http->lock);
    if (!there)
        return refuse_with(connection, MHD_HTTP_GONE, "those events are gone");
    return queue(connection, MHD_HTTP_OK, as_stream(response));
}

static enum MHD_Result end(struct pf_http_request *request, struct MHD_Connection *connection)
{
    pthread_mutex_lock(&request->http->lock);
    pf_http_session_end(request->session);
    pthread_mutex_unlock(&request->http->lock);
    return say_nothing(connection, MHD_HTTP_NO_CONTENT);
}

/* ---- requests ---- */

/* The headers have come. */
static enum MHD_Result begin(struct pf_http *http, struct MHD_Connection *connection,
                             const char *url, const char *method, void **slot)
{
    const union MHD_ConnectionInfo *info =
            MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    struct pf_http_request *request = calloc(1, sizeof(*request));
    struct pf_http_refusal refusal = { 0 };
    struct pf_http_headers headers;

    if (!request || !info || !info->socket_context) {
        free(request);
        return MHD_NO;
    }
    request->http = http;
    request->place = info->socket_context;
    *slot = request;
    pf_http_headers_read(connection, &headers);
    if (!pf_http_request_check(request, url, method, &headers, &refusal))
        return refuse(connection, &refusal);
    request->body = request->want ? malloc(request->want) : NULL;
    return request->want && !request->body ? MHD_NO : MHD_YES;
}

/* Some of the body has come. */
static enum MHD_Result take_body(struct pf_http_request *request, const char *data, size_t *len)
{
    if (*len > request->want - request->len)
        return MHD_NO;
    memcpy(request->body + request->len, data, *len);
    request->len += *len;
    *len = 0;
    return MHD_YES;
}

/* All of it has come. */
static enum MHD_Result perform(struct pf_http_request *request, struct MHD_Connection *connection)
{
    bool stopping;

    pthread_mutex_lock(&request->http->lock);
    request->place->receiving = false;
    stopping = request->http->stopping;
    pthread_mutex_unlock(&request->http->lock);
    if (stopping || request->len != request->want)
        return MHD_NO;
    switch (request->method) {
    case PF_HTTP_POST:
        return post(request, connection);
    case PF_HTTP_GET:
        return get(request, connection);
    case PF_HTTP_DELETE:
        return end(request, connection);
    case PF_HTTP_OTHER:
        break;
    }
    return MHD_NO;
}

enum MHD_Result pf_http_handle(void *ctx, struct MHD_Connection *connection, const char *url,
                               const char *method, const char *version, const char *data,
                               size_t *len, void **slot)
{
    (void)version;
    if (!*slot)
        return begin(ctx, connection, url, method, slot);
    if (*len)
        return take_body(*slot, data, len);
    return perform(*slot, connection);
}

void pf_http_completed(void *ctx, struct MHD_Connection *connection, void **slot,
                       enum MHD_RequestTerminationCode code)
{
    struct pf_http_request *request = *slot;
    struct pf_http *http = ctx;

    (void)connection;
    (void)code;
    *slot = NULL;
    if (!request)
        return;
    pthread_mutex_lock(&http->lock);
    if (request->token)
        request->token->requests--;
    request->place->receiving = true;
    request->place->since_ns = pf_mcp_now();
    pthread_mutex_unlock(&http->lock);
    if (request->session)
        pf_http_session_put(request->session);
    free(request->body);
    free(request);
}

void pf_http_connected(void *ctx, struct MHD_Connection *connection, void **slot,
                       enum MHD_ConnectionNotificationCode code)
{
    const union MHD_ConnectionInfo *info;
    struct pf_http_connection *place = *slot;
    struct pf_http *http = ctx;

    if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
        if (place) {
            pthread_mutex_lock(&http->lock);
            DL_DELETE(http->connections, place);
            pthread_mutex_unlock(&http->lock);
        }
        free(place);
        *slot = NULL;
        return;
    }
    place = calloc(1, sizeof(*place));
    info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    *slot = place;
    if (!place)
        return;
    *place = (struct pf_http_connection){ .fd = info ? info->connect_fd : -1,
                                          .receiving = true,
                                          .since_ns = pf_mcp_now() };
    pthread_mutex_lock(&http->lock);
    DL_APPEND(http->connections, place);
    pthread_mutex_unlock(&http->lock);
}
