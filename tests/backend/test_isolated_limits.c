/* SPDX-License-Identifier: Apache-2.0 */
/* What limits do to a sandbox that goes on living: its next commands, what runs in its background,
 * and what is written into its workspace from outside. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <pinfold/pinfold.h>

#include "tempdir.h"

#define BIT(limit) (1U << (limit))
/* Fills memory until it is killed or gets no more, without a word. */
#define BOMB "/usr/bin/python3 -c 'x = [bytearray(1 << 20) for _ in range(4096)]' 2>/dev/null"

struct fixture {
    char dir[128];
    struct pinfold_backend *backend;
    struct pinfold_sandbox *sandbox;
    struct pinfold_execute_result result;
    struct pinfold_error err;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    assert_non_null(f);
    assert_non_null(test_tempdir("pinfold-isolated", f->dir, sizeof(f->dir)));
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    char command[256];

    pinfold_execute_result_done(&f->result);
    if (f->sandbox)
        assert_int_equal(pinfold_sandbox_stop(f->sandbox, false, NULL, NULL, &f->err), 0);
    pinfold_sandbox_free(f->sandbox);
    pinfold_backend_unref(f->backend);
    snprintf(command, sizeof(command), "rm -rf '%s'", f->dir);
    assert_int_equal(system(command), 0);
    free(f);
    return 0;
}

static void open_with(struct fixture *f, struct pinfold_limits limits)
{
    struct pinfold_isolated_options isolated = PINFOLD_ISOLATED_OPTIONS_INIT;
    struct pinfold_sandbox_options options = PINFOLD_SANDBOX_OPTIONS_INIT;

    isolated.workspace_root = f->dir;
    isolated.limits = limits;
    assert_int_equal(pinfold_isolated_backend_new(&isolated, &f->backend, &f->err), 0);
    options.workspace_id = strrchr(f->dir, '/') + 1;
    options.backend = f->backend;
    options.ttl_seconds = 1000;
    assert_int_equal(pinfold_sandbox_new(&options, &f->sandbox, &f->err), 0);
    if (pinfold_sandbox_start(f->sandbox, NULL, NULL, &f->err) < 0)
        fail_msg("%s", f->err.msg);
}

static void run(struct fixture *f, const char *command)
{
    struct pinfold_execute_options what = PINFOLD_EXECUTE_OPTIONS_INIT;

    what.command = command;
    pinfold_execute_result_done(&f->result);
    if (pinfold_sandbox_execute(f->sandbox, &what, &f->result, NULL, &f->err) < 0)
        fail_msg("%s: %s", command, f->err.msg);
}

static bool counts_memory(const struct fixture *f)
{
    return f->result.holders[PINFOLD_LIMIT_MEMORY] == PINFOLD_HOLDER_CGROUP1 ||
           f->result.holders[PINFOLD_LIMIT_MEMORY] == PINFOLD_HOLDER_CGROUP2;
}

static void a_sandbox_outlives_its_memory_bombs(void **state)
{
    struct fixture *f = *state;

    open_with(f, (struct pinfold_limits){ .memory_bytes = 100 << 20 });
    run(f, "sleep 1000 & echo kept > /tmp/file");
    assert_int_equal(f->result.background, 1);
    for (int i = 0; i < 3; i++) {
        run(f, BOMB);
        assert_int_equal(f->result.limit, PINFOLD_LIMIT_MEMORY);
        assert_int_equal(f->result.limits_hit, BIT(PINFOLD_LIMIT_MEMORY));
        run(f, "cat /tmp/file; ps ax 2>/dev/null | grep -q 'sleep 1000' || exit 3");
        assert_int_equal(f->result.limit, PINFOLD_LIMIT_NONE);
        assert_int_equal(f->result.limits_hit, 0);
        assert_int_equal(strncmp(f->result.output, "kept\n", 5), 0);
    }
}

