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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_conversation_is_copied_while_it_goes_on),
    };

    return cmocka_run_group_tests_name("messages", tests, NULL, NULL);
}
