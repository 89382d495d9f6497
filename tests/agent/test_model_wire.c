/* SPDX-License-Identifier: Apache-2.0 */
/* What three APIs say, as a fake of them says it, and what they are told. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "agent/fake_models.h"

/* Ask, and expect an answer. */
static void asked(struct pinfold_model *model, const struct pinfold_message *messages, size_t count,
                  struct ear *ear, struct pinfold_model_reply *reply)
{
    struct pinfold_error err = PINFOLD_ERROR_INIT;

    if (ask(model, messages, count, ear, reply, &err) < 0)
        fail_msg("%s: %s", pinfold_model_provider(model), err.msg);
}

/* ---- replies ---- */

static const struct {
    const char *model, *anthropic, *openai, *bedrock; /* NULL: as the one before */
} replies[] = {
    { "text", "T(Hello, w\xc3\xb6rld! \xf0\x9f\x98\x80 Bye.) end", NULL, NULL },
    { "tool",
      "T(I look.) C(call_1 read_file {\"path\": \"a b/\xc3\xbc.txt\", \"n\": 1.5}) tool_use", NULL,
      NULL },
    { "parallel",
      "C(call_1 read_file {\"path\": \"a\"}) C(call_2 read_file {\"path\": \"b\"}) "
      "C(call_3 list_dir {}) tool_use",
      NULL, NULL },
    { "refusal", "T(I cannot) refusal", NULL, NULL },
    { "length", "T(It goes on and) length", NULL, NULL },
    { "cut_tool", "B(call_1 read_file {\"path\": \"a) length", NULL, NULL },
    { "broken_tool", "B(call_1 read_file {\"path\": oops}) tool_use", NULL, NULL },
    { "reasoning", "R(Let me see.) T(42) end", NULL, NULL },
    { "redacted", "R() T(42) end", "T(42) end", "R() T(42) end" },
    { "sequence", "T(one, two, ) stop_sequence", "T(one, two, ) end",
      "T(one, two, ) stop_sequence" },
    { "pause", "T(Searching) pause", "T(Searching) end", NULL },
    { "empty", "end", NULL, NULL },
};

static const char *expected(size_t i, int provider)
{
    const char *const by[] = { replies[i].anthropic, replies[i].openai, replies[i].bedrock };

    while (!by[provider])
        provider--;
    return by[provider];
}

static void check_usage(const struct pinfold_model_reply *reply, int provider)
{
    assert_true(reply->usage.known);
    assert_int_equal(reply->usage.input, 25);
    assert_int_equal(reply->usage.output, 15);
    assert_int_equal(reply->usage.cache_read, 7);
    assert_int_equal(reply->usage.cache_write, provider == OPENAI ? 0 : 3);
}

static void read_all_replies(const char *switches)
{
    for (int provider = 0; provider < PROVIDERS; provider++)
        for (size_t i = 0; i < sizeof(replies) / sizeof(replies[0]); i++) {
            struct pinfold_model *model = model_of(provider, replies[i].model, switches);
            struct pinfold_model_reply reply;

            asked(model, &hello, 1, NULL, &reply);
            if (strcmp(write_down(&reply), expected(i, provider)) != 0)
                fail_msg("%s %s: \"%s\", not \"%s\"", provider_names[provider], replies[i].model,
                         write_down(&reply), expected(i, provider));
            check_usage(&reply, provider);
            assert_int_equal(reply.attempts, 1);
            assert_string_equal(reply.request_id, "req_1");
            pinfold_model_reply_done(&reply);
            pinfold_model_unref(model);
        }
}

static void every_kind_of_reply_is_read(void **state)
{
    (void)state;
    read_all_replies("");
}

static void replies_that_come_byte_by_byte_are_the_same(void **state)
{
    (void)state;
    read_all_replies("piece=1,framing=close");
}

static void lines_may_end_in_other_ways(void **state)
{
    (void)state;
    read_all_replies("lines=crlf,piece=7");
    read_all_replies("lines=cr");
}

