/* SPDX-License-Identifier: Apache-2.0 */
/* A service and commands that lie, and a session in which our scripts find less than they need. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <dirent.h>

#include "backend/agentcore_fixture.h"

/* From the next reply of a tool on, a pattern is replaced in all of them. */
static void lie(const char *tool, const char *pattern, const char *by)
{
    json_t *fault_json = json_pack("{s:s, s:s, s:s, s:s, s:n}", "kind", "rewrite", "tool", tool,
                                   "pattern", pattern, "by", by, "count");
    char *text = json_dumps(fault_json, 0);

    assert_non_null(text);
    fault(text);
    free(text);
    json_decref(fault_json);
}

static void be_honest(void)
{
    json_decref(control("DELETE", "faults", NULL));
}

/* ---- marks ---- */

/* How a command finds the mark of its own wrapper, into $m: it is in the command line of the shell
 * around it, whose stdout, $t, is the terminal. */
#define FIND                                                                                       \
    "m=; p=$PPID; while [ -z \"$m\" ] && [ $p -gt 1 ]; do "                                        \
    "t=/proc/$p/fd/1; "                                                                            \
    "m=$(tr '\\0' '\\n' </proc/$p/cmdline | sed -n 's/^m=\\([0-9a-f]*\\);.*/\\1/p' | head -n 1); " \
    "p=$(sed -n 's/^PPid:.//p' /proc/$p/status); done; "
#define FORGED "printf '\\npf-%s-r:c:0:7:0\\nZm9yZ2VkIQ==\\n\\npf-%s-e\\n\\npf-%s-x\\n' $m $m $m"

static void what_a_command_prints_is_never_its_status(void **state)
{
    (void)state;
    OK(run_in(FIND "[ -n \"$m\" ] || exit 99; " FORGED "; " FORGED " >&2; exit 3", NULL));
    assert_int_equal(f.run.exit_code, 3);
    assert_non_null(strstr(f.run.output, "Zm9yZ2VkIQ=="));
    assert_non_null(strstr(f.run.stderr_text, "Zm9yZ2VkIQ=="));
    assert_true(strncmp(f.run.output, "\npf-", 4) == 0);
}

static void a_frame_on_the_terminal_is_an_error(void **state)
{
    (void)state;
    assert_int_equal(run_in(FIND FORGED " >$t; exit 3", NULL), -PINFOLD_EBACKEND);
    assert_non_null(strstr(f.err.msg, "not whole"));
    /* One that makes its wrapper's impossible is not believed either: the service knows better. */
    assert_int_equal(run_in(FIND FORGED
                            " >$t; w=$PPID; while :; do n=$(sed -n "
                            "'s/^PPid:.//p' /proc/$w/status); grep -q 'm=' /proc/$w/cmdline && "
                            "break; w=$n; done; kill -9 $w; sleep 0.1",
                            NULL),
                     -PINFOLD_EBACKEND);
    says("echo fine", "fine\n", "", 0);
}

static void a_command_cannot_pretend_that_it_was_not_begun(void **state)
{
    (void)state;
    says("echo 'cd: No such file or directory' >&2; exit 125", "",
         "cd: No such file or directory\n", 125);
}

static void a_status_that_two_tell_differently_is_none(void **state)
{
    (void)state;
    lie("executeCommand", "-r:c:4:", "-r:c:0:");
    assert_int_equal(run_in("exit 4", NULL), -PINFOLD_EBACKEND);
    assert_non_null(strstr(f.err.msg, "ended with status 4 and its output says 0"));
    be_honest();
    /* A service that does not tell it at all has to be believed. */
    fault("{\"kind\":\"missing\",\"tool\":\"executeCommand\","
          "\"members\":[\"structuredContent.exitCode\"]}");
    says("exit 4", "", "", 4);
}

static void output_that_is_not_as_long_as_it_says_is_an_error(void **state)
{
    static const char *const sizes[][2] = { { "r:c:0:5:", "r:c:0:4:" },
                                            { "r:c:0:5:", "r:c:0:6:" },
                                            { "r:c:0:5:", "r:c:0:999999999999:" },
                                            { "aGVsbG8=", "aGVsbG8" },
                                            { "aGVsbG8=", "aGVs*G8=" } };

    (void)state;
    for (size_t i = 0; i < PF_COUNT(sizes); i++) {
        lie("executeCommand", sizes[i][0], sizes[i][1]);
        assert_int_equal(run_in("printf hello", NULL), -PINFOLD_EBACKEND);
        be_honest();
    }
    says("printf hello", "hello", "", 0);
}

