/* SPDX-License-Identifier: Apache-2.0 */
/* The conversation as those see it who are no part of the invocation. */
#include "agents.h"

#include <pthread.h>
#include <stdatomic.h>

enum { ROUNDS = 300 };

static atomic_bool ended;

static int say_yes(void *state, const struct pinfold_model_request *request,
                   struct pinfold_model_reply *ret, struct pinfold_cancel *cancel,
                   struct pinfold_error *err)
{
    (void)state;
    (void)request;
    (void)cancel;
    ret->message.role = PINFOLD_ROLE_ASSISTANT;
    ret->stop = PINFOLD_STOP_END;
    ret->stop_detail = strdup("");
    ret->request_id = strdup("");
    ret->attempts = 1;
    return pinfold_message_add_text(&ret->message, "yes", 3, err);
}

static struct pinfold_agent *make_agent(void)
{
    static const struct pinfold_model_ops ops = { .size = sizeof(ops),
                                                  .provider = "test",
                                                  .converse = say_yes };
    struct pinfold_agent_config config = PINFOLD_AGENT_CONFIG_INIT;
    struct pinfold_agent *agent;

    config.agent_id = "talker";
    assert_int_equal(pinfold_model_new(&ops, NULL, "test", &config.model, NULL), 0);
    assert_int_equal(pinfold_agent_new(&config, &agent, NULL), 0);
    pinfold_model_unref(config.model);
    return agent;
}

/* Copies it again and again; returns what was wrong, or NULL. */
static void *copy_on(void *ctx)
{
    struct pinfold_agent *agent = ctx;
    size_t most = 0;

    while (!atomic_load(&ended)) {
        struct pinfold_message *copy;
        const char *wrong = NULL;
        size_t count;

        if (pinfold_agent_copy_messages(agent, &copy, &count, NULL) < 0)
            return (void *)(uintptr_t) "no copy";
        if (count < most)
            wrong = "it has become shorter";
        most = count;
        for (size_t i = 0; i < count; i++) {
            if (copy[i].role != (i % 2 ? PINFOLD_ROLE_ASSISTANT : PINFOLD_ROLE_USER) ||
                copy[i].count != 1 || strcmp(copy[i].blocks[0].text, i % 2 ? "yes" : "well?") != 0)
                wrong = "a message is not whole";
            pinfold_message_done(&copy[i]);
        }
        free(copy);
        if (wrong)
            return (void *)(uintptr_t)wrong;
    }
    return NULL;
}

static void a_conversation_is_copied_while_it_goes_on(void **state)
{
    struct pinfold_agent *agent = make_agent();
    struct pinfold_message *copy;
    pthread_t thread;
    void *wrong;
    size_t count;

    (void)state;
    atomic_store(&ended, false);
    assert_int_equal(pthread_create(&thread, NULL, copy_on, agent), 0);
    for (int i = 0; i < ROUNDS; i++)
        assert_int_equal(pinfold_agent_invoke(agent, "well?", NULL, NULL, NULL), 0);
    atomic_store(&ended, true);
    assert_int_equal(pthread_join(thread, &wrong), 0);
    assert_null(wrong);
    assert_int_equal(pinfold_agent_copy_messages(agent, &copy, &count, NULL), 0);
    assert_int_equal(count, 2 * ROUNDS);
    for (size_t i = 0; i < count; i++)
        pinfold_message_done(&copy[i]);
    free(copy);
    pinfold_agent_free(agent);
}

/* A model that calls "show" once, and then is content. */
static int ask_for_show(void *state, const struct pinfold_model_request *request,
                        struct pinfold_model_reply *ret, struct pinfold_cancel *cancel,
                        struct pinfold_error *err)
{
    bool first = request->message_count == 1;
    int r = first ? 0 : say_yes(state, request, ret, cancel, err);

    if (!first)
        return r;
    ret->message.role = PINFOLD_ROLE_ASSISTANT;
    ret->stop = PINFOLD_STOP_TOOL_USE;
    ret->stop_detail = strdup("");
    ret->request_id = strdup("");
    ret->attempts = 1;
    return pinfold_message_add_tool_use(&ret->message, "1", "show", "{}", 2, err);
}

