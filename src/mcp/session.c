/* SPDX-License-Identifier: Apache-2.0 */
#include "mcp/call.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "mcp/output.h"
#include "mcp/process.h"
#include "mcp/state.h"

/* Requests of one client that may be under way, waiting for a thread included. */
enum { CALLS_MAX = 256, BATCH_MAX = 128 };

/* ---- sending ---- */

/* Takes value, and returns text to free(); NULL when memory is short. */
static char *text_of(json_t *value)
{
    char *text = value ? json_dumps(value, JSON_COMPACT | JSON_REAL_PRECISION(15)) : NULL;

    json_decref(value);
    return text;
}

void pf_mcp_send(struct pf_mcp_session *session, void *origin, json_t *value, bool lossy)
{
    char *text = text_of(value);

    /* What may be lost does not wait for somebody who is writing to a client that is slow. */
    if (text && (!lossy || pthread_mutex_trylock(&session->out) == 0)) {
        if (!lossy)
            pthread_mutex_lock(&session->out);
        if (!session->ended)
            session->transport->send(session->ctx, origin, text, strlen(text), lossy);
        pthread_mutex_unlock(&session->out);
    }
    free(text);
}

static json_t *notification(const char *method, json_t *params)
{
    json_t *message = json_object();
    int bad = pf_mcp_put(message, "jsonrpc", json_string("2.0"));

    bad |= pf_mcp_put(message, "method", json_string(method));
    bad |= pf_mcp_put(message, "params", params);
    return pf_mcp_whole(message, bad);
}

void pf_mcp_notify(struct pf_mcp_session *session, void *origin, const char *method, json_t *params,
                   bool lossy)
{
    pf_mcp_send(session, origin, notification(method, params), lossy);
}

void pf_mcp_notify_locked(struct pf_mcp_session *session, void *origin, const char *method,
                          json_t *params)
{
    char *text = text_of(notification(method, params));

    if (text)
        session->transport->send(session->ctx, origin, text, strlen(text), true);
    free(text);
}

static void tell_done(struct pf_mcp_session *session, void *origin)
{
    pthread_mutex_lock(&session->out);
    if (!session->ended && session->transport->done)
        session->transport->done(session->ctx, origin);
    pthread_mutex_unlock(&session->out);
}

/* The reply to a message or to a part of one; NULL when there is none. Takes reply. */
static void answer(struct pf_mcp_session *session, void *origin, struct pf_mcp_batch *batch,
                   json_t *reply)
{
    bool last;

    if (!batch) {
        pf_mcp_send(session, origin, reply, false);
        tell_done(session, origin);
        return;
    }
    pthread_mutex_lock(&session->lock);
    pf_mcp_push(batch->replies, reply);
    last = --batch->pending == 0;
    pthread_mutex_unlock(&session->lock);
    if (!last)
        return;
    if (json_array_size(batch->replies))
        pf_mcp_send(session, origin, json_incref(batch->replies), false);
    tell_done(session, origin);
    json_decref(batch->replies);
    free(batch);
}

/* ---- requests ---- */

static void free_call(struct pf_mcp_call *call)
{
    pf_mcp_session_unref(call->session);
    pinfold_cancel_free(call->cancel);
    json_decref(call->value);
    free(call);
}

/* Out of memory even for the error, there is nothing to be said. */
static json_t *reply_to(struct pf_mcp_call *call, json_t *result, struct pf_mcp_fault *fault)
{
    json_t *reply = result ? pf_mcp_reply(call->message.id, result) : NULL;

    if (reply)
        return reply;
    if (result || !fault->code)
        pf_mcp_fail(fault, PF_MCP_INTERNAL_ERROR, "out of memory");
    return pf_mcp_error(call->message.id, fault);
}

/* The call leaves the table before its reply is sent: who has the reply may use the id again. */
static void finish(struct pf_mcp_call *call, json_t *result, struct pf_mcp_fault *fault)
{
    struct pf_mcp_session *session = call->session;
    json_t *reply = reply_to(call, result, fault);
    bool cancelled;

    pthread_mutex_lock(&session->lock);
    DL_DELETE(session->calls, call);
    session->call_count--;
    cancelled = call->cancelled;
    pthread_mutex_unlock(&session->lock);
    if (cancelled) {
        json_decref(reply);
        reply = NULL;
    }
    answer(session, call->origin, call->batch, reply);
    free_call(call);
}

