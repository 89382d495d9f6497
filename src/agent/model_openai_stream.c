/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replies of OpenAI's chat completions, and of the servers that speak like it, each a little
 * differently. What is not OpenAI's own says where it was seen.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/model_openai.h"
#include "base/cleanup.h"
#include "base/error.h"

static struct pf_openai_stream *stream_of(const struct pf_model_call *call)
{
    return call->ctx;
}

static json_t *load(const char *text, size_t len, bool *ret_nomem)
{
    return pf_json_object_load(text ? text : "", len, ret_nomem);
}

/* ---- errors ---- */

/* {"error": {"message", "type", "code"}}; {"error": "text"} (Ollama); {"message", "type", "code"}
 * (vLLM, before 0.10); {"detail": ...} (FastAPI). */
static void read_error(const json_t *body, int status, const char *text,
                       struct pf_model_trouble *trouble)
{
    const json_t *error = json_object_get(body, "error");
    const json_t *from = json_is_object(error) ? error : body;
    const json_t *code = json_object_get(from, "code");
    const char *message =
            json_is_string(error) ? json_string_value(error) : pf_json_text(from, "message", NULL);
    const char *type = pf_json_text(from, "type", NULL);
    json_int_t number = json_integer_value(code);

    if (!message)
        message = pf_json_text(body, "detail", NULL);
    if (status == 0 && number >= 400 && number < 600)
        status = (int)number;
    pf_model_trouble_set(trouble, status, json_is_string(code) ? json_string_value(code) : type,
                         message ? message : text);
    /* 429 as well, but no wait fills an account. */
    trouble->hopeless = strcmp(trouble->type, "insufficient_quota") == 0;
    trouble->passing = status == 0 && !trouble->hopeless;
}

static void refused(struct pf_model_call *call, const struct pf_http_response *response,
                    struct pf_model_trouble *trouble)
{
    bool nomem;
    _cleanup_pf_json_ json_t *body = load(response->body.data, response->body.len, &nomem);

    (void)call;
    read_error(body, trouble->status, response->body.data, trouble);
}

static int error_event(struct pf_model_call *call, const json_t *event, const char *text,
                       struct pinfold_error *err)
{
    struct pf_model_trouble trouble = PF_MODEL_TROUBLE_INIT;
    int r;

    read_error(event, 0, text, &trouble);
    r = pf_model_trouble_fail(call, &trouble, NULL, err);
    pf_buf_done(&trouble.message);
    return r;
}

/* A server that does not know a member of the body says so by its name. */
static bool mend(struct pf_model_call *call, const struct pf_model_trouble *trouble)
{
    struct pf_openai_stream *stream = stream_of(call);
    struct pf_openai_dialect *dialect = &stream->dialect;
    const char *message = trouble->message.data ? trouble->message.data : "";
    struct pinfold_error ignored;

    if (trouble->status != 400 && trouble->status != 422)
        return false;
    if (!dialect->no_stream_options && strstr(message, "stream_options")) {
        dialect->no_stream_options = true;
        stream->model->no_stream_options = true;
    } else if (strstr(message, "max_completion_tokens")) {
        /* OpenAI names it to be used, others because they do not know it. */
        dialect->completion_tokens = !dialect->completion_tokens;
        stream->model->completion_tokens = dialect->completion_tokens;
    } else {
        return false;
    }
    _cleanup_pf_json_ json_t *body = pf_openai_body(stream->model, stream->request, *dialect);
    pf_buf_done(&call->body);
    return pf_model_call_body(call, body, &ignored) == 0;
}

/* ---- text ---- */

static int add_text(struct pf_model_call *call, const json_t *delta, const char *key,
                    enum pinfold_block_kind kind, size_t *block, struct pinfold_error *err)
{
    size_t len;
    const char *text = pf_json_text(delta, key, &len);
    int r = 0;

    if (!text || len == 0)
        return 0;
    if (*block == SIZE_MAX)
        r = pf_reply_open(&call->reply, kind, NULL, NULL, block, err);
    return r < 0 ? r : pf_reply_add(&call->reply, *block, text, len, err);
}

/* Thoughts: "reasoning_content" (DeepSeek, vLLM, llama.cpp) or "reasoning" (OpenRouter, Ollama,
 * newer vLLM); some send both, with the same text. */
