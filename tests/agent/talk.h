/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the tests of models: conversations in one line, and an ear that writes down events. */
#ifndef TESTS_AGENT_TALK_H
#define TESTS_AGENT_TALK_H

#include <pinfold/model.h>
#include <stdio.h>
#include <string.h>

/* A user's message of one text. */
static inline struct pinfold_message user(const char *text)
{
    struct pinfold_message message = { .role = PINFOLD_ROLE_USER };

    assert_int_equal(pinfold_message_add_text(&message, text, strlen(text), NULL), 0);
    return message;
}

/* What on_event heard: "T0(Hel)", "R0(hm)", "S1(id name)", "I1({)", "C1(id name {} valid)",
 * "!1(message)". */
struct ear {
    char heard[65536];
    size_t len;
    size_t pieces;     /* of text, reasoning or input */
    size_t stop_after; /* events; 0: never */
    size_t events;
    unsigned retries;
    struct pinfold_cancel *fire; /* after stop_after events, instead of refusing */
};

static inline void ear_note(struct ear *ear, const char *text)
{
    size_t len = strlen(text);

    if (ear->len + len < sizeof(ear->heard)) {
        memcpy(ear->heard + ear->len, text, len + 1);
        ear->len += len;
    }
}

static inline int listen_to(void *ctx, const struct pinfold_model_event *event)
{
    static const char signs[] = "?TRSIC!";
    struct ear *ear = ctx;
    char head[32];

    assert_int_equal(event->size, sizeof(*event));
    snprintf(head, sizeof(head), "%c%zu(", signs[event->kind], event->block);
    ear_note(ear, head);
    if (event->kind == PINFOLD_MODEL_RETRY) {
        ear->retries++;
        ear_note(ear, event->error->msg);
    } else if (event->kind == PINFOLD_MODEL_TOOL_START ||
               event->kind == PINFOLD_MODEL_TOOL_COMPLETE) {
        ear_note(ear, event->tool->id);
        ear_note(ear, " ");
        ear_note(ear, event->tool->name);
        if (event->kind == PINFOLD_MODEL_TOOL_COMPLETE) {
            ear_note(ear, " ");
            ear_note(ear, event->tool->text);
            ear_note(ear, event->tool->input_valid ? " valid" : " broken");
        }
    } else {
        assert_int_equal(strlen(event->text), event->text_len);
        assert_true(event->text_len > 0);
        ear->pieces++;
        ear_note(ear, event->text);
    }
    ear_note(ear, ")");
    ear->events++;
    if (ear->stop_after == 0 || ear->events < ear->stop_after)
        return 0;
    if (!ear->fire)
        return 1;
    pinfold_cancel_fire(ear->fire);
    return 0;
}

/* Write a reply down: "T(text) R(thought) C(id name input) B(id name broken input) stop". */
static inline const char *write_down(const struct pinfold_model_reply *reply)
{
    static const char *const stops[] = { "?",       "end",           "tool_use", "length",
                                         "refusal", "stop_sequence", "pause" };
    static char down[4096];
    size_t len = 0;

    for (size_t i = 0; i < reply->message.count; i++) {
        const struct pinfold_block *block = &reply->message.blocks[i];
        bool call = block->kind == PINFOLD_BLOCK_TOOL_USE;
        len += (size_t)snprintf(down + len, sizeof(down) - len, "%c(%s%s%s%s%.3000s) ",
                                block->kind == PINFOLD_BLOCK_TEXT        ? 'T'
                                : block->kind == PINFOLD_BLOCK_REASONING ? 'R'
                                : block->input_valid                     ? 'C'
                                                                         : 'B',
                                call ? block->id : "", call ? " " : "", call ? block->name : "",
                                call ? " " : "", block->text);
    }
    snprintf(down + len, sizeof(down) - len, "%s", stops[reply->stop]);
    return down;
}

/* One question with one answer. */
static inline int ask(struct pinfold_model *model, const struct pinfold_message *messages,
                      size_t count, struct ear *ear, struct pinfold_model_reply *reply,
                      struct pinfold_error *err)
{
    struct pinfold_model_request request = PINFOLD_MODEL_REQUEST_INIT;

    request.messages = messages;
    request.message_count = count;
    if (ear) {
        request.on_event = listen_to;
        request.on_event_ctx = ear;
    }
    return pinfold_model_converse(model, &request, reply, ear ? ear->fire : NULL, err);
}

#endif