static void a_large_reply_arrives_whole(void **state)
{
    (void)state;
    for (int provider = 0; provider < PROVIDERS; provider++) {
        struct pinfold_model *model = model_of(provider, "long", "framing=length");
        struct pinfold_model_reply reply;

        asked(model, &hello, 1, NULL, &reply);
        assert_int_equal(reply.message.blocks[0].text_len, 1 << 20);
        for (size_t i = 0; i < 1 << 20; i++)
            if (reply.message.blocks[0].text[i] != "0123456789abcdef"[i % 16])
                fail_msg("byte %zu is wrong", i);
        pinfold_model_reply_done(&reply);
        pinfold_model_unref(model);
    }
}

static void events_tell_a_reply_while_it_arrives(void **state)
{
    (void)state;
    for (int provider = 0; provider < PROVIDERS; provider++) {
        struct pinfold_model *model = model_of(provider, "tool", "");
        struct pinfold_model_reply reply;
        static struct ear ear;

        ear = (struct ear){ .len = 0 };
        asked(model, &hello, 1, &ear, &reply);
        /* OpenAI has no end of a call but that of the reply. */
        assert_string_equal(
                ear.heard, "T0(I loo)T0(k.)S1(call_1 read_file)I1({\"pat)I1(h\": \")I1(a b/\xc3"
                           "\xbc)I1(.txt\")I1(, \"n\")I1(: 1.5)I1(})C1(call_1 read_file {\"path\": "
                           "\"a b/\xc3\xbc.txt\", \"n\": 1.5} valid)");
        pinfold_model_reply_done(&reply);
        pinfold_model_unref(model);
    }
}

static void the_provider_s_own_words_are_kept(void **state)
{
    static const char *const words[][2] = {
        { "sequence", "three" },         { "refusal", "It could do harm." },
        { "sequence", "stop" },          { "refusal", "content_filter" },
        { "sequence", "stop_sequence" }, { "refusal", "guardrail_intervened" }
    };

    (void)state;
    for (int i = 0; i < 6; i++) {
        struct pinfold_model *model = model_of(i / 2, words[i][0], "");
        struct pinfold_model_reply reply;

        asked(model, &hello, 1, NULL, &reply);
        assert_string_equal(reply.stop_detail, words[i][1]);
        pinfold_model_reply_done(&reply);
        pinfold_model_unref(model);
    }
}

/* ---- servers that speak almost like OpenAI ---- */

static void servers_that_are_almost_openai_s_are_understood(void **state)
{
    static const char *const switches[] = {
        "index=none,whole=1",   /* Ollama before 0.4.7 */
        "index=zero,whole=1",   /* Ollama since */
        "index=none",           /* sglang */
        "index=zero,ids=every", /* all pieces name their call */
        "ids=every",
        "args=object",
        "args=object,index=none",
        "finish=stop", /* and calls all the same */
        "done=none",
        "comments=1",
        "done=none,framing=close",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(switches) / sizeof(switches[0]); i++) {
        struct pinfold_model *model = model_of(OPENAI, "parallel", switches[i]);
        struct pinfold_model_reply reply;
        char plain[300];
        size_t len = 0;

        asked(model, &hello, 1, NULL, &reply);
        /* Whether there are spaces in the JSON does not matter here. */
        for (const char *at = write_down(&reply); *at; at++)
            if (at[0] != ' ' || at[-1] != ':')
                plain[len++] = *at;
        plain[len] = '\0';
        if (strcmp(plain,
                   "C(call_1 read_file {\"path\":\"a\"}) C(call_2 read_file {\"path\":\"b\"})"
                   " C(call_3 list_dir {}) tool_use") != 0)
            fail_msg("%s: %s", switches[i], plain);
        pinfold_model_reply_done(&reply);
        pinfold_model_unref(model);
    }
}