static void a_bomb_in_the_background_is_told_by_the_next_command(void **state)
{
    struct fixture *f = *state;
    char path[160];

    open_with(f, (struct pinfold_limits){ .memory_bytes = 100 << 20 });
    run(f, "(while ! test -e go; do sleep 0.01; done; " BOMB "; echo > over) >/dev/null 2>&1 &");
    if (!counts_memory(f))
        return; /* a process that got no memory tells only who started it */
    assert_int_equal(f->result.limits_hit, 0);
    assert_int_equal(pinfold_sandbox_write_file(f->sandbox, "go", "", 0, NULL, &f->err), 0);
    snprintf(path, sizeof(path), "%s/over", f->dir);
    for (int i = 0; i < 6000 && access(path, F_OK) < 0; i++)
        usleep(10000);
    run(f, "exit 5");
    assert_int_equal(f->result.exit_code, 5);
    assert_int_equal(f->result.limit, PINFOLD_LIMIT_NONE); /* it failed by itself */
    assert_int_equal(f->result.limits_hit, BIT(PINFOLD_LIMIT_MEMORY));
    assert_non_null(strstr(f->result.output, "out of memory"));
    run(f, "exit 5");
    assert_int_equal(f->result.limits_hit, 0);
}

static void an_ended_background_process_is_not_blamed_on_others(void **state)
{
    struct fixture *f = *state;

    open_with(f, (struct pinfold_limits){ .processes = 20 });
    run(f, "for i in 1 2 3; do sleep 1000 & done");
    run(f, "kill -9 $$");
    assert_int_equal(f->result.exit_code, 137);
    assert_int_equal(f->result.limit, PINFOLD_LIMIT_NONE);
    assert_int_equal(f->result.limits_hit, 0);
}

static void a_background_process_that_fills_the_workspace_is_killed(void **state)
{
    struct fixture *f = *state;
    struct pinfold_execute_options what = PINFOLD_EXECUTE_OPTIONS_INIT;
    char path[160];
    int r = 0, tries;

    open_with(f, (struct pinfold_limits){ .workspace_bytes = 8 << 20 });
    run(f, "sh -c 'echo $$ > /tmp/pid; while :; do head -c 1M /dev/zero >> large; done'"
           " >/dev/null 2>&1 & while ! test -s /tmp/pid; do sleep 0.01; done");
    assert_true(f->result.background > 0);
    snprintf(path, sizeof(path), "%s/large", f->dir);
    what.command = "kill -0 $(cat /tmp/pid) 2>/dev/null && echo runs";
    for (tries = 0; tries < 300; tries++) {
        usleep(100000);
        pinfold_execute_result_done(&f->result);
        r = pinfold_sandbox_execute(f->sandbox, &what, &f->result, NULL, &f->err);
        if (r == 0 && f->result.exit_code == 1)
            break;
        if (r < 0) { /* there is much too much: nothing new is started */
            assert_int_equal(r, -PINFOLD_EOS);
            assert_int_equal(f->err.sys_errno, EDQUOT);
            unlink(path);
        }
    }
    assert_true(tries < 300);
}

static void writes_from_outside_stop_at_the_limit(void **state)
{
    struct fixture *f = *state;
    char *data = calloc(1, 3 << 20);
    char host_path[] = "/tmp/pinfold-host-XXXXXX";
    int fd = mkstemp(host_path);
    const struct pinfold_upload uploads[] = {
        { .path = "up", .data = data, .len = 3 << 20 },
        { .path = "up", .host_path = host_path },
    };
    struct pinfold_strings paths = { 0 };
    int r = -1;

    assert_non_null(data);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, data, 3 << 20), 3 << 20);
    close(fd);
    open_with(f, (struct pinfold_limits){ .workspace_bytes = 4 << 20 });
    assert_int_equal(pinfold_sandbox_write_file(f->sandbox, "a", data, 3 << 20, NULL, &f->err), 0);
    assert_int_equal(pinfold_sandbox_write_file(f->sandbox, "b", data, 3 << 20, NULL, &f->err),
                     -PINFOLD_EOS);
    assert_int_equal(f->err.sys_errno, EDQUOT);
    for (size_t i = 0; i < 2; i++) {
        f->err = (struct pinfold_error)PINFOLD_ERROR_INIT;
        assert_int_equal(
                pinfold_sandbox_add_files(f->sandbox, &uploads[i], 1, true, &paths, NULL, &f->err),
                -PINFOLD_EOS);
        assert_int_equal(f->err.sys_errno, EDQUOT);
        pinfold_strings_done(&paths);
    }
    unlink(host_path);
    run(f, "rm a");
    /* Adding up again at once is too soon; how soon is not depends on how long the last one took.
     */
    for (int tries = 0; r != 0 && tries < 300; tries++) {
        usleep(100000);
        r = pinfold_sandbox_write_file(f->sandbox, "b", data, 3 << 20, NULL, &f->err);
    }
    assert_int_equal(r, 0);
    free(data);
}