static int add_words(struct pf_model_call *call, const json_t *delta, struct pinfold_error *err)
{
    struct pf_openai_stream *stream = stream_of(call);
    const char *thoughts = json_is_string(json_object_get(delta, "reasoning_content"))
                                   ? "reasoning_content"
                                   : "reasoning";
    int r = add_text(call, delta, thoughts, PINFOLD_BLOCK_REASONING, &stream->reasoning, err);

    if (r == 0)
        r = add_text(call, delta, "content", PINFOLD_BLOCK_TEXT, &stream->text, err);
    if (r == 0 && json_string_length(json_object_get(delta, "refusal")) > 0) {
        stream->refused = true;
        r = add_text(call, delta, "refusal", PINFOLD_BLOCK_TEXT, &stream->text, err);
    }
    return r;
}

/* ---- calls of tools ---- */

/* Whether the input of a call is a whole object already. */
static bool is_whole(const struct pf_model_call *call, const struct pf_openai_tool *tool)
{
    const struct pf_buf *text =
            tool->block == SIZE_MAX ? &tool->held : &call->reply.parts[tool->block].text;
    bool nomem;
    json_t *input = load(text->data, text->len, &nomem);

    json_decref(input);
    return input;
}

/* Whether a piece belongs to a call that has begun with the same index, or is another call. Ollama
 * gives all calls the index 0 (its issue 15457). */
static bool continues(const struct pf_model_call *call, const struct pf_openai_tool *tool,
                      const char *id, const char *name)
{
    if (id && tool->id)
        return strcmp(id, tool->id) == 0;
    return !name || tool->block == SIZE_MAX || !is_whole(call, tool);
}

static struct pf_openai_tool *find_tool(struct pf_model_call *call, const json_t *index,
                                        const char *id, const char *name)
{
    struct pf_openai_stream *stream = stream_of(call);

    for (size_t i = stream->tool_count; i-- > 0;) {
        struct pf_openai_tool *tool = &stream->tools[i];
        if (json_is_integer(index)) {
            if (tool->has_index && tool->index == json_integer_value(index))
                return continues(call, tool, id, name) ? tool : NULL;
        } else if (id ? tool->id && strcmp(tool->id, id) == 0 : !name) {
            return tool; /* the last one goes on: Ollama before 0.4.7 gave no index */
        }
    }
    return NULL;
}

static struct pf_openai_tool *new_tool(struct pf_openai_stream *stream, const json_t *index,
                                       const char *id)
{
    struct pf_openai_tool *tools =
            reallocarray(stream->tools, stream->tool_count + 1, sizeof(*tools));
    struct pf_openai_tool *tool;

    if (!tools)
        return NULL;
    stream->tools = tools;
    tool = &tools[stream->tool_count];
    *tool = (struct pf_openai_tool){
        .has_index = json_is_integer(index),
        .index = json_integer_value(index),
        .id = id ? strdup(id) : NULL,
        .block = SIZE_MAX,
        .held = PF_BUF_INIT(PF_BUF_UNLIMITED),
    };
    if (id && !tool->id)
        return NULL;
    stream->tool_count++;
    return tool;
}

static int begin_tool(struct pf_model_call *call, struct pf_openai_tool *tool, const char *name,
                      struct pinfold_error *err)
{
    struct pf_openai_stream *stream = stream_of(call);
    int r = pf_reply_open(&call->reply, PINFOLD_BLOCK_TOOL_USE, tool->id, name, &tool->block, err);

    /* Text that comes after a call is a block of its own. */
    stream->text = stream->reasoning = SIZE_MAX;
    if (r == 0)
        r = pf_reply_add(&call->reply, tool->block, tool->held.data, tool->held.len, err);
    pf_buf_done(&tool->held);
    return r;
}

/* Arguments are a string in pieces; some servers send an object instead, whole. */
static int add_arguments(struct pf_model_call *call, struct pf_openai_tool *tool,
                         const json_t *arguments, struct pinfold_error *err)
{
    _cleanup_free_ char *dumped =
            json_is_object(arguments) ? json_dumps(arguments, JSON_COMPACT) : NULL;
    const char *text = dumped ? dumped : json_string_value(arguments);
    size_t len = dumped ? strlen(dumped) : json_string_length(arguments);

    if (json_is_object(arguments) && !dumped)
        return pf_fail_nomem(err);
    if (!text || len == 0)
        return 0;
    if (tool->block != SIZE_MAX)
        return pf_reply_add(&call->reply, tool->block, text, len, err);
    return pf_buf_append(&tool->held, text, len) < 0 ? pf_fail_nomem(err) : 0;
}

