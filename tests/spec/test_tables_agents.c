/* SPDX-License-Identifier: Apache-2.0 */
/* One named test for every row of the specification's tables about agents: their configuration,
 * modes, policies, tools, helpers and exceptions. coverage.py has the list of the tables. */
#include "agents.h"

/* An agent on the per-agent path, seeded from "seed" when root says so. */
static struct pinfold_agent_config own_config(struct spec *s, const char *root)
{
    struct pinfold_agent_config config = PINFOLD_AGENT_CONFIG_INIT;

    config.agent_id = "solo";
    config.sandbox_mode = PINFOLD_SANDBOX_ON;
    config.execution_backend = s->backend;
    config.workspace_root = root;
    return config;
}

static void make(struct spec *s, const struct pinfold_agent_config *config)
{
    spec_ok(s, pinfold_agent_new(config, &agent, &s->err));
}

/* No agent is made of this configuration, and the reason has this part. */
static void makes_none(struct spec *s, const struct pinfold_agent_config *config, const char *part)
{
    spec_refuses(s, PINFOLD_EVALUE, pinfold_agent_new(config, &agent, &s->err));
    if (!strstr(s->err.msg, part))
        fail_msg("\"%s\" is not in: %s", part, s->err.msg);
    assert_null(agent);
}

static void prepare(struct spec *s)
{
    spec_ok(s, pinfold_prepare_workspace(agent, NULL, NULL, &s->err));
}

/* On the per-agent path, with its workspace. */
static void make_own(struct spec *s)
{
    struct pinfold_plugin *plugin = NULL;
    struct pinfold_agent_config config = own_config(s, NULL);

    spec_ok(s, pinfold_sandbox_plugin_new(&plugin, &s->err));
    config.plugins = &plugin;
    config.plugin_count = 1;
    make(s, &config);
    pinfold_plugin_unref(plugin);
    prepare(s);
}

/* ---- AgentConfig sandbox fields ---- */

static void table_config__sandbox(void **state)
{
    struct spec *s = *state;

    spec_start_plain(s);
    new_attached(s, PINFOLD_READ_WRITE);
    assert_true(pinfold_agent_is_attached(agent));
}

static void table_config__sandbox_attach_mode(void **state)
{
    struct spec *s = *state;
    struct pinfold_agent_config config = PINFOLD_AGENT_CONFIG_INIT;

    spec_start_plain(s);
    config.sandbox = s->sandbox;
    make(s, &config); /* the default */
    assert_true(has_tool("execute"));
    pinfold_agent_free(agent);
    agent = NULL;
    config.sandbox_attach_mode = PINFOLD_READ_ONLY;
    make(s, &config);
    assert_false(has_tool("execute"));
}

static void table_config__sandbox_mode(void **state)
{
    struct spec *s = *state;
    struct pinfold_agent_config config = PINFOLD_AGENT_CONFIG_INIT;

    make(s, &config);
    assert_int_equal(pinfold_agent_mode(agent), PINFOLD_SANDBOX_OFF); /* the default */
    pinfold_agent_free(agent);
    agent = NULL;
    config = own_config(s, NULL);
    make(s, &config);
    assert_int_equal(pinfold_agent_mode(agent), PINFOLD_SANDBOX_ON);
}

static void table_config__execution_backend(void **state)
{
    struct spec *s = *state;

    make_own(s);
    answers(s, "write_file", "{\"path\":\"a\",\"content\":\"x\"}", "Wrote 1 bytes to a.");
    spec_is(s, "ws/a", "x");
}

static void table_config__workspace_root(void **state)
{
    struct spec *s = *state;
    struct pinfold_agent_config config = own_config(s, spec_at(s, "seed"));

    spec_put(s, "seed/a.py", "1");
    make(s, &config);
    prepare(s);
    spec_is(s, "ws/a.py", "1");
}