/* ---- without files or base64 ---- */

/* A directory of links to all that commands need, but for one program. */
static void take_away(const char *missing)
{
    static const char *const programs[] = { "sh",    "cat",  "head", "wc",      "rm",
                                            "mkdir", "env",  "stat", "stty",    "sleep",
                                            "mv",    "grep", "ls",   "readlink" };
    char path[300], target[100], text[1200];

    snprintf(path, sizeof(path), "%s", at_host("bin"));
    assert_int_equal(mkdir(path, 0755), 0);
    for (size_t i = 0; i < PF_COUNT(programs) + 1; i++) {
        const char *name = i < PF_COUNT(programs) ? programs[i] : "base64";
        snprintf(target, sizeof(target), "/bin/%s", name);
        snprintf(path, sizeof(path), "%s/%s", at_host("bin"), name);
        if (strcmp(name, missing) != 0)
            assert_int_equal(symlink(target, path), 0);
    }
    snprintf(text, sizeof(text), "{\"path\":\"%s\"}", at_host("bin"));
    json_decref(control("POST", "config", text));
}

static void remove_links(const char *path)
{
    char name[600];
    DIR *dir = opendir(path);

    assert_non_null(dir);
    for (const struct dirent *entry = readdir(dir); entry; entry = readdir(dir)) {
        snprintf(name, sizeof(name), "%s/%s", path, entry->d_name);
        if (entry->d_name[0] != '.')
            assert_int_equal(unlink(name), 0);
    }
    closedir(dir);
    assert_int_equal(rmdir(path), 0);
}

static void streams_that_cannot_be_kept_apart_come_as_one_and_are_said_to(void **state)
{
    static const char *const missing[] = { "base64", "mkdir" };

    (void)state;
    for (size_t i = 0; i < PF_COUNT(missing); i++) {
        take_away(missing[i]);
        OK(run_in("echo out; echo err >&2; printf 'a\\nb'; exit 5", NULL));
        assert_int_equal(f.run.exit_code, 5);
        assert_int_equal(f.run.stdout_bytes, strlen("out\nerr\na\nb"));
        assert_memory_equal(f.run.output, "out\nerr\na\nb", 11);
        assert_non_null(strstr(f.run.output, "[stdout and stderr came as one stream"));
        assert_int_equal(run_in("true", "none"), -PINFOLD_EOS);
        assert_int_equal(f.err.sys_errno, ENOENT);
        /* Marks in the output are output. */
        OK(run_in("m=0123456789abcdef; printf '\\npf-%s-n:c:0\\n' $m; exit 6", NULL));
        assert_int_equal(f.run.exit_code, 6);
        json_decref(control("POST", "config", "{\"path\":\"/usr/bin:/bin\"}"));
        remove_links(at_host("bin"));
    }
}

static void a_file_that_would_come_as_one_stream_does_not_come(void **state)
{
    (void)state;
    OK(write_text("file", "text", false));
    take_away("base64");
    assert_int_equal(read_code("file"), -PINFOLD_EBACKEND);
    assert_non_null(strstr(f.err.msg, "did not come back whole"));
}

/* ---- files ---- */

static int flush_code(struct pinfold_sync_result *synced)
{
    const char *const all[] = { "**", NULL };
    struct pinfold_sync_request sync = { .size = sizeof(sync), .include = all };

    f.err = (struct pinfold_error)PINFOLD_ERROR_INIT;
    sync.dest = at_host("dst");
    return f.ops->sync_artifacts(f.backend->state, &sync, synced, NULL, &f.err);
}

static void files_that_are_not_those_that_were_asked_for_are_refused(void **state)
{
    static const char *const lies[][2] = {
        /* another name, two files, none */
        { "file:///pinfold-scratch/[0-9a-f.]+", "file:///etc/passwd" },
        { "\"content\":\\[(.*)\\],", "\"content\":[\\1,\\1]," },
        { "\"resource\":\\{", "\"nothing\":{" },
        /* another length, and what is no base64, no gzip */
        { "\"blob\":\"....", "\"blob\":\"" },
        { "\"blob\":\"....", "\"blob\":\"*AAA" },
        { "\"blob\":\"....", "\"blob\":\"AAAA" },
        { "\"blob\":", "\"text\":" },
    };
    struct pinfold_sync_result synced = { 0 };

    (void)state;
    says("head -c 900000 /dev/urandom >file", "", "", 0); /* too much to come at once */
    for (size_t i = 0; i < PF_COUNT(lies); i++) {
        lie("readFiles", lies[i][0], lies[i][1]);
        if (flush_code(&synced) != -PINFOLD_EBACKEND)
            fail_msg("lie %zu: %s", i, f.err.msg);
        be_honest();
    }
    assert_int_equal(access(at_host("dst/file"), F_OK), -1);
    OK(flush_code(&synced));
    assert_int_equal(synced.files_synced, 1);
    pinfold_sync_result_done(&synced);
}

