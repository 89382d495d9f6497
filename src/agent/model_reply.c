/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/model_reply.h"

#include <stdlib.h>
#include <string.h>

#include "agent/model.h"
#include "agent/model_json.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/random.h"

#define RANDOM_ID "call_"
enum { RANDOM_DIGITS = 24 };

static struct pinfold_block *block_of(const struct pf_reply *reply, size_t block)
{
    return &reply->out->message.blocks[block];
}

/* ---- telling ---- */

static int tell(struct pf_reply *reply, struct pinfold_model_event *event,
                struct pinfold_error *err)
{
    if (!reply->request->on_event)
        return 0;
    event->size = sizeof(*event);
    if (event->kind != PINFOLD_MODEL_RETRY)
        reply->told = true;
    if (reply->request->on_event(reply->request->on_event_ctx, event) == 0)
        return 0;
    return pf_fail(err, PINFOLD_ECANCELLED, "model call: its caller wants no more of the reply");
}

static int tell_tool(struct pf_reply *reply, enum pinfold_model_event_kind kind, size_t block,
                     struct pinfold_error *err)
{
    struct pinfold_model_event event = {
        .kind = kind, .block = block, .text = "", .tool = block_of(reply, block)
    };

    return tell(reply, &event, err);
}

static int tell_text(struct pf_reply *reply, size_t block, const char *text, size_t len,
                     struct pinfold_error *err)
{
    const struct pinfold_block *of = block_of(reply, block);
    struct pinfold_model_event event = {
        .kind = of->kind == PINFOLD_BLOCK_TEXT       ? PINFOLD_MODEL_TEXT
                : of->kind == PINFOLD_BLOCK_TOOL_USE ? PINFOLD_MODEL_TOOL_INPUT
                                                     : PINFOLD_MODEL_REASONING,
        .block = block,
        .text = text,
        .text_len = len,
        .tool = of->kind == PINFOLD_BLOCK_TOOL_USE ? of : NULL,
    };

    return tell(reply, &event, err);
}

int pf_reply_retry(struct pf_reply *reply, const struct pinfold_error *why, unsigned attempt,
                   int64_t delay_ns, struct pinfold_error *err)
{
    struct pinfold_model_event event = {
        .kind = PINFOLD_MODEL_RETRY,
        .text = "",
        .error = why,
        .attempt = attempt,
        .delay_seconds = (double)delay_ns / (double)PF_NS_PER_SEC,
    };

    return tell(reply, &event, err);
}

/* ---- building ---- */

static bool has_id(const struct pf_reply *reply, const char *id)
{
    const struct pinfold_message *message = &reply->out->message;

    for (size_t i = 0; i < message->count; i++)
        if (message->blocks[i].id && strcmp(message->blocks[i].id, id) == 0)
            return true;
    return false;
}

static int set_names(struct pf_reply *reply, size_t index, const char *id, const char *name)
{
    char made[sizeof(RANDOM_ID) + RANDOM_DIGITS] = RANDOM_ID;
    struct pinfold_block *block = block_of(reply, index);
    char *copy;

    if (!id || !id[0] || has_id(reply, id)) {
        pf_random_hex(made + strlen(RANDOM_ID), RANDOM_DIGITS);
        id = made;
    }
    copy = strdup(id);
    block->id = copy;
    block->name = strdup(name);
    return copy && block->name ? 0 : -PINFOLD_ENOMEM;
}

static int make_part(struct pf_reply *reply, size_t index)
{
    struct pf_reply_part *parts;

    if (index == reply->capacity) {
        size_t capacity = reply->capacity ? 2 * reply->capacity : 4;
        parts = reallocarray(reply->parts, capacity, sizeof(*parts));
        if (!parts)
            return -PINFOLD_ENOMEM;
        reply->parts = parts;
        reply->capacity = capacity;
    }
    reply->parts[index] = (struct pf_reply_part){ .text = PF_BUF_INIT(PF_BUF_UNLIMITED) };
    return 0;
}

int pf_reply_open(struct pf_reply *reply, enum pinfold_block_kind kind, const char *id,
                  const char *name, size_t *ret_block, struct pinfold_error *err)
{
    size_t index = reply->out->message.count;

    if (index == PF_REPLY_BLOCKS_MAX)
        return pf_fail(err, PINFOLD_EBACKEND, "model reply: more than %d blocks",
                       PF_REPLY_BLOCKS_MAX);
    if (make_part(reply, index) < 0 || !pf_message_append(&reply->out->message, kind))
        return pf_fail_nomem(err);
    *ret_block = index;
    if (kind != PINFOLD_BLOCK_TOOL_USE)
        return 0;
    if (set_names(reply, index, id, name) < 0)
        return pf_fail_nomem(err);
    return tell_tool(reply, PINFOLD_MODEL_TOOL_START, index, err);
}