static void calls_without_an_id_get_one(void **state)
{
    static const char *const switches[] = { "ids=none", "ids=none,index=zero",
                                            "ids=none,index=none,whole=1" };

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct pinfold_model *model = model_of(OPENAI, "parallel", switches[i]);
        struct pinfold_model_reply reply;
        const struct pinfold_block *blocks;

        asked(model, &hello, 1, NULL, &reply);
        blocks = reply.message.blocks;
        assert_int_equal(reply.message.count, 3);
        assert_string_equal(blocks[0].text, "{\"path\": \"a\"}");
        assert_string_equal(blocks[1].text, "{\"path\": \"b\"}");
        assert_string_equal(blocks[2].text, "{}");
        assert_string_not_equal(blocks[0].id, blocks[1].id);
        assert_string_not_equal(blocks[1].id, blocks[2].id);
        pinfold_model_reply_done(&reply);
        pinfold_model_unref(model);
    }
}

static void a_server_without_counts_has_none(void **state)
{
    (void)state;
    for (int provider = OPENAI; provider < PROVIDERS; provider++) {
        struct pinfold_model *model = model_of(provider, "text", "usage=none");
        struct pinfold_model_reply reply;

        asked(model, &hello, 1, NULL, &reply);
        assert_false(reply.usage.known);
        pinfold_model_reply_done(&reply);
        pinfold_model_unref(model);
    }
}

static void a_server_that_does_not_stream_is_understood(void **state)
{
    struct pinfold_model *model = model_of(OPENAI, "tool", "json=1");
    struct pinfold_model_reply reply;

    (void)state;
    asked(model, &hello, 1, NULL, &reply);
    assert_string_equal(write_down(&reply), expected(1, OPENAI));
    check_usage(&reply, OPENAI);
    pinfold_model_reply_done(&reply);
    pinfold_model_unref(model);
}

static void what_a_server_does_not_know_is_left_out(void **state)
{
    static const char *const members[] = { "stream_options", "max_tokens" };

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        const char *token = new_token();
        char switches[100], url[500];
        struct pinfold_model_options options;
        struct pinfold_model *model;
        struct pinfold_model_reply reply;

        snprintf(switches, sizeof(switches), "id=%s,unknown=%s", token, members[i]);
        options = options_for(OPENAI, "text", switches, url);
        options.max_tokens = 100;
        options.attempts = 1; /* it is no other attempt */
        model = make_model(OPENAI, &options);
        for (size_t round = 0; round < 2; round++) {
            asked(model, &hello, 1, NULL, &reply);
            pinfold_model_reply_done(&reply);
            assert_int_equal(count_kept(token), 2 + round); /* learned for good */
        }
        pinfold_model_unref(model);
    }
}

static void other_names_of_thoughts_are_known(void **state)
{
    struct pinfold_model *model = model_of(OPENAI, "reasoning", "thoughts=reasoning");
    struct pinfold_model_reply reply;

    (void)state;
    asked(model, &hello, 1, NULL, &reply);
    assert_string_equal(write_down(&reply), "R(Let me see.) T(42) end");
    pinfold_model_reply_done(&reply);
    pinfold_model_unref(model);
}

static void a_server_of_one_s_own_needs_no_key(void **state)
{
    char url[500];
    struct pinfold_model_options options = options_for(OPENAI, "text", "key=none", url);
    struct pinfold_model *model;
    struct pinfold_model_reply reply;

    (void)state;
    options.api_key = "";
    model = make_model(OPENAI, &options);
    asked(model, &hello, 1, NULL, &reply);
    pinfold_model_reply_done(&reply);
    pinfold_model_unref(model);
}

/* ---- requests ---- */

static const struct pinfold_tool_spec tools[] = {
    { "read_file", "Read a file.",
      "{\"type\": \"object\", \"properties\": {\"path\": {\"type\": \"string\"}}}" },
    { "list_dir", NULL, NULL },
};

/* Calls, results out of order, text with nothing in it, an empty answer, broken input, names that
 * no API takes, two messages of a user, in one conversation. */
