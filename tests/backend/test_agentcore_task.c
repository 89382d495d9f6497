/* SPDX-License-Identifier: Apache-2.0 */
/* Commands as tasks of the service. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "backend/agentcore_fixture.h"

static int set_up_tasks(void **state)
{
    return set_up_with(state, true);
}

static int run_within(const char *command, double seconds)
{
    struct pinfold_execute_options options = PINFOLD_EXECUTE_OPTIONS_INIT;

    options.command = command;
    options.timeout_seconds = seconds;
    return run_options(&options, NULL);
}

/* A command that begins so notes where the files of its streams are. */
#define NOTED "for t in /tmp/pinfold-*; do [ $t/o -ef /dev/fd/1 ] && echo $t >>../noted; done; "

static void nothing_of_it_is_left(void)
{
    says("test -s ../noted && for t in $(cat ../noted); do [ -e $t ] && echo $t; done; "
         "ls ../pinfold-scratch",
         "", "", 0);
}

static void a_task_is_like_any_command(void **state)
{
    (void)state;
    says(NOTED "printf 'a\r\nb'; printf 'e\n' >&2; exit 3", "a\r\nb", "e\n", 3);
    says("true", "", "", 0);
    says("kill -9 $$", "", "", 137);
    assert_int_equal(tool_runs("startCommandExecution"), 3);
    assert_true(tool_runs("getTask") >= 3);
    assert_false(f.run.timed_out);
    assert_int_equal(run_in("true", "none"), -PINFOLD_EOS);
    assert_int_equal(f.err.sys_errno, ENOENT);
    nothing_of_it_is_left();
}

static void a_long_script_and_a_lot_of_output_are_no_matter(void **state)
{
    static const char prefix[] = NOTED "seq 1 300000; : '";
    size_t len = 200000;
    _cleanup_free_ char *command = malloc(len + sizeof(prefix) + 100);

    (void)state;
    assert_non_null(command);
    memcpy(command, prefix, sizeof(prefix) - 1);
    memset(command + sizeof(prefix) - 1, 'x', len);
    memcpy(command + sizeof(prefix) - 1 + len, "'", 2);
    OK(run_in(command, NULL));
    assert_true(f.run.truncated);
    assert_int_equal(f.run.stdout_bytes, 1988895);
    assert_memory_equal(f.run.output, "1\n2\n3\n", 6);
    nothing_of_it_is_left();
}

static void a_task_is_asked_after_less_and_less_often(void **state)
{
    (void)state;
    says("sleep 2; echo done", "done\n", "", 0);
    /* 50 ms, 75, 112, ...: two seconds are over after eight; each question takes time, too. */
    assert_in_range(tool_runs("getTask"), 2, 20);
}

static void when_its_time_is_up_it_is_stopped_and_what_it_said_is_told(void **state)
{
    (void)state;
    OK(run_within(NOTED "echo begun; echo oh >&2; while sleep 0.1; do :; done", 10));
    assert_true(f.run.timed_out);
    assert_int_equal(f.run.exit_code, 124);
    assert_int_equal(f.run.limit, PINFOLD_LIMIT_TIME);
    assert_int_equal(tool_runs("stopTask"), 1);
    assert_memory_equal(f.run.output, "begun\n", 6);
    assert_non_null(strstr(f.run.stderr_text, "oh\n"));
    assert_non_null(strstr(f.run.output, "[timed out after 10 s]"));
    nothing_of_it_is_left();
}

static void a_task_that_is_stopped_before_it_says_anything_says_nothing(void **state)
{
    (void)state;
    OK(run_within("sleep 100", 0.001));
    assert_true(f.run.timed_out);
    assert_int_equal(f.run.stdout_len, 0);
    assert_int_equal(f.run.exit_code, 124);
}

/* A command of this kind runs there as long as its file is there, and says so in another one. */
#define LIVES NOTED "echo here; while :; do date +%N >../alive; sleep 0.05; done"

static void it_is_dead(void)
{
    says("cat ../alive >../before; sleep 0.4; cmp ../alive ../before && echo dead", "dead\n", "",
         0);
}

