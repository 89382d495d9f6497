/* SPDX-License-Identifier: Apache-2.0 */
/* Messages, what is checked before a model is asked, and models of an application's own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <pinfold/model.h>

#include "agent/talk.h"

/* A model that an application brings: it says back the last text, or what it was told to do. */
struct own {
    int freed, asked;
    enum { SAY, FAIL, NO_STOP, NO_TEXT } mood;
};

static int own_converse(void *state, const struct pinfold_model_request *request,
                        struct pinfold_model_reply *ret, struct pinfold_cancel *cancel,
                        struct pinfold_error *err)
{
    struct own *own = state;
    const struct pinfold_message *last = &request->messages[request->message_count - 1];

    (void)cancel;
    own->asked++;
    if (pinfold_message_add_text(&ret->message, last->blocks[0].text, last->blocks[0].text_len,
                                 err) < 0)
        return -PINFOLD_ENOMEM;
    if (own->mood == FAIL) {
        *err = (struct pinfold_error){ .code = PINFOLD_EBACKEND, .msg = "no" };
        return -PINFOLD_EBACKEND;
    }
    if (own->mood == NO_TEXT) {
        free(ret->message.blocks[0].text);
        ret->message.blocks[0].text = NULL;
    }
    if (own->mood != NO_STOP)
        ret->stop = PINFOLD_STOP_END;
    return 0;
}

static void own_free(void *state)
{
    struct own *own = state;

    own->freed++;
}

static const struct pinfold_model_ops own_ops = {
    .size = sizeof(own_ops), .provider = "own", .converse = own_converse, .free = own_free
};

static struct pinfold_model *own_model(struct own *own)
{
    struct pinfold_model *model;

    assert_int_equal(pinfold_model_new(&own_ops, own, "parrot", &model, NULL), 0);
    return model;
}

static void an_application_brings_a_model_of_its_own(void **state)
{
    struct own own = { 0 };
    struct pinfold_model *model = own_model(&own);
    struct pinfold_message hello = user("hello");
    struct pinfold_model_request request = PINFOLD_MODEL_REQUEST_INIT;
    struct pinfold_model_reply reply;

    (void)state;
    assert_string_equal(pinfold_model_provider(model), "own");
    assert_string_equal(pinfold_model_name(model), "parrot");
    request.messages = &hello;
    request.message_count = 1;
    assert_int_equal(pinfold_model_converse(model, &request, &reply, NULL, NULL), 0);
    assert_int_equal(reply.message.role, PINFOLD_ROLE_ASSISTANT);
    assert_string_equal(reply.message.blocks[0].text, "hello");
    assert_string_equal(reply.stop_detail, "");
    assert_string_equal(reply.request_id, "");
    assert_int_equal(reply.attempts, 1);
    pinfold_model_reply_done(&reply);
    assert_ptr_equal(pinfold_model_ref(model), model);
    pinfold_model_unref(model);
    assert_int_equal(own.freed, 0);
    pinfold_model_unref(model);
    assert_int_equal(own.freed, 1);
    pinfold_model_unref(NULL);
    pinfold_message_done(&hello);
}

static void a_model_that_breaks_its_contract_is_an_error(void **state)
{
    struct own own = { .mood = FAIL };
    struct pinfold_model *model = own_model(&own);
    struct pinfold_message hello = user("hello");
    struct pinfold_model_request request = PINFOLD_MODEL_REQUEST_INIT;
    struct pinfold_model_reply reply;
    struct pinfold_error err;

    (void)state;
    request.messages = &hello;
    request.message_count = 1;
    assert_int_equal(pinfold_model_converse(model, &request, &reply, NULL, &err),
                     -PINFOLD_EBACKEND);
    assert_string_equal(err.msg, "no");
    own.mood = NO_STOP;
    assert_int_equal(pinfold_model_converse(model, &request, &reply, NULL, &err),
                     -PINFOLD_EBACKEND);
    assert_non_null(strstr(err.msg, "model parrot: its reply gives no reason to stop"));
    own.mood = NO_TEXT;
    assert_int_equal(pinfold_model_converse(model, &request, &reply, NULL, &err),
                     -PINFOLD_EBACKEND);
    assert_non_null(strstr(err.msg, "block 0 of its reply has no text"));
    pinfold_model_unref(model);
    pinfold_message_done(&hello);
}

static void a_table_that_cannot_be_one_is_refused(void **state)
{
    struct pinfold_model_ops bad = own_ops;
    struct own own = { 0 };
    struct pinfold_model *model = NULL;
    struct pinfold_error err;

    (void)state;
    bad.size--;
    assert_int_equal(pinfold_model_new(&bad, &own, "x", &model, &err), -PINFOLD_EVALUE);
    bad = own_ops;
    bad.converse = NULL;
    assert_int_equal(pinfold_model_new(&bad, &own, "x", &model, &err), -PINFOLD_EVALUE);
    bad = own_ops;
    bad.provider = NULL;
    assert_int_equal(pinfold_model_new(&bad, &own, "x", &model, &err), -PINFOLD_EVALUE);
    assert_int_equal(own.freed, 0);
    assert_null(model);
}

