/* SPDX-License-Identifier: Apache-2.0 */
/* What an agent in a sandbox of Daytona's can do to the call that runs it, and to the names of what
 * is fetched. The fake service runs beside the test. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <fcntl.h>
#include <pinfold/temp_workspace.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daytona_rig.h"

#define LOST "[output was lost:"
/* In shell: the file that the stdout of the command goes to. */
#define STDOUT "f=$(readlink /proc/$$/fd/1); "

/* ---- the files of a command ---- */

static void what_was_said_survives_the_loss_of_the_files_it_went_to(void **state)
{
    (void)state;
    says(STDOUT "rm $f; echo said; exit 3", "said\n", "", 3);
    says(STDOUT "rm $f; mkfifo $f; echo said; echo err >&2", "said\n", "err\n", 0);
    says(STDOUT "rm $f; mkdir $f; echo said", "said\n", "", 0);
    says(STDOUT "ln -sf /dev/zero $f; echo said", "said\n", "", 0);
    says("rm -rf ../.pinfold-scratch/*; echo said; exit 4", "said\n", "", 4);
    says("rm -rf ../.pinfold-scratch; echo said", "said\n", "", 0);
    OK(run("echo on")); /* and there is no room for files any more */
    assert_memory_equal(f.run.output, "on\n", 3);
}

static void much_that_was_said_and_is_gone_is_told_to_be(void **state)
{
    static const char *const places[] = { "", "mkfifo $f; ", "mkdir $f; ", "ln -s /dev/zero $f; " };

    (void)state;
    for (size_t i = 0; i < PF_COUNT(places); i++) {
        char command[200];
        snprintf(command, sizeof(command), STDOUT "rm $f; %shead -c 50000 /dev/zero; exit 5",
                 places[i]);
        OK(run(command));
        assert_int_equal(f.run.exit_code, 5);
        assert_non_null(strstr(f.run.output, LOST));
    }
}

/* Whoever opens a pipe to read it waits for a writer, for ever. */
static void a_pipe_in_the_place_of_output_holds_nothing_up(void **state)
{
    struct pinfold_execute_options options = PINFOLD_EXECUTE_OPTIONS_INIT;

    (void)state;
    options.command = STDOUT "rm $f; mkfifo $f; sleep 300";
    options.timeout_seconds = 2;
    OK(f.ops->execute(f.backend->state, &options, &f.run, NULL, &f.err));
    assert_int_equal(f.run.exit_code, 124);
    assert_true(f.run.timed_out);
    assert_non_null(strstr(f.run.output, LOST));
    assert_non_null(strstr(f.run.output, "timed out after 2 s"));
}

static void a_service_that_is_silent_does_not_keep_what_timed_out(void **state)
{
    struct pinfold_execute_options options = PINFOLD_EXECUTE_OPTIONS_INIT;

    (void)state;
    options.command = "echo said; sleep 300";
    options.timeout_seconds = 1;
    tell("faults", "{\"kind\":\"http\",\"status\":500,\"operation\":\"files.download\","
                   "\"count\":2}");
    OK(f.ops->execute(f.backend->state, &options, &f.run, NULL, &f.err));
    assert_int_equal(f.run.exit_code, 124);
    assert_non_null(strstr(f.run.output, LOST));
}

/* ---- the shell around a command ---- */

static void a_command_that_kills_its_shell_has_a_result(void **state)
{
    (void)state;
    OK(run("echo said; echo err >&2; kill -9 $PPID; sleep 300"));
    assert_int_equal(f.run.exit_code, 137);
    assert_memory_equal(f.run.output, "said\n", 5);
    assert_non_null(strstr(f.run.stderr_text, "err\n"));
    assert_non_null(strstr(f.run.output, "[the shell that ran the command was killed]"));
    says("echo on", "on\n", "", 0);
}

