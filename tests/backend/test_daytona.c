/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is Daytona's alone: sandboxes that come, go and are lost, and a service that fails. The fake
 * service runs beside the test (tests/daytona/with_fake.py); what all backends have in common is
 * tested by the conformance suite.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <fcntl.h>
#include <limits.h>
#include <pinfold/temp_workspace.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daytona_rig.h"

/* ---- life ---- */

static void a_sandbox_is_made_as_asked_and_deleted(void **state)
{
    static const char *const labels[] = { "team=a b", NULL };
    struct pinfold_daytona_options options = options_for_tests();
    json_t *requests, *body = NULL;
    char *id = NULL;

    (void)state;
    pinfold_backend_unref(f.backend);
    pinfold_backend_unref(f.template);
    options.labels = labels;
    options.snapshot = "daytona-small";
    options.auto_stop_minutes = -1;
    options.network_block_all = true;
    make(&options);
    assert_int_equal(pinfold_daytona_sandbox(f.backend, &id, &f.err), -PINFOLD_ESTART);
    OK(pf_backend_create(f.backend, NULL, &f.err));
    OK(pinfold_daytona_sandbox(f.backend, &id, &f.err));
    free(id);
    assert_int_equal(pinfold_daytona_sandbox(f.template, &id, &f.err), -PINFOLD_ETYPE);
    assert_int_equal(sandboxes(), 1);
    requests = control("GET", "sandboxes", NULL);
    body = json_object_get(json_array_get(requests, 0), "labels");
    assert_string_equal(json_string_value(json_object_get(body, "team")), "a b");
    assert_string_equal(json_string_value(json_object_get(body, "pinfold-workspace")), "test/one");
    json_decref(requests);
    says("printf $FROM_BACKEND; exit 3", "yes", "", 3);
}

static void a_creation_that_takes_too_long_leaves_nothing(void **state)
{
    struct pinfold_daytona_options options = options_for_tests();

    (void)state;
    pinfold_backend_unref(f.backend);
    pinfold_backend_unref(f.template);
    options.create_timeout_seconds = 1;
    make(&options);
    tell("config", "{\"create_polls\":null}");
    assert_int_equal(pf_backend_create(f.backend, NULL, &f.err), -PINFOLD_ETIMEOUT);
    assert_non_null(strstr(f.err.msg, "create_timeout_seconds"));
    assert_int_equal(sandboxes(), 0);
}

static void a_creation_that_fails_says_why_and_leaves_nothing(void **state)
{
    (void)state;
    tell("config", "{\"create_state\":\"build_failed\",\"create_reason\":\"no such base\"}");
    assert_int_equal(pf_backend_create(f.backend, NULL, &f.err), -PINFOLD_EBACKEND);
    assert_non_null(strstr(f.err.msg, "no such base"));
    assert_int_equal(sandboxes(), 0);
}

static void a_sandbox_that_is_refused_when_it_fails_to_start_leaves_nothing(void **state)
{
    (void)state;
    tell("config", "{\"create_waits\":20,\"create_state\":\"error\"}");
    assert_int_equal(pf_backend_create(f.backend, NULL, &f.err), -PINFOLD_EBACKEND);
    assert_int_equal(f.err.http_status, 400);
    assert_int_equal(sandboxes(), 0);
}

static void a_sandbox_whose_id_never_came_is_found_by_its_label(void **state)
{
    (void)state;
    tell("faults", "{\"kind\":\"close\",\"operation\":\"sandbox.create\",\"when\":\"after\"}");
    assert_int_equal(pf_backend_create(f.backend, NULL, &f.err), -PINFOLD_EOS);
    assert_int_equal(count_of("sandbox.create"), 1); /* not asked for twice */
    assert_int_equal(sandboxes(), 0);
}

