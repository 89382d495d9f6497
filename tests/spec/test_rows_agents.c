/* SPDX-License-Identifier: Apache-2.0 */
/* Rows 106 to 116 of the semantics, and 78 and 86: which agents have a workspace, and what then
 * becomes of the tools that they had. */
#include "agents.h"

#include <pthread.h>

static struct pinfold_agent_config config_with(struct pinfold_tool *const *tools, size_t count)
{
    struct pinfold_agent_config config = PINFOLD_AGENT_CONFIG_INIT;

    config.agent_id = "worker";
    config.tools = tools;
    config.tool_count = count;
    return config;
}

static void row_106_a_sandbox_means_the_mode_sandbox(void **state)
{
    struct spec *s = *state;
    struct pinfold_tool *shell = own_tool("shell");
    struct pinfold_agent_config config = config_with(&shell, 1);

    spec_start_plain(s);
    config.sandbox = s->sandbox; /* and sandbox_mode is OFF, the default */
    spec_ok(s, pinfold_agent_new(&config, &agent, &s->err));
    assert_int_equal(pinfold_agent_mode(agent), PINFOLD_SANDBOX_ON);
    assert_true(pinfold_sandbox_is_active(agent));
    assert_false(has_tool("shell"));
    refuses(s, "shell", "{}", "shell works on the host");
    pinfold_tool_unref(shell);
}

static void row_107_local_dev_with_a_sandbox_fails_in_the_config(void **state)
{
    struct spec *s = *state;
    struct pinfold_agent_config config = PINFOLD_AGENT_CONFIG_INIT;

    spec_start_plain(s);
    config.sandbox = s->sandbox;
    config.sandbox_mode = PINFOLD_SANDBOX_LOCAL;
    spec_refuses(s, PINFOLD_EVALUE, pinfold_agent_config_check(&config, &s->err));
    spec_refuses(s, PINFOLD_EVALUE, pinfold_agent_new(&config, &agent, &s->err));
    config.sandbox_mode = PINFOLD_SANDBOX_ON;
    spec_ok(s, pinfold_agent_config_check(&config, &s->err));
}

static void row_107_other_combinations_fail_when_the_agent_is_made(void **state)
{
    struct spec *s = *state;
    struct pinfold_agent_config config = PINFOLD_AGENT_CONFIG_INIT;

    spec_start_plain(s);
    spec_ok(s, pinfold_manager_new(NULL, &s->manager, &s->err));
    config.sandbox = s->sandbox;
    config.execution_backend = s->backend;
    spec_ok(s, pinfold_agent_config_check(&config, &s->err));
    spec_refuses(s, PINFOLD_EVALUE, pinfold_agent_new(&config, &agent, &s->err));
    assert_non_null(strstr(s->err.msg, "execution_backend="));
    config.execution_backend = NULL;
    config.workspace_root = s->dir;
    spec_refuses(s, PINFOLD_EVALUE, pinfold_agent_new(&config, &agent, &s->err));
    assert_non_null(strstr(s->err.msg, "Sandbox(seed_from=...)"));
    config.workspace_root = NULL;
    config.sandbox_manager = s->manager;
    spec_refuses(s, PINFOLD_EVALUE, pinfold_agent_new(&config, &agent, &s->err));
    assert_non_null(strstr(s->err.msg, "the manager is the Sandbox's"));
    config = (struct pinfold_agent_config)PINFOLD_AGENT_CONFIG_INIT;
    config.sandbox_mode = PINFOLD_SANDBOX_ON;
    spec_refuses(s, PINFOLD_EVALUE, pinfold_agent_new(&config, &agent, &s->err));
    assert_non_null(strstr(s->err.msg, "needs a backend"));
    assert_null(agent);
}

static void row_108_attaching_again_in_the_same_mode_does_nothing(void **state)
{
    struct spec *s = *state;

    spec_start_plain(s);
    new_attached(s, PINFOLD_READ_WRITE);
    spec_ok(s, pinfold_agent_attach(agent, s->sandbox, PINFOLD_READ_WRITE, &s->err));
    assert_int_equal(spec_event_count(s, "attach"), 1);
    spec_refuses(s, PINFOLD_EATTACH,
                 pinfold_agent_attach(agent, s->sandbox, PINFOLD_READ_ONLY, &s->err));
    assert_true(has_tool("execute"));
    pinfold_agent_detach(agent);
    spec_ok(s, pinfold_agent_attach(agent, s->sandbox, PINFOLD_READ_ONLY, &s->err));
    assert_false(has_tool("execute"));
}

