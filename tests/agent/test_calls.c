/* SPDX-License-Identifier: Apache-2.0 */
/* Configuration, tools, hooks and plugins of an agent, and one call of a tool. */
#include "agents.h"

#include <pthread.h>
#include <stdatomic.h>

static int say(void *ctx, struct pinfold_tool_call *call, struct pinfold_tool_result *ret,
               struct pinfold_error *err)
{
    (void)call;
    return add_text(ret, ctx ? ctx : "said", err);
}

static int echo(void *ctx, struct pinfold_tool_call *call, struct pinfold_tool_result *ret,
                struct pinfold_error *err)
{
    (void)ctx;
    return add_text(ret, pinfold_tool_call_input(call, NULL), err);
}

static void configurations_are_checked(void **state)
{
    static const char *const bad[] = { "", "a/b", ".", "..", "/" };
    struct pinfold_agent_config config = PINFOLD_AGENT_CONFIG_INIT;
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    char longest[257];

    (void)state;
    assert_int_equal(pinfold_agent_config_check(&config, &err), 0);
    for (size_t i = 0; i < 5; i++) {
        config.agent_id = bad[i];
        assert_int_equal(pinfold_agent_config_check(&config, &err), -PINFOLD_EVALUE);
        has_text(err.msg, "agent_id");
        config.agent_id = NULL;
        config.session_id = bad[i];
        assert_int_equal(pinfold_agent_config_check(&config, &err), -PINFOLD_EVALUE);
        config.session_id = NULL;
        config.workspace_id = bad[i];
        assert_int_equal(pinfold_agent_config_check(&config, &err), -PINFOLD_EVALUE);
        config.workspace_id = NULL;
    }
    memset(longest, 'a', 256);
    longest[256] = '\0';
    config.agent_id = longest;
    assert_int_equal(pinfold_agent_config_check(&config, &err), -PINFOLD_EVALUE);
    longest[255] = '\0';
    assert_int_equal(pinfold_agent_config_check(&config, &err), 0);
    config.sandbox_mode = (enum pinfold_sandbox_mode)3;
    assert_int_equal(pinfold_agent_config_check(&config, &err), -PINFOLD_EVALUE);
    config.sandbox_mode = PINFOLD_SANDBOX_OFF;
    config.sandbox_attach_mode = (enum pinfold_attach_mode)2;
    assert_int_equal(pinfold_agent_config_check(&config, &err), -PINFOLD_EVALUE);
    config.sandbox_attach_mode = PINFOLD_READ_WRITE;
    config.size--;
    assert_int_equal(pinfold_agent_config_check(&config, &err), -PINFOLD_EVALUE);
}

static void an_agent_has_defaults(void **state)
{
    struct pinfold_agent *agent = plain_agent(NULL);

    (void)state;
    assert_string_equal(pinfold_agent_id(agent), "default");
    assert_string_equal(pinfold_agent_name(agent), "Pinfold agent");
    assert_int_equal(pinfold_agent_mode(agent), PINFOLD_SANDBOX_OFF);
    assert_false(pinfold_sandbox_is_active(agent));
    assert_false(pinfold_workspace_is_prepared(agent));
    assert_int_equal(pinfold_prepare_workspace(agent, NULL, NULL, NULL), 0);
    assert_int_equal(pinfold_ensure_sandbox_mutation_allowed(agent, NULL), -PINFOLD_EDETACHED);
    pinfold_agent_cancel(agent);
    pinfold_agent_detach(agent);
    pinfold_agent_free(agent);
    pinfold_agent_free(NULL);
}

static void names_of_tools_are_unique_and_not_alike(void **state)
{
    struct pinfold_agent *agent = plain_agent("a");
    struct pinfold_tool *tool = make_tool("do-it_now", NULL, say, NULL);
    struct pinfold_tool *alike = make_tool("do_it-now", NULL, say, NULL);
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    struct pinfold_strings names = { 0 };

    (void)state;
    assert_int_equal(pinfold_agent_add_tool(agent, tool, &err), 0);
    assert_int_equal(pinfold_agent_add_tool(agent, tool, &err), -PINFOLD_EVALUE);
    assert_int_equal(pinfold_agent_add_tool(agent, alike, &err), -PINFOLD_EVALUE);
    has_text(err.msg, "has a tool do-it_now already");
    assert_string_equal(ask_tool(agent, "do-it_now", "{}"), "said");
    assert_true(pinfold_agent_remove_tool(agent, "do-it_now"));
    assert_false(pinfold_agent_remove_tool(agent, "do-it_now"));
    assert_int_equal(pinfold_agent_add_tool(agent, alike, &err), 0);
    assert_int_equal(pinfold_agent_tool_names(agent, &names, NULL), 0);
    assert_int_equal(names.count, 1);
    pinfold_strings_done(&names);
    pinfold_tool_unref(tool);
    pinfold_tool_unref(alike);
    pinfold_agent_free(agent);
}

