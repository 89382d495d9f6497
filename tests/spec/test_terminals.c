/* SPDX-License-Identifier: Apache-2.0 */
/* Terminals on every backend of this machine: the same tests, the same answers. */
#include "spec.h"

#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>

struct screen {
    char text[400000];
    size_t len;
};

static struct pinfold_terminal *open_with(struct spec *s,
                                          const struct pinfold_terminal_options *options)
{
    struct pinfold_terminal *terminal = NULL;

    spec_ok(s, pinfold_sandbox_open_terminal(s->sandbox, options, &terminal, NULL, &s->err));
    return terminal;
}

static struct pinfold_terminal *open_command(struct spec *s, const char *command)
{
    struct pinfold_terminal_options options = PINFOLD_TERMINAL_OPTIONS_INIT;

    options.command = command;
    return open_with(s, &options);
}

/* Read until text is there, or to the end when it is NULL; then the end must come. */
static void read_until(struct spec *s, struct pinfold_terminal *terminal, struct screen *screen,
                       const char *text)
{
    ssize_t len = 1;

    while (len > 0 && !(text && strstr(screen->text, text))) {
        assert_true(screen->len + 1 < sizeof(screen->text));
        len = pinfold_terminal_read(terminal, screen->text + screen->len,
                                    sizeof(screen->text) - 1 - screen->len, 60, NULL, &s->err);
        if (len < 0)
            fail_msg("read: %s; so far: %s", s->err.msg, screen->text);
        screen->len += (size_t)len;
        screen->text[screen->len] = '\0';
    }
    if (text && !strstr(screen->text, text))
        fail_msg("no %s before the end of: %s", text, screen->text);
}

/* Read to the end, wait, close. */
static struct pinfold_terminal_exit finish(struct spec *s, struct pinfold_terminal *terminal,
                                           struct screen *screen)
{
    struct pinfold_terminal_exit end = { .exit_code = -1 };

    read_until(s, terminal, screen, NULL);
    spec_ok(s, pinfold_terminal_wait(terminal, 60, &end, NULL, &s->err));
    pinfold_terminal_close(terminal);
    return end;
}

static void type(struct spec *s, struct pinfold_terminal *terminal, const char *text)
{
    assert_int_equal(pinfold_terminal_write(terminal, text, strlen(text), 60, NULL, &s->err),
                     strlen(text));
}

static void a_command_has_a_terminal_of_the_kind_and_size_asked_for(void **state)
{
    static const char command[] = "test -t 0 && test -t 1 && test -t 2 && tty && stty size && "
                                  "echo $TERM; exit 3";
    struct pinfold_terminal_options options = PINFOLD_TERMINAL_OPTIONS_INIT;
    struct spec *s = *state;
    struct screen screen = { 0 };

    spec_start_plain(s);
    assert_int_equal(finish(s, open_command(s, command), &screen).exit_code, 3);
    assert_non_null(strstr(screen.text, "/dev/pts/"));
    assert_non_null(strstr(screen.text, "\r\n24 80\r\nxterm-256color\r\n"));
    screen = (struct screen){ 0 };
    options.command = command;
    options.rows = 7;
    options.cols = 9;
    options.term = "vt100";
    struct pinfold_terminal_exit end = finish(s, open_with(s, &options), &screen);
    assert_non_null(strstr(screen.text, "\r\n7 9\r\nvt100\r\n"));
    assert_int_equal(end.output_bytes, screen.len);
    assert_true(end.duration_ns > 0 && !end.killed && !end.timed_out);
    assert_true(end.cpu_ns > 0 && end.peak_bytes > 0);
}

static void without_a_command_it_is_a_shell_that_does_what_is_typed(void **state)
{
    struct spec *s = *state;
    struct screen screen = { 0 };

    setenv("SHELL", "/bin/sh", 1);
    spec_start_plain(s);
    struct pinfold_terminal *terminal = open_with(s, NULL);
    type(s, terminal, "echo x$((6 * 7))x >made; echo y$((6 * 7))y\r");
    read_until(s, terminal, &screen, "y42y");
    spec_is(s, "ws/made", "x42x\n");
    type(s, terminal, "exit 5\r");
    assert_int_equal(finish(s, terminal, &screen).exit_code, 5);
}

