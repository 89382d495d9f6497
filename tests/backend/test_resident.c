/* SPDX-License-Identifier: Apache-2.0 */
/* Which process supervises a command in a sandbox: one that stays, whenever that is free. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <pinfold/pinfold.h>

#include "tempdir.h"

#define TRIES 200

struct fixture {
    char dir[128];
    struct pinfold_backend *backend;
    const struct pinfold_backend_ops *ops;
    void *state;
    struct pinfold_error err;
};

static int set_up(void **state)
{
    struct pinfold_isolated_options options = PINFOLD_ISOLATED_OPTIONS_INIT;
    struct fixture *f = calloc(1, sizeof(*f));

    assert_non_null(f);
    assert_non_null(test_tempdir("pinfold-resident", f->dir, sizeof(f->dir)));
    options.workspace_root = f->dir;
    options.limits.processes = PINFOLD_UNLIMITED; /* so that no process number comes twice */
    assert_int_equal(pinfold_isolated_backend_new(&options, &f->backend, &f->err), 0);
    f->ops = pinfold_backend_get_ops(f->backend);
    f->state = pinfold_backend_get_state(f->backend);
    if (f->ops->create(f->state, NULL, &f->err) < 0)
        fail_msg("%s", f->err.msg);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    char command[256];

    assert_int_equal(f->ops->close(f->state, &f->err), 0);
    pinfold_backend_unref(f->backend);
    snprintf(command, sizeof(command), "rm -rf '%s'", f->dir);
    assert_int_equal(system(command), 0);
    free(f);
    return 0;
}

/* Returns the number that the command prints, or a negative code. */
static long run(struct fixture *f, const char *command)
{
    struct pinfold_execute_options options = PINFOLD_EXECUTE_OPTIONS_INIT;
    struct pinfold_execute_result result;
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    long number;
    int r;

    options.command = command;
    r = f->ops->execute(f->state, &options, &result, NULL, &err);
    if (r < 0)
        return r;
    number = strtol(result.output, NULL, 10);
    pinfold_execute_result_done(&result);
    return number;
}

/* The supervisor says that it is free just after the owner has the result: who asks at once may
 * come too early, and gets another one. */
static long find_resident(struct fixture *f)
{
    long one = run(f, "echo $PPID"), next;

    for (int i = 0; i < TRIES; i++) {
        assert_true(one > 1);
        next = run(f, "echo $PPID");
        if (next == one)
            return one;
        one = next;
        usleep(1000);
    }
    fail_msg("no two commands had the same supervisor");
    return 0;
}

static void commands_in_turn_have_one_supervisor(void **state)
{
    struct fixture *f = *state;

    assert_true(find_resident(f) > 1);
}

static void a_thousand_commands_wear_a_supervisor_out(void **state)
{
    struct fixture *f = *state;
    long first = find_resident(f);

    /* Two or more commands each; those that came too early for it do not count. */
    for (int i = 0; find_resident(f) == first; i++)
        assert_true(i < 5000);
}

static void *run_beside(void *arg)
{
    struct fixture *f = arg;

    return (void *)run(f, "touch began; while [ ! -e stop ]; do sleep 0.02; done; echo $PPID");
}

static void wait_for_file(const struct fixture *f, const char *name)
{
    char path[256];

    snprintf(path, sizeof(path), "%s/%s", f->dir, name);
    while (access(path, F_OK) < 0)
        usleep(1000);
}

static void a_command_beside_another_has_one_of_its_own(void **state)
{
    struct fixture *f = *state;
    pthread_t thread;
    void *beside;
    long own;

    assert_int_equal(pthread_create(&thread, NULL, run_beside, f), 0);
    wait_for_file(f, "began");
    own = run(f, "touch stop; echo $PPID");
    assert_int_equal(pthread_join(thread, &beside), 0);
    assert_true(own > 1 && (long)beside > 1 && own != (long)beside);
}