static int show(void *ctx, struct pinfold_tool_call *call, struct pinfold_tool_result *ret,
                struct pinfold_error *err)
{
    (void)call;
    return pinfold_tool_result_add(ret, ctx, err);
}

/* Give an agent's model a block as a tool's result, and copy what it gets to see. */
static char *seen_by_model(const struct pinfold_tool_content *content)
{
    static const struct pinfold_model_ops ops = { .size = sizeof(ops),
                                                  .provider = "test",
                                                  .converse = ask_for_show };
    struct pinfold_agent_config config = PINFOLD_AGENT_CONFIG_INIT;
    const struct pinfold_message *messages;
    struct pinfold_agent *agent;
    size_t count;
    char *text;

    config.agent_id = "viewer";
    assert_int_equal(pinfold_model_new(&ops, NULL, "test", &config.model, NULL), 0);
    assert_int_equal(pinfold_agent_new(&config, &agent, NULL), 0);
    pinfold_model_unref(config.model);
    give_tool(agent, make_tool("show", NULL, show, (void *)(uintptr_t)content));
    assert_int_equal(pinfold_agent_invoke(agent, "look", NULL, NULL, NULL), 0);
    messages = pinfold_agent_messages(agent, &count);
    assert_int_equal(count, 4);
    assert_int_equal(messages[2].blocks[0].kind, PINFOLD_BLOCK_TOOL_RESULT);
    text = strdup(messages[2].blocks[0].text);
    pinfold_agent_free(agent);
    return text;
}

static void a_result_that_is_no_text_is_named_to_the_model(void **state)
{
    static char csv[] = "a,b\n1,2\n", latin[] = "caf\xe9", png[] = "\x89PNG";
    const struct {
        struct pinfold_tool_content content;
        const char *text;
    } cases[] = {
        { { PINFOLD_TOOL_JSON, { (char[]){ "[1]" }, 3 }, NULL, NULL }, "[1]" },
        { { PINFOLD_TOOL_IMAGE, { png, 4 }, (char[]){ "png" }, NULL }, "[image: png, 4 bytes]" },
        { { PINFOLD_TOOL_DOCUMENT, { csv, 8 }, (char[]){ "csv" }, (char[]){ "sums" } },
          "[document: csv, sums]\na,b\n1,2\n" },
        { { PINFOLD_TOOL_DOCUMENT, { csv, 8 }, (char[]){ "pdf" }, (char[]){ "sums" } },
          "[document: pdf, 8 bytes]" },
        { { PINFOLD_TOOL_DOCUMENT, { latin, 4 }, (char[]){ "txt" }, (char[]){ "word" } },
          "[document: txt, 4 bytes]" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        char *text = seen_by_model(&cases[i].content);
        assert_string_equal(text, cases[i].text);
        free(text);
    }
}

static void a_long_document_is_cut_between_characters(void **state)
{
    enum { SHOWN = 99999, WHOLE = 300000 }; /* of three bytes each, and 100000 at most are shown */
    struct pinfold_tool_content content = {
        PINFOLD_TOOL_DOCUMENT, { malloc(WHOLE + 1), WHOLE }, (char[]){ "md" }, (char[]){ "euros" }
    };
    static const char head[] = "[document: md, euros]\n";
    char *text;

    (void)state;
    assert_non_null(content.data.data);
    for (size_t i = 0; i < WHOLE; i++)
        content.data.data[i] = "\xe2\x82\xac"[i % 3];
    content.data.data[WHOLE] = '\0';
    text = seen_by_model(&content);
    assert_memory_equal(text, head, sizeof(head) - 1);
    assert_memory_equal(text + sizeof(head) - 1, content.data.data, SHOWN);
    assert_string_equal(text + sizeof(head) - 1 + SHOWN, "\n[99999 of 300000 bytes are shown.]");
    free(text);
    free(content.data.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_conversation_is_copied_while_it_goes_on),
        cmocka_unit_test(a_result_that_is_no_text_is_named_to_the_model),
        cmocka_unit_test(a_long_document_is_cut_between_characters),
    };

    return cmocka_run_group_tests_name("messages", tests, NULL, NULL);
}
