/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every allocation and system call on the way of a command is made to fail, one at a time, in the
 * host and in its supervisor alike (the counter is in shared memory). Each time the answer is an
 * error or the true result, and the fixture finds no process, zombie or descriptor left.
 */
#include "harness.h"
#include "proc/terminal.h"

#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>

struct plan {
    atomic_int victim;    /* an index into names, -1: nothing fails */
    atomic_int countdown; /* the call that fails */
    int more;             /* and so many after it */
    atomic_int fired;
    int sys_errno;
};

static struct plan *plan;

enum victim {
    MALLOC,
    CALLOC,
    REALLOC,
    STRDUP,
    PIPE2,
    SOCKETPAIR,
    FCNTL,
    MEMFD_CREATE,
    WRITE,
    READ,
    POLL,
    OPEN,
    SEND,
    SENDMSG,
    RECV,
    SYSCALL,
    CLONE,
    SIGNALFD,
    PRCTL,
    DUP2,
    FCHDIR,
    SPLICE,
    PWRITE,
    EPOLL_CREATE, /* from here on of terminals alone */
    EPOLL_CTL,
    IOCTL,
    RECVMSG,
    VICTIMS,
};

static const struct {
    const char *name;
    int sys_errno;
} faults[VICTIMS] = {
    [MALLOC] = { "malloc", ENOMEM },       [CALLOC] = { "calloc", ENOMEM },
    [REALLOC] = { "realloc", ENOMEM },     [STRDUP] = { "strdup", ENOMEM },
    [PIPE2] = { "pipe2", EMFILE },         [SOCKETPAIR] = { "socketpair", EMFILE },
    [FCNTL] = { "fcntl", EMFILE },         [MEMFD_CREATE] = { "memfd_create", EMFILE },
    [WRITE] = { "write", ENOSPC },         [READ] = { "read", EIO },
    [POLL] = { "poll", ENOMEM },           [OPEN] = { "open", EMFILE },
    [SEND] = { "send", ENOBUFS },          [SENDMSG] = { "sendmsg", ETOOMANYREFS },
    [RECV] = { "recv", ENOMEM },           [SYSCALL] = { "syscall", EAGAIN },
    [CLONE] = { "clone", EAGAIN },         [SIGNALFD] = { "signalfd", EMFILE },
    [PRCTL] = { "prctl", EPERM },          [DUP2] = { "dup2", EMFILE },
    [FCHDIR] = { "fchdir", EACCES },       [SPLICE] = { "splice", ENOMEM },
    [PWRITE] = { "pwrite", ENOSPC },       [EPOLL_CREATE] = { "epoll_create1", EMFILE },
    [EPOLL_CTL] = { "epoll_ctl", ENOSPC }, [IOCTL] = { "ioctl", EPERM },
    [RECVMSG] = { "recvmsg", ENOBUFS },
};

static bool fails(enum victim victim)
{
    int left;

    if (!plan || atomic_load(&plan->victim) != (int)victim)
        return false;
    left = atomic_fetch_sub(&plan->countdown, 1);
    if (left > 1 || left < 1 - plan->more)
        return false;
    atomic_store(&plan->fired, 1);
    errno = plan->sys_errno;
    return true;
}

#define WRAP(type, symbol, victim, failure, parameters, arguments)    \
    type __real_##symbol parameters;                                  \
    type __wrap_##symbol parameters                                   \
    {                                                                 \
        return fails(victim) ? (failure) : __real_##symbol arguments; \
    }

WRAP(void *, malloc, MALLOC, NULL, (size_t size), (size))
WRAP(void *, calloc, CALLOC, NULL, (size_t count, size_t size), (count, size))
WRAP(void *, realloc, REALLOC, NULL, (void *old, size_t size), (old, size))
WRAP(char *, strdup, STRDUP, NULL, (const char *text), (text))
WRAP(int, pipe2, PIPE2, -1, (int fds[2], int flags), (fds, flags))
WRAP(int, socketpair, SOCKETPAIR, -1, (int domain, int type, int protocol, int fds[2]),
     (domain, type, protocol, fds))
WRAP(int, fcntl64, FCNTL, -1, (int fd, int command, long arg), (fd, command, arg))
WRAP(int, memfd_create, MEMFD_CREATE, -1, (const char *name, unsigned flags), (name, flags))
WRAP(ssize_t, write, WRITE, -1, (int fd, const void *data, size_t len), (fd, data, len))
WRAP(ssize_t, read, READ, -1, (int fd, void *data, size_t len), (fd, data, len))
WRAP(int, poll, POLL, -1, (struct pollfd * fds, nfds_t count, int ms), (fds, count, ms))
WRAP(int, open64, OPEN, -1, (const char *path, int flags, mode_t mode), (path, flags, mode))
WRAP(ssize_t, send, SEND, -1, (int fd, const void *data, size_t len, int flags),
     (fd, data, len, flags))