static void what_is_left_behind_keeps_its_supervisor(void **state)
{
    struct fixture *f = *state;
    long kept = run(f, "sleep 100 >/dev/null 2>&1 & echo $PPID");

    assert_true(kept > 1);
    assert_true(find_resident(f) != kept);
    assert_int_equal(run(f, "pgrep -c -x sleep"), 1);
}

static void a_supervisor_that_is_killed_at_work_is_replaced(void **state)
{
    struct fixture *f = *state;
    struct pinfold_execute_options options = PINFOLD_EXECUTE_OPTIONS_INIT;
    long killed = find_resident(f);
    bool lost = false;
    char command[128];

    snprintf(command, sizeof(command),
             "[ $PPID != %ld ] || { echo said; kill -9 $PPID; sleep 50; echo outlived; }", killed);
    options.command = command;
    for (int i = 0; !lost && i < TRIES; i++) {
        struct pinfold_execute_result result;
        assert_int_equal(f->ops->execute(f->state, &options, &result, NULL, &f->err), 0);
        lost = result.supervisor_lost;
        assert_int_equal(result.exit_code, lost ? 137 : 0);
        if (lost)
            assert_string_equal(result.output,
                                "said\n[killed: something in the sandbox killed the command's "
                                "supervisor]\n");
        pinfold_execute_result_done(&result);
    }
    assert_true(lost);
    assert_true(find_resident(f) != killed);
}

/* Stopping it is as good: whoever is stopped by somebody else is killed. */
static void every_way_to_lose_a_supervisor_gives_a_result(void **state)
{
    static const char *const ways[] = { "kill -9 -1", "kill -9 $PPID", "kill -STOP $PPID" };
    struct pinfold_execute_options options = PINFOLD_EXECUTE_OPTIONS_INIT;
    struct fixture *f = *state;

    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        struct pinfold_execute_result result;
        char command[128];
        snprintf(command, sizeof(command), "%s; sleep 50", ways[i]);
        options.command = command;
        assert_int_equal(f->ops->execute(f->state, &options, &result, NULL, &f->err), 0);
        assert_int_equal(result.exit_code, 137);
        assert_true(result.supervisor_lost && !result.timed_out);
        assert_int_equal(result.limit, PINFOLD_LIMIT_NONE);
        pinfold_execute_result_done(&result);
        assert_int_equal(run(f, "echo 7"), 7);
        /* Who adopts what it had started kills that, and no command waits for it. */
        assert_int_equal(run(f, "n=0; while pgrep -x sleep >/dev/null && [ $n -lt 3000 ]; do "
                                "n=$((n + 1)); sleep 0.02; done; pgrep -c -x sleep"),
                         0);
    }
}

/* And a lease of the dead one is not taken for that of its successor. */
static void a_supervisor_that_is_killed_idle_is_replaced(void **state)
{
    struct fixture *f = *state;
    char command[512];
    long killed;

    /* It may take a request along while it dies: that one was killed at work. */
    assert_int_equal(run(f, "{ while [ ! -e victim ]; do sleep 0.02; done; read pid <victim; "
                            "kill -9 $pid; while [ -e /proc/$pid ]; do sleep 0.02; done; "
                            "touch done; } >/dev/null 2>&1 &"),
                     0);
    killed = find_resident(f);
    snprintf(command, sizeof(command), "echo %ld >'%s/new' && mv '%s/new' '%s/victim'", killed,
             f->dir, f->dir, f->dir);
    assert_int_equal(system(command), 0);
    wait_for_file(f, "done");
    assert_true(find_resident(f) != killed);
}

/* What any process of its user may do to a supervisor, and what the command that does it has for an
 * end: a supervisor that may not open what it needs ends it. */
