/* SPDX-License-Identifier: Apache-2.0 */
/* What one command sees, and what its caller gets. */
#include "harness.h"

#include <pthread.h>
#include <sys/resource.h>

static void exit_codes_are_the_commands_own(void **state)
{
    static const int codes[] = { 0, 1, 2, 42, 255 };
    char command[32];

    for (size_t i = 0; i < PF_COUNT(codes); i++) {
        snprintf(command, sizeof(command), "exit %d", codes[i]);
        assert_run((struct fixture *)*state, command, codes[i]);
    }
}

static void death_by_a_signal_is_128_and_its_number(void **state)
{
    struct fixture *f = *state;

    assert_run(f, "kill -9 $$", 137);
    assert_false(f->result.timed_out);
    assert_run(f, "kill -TERM $$", 143);
}

static void output_is_stdout_then_stderr_with_prefixes(void **state)
{
    struct fixture *f = *state;

    assert_run(f, "echo e1 >&2; printf out; echo e2 >&2", 0);
    assert_string_equal(f->result.output, "out\n[stderr] e1\n[stderr] e2\n");
    assert_int_equal(f->result.stdout_len, 3);
    assert_string_equal(f->result.stderr_text, "e1\ne2\n");
    assert_int_equal(f->result.stdout_bytes, 3);
    assert_int_equal(f->result.stderr_bytes, 6);
    assert_true(f->result.duration_ns > 0);
    assert_false(f->result.truncated);
}

static void a_silent_command_has_empty_output(void **state)
{
    struct fixture *f = *state;

    assert_run(f, "true", 0);
    assert_string_equal(f->result.output, "");
    assert_string_equal(f->result.stderr_text, "");
}

static void stdin_is_empty(void **state)
{
    struct fixture *f = *state;

    assert_run(f, "wc -c; readlink /proc/self/fd/0", 0);
    assert_string_equal(f->result.output, "0\n/dev/null\n");
}

static void there_is_no_terminal(void **state)
{
    assert_run((struct fixture *)*state, "! (: </dev/tty) 2>/dev/null", 0);
}

static void the_environment_is_exactly_the_given_one(void **state)
{
    static const char *const env[] = { "A=1", "B=x y", NULL };
    static const char *const none[] = { NULL };
    struct fixture *f = *state;

    f->request.envp = env;
    f->request.argv = (const char *const[]){ "/usr/bin/env", NULL };
    assert_run(f, "", 0);
    assert_string_equal(f->result.output, "A=1\nB=x y\n");
    f->request.envp = none;
    assert_run(f, "", 0);
    assert_string_equal(f->result.output, "");
}

static void the_working_directory_is_the_given_one(void **state)
{
    struct fixture *f = *state;

    assert_run(f, "/bin/pwd", 0);
    assert_int_equal(strncmp(f->result.output, f->dir, strlen(f->dir)), 0);
}

static void only_stdio_is_open_in_the_command(void **state)
{
    struct fixture *f = *state;
    int leak = open("/dev/null", O_RDONLY); /* a host that forgot O_CLOEXEC */

    f->request.argv = (const char *const[]){ "ls", "/proc/self/fd", NULL };
    assert_run(f, "", 0);
    close(leak);
    assert_string_equal(f->result.output, "0\n1\n2\n3\n"); /* 3 is what ls opened */
}

static void signals_are_at_their_defaults(void **state)
{
    struct fixture *f = *state;
    sigset_t block, old;

    signal(SIGPIPE, SIG_IGN);
    signal(SIGINT, SIG_IGN);
    signal(SIGRTMAX, SIG_IGN);
    sigfillset(&block);
    sigprocmask(SIG_SETMASK, &block, &old);
    int r = run(f, "sed -nE 's/^Sig(Blk|Ign|Cgt):\\t//p' /proc/self/status | sort -u");
    sigprocmask(SIG_SETMASK, &old, NULL);
    signal(SIGPIPE, SIG_DFL);
    signal(SIGINT, SIG_DFL);
    signal(SIGRTMAX, SIG_DFL);
    assert_int_equal(r, 0);
    assert_string_equal(f->result.output, "0000000000000000\n");
    assert_run(f, "yes | head -n 1; echo done", 0);
    assert_string_equal(f->result.output, "y\ndone\n");
}

static void no_state_is_kept_between_commands(void **state)
{
    struct fixture *f = *state;

    assert_run(f, "cd /; export KEPT=1; umask 077", 0);
    assert_run(f, "echo \"${KEPT-none}\"; [ \"$(pwd)\" != / ]", 0);
    assert_string_equal(f->result.output, "none\n");
}