static void its_directory_and_variables_are_those_asked_for(void **state)
{
    struct pinfold_terminal_options options = PINFOLD_TERMINAL_OPTIONS_INIT;
    struct spec *s = *state;
    struct screen screen = { 0 };

    spec_dir(s, "ws/deep/down");
    spec_start_plain(s);
    options.argv = (const char *const[]){ "sh", "-c", "pwd; echo $A-$TERM", NULL };
    options.cwd = "deep/down";
    options.env = (const char *const[]){ "A=b c", "TERM=mine", NULL };
    finish(s, open_with(s, &options), &screen);
    assert_non_null(strstr(screen.text, "/deep/down\r\nb c-mine\r\n"));
}

/* What the call says is over what the backend has, and that over what there is by itself. */
static void its_kind_is_what_was_said_last(void **state)
{
    static const char *const of_backend[] = { "TERM=backend", NULL };
    static const char *const of_call[] = { "TERM=call", NULL };
    static const struct {
        const char *term;
        const char *const *env;
        const char *seen;
    } calls[] = {
        { NULL, NULL, "<backend>" },
        { "asked", NULL, "<asked>" },
        { "asked", of_call, "<call>" },
        { NULL, of_call, "<call>" },
    };
    struct spec *s = *state;
    struct pinfold_local_options local = PINFOLD_LOCAL_OPTIONS_INIT;

    local.env = of_backend;
    spec_local(s, &local);
    spec_start_plain(s);
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        struct pinfold_terminal_options options = PINFOLD_TERMINAL_OPTIONS_INIT;
        struct screen screen = { 0 };
        options.command = "echo \"<$TERM>\"";
        options.term = calls[i].term;
        options.env = calls[i].env;
        finish(s, open_with(s, &options), &screen);
        assert_non_null(strstr(screen.text, calls[i].seen));
    }
}

static void a_read_waits_as_long_as_it_was_told_and_can_be_cancelled(void **state)
{
    struct spec *s = *state;
    struct screen screen = { 0 };
    struct pinfold_cancel *cancel = NULL;
    struct pinfold_terminal_exit end;
    char byte;

    spec_start_plain(s);
    struct pinfold_terminal *terminal = open_command(s, "read line; echo got $line");
    spec_refuses(s, PINFOLD_ETIMEOUT,
                 (int)pinfold_terminal_read(terminal, &byte, 1, 0, NULL, &s->err));
    spec_refuses(s, PINFOLD_ETIMEOUT,
                 (int)pinfold_terminal_read(terminal, &byte, 1, 0.05, NULL, &s->err));
    spec_refuses(s, PINFOLD_ETIMEOUT, pinfold_terminal_wait(terminal, 0.05, &end, NULL, &s->err));
    spec_ok(s, pinfold_cancel_new(&cancel, &s->err));
    pinfold_cancel_fire(cancel);
    spec_refuses(s, PINFOLD_ECANCELLED,
                 (int)pinfold_terminal_read(terminal, &byte, 1, -1, cancel, &s->err));
    spec_refuses(s, PINFOLD_ECANCELLED, pinfold_terminal_wait(terminal, -1, &end, cancel, &s->err));
    pinfold_cancel_free(cancel);
    type(s, terminal, "on\r");
    assert_int_equal(finish(s, terminal, &screen).exit_code, 0);
    assert_non_null(strstr(screen.text, "got on"));
}

static void a_write_waits_for_a_program_that_does_not_read(void **state)
{
    static char many[300000];
    struct spec *s = *state;
    struct screen screen = { 0 };
    ssize_t taken;

    memset(many, 'x', sizeof(many));
    spec_start_plain(s);
    struct pinfold_terminal *terminal =
            open_command(s, "stty raw -echo; echo up; while [ ! -e go ]; do sleep 0.02; done; "
                            "head -c 300000 | cksum");
    read_until(s, terminal, &screen, "up");
    taken = pinfold_terminal_write(terminal, many, sizeof(many), 0.1, NULL, &s->err);
    assert_true(taken > 0 && taken < (ssize_t)sizeof(many));
    spec_refuses(s, PINFOLD_ETIMEOUT,
                 (int)pinfold_terminal_write(terminal, many, sizeof(many), 0, NULL, &s->err));
    spec_put(s, "ws/go", "");
    assert_int_equal(
            pinfold_terminal_write(terminal, many, sizeof(many) - (size_t)taken, 60, NULL, &s->err),
            sizeof(many) - (size_t)taken);
    assert_int_equal(finish(s, terminal, &screen).exit_code, 0);
    assert_non_null(strstr(screen.text, " 300000"));
}

