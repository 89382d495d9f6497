/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/model.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cancel.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"

struct pinfold_model {
    const struct pinfold_model_ops *ops;
    void *state;
    char *name;
    int refs;
};

int pinfold_model_new(const struct pinfold_model_ops *ops, void *state, const char *name,
                      struct pinfold_model **ret_model, struct pinfold_error *err)
{
    _cleanup_free_ struct pinfold_model *model = NULL;

    if (ops->size != sizeof(*ops) || !ops->provider || !ops->converse)
        return pf_fail(err, PINFOLD_EVALUE,
                       "model table: size is %zu, not %zu, or it has no provider or no converse",
                       ops->size, sizeof(*ops));
    model = calloc(1, sizeof(*model));
    if (!model)
        return pf_fail_nomem(err);
    model->name = strdup(name);
    if (!model->name)
        return pf_fail_nomem(err);
    model->ops = ops;
    model->state = state;
    model->refs = 1;
    *ret_model = TAKE(model);
    return 0;
}

struct pinfold_model *pinfold_model_ref(struct pinfold_model *model)
{
    __atomic_fetch_add(&model->refs, 1, __ATOMIC_RELAXED);
    return model;
}

void pinfold_model_unref(struct pinfold_model *model)
{
    if (!model || __atomic_sub_fetch(&model->refs, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    if (model->ops->free)
        model->ops->free(model->state);
    free(model->name);
    free(model);
}

const char *pinfold_model_provider(const struct pinfold_model *model)
{
    return model->ops->provider;
}

const char *pinfold_model_name(const struct pinfold_model *model)
{
    return model->name;
}

/* Callers need not ask whether there is a text. */
static int fill_texts(struct pinfold_model_reply *reply)
{
    if (!reply->stop_detail)
        reply->stop_detail = strdup("");
    if (!reply->request_id)
        reply->request_id = strdup("");
    return reply->stop_detail && reply->request_id ? 0 : -PINFOLD_ENOMEM;
}

int pinfold_model_converse(struct pinfold_model *model, const struct pinfold_model_request *request,
                           struct pinfold_model_reply *ret_reply, struct pinfold_cancel *cancel,
                           struct pinfold_error *err)
{
    struct pinfold_model_reply reply = { .message = { .role = PINFOLD_ROLE_ASSISTANT },
                                         .attempts = 1 };
    int r = pf_model_check_request(request, err);

    if (r == 0)
        r = pf_cancel_check(cancel, err);
    if (r < 0)
        return r;
    r = model->ops->converse(model->state, request, &reply, cancel, err);
    if (r == 0)
        r = pf_model_check_reply(model, &reply, err);
    if (r == 0 && fill_texts(&reply) < 0)
        r = pf_fail_nomem(err);
    if (r == 0)
        *ret_reply = reply;
    else
        pinfold_model_reply_done(&reply);
    return r;
}

/* ---- counting ---- */

static uint64_t characters(const char *text, size_t len)
{
    uint64_t count = 0;

    for (size_t i = 0; i < len; i++)
        count += ((unsigned char)text[i] & 0xc0) != 0x80;
    return count;
}

static uint64_t text_tokens(const char *text, size_t len)
{
    return (characters(text, len) + 3) / 4;
}

static uint64_t json_tokens(const char *text, size_t len)
{
    return (characters(text, len) + 1) / 2;
}

static uint64_t estimate(const struct pinfold_model_request *request)
{
    uint64_t count = request->system ? text_tokens(request->system, strlen(request->system)) : 0;

    for (size_t i = 0; i < request->message_count; i++) {
        const struct pinfold_message *message = &request->messages[i];
        for (size_t j = 0; j < message->count; j++) {
            const struct pinfold_block *block = &message->blocks[j];
            if (block->kind == PINFOLD_BLOCK_TOOL_USE)
                count += text_tokens(block->name, strlen(block->name)) +
                         json_tokens(block->text, block->text_len);
            else
                count += text_tokens(block->text, block->text_len);
        }
    }
    for (size_t i = 0; i < request->tool_count; i++) {
        const struct pinfold_tool_spec *tool = &request->tools[i];
        count += text_tokens(tool->name, strlen(tool->name));
        if (tool->description)
            count += text_tokens(tool->description, strlen(tool->description));
        if (tool->schema)
            count += json_tokens(tool->schema, strlen(tool->schema));
    }
    return count;
}

int pinfold_model_count_tokens(struct pinfold_model *model,
                               const struct pinfold_model_request *request, uint64_t *ret_tokens,
                               struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    int r = pf_model_check_request(request, err);

    if (r < 0)
        return r;
    if (model->ops->count_tokens)
        return model->ops->count_tokens(model->state, request, ret_tokens, cancel, err);
    *ret_tokens = estimate(request);
    return 0;
}

/* ---- what providers share ---- */

int pf_model_refused(int status, bool retryable, const char *text, struct pinfold_error *err)
{
    bool key = status == 401 || status == 403;
    bool ours = status == 400 || status == 404 || status == 413 || status == 422;
    int r = pf_fail(err, key ? PINFOLD_EOS : ours ? PINFOLD_EVALUE : PINFOLD_EBACKEND, "%s", text);

    if (err) {
        err->http_status = status;
        err->sys_errno = key ? EACCES : 0;
        err->retryable = retryable;
    }
    return r;
}
