/* SPDX-License-Identifier: Apache-2.0 */
/* What a tool sees of its call, and what it gives back. */
#include "agent/tool.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/number.h"
#include "base/utf8.h"

struct pinfold_agent *pinfold_tool_call_agent(const struct pinfold_tool_call *call)
{
    return call->agent;
}

const char *pinfold_tool_call_id(const struct pinfold_tool_call *call)
{
    return call->id;
}

struct pinfold_cancel *pinfold_tool_call_cancel_token(const struct pinfold_tool_call *call)
{
    return call->cancel;
}

const char *pinfold_tool_call_input(const struct pinfold_tool_call *call, size_t *ret_len)
{
    if (ret_len)
        *ret_len = call->len;
    return call->text;
}

const char *pinfold_tool_call_string(const struct pinfold_tool_call *call, const char *name,
                                     size_t *ret_len)
{
    const json_t *value = json_object_get(call->input, name);

    if (ret_len)
        *ret_len = json_string_length(value);
    return json_string_value(value);
}

int pf_tool_call_text(const struct pinfold_tool_call *call, const char *name, const char **ret,
                      struct pinfold_error *err)
{
    size_t len;

    *ret = pinfold_tool_call_string(call, name, &len);
    return *ret && strlen(*ret) != len
                   ? pf_fail(err, PINFOLD_EVALUE, "%s holds a NUL byte: nothing was done", name)
                   : 0;
}

int64_t pinfold_tool_call_integer(const struct pinfold_tool_call *call, const char *name,
                                  int64_t missing)
{
    const json_t *value = json_object_get(call->input, name);
    double number = json_real_value(value);

    if (json_is_integer(value))
        return json_integer_value(value);
    return json_is_real(value) && pf_is_whole(number) ? (int64_t)number : missing;
}

double pinfold_tool_call_number(const struct pinfold_tool_call *call, const char *name,
                                double missing)
{
    const json_t *value = json_object_get(call->input, name);

    return json_is_number(value) ? json_number_value(value) : missing;
}

bool pinfold_tool_call_bool(const struct pinfold_tool_call *call, const char *name, bool missing)
{
    const json_t *value = json_object_get(call->input, name);

    return json_is_boolean(value) ? json_is_true(value) : missing;
}

/* ---- results ---- */

bool pf_json_nomem(const json_error_t *error)
{
    return !error->text[0] || json_error_code(error) == json_error_out_of_memory;
}

static void content_done(struct pinfold_tool_content *content)
{
    pinfold_bytes_done(&content->data);
    free(content->format);
    free(content->name);
}

/* Append an item and own what it holds, on failure too. */
static int add_item(struct pinfold_tool_result *result, struct pinfold_tool_content *content,
                    struct pinfold_error *err)
{
    struct pinfold_tool_content *items = result->items;
    size_t capacity = result->capacity ? 2 * result->capacity : 2;

    if (result->count == result->capacity) {
        items = reallocarray(result->items, capacity, sizeof(*items));
        if (!items) {
            content_done(content);
            return pf_fail_nomem(err);
        }
        result->items = items;
        result->capacity = capacity;
    }
    items[result->count++] = *content;
    return 0;
}

static bool append(void *ctx, const char *text, size_t len)
{
    return pf_buf_append(ctx, text, len) == 0;
}

int pf_append_utf8(struct pf_buf *to, const char *text, size_t len)
{
    struct pf_utf8 state = { 0 };

    return pf_utf8_decode(&state, text, len, append, to) && pf_utf8_finish(&state, append, to)
                   ? 0
                   : -PINFOLD_ENOMEM;
}

int pinfold_tool_result_add_text(struct pinfold_tool_result *result, const char *text, size_t len,
                                 struct pinfold_error *err)
{
    struct pinfold_tool_content content = { .kind = PINFOLD_TOOL_TEXT };
    struct pf_buf copy = PF_BUF_INIT(PF_BUF_UNLIMITED);
    int r = pf_append_utf8(&copy, text, len);

    if (r == 0)
        r = pf_buf_take(&copy, &content.data);
    pf_buf_done(&copy);
    return r < 0 ? pf_fail_nomem(err) : add_item(result, &content, err);
}

int pf_tool_result_text(struct pinfold_tool_result *result, const struct pf_buf *text,
                        struct pinfold_error *err)
{
    return pinfold_tool_result_add_text(result, text->data ? text->data : "", text->len, err);
}

static int check_content(const struct pinfold_tool_content *content, struct pinfold_error *err)
{
    json_error_t wrong;
    json_t *json;

    if (content->kind == PINFOLD_TOOL_IMAGE || content->kind == PINFOLD_TOOL_DOCUMENT)
        return content->format
                       ? 0
                       : pf_fail(err, PINFOLD_EVALUE, "tool result: a block without a format");
    json = json_loadb(content->data.data ? content->data.data : "", content->data.len,
                      JSON_DECODE_ANY | JSON_ALLOW_NUL, &wrong);
    if (!json && pf_json_nomem(&wrong))
        return pf_fail_nomem(err);
    if (!json)
        return pf_fail(err, PINFOLD_EVALUE, "tool result: a JSON block is not JSON: %s",
                       wrong.text);
    json_decref(json);
    return 0;
}

int pinfold_tool_result_add(struct pinfold_tool_result *result,
                            const struct pinfold_tool_content *content, struct pinfold_error *err)
{
    struct pinfold_tool_content copy = { .kind = content->kind };
    int r;

    if (content->kind == PINFOLD_TOOL_TEXT)
        return pinfold_tool_result_add_text(result, content->data.data ? content->data.data : "",
                                            content->data.len, err);
    r = check_content(content, err);
    if (r < 0)
        return r;
    copy.data.data = malloc(content->data.len + 1);
    if (content->format)
        copy.format = strdup(content->format);
    if (content->name)
        copy.name = strdup(content->name);
    if (!copy.data.data || (content->format && !copy.format) || (content->name && !copy.name)) {
        content_done(&copy);
        return pf_fail_nomem(err);
    }
    if (content->data.len > 0)
        memcpy(copy.data.data, content->data.data, content->data.len);
    copy.data.data[content->data.len] = '\0';
    copy.data.len = content->data.len;
    return add_item(result, &copy, err);
}

void pinfold_tool_result_done(struct pinfold_tool_result *result)
{
    for (size_t i = 0; i < result->count; i++)
        content_done(&result->items[i]);
    free(result->items);
    *result = (struct pinfold_tool_result){ 0 };
}

int pf_tool_result_fail(struct pinfold_tool_result *result, const char *format, ...)
{
    _cleanup_free_ char *text = NULL;
    va_list args;
    int len;

    pinfold_tool_result_done(result);
    result->is_error = true;
    va_start(args, format);
    len = vasprintf(&text, format, args);
    va_end(args);
    if (len < 0) {
        text = NULL;
        return -PINFOLD_ENOMEM;
    }
    return pinfold_tool_result_add_text(result, text, (size_t)len, NULL);
}