static void row_108_an_agent_attached_elsewhere_is_refused(void **state)
{
    struct spec *s = *state;
    struct pinfold_local_options local = PINFOLD_LOCAL_OPTIONS_INIT;
    struct pinfold_sandbox_options options = spec_options(s);
    struct pinfold_backend *backend = NULL;

    spec_start_plain(s);
    new_attached(s, PINFOLD_READ_WRITE);
    spec_dir(s, "ws2");
    local.workspace_root = spec_at(s, "ws2");
    spec_ok(s, pinfold_local_backend_new(&local, &backend, &s->err));
    options.workspace_id = "spec-other";
    options.backend = backend;
    spec_ok(s, pinfold_sandbox_new(&options, &s->other, &s->err));
    pinfold_backend_unref(backend);
    spec_refuses(s, PINFOLD_EATTACH,
                 pinfold_agent_attach(agent, s->other, PINFOLD_READ_WRITE, &s->err));
    spec_ok(s, pinfold_sandbox_start(s->other, NULL, NULL, &s->err));
    spec_refuses(s, PINFOLD_EATTACH,
                 pinfold_agent_attach(agent, s->other, PINFOLD_READ_WRITE, &s->err));
    assert_non_null(strstr(s->err.msg, "attached to sandbox spec already"));
    answers(s, "write_file", "{\"path\":\"a\",\"content\":\"x\"}", "Wrote 1 bytes to a.");
    spec_is(s, "ws/a", "x"); /* it still works where it was */
}

static void row_109_a_tool_of_the_same_name_fails_the_attach(void **state)
{
    static const char *const names[] = { "execute", "read_file", "write_file", "list_dir" };
    struct spec *s = *state;

    spec_start_plain(s);
    for (size_t i = 0; i < 4; i++) {
        for (int mode = PINFOLD_READ_WRITE; mode <= PINFOLD_READ_ONLY; mode++) {
            struct pinfold_tool *tools[2] = { own_tool("shell"), own_tool(names[i]) };
            struct pinfold_agent_config config = config_with(tools, 2);
            struct pinfold_strings left = { 0 };

            spec_ok(s, pinfold_agent_new(&config, &agent, &s->err));
            spec_refuses(s, PINFOLD_EATTACH,
                         pinfold_agent_attach(agent, s->sandbox, (enum pinfold_attach_mode)mode,
                                              &s->err));
            assert_non_null(strstr(s->err.msg, names[i]));
            /* Nothing of it remains: the tools, the mode, the plugin, the table of attached. */
            spec_ok(s, pinfold_agent_tool_names(agent, &left, &s->err));
            assert_int_equal(left.count, 2);
            assert_string_equal(left.items[0], "shell");
            assert_string_equal(left.items[1], names[i]);
            pinfold_strings_done(&left);
            assert_int_equal(pinfold_agent_mode(agent), PINFOLD_SANDBOX_OFF);
            assert_false(pinfold_agent_has_plugin(agent, "sandbox"));
            assert_false(pinfold_agent_is_attached(agent));
            answers(s, "shell", "{}", "mine");
            assert_true(pinfold_agent_remove_tool(agent, names[i]));
            spec_ok(s, pinfold_agent_attach(agent, s->sandbox, PINFOLD_READ_WRITE, &s->err));
            pinfold_agent_free(agent);
            agent = NULL;
            pinfold_tool_unref(tools[0]);
            pinfold_tool_unref(tools[1]);
        }
    }
}

static void row_109_an_agent_is_not_made_when_its_attach_fails(void **state)
{
    struct spec *s = *state;
    struct pinfold_tool *tool = own_tool("read_file");
    struct pinfold_agent_config config = config_with(&tool, 1);

    spec_start_plain(s);
    config.sandbox = s->sandbox;
    spec_refuses(s, PINFOLD_EATTACH, pinfold_agent_new(&config, &agent, &s->err));
    assert_null(agent);
    pinfold_tool_unref(tool);
}