static size_t make_talk(struct pinfold_message talk[static 7])
{
    for (size_t i = 0; i < 7; i++)
        talk[i] = (struct pinfold_message){ .role = i % 2 ? PINFOLD_ROLE_ASSISTANT
                                                          : PINFOLD_ROLE_USER };
    talk[6].role = PINFOLD_ROLE_USER;
    pinfold_message_add_text(&talk[0], "go", 2, NULL);
    pinfold_message_add_text(&talk[1], " \n", 2, NULL);
    pinfold_message_add_reasoning(&talk[1], "hm", 2, NULL, NULL);
    pinfold_message_add_tool_use(&talk[1], "call:1/x", "no such tool!", "{\"a\": 1}", 8, NULL);
    pinfold_message_add_tool_use(&talk[1], "call_2", "read_file", "{\"path\": oops", 13, NULL);
    pinfold_message_add_text(&talk[2], "and now?", 8, NULL);
    pinfold_message_add_tool_result(&talk[2], "call_2", "", 0, true, NULL);
    pinfold_message_add_tool_result(&talk[2], "call:1/x", "h\xc3\xa4", 3, false, NULL);
    pinfold_message_add_text(&talk[3], "", 0, NULL);
    pinfold_message_add_text(&talk[4], "anything?", 9, NULL);
    pinfold_message_add_text(&talk[5], "No.", 3, NULL);
    pinfold_message_add_text(&talk[6], "bye", 3, NULL);
    return 7;
}

static void conversations_are_sent_as_each_api_wants_them(void **state)
{
    static const char *const stops[] = { "END", "STOP", NULL };
    const double temperature = 0.5;

    (void)state;
    for (int provider = 0; provider < PROVIDERS; provider++)
        for (int with_tools = 0; with_tools < 2; with_tools++) {
            struct pinfold_model *model = model_of(provider, "text", "");
            struct pinfold_message talk[7];
            struct pinfold_model_request request = PINFOLD_MODEL_REQUEST_INIT;
            struct pinfold_model_reply reply;
            struct pinfold_error err = PINFOLD_ERROR_INIT;

            request.messages = talk;
            request.message_count = make_talk(talk);
            request.system = "Be br\xc3\xad"
                             "ef.";
            request.tools = tools;
            request.tool_count = with_tools ? 2 : 0;
            request.max_tokens = 77;
            request.temperature = &temperature;
            request.stop_sequences = stops;
            /* The fake has read the documentation, and refuses what it does not allow. */
            if (pinfold_model_converse(model, &request, &reply, NULL, &err) < 0)
                fail_msg("%s: %s", provider_names[provider], err.msg);
            pinfold_model_reply_done(&reply);
            for (size_t i = 0; i < 7; i++)
                pinfold_message_done(&talk[i]);
            pinfold_model_unref(model);
        }
}

static void settings_are_sent_by_their_names(void **state)
{
    static const char *const wanted[] = {
        "{\"model\":\"text\",\"max_tokens\":77,\"stream\":true,\"messages\":[{\"role\":\"user\","
        "\"content\":[{\"type\":\"text\",\"text\":\"hello\"}]}],\"system\":\"Brief.\","
        "\"temperature\":0.5,\"thinking\":{\"type\":\"disabled\"}}",
        "{\"model\":\"text\",\"stream\":true,\"messages\":[{\"role\":\"system\",\"content\":"
        "\"Brief.\"},{\"role\":\"user\",\"content\":\"hello\"}],\"stream_options\":"
        "{\"include_usage\":true},\"max_tokens\":77,\"temperature\":0.5,\"stop\":[\"x\"]}",
        "{\"messages\":[{\"role\":\"user\",\"content\":[{\"text\":\"hello\"}]}],\"system\":"
        "[{\"text\":\"Brief.\"}],\"inferenceConfig\":{\"maxTokens\":77,\"temperature\":0.5},"
        "\"additionalModelRequestFields\":{\"a\":1}}",
    };
    static const char *const extra[] = { "{\"thinking\": {\"type\": \"disabled\"}}",
                                         "{\"stop\": [\"x\"]}",
                                         "{\"additionalModelRequestFields\": {\"a\": 1}}" };
    const double temperature = 0.5;

    (void)state;
    for (int provider = 0; provider < PROVIDERS; provider++) {
        const char *token = new_token();
        char switches[50], url[500], *text;
        struct pinfold_model_request request = PINFOLD_MODEL_REQUEST_INIT;
        struct pinfold_model_options options;
        struct pinfold_model *model;
        struct pinfold_model_reply reply;
        json_t *body;

        snprintf(switches, sizeof(switches), "id=%s", token);
        options = options_for(provider, "text", switches, url);
        options.max_tokens = 77;
        options.temperature = &temperature;
        options.extra = extra[provider];
        model = make_model(provider, &options);
        request.system = "Brief.";
        request.messages = &hello;
        request.message_count = 1;
        assert_int_equal(pinfold_model_converse(model, &request, &reply, NULL, NULL), 0);
        body = last_body(token);
        text = json_dumps(body, JSON_COMPACT);
        assert_string_equal(text, wanted[provider]);
        free(text);
        json_decref(body);
        pinfold_model_reply_done(&reply);
        pinfold_model_unref(model);
    }
}

