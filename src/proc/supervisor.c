/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of a supervisor: start the leader, wait for its end, the deadline, an order or the end
 * of the owner; see that nothing outlives what it should not. Being a child subreaper it is the
 * parent of every descendant whose own parent is gone, so "no children left" means "all gone".
 */
#include "proc/super.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "proc/wire.h"

#define TERM_GRACE_NS (500 * PF_NS_PER_MS) /* between SIGTERM and SIGKILL */
#define KILL_LIMIT_NS (5 * PF_NS_PER_SEC)  /* then we say that something refuses to die */
enum { DEAF_MS = 10 };                     /* between looks where nothing can be waited for */
enum { FILES_ENOUGH = 32 };                /* that a supervisor, or who starts them, has open */

enum phase {
    RUNNING,     /* the leader lives */
    LINGERING,   /* it exited, descendants live */
    TERMINATING, /* SIGTERM is out */
    KILLING,
};

struct super {
    const struct pf_super_spec *spec;
    enum phase phase;
    enum pf_super_cause cause;
    pid_t leader;
    int status;
    bool leader_gone, exit_told, childless;
    bool over;
    int64_t wake;    /* when the present phase ends */
    uint64_t files;  /* see pf_is_deaf() */
    unsigned rounds; /* of killing */
    int64_t cpu_ns;  /* of what was reaped, with what that had waited for */
    uint64_t peak_bytes;
    int control, signals, owner, null;
    int slave; /* held until the leader is gone, so that its terminal does not end before it */
    int drain[2];
};

/* Returns whether it could be said. A lost owner is noticed elsewhere. */
static bool tell(const struct super *super, struct pf_super_message message)
{
    return pf_wire_tell(super->control, &message, sizeof(message), 0);
}

void pf_super_fail(int control, int sys_errno, enum pf_super_stage stage)
{
    struct pf_super_message message = { .event = PF_EVENT_FAILED,
                                        .sys_errno = sys_errno,
                                        .stage = stage };

    pf_wire_tell(control, &message, sizeof(message), 0);
}

static uint64_t files_allowed(void)
{
    struct rlimit limit;

    return getrlimit(RLIMIT_NOFILE, &limit) < 0 ? RLIM_INFINITY : limit.rlim_cur;
}

uint64_t pf_files_wanted(void)
{
    uint64_t allowed = files_allowed();

    return allowed < FILES_ENOUGH ? allowed : FILES_ENOUGH;
}

bool pf_is_deaf(uint64_t wanted)
{
    return files_allowed() < wanted;
}

static void close_span(unsigned first, unsigned last)
{
    struct rlimit limit;

    if (first > last || close_range(first, last, 0) == 0)
        return;
    /* Before Linux 5.9. */
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur > 1 << 20)
        limit.rlim_cur = 1 << 20;
    for (unsigned fd = first; fd <= last && fd < limit.rlim_cur; fd++)
        close((int)fd);
}

/* Close every descriptor from next on but the listed ones; the list is sorted in place. */
static void close_others(unsigned next, int *keep, size_t count)
{
    for (size_t i = 1; i < count; i++)
        for (size_t j = i; j > 0 && keep[j - 1] > keep[j]; j--) {
            int t = keep[j];
            keep[j] = keep[j - 1];
            keep[j - 1] = t;
        }
    for (size_t i = 0; i < count; i++) {
        if (keep[i] < 0)
            continue;
        if ((unsigned)keep[i] > next)
            close_span(next, (unsigned)keep[i] - 1);
        next = (unsigned)keep[i] + 1;
    }
    close_span(next, ~0U);
}

/* Own only what we need, and nothing where the leader's stdio (and script) will be: hosts may have
 * closed their own descriptors 0 to 2. */
static bool set_descriptors(struct pf_super_spec *spec)
{
    int *slots[] = { &spec->control,      &spec->read_end[0],  &spec->read_end[1],
                     &spec->write_end[0], &spec->write_end[1], &spec->cwd,
                     &spec->script };
    int reserved = spec->script >= 0 ? PF_SCRIPT_FD : STDERR_FILENO;
    int keep[PF_COUNT(slots)];

    for (size_t i = 0; i < PF_COUNT(slots); i++) {
        if (*slots[i] >= 0 && *slots[i] <= reserved) {
            int moved = fcntl(*slots[i], F_DUPFD_CLOEXEC, reserved + 1);
            if (moved < 0)
                return false;
            *slots[i] = moved;
        }
        keep[i] = *slots[i];
    }
    close_others(spec->null == STDIN_FILENO ? STDERR_FILENO + 1 : STDIN_FILENO, keep,
                 PF_COUNT(keep));
    return true;
}