static void a_run_that_died_leaves_what_the_next_start_deletes(void **state)
{
    struct pinfold_backend *other = build(f.template, "test/two"), *same;
    pid_t child;
    int status;

    (void)state;
    OK(pf_backend_create(other, NULL, &f.err));
    child = fork();
    if (child == 0) {
        if (pf_backend_create(f.backend, NULL, NULL) == 0)
            kill(getpid(), SIGKILL);
        _exit(1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(sandboxes(), 2);
    OK(pf_backend_create(f.backend, NULL, &f.err));
    assert_int_equal(sandboxes(), 2); /* this one, and the other workspace's */
    same = build(f.template, "test/one");
    OK(pf_backend_create(same, NULL, &f.err));
    assert_int_equal(sandboxes(), 3); /* whoever lives keeps his */
    says("echo on", "on\n", "", 0);
    OK(pf_backend_close(same, &f.err));
    OK(pf_backend_close(other, &f.err));
    pinfold_backend_unref(same);
    pinfold_backend_unref(other);
}

static void deleting_waits_for_a_change_that_is_under_way(void **state)
{
    (void)state;
    OK(pf_backend_create(f.backend, NULL, &f.err));
    tell("faults", "{\"kind\":\"http\",\"status\":409,\"operation\":\"sandbox.delete\","
                   "\"count\":2}");
    OK(pf_backend_close(f.backend, &f.err));
    assert_int_equal(count_of("sandbox.delete"), 3);
    assert_int_equal(sandboxes(), 0);
}

static void a_sandbox_that_was_stopped_is_started_again(void **state)
{
    static const char *const states[] = { "stopped", "archived" };

    (void)state;
    writes("file", "kept");
    for (size_t i = 0; i < PF_COUNT(states); i++) {
        char json[100];
        snprintf(json, sizeof(json), "{\"state\":\"%s\"}", states[i]);
        tell("state", json);
        reads("file", "kept");
        tell("state", json);
        says("cat file", "kept", "", 0);
        tell("state", json);
        writes("file", "kept");
    }
    assert_int_equal(count_of("sandbox.start"), 6);
}

static void a_sandbox_that_is_gone_is_told_to_be(void **state)
{
    (void)state;
    tell("state", "{\"state\":\"destroyed\"}");
    assert_int_equal(run("true"), -PINFOLD_EBACKEND);
    assert_non_null(strstr(f.err.msg, "is gone"));
    assert_non_null(strstr(f.err.msg, "lost"));
}

static void a_sandbox_that_only_seemed_to_be_gone_is_deleted(void **state)
{
    (void)state;
    tell("faults", "[{\"kind\":\"http\",\"status\":404,\"operation\":\"session.create\"},"
                   "{\"kind\":\"http\",\"status\":404,\"operation\":\"sandbox.get\"}]");
    assert_int_equal(run("true"), -PINFOLD_EBACKEND);
    assert_non_null(strstr(f.err.msg, "is gone"));
    OK(pf_backend_close(f.backend, &f.err));
    assert_int_equal(sandboxes(), 0);
}

static void an_idle_sandbox_is_kept_awake(void **state)
{
    struct pinfold_daytona_options options = options_for_tests();
    int64_t deadline = pf_clock_deadline(60 * PF_NS_PER_SEC);

    (void)state;
    pinfold_backend_unref(f.backend);
    pinfold_backend_unref(f.template);
    options.auto_stop_minutes = 1; /* it is told every 20 seconds */
    make(&options);
    OK(pf_backend_create(f.backend, NULL, &f.err));
    while (count_of("sandbox.last-activity") == 0) {
        assert_true(pf_clock_now() < deadline);
        usleep(200000);
    }
}

static void one_that_may_be_idle_for_ages_is_left_alone(void **state)
{
    struct pinfold_daytona_options options = options_for_tests();

    (void)state;
    pinfold_backend_unref(f.backend);
    pinfold_backend_unref(f.template);
    options.auto_stop_minutes = INT_MAX;
    make(&options);
    OK(pf_backend_create(f.backend, NULL, &f.err));
    usleep(300000);
    assert_int_equal(count_of("sandbox.last-activity"), 0);
}

static void a_forked_child_does_not_end_the_sandbox(void **state)
{
    pid_t child;
    int status;

    (void)state;
    child = fork();
    if (child == 0) {
        int r = pf_backend_close(f.backend, NULL);
        pinfold_backend_unref(f.backend);
        pinfold_backend_unref(f.template);
        _exit(r == 0 ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    says("echo on", "on\n", "", 0);
}

/* ---- commands ---- */

static void no_session_is_left_of_a_command(void **state)
{
    json_t *all;

    (void)state;
    says("exit 3", "", "", 3);
    says("set -e; false; echo no", "", "", 1);
    says("cat; read x; echo \"<$x>\"", "<>\n", "", 0);
    OK(run("echo ((("));
    assert_int_equal(f.run.exit_code, 2);
    says("exec sh -c 'printf \"\\001\\001\\001x\"'", "\1\1\1x", "", 0);
    says("sleep 300 & echo bg", "bg\n", "", 0);
    all = control("GET", "sandboxes", NULL);
    assert_int_equal(json_array_size(json_object_get(json_array_get(all, 0), "sessions")), 0);
    json_decref(all);
    assert_int_equal(count_of("session.create"), 6);
    assert_int_equal(count_of("session.delete"), 6);
}

static void a_command_that_may_have_run_is_not_run_again(void **state)
{
    (void)state;
    tell("faults", "{\"kind\":\"http\",\"status\":500,\"when\":\"after\","
                   "\"operation\":\"session.exec\"}");
    assert_int_equal(run("echo x >>ran"), -PINFOLD_EBACKEND);
    assert_int_equal(f.err.http_status, 500);
    tell("faults", "{\"kind\":\"close\",\"when\":\"after\",\"operation\":\"session.exec\"}");
    assert_int_equal(run("echo x >>ran"), -PINFOLD_EOS);
    assert_int_equal(count_of("session.exec"), 2);
}

static void polling_goes_on_through_failures(void **state)
{
    (void)state;
    tell("faults", "[{\"kind\":\"http\",\"status\":502,\"empty\":true,"
                   "\"operation\":\"session.command\",\"count\":2},"
                   "{\"kind\":\"close\",\"operation\":\"session.command\"}]");
    says("echo x >>ran; cat ran", "x\n", "", 0);
}

static void a_log_that_is_late_is_waited_for(void **state)
{
    (void)state;
    tell("config", "{\"log_lag\":0.7}");
    says("echo out; echo err >&2; exit 4", "out\n", "err\n", 4);
}

static void a_command_that_is_lost_is_an_error(void **state)
{
    (void)state;
    tell("faults", "{\"kind\":\"lose_sessions\",\"operation\":\"session.command\"}");
    assert_int_equal(run("sleep 30"), -PINFOLD_EBACKEND);
    assert_non_null(strstr(f.err.msg, "lost"));
    says("echo on", "on\n", "", 0);
    tell("faults", "{\"kind\":\"stop\",\"operation\":\"session.command\"}");
    assert_int_equal(run("sleep 30"), -PINFOLD_EBACKEND);
    says("echo on", "on\n", "", 0);
}

static void what_a_late_command_said_comes_with_its_end(void **state)
{
    struct pinfold_execute_options options = PINFOLD_EXECUTE_OPTIONS_INIT;

    (void)state;
    options.command = "echo out; printf part; echo err >&2; sleep 300";
    options.timeout_seconds = 1;
    OK(f.ops->execute(f.backend->state, &options, &f.run, NULL, &f.err));
    assert_int_equal(f.run.exit_code, 124);
    assert_true(f.run.timed_out);
    assert_memory_equal(f.run.output, "out\npart", 8);
    assert_string_equal(f.run.stderr_text, "err\n");
    assert_non_null(strstr(f.run.output, "timed out after 1 s"));
}

static void *fire_later(void *cancel)
{
    while (count_of("session.command") == 0)
        usleep(20000);
    pinfold_cancel_fire(cancel);
    return NULL;
}

static void *stop_later(void *unused)
{
    (void)unused;
    while (count_of("session.command") == 0)
        usleep(20000);
    pf_backend_stop_commands(f.backend);
    return NULL;
}

/* Whoever is told that it is over may begin the next one beside it. In each case: whether there is
 * a fault, and what is said. */
static const struct ending {
    bool fails;
    const char *late, *cancelled, *stopped;
} endings[] = {
    { false, "[timed out after 1 s]\n", "[killed: the call was cancelled]\n",
      "[killed: the sandbox was stopped]\n" },
    { true, "[timed out after 1 s]\n[the service could not be reached to kill it]\n",
      "[the call was cancelled]\n[the service could not be reached to kill it]\n",
      "[the sandbox was stopped]\n[the service could not be reached to kill it]\n" },
};

/* Run a command that has no end, have it ended, and look at what is said of that. */
static void ends(const struct ending *ending, double seconds, void *(*how)(void *),
                 const char *said)
{
    struct pinfold_execute_options options = PINFOLD_EXECUTE_OPTIONS_INIT;
    struct pinfold_cancel *cancel;
    pthread_t thread;
    int r;

    tell("reset", "{}");
    OK(pf_backend_create(f.backend, NULL, &f.err));
    if (ending->fails)
        tell("faults", "{\"kind\":\"http\",\"status\":403,\"operation\":\"session.delete\"}");
    options.command = "sleep 60";
    options.timeout_seconds = seconds;
    OK(pinfold_cancel_new(&cancel, &f.err));
    if (how)
        assert_int_equal(pthread_create(&thread, NULL, how, cancel), 0);
    pinfold_execute_result_done(&f.run);
    r = f.ops->execute(f.backend->state, &options, &f.run, cancel, &f.err);
    assert_int_equal(r, how == fire_later ? -PINFOLD_ECANCELLED : 0);
    if (how)
        pthread_join(thread, NULL);
    pinfold_cancel_free(cancel);
    assert_string_equal(f.run.output, said);
    OK(pf_backend_close(f.backend, &f.err));
}

static void one_that_could_not_be_killed_is_told(void **state)
{
    (void)state;
    for (size_t i = 0; i < PF_COUNT(endings); i++) {
        ends(&endings[i], 1, NULL, endings[i].late);
        ends(&endings[i], 0, fire_later, endings[i].cancelled);
        ends(&endings[i], 0, stop_later, endings[i].stopped);
    }
}

/* Nor is an error to be taken for its end. */
static void an_error_says_what_could_not_be_killed(void **state)
{
    static const char runs_on[] = "the command could not be killed, and may run on: ";
    static const char not_killed[] =
            "{\"kind\":\"http\",\"status\":403,\"operation\":\"session.delete\"}";
    struct pinfold_execute_options options = PINFOLD_EXECUTE_OPTIONS_INIT;

    (void)state;
    options.command = "sleep 60";
    tell("faults", not_killed);
    tell("faults", "{\"kind\":\"http\",\"status\":403,\"operation\":\"session.command\"}");
    assert_int_equal(f.ops->execute(f.backend->state, &options, &f.run, NULL, &f.err),
                     -PINFOLD_EBACKEND);
    assert_memory_equal(f.err.msg, runs_on, strlen(runs_on));
    /* What was killed does not run on, and neither does what has never begun. */
    tell("faults", "{\"kind\":\"http\",\"status\":403,\"operation\":\"session.command\"}");
    assert_int_equal(f.ops->execute(f.backend->state, &options, &f.run, NULL, &f.err),
                     -PINFOLD_EBACKEND);
    assert_null(strstr(f.err.msg, "run on"));
    tell("faults", not_killed);
    tell("faults", "{\"kind\":\"http\",\"status\":403,\"operation\":\"session.create\"}");
    assert_int_equal(f.ops->execute(f.backend->state, &options, &f.run, NULL, &f.err),
                     -PINFOLD_EBACKEND);
    assert_null(strstr(f.err.msg, "run on"));
}

/* A service that has taken it may say that it has not. */
static void an_archive_that_was_refused_is_not_left_there(void **state)
{
    static const char *const none[] = { NULL };
    struct pinfold_seed_request request = { .size = sizeof(request), .exclude = none };
    struct pinfold_seed_result result = { 0 };
    struct pinfold_temp_workspace *empty;

    (void)state;
    OK(pinfold_temp_workspace_new(&empty, &f.err));
    request.source = pinfold_temp_workspace_path(empty);
    tell("faults", "{\"kind\":\"http\",\"status\":403,\"when\":\"after\","
                   "\"operation\":\"files.bulk-upload\"}");
    assert_int_equal(f.ops->seed_workspace(f.backend->state, &request, &result, NULL, &f.err),
                     -PINFOLD_EBACKEND);
    pinfold_seed_result_done(&result);
    OK(pinfold_temp_workspace_free(empty, &f.err));
    says("find ../.pinfold-scratch -maxdepth 1 -type f", "", "", 0);
}

static void without_room_for_files_the_log_is_the_output(void **state)
{
    (void)state;
    OK(run("chmod 500 ../.pinfold-scratch"));
    if (geteuid() != 0) { /* whom that stops */
        OK(run("echo out; echo err >&2; exit 5"));
        assert_int_equal(f.run.exit_code, 5);
        assert_memory_equal(f.run.output, "out\n", 4);
        assert_non_null(strstr(f.run.stderr_text, "err\n"));
        assert_non_null(strstr(f.run.output, "[the streams came by the service's log"));
    }
    OK(run("chmod 700 ../.pinfold-scratch"));
}

/* ---- services of other ages, and faults ---- */

static void works_at_all(void)
{
    struct pinfold_file_infos infos = { 0 };

    says("printf out; printf err >&2; exit 2", "out", "err", 2);
    writes("dir/file", "text");
    reads("dir/file", "text");
    OK(f.ops->list_dir(f.backend->state, "dir", &infos, NULL, &f.err));
    assert_int_equal(infos.count, 1);
    pinfold_file_infos_done(&infos);
    OK(f.ops->move_file(f.backend->state, "dir/file", "other", NULL, &f.err));
    OK(f.ops->remove_file(f.backend->state, "other", NULL, &f.err));
}

static void old_services_are_served(void **state)
{
    static const char *const configs[] = {
        ("{\"daemon_version\":\"0.150.0\",\"toolbox_url\":\"api\",\"bare_list\":true,"
         "\"api_version\":\"0.150.0\"}"),
        "{\"daemon_version\":\"0.170.0\",\"toolbox_url\":\"config\",\"redirect_slash\":false}",
        "{\"daemon_version\":\"0.185.0\",\"toolbox_url\":\"endpoint\",\"delete_empty\":true}",
        "{\"daemon_version\":\"0.205.0\"}",
        "{\"shell\":\"/bin/dash\"}",
    };

    (void)state;
    for (size_t i = 0; i < PF_COUNT(configs); i++) {
        tell("reset", "{}");
        tell("config", configs[i]);
        OK(pf_backend_create(f.backend, NULL, &f.err));
        works_at_all();
        OK(pf_backend_close(f.backend, &f.err));
    }
}

static void bad_credentials_are_told_without_them(void **state)
{
    struct pinfold_daytona_options options = options_for_tests();

    (void)state;
    pinfold_backend_unref(f.backend);
    pinfold_backend_unref(f.template);
    options.api_key = "dtn_wrong_key";
    make(&options);
    assert_int_equal(pf_backend_create(f.backend, NULL, &f.err), -PINFOLD_EBACKEND);
    assert_int_equal(f.err.http_status, 401);
    assert_null(strstr(f.err.msg, "dtn_wrong_key"));
    assert_int_equal(count_of("sandbox.create"), 1);
}

static void a_reply_that_is_cut_anywhere_is_an_error_or_right(void **state)
{
    static const char *const operations[] = { "session.create", "session.logs",
                                              "session.exec",   "files.bulk-upload",
                                              "files.download", "process.execute" };

    (void)state;
    writes("file", "whole");
    for (size_t i = 0; i < PF_COUNT(operations); i++) {
        for (int at = 0; at < 40; at += 13) {
            struct pinfold_bytes bytes = { 0 };
            char json[200];
            snprintf(json, sizeof(json),
                     "{\"kind\":\"close\",\"operation\":\"%s\",\"wire_byte\":%d}", operations[i],
                     at);
            tell("faults", json);
            if (run("printf hello") == 0)
                assert_memory_equal(f.run.output, "hello", 5);
            f.ops->write_file(f.backend->state, "x", "y", 1, false, NULL, &f.err);
            if (f.ops->read_file(f.backend->state, "file", &bytes, NULL, &f.err) == 0)
                assert_string_equal(bytes.data, "whole");
            pinfold_bytes_done(&bytes);
            json_decref(control("DELETE", "faults", NULL));
        }
    }
    says("printf fine", "fine", "", 0);
}

/* ---- files ---- */

static void a_large_file_goes_both_ways_in_little_memory(void **state)
{
    const char *wanted = getenv("PINFOLD_LARGE_MIB");
    const uint64_t size = (wanted ? strtoull(wanted, NULL, 10) : 300) << 20;
    struct pinfold_temp_workspace *temp;
    struct pinfold_transfer_results results = { 0 };
    struct rusage before, after;
    char from[500], to[500];
    struct stat st;

    (void)state;
    OK(pinfold_temp_workspace_new(&temp, &f.err));
    snprintf(from, sizeof(from), "%s/from", pinfold_temp_workspace_path(temp));
    snprintf(to, sizeof(to), "%s/to", pinfold_temp_workspace_path(temp));
    _cleanup_close_ int fd = open(from, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(ftruncate(fd, (off_t)size), 0);
    const struct pinfold_upload up = { .path = "large", .host_path = from };
    const struct pinfold_download down = { .path = "large", .host_path = to };
    getrusage(RUSAGE_SELF, &before);
    OK(f.ops->upload_files(f.backend->state, &up, 1, true, &results, NULL, &f.err));
    assert_string_equal(results.items[0].error.msg, "");
    pinfold_transfer_results_done(&results);
    OK(f.ops->download_files(f.backend->state, &down, 1, true, &results, NULL, &f.err));
    assert_string_equal(results.items[0].error.msg, "");
    pinfold_transfer_results_done(&results);
    getrusage(RUSAGE_SELF, &after);
    assert_int_equal(stat(to, &st), 0);
    assert_int_equal(st.st_size, size);
    assert_true(after.ru_maxrss - before.ru_maxrss < 64 * 1024);
    pinfold_temp_workspace_free(temp, NULL);
}

static void many_files_go_in_few_requests_and_fail_one_by_one(void **state)
{
    enum { COUNT = 300 };
    static char names[COUNT][32];
    struct pinfold_upload up[COUNT];
    struct pinfold_download down[COUNT];
    struct pinfold_transfer_results results = { 0 };

    (void)state;
    OK(run("mkdir bad; : >file"));
    for (int i = 0; i < COUNT; i++) {
        snprintf(names[i], sizeof(names[i]),
                 i == 7   ? "bad"
                 : i == 8 ? "file/x"
                          : "d/%d \xc3\xa4",
                 i);
        up[i] = (struct pinfold_upload){ .path = names[i], .data = names[i], .len = 5 };
        down[i] = (struct pinfold_download){ .path = names[i] };
    }
    OK(f.ops->upload_files(f.backend->state, up, COUNT, true, &results, NULL, &f.err));
    for (int i = 0; i < COUNT; i++)
        assert_int_equal(results.items[i].error.sys_errno, i == 7 ? EISDIR : i == 8 ? ENOTDIR : 0);
    pinfold_transfer_results_done(&results);
    assert_true(count_of("files.bulk-upload") <= 5);
    OK(f.ops->download_files(f.backend->state, down, COUNT, true, &results, NULL, &f.err));
    for (int i = 0; i < COUNT; i++) {
        if (i == 7 || i == 8)
            assert_int_equal(results.items[i].error.sys_errno, i == 7 ? EISDIR : ENOTDIR);
        else
            assert_memory_equal(results.items[i].content.data, names[i], 5);
    }
    pinfold_transfer_results_done(&results);
    assert_int_equal(count_of("files.bulk-download"), 1);
}

static void names_may_be_any_bytes(void **state)
{
    struct pinfold_file_infos infos = { 0 };
    const struct pinfold_download down[] = { { .path = "d/\xff x" }, { .path = "d/\xff x" } };
    struct pinfold_transfer_results results = { 0 };

    (void)state;
    writes("d/\xff x", "odd");
    writes("d/ blank ", "blank");
    reads("d/\xff x", "odd");
    reads("d/ blank ", "blank");
    OK(f.ops->list_dir(f.backend->state, "d", &infos, NULL, &f.err));
    assert_int_equal(infos.count, 2);
    assert_string_equal(infos.items[1].path, "d/\xff x");
    assert_int_equal(infos.items[1].size, 3);
    pinfold_file_infos_done(&infos);
    OK(f.ops->download_files(f.backend->state, down, 2, true, &results, NULL, &f.err));
    assert_memory_equal(results.items[1].content.data, "odd", 3);
    pinfold_transfer_results_done(&results);
    OK(f.ops->remove_file(f.backend->state, "d/\xff x", NULL, &f.err));
}

/* ---- options ---- */

static void options_out_of_range_are_refused(void **state)
{
    static const char *const bad_env[] = { "no equals", NULL };
    struct pinfold_daytona_options all[6];
    struct pinfold_backend *backend;

    (void)state;
    for (int i = 0; i < 6; i++)
        all[i] = options_for_tests();
    all[0].size = 1;
    all[1].timeout_seconds = -1;
    all[2].auto_stop_minutes = -2;
    all[3].snapshot = "s";
    all[3].image = "i";
    all[4].image = "x\nRUN evil";
    all[5].labels = bad_env;
    for (int i = 0; i < 6; i++)
        assert_int_equal(pinfold_daytona_template_new(&all[i], &backend, &f.err), -PINFOLD_EVALUE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITHOUT(a_sandbox_is_made_as_asked_and_deleted),
        WITHOUT(a_creation_that_takes_too_long_leaves_nothing),
        WITHOUT(a_creation_that_fails_says_why_and_leaves_nothing),
        WITHOUT(a_sandbox_that_is_refused_when_it_fails_to_start_leaves_nothing),
        WITHOUT(a_sandbox_whose_id_never_came_is_found_by_its_label),
        WITHOUT(a_run_that_died_leaves_what_the_next_start_deletes),
        WITHOUT(deleting_waits_for_a_change_that_is_under_way),
        WITH_SANDBOX(a_sandbox_that_was_stopped_is_started_again),
        WITH_SANDBOX(a_sandbox_that_is_gone_is_told_to_be),
        WITH_SANDBOX(a_sandbox_that_only_seemed_to_be_gone_is_deleted),
        WITHOUT(an_idle_sandbox_is_kept_awake),
        WITHOUT(one_that_may_be_idle_for_ages_is_left_alone),
        WITH_SANDBOX(a_forked_child_does_not_end_the_sandbox),
        WITH_SANDBOX(no_session_is_left_of_a_command),
        WITH_SANDBOX(a_command_that_may_have_run_is_not_run_again),
        WITH_SANDBOX(polling_goes_on_through_failures),
        WITH_SANDBOX(a_log_that_is_late_is_waited_for),
        WITH_SANDBOX(a_command_that_is_lost_is_an_error),
        WITH_SANDBOX(what_a_late_command_said_comes_with_its_end),
        WITHOUT(one_that_could_not_be_killed_is_told),
        WITH_SANDBOX(an_error_says_what_could_not_be_killed),
        WITH_SANDBOX(an_archive_that_was_refused_is_not_left_there),
        WITH_SANDBOX(without_room_for_files_the_log_is_the_output),
        WITHOUT(old_services_are_served),
        WITHOUT(bad_credentials_are_told_without_them),
        WITH_SANDBOX(a_reply_that_is_cut_anywhere_is_an_error_or_right),
        WITH_SANDBOX(a_large_file_goes_both_ways_in_little_memory),
        WITH_SANDBOX(many_files_go_in_few_requests_and_fail_one_by_one),
        WITH_SANDBOX(names_may_be_any_bytes),
        cmocka_unit_test(options_out_of_range_are_refused),
    };

    return cmocka_run_group_tests_name("daytona_backend", tests, NULL, NULL);
}
