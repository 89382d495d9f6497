/* SPDX-License-Identifier: Apache-2.0 */
/* Rows 56 to 68 of the semantics: how a command is started, and how it is ended. */
#include "spec.h"

#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>

static struct pinfold_execute_options vector(const char *const *argv)
{
    return (struct pinfold_execute_options){ .size = sizeof(struct pinfold_execute_options),
                                             .argv = argv,
                                             .timeout_seconds = 60 };
}
#define ARGV(...) vector((const char *const[]){ __VA_ARGS__, NULL })

static bool output_has(struct spec *s, const char *part)
{
    return memmem(s->run.output, s->run.output_len, part, strlen(part)) != NULL;
}

/* Commands get this process's environment, in which HOME is what it is here. */
static bool inherits(void)
{
    return !spec_is_isolated() && !spec_lacks("inherited environment");
}

static void row_056_commands_run_in_bin_sh_without_login(void **state)
{
    struct spec *s = *state;
    struct pinfold_execute_options options = spec_shell("readlink -f /proc/$$/exe; echo $0", 60);
    char home[300], shell_path[PATH_MAX], wanted[PATH_MAX + 16];

    spec_put(s, "home/.profile", "echo PROFILE\n");
    snprintf(home, sizeof(home), "HOME=%s", spec_at(s, "home"));
    options.env = (const char *const[]){ home, NULL };
    spec_start_plain(s);
    spec_run_with(s, &options);
    assert_non_null(realpath("/bin/sh", shell_path));
    snprintf(wanted, sizeof(wanted), "%s\nsh\n", shell_path);
    spec_stdout_is(s, wanted);
}

static void row_057_stdin_is_dev_null_and_there_is_no_terminal(void **state)
{
    struct spec *s = *state;
    char own[32];

    spec_start_plain(s);
    spec_run(s, "cat; read x || echo eof; readlink /proc/self/fd/0");
    spec_stdout_is(s, "eof\n/dev/null\n");
    spec_run(s, "(: < /dev/tty) 2>/dev/null && echo terminal; cut -d' ' -f6 /proc/$$/stat");
    snprintf(own, sizeof(own), "%ld\n", (long)getsid(0));
    assert_false(output_has(s, "terminal"));
    assert_true(s->run.stdout_len > 1);
    s->run.output[s->run.stdout_len] = '\0';
    assert_string_not_equal(s->run.output, own); /* a session of its own */
}

static void row_058_the_environment_is_taken_at_each_command_and_env_wins(void **state)
{
    struct spec *s = *state;
    struct pinfold_local_options local = PINFOLD_LOCAL_OPTIONS_INIT;
    struct pinfold_execute_options options = spec_shell("echo ${SPEC_A-none} $SPEC_B $SPEC_C", 60);

    local.env = (const char *const[]){ "SPEC_B=backend", "SPEC_C=backend", NULL };
    spec_local(s, &local);
    spec_start_plain(s);
    setenv("SPEC_A", "first", 1);
    setenv("SPEC_B", "inherited", 1);
    spec_run_with(s, &options);
    /* In isolation there is nothing of the host's environment. */
    spec_stdout_is(s, inherits() ? "first backend backend\n" : "none backend backend\n");
    setenv("SPEC_A", "second", 1);
    options.env = (const char *const[]){ "SPEC_C=call", NULL };
    spec_run_with(s, &options);
    unsetenv("SPEC_A");
    unsetenv("SPEC_B");
    spec_stdout_is(s, inherits() ? "second backend call\n" : "none backend call\n");
    spec_run(s, "echo ${SPEC_A-unset}; echo \"$HOME\"");
    char wanted[300];
    if (spec_is_isolated())
        snprintf(wanted, sizeof(wanted), "unset\n/home/agent\n");
    else if (!inherits())
        snprintf(wanted, sizeof(wanted), "unset\n%s\n", spec_real(s, "ws/.."));
    else /* HOME is not touched */
        snprintf(wanted, sizeof(wanted), "unset\n%s\n", getenv("HOME") ? getenv("HOME") : "");
    spec_stdout_is(s, wanted);
}