static void writing_after_the_end_is_a_broken_pipe(void **state)
{
    struct spec *s = *state;
    struct screen screen = { 0 };

    spec_start_plain(s);
    struct pinfold_terminal *terminal = open_command(s, "true");
    read_until(s, terminal, &screen, NULL);
    spec_ok(s, pinfold_terminal_wait(terminal, 60, &(struct pinfold_terminal_exit){ 0 }, NULL,
                                     &s->err));
    spec_refuses(s, PINFOLD_EOS, (int)pinfold_terminal_write(terminal, "x", 1, 60, NULL, &s->err));
    assert_int_equal(s->err.sys_errno, EPIPE);
    pinfold_terminal_close(terminal);
}

static void signals_and_sizes_reach_the_job_in_the_foreground(void **state)
{
    struct spec *s = *state;
    struct screen screen = { 0 };

    spec_start_plain(s);
    struct pinfold_terminal *terminal =
            open_command(s, "stty -isig; trap 'echo caught; exit 9' INT; trap 'stty size' WINCH; "
                            "echo up; while :; do sleep 0.02; done");
    read_until(s, terminal, &screen, "up");
    spec_ok(s, pinfold_terminal_resize(terminal, 55, 66, &s->err));
    read_until(s, terminal, &screen, "55 66");
    spec_refuses(s, PINFOLD_EVALUE, pinfold_terminal_signal(terminal, SIGKILL, &s->err));
    spec_ok(s, pinfold_terminal_signal(terminal, SIGINT, &s->err));
    assert_int_equal(finish(s, terminal, &screen).exit_code, 9);
    assert_non_null(strstr(screen.text, "caught"));
}

/* A command, and a daemon of it, that touch "beat" and "daemon-beat" for as long as they live. */
#define HARD_TO_KILL                                                                             \
    "trap '' HUP TERM; setsid sh -c 'trap \"\" HUP TERM; while :; do echo >>daemon-beat; sleep " \
    "0.02; done' & echo up; while :; do echo >>beat; sleep 0.02; done"

static void assert_nothing_beats(struct spec *s)
{
    off_t size, daemon_size;

    spec_wait_for(s, "ws/beat");
    size = spec_stat(s, "ws/beat").st_size;
    daemon_size = spec_exists(s, "ws/daemon-beat") ? spec_stat(s, "ws/daemon-beat").st_size : 0;
    spec_sleep(0.2);
    assert_int_equal(spec_stat(s, "ws/beat").st_size, size);
    if (spec_exists(s, "ws/daemon-beat"))
        assert_int_equal(spec_stat(s, "ws/daemon-beat").st_size, daemon_size);
}

static void kill_ends_everything_that_was_started(void **state)
{
    struct spec *s = *state;
    struct screen screen = { 0 };
    struct pinfold_terminal_exit end;

    spec_start_plain(s);
    struct pinfold_terminal *terminal = open_command(s, HARD_TO_KILL);
    spec_wait_for(s, "ws/daemon-beat");
    spec_wait_for(s, "ws/beat");
    pinfold_terminal_kill(terminal);
    spec_ok(s, pinfold_terminal_wait(terminal, 60, &end, NULL, &s->err));
    assert_int_equal(end.exit_code, 137);
    assert_true(end.killed);
    assert_nothing_beats(s);
    finish(s, terminal, &screen);
    assert_non_null(strstr(screen.text, "up"));
}

static void close_ends_everything_that_was_started(void **state)
{
    struct spec *s = *state;

    spec_start_plain(s);
    struct pinfold_terminal *terminal = open_command(s, HARD_TO_KILL);
    spec_wait_for(s, "ws/daemon-beat");
    spec_wait_for(s, "ws/beat");
    pinfold_terminal_close(terminal);
    assert_nothing_beats(s);
}

static void stopping_the_sandbox_ends_it_and_leaves_the_handle(void **state)
{
    struct spec *s = *state;
    struct screen screen = { 0 };
    struct pinfold_terminal_exit end;

    spec_start_plain(s);
    struct pinfold_terminal *terminal = open_command(s, "echo up; sleep 300");
    read_until(s, terminal, &screen, "up");
    spec_stop(s);
    read_until(s, terminal, &screen, NULL);
    spec_ok(s, pinfold_terminal_wait(terminal, 0, &end, NULL, &s->err));
    assert_int_equal(end.exit_code, 137);
    spec_refuses(s, PINFOLD_ESTART,
                 pinfold_sandbox_open_terminal(s->sandbox, NULL, &(struct pinfold_terminal *){ 0 },
                                               NULL, &s->err));
    pinfold_terminal_close(terminal);
}

