/* SPDX-License-Identifier: Apache-2.0 */
/* What the workspace tools answer: the parts of rows 37 to 44 and 76 that are about tools. Rows 117
 * to 120, of long results, and 125, of consent. */
#include "agents.h"

static void row_037_a_bad_path_is_a_result_and_no_end(void **state)
{
    struct spec *s = *state;

    spec_start_plain(s);
    new_attached(s, PINFOLD_READ_WRITE);
    refuses(s, "read_file", "{\"path\":\"../etc/passwd\"}", "../etc/passwd");
    refuses(s, "write_file", "{\"path\":\"/etc/x\",\"content\":\"\"}", "/etc/x");
    refuses(s, "list_dir", "{\"path\":\"none\"}", "none");
    refuses(s, "execute", "{\"command\":\"true\",\"cwd\":\"none\"}", "none");
    refuses(s, "read_file", "{\"path\":\"\"}", "empty");
    /* None of them is cut short and then taken for another. */
    refuses(s, "read_file", "{\"path\":\"a\\u0000b\"}", "path holds a NUL byte");
    refuses(s, "write_file", "{\"path\":\"a\\u0000b\",\"content\":\"\"}", "path holds a NUL byte");
    refuses(s, "list_dir", "{\"path\":\".\\u0000b\"}", "path holds a NUL byte");
    refuses(s, "execute", "{\"command\":\"true\",\"cwd\":\".\\u0000b\"}", "cwd holds a NUL byte");
    spec_missing(s, "ws/a");
}

static void row_039_a_binary_file_is_a_short_error(void **state)
{
    struct spec *s = *state;

    spec_start_plain(s);
    new_attached(s, PINFOLD_READ_WRITE);
    spec_put_bytes(s, "ws/bin",
                   "\x7f"
                   "ELF\xff\xfe\0\1",
                   8);
    refuses(s, "read_file", "{\"path\":\"bin\"}", "UnicodeDecodeError");
    assert_true(result.items[0].data.len < 300);
}

static void row_040_what_is_read_is_what_is_stored(void **state)
{
    struct spec *s = *state;

    spec_start_plain(s);
    new_attached(s, PINFOLD_READ_WRITE);
    spec_put(s, "ws/a",
             "\xef\xbb\xbf"
             "one\r\ntwo");
    answers(s, "read_file", "{\"path\":\"a\"}",
            "\xef\xbb\xbf"
            "one\r\ntwo");
}

static void row_042_offsets_and_limits_are_lenient(void **state)
{
    struct spec *s = *state;

    spec_start_plain(s);
    new_attached(s, PINFOLD_READ_WRITE);
    spec_put(s, "ws/a", "1\n2\n3\n");
    answers(s, "read_file", "{\"path\":\"a\",\"offset\":-5,\"limit\":null}", "1\n2\n3\n");
    answers(s, "read_file", "{\"path\":\"a\",\"limit\":0}", "");
    answers(s, "read_file", "{\"path\":\"a\",\"offset\":3}",
            "[The file has 3 lines; offset 3 is past its end.]");
    answers(s, "read_file", "{\"path\":\"a\",\"offset\":1,\"limit\":1}",
            "2\n[Lines 2 to 2 of 3. Continue with offset=2.]");
    answers(s, "read_file", "{\"path\":\"a\",\"offset\":1}", "2\n3\n");
}

static void row_043_an_empty_file_is_said_to_be_empty(void **state)
{
    struct spec *s = *state;

    spec_start_plain(s);
    new_attached(s, PINFOLD_READ_WRITE);
    spec_put(s, "ws/a", "");
    answers(s, "read_file", "{\"path\":\"a\"}", "[The file is empty.]");
    answers(s, "execute", "{\"command\":\"mkdir d\"}", "exit code: 0\n<no output>");
    answers(s, "list_dir", "{\"path\":\"d\"}", "[The directory is empty.]");
}

