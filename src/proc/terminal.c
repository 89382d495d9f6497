/* SPDX-License-Identifier: Apache-2.0 */
#include "proc/terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <termios.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/poll.h"
#include "proc/command.h"
#include "proc/launcher.h"

#define OPEN_LIMIT_NS (30 * PF_NS_PER_SEC)  /* a machine that takes longer is broken */
#define CLOSE_LIMIT_NS (10 * PF_NS_PER_SEC) /* a supervisor takes less at worst */
#define LATE_NS (1 * PF_NS_PER_SEC)         /* after the deadline: it may have been stopped */

/* What is read at most once the command has ended. The kernel holds less than this of its output;
 * more comes only from what opened the terminal anew. */
#define TAIL_BYTES ((uint64_t)128 * 1024)

struct pf_terminal {
    struct pf_launcher *launcher;
    struct pf_live *live;
    int master; /* does not block */
    int events; /* for others to poll: both of master and the control socket */
    pid_t owner;
    int64_t began, nudge_at;

    pthread_mutex_t lock;         /* of the rest; held over no wait */
    struct pf_super_message exit; /* event is 0 until it came */
    bool hung_up;                 /* the supervisor is gone */
    bool lost;                    /* and was killed from inside */
    bool ended;                   /* the output is */
    uint64_t bytes, tail;         /* of output: all, and since exit came */
    int64_t duration_ns;
};

/* ---- what the supervisor says ---- */

/* Under the lock. The message that the leader is gone stays in the socket until the close: so the
 * socket is readable from then on, and nobody waits for what another thread has taken. */
static void hear(struct pf_terminal *terminal, bool take_all)
{
    struct pf_super_message message;

    while (!terminal->hung_up) {
        ssize_t len =
                recv(terminal->live->control, &message, sizeof(message), MSG_DONTWAIT | MSG_PEEK);
        if (len < 0 && (errno == EINTR || errno == ECONNRESET))
            continue; /* the reset comes once, what was said before after it */
        if (len < 0 && errno == EAGAIN)
            return;
        if (len != (ssize_t)sizeof(message)) {
            terminal->hung_up = true;
            if (terminal->exit.event != 0)
                return;
            terminal->duration_ns = pf_clock_now() - terminal->began;
            terminal->lost = len == 0 && pf_launcher_lives_on(terminal->launcher);
            if (terminal->lost)
                terminal->exit.status = SIGKILL;
            return;
        }
        if (message.event == PF_EVENT_EXITED && terminal->exit.event == 0) {
            terminal->exit = message;
            terminal->duration_ns = pf_clock_now() - terminal->began;
        }
        if (message.event == PF_EVENT_EXITED && !take_all)
            return;
        if (message.event == PF_EVENT_STARTED)
            terminal->live->supervisor = message.status;
        (void)!recv(terminal->live->control, &message, sizeof(message), MSG_DONTWAIT);
    }
}

/* Whether the command is over. */
static bool is_over(struct pf_terminal *terminal)
{
    bool over;

    pthread_mutex_lock(&terminal->lock);
    hear(terminal, false);
    over = terminal->exit.event != 0 || terminal->hung_up;
    pthread_mutex_unlock(&terminal->lock);
    return over;
}

/* Wait until the master is ready for events (0: never mind it), the command is over, or time or
 * patience is. Returns 0, -PINFOLD_ETIMEOUT or -PINFOLD_ECANCELLED. */
static int wait_for(struct pf_terminal *terminal, short events, int64_t deadline,
                    struct pinfold_cancel *cancel, const char *what, struct pinfold_error *err)
{
    int64_t now = pf_clock_now(), wake = deadline;
    struct pollfd fds[] = {
        { terminal->live->control, POLLIN, 0 },
        { events ? terminal->master : -1, events, 0 },
        { pf_cancel_fd(cancel), POLLIN, 0 },
    };

    if (pf_cancel_check(cancel, NULL) < 0)
        return pf_fail(err, PINFOLD_ECANCELLED, "%s: cancelled", what);
    if (now >= deadline)
        return pf_fail(err, PINFOLD_ETIMEOUT, "%s: not within the time given", what);
    if (terminal->nudge_at < wake) {
        if (now >= terminal->nudge_at) /* the supervisor should have ended the command */
            pf_live_nudge(terminal->live);
        wake = now >= terminal->nudge_at ? now + PF_NUDGE_NS : terminal->nudge_at;
    }
    pf_poll(fds, PF_COUNT(fds), pf_clock_poll_ms(wake < deadline ? wake : deadline));
    return 0;
}