static void messages_hold_what_was_put_in(void **state)
{
    struct pinfold_message message = { .role = PINFOLD_ROLE_ASSISTANT }, copy;

    (void)state;
    assert_int_equal(pinfold_message_add_text(&message, "a\0b\xff", 4, NULL), 0);
    assert_int_equal(pinfold_message_add_reasoning(&message, "hm", 2, "{\"s\":1}", NULL), 0);
    assert_int_equal(pinfold_message_add_tool_use(&message, "1", "cat", "{\"a\":1}", 7, NULL), 0);
    assert_int_equal(pinfold_message_add_tool_use(&message, "2", "cat", "{\"a\":", 5, NULL), 0);
    assert_int_equal(pinfold_message_add_tool_use(&message, "3", "cat", "[1]", 3, NULL), 0);
    assert_int_equal(pinfold_message_copy(&copy, &message, NULL), 0);
    pinfold_message_done(&message);
    assert_int_equal(message.count, 0);
    assert_int_equal(copy.count, 5);
    assert_int_equal(copy.role, PINFOLD_ROLE_ASSISTANT);
    assert_int_equal(copy.blocks[0].text_len, 6);
    assert_memory_equal(copy.blocks[0].text, "a\0b\xef\xbf\xbd", 7);
    assert_string_equal(copy.blocks[1].opaque, "{\"s\":1}");
    assert_true(copy.blocks[2].input_valid);
    assert_string_equal(copy.blocks[2].name, "cat");
    assert_string_equal(copy.blocks[2].id, "1");
    assert_false(copy.blocks[3].input_valid);
    assert_string_equal(copy.blocks[3].text, "{\"a\":");
    assert_false(copy.blocks[4].input_valid);
    pinfold_message_done(&copy);
}

static void calls_without_an_id_or_a_name_are_refused(void **state)
{
    struct pinfold_message message = { .role = PINFOLD_ROLE_ASSISTANT };
    struct pinfold_error err;

    (void)state;
    assert_int_equal(pinfold_message_add_tool_use(&message, "", "cat", "{}", 2, &err),
                     -PINFOLD_EVALUE);
    assert_int_equal(pinfold_message_add_tool_use(&message, "1", "", "{}", 2, &err),
                     -PINFOLD_EVALUE);
    assert_int_equal(pinfold_message_add_tool_use(&message, "1", "c\xff", "{}", 2, &err),
                     -PINFOLD_EVALUE);
    assert_string_equal(err.msg, "message: the name of a tool call is not UTF-8");
    assert_int_equal(pinfold_message_add_tool_result(&message, NULL, "x", 1, false, &err),
                     -PINFOLD_EVALUE);
    assert_int_equal(message.count, 0);
    pinfold_message_done(&message);
}

/* ---- what makes no sense is said before anything is sent ---- */

/* Asks with a request, and expects that the model is never reached. */
static void refused(const struct pinfold_model_request *request, const char *why)
{
    struct own own = { 0 };
    struct pinfold_model *model = own_model(&own);
    struct pinfold_model_reply reply;
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    uint64_t tokens;

    assert_int_equal(pinfold_model_converse(model, request, &reply, NULL, &err), -PINFOLD_EVALUE);
    if (!strstr(err.msg, why))
        fail_msg("\"%s\" does not say \"%s\"", err.msg, why);
    assert_int_equal(pinfold_model_count_tokens(model, request, &tokens, NULL, NULL),
                     -PINFOLD_EVALUE);
    assert_int_equal(own.asked, 0);
    pinfold_model_unref(model);
}

static void settings_that_cannot_be_are_refused(void **state)
{
    struct pinfold_message hello = user("hello");
    struct pinfold_model_request request = PINFOLD_MODEL_REQUEST_INIT;
    const char *const empty[] = { "", NULL };
    const double hot = 2.5, none = __builtin_nan("");

    (void)state;
    refused(&request, "there are no messages");
    request.messages = &hello;
    request.message_count = 1;
    request.temperature = &hot;
    refused(&request, "temperature is 2.5, not 0 to 2");
    request.temperature = &none;
    refused(&request, "temperature is nan");
    request.temperature = NULL;
    request.stop_sequences = empty;
    refused(&request, "a stop sequence is empty");
    request.stop_sequences = NULL;
    request.system = "\xc3";
    refused(&request, "the system prompt is not UTF-8");
    request.system = NULL;
    request.size = 1;
    refused(&request, "size is 1");
    pinfold_message_done(&hello);
}