static const struct way {
    const char *limit;
    int exit_code;
} lowered[] = {
    { "--nofile=0:0", 137 }, { "--nofile=4:4", 137 },    { "--nofile=5:5", 137 },
    { "--nofile=9:9", 137 }, { "--nofile=12:12", 137 },  { "--nofile=200:200", 3 },
    { "--nproc=1:1", 3 },    { "--fsize=4096:8192", 3 }, { "--stack=1048576:", 3 },
};

/* As the kernel tells them, and by the shell alone. */
#define LIMITS "while read -r line; do echo \"$line\"; done </proc/self/limits"

/* Nothing else is asked for between them, so that each of these would be the one to suffer. */
static void expect_as_before(struct fixture *f, const char *before)
{
    struct pinfold_execute_options options = PINFOLD_EXECUTE_OPTIONS_INIT;

    options.command = LIMITS;
    for (int i = 0; i < 3; i++) {
        struct pinfold_execute_result result;
        assert_int_equal(f->ops->execute(f->state, &options, &result, NULL, &f->err), 0);
        assert_string_equal(result.output, before);
        pinfold_execute_result_done(&result);
        usleep(1000); /* a resident is to be free again */
    }
}

static char *tell_limits(struct fixture *f)
{
    struct pinfold_execute_options options = PINFOLD_EXECUTE_OPTIONS_INIT;
    struct pinfold_execute_result result;
    char *text;

    options.command = LIMITS;
    assert_int_equal(f->ops->execute(f->state, &options, &result, NULL, &f->err), 0);
    assert_int_equal(result.exit_code, 0);
    text = strdup(result.output);
    assert_non_null(text);
    pinfold_execute_result_done(&result);
    return text;
}

static void limits_that_are_lowered_at_work_are_the_commands_alone(void **state)
{
    struct fixture *f = *state;
    char *before = tell_limits(f);

    for (size_t i = 0; i < sizeof(lowered) / sizeof(lowered[0]); i++) {
        struct pinfold_execute_options options = PINFOLD_EXECUTE_OPTIONS_INIT;
        struct pinfold_execute_result result;
        char command[128];
        (void)find_resident(f); /* so that it is most likely the one */
        snprintf(command, sizeof(command), "prlimit --pid $PPID %s || exit 9; exit 3",
                 lowered[i].limit);
        options.command = command;
        assert_int_equal(f->ops->execute(f->state, &options, &result, NULL, &f->err), 0);
        assert_int_equal(result.exit_code, lowered[i].exit_code);
        assert_false(result.supervisor_lost);
        pinfold_execute_result_done(&result);
        expect_as_before(f, before);
    }
    free(before);
}

/* By something that a command has left behind. */
static void limits_that_are_lowered_idle_are_no_commands(void **state)
{
    struct fixture *f = *state;
    char *before = tell_limits(f), command[512];

    for (size_t i = 0; i < sizeof(lowered) / sizeof(lowered[0]); i++) {
        long victim;
        snprintf(command, sizeof(command),
                 "rm -f victim done; { while [ ! -e victim ]; do sleep 0.02; done; "
                 "read pid <victim; prlimit --pid $pid %s; touch done; } >/dev/null 2>&1 &",
                 lowered[i].limit);
        assert_int_equal(run(f, command), 0);
        victim = find_resident(f);
        snprintf(command, sizeof(command), "echo %ld >'%s/new' && mv '%s/new' '%s/victim'", victim,
                 f->dir, f->dir, f->dir);
        assert_int_equal(system(command), 0);
        wait_for_file(f, "done");
        expect_as_before(f, before);
        assert_true(find_resident(f) != victim);
    }
    free(before);
}

/* It could neither take requests nor find what lost its supervisor: that ran on, and supervisors
 * that found no means to live were forked one after the other. */