static void row_058_without_inheritance_there_is_env_and_pwd_alone(void **state)
{
    struct spec *s = *state;
    struct pinfold_local_options local = PINFOLD_LOCAL_OPTIONS_INIT;
    struct pinfold_execute_options options = ARGV("/usr/bin/env");
    char root[PATH_MAX], wanted[PATH_MAX + 16];

    if (spec_is_isolated()) { /* there is nothing to inherit, and a fixed environment */
        spec_start_plain(s);
        spec_run_with(s, &options);
        assert_true(output_has(s, "PWD=/workspace\n"));
        assert_int_equal(spec_lines(s), 8);
        return;
    }
    if (!inherits()) {
        spec_start_plain(s);
        spec_run_with(s, &options);
        snprintf(wanted, sizeof(wanted), "PWD=%s\n", spec_real(s, "ws"));
        assert_true(output_has(s, wanted));
        assert_false(output_has(s, "OLDPWD=") || output_has(s, "PINFOLD_SPEC_BACKEND="));
        return;
    }
    local.no_inherit_env = true;
    spec_local(s, &local);
    spec_start_plain(s);
    assert_non_null(realpath(spec_at(s, "ws"), root));
    spec_run_with(s, &options);
    snprintf(wanted, sizeof(wanted), "PWD=%s\n", root);
    spec_stdout_is(s, wanted);
    spec_stop(s);

    local.env = (const char *const[]){ "ONLY=this", NULL };
    spec_local(s, &local);
    spec_start_plain(s);
    spec_dir(s, "ws/sub");
    options.cwd = "sub";
    spec_run_with(s, &options);
    snprintf(wanted, sizeof(wanted), "PWD=%s/sub\n", root);
    assert_true(output_has(s, wanted));
    assert_true(output_has(s, "ONLY=this\n"));
    assert_int_equal(s->run.stdout_len, strlen(wanted) + strlen("ONLY=this\n"));
}

static void row_058_a_malformed_entry_is_refused(void **state)
{
    static const char *const bad[] = { "", "NOVALUE", "=x" };
    struct spec *s = *state;

    spec_start_plain(s);
    for (size_t i = 0; i < 3; i++) {
        struct pinfold_local_options local = PINFOLD_LOCAL_OPTIONS_INIT;
        struct pinfold_execute_options options = spec_shell("touch made", 60);
        struct pinfold_backend *backend = NULL;
        local.workspace_root = spec_at(s, "ws2");
        local.env = options.env = (const char *const[]){ bad[i], NULL };
        spec_refuses(s, PINFOLD_EVALUE, pinfold_local_backend_new(&local, &backend, &s->err));
        assert_null(backend);
        spec_refuses(s, PINFOLD_EVALUE,
                     pinfold_sandbox_execute(s->sandbox, &options, &s->run, NULL, &s->err));
    }
    spec_missing(s, "ws/made");
}

static void row_059_signals_are_as_a_fresh_process_has_them(void **state)
{
    struct spec *s = *state;
    struct pinfold_execute_options options =
            ARGV("/bin/grep", "-E", "^Sig(Ign|Blk)", "/proc/self/status");
    struct sigaction ignore = { .sa_handler = SIG_IGN }, old_pipe, old_int, old_quit;
    sigset_t block, old_mask;

    spec_start_plain(s);
    sigemptyset(&block);
    sigaddset(&block, SIGTERM);
    sigaddset(&block, SIGUSR1);
    sigaddset(&block, SIGCHLD);
    sigaction(SIGPIPE, &ignore, &old_pipe);
    sigaction(SIGINT, &ignore, &old_int);
    sigaction(SIGQUIT, &ignore, &old_quit);
    pthread_sigmask(SIG_BLOCK, &block, &old_mask);
    int r = pinfold_sandbox_execute(s->sandbox, &options, &s->run, NULL, &s->err);
    pthread_sigmask(SIG_SETMASK, &old_mask, NULL);
    sigaction(SIGPIPE, &old_pipe, NULL);
    sigaction(SIGINT, &old_int, NULL);
    sigaction(SIGQUIT, &old_quit, NULL);
    assert_int_equal(r, 0);
    unsigned long blocked = 1, ignored = 1;
    assert_int_equal(sscanf(s->run.output, "SigBlk: %lx SigIgn: %lx", &blocked, &ignored), 2);
    assert_int_equal(blocked, 0);
    assert_int_equal(ignored & (1ul << (SIGPIPE - 1) | 1ul << (SIGINT - 1) | 1ul << (SIGQUIT - 1)),
                     0);
}