/* ---- opening ---- */

/* Receive a message and, of PF_EVENT_TERMINAL, the master. Returns false at the end. */
static bool receive(int control, struct pf_super_message *message, int *ret_master)
{
    _Alignas(struct cmsghdr) char space[CMSG_SPACE(sizeof(int))];
    struct iovec iov = { message, sizeof(*message) };
    struct msghdr header = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof(space)
    };
    struct cmsghdr *part;
    ssize_t len;

    do
        len = recvmsg(control, &header, MSG_CMSG_CLOEXEC);
    while (len < 0 && (errno == EINTR || errno == ECONNRESET));
    if (len != (ssize_t)sizeof(*message))
        return false;
    part = CMSG_FIRSTHDR(&header);
    if (part && part->cmsg_level == SOL_SOCKET && part->cmsg_type == SCM_RIGHTS)
        memcpy(ret_master, CMSG_DATA(part), sizeof(int));
    return true;
}

static int await_master(struct pf_terminal *terminal, struct pinfold_cancel *cancel,
                        struct pinfold_error *err)
{
    struct pollfd fds[] = { { terminal->live->control, POLLIN, 0 },
                            { pf_cancel_fd(cancel), POLLIN, 0 } };
    int64_t deadline = pf_clock_deadline(OPEN_LIMIT_NS);
    struct pf_super_message message;

    while (pf_clock_now() < deadline) {
        if (pf_cancel_check(cancel, NULL) < 0)
            return pf_fail(err, PINFOLD_ECANCELLED, "open a terminal: cancelled");
        if (pf_poll(fds, PF_COUNT(fds), (int)(PF_NUDGE_NS / PF_NS_PER_MS)) <= 0) {
            pf_live_nudge(terminal->live);
            continue;
        }
        if (!fds[0].revents)
            continue;
        if (!receive(terminal->live->control, &message, &terminal->master)) {
            /* The command was very quick to kill it. */
            if (terminal->master >= 0 && pf_launcher_lives_on(terminal->launcher))
                return 0;
            pf_launcher_doubt(terminal->launcher);
            return pf_fail(err, PINFOLD_EBACKEND,
                           "open a terminal: its supervisor died (was it killed from outside?)");
        }
        if (message.event == PF_EVENT_FAILED)
            return pf_command_explain(&message, err);
        if (message.event == PF_EVENT_STARTED)
            terminal->live->supervisor = message.status;
        /* The kernel may have had no descriptor left for us. */
        if (message.event == PF_EVENT_TERMINAL && terminal->master < 0)
            return pf_fail_os(err, EMFILE, "receive a terminal");
        if (message.event == PF_EVENT_RUNNING)
            return 0;
    }
    return pf_fail(err, PINFOLD_EBACKEND, "open a terminal: its supervisor does not answer");
}

static int make_events(struct pf_terminal *terminal, struct pinfold_error *err)
{
    struct epoll_event event = { .events = EPOLLIN };

    terminal->events = epoll_create1(EPOLL_CLOEXEC);
    if (terminal->events < 0 ||
        epoll_ctl(terminal->events, EPOLL_CTL_ADD, terminal->master, &event) < 0 ||
        epoll_ctl(terminal->events, EPOLL_CTL_ADD, terminal->live->control, &event) < 0)
        return pf_fail_os(err, errno, "make a descriptor to poll for a terminal");
    return 0;
}

static void free_terminal(struct pf_terminal *terminal)
{
    if (terminal->master >= 0)
        close(terminal->master);
    if (terminal->events >= 0)
        close(terminal->events);
    pthread_mutex_destroy(&terminal->lock);
    free(terminal);
}

