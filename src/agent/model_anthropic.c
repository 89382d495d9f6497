/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Anthropic's Messages API. The shapes are those of its documentation: "Messages", "Streaming
 * messages", "Errors", "Extended thinking", "Handling stop reasons" (platform.claude.com/docs).
 */
#include <stdlib.h>
#include <string.h>

#include "agent/model.h"
#include "agent/model_http.h"
#include "agent/model_turns.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "net/sse.h"

/* The newer version takes no sampling parameters, whatever their values ("API versions",
 * "Migrating to API version 2026-10-21"); the older one goes on for requests that have them. */
#define VERSION "2026-10-21"
#define VERSION_OF_SAMPLING "2023-06-01"

struct anthropic {
    struct pf_model_client client;
    const char *path;
};

/* The stream of one reply. Its blocks come one after another. */
struct stream {
    struct pf_sse sse;
    json_t *block;       /* the one that is open, as it began; NULL: none is */
    json_int_t index;    /* the provider's number of it */
    size_t reply_block;  /* ours; SIZE_MAX: not begun yet */
    struct pf_buf input; /* of a block of the provider's own tools */
    struct pf_buf signature;
    struct pinfold_model_usage usage;
    char *stop, *detail;
    bool has_sampling; /* the request has a temperature or its like */
};

/* ---- the request ---- */

static json_t *result_json(const struct pinfold_block *block)
{
    json_t *json =
            json_pack("{s:s,s:o}", "type", "tool_result", "tool_use_id", pf_turns_word(block->id));

    if (json && block->text_len > 0 && pf_json_put(json, "content", pf_turns_text(block)) < 0)
        json_decref(TAKE(json));
    if (json && block->is_error && pf_json_put(json, "is_error", json_true()) < 0)
        json_decref(TAKE(json));
    return json;
}

/* A block of reasoning as it came, with its text. Returns NULL and *ret_r 0 for one that is not
 * sent: thoughts without a signature are refused. */
static json_t *reasoning_json(const struct pinfold_block *block, int *ret_r)
{
    json_t *json = NULL;
    const char *type;

    *ret_r = pf_turns_opaque(block, "anthropic", &json);
    type = json ? pf_json_text(json, "type", NULL) : NULL;
    if (type && strcmp(type, "thinking") == 0)
        *ret_r = pf_json_put(json, "thinking", pf_turns_text(block));
    return json;
}

static json_t *block_json(const struct pinfold_block *block, const void *unused, int *ret_r)
{
    json_t *json = NULL;

    (void)unused;
    *ret_r = 0;
    switch (block->kind) {
    case PINFOLD_BLOCK_REASONING:
        return reasoning_json(block, ret_r);
    case PINFOLD_BLOCK_TEXT:
        json = json_pack("{s:s,s:o}", "type", "text", "text", pf_turns_text(block));
        break;
    case PINFOLD_BLOCK_TOOL_USE:
        json = json_pack("{s:s,s:o,s:o,s:o}", "type", "tool_use", "id", pf_turns_word(block->id),
                         "name", pf_turns_word(block->name), "input", pf_turns_input(block));
        break;
    case PINFOLD_BLOCK_TOOL_RESULT:
        json = result_json(block);
        break;
    }
    if (!json)
        *ret_r = -PINFOLD_ENOMEM;
    return json;
}

static int add_tools(json_t *body, const struct pinfold_model_request *request)
{
    json_t *tools = json_array();
    int r = tools ? pf_json_put(body, "tools", tools) : -PINFOLD_ENOMEM;

    for (size_t i = 0; i < request->tool_count && r == 0; i++) {
        const struct pinfold_tool_spec *tool = &request->tools[i];
        r = pf_json_push(tools, pf_turns_tool(json_string(tool->name), tool->description,
                                              "input_schema", pf_turns_schema(tool)));
    }
    return r;
}

static int add_settings(json_t *body, const struct pf_model_client *client,
                        const struct pinfold_model_request *request)
{
    const double *temperature = pf_model_temperature(client, request);
    int r = 0;

    if (request->system && request->system[0])
        r = pf_json_put(body, "system", json_string(request->system));
    if (r == 0 && temperature)
        r = pf_json_put(body, "temperature", json_real(*temperature));
    if (r == 0 && request->stop_sequences && request->stop_sequences[0])
        r = pf_json_put(body, "stop_sequences", pf_turns_stops(request));
    return r == 0 && request->tool_count > 0 ? add_tools(body, request) : r;
}