static void table_config__workspace_sync_policy(void **state)
{
    struct spec *s = *state;
    static const char *const only[] = { "*.txt", NULL };
    const struct pinfold_sync_policy policy = { .sync_include_patterns = only };
    struct pinfold_agent_config config = own_config(s, spec_at(s, "seed"));

    spec_dir(s, "seed");
    config.workspace_sync_policy = &policy;
    make(s, &config);
    prepare(s);
    spec_put(s, "ws/a.txt", "1");
    spec_put(s, "ws/b.py", "2");
    spec_ok(s, pinfold_sync_workspace_artifacts(agent, NULL, NULL, &s->err));
    spec_is(s, "seed/a.txt", "1");
    spec_missing(s, "seed/b.py");
}

static void table_config__sandbox_manager(void **state)
{
    struct spec *s = *state;
    struct pinfold_agent_config config = own_config(s, NULL);
    struct pinfold_session session = { 0 };

    spec_ok(s, pinfold_manager_new(NULL, &s->manager, &s->err));
    config.sandbox_manager = s->manager;
    make(s, &config);
    prepare(s);
    assert_int_equal(pinfold_manager_get_session(s->manager, "solo", &session, &s->err), 1);
    pinfold_session_done(&session);
}

static struct pinfold_storage *storage;

/* An agent of which this policy, with a storage in memory, is the sandbox_output_offload. */
static void make_offloading(struct spec *s, struct pinfold_offload_policy *policy)
{
    struct pinfold_agent_config config = PINFOLD_AGENT_CONFIG_INIT;

    spec_start_plain(s);
    spec_ok(s, pinfold_storage_memory_new(&storage, &s->err));
    policy->storage = storage;
    config.sandbox = s->sandbox;
    config.sandbox_output_offload = policy;
    make(s, &config);
    pinfold_storage_unref(storage);
}

/* What the model is told of a file of so many letters. */
static const char *reads(struct spec *s, size_t letters)
{
    static char text[20001];

    memset(text, 'a', letters);
    text[letters] = '\0';
    spec_put(s, "ws/long", text);
    call(s, "read_file", "{\"path\":\"long\"}");
    return result.items[0].data.data;
}

static bool is_offloaded(const char *text)
{
    return strstr(text, "[Offloaded: 1 blocks") == text;
}

static void table_config__sandbox_output_offload(void **state)
{
    struct spec *s = *state;
    struct pinfold_offload_policy policy = PINFOLD_OFFLOAD_POLICY_INIT;

    make_offloading(s, &policy);
    assert_true(pinfold_agent_has_plugin(agent, "context_offloader"));
    assert_true(is_offloaded(reads(s, 20000)));
}

/* ---- validation errors ---- */

static struct pinfold_agent_config shared_config(struct spec *s)
{
    struct pinfold_agent_config config = PINFOLD_AGENT_CONFIG_INIT;

    spec_start_plain(s);
    config.sandbox = s->sandbox;
    return config;
}

static void table_config_error__sandbox_and_execution_backend(void **state)
{
    struct pinfold_agent_config config = shared_config(*state);

    config.execution_backend = ((struct spec *)*state)->backend;
    makes_none(*state, &config, "execution_backend=");
}

static void table_config_error__sandbox_and_workspace_root(void **state)
{
    struct pinfold_agent_config config = shared_config(*state);

    config.workspace_root = ((struct spec *)*state)->dir;
    makes_none(*state, &config, "Sandbox(seed_from=...)");
}

static void table_config_error__sandbox_and_sandbox_manager(void **state)
{
    struct spec *s = *state;
    struct pinfold_agent_config config = shared_config(s);

    spec_ok(s, pinfold_manager_new(NULL, &s->manager, &s->err));
    config.sandbox_manager = s->manager;
    makes_none(s, &config, "the manager is the Sandbox's");
}

static void table_config_error__mode_sandbox_without_a_backend(void **state)
{
    struct pinfold_agent_config config = PINFOLD_AGENT_CONFIG_INIT;

    config.sandbox_mode = PINFOLD_SANDBOX_ON;
    makes_none(*state, &config, "needs a backend");
}

/* ---- SandboxMode ---- */

/* An agent with all host tools in a mode. */
static void make_with_host_tools(struct spec *s, enum pinfold_sandbox_mode mode)
{
    struct pinfold_tool *tools[PINFOLD_HOST_TOOLS];
    struct pinfold_agent_config config = own_config(s, NULL);

    spec_ok(s, pinfold_host_tools_new(NULL, tools, &s->err));
    config.tools = tools;
    config.tool_count = PINFOLD_HOST_TOOLS;
    config.sandbox_mode = mode;
    make(s, &config);
    for (size_t i = 0; i < PINFOLD_HOST_TOOLS; i++)
        pinfold_tool_unref(tools[i]);
}