static void signal_all(int sig, bool deep)
{
    static pid_t pids[4096]; /* a process of its own, one thread */
    size_t count = pf_children(pids, PF_COUNT(pids), deep);
    pid_t own = getpgrp();

    for (size_t i = 0; i < count; i++) {
        /* Only descendants can be in the group of a descendant, since each leader has a session of
         * its own; and a whole group cannot run away from a signal by forking. */
        pid_t group = getpgid(pids[i]);
        if (group > 1 && group != own)
            kill(-group, sig);
        kill(pids[i], sig);
    }
}

static void begin_termination(struct super *super, enum pf_super_cause cause)
{
    if (super->phase >= TERMINATING)
        return;
    super->cause = cause;
    if (super->leader_gone) {
        signal_all(SIGTERM, true);
    } else {                       /* not reaped, so that the number is still its own */
        if (super->spec->terminal) /* as a line that breaks: interactive shells ignore SIGTERM */
            kill(-super->leader, SIGHUP);
        kill(-super->leader, SIGTERM);
        kill(-super->leader, SIGCONT); /* a stopped process does not see SIGTERM */
    }
    super->phase = TERMINATING;
    super->wake = pf_clock_deadline(TERM_GRACE_NS);
}

/* One round of SIGKILL. Children cannot be mistaken, as only we reap them. Deeper descendants could
 * in theory be gone and their numbers in use again, so they are aimed at only when round after
 * round brings up new ones. */
static void kill_round(struct super *super)
{
    enum { PATIENCE = 16 };

    if (!super->leader_gone)
        kill(-super->leader, SIGKILL);
    signal_all(SIGKILL, super->rounds++ >= PATIENCE);
}

static int64_t to_ns(struct timeval time)
{
    return (int64_t)time.tv_sec * PF_NS_PER_SEC + (int64_t)time.tv_usec * (PF_NS_PER_SEC / 1000000);
}

static void add_usage(struct super *super, const struct rusage *usage)
{
    uint64_t peak = (uint64_t)usage->ru_maxrss * 1024;

    super->cpu_ns += to_ns(usage->ru_utime) + to_ns(usage->ru_stime);
    if (peak > super->peak_bytes)
        super->peak_bytes = peak;
}

/* A child that asked to be traced (PTRACE_TRACEME) has made a tracer of us: each of its signals
 * stops it, and wait tells us so unasked. Let it go on untraced. The trap of its next execve is for
 * tracers only. */
static void release(pid_t pid, int sig)
{
    if (ptrace(PTRACE_DETACH, pid, NULL, (void *)(intptr_t)(sig == SIGTRAP ? 0 : sig)) < 0)
        kill(pid, SIGKILL);
}

static void reap(struct super *super)
{
    struct rusage usage;
    int status;
    pid_t pid;

    while ((pid = wait4(-1, &status, WNOHANG, &usage)) > 0) {
        if (WIFSTOPPED(status)) {
            release(pid, WSTOPSIG(status));
            continue;
        }
        add_usage(super, &usage);
        if (pid == super->leader) {
            super->leader_gone = true;
            super->status = status;
        }
    }
    super->childless = pid < 0 && errno == ECHILD;
}

/* Where none can be seen the kernel still tells whether there is one. */
static unsigned count_descendants(const struct super *super)
{
    static pid_t pids[4096];
    size_t count = pf_children(pids, PF_COUNT(pids), true);

    return count == 0 && !super->childless ? 1 : (unsigned)count;
}

/* Freeing the inode of a directory that was removed can take longer than all of a short command,
 * and whoever holds it last pays for it: this process, when the owner has gone. */
static void stay(const struct super *super)
{
    struct pollfd fds[] = { { super->control, 0, 0 }, /* only the hang-up */
                            { super->owner, POLLIN, 0 } };
    unsigned char order;

    while (super->control >= 0 && super->owner >= 0 && poll(fds, PF_COUNT(fds), -1) < 0 &&
           errno == EINTR) {
    }
    if (super->spec->at_end && recv(super->control, &order, sizeof(order), MSG_DONTWAIT) == 1)
        super->spec->at_end(super->spec->at_end_arg);
}

