/* SPDX-License-Identifier: Apache-2.0 */
/* The backend against the fake service, which runs what it is told. */
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "backend/agentcore_fixture.h"

/* ---- commands ---- */

static void streams_and_status_of_a_command_come_apart_and_exact(void **state)
{
    (void)state;
    says("printf 'a\\r\\nb\\n'; printf 'e\\n' >&2; exit 3", "a\r\nb\n", "e\n", 3);
    says("true", "", "", 0);
    says("kill -9 $$", "", "", 137);
    says("no-such-command-here 2>/dev/null", "", "", 127);
    says("cat", "", "", 0); /* there is nothing to read */
    says("echo \"it's $((1 + 1))\" '\"' \\\\", "it's 2 \" \\\n", "", 0);
    OK(run_in("printf '\\000\\377x'", NULL));
    assert_int_equal(f.run.stdout_bytes, 3);
    assert_memory_equal(f.run.output, "\0\xef\xbf\xbdx", 5);
}

static void a_command_has_its_directory_and_environment(void **state)
{
    const char *const env[] = { "ODD=a b'c\"$x\n\tend", "FROM_CALL=1", NULL };
    struct pinfold_execute_options options = PINFOLD_EXECUTE_OPTIONS_INIT;

    (void)state;
    OK(write_text("sub dir/file", "x", false));
    OK(run_in("pwd; ls", "sub dir"));
    assert_non_null(strstr(f.run.output, "/workspace/sub dir\nfile\n"));
    options.command = "printf '%s|%s|%s' \"$ODD\" $FROM_CALL $FROM_BACKEND";
    options.env = env;
    OK(run_options(&options, NULL));
    assert_string_equal(f.run.output, "a b'c\"$x\n\tend|1|yes");
    assert_int_equal(run_in("true", "none"), -PINFOLD_EOS);
    assert_int_equal(f.err.sys_errno, ENOENT);
    assert_int_equal(run_in("true", "sub dir/file"), -PINFOLD_EOS);
    assert_int_equal(f.err.sys_errno, ENOTDIR);
    OK(run_in("ln -s / out", NULL));
    assert_int_equal(run_in("true", "out"), -PINFOLD_EPATH);
}

static void an_argument_vector_is_not_split(void **state)
{
    const char *const argv[] = { "printf", "<%s>", "a b", "$HOME", "", NULL };
    struct pinfold_execute_options options = PINFOLD_EXECUTE_OPTIONS_INIT;

    (void)state;
    options.argv = argv;
    OK(run_options(&options, NULL));
    assert_string_equal(f.run.output, "<a b><$HOME><>");
}

static void a_command_of_any_length_and_any_bytes_runs(void **state)
{
    size_t len = 300000;
    _cleanup_free_ char *command = malloc(len + 100);
    struct pinfold_execute_options options = PINFOLD_EXECUTE_OPTIONS_INIT;

    (void)state;
    assert_non_null(command);
    memcpy(command, "printf ok; : '", 14);
    memset(command + 14, 'x', len);
    memcpy(command + 14 + len, "'", 2);
    says(command, "ok", "", 0);
    says("printf '\x03\x04\t\xff' | od -An -tx1", " 03 04 09 ff\n", "", 0);
    options.command = "a\0b";
    options.command_len = 3;
    OK(run_options(&options, NULL));
    assert_int_equal(f.run.exit_code, 1);
    assert_non_null(strstr(f.run.stderr_text, "NUL"));
}

struct heard {
    size_t len;
    unsigned sum;
};

static int hear(void *ctx, enum pinfold_stream stream, const char *data, size_t len)
{
    struct heard *heard = ctx;

    assert_int_equal(stream, PINFOLD_STDOUT);
    for (size_t i = 0; i < len; i++)
        heard->sum = heard->sum * 31 + (unsigned char)data[i];
    heard->len += len;
    return 0;
}

static void output_of_any_length_is_cut_counted_and_heard_whole(void **state)
{
    struct pinfold_execute_options options = PINFOLD_EXECUTE_OPTIONS_INIT;
    struct heard heard = { 0 }, want = { 0 };

    (void)state;
    options.command = "seq 1 700000";
    OK(run_options(&options, NULL));
    assert_true(f.run.truncated);
    assert_int_equal(f.run.stdout_bytes, 4788895);
    assert_memory_equal(f.run.output, "1\n2\n3\n", 6);
    options.on_output = hear;
    options.on_output_ctx = &heard;
    OK(run_options(&options, NULL));
    assert_int_equal(heard.len, 4788895);
    for (int i = 1; i <= 700000; i++) {
        char line[16];
        int len = snprintf(line, sizeof(line), "%d\n", i);
        hear(&want, PINFOLD_STDOUT, line, (size_t)len);
    }
    assert_int_equal(heard.sum, want.sum);
}