static void nothing_to_run_is_an_exit_code_of_1(void **state)
{
    struct fixture *f = *state;

    assert_run(f, "", 1);
    assert_string_equal(f->result.output,
                        "[stderr] pinfold: the command is empty: nothing was run\n");
    assert_string_equal(f->result.stderr_text, "pinfold: the command is empty: nothing was run\n");
    assert_run(f, " \t\n", 1);
    f->request.argv = (const char *const[]){ NULL };
    assert_run(f, "", 1);
    f->request.argv = NULL;
    pinfold_execute_result_done(&f->result);
    f->request.command = "touch made\0x";
    f->request.command_len = 12;
    assert_int_equal(pf_run(f->launcher, &f->request, &f->result, &f->err), 0);
    assert_int_equal(f->result.exit_code, 1);
    assert_non_null(strstr(f->result.output, "NUL"));
    assert_int_equal(faccessat(f->dir_fd, "made", F_OK, 0), -1);
}

static void a_command_may_begin_with_a_dash(void **state)
{
    struct fixture *f = *state;

    assert_run(f, "-x 2>/dev/null; echo $?", 0);
    assert_string_equal(f->result.output, "127\n");
}

static void a_command_need_not_end_in_a_nul(void **state)
{
    struct fixture *f = *state;

    f->request.command = "echo yes, not this";
    f->request.command_len = 8;
    assert_int_equal(pf_run(f->launcher, &f->request, &f->result, &f->err), 0);
    assert_string_equal(f->result.output, "yes\n");
}

/* A command of len bytes: a test, comments as filling, and a last line. */
static char *long_command(const char *first, const char *last, size_t len)
{
    char *text = malloc(len + 1);

    assert_non_null(text);
    memset(text, '#', len);
    memcpy(text, first, strlen(first));
    memcpy(text + len - strlen(last), last, strlen(last));
    text[len] = '\0';
    return text;
}

static void commands_around_128_KiB_work(void **state)
{
    static const size_t lengths[] = { 511, 512, 131070, 131071, 131072, 133120, 1 << 20 };
    struct fixture *f = *state;

    for (size_t i = 0; i < PF_COUNT(lengths); i++) {
        _cleanup_free_ char *command = long_command("echo $0 $# $LINENO; wc -c;\n#",
                                                    "\nls /proc/$$/fd; exit 7", lengths[i]);
        assert_run(f, command, 7);
        /* $0, stdin and descriptors are as for a short one: 10 is how dash keeps a script. */
        assert_int_equal(strncmp(f->result.output, "sh 0", 4), 0);
        assert_non_null(strstr(f->result.output, "\n0\n0\n1\n"));
        assert_null(strstr(f->result.output, "\n3\n"));
        assert_string_equal(f->result.stderr_text, "");
    }
}

static void a_huge_argument_is_an_error_that_names_the_limits(void **state)
{
    struct fixture *f = *state;

    if (under_valgrind())
        skip();
    _cleanup_free_ char *huge = long_command("BIG=", "", 140000);
    const char *env[] = { huge, NULL };

    f->request.envp = env;
    assert_int_equal(run(f, "true"), -PINFOLD_EOS);
    assert_int_equal(f->err.sys_errno, E2BIG);
    assert_non_null(strstr(f->err.msg, "131071"));
    f->request.envp = (const char *const *)environ;
    f->request.argv = (const char *const[]){ "echo", huge, NULL };
    assert_int_equal(run(f, ""), -PINFOLD_EOS);
    f->request.argv = NULL;
    assert_run(f, "true", 0);
}

static void vectors_are_looked_up_in_the_path_of_the_command(void **state)
{
    struct fixture *f = *state;
    char path[256];
    int fd = openat(f->dir_fd, "tool", O_CREAT | O_WRONLY | O_CLOEXEC, 0755);

    assert_true(fd >= 0);
    dprintf(fd, "#!/bin/sh\necho \"$#:$2\"\n");
    close(fd);
    snprintf(path, sizeof(path), "PATH=/nowhere:%s:/usr/bin:/bin", f->dir);
    f->request.envp = (const char *const[]){ path, NULL };
    f->request.argv = (const char *const[]){ "tool", "a", "b c;$(x)", NULL };
    assert_run(f, "", 0);
    assert_string_equal(f->result.output, "2:b c;$(x)\n");
    f->request.envp = (const char *const[]){ "PATH=", NULL }; /* the working directory */
    assert_run(f, "", 0);
}

/* The address sanitizer may add a complaint about the stack of a vfork. */
static void assert_stderr_begins(const struct fixture *f, const char *text)
{
    assert_true(f->result.stderr_len >= strlen(text));
    assert_memory_equal(f->result.stderr_text, text, strlen(text));
}

