/* SPDX-License-Identifier: Apache-2.0 */
/* The modes diff, time_machine and document of file_read. None of them asks anybody. */
#include "agents.h"

#include <sys/stat.h>

static struct pinfold_agent *agent;
static char dir[64];

static int set_up(void **state)
{
    struct pinfold_tool *tools[PINFOLD_HOST_TOOLS];

    (void)state;
    agent = plain_agent("host");
    assert_int_equal(pinfold_host_tools_new(NULL, tools, NULL), 0);
    for (size_t i = 0; i < PINFOLD_HOST_TOOLS; i++)
        give_tool(agent, tools[i]);
    return test_tempdir("compare", dir, sizeof(dir)) ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    pinfold_agent_free(agent);
    remove_tree(dir);
    return 0;
}

/* Run a script in the directory. */
static void prepare(const char *script)
{
    char command[4096];

    snprintf(command, sizeof(command),
             "cd '%s' && exec >/dev/null 2>&1 && export HOME=\"$PWD\" GIT_CONFIG_NOSYSTEM=1 "
             "GIT_AUTHOR_NAME='A U Thor' GIT_AUTHOR_EMAIL=a@x.invalid GIT_COMMITTER_NAME=c "
             "GIT_COMMITTER_EMAIL=c@x.invalid && set -e\n%s",
             dir, script);
    assert_int_equal(system(command), 0);
}

/* Read in this mode, with more arguments. */
static const char *read_as(const char *path, const char *mode, const char *more)
{
    char input[512];

    snprintf(input, sizeof(input), "{\"path\":\"%s/%s\",\"mode\":\"%s\"%s%s}", dir, path, mode,
             *more ? "," : "", more);
    return ask_tool(agent, "file_read", input);
}

static const char *diff(const char *a, const char *b)
{
    char more[160];

    snprintf(more, sizeof(more), "\"comparison_path\":\"%s/%s\"", dir, b);
    return read_as(a, "diff", more);
}

static void two_files_are_compared(void **state)
{
    (void)state;
    prepare("printf 'one\\ntwo\\n' >a; printf 'one\\n2\\n' >b; printf 'one\\ntwo\\n' >same;"
            "printf 'a\\0b' >c; mkdir d; mkfifo fifo");
    has_text(diff("a", "b"), "@@ -1,2 +1,2 @@\n one\n-two\n+2\n");
    assert_string_equal(diff("a", "same"), "[There is no difference.]");
    has_text(diff("a", "c"), "Binary files");
    has_text(diff("a", "none"), "!OSError: diff \"");
    has_text(diff("a", "d"), "neither two files nor two directories");
    has_text(diff("a", "fifo"), "neither two files nor two directories");
    has_text(read_as("a", "diff", ""), "!the mode diff needs a comparison_path");
}

static void two_directories_are_compared(void **state)
{
    const char *said;

    (void)state;
    prepare("mkdir -p x/sub y/sub; echo 1 >x/sub/f; echo 2 >y/sub/f; echo 3 >x/left; echo 4 >y/r");
    said = diff("x", "y");
    has_text(said, "Only in ");
    has_text(said, "x: left\n");
    has_text(said, "y: r\n");
    has_text(said, "-1\n+2\n");
}

/* A name that begins with '-' is no option, and one with odd characters no pattern. */
static void names_are_names(void **state)
{
    (void)state;
    prepare("git init -q; printf 1 >'--output=x'; printf 2 >'{b'; printf x >b;"
            "git add -A; git commit -qm first; printf 3 >>'{b'; git commit -qam second");
    has_text(diff("--output=x", "{b"), "-1\n");
    has_text(read_as("--output=x", "time_machine", ""), "    first\n");
    has_text(read_as("{b", "time_machine", ""), "    second\n");
}

static void the_last_commits_of_a_file_are_shown(void **state)
{
    const char *said;

    (void)state;
    prepare("git init -q; mkdir sub; for i in 1 2 3; do echo line $i >sub/f; echo $i >g;"
            "git add -A; GIT_AUTHOR_DATE='2026-01-0'$i'T10:00:00+0000' git commit -qm \"change "
            "$i\";"
            "done; echo >>g; git commit -qam other");
    said = read_as("sub/f", "time_machine", "\"num_revisions\":2");
    has_text(said, "A U Thor, 2026-01-03T10:00:00");
    has_text(said, "    change 3\n");
    has_text(said, "-line 2\n+line 3\n");
    has_text(said, "    change 2\n");
    assert_null(strstr(said, "change 1"));
    assert_null(strstr(said, "other"));
    has_text(read_as("sub", "time_machine", ""), "change 1");
}

static void what_git_does_not_know_is_said(void **state)
{
    (void)state;
    prepare("mkdir r; cd r; git init -q; echo >a; git add a; git commit -qm a; echo >new");
    assert_string_equal(read_as("r/new", "time_machine", ""), "[git knows nothing of it.]");
    has_text(read_as("none", "time_machine", ""), "!OSError: look at \"");
}