static const char *full(const json_t *object, const char *key)
{
    const char *text = pf_json_text(object, key, NULL);

    return text && *text ? text : NULL;
}

static int add_call(struct pf_model_call *call, const json_t *piece, struct pinfold_error *err)
{
    struct pf_openai_stream *stream = stream_of(call);
    const json_t *function = json_object_get(piece, "function");
    const json_t *index = json_object_get(piece, "index");
    const char *id = full(piece, "id"), *name = full(function, "name");
    struct pf_openai_tool *tool = find_tool(call, index, id, name);
    int r = 0;

    if (!tool && stream->tool_count == PF_REPLY_BLOCKS_MAX)
        return pf_model_garbled(call, "there are too many calls of tools", err);
    if (!tool)
        tool = new_tool(stream, index, id);
    if (!tool)
        return pf_fail_nomem(err);
    if (!tool->id && id) {
        tool->id = strdup(id);
        if (!tool->id)
            return pf_fail_nomem(err);
    }
    if (name && tool->block == SIZE_MAX)
        r = begin_tool(call, tool, name, err);
    return r < 0 ? r : add_arguments(call, tool, json_object_get(function, "arguments"), err);
}

static int add_calls(struct pf_model_call *call, const json_t *delta, struct pinfold_error *err)
{
    json_t *piece;
    size_t i;
    int r = 0;

    json_array_foreach(json_object_get(delta, "tool_calls"), i, piece) {
        r = add_call(call, piece, err);
        if (r < 0)
            break;
    }
    return r;
}

/* ---- the stream ---- */

/* OpenAI counts what came from the cache into the prompt. */
static void take_usage(struct pf_openai_stream *stream, const json_t *usage)
{
    unsigned long long prompt = pf_json_count(usage, "prompt_tokens");
    unsigned long long cached =
            pf_json_count(json_object_get(usage, "prompt_tokens_details"), "cached_tokens");

    if (!json_is_object(usage))
        return;
    if (cached > prompt)
        cached = prompt;
    stream->usage = (struct pinfold_model_usage){
        .input = prompt - cached,
        .output = pf_json_count(usage, "completion_tokens"),
        .cache_read = cached,
        .known = true,
    };
}

/* A chunk of the stream, or the whole reply of a server that does not stream. */
static int take_chunk(struct pf_model_call *call, const json_t *chunk, struct pinfold_error *err)
{
    struct pf_openai_stream *stream = stream_of(call);
    const json_t *choice = json_array_get(json_object_get(chunk, "choices"), 0);
    const json_t *delta = json_object_get(choice, "delta");
    const char *finish = full(choice, "finish_reason");
    int r;

    take_usage(stream, json_object_get(chunk, "usage"));
    if (!delta)
        delta = json_object_get(choice, "message");
    r = add_words(call, delta, err);
    if (r == 0)
        r = add_calls(call, delta, err);
    if (r < 0 || !finish)
        return r;
    free(stream->finish);
    stream->finish = strdup(finish);
    return stream->finish ? 0 : pf_fail_nomem(err);
}

static int take_object(struct pf_model_call *call, const char *text, size_t len, bool is_error,
                       struct pinfold_error *err)
{
    bool nomem = false;
    _cleanup_pf_json_ json_t *chunk = load(text, len, &nomem);
    const json_t *error = json_object_get(chunk, "error");
    const char *object = pf_json_text(chunk, "object", NULL);

    if (nomem)
        return pf_fail_nomem(err);
    if (is_error || (error && !json_is_null(error)) || (object && strcmp(object, "error") == 0))
        return error_event(call, chunk, text, err);
    if (!chunk)
        return pf_model_garbled(call, "the stream holds an event that is no object", err);
    return take_chunk(call, chunk, err);
}

static int take_event(void *ctx, const struct pf_sse_event *event, struct pinfold_error *err)
{
    struct pf_model_call *call = ctx;

    if (call->complete || event->len == 0)
        return 0;
    if (strcmp(event->data, "[DONE]") == 0) {
        call->complete = stream_of(call)->finish;
        return 0;
    }
    return take_object(call, event->data, event->len, strcmp(event->type, "error") == 0, err);
}

