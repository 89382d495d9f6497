/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pinfold-init: the first process of a jail. It performs the plan of its owner, locks itself in,
 * and then starts a supervisor for each request. It ends when the owner hangs up or dies, and the
 * kernel ends everything inside with it.
 */
#include "jail/init.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "proc/serve.h"

static pid_t supervisors[4096];
static size_t supervisor_count;

static size_t put(char *to, size_t at, size_t max, const char *text)
{
    while (*text && at + 1 < max)
        to[at++] = *text++;
    to[at] = '\0';
    return at;
}

static void send_message(const struct pf_init_message *message, int fd)
{
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))] = { 0 };
    struct iovec iov = { (void *)(uintptr_t)message, sizeof(*message) };
    struct msghdr header = { .msg_iov = &iov, .msg_iovlen = 1 };

    if (fd >= 0) {
        header.msg_control = control;
        header.msg_controllen = sizeof(control);
        struct cmsghdr *part = CMSG_FIRSTHDR(&header);
        part->cmsg_level = SOL_SOCKET;
        part->cmsg_type = SCM_RIGHTS;
        part->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(part), &fd, sizeof(int));
    }
    (void)!sendmsg(PF_INIT_SOCKET, &header, MSG_NOSIGNAL);
}

static void say(enum pf_init_event event, enum pinfold_code code, const char *step,
                const char *object)
{
    struct pf_init_message message = { .event = event,
                                       .error = { .code = code, .sys_errno = errno } };
    char *text = message.error.msg;
    size_t at = put(text, 0, sizeof(message.error.msg), step);

    if (object[0])
        at = put(text, at, sizeof(message.error.msg), " ");
    put(text, at, sizeof(message.error.msg), object);
    send_message(&message, -1);
}

void init_fail(const char *step, const char *object)
{
    say(PF_INIT_FAILED, PINFOLD_EOS, step, object);
    _exit(1);
}

void init_reject(const char *step, const char *object)
{
    say(PF_INIT_FAILED, PINFOLD_EVALUE, step, object);
    _exit(1);
}

void init_no_overlay(const char *step, const char *object)
{
    say(PF_INIT_NO_OVERLAY, PINFOLD_EOS, step, object);
    _exit(1);
}

void init_note(const char *step, const char *object)
{
    say(PF_INIT_NOTE, PINFOLD_EOS, step, object);
}

void init_send(enum pf_init_event event, int fd)
{
    send_message(&(struct pf_init_message){ .event = event }, fd);
}

const char *init_target(const struct pf_op *op)
{
    return (const char *)(op + 1);
}

const char *init_text(const struct pf_op *op)
{
    return init_target(op) + op->target_len;
}

void init_each(const struct pf_plan *plan, size_t from, size_t to,
               void (*use)(const struct pf_op *op))
{
    const char *start = (const char *)plan;

    for (size_t at = from; at < to;) {
        const struct pf_op *op = (const void *)(start + at);
        use(op);
        at += op->size;
    }
}

static const struct pf_plan *map_plan(void)
{
    struct stat st;
    const struct pf_plan *plan;

    if (fstat(PF_INIT_PLAN, &st) < 0)
        init_fail("read the plan", "");
    plan = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, PF_INIT_PLAN, 0);
    if (plan == MAP_FAILED)
        init_fail("read the plan", "");
    close(PF_INIT_PLAN);
    return plan;
}

static bool is_supervisor(pid_t pid)
{
    for (size_t i = 0; i < supervisor_count; i++)
        if (supervisors[i] == pid)
            return true;
    return false;
}

static void forget(pid_t pid)
{
    for (size_t i = 0; i < supervisor_count; i++)
        if (supervisors[i] == pid) {
            supervisors[i] = supervisors[--supervisor_count];
            return;
        }
}

/* Children that are no supervisors lost theirs, which somebody inside must have killed: nobody
 * would ever end them. Returns whether there were any. */