int pf_reply_add(struct pf_reply *reply, size_t block, const char *text, size_t len,
                 struct pinfold_error *err)
{
    struct pf_buf *so_far = &reply->parts[block].text;

    if (len == 0)
        return 0;
    if (pf_buf_append(so_far, text, len) < 0)
        return pf_fail_nomem(err);
    /* There it has a NUL at its end. */
    return tell_text(reply, block, so_far->data + so_far->len - len, len, err);
}

int pf_reply_set_opaque(struct pf_reply *reply, size_t block, char *opaque,
                        struct pinfold_error *err)
{
    free(block_of(reply, block)->opaque);
    block_of(reply, block)->opaque = opaque;
    return opaque ? 0 : pf_fail_nomem(err);
}

/* Move the text that has come together into its block. */
static int settle(struct pf_reply *reply, size_t index)
{
    struct pinfold_block *block = block_of(reply, index);
    struct pinfold_bytes bytes;
    bool nomem = false;
    json_t *input;
    int r = pf_buf_take(&reply->parts[index].text, &bytes);

    if (r < 0)
        return r;
    block->text = bytes.data;
    block->text_len = bytes.len;
    if (block->kind != PINFOLD_BLOCK_TOOL_USE)
        return 0;
    input = pf_json_object_load(block->text, block->text_len, &nomem);
    block->input_valid = input;
    json_decref(input);
    return nomem ? -PINFOLD_ENOMEM : 0;
}

int pf_reply_close(struct pf_reply *reply, size_t block, struct pinfold_error *err)
{
    struct pf_reply_part *part = &reply->parts[block];
    bool tool = block_of(reply, block)->kind == PINFOLD_BLOCK_TOOL_USE;

    if (part->closed)
        return 0;
    /* Tools without parameters often get no input at all. */
    part->silent = tool && part->text.len == 0;
    if (part->silent && pf_buf_append_text(&part->text, "{}") < 0)
        return pf_fail_nomem(err);
    if (settle(reply, block) < 0)
        return pf_fail_nomem(err);
    part->closed = true;
    return tool ? tell_tool(reply, PINFOLD_MODEL_TOOL_COMPLETE, block, err) : 0;
}

enum pinfold_stop_reason pf_reply_stop(const struct pf_reply *reply, enum pinfold_stop_reason told)
{
    const struct pinfold_message *message = &reply->out->message;

    if (told != PINFOLD_STOP_END && told != PINFOLD_STOP_TOOL_USE)
        return told;
    for (size_t i = 0; i < message->count; i++)
        if (message->blocks[i].kind == PINFOLD_BLOCK_TOOL_USE)
            return PINFOLD_STOP_TOOL_USE;
    return PINFOLD_STOP_END;
}

static void parts_free(struct pf_reply *reply)
{
    free(reply->parts);
    reply->parts = NULL;
    reply->capacity = 0;
}

int pf_reply_finish(struct pf_reply *reply, enum pinfold_stop_reason stop, const char *detail,
                    struct pinfold_error *err)
{
    struct pinfold_message *message = &reply->out->message;
    int r = 0;

    for (size_t i = 0; i < message->count && r == 0; i++)
        r = pf_reply_close(reply, i, err);
    if (r < 0)
        return r;
    /* A call that was cut before its input began is none without parameters. */
    if (message->count > 0 && reply->parts[message->count - 1].silent &&
        (stop == PINFOLD_STOP_LENGTH || stop == PINFOLD_STOP_REFUSAL))
        block_of(reply, message->count - 1)->input_valid = false;
    reply->out->stop_detail = strdup(detail ? detail : "");
    if (!reply->out->stop_detail)
        return pf_fail_nomem(err);
    reply->out->stop = stop;
    parts_free(reply);
    return 0;
}

size_t pf_reply_len(const struct pf_reply *reply, size_t block)
{
    const struct pf_reply_part *part = &reply->parts[block];

    return part->closed ? block_of(reply, block)->text_len : part->text.len;
}

void pf_reply_done(struct pf_reply *reply)
{
    if (reply->out->stop)
        return;
    for (size_t i = 0; i < reply->out->message.count; i++)
        pf_buf_done(&reply->parts[i].text);
    parts_free(reply);
    pinfold_model_reply_done(reply->out);
}