static int fail_with(void *ctx, struct pinfold_tool_call *call, struct pinfold_tool_result *ret,
                     struct pinfold_error *err)
{
    (void)call;
    add_text(ret, "half a result", err);
    *err = (struct pinfold_error){ .code = *(int *)ctx };
    snprintf(err->msg, sizeof(err->msg), "it broke");
    return -err->code;
}

static void every_mistake_is_a_result(void **state)
{
    struct pinfold_agent *agent = plain_agent("a");
    int code = PINFOLD_EVALUE;

    (void)state;
    has_text(ask_tool(agent, "nothing", "{}"), "!Unknown tool: nothing. There are no tools.");
    give_tool(agent, make_tool("fail", NULL, fail_with, &code));
    give_tool(agent, make_tool("echo",
                               "{\"type\":\"object\",\"properties\":{\"n\":{\"type\":"
                               "\"integer\"}},\"required\":[\"n\"]}",
                               echo, NULL));
    has_text(ask_tool(agent, "ehco", "{}"), "!Unknown tool: ehco. The tools are: fail, echo.");
    assert_string_equal(ask_tool(agent, "fail", "{}"), "!it broke");
    code = PINFOLD_EOS;
    assert_string_equal(ask_tool(agent, "fail", ""), "!OSError: it broke");
    assert_string_equal(ask_tool(agent, "echo", "{\"n\":1}"), "{\"n\":1}");
    has_text(ask_tool(agent, "echo", "{\"n\":"), "!The input of echo is not valid JSON: line 1");
    has_text(ask_tool(agent, "echo", "{\"n\":\"1\"}"), "- n: expected integer, got the string");
    has_text(ask_tool(agent, "echo", "[]"), "expected object, got an array");
    has_text(ask_tool(agent, "echo", ""), "- n: is required, and missing");
    pinfold_agent_free(agent);
}

static int say_nothing(void *ctx, struct pinfold_tool_call *call, struct pinfold_tool_result *ret,
                       struct pinfold_error *err)
{
    (void)ctx;
    (void)call;
    (void)ret;
    (void)err;
    return 0;
}

static void a_tool_that_gives_nothing_is_said_to(void **state)
{
    struct pinfold_agent *agent = plain_agent("a");

    (void)state;
    give_tool(agent, make_tool("hush", NULL, say_nothing, NULL));
    assert_string_equal(ask_tool(agent, "hush", "{}"), "[No output.]");
    pinfold_agent_free(agent);
}

/* ---- hooks ---- */

static char trace[256];

struct marker {
    const char *name;
    const char *cancel, *input, *append;
    int fail, retries;
};

static int note(const char *name, const char *what)
{
    snprintf(trace + strlen(trace), sizeof(trace) - strlen(trace), "%s%s ", name, what);
    return 0;
}

static int before(void *ctx, struct pinfold_before_tool_call *event, struct pinfold_error *err)
{
    struct marker *marker = ctx;

    note(marker->name, "<");
    if (marker->cancel)
        pinfold_before_tool_call_cancel(event, marker->cancel, err);
    if (marker->input)
        pinfold_before_tool_call_set_input(event, marker->input, strlen(marker->input), err);
    if (marker->fail) {
        *err = (struct pinfold_error){ .code = marker->fail };
        return -marker->fail;
    }
    return 0;
}

static int after(void *ctx, struct pinfold_after_tool_call *event, struct pinfold_error *err)
{
    struct marker *marker = ctx;

    note(marker->name, event->tool ? ">" : event->cancel ? ">cancelled" : ">none");
    if (marker->append)
        add_text(event->result, marker->append, err);
    event->retry = marker->retries > 0 && marker->retries--;
    return 0;
}