static void await_its_life(void)
{
    json_t *sessions = control("GET", "sessions", NULL);
    const char *place =
            json_string_value(json_object_get(json_array_get(sessions, 0), "directory"));
    char path[500];

    snprintf(path, sizeof(path), "%s/alive", place);
    while (access(path, F_OK) < 0)
        usleep(20000);
    json_decref(sessions);
}

static void *fire_when_it_runs(void *cancel)
{
    await_its_life();
    pinfold_cancel_fire(cancel);
    return NULL;
}

static void a_cancelled_task_is_stopped_there(void **state)
{
    struct pinfold_execute_options options = PINFOLD_EXECUTE_OPTIONS_INIT;
    struct pinfold_cancel *cancel;
    pthread_t thread;

    (void)state;
    options.command = LIVES;
    OK(pinfold_cancel_new(&cancel, &f.err));
    assert_int_equal(pthread_create(&thread, NULL, fire_when_it_runs, cancel), 0);
    assert_int_equal(run_options(&options, cancel), -PINFOLD_ECANCELLED);
    pthread_join(thread, NULL);
    pinfold_cancel_free(cancel);
    assert_int_equal(tool_runs("stopTask"), 1);
    it_is_dead();
    nothing_of_it_is_left();
}

static void *stop_when_it_runs(void *unused)
{
    (void)unused;
    await_its_life();
    pf_backend_stop_commands(f.backend);
    return NULL;
}

static void stopping_the_sandbox_ends_it_and_keeps_what_it_said(void **state)
{
    pthread_t thread;

    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, stop_when_it_runs, NULL), 0);
    OK(run_in(LIVES, NULL));
    pthread_join(thread, NULL);
    assert_int_equal(f.run.exit_code, 137);
    assert_memory_equal(f.run.output, "here\n", 5);
    assert_non_null(strstr(f.run.output, "[killed: the sandbox was stopped]"));
    assert_int_equal(tool_runs("stopTask"), 1);
}

/* Whoever is told that it is over may begin the next one beside it. */
#define NOT_STOPPED "{\"kind\":\"http\",\"error\":\"AccessDeniedException\",\"tool\":\"stopTask\"}"

static void one_that_was_late_and_could_not_be_stopped_is_told(void **state)
{
    static const char *const faults[] = {
        NOT_STOPPED,
        /* As a tool tells its failures. */
        "{\"kind\":\"rewrite\",\"tool\":\"stopTask\",\"by\":\"\\\"isError\\\":true\","
        "\"pattern\":\"\\\"structuredContent\\\":.*\\\"isError\\\":false\"}",
    };

    (void)state;
    for (size_t i = 0; i < PF_COUNT(faults); i++) {
        fault(faults[i]);
        OK(run_within(NOTED "echo begun; while sleep 0.1; do :; done", 2));
        assert_true(f.run.timed_out);
        assert_non_null(strstr(f.run.output,
                               "[timed out after 2 s, and could not be stopped: it may run on]"));
    }
}

static void one_that_was_cancelled_and_could_not_be_stopped_is_told(void **state)
{
    struct pinfold_execute_options options = PINFOLD_EXECUTE_OPTIONS_INIT;
    struct pinfold_cancel *cancel;
    pthread_t thread;

    (void)state;
    options.command = LIVES;
    fault(NOT_STOPPED);
    OK(pinfold_cancel_new(&cancel, &f.err));
    assert_int_equal(pthread_create(&thread, NULL, fire_when_it_runs, cancel), 0);
    assert_int_equal(run_options(&options, cancel), -PINFOLD_ECANCELLED);
    pthread_join(thread, NULL);
    pinfold_cancel_free(cancel);
    assert_non_null(strstr(f.run.output, "[the call was cancelled; the command could not be "
                                         "stopped: it may run on]"));
}

static void one_that_the_sandbox_could_not_stop_is_told(void **state)
{
    pthread_t thread;

    (void)state;
    fault(NOT_STOPPED);
    assert_int_equal(pthread_create(&thread, NULL, stop_when_it_runs, NULL), 0);
    OK(run_in(LIVES, NULL));
    pthread_join(thread, NULL);
    assert_non_null(strstr(f.run.output, "[the sandbox was stopped; the command could not be "
                                         "stopped: it may run on]"));
}

/* Nor is an error to be taken for its end. */
#define NOT_TOLD "{\"kind\":\"http\",\"error\":\"AccessDeniedException\",\"tool\":\"%s\"%s}"
#define RUNS_ON "the command could not be stopped, and may run on: "

