/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/model_turns.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/utf8.h"

static bool is_blank(const struct pinfold_block *block)
{
    for (size_t i = 0; i < block->text_len; i++)
        if (!strchr(" \t\r\n\v\f", block->text[i]) || block->text[i] == '\0')
            return false;
    return true;
}

static bool is_sent(const struct pinfold_block *block)
{
    return block->kind != PINFOLD_BLOCK_TEXT || !is_blank(block);
}

/* Append the blocks of a message that are sent: the results of tools, or all others. */
static void append(struct pf_turn *turn, const struct pinfold_message *message, bool results)
{
    for (size_t i = 0; i < message->count; i++) {
        const struct pinfold_block *block = &message->blocks[i];
        if ((block->kind == PINFOLD_BLOCK_TOOL_RESULT) == results && is_sent(block))
            turn->blocks[turn->count++] = block;
    }
}

static bool says_something(const struct pinfold_message *message)
{
    for (size_t i = 0; i < message->count; i++)
        if (is_sent(&message->blocks[i]))
            return true;
    return false;
}

/* The end of the messages from begin on that are one turn: those that say nothing do not end it. */
static size_t turn_end(const struct pinfold_model_request *request, size_t begin)
{
    size_t end = begin + 1;

    while (end < request->message_count &&
           (request->messages[end].role == request->messages[begin].role ||
            !says_something(&request->messages[end])))
        end++;
    return end;
}

int pf_turns_make(const struct pinfold_model_request *request, struct pf_turns *ret)
{
    size_t blocks = 0, used = 0, end;

    *ret = (struct pf_turns){ .count = 0 };
    for (size_t i = 0; i < request->message_count; i++)
        blocks += request->messages[i].count;
    ret->list = calloc(request->message_count + 1, sizeof(*ret->list));
    ret->blocks = calloc(blocks + 1, sizeof(const struct pinfold_block *));
    if (!ret->list || !ret->blocks) {
        pf_turns_done(ret);
        return -PINFOLD_ENOMEM;
    }
    for (size_t i = 0; i < request->message_count; i = end) {
        struct pf_turn *turn = &ret->list[ret->count];
        end = i + 1;
        if (!says_something(&request->messages[i]))
            continue;
        end = turn_end(request, i);
        turn->role = request->messages[i].role;
        turn->blocks = ret->blocks + used;
        for (size_t j = i; j < end; j++)
            append(turn, &request->messages[j], true);
        for (size_t j = i; j < end; j++)
            append(turn, &request->messages[j], false);
        used += turn->count;
        ret->count++;
    }
    return 0;
}

void pf_turns_done(struct pf_turns *turns)
{
    free(turns->list);
    free(turns->blocks);
    *turns = (struct pf_turns){ .count = 0 };
}

json_t *pf_turns_input(const struct pinfold_block *block)
{
    bool nomem = false;
    json_t *input = pf_json_object_load(block->text, block->text_len, &nomem);

    if (input || nomem)
        return input;
    return json_pack("{s:o}", "invalid_json", pf_turns_text(block));
}

json_t *pf_turns_text(const struct pinfold_block *block)
{
    return json_stringn_nocheck(block->text, block->text_len);
}

int pf_turns_opaque(const struct pinfold_block *block, const char *provider, json_t **ret)
{
    bool nomem = false;
    json_t *opaque = block->opaque
                             ? pf_json_object_load(block->opaque, strlen(block->opaque), &nomem)
                             : NULL;

    *ret = json_incref(json_object_get(opaque, provider));
    json_decref(opaque);
    return nomem ? -PINFOLD_ENOMEM : 0;
}

json_t *pf_turns_word(const char *word)
{
    static const char allowed[] =
            "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";
    char clean[65];

    snprintf(clean, sizeof(clean), "%s", word);
    for (char *at = clean; *at; at++)
        if (!strchr(allowed, *at))
            *at = '_';
    return json_string(clean);
}

int pf_turns_push(json_t *messages, const struct pf_turn *turn,
                  json_t *(*block_json)(const struct pinfold_block *block, const void *ctx,
                                        int *ret_r),
                  const void *ctx)
{
    const char *role = turn->role == PINFOLD_ROLE_USER ? "user" : "assistant";
    _cleanup_pf_json_ json_t *content = json_array();
    int r = content ? 0 : -PINFOLD_ENOMEM;

    for (size_t i = 0; i < turn->count && r == 0; i++) {
        json_t *block = block_json(turn->blocks[i], ctx, &r);
        if (r < 0)
            json_decref(block);
        else if (block)
            r = pf_json_push(content, block);
    }
    if (r < 0 || json_array_size(content) == 0)
        return r;
    return pf_json_push(messages, json_pack("{s:s,s:O}", "role", role, "content", content));
}

/* Put together piece by piece: a text that json_pack() may leave out, it leaves out for want of
 * memory as well. */
json_t *pf_turns_tool(json_t *name, const char *description, const char *key, json_t *schema)
{
    _cleanup_pf_json_ json_t *tool = json_object();
    int r = pf_json_put(tool, "name", name);

    if (r == 0 && description)
        r = pf_json_put(tool, "description", json_string(description));
    if (r < 0)
        json_decref(schema);
    else
        r = pf_json_put(tool, key, schema);
    return r < 0 ? NULL : TAKE(tool);
}

json_t *pf_turns_schema(const struct pinfold_tool_spec *tool)
{
    bool nomem;

    if (tool->schema)
        return pf_json_object_load(tool->schema, strlen(tool->schema), &nomem);
    return json_pack("{s:s,s:{}}", "type", "object", "properties");
}

json_t *pf_turns_stops(const struct pinfold_model_request *request)
{
    json_t *list = json_array();

    for (const char *const *stop = request->stop_sequences; list && stop && *stop; stop++)
        if (pf_json_push(list, json_string(*stop)) < 0) {
            json_decref(list);
            list = NULL;
        }
    return list;
}