static void row_044_a_long_file_is_paged_by_whole_lines(void **state)
{
    struct spec *s = *state;
    const char *text;
    char input[64];
    unsigned long next = 0;
    unsigned pages = 0;

    spec_start_plain(s);
    new_attached(s, PINFOLD_READ_WRITE);
    answers(s, "execute", "{\"command\":\"seq 1 60000 > long\"}", "exit code: 0\n<no output>");
    do {
        snprintf(input, sizeof(input), "{\"path\":\"long\",\"offset\":%lu}", next);
        call(s, "read_file", input);
        text = result.items[0].data.data;
        assert_true(result.items[0].data.len < 100200);
        assert_int_equal(strtoul(text, NULL, 10), next + 1); /* nothing is lost between pages */
        text = strstr(text, "[Cut after 100000 bytes: the file has 60000 lines. Continue with "
                            "offset=");
        if (text)
            next = strtoul(strrchr(text, '=') + 1, NULL, 10);
        pages++;
    } while (text && pages < 10);
    assert_int_equal(pages, 4);
    assert_true(strstr(result.items[0].data.data, "\n60000\n"));
}

static void row_044_a_line_without_end_is_cut_and_said_to_be(void **state)
{
    struct spec *s = *state;

    spec_start_plain(s);
    new_attached(s, PINFOLD_READ_WRITE);
    answers(s, "execute",
            "{\"command\":\"head -c 300000 /dev/zero | tr '\\\\0' x > one; echo; echo end >> "
            "one\"}",
            "exit code: 0\n\n");
    call(s, "read_file", "{\"path\":\"one\"}");
    assert_true(result.items[0].data.len < 100200);
    assert_non_null(strstr(result.items[0].data.data,
                           "[Line 1 is longer than 100000 bytes and was cut here. Continue with "
                           "offset=1.]"));
}

static void row_076_a_failing_command_is_no_error_of_the_tool(void **state)
{
    struct spec *s = *state;

    spec_start_plain(s);
    new_attached(s, PINFOLD_READ_WRITE);
    answers(s, "execute", "{\"command\":\"echo out; echo bad >&2; exit 3\"}",
            "exit code: 3\nout\n[stderr] bad\n");
}

static void row_030_names_that_are_not_text_are_escaped(void **state)
{
    struct spec *s = *state;

    spec_start_plain(s);
    new_attached(s, PINFOLD_READ_WRITE);
    spec_put(s,
             "ws/a\xff"
             "b",
             "12345");
    spec_dir(s, "ws/sub");
    answers(s, "list_dir", "{\"path\":\".\"}", "a\\xffb  5 bytes\nsub/\n");
}

static void row_055_the_root_can_be_listed_and_a_file_cannot(void **state)
{
    struct spec *s = *state;

    spec_start_plain(s);
    new_attached(s, PINFOLD_READ_WRITE);
    spec_put(s, "ws/a", "1");
    answers(s, "list_dir", "{\"path\":\"\"}", "a  1 bytes\n");
    refuses(s, "list_dir", "{\"path\":\"a\"}", "Not a directory");
}

/* ---- long results ---- */

static unsigned warnings;
static const char *expected_warning;

static void note_log(void *ctx, enum pinfold_log_level level, const char *message)
{
    (void)ctx;
    if (level == PINFOLD_LOG_WARNING && strstr(message, expected_warning))
        warnings++;
}

static void expect_warning(const char *part)
{
    warnings = 0;
    expected_warning = part;
    pinfold_log_set_handler(note_log, NULL);
}

/* An agent on the sandbox whose long results go to a storage; plugin, may be NULL, is its own. */
static void new_offloading(struct spec *s, struct pinfold_storage *storage, bool no_tool,
                           struct pinfold_plugin *plugin)
{
    struct pinfold_agent_config config = PINFOLD_AGENT_CONFIG_INIT;
    struct pinfold_offload_policy policy = PINFOLD_OFFLOAD_POLICY_INIT;