static void fault_of(const char *tool, const char *rest)
{
    char text[200];

    snprintf(text, sizeof(text), NOT_TOLD, tool, rest);
    fault(text);
}

static void an_error_says_it_too(void **state)
{
    (void)state;
    fault(NOT_STOPPED);
    fault_of("getTask", "");
    assert_int_equal(run_within(LIVES, 20), -PINFOLD_EBACKEND);
    assert_memory_equal(f.err.msg, RUNS_ON, strlen(RUNS_ON));
    /* Its time is up, and what it said cannot be had. */
    fault(NOT_STOPPED);
    fault_of("executeCommand", "");
    assert_int_equal(run_within(LIVES, 1), -PINFOLD_EBACKEND);
    assert_memory_equal(f.err.msg, RUNS_ON, strlen(RUNS_ON));
    /* What was stopped does not run on. */
    fault_of("getTask", "");
    assert_int_equal(run_within(LIVES, 20), -PINFOLD_EBACKEND);
    assert_null(strstr(f.err.msg, "run on"));
}

static void one_that_was_cancelled_and_says_nothing_is_told(void **state)
{
    struct pinfold_execute_options options = PINFOLD_EXECUTE_OPTIONS_INIT;
    struct pinfold_cancel *cancel;
    pthread_t thread;

    (void)state;
    options.command = LIVES;
    fault(NOT_STOPPED);
    fault_of("executeCommand", ",\"count\":null");
    OK(pinfold_cancel_new(&cancel, &f.err));
    assert_int_equal(pthread_create(&thread, NULL, fire_when_it_runs, cancel), 0);
    assert_int_equal(run_options(&options, cancel), -PINFOLD_ECANCELLED);
    pthread_join(thread, NULL);
    pinfold_cancel_free(cancel);
    json_decref(control("DELETE", "faults", NULL));
    assert_non_null(strstr(f.run.output, "[the call was cancelled; the command could not be "
                                         "stopped: it may run on]"));
}

static void *stop_while_it_begins(void *unused)
{
    (void)unused;
    while (tool_runs("startCommandExecution") == 0)
        usleep(20000);
    pf_backend_stop_commands(f.backend);
    return NULL;
}

/* Whether it was begun nobody has heard. */
static void one_that_may_have_begun_is_told(void **state)
{
    pthread_t thread;

    (void)state;
    fault("{\"kind\":\"stall\",\"tool\":\"startCommandExecution\"}");
    assert_int_equal(pthread_create(&thread, NULL, stop_while_it_begins, NULL), 0);
    OK(run_in(LIVES, NULL));
    pthread_join(thread, NULL);
    assert_int_equal(f.run.exit_code, 137);
    assert_string_equal(f.run.output, "[the sandbox was stopped; the command could not be "
                                      "stopped: it may run on]\n");
}

static void *expire_when_it_runs(void *unused)
{
    (void)unused;
    while (tool_runs("getTask") < 2)
        usleep(20000);
    json_decref(control("POST", "expire", "{}"));
    return NULL;
}

static void a_session_that_ends_in_the_middle_is_told(void **state)
{
    pthread_t thread;

    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, expire_when_it_runs, NULL), 0);
    assert_int_equal(run_in("sleep 300", NULL), -PINFOLD_EBACKEND);
    pthread_join(thread, NULL);
    assert_non_null(strstr(f.err.msg, "has ended before its time"));
    assert_null(strstr(f.err.msg, "run on"));
    assert_int_equal(tool_runs("stopTask"), 0);
}

static void failures_to_ask_do_not_lose_the_work(void **state)
{
    (void)state;
    /* More than the client itself tries again: five times for one question. */
    fault("{\"kind\":\"http\",\"status\":503,\"tool\":\"getTask\",\"count\":7}");
    says("sleep 1; echo kept", "kept\n", "", 0);
    fault("{\"kind\":\"close\",\"tool\":\"getTask\",\"count\":6}");
    says("echo kept", "kept\n", "", 0);
    assert_int_equal(tool_runs("startCommandExecution"), 2);
}