static json_t *body_json(const struct pf_model_client *client,
                         const struct pinfold_model_request *request)
{
    _cleanup_pf_json_ json_t *body =
            json_pack("{s:s,s:I,s:b,s:[]}", "model", client->model, "max_tokens",
                      (json_int_t)pf_model_max_tokens(client, request), "stream", 1, "messages");
    json_t *messages = json_object_get(body, "messages");
    struct pf_turns turns = { .count = 0 };
    int r = body ? pf_turns_make(request, &turns) : -PINFOLD_ENOMEM;

    for (size_t i = 0; i < turns.count && r == 0; i++)
        r = pf_turns_push(messages, &turns.list[i], block_json, NULL);
    pf_turns_done(&turns);
    if (r == 0)
        r = add_settings(body, client, request);
    return r == 0 ? TAKE(body) : NULL;
}

/* Keys are sent as bearer tokens ("Authentication"), which both versions take. */
static int add_headers(struct pf_model_call *call, struct pf_model_headers *headers,
                       struct pinfold_error *err)
{
    const struct stream *stream = call->ctx;

    pf_model_header(headers, "anthropic-version",
                    stream->has_sampling ? VERSION_OF_SAMPLING : VERSION);
    pf_model_header(headers, "accept", "text/event-stream");
    return pf_model_bearer(headers, call->client->key) < 0 ? pf_fail_nomem(err) : 0;
}

/* ---- errors ---- */

/* The status that goes with a type of error, which in a stream comes without one. */
static int status_of(const char *type)
{
    static const struct {
        const char *type;
        int status;
    } known[] = {
        { "invalid_request_error", 400 }, { "authentication_error", 401 },
        { "billing_error", 402 },         { "permission_error", 403 },
        { "not_found_error", 404 },       { "request_too_large", 413 },
        { "rate_limit_error", 429 },      { "api_error", 500 },
        { "timeout_error", 504 },         { "overloaded_error", 529 },
    };

    for (size_t i = 0; type && i < PF_COUNT(known); i++)
        if (strcmp(known[i].type, type) == 0)
            return known[i].status;
    return 0;
}

static void refused(struct pf_model_call *call, const struct pf_http_response *response,
                    struct pf_model_trouble *trouble)
{
    bool nomem;
    _cleanup_pf_json_ json_t *body = pf_json_object_load(
            response->body.data ? response->body.data : "", response->body.len, &nomem);
    const json_t *error = json_object_get(body, "error");

    (void)call;
    pf_model_trouble_set(trouble, trouble->status, pf_json_text(error, "type", NULL),
                         error ? pf_json_text(error, "message", NULL) : response->body.data);
}

static int error_event(struct pf_model_call *call, const json_t *event, struct pinfold_error *err)
{
    struct pf_model_trouble trouble = PF_MODEL_TROUBLE_INIT;
    const json_t *error = json_object_get(event, "error");
    const char *type = pf_json_text(error, "type", NULL);
    int r;

    pf_model_trouble_set(&trouble, status_of(type), type, pf_json_text(error, "message", NULL));
    trouble.passing = trouble.status == 0;
    r = pf_model_trouble_fail(call, &trouble, pf_json_text(event, "request_id", NULL), err);
    pf_buf_done(&trouble.message);
    return r;
}

/* ---- the stream ---- */

static bool block_is(const struct stream *stream, const char *type)
{
    const char *own = pf_json_text(stream->block, "type", NULL);

    return own && strcmp(own, type) == 0;
}

static int add_text(struct pf_model_call *call, struct stream *stream, enum pinfold_block_kind kind,
                    const json_t *from, const char *key, struct pinfold_error *err)
{
    size_t len;
    const char *text = pf_json_text(from, key, &len);
    int r = 0;

    if (!text || len == 0)
        return 0;
    if (stream->reply_block == SIZE_MAX)
        r = pf_reply_open(&call->reply, kind, NULL, NULL, &stream->reply_block, err);
    return r < 0 ? r : pf_reply_add(&call->reply, stream->reply_block, text, len, err);
}

/* Some gateways send the whole input with the start, and no pieces of it. */
static int add_whole_input(struct pf_model_call *call, struct stream *stream,
                           struct pinfold_error *err)
{
    const json_t *input = json_object_get(stream->block, "input");
    _cleanup_free_ char *text = NULL;

