/* SPDX-License-Identifier: Apache-2.0 */
/* The per-agent path: workspaces that agents' configurations ask for. */
#include "agents.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>

static struct {
    char dir[64], root[96], ws[96];
    struct pinfold_backend *backend;
    struct pinfold_manager *manager;
    struct pinfold_plugin *plugin;
    struct pinfold_agent *agent, *other;
    struct pinfold_error err;
} t;

static void put(const char *path, const char *text)
{
    char full[256];
    FILE *file;

    snprintf(full, sizeof(full), "%s/%s", t.dir, path);
    file = fopen(full, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void is(const char *path, const char *expected)
{
    char full[256], text[256] = "";
    FILE *file;

    snprintf(full, sizeof(full), "%s/%s", t.dir, path);
    file = fopen(full, "r");
    if (!expected) {
        assert_null(file);
        return;
    }
    assert_non_null(file);
    text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
    fclose(file);
    assert_string_equal(text, expected);
}

static int setup(void **state)
{
    (void)state;
    memset(&t, 0, sizeof(t));
    if (!test_tempdir("own", t.dir, sizeof(t.dir)))
        return -1;
    snprintf(t.root, sizeof(t.root), "%s/root", t.dir);
    snprintf(t.ws, sizeof(t.ws), "%s/ws", t.dir);
    assert_int_equal(mkdir(t.root, 0755), 0);
    put("root/a.py", "print(1)\n");
    put("root/key.pem", "secret\n");
    t.backend = local_backend(t.ws);
    assert_int_equal(pinfold_manager_new(NULL, &t.manager, NULL), 0);
    assert_int_equal(pinfold_sandbox_plugin_new(&t.plugin, NULL), 0);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    pinfold_agent_free(t.agent);
    pinfold_agent_free(t.other);
    pinfold_plugin_unref(t.plugin);
    pinfold_manager_unref(t.manager);
    pinfold_backend_unref(t.backend);
    remove_tree(t.dir);
    return 0;
}

static struct pinfold_agent_config own_config(const char *id)
{
    struct pinfold_agent_config config = PINFOLD_AGENT_CONFIG_INIT;

    config.agent_id = id;
    config.sandbox_mode = PINFOLD_SANDBOX_ON;
    config.execution_backend = t.backend;
    config.workspace_root = t.root;
    config.sandbox_manager = t.manager;
    config.plugins = &t.plugin;
    config.plugin_count = 1;
    return config;
}

static struct pinfold_agent *own_agent(const char *id)
{
    struct pinfold_agent_config config = own_config(id);
    struct pinfold_agent *agent = NULL;

    assert_int_equal(pinfold_agent_new(&config, &agent, NULL), 0);
    return agent;
}

static void a_workspace_is_prepared_when_asked_for_and_once(void **state)
{
    struct pinfold_seed_result seed = { 0 };

    (void)state;
    t.agent = own_agent("solo");
    assert_true(pinfold_sandbox_is_active(t.agent));
    assert_false(pinfold_workspace_is_prepared(t.agent));
    has_text(ask_tool(t.agent, "read_file", "{\"path\":\"a.py\"}"),
             "!SandboxStartError: the workspace of agent solo is not prepared");
    assert_int_equal(pinfold_ensure_sandbox_mutation_allowed(t.agent, &t.err), -PINFOLD_ESTART);
    assert_int_equal(pinfold_prepare_workspace(t.agent, &seed, NULL, &t.err), 0);
    assert_int_equal(seed.files_seeded, 1);
    assert_int_equal(seed.skipped_paths.count, 1); /* the secret */
    pinfold_seed_result_done(&seed);
    assert_true(pinfold_workspace_is_prepared(t.agent));
    assert_int_equal(pinfold_prepare_workspace(t.agent, &seed, NULL, &t.err), 0);
    assert_int_equal(seed.files_seeded, 0);
    assert_string_equal(ask_tool(t.agent, "execute", "{\"command\":\"cat a.py\"}"),
                        "exit code: 0\nprint(1)\n");
    assert_int_equal(pinfold_ensure_sandbox_mutation_allowed(t.agent, &t.err), 0);
}

static void host_tools_go_and_cannot_come(void **state)
{
    struct pinfold_agent_config config = own_config("solo");
    struct pinfold_tool *tools[PINFOLD_HOST_TOOLS];

    (void)state;
    assert_int_equal(pinfold_host_tools_new(NULL, tools, NULL), 0);
    config.tools = tools;
    config.tool_count = PINFOLD_HOST_TOOLS;
    assert_int_equal(pinfold_agent_new(&config, &t.agent, &t.err), 0);
    has_text(ask_tool(t.agent, "shell", "{\"command\":\"true\"}"), "!shell works on the host");
    assert_int_equal(pinfold_agent_add_tool(t.agent, tools[0], &t.err), -PINFOLD_EDENIED);
    config.sandbox_mode = PINFOLD_SANDBOX_LOCAL; /* both kinds */
    config.agent_id = "dev";
    assert_int_equal(pinfold_agent_new(&config, &t.other, &t.err), 0);
    setenv("BYPASS_TOOL_CONSENT", "true", 1);
    has_text(ask_tool(t.other, "shell", "{\"command\":\"true\"}"), "1 succeeded");
    unsetenv("BYPASS_TOOL_CONSENT");
    assert_int_equal(pinfold_prepare_workspace(t.other, NULL, NULL, &t.err), 0);
    has_text(ask_tool(t.other, "execute", "{\"command\":\"ls\"}"), "a.py");
    for (size_t i = 0; i < PINFOLD_HOST_TOOLS; i++)
        pinfold_tool_unref(tools[i]);
}

static void off_means_off(void **state)
{
    struct pinfold_agent_config config = own_config("off");

    (void)state;
    config.sandbox_mode = PINFOLD_SANDBOX_OFF;
    assert_int_equal(pinfold_agent_new(&config, &t.agent, &t.err), 0);
    assert_false(pinfold_sandbox_is_active(t.agent));
    assert_int_equal(pinfold_prepare_workspace(t.agent, NULL, NULL, &t.err), 0);
    assert_false(pinfold_workspace_is_prepared(t.agent));
    has_text(ask_tool(t.agent, "execute", "{\"command\":\"true\"}"), "!Unknown tool");
    assert_int_equal(pinfold_close_sandbox_workspace(t.agent, true, NULL, &t.err), 0);
    config.execution_backend = NULL;
    config.sandbox_mode = PINFOLD_SANDBOX_LOCAL; /* without a backend there is nothing to do */
    assert_int_equal(pinfold_agent_new(&config, &t.other, &t.err), 0);
    assert_false(pinfold_sandbox_is_active(t.other));
}

static void results_come_home_by_the_policy(void **state)
{
    static const char *const includes[] = { "*.txt", NULL };
    const struct pinfold_sync_policy policy = { .sync_include_patterns = includes };
    struct pinfold_agent_config config = own_config("solo");
    struct pinfold_sync_result result = { 0 };

    (void)state;
    config.workspace_sync_policy = &policy;
    assert_int_equal(pinfold_agent_new(&config, &t.agent, &t.err), 0);
    assert_int_equal(pinfold_sync_workspace_artifacts(t.agent, &result, NULL, &t.err), 0);
    assert_int_equal(pinfold_prepare_workspace(t.agent, NULL, NULL, &t.err), 0);
    ask_tool(t.agent, "execute", "{\"command\":\"echo 1 > out.txt; echo 2 > out.md\"}");
    assert_int_equal(pinfold_sync_workspace_artifacts(t.agent, &result, NULL, &t.err), 1);
    assert_int_equal(result.files_synced, 1);
    pinfold_sync_result_done(&result);
    is("root/out.txt", "1\n");
    is("root/out.md", NULL);
}

static void closing_syncs_and_kills_and_it_can_be_prepared_again(void **state)
{
    (void)state;
    t.agent = own_agent("solo");
    assert_int_equal(pinfold_prepare_workspace(t.agent, NULL, NULL, &t.err), 0);
    ask_tool(t.agent, "execute", "{\"command\":\"echo 1 > out.md\"}");
    assert_int_equal(pinfold_close_sandbox_workspace(t.agent, true, NULL, &t.err), 0);
    is("root/out.md", "1\n");
    assert_false(pinfold_workspace_is_prepared(t.agent));
    has_text(ask_tool(t.agent, "execute", "{\"command\":\"true\"}"), "is not prepared");
    assert_int_equal(pinfold_close_sandbox_workspace(t.agent, true, NULL, &t.err), 0);
    assert_int_equal(pinfold_prepare_workspace(t.agent, NULL, NULL, &t.err), 0);
    ask_tool(t.agent, "execute", "{\"command\":\"echo 2 > out.md\"}");
    assert_int_equal(pinfold_close_sandbox_workspace(t.agent, false, NULL, &t.err), 0);
    is("root/out.md", "1\n");
}

static void a_session_that_ended_is_noticed(void **state)
{
    (void)state;
    t.agent = own_agent("solo");
    assert_int_equal(pinfold_prepare_workspace(t.agent, NULL, NULL, &t.err), 0);
    assert_int_equal(pinfold_manager_close_session(t.manager, "solo", NULL, NULL, &t.err), 0);
    assert_false(pinfold_workspace_is_prepared(t.agent));
    has_text(ask_tool(t.agent, "execute", "{\"command\":\"true\"}"), "!SandboxStartError");
    assert_int_equal(pinfold_prepare_workspace(t.agent, NULL, NULL, &t.err), 0);
    has_text(ask_tool(t.agent, "execute", "{\"command\":\"true\"}"), "exit code: 0");
}

static void agents_of_one_id_share_what_one_has_seeded(void **state)
{
    struct pinfold_agent_config config = own_config("one");
    struct pinfold_seed_result seed = { 0 };

    (void)state;
    config.workspace_id = "shared";
    assert_int_equal(pinfold_agent_new(&config, &t.agent, &t.err), 0);
    config.agent_id = "two";
    assert_int_equal(pinfold_agent_new(&config, &t.other, &t.err), 0);
    assert_int_equal(pinfold_prepare_workspace(t.agent, NULL, NULL, &t.err), 0);
    ask_tool(t.agent, "write_file", "{\"path\":\"a.py\",\"content\":\"mine\"}");
    assert_int_equal(pinfold_prepare_workspace(t.other, &seed, NULL, &t.err), 0);
    assert_int_equal(seed.files_seeded, 0);
    assert_string_equal(ask_tool(t.other, "read_file", "{\"path\":\"a.py\"}"), "mine");
    pinfold_agent_free(t.other); /* its session stays, for the other */
    t.other = NULL;
    assert_string_equal(ask_tool(t.agent, "read_file", "{\"path\":\"a.py\"}"), "mine");
}

static void a_seed_that_is_not_there_is_told_and_nothing_stays(void **state)
{
    struct pinfold_agent_config config = own_config("solo");

    (void)state;
    config.workspace_root = "/no/such/place";
    assert_int_equal(pinfold_agent_new(&config, &t.agent, &t.err), 0);
    assert_int_equal(pinfold_prepare_workspace(t.agent, NULL, NULL, &t.err), -PINFOLD_EPREPARE);
    has_text(t.err.msg, "/no/such/place");
    assert_false(pinfold_workspace_is_prepared(t.agent));
    assert_int_equal(pinfold_prepare_workspace(t.agent, NULL, NULL, &t.err), -PINFOLD_EPREPARE);
}

static void an_agent_with_its_own_is_not_attached(void **state)
{
    struct pinfold_sandbox_options options = PINFOLD_SANDBOX_OPTIONS_INIT;
    struct pinfold_sandbox *sandbox = NULL;
    struct pinfold_backend *backend;
    char ws[128];

    (void)state;
    snprintf(ws, sizeof(ws), "%s/ws2", t.dir);
    backend = local_backend(ws);
    options.workspace_id = "own-other";
    options.backend = backend;
    options.ttl_seconds = 60;
    assert_int_equal(pinfold_sandbox_new(&options, &sandbox, NULL), 0);
    assert_int_equal(pinfold_sandbox_start(sandbox, NULL, NULL, NULL), 0);
    t.agent = own_agent("solo");
    assert_int_equal(pinfold_agent_attach(t.agent, sandbox, PINFOLD_READ_WRITE, &t.err),
                     -PINFOLD_EATTACH);
    has_text(t.err.msg, "has a workspace of its own");
    pinfold_sandbox_free(sandbox);
    pinfold_backend_unref(backend);
}

/* ---- with a model ---- */

static int converse(void *state, const struct pinfold_model_request *request,
                    struct pinfold_model_reply *ret, struct pinfold_cancel *cancel,
                    struct pinfold_error *err)
{
    (void)state;
    (void)cancel;
    ret->message.role = PINFOLD_ROLE_ASSISTANT;
    ret->stop_detail = strdup("");
    ret->request_id = strdup("");
    ret->attempts = 1;
    if (request->message_count > 1) {
        const struct pinfold_message *last = &request->messages[request->message_count - 1];

        ret->stop = PINFOLD_STOP_END;
        return pinfold_message_add_text(&ret->message, last->blocks[0].text,
                                        last->blocks[0].text_len, err);
    }
    ret->stop = PINFOLD_STOP_TOOL_USE;
    return pinfold_message_add_tool_use(&ret->message, "c", "execute", "{\"command\":\"cat a.py\"}",
                                        22, err);
}

static void an_invocation_prepares_the_workspace(void **state)
{
    static const struct pinfold_model_ops ops = { .size = sizeof(ops),
                                                  .provider = "test",
                                                  .converse = converse };
    struct pinfold_agent_config config = own_config("solo");
    struct pinfold_invocation done = { 0 };

    (void)state;
    assert_int_equal(pinfold_model_new(&ops, NULL, "test", &config.model, NULL), 0);
    assert_int_equal(pinfold_agent_new(&config, &t.agent, &t.err), 0);
    assert_int_equal(pinfold_agent_invoke(t.agent, "look", &done, NULL, &t.err), 0);
    assert_string_equal(done.text.data, "exit code: 0\nprint(1)\n");
    assert_true(pinfold_workspace_is_prepared(t.agent));
    pinfold_invocation_done(&done);
    config.agent_id = "blind";
    config.workspace_root = "/no/such/place";
    assert_int_equal(pinfold_close_sandbox_workspace(t.agent, false, NULL, NULL), 0);
    assert_int_equal(pinfold_agent_new(&config, &t.other, &t.err), 0);
    assert_int_equal(pinfold_agent_invoke(t.other, "look", &done, NULL, &t.err), -PINFOLD_EPREPARE);
    pinfold_model_unref(config.model);
}

/* ---- at once ---- */

static void *prepare_it(void *ctx)
{
    struct pinfold_seed_result seed = { 0 };
    intptr_t seeded;

    assert_int_equal(pinfold_prepare_workspace(ctx, &seed, NULL, NULL), 0);
    seeded = (intptr_t)seed.files_seeded;
    pinfold_seed_result_done(&seed);
    return (void *)seeded;
}

static void many_prepare_and_one_seeds(void **state)
{
    enum { AGENTS = 8 };
    struct pinfold_agent_config config = own_config("crowd");
    struct pinfold_agent *agents[AGENTS];
    pthread_t threads[AGENTS];
    intptr_t seeded = 0;
    void *one;

    (void)state;
    config.workspace_id = "shared";
    for (int i = 0; i < AGENTS; i++)
        assert_int_equal(pinfold_agent_new(&config, &agents[i], NULL), 0);
    for (int i = 0; i < AGENTS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, prepare_it, agents[i]), 0);
    for (int i = 0; i < AGENTS; i++) {
        pthread_join(threads[i], &one);
        seeded += (intptr_t)one;
    }
    assert_int_equal(seeded, 1);
    for (int i = 0; i < AGENTS; i++)
        pinfold_agent_free(agents[i]);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_workspace_is_prepared_when_asked_for_and_once),
        TEST(host_tools_go_and_cannot_come),
        TEST(off_means_off),
        TEST(results_come_home_by_the_policy),
        TEST(closing_syncs_and_kills_and_it_can_be_prepared_again),
        TEST(a_session_that_ended_is_noticed),
        TEST(agents_of_one_id_share_what_one_has_seeded),
        TEST(a_seed_that_is_not_there_is_told_and_nothing_stays),
        TEST(an_agent_with_its_own_is_not_attached),
        TEST(an_invocation_prepares_the_workspace),
        TEST(many_prepare_and_one_seeds),
    };

    return cmocka_run_group_tests_name("per_agent", tests, NULL, NULL);
}
