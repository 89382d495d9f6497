/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replies of ConverseStream: "ConverseStreamOutput" and what it is made of, in the API reference of
 * the Bedrock Runtime.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/model_bedrock.h"
#include "base/cleanup.h"
#include "base/error.h"

static struct pf_bedrock_stream *stream_of(const struct pf_model_call *call)
{
    return call->ctx;
}

/* ---- errors ---- */

/* Names come with a capital from HTTP, and without in a stream. */
static bool is_named(const char *name, const char *wanted)
{
    return strcasecmp(name, wanted) == 0;
}

static int status_of(const char *type)
{
    static const struct {
        const char *type;
        int status;
    } known[] = {
        { "validationException", 400 },         { "accessDeniedException", 403 },
        { "modelTimeoutException", 408 },       { "modelStreamErrorException", 424 },
        { "throttlingException", 429 },         { "internalServerException", 500 },
        { "serviceUnavailableException", 503 },
    };

    for (size_t i = 0; i < PF_COUNT(known); i++)
        if (is_named(type, known[i].type))
            return known[i].status;
    return 0;
}

static void judge(struct pf_model_trouble *trouble)
{
    /* 424 is the model's failure, "retry your request". */
    if (trouble->status == 424 || trouble->status == 0 ||
        is_named(trouble->type, "ThrottlingException"))
        trouble->passing = true;
}

void pf_bedrock_refused(struct pf_model_call *call, const struct pf_http_response *response,
                        struct pf_model_trouble *trouble)
{
    bool nomem;
    const char *text = response->body.data ? response->body.data : "";
    const char *header = pf_http_header(response, "x-amzn-errortype");
    _cleanup_pf_json_ json_t *body = pf_json_object_load(text, response->body.len, &nomem);
    const char *message = pf_json_text(body, "message", NULL);

    (void)call;
    if (!message)
        message = pf_json_text(body, "Message", NULL);
    pf_model_trouble_set(trouble, trouble->status,
                         header ? header : pf_json_text(body, "__type", NULL),
                         message ? message : text);
    trouble->type[strcspn(trouble->type, ":")] = '\0';
    judge(trouble);
}

static void copy_text(struct pf_event_text text, char *to, size_t size)
{
    size_t len = text.len < size ? text.len : size - 1;

    if (len > 0)
        memcpy(to, text.data, len);
    to[len] = '\0';
}

static int exception(struct pf_model_call *call, const struct pf_event *event,
                     const json_t *payload, struct pinfold_error *err)
{
    struct pf_model_trouble trouble = PF_MODEL_TROUBLE_INIT;
    struct pf_event_text type = pf_event_header(event, ":exception-type");
    const char *message = pf_json_text(payload, "message", NULL);
    const char *original = pf_json_text(payload, "originalMessage", NULL);
    char name[80], text[512];
    int r;

    copy_text(pf_event_header(event, ":error-message"), text, sizeof(text));
    copy_text(type.data ? type : pf_event_header(event, ":error-code"), name, sizeof(name));
    pf_model_trouble_set(&trouble, status_of(name), name,
                         original  ? original
                         : message ? message
                                   : text);
    judge(&trouble);
    r = pf_model_trouble_fail(call, &trouble, NULL, err);
    pf_buf_done(&trouble.message);
    return r;
}

/* ---- blocks ---- */

/* What must come back with the conversation. NULL: out of memory. */
static char *opaque_of(const struct pf_bedrock_stream *stream)
{
    const struct pf_buf *redacted = &stream->redacted, *signature = &stream->signature;
    json_t *own = redacted->len > 0 ? json_pack("{s:o}", "redactedContent",
                                                json_stringn(redacted->data, redacted->len))
                                    : json_pack("{s:{s:o}}", "reasoningText", "signature",
                                                json_stringn(signature->data, signature->len));
    _cleanup_pf_json_ json_t *opaque = json_pack("{s:o}", "bedrock", own);

    return opaque ? json_dumps(opaque, JSON_COMPACT) : NULL;
}

static int close_block(struct pf_model_call *call, struct pinfold_error *err)
{
    struct pf_bedrock_stream *stream = stream_of(call);
    int r = 0;

    if (!stream->open)
        return 0;
    stream->open = false;
    if (stream->redacted.len > 0 && stream->reply_block == SIZE_MAX)
        r = pf_reply_open(&call->reply, PINFOLD_BLOCK_REASONING, NULL, NULL, &stream->reply_block,
                          err);
    if (r == 0 && (stream->redacted.len > 0 || stream->signature.len > 0) &&
        stream->reply_block != SIZE_MAX)
        r = pf_reply_set_opaque(&call->reply, stream->reply_block, opaque_of(stream), err);
    if (r == 0 && stream->reply_block != SIZE_MAX)
        r = pf_reply_close(&call->reply, stream->reply_block, err);
    return r;
}