static void row_059_no_descriptor_but_the_three_reaches_the_command(void **state)
{
    struct spec *s = *state;
    struct pinfold_execute_options options = ARGV("/bin/ls", "/proc/self/fd");
    int careless = open("/dev/null", O_RDONLY); /* without O_CLOEXEC, as other libraries do */

    spec_start_plain(s);
    int r = pinfold_sandbox_execute(s->sandbox, &options, &s->run, NULL, &s->err);
    close(careless);
    assert_int_equal(r, 0);
    spec_stdout_is(s, "0\n1\n2\n3\n"); /* 3 is the directory that ls itself reads */
}

static void row_060_cwd_is_checked_like_a_path_and_never_made(void **state)
{
    struct spec *s = *state;
    struct pinfold_execute_options options = spec_shell("pwd -P; touch here", 60);
    char wanted[PATH_MAX + 1];

    spec_start_plain(s);
    spec_dir(s, "ws/sub");
    spec_put(s, "ws/file", "f");
    spec_dir(s, "outside");
    spec_link(s, "../outside", "ws/out");
    options.cwd = "./sub";
    spec_run_with(s, &options);
    snprintf(wanted, sizeof(wanted), "%s\n", spec_real(s, "ws/sub"));
    spec_stdout_is(s, wanted);
    options.cwd = spec_inside(s, "ws/sub");
    spec_run_with(s, &options);
    spec_stdout_is(s, wanted);
    pinfold_execute_result_done(&s->run);

    options.cwd = "missing";
    spec_refuses(s, PINFOLD_EOS,
                 pinfold_sandbox_execute(s->sandbox, &options, &s->run, NULL, &s->err));
    assert_int_equal(s->err.sys_errno, ENOENT);
    spec_missing(s, "ws/missing");
    options.cwd = "file";
    spec_refuses(s, PINFOLD_EOS,
                 pinfold_sandbox_execute(s->sandbox, &options, &s->run, NULL, &s->err));
    assert_int_equal(s->err.sys_errno, ENOTDIR);
    options.cwd = "sub/../..";
    spec_refuses(s, PINFOLD_EPATH,
                 pinfold_sandbox_execute(s->sandbox, &options, &s->run, NULL, &s->err));
    options.cwd = "out";
    spec_refuses(s, PINFOLD_EPATH,
                 pinfold_sandbox_execute(s->sandbox, &options, &s->run, NULL, &s->err));
    assert_int_equal(spec_entries(s, "outside"), 0);
}

static void row_061_nothing_is_kept_between_commands(void **state)
{
    struct spec *s = *state;
    char wanted[PATH_MAX + 1];

    spec_start_plain(s);
    spec_run(s, "mkdir sub && cd sub && export SPEC_KEPT=1 && umask 000");
    spec_run(s, "pwd -P; echo ${SPEC_KEPT-unset}");
    snprintf(wanted, sizeof(wanted), "%s\nunset\n", spec_real(s, "ws"));
    spec_stdout_is(s, wanted);
}

