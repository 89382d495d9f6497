/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a jail: what it is made of, what it serves, and that nothing of it is left. */
#include <sys/utsname.h>

#include "harness.h"

static void a_command_runs_in_a_jail(void **state)
{
    struct fixture *f = *state;

    assert_run(f, "id -u; id -un; pwd; hostname; echo $HOME; umask; exit 7", 7);
    assert_string_equal(f->output, "1000\nagent\n/workspace\npinfold\n/home/agent\n0022\n");
}

static void a_command_starts_in_the_directory_that_is_named(void **state)
{
    struct fixture *f = *state;
    const char *const argv[] = { "pwd", NULL };

    assert_run(f, "mkdir sub", 0);
    assert_int_equal(finish(f, ask_at(f, "/workspace/sub", argv, -1)), 0);
    assert_string_equal(f->output, "/workspace/sub\n");
    finish(f, ask_at(f, "/workspace/missing", argv, -1));
    assert_int_equal(f->failed_stage, PF_STAGE_CWD);
    assert_int_equal(f->failed_errno, ENOENT);
}

static void the_workspace_is_shared_both_ways(void **state)
{
    struct fixture *f = *state;
    char path[256], text[16] = "";
    FILE *file;
    struct stat st;

    snprintf(path, sizeof(path), "%s/from-host", f->dir);
    file = fopen(path, "w");
    assert_non_null(file);
    fputs("host\n", file);
    fclose(file);
    assert_run(f, "cat from-host; echo jail > from-jail", 0);
    assert_string_equal(f->output, "host\n");
    snprintf(path, sizeof(path), "%s/from-jail", f->dir);
    file = fopen(path, "r");
    assert_non_null(file);
    assert_non_null(fgets(text, sizeof(text), file));
    fclose(file);
    assert_string_equal(text, "jail\n");
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_uid, geteuid());
    assert_int_equal(st.st_mode & 07777, 0644);
}

static void a_read_only_workspace_cannot_be_written(void **state)
{
    struct fixture *f = *state;

    f->config.workspace_read_only = true;
    open_jail(f);
    assert_run(f, "touch x 2>&1", 1);
    assert_non_null(strstr(f->output, "Read-only file system"));
#ifdef __x86_64__ /* and its second filter kills as little as the first */
    bring_probe(f);
    assert_says(f, "./probe calls | grep x32", "a call of the x32 kind: ENOSYS\n");
    assert_says(f, "./probe 32", "a call of the 32-bit kind: ENOSYS\n");
#endif
}

static void what_a_command_leaves_lasts(void **state)
{
    struct fixture *f = *state;

    assert_run(f, "echo kept > /tmp/file; sleep 1000 >/dev/null 2>&1 & true", 0);
    assert_run(f, "cat /tmp/file", 0);
    assert_string_equal(f->output, "kept\n");
}

static void given_directories_are_shown_at_their_paths(void **state)
{
    struct fixture *f = *state;
    char base[128], command[1024], ro[160], rw[160];

    assert_non_null(test_tempdir("pinfold-jail-given", base, sizeof(base)));
    snprintf(ro, sizeof(ro), "%s/ro", base);
    snprintf(rw, sizeof(rw), "%s/rw", base);
    assert_int_equal(mkdir(ro, 0700), 0);
    assert_int_equal(mkdir(rw, 0700), 0);
    f->config.ro = (const char *const[]){ ro, NULL };
    f->config.rw = (const char *const[]){ rw, NULL };
    open_jail(f);
    snprintf(command, sizeof(command), "ls %s; touch %s/x; touch %s/x", base, rw, ro);
    assert_run(f, command, 1);
    assert_int_equal(strncmp(f->output, "ro\nrw\n", 6), 0);
    snprintf(command, sizeof(command), "test -e %s/x && ! test -e %s/x && rm -r %s", rw, ro, base);
    assert_int_equal(system(command), 0);
}

static void a_root_of_the_users_replaces_the_hosts_system(void **state)
{
    struct fixture *f = *state;
    char base[128], command[1024];

    assert_non_null(test_tempdir("pinfold-jail-root", base, sizeof(base)));
    snprintf(command, sizeof(command),
             "cd %s && mkdir bin etc srv proc && ln -s srv link && echo mine > srv/file &&"
             " cp '%s' bin/probe",
             base, "/dev/null");
    assert_int_equal(system(command), 0);
    f->config.rootfs = base;
    open_jail(f);
    bring_probe(f);
    const char *const argv[] = { "/workspace/probe", "descriptors", NULL };
    assert_int_equal(finish(f, ask_at(f, NULL, argv, -1)), 0);
    assert_string_equal(f->output, "0 1 2 \n");
    /* Its /bin is there, with nothing of ours in it. */
    assert_int_equal(run(f, "true"), 127);
    snprintf(command, sizeof(command),
             "[ \"$(ls %s)\" = \"$(printf 'bin\\netc\\nlink\\nproc\\nsrv')\" ]"
             " && rm -r %s",
             base, base);
    assert_int_equal(system(command), 0);
}