static int start(struct pf_terminal *terminal, const struct pf_run_request *request, uint16_t rows,
                 uint16_t cols, struct pinfold_error *err)
{
    static const char *const nothing[] = { NULL };
    PF_CLEANUP(pf_command_done) struct pf_command command;
    int r;

    pf_command_init(&command);
    r = pf_command_prepare(request, &command, err);
    if (r < 0)
        return r;
    struct pf_super_spec spec = {
        .read_end = { -1, -1 },
        .write_end = { -1, -1 },
        .cwd = request->cwd_fd,
        .cwd_path = request->cwd_path,
        .script = command.script,
        .deadline =
                request->timeout_ns == PF_NEVER ? PF_NEVER : pf_clock_deadline(request->timeout_ns),
        .search = request->argv != NULL,
        .terminal = true,
        .rows = rows,
        .cols = cols,
        .slave = -1,
        .null = -1,
        .retire = -1,
        .argv = request->argv ? request->argv : command.shell,
        .envp = request->envp ? request->envp : nothing,
    };
    terminal->nudge_at = spec.deadline < PF_NEVER - LATE_NS ? spec.deadline + LATE_NS : PF_NEVER;
    return pf_launcher_start(terminal->launcher, &spec, &terminal->live, err);
}

int pf_terminal_open(struct pf_launcher *launcher, const struct pf_run_request *request,
                     uint16_t rows, uint16_t cols, struct pf_terminal **ret,
                     struct pinfold_error *err)
{
    const char *nothing = pf_command_nothing(request);
    struct pf_terminal *terminal;
    int r = pf_cancel_check(request->cancel, err);

    if (r < 0)
        return r;
    if (nothing)
        return pf_fail(err, PINFOLD_EVALUE, "open a terminal: %s", nothing);
    terminal = calloc(1, sizeof(*terminal));
    if (!terminal)
        return pf_fail_nomem(err);
    pthread_mutex_init(&terminal->lock, NULL);
    terminal->launcher = launcher;
    terminal->master = terminal->events = -1;
    terminal->owner = getpid();
    terminal->began = pf_clock_now();
    r = start(terminal, request, rows, cols, err);
    if (r < 0) {
        free_terminal(terminal);
        return r;
    }
    r = await_master(terminal, request->cancel, err);
    if (r == 0)
        r = make_events(terminal, err);
    pf_launcher_keep(launcher, terminal->live);
    if (r < 0)
        pf_terminal_close(terminal);
    else
        *ret = terminal;
    return r;
}

/* ---- use ---- */

/* Account for what a read(2) gave. Returns false when the output has ended. */
static bool note_output(struct pf_terminal *terminal, ssize_t len, bool over)
{
    bool more;

    pthread_mutex_lock(&terminal->lock);
    if (len > 0) {
        terminal->bytes += (uint64_t)len;
        terminal->tail += over ? (uint64_t)len : 0;
    }
    if (len <= 0 || terminal->tail >= TAIL_BYTES)
        terminal->ended = true;
    more = !terminal->ended || len > 0;
    pthread_mutex_unlock(&terminal->lock);
    return more;
}

static bool has_ended(struct pf_terminal *terminal)
{
    bool ended;

    pthread_mutex_lock(&terminal->lock);
    ended = terminal->ended;
    pthread_mutex_unlock(&terminal->lock);
    return ended;
}

ssize_t pf_terminal_read(struct pf_terminal *terminal, void *buffer, size_t size,
                         int64_t timeout_ns, struct pinfold_cancel *cancel,
                         struct pinfold_error *err)
{
    int64_t deadline = pf_clock_deadline(timeout_ns);
    int r = 0;

    while (r == 0) {
        bool over = is_over(terminal);
        ssize_t len;
        if (has_ended(terminal))
            return 0;
        len = read(terminal->master, buffer, size);
        if (len > 0) {
            note_output(terminal, len, over);
            return len;
        }
        if (len < 0 && errno == EINTR)
            continue;
        /* A terminal that nobody holds any more gives EIO; so does one that was hung up. One that
         * something in the background still holds is of no interest when its command is over. */
        if (len == 0 || errno == EIO || (errno == EAGAIN && over)) {
            note_output(terminal, 0, over);
            return 0;
        }
        if (errno != EAGAIN)
            return pf_fail_os(err, errno, "read from a terminal");
        r = wait_for(terminal, POLLIN, deadline, cancel, "read from a terminal", err);
    }
    return r;
}

ssize_t pf_terminal_write(struct pf_terminal *terminal, const void *data, size_t len,
                          int64_t timeout_ns, struct pinfold_cancel *cancel,
                          struct pinfold_error *err)
{
    int64_t deadline = pf_clock_deadline(timeout_ns);
    const char *from = data;
    size_t done = 0;
    int r = 0;