static const char stats[] = "{\"path\":\"/dev/null\",\"mode\":\"find\"}";

static void table_mode__off(void **state)
{
    struct spec *s = *state;

    make_with_host_tools(s, PINFOLD_SANDBOX_OFF);
    assert_false(pinfold_sandbox_is_active(agent));
    answers(s, "file_read", stats, "/dev/null\n");
}

static void table_mode__sandbox(void **state)
{
    struct spec *s = *state;

    make_with_host_tools(s, PINFOLD_SANDBOX_ON);
    for (size_t i = 0; pinfold_host_execution_tool_names[i]; i++)
        refuses(s, pinfold_host_execution_tool_names[i], "{}", "works on the host");
}

static void table_mode__local_dev(void **state)
{
    struct spec *s = *state;

    make_with_host_tools(s, PINFOLD_SANDBOX_LOCAL);
    assert_true(pinfold_sandbox_is_active(agent));
    answers(s, "file_read", stats, "/dev/null\n");
}

/* ---- SandboxAttachMode ---- */

static void table_attach_mode__read_write(void **state)
{
    struct spec *s = *state;

    spec_start_plain(s);
    new_attached(s, PINFOLD_READ_WRITE);
    assert_true(has_tool("execute") && has_tool("read_file"));
    assert_true(has_tool("write_file") && has_tool("list_dir"));
}

static void table_attach_mode__read_only(void **state)
{
    struct spec *s = *state;

    spec_start_plain(s);
    new_attached(s, PINFOLD_READ_ONLY);
    assert_true(has_tool("read_file") && has_tool("list_dir"));
    assert_false(has_tool("execute") || has_tool("write_file"));
    refuses(s, "execute", "{\"command\":\"true\"}", "read-only for you");
    refuses(s, "write_file", "{\"path\":\"a\",\"content\":\"\"}", "read-only for you");
}

/* ---- SandboxOutputOffloadPolicy ---- */

static void table_offload__storage(void **state)
{
    struct spec *s = *state;
    struct pinfold_offload_policy policy = PINFOLD_OFFLOAD_POLICY_INIT;
    struct pinfold_agent_config config = shared_config(s);

    config.sandbox_output_offload = &policy;
    makes_none(s, &config, "a storage is required");
}

static void table_offload__max_result_tokens(void **state)
{
    struct spec *s = *state;
    struct pinfold_offload_policy policy = PINFOLD_OFFLOAD_POLICY_INIT;

    make_offloading(s, &policy);
    assert_false(is_offloaded(reads(s, 10000))); /* 2,500 tokens, the default */
    assert_true(is_offloaded(reads(s, 10001)));
}

static void table_offload__preview_tokens(void **state)
{
    struct spec *s = *state;
    struct pinfold_offload_policy policy = PINFOLD_OFFLOAD_POLICY_INIT;
    const char *text, *preview;

    make_offloading(s, &policy);
    text = reads(s, 20000);
    preview = strstr(text, "\naaaa");
    assert_non_null(preview);
    assert_int_equal(strspn(preview + 1, "a"), 4000); /* 1,000 tokens, the default */
}

static void table_offload__include_retrieval_tool(void **state)
{
    struct spec *s = *state;
    struct pinfold_offload_policy policy = PINFOLD_OFFLOAD_POLICY_INIT;

    make_offloading(s, &policy);
    assert_true(has_tool("retrieve_offloaded_content"));
    pinfold_agent_free(agent);
    agent = NULL;
    policy.no_retrieval_tool = true;
    spec_stop(s);
    make_offloading(s, &policy);
    assert_false(has_tool("retrieve_offloaded_content"));
}