    policy.storage = storage;
    policy.max_result_tokens = 10;
    policy.preview_tokens = 5;
    policy.no_retrieval_tool = no_tool;
    config.agent_id = "worker";
    config.sandbox = s->sandbox;
    config.sandbox_output_offload = &policy;
    config.plugins = &plugin;
    config.plugin_count = plugin ? 1 : 0;
    spec_ok(s, pinfold_agent_new(&config, &agent, &s->err));
}

static void row_117_an_offloader_of_the_users_is_kept(void **state)
{
    struct spec *s = *state;
    struct pinfold_offload_policy policy = PINFOLD_OFFLOAD_POLICY_INIT;
    struct pinfold_storage *theirs = NULL, *ours = NULL;
    struct pinfold_plugin *plugin = NULL;

    spec_start_plain(s);
    spec_ok(s, pinfold_storage_memory_new(&theirs, &s->err));
    spec_ok(s, pinfold_storage_memory_new(&ours, &s->err));
    policy.storage = theirs; /* and 2,500 tokens */
    spec_ok(s, pinfold_context_offloader_new(&policy, &plugin, &s->err));
    expect_warning("has a ContextOffloader of its own");
    new_offloading(s, ours, false, plugin);
    pinfold_log_set_handler(NULL, NULL);
    assert_int_equal(warnings, 1);
    spec_put(s, "ws/a", "forty-one characters, and not one more...");
    answers(s, "read_file", "{\"path\":\"a\"}", "forty-one characters, and not one more...");
    pinfold_plugin_unref(plugin);
    pinfold_storage_unref(theirs);
    pinfold_storage_unref(ours);
}

static void row_118_a_result_of_just_the_limit_is_not_offloaded(void **state)
{
    struct spec *s = *state;
    struct pinfold_storage *storage = NULL;

    spec_start_plain(s);
    spec_ok(s, pinfold_storage_memory_new(&storage, &s->err));
    new_offloading(s, storage, false, NULL);
    spec_put(s, "ws/a", "forty characters, which are ten tokens..");
    answers(s, "read_file", "{\"path\":\"a\"}", "forty characters, which are ten tokens..");
    spec_put(s, "ws/a", "forty characters, which are ten tokens...");
    call(s, "read_file", "{\"path\":\"a\"}");
    assert_non_null(strstr(result.items[0].data.data, "[Offloaded: 1 blocks, ~11 tokens]"));
    pinfold_storage_unref(storage);
}

static void row_119_files_without_a_way_to_them_are_warned_of(void **state)
{
    struct spec *s = *state;
    struct pinfold_storage *storage = NULL;

    spec_start_plain(s);
    spec_ok(s, pinfold_storage_file_new(spec_at(s, "artifacts"), &storage, &s->err));
    expect_warning("which workspace tools do not reach");
    new_offloading(s, storage, true, NULL);
    assert_int_equal(warnings, 1);
    assert_false(has_tool("retrieve_offloaded_content"));
    pinfold_agent_free(agent);
    agent = NULL;
    new_offloading(s, storage, false, NULL);
    pinfold_log_set_handler(NULL, NULL);
    assert_int_equal(warnings, 1);
    assert_true(has_tool("retrieve_offloaded_content"));
    pinfold_storage_unref(storage);
}

static void row_120_agents_share_a_storage(void **state)
{
    struct spec *s = *state;
    struct pinfold_storage *storage = NULL;
    struct pinfold_agent *first;

    spec_start_plain(s);
    spec_ok(s, pinfold_storage_memory_new(&storage, &s->err));
    new_offloading(s, storage, false, NULL);
    spec_put(s, "ws/a", "forty-one characters, and not one more...");
    call(s, "read_file", "{\"path\":\"a\"}");
    assert_non_null(strstr(result.items[0].data.data, "mem_1_direct_0"));
    first = agent;
    new_offloading(s, storage, false, NULL);
    answers(s, "retrieve_offloaded_content", "{\"reference\":\"mem_1_direct_0\"}",
            "forty-one characters, and not one more...");
    call(s, "read_file", "{\"path\":\"a\"}");
    assert_non_null(strstr(result.items[0].data.data, "mem_2_direct_0"));
    pinfold_agent_free(first);
    pinfold_storage_unref(storage);
}

