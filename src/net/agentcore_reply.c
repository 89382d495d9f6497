/* SPDX-License-Identifier: Apache-2.0 */
#include "net/agentcore_reply.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/error.h"

#define PAYLOADS_MAX ((size_t)512 * 1024 * 1024) /* of one stream together */
#define TEXT_MAX ((size_t)512 * 1024 * 1024)

/* ---- errors ---- */

/* "namespace#Name:http://…, more" is Name. */
static void set_code(struct pf_agentcore_trouble *trouble, const char *text, size_t len)
{
    size_t start = 0;

    for (size_t i = 0; i < len; i++) {
        if (text[i] == ',' || text[i] == ':' || text[i] == '\0') {
            len = i;
            break;
        }
        if (text[i] == '#')
            start = i + 1;
    }
    len -= start;
    if (len >= sizeof(trouble->code)) /* none, and half of what was quoted cannot be hidden */
        len = 0;
    memcpy(trouble->code, text + start, len);
    trouble->code[len] = '\0';
}

static void set_message(struct pf_agentcore_trouble *trouble, const char *text, size_t len)
{
    if (len >= trouble->message.limit)
        len = trouble->message.limit - 1;
    trouble->message.len = 0;
    (void)pf_buf_append(&trouble->message, text, len); /* without memory there is none */
}

static const json_t *string_of(const json_t *object, const char *name, const char *other)
{
    const json_t *value = json_object_get(object, name);

    if (!json_is_string(value))
        value = json_object_get(object, other);
    return json_is_string(value) ? value : NULL;
}

/* What an error's body says. Returns false when it is no object. */
static bool read_body(struct pf_agentcore_trouble *trouble, const char *data, size_t len)
{
    PF_CLEANUP(json_decrefp)
    json_t *body = len > 0 ? json_loadb(data, len, JSON_ALLOW_NUL, NULL) : NULL;
    const json_t *code = string_of(body, "code", "__type");
    const json_t *message = string_of(body, "message", "Message");

    if (!json_is_object(body))
        return false;
    if (code && trouble->code[0] == '\0')
        set_code(trouble, json_string_value(code), json_string_length(code));
    if (message)
        set_message(trouble, json_string_value(message), json_string_length(message));
    return true;
}

void pf_agentcore_trouble_read(const struct pf_http_response *response,
                               struct pf_agentcore_trouble *ret)
{
    const char *type = pf_http_header(response, "x-amzn-errortype");

    if (type)
        set_code(ret, type, strlen(type));
    if (!read_body(ret, response->body.data, response->body.len) && response->body.len > 0)
        set_message(ret, response->body.data, response->body.len);
}

/* Inside streams names begin with a small letter. */
bool pf_agentcore_trouble_is(const struct pf_agentcore_trouble *trouble, const char *code)
{
    return strcasecmp(trouble->code, code) == 0;
}

bool pf_agentcore_trouble_gone(const struct pf_agentcore_trouble *trouble)
{
    const char *message = trouble->message.data ? trouble->message.data : "";

    if (pf_agentcore_trouble_is(trouble, "ResourceNotFoundException"))
        return true;
    return pf_agentcore_trouble_is(trouble, "ValidationException") &&
           strcasestr(message, "session") && strcasestr(message, "not active");
}

/* ---- results ---- */

static int append_text(struct pf_agentcore_result *result, struct pf_buf *to, const json_t *text)
{
    if (!json_is_string(text))
        return 0;
    result->has_output = true;
    to->limit = TEXT_MAX;
    return pf_buf_append(to, json_string_value(text), json_string_length(text));
}

static int replace_text(char **slot, const json_t *text)
{
    char *copy;

    if (!json_is_string(text))
        return 0;
    copy = strdup(json_string_value(text));
    if (!copy)
        return -PINFOLD_ENOMEM;
    free(*slot);
    *slot = copy;
    return 0;
}

static int merge_structured(struct pf_agentcore_result *result, const json_t *structured)
{
    const json_t *exit_code = json_object_get(structured, "exitCode");
    const json_t *seconds = json_object_get(structured, "executionTime");
    int r = append_text(result, &result->out, json_object_get(structured, "stdout"));

    if (r == 0)
        r = append_text(result, &result->errs, json_object_get(structured, "stderr"));
    if (r == 0)
        r = replace_text(&result->task_id, json_object_get(structured, "taskId"));
    if (r == 0)
        r = replace_text(&result->task_status, json_object_get(structured, "taskStatus"));
    if (json_is_number(exit_code)) {
        result->has_exit_code = true;
        result->exit_code = (int)json_number_value(exit_code);
    }
    if (json_is_number(seconds))
        result->execution_time = json_number_value(seconds);
    return r;
}