/* The block that an event is of; it begins with its first event, since text has no start. */
static int open_block(struct pf_model_call *call, const json_t *payload, struct pinfold_error *err)
{
    struct pf_bedrock_stream *stream = stream_of(call);
    json_int_t index = json_integer_value(json_object_get(payload, "contentBlockIndex"));
    int r;

    if (stream->open && stream->index == index)
        return 0;
    r = close_block(call, err);
    stream->open = true;
    stream->index = index;
    stream->reply_block = SIZE_MAX;
    stream->kind = 0;
    stream->signature.len = stream->redacted.len = 0;
    return r;
}

static int block_start(struct pf_model_call *call, const json_t *payload, struct pinfold_error *err)
{
    struct pf_bedrock_stream *stream = stream_of(call);
    const json_t *tool = json_object_get(json_object_get(payload, "start"), "toolUse");
    const char *name = pf_json_text(tool, "name", NULL);
    int r;

    if (stream->open)
        return pf_model_garbled(call, "a block begins inside another", err);
    r = open_block(call, payload, err);
    if (r < 0 || !tool)
        return r; /* of a kind that is not known yet */
    if (!name || !*name)
        return pf_model_garbled(call, "a tool is called without a name", err);
    stream->kind = PINFOLD_BLOCK_TOOL_USE;
    return pf_reply_open(&call->reply, PINFOLD_BLOCK_TOOL_USE,
                         pf_json_text(tool, "toolUseId", NULL), name, &stream->reply_block, err);
}

static int add_text(struct pf_model_call *call, enum pinfold_block_kind kind, const json_t *from,
                    const char *key, struct pinfold_error *err)
{
    struct pf_bedrock_stream *stream = stream_of(call);
    size_t len;
    const char *text = pf_json_text(from, key, &len);
    int r = 0;

    if (!text || len == 0)
        return 0;
    if (stream->reply_block == SIZE_MAX && kind != PINFOLD_BLOCK_TOOL_USE) {
        stream->kind = kind;
        r = pf_reply_open(&call->reply, kind, NULL, NULL, &stream->reply_block, err);
    }
    if (r == 0 && stream->kind != kind)
        return pf_model_garbled(call, "a block is of two kinds", err);
    return r < 0 ? r : pf_reply_add(&call->reply, stream->reply_block, text, len, err);
}

static int keep(struct pf_buf *to, const json_t *from, const char *key, struct pinfold_error *err)
{
    size_t len;
    const char *text = pf_json_text(from, key, &len);

    return text && pf_buf_append(to, text, len) < 0 ? pf_fail_nomem(err) : 0;
}

static int block_delta(struct pf_model_call *call, const json_t *payload, struct pinfold_error *err)
{
    struct pf_bedrock_stream *stream = stream_of(call);
    const json_t *delta = json_object_get(payload, "delta");
    const json_t *tool = json_object_get(delta, "toolUse");
    const json_t *thought = json_object_get(delta, "reasoningContent");
    int r = open_block(call, payload, err);

    if (r == 0)
        r = add_text(call, PINFOLD_BLOCK_TEXT, delta, "text", err);
    if (r == 0)
        r = add_text(call, PINFOLD_BLOCK_TOOL_USE, tool, "input", err);
    if (r == 0)
        r = add_text(call, PINFOLD_BLOCK_REASONING, thought, "text", err);
    if (r == 0)
        r = keep(&stream->signature, thought, "signature", err);
    return r < 0 ? r : keep(&stream->redacted, thought, "redactedContent", err);
}

/* ---- the stream ---- */

static void take_usage(struct pf_bedrock_stream *stream, const json_t *usage)
{
    if (!json_is_object(usage))
        return;
    stream->usage = (struct pinfold_model_usage){
        .input = pf_json_count(usage, "inputTokens"),
        .output = pf_json_count(usage, "outputTokens"),
        .cache_read = pf_json_count(usage, "cacheReadInputTokens"),
        .cache_write = pf_json_count(usage, "cacheWriteInputTokens"),
        .known = true,
    };
}

static bool event_is(struct pf_event_text type, const char *name)
{
    return type.len == strlen(name) && memcmp(type.data, name, type.len) == 0;
}

static int take_stop(struct pf_model_call *call, const json_t *payload, struct pinfold_error *err)
{
    struct pf_bedrock_stream *stream = stream_of(call);
    const char *stop = pf_json_text(payload, "stopReason", NULL);

    if (!stop || stream->stop)
        return pf_model_garbled(call, "it stops twice, or without a reason", err);
    stream->stop = strdup(stop);
    return stream->stop ? close_block(call, err) : pf_fail_nomem(err);
}