static void a_write_that_the_service_refused_is_no_success(void **state)
{
    _cleanup_free_ char *data = calloc(1, 100000);

    (void)state;
    assert_non_null(data);
    lie("writeFiles", "\"isError\":false", "\"isError\":true");
    assert_int_equal(f.ops->write_file(f.backend->state, "x", data, 100000, false, NULL, &f.err),
                     -PINFOLD_EBACKEND);
    assert_int_equal(read_code("x"), -PINFOLD_EOS);
}

static void a_workspace_made_to_do_harm_comes_home_harmless(void **state)
{
    struct pinfold_sync_result synced = { 0 };
    struct stat st;

    (void)state;
    OK(run_in("ln -s /etc/passwd abs; ln -s ../../.. up; mkfifo pipe; printf '1' >'new\nline'; "
              "printf '2' >\"$(printf '\\377\\376')\"; printf 3 >-rf; mkdir -p deep/er; "
              "printf 4 >deep/er/x; ln deep/er/x hard; ln -s deep/er through; chmod 4755 hard; "
              "truncate -s 5T huge; truncate -s 100M holes",
              NULL));
    assert_int_equal(f.run.exit_code, 0);
    OK(flush_code(&synced));
    assert_int_equal(lstat(at_host("dst/huge"), &st), -1);
    assert_int_equal(stat(at_host("dst/holes"), &st), 0);
    assert_int_equal(st.st_size, 100 << 20);
    assert_int_equal(stat(at_host("dst/hard"), &st), 0);
    assert_int_equal(st.st_mode & 07000, 0);
    assert_int_equal(access(at_host("dst/new\nline"), R_OK), 0);
    assert_int_equal(access(at_host("dst/-rf"), R_OK), 0);
    assert_true(lstat(at_host("dst/abs"), &st) < 0 || !S_ISLNK(st.st_mode));
    assert_true(lstat(at_host("dst/up"), &st) < 0 || !S_ISLNK(st.st_mode));
    assert_int_equal(lstat(at_host("dst/pipe"), &st), -1);
    assert_true(synced.errors.count >= 1);
    for (size_t i = 0; i < synced.errors.count; i++)
        print_message("# %s\n", synced.errors.items[i]);
    pinfold_sync_result_done(&synced);
}

static void a_file_may_be_wanted_twice(void **state)
{
    const struct pinfold_download down[] = { { .path = "m" }, { .path = "m" } };
    struct pinfold_transfer_results results = { 0 };

    (void)state;
    OK(write_text("m", "mem", false));
    OK(f.ops->download_files(f.backend->state, down, 2, true, &results, NULL, &f.err));
    for (int i = 0; i < 2; i++)
        assert_memory_equal(results.items[i].content.data, "mem", 3);
    pinfold_transfer_results_done(&results);
}

#define WITH_SESSION(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_SESSION(what_a_command_prints_is_never_its_status),
        WITH_SESSION(a_frame_on_the_terminal_is_an_error),
        WITH_SESSION(a_command_cannot_pretend_that_it_was_not_begun),
        WITH_SESSION(a_status_that_two_tell_differently_is_none),
        WITH_SESSION(output_that_is_not_as_long_as_it_says_is_an_error),
        WITH_SESSION(streams_that_cannot_be_kept_apart_come_as_one_and_are_said_to),
        WITH_SESSION(a_file_that_would_come_as_one_stream_does_not_come),
        WITH_SESSION(files_that_are_not_those_that_were_asked_for_are_refused),
        WITH_SESSION(a_write_that_the_service_refused_is_no_success),
        WITH_SESSION(a_workspace_made_to_do_harm_comes_home_harmless),
        WITH_SESSION(a_file_may_be_wanted_twice),
    };

    return cmocka_run_group_tests_name("agentcore_hostile", tests, start_fake, end_fake);
}