static void row_110_hooks_do_nothing_once_unbound(void **state)
{
    struct spec *s = *state;
    struct pinfold_tool *mine = own_tool("execute");

    spec_start_plain(s);
    new_attached(s, PINFOLD_READ_ONLY);
    refuses(s, "execute", "{\"command\":\"true\"}", "read-only for you");
    pinfold_agent_detach(agent);
    /* The name is free again, and nothing of the attach stands in the way of it. */
    spec_ok(s, pinfold_agent_add_tool(agent, mine, &s->err));
    answers(s, "execute", "{}", "mine");
    pinfold_tool_unref(mine);
}

static void row_111_host_tools_stay_blocked_after_a_detach(void **state)
{
    struct spec *s = *state;
    struct pinfold_tool *tools[2] = { own_tool("shell"), own_tool("file_read") };
    struct pinfold_agent_config config = config_with(tools, 2);

    spec_start_plain(s);
    config.sandbox = s->sandbox;
    spec_ok(s, pinfold_agent_new(&config, &agent, &s->err));
    pinfold_agent_detach(agent);
    assert_false(pinfold_agent_is_attached(agent));
    assert_false(has_tool("execute"));
    assert_false(has_tool("shell"));
    refuses(s, "shell", "{}", "shell works on the host");
    spec_refuses(s, PINFOLD_EDENIED, pinfold_agent_add_tool(agent, tools[1], &s->err));
    refuses(s, "file_read", "{}", "file_read works on the host");
    pinfold_tool_unref(tools[0]);
    pinfold_tool_unref(tools[1]);
}

/* Swaps whatever is called for the tool in ctx. */
static int swap(void *ctx, struct pinfold_before_tool_call *event, struct pinfold_error *err)
{
    (void)err;
    pinfold_before_tool_call_select(event, ctx);
    return 0;
}

static void row_112_a_host_tool_that_a_hook_selects_is_blocked(void **state)
{
    struct spec *s = *state;
    struct pinfold_tool *shell = own_tool("shell"), *other = own_tool("other");
    struct pinfold_hooks hooks = PINFOLD_HOOKS_INIT;

    spec_start_plain(s);
    new_attached(s, PINFOLD_READ_WRITE);
    spec_ok(s, pinfold_agent_add_tool(agent, other, &s->err));
    answers(s, "other", "{}", "mine");
    hooks.before_tool_call = swap;
    hooks.ctx = shell;
    spec_ok(s, pinfold_agent_add_hooks(agent, &hooks, &s->err));
    refuses(s, "other", "{}", "shell works on the host");
    pinfold_tool_unref(shell);
    pinfold_tool_unref(other);
}

static void row_112_a_host_tool_asked_for_is_blocked_though_a_hook_swaps_it(void **state)
{
    struct spec *s = *state;
    struct pinfold_tool *other = own_tool("other");
    struct pinfold_hooks hooks = PINFOLD_HOOKS_INIT;

    spec_start_plain(s);
    new_attached(s, PINFOLD_READ_WRITE);
    hooks.before_tool_call = swap;
    hooks.ctx = other;
    spec_ok(s, pinfold_agent_add_hooks(agent, &hooks, &s->err));
    refuses(s, "python_repl", "{}", "python_repl works on the host");
    answers(s, "anything", "{}", "mine");
    pinfold_tool_unref(other);
}

static void row_112_every_host_tool_is_blocked_by_name(void **state)
{
    struct spec *s = *state;

    spec_start_plain(s);
    new_attached(s, PINFOLD_READ_WRITE);
    for (size_t i = 0; pinfold_host_execution_tool_names[i]; i++) {
        struct pinfold_tool *tool = own_tool(pinfold_host_execution_tool_names[i]);

        spec_refuses(s, PINFOLD_EDENIED, pinfold_agent_add_tool(agent, tool, &s->err));
        refuses(s, pinfold_host_execution_tool_names[i], "{}", "works on the host");
        pinfold_tool_unref(tool);
    }
}

static unsigned warnings; /* that name the editor */

static void note_log(void *ctx, enum pinfold_log_level level, const char *message)
{
    (void)ctx;
    if (level == PINFOLD_LOG_WARNING && strstr(message, "tool editor works on the host"))
        warnings++;
}

