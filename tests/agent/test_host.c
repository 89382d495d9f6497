/* SPDX-License-Identifier: Apache-2.0 */
/* The host tools, and row 125 of the semantics: when they ask, and what is consent. */
#include "agents.h"

#include <sys/stat.h>

static struct pinfold_agent *agent;
static char dir[64];

/* A person with prepared answers. */
static struct {
    const char *answers[4];
    unsigned asked;
    char tool[32], question[512];
} person;

static bool answer(void *ctx, const char *tool, const char *question, char *text, size_t size)
{
    const char *said = person.asked < 4 ? person.answers[person.asked] : NULL;

    (void)ctx;
    person.asked++;
    snprintf(person.tool, sizeof(person.tool), "%s", tool);
    snprintf(person.question, sizeof(person.question), "%s", question);
    if (said)
        snprintf(text, size, "%s", said);
    return said;
}

static void say(const char *first, const char *second)
{
    memset(&person, 0, sizeof(person));
    person.answers[0] = first;
    person.answers[1] = second;
}

static void give_tools(pinfold_consent_fn ask)
{
    struct pinfold_host_tools_options options = PINFOLD_HOST_TOOLS_OPTIONS_INIT;
    struct pinfold_tool *tools[PINFOLD_HOST_TOOLS];

    options.ask = ask;
    assert_int_equal(pinfold_host_tools_new(&options, tools, NULL), 0);
    for (size_t i = 0; i < PINFOLD_HOST_TOOLS; i++)
        give_tool(agent, tools[i]);
}

static int setup(void **state)
{
    (void)state;
    unsetenv("BYPASS_TOOL_CONSENT");
    unsetenv("STRANDS_NON_INTERACTIVE");
    unsetenv("SHELL_DEFAULT_TIMEOUT");
    say(NULL, NULL);
    agent = plain_agent("host");
    return test_tempdir("host", dir, sizeof(dir)) ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    unsetenv("BYPASS_TOOL_CONSENT");
    pinfold_agent_free(agent);
    remove_tree(dir);
    return 0;
}

/* An input with the directory in place of "%s". */
static const char *in(const char *template)
{
    static char input[512];
    const char *at = strstr(template, "%s");

    assert_non_null(at);
    snprintf(input, sizeof(input), "%.*s%s%s", (int)(at - template), template, dir, at + 2);
    return input;
}

static const char *content_of(const char *name)
{
    static char text[256];
    char path[128];
    FILE *file;
    size_t len;

    snprintf(path, sizeof(path), "%s/%s", dir, name);
    file = fopen(path, "r");
    if (!file)
        return NULL;
    len = fread(text, 1, sizeof(text) - 1, file);
    text[len] = '\0';
    fclose(file);
    return text;
}

