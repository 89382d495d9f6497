/* SPDX-License-Identifier: Apache-2.0 */
/* The model that says what a file tells it to. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include <pinfold/model.h>

#include "agent/talk.h"
#include "tempdir.h"

static struct pinfold_model *script(const char *json)
{
    struct pinfold_model *model = NULL;
    struct pinfold_error err = PINFOLD_ERROR_INIT;

    if (pinfold_model_scripted_from_memory(json, strlen(json), &model, &err) < 0)
        fail_msg("%s", err.msg);
    return model;
}

static void a_script_is_played_turn_by_turn(void **state)
{
    struct pinfold_model *model = script(
            "{\"name\": \"demo\", \"turns\": ["
            " {\"reply\": [{\"reasoning\": \"hm\", \"opaque\": \"sig\"}, \"Looking.\","
            "   {\"tool\": \"cat\", \"input\": {\"path\": \"a\"}, \"id\": \"c1\"},"
            "   {\"tool\": \"ls\", \"id\": \"c2\"}],"
            "  \"usage\": {\"input\": 10, \"output\": 5, \"cache_read\": 2, \"cache_write\": 1}},"
            " {\"expect\": {\"results\": [{\"id\": \"c1\", \"contains\": \"hello\"},"
            "                              {\"error\": true}]},"
            "  \"reply\": \"Done.\"}]}");
    struct pinfold_message talk[3] = { user("go") };
    struct pinfold_model_reply reply, last;
    static struct ear ear;

    (void)state;
    assert_string_equal(pinfold_model_name(model), "demo");
    assert_string_equal(pinfold_model_provider(model), "scripted");
    assert_int_equal(ask(model, talk, 1, &ear, &reply, NULL), 0);
    assert_string_equal(ear.heard, "R0(hm)T1(Looking.)S2(c1 cat)I2({\"path\":\"a\"})"
                                   "C2(c1 cat {\"path\":\"a\"} valid)S3(c2 ls)C3(c2 ls {} valid)");
    assert_int_equal(reply.stop, PINFOLD_STOP_TOOL_USE);
    assert_int_equal(reply.message.count, 4);
    assert_string_equal(reply.message.blocks[0].opaque, "sig");
    assert_true(reply.usage.known);
    assert_int_equal(reply.usage.input, 10);
    assert_int_equal(reply.usage.output, 5);
    assert_int_equal(reply.usage.cache_read, 2);
    assert_int_equal(reply.usage.cache_write, 1);
    talk[1] = reply.message;
    talk[2].role = PINFOLD_ROLE_USER;
    pinfold_message_add_tool_result(&talk[2], "c1", "oh hello", 8, false, NULL);
    pinfold_message_add_tool_result(&talk[2], "c2", "no such", 7, true, NULL);
    assert_int_equal(ask(model, talk, 3, NULL, &last, NULL), 0);
    assert_string_equal(last.message.blocks[0].text, "Done.");
    assert_int_equal(last.stop, PINFOLD_STOP_END);
    assert_false(last.usage.known);
    pinfold_model_reply_done(&last);
    pinfold_model_reply_done(&reply);
    pinfold_message_done(&talk[0]);
    pinfold_message_done(&talk[2]);
    pinfold_model_unref(model);
}

static void texts_come_in_chunks_of_whole_characters(void **state)
{
    struct pinfold_model *model =
            script("{\"turns\": [{\"chunk\": 2, \"reply\": [\"a\xc3\xa4\xe2\x82\xac!x\","
                   "{\"tool\": \"t\", \"id\": \"i\", \"input\": {\"k\": 1}}]}]}");
    struct pinfold_message hello = user("hello");
    struct pinfold_model_reply reply;
    static struct ear ear;

    (void)state;
    assert_int_equal(ask(model, &hello, 1, &ear, &reply, NULL), 0);
    assert_string_equal(ear.heard, "T0(a\xc3\xa4)T0(\xe2\x82\xac!)T0(x)S1(i t)I1({\")I1(k\")I1(:1)"
                                   "I1(})C1(i t {\"k\":1} valid)");
    pinfold_model_reply_done(&reply);
    pinfold_message_done(&hello);
    pinfold_model_unref(model);
}

static void what_was_not_expected_is_said(void **state)
{
    static const struct {
        const char *expect, *why;
    } cases[] = {
        { "{\"last\": \"bye\"}", "the last message does not hold \"bye\"" },
        { "{\"last\": [\"hel\", \"bye\"]}", "the last message does not hold \"bye\"" },
        { "{\"first\": \"bye\"}", "the first message does not hold \"bye\"" },
        { "{\"system\": \"x\"}", "the system prompt does not hold \"x\"" },
        { "{\"tools\": [\"cat\"]}", "the tool \"cat\" is not offered" },
        { "{\"messages\": 2}", "there are 1 messages, not 2" },
        { "{\"results\": [{}]}", "there is no result 0 in the last message" },
    };
    struct pinfold_message hello = user("hello");
    struct pinfold_model_reply reply;
    struct pinfold_error err;

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char json[200];
        struct pinfold_model *model;
        snprintf(json, sizeof(json), "{\"turns\": [{\"expect\": %s, \"reply\": \"x\"}]}",
                 cases[i].expect);
        model = script(json);
        assert_int_equal(ask(model, &hello, 1, NULL, &reply, &err), -PINFOLD_EBACKEND);
        if (!strstr(err.msg, cases[i].why) || !strstr(err.msg, "turn 1 does not fit"))
            fail_msg("\"%s\" does not say \"%s\"", err.msg, cases[i].why);
        pinfold_model_unref(model);
    }
    pinfold_message_done(&hello);
}

static void a_script_in_any_order_takes_the_turn_that_fits(void **state)
{
    struct pinfold_model *model =
            script("{\"any_order\": true, \"turns\": ["
                   "{\"expect\": {\"last\": \"one\"}, \"reply\": \"1\"},"
                   "{\"expect\": {\"last\": \"two\"}, \"reply\": \"2\", \"times\": 2}]}");
    struct pinfold_message one = user("one"), two = user("two");
    struct pinfold_model_reply reply;
    struct pinfold_error err;

    (void)state;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(ask(model, &two, 1, NULL, &reply, NULL), 0);
        assert_string_equal(reply.message.blocks[0].text, "2");
        pinfold_model_reply_done(&reply);
    }
    assert_int_equal(ask(model, &two, 1, NULL, &reply, &err), -PINFOLD_EBACKEND);
    assert_non_null(strstr(err.msg, "no turn that is left fits"));
    assert_int_equal(ask(model, &one, 1, NULL, &reply, NULL), 0);
    pinfold_model_reply_done(&reply);
    assert_int_equal(ask(model, &one, 1, NULL, &reply, &err), -PINFOLD_EBACKEND);
    assert_string_equal(err.msg,
                        "script in memory: its turns are used up (2), and the conversation "
                        "has 1 messages");
    pinfold_message_done(&one);
    pinfold_message_done(&two);
    pinfold_model_unref(model);
}

static void a_turn_may_go_on_for_ever(void **state)
{
    struct pinfold_model *model = script("{\"turns\": [{\"reply\": \"x\", \"times\": 0}]}");
    struct pinfold_message hello = user("hello");
    struct pinfold_model_reply reply;

    (void)state;
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(ask(model, &hello, 1, NULL, &reply, NULL), 0);
        pinfold_model_reply_done(&reply);
    }
    pinfold_message_done(&hello);
    pinfold_model_unref(model);
}

static void errors_are_played_too(void **state)
{
    struct pinfold_model *model = script(
            "{\"turns\": ["
            "{\"error\": {\"message\": \"overloaded\", \"status\": 529, \"retryable\": true}},"
            "{\"reply\": \"half\", \"error\": {\"message\": \"cut\"}},"
            "{\"error\": {\"message\": \"bad key\", \"status\": 401}},"
            "{\"error\": {\"message\": \"too long\", \"status\": 400}}]}");
    struct pinfold_message hello = user("hello");
    struct pinfold_model_reply reply;
    struct pinfold_error err;
    static struct ear ear;

    (void)state;
    assert_int_equal(ask(model, &hello, 1, NULL, &reply, &err), -PINFOLD_EBACKEND);
    assert_int_equal(err.http_status, 529);
    assert_int_equal(err.retryable, 1);
    assert_string_equal(err.msg, "script in memory: overloaded");
    assert_int_equal(ask(model, &hello, 1, &ear, &reply, &err), -PINFOLD_EBACKEND);
    assert_string_equal(ear.heard, "T0(half)");
    assert_int_equal(err.retryable, 0);
    assert_int_equal(ask(model, &hello, 1, NULL, &reply, &err), -PINFOLD_EOS);
    assert_int_equal(err.sys_errno, EACCES);
    assert_int_equal(ask(model, &hello, 1, NULL, &reply, &err), -PINFOLD_EVALUE);
    pinfold_message_done(&hello);
    pinfold_model_unref(model);
}

static void broken_input_and_every_reason_to_stop_can_be_played(void **state)
{
    static const char *const words[] = { "end",     "tool_use",      "length",
                                         "refusal", "stop_sequence", "pause" };
    struct pinfold_message hello = user("hello");
    struct pinfold_model_reply reply;

    (void)state;
    for (int i = 0; i < 6; i++) {
        char json[200];
        struct pinfold_model *model;
        snprintf(json, sizeof(json),
                 "{\"turns\": [{\"stop\": \"%s\", \"detail\": \"so\", \"reply\": ["
                 "{\"tool\": \"no such tool!\", \"raw_input\": \"{\\\"a\\\": \"}]}]}",
                 words[i]);
        model = script(json);
        assert_int_equal(ask(model, &hello, 1, NULL, &reply, NULL), 0);
        assert_int_equal(reply.stop, PINFOLD_STOP_END + i);
        assert_string_equal(reply.stop_detail, "so");
        assert_string_equal(reply.message.blocks[0].name, "no such tool!");
        assert_string_equal(reply.message.blocks[0].text, "{\"a\": ");
        assert_false(reply.message.blocks[0].input_valid);
        assert_true(strlen(reply.message.blocks[0].id) > 20);
        pinfold_model_reply_done(&reply);
        pinfold_model_unref(model);
    }
    pinfold_message_done(&hello);
}

static void a_call_that_was_cut_before_its_input_is_not_valid(void **state)
{
    struct pinfold_model *model =
            script("{\"turns\": [{\"stop\": \"length\", \"reply\": [{\"tool\": \"t\"}]}]}");
    struct pinfold_message hello = user("hello");
    struct pinfold_model_reply reply;

    (void)state;
    assert_int_equal(ask(model, &hello, 1, NULL, &reply, NULL), 0);
    assert_false(reply.message.blocks[0].input_valid);
    pinfold_model_reply_done(&reply);
    pinfold_message_done(&hello);
    pinfold_model_unref(model);
}

static void a_listener_can_stop_a_reply_at_any_event(void **state)
{
    struct pinfold_message hello = user("hello");
    struct pinfold_model_reply reply;
    struct pinfold_error err;

    (void)state;
    for (size_t after = 1; after <= 9; after++) {
        for (int fire = 0; fire < 2; fire++) {
            static struct ear ear;
            struct pinfold_model *model = script("{\"turns\": [{\"chunk\": 1, \"reply\": [\"abcd\","
                                                 "{\"tool\": \"t\", \"id\": \"i\"}, {\"tool\": "
                                                 "\"u\", \"id\": \"j\"}, \"e\"]}]}");
            ear = (struct ear){ .stop_after = after };
            if (fire)
                assert_int_equal(pinfold_cancel_new(&ear.fire, NULL), 0);
            int r = ask(model, &hello, 1, &ear, &reply, &err);
            /* A token that fires with the last event finds nothing left to stop. */
            if (r == 0)
                pinfold_model_reply_done(&reply);
            else
                assert_int_equal(r, -PINFOLD_ECANCELLED);
            assert_true(r < 0 || (fire && after == 9));
            pinfold_cancel_free(ear.fire);
            pinfold_model_unref(model);
        }
    }
    pinfold_message_done(&hello);
}

