/* SPDX-License-Identifier: Apache-2.0 */
/* Timeouts, cancellation and the end of the owner: nothing survives them. */
#include "harness.h"

#include "proc/super.h"
#include "proc/terminal.h"

#include <pthread.h>
#include <sys/resource.h>
#include <sys/socket.h>

static void a_timeout_is_124_with_what_was_said_before(void **state)
{
    struct fixture *f = *state;

    limit(f, 200);
    assert_run(f, "echo before; echo err >&2; sleep 50", 124);
    assert_true(f->result.timed_out);
    assert_false(f->result.truncated);
    assert_string_equal(f->result.output, "before\n[stderr] err\n[timed out after 0.2 s]\n");
    assert_int_equal(f->result.background, 0);
}

static void output_does_not_reset_the_clock(void **state)
{
    struct fixture *f = *state;

    limit(f, 300);
    assert_run(f, "while :; do echo x; sleep 0.05; done", 124);
}

static void a_command_may_clean_up_on_SIGTERM(void **state)
{
    struct fixture *f = *state;

    limit(f, 200);
    assert_run(f, "trap 'echo cleaned; exit 0' TERM; while :; do sleep 0.02; done", 124);
    assert_non_null(strstr(f->result.output, "cleaned\n"));
}

static void what_ignores_SIGTERM_is_killed(void **state)
{
    struct fixture *f = *state;

    limit(f, 100);
    assert_run(f,
               "trap '' TERM; echo $$ >pid; (trap '' TERM; sleep 50 & echo $! >child; wait) & wait",
               124);
    assert_true(is_gone(read_pid(f, "pid")));
    assert_true(is_gone(read_pid(f, "child")));
}

static void daemons_with_their_own_session_are_killed(void **state)
{
    struct fixture *f = *state;

    limit(f, 300);
    assert_run(
            f,
            "env -i setsid sh -c 'echo $$ >one; exec sleep 50' >/dev/null 2>&1 </dev/null &"
            "(setsid sh -c '(setsid sh -c \"echo \\$\\$ >two; trap : TERM; exec sleep 50\" &)' &);"
            "sleep 50",
            124);
    assert_true(is_gone(read_pid(f, "one")));
    assert_true(is_gone(read_pid(f, "two")));
}

static void stopped_processes_are_killed(void **state)
{
    struct fixture *f = *state;

    limit(f, 200);
    assert_run(
            f,
            "echo $$ >pid; setsid sh -c 'echo $$ >child; kill -STOP $$; sleep 50' & kill -STOP $$",
            124);
    assert_true(is_gone(read_pid(f, "pid")));
    assert_true(is_gone(read_pid(f, "child")));
}

static void *fire_later(void *cancel)
{
    usleep(200000);
    pinfold_cancel_fire(cancel);
    return NULL;
}

static void a_supervisor_that_is_stopped_keeps_its_deadline(void **state)
{
    struct fixture *f = *state;

    limit(f, 200);
    assert_run(f, "echo $$ >pid; echo said; kill -STOP $PPID; exec sleep 50", 124);
    assert_string_equal(f->result.output, "said\n[timed out after 0.2 s]\n");
    assert_true(is_gone(read_pid(f, "pid")));
}

/* A supervisor is stopped for good, and stopped again whenever it has been woken. */
static void a_supervisor_that_is_stopped_again_and_again_obeys(void **state)
{
    struct fixture *f = *state;

    limit(f, 200);
    assert_run(f, "trap '' TERM; echo $$ >pid; while kill -STOP $PPID; do :; done", 124);
    assert_true(is_gone(read_pid(f, "pid")));
}

static void a_supervisor_that_is_stopped_can_be_cancelled(void **state)
{
    struct fixture *f = *state;
    pthread_t thread;

    assert_int_equal(pinfold_cancel_new(&f->request.cancel, &f->err), 0);
    pthread_create(&thread, NULL, fire_later, f->request.cancel);
    assert_int_equal(run(f, "echo $$ >pid; kill -STOP $PPID; exec sleep 50"), -PINFOLD_ECANCELLED);
    pthread_join(thread, NULL);
    assert_true(is_gone(read_pid(f, "pid")));
    pinfold_cancel_free(f->request.cancel);
    f->request.cancel = NULL;
}