static void a_first_process_that_may_not_open_what_it_needs_ends(void **state)
{
    static const char *const ways[] = { "0:0", "6:6", "8:8", "12:12" };
    struct fixture *f = *state;

    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        char command[128];
        long r = 0;
        snprintf(command, sizeof(command),
                 "prlimit --pid 1 --nofile=%s; setsid sleep 50 & kill -9 $PPID; sleep 50", ways[i]);
        (void)run(f, command); /* it may have an end of its own, or that of the sandbox */
        for (int j = 0; r == 0 && j < TRIES; j++) {
            r = run(f, "echo 7");
            usleep(1000);
        }
        assert_int_equal(r, -PINFOLD_EBACKEND);
        assert_int_equal(f->ops->close(f->state, &f->err), 0);
        assert_int_equal(f->ops->create(f->state, NULL, &f->err), 0);
    }
}

static void a_long_command_line_and_environment_arrive_whole(void **state)
{
    struct fixture *f = *state;
    struct pinfold_execute_options options = PINFOLD_EXECUTE_OPTIONS_INIT;
    struct pinfold_execute_result result;

    for (size_t len = 7000; len < 9000; len += 50) {
        char *entry = malloc(len + 3);
        assert_non_null(entry);
        memset(entry, 'x', len + 2);
        memcpy(entry, "V=", 2);
        entry[len + 2] = '\0';
        options.command = "echo ${#V}";
        options.env = (const char *const[]){ entry, NULL };
        assert_int_equal(f->ops->execute(f->state, &options, &result, NULL, &f->err), 0);
        assert_int_equal(strtoul(result.output, NULL, 10), len);
        pinfold_execute_result_done(&result);
        free(entry);
    }
}

/* Of the address space of a process, in KiB. */
static long size_of(struct fixture *f, long pid)
{
    char command[160];

    snprintf(command, sizeof(command),
             "while read -r name size rest; do [ \"$name\" != VmSize: ] || echo $size; done "
             "</proc/%ld/status",
             pid);
    return run(f, command);
}

/* Variables may be secret, and are many bytes when they do not fit into the request. */
static void what_a_command_brought_is_not_kept(void **state)
{
    enum { LEN = 100 * 1024, COMMANDS = 50 };
    struct fixture *f = *state;
    struct pinfold_execute_options options = PINFOLD_EXECUTE_OPTIONS_INIT;
    long resident = find_resident(f), before = size_of(f, resident);
    char *entry = malloc(LEN + 1);

    assert_non_null(entry);
    memset(entry, 'x', LEN);
    memcpy(entry, "V=", 2);
    entry[LEN] = '\0';
    options.command = "true";
    options.env = (const char *const[]){ entry, NULL };
    for (int i = 0; i < COMMANDS; i++) {
        struct pinfold_execute_result result;
        assert_int_equal(f->ops->execute(f->state, &options, &result, NULL, &f->err), 0);
        pinfold_execute_result_done(&result);
        usleep(1000); /* it is to be free again */
    }
    free(entry);
    assert_int_equal(find_resident(f), resident);
    assert_true(before > 0 && size_of(f, resident) < before + 10 * LEN / 1024);
}

#define IN_SANDBOX(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_SANDBOX(commands_in_turn_have_one_supervisor),
        IN_SANDBOX(a_thousand_commands_wear_a_supervisor_out),
        IN_SANDBOX(a_command_beside_another_has_one_of_its_own),
        IN_SANDBOX(what_is_left_behind_keeps_its_supervisor),
        IN_SANDBOX(a_supervisor_that_is_killed_at_work_is_replaced),
        IN_SANDBOX(a_supervisor_that_is_killed_idle_is_replaced),
        IN_SANDBOX(every_way_to_lose_a_supervisor_gives_a_result),
        IN_SANDBOX(limits_that_are_lowered_at_work_are_the_commands_alone),
        IN_SANDBOX(limits_that_are_lowered_idle_are_no_commands),
        IN_SANDBOX(a_first_process_that_may_not_open_what_it_needs_ends),
        IN_SANDBOX(a_long_command_line_and_environment_arrive_whole),
        IN_SANDBOX(what_a_command_brought_is_not_kept),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