static void run_call(struct pf_mcp_task *task)
{
    struct pf_mcp_call *call = (struct pf_mcp_call *)task;
    struct pf_mcp_fault fault = { 0 };
    json_t *result = NULL;

    if (!pinfold_cancel_fired(call->cancel))
        result = call->method->run(call, &fault);
    else
        pf_mcp_fail(&fault, PF_MCP_INTERNAL_ERROR, "cancelled");
    finish(call, result, &fault);
}

static struct pf_mcp_call *find_call(struct pf_mcp_session *session, const json_t *id)
{
    struct pf_mcp_call *call;

    DL_FOREACH(session->calls, call) {
        if (json_equal(call->message.id, id))
            return call;
    }
    return NULL;
}

static json_t *progress_token(const struct pf_mcp_message *message)
{
    json_t *token = json_object_get(json_object_get(message->params, "_meta"), "progressToken");

    return json_is_string(token) || json_is_integer(token) ? token : NULL;
}

static struct pf_mcp_call *new_call(struct pf_mcp_session *session, json_t *value,
                                    const struct pf_mcp_message *message)
{
    struct pf_mcp_call *call = calloc(1, sizeof(*call));

    if (!call)
        return NULL;
    if (pinfold_cancel_new(&call->cancel, NULL) < 0) {
        free(call);
        return NULL;
    }
    call->begun_ns = call->progressed_ns = pf_mcp_now();
    call->task.run = run_call;
    call->session = pf_mcp_session_ref(session);
    call->value = json_incref(value);
    call->message = *message;
    call->method = pf_mcp_find_method(message->method);
    call->progress = progress_token(message);
    return call;
}

/* Whether a request may begin; then it is in the table. The lock is held. */
static bool admit(struct pf_mcp_session *session, struct pf_mcp_call *call,
                  struct pf_mcp_fault *fault)
{
    const char *method = call->message.method;

    if (find_call(session, call->message.id))
        pf_mcp_fail(fault, PF_MCP_INVALID_REQUEST,
                    "Invalid Request: a request with this id is still under way");
    else if (session->call_count >= CALLS_MAX)
        pf_mcp_fail(fault, PF_MCP_BUSY,
                    "Too many requests: %d are under way; wait until some have ended", CALLS_MAX);
    else if (!call->method)
        pf_mcp_fail(fault, PF_MCP_NO_METHOD, "Method not found");
    else if (session->version == PF_MCP_NOTHING_AGREED && strcmp(method, "initialize") != 0 &&
             strcmp(method, "ping") != 0)
        pf_mcp_fail(fault, PF_MCP_INVALID_REQUEST,
                    "Invalid Request: the session begins with initialize");
    if (fault->code)
        return false;
    DL_APPEND(session->calls, call);
    session->call_count++;
    call->version = session->version;
    if (session->closing)
        pinfold_cancel_fire(call->cancel);
    return true;
}

/* Begin to answer a request. Its reply, or an error, comes to answer() in any case. */
static void begin(struct pf_mcp_session *session, json_t *value,
                  const struct pf_mcp_message *message, void *origin, struct pf_mcp_batch *batch)
{
    struct pf_mcp_fault fault = { 0 };
    struct pf_mcp_call *call = new_call(session, value, message);
    bool admitted = false;

    if (call) {
        call->origin = origin;
        call->batch = batch;
        pthread_mutex_lock(&session->lock);
        admitted = admit(session, call, &fault);
        pthread_mutex_unlock(&session->lock);
    } else {
        pf_mcp_fail(&fault, PF_MCP_INTERNAL_ERROR, "out of memory or of descriptors");
    }
    if (!admitted) {
        if (call)
            free_call(call);
        answer(session, origin, batch, pf_mcp_error(message->id, &fault));
    } else if (call->method->quick) {
        run_call(&call->task);
    } else if (pf_mcp_pool_run(session->server->pool, &call->task) < 0) {
        pf_mcp_fail(&fault, PF_MCP_INTERNAL_ERROR, "no thread can be made");
        finish(call, NULL, &fault);
    }
}