/* What ends in between has it wait anew, which poll(2) refuses then. */
static void a_supervisor_that_is_made_deaf_lets_nothing_go_on(void **state)
{
    struct fixture *f = *state;

    assert_run(f, "echo $$ >pid; (sleep 0.1 &); prlimit --pid $PPID --nofile=0:0; exec sleep 50",
               137);
    assert_string_equal(f->result.output, "[killed: something in the sandbox lowered the limits of "
                                          "the command's supervisor]\n");
    assert_true(is_gone(read_pid(f, "pid")));
    assert_run(f, "echo next", 0);
}

/* Nor does one that hears, but may not open what tells it whom to end. */
static void a_supervisor_that_is_made_blind_lets_nothing_go_on(void **state)
{
    struct fixture *f = *state;

    for (int files = 0; files < 12; files += 3) {
        char command[128];
        snprintf(command, sizeof(command),
                 "(sleep 0.1 &); prlimit --pid $PPID --nofile=%d:%d; exec sleep 50", files, files);
        assert_run(f, command, 137);
        assert_string_equal(f->result.output, "[killed: something in the sandbox lowered the "
                                              "limits of the command's supervisor]\n");
        assert_run(f, "prlimit --pid $PPID --nofile=40", 0); /* enough */
    }
}

/* The end of the fixture stops the launcher, which must not wait for ever. */
static void a_supervisor_that_a_background_process_stops_ends_with_the_launcher(void **state)
{
    struct fixture *f = *state;

    assert_run(
            f,
            "(sleep 0.3; kill -STOP $PPID; exec sleep 50) >/dev/null 2>&1 & echo $! >pid; exit 4",
            4);
    usleep(600000);
    pf_launcher_stop(f->launcher);
    assert_true(comes_to_be_gone(read_pid(f, "pid")));
}

/* Who starts supervisors may be stopped as well, by a command say, before it has started one. */
static void stop_helper(struct fixture *f)
{
    pid_t helper;

    if (under_valgrind())
        skip(); /* who it is does not reach us there */
    assert_run(f, "true", 0);
    helper = pf_launcher_helper(f->launcher);
    assert_true(helper > 0);
    assert_int_equal(kill(helper, SIGSTOP), 0);
}

static void a_helper_that_is_stopped_keeps_the_deadline(void **state)
{
    struct fixture *f = *state;

    stop_helper(f);
    limit(f, 200);
    assert_run(f, "exec sleep 50", 124);
    assert_true(f->result.timed_out);
    assert_run(f, "kill -STOP $(ps -o ppid= -p $PPID); exec sleep 50", 124);
    assert_run(f, "exec sleep 50", 124);
}

static void a_helper_that_is_stopped_can_be_cancelled(void **state)
{
    struct fixture *f = *state;
    pthread_t thread;

    stop_helper(f);
    assert_int_equal(pinfold_cancel_new(&f->request.cancel, &f->err), 0);
    pthread_create(&thread, NULL, fire_later, f->request.cancel);
    assert_int_equal(run(f, "exec sleep 50"), -PINFOLD_ECANCELLED);
    pthread_join(thread, NULL);
    pinfold_cancel_free(f->request.cancel);
    f->request.cancel = NULL;
}

static void *stop_launcher_later(void *launcher)
{
    usleep(200000);
    pf_launcher_stop(launcher);
    return NULL;
}

static void a_helper_that_is_stopped_ends_with_the_launcher(void **state)
{
    struct fixture *f = *state;
    pthread_t thread;

    stop_helper(f);
    pthread_create(&thread, NULL, stop_launcher_later, f->launcher);
    assert_run(f, "exec sleep 50", 137);
    pthread_join(thread, NULL);
}

struct caller {
    struct fixture *f;
    pthread_t thread;
    int r;
};

static void *call(void *arg)
{
    struct caller *caller = arg;
    struct pf_run_request request = caller->f->request;
    struct pinfold_execute_result result;

    caller->r = pf_run(caller->f->launcher, &request, &result, NULL);
    pinfold_execute_result_done(&result);
    return NULL;
}