static void dates_need_no_git(void **state)
{
    const char *said;

    (void)state;
    prepare("printf 12345 >f; chmod 640 f; touch -m -d 2026-02-03T04:05:06Z f");
    said = read_as("f", "time_machine", "\"git_history\":false");
    has_text(said, "5 bytes, mode 0640\n");
    has_text(said, "modified 2026-02-03T04:05:06Z\n");
    has_text(said, "accessed 20");
}

/* Whoever made the repository may have written its settings. */
static void settings_of_a_repository_run_nothing(void **state)
{
    char marker[128];

    (void)state;
    prepare("git init -q; printf '#!/bin/sh\\necho ran >>'\"$PWD\"'/marker\\n' >evil;"
            "chmod +x evil; echo 1 >f; echo 'f diff=evil' >.gitattributes; git add -A;"
            "git commit -qm first; echo 2 >f; git commit -qam second;"
            "printf '%s\\n' '[core]' \"fsmonitor = $PWD/evil\" \"pager = $PWD/evil\""
            " \"sshCommand = $PWD/evil\" '[pager]' 'log = true' '[diff]' \"external = $PWD/evil\""
            " 'submodule = diff' '[diff \"evil\"]' \"command = $PWD/evil\" \"textconv = $PWD/evil\""
            " '[log]' 'showSignature = true' '[gpg]' \"program = $PWD/evil\""
            " '[alias]' \"log = !$PWD/evil\" >>.git/config;"
            /* The settings do what they say: else the test would show nothing. */
            "git -C . log -p --ext-diff f; test -e marker; rm marker");
    has_text(read_as("f", "time_machine", ""), "-1\n+2\n");
    snprintf(marker, sizeof(marker), "%s/marker", dir);
    assert_int_not_equal(access(marker, F_OK), 0);
}

static void what_the_environment_tool_has_set_does_not_count(void **state)
{
    char marker[128];

    (void)state;
    setenv("BYPASS_TOOL_CONSENT", "true", 1);
    prepare("printf '#!/bin/sh\\necho ran >>'\"$PWD\"'/marker\\n' >evil; chmod +x evil;"
            "git init -q; echo 1 >f; git add f; git commit -qm first");
    snprintf(marker, sizeof(marker),
             "{\"action\":\"set\",\"name\":\"GIT_EXTERNAL_DIFF\",\"value\":\"%s/evil\"}", dir);
    ask_tool(agent, "environment", marker);
    unsetenv("BYPASS_TOOL_CONSENT");
    has_text(read_as("f", "time_machine", ""), "+1\n");
    snprintf(marker, sizeof(marker), "%s/marker", dir);
    assert_int_not_equal(access(marker, F_OK), 0);
}

/* The one block of a document. */
static void is_document(const char *path, const char *more, const char *format, const char *name)
{
    struct pinfold_tool_result result = { 0 };
    char input[512];

    snprintf(input, sizeof(input), "{\"path\":\"%s/%s\",\"mode\":\"document\"%s%s}", dir, path,
             *more ? "," : "", more);
    assert_int_equal(
            pinfold_agent_call_tool(agent, "file_read", input, strlen(input), &result, NULL, NULL),
            0);
    assert_false(result.is_error);
    assert_int_equal(result.count, 1);
    assert_int_equal(result.items[0].kind, PINFOLD_TOOL_DOCUMENT);
    assert_string_equal(result.items[0].format, format);
    assert_ptr_equal(strstr(result.items[0].name, name), result.items[0].name);
    assert_int_equal(result.items[0].data.len, 4);
    assert_memory_equal(result.items[0].data.data, "a\0bc", 4);
    pinfold_tool_result_done(&result);
}

static void a_document_is_the_file_itself(void **state)
{
    (void)state;
    prepare("printf 'a\\0bc' >'my report.PDF'; cp *.PDF notes; cp notes .x");
    is_document("my report.PDF", "", "pdf", "my-report-");
    is_document("notes", "", "txt", "notes-");
    is_document(".x", "", "txt", "-x-");
    is_document("notes", "\"format\":\"docx\",\"neutral_name\":\"Document 1\"", "docx",
                "Document 1");
    has_text(read_as("none", "document", ""), "!OSError: open \"");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(two_files_are_compared),
        TEST(two_directories_are_compared),
        TEST(names_are_names),
        TEST(the_last_commits_of_a_file_are_shown),
        TEST(what_git_does_not_know_is_said),
        TEST(dates_need_no_git),
        TEST(settings_of_a_repository_run_nothing),
        TEST(what_the_environment_tool_has_set_does_not_count),
        TEST(a_document_is_the_file_itself),
    };

    return cmocka_run_group_tests_name("host_compare", tests, NULL, NULL);
}
