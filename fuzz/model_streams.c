/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whatever a service of models answers: it is a reply that makes sense, or an error with a text;
 * and the same one, however the bytes are cut. The HTTP client is left out: its callers get the
 * bytes of the fuzzer.
 */
#include <pinfold/model.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "net/http.h"
#include "fuzz.h"

int __wrap_pf_http_perform(struct pf_http *http, const struct pf_http_request *request,
                           struct pf_http_response *ret, struct pinfold_cancel *cancel,
                           struct pinfold_error *err);

static struct {
    const uint8_t *data;
    size_t size, piece;
    int status;
} answer;

int __wrap_pf_http_perform(struct pf_http *http, const struct pf_http_request *request,
                           struct pf_http_response *ret, struct pinfold_cancel *cancel,
                           struct pinfold_error *err)
{
    int r = 0;

    (void)http;
    (void)cancel;
    *ret = (struct pf_http_response){ .status = answer.status,
                                      .headers = PF_BUF_INIT(1),
                                      .body = PF_BUF_INIT(PF_BUF_UNLIMITED) };
    if (answer.status != 200) {
        demand(pf_buf_append(&ret->body, answer.data, answer.size) == 0);
        return 0;
    }
    for (size_t at = 0; at < answer.size && r == 0; at += answer.piece) {
        size_t left = answer.size - at;
        r = request->on_body(request->on_body_ctx, answer.data + at,
                             left < answer.piece ? left : answer.piece, err);
    }
    return r;
}

static int hear(void *ctx, const struct pinfold_model_event *event)
{
    (void)ctx;
    demand(!event->text || strlen(event->text) <= event->text_len);
    return 0;
}

/* One answer, written down. */
static void ask(struct pinfold_model *model, bool heard, struct pf_buf *to)
{
    static char text[] = "hello";
    struct pinfold_block block = { .kind = PINFOLD_BLOCK_TEXT, .text = text, .text_len = 5 };
    struct pinfold_message message = { .role = PINFOLD_ROLE_USER, .blocks = &block, .count = 1 };
    struct pinfold_model_request request = PINFOLD_MODEL_REQUEST_INIT;
    struct pinfold_model_reply reply;
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    int r;

    request.messages = &message;
    request.message_count = 1;
    request.on_event = heard ? hear : NULL;
    r = pinfold_model_converse(model, &request, &reply, NULL, &err);
    if (r < 0) {
        demand(err.code == -r && err.msg[0]);
        pf_buf_printf(to, "%d", r);
        return;
    }
    pf_buf_printf(to, "%d %s", (int)reply.stop, reply.stop_detail);
    for (size_t i = 0; i < reply.message.count; i++) {
        const struct pinfold_block *got = &reply.message.blocks[i];
        pf_buf_printf(to, " %d%d(%s %s)", (int)got->kind, got->input_valid,
                      got->name ? got->name : "", got->opaque ? got->opaque : "");
        pf_buf_append(to, got->text, got->text_len);
    }
    pinfold_model_reply_done(&reply);
}

static struct pinfold_model *models[3];

static void make_models(void)
{
    struct pinfold_model_options options = PINFOLD_MODEL_OPTIONS_INIT;

    options.model = "m";
    options.base_url = "http://127.0.0.1:1";
    options.api_key = "key-of-nobody";
    options.region = "us-west-2";
    options.attempts = 1;
    demand(pinfold_model_anthropic_new(&options, &models[0], NULL) == 0);
    demand(pinfold_model_openai_new(&options, &models[1], NULL) == 0);
    demand(pinfold_model_bedrock_new(&options, &models[2], NULL) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    PF_CLEANUP(pf_buf_done) struct pf_buf whole = PF_BUF_INIT(PF_BUF_UNLIMITED);
    PF_CLEANUP(pf_buf_done) struct pf_buf parts = PF_BUF_INIT(PF_BUF_UNLIMITED);
    struct pinfold_model *model;

    if (!models[0])
        make_models();
    if (size < 2)
        return 0;
    model = models[data[0] % 3];
    answer.status = data[0] & 0x80 ? 400 : 200;
    answer.data = data + 1;
    answer.size = size - 1;
    answer.piece = size;
    ask(model, false, &whole);
    answer.piece = 1 + (data[0] >> 2) % 16;
    ask(model, true, &parts);
    demand(whole.len == parts.len && memcmp(whole.data, parts.data, whole.len) == 0);
    return 0;
}