static void row_062_a_command_without_content_is_a_failed_command_no_error(void **state)
{
    static const char *const empty[] = { "", " ", "\t \n" };
    struct spec *s = *state;
    struct pinfold_execute_options options = spec_shell("touch made\0; touch more", 60);

    spec_start_plain(s);
    for (size_t i = 0; i < 3; i++) {
        spec_run(s, empty[i]);
        assert_int_equal(s->run.exit_code, 1);
        assert_true(s->run.output_len > 0); /* says so */
    }
    options.command_len = 23;
    spec_run_with(s, &options);
    assert_int_equal(s->run.exit_code, 1);
    assert_true(s->run.output_len > 0);
    assert_int_equal(spec_entries(s, "ws"), 0);
}

static void row_063_a_command_longer_than_an_argument_may_be_works(void **state)
{
    static const size_t sizes[] = { 131071, 131072, 131073, 1000000 };
    struct spec *s = *state;

    spec_start_plain(s);
    for (size_t i = 0; i < 4; i++) {
        char *command = malloc(sizes[i] + 1);
        assert_non_null(command);
        memset(command, 'x', sizes[i]);
        memcpy(command, ": ", 2);
        strcpy(command + sizes[i] - 24, "; cat; echo end; exit 3;");
        spec_run(s, command);
        free(command);
        assert_int_equal(s->run.exit_code, 3);
        spec_stdout_is(s, "end\n"); /* and stdin is still /dev/null */
        spec_stderr_is(s, "");
    }
    assert_int_equal(spec_entries(s, "ws"), 0); /* no file of ours lies about */
}

static void row_063_an_environment_that_is_too_large_is_a_clear_error(void **state)
{
    struct spec *s = *state;
    struct pinfold_execute_options options = spec_shell("touch made", 60);
    char *entry = malloc(200001);

    assert_non_null(entry);
    memset(entry, 'v', 200000);
    memcpy(entry, "LARGE=", 6);
    entry[200000] = '\0';
    spec_start_plain(s);
    options.env = (const char *const[]){ entry, NULL };
    s->err = (struct pinfold_error)PINFOLD_ERROR_INIT;
    int r = pinfold_sandbox_execute(s->sandbox, &options, &s->run, NULL, &s->err);
    free(entry);
    assert_true(r < 0);
    assert_int_equal(s->err.code, -r);
    assert_non_null(strstr(s->err.msg, "rgument list too long"));
    assert_null(strstr(s->err.msg, "vv")); /* it may be a secret */
    spec_missing(s, "ws/made");
}

static void row_064_a_timeout_is_positive_or_the_default(void **state)
{
    struct spec *s = *state;
    const double bad[] = { -1, -0.001, (double)NAN, -(double)INFINITY };
    struct pinfold_execute_options options = spec_shell("echo ran", 0);

    spec_start_plain(s);
    spec_run_with(s, &options); /* zero: the default */
    spec_stdout_is(s, "ran\n");
    options.timeout_seconds = 1e300;
    spec_run_with(s, &options);
    spec_stdout_is(s, "ran\n");
    pinfold_execute_result_done(&s->run);
    options.command = "touch made";
    for (size_t i = 0; i < 4; i++) {
        struct pinfold_local_options local = PINFOLD_LOCAL_OPTIONS_INIT;
        struct pinfold_backend *backend = NULL;
        options.timeout_seconds = local.timeout_seconds = bad[i];
        local.workspace_root = spec_at(s, "ws2");
        spec_refuses(s, PINFOLD_EVALUE,
                     pinfold_sandbox_execute(s->sandbox, &options, &s->run, NULL, &s->err));
        spec_refuses(s, PINFOLD_EVALUE, pinfold_local_backend_new(&local, &backend, &s->err));
    }
    spec_missing(s, "ws/made");
}

static void row_064_a_timeout_may_be_a_fraction_and_the_backend_has_the_default(void **state)
{
    struct spec *s = *state;
    struct pinfold_local_options local = PINFOLD_LOCAL_OPTIONS_INIT;
    struct pinfold_execute_options options = spec_shell("exec sleep 300", 0.2);

    local.timeout_seconds = 0.25;
    spec_local(s, &local);
    spec_start_plain(s);
    spec_run_with(s, &options);
    assert_int_equal(s->run.exit_code, 124);
    options.timeout_seconds = 0;
    spec_run_with(s, &options);
    assert_int_equal(s->run.exit_code, 124);
    assert_true(s->run.timed_out);
}