static int take_event(struct pf_model_call *call, const struct pf_event *event,
                      struct pinfold_error *err)
{
    struct pf_bedrock_stream *stream = stream_of(call);
    struct pf_event_text kind = pf_event_header(event, ":message-type");
    struct pf_event_text type = pf_event_header(event, ":event-type");
    bool nomem = false;
    _cleanup_pf_json_ json_t *payload =
            pf_json_object_load((const char *)event->payload, event->payload_len, &nomem);

    if (nomem)
        return pf_fail_nomem(err);
    if (kind.data && !event_is(kind, "event"))
        return exception(call, event, payload, err);
    if (!payload || !type.data)
        return pf_model_garbled(call, "the stream holds an event that is no object with a type",
                                err);
    if (event_is(type, "metadata")) {
        take_usage(stream, json_object_get(payload, "usage"));
        call->complete = stream->stop;
        return 0;
    }
    if (event_is(type, "messageStop"))
        return take_stop(call, payload, err);
    if (stream->stop)
        return 0;
    if (event_is(type, "contentBlockDelta"))
        return block_delta(call, payload, err);
    if (event_is(type, "contentBlockStart"))
        return block_start(call, payload, err);
    if (event_is(type, "contentBlockStop"))
        return close_block(call, err);
    return 0; /* messageStart, and what is not known yet */
}

int pf_bedrock_take(struct pf_model_call *call, const void *data, size_t len,
                    struct pinfold_error *err)
{
    struct pf_bedrock_stream *stream = stream_of(call);
    struct pf_event event;
    int r = pf_event_stream_feed(&stream->events, data, len, err);

    while (r == 0 && (r = pf_event_stream_next(&stream->events, &event, err)) > 0)
        r = take_event(call, &event, err);
    if (r == -PINFOLD_EBACKEND && err->code == PINFOLD_EBACKEND && !err->http_status)
        err->retryable = 1; /* bytes that are no event */
    return r;
}

static int stop_of(struct pf_model_call *call, enum pinfold_stop_reason *ret,
                   struct pinfold_error *err)
{
    static const struct {
        const char *word;
        enum pinfold_stop_reason stop;
    } known[] = {
        { "end_turn", PINFOLD_STOP_END },
        { "tool_use", PINFOLD_STOP_TOOL_USE },
        { "max_tokens", PINFOLD_STOP_LENGTH },
        { "model_context_window_exceeded", PINFOLD_STOP_LENGTH },
        { "stop_sequence", PINFOLD_STOP_SEQUENCE },
        { "guardrail_intervened", PINFOLD_STOP_REFUSAL },
        { "content_filtered", PINFOLD_STOP_REFUSAL },
    };
    const char *stop = stream_of(call)->stop;

    if (strcmp(stop, "malformed_model_output") == 0 || strcmp(stop, "malformed_tool_use") == 0)
        return pf_model_garbled(call, "the model wrote what the service cannot read", err);
    *ret = PINFOLD_STOP_END;
    for (size_t i = 0; i < PF_COUNT(known); i++)
        if (strcmp(known[i].word, stop) == 0)
            *ret = known[i].stop;
    return 0;
}

/* The counts, which come last, may be missing; the reason to stop may not. */
int pf_bedrock_end(struct pf_model_call *call, struct pinfold_error *err)
{
    struct pf_bedrock_stream *stream = stream_of(call);
    enum pinfold_stop_reason stop;
    int r;

    if (!stream->stop || (!call->complete && pf_event_stream_end(&stream->events, NULL) < 0))
        return pf_model_garbled(call, "the reply ends before it is whole", err);
    r = stop_of(call, &stop, err);
    if (r == 0)
        r = pf_reply_finish(&call->reply, pf_reply_stop(&call->reply, stop), stream->stop, err);
    if (r == 0)
        call->reply.out->usage = stream->usage;
    return r;
}

void pf_bedrock_reset(struct pf_model_call *call)
{
    struct pf_bedrock_stream *stream = stream_of(call);

    pf_event_stream_done(&stream->events);
    pf_buf_done(&stream->signature);
    pf_buf_done(&stream->redacted);
    pf_aws_credentials_done(&stream->credentials);
    free(stream->stop);
    *stream = (struct pf_bedrock_stream){
        .model = stream->model,
        .renewed = stream->renewed,
        .events = PF_EVENT_STREAM_INIT,
        .signature = PF_BUF_INIT(PF_BUF_UNLIMITED),
        .redacted = PF_BUF_INIT(PF_BUF_UNLIMITED),
    };
}
