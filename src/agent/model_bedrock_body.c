/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests of ConverseStream, as the API reference of the Bedrock Runtime has them
 * (docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ConverseStream.html).
 */
#include <stdlib.h>
#include <string.h>

#include "agent/model_bedrock.h"
#include "agent/model_turns.h"
#include "base/cleanup.h"

/* The service refuses text that is blank, here as well. */
#define NOTHING "(empty)"

/* Only these know a status of results; others refuse it (ToolResultBlock, "status"). */
static bool knows_status(const struct pf_model_client *client)
{
    return strstr(client->model, "claude") || strstr(client->model, "nova");
}

static json_t *result_json(const struct pinfold_block *block, bool with_status)
{
    bool blank = block->text_len == 0 || (strlen(block->text) == block->text_len &&
                                          block->text[strspn(block->text, " \t\r\n\v\f")] == '\0');
    json_t *text = blank ? json_string(NOTHING) : pf_turns_text(block);
    json_t *result = json_pack("{s:o,s:[{s:o}]}", "toolUseId", pf_turns_word(block->id), "content",
                               "text", text);

    if (result && with_status &&
        pf_json_put(result, "status", json_string(block->is_error ? "error" : "success")) < 0)
        json_decref(TAKE(result));
    return result ? json_pack("{s:o}", "toolResult", result) : NULL;
}

/* NULL and *ret_r 0 for what is not sent: thoughts without a signature, which are refused. */
static json_t *reasoning_json(const struct pinfold_block *block, int *ret_r)
{
    json_t *own = NULL, *text;

    *ret_r = pf_turns_opaque(block, "bedrock", &own);
    if (!own)
        return NULL;
    text = json_object_get(own, "reasoningText");
    if (text)
        *ret_r = pf_json_put(text, "text", pf_turns_text(block));
    own = json_pack("{s:o}", "reasoningContent", own);
    if (!own)
        *ret_r = -PINFOLD_ENOMEM;
    return own;
}

/* with_status: a bool. */
static json_t *block_json(const struct pinfold_block *block, const void *with_status, int *ret_r)
{
    json_t *json = NULL;

    *ret_r = 0;
    switch (block->kind) {
    case PINFOLD_BLOCK_REASONING:
        return reasoning_json(block, ret_r);
    case PINFOLD_BLOCK_TEXT:
        json = json_pack("{s:o}", "text", pf_turns_text(block));
        break;
    case PINFOLD_BLOCK_TOOL_USE:
        json = json_pack("{s:{s:o,s:o,s:o}}", "toolUse", "toolUseId", pf_turns_word(block->id),
                         "name", pf_turns_word(block->name), "input", pf_turns_input(block));
        break;
    case PINFOLD_BLOCK_TOOL_RESULT:
        json = result_json(block, *(const bool *)with_status);
        break;
    }
    if (!json)
        *ret_r = -PINFOLD_ENOMEM;
    return json;
}

static int add_tool(json_t *tools, json_t *name, const char *description, json_t *schema)
{
    return pf_json_push(
            tools, json_pack("{s:o}", "toolSpec",
                             pf_turns_tool(name, description && *description ? description : NULL,
                                           "inputSchema", json_pack("{s:o}", "json", schema))));
}

/* Calls in the conversation need tools in the request, even when none are offered any more. */
static int add_past_tools(json_t *tools, const struct pf_turns *turns)
{
    _cleanup_pf_json_ json_t *seen = json_object();
    int r = seen ? 0 : -PINFOLD_ENOMEM;

    for (size_t i = 0; i < turns->count; i++)
        for (size_t j = 0; j < turns->list[i].count && r == 0; j++) {
            const struct pinfold_block *block = turns->list[i].blocks[j];
            json_t *name;
            if (block->kind != PINFOLD_BLOCK_TOOL_USE)
                continue;
            name = pf_turns_word(block->name);
            if (!name)
                return -PINFOLD_ENOMEM;
            if (json_object_get(seen, json_string_value(name))) {
                json_decref(name);
                continue;
            }
            r = pf_json_put(seen, json_string_value(name), json_true());
            if (r == 0)
                r = add_tool(tools, name, "Not to be called any more.",
                             json_pack("{s:s}", "type", "object"));
        }
    return r;
}

static int add_tools(json_t *body, const struct pinfold_model_request *request,
                     const struct pf_turns *turns)
{
    _cleanup_pf_json_ json_t *tools = json_array();
    int r = tools ? 0 : -PINFOLD_ENOMEM;

    for (size_t i = 0; i < request->tool_count && r == 0; i++)
        r = add_tool(tools, json_string(request->tools[i].name), request->tools[i].description,
                     pf_turns_schema(&request->tools[i]));
    if (r == 0 && request->tool_count == 0)
        r = add_past_tools(tools, turns);
    if (r < 0 || json_array_size(tools) == 0)
        return r;
    return pf_json_put(body, "toolConfig", json_pack("{s:O}", "tools", tools));
}

static int add_settings(json_t *body, const struct pf_model_client *client,
                        const struct pinfold_model_request *request)
{
    const double *temperature = pf_model_temperature(client, request);
    unsigned max_tokens = pf_model_max_tokens(client, request);
    _cleanup_pf_json_ json_t *settings = json_object();
    int r = settings ? 0 : -PINFOLD_ENOMEM;

    if (r == 0 && request->system && request->system[0])
        r = pf_json_put(body, "system", json_pack("[{s:s}]", "text", request->system));
    if (r == 0 && max_tokens)
        r = pf_json_put(settings, "maxTokens", json_integer(max_tokens));
    if (r == 0 && temperature)
        r = pf_json_put(settings, "temperature", json_real(*temperature));
    if (r == 0 && request->stop_sequences && request->stop_sequences[0])
        r = pf_json_put(settings, "stopSequences", pf_turns_stops(request));
    if (r < 0 || json_object_size(settings) == 0)
        return r;
    return pf_json_put(body, "inferenceConfig", TAKE(settings));
}

json_t *pf_bedrock_body(const struct pf_model_client *client,
                        const struct pinfold_model_request *request)
{
    _cleanup_pf_json_ json_t *body = json_pack("{s:[]}", "messages");
    const bool with_status = knows_status(client);
    struct pf_turns turns = { .count = 0 };
    int r = body ? pf_turns_make(request, &turns) : -PINFOLD_ENOMEM;

    for (size_t i = 0; i < turns.count && r == 0; i++)
        r = pf_turns_push(json_object_get(body, "messages"), &turns.list[i], block_json,
                          &with_status);
    if (r == 0)
        r = add_settings(body, client, request);
    if (r == 0)
        r = add_tools(body, request, &turns);
    pf_turns_done(&turns);
    return r == 0 ? TAKE(body) : NULL;
}