static void row_113_other_tools_of_the_host_stay_and_are_warned_of(void **state)
{
    struct spec *s = *state;
    struct pinfold_tool *editor = own_tool("editor");
    struct pinfold_agent_config config = config_with(&editor, 1);

    spec_start_plain(s);
    config.sandbox = s->sandbox;
    warnings = 0;
    pinfold_log_set_handler(note_log, NULL);
    spec_ok(s, pinfold_agent_new(&config, &agent, &s->err));
    assert_int_equal(warnings, 1);
    answers(s, "editor", "{}", "mine");
    assert_true(pinfold_agent_remove_tool(agent, "editor"));
    spec_ok(s, pinfold_agent_add_tool(agent, editor, &s->err)); /* later ones too */
    assert_int_equal(warnings, 2);
    pinfold_log_set_handler(NULL, NULL);
    pinfold_tool_unref(editor);
}

/* Every helper, and what each says. */
static void expect_helpers(struct spec *s, int reading, int changing)
{
    struct pinfold_file_infos infos = { 0 };

    pinfold_bytes_done(&s->text);
    assert_int_equal(pinfold_read_workspace_file(agent, "a", 0, PINFOLD_ALL_LINES, &s->text, NULL,
                                                 NULL, &s->err),
                     reading);
    assert_int_equal(pinfold_list_workspace_dir(agent, ".", &infos, NULL, &s->err), reading);
    pinfold_file_infos_done(&infos);
    pinfold_bytes_done(&s->text);
    assert_int_equal(pinfold_run_command(agent, "true", NULL, &s->text, NULL, &s->err), changing);
    assert_int_equal(pinfold_write_workspace_file(agent, "b", "x", 1, NULL, &s->err), changing);
    assert_int_equal(pinfold_ensure_sandbox_mutation_allowed(agent, &s->err), changing);
}

static void row_114_every_helper_of_a_detached_agent_fails(void **state)
{
    struct spec *s = *state;

    spec_start_plain(s);
    spec_put(s, "ws/a", "text");
    new_attached(s, PINFOLD_READ_WRITE);
    expect_helpers(s, 0, 0);
    pinfold_sandbox_detach(s->sandbox, agent); /* the sandbox knows it by its address */
    expect_helpers(s, -PINFOLD_EDETACHED, -PINFOLD_EDETACHED);
    pinfold_agent_detach(agent); /* again: nothing */
    assert_int_equal(spec_event_count(s, "detach"), 1);
}

static void row_086_agents_of_a_stopped_sandbox_stay_usable(void **state)
{
    struct spec *s = *state;
    struct pinfold_tool *other = own_tool("other");

    spec_start_plain(s);
    spec_put(s, "ws/a", "text");
    new_attached(s, PINFOLD_READ_WRITE);
    spec_ok(s, pinfold_agent_add_tool(agent, other, &s->err));
    spec_stop(s);
    assert_false(pinfold_agent_is_attached(agent));
    assert_false(pinfold_sandbox_is_active(agent));
    assert_false(has_tool("read_file"));
    refuses(s, "read_file", "{\"path\":\"a\"}", "Unknown tool: read_file. The tools are: other.");
    expect_helpers(s, -PINFOLD_EDETACHED, -PINFOLD_EDETACHED);
    answers(s, "other", "{}", "mine");
    spec_ok(s, pinfold_sandbox_start(s->sandbox, NULL, NULL, &s->err));
    spec_ok(s, pinfold_agent_attach(agent, s->sandbox, PINFOLD_READ_WRITE, &s->err));
    answers(s, "read_file", "{\"path\":\"a\"}", "text");
    pinfold_tool_unref(other);
}

/* A command that an agent runs in a thread, and what became of it. */
struct command {
    struct pinfold_agent *agent;
    int r;
    char said[256];
};

static void *run_sleep(void *ctx)
{
    static const char command[] = "echo $$ > pid; sleep 600; echo late > late";
    struct pinfold_bytes text = { 0 };
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    struct command *it = ctx;

    it->r = pinfold_run_command(it->agent, command, NULL, &text, NULL, &err);
    snprintf(it->said, sizeof(it->said), "%s", err.msg);
    pinfold_bytes_done(&text);
    return NULL;
}

static void *call_sleep(void *ctx)
{
    static const char input[] = "{\"command\":\"echo $$ > pid; sleep 600; echo late > late\"}";
    struct pinfold_tool_result answer = { 0 };
    struct command *it = ctx;

    it->r = pinfold_agent_call_tool(it->agent, "execute", input, strlen(input), &answer, NULL,
                                    NULL);
    if (it->r == 0)
        snprintf(it->said, sizeof(it->said), "%s", answer.items[0].data.data);
    pinfold_tool_result_done(&answer);
    return NULL;
}

