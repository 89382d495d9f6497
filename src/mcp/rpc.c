/* SPDX-License-Identifier: Apache-2.0 */
#include "mcp/rpc.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mcp/json.h"

/* The longest id: it is kept while a request is under way, and sent back. */
enum { ID_MAX = 1024 };

void *pf_mcp_fail(struct pf_mcp_fault *fault, int code, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(fault->message, sizeof(fault->message), format, args);
    va_end(args);
    fault->code = code;
    return NULL;
}

json_t *pf_mcp_parse(const char *text, size_t len, struct pf_mcp_fault *fault)
{
    json_error_t wrong = { .line = 0 };
    json_t *value = json_loadb(text, len, JSON_DECODE_ANY | JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES,
                               &wrong);

    if (value)
        return value;
    /* For want of memory jansson often gives no reason at all. */
    if (wrong.text[0] == '\0' || json_error_code(&wrong) == json_error_out_of_memory)
        return pf_mcp_fail(fault, PF_MCP_INTERNAL_ERROR, "out of memory");
    return pf_mcp_fail(fault, PF_MCP_PARSE_ERROR, "Parse error: %s, at byte %d", wrong.text,
                       wrong.position);
}

static bool valid_id(const json_t *id)
{
    return json_is_integer(id) || (json_is_string(id) && json_string_length(id) <= ID_MAX);
}

/* A name with a NUL byte in it is not the name that it begins with. */
static const char *method_of(const json_t *value)
{
    const json_t *method = json_object_get(value, "method");

    if (!json_is_string(method) || strlen(json_string_value(method)) != json_string_length(method))
        return NULL;
    return json_string_value(method);
}

/* Have U+FFFD in place of each surrogate that is written as an escape, those of pairs too. */
static void replace_surrogates(char *text, size_t len)
{
    for (size_t i = 0; i + 5 < len; i++) {
        if (text[i] != '\\')
            continue;
        i++; /* a backslash that is escaped begins nothing */
        if (text[i] == 'u' && (text[i + 1] == 'd' || text[i + 1] == 'D') &&
            memchr("89abcdefABCDEF", text[i + 2], 14))
            memcpy(text + i + 1, "fffd", 4);
    }
}

json_t *pf_mcp_id_of_broken(const char *text, size_t len)
{
    char *copy = len > 0 ? malloc(len) : NULL; /* text may be NULL where there is none */
    _cleanup_json_ json_t *value = NULL;
    struct pf_mcp_fault unused = { 0 };
    json_t *id;

    if (!copy)
        return NULL;
    memcpy(copy, text, len);
    replace_surrogates(copy, len);
    value = pf_mcp_parse(copy, len, &unused);
    free(copy);
    id = json_object_get(value, "id");
    if (!valid_id(id) || !method_of(value) ||
        (json_is_string(id) && strstr(json_string_value(id), "\uFFFD")))
        return NULL;
    return json_incref(id);
}

static void invalid(struct pf_mcp_message *message, struct pf_mcp_fault *fault, const char *why)
{
    message->kind = PF_MCP_INVALID;
    pf_mcp_fail(fault, PF_MCP_INVALID_REQUEST, "Invalid Request: %s", why);
}

/* What came back for a request of ours. */
static void classify_response(json_t *value, struct pf_mcp_message *ret, struct pf_mcp_fault *fault)
{
    json_t *error = json_object_get(value, "error");

    ret->result = json_object_get(value, "result");
    if (!ret->result == !error)
        invalid(ret, fault, "it has neither a method, nor one of result and error");
    else if (!ret->id && ret->result)
        invalid(ret, fault, "a result needs the id of its request");
    else
        ret->kind = PF_MCP_RESPONSE;
}

void pf_mcp_classify(json_t *value, struct pf_mcp_message *ret, struct pf_mcp_fault *fault)
{
    json_t *id = json_object_get(value, "id");
    const char *version = json_string_value(json_object_get(value, "jsonrpc"));

    *ret = (struct pf_mcp_message){ .id = valid_id(id) ? id : NULL };
    if (!json_is_object(value)) {
        invalid(ret, fault, "a message is an object");
    } else if (!version || strcmp(version, "2.0") != 0) {
        invalid(ret, fault, "jsonrpc has to be \"2.0\"");
    } else if (id && !ret->id && !(json_is_null(id) && json_object_get(value, "error"))) {
        invalid(ret, fault, "an id is an integer or a string of at most 1024 bytes");
    } else if (!json_object_get(value, "method")) {
        classify_response(value, ret, fault);
    } else {
        ret->method = method_of(value);
        ret->params = json_object_get(value, "params");
        if (!ret->method)
            invalid(ret, fault, "method has to be a string");
        else if (ret->params && !json_is_object(ret->params))
            invalid(ret, fault, "params has to be an object");
        else
            ret->kind = id ? PF_MCP_REQUEST : PF_MCP_NOTIFICATION;
    }
}

static json_t *envelope(json_t *id)
{
    json_t *object = json_object();
    int bad = pf_mcp_put(object, "jsonrpc", json_string("2.0"));

    bad |= pf_mcp_put(object, "id", id ? json_incref(id) : json_null());
    return pf_mcp_whole(object, bad);
}

json_t *pf_mcp_reply(json_t *id, json_t *result)
{
    json_t *object = envelope(id);

    return pf_mcp_whole(object, pf_mcp_put(object, "result", result));
}

json_t *pf_mcp_error(json_t *id, const struct pf_mcp_fault *fault)
{
    json_t *object = envelope(id), *error = json_object();
    int bad = pf_mcp_put(error, "code", json_integer(fault->code));

    bad |= pf_mcp_put(error, "message", pf_mcp_text(fault->message, strlen(fault->message)));
    bad |= pf_mcp_put(object, "error", error);
    return pf_mcp_whole(object, bad);
}