/* More is asked of it than its socket takes, so that who asks waits, and keeps others from it. */
static void a_helper_that_is_stopped_keeps_nobody_from_the_end(void **state)
{
    static char big[7000] = "BIG=";
    const char *environment[] = { "PATH=/usr/bin:/bin", big, NULL };
    struct fixture *f = *state;
    struct caller callers[100];

    memset(big + 4, 'x', sizeof(big) - 5);
    stop_helper(f);
    f->request.envp = environment;
    f->request.command = "exec sleep 50";
    f->request.command_len = strlen(f->request.command);
    f->request.timeout_ns = PF_NEVER;
    for (size_t i = 0; i < PF_COUNT(callers); i++) {
        callers[i] = (struct caller){ .f = f };
        assert_int_equal(pthread_create(&callers[i].thread, NULL, call, &callers[i]), 0);
    }
    usleep(500000);
    pf_launcher_stop(f->launcher);
    for (size_t i = 0; i < PF_COUNT(callers); i++) {
        pthread_join(callers[i].thread, NULL);
        assert_true(callers[i].r == 0 || callers[i].r == -PINFOLD_ESTART);
    }
}

/* Terminals of who may open, and poll(2) for, nothing any more; one has ended, one has not. */
static void terminals_end_with_the_launcher_of_who_may_open_nothing(void **state)
{
    static const char *const commands[] = { "true", "echo $$ >pid; exec sleep 50" };
    struct pf_terminal *terminals[PF_COUNT(commands)];
    struct pinfold_terminal_exit end;
    struct fixture *f = *state;
    struct rlimit before, none;

    for (size_t i = 0; i < PF_COUNT(commands); i++) {
        f->request.command = commands[i];
        f->request.command_len = strlen(commands[i]);
        assert_int_equal(pf_terminal_open(f->launcher, &f->request, 24, 80, &terminals[i], &f->err),
                         0);
    }
    assert_int_equal(pf_terminal_wait(terminals[0], PF_NEVER, &end, NULL, &f->err), 0);
    read_pid(f, "pid");
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = (struct rlimit){ 0, before.rlim_max };
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    pf_launcher_stop(f->launcher);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_true(is_gone(read_pid(f, "pid")));
    for (size_t i = 0; i < PF_COUNT(terminals); i++)
        pf_terminal_close(terminals[i]);
}

static void a_helper_that_is_stopped_opens_a_terminal(void **state)
{
    struct fixture *f = *state;
    struct pf_terminal *terminal;

    stop_helper(f);
    f->request.command = "exec sleep 50";
    f->request.command_len = strlen(f->request.command);
    assert_int_equal(pf_terminal_open(f->launcher, &f->request, 24, 80, &terminal, &f->err), 0);
    pf_terminal_close(terminal);
}

static void a_deep_chain_of_daemons_is_killed(void **state)
{
    struct fixture *f = *state;

    limit(f, 1500);
    assert_chain_is_killed(f, 60);
}

static void a_bounded_fork_bomb_is_killed(void **state)
{
    struct fixture *f = *state;

    limit(f, 400);
    /* Each generation is 3 new sessions that ignore SIGTERM; it ends at depth 4 by itself. */
    assert_run(f,
               "cat >bomb <<'END'\n"
               "trap '' TERM; [ \"$1\" -gt 0 ] || exec sleep 50\n"
               "for i in 1 2 3; do setsid sh ./bomb $(($1 - 1)) & done\n"
               "echo $$ >>pids; [ \"$1\" -eq 4 ] || exec sleep 50; wait; sleep 50\n"
               "END\n"
               "sh ./bomb 4",
               124);
    assert_true(count_gone(f, "pids") > 4);
}

static bool user_runs_something(uid_t uid)
{
    DIR *proc = opendir("/proc");
    struct dirent *entry;
    bool found = false;

    assert_non_null(proc);
    while ((entry = readdir(proc))) {
        pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
        struct stat st;
        if (pid > 0 && fstatat(dirfd(proc), entry->d_name, &st, 0) == 0 && st.st_uid == uid)
            found = found || !is_gone(pid);
    }
    closedir(proc);
    return found;
}