static void row_086_what_an_agent_runs_ends_with_its_detach(void **state)
{
    struct spec *s = *state;
    struct command helper = { 0 }, tool = { 0 };
    pthread_t thread;

    spec_start_plain(s);
    new_attached(s, PINFOLD_READ_WRITE);
    helper.agent = tool.agent = agent;
    assert_int_equal(pthread_create(&thread, NULL, run_sleep, &helper), 0);
    spec_pid(s, "ws/pid");
    pinfold_agent_detach(agent);
    pthread_join(thread, NULL);
    assert_int_equal(helper.r, -PINFOLD_EDETACHED);
    assert_non_null(strstr(helper.said, "was detached from the workspace meanwhile"));
    spec_ok(s, pinfold_agent_attach(agent, s->sandbox, PINFOLD_READ_WRITE, &s->err));
    spec_run(s, "rm pid");
    assert_int_equal(pthread_create(&thread, NULL, call_sleep, &tool), 0);
    spec_pid(s, "ws/pid");
    spec_stop(s); /* which detaches first */
    pthread_join(thread, NULL);
    assert_int_equal(tool.r, 0); /* a result, which says so */
    assert_non_null(strstr(tool.said, "AgentSandboxDetachedError"));
    spec_missing(s, "ws/late");
}

static void row_068_cancelling_an_agent_kills_its_command(void **state)
{
    struct spec *s = *state;
    struct command tool = { 0 };
    pthread_t thread;

    spec_start_plain(s);
    new_attached(s, PINFOLD_READ_WRITE);
    tool.agent = agent;
    assert_int_equal(pthread_create(&thread, NULL, call_sleep, &tool), 0);
    spec_pid(s, "ws/pid");
    pinfold_agent_cancel(agent);
    pthread_join(thread, NULL);
    assert_int_equal(tool.r, -PINFOLD_ECANCELLED);
    spec_run(s, "ls /proc/$(cat pid)/stat 2>/dev/null || echo gone");
    spec_stdout_is(s, "gone\n");
    answers(s, "execute", "{\"command\":\"echo on\"}", "exit code: 0\non\n");
}

static void row_078_a_read_only_agent_runs_nothing(void **state)
{
    struct spec *s = *state;

    spec_start_plain(s);
    spec_put(s, "ws/a", "text");
    new_attached(s, PINFOLD_READ_ONLY);
    assert_false(has_tool("execute"));
    assert_false(has_tool("write_file"));
    refuses(s, "execute", "{\"command\":\"ls\"}", "read-only for you");
    answers(s, "read_file", "{\"path\":\"a\"}", "text");
    answers(s, "list_dir", "{\"path\":\".\"}", "a  4 bytes\n");
    expect_helpers(s, 0, -PINFOLD_EDENIED);
    spec_missing(s, "ws/b");
    /* Where there are views it works through one. */
    assert_int_equal(spec_event_count(s, "sandbox.view"), spec_is_isolated());
}

/* A tool of an application's own that writes by the helper. */
static int write_through(void *ctx, struct pinfold_tool_call *tool_call,
                         struct pinfold_tool_result *ret, struct pinfold_error *err)
{
    int r = pinfold_write_workspace_file(pinfold_tool_call_agent(tool_call), "c", "x", 1,
                                         pinfold_tool_call_cancel_token(tool_call), err);

    (void)ctx;
    return r < 0 ? r : pinfold_tool_result_add_text(ret, "written", 7, err);
}

static void row_115_tools_of_ones_own_are_held_to_the_mode(void **state)
{
    struct spec *s = *state;
    struct pinfold_tool_options options = PINFOLD_TOOL_OPTIONS_INIT;
    struct pinfold_tool *tool = NULL;

    spec_start_plain(s);
    options.name = "format_code";
    options.description = "Writes.";
    options.run = write_through;
    spec_ok(s, pinfold_tool_new(&options, &tool, &s->err));
    new_attached(s, PINFOLD_READ_ONLY);
    spec_ok(s, pinfold_agent_add_tool(agent, tool, &s->err));
    refuses(s, "format_code", "{}", "SandboxMutationDeniedError: the workspace is read-only");
    spec_missing(s, "ws/c");
    pinfold_agent_detach(agent);
    refuses(s, "format_code", "{}", "AgentSandboxDetachedError: agent worker is no longer");
    spec_ok(s, pinfold_agent_attach(agent, s->sandbox, PINFOLD_READ_WRITE, &s->err));
    answers(s, "format_code", "{}", "written");
    spec_is(s, "ws/c", "x");
    pinfold_tool_unref(tool);
}

