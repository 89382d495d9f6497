/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests of OpenAI's chat completions ("Create chat completion", platform.openai.com/docs), kept
 * to what llama.cpp, Ollama and vLLM know as well.
 */
#include "agent/model_openai.h"

#include <stdlib.h>
#include <string.h>

#include "agent/model.h"
#include "agent/model_turns.h"
#include "base/cleanup.h"
#include "base/error.h"

/* ---- messages ---- */

/* All texts of a kind in a turn, with an empty line between two. NULL: out of memory. */
static json_t *texts(const struct pf_turn *turn, enum pinfold_block_kind kind)
{
    PF_CLEANUP(pf_buf_done) struct pf_buf all = PF_BUF_INIT(PF_BUF_UNLIMITED);

    for (size_t i = 0; i < turn->count; i++) {
        const struct pinfold_block *block = turn->blocks[i];
        if (block->kind != kind)
            continue;
        if ((all.len > 0 && pf_buf_append(&all, "\n\n", 2) < 0) ||
            pf_buf_append(&all, block->text, block->text_len) < 0)
            return NULL;
    }
    return json_stringn_nocheck(all.data ? all.data : "", all.len);
}

static size_t count_kind(const struct pf_turn *turn, enum pinfold_block_kind kind)
{
    size_t count = 0;

    for (size_t i = 0; i < turn->count; i++)
        count += turn->blocks[i]->kind == kind;
    return count;
}

/* Arguments are JSON in a string; servers read it, so that it must be an object. */
static json_t *tool_call(const struct pinfold_block *block)
{
    _cleanup_pf_json_ json_t *input = pf_turns_input(block);
    _cleanup_free_ char *text = input ? json_dumps(input, JSON_COMPACT) : NULL;

    return text ? json_pack("{s:s,s:s,s:{s:s,s:s}}", "id", block->id, "type", "function",
                            "function", "name", block->name, "arguments", text)
                : NULL;
}

static int add_assistant(json_t *messages, const struct pf_turn *turn, bool send_reasoning)
{
    bool says = count_kind(turn, PINFOLD_BLOCK_TEXT) > 0;
    bool calls = count_kind(turn, PINFOLD_BLOCK_TOOL_USE) > 0;
    bool thinks = send_reasoning && count_kind(turn, PINFOLD_BLOCK_REASONING) > 0;
    _cleanup_pf_json_ json_t *message = NULL;
    json_t *list;
    int r = 0;

    if (!says && !calls)
        return 0; /* nothing but thoughts */
    message = json_pack("{s:s,s:o}", "role", "assistant", "content",
                        says ? texts(turn, PINFOLD_BLOCK_TEXT) : json_null());
    if (!message)
        return -PINFOLD_ENOMEM;
    if (thinks)
        r = pf_json_put(message, "reasoning_content", texts(turn, PINFOLD_BLOCK_REASONING));
    if (calls && r == 0) {
        list = json_array();
        r = pf_json_put(message, "tool_calls", list);
        for (size_t i = 0; i < turn->count && r == 0; i++)
            if (turn->blocks[i]->kind == PINFOLD_BLOCK_TOOL_USE)
                r = pf_json_push(list, tool_call(turn->blocks[i]));
    }
    return r < 0 ? r : pf_json_push(messages, TAKE(message));
}

/* The results come first, each a message, then what the user says. */
static int add_user(json_t *messages, const struct pf_turn *turn)
{
    int r = 0;

    for (size_t i = 0; i < turn->count && r == 0; i++) {
        const struct pinfold_block *block = turn->blocks[i];
        if (block->kind == PINFOLD_BLOCK_TOOL_RESULT)
            r = pf_json_push(messages, json_pack("{s:s,s:s,s:o}", "role", "tool", "tool_call_id",
                                                 block->id, "content", pf_turns_text(block)));
    }
    if (r < 0 || count_kind(turn, PINFOLD_BLOCK_TEXT) == 0)
        return r;
    return pf_json_push(messages, json_pack("{s:s,s:o}", "role", "user", "content",
                                            texts(turn, PINFOLD_BLOCK_TEXT)));
}

static int add_messages(json_t *messages, const struct pf_openai *model,
                        const struct pinfold_model_request *request)
{
    struct pf_turns turns;
    int r = pf_turns_make(request, &turns);

    if (r == 0 && request->system && request->system[0])
        r = pf_json_push(messages,
                         json_pack("{s:s,s:s}", "role", "system", "content", request->system));
    for (size_t i = 0; i < turns.count && r == 0; i++)
        r = turns.list[i].role == PINFOLD_ROLE_USER
                    ? add_user(messages, &turns.list[i])
                    : add_assistant(messages, &turns.list[i], model->send_reasoning);
    pf_turns_done(&turns);
    return r;
}