WRAP(ssize_t, sendmsg, SENDMSG, -1, (int fd, const struct msghdr *message, int flags),
     (fd, message, flags))
WRAP(ssize_t, recv, RECV, -1, (int fd, void *data, size_t len, int flags), (fd, data, len, flags))
WRAP(long, syscall, SYSCALL, -1, (long number, long a, long b, long c, long d, long e),
     (number, a, b, c, d, e))
WRAP(int, clone, CLONE, -1, (int (*fn)(void *), void *stack, int flags, void *arg),
     (fn, stack, flags, arg))
WRAP(int, signalfd, SIGNALFD, -1, (int fd, const sigset_t *mask, int flags), (fd, mask, flags))
WRAP(int, prctl, PRCTL, -1, (int option, long a, long b, long c, long d), (option, a, b, c, d))
WRAP(int, dup2, DUP2, -1, (int from, int to), (from, to))
WRAP(int, fchdir, FCHDIR, -1, (int fd), (fd))
WRAP(ssize_t, splice, SPLICE, -1,
     (int in, off_t *in_at, int out, off_t *out_at, size_t len, unsigned flags),
     (in, in_at, out, out_at, len, flags))
WRAP(ssize_t, pwrite64, PWRITE, -1, (int fd, const void *data, size_t len, off_t at),
     (fd, data, len, at))

WRAP(int, epoll_create1, EPOLL_CREATE, -1, (int flags), (flags))
WRAP(int, epoll_ctl, EPOLL_CTL, -1, (int epoll, int op, int fd, struct epoll_event *event),
     (epoll, op, fd, event))
WRAP(int, ioctl, IOCTL, -1, (int fd, unsigned long request, long arg), (fd, request, arg))
WRAP(ssize_t, recvmsg, RECVMSG, -1, (int fd, struct msghdr *message, int flags),
     (fd, message, flags))

static void assert_truth(struct fixture *f, const char *name, int nth, int r, const char *expected)
{
    if (r < 0) {
        assert_int_equal(f->err.code, -r);
        assert_true(f->err.msg[0] != '\0');
        assert_null(f->result.output);
    } else if (f->result.exit_code != 0 || !f->result.output ||
               strncmp(f->result.output, expected, strlen(expected)) != 0) {
        fail_msg("%s number %d: exit code %d, output %s", name, nth, f->result.exit_code,
                 f->result.output);
    }
}

/* Run a command again and again with the first, second, … call of each kind failing. */
static void fail_each(struct fixture *f, const char *command, const char *expected)
{
    int fired = 0;

    for (int victim = 0; victim < VICTIMS; victim++)
        for (int nth = 1; nth < 200; nth++) {
            plan->sys_errno = faults[victim].sys_errno;
            atomic_store(&plan->fired, 0);
            atomic_store(&plan->countdown, nth);
            atomic_store(&plan->victim, victim);
            int r = run(f, command);
            atomic_store(&plan->victim, -1);
            assert_truth(f, faults[victim].name, nth, r, expected);
            if (!atomic_load(&plan->fired))
                break;
            fired++;
        }
    assert_true(fired > 10);
    assert_run(f, command, 0);
}

static void every_failure_of_a_plain_command_is_survived(void **state)
{
    fail_each(*state, "echo hi; echo err >&2", "hi\n[stderr] err\n");
}

static void every_failure_to_start_the_helper_is_survived(void **state)
{
    static const enum victim victims[] = {
        SOCKETPAIR, CLONE, SENDMSG, MALLOC, MEMFD_CREATE, WRITE
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < PF_COUNT(victims); i++)
        for (int nth = 1; nth < 4; nth++) {
            pf_launcher_free(f->launcher);
            assert_int_equal(pf_launcher_new(&f->launcher, &f->err), 0);
            pf_launcher_force(f->launcher, PF_LAUNCH_HELPER, helper_path());
            plan->sys_errno = faults[victims[i]].sys_errno;
            atomic_store(&plan->countdown, nth);
            atomic_store(&plan->victim, (int)victims[i]);
            int r = run(f, "echo hi");
            atomic_store(&plan->victim, -1);
            assert_truth(f, faults[victims[i]].name, nth, r, "hi\n");
            assert_run(f, "echo hi", 0);
        }
}

static void every_failure_of_a_large_output_is_survived(void **state)
{
    struct fixture *f = *state;

    f->request.output_limit = 1000;
    fail_each(f, "head -c 1M /dev/zero | tr '\\0' x; exit 0", "xxxxxxxx");
}