static void table_offload__tool_names(void **state)
{
    struct spec *s = *state;
    static const char *const only[] = { "execute", NULL };
    struct pinfold_offload_policy policy = PINFOLD_OFFLOAD_POLICY_INIT;

    policy.tool_names = only;
    make_offloading(s, &policy);
    assert_false(is_offloaded(reads(s, 20000)));
    call(s, "execute", "{\"command\":\"cat long\"}");
    assert_true(is_offloaded(result.items[0].data.data));
}

/* ---- workspace helpers ---- */

static void table_helper__prepare_workspace(void **state)
{
    struct spec *s = *state;
    struct pinfold_agent_config config = own_config(s, spec_at(s, "seed"));

    spec_put(s, "seed/a", "1");
    make(s, &config);
    spec_ok(s, pinfold_prepare_workspace(agent, &s->seed, NULL, &s->err));
    assert_int_equal(s->seed.files_seeded, 1);
}

static void table_helper__sync_workspace_artifacts(void **state)
{
    struct spec *s = *state;
    struct pinfold_agent_config config = own_config(s, spec_at(s, "seed"));

    spec_dir(s, "seed");
    make(s, &config);
    prepare(s);
    spec_put(s, "ws/a.md", "1");
    assert_int_equal(pinfold_sync_workspace_artifacts(agent, &s->sync, NULL, &s->err), 1);
    assert_int_equal(s->sync.files_synced, 1);
    spec_is(s, "seed/a.md", "1");
}

static void table_helper__close_sandbox_workspace(void **state)
{
    struct spec *s = *state;
    struct pinfold_agent_config config = own_config(s, spec_at(s, "seed"));

    spec_dir(s, "seed");
    make(s, &config);
    prepare(s);
    spec_put(s, "ws/a.md", "1");
    spec_ok(s, pinfold_close_sandbox_workspace(agent, true, NULL, &s->err));
    assert_false(pinfold_workspace_is_prepared(agent));
    spec_is(s, "seed/a.md", "1");
}

static void table_helper__sync_workspace_for_sandbox(void **state)
{
    struct spec *s = *state;

    spec_dir(s, "dest");
    spec_start_plain(s);
    spec_put(s, "ws/a.md", "1");
    spec_flush(s); /* which it is another name of */
    spec_is(s, "dest/a.md", "1");
}

static void table_helper__sandbox_is_active(void **state)
{
    struct spec *s = *state;
    struct pinfold_agent_config config = own_config(s, NULL);

    make(s, &config);
    assert_true(pinfold_sandbox_is_active(agent));
    pinfold_agent_free(agent);
    agent = NULL;
    config.sandbox_mode = PINFOLD_SANDBOX_OFF;
    make(s, &config);
    assert_false(pinfold_sandbox_is_active(agent));
}

static void table_helper__workspace_is_prepared(void **state)
{
    struct spec *s = *state;
    struct pinfold_agent_config config = own_config(s, NULL);

    make(s, &config);
    assert_false(pinfold_workspace_is_prepared(agent));
    prepare(s);
    assert_true(pinfold_workspace_is_prepared(agent));
}

static void table_helper__workspace_orchestrator(void **state)
{
    static const char script[] = "{\"turns\":[{\"reply\":\"done\"}]}";
    struct spec *s = *state;
    struct pinfold_agent_config config = own_config(s, NULL);
    struct pinfold_hooks hooks = pinfold_workspace_orchestrator();

    assert_non_null(hooks.before_invocation);
    spec_ok(s, pinfold_model_scripted_from_memory(script, strlen(script), &config.model, &s->err));
    make(s, &config);
    pinfold_model_unref(config.model);
    spec_ok(s, pinfold_agent_invoke(agent, "go", NULL, NULL, &s->err));
    assert_true(pinfold_workspace_is_prepared(agent));
}

/* ---- tools of SandboxPlugin ---- */

static void table_tool__execute(void **state)
{
    struct spec *s = *state;

    make_own(s);
    spec_put(s, "ws/sub/f", "1");
    answers(s, "execute", "{\"command\":\"ls\"}", "exit code: 0\nsub\n");
    answers(s, "execute", "{\"command\":\"ls\",\"cwd\":\"sub\"}", "exit code: 0\nf\n");
    refuses(s, "execute", "{}", "command: is required");
}