/* ---- the rest of a body ---- */

static int add_tools(json_t *body, const struct pinfold_model_request *request)
{
    json_t *tools = json_array();
    int r = pf_json_put(body, "tools", tools);

    for (size_t i = 0; i < request->tool_count && r == 0; i++) {
        const struct pinfold_tool_spec *tool = &request->tools[i];
        r = pf_json_push(tools, json_pack("{s:s,s:o}", "type", "function", "function",
                                          pf_turns_tool(json_string(tool->name), tool->description,
                                                        "parameters", pf_turns_schema(tool))));
    }
    return r;
}

json_t *pf_openai_body(const struct pf_openai *model, const struct pinfold_model_request *request,
                       struct pf_openai_dialect dialect)
{
    const struct pf_model_client *client = &model->client;
    const double *temperature = pf_model_temperature(client, request);
    unsigned max_tokens = pf_model_max_tokens(client, request);
    _cleanup_pf_json_ json_t *body =
            json_pack("{s:s,s:b,s:[]}", "model", client->model, "stream", 1, "messages");
    int r = body ? add_messages(json_object_get(body, "messages"), model, request)
                 : -PINFOLD_ENOMEM;

    if (r == 0 && !dialect.no_stream_options)
        r = pf_json_put(body, "stream_options", json_pack("{s:b}", "include_usage", 1));
    if (r == 0 && max_tokens)
        r = pf_json_put(body, dialect.completion_tokens ? "max_completion_tokens" : "max_tokens",
                        json_integer(max_tokens));
    if (r == 0 && temperature)
        r = pf_json_put(body, "temperature", json_real(*temperature));
    if (r == 0 && request->stop_sequences && request->stop_sequences[0])
        r = pf_json_put(body, "stop", pf_turns_stops(request));
    if (r == 0 && request->tool_count > 0)
        r = add_tools(body, request);
    return r == 0 ? TAKE(body) : NULL;
}

/* ---- the model ---- */

static int converse(void *state, const struct pinfold_model_request *request,
                    struct pinfold_model_reply *ret, struct pinfold_cancel *cancel,
                    struct pinfold_error *err)
{
    struct pf_openai *model = state;
    struct pf_openai_stream stream = {
        .model = model,
        .request = request,
        .dialect = { .no_stream_options = model->no_stream_options,
                     .completion_tokens = model->completion_tokens },
        .sse = PF_SSE_INIT,
    };
    PF_CLEANUP(pf_model_call_done)
    struct pf_model_call call = {
        .client = &model->client,
        .wire = &pf_openai_wire,
        .ctx = &stream,
        .reply = { .request = request, .out = ret },
        .path = "/chat/completions",
        .cancel = cancel,
    };
    _cleanup_pf_json_ json_t *body = pf_openai_body(model, request, stream.dialect);
    int r = pf_model_call_body(&call, body, err);

    return r < 0 ? r : pf_model_call_perform(&call, err);
}

static void openai_free(void *state)
{
    struct pf_openai *model = state;

    if (!model)
        return;
    pf_model_client_done(&model->client);
    free(model);
}

static void openai_freep(struct pf_openai **model)
{
    openai_free(*model);
}

int pinfold_model_openai_new(const struct pinfold_model_options *options,
                             struct pinfold_model **ret_model, struct pinfold_error *err)
{
    static const struct pinfold_model_ops ops = {
        .size = sizeof(ops), .provider = "openai", .converse = converse, .free = openai_free
    };
    static const struct pf_model_defaults defaults = {
        .provider = "openai",
        .base_url = "https://api.openai.com/v1",
        .base_env = "OPENAI_BASE_URL",
        .key_env = "OPENAI_API_KEY",
    };
    PF_CLEANUP(openai_freep) struct pf_openai *model = calloc(1, sizeof(*model));
    int r = model ? pf_model_client_init(&model->client, &defaults, options, err)
                  : pf_fail_nomem(err);

    if (r < 0)
        return r;
    if (!model->client.key && model->client.base_is_default)
        return pf_fail(err, PINFOLD_EVALUE,
                       "openai model: there is no key: set OPENAI_API_KEY, or the base URL of a "
                       "server of your own");
    model->send_reasoning = options->send_reasoning;
    /* OpenAI's own newer models take no max_tokens; others know nothing else. */
    model->completion_tokens = model->client.base_is_default;
    r = pinfold_model_new(&ops, model, model->client.model, ret_model, err);
    if (r == 0)
        model = NULL;
    return r;
}