static int take(struct pf_model_call *call, const void *data, size_t len, struct pinfold_error *err)
{
    struct pf_openai_stream *stream = stream_of(call);
    const char *text = data;

    for (size_t i = 0; i < len && !stream->sniffed; i++)
        if (!strchr(" \t\r\n", text[i])) {
            stream->sniffed = true;
            stream->is_json = text[i] == '{';
        }
    if (!stream->is_json)
        return pf_sse_feed(&stream->sse, data, len, take_event, call, err);
    return pf_buf_append(&stream->whole, data, len) < 0 ? pf_fail_nomem(err) : 0;
}

static int stop_of(struct pf_model_call *call, enum pinfold_stop_reason *ret,
                   struct pinfold_error *err)
{
    static const struct {
        const char *word;
        enum pinfold_stop_reason stop;
    } known[] = {
        { "stop", PINFOLD_STOP_END },          { "tool_calls", PINFOLD_STOP_TOOL_USE },
        { "function_call", PINFOLD_STOP_END }, { "length", PINFOLD_STOP_LENGTH },
        { "max_tokens", PINFOLD_STOP_LENGTH }, { "content_filter", PINFOLD_STOP_REFUSAL },
        { "refusal", PINFOLD_STOP_REFUSAL },
    };
    /* The server gave up: vLLM, OpenRouter, DeepSeek. */
    static const char *const failures[] = { "abort", "error", "insufficient_system_resource" };
    const struct pf_openai_stream *stream = stream_of(call);

    for (size_t i = 0; i < PF_COUNT(failures); i++)
        if (strcmp(failures[i], stream->finish) == 0)
            return pf_model_garbled(call, "the server gave the reply up", err);
    *ret = PINFOLD_STOP_END;
    for (size_t i = 0; i < PF_COUNT(known); i++)
        if (strcmp(known[i].word, stream->finish) == 0)
            *ret = known[i].stop;
    if (stream->refused)
        *ret = PINFOLD_STOP_REFUSAL;
    return 0;
}

/* "[DONE]" may be missing (its sender closes instead); a reason to finish may not. */
static int end(struct pf_model_call *call, struct pinfold_error *err)
{
    struct pf_openai_stream *stream = stream_of(call);
    enum pinfold_stop_reason stop;
    int r = 0;

    if (stream->is_json)
        r = take_object(call, stream->whole.data, stream->whole.len, false, err);
    if (r < 0)
        return r;
    if (!stream->finish)
        return pf_model_garbled(call, "the reply ends before it is whole", err);
    for (size_t i = 0; i < stream->tool_count; i++)
        if (stream->tools[i].block == SIZE_MAX)
            return pf_model_garbled(call, "a tool is called without a name", err);
    r = stop_of(call, &stop, err);
    if (r == 0)
        r = pf_reply_finish(&call->reply, pf_reply_stop(&call->reply, stop), stream->finish, err);
    if (r == 0)
        call->reply.out->usage = stream->usage;
    return r;
}

static void reset(struct pf_model_call *call)
{
    struct pf_openai_stream *stream = stream_of(call);

    pf_sse_done(&stream->sse);
    pf_buf_done(&stream->whole);
    for (size_t i = 0; i < stream->tool_count; i++) {
        free(stream->tools[i].id);
        pf_buf_done(&stream->tools[i].held);
    }
    free(stream->tools);
    free(stream->finish);
    *stream = (struct pf_openai_stream){
        .model = stream->model,
        .request = stream->request,
        .dialect = stream->dialect,
        .sse = PF_SSE_INIT,
        .whole = PF_BUF_INIT(PF_BUF_UNLIMITED),
        .text = SIZE_MAX,
        .reasoning = SIZE_MAX,
    };
}

static int add_headers(struct pf_model_call *call, struct pf_model_headers *headers,
                       struct pinfold_error *err)
{
    pf_model_header(headers, "accept", "text/event-stream");
    return pf_model_bearer(headers, call->client->key) < 0 ? pf_fail_nomem(err) : 0;
}

const struct pf_model_wire pf_openai_wire = {
    .headers = add_headers,
    .take = take,
    .end = end,
    .reset = reset,
    .refused = refused,
    .mend = mend,
    .request_id = "x-request-id",
};