    while (r == 0 && done < len) {
        ssize_t part;
        if (is_over(terminal)) {
            r = pf_fail_os(err, EPIPE, "write to a terminal whose command has ended");
            break;
        }
        part = write(terminal->master, from + done, len - done);
        if (part > 0)
            done += (size_t)part;
        else if (part == 0 || errno == EAGAIN)
            r = wait_for(terminal, POLLOUT, deadline, cancel, "write to a terminal",
                         done ? NULL : err);
        else if (errno != EINTR)
            r = pf_fail_os(done ? NULL : err, errno, "write to a terminal");
    }
    return done > 0 || r == 0 ? (ssize_t)done : r;
}

int pf_terminal_resize(struct pf_terminal *terminal, uint16_t rows, uint16_t cols,
                       struct pinfold_error *err)
{
    struct winsize size = { .ws_row = rows, .ws_col = cols };

    if (ioctl(terminal->master, TIOCSWINSZ, &size) < 0)
        return pf_fail_os(err, errno, "resize a terminal");
    return 0;
}

int pf_terminal_signal(struct pf_terminal *terminal, int signal, struct pinfold_error *err)
{
    /* The kernel knows which group that is. Its number, which we could ask for and use kill(2) on,
     * may be another's by then. */
    if (signal != SIGINT && signal != SIGQUIT && signal != SIGTSTP)
        return pf_fail(err, PINFOLD_EVALUE,
                       "a terminal sends SIGINT, SIGQUIT and SIGTSTP, not signal %d", signal);
    if (ioctl(terminal->master, TIOCSIG, signal) < 0)
        return pf_fail_os(err, errno, "send a signal through a terminal");
    return 0;
}

void pf_terminal_kill(struct pf_terminal *terminal)
{
    if (terminal->owner == getpid()) /* a fork has only copies */
        pf_live_order(terminal->live, PF_ORDER_KILL);
}

int pf_terminal_wait(struct pf_terminal *terminal, int64_t timeout_ns,
                     struct pinfold_terminal_exit *ret, struct pinfold_cancel *cancel,
                     struct pinfold_error *err)
{
    int64_t deadline = pf_clock_deadline(timeout_ns);
    int r = 0;

    while (!is_over(terminal)) {
        r = wait_for(terminal, 0, deadline, cancel, "wait for the command of a terminal", err);
        if (r < 0)
            return r;
    }
    pthread_mutex_lock(&terminal->lock);
    if (terminal->exit.event == 0 && !terminal->lost)
        r = pf_fail(err, PINFOLD_EBACKEND,
                    "the supervisor of a terminal died (was it killed from outside?)");
    else
        *ret = (struct pinfold_terminal_exit){
            .exit_code = pf_command_exit_code(&terminal->exit),
            .timed_out = terminal->exit.cause == PF_CAUSE_DEADLINE,
            .supervisor_lost = terminal->lost,
            .killed = terminal->exit.cause != PF_CAUSE_NONE &&
                      terminal->exit.cause != PF_CAUSE_DEADLINE,
            .limit = terminal->exit.cause == PF_CAUSE_DEADLINE ? PINFOLD_LIMIT_TIME
                                                               : PINFOLD_LIMIT_NONE,
            .output_bytes = terminal->bytes,
            .duration_ns = terminal->duration_ns,
            .cpu_ns = terminal->exit.cpu_ns,
            .peak_bytes = terminal->exit.peak_bytes,
        };
    pthread_mutex_unlock(&terminal->lock);
    return r;
}

int pf_terminal_fd(const struct pf_terminal *terminal)
{
    return terminal->events;
}

/* Until the supervisor has seen the last process off. */
static void await_end(struct pf_terminal *terminal)
{
    struct pollfd control = { terminal->live->control, POLLIN, 0 };
    int64_t deadline = pf_clock_deadline(CLOSE_LIMIT_NS);

    while (pf_clock_now() < deadline) {
        hear(terminal, true);
        if (terminal->hung_up)
            return;
        pf_live_nudge(terminal->live);
        pf_poll(&control, 1, (int)(PF_NUDGE_NS / PF_NS_PER_MS));
    }
}

void pf_terminal_close(struct pf_terminal *terminal)
{
    struct pf_launcher *launcher = terminal->launcher;
    struct pf_live *live = terminal->live;

    pf_terminal_kill(terminal);
    if (terminal->owner == getpid())
        await_end(terminal);
    free_terminal(terminal);
    pf_launcher_give_back(launcher, live);
}