    if (json_object_size(input) == 0 || pf_reply_len(&call->reply, stream->reply_block) > 0)
        return 0;
    text = json_dumps(input, JSON_COMPACT);
    return text ? pf_reply_add(&call->reply, stream->reply_block, text, strlen(text), err)
                : pf_fail_nomem(err);
}

static int block_start(struct pf_model_call *call, struct stream *stream, json_t *event,
                       struct pinfold_error *err)
{
    json_t *block = json_object_get(event, "content_block");
    const char *name;

    if (stream->block || !json_is_object(block))
        return pf_model_garbled(call, "a block begins inside another, or is none", err);
    stream->block = json_incref(block);
    stream->index = json_integer_value(json_object_get(event, "index"));
    stream->reply_block = SIZE_MAX;
    stream->input.len = 0;
    stream->signature.len = 0;
    if (block_is(stream, "text"))
        return add_text(call, stream, PINFOLD_BLOCK_TEXT, block, "text", err);
    if (block_is(stream, "thinking"))
        return add_text(call, stream, PINFOLD_BLOCK_REASONING, block, "thinking", err);
    if (!block_is(stream, "tool_use"))
        return 0;
    name = pf_json_text(block, "name", NULL);
    if (!name || !name[0])
        return pf_model_garbled(call, "a tool is called without a name", err);
    return pf_reply_open(&call->reply, PINFOLD_BLOCK_TOOL_USE, pf_json_text(block, "id", NULL),
                         name, &stream->reply_block, err);
}

static int keep(struct pf_buf *to, const json_t *delta, const char *key, struct pinfold_error *err)
{
    size_t len;
    const char *text = pf_json_text(delta, key, &len);

    return text && pf_buf_append(to, text, len) < 0 ? pf_fail_nomem(err) : 0;
}

static int block_delta(struct pf_model_call *call, struct stream *stream, const json_t *event,
                       struct pinfold_error *err)
{
    const json_t *delta = json_object_get(event, "delta");
    const char *type = pf_json_text(delta, "type", NULL), *text;
    size_t len;

    if (!stream->block || json_integer_value(json_object_get(event, "index")) != stream->index)
        return pf_model_garbled(call, "a piece belongs to no block", err);
    if (!type)
        return 0;
    if (strcmp(type, "text_delta") == 0)
        return add_text(call, stream, PINFOLD_BLOCK_TEXT, delta, "text", err);
    if (strcmp(type, "thinking_delta") == 0)
        return add_text(call, stream, PINFOLD_BLOCK_REASONING, delta, "thinking", err);
    if (strcmp(type, "signature_delta") == 0)
        return keep(&stream->signature, delta, "signature", err);
    if (strcmp(type, "input_json_delta") != 0)
        return 0; /* citations, and what is not known yet */
    if (!block_is(stream, "tool_use"))
        return keep(&stream->input, delta, "partial_json", err);
    text = pf_json_text(delta, "partial_json", &len);
    return text ? pf_reply_add(&call->reply, stream->reply_block, text, len, err) : 0;
}

/* Thoughts that were cut have no signature, and are not taken back. */
static bool is_unsigned(const struct stream *stream)
{
    const char *whole = pf_json_text(stream->block, "signature", NULL);

    return block_is(stream, "thinking") && stream->signature.len == 0 && (!whole || !*whole);
}

/* What must come back with the conversation: {"anthropic": the block}. Returns NULL when out of
 * memory. */
static char *opaque_of(struct stream *stream)
{
    json_t *block = stream->block;
    bool nomem = false;
    int r = 0;

    if (block_is(stream, "thinking")) {
        if (stream->signature.len > 0)
            r = pf_json_put(block, "signature",
                            json_stringn(stream->signature.data, stream->signature.len));
        json_object_del(block, "thinking"); /* it is the text of ours */
    } else if (stream->input.len > 0) {
        json_t *input = pf_json_object_load(stream->input.data, stream->input.len, &nomem);
        if (input)
            r = pf_json_put(block, "input", input);
    }
    if (r < 0 || nomem)
        return NULL;
    _cleanup_pf_json_ json_t *opaque = json_pack("{s:O}", "anthropic", block);
    return opaque ? json_dumps(opaque, JSON_COMPACT) : NULL;
}