static bool kill_orphans(void)
{
    static pid_t pids[4096];
    size_t count = pf_children(pids, PF_COUNT(pids), false);
    bool found = false;

    for (size_t i = 0; i < count; i++)
        if (!is_supervisor(pids[i])) {
            kill(pids[i], SIGKILL);
            found = true;
        }
    return found;
}

/* Returns whether orphans are left, to be looked after again soon. */
static bool reap(void)
{
    int status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0) {
        if (WIFSTOPPED(status)) /* a supervisor that obeys somebody else */
            kill(pid, SIGKILL);
        else
            forget(pid);
    }
    return kill_orphans();
}

static void start(const struct pf_wire_request *request, const int *fds)
{
    pid_t pid;

    /* Through a directory of the host's tree one could walk out by its "..". */
    if (request->has_cwd) {
        pf_super_fail(fds[PF_WIRE_CONTROL], EPERM, PF_STAGE_CWD);
        return;
    }
    if (supervisor_count == PF_COUNT(supervisors)) {
        pf_super_fail(fds[PF_WIRE_CONTROL], EAGAIN, PF_STAGE_FORK);
        return;
    }
    pid = fork();
    if (pid == 0)
        pf_serve(request, fds);
    if (pid < 0)
        pf_super_fail(fds[PF_WIRE_CONTROL], errno, PF_STAGE_FORK);
    else
        supervisors[supervisor_count++] = pid;
}

static void serve(int signals)
{
    struct pollfd fds[] = { { PF_INIT_SOCKET, POLLIN, 0 },
                            { signals, POLLIN, 0 },
                            { PF_INIT_OWNER, POLLIN, 0 } };
    struct signalfd_siginfo info;
    struct pf_wire_request request;
    int passed[PF_WIRE_MAX], count;
    bool orphans = false;

    while (true) {
        if (poll(fds, PF_COUNT(fds), orphans ? 1 : -1) < 0 && errno != EINTR)
            return;
        if (fds[2].revents)
            return;
        if (fds[1].revents)
            (void)!read(signals, &info, sizeof(info));
        if (fds[1].revents || orphans)
            orphans = reap();
        if (!fds[0].revents)
            continue;
        count = pf_serve_receive(PF_INIT_SOCKET, &request, passed);
        if (count < 0)
            return;
        if (count > 0)
            start(&request, passed);
        while (count > 0)
            close(passed[--count]);
    }
}

/* Blocked signals do not reach PID 1 in any way: not from inside, where it could be meant as an
 * attack, and from outside only SIGKILL. */
static int take_signals(void)
{
    sigset_t set;
    int fd;

    sigfillset(&set);
    sigprocmask(SIG_SETMASK, &set, NULL);
    signal(SIGCHLD, SIG_DFL);
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (fd < 0)
        init_fail("make a descriptor for signals", "");
    return fd;
}

int main(void)
{
    const struct pf_plan *plan;
    int signals, proxy;

    if (getpid() != 1 || fcntl(PF_INIT_SOCKET, F_SETFD, FD_CLOEXEC) < 0 ||
        fcntl(PF_INIT_PLAN, F_SETFD, FD_CLOEXEC) < 0 ||
        fcntl(PF_INIT_OWNER, F_SETFD, FD_CLOEXEC) < 0) {
        static const char text[] = PF_INIT_NAME ": this program is started by pinfold itself\n";
        (void)!write(STDERR_FILENO, text, sizeof(text) - 1);
        return 2;
    }
    close_range(0, 2, 0);
    prctl(PR_SET_NAME, PF_INIT_NAME, 0, 0, 0);
    umask(0);
    signals = take_signals();
    plan = map_plan();
    init_build(plan);
    if (sethostname("pinfold", 7) < 0)
        init_fail("name the sandbox", "");
    proxy = init_network(plan);
    umask(022);
    init_lock(plan);
    init_send(PF_INIT_READY, proxy);
    if (proxy >= 0)
        close(proxy);
    munmap((void *)(uintptr_t)plan, plan->size);
    serve(signals);
    return 0;
}