/* ---- receiving ---- */

/* One message, or one of a batch. Returns whether answer() was or will be called for it. */
static bool take(struct pf_mcp_session *session, json_t *value, void *origin,
                 struct pf_mcp_batch *batch)
{
    struct pf_mcp_fault fault = { 0 };
    struct pf_mcp_message message;

    pf_mcp_classify(value, &message, &fault);
    switch (message.kind) {
    case PF_MCP_REQUEST:
        if (batch && strcmp(message.method, "initialize") == 0)
            break;
        begin(session, value, &message, origin, batch);
        return true;
    case PF_MCP_NOTIFICATION:
        pf_mcp_notified(session, &message);
        return false;
    case PF_MCP_RESPONSE:
        pf_mcp_answered(session, &message);
        return false;
    case PF_MCP_INVALID:
        break;
    }
    if (!fault.code)
        pf_mcp_fail(&fault, PF_MCP_INVALID_REQUEST, "Invalid Request: initialize comes alone");
    answer(session, origin, batch, pf_mcp_error(message.id, &fault));
    return true;
}

/* What is wrong with a batch as a whole; NULL when nothing is. */
static const char *check_batch(struct pf_mcp_session *session, const json_t *array)
{
    enum pf_mcp_version version;

    pthread_mutex_lock(&session->lock);
    version = session->version;
    pthread_mutex_unlock(&session->lock);
    if (version != PF_MCP_2025_03_26)
        return "batches are of revision 2025-03-26 alone";
    if (json_array_size(array) == 0)
        return "an empty batch";
    return json_array_size(array) > BATCH_MAX ? "a batch has at most 128 messages" : NULL;
}

static bool take_batch(struct pf_mcp_session *session, const json_t *array, void *origin)
{
    struct pf_mcp_batch *batch = calloc(1, sizeof(*batch));
    bool answers = false;
    json_t *value;
    size_t i;

    if (batch)
        batch->replies = json_array();
    if (!batch || !batch->replies) {
        free(batch);
        return false;
    }
    /* One more than there will be, so that none of them is the last before all have begun. */
    batch->pending = (unsigned)json_array_size(array) + 1;
    json_array_foreach(array, i, value) {
        if (take(session, value, origin, batch))
            answers = true;
        else
            answer(session, origin, batch, NULL);
    }
    if (answers) {
        answer(session, origin, batch, NULL);
    } else {
        json_decref(batch->replies);
        free(batch);
    }
    return answers;
}

bool pf_mcp_receive(struct pf_mcp_session *session, const char *text, size_t len, void *origin)
{
    struct pf_mcp_fault fault = { 0 };
    _cleanup_json_ json_t *value = pf_mcp_parse(text, len, &fault), *id = NULL;
    const char *wrong = NULL;

    if (value && !json_is_array(value))
        return take(session, value, origin, NULL);
    if (value)
        wrong = check_batch(session, value);
    if (value && !wrong)
        return take_batch(session, value, origin);
    if (wrong)
        pf_mcp_fail(&fault, PF_MCP_INVALID_REQUEST, "Invalid Request: %s", wrong);
    if (!value)
        id = pf_mcp_id_of_broken(text, len);
    answer(session, origin, NULL, pf_mcp_error(id, &fault));
    return true;
}

void pf_mcp_refuse_long(struct pf_mcp_session *session, void *origin)
{
    struct pf_mcp_fault fault = { 0 };

    pf_mcp_fail(&fault, PF_MCP_INVALID_REQUEST,
                "Invalid Request: a message has at most %zu bytes; write large files in parts, or "
                "make them by a command",
                PF_MCP_MESSAGE_MAX);
    answer(session, origin, NULL, pf_mcp_error(NULL, &fault));
}

/* ---- notifications and answers of the client's ---- */