static int block_stop(struct pf_model_call *call, struct stream *stream, struct pinfold_error *err)
{
    int r = 0;

    if (!stream->block)
        return pf_model_garbled(call, "a block ends that has not begun", err);
    if (block_is(stream, "tool_use")) {
        r = add_whole_input(call, stream, err);
    } else if (!block_is(stream, "text")) {
        if (stream->reply_block == SIZE_MAX)
            r = pf_reply_open(&call->reply, PINFOLD_BLOCK_REASONING, NULL, NULL,
                              &stream->reply_block, err);
        if (r == 0 && !is_unsigned(stream))
            r = pf_reply_set_opaque(&call->reply, stream->reply_block, opaque_of(stream), err);
    }
    if (r == 0 && stream->reply_block != SIZE_MAX)
        r = pf_reply_close(&call->reply, stream->reply_block, err);
    json_decref(TAKE(stream->block));
    return r;
}

/* Counts come at the start, and again, whole, in the end; some only then. */
static void take_usage(struct stream *stream, const json_t *usage)
{
    static const char *const names[] = { "input_tokens", "output_tokens", "cache_read_input_tokens",
                                         "cache_creation_input_tokens" };
    uint64_t *const to[] = { &stream->usage.input, &stream->usage.output, &stream->usage.cache_read,
                             &stream->usage.cache_write };

    for (size_t i = 0; i < PF_COUNT(names); i++)
        if (json_is_number(json_object_get(usage, names[i]))) {
            *to[i] = pf_json_count(usage, names[i]);
            stream->usage.known = true;
        }
}

static int take_stop(struct stream *stream, const json_t *event, struct pinfold_error *err)
{
    const json_t *delta = json_object_get(event, "delta");
    const char *stop = pf_json_text(delta, "stop_reason", NULL);
    const char *detail = pf_json_text(delta, "stop_sequence", NULL);

    if (!detail) /* why it refuses; "Handle streaming refusals" */
        detail = pf_json_text(json_object_get(delta, "stop_details"), "explanation", NULL);
    take_usage(stream, json_object_get(event, "usage"));
    if (stop) {
        free(stream->stop);
        stream->stop = strdup(stop);
    }
    if (detail) {
        free(stream->detail);
        stream->detail = strdup(detail);
    }
    return (stop && !stream->stop) || (detail && !stream->detail) ? pf_fail_nomem(err) : 0;
}

static int take_event(void *ctx, const struct pf_sse_event *raw, struct pinfold_error *err)
{
    struct pf_model_call *call = ctx;
    struct stream *stream = call->ctx;
    bool nomem = false;
    _cleanup_pf_json_ json_t *event = pf_json_object_load(raw->data, raw->len, &nomem);
    const char *type = pf_json_text(event, "type", NULL);

    if (nomem)
        return pf_fail_nomem(err);
    if (call->complete)
        return 0;
    if (!type)
        return pf_model_garbled(call, "the stream holds an event that is no object with a type",
                                err);
    if (strcmp(type, "content_block_delta") == 0)
        return block_delta(call, stream, event, err);
    if (strcmp(type, "content_block_start") == 0)
        return block_start(call, stream, event, err);
    if (strcmp(type, "content_block_stop") == 0)
        return block_stop(call, stream, err);
    if (strcmp(type, "message_delta") == 0)
        return take_stop(stream, event, err);
    if (strcmp(type, "error") == 0)
        return error_event(call, event, err);
    if (strcmp(type, "message_start") == 0)
        take_usage(stream, json_object_get(json_object_get(event, "message"), "usage"));
    else if (strcmp(type, "message_stop") == 0)
        call->complete = true;
    return 0; /* pings, and events that are not known yet */
}

static int take(struct pf_model_call *call, const void *data, size_t len, struct pinfold_error *err)
{
    struct stream *stream = call->ctx;

    return pf_sse_feed(&stream->sse, data, len, take_event, call, err);
}

static enum pinfold_stop_reason stop_of(const char *word)
{
    static const struct {
        const char *word;
        enum pinfold_stop_reason stop;
    } known[] = {
        { "end_turn", PINFOLD_STOP_END },
        { "tool_use", PINFOLD_STOP_TOOL_USE },
        { "max_tokens", PINFOLD_STOP_LENGTH },
        { "model_context_window_exceeded", PINFOLD_STOP_LENGTH },
        { "refusal", PINFOLD_STOP_REFUSAL },
        { "stop_sequence", PINFOLD_STOP_SEQUENCE },
        { "pause_turn", PINFOLD_STOP_PAUSE },
    };