static void the_proxy_listens_inside_and_answers_outside(void **state)
{
    struct fixture *f = *state;
    char text[8] = "";
    int proxy, fd = -1;

    f->config.net = PINFOLD_NET_ALLOW;
    open_jail(f);
    bring_probe(f);
    proxy = pf_jail_take_proxy_socket(f->jail);
    assert_true(proxy >= 0);
    assert_int_equal(pf_jail_take_proxy_socket(f->jail), -1);
    assert_run(f, "./probe connect 3128", 0);
    for (int tries = 0; fd < 0 && tries < 500; tries++) {
        fd = accept4(proxy, NULL, NULL, SOCK_CLOEXEC);
        if (fd < 0)
            usleep(10000);
    }
    assert_int_equal(read(fd, text, sizeof(text)), 5);
    assert_string_equal(text, "hello");
    close(fd);
    close(proxy);
}

static bool host_pid_max_is_out_of_reach(void)
{
    struct utsname kernel;
    unsigned major, minor;

    assert_int_equal(uname(&kernel), 0);
    assert_int_equal(sscanf(kernel.release, "%u.%u", &major, &minor), 2);
    return major > 6 || (major == 6 && minor >= 14);
}

static void limits_leave_the_host_alone(void **state)
{
    struct fixture *f = *state;
    char before[32] = "", after[32] = "";
    int fd = open("/proc/sys/kernel/pid_max", O_RDONLY | O_CLOEXEC);

    assert_true(read(fd, before, sizeof(before) - 1) > 0);
    f->config.limits.processes = 700;
    open_jail(f);
    assert_true(pread(fd, after, sizeof(after) - 1, 0) > 0);
    close(fd);
    assert_string_equal(after, before);
}

static void limits_hold(void **state)
{
    struct fixture *f = *state;

    f->config.limits = (struct pinfold_limits){ .memory_bytes = 64 << 20,
                                                .open_files = 40,
                                                .file_bytes = 1 << 20,
                                                .cpu_seconds = 1,
                                                .processes = 600,
                                                .tmp_bytes = 2 << 20 };
    open_jail(f);
    bring_probe(f);
    assert_run(f, "ulimit -n; ulimit -c; ulimit -t; ulimit -H -n; ulimit -H -c", 0);
    assert_string_equal(f->output, "40\n0\n1\n40\n0\n");
    assert_run(f, "ulimit -H -t", 0); /* a second for who wants to hear of it */
    assert_string_equal(f->output, "2\n");
    assert_says(f, "grep core /proc/self/limits | tr -s ' '", "core file size 1 1 bytes");
    assert_says(f, "cat /proc/self/oom_score_adj", "1000\n");
    if (pf_jail_holders(f->jail)[PINFOLD_LIMIT_MEMORY] == PINFOLD_HOLDER_RLIMIT) {
        assert_run(f, "./probe memory", 0);
        assert_in_range(strtol(f->output, NULL, 10), 1, 64);
    } else { /* what is reserved is not used */
        assert_run(f, "./probe memory | grep -x '4096 MiB'; exec ./probe touch", 128 + SIGKILL);
        assert_string_equal(f->output, "4096 MiB\n");
    }
    assert_run(f, "trap '' XFSZ; head -c 2000000 /dev/zero > file; wc -c < file", 0);
    assert_non_null(strstr(f->output, "1048576\n"));
    assert_run(f, "for i in 1 2 3; do head -c 1000000 /dev/zero > /tmp/$i; done 2>&1", 1);
    assert_non_null(strstr(f->output, "No space left"));
    assert_run(f, "rm /tmp/*; cd /tmp; for i in $(seq 1000); do : > $i || exit 3; done 2>&1", 2);
    assert_non_null(strstr(f->output, "No space left"));
    assert_run(f, "while :; do :; done", 128 + SIGXCPU);
    assert_run(f, "trap '' XCPU; while :; do :; done", 128 + SIGKILL);
    /* An owner who is root is held by what only newer kernels have. */
    if (geteuid() != 0 || host_pid_max_is_out_of_reach())
        assert_says(f, "./probe fork", "fork: EAGAIN\n");
}

/* A pipe in the workspace, whose other end a command holds: it hangs up when that is gone. */
static int open_fifo(const struct fixture *f)
{
    char path[256];
    int fd;

    snprintf(path, sizeof(path), "%s/fifo", f->dir);
    mkfifo(path, 0600);
    fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    assert_true(fd >= 0);
    return fd;
}

static bool comes_to_hang_up(int fifo)
{
    struct pollfd wait = { fifo, POLLIN, 0 };
    char text[64];

    for (int tries = 0; tries < 100; tries++) {
        poll(&wait, 1, 100);
        if ((wait.revents & POLLHUP) && read(fifo, text, sizeof(text)) == 0)
            return true;
        if (wait.revents & POLLIN)
            (void)!read(fifo, text, sizeof(text));
    }
    return false;
}