static void cancel_call(struct pf_mcp_session *session, const json_t *id)
{
    struct pf_mcp_call *call;

    pthread_mutex_lock(&session->lock);
    call = find_call(session, id);
    /* initialize cannot be cancelled, nor what is over. */
    if (call && !call->method->quick) {
        call->cancelled = true;
        pinfold_cancel_fire(call->cancel);
    }
    pthread_mutex_unlock(&session->lock);
}

void pf_mcp_notified(struct pf_mcp_session *session, const struct pf_mcp_message *message)
{
    if (strcmp(message->method, "notifications/cancelled") == 0)
        cancel_call(session, json_object_get(message->params, "requestId"));
    else if (strcmp(message->method, "notifications/initialized") == 0 ||
             strcmp(message->method, "notifications/roots/list_changed") == 0)
        pf_mcp_ask_roots(session);
    /* What we do not know is passed over, as the protocol wants it. */
}

void pf_mcp_session_cancel(struct pf_mcp_session *session, const void *origin)
{
    struct pf_mcp_call *call;

    pthread_mutex_lock(&session->lock);
    DL_FOREACH(session->calls, call) {
        if (call->origin == origin && !call->method->quick) {
            call->cancelled = true;
            pinfold_cancel_fire(call->cancel);
        }
    }
    pthread_mutex_unlock(&session->lock);
}

/* ---- life ---- */

int pf_mcp_session_new(struct pf_mcp_server *server, const struct pf_mcp_session_options *options,
                       struct pf_mcp_session **ret, struct pinfold_error *err)
{
    struct pf_mcp_session *session = calloc(1, sizeof(*session));

    if (session)
        session->name = strdup(options->name);
    if (!session || !session->name) {
        free(session);
        return pf_mcp_nomem(err);
    }
    pthread_mutex_init(&session->out, NULL);
    pthread_mutex_init(&session->lock, NULL);
    session->server = server;
    session->references = 1;
    session->mode = options->mode;
    session->local = options->local;
    session->transport = options->transport;
    session->ctx = options->ctx;
    session->log_level = PF_MCP_LOG_DEFAULT;
    pf_mcp_server_add(server, session);
    *ret = session;
    return 0;
}

struct pf_mcp_session *pf_mcp_session_ref(struct pf_mcp_session *session)
{
    pthread_mutex_lock(&session->lock);
    session->references++;
    pthread_mutex_unlock(&session->lock);
    return session;
}

void pf_mcp_session_unref(struct pf_mcp_session *session)
{
    bool last;

    pthread_mutex_lock(&session->lock);
    last = --session->references == 0;
    pthread_mutex_unlock(&session->lock);
    if (!last)
        return;
    pf_mcp_process_free_all(session);
    pf_mcp_output_expire(session, INT64_MIN / 2);
    pf_mcp_workspace_leave(session);
    pthread_mutex_destroy(&session->out);
    pthread_mutex_destroy(&session->lock);
    free(session->name);
    free(session);
}

void pf_mcp_session_end(struct pf_mcp_session *session)
{
    struct pf_mcp_call *call;

    if (!session)
        return;
    pf_mcp_server_remove(session->server, session);
    pthread_mutex_lock(&session->lock);
    session->closing = true;
    DL_FOREACH(session->calls, call)
        pinfold_cancel_fire(call->cancel);
    pthread_mutex_unlock(&session->lock);
    pf_mcp_process_end_all(session);
    pf_mcp_forget_roots(session);
    pthread_mutex_lock(&session->out);
    session->ended = true;
    pthread_mutex_unlock(&session->out);
    pf_mcp_session_unref(session);
}

const char *pf_mcp_session_version(struct pf_mcp_session *session)
{
    enum pf_mcp_version version;

    pthread_mutex_lock(&session->lock);
    version = session->version;
    pthread_mutex_unlock(&session->lock);
    return pf_mcp_version_text(version);
}

unsigned pf_mcp_session_calls(struct pf_mcp_session *session)
{
    unsigned count;

    pthread_mutex_lock(&session->lock);
    count = session->call_count;
    pthread_mutex_unlock(&session->lock);
    return count;
}