static int merge(struct pf_agentcore_result *result, const json_t *event, struct pinfold_error *err)
{
    json_t *content = json_object_get(event, "content");
    int r = 0;

    result->events++;
    result->is_error = result->is_error || json_is_true(json_object_get(event, "isError"));
    if (!result->content)
        result->content = json_array();
    if (!result->content ||
        (json_is_array(content) && json_array_extend(result->content, content) < 0))
        return pf_fail_nomem(err);
    r = merge_structured(result, json_object_get(event, "structuredContent"));
    if (r == -PINFOLD_ENOMEM)
        return pf_fail_nomem(err);
    return r < 0 ? pf_fail(err, PINFOLD_EBACKEND, "the service sent too much output") : 0;
}

/* ---- streams ---- */

static bool text_is(struct pf_event_text text, const char *what)
{
    return text.data && text.len == strlen(what) && memcmp(text.data, what, text.len) == 0;
}

static int take_result(struct pf_agentcore_stream *stream, const struct pf_event *event,
                       struct pinfold_error *err)
{
    PF_CLEANUP(json_decrefp) json_t *payload = NULL;
    json_error_t wrong = { 0 };

    stream->bytes += event->payload_len;
    if (stream->bytes > PAYLOADS_MAX)
        return pf_fail(err, PINFOLD_EBACKEND, "the service sent more than %zu bytes", PAYLOADS_MAX);
    if (event->payload_len == 0)
        payload = json_object();
    else
        payload = json_loadb((const char *)event->payload, event->payload_len, JSON_ALLOW_NUL,
                             &wrong);
    if (!payload &&
        (event->payload_len == 0 || json_error_code(&wrong) == json_error_out_of_memory))
        return pf_fail_nomem(err);
    if (!json_is_object(payload))
        return pf_fail(err, PINFOLD_EBACKEND, "the service sent a result that is no JSON object");
    return merge(&stream->result, payload, err);
}

static void take_exception(struct pf_agentcore_stream *stream, const struct pf_event *event)
{
    struct pf_event_text type = pf_event_header(event, ":exception-type");

    if (type.data)
        set_code(&stream->trouble, type.data, type.len);
    if (!read_body(&stream->trouble, (const char *)event->payload, event->payload_len))
        set_message(&stream->trouble, (const char *)event->payload, event->payload_len);
}

static void take_error(struct pf_agentcore_stream *stream, const struct pf_event *event)
{
    struct pf_event_text code = pf_event_header(event, ":error-code");
    struct pf_event_text message = pf_event_header(event, ":error-message");

    if (code.data)
        set_code(&stream->trouble, code.data, code.len);
    if (message.data)
        set_message(&stream->trouble, message.data, message.len);
}

static int take_event(struct pf_agentcore_stream *stream, const struct pf_event *event,
                      struct pinfold_error *err)
{
    struct pf_event_text kind = pf_event_header(event, ":message-type");

    stream->messages++;
    if (stream->failed)
        return 0;
    if (text_is(kind, "event"))
        return text_is(pf_event_header(event, ":event-type"), "result")
                       ? take_result(stream, event, err)
                       : 0;
    if (text_is(kind, "exception"))
        take_exception(stream, event);
    else if (text_is(kind, "error"))
        take_error(stream, event);
    else
        return pf_fail(err, PINFOLD_EBACKEND, "the service sent a message of no known type");
    stream->failed = true;
    stream->failed_first = stream->messages == 1;
    return 0;
}

int pf_agentcore_stream_take(void *ctx, const void *data, size_t len, struct pinfold_error *err)
{
    struct pf_agentcore_stream *stream = ctx;
    struct pf_event event;
    int r = pf_event_stream_feed(&stream->events, data, len, err);

    while (r == 0) {
        r = pf_event_stream_next(&stream->events, &event, err);
        if (r <= 0)
            return r;
        r = take_event(stream, &event, err);
    }
    return r;
}

int pf_agentcore_stream_end(const struct pf_agentcore_stream *stream, struct pinfold_error *err)
{
    return pf_event_stream_end(&stream->events, err);
}

void pf_agentcore_stream_done(struct pf_agentcore_stream *stream)
{
    pf_event_stream_done(&stream->events);
    pf_agentcore_result_done(&stream->result);
    pf_buf_done(&stream->trouble.message);
}

void pf_agentcore_result_done(struct pf_agentcore_result *result)
{
    pf_buf_done(&result->out);
    pf_buf_done(&result->errs);
    json_decref(result->content);
    free(result->task_id);
    free(result->task_status);
    *result = (struct pf_agentcore_result){ 0 };
}

int pf_agentcore_result_text(const struct pf_agentcore_result *result, struct pf_buf *to)
{
    size_t i;
    const json_t *block;
    int r = 0;

    json_array_foreach(result->content, i, block) {
        const json_t *text = json_object_get(block, "text");
        if (!json_is_string(text))
            continue;
        if (to->len > 0 && to->data[to->len - 1] != '\n')
            r = pf_buf_append(to, "\n", 1);
        if (r == 0)
            r = pf_buf_append(to, json_string_value(text), json_string_length(text));
        if (r < 0)
            return r;
    }
    return 0;
}