static void a_script_that_is_wrong_is_refused_with_its_place(void **state)
{
    static const struct {
        const char *json, *why;
    } cases[] = {
        { "", "line 1, column 0: no JSON" },
        { "[]", "is no JSON object" },
        { "{\"turns\": [", "no JSON" },
        { "{\"turns\": []}", "there are no \"turns\"" },
        { "{\"turns\": 3}", "\"turns\" is no list" },
        { "{\"turn\": []}", "there is no such member: \"turn\"" },
        { "{\"turns\": [{}]}", "turn 1: has neither \"reply\" nor \"error\"" },
        { "{\"turns\": [3]}", "turn 1: is no object" },
        { "{\"turns\": [{\"reply\": \"a\"}, {\"reply\": 3}]}", "turn 2: \"reply\" is no string" },
        { "{\"turns\": [{\"reply\": [{}]}]}", "turn 1: reply[0]: has none of \"text\"" },
        { "{\"turns\": [{\"reply\": [\"a\", {\"text\": 1}]}]}",
          "turn 1: reply[1]: \"text\" is no string" },
        { "{\"turns\": [{\"reply\": [{\"tool\": \"\"}]}]}", "\"tool\" is empty" },
        { "{\"turns\": [{\"reply\": [{\"tool\": \"x\", \"input\": 1}]}]}",
          "\"input\" is no object" },
        { "{\"turns\": [{\"reply\": [{\"tool\": \"x\", \"input\": {}, \"raw_input\": \"\"}]}]}",
          "has both" },
        { "{\"turns\": [{\"reply\": \"\", \"stop\": \"bored\"}]}", "\"bored\"" },
        { "{\"turns\": [{\"reply\": \"\", \"times\": -1}]}", "\"times\" is no whole number" },
        { "{\"turns\": [{\"reply\": \"\", \"usage\": {\"in\": 1}}]}",
          "turn 1: usage: there is no such member: \"in\"" },
        { "{\"turns\": [{\"reply\": \"\", \"expect\": {\"results\": [1]}}]}",
          "turn 1: expect.results[0]: is no object" },
        { "{\"turns\": [{\"error\": {}}]}", "turn 1: error: has no \"message\"" },
        { "{\"turns\": [{\"reply\": \"a\", \"reply\": \"b\"}]}", "no JSON: duplicate" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct pinfold_model *model = NULL;
        struct pinfold_error err = PINFOLD_ERROR_INIT;
        int r = pinfold_model_scripted_from_memory(cases[i].json, strlen(cases[i].json), &model,
                                                   &err);
        assert_int_equal(r, -PINFOLD_EVALUE);
        assert_null(model);
        if (!strstr(err.msg, cases[i].why))
            fail_msg("\"%s\" does not say \"%s\"", err.msg, cases[i].why);
    }
}

static void scripts_are_read_from_files(void **state)
{
    struct pinfold_model *model;
    struct pinfold_error err;
    char dir[200], path[300];
    FILE *file;

    (void)state;
    assert_non_null(test_tempdir("model_script", dir, sizeof(dir)));
    snprintf(path, sizeof(path), "%s/script.json", dir);
    assert_int_equal(pinfold_model_scripted_new(path, &model, &err), -PINFOLD_EOS);
    assert_int_equal(err.sys_errno, ENOENT);
    assert_non_null(strstr(err.msg, "script.json"));
    file = fopen(path, "we");
    assert_non_null(file);
    fputs("{\"turns\": [{\"reply\": \"hi\"}]}", file);
    fclose(file);
    assert_int_equal(pinfold_model_scripted_new(path, &model, NULL), 0);
    assert_string_equal(pinfold_model_name(model), path);
    pinfold_model_unref(model);
    assert_int_equal(pinfold_model_scripted_new(dir, &model, &err), -PINFOLD_EOS);
    assert_int_equal(err.sys_errno, EISDIR);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(dir), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_script_is_played_turn_by_turn),
        cmocka_unit_test(texts_come_in_chunks_of_whole_characters),
        cmocka_unit_test(what_was_not_expected_is_said),
        cmocka_unit_test(a_script_in_any_order_takes_the_turn_that_fits),
        cmocka_unit_test(a_turn_may_go_on_for_ever),
        cmocka_unit_test(errors_are_played_too),
        cmocka_unit_test(broken_input_and_every_reason_to_stop_can_be_played),
        cmocka_unit_test(a_call_that_was_cut_before_its_input_is_not_valid),
        cmocka_unit_test(a_listener_can_stop_a_reply_at_any_event),
        cmocka_unit_test(a_script_that_is_wrong_is_refused_with_its_place),
        cmocka_unit_test(scripts_are_read_from_files),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