static void what_is_written_into_the_log_is_no_output(void **state)
{
    struct pinfold_execute_options options = PINFOLD_EXECUTE_OPTIONS_INIT;

    (void)state;
    says("echo noise >/proc/$PPID/fd/1; echo noise >/proc/$PPID/fd/2; echo said", "said\n", "", 0);
    options.timeout_seconds = 30; /* for a log that is left open */
    /* Whoever knows the mark may say what he likes, but it is understood or it is an error. */
    OK(run("m=$(tr '\\0' ' ' </proc/$PPID/cmdline | grep -o 'pf-[0-9a-f]*' | head -1); "
           "echo \"$m\" >/proc/$PPID/fd/1"));
    for (int i = 0; i < 4; i++) {
        static const char *const ends[] = { "999999999999:0:0", "-1:0:0", "0:-7:99", "x" };
        char command[300];
        int r;
        snprintf(command, sizeof(command),
                 "m=$(tr '\\0\\n' '  ' </proc/$PPID/cmdline | "
                 "sed \"s/.*scratch[^ ]* [^ ]* [^ ]* \\([0-9a-f]*\\) .*/\\1/\"); "
                 "echo \"pf-$m-r:%s\" >/proc/$PPID/fd/1; echo said",
                 ends[i]);
        pinfold_execute_result_done(&f.run);
        options.command = command;
        r = f.ops->execute(f.backend->state, &options, &f.run, NULL, &f.err);
        if (r == 0)
            assert_in_range(f.run.exit_code, 0, 255);
        else
            assert_int_equal(r, -PINFOLD_EBACKEND);
    }
    says("echo on", "on\n", "", 0);
}

static void closed_descriptors_end_nothing(void **state)
{
    (void)state;
    says("exec >&- 2>&- <&-; exit 6", "", "", 6);
    says("for i in 3 4 5 6 7 8 9; do [ ! -e /proc/self/fd/$i ] || echo $i; done", "", "", 0);
}

static void programs_may_have_any_name(void **state)
{
    static const char *const vectors[][4] = { { "-i", "sh", NULL },
                                              { "A=b", "sh", NULL },
                                              { "--", "true", NULL },
                                              { "-S", "echo no", NULL } };
    struct pinfold_execute_options options = PINFOLD_EXECUTE_OPTIONS_INIT;

    (void)state;
    for (size_t i = 0; i < PF_COUNT(vectors); i++) {
        pinfold_execute_result_done(&f.run);
        options.argv = vectors[i];
        OK(f.ops->execute(f.backend->state, &options, &f.run, NULL, &f.err));
        assert_int_equal(f.run.exit_code, 127);
        assert_int_equal(f.run.stdout_len, 0);
    }
    OK(run("printf '#!/bin/sh\\necho \"ran $1\"\\n' >./a=b; chmod 755 ./a=b"));
    pinfold_execute_result_done(&f.run);
    options.argv = (const char *const[]){ "./a=b", "x y", NULL };
    OK(f.ops->execute(f.backend->state, &options, &f.run, NULL, &f.err));
    assert_memory_equal(f.run.output, "ran x y\n", 8);
    OK(run("-v; echo on"));
    assert_int_equal(f.run.exit_code, 0);
    assert_memory_equal(f.run.output, "on\n", 3);
}

/* ---- names ---- */

static const char *const odd_names[] = { "-rf",
                                         "--help",
                                         "a\nb",
                                         "a\r\nContent-Length: 1\r\n\r\nb",
                                         "a\r\n--DAYTONA-FILE-BOUNDARY--\r\n",
                                         "\x01\x02\x1b[31m\x7f",
                                         "'",
                                         "\"",
                                         "$(id)`id`",
                                         "a;b&c|d",
                                         "\\",
                                         "*",
                                         "~",
                                         "%2e%2e",
                                         " ",
                                         "\xe2\x82\xac \xf0\x9f\x98\x80",
                                         "\xc3\x28" };