static bool tell_end(const struct super *super, enum pf_super_event event, unsigned left)
{
    return tell(super,
                (struct pf_super_message){ .event = event,
                                           .cause = super->cause,
                                           .status = super->leader_gone ? super->status : SIGKILL,
                                           .left = left,
                                           .cpu_ns = super->cpu_ns,
                                           .peak_bytes = super->peak_bytes });
}

static void finish(struct super *super, unsigned left)
{
    bool told = tell_end(super, super->exit_told ? PF_EVENT_GONE : PF_EVENT_EXITED, left);

    super->over = true;
    if (super->spec->stays && told && !super->exit_told)
        stay(super);
    /* With children that are not its own command's it could not tell when that is over, and a deaf
     * one is not for the next. */
    if (left > 0 || super->exit_told || super->cause == PF_CAUSE_DEAF)
        _exit(0);
}

/* Others run on after the leader, for as long as they like; but not where the owner cannot be told,
 * which would wait for ever: our own end says so. */
static void linger(struct super *super)
{
    int retire = super->spec->retire;
    pid_t self = getpid();

    super->exit_told = tell_end(super, PF_EVENT_EXITED, 1);
    if (!super->exit_told) {
        begin_termination(super, PF_CAUSE_MUTE);
        return;
    }
    super->phase = LINGERING;
    super->wake = PF_NEVER;
    if (retire >= 0)
        (void)!write(retire, &self, sizeof(self));
}

/* After every wait: what do the children that are left mean? */
static void look_around(struct super *super, int64_t now)
{
    reap(super);
    if (super->leader_gone && super->slave >= 0) {
        close(super->slave);
        super->slave = -1;
    }
    if (super->childless) {
        finish(super, 0);
        return;
    }
    if (super->phase == RUNNING && super->leader_gone)
        linger(super);
    if (super->phase == RUNNING && now >= super->wake)
        begin_termination(super, PF_CAUSE_DEADLINE);
    if (super->phase == TERMINATING &&
        (now >= super->wake ||
         (!super->exit_told && super->leader_gone && kill(-super->leader, 0) < 0))) {
        super->phase = KILLING;
        super->wake = pf_clock_deadline(KILL_LIMIT_NS);
    }
    if (super->phase == KILLING) {
        if (now >= super->wake)
            finish(super, count_descendants(super));
        kill_round(super);
    }
}