/* What was thought goes back with its signature, to who signed it and to nobody else. */
static void thoughts_go_back_to_who_had_them(void **state)
{
    static const char *const kinds[] = { "reasoning", "redacted" };

    (void)state;
    for (int from = 0; from < PROVIDERS; from++)
        for (int to = 0; to < PROVIDERS; to++)
            for (size_t kind = 0; kind < 2; kind++) {
                const char *token = new_token(), *sign = kind ? "c2VjcmV0" : "c2lnbmVk";
                struct pinfold_model *first = model_of(from, kinds[kind], ""), *second;
                struct pinfold_model_reply reply, last;
                struct pinfold_message talk[3] = { hello };
                char switches[50], *text;
                json_t *body;

                asked(first, &hello, 1, NULL, &reply);
                talk[1] = reply.message;
                talk[2] = user("and?");
                snprintf(switches, sizeof(switches), "id=%s", token);
                second = model_of(to, "text", switches);
                asked(second, talk, 3, NULL, &last);
                body = last_body(token);
                text = json_dumps(body, JSON_COMPACT);
                assert_int_equal(strstr(text, sign) != NULL, from == to && from != OPENAI);
                assert_int_equal(strstr(text, "Let me see.") != NULL,
                                 kind == 0 && from == to && from != OPENAI);
                free(text);
                json_decref(body);
                pinfold_message_done(&talk[2]);
                pinfold_model_reply_done(&last);
                pinfold_model_reply_done(&reply);
                pinfold_model_unref(second);
                pinfold_model_unref(first);
            }
}

static void thoughts_go_back_to_a_server_that_needs_them(void **state)
{
    const char *token = new_token();
    char switches[50], url[500];
    struct pinfold_model_options options;
    struct pinfold_model *model;
    struct pinfold_message talk[3] = { hello, { .role = PINFOLD_ROLE_ASSISTANT }, user("and?") };
    struct pinfold_model_reply reply;
    json_t *body;

    (void)state;
    pinfold_message_add_reasoning(&talk[1], "hm", 2, NULL, NULL);
    pinfold_message_add_text(&talk[1], "yes", 3, NULL);
    snprintf(switches, sizeof(switches), "id=%s", token);
    options = options_for(OPENAI, "text", switches, url);
    options.send_reasoning = true;
    model = make_model(OPENAI, &options);
    asked(model, talk, 3, NULL, &reply);
    body = last_body(token);
    assert_string_equal(
            json_string_value(json_object_get(json_array_get(json_object_get(body, "messages"), 1),
                                              "reasoning_content")),
            "hm");
    json_decref(body);
    pinfold_model_reply_done(&reply);
    pinfold_model_unref(model);
    pinfold_message_done(&talk[1]);
    pinfold_message_done(&talk[2]);
}

