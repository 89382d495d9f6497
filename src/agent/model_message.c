/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "agent/model.h"
#include "agent/model_json.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/strings.h"
#include "base/utf8.h"

struct pinfold_block *pf_message_append(struct pinfold_message *message,
                                        enum pinfold_block_kind kind)
{
    struct pinfold_block *block;

    if (message->count == message->capacity) {
        size_t capacity = message->capacity ? 2 * message->capacity : 4;
        block = reallocarray(message->blocks, capacity, sizeof(*block));
        if (!block)
            return NULL;
        message->blocks = block;
        message->capacity = capacity;
    }
    block = &message->blocks[message->count++];
    *block = (struct pinfold_block){ .kind = kind };
    return block;
}

static void block_done(struct pinfold_block *block)
{
    free(block->text);
    free(block->id);
    free(block->name);
    free(block->opaque);
}

static bool take_text(void *ctx, const char *text, size_t len)
{
    return pf_buf_append(ctx, text, len) == 0;
}

static int set_text(struct pinfold_block *block, const char *text, size_t len)
{
    struct pf_buf clean = PF_BUF_INIT(PF_BUF_UNLIMITED);
    struct pf_utf8 state = { .partial_len = 0 };
    struct pinfold_bytes bytes;

    if (!pf_utf8_decode(&state, text, len, take_text, &clean) ||
        !pf_utf8_finish(&state, take_text, &clean) || pf_buf_take(&clean, &bytes) < 0) {
        pf_buf_done(&clean);
        return -PINFOLD_ENOMEM;
    }
    block->text = bytes.data;
    block->text_len = bytes.len;
    return 0;
}

/* Append a whole block or nothing. */
static int add(struct pinfold_message *message, const struct pinfold_block *like,
               struct pinfold_error *err)
{
    struct pinfold_block *block = pf_message_append(message, like->kind);

    if (!block)
        return pf_fail_nomem(err);
    block->is_error = like->is_error;
    block->input_valid = like->input_valid;
    if (set_text(block, like->text, like->text_len) == 0 && pf_text_copy(&block->id, like->id) &&
        pf_text_copy(&block->name, like->name) && pf_text_copy(&block->opaque, like->opaque))
        return 0;
    block_done(block);
    message->count--;
    return pf_fail_nomem(err);
}

/* Only to borrow it: a block that is copied from is never written to. */
static char *borrow(const char *text)
{
    union {
        const char *from;
        char *to;
    } both = { .from = text };

    return both.to;
}

static int check_word(const char *word, const char *what, struct pinfold_error *err)
{
    if (!word || !word[0] || !pf_utf8_valid(word, strlen(word), NULL))
        return pf_fail(err, PINFOLD_EVALUE, "message: the %s of a tool call is %s", what,
                       word && word[0] ? "not UTF-8" : "empty");
    return 0;
}

int pinfold_message_add_text(struct pinfold_message *message, const char *text, size_t len,
                             struct pinfold_error *err)
{
    const struct pinfold_block block = { .kind = PINFOLD_BLOCK_TEXT,
                                         .text = borrow(text),
                                         .text_len = len };

    return add(message, &block, err);
}

int pinfold_message_add_tool_use(struct pinfold_message *message, const char *id, const char *name,
                                 const char *input, size_t len, struct pinfold_error *err)
{
    bool nomem;
    _cleanup_pf_json_ json_t *object = pf_json_object_load(input, len, &nomem);
    const struct pinfold_block block = {
        .kind = PINFOLD_BLOCK_TOOL_USE,
        .text = borrow(input),
        .text_len = len,
        .id = borrow(id),
        .name = borrow(name),
        .input_valid = object,
    };
    int r = check_word(id, "id", err);

    if (r == 0)
        r = check_word(name, "name", err);
    if (r < 0)
        return r;
    return nomem ? pf_fail_nomem(err) : add(message, &block, err);
}

int pinfold_message_add_tool_result(struct pinfold_message *message, const char *id,
                                    const char *text, size_t len, bool is_error,
                                    struct pinfold_error *err)
{
    const struct pinfold_block block = {
        .kind = PINFOLD_BLOCK_TOOL_RESULT,
        .text = borrow(text),
        .text_len = len,
        .id = borrow(id),
        .is_error = is_error,
    };
    int r = check_word(id, "id", err);

    return r < 0 ? r : add(message, &block, err);
}

int pinfold_message_add_reasoning(struct pinfold_message *message, const char *text, size_t len,
                                  const char *opaque, struct pinfold_error *err)
{
    const struct pinfold_block block = {
        .kind = PINFOLD_BLOCK_REASONING,
        .text = borrow(text),
        .text_len = len,
        .opaque = borrow(opaque),
    };

    return add(message, &block, err);
}

int pinfold_message_copy(struct pinfold_message *to, const struct pinfold_message *from,
                         struct pinfold_error *err)
{
    struct pinfold_message copy = { .role = from->role };

    for (size_t i = 0; i < from->count; i++) {
        int r = add(&copy, &from->blocks[i], err);
        if (r < 0) {
            pinfold_message_done(&copy);
            return r;
        }
    }
    *to = copy;
    return 0;
}

void pinfold_message_done(struct pinfold_message *message)
{
    for (size_t i = 0; i < message->count; i++)
        block_done(&message->blocks[i]);
    free(message->blocks);
    *message = (struct pinfold_message){ .role = message->role };
}

void pinfold_model_reply_done(struct pinfold_model_reply *reply)
{
    pinfold_message_done(&reply->message);
    free(reply->stop_detail);
    free(reply->request_id);
    *reply = (struct pinfold_model_reply){ .message = { .role = PINFOLD_ROLE_ASSISTANT } };
}