/* Run a command on a terminal to its end. */
static struct pinfold_terminal_exit run_on_terminal(struct fixture *f, const char *command)
{
    struct pinfold_terminal_options options = PINFOLD_TERMINAL_OPTIONS_INIT;
    struct pinfold_terminal *terminal = NULL;
    struct pinfold_terminal_exit end = { .exit_code = -1 }, again = { .exit_code = -1 };
    char text[512];

    options.command = command;
    if (pinfold_sandbox_open_terminal(f->sandbox, &options, &terminal, NULL, &f->err) < 0)
        fail_msg("%s: %s", command, f->err.msg);
    while (pinfold_terminal_read(terminal, text, sizeof(text), 60, NULL, &f->err) > 0) {
    }
    assert_int_equal(pinfold_terminal_wait(terminal, 60, &end, NULL, &f->err), 0);
    assert_int_equal(pinfold_terminal_wait(terminal, 60, &again, NULL, &f->err), 0);
    assert_int_equal(again.limit, end.limit);
    pinfold_terminal_close(terminal);
    return end;
}

static void the_end_of_a_terminal_says_which_limit_it_was(void **state)
{
    static const struct {
        const char *command;
        int exit_code;
        enum pinfold_limit limit;
    } ends[] = {
        { "exit 3", 3, PINFOLD_LIMIT_NONE },
        { "kill -9 $$", 137, PINFOLD_LIMIT_NONE },
        { "while :; do :; done", 128 + SIGXCPU, PINFOLD_LIMIT_CPU_TIME },
        { "head -c 6000000 /dev/zero > big", 128 + SIGXFSZ, PINFOLD_LIMIT_FILE_SIZE },
        { "while :; do head -c 4000000 /dev/zero > $((i += 1)) || sleep 60; done", 137,
          PINFOLD_LIMIT_WORKSPACE },
    };
    struct fixture *f = *state;

    open_with(f, (struct pinfold_limits){
                         .cpu_seconds = 1, .file_bytes = 5000000, .workspace_bytes = 16 << 20 });
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        struct pinfold_terminal_exit end = run_on_terminal(f, ends[i].command);
        if (end.limit != ends[i].limit)
            fail_msg("%s: limit %s", ends[i].command, pinfold_limit_name(end.limit));
        assert_int_equal(end.exit_code, ends[i].exit_code);
        assert_int_equal(end.killed, end.limit == PINFOLD_LIMIT_WORKSPACE);
    }
}

static void memory_that_ran_out_on_a_terminal_is_told_there_alone(void **state)
{
    struct fixture *f = *state;

    open_with(f, (struct pinfold_limits){ .memory_bytes = 100 << 20 });
    run(f, "true");
    if (!counts_memory(f)) /* then nobody knows why a process got no memory */
        return;
    struct pinfold_terminal_exit end = run_on_terminal(f, "exec " BOMB);
    assert_int_equal(end.exit_code, 137);
    assert_int_equal(end.limit, PINFOLD_LIMIT_MEMORY);
    run(f, "exit 4");
    assert_int_equal(f->result.limit, PINFOLD_LIMIT_NONE);
}

static void results_say_what_holds_the_limits(void **state)
{
    struct fixture *f = *state;

    open_with(f, (struct pinfold_limits){ .processes = PINFOLD_UNLIMITED,
                                          .workspace_bytes = PINFOLD_UNLIMITED });
    run(f, "true");
    assert_int_equal(f->result.holders[PINFOLD_LIMIT_TIME], PINFOLD_HOLDER_OWNER);
    assert_int_not_equal(f->result.holders[PINFOLD_LIMIT_MEMORY], PINFOLD_HOLDER_NONE);
    assert_int_equal(f->result.holders[PINFOLD_LIMIT_PROCESSES], PINFOLD_HOLDER_NONE);
    assert_int_equal(f->result.holders[PINFOLD_LIMIT_CPU_TIME], PINFOLD_HOLDER_NONE);
    assert_int_equal(f->result.holders[PINFOLD_LIMIT_WORKSPACE], PINFOLD_HOLDER_NONE);
    assert_int_equal(f->result.holders[PINFOLD_LIMIT_DISK], PINFOLD_HOLDER_NONE);
    assert_int_equal(f->result.holders[PINFOLD_LIMIT_TMP_SIZE], PINFOLD_HOLDER_TMPFS);
}