static void obey(struct super *super)
{
    unsigned char order = 0;
    ssize_t len = recv(super->control, &order, sizeof(order), MSG_DONTWAIT);

    if (len < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (len <= 0) { /* the owner is gone */
        begin_termination(super, PF_CAUSE_KILLED);
        close(super->control);
        super->control = -1;
    } else if (order == PF_ORDER_KILL) {
        begin_termination(super, PF_CAUSE_KILLED);
    } else if (order == PF_ORDER_DETACH) {
        super->drain[0] = super->spec->read_end[0];
        super->drain[1] = super->spec->read_end[1];
        super->null = open("/dev/null", O_WRONLY | O_CLOEXEC);
        tell(super, (struct pf_super_message){ .event = PF_EVENT_COUNT,
                                               .left = count_descendants(super) });
    }
}

/* A background process must be able to write for as long as it lives. */
static void drain(struct super *super, int *fd)
{
    char scrap[4096];
    ssize_t len = -1;

    if (super->null >= 0)
        len = splice(*fd, NULL, super->null, NULL, 1 << 20, SPLICE_F_NONBLOCK);
    if (len < 0 && errno != EAGAIN && errno != EINTR)
        len = read(*fd, scrap, sizeof(scrap));
    if (len == 0) {
        close(*fd);
        *fd = -1;
    }
}

static void wait_for_something(struct super *super)
{
    enum { CONTROL, SIGNALS, OWNER, DRAIN, COUNT = DRAIN + 2 };
    struct pollfd fds[COUNT] = {
        [CONTROL] = { super->control, POLLIN, 0 },    [SIGNALS] = { super->signals, POLLIN, 0 },
        [OWNER] = { super->owner, POLLIN, 0 },        [DRAIN] = { super->drain[0], POLLIN, 0 },
        [DRAIN + 1] = { super->drain[1], POLLIN, 0 },
    };
    int timeout = pf_clock_poll_ms(super->wake), ready;
    struct signalfd_siginfo info;
    bool refused;

    if (super->phase == KILLING) /* what was reparented to us sends no signal before it dies */
        timeout = super->rounds < 4 ? 1 : 10;
    ready = poll(fds, COUNT, timeout);
    refused = ready < 0 && errno == EINVAL;
    /* A command may have lowered our limit of descriptors, as any process of its user can. Who
     * neither hears its owner nor sees it die lets nothing go on; nor does who could not list what
     * it is to end, or take the next command. */
    if (refused || (ready > 0 && pf_is_deaf(super->files)))
        begin_termination(super, PF_CAUSE_DEAF);
    if (refused)
        poll(NULL, 0, DEAF_MS);
    if (ready <= 0)
        return;
    if (fds[SIGNALS].revents)
        (void)!read(super->signals, &info, sizeof(info));
    if (fds[CONTROL].revents)
        obey(super);
    if (fds[OWNER].revents) {
        begin_termination(super, PF_CAUSE_KILLED);
        close(super->owner);
        super->owner = -1;
    }
    for (int i = 0; i < 2; i++)
        if (fds[DRAIN + i].revents)
            drain(super, &super->drain[i]);
}

bool pf_super_settle(void)
{
    struct sigaction fresh = { .sa_handler = SIG_DFL };

    sigaction(SIGCHLD, &fresh, NULL); /* ignored, it would reap behind our back */
    /* Out of reach of what kills the host's process group. Not a session of its own: where the
     * scheduler groups by session (autogroup) making one costs more than all the rest here. */
    setpgid(0, 0);
    /* Who traces it would hold it for as long as he likes, which no SIGCONT ends, and could take
     * the socket on which it speaks to its owner. What it starts is open again once it executes. */
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    return prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0;
}

/* What must stand before the leader starts. */
static bool set_up(struct super *super, struct pf_super_spec *spec)
{
    sigset_t child;

    if (spec->retire < 0 && (!pf_super_settle() || !set_descriptors(spec)))
        return false;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    super->signals = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
    if (super->signals < 0)
        return false;
    /* Keep descriptors 0 to 2 free for the leader's. */
    if (super->signals <= STDERR_FILENO) {
        int moved = fcntl(super->signals, F_DUPFD_CLOEXEC, PF_SCRIPT_FD + 1);
        if (moved < 0)
            return false;
        close(super->signals);
        super->signals = moved;
    }
    super->control = spec->control;
    return true;
}

void pf_supervise(const struct pf_super_spec *given)
{
    struct pf_super_spec spec = *given;
    struct super super = { .spec = &spec,
                           .wake = spec.deadline,
                           .files = pf_files_wanted(),
                           .owner = -1,
                           .null = -1,
                           .slave = -1,
                           .drain = { -1, -1 } };
    int master = -1;

    if (!set_up(&super, &spec)) {
        pf_super_fail(spec.control, errno, PF_STAGE_SETUP);
        return;
    }
    if (spec.terminal && (master = pf_super_terminal(&spec)) < 0) {
        pf_super_fail(spec.control, -master, PF_STAGE_TERMINAL);
        return;
    }
    super.slave = spec.terminal ? spec.slave : -1;
    if (spec.terminal)
        pf_super_send_master(spec.control, master);
    super.leader = pf_leader_start(&spec);
    if (super.leader < 0) {
        pf_super_fail(spec.control, -super.leader, PF_STAGE_FORK);
        return;
    }
    if (spec.terminal)
        tell(&super, (struct pf_super_message){ .event = PF_EVENT_RUNNING });
    for (int i = 0; i < 2; i++)
        if (spec.write_end[i] >= 0)
            close(spec.write_end[i]);
    if (spec.cwd >= 0 && !spec.stays)
        close(spec.cwd);
    if (spec.script >= 0)
        close(spec.script);
    /* Past the C library: where a sanitizer has its own prctl(2), that one takes a lock which a
     * thread of the host may have held at the fork. */
    if (spec.retire < 0)
        syscall(SYS_prctl, PR_SET_NAME, "pinfold-super", 0, 0, 0);
    /* The socket hangs up when the owner is gone, unless a fork of it still holds the other end. */
    if (spec.owner > 0)
        super.owner = (int)syscall(SYS_pidfd_open, spec.owner, 0);
    while (!super.over) {
        wait_for_something(&super);
        look_around(&super, pf_clock_now());
    }
}