static void a_model_of_bedrock_may_be_an_arn(void **state)
{
    struct pinfold_model *model =
            model_of(BEDROCK, "arn:aws:bedrock:us-west-2:123456789012:inference-profile/text", "");
    struct pinfold_model_reply reply;

    (void)state;
    asked(model, &hello, 1, NULL, &reply);
    pinfold_model_reply_done(&reply);
    pinfold_model_unref(model);
}

static void bedrock_takes_a_bearer_token(void **state)
{
    char url[500];
    struct pinfold_model_options options = options_for(BEDROCK, "text", "", url);
    struct pinfold_model *model;
    struct pinfold_model_reply reply;

    (void)state;
    options.access_key = options.secret_key = options.session_token = NULL;
    options.api_key = KEY;
    model = make_model(BEDROCK, &options);
    asked(model, &hello, 1, NULL, &reply);
    pinfold_model_reply_done(&reply);
    pinfold_model_unref(model);
}

static void bedrock_takes_keys_without_a_session(void **state)
{
    char url[500];
    struct pinfold_model_options options = options_for(BEDROCK, "text", "token=none", url);
    struct pinfold_model *model;
    struct pinfold_model_reply reply;

    (void)state;
    options.session_token = NULL;
    model = make_model(BEDROCK, &options);
    asked(model, &hello, 1, NULL, &reply);
    pinfold_model_reply_done(&reply);
    pinfold_model_unref(model);
}

/* ---- many at once ---- */

static void *ask_often(void *ctx)
{
    size_t failures = 0;

    for (int i = 0; i < 5; i++) {
        struct pinfold_model_request request = PINFOLD_MODEL_REQUEST_INIT;
        struct pinfold_model_reply reply;

        request.messages = &hello;
        request.message_count = 1;
        if (pinfold_model_converse(ctx, &request, &reply, NULL, NULL) < 0) {
            failures++;
            continue;
        }
        failures += reply.message.count != 3 || reply.stop != PINFOLD_STOP_TOOL_USE;
        pinfold_model_reply_done(&reply);
    }
    return failures ? ctx : NULL;
}

static void many_threads_may_ask_one_model(void **state)
{
    (void)state;
    for (int provider = 0; provider < PROVIDERS; provider++) {
        struct pinfold_model *model = model_of(provider, "parallel", "");
        pthread_t threads[8];

        for (size_t i = 0; i < 8; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, ask_often, model), 0);
        for (size_t i = 0; i < 8; i++) {
            void *failed;
            assert_int_equal(pthread_join(threads[i], &failed), 0);
            assert_null(failed);
        }
        pinfold_model_unref(model);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_of_reply_is_read),
        cmocka_unit_test(replies_that_come_byte_by_byte_are_the_same),
        cmocka_unit_test(lines_may_end_in_other_ways),
        cmocka_unit_test(a_large_reply_arrives_whole),
        cmocka_unit_test(events_tell_a_reply_while_it_arrives),
        cmocka_unit_test(the_provider_s_own_words_are_kept),
        cmocka_unit_test(servers_that_are_almost_openai_s_are_understood),
        cmocka_unit_test(calls_without_an_id_get_one),
        cmocka_unit_test(a_server_without_counts_has_none),
        cmocka_unit_test(a_server_that_does_not_stream_is_understood),
        cmocka_unit_test(what_a_server_does_not_know_is_left_out),
        cmocka_unit_test(other_names_of_thoughts_are_known),
        cmocka_unit_test(a_server_of_one_s_own_needs_no_key),
        cmocka_unit_test(conversations_are_sent_as_each_api_wants_them),
        cmocka_unit_test(settings_are_sent_by_their_names),
        cmocka_unit_test(thoughts_go_back_to_who_had_them),
        cmocka_unit_test(thoughts_go_back_to_a_server_that_needs_them),
        cmocka_unit_test(a_model_of_bedrock_may_be_an_arn),
        cmocka_unit_test(bedrock_takes_a_bearer_token),
        cmocka_unit_test(bedrock_takes_keys_without_a_session),
        cmocka_unit_test(many_threads_may_ask_one_model),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