static void processors_are_a_number(void **state)
{
    static const double wrong[] = { -1, NAN, INFINITY, 1e9 };
    struct fixture *f = *state;

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct pinfold_isolated_options isolated = PINFOLD_ISOLATED_OPTIONS_INIT;
        isolated.limits.cpus = wrong[i];
        assert_int_equal(pinfold_isolated_backend_new(&isolated, &f->backend, &f->err),
                         -PINFOLD_EVALUE);
    }
}

/* One less is refused by a sentence that names it. */
static void the_least_of_each_limit_is_enough_for_a_command(void **state)
{
    static const struct {
        struct pinfold_limits least, less;
        const char *words;
    } limits[] = {
        { { .memory_bytes = 1 << 20 },
          { .memory_bytes = (1 << 20) - 1 },
          "1048576 bytes of memory" },
        { { .processes = 3 }, { .processes = 2 }, "at least 3 processes" },
        { { .processes = 4 << 20 }, { .processes = (4 << 20) + 1 }, "at most 4194304 processes" },
        { { .processes = PINFOLD_UNLIMITED }, { .processes = UINT64_MAX - 1 }, "unlimited" },
        { { .open_files = 16 }, { .open_files = 15 }, "at least 16 open files" },
        { { .open_files = UINT64_MAX - 1 }, { .open_files = 1 }, "open files" },
        { { .memory_bytes = UINT64_MAX - 1 }, { .memory_bytes = 1 }, "memory" },
        { { .cpu_seconds = 1 }, { .cpus = 0.001 }, "0.01 to 100000 processors" },
        { { .cpu_seconds = UINT64_MAX - 1 }, { .cpus = 1e6 }, "processors" },
        { { .file_bytes = 1, .tmp_bytes = 1, .workspace_bytes = 1 }, { .cpus = -1 }, "processors" },
        { { .file_bytes = UINT64_MAX - 1,
            .tmp_bytes = UINT64_MAX - 1,
            .workspace_bytes = UINT64_MAX - 1 },
          { .cpus = NAN },
          "processors" },
    };
    struct pinfold_isolated_options isolated = PINFOLD_ISOLATED_OPTIONS_INIT;
    struct fixture *f = *state;

    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
        struct pinfold_backend *none = NULL;
        isolated.limits = limits[i].less;
        assert_int_equal(pinfold_isolated_backend_new(&isolated, &none, &f->err), -PINFOLD_EVALUE);
        assert_non_null(strstr(f->err.msg, limits[i].words));
        open_with(f, limits[i].least);
        run(f, "true");
        if (f->result.exit_code != 0)
            fail_msg("%s: exit code %d", limits[i].words, f->result.exit_code);
        pinfold_sandbox_free(f->sandbox);
        pinfold_backend_unref(f->backend);
        f->sandbox = NULL;
        f->backend = NULL;
    }
}

#define IN_DIR(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_DIR(a_sandbox_outlives_its_memory_bombs),
        IN_DIR(a_bomb_in_the_background_is_told_by_the_next_command),
        IN_DIR(an_ended_background_process_is_not_blamed_on_others),
        IN_DIR(a_background_process_that_fills_the_workspace_is_killed),
        IN_DIR(writes_from_outside_stop_at_the_limit),
        IN_DIR(the_end_of_a_terminal_says_which_limit_it_was),
        IN_DIR(memory_that_ran_out_on_a_terminal_is_told_there_alone),
        IN_DIR(results_say_what_holds_the_limits),
        IN_DIR(processors_are_a_number),
        IN_DIR(the_least_of_each_limit_is_enough_for_a_command),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