static void row_116_a_sandbox_plugin_of_the_users_is_enough(void **state)
{
    struct spec *s = *state;
    struct pinfold_plugin *plugin = NULL;
    struct pinfold_agent_config config = PINFOLD_AGENT_CONFIG_INIT;

    spec_start_plain(s);
    spec_ok(s, pinfold_sandbox_plugin_new(&plugin, &s->err));
    config.plugins = &plugin;
    config.plugin_count = 1;
    config.sandbox = s->sandbox;
    spec_ok(s, pinfold_agent_new(&config, &agent, &s->err));
    answers(s, "execute", "{\"command\":\"echo hi\"}", "exit code: 0\nhi\n");
    spec_refuses(s, PINFOLD_EVALUE, pinfold_agent_add_plugin(agent, plugin, &s->err));
    pinfold_plugin_unref(plugin);
}

static void row_116_it_is_added_when_it_is_missing(void **state)
{
    struct spec *s = *state;

    spec_start_plain(s);
    new_attached(s, PINFOLD_READ_WRITE);
    assert_true(pinfold_agent_has_plugin(agent, "sandbox"));
    pinfold_agent_detach(agent);
    spec_ok(s, pinfold_agent_attach(agent, s->sandbox, PINFOLD_READ_WRITE, &s->err));
    assert_true(has_tool("list_dir"));
}

static void row_121_what_an_agent_does_is_audited_with_its_id(void **state)
{
    struct spec *s = *state;

    spec_start_plain(s);
    new_attached(s, PINFOLD_READ_WRITE);
    answers(s, "execute", "{\"command\":\"true\"}", "exit code: 0\n<no output>");
    answers(s, "write_file", "{\"path\":\"a\",\"content\":\"\"}", "Wrote 0 bytes to a.");
    assert_string_equal(spec_event(s, "sandbox.execute")->agent_id, "worker");
    assert_string_equal(spec_event(s, "sandbox.write_file")->agent_id, "worker");
    assert_string_equal(spec_event(s, "attach")->agent_id, "worker");
    spec_run(s, "true"); /* the application's own */
    assert_string_equal(spec_event(s, "sandbox.execute")->agent_id, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SPEC_TEST(row_106_a_sandbox_means_the_mode_sandbox),
        SPEC_TEST(row_107_local_dev_with_a_sandbox_fails_in_the_config),
        SPEC_TEST(row_107_other_combinations_fail_when_the_agent_is_made),
        SPEC_TEST(row_108_attaching_again_in_the_same_mode_does_nothing),
        SPEC_TEST(row_108_an_agent_attached_elsewhere_is_refused),
        SPEC_TEST(row_109_a_tool_of_the_same_name_fails_the_attach),
        SPEC_TEST(row_109_an_agent_is_not_made_when_its_attach_fails),
        SPEC_TEST(row_110_hooks_do_nothing_once_unbound),
        SPEC_TEST(row_111_host_tools_stay_blocked_after_a_detach),
        SPEC_TEST(row_112_a_host_tool_that_a_hook_selects_is_blocked),
        SPEC_TEST(row_112_a_host_tool_asked_for_is_blocked_though_a_hook_swaps_it),
        SPEC_TEST(row_112_every_host_tool_is_blocked_by_name),
        SPEC_TEST(row_113_other_tools_of_the_host_stay_and_are_warned_of),
        SPEC_TEST(row_114_every_helper_of_a_detached_agent_fails),
        SPEC_TEST(row_086_agents_of_a_stopped_sandbox_stay_usable),
        SPEC_TEST(row_086_what_an_agent_runs_ends_with_its_detach),
        SPEC_TEST(row_068_cancelling_an_agent_kills_its_command),
        SPEC_TEST(row_078_a_read_only_agent_runs_nothing),
        SPEC_TEST(row_115_tools_of_ones_own_are_held_to_the_mode),
        SPEC_TEST(row_116_a_sandbox_plugin_of_the_users_is_enough),
        SPEC_TEST(row_116_it_is_added_when_it_is_missing),
        SPEC_TEST(row_121_what_an_agent_does_is_audited_with_its_id),
    };

    return cmocka_run_group_tests_name("rows of agents", tests, NULL, NULL);
}