static void every_failure_of_a_spool_is_survived(void **state)
{
    struct fixture *f = *state;

    f->request.output_limit = 1000;
    f->request.spool_limit = 1 << 20;
    fail_each(f, "echo hi; head -c 300k /dev/zero", "hi\n");
}

static void every_failure_of_a_long_command_is_survived(void **state)
{
    static char command[140000];

    memset(command, '#', sizeof(command) - 1);
    memcpy(command, "echo hi\n", 8);
    fail_each(*state, command, "hi\n");
}

/* Run a command on a terminal to its end. Returns 0 or an error; what it printed goes to text. */
static int run_on_terminal(struct fixture *f, const char *command, char *text, size_t size)
{
    struct pinfold_terminal_exit end = { .exit_code = -1 };
    struct pf_terminal *terminal = NULL;
    size_t used = 0;
    ssize_t len = 0;
    int r;

    memset(&f->err, 0, sizeof(f->err));
    f->request.command = command;
    f->request.command_len = strlen(command);
    r = pf_terminal_open(f->launcher, &f->request, 24, 80, &terminal, &f->err);
    if (r < 0)
        return r;
    do {
        used += (size_t)len;
        len = pf_terminal_read(terminal, text + used, size - 1 - used, 60 * PF_NS_PER_SEC, NULL,
                               &f->err);
    } while (len > 0);
    text[used] = '\0';
    r = len < 0 ? (int)len : pf_terminal_wait(terminal, 60 * PF_NS_PER_SEC, &end, NULL, &f->err);
    pf_terminal_close(terminal);
    if (r == 0)
        assert_int_equal(end.exit_code, 0);
    return r;
}

static void every_failure_of_a_terminal_is_survived(void **state)
{
    struct fixture *f = *state;
    char text[1000];
    int fired = 0;

    for (int victim = 0; victim < VICTIMS; victim++)
        /* A read that fails with EIO is how a terminal ends. */
        for (int nth = 1; victim != READ && nth < 200; nth++) {
            plan->sys_errno = faults[victim].sys_errno;
            atomic_store(&plan->fired, 0);
            atomic_store(&plan->countdown, nth);
            atomic_store(&plan->victim, victim);
            int r = run_on_terminal(f, "echo hi", text, sizeof(text));
            atomic_store(&plan->victim, -1);
            if (r < 0 ? f->err.code != -r || !f->err.msg[0] : strcmp(text, "hi\r\n") != 0)
                fail_msg("%s number %d: %d, %s, output %s", faults[victim].name, nth, r, f->err.msg,
                         text);
            if (!atomic_load(&plan->fired))
                break;
            fired++;
        }
    assert_true(fired > 10);
    assert_int_equal(run_on_terminal(f, "echo hi", text, sizeof(text)), 0);
    assert_run(f, "echo hi", 0);
}

/* Whoever sends gives up long before. */
static void let_no_order_be_sent_for_long(void)
{
    plan->more = 30;
    plan->sys_errno = ENOBUFS;
    atomic_store(&plan->countdown, 1);
    atomic_store(&plan->victim, SEND);
}

static void assert_it_was_sent_at_last(void)
{
    atomic_store(&plan->victim, -1);
    assert_true(atomic_load(&plan->countdown) < -plan->more);
    plan->more = 0;
}

static void *cancel_later(void *arg)
{
    struct fixture *f = arg;

    read_pid(f, "began");
    let_no_order_be_sent_for_long();
    pinfold_cancel_fire(f->request.cancel);
    return NULL;
}

static void *stop_later(void *arg)
{
    struct fixture *f = arg;

    read_pid(f, "began");
    let_no_order_be_sent_for_long();
    pf_launcher_stop(f->launcher);
    return NULL;
}

/* Without an order these would run until their time is over. */
static void an_order_that_cannot_be_sent_for_long_ends_a_command_all_the_same(void **state)
{
    struct fixture *f = *state;
    struct pinfold_cancel *cancel;
    pthread_t thread;

    assert_int_equal(pinfold_cancel_new(&cancel, &f->err), 0);
    f->request.cancel = cancel;
    pthread_create(&thread, NULL, cancel_later, f);
    assert_int_equal(run(f, "echo $$ > began; sleep 600"), -PINFOLD_ECANCELLED);
    pthread_join(thread, NULL);
    assert_it_was_sent_at_last();
    assert_false(f->result.timed_out);
    f->request.cancel = NULL;
    pinfold_cancel_free(cancel);

    unlinkat(f->dir_fd, "began", 0);
    pthread_create(&thread, NULL, stop_later, f);
    assert_int_equal(run(f, "echo $$ > began; sleep 600"), 0);
    pthread_join(thread, NULL);
    assert_it_was_sent_at_last();
    assert_false(f->result.timed_out);
}