static void its_time_can_be_limited(void **state)
{
    struct pinfold_terminal_options options = PINFOLD_TERMINAL_OPTIONS_INIT;
    struct spec *s = *state;
    struct screen screen = { 0 };

    spec_start_plain(s);
    options.command = "sleep 300";
    options.timeout_seconds = 0.1;
    struct pinfold_terminal_exit end = finish(s, open_with(s, &options), &screen);
    assert_int_equal(end.exit_code, 124);
    assert_true(end.timed_out);
}

static void what_holds_it_in_the_background_does_not_keep_it_open(void **state)
{
    struct spec *s = *state;
    struct screen screen = { 0 };

    spec_start_plain(s);
    struct pinfold_terminal *terminal =
            open_command(s, "trap '' HUP; sleep 300 & setsid sleep 300 & echo last; exit 2");
    assert_int_equal(finish(s, terminal, &screen).exit_code, 2);
    assert_non_null(strstr(screen.text, "last"));
}

static void nothing_of_a_long_output_is_lost_at_the_end(void **state)
{
    struct spec *s = *state;
    struct screen *screen = calloc(1, sizeof(*screen));

    assert_non_null(screen);
    spec_start_plain(s);
    finish(s, open_command(s, "stty -opost; head -c 300000 /dev/zero | tr '\\0' x; printf END"),
           screen);
    assert_int_equal(screen->len, 300003);
    assert_string_equal(screen->text + 300000, "END");
    free(screen);
}

static void its_descriptor_tells_of_output_and_of_the_end(void **state)
{
    struct spec *s = *state;
    struct screen screen = { 0 };

    spec_start_plain(s);
    struct pinfold_terminal *terminal = open_command(s, "stty -echo; echo up; read line");
    struct pollfd fd = { pinfold_terminal_fd(terminal), POLLIN, 0 };
    assert_int_equal(poll(&fd, 1, 60000), 1);
    read_until(s, terminal, &screen, "up");
    type(s, terminal, "\r");
    assert_int_equal(poll(&fd, 1, 60000), 1);
    finish(s, terminal, &screen);
}

static void *wait_for_end(void *arg)
{
    struct pinfold_terminal_exit *end = calloc(1, sizeof(*end));

    if (end && pinfold_terminal_wait(arg, 60, end, NULL, NULL) < 0)
        end->exit_code = -1;
    return end;
}

static void threads_may_wait_and_read_at_once(void **state)
{
    enum { COUNT = 4 };
    struct spec *s = *state;
    struct screen screen = { 0 };
    pthread_t threads[COUNT];
    void *end;

    spec_start_plain(s);
    struct pinfold_terminal *terminal =
            open_command(s, "trap '' HUP; sleep 300 & read line; exit 6");
    for (int i = 0; i < COUNT; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, wait_for_end, terminal), 0);
    type(s, terminal, "\r");
    read_until(s, terminal, &screen, NULL);
    for (int i = 0; i < COUNT; i++) {
        pthread_join(threads[i], &end);
        assert_non_null(end);
        assert_int_equal(((struct pinfold_terminal_exit *)end)->exit_code, 6);
        free(end);
    }
    pinfold_terminal_close(terminal);
}

static void an_open_terminal_keeps_the_sandbox_from_expiring(void **state)
{
    struct pinfold_manager_options manager = PINFOLD_MANAGER_OPTIONS_INIT;
    struct spec *s = *state;

    manager.ttl_seconds = 0.01;
    spec_ok(s, pinfold_manager_new(&manager, &s->manager, &s->err));
    struct pinfold_sandbox_options options = spec_options(s);
    options.manager = s->manager;
    options.ttl_seconds = 0.01;
    spec_start(s, &options);
    struct pinfold_terminal *terminal = open_command(s, "sleep 300");
    spec_sleep(0.1); /* ten times the ttl */
    spec_ok(s, pinfold_manager_cleanup_expired(s->manager, &s->paths, &s->err));
    assert_int_equal(s->paths.count, 0);
    pinfold_strings_done(&s->paths);
    pinfold_terminal_close(terminal);
    spec_sleep(0.1);
    spec_ok(s, pinfold_manager_cleanup_expired(s->manager, &s->paths, &s->err));
    assert_int_equal(s->paths.count, 1);
}