static void a_start_that_may_have_happened_is_not_repeated(void **state)
{
    (void)state;
    fault("{\"kind\":\"http\",\"status\":500,\"when\":\"after\","
          "\"tool\":\"startCommandExecution\"}");
    assert_int_equal(run_in("echo x >>ran", NULL), -PINFOLD_EBACKEND);
    assert_int_equal(tool_runs("startCommandExecution"), 1);
}

static void a_service_that_says_nothing_of_a_task_is_an_error(void **state)
{
    (void)state;
    fault("{\"kind\":\"missing\",\"tool\":\"startCommandExecution\","
          "\"members\":[\"structuredContent\"]}");
    assert_int_equal(run_in("true", NULL), -PINFOLD_EBACKEND);
    assert_non_null(strstr(f.err.msg, "startCommandExecution: no task came back"));
    fault("{\"kind\":\"missing\",\"tool\":\"getTask\",\"members\":[\"structuredContent\"]}");
    assert_int_equal(run_in("true", NULL), -PINFOLD_EBACKEND);
    assert_non_null(strstr(f.err.msg, "getTask: no task came back"));
    fault("{\"kind\":\"rewrite\",\"tool\":\"getTask\",\"pattern\":\"\\\"exitCode\\\":0\","
          "\"by\":\"\\\"exitCode\\\":9\",\"count\":null}");
    assert_int_equal(run_in("true", NULL), -PINFOLD_EBACKEND);
    assert_non_null(strstr(f.err.msg, "its files say 0"));
    json_decref(control("DELETE", "faults", NULL));
    /* A state of another name goes on until there is a status of exit. */
    fault("{\"kind\":\"rewrite\",\"tool\":\"getTask\",\"pattern\":\"\\\"taskStatus\\\":"
          "\\\"completed\\\"\",\"by\":\"\\\"taskStatus\\\":\\\"DONE\\\"\",\"count\":null}");
    says("echo fine", "fine\n", "", 0);
}

static void a_status_that_the_command_writes_itself_does_not_count(void **state)
{
    (void)state;
    /* It finds its wrapper's directory, says that it ended well, and goes on. */
    says("for t in /tmp/pinfold-*; do [ \"$t/o\" -ef /dev/fd/1 ] && echo c:0 >$t/s; done; exit 4",
         "", "", 4);
}

static void a_command_cannot_hold_up_its_own_end(void **state)
{
    (void)state;
    /* What the streams go to is replaced by what is read without an end. */
    OK(run_within(NOTED "t=$(tail -n 1 ../noted); echo oh; rm $t/o; ln -s /dev/zero $t/o; "
                        "mkfifo $t/s; mv $t/e $t/x; mkfifo $t/e; sleep 1000",
                  3));
    assert_true(f.run.timed_out);
    assert_int_equal(f.run.exit_code, 124);
    assert_int_equal(f.run.stdout_bytes, 0);
    nothing_of_it_is_left();
}

#define TASK(test) cmocka_unit_test_setup_teardown(test, set_up_tasks, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TASK(a_task_is_like_any_command),
        TASK(a_long_script_and_a_lot_of_output_are_no_matter),
        TASK(a_task_is_asked_after_less_and_less_often),
        TASK(when_its_time_is_up_it_is_stopped_and_what_it_said_is_told),
        TASK(one_that_was_late_and_could_not_be_stopped_is_told),
        TASK(one_that_was_cancelled_and_could_not_be_stopped_is_told),
        TASK(one_that_the_sandbox_could_not_stop_is_told),
        TASK(an_error_says_it_too),
        TASK(one_that_was_cancelled_and_says_nothing_is_told),
        TASK(one_that_may_have_begun_is_told),
        TASK(a_task_that_is_stopped_before_it_says_anything_says_nothing),
        TASK(a_cancelled_task_is_stopped_there),
        TASK(stopping_the_sandbox_ends_it_and_keeps_what_it_said),
        TASK(a_session_that_ends_in_the_middle_is_told),
        TASK(failures_to_ask_do_not_lose_the_work),
        TASK(a_start_that_may_have_happened_is_not_repeated),
        TASK(a_service_that_says_nothing_of_a_task_is_an_error),
        TASK(a_status_that_the_command_writes_itself_does_not_count),
        TASK(a_command_cannot_hold_up_its_own_end),
    };

    return cmocka_run_group_tests_name("agentcore_task", tests, start_fake, end_fake);
}