static void tools_that_cannot_be_are_refused(void **state)
{
    static const struct {
        struct pinfold_tool_spec tools[2];
        const char *why;
    } cases[] = {
        { { { .name = "" }, { .name = "ok" } }, "the name of tool 0" },
        { { { .name = "ok" }, { .name = "a b" } }, "the name of tool 1, \"a b\"" },
        { { { .name = "ok" }, { .name = "ok" } }, "there are two tools \"ok\"" },
        { { { .name = "ok", .schema = "[]" }, { .name = "b" } }, "the schema of tool \"ok\"" },
        { { { .name = "ok", .schema = "{" }, { .name = "b" } }, "the schema of tool \"ok\"" },
        { { { .name = "ok", .description = "\xff" }, { .name = "b" } }, "the description of" },
    };
    struct pinfold_message hello = user("hello");
    struct pinfold_model_request request = PINFOLD_MODEL_REQUEST_INIT;

    (void)state;
    request.messages = &hello;
    request.message_count = 1;
    request.tool_count = 2;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        request.tools = cases[i].tools;
        refused(&request, cases[i].why);
    }
    pinfold_message_done(&hello);
}

static void calls_and_results_must_match(void **state)
{
    struct pinfold_message talk[3] = { user("go"),
                                       { .role = PINFOLD_ROLE_ASSISTANT },
                                       { .role = PINFOLD_ROLE_USER } };
    struct pinfold_model_request request = PINFOLD_MODEL_REQUEST_INIT;

    (void)state;
    request.messages = talk;
    request.message_count = 3;
    pinfold_message_add_tool_use(&talk[1], "a", "cat", "{}", 2, NULL);
    pinfold_message_add_text(&talk[2], "well?", 5, NULL);
    refused(&request, "the call \"a\" of message 1 has no result in the message after it");
    pinfold_message_add_tool_result(&talk[2], "b", "x", 1, false, NULL);
    refused(&request, "the call \"a\" of message 1 has no result");
    pinfold_message_add_tool_result(&talk[2], "a", "x", 1, false, NULL);
    refused(&request, "the result \"b\" of message 2 has no call in the message before it");
    talk[2].blocks[1].id[0] = 'a';
    refused(&request, "the call \"a\" of message 1 has more than one result");
    for (int i = 0; i < 3; i++)
        pinfold_message_done(&talk[i]);
}

static void blocks_must_stand_with_their_role(void **state)
{
    struct pinfold_message message = { .role = PINFOLD_ROLE_USER };
    struct pinfold_model_request request = PINFOLD_MODEL_REQUEST_INIT;

    (void)state;
    request.messages = &message;
    request.message_count = 1;
    pinfold_message_add_tool_use(&message, "a", "cat", "{}", 2, NULL);
    refused(&request, "block 0 of message 0 is of an assistant, in a message of the user");
    message.blocks[0].kind = PINFOLD_BLOCK_TOOL_RESULT;
    message.role = PINFOLD_ROLE_ASSISTANT;
    refused(&request, "is the result of a tool, in a message of the assistant");
    message.blocks[0].kind = 77;
    refused(&request, "is of no known kind");
    message.role = 5;
    refused(&request, "message 0 has no known role");
    pinfold_message_done(&message);
}

static void tokens_are_estimated_from_characters(void **state)
{
    struct own own = { 0 };
    struct pinfold_model *model = own_model(&own);
    struct pinfold_message talk[] = { user("12345678"), /* 2 */
                                      { .role = PINFOLD_ROLE_ASSISTANT },
                                      { .role = PINFOLD_ROLE_USER } };
    static const struct pinfold_tool_spec tool = { "read", "reads it", "{\"a\":1}" }; /* 1+2+4 */
    struct pinfold_model_request request = PINFOLD_MODEL_REQUEST_INIT;
    uint64_t tokens = 0;

    (void)state;
    pinfold_message_add_tool_use(&talk[1], "a", "read", "{\"b\":22}", 8, NULL); /* 1+4 */
    pinfold_message_add_tool_result(&talk[2], "a", "\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4", 10,
                                    false, NULL); /* 5 characters: 2 */
    request.system = "12345";                     /* 2 */
    request.messages = talk;
    request.message_count = 3;
    request.tools = &tool;
    request.tool_count = 1;
    assert_int_equal(pinfold_model_count_tokens(model, &request, &tokens, NULL, NULL), 0);
    assert_int_equal(tokens, 2 + 2 + 5 + 2 + 7);
    for (int i = 0; i < 3; i++)
        pinfold_message_done(&talk[i]);
    pinfold_model_unref(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_application_brings_a_model_of_its_own),
        cmocka_unit_test(a_model_that_breaks_its_contract_is_an_error),
        cmocka_unit_test(a_table_that_cannot_be_one_is_refused),
        cmocka_unit_test(messages_hold_what_was_put_in),
        cmocka_unit_test(calls_without_an_id_or_a_name_are_refused),
        cmocka_unit_test(settings_that_cannot_be_are_refused),
        cmocka_unit_test(tools_that_cannot_be_are_refused),
        cmocka_unit_test(calls_and_results_must_match),
        cmocka_unit_test(blocks_must_stand_with_their_role),
        cmocka_unit_test(tokens_are_estimated_from_characters),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