    for (size_t i = 0; i < PF_COUNT(known); i++)
        if (strcmp(known[i].word, word) == 0)
            return known[i].stop;
    return PINFOLD_STOP_END;
}

static int end(struct pf_model_call *call, struct pinfold_error *err)
{
    struct stream *stream = call->ctx;
    enum pinfold_stop_reason stop;
    int r;

    if (!call->complete || !stream->stop)
        return pf_model_garbled(call, "the reply ends before it is whole", err);
    stop = pf_reply_stop(&call->reply, stop_of(stream->stop));
    r = pf_reply_finish(&call->reply, stop, stream->detail ? stream->detail : stream->stop, err);
    if (r == 0)
        call->reply.out->usage = stream->usage;
    return r;
}

static void reset(struct pf_model_call *call)
{
    struct stream *stream = call->ctx;

    pf_sse_done(&stream->sse);
    json_decref(stream->block);
    pf_buf_done(&stream->input);
    pf_buf_done(&stream->signature);
    free(stream->stop);
    free(stream->detail);
    *stream = (struct stream){ .has_sampling = stream->has_sampling,
                               .sse = PF_SSE_INIT,
                               .input = PF_BUF_INIT(PF_BUF_UNLIMITED),
                               .signature = PF_BUF_INIT(PF_BUF_UNLIMITED) };
}

static const struct pf_model_wire wire = {
    .headers = add_headers,
    .take = take,
    .end = end,
    .reset = reset,
    .refused = refused,
    .request_id = "request-id",
};

/* ---- the model ---- */

/* Asked of the whole body, since extra may hold them as well. */
static bool has_sampling(const json_t *body)
{
    return json_object_get(body, "temperature") || json_object_get(body, "top_p") ||
           json_object_get(body, "top_k");
}

static int converse(void *state, const struct pinfold_model_request *request,
                    struct pinfold_model_reply *ret, struct pinfold_cancel *cancel,
                    struct pinfold_error *err)
{
    struct anthropic *model = state;
    struct stream stream = { .sse = PF_SSE_INIT };
    PF_CLEANUP(pf_model_call_done)
    struct pf_model_call call = {
        .client = &model->client,
        .wire = &wire,
        .ctx = &stream,
        .reply = { .request = request, .out = ret },
        .path = model->path,
        .cancel = cancel,
    };
    _cleanup_pf_json_ json_t *body = body_json(&model->client, request);
    int r = pf_model_call_body(&call, body, err);

    stream.has_sampling = has_sampling(body);
    return r < 0 ? r : pf_model_call_perform(&call, err);
}

static void anthropic_free(void *state)
{
    struct anthropic *model = state;

    if (!model)
        return;
    pf_model_client_done(&model->client);
    free(model);
}

static void anthropic_freep(struct anthropic **model)
{
    anthropic_free(*model);
}

int pinfold_model_anthropic_new(const struct pinfold_model_options *options,
                                struct pinfold_model **ret_model, struct pinfold_error *err)
{
    static const struct pinfold_model_ops ops = {
        .size = sizeof(ops), .provider = "anthropic", .converse = converse, .free = anthropic_free
    };
    static const struct pf_model_defaults defaults = {
        .provider = "anthropic",
        .base_url = "https://api.anthropic.com",
        .base_env = "ANTHROPIC_BASE_URL",
        .key_env = "ANTHROPIC_API_KEY",
        .max_tokens = 8192,
    };
    PF_CLEANUP(anthropic_freep) struct anthropic *model = calloc(1, sizeof(*model));
    size_t len;
    int r = model ? pf_model_client_init(&model->client, &defaults, options, err)
                  : pf_fail_nomem(err);

    if (r < 0)
        return r;
    if (!model->client.key && model->client.base_is_default)
        return pf_fail(err, PINFOLD_EVALUE,
                       "anthropic model: there is no key: set ANTHROPIC_API_KEY");
    len = strlen(model->client.base);
    model->path = len > 3 && strcmp(model->client.base + len - 3, "/v1") == 0 ? "/messages"
                                                                              : "/v1/messages";
    r = pinfold_model_new(&ops, model, model->client.model, ret_model, err);
    if (r == 0)
        model = NULL;
    return r;
}