static void table_tool__read_file(void **state)
{
    struct spec *s = *state;

    make_own(s);
    spec_put(s, "ws/a", "1\n2\n3\n");
    answers(s, "read_file", "{\"path\":\"a\"}", "1\n2\n3\n");
    call(s, "read_file", "{\"path\":\"a\",\"offset\":1,\"limit\":1}");
    assert_int_equal(strncmp(result.items[0].data.data, "2\n[", 3), 0); /* where to go on */
    refuses(s, "read_file", "{}", "path: is required");
}

static void table_tool__write_file(void **state)
{
    struct spec *s = *state;

    make_own(s);
    call(s, "write_file", "{\"path\":\"d/a\",\"content\":\"x\\ny\"}");
    assert_false(result.is_error);
    spec_is(s, "ws/d/a", "x\ny");
    refuses(s, "write_file", "{\"path\":\"a\"}", "content: is required");
}

static void table_tool__list_dir(void **state)
{
    struct spec *s = *state;

    make_own(s);
    spec_put(s, "ws/d/a", "12345");
    spec_dir(s, "ws/d/e");
    call(s, "list_dir", "{\"path\":\"d\"}");
    assert_non_null(strstr(result.items[0].data.data, "a"));
    assert_non_null(strstr(result.items[0].data.data, "e/"));
    refuses(s, "list_dir", "{}", "path: is required");
}

/* ---- helpers for tools of one's own ---- */

static void table_custom__run_command(void **state)
{
    struct spec *s = *state;

    make_own(s);
    spec_ok(s, pinfold_run_command(agent, "echo hi; exit 3", NULL, &s->text, NULL, &s->err));
    assert_string_equal(s->text.data, "exit code: 3\nhi\n");
}

static void table_custom__read_workspace_file(void **state)
{
    struct spec *s = *state;
    uint64_t lines = 0;

    make_own(s);
    spec_put(s, "ws/a", "1\n2\n3\n");
    spec_ok(s, pinfold_read_workspace_file(agent, "a", 1, 1, &s->text, &lines, NULL, &s->err));
    assert_string_equal(s->text.data, "2\n");
    assert_int_equal(lines, 3);
}

static void table_custom__write_workspace_file(void **state)
{
    struct spec *s = *state;

    make_own(s);
    spec_ok(s, pinfold_write_workspace_file(agent, "a/b", "x", 1, NULL, &s->err));
    spec_is(s, "ws/a/b", "x");
}

static void table_custom__list_workspace_dir(void **state)
{
    struct spec *s = *state;
    struct pinfold_file_infos infos = { 0 };

    make_own(s);
    spec_put(s, "ws/a", "x");
    spec_ok(s, pinfold_list_workspace_dir(agent, ".", &infos, NULL, &s->err));
    assert_int_equal(infos.count, 1);
    assert_string_equal(infos.items[0].path, "a");
    pinfold_file_infos_done(&infos);
}

static void table_custom__format_execute_result(void **state)
{
    struct spec *s = *state;
    char text[256];

    make_own(s);
    spec_ok(s, pinfold_agent_execute(agent,
                                     &(struct pinfold_execute_options){
                                             .size = sizeof(struct pinfold_execute_options),
                                             .command = "echo hi; echo no >&2" },
                                     &s->run, NULL, &s->err));
    spec_ok(s, pinfold_execute_result_format(&s->run, &s->text, &s->err));
    call(s, "execute", "{\"command\":\"echo hi; echo no >&2\"}");
    snprintf(text, sizeof(text), "%s", result.items[0].data.data);
    assert_string_equal(s->text.data, text);
}

/* ---- exceptions ---- */

static void table_exception__SandboxStartError(void **state)
{
    struct spec *s = *state;
    struct pinfold_sandbox_options options = spec_options(s);

    spec_start_plain(s);
    spec_ok(s, pinfold_sandbox_new(&options, &s->other, &s->err));
    spec_refuses(s, PINFOLD_ESTART, pinfold_sandbox_start(s->other, NULL, NULL, &s->err));
}