static void an_endless_fork_bomb_of_a_user_is_killed(void **state)
{
    struct fixture *f = *state;
    const struct rlimit few = { 200, 200 };
    /* A user of this test's own: limit and search count what other tests run, too. */
    const uid_t uid = 0x1000000 + (uid_t)getpid();
    int status;
    pid_t child;

    if (geteuid() != 0)
        skip(); /* the limit would count what the user runs otherwise */
    child = fork();
    if (child == 0) {
        struct pf_launcher *launcher;
        pf_launcher_new(&launcher, NULL);
        f->request.cwd_fd = -1;
        f->request.timeout_ns = 500 * PF_NS_PER_MS;
        f->request.command = "f() { f | f & }; f; sleep 50";
        f->request.command_len = strlen(f->request.command);
        pf_launcher_force(launcher, PF_LAUNCH_DIRECT, NULL);
        if (setrlimit(RLIMIT_NPROC, &few) < 0 || setgid(uid) < 0 || setuid(uid) < 0)
            _exit(1);
        int r = pf_run(launcher, &f->request, &f->result, &f->err);
        pf_launcher_free(launcher);
        _exit(r == 0 && f->result.background == 0 ? f->result.exit_code : 2);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 124 << 8);
    /* Nobody of that user is left: its number of processes is 0 or its zombies'. */
    assert_false(user_runs_something(uid));
}

static void cancelling_kills_everything_before_the_call_returns(void **state)
{
    struct fixture *f = *state;
    pthread_t thread;

    assert_int_equal(pinfold_cancel_new(&f->request.cancel, &f->err), 0);
    pthread_create(&thread, NULL, fire_later, f->request.cancel);
    assert_int_equal(
            run(f, "echo said; setsid sh -c 'echo $$ >pid; trap \"\" TERM; sleep 50' & wait"),
            -PINFOLD_ECANCELLED);
    pthread_join(thread, NULL);
    assert_true(is_gone(read_pid(f, "pid")));
    assert_int_equal(f->err.code, PINFOLD_ECANCELLED);
    assert_string_equal(f->result.output, "said\n[killed: the call was cancelled]\n");
    assert_int_equal(f->result.exit_code, 137);
    /* And once fired, nothing starts. */
    assert_int_equal(run(f, "touch made"), -PINFOLD_ECANCELLED);
    assert_int_equal(faccessat(f->dir_fd, "made", F_OK, 0), -1);
    pinfold_cancel_free(f->request.cancel);
}

static void a_background_process_does_not_hold_the_call(void **state)
{
    struct fixture *f = *state;
    pid_t pid;

    assert_run(f, "sh -c 'echo $$ >pid; while :; do sleep 0.1; done' & echo out", 0);
    assert_non_null(strstr(f->result.output, "out\n["));
    assert_non_null(strstr(f->result.output, "background process"));
    assert_true(f->result.background >= 1);
    assert_true(f->result.duration_ns < 30 * PF_NS_PER_SEC);
    pid = read_pid(f, "pid");
    assert_false(is_gone(pid));
    assert_int_equal(pf_launcher_count(f->launcher), 1);
    pf_launcher_stop(f->launcher);
    assert_true(is_gone(pid));
    assert_int_equal(run(f, "true"), -PINFOLD_ESTART);
}

static void a_background_process_without_pipes_costs_no_waiting(void **state)
{
    struct fixture *f = *state;

    assert_run(f, "sleep 50 >/dev/null 2>&1 & echo $! >pid", 0);
    assert_int_equal(f->result.background, 1);
    assert_string_equal(f->result.output, "[1 background process still running]\n");
    assert_false(is_gone(read_pid(f, "pid")));
}

static void a_background_process_can_write_for_ever(void **state)
{
    struct fixture *f = *state;

    /* More than any pipe holds, after the call: SIGPIPE or a full pipe would keep "done" away. */
    assert_run(f, "(sleep 0.6; head -c 5M /dev/zero; echo 1 >done) & echo out", 0);
    assert_int_equal(f->result.stdout_bytes, 4);
    assert_int_equal(read_pid(f, "done"), 1);
    for (int i = 0; i < 500 && pf_launcher_count(f->launcher) > 0; i++)
        usleep(10000);
    assert_int_equal(pf_launcher_count(f->launcher), 0);
}

static void late_output_of_a_short_background_process_is_waited_for(void **state)
{
    struct fixture *f = *state;

    /* Half a second is what it is given; a machine with too much to do may need that for less. */
    for (int i = 0; i < 20; i++) {
        assert_run(f, "(sleep 0.1; echo late) & echo early", 0);
        if (f->result.background == 0)
            break;
    }
    assert_string_equal(f->result.output, "early\nlate\n");
    assert_int_equal(f->result.background, 0);
}