static void the_audit_has_its_start_and_its_end_and_none_of_its_bytes(void **state)
{
    struct spec *s = *state;
    struct screen screen = { 0 };

    spec_start_plain(s);
    finish(s, open_command(s, "echo secret; exit 4"), &screen);
    const struct spec_event *start = spec_event(s, "sandbox.open_terminal");
    const struct spec_event *end = spec_event(s, "sandbox.close_terminal");
    assert_non_null(start);
    assert_non_null(end);
    assert_int_equal(start->command_len, strlen("echo secret; exit 4"));
    assert_string_equal(start->sha256, end->sha256);
    assert_int_equal(strlen(end->sha256), 16);
    assert_int_equal(end->exit_code, 4);
    assert_int_equal(end->bytes, screen.len);
    assert_true(end->duration_ns > 0);
    assert_non_null(strstr(end->json, "\"cpu_ns\":"));
    assert_non_null(strstr(end->json, "\"peak_bytes\":"));
    assert_null(strstr(start->json, "secret"));
    assert_null(strstr(end->json, "secret"));
}

static void one_that_is_closed_while_it_runs_is_audited_as_killed(void **state)
{
    struct spec *s = *state;

    spec_start_plain(s);
    pinfold_terminal_close(open_command(s, "sleep 300"));
    assert_int_equal(spec_event(s, "sandbox.close_terminal")->exit_code, 137);
}

static void refuse(struct spec *s, enum pinfold_code code,
                   const struct pinfold_terminal_options *options)
{
    struct pinfold_terminal *terminal = NULL;

    spec_refuses(s, code,
                 pinfold_sandbox_open_terminal(s->sandbox, options, &terminal, NULL, &s->err));
    assert_null(terminal);
}

static void options_that_make_no_sense_are_refused(void **state)
{
    struct pinfold_terminal_options options = PINFOLD_TERMINAL_OPTIONS_INIT;
    const struct pinfold_terminal_options none = options;
    struct spec *s = *state;

    spec_start_plain(s);
    options.command = "true";
    options.argv = (const char *const[]){ "true", NULL };
    refuse(s, PINFOLD_EVALUE, &options);
    options = none;
    options.command = "  ";
    refuse(s, PINFOLD_EVALUE, &options);
    options.command = "true";
    options.timeout_seconds = -1;
    refuse(s, PINFOLD_EVALUE, &options);
    options.timeout_seconds = (double)NAN;
    refuse(s, PINFOLD_EVALUE, &options);
    options.timeout_seconds = 0;
    options.cwd = "../x";
    refuse(s, PINFOLD_EPATH, &options);
    options.cwd = "missing";
    refuse(s, PINFOLD_EOS, &options);
    options.cwd = NULL;
    options.size = 1;
    refuse(s, PINFOLD_EVALUE, &options);
}

static void a_backend_without_terminals_says_so(void **state)
{
    static struct pinfold_backend_ops table;
    struct spec *s = *state;

    spec_copy_table(s, &table);
    table.open_terminal = NULL;
    s->below = s->backend;
    spec_ok(s, pinfold_backend_new(&table, pinfold_backend_get_state(s->below), NULL, &s->backend,
                                   &s->err));
    spec_start_plain(s);
    refuse(s, PINFOLD_ENOTSUP, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SPEC_TEST(a_command_has_a_terminal_of_the_kind_and_size_asked_for),
        SPEC_TEST(without_a_command_it_is_a_shell_that_does_what_is_typed),
        SPEC_TEST(its_directory_and_variables_are_those_asked_for),
        SPEC_TEST(its_kind_is_what_was_said_last),
        SPEC_TEST(a_read_waits_as_long_as_it_was_told_and_can_be_cancelled),
        SPEC_TEST(a_write_waits_for_a_program_that_does_not_read),
        SPEC_TEST(writing_after_the_end_is_a_broken_pipe),
        SPEC_TEST(signals_and_sizes_reach_the_job_in_the_foreground),
        SPEC_TEST(kill_ends_everything_that_was_started),
        SPEC_TEST(close_ends_everything_that_was_started),
        SPEC_TEST(stopping_the_sandbox_ends_it_and_leaves_the_handle),
        SPEC_TEST(its_time_can_be_limited),
        SPEC_TEST(what_holds_it_in_the_background_does_not_keep_it_open),
        SPEC_TEST(nothing_of_a_long_output_is_lost_at_the_end),
        SPEC_TEST(its_descriptor_tells_of_output_and_of_the_end),
        SPEC_TEST(threads_may_wait_and_read_at_once),
        SPEC_TEST(an_open_terminal_keeps_the_sandbox_from_expiring),
        SPEC_TEST(the_audit_has_its_start_and_its_end_and_none_of_its_bytes),
        SPEC_TEST(one_that_is_closed_while_it_runs_is_audited_as_killed),
        SPEC_TEST(options_that_make_no_sense_are_refused),
        SPEC_TEST(a_backend_without_terminals_says_so),
    };

    return cmocka_run_group_tests_name("terminals", tests, NULL, NULL);
}