/* Leaves a stubborn child, a daemon with its own session and no environment, and one that has no
 * living parent, each with its process id in a file. */
#define LITTER                                                                         \
    "sh -c 'trap \"\" TERM; echo $$ > stubborn; while :; do sleep 1; done' &\n"        \
    "env -i setsid /bin/sh -c 'echo $$ > daemon; exec sleep 300' >/dev/null 2>&1 &\n"  \
    "(setsid sh -c '(echo $$ > orphan.tmp; exec env -i sh -c \"echo \\$\\$ > orphan; " \
    "exec /bin/sleep 300\") &' >/dev/null 2>&1 &)\n"                                   \
    "while [ ! -s stubborn ] || [ ! -s daemon ] || [ ! -s orphan ]; do sleep 0.05; done\n"

static void all_litter_is_gone(struct spec *s)
{
    assert_false(spec_alive(s, spec_pid(s, "ws/stubborn")));
    assert_false(spec_alive(s, spec_pid(s, "ws/daemon")));
    assert_false(spec_alive(s, spec_pid(s, "ws/orphan")));
}

static void row_065_a_timeout_kills_everything_daemons_too(void **state)
{
    struct spec *s = *state;
    struct pinfold_execute_options options = spec_shell(LITTER "sleep 300", 3);

    spec_start_plain(s);
    spec_run_with(s, &options);
    assert_int_equal(s->run.exit_code, 124);
    assert_true(s->run.timed_out);
    all_litter_is_gone(s); /* when the call returns, not some time later */
}

static void row_065_term_comes_first_and_leaves_time_to_clean_up(void **state)
{
    struct spec *s = *state;
    struct pinfold_execute_options options = spec_shell(
            "trap 'echo bye; echo saved > saved; exit 0' TERM; while :; do sleep 0.05; done", 0.5);

    spec_start_plain(s);
    spec_run_with(s, &options);
    assert_int_equal(s->run.exit_code, 124);
    spec_is(s, "ws/saved", "saved\n");
    assert_true(output_has(s, "bye\n"));
}

static void row_066_output_does_not_extend_the_time(void **state)
{
    struct spec *s = *state;
    struct pinfold_execute_options options =
            spec_shell("while :; do echo on; sleep 0.1; done", 0.8);

    spec_start_plain(s);
    spec_run_with(s, &options); /* would never return if output counted */
    assert_int_equal(s->run.exit_code, 124);
    assert_true(s->run.duration_ns >= INT64_C(800000000));
    assert_true(output_has(s, "on\non\n"));
}

static void row_067_partial_output_survives_a_timeout(void **state)
{
    struct spec *s = *state;
    struct pinfold_execute_options options =
            spec_shell("echo before; echo oops >&2; printf half; sleep 300", 0.6);

    spec_start_plain(s);
    spec_run_with(s, &options);
    assert_int_equal(s->run.exit_code, 124);
    spec_stdout_is(s, "before\nhalf");
    spec_stderr_is(s, "oops\n");
    assert_true(s->run.timed_out);
    assert_false(s->run.truncated); /* that is for the size limit alone */
    assert_true(output_has(s, "timed out"));
    assert_true(output_has(s, "0.6"));
}

static void row_067_what_was_written_is_counted_after_a_timeout(void **state)
{
    struct spec *s = *state;
    struct pinfold_execute_options options =
            spec_shell("head -c 50000 /dev/zero | tr '\\0' x; printf ab >&2; sleep 300", 4);

    options.max_output_bytes = 1000;
    spec_start_plain(s);
    spec_run_with(s, &options);
    assert_int_equal(s->run.exit_code, 124);
    assert_true(s->run.truncated);
    assert_int_equal(s->run.stdout_bytes, 50000);
    assert_int_equal(s->run.stderr_bytes, 2);
    assert_int_equal(s->run.limit, PINFOLD_LIMIT_TIME);
    assert_int_equal(s->run.holders[PINFOLD_LIMIT_TIME], PINFOLD_HOLDER_OWNER);
}