static void add_marker(struct pinfold_agent *agent, struct marker *marker)
{
    struct pinfold_hooks hooks = PINFOLD_HOOKS_INIT;

    hooks.before_tool_call = before;
    hooks.after_tool_call = after;
    hooks.ctx = marker;
    assert_int_equal(pinfold_agent_add_hooks(agent, &hooks, NULL), 0);
}

static void hooks_run_in_order_and_back(void **state)
{
    struct pinfold_agent *agent = plain_agent("a");
    struct marker one = { .name = "1" }, two = { .name = "2", .append = "more" };
    struct pinfold_tool_result result = { 0 };

    (void)state;
    trace[0] = '\0';
    give_tool(agent, make_tool("say", NULL, say, NULL));
    add_marker(agent, &one);
    add_marker(agent, &two);
    assert_int_equal(pinfold_agent_call_tool(agent, "say", NULL, 0, &result, NULL, NULL), 0);
    assert_string_equal(trace, "1< 2< 2> 1> ");
    assert_int_equal(result.count, 2); /* rewritten */
    assert_string_equal(result.items[1].data.data, "more");
    pinfold_tool_result_done(&result);
    trace[0] = '\0';
    ask_tool(agent, "none", "{}");
    assert_string_equal(trace, "1< 2< 2>none 1>none ");
    pinfold_agent_free(agent);
}

static void a_hook_cancels_a_call(void **state)
{
    struct pinfold_agent *agent = plain_agent("a");
    struct marker one = { .name = "1", .cancel = "not today", .retries = 3 };

    (void)state;
    trace[0] = '\0';
    give_tool(agent, make_tool("say", NULL, say, NULL));
    add_marker(agent, &one);
    assert_string_equal(ask_tool(agent, "say", "{}"), "!not today");
    assert_string_equal(trace, "1< 1>cancelled "); /* and nothing was retried */
    pinfold_agent_free(agent);
}

static int cancel_plainly(void *ctx, struct pinfold_before_tool_call *event,
                          struct pinfold_error *err)
{
    (void)ctx;
    return pinfold_before_tool_call_cancel(event, NULL, err);
}

static void a_cancel_without_a_text_has_one(void **state)
{
    struct pinfold_agent *agent = plain_agent("a");
    struct pinfold_hooks hooks = PINFOLD_HOOKS_INIT;

    (void)state;
    hooks.before_tool_call = cancel_plainly;
    assert_int_equal(pinfold_agent_add_hooks(agent, &hooks, NULL), 0);
    has_text(ask_tool(agent, "say", "{}"), "!This tool call was cancelled by the user.");
    pinfold_agent_free(agent);
}

static void a_hook_changes_the_input_and_it_is_checked(void **state)
{
    struct pinfold_agent *agent = plain_agent("a");
    struct marker one = { .name = "1", .input = "{\"n\":2}" };

    (void)state;
    give_tool(agent, make_tool("echo",
                               "{\"type\":\"object\",\"properties\":{\"n\":{\"type\":"
                               "\"integer\"}}}",
                               echo, NULL));
    add_marker(agent, &one);
    assert_string_equal(ask_tool(agent, "echo", "{\"n\":1}"), "{\"n\":2}");
    one.input = "{\"n\":\"x\"}";
    has_text(ask_tool(agent, "echo", "{\"n\":1}"), "expected integer");
    pinfold_agent_free(agent);
}

static void a_hook_that_fails_ends_the_call(void **state)
{
    struct pinfold_agent *agent = plain_agent("a");
    struct marker one = { .name = "1", .fail = PINFOLD_EDENIED };
    struct pinfold_tool_result result = { 0 };
    struct pinfold_error err = PINFOLD_ERROR_INIT;

    (void)state;
    add_marker(agent, &one);
    assert_int_equal(pinfold_agent_call_tool(agent, "say", "", 0, &result, NULL, &err),
                     -PINFOLD_EDENIED);
    assert_int_equal(err.code, PINFOLD_EDENIED);
    assert_int_equal(result.count, 0);
    pinfold_agent_free(agent);
}

static int count_calls(void *ctx, struct pinfold_tool_call *call, struct pinfold_tool_result *ret,
                       struct pinfold_error *err)
{
    char text[16];

    (void)call;
    snprintf(text, sizeof(text), "%d", atomic_fetch_add((atomic_int *)ctx, 1) + 1);
    return add_text(ret, text, err);
}