static void *fire_soon(void *cancel)
{
    await_call();
    pinfold_cancel_fire(cancel);
    return NULL;
}

static void a_cancelled_command_returns_at_once(void **state)
{
    struct pinfold_execute_options options = PINFOLD_EXECUTE_OPTIONS_INIT;
    struct pinfold_cancel *cancel;
    pthread_t thread;

    (void)state;
    options.command = "sleep 300";
    OK(pinfold_cancel_new(&cancel, &f.err));
    assert_int_equal(pthread_create(&thread, NULL, fire_soon, cancel), 0);
    assert_int_equal(run_options(&options, cancel), -PINFOLD_ECANCELLED);
    pthread_join(thread, NULL);
    pinfold_cancel_free(cancel);
    assert_string_equal(f.run.output, "[the call was cancelled; the command could not be "
                                      "stopped: it may run on]\n");
}

static void *stop_soon(void *unused)
{
    (void)unused;
    await_call();
    pf_backend_stop_commands(f.backend);
    return NULL;
}

static void stopping_ends_the_wait_and_says_what_may_run_on(void **state)
{
    pthread_t thread;

    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, stop_soon, NULL), 0);
    OK(run_in("sleep 300", NULL));
    pthread_join(thread, NULL);
    assert_int_equal(f.run.exit_code, 137);
    assert_string_equal(f.run.output, "[the sandbox was stopped; the command could not be "
                                      "stopped: it may run on]\n");
    assert_int_equal(run_in("true", NULL), -PINFOLD_ESTART);
    OK(write_text("file", "still here", false)); /* for a flush, which follows */
    reads("file", "still here", 10);
}