static void an_order_that_cannot_be_sent_for_long_ends_what_lingers_all_the_same(void **state)
{
    struct fixture *f = *state;

    assert_run(f, "sleep 600 >/dev/null 2>&1 & echo $! > left", 0);
    let_no_order_be_sent_for_long();
    pf_launcher_stop(f->launcher);
    assert_it_was_sent_at_last();
    assert_true(is_gone(read_pid(f, "left")));
}

/* files: that this process may have open meanwhile; with none it cannot poll, either. */
static void end_terminal(struct fixture *f, rlim_t files)
{
    struct pf_terminal *terminal;
    struct rlimit limit, low;

    unlinkat(f->dir_fd, "began", 0);
    f->request.command = "echo $$ > began; sleep 600";
    f->request.command_len = strlen(f->request.command);
    assert_int_equal(pf_terminal_open(f->launcher, &f->request, 24, 80, &terminal, &f->err), 0);
    read_pid(f, "began");
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    low = (struct rlimit){ files < limit.rlim_cur ? files : limit.rlim_cur, limit.rlim_max };
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
    let_no_order_be_sent_for_long();
    pf_launcher_stop(f->launcher);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_it_was_sent_at_last();
    assert_true(is_gone(read_pid(f, "began")));
    pf_terminal_close(terminal);
}

static void an_order_that_cannot_be_sent_for_long_ends_a_terminal_all_the_same(void **state)
{
    end_terminal(*state, RLIM_INFINITY);
}

static void so_it_does_where_nothing_can_be_polled(void **state)
{
    end_terminal(*state, 0);
}

/* Nothing in the sandbox is to blame. */
static void a_report_that_cannot_be_sent_for_long_says_so_itself(void **state)
{
    struct fixture *f = *state;

    plan->more = 9; /* as often as it is tried */
    plan->sys_errno = ENOBUFS;
    atomic_store(&plan->countdown, 1);
    atomic_store(&plan->victim, SEND);
    assert_run(f, "sleep 600 >/dev/null 2>&1 & echo $! > left", 128 + SIGKILL);
    assert_it_was_sent_at_last();
    assert_string_equal(f->result.output,
                        "[killed: the system had no memory for the report that it had ended]\n");
    assert_true(is_gone(read_pid(f, "left")));
}

/* How often a command, its start included, receives something. */
static int count_recv(struct fixture *f, const char *command)
{
    atomic_store(&plan->countdown, INT_MAX);
    atomic_store(&plan->victim, RECV);
    assert_run(f, command, 0);
    atomic_store(&plan->victim, -1);
    return INT_MAX - atomic_load(&plan->countdown);
}

/* But for now and then. */
static void a_start_does_not_ask_every_supervisor_that_lingers(void **state)
{
    enum { LINGERING = 60 };
    struct fixture *f = *state;
    int least = INT_MAX;

    for (int i = 0; i < LINGERING; i++)
        assert_run(f, "sleep 600 >/dev/null 2>&1 &", 0);
    for (int tries = 0; tries < 50 && least >= LINGERING; tries++) {
        int count = count_recv(f, "true");
        least = count < least ? count : least;
    }
    assert_in_range(least, 1, LINGERING / 2);
    assert_true(pf_launcher_count(f->launcher) >= LINGERING);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_BOTH_MODES(every_failure_of_a_plain_command_is_survived),
        IN_MODE(every_failure_to_start_the_helper_is_survived, "by the helper", PF_LAUNCH_HELPER),
        IN_BOTH_MODES(every_failure_of_a_large_output_is_survived),
        IN_BOTH_MODES(every_failure_of_a_spool_is_survived),
        IN_BOTH_MODES(every_failure_of_a_long_command_is_survived),
        IN_BOTH_MODES(every_failure_of_a_terminal_is_survived),
        IN_BOTH_MODES(an_order_that_cannot_be_sent_for_long_ends_a_command_all_the_same),
        IN_BOTH_MODES(an_order_that_cannot_be_sent_for_long_ends_what_lingers_all_the_same),
        IN_BOTH_MODES(an_order_that_cannot_be_sent_for_long_ends_a_terminal_all_the_same),
        IN_BOTH_MODES(so_it_does_where_nothing_can_be_polled),
        IN_MODE(a_report_that_cannot_be_sent_for_long_says_so_itself, "direct", PF_LAUNCH_DIRECT),
        IN_BOTH_MODES(a_start_does_not_ask_every_supervisor_that_lingers),
    };

    plan = mmap(NULL, sizeof(*plan), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (plan == MAP_FAILED)
        return 1;
    atomic_store(&plan->victim, -1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