static void row_068_cancelling_kills_everything_before_the_call_returns(void **state)
{
    struct spec *s = *state;
    struct spec_call call = { .s = s,
                              .options = spec_shell(LITTER "echo ready; touch go; sleep 300", 60) };
    pthread_t thread;

    spec_start_plain(s);
    spec_ok(s, pinfold_cancel_new(&call.cancel, &s->err));
    assert_int_equal(pthread_create(&thread, NULL, spec_call, &call), 0);
    spec_wait_for(s, "ws/go");
    pinfold_cancel_fire(call.cancel);
    pthread_join(thread, NULL);
    pinfold_cancel_free(call.cancel);
    bool kept = call.result.stdout_len == 6 && memcmp(call.result.output, "ready\n", 6) == 0;
    pinfold_execute_result_done(&call.result);
    assert_int_equal(call.r, -PINFOLD_ECANCELLED);
    assert_int_equal(call.err.code, PINFOLD_ECANCELLED);
    assert_true(kept); /* the partial output is there */
    all_litter_is_gone(s);
    spec_run(s, "echo on"); /* the sandbox goes on */
    spec_stdout_is(s, "on\n");
}

static void row_068_a_token_that_has_fired_starts_nothing(void **state)
{
    struct spec *s = *state;
    struct pinfold_execute_options options = spec_shell("touch made", 60);
    struct pinfold_cancel *cancel = NULL;

    spec_start_plain(s);
    spec_ok(s, pinfold_cancel_new(&cancel, &s->err));
    pinfold_cancel_fire(cancel);
    int r = pinfold_sandbox_execute(s->sandbox, &options, &s->run, cancel, &s->err);
    int write_r = pinfold_sandbox_write_file(s->sandbox, "made", "x", 1, cancel, &s->err);
    pinfold_cancel_free(cancel);
    assert_int_equal(r, -PINFOLD_ECANCELLED);
    assert_int_equal(write_r, -PINFOLD_ECANCELLED);
    spec_missing(s, "ws/made");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SPEC_TEST(row_056_commands_run_in_bin_sh_without_login),
        SPEC_TEST(row_057_stdin_is_dev_null_and_there_is_no_terminal),
        SPEC_TEST(row_058_the_environment_is_taken_at_each_command_and_env_wins),
        SPEC_TEST(row_058_without_inheritance_there_is_env_and_pwd_alone),
        SPEC_TEST(row_058_a_malformed_entry_is_refused),
        SPEC_TEST(row_059_signals_are_as_a_fresh_process_has_them),
        SPEC_TEST(row_059_no_descriptor_but_the_three_reaches_the_command),
        SPEC_TEST(row_060_cwd_is_checked_like_a_path_and_never_made),
        SPEC_TEST(row_061_nothing_is_kept_between_commands),
        SPEC_TEST(row_062_a_command_without_content_is_a_failed_command_no_error),
        SPEC_TEST(row_063_a_command_longer_than_an_argument_may_be_works),
        SPEC_TEST(row_063_an_environment_that_is_too_large_is_a_clear_error),
        SPEC_TEST(row_064_a_timeout_is_positive_or_the_default),
        SPEC_TEST(row_064_a_timeout_may_be_a_fraction_and_the_backend_has_the_default),
        SPEC_TEST(row_065_a_timeout_kills_everything_daemons_too),
        SPEC_TEST(row_065_term_comes_first_and_leaves_time_to_clean_up),
        SPEC_TEST(row_066_output_does_not_extend_the_time),
        SPEC_TEST(row_067_partial_output_survives_a_timeout),
        SPEC_TEST(row_067_what_was_written_is_counted_after_a_timeout),
        SPEC_TEST(row_068_cancelling_kills_everything_before_the_call_returns),
        SPEC_TEST(row_068_a_token_that_has_fired_starts_nothing),
    };

    return spec_run_tests("rows 56-68", tests);
}