static void a_forked_child_does_not_end_the_session(void **state)
{
    pid_t child;
    int status;

    (void)state;
    child = fork();
    if (child == 0) {
        pf_backend_stop_commands(f.backend);
        _exit(pf_backend_close(f.backend, NULL) == 0 ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    says("echo on", "on\n", "", 0);
}

/* ---- what goes wrong there ---- */

static void a_command_that_may_have_run_is_not_run_again(void **state)
{
    (void)state;
    fault("{\"kind\":\"http\",\"error\":\"InternalServerException\",\"when\":\"after\","
          "\"tool\":\"executeCommand\"}");
    assert_int_equal(run_in("echo x >>ran", NULL), -PINFOLD_EBACKEND);
    assert_int_equal(f.err.http_status, 500);
    says("cat ran", "x\n", "", 0);
    fault("{\"kind\":\"http\",\"error\":\"ThrottlingException\",\"tool\":\"executeCommand\"}");
    says("echo x >>ran; cat ran", "x\nx\n", "", 0);
}

static void a_reply_that_is_cut_anywhere_is_an_error(void **state)
{
    static const int at[] = { 0, 1, 11, 12, 100, 300 };

    (void)state;
    for (size_t i = 0; i < PF_COUNT(at); i++) {
        char text[200];
        snprintf(text, sizeof(text),
                 "{\"kind\":\"close\",\"then\":\"%s\",\"body_byte\":%d,\"when\":\"after\"}",
                 i % 2 ? "end" : "reset", at[i]);
        fault(text);
        if (run_in("printf hello", NULL) == 0)
            fail_msg("cut at %d it was a success: %s", at[i], f.run.output);
    }
    fault("{\"kind\":\"crc\",\"of\":\"message\"}");
    assert_int_equal(run_in("true", NULL), -PINFOLD_EBACKEND);
    fault("{\"kind\":\"empty\"}");
    assert_int_equal(run_in("true", NULL), -PINFOLD_EBACKEND);
    says("printf fine", "fine", "", 0);
}

static void a_session_that_has_ended_is_reported_with_what_is_lost(void **state)
{
    double left = 0;
    char *id = NULL;

    (void)state;
    OK(pinfold_agentcore_session(f.backend, &id, &left, &f.err));
    assert_true(left > 600 && left <= 900);
    json_decref(control("POST", "expire", "{}"));
    assert_int_equal(run_in("true", NULL), -PINFOLD_EBACKEND);
    assert_non_null(strstr(f.err.msg, id));
    assert_non_null(strstr(f.err.msg, "lost"));
    assert_int_equal(read_code("x"), -PINFOLD_EBACKEND);
    free(id);
    assert_int_equal(pinfold_agentcore_session(f.template, &id, NULL, &f.err), -PINFOLD_ETYPE);
}

/* ---- files ---- */

static void files_are_written_and_read_byte_for_byte(void **state)
{
    char bytes[256];

    (void)state;
    for (int i = 0; i < 256; i++)
        bytes[i] = (char)i;
    OK(f.ops->write_file(f.backend->state, "a/b c/'d", bytes, 256, false, NULL, &f.err));
    reads("a/b c/'d", bytes, 256);
    OK(write_text("empty", "", true));
    reads("empty", "", 0);
    OK(write_text("-n", "a\r\nb", false));
    reads("-n", "a\r\nb", 4);
    says("stat -c %a ./-n", "644\n", "", 0);
    says("chmod 750 ./-n", "", "", 0);
    OK(write_text("-n", "c", false));
    says("stat -c %a ./-n; ls -A", "750\n-n\na\nempty\n", "", 0);
}

static void large_files_go_in_parts(void **state)
{
    size_t len = 60 * 1000 * 1000;
    _cleanup_free_ char *data = malloc(len);
    unsigned random = 1;

    (void)state;
    assert_non_null(data);
    for (size_t i = 0; i < len; i++) {
        random = random * 1103515245 + 12345;
        data[i] = (char)(random >> 16);
    }
    OK(f.ops->write_file(f.backend->state, "large", data, len, false, NULL, &f.err));
    reads("large", data, len);
    says("stat -c %s large; ls ../pinfold-scratch | wc -l", "60000000\n0\n", "", 0);
}

static void errors_of_files_are_those_of_the_system(void **state)
{
    (void)state;
    OK(write_text("file", "x", false));
    OK(run_in("mkdir dir; ln -s /etc out; mkfifo fifo", NULL));
    assert_int_equal(read_code("none"), -PINFOLD_EOS);
    assert_int_equal(f.err.sys_errno, ENOENT);
    assert_int_equal(read_code("dir"), -PINFOLD_EOS);
    assert_int_equal(f.err.sys_errno, EISDIR);
    assert_int_equal(read_code("file/x"), -PINFOLD_EOS);
    assert_int_equal(f.err.sys_errno, ENOTDIR);
    assert_int_equal(read_code("fifo"), -PINFOLD_EOS);
    assert_int_equal(f.err.sys_errno, EINVAL);
    assert_int_equal(read_code("out/passwd"), -PINFOLD_EPATH);
    assert_int_equal(write_text("file", "y", true), -PINFOLD_EOS);
    assert_int_equal(f.err.sys_errno, EEXIST);
    assert_int_equal(write_text("dir", "y", false), -PINFOLD_EOS);
    assert_int_equal(f.err.sys_errno, EISDIR);
    assert_int_equal(write_text("file/x", "y", false), -PINFOLD_EOS);
    assert_int_equal(f.err.sys_errno, ENOTDIR);
    assert_int_equal(write_text("out/y", "y", false), -PINFOLD_EPATH);
    assert_int_equal(f.ops->remove_file(f.backend->state, "dir", NULL, &f.err), -PINFOLD_EOS);
    assert_int_equal(f.err.sys_errno, EISDIR);
    assert_int_equal(f.ops->remove_file(f.backend->state, "none", NULL, &f.err), -PINFOLD_EOS);
    assert_int_equal(f.err.sys_errno, ENOENT);
}

static void files_are_moved_and_removed(void **state)
{
    (void)state;
    OK(write_text("a", "1", false));
    OK(f.ops->move_file(f.backend->state, "a", "x/y", NULL, &f.err));
    reads("x/y", "1", 1);
    assert_int_equal(read_code("a"), -PINFOLD_EOS);
    OK(f.ops->remove_file(f.backend->state, "x/y", NULL, &f.err));
    says("ls x", "", "", 0);
}

static void a_directory_is_listed_with_sizes(void **state)
{
    static const struct {
        const char *path;
        bool is_dir;
        int64_t size;
    } want[] = { { "d/.hidden", false, 0 },   { "d/dangling", false, -1 }, { "d/file", false, 5 },
                 { "d/new\nline", false, 0 }, { "d/out", false, -1 },      { "d/sub", true, -1 },
                 { "d/to-dir", true, -1 },    { "d/to-file", false, 5 } };
    struct pinfold_file_infos infos = { 0 };

    (void)state;
    OK(run_in("mkdir -p d/sub; cd d; printf 12345 >file; : >.hidden; ln -s sub to-dir; "
              "ln -s file to-file; ln -s none dangling; ln -s / out; : >'new\nline'",
              NULL));
    OK(f.ops->list_dir(f.backend->state, "d", &infos, NULL, &f.err));
    assert_int_equal(infos.count, PF_COUNT(want));
    for (size_t i = 0; i < infos.count; i++) {
        assert_string_equal(infos.items[i].path, want[i].path);
        assert_int_equal(infos.items[i].is_dir, want[i].is_dir);
        assert_int_equal(infos.items[i].size, want[i].size);
    }
    pinfold_file_infos_done(&infos);
    assert_int_equal(f.ops->list_dir(f.backend->state, "none", &infos, NULL, &f.err), -PINFOLD_EOS);
    assert_int_equal(f.err.sys_errno, ENOENT);
}

/* ---- trees ---- */

static void put_host(const char *path, const char *text)
{
    FILE *file = fopen(at_host(path), "we");

    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    fclose(file);
}

static void a_tree_goes_in_and_comes_back(void **state)
{
    const char *const exclude[] = { "*.tmp", "node_modules/", NULL }, *const all[] = { "**", NULL };
    struct pinfold_seed_request seed = { .size = sizeof(seed), .exclude = exclude };
    struct pinfold_sync_request sync = { .size = sizeof(sync), .include = all, .exclude = exclude };
    struct pinfold_seed_result seeded = { 0 };
    struct pinfold_sync_result synced = { 0 };
    char long_name[300];
    json_int_t before;

    (void)state;
    mkdir(at_host("src"), 0755);
    mkdir(at_host("src/empty"), 0755);
    mkdir(at_host("src/node_modules"), 0755);
    put_host("src/text", "a\r\nb");
    put_host("src/skip.tmp", "no");
    put_host("src/node_modules/x", "no");
    memset(long_name, 'n', 250);
    strcpy(long_name, "src/");
    memset(long_name + 4, 'n', 240);
    long_name[244] = '\0';
    put_host(long_name, "long");
    chmod(at_host("src/text"), 0755);
    assert_int_equal(symlink("text", at_host("src/link")), 0);
    seed.source = at_host("src");
    before = tool_runs("executeCommand") + tool_runs("writeFiles");
    OK(f.ops->seed_workspace(f.backend->state, &seed, &seeded, NULL, &f.err));
    assert_int_equal(seeded.errors.count, 0);
    assert_int_equal(seeded.files_seeded, 2);
    assert_true(tool_runs("executeCommand") + tool_runs("writeFiles") - before <= 3);
    says("ls | grep -v nnn; readlink link; stat -c %a text; cat nnn*",
         "empty\nlink\ntext\ntext\n755\nlong", "", 0);
    OK(run_in("rm link; mkdir -p out/deep node_modules; printf '\\000\\377' >out/deep/bin; "
              "echo new >text; echo x >node_modules/y; truncate -s 50M out/sparse",
              NULL));
    sync.dest = at_host("dst");
    OK(f.ops->sync_artifacts(f.backend->state, &sync, &synced, NULL, &f.err));
    if (synced.errors.count > 0)
        fail_msg("%s", synced.errors.items[0]);
    assert_int_equal(synced.files_synced, 4);
    assert_int_equal(access(at_host("dst/node_modules"), F_OK), -1);
    assert_int_equal(access(at_host("dst/out/deep/bin"), R_OK), 0);
    pinfold_sync_result_done(&synced);
    OK(f.ops->sync_artifacts(f.backend->state, &sync, &synced, NULL, &f.err));
    assert_int_equal(synced.files_synced, 0); /* they are there */
    pinfold_sync_result_done(&synced);
    pinfold_seed_result_done(&seeded);
}

static void lists_of_files_go_both_ways(void **state)
{
    const struct pinfold_upload up[] = { { .path = "m", .data = "mem", .len = 3 },
                                         { .path = "sub/h", .host_path = at_host("h") },
                                         { .path = "gone", .host_path = at_host("none") } };
    const struct pinfold_download down[] = { { .path = "m" },
                                             { .path = "sub/h", .host_path = at_host("back/h") },
                                             { .path = "none" },
                                             { .path = "to-m" } };
    struct pinfold_transfer_results results = { 0 };

    (void)state;
    put_host("h", "host");
    chmod(at_host("h"), 0755);
    OK(f.ops->upload_files(f.backend->state, up, 3, true, &results, NULL, &f.err));
    assert_int_equal(results.items[0].error.code, 0);
    assert_int_equal(results.items[1].error.code, 0);
    assert_int_equal(results.items[2].error.sys_errno, ENOENT);
    pinfold_transfer_results_done(&results);
    OK(f.ops->upload_files(f.backend->state, up, 1, false, &results, NULL, &f.err));
    assert_true(results.items[0].skipped);
    pinfold_transfer_results_done(&results);
    says("cat m sub/h; stat -c %a sub/h; ln -s m to-m", "memhost755\n", "", 0);
    OK(f.ops->download_files(f.backend->state, down, 4, true, &results, NULL, &f.err));
    assert_memory_equal(results.items[0].content.data, "mem", 3);
    assert_int_equal(results.items[1].error.code, 0);
    assert_int_equal(results.items[2].error.sys_errno, ENOENT);
    assert_memory_equal(results.items[3].content.data, "mem", 3);
    assert_int_equal(access(at_host("back/h"), X_OK), 0);
    pinfold_transfer_results_done(&results);
}

/* ---- configuration ---- */

static void options_out_of_range_are_refused(void **state)
{
    struct pinfold_agentcore_options options = PINFOLD_AGENTCORE_OPTIONS_INIT;
    struct pinfold_backend *backend;

    (void)state;
    options.region = "us-west-2.evil.example";
    assert_int_equal(pinfold_agentcore_template_new(&options, &backend, &f.err), -PINFOLD_EVALUE);
    options.region = "us-west-2";
    options.session_timeout_seconds = 28801;
    assert_int_equal(pinfold_agentcore_template_new(&options, &backend, &f.err), -PINFOLD_EVALUE);
    options.session_timeout_seconds = 0;
    options.timeout_seconds = -1;
    assert_int_equal(pinfold_agentcore_template_new(&options, &backend, &f.err), -PINFOLD_EVALUE);
    options.timeout_seconds = NAN;
    assert_int_equal(pinfold_agentcore_template_new(&options, &backend, &f.err), -PINFOLD_EVALUE);
    options.timeout_seconds = 0;
    options.endpoint = "ftp://x";
    assert_int_equal(pinfold_agentcore_template_new(&options, &backend, &f.err), -PINFOLD_EVALUE);
    options.endpoint = NULL;
    options.access_key = "A";
    assert_int_equal(pinfold_agentcore_template_new(&options, &backend, &f.err), -PINFOLD_EVALUE);
}

#define WITH_SESSION(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_SESSION(streams_and_status_of_a_command_come_apart_and_exact),
        WITH_SESSION(a_command_has_its_directory_and_environment),
        WITH_SESSION(an_argument_vector_is_not_split),
        WITH_SESSION(a_command_of_any_length_and_any_bytes_runs),
        WITH_SESSION(output_of_any_length_is_cut_counted_and_heard_whole),
        WITH_SESSION(a_cancelled_command_returns_at_once),
        WITH_SESSION(stopping_ends_the_wait_and_says_what_may_run_on),
        WITH_SESSION(a_forked_child_does_not_end_the_session),
        WITH_SESSION(a_command_that_may_have_run_is_not_run_again),
        WITH_SESSION(a_reply_that_is_cut_anywhere_is_an_error),
        WITH_SESSION(a_session_that_has_ended_is_reported_with_what_is_lost),
        WITH_SESSION(files_are_written_and_read_byte_for_byte),
        WITH_SESSION(large_files_go_in_parts),
        WITH_SESSION(errors_of_files_are_those_of_the_system),
        WITH_SESSION(files_are_moved_and_removed),
        WITH_SESSION(a_directory_is_listed_with_sizes),
        WITH_SESSION(a_tree_goes_in_and_comes_back),
        WITH_SESSION(lists_of_files_go_both_ways),
        cmocka_unit_test(options_out_of_range_are_refused),
    };

    return cmocka_run_group_tests_name("agentcore_backend", tests, start_fake, end_fake);
}