/* ---- consent ---- */

static bool refuse_all(void *ctx, const char *tool, const char *question, char *text, size_t size)
{
    (void)tool;
    (void)question;
    (*(unsigned *)ctx)++;
    snprintf(text, size, "no");
    return true;
}

static void row_125_only_true_is_consent_in_advance(void **state)
{
    static const struct {
        const char *value;
        bool asks;
    } cases[] = { { "true", false }, { "TRUE", false }, { "1", true }, { " true", true } };
    struct spec *s = *state;
    struct pinfold_agent_config config = PINFOLD_AGENT_CONFIG_INIT;
    struct pinfold_host_tools_options options = PINFOLD_HOST_TOOLS_OPTIONS_INIT;
    struct pinfold_tool *tools[PINFOLD_HOST_TOOLS];
    unsigned asked = 0;

    options.ask = refuse_all;
    options.ask_ctx = &asked;
    spec_ok(s, pinfold_host_tools_new(&options, tools, &s->err));
    config.tools = tools;
    config.tool_count = PINFOLD_HOST_TOOLS;
    spec_ok(s, pinfold_agent_new(&config, &agent, &s->err));
    for (size_t i = 0; i < 4; i++) {
        asked = 0;
        setenv("BYPASS_TOOL_CONSENT", cases[i].value, 1);
        call(s, "shell", "{\"command\":\"true\"}");
        assert_int_equal(result.is_error, cases[i].asks);
        call(s, "environment", "{\"action\":\"set\",\"name\":\"PF_ROW\",\"value\":\"1\"}");
        assert_int_equal(result.is_error, cases[i].asks);
        assert_int_equal(asked, cases[i].asks ? 2 : 0);
    }
    unsetenv("BYPASS_TOOL_CONSENT");
    for (size_t i = 0; i < PINFOLD_HOST_TOOLS; i++)
        pinfold_tool_unref(tools[i]);
}

static void row_125_tools_of_a_workspace_never_ask(void **state)
{
    struct spec *s = *state;

    unsetenv("BYPASS_TOOL_CONSENT");
    spec_start_plain(s);
    new_attached(s, PINFOLD_READ_WRITE);
    answers(s, "execute", "{\"command\":\"echo x > a\"}", "exit code: 0\n<no output>");
    answers(s, "write_file", "{\"path\":\"b\",\"content\":\"\"}", "Wrote 0 bytes to b.");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SPEC_TEST(row_037_a_bad_path_is_a_result_and_no_end),
        SPEC_TEST(row_039_a_binary_file_is_a_short_error),
        SPEC_TEST(row_040_what_is_read_is_what_is_stored),
        SPEC_TEST(row_042_offsets_and_limits_are_lenient),
        SPEC_TEST(row_043_an_empty_file_is_said_to_be_empty),
        SPEC_TEST(row_044_a_long_file_is_paged_by_whole_lines),
        SPEC_TEST(row_044_a_line_without_end_is_cut_and_said_to_be),
        SPEC_TEST(row_076_a_failing_command_is_no_error_of_the_tool),
        SPEC_TEST(row_030_names_that_are_not_text_are_escaped),
        SPEC_TEST(row_055_the_root_can_be_listed_and_a_file_cannot),
        SPEC_TEST(row_117_an_offloader_of_the_users_is_kept),
        SPEC_TEST(row_118_a_result_of_just_the_limit_is_not_offloaded),
        SPEC_TEST(row_119_files_without_a_way_to_them_are_warned_of),
        SPEC_TEST(row_120_agents_share_a_storage),
        SPEC_TEST(row_125_only_true_is_consent_in_advance),
        SPEC_TEST(row_125_tools_of_a_workspace_never_ask),
    };

    return cmocka_run_group_tests_name("rows of agents' tools", tests, NULL, NULL);
}