static void a_call_is_retried_as_often_as_asked_and_not_for_ever(void **state)
{
    struct pinfold_agent *agent = plain_agent("a");
    struct marker one = { .name = "1", .retries = 2 };
    atomic_int calls = 0;

    (void)state;
    give_tool(agent, make_tool("count", NULL, count_calls, &calls));
    add_marker(agent, &one);
    assert_string_equal(ask_tool(agent, "count", "{}"), "3");
    one.retries = 1000;
    atomic_store(&calls, 0);
    assert_string_equal(ask_tool(agent, "count", "{}"), "11");
    pinfold_agent_free(agent);
}

/* ---- plugins ---- */

static int count_init(void *ctx, struct pinfold_agent *agent, struct pinfold_error *err)
{
    (void)agent;
    (void)err;
    (*(int *)ctx)++;
    return 0;
}

static void note_free(void *ctx)
{
    *(int *)ctx += 100;
}

static void a_plugin_serves_several_agents_once_each(void **state)
{
    struct pinfold_agent *first = plain_agent("a"), *second = plain_agent("b");
    struct pinfold_plugin_options options = PINFOLD_PLUGIN_OPTIONS_INIT;
    struct pinfold_tool *tools[1] = { make_tool("say", NULL, say, NULL) };
    struct pinfold_plugin *plugin = NULL;
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    int count = 0;

    (void)state;
    assert_int_equal(pinfold_plugin_new(&options, &plugin, &err), -PINFOLD_EVALUE);
    options.name = "speech";
    options.tools = tools;
    options.tool_count = 1;
    options.init_agent = count_init;
    options.ctx = &count;
    options.free = note_free;
    assert_int_equal(pinfold_plugin_new(&options, &plugin, &err), 0);
    assert_int_equal(pinfold_agent_add_plugin(first, plugin, &err), 0);
    assert_int_equal(pinfold_agent_add_plugin(second, plugin, &err), 0);
    assert_int_equal(pinfold_agent_add_plugin(first, plugin, &err), -PINFOLD_EVALUE);
    assert_int_equal(count, 2);
    assert_true(pinfold_agent_has_plugin(first, "speech"));
    assert_string_equal(ask_tool(second, "say", "{}"), "said");
    pinfold_plugin_unref(plugin);
    pinfold_tool_unref(tools[0]);
    pinfold_agent_free(first);
    assert_int_equal(count, 2);
    pinfold_agent_free(second);
    assert_int_equal(count, 102);
}

static void a_plugin_that_does_not_fit_leaves_nothing(void **state)
{
    struct pinfold_agent *agent = plain_agent("a");
    struct pinfold_plugin_options options = PINFOLD_PLUGIN_OPTIONS_INIT;
    struct pinfold_tool *tools[2] = { make_tool("new", NULL, say, NULL),
                                      make_tool("say", NULL, say, NULL) };
    struct pinfold_plugin *plugin = NULL;
    struct pinfold_error err = PINFOLD_ERROR_INIT;

    (void)state;
    assert_int_equal(pinfold_agent_add_tool(agent, tools[1], NULL), 0);
    options.name = "speech";
    options.tools = tools;
    options.tool_count = 2;
    assert_int_equal(pinfold_plugin_new(&options, &plugin, NULL), 0);
    assert_int_equal(pinfold_agent_add_plugin(agent, plugin, &err), -PINFOLD_EVALUE);
    has_text(err.msg, "add plugin speech: add tool say");
    assert_null(pinfold_agent_get_tool(agent, "new"));
    assert_false(pinfold_agent_has_plugin(agent, "speech"));
    assert_true(pinfold_agent_remove_tool(agent, "say"));
    assert_int_equal(pinfold_agent_add_plugin(agent, plugin, &err), 0);
    pinfold_plugin_unref(plugin);
    pinfold_tool_unref(tools[0]);
    pinfold_tool_unref(tools[1]);
    pinfold_agent_free(agent);
}

static int refuse_agent(void *ctx, struct pinfold_agent *agent, struct pinfold_error *err)
{
    (void)ctx;
    (void)agent;
    *err = (struct pinfold_error){ .code = PINFOLD_EDENIED };
    return -PINFOLD_EDENIED;
}