static void table_exception__SandboxAttachError(void **state)
{
    struct spec *s = *state;
    struct pinfold_agent_config config = PINFOLD_AGENT_CONFIG_INIT;
    struct pinfold_sandbox_options options = spec_options(s);

    spec_new(s, &options); /* and not started */
    config.sandbox = s->sandbox;
    spec_refuses(s, PINFOLD_EATTACH, pinfold_agent_new(&config, &agent, &s->err));
}

static void table_exception__AgentSandboxDetachedError(void **state)
{
    struct spec *s = *state;

    spec_start_plain(s);
    new_attached(s, PINFOLD_READ_WRITE);
    pinfold_agent_detach(agent);
    spec_refuses(s, PINFOLD_EDETACHED,
                 pinfold_write_workspace_file(agent, "a", "x", 1, NULL, &s->err));
}

static void table_exception__SandboxMutationDeniedError(void **state)
{
    struct spec *s = *state;

    spec_start_plain(s);
    new_attached(s, PINFOLD_READ_ONLY);
    spec_refuses(s, PINFOLD_EDENIED,
                 pinfold_write_workspace_file(agent, "a", "x", 1, NULL, &s->err));
    spec_refuses(s, PINFOLD_EDENIED,
                 pinfold_run_command(agent, "ls", NULL, &s->text, NULL, &s->err));
}

static void table_exception__WorkspacePrepareError(void **state)
{
    struct spec *s = *state;
    struct pinfold_agent_config config = own_config(s, spec_at(s, "nowhere"));

    make(s, &config);
    spec_refuses(s, PINFOLD_EPREPARE, pinfold_prepare_workspace(agent, NULL, NULL, &s->err));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SPEC_TEST(table_config__sandbox),
        SPEC_TEST(table_config__sandbox_attach_mode),
        SPEC_TEST(table_config__sandbox_mode),
        SPEC_TEST(table_config__sandbox_output_offload),
        SPEC_TEST(table_config__execution_backend),
        SPEC_TEST(table_config__workspace_root),
        SPEC_TEST(table_config__workspace_sync_policy),
        SPEC_TEST(table_config__sandbox_manager),
        SPEC_TEST(table_config_error__sandbox_and_execution_backend),
        SPEC_TEST(table_config_error__sandbox_and_workspace_root),
        SPEC_TEST(table_config_error__sandbox_and_sandbox_manager),
        SPEC_TEST(table_config_error__mode_sandbox_without_a_backend),
        SPEC_TEST(table_mode__off),
        SPEC_TEST(table_mode__sandbox),
        SPEC_TEST(table_mode__local_dev),
        SPEC_TEST(table_attach_mode__read_write),
        SPEC_TEST(table_attach_mode__read_only),
        SPEC_TEST(table_offload__storage),
        SPEC_TEST(table_offload__max_result_tokens),
        SPEC_TEST(table_offload__preview_tokens),
        SPEC_TEST(table_offload__include_retrieval_tool),
        SPEC_TEST(table_offload__tool_names),
        SPEC_TEST(table_helper__prepare_workspace),
        SPEC_TEST(table_helper__sync_workspace_artifacts),
        SPEC_TEST(table_helper__close_sandbox_workspace),
        SPEC_TEST(table_helper__sync_workspace_for_sandbox),
        SPEC_TEST(table_helper__sandbox_is_active),
        SPEC_TEST(table_helper__workspace_is_prepared),
        SPEC_TEST(table_helper__workspace_orchestrator),
        SPEC_TEST(table_tool__execute),
        SPEC_TEST(table_tool__read_file),
        SPEC_TEST(table_tool__write_file),
        SPEC_TEST(table_tool__list_dir),
        SPEC_TEST(table_custom__run_command),
        SPEC_TEST(table_custom__read_workspace_file),
        SPEC_TEST(table_custom__write_workspace_file),
        SPEC_TEST(table_custom__list_workspace_dir),
        SPEC_TEST(table_custom__format_execute_result),
        SPEC_TEST(table_exception__SandboxStartError),
        SPEC_TEST(table_exception__SandboxAttachError),
        SPEC_TEST(table_exception__AgentSandboxDetachedError),
        SPEC_TEST(table_exception__SandboxMutationDeniedError),
        SPEC_TEST(table_exception__WorkspacePrepareError),
    };

    return spec_run_tests("tables of agents", tests);
}
