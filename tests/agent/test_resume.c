/* SPDX-License-Identifier: Apache-2.0 */
/* AfterInvocationEvent.resume: hooks that have an invocation go on. */
#include "agents.h"

static struct pinfold_agent *agent;
static struct pinfold_model *model;
static struct pinfold_error err;
static char trace[256];

/* What the hook under test does: resume with these prompts, one after another. */
static const char *prompts[4];
static int ended, resumed; /* resumed: what the last attempt returned */

static void note(const char *what)
{
    assert_true(strlen(trace) + strlen(what) + 2 <= sizeof(trace));
    strcat(trace, what);
    strcat(trace, " ");
}

static int on_begin(void *ctx, struct pinfold_agent *of, struct pinfold_cancel *cancel,
                    struct pinfold_error *e)
{
    (void)ctx;
    (void)of;
    (void)cancel;
    (void)e;
    note("begin");
    return 0;
}

static int on_end(void *ctx, struct pinfold_agent *of, int result, struct pinfold_error *e)
{
    (void)ctx;
    note(result == 0 ? "end" : "failed");
    if (ended < 4 && prompts[ended])
        resumed = pinfold_after_invocation_resume(of, prompts[ended], e);
    ended++;
    return 0;
}

/* Added before the other one, and so called after it. */
static int on_end_last(void *ctx, struct pinfold_agent *of, int result, struct pinfold_error *e)
{
    (void)result;
    return ctx ? pinfold_after_invocation_resume(of, strcmp(ctx, "none") == 0 ? NULL : ctx, e) : 0;
}

static void start(const char *script, const char *last_word, unsigned max_turns)
{
    struct pinfold_agent_config config = PINFOLD_AGENT_CONFIG_INIT;
    struct pinfold_hooks hooks = PINFOLD_HOOKS_INIT, last = PINFOLD_HOOKS_INIT;

    assert_int_equal(pinfold_model_scripted_from_memory(script, strlen(script), &model, &err), 0);
    config.model = model;
    config.max_turns = max_turns;
    assert_int_equal(pinfold_agent_new(&config, &agent, NULL), 0);
    last.after_invocation = on_end_last;
    last.ctx = (char *)(uintptr_t)last_word;
    hooks.before_invocation = on_begin;
    hooks.after_invocation = on_end;
    assert_int_equal(pinfold_agent_add_hooks(agent, &last, NULL), 0);
    assert_int_equal(pinfold_agent_add_hooks(agent, &hooks, NULL), 0);
}

static int set_up(void **state)
{
    (void)state;
    trace[0] = '\0';
    memset(prompts, 0, sizeof(prompts));
    ended = 0;
    resumed = 1;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    pinfold_agent_free(agent);
    pinfold_model_unref(model);
    return 0;
}

static const char two_turns[] =
        "{\"turns\":[{\"expect\":{\"last\":\"first\"},\"reply\":\"one\",\"usage\":{\"input\":1,"
        "\"output\":2}},{\"expect\":{\"last\":\"second\",\"messages\":3},\"reply\":\"two\","
        "\"usage\":{\"input\":10,\"output\":20}}]}";

static void an_invocation_goes_on_with_what_a_hook_says(void **state)
{
    struct pinfold_invocation done = { 0 };
    size_t count;

    (void)state;
    start(two_turns, NULL, 0);
    prompts[0] = "second";
    assert_int_equal(pinfold_agent_invoke(agent, "first", &done, NULL, &err), 0);
    assert_string_equal(trace, "begin end begin end ");
    assert_string_equal(done.text.data, "two");
    assert_int_equal(done.turns, 2);
    assert_int_equal(done.usage.output, 22);
    pinfold_agent_messages(agent, &count);
    assert_int_equal(count, 4);
    pinfold_invocation_done(&done);
}

static void the_last_hook_decides(void **state)
{
    struct pinfold_invocation done = { 0 };

    (void)state;
    start(two_turns, "none", 0);
    prompts[0] = "second";
    assert_int_equal(pinfold_agent_invoke(agent, "first", &done, NULL, &err), 0);
    assert_string_equal(trace, "begin end ");
    assert_string_equal(done.text.data, "one");
    pinfold_invocation_done(&done);
}

static void what_failed_is_not_resumed(void **state)
{
    (void)state;
    start("{\"turns\":[{\"reply\":\"no\",\"error\":{\"message\":\"broken\"}}]}", NULL, 0);
    prompts[0] = "second";
    assert_int_not_equal(pinfold_agent_invoke(agent, "first", NULL, NULL, &err), 0);
    has_text(err.msg, "broken");
    assert_string_equal(trace, "begin failed ");
    assert_int_equal(resumed, -PINFOLD_EVALUE);
}

static void outside_of_the_hook_there_is_nothing_to_resume(void **state)
{
    (void)state;
    start(two_turns, NULL, 0);
    assert_int_equal(pinfold_after_invocation_resume(agent, "second", &err), -PINFOLD_EVALUE);
    has_text(err.msg, "only an invocation that has just succeeded can be resumed");
    assert_int_equal(pinfold_agent_invoke(agent, "first", NULL, NULL, &err), 0);
    assert_string_equal(trace, "begin end ");
}

static void hooks_that_always_resume_end_with_the_turns(void **state)
{
    struct pinfold_invocation done = { 0 };

    (void)state;
    start("{\"turns\":[{\"reply\":\"again\",\"times\":0}]}", "more", 5);
    assert_int_equal(pinfold_agent_invoke(agent, "first", &done, NULL, &err), 0);
    assert_true(done.out_of_turns);
    assert_int_equal(done.turns, 5);
    assert_int_equal(ended, 6); /* the sixth had no turn left */
    pinfold_invocation_done(&done);
    /* It is still an agent that can be asked. */
    assert_int_equal(pinfold_agent_invoke(agent, NULL, NULL, NULL, &err), 0);
}

static void cancelling_ends_what_was_resumed(void **state)
{
    struct pinfold_cancel *cancel = NULL;

    (void)state;
    start("{\"turns\":[{\"reply\":\"one\"},{\"reply\":\"two\"}]}", NULL, 0);
    prompts[0] = "second";
    assert_int_equal(pinfold_cancel_new(&cancel, NULL), 0);
    pinfold_cancel_fire(cancel);
    assert_int_equal(pinfold_agent_invoke(agent, "first", NULL, cancel, &err), -PINFOLD_ECANCELLED);
    assert_int_equal(resumed, -PINFOLD_EVALUE);
    pinfold_cancel_free(cancel);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(an_invocation_goes_on_with_what_a_hook_says),
        TEST(the_last_hook_decides),
        TEST(what_failed_is_not_resumed),
        TEST(outside_of_the_hook_there_is_nothing_to_resume),
        TEST(hooks_that_always_resume_end_with_the_turns),
        TEST(cancelling_ends_what_was_resumed),
    };

    return cmocka_run_group_tests_name("resume", tests, NULL, NULL);
}