static void a_chatty_background_process_is_listened_to_for_two_seconds(void **state)
{
    struct fixture *f = *state;

    /* On a busy machine it may well be silent for as long as is enough to be left alone. */
    for (int i = 0; i < 20; i++) {
        assert_run(f, "while :; do echo x; sleep 0.05; done & exit 9", 9);
        if (f->result.duration_ns >= 1900 * PF_NS_PER_MS)
            break;
    }
    assert_true(f->result.duration_ns >= 1900 * PF_NS_PER_MS);
    assert_true(f->result.background >= 1);
}

/* A fork of the owner in the middle of a call: it holds the owner's end of the socket open. */
static int fork_holder(void *ctx, enum pinfold_stream stream, const char *data, size_t len)
{
    const int *gate = ctx;

    (void)stream, (void)data, (void)len;
    if (fork() == 0) {
        char byte;
        close(gate[1]);
        (void)!read(gate[0], &byte, 1); /* until the test closes the other end */
        _exit(0);
    }
    return 0;
}

static void run_as_owner(struct fixture *f, enum pf_launch_mode mode, int gate[2])
        __attribute__((noreturn));
static void run_as_owner(struct fixture *f, enum pf_launch_mode mode, int gate[2])
{
    struct pf_launcher *launcher;

    if (pf_launcher_new(&launcher, NULL) < 0)
        _exit(1);
    pf_launcher_force(launcher, mode, helper_path());
    f->request.on_output = fork_holder;
    f->request.on_output_ctx = gate;
    f->request.command = "echo; sleep 0.2; echo $$ >leader; trap '' TERM;"
                         "setsid sh -c 'echo $$ >daemon; exec sleep 50' & wait; sleep 50";
    f->request.command_len = strlen(f->request.command);
    pf_run(launcher, &f->request, &f->result, &f->err);
    _exit(0);
}

static void when_the_owner_is_killed_everything_is(void **state)
{
    struct fixture *f = *state;
    pid_t owner, leader, daemon;
    int gate[2];

    assert_run(f, "true", 0);
    assert_int_equal(pipe2(gate, O_CLOEXEC), 0);
    owner = fork();
    if (owner == 0)
        run_as_owner(f, pf_launcher_last_mode(f->launcher), gate);
    leader = read_pid(f, "leader");
    daemon = read_pid(f, "daemon");
    kill(owner, SIGKILL);
    assert_int_equal(waitpid(owner, NULL, 0), owner);
    assert_true(comes_to_be_gone(leader));
    assert_true(comes_to_be_gone(daemon));
    close(gate[0]);
    close(gate[1]);
}

static void a_forked_host_must_not_use_the_launcher(void **state)
{
    struct fixture *f = *state;
    pid_t background, child;
    int status;

    assert_run(f, "sleep 50 >/dev/null 2>&1 & echo $! >pid", 0);
    background = read_pid(f, "pid");
    child = fork();
    if (child == 0) {
        int r = run(f, "true");
        pf_launcher_free(f->launcher); /* must not kill what is the parent's */
        _exit(r == -PINFOLD_ESTART ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    usleep(100000);
    assert_false(is_gone(background));
}

static void a_killed_supervisor_is_an_error_and_the_leader_dies(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(run(f, "echo $$ >pid; kill -9 $PPID; exec sleep 50"), -PINFOLD_EBACKEND);
    assert_non_null(strstr(f->err.msg, "supervisor died"));
    assert_true(comes_to_be_gone(read_pid(f, "pid")));
    assert_run(f, "echo next", 0);
}

/* Our end of the only command's socket. */
static int find_control(void)
{
    for (int fd = 0; fd < 1024; fd++) {
        int type = 0;
        socklen_t len = sizeof(type);
        if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) == 0 && type == SOCK_SEQPACKET)
            return fd;
    }
    fail_msg("no command has a socket");
    return -1;
}

