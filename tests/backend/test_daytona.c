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
#include <jansson.h>
#include <pinfold/daytona.h>
#include <pinfold/temp_workspace.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend/backend.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "descriptors.h"
#include "net/http.h"

static struct fixture {
    struct pinfold_backend *template, *backend;
    const struct pinfold_backend_ops *ops;
    struct pinfold_execute_result run;
    struct pinfold_error err;
} f;

#define OK(call) ok((call), #call, __LINE__)

static int ok(int r, const char *what, int line)
{
    if (r < 0)
        fail_msg("line %d: %s: %s: %s", line, what, pinfold_code_name(r), f.err.msg);
    return r;
}

/* Tell the fake something, or ask it. The caller owns the answer. */
static json_t *control(const char *method, const char *what, const char *body)
{
    char url[200];
    struct pf_http *http;
    struct pf_http_response response;
    struct pf_http_request request = { .method = method,
                                       .url = url,
                                       .body = body,
                                       .body_len = body ? strlen(body) : 0,
                                       .deadline = pf_clock_deadline(60 * PF_NS_PER_SEC),
                                       .response_max = 10000000 };
    json_t *answer;

    snprintf(url, sizeof(url), "%s/%s", getenv("PINFOLD_DAYTONA_CONTROL"), what);
    OK(pf_http_new(&http, &f.err));
    OK(pf_http_perform(http, &request, &response, NULL, &f.err));
    if (response.status != 200)
        fail_msg("%s: %d %s", url, response.status, response.body.data);
    answer = json_loads(response.body.data, 0, NULL);
    pf_http_response_done(&response);
    pf_http_free(http);
    return answer;
}

static void tell(const char *what, const char *json)
{
    json_decref(control("POST", what, json));
}

static json_int_t count_of(const char *operation)
{
    json_t *counts = control("GET", "counts", NULL);
    json_int_t n = json_integer_value(json_object_get(counts, operation));

    json_decref(counts);
    return n;
}

/* How many sandboxes there are that are not on their way out. */
static unsigned sandboxes(void)
{
    json_t *all = control("GET", "sandboxes", NULL);
    const json_t *one;
    unsigned count = 0;
    size_t i;

    json_array_foreach(all, i, one)
    {
        const char *state = json_string_value(json_object_get(one, "state"));
        count += strcmp(state, "destroyed") != 0 && strcmp(state, "destroying") != 0;
    }
    json_decref(all);
    return count;
}

/* ---- a sandbox for each test ---- */

static struct pinfold_daytona_options options_for_tests(void)
{
    static const char *const env[] = { "FROM_BACKEND=yes", NULL };
    struct pinfold_daytona_options options = PINFOLD_DAYTONA_OPTIONS_INIT;

    options.env = env;
    options.create_timeout_seconds = 50;
    return options;
}

static struct pinfold_backend *build(struct pinfold_backend *template, const char *workspace)
{
    struct pinfold_backend *backend;

    OK(template->ops->build_for_session(template->state, workspace, &backend, &f.err));
    return backend;
}

static void make(const struct pinfold_daytona_options *options)
{
    OK(pinfold_daytona_template_new(options, &f.template, &f.err));
    f.backend = build(f.template, "test/one");
    f.ops = f.backend->ops;
}

static int set_up_only(void **state)
{
    struct pinfold_daytona_options options = options_for_tests();

    tell("reset", "{}");
    make(&options);
    *state = &f;
    return 0;
}

static int set_up(void **state)
{
    set_up_only(state);
    OK(pf_backend_create(f.backend, NULL, &f.err));
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    pinfold_execute_result_done(&f.run);
    OK(pf_backend_close(f.backend, &f.err));
    pinfold_backend_unref(f.backend);
    pinfold_backend_unref(f.template);
    assert_int_equal(sandboxes(), 0);
    return 0;
}

static int run(const char *command)
{
    struct pinfold_execute_options options = PINFOLD_EXECUTE_OPTIONS_INIT;

    pinfold_execute_result_done(&f.run);
    f.err = (struct pinfold_error)PINFOLD_ERROR_INIT;
    options.command = command;
    return f.ops->execute(f.backend->state, &options, &f.run, NULL, &f.err);
}

static void says(const char *command, const char *out, const char *errs, int status)
{
    OK(run(command));
    if (f.run.stdout_len != strlen(out) || memcmp(f.run.output, out, strlen(out)) != 0)
        fail_msg("%s: stdout is \"%s\"", command, f.run.output);
    if (strcmp(f.run.stderr_text, errs) != 0)
        fail_msg("%s: stderr is \"%s\"", command, f.run.stderr_text);
    assert_int_equal(f.run.exit_code, status);
}

static void writes(const char *path, const char *text)
{
    f.err = (struct pinfold_error)PINFOLD_ERROR_INIT;
    OK(f.ops->write_file(f.backend->state, path, text, strlen(text), false, NULL, &f.err));
}

static void reads(const char *path, const char *text)
{
    struct pinfold_bytes bytes = { 0 };

    f.err = (struct pinfold_error)PINFOLD_ERROR_INIT;
    OK(f.ops->read_file(f.backend->state, path, &bytes, NULL, &f.err));
    assert_string_equal(bytes.data, text);
    pinfold_bytes_done(&bytes);
}

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
    if (child == 0) /* and dies without a word */
        _exit(pf_backend_create(f.backend, NULL, NULL) == 0 ? 0 : 1);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
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
    const uint64_t size = UINT64_C(300) << 20;
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

#define WITH_SANDBOX(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
#define WITHOUT(test) cmocka_unit_test_setup_teardown(test, set_up_only, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITHOUT(a_sandbox_is_made_as_asked_and_deleted),
        WITHOUT(a_creation_that_takes_too_long_leaves_nothing),
        WITHOUT(a_creation_that_fails_says_why_and_leaves_nothing),
        WITHOUT(a_sandbox_whose_id_never_came_is_found_by_its_label),
        WITHOUT(a_run_that_died_leaves_what_the_next_start_deletes),
        WITHOUT(deleting_waits_for_a_change_that_is_under_way),
        WITH_SANDBOX(a_sandbox_that_was_stopped_is_started_again),
        WITH_SANDBOX(a_sandbox_that_is_gone_is_told_to_be),
        WITHOUT(an_idle_sandbox_is_kept_awake),
        WITH_SANDBOX(a_forked_child_does_not_end_the_sandbox),
        WITH_SANDBOX(no_session_is_left_of_a_command),
        WITH_SANDBOX(a_command_that_may_have_run_is_not_run_again),
        WITH_SANDBOX(polling_goes_on_through_failures),
        WITH_SANDBOX(a_log_that_is_late_is_waited_for),
        WITH_SANDBOX(a_command_that_is_lost_is_an_error),
        WITH_SANDBOX(what_a_late_command_said_comes_with_its_end),
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