enum { ODD = sizeof(odd_names) / sizeof(odd_names[0]) };

static void odd_names_go_every_way(void **state)
{
    struct pinfold_download down[ODD];
    struct pinfold_upload up[ODD];
    struct pinfold_file_infos infos = { 0 };
    struct pinfold_transfer_results results = { 0 };
    char paths[ODD][80];

    (void)state;
    for (int i = 0; i < ODD; i++) {
        snprintf(paths[i], sizeof(paths[i]), "%s/%s", i % 2 ? "-d" : "d\n", odd_names[i]);
        up[i] = (struct pinfold_upload){ .path = paths[i],
                                         .data = odd_names[i],
                                         .len = strlen(odd_names[i]) };
        down[i] = (struct pinfold_download){ .path = paths[i] };
    }
    OK(f.ops->upload_files(f.backend->state, up, ODD, true, &results, NULL, &f.err));
    for (int i = 0; i < ODD; i++)
        assert_string_equal(results.items[i].error.msg, "");
    pinfold_transfer_results_done(&results);
    OK(f.ops->list_dir(f.backend->state, "-d", &infos, NULL, &f.err));
    assert_int_equal(infos.count, ODD / 2);
    pinfold_file_infos_done(&infos);
    OK(f.ops->download_files(f.backend->state, down, ODD, true, &results, NULL, &f.err));
    for (int i = 0; i < ODD; i++) {
        if (results.items[i].content.len != strlen(odd_names[i]))
            fail_msg("%d: %zu bytes: %s", i, results.items[i].content.len,
                     results.items[i].error.msg);
        assert_memory_equal(results.items[i].content.data, odd_names[i], strlen(odd_names[i]));
    }
    pinfold_transfer_results_done(&results);
    for (int i = 0; i < ODD; i++) {
        reads(paths[i], odd_names[i]);
        OK(f.ops->move_file(f.backend->state, paths[i], odd_names[i], NULL, &f.err));
        OK(f.ops->move_file(f.backend->state, odd_names[i], paths[i], NULL, &f.err));
        OK(f.ops->remove_file(f.backend->state, paths[i], NULL, &f.err));
    }
}

static void files_of_holes_cost_nothing_here(void **state)
{
    struct pinfold_temp_workspace *temp;
    struct pinfold_transfer_results results = { 0 };
    char to[500];
    struct stat st;

    (void)state;
    OK(pinfold_temp_workspace_new(&temp, &f.err));
    snprintf(to, sizeof(to), "%s/to", pinfold_temp_workspace_path(temp));
    const struct pinfold_download down[] = { { .path = "huge", .host_path = to },
                                             { .path = "holes", .host_path = to } };
    OK(run("truncate -s 100M holes; truncate -s 100G huge"));
    OK(f.ops->download_files(f.backend->state, down, 2, true, &results, NULL, &f.err));
    assert_int_equal(results.items[0].error.sys_errno, EFBIG);
    assert_string_equal(results.items[1].error.msg, "");
    pinfold_transfer_results_done(&results);
    assert_int_equal(stat(to, &st), 0);
    assert_int_equal(st.st_size, 100 << 20);
    assert_true(st.st_blocks * 512 < 1 << 20);
    pinfold_temp_workspace_free(temp, NULL);
}

/* ---- images ---- */

/* A sandbox that has another program of this name. The directory it is in must be freed. */
static struct pinfold_temp_workspace *make_with_program(const char *name, const char *text)
{
    struct pinfold_daytona_options options = options_for_tests();
    struct pinfold_temp_workspace *temp;
    char program[500], path[4000];
    const char *const env[] = { path, NULL };