/* Kill the owner of a jail, in which by then a command holds the pipe. */
static void kill_owner(pid_t pid, int fifo)
{
    struct pollfd wait = { fifo, POLLIN, 0 };

    assert_int_equal(poll(&wait, 1, 10000), 1);
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_true(comes_to_hang_up(fifo));
    close(fifo);
}

static void who_loses_its_supervisor_dies(void **state)
{
    struct fixture *f = *state;
    int fifo = open_fifo(f);

    assert_int_equal(run(f, "setsid sh -c 'echo on; exec sleep 1000' > fifo & sleep 0.2;"
                            " kill -9 $PPID; sleep 1000"),
                     -1);
    assert_true(comes_to_hang_up(fifo));
    close(fifo);
    assert_run(f, "until ! cat /proc/[0-9]*/comm 2>/dev/null | grep -q sleep; do sleep 0.01; done",
               0);
}

static void a_supervisor_that_is_stopped_is_killed(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(run(f, "kill -STOP $PPID; sleep 1000"), -1);
    assert_run(f, "echo alive", 0);
}

static void everything_is_gone_when_the_jail_is_closed(void **state)
{
    struct fixture *f = *state;

    for (int i = 0; i < 100; i++) {
        int fifo = open_fifo(f), before;
        before = count_descriptors();
        open_jail(f);
        assert_run(f, "sh -c 'echo on; exec setsid sleep 1000' > fifo 2>/dev/null & read on < fifo",
                   0);
        pf_jail_close(TAKE(f->jail));
        assert_int_equal(count_descriptors(), before);
        assert_true(comes_to_hang_up(fifo));
        close(fifo);
    }
}

static void everything_is_gone_when_the_owner_is_killed(void **state)
{
    struct fixture *f = *state;
    int fifo = open_fifo(f), ready[2];
    char byte;
    pid_t pid;

    assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
    pid = fork();
    if (pid == 0) {
        if (pf_jail_open(&f->config, &f->jail, &f->err) < 0)
            _exit(1);
        ask(f, "sh -c 'echo on; exec setsid sleep 1000' > fifo & echo on > fifo; sleep 1000");
        (void)!write(ready[1], "x", 1);
        pause();
        _exit(0);
    }
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    kill_owner(pid, fifo);
    close(ready[0]);
}

/* A fork that lives on has a copy of the socket: the sandbox must end with its owner all the same.
 */
static void a_fork_of_the_owner_does_not_keep_it_alive(void **state)
{
    struct fixture *f = *state;
    int fifo = open_fifo(f), ready[2], hold[2];
    char byte;
    pid_t pid;

    assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
    assert_int_equal(pipe2(hold, O_CLOEXEC), 0);
    pid = fork();
    if (pid == 0) {
        close(fifo);
        close(hold[1]);
        if (pf_jail_open(&f->config, &f->jail, &f->err) < 0)
            _exit(1);
        ask(f, "sh -c 'echo on; exec setsid sleep 1000' > fifo & echo on > fifo; sleep 1000");
        if (fork() == 0) { /* until the test says so, with copies of everything */
            (void)!write(ready[1], "x", 1);
            (void)!read(hold[0], &byte, 1);
            _exit(0);
        }
        pause();
        _exit(0);
    }
    close(hold[0]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    kill_owner(pid, fifo);
    close(hold[1]);
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 0); /* the fork is gone */
    close(ready[0]);
}

static void a_fork_of_the_owner_does_not_end_it(void **state)
{
    struct fixture *f = *state;
    pid_t pid = fork();

    if (pid == 0) {
        pf_jail_close(f->jail);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_run(f, "echo alive", 0);
    assert_string_equal(f->output, "alive\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_JAIL(a_command_runs_in_a_jail),
        IN_JAIL(a_command_starts_in_the_directory_that_is_named),
        IN_JAIL(the_workspace_is_shared_both_ways),
        WITH_CONFIG(a_read_only_workspace_cannot_be_written),
        IN_JAIL(what_a_command_leaves_lasts),
        WITH_CONFIG(given_directories_are_shown_at_their_paths),
        WITH_CONFIG(a_root_of_the_users_replaces_the_hosts_system),
        WITH_CONFIG(the_proxy_listens_inside_and_answers_outside),
        WITH_CONFIG(limits_hold),
        WITH_CONFIG(limits_leave_the_host_alone),
        IN_JAIL(who_loses_its_supervisor_dies),
        IN_JAIL(a_supervisor_that_is_stopped_is_killed),
        WITH_CONFIG(everything_is_gone_when_the_jail_is_closed),
        WITH_CONFIG(everything_is_gone_when_the_owner_is_killed),
        WITH_CONFIG(a_fork_of_the_owner_does_not_keep_it_alive),
        IN_JAIL(a_fork_of_the_owner_does_not_end_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