/* Let the supervisor, which is stopped, find several orders and the end of the command at once. */
static int order_too_much(void *ctx, enum pinfold_stream stream, const char *data, size_t len)
{
    struct fixture *f = ctx;
    pid_t supervisor = read_pid(f, "supervisor");
    unsigned char order = PF_ORDER_DETACH;
    int control = find_control();

    (void)stream;
    (void)data;
    (void)len;
    assert_true(comes_to_be_gone(read_pid(f, "leader")));
    for (int i = 0; i < 4; i++)
        assert_int_equal(send(control, &order, sizeof(order), MSG_NOSIGNAL), sizeof(order));
    assert_int_equal(kill(supervisor, SIGCONT), 0);
    assert_true(comes_to_be_gone(supervisor));
    return 0;
}

static void the_last_words_are_heard_even_when_orders_were_not(void **state)
{
    struct fixture *f = *state;

    f->request.on_output = order_too_much;
    f->request.on_output_ctx = f;
    assert_run(f, "echo $$ >leader; echo $PPID >supervisor; kill -STOP $PPID; echo x; exit 3", 3);
}

static void supervisors_have_a_name_and_a_group_of_their_own(void **state)
{
    struct fixture *f = *state;

    assert_run(f,
               "sleep 0.1; cat /proc/$PPID/comm; set -- $(cat /proc/$PPID/stat);"
               "[ $5 = $PPID ] && echo leads",
               0);
    assert_string_equal(f->result.output, "pinfold-super\nleads\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_BOTH_MODES(a_timeout_is_124_with_what_was_said_before),
        IN_BOTH_MODES(output_does_not_reset_the_clock),
        IN_BOTH_MODES(a_command_may_clean_up_on_SIGTERM),
        IN_BOTH_MODES(what_ignores_SIGTERM_is_killed),
        IN_BOTH_MODES(daemons_with_their_own_session_are_killed),
        IN_BOTH_MODES(stopped_processes_are_killed),
        IN_BOTH_MODES(a_supervisor_that_is_stopped_keeps_its_deadline),
        IN_BOTH_MODES(a_supervisor_that_is_stopped_again_and_again_obeys),
        IN_BOTH_MODES(a_supervisor_that_is_made_deaf_lets_nothing_go_on),
        IN_BOTH_MODES(a_supervisor_that_is_made_blind_lets_nothing_go_on),
        IN_BOTH_MODES(a_supervisor_that_is_stopped_can_be_cancelled),
        IN_BOTH_MODES(a_supervisor_that_a_background_process_stops_ends_with_the_launcher),
        IN_MODE(a_helper_that_is_stopped_keeps_the_deadline, "by the helper", PF_LAUNCH_HELPER),
        IN_MODE(a_helper_that_is_stopped_can_be_cancelled, "by the helper", PF_LAUNCH_HELPER),
        IN_MODE(a_helper_that_is_stopped_ends_with_the_launcher, "by the helper", PF_LAUNCH_HELPER),
        IN_MODE(a_helper_that_is_stopped_keeps_nobody_from_the_end, "by the helper",
                PF_LAUNCH_HELPER),
        IN_MODE(a_helper_that_is_stopped_opens_a_terminal, "by the helper", PF_LAUNCH_HELPER),
        IN_BOTH_MODES(terminals_end_with_the_launcher_of_who_may_open_nothing),
        IN_BOTH_MODES(a_deep_chain_of_daemons_is_killed),
        IN_BOTH_MODES(a_bounded_fork_bomb_is_killed),
        IN_MODE(an_endless_fork_bomb_of_a_user_is_killed, "direct", PF_LAUNCH_DIRECT),
        IN_BOTH_MODES(cancelling_kills_everything_before_the_call_returns),
        IN_BOTH_MODES(a_background_process_does_not_hold_the_call),
        IN_BOTH_MODES(a_background_process_without_pipes_costs_no_waiting),
        IN_BOTH_MODES(a_background_process_can_write_for_ever),
        IN_BOTH_MODES(late_output_of_a_short_background_process_is_waited_for),
        IN_BOTH_MODES(a_chatty_background_process_is_listened_to_for_two_seconds),
        IN_BOTH_MODES(when_the_owner_is_killed_everything_is),
        IN_BOTH_MODES(a_forked_host_must_not_use_the_launcher),
        IN_BOTH_MODES(a_killed_supervisor_is_an_error_and_the_leader_dies),
        IN_MODE(the_last_words_are_heard_even_when_orders_were_not, "direct", PF_LAUNCH_DIRECT),
        IN_BOTH_MODES(supervisors_have_a_name_and_a_group_of_their_own),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