static void a_missing_program_is_127_and_one_that_cannot_run_126(void **state)
{
    struct fixture *f = *state;

    f->request.argv = (const char *const[]){ "no-such-program", NULL };
    assert_run(f, "", 127);
    assert_stderr_begins(f, "pinfold: no-such-program: not found\n");
    close(openat(f->dir_fd, "plain", O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
    f->request.argv = (const char *const[]){ "./plain", NULL };
    assert_run(f, "", 126);
    assert_stderr_begins(f, "pinfold: ./plain: Permission denied\n");
    f->request.argv = (const char *const[]){ "./plain/x", NULL };
    assert_run(f, "", 127);
    f->request.argv = (const char *const[]){ "", NULL };
    assert_run(f, "", 127);
}

static void a_host_without_stdio_can_run_commands(void **state)
{
    struct fixture *f = *state;
    int saved[3], r;

    for (int fd = 0; fd < 3; fd++)
        saved[fd] = fcntl(fd, F_DUPFD_CLOEXEC, 100);
    for (int fd = 0; fd < 3; fd++)
        close(fd);
    r = run(f, "echo out; echo err >&2; wc -c");
    for (int fd = 0; fd < 3; fd++) {
        dup2(saved[fd], fd);
        close(saved[fd]);
    }
    assert_int_equal(r, 0);
    assert_string_equal(f->result.output, "out\n0\n[stderr] err\n");
}

static void a_host_that_ignores_SIGCHLD_gets_exit_codes(void **state)
{
    struct fixture *f = *state;

    signal(SIGCHLD, SIG_IGN);
    assert_run(f, "exit 42", 42);
    assert_run(f, "(exit 3); exit $?", 3);
    signal(SIGCHLD, SIG_DFL);
}

static int sigchld_count;

static void count_sigchld(int sig)
{
    (void)sig;
    sigchld_count++;
}

static void the_host_does_not_see_our_children(void **state)
{
    struct fixture *f = *state;

    signal(SIGCHLD, count_sigchld);
    sigchld_count = 0;
    assert_run(f, "exit 42", 42);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    signal(SIGCHLD, SIG_DFL);
    assert_int_equal(sigchld_count, 0);
}

/* Soft limits of the process while a command runs. */
static void *allow_none_later(void *arg)
{
    struct rlimit none = *(const struct rlimit *)arg;

    usleep(200000);
    none.rlim_cur = 0;
    setrlimit(RLIMIT_NOFILE, &none);
    return NULL;
}

static void a_command_is_listened_to_by_who_may_open_nothing_any_more(void **state)
{
    struct fixture *f = *state;
    struct rlimit before;
    pthread_t thread;
    int r;

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(pthread_create(&thread, NULL, allow_none_later, &before), 0);
    r = run(f, "sleep 0.4; echo one; sleep 0.1; echo two >&2; sleep 0.1; exit 3");
    pthread_join(thread, NULL);
    pf_launcher_stop(f->launcher);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(r, 0);
    assert_int_equal(f->result.exit_code, 3);
    assert_string_equal(f->result.output, "one\n[stderr] two\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_BOTH_MODES(exit_codes_are_the_commands_own),
        IN_BOTH_MODES(death_by_a_signal_is_128_and_its_number),
        IN_BOTH_MODES(output_is_stdout_then_stderr_with_prefixes),
        IN_BOTH_MODES(a_silent_command_has_empty_output),
        IN_BOTH_MODES(stdin_is_empty),
        IN_BOTH_MODES(there_is_no_terminal),
        IN_BOTH_MODES(the_environment_is_exactly_the_given_one),
        IN_BOTH_MODES(the_working_directory_is_the_given_one),
        IN_BOTH_MODES(only_stdio_is_open_in_the_command),
        IN_BOTH_MODES(signals_are_at_their_defaults),
        IN_BOTH_MODES(no_state_is_kept_between_commands),
        IN_BOTH_MODES(nothing_to_run_is_an_exit_code_of_1),
        IN_BOTH_MODES(a_command_may_begin_with_a_dash),
        IN_BOTH_MODES(a_command_need_not_end_in_a_nul),
        IN_BOTH_MODES(commands_around_128_KiB_work),
        IN_BOTH_MODES(a_huge_argument_is_an_error_that_names_the_limits),
        IN_BOTH_MODES(vectors_are_looked_up_in_the_path_of_the_command),
        IN_BOTH_MODES(a_missing_program_is_127_and_one_that_cannot_run_126),
        IN_BOTH_MODES(a_host_without_stdio_can_run_commands),
        IN_BOTH_MODES(a_host_that_ignores_SIGCHLD_gets_exit_codes),
        IN_BOTH_MODES(the_host_does_not_see_our_children),
        IN_BOTH_MODES(a_command_is_listened_to_by_who_may_open_nothing_any_more),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