static void contexts_stay_the_callers_when_no_agent_is_made(void **state)
{
    struct pinfold_agent_config config = PINFOLD_AGENT_CONFIG_INIT;
    struct pinfold_hooks hooks = PINFOLD_HOOKS_INIT;
    const struct pinfold_hooks *const list[] = { &hooks };
    struct pinfold_agent *agent = NULL;
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    int freed = 0;

    (void)state;
    hooks.agent_initialized = refuse_agent;
    hooks.ctx = &freed;
    hooks.free = note_free;
    config.hooks = list;
    config.hook_count = 1;
    assert_int_equal(pinfold_agent_new(&config, &agent, &err), -PINFOLD_EDENIED);
    assert_int_equal(freed, 0);
    hooks.agent_initialized = NULL;
    assert_int_equal(pinfold_agent_new(&config, &agent, &err), 0);
    pinfold_agent_free(agent);
    assert_int_equal(freed, 100);
}

/* ---- cancelling ---- */

static int wait_for_cancel(void *ctx, struct pinfold_tool_call *call,
                           struct pinfold_tool_result *ret, struct pinfold_error *err)
{
    atomic_fetch_add((atomic_int *)ctx, 1);
    while (!pinfold_cancel_fired(pinfold_tool_call_cancel_token(call)))
        pause_ms(1);
    return add_text(ret, "stopped", err);
}

struct caller {
    struct pinfold_agent *agent;
    int r;
};

static void *call_wait(void *ctx)
{
    struct caller *caller = ctx;
    struct pinfold_tool_result result = { 0 };

    caller->r = pinfold_agent_call_tool(caller->agent, "wait", "", 0, &result, NULL, NULL);
    pinfold_tool_result_done(&result);
    return NULL;
}

static void cancelling_an_agent_stops_its_calls_and_not_later_ones(void **state)
{
    struct pinfold_agent *agent = plain_agent("a");
    struct caller callers[3] = { { agent, 0 }, { agent, 0 }, { agent, 0 } };
    pthread_t threads[3];
    atomic_int running = 0;

    (void)state;
    give_tool(agent, make_tool("wait", NULL, wait_for_cancel, &running));
    give_tool(agent, make_tool("say", NULL, say, NULL));
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, call_wait, &callers[i]), 0);
    while (atomic_load(&running) < 3)
        pause_ms(1);
    pinfold_agent_cancel(agent);
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(callers[i].r, -PINFOLD_ECANCELLED);
    }
    assert_string_equal(ask_tool(agent, "say", "{}"), "said");
    pinfold_agent_free(agent);
}

static void a_fired_token_stops_a_call_before_it_begins(void **state)
{
    struct pinfold_agent *agent = plain_agent("a");
    struct pinfold_cancel *cancel = NULL;
    struct pinfold_tool_result result = { 0 };

    (void)state;
    assert_int_equal(pinfold_cancel_new(&cancel, NULL), 0);
    pinfold_cancel_fire(cancel);
    give_tool(agent, make_tool("say", NULL, say, NULL));
    assert_int_equal(pinfold_agent_call_tool(agent, "say", "", 0, &result, cancel, NULL),
                     -PINFOLD_ECANCELLED);
    pinfold_cancel_free(cancel);
    pinfold_agent_free(agent);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(configurations_are_checked),
        cmocka_unit_test(an_agent_has_defaults),
        cmocka_unit_test(names_of_tools_are_unique_and_not_alike),
        cmocka_unit_test(every_mistake_is_a_result),
        cmocka_unit_test(a_tool_that_gives_nothing_is_said_to),
        cmocka_unit_test(hooks_run_in_order_and_back),
        cmocka_unit_test(a_hook_cancels_a_call),
        cmocka_unit_test(a_cancel_without_a_text_has_one),
        cmocka_unit_test(a_hook_changes_the_input_and_it_is_checked),
        cmocka_unit_test(a_hook_that_fails_ends_the_call),
        cmocka_unit_test(a_call_is_retried_as_often_as_asked_and_not_for_ever),
        cmocka_unit_test(a_plugin_serves_several_agents_once_each),
        cmocka_unit_test(a_plugin_that_does_not_fit_leaves_nothing),
        cmocka_unit_test(contexts_stay_the_callers_when_no_agent_is_made),
        cmocka_unit_test(cancelling_an_agent_stops_its_calls_and_not_later_ones),
        cmocka_unit_test(a_fired_token_stops_a_call_before_it_begins),
    };

    return cmocka_run_group_tests_name("calls", tests, NULL, NULL);
}