static void put(const char *name, const char *text)
{
    char path[128];
    FILE *file;

    snprintf(path, sizeof(path), "%s/%s", dir, name);
    file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

/* ---- consent ---- */

static void nobody_to_ask_is_a_refusal(void **state)
{
    (void)state;
    give_tools(NULL);
    has_text(ask_tool(agent, "shell", "{\"command\":\"true\"}"),
             "!shell was refused: it needs the consent of a person");
    has_text(ask_tool(agent, "python_repl", "{\"code\":\"1\"}"), "!python_repl was refused");
    has_text(ask_tool(agent, "file_write", in("{\"path\":\"%s/a\",\"content\":\"\"}")),
             "!file_write was refused");
    assert_null(content_of("a"));
    has_text(
            ask_tool(agent, "environment", "{\"action\":\"set\",\"name\":\"X_Y\",\"value\":\"1\"}"),
            "!environment was refused");
}

static void only_true_switches_consent_off(void **state)
{
    static const char *const no[] = { "1", "yes", " true", "true ", "", "truee" };
    static const char *const yes[] = { "true", "TRUE", "True" };

    (void)state;
    give_tools(answer);
    for (size_t i = 0; i < sizeof(no) / sizeof(*no); i++) {
        setenv("BYPASS_TOOL_CONSENT", no[i], 1);
        say("n", NULL);
        has_text(ask_tool(agent, "shell", "{\"command\":\"true\"}"), "!shell was refused");
        assert_int_equal(person.asked, 1);
    }
    for (size_t i = 0; i < 3; i++) {
        setenv("BYPASS_TOOL_CONSENT", yes[i], 1);
        say(NULL, NULL);
        assert_string_equal(ask_tool(agent, "shell", "{\"command\":\"true\"}"),
                            "1 command(s): 1 succeeded, 0 failed");
        has_text(ask_tool(agent, "file_write", in("{\"path\":\"%s/a\",\"content\":\"x\"}")),
                 "Wrote 1 bytes");
        assert_string_equal(ask_tool(agent, "environment",
                                     "{\"action\":\"set\",\"name\":\"X_Y\",\"value\":\"1\"}"),
                            "Set.");
        assert_int_equal(person.asked, 0);
    }
}

static void the_other_variable_is_for_commands_alone(void **state)
{
    (void)state;
    give_tools(answer);
    setenv("STRANDS_NON_INTERACTIVE", "true", 1);
    has_text(ask_tool(agent, "shell", "{\"command\":\"true\"}"), "1 succeeded");
    has_text(ask_tool(agent, "python_repl", "{\"code\":\"print(1)\"}"), "exit code: 0\n1\n");
    assert_int_equal(person.asked, 0);
    has_text(ask_tool(agent, "file_write", in("{\"path\":\"%s/a\",\"content\":\"\"}")),
             "!file_write was refused");
    has_text(ask_tool(agent, "environment", "{\"action\":\"delete\",\"name\":\"X_Y\"}"),
             "!environment was refused");
    assert_int_equal(person.asked, 2);
    unsetenv("STRANDS_NON_INTERACTIVE");
}

static void only_y_is_consent(void **state)
{
    const char *write = in("{\"path\":\"%s/a\",\"content\":\"x\"}");

    (void)state;
    give_tools(answer);
    say("y", NULL);
    has_text(ask_tool(agent, "shell", "{\"command\":\"echo $((6*7))\"}"), "1 succeeded");
    assert_string_equal(person.tool, "shell");
    has_text(person.question, "echo $((6*7))"); /* what will be run is shown */
    say("Y", NULL);
    has_text(ask_tool(agent, "shell", "{\"command\":\"true\"}"), "1 succeeded");
    say(" y", NULL); /* shell does not strip */
    has_text(ask_tool(agent, "shell", "{\"command\":\"true\"}"), "!shell was refused");
    say(" y\n", NULL); /* the others do */
    has_text(ask_tool(agent, "file_write", write), "Wrote 1 bytes");
    say("yes", NULL);
    has_text(ask_tool(agent, "file_write", write), "Reason: yes");
    say("", NULL);
    has_text(ask_tool(agent, "file_write", write), "!file_write was refused by the user.");
    assert_int_equal(person.asked, 1);
}

static void what_a_question_could_not_show_is_not_done(void **state)
{
    (void)state;
    give_tools(answer);
    say("y", NULL);
    has_text(ask_tool(agent, "python_repl", "{\"code\":\"print(1)\\u0000\\nprint(2)\"}"),
             "!code holds a NUL byte");
    has_text(ask_tool(agent, "file_write", in("{\"path\":\"%s/a\\u0000b\",\"content\":\"x\"}")),
             "!path holds a NUL byte");
    assert_int_equal(person.asked, 0);
    assert_null(content_of("a"));
}

static void n_is_asked_why(void **state)
{
    const char *write = in("{\"path\":\"%s/a\",\"content\":\"x\"}");

    (void)state;
    give_tools(answer);
    say("n", "the file is mine");
    has_text(ask_tool(agent, "file_write", write), "Reason: the file is mine");
    assert_int_equal(person.asked, 2);
    assert_string_equal(person.question, "Why not?");
    say("n", "no snakes");
    has_text(ask_tool(agent, "python_repl", "{\"code\":\"1\"}"), "Reason: no snakes");
    say("n", "never asked");
    has_text(ask_tool(agent, "shell", "{\"command\":\"true\"}"), "Reason: n");
    assert_int_equal(person.asked, 1);
    assert_null(content_of("a"));
}

static void looking_needs_no_consent(void **state)
{
    (void)state;
    give_tools(NULL);
    put("a", "text");
    assert_string_equal(ask_tool(agent, "file_read", in("{\"path\":\"%s/a\",\"mode\":\"view\"}")),
                        "text");
    has_text(ask_tool(agent, "environment", "{\"action\":\"get\",\"name\":\"PATH\"}"), "PATH=");
    has_text(ask_tool(agent, "environment", "{\"action\":\"list\",\"prefix\":\"PA\"}"), "PATH=");
    has_text(ask_tool(agent, "environment", "{\"action\":\"validate\",\"name\":\"N_O_NE\"}"),
             "!N_O_NE is not set.");
}

/* ---- what they do ---- */

static void use_freely(void)
{
    setenv("BYPASS_TOOL_CONSENT", "true", 1);
    give_tools(NULL);
}

/* The nth block of a call's result. */
static const char *block(const char *name, const char *input, size_t n, bool error)
{
    static char text[4096];
    struct pinfold_tool_result result = { 0 };

    assert_int_equal(
            pinfold_agent_call_tool(agent, name, input, strlen(input), &result, NULL, NULL), 0);
    if (result.is_error != error || n >= result.count)
        fail_msg("%s: %s", name, result.items[0].data.data);
    snprintf(text, sizeof(text), "%s", result.items[n].data.data);
    pinfold_tool_result_done(&result);
    return text;
}

static void shell_runs_lists_and_stops_at_a_failure(void **state)
{
    const char *list = "{\"command\":[\"echo one\",\"exit 3\",\"echo three\"]}";

    (void)state;
    use_freely();
    assert_string_equal(block("shell", list, 0, true), "3 command(s): 1 succeeded, 1 failed");
    assert_string_equal(block("shell", list, 1, true), "$ echo one\nexit code: 0\none\n");
    has_text(block("shell", list, 2, true), "exit code: 3");
    has_text(block("shell", list, 3, true), "not run, because one before it failed");
    list = "{\"command\":[\"exit 3\",\"echo three\"],\"ignore_errors\":true}";
    assert_string_equal(block("shell", list, 2, false), "$ echo three\nexit code: 0\nthree\n");
    list = "{\"command\":[\"exit 1\",\"echo a\",\"echo b\"],\"parallel\":true}";
    assert_string_equal(block("shell", list, 0, true), "3 command(s): 2 succeeded, 1 failed");
    assert_string_equal(block("shell", list, 3, true), "$ echo b\nexit code: 0\nb\n");
}

static void shell_follows_cd_and_work_dir(void **state)
{
    char input[512], expected[512], *real = realpath(dir, NULL);

    (void)state;
    use_freely();
    assert_non_null(real);
    snprintf(input, sizeof(input), "{\"command\":\"pwd -P\",\"work_dir\":\"%s\"}", dir);
    snprintf(expected, sizeof(expected), "$ pwd -P\nexit code: 0\n%s\n", real);
    assert_string_equal(block("shell", input, 1, false), expected);
    snprintf(input, sizeof(input),
             "{\"command\":[\"mkdir d\",\"cd d && true\",\"pwd -P\"],\"work_dir\":\"%s\"}", dir);
    snprintf(expected, sizeof(expected), "$ pwd -P\nexit code: 0\n%s/d\n", real);
    assert_string_equal(block("shell", input, 3, false), expected);
    snprintf(input, sizeof(input), "{\"command\":[{\"command\":\"pwd -P\",\"work_dir\":\"%s/d\"}]}",
             dir);
    assert_string_equal(block("shell", input, 1, false), expected);
    free(real);
    has_text(block("shell", "{\"command\":\"true\",\"work_dir\":\"/no/such/place\"}", 1, true),
             "/no/such/place");
}

static void shell_ends_at_its_timeout(void **state)
{
    (void)state;
    use_freely();
    has_text(block("shell", "{\"command\":\"sleep 600\",\"timeout\":0.3}", 1, true),
             "exit code: 124");
    setenv("SHELL_DEFAULT_TIMEOUT", "0.3", 1);
    has_text(block("shell", "{\"command\":\"sleep 600\"}", 1, true), "exit code: 124");
    unsetenv("SHELL_DEFAULT_TIMEOUT");
}

static void python_keeps_what_it_was_told(void **state)
{
    (void)state;
    use_freely();
    ask_tool(agent, "python_repl",
             "{\"code\":\"import math\\nx = [1, 2]\\ndef twice(n):\\n    return 2 * n\\n"
             "class Point:\\n    def __init__(self, x):\\n        self.x = x\\np = Point(7)\"}");
    assert_string_equal(
            ask_tool(agent, "python_repl",
                     "{\"code\":\"x.append(3)\\nprint(x, twice(4), math.floor(2.5), p.x)\"}"),
            "exit code: 0\n[1, 2, 3] 8 2 7\n");
    has_text(ask_tool(agent, "python_repl", "{\"code\":\"1/0\"}"), "ZeroDivisionError");
    assert_string_equal(ask_tool(agent, "python_repl", "{\"code\":\"print(x)\"}"),
                        "exit code: 0\n[1, 2, 3]\n"); /* a failure forgets nothing */
    has_text(ask_tool(agent, "python_repl", "{\"code\":\"print(\"}"), "SyntaxError");
    has_text(ask_tool(agent, "python_repl", "{\"code\":\"import sys; sys.exit(3)\"}"),
             "exit code: 3");
    has_text(ask_tool(agent, "python_repl", "{\"code\":\"print(x)\",\"reset_state\":true}"),
             "NameError");
}

static void files_are_read_in_every_mode(void **state)
{
    char path[128];

    (void)state;
    use_freely();
    put("a", "one\ntwo\nthree\nfour\n");
    put("b", "bee\n");
    assert_string_equal(ask_tool(agent, "file_read",
                                 in("{\"path\":\"%s/a\",\"mode\":\"lines\",\"start_line\":2,"
                                    "\"end_line\":3}")),
                        "two\nthree\n");
    assert_string_equal(ask_tool(agent, "file_read",
                                 in("{\"path\":\"%s/a\",\"mode\":\"lines\",\"start_line\":9}")),
                        "[The file has 4 lines.]");
    assert_string_equal(ask_tool(agent, "file_read",
                                 in("{\"path\":\"%s/a\",\"mode\":\"chunk\",\"chunk_offset\":4,"
                                    "\"chunk_size\":3}")),
                        "two");
    assert_string_equal(ask_tool(agent, "file_read",
                                 in("{\"path\":\"%s/a\",\"mode\":\"search\",\"search_pattern\":"
                                    "\"thr\",\"context_lines\":1}")),
                        "2- two\n3: three\n4- four\n");
    assert_string_equal(ask_tool(agent, "file_read",
                                 in("{\"path\":\"%s/a\",\"mode\":\"search\",\"search_pattern\":"
                                    "\"o\",\"context_lines\":0}")),
                        "1: one\n2: two\n4: four\n");
    has_text(ask_tool(agent, "file_read", in("{\"path\":\"%s/a\",\"mode\":\"stats\"}")),
             "19 bytes, 4 lines");
    assert_string_equal(
            ask_tool(agent, "file_read", in("{\"path\":\"%s/a\",\"mode\":\"preview\"}")),
            "one\ntwo\nthree\nfour\n");
    assert_string_equal(
            block("file_read", in("{\"path\":\"%s/[ab]\",\"mode\":\"view\"}"), 1, false), "bee\n");
    snprintf(path, sizeof(path), "%s/b\n", dir);
    has_text(ask_tool(agent, "file_read", in("{\"path\":\"%s\",\"mode\":\"find\"}")), path);
    has_text(ask_tool(agent, "file_read", in("{\"path\":\"%s/none\",\"mode\":\"view\"}")),
             "!OSError: open");
    has_text(ask_tool(agent, "file_read", in("{\"path\":\"%s/a\",\"mode\":\"eat\"}")),
             "- mode: expected one of");
}

static void a_fifo_does_not_hang_a_reader(void **state)
{
    char path[128];

    (void)state;
    use_freely();
    snprintf(path, sizeof(path), "%s/fifo", dir);
    assert_int_equal(mkfifo(path, 0600), 0);
    has_text(ask_tool(agent, "file_read", in("{\"path\":\"%s/fifo\",\"mode\":\"view\"}")), "!");
}

static void files_are_written_with_their_parents(void **state)
{
    char path[128], target[128];

    (void)state;
    use_freely();
    has_text(ask_tool(agent, "file_write", in("{\"path\":\"%s/new/sub/f\",\"content\":\"x\\ny\"}")),
             "Wrote 3 bytes");
    assert_string_equal(content_of("new/sub/f"), "x\ny");
    put("target", "old");
    snprintf(target, sizeof(target), "%s/target", dir);
    snprintf(path, sizeof(path), "%s/new/link", dir);
    assert_int_equal(symlink(target, path), 0);
    has_text(ask_tool(agent, "file_write", in("{\"path\":\"%s/new/link\",\"content\":\"new\"}")),
             "Wrote 3 bytes");
    assert_string_equal(content_of("target"), "new"); /* the host's links are followed */
    has_text(ask_tool(agent, "file_write", in("{\"path\":\"%s\",\"content\":\"x\"}")), "!");
}

static void the_environment_is_the_commands_and_not_ours(void **state)
{
    (void)state;
    use_freely();
    setenv("PF_TEST_OLD", "old", 1);
    ask_tool(agent, "environment", "{\"action\":\"set\",\"name\":\"PF_TEST_NEW\",\"value\":\"7\"}");
    ask_tool(agent, "environment", "{\"action\":\"delete\",\"name\":\"PF_TEST_OLD\"}");
    assert_string_equal(
            block("shell", "{\"command\":\"echo $PF_TEST_NEW ${PF_TEST_OLD-gone}\"}", 1, false),
            "$ echo $PF_TEST_NEW ${PF_TEST_OLD-gone}\nexit code: 0\n7 gone\n");
    assert_null(getenv("PF_TEST_NEW"));
    assert_string_equal(getenv("PF_TEST_OLD"), "old");
    assert_string_equal(
            ask_tool(agent, "environment", "{\"action\":\"get\",\"name\":\"PF_TEST_NEW\"}"),
            "PF_TEST_NEW=7\n");
    has_text(ask_tool(agent, "environment", "{\"action\":\"get\",\"name\":\"PF_TEST_OLD\"}"),
             "is not set");
    ask_tool(agent, "environment", "{\"action\":\"set\",\"name\":\"PF_TEST_OLD\",\"value\":\"b\"}");
    assert_string_equal(
            ask_tool(agent, "environment", "{\"action\":\"get\",\"name\":\"PF_TEST_OLD\"}"),
            "PF_TEST_OLD=b\n");
    unsetenv("PF_TEST_OLD");
}

static void an_agent_cannot_consent_for_others(void **state)
{
    (void)state;
    use_freely();
    has_text(ask_tool(agent, "environment",
                      "{\"action\":\"set\",\"name\":\"BYPASS_TOOL_CONSENT\",\"value\":\"true\"}"),
             "!BYPASS_TOOL_CONSENT is protected");
    has_text(ask_tool(agent, "environment", "{\"action\":\"delete\",\"name\":\"PATH\"}"),
             "!PATH is protected");
    has_text(ask_tool(agent, "environment",
                      "{\"action\":\"set\",\"name\":\"A=B\",\"value\":\"true\"}"),
             "!set needs a name");
    setenv("PF_TEST_API_KEY", "sesame", 1);
    assert_string_equal(
            ask_tool(agent, "environment", "{\"action\":\"get\",\"name\":\"PF_TEST_API_KEY\"}"),
            "PF_TEST_API_KEY=****\n");
    unsetenv("PF_TEST_API_KEY");
}

static void the_set_may_outlive_the_agent(void **state)
{
    struct pinfold_tool *tools[PINFOLD_HOST_TOOLS];
    struct pinfold_host_tools_options options = PINFOLD_HOST_TOOLS_OPTIONS_INIT;

    (void)state;
    assert_int_equal(pinfold_host_tools_new(NULL, tools, NULL), 0);
    assert_string_equal(pinfold_tool_name(tools[0]), "shell");
    assert_string_equal(pinfold_tool_name(tools[4]), "environment");
    for (size_t i = 0; i < PINFOLD_HOST_TOOLS; i++)
        pinfold_tool_unref(tools[i]);
    options.size++;
    assert_int_equal(pinfold_host_tools_new(&options, tools, NULL), -PINFOLD_EVALUE);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(nobody_to_ask_is_a_refusal),
        TEST(only_true_switches_consent_off),
        TEST(the_other_variable_is_for_commands_alone),
        TEST(only_y_is_consent),
        TEST(what_a_question_could_not_show_is_not_done),
        TEST(n_is_asked_why),
        TEST(looking_needs_no_consent),
        TEST(shell_runs_lists_and_stops_at_a_failure),
        TEST(shell_follows_cd_and_work_dir),
        TEST(shell_ends_at_its_timeout),
        TEST(python_keeps_what_it_was_told),
        TEST(files_are_read_in_every_mode),
        TEST(a_fifo_does_not_hang_a_reader),
        TEST(files_are_written_with_their_parents),
        TEST(the_environment_is_the_commands_and_not_ours),
        TEST(an_agent_cannot_consent_for_others),
        TEST(the_set_may_outlive_the_agent),
    };

    return cmocka_run_group_tests_name("host", tests, NULL, NULL);
}