    pinfold_backend_unref(f.backend);
    pinfold_backend_unref(f.template);
    OK(pinfold_temp_workspace_new(&temp, &f.err));
    snprintf(program, sizeof(program), "%s/%s", pinfold_temp_workspace_path(temp), name);
    snprintf(path, sizeof(path), "PATH=%s:/usr/bin:/bin", pinfold_temp_workspace_path(temp));
    _cleanup_close_ int fd = open(program, O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(TAKE_FD(fd));
    options.env = env;
    make(&options);
    OK(pf_backend_create(f.backend, NULL, &f.err));
    return temp;
}

static void without_gnu_tools_commands_run_and_files_say_what_they_need(void **state)
{
    struct pinfold_temp_workspace *temp = make_with_program(
            "readlink", "#!/bin/sh\necho \"readlink: unrecognized option: m\" >&2; exit 1\n");
    struct pinfold_file_infos infos = { 0 };

    (void)state;
    says("echo out; exit 3", "out\n", "", 3);
    assert_int_equal(f.ops->list_dir(f.backend->state, ".", &infos, NULL, &f.err),
                     -PINFOLD_EBACKEND);
    assert_non_null(strstr(f.err.msg, "GNU coreutils"));
    f.err = (struct pinfold_error)PINFOLD_ERROR_INIT;
    assert_int_equal(f.ops->write_file(f.backend->state, "x", "y", 1, false, NULL, &f.err),
                     -PINFOLD_EBACKEND);
    assert_non_null(strstr(f.err.msg, "GNU coreutils"));
    pinfold_temp_workspace_free(temp, NULL);
}

static void a_size_or_a_mode_that_is_none_is_no_answer(void **state)
{
    static const char *const answers[] = { "",          "3",         "3 ",
                                           "3 644 1",   "x 644",     "-3 644",
                                           "+3 644",    "3 648",     "3 -644",
                                           "3 1000644", "3 9223372", "9223372036854775808 644" };
    struct pinfold_temp_workspace *temp = make_with_program(
            "stat", "#!/bin/sh\n[ \"$2\" = '%s %a' ] || exec /usr/bin/stat \"$@\"\n"
                    "[ ! -e answer ] && exec /usr/bin/stat \"$@\"; cat answer\n");
    struct pinfold_bytes bytes = { 0 };

    (void)state;
    OK(run("echo abc >file"));
    reads("file", "abc\n");
    for (size_t i = 0; i < PF_COUNT(answers); i++) {
        char command[100];
        snprintf(command, sizeof(command), "echo '%s' >answer", answers[i]);
        OK(run(command));
        f.err = (struct pinfold_error)PINFOLD_ERROR_INIT;
        assert_int_equal(f.ops->read_file(f.backend->state, "file", &bytes, NULL, &f.err),
                         -PINFOLD_EBACKEND);
        assert_non_null(strstr(f.err.msg, "the answer is not whole"));
        assert_null(bytes.data);
    }
    OK(run("rm answer"));
    reads("file", "abc\n");
    pinfold_temp_workspace_free(temp, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_SANDBOX(what_was_said_survives_the_loss_of_the_files_it_went_to),
        WITH_SANDBOX(much_that_was_said_and_is_gone_is_told_to_be),
        WITH_SANDBOX(a_pipe_in_the_place_of_output_holds_nothing_up),
        WITH_SANDBOX(a_service_that_is_silent_does_not_keep_what_timed_out),
        WITH_SANDBOX(a_command_that_kills_its_shell_has_a_result),
        WITH_SANDBOX(what_is_written_into_the_log_is_no_output),
        WITH_SANDBOX(closed_descriptors_end_nothing),
        WITH_SANDBOX(programs_may_have_any_name),
        WITH_SANDBOX(odd_names_go_every_way),
        WITH_SANDBOX(files_of_holes_cost_nothing_here),
        WITHOUT(without_gnu_tools_commands_run_and_files_say_what_they_need),
        WITHOUT(a_size_or_a_mode_that_is_none_is_no_answer),
    };

    return cmocka_run_group_tests_name("daytona_hostile", tests, NULL, NULL);
}
