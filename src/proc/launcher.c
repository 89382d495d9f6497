/* SPDX-License-Identifier: Apache-2.0 */
#include "proc/launcher.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <utlist.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/poll.h"
#include "proc/wire.h"

#define SMALL_KIB (16L * 1024) /* a resident set that is cheap to fork */
/* So many commands at once, and forking is dear in a small process as well: each fork has all its
 * threads fault in the pages they write to, and waits until they have. With 64 threads the helper
 * was four times as fast. */
enum { CROWD = 4 };
/* Commands that linger are asked whether they have ended when there are twice as many as the last
 * time left, and these, or when that is so long ago: each takes a system call. */
#define FEW 8
#define SWEEP_NS (1 * PF_NS_PER_SEC)
/* Commands of one helper where processor time is limited: one that is killed takes a command along
 * that it has just been asked for. */
enum { ASKED_MAX = 256 };

/* Large, and of no use to a process that forks by itself. */
struct heritage {
    struct pf_heritage now, helper;
};

struct pf_launcher {
    pthread_mutex_t lock; /* of everything below; held over no wait but the helper's start */
    pthread_cond_t idle;  /* running has become 0 */
    struct pf_live *live; /* first those that end, or wait for our hang-up */
    size_t running;       /* commands that a pf_run() waits for */
    size_t lingering;     /* that nobody waits for, but their supervisors */
    size_t many;          /* of them: to be swept */
    int64_t sweep_at;     /* and so when this has come */
    unsigned refs;        /* of whoever made it, and of terminals */
    bool stopped;
    bool stays; /* see pf_launcher_let_stay() */
    bool has_left_one;
    void (*at_end)(const char *arg);
    const char *at_end_arg;
    pid_t owner; /* a fork of the host must not touch what is its parent's */
    enum pf_launch_mode mode, last_mode;
    const char *helper_path; /* of a test */
    struct pf_helper helper;
    struct heritage *heritage; /* NULL until a helper is wanted */
    unsigned asked;            /* of the helper */
};

static int new_launcher(struct pf_launcher **ret, struct pinfold_error *err)
{
    struct pf_launcher *launcher = calloc(1, sizeof(*launcher));

    if (!launcher)
        return pf_fail_nomem(err);
    pthread_mutex_init(&launcher->lock, NULL); /* neither can fail with default attributes */
    pthread_cond_init(&launcher->idle, NULL);
    launcher->owner = getpid();
    launcher->refs = 1;
    launcher->many = FEW;
    launcher->helper.socket = launcher->helper.resident = -1;
    *ret = launcher;
    return 0;
}

/* What a command leaves behind is found through /proc; where nobody could end that, none starts.
 * Looked at once, because mounts seldom change and commands are many. */
int pf_launcher_new(struct pf_launcher **ret, struct pinfold_error *err)
{
    if (!pf_can_list_children())
        return pf_fail(err, PINFOLD_ENOTSUP,
                       "start a command: the processes it leaves behind could not be found and "
                       "ended, because the /proc of this process namespace is not mounted: mount "
                       "-t proc proc /proc");
    return new_launcher(ret, err);
}

/* The jail has its own /proc. */
int pf_launcher_new_in_jail(int socket, int resident, struct pf_launcher **ret,
                            struct pinfold_error *err)
{
    int r = new_launcher(ret, err);

    if (r == 0) {
        (*ret)->mode = PF_LAUNCH_JAIL;
        (*ret)->helper.socket = socket;
        (*ret)->helper.resident = resident;
    }
    return r;
}

void pf_launcher_let_stay(struct pf_launcher *launcher, void (*at_end)(const char *arg),
                          const char *arg)
{
    launcher->stays = true;
    launcher->at_end = at_end;
    launcher->at_end_arg = arg;
}

bool pf_launcher_has_left_one(const struct pf_launcher *launcher)
{
    return launcher->has_left_one;
}

void pf_launcher_force(struct pf_launcher *launcher, enum pf_launch_mode mode, const char *helper)
{
    launcher->mode = mode;
    launcher->helper_path = helper;
}

enum pf_launch_mode pf_launcher_last_mode(const struct pf_launcher *launcher)
{
    return launcher->last_mode;
}

pid_t pf_launcher_helper(const struct pf_launcher *launcher)
{
    return launcher->helper.pid;
}

/* A fork without fork(3): no handlers of the host run in it, and without an exit signal neither its
 * SIGCHLD handler nor its wait(2) learns of the child. Signals are blocked, so that no handler of
 * the host ever runs there. Returns the pid or -errno. */
static pid_t fork_supervisor(const struct pf_super_spec *spec)
{
    sigset_t all, old;
    pid_t pid;
    int saved;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    pid = (pid_t)syscall(SYS_clone, 0UL, NULL, NULL, NULL, NULL);
    if (pid == 0) {
        pf_supervise(spec);
        _exit(0);
    }
    saved = errno;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return pid < 0 ? -saved : pid;
}

/* The peak that the kernel keeps counts what this process was before it executed its program, a
 * large parent say. It is free to ask, and when it is small there is nothing more to know. */
static bool was_always_small(void)
{
    struct rusage usage;

    return getrusage(RUSAGE_SELF, &usage) < 0 || usage.ru_maxrss < SMALL_KIB;
}

/* Under the lock. Whether a helper is faster than a fork of this process, and may take its place:
 * launcher->heritage->now is then what the command must have. */
static bool wants_helper(struct pf_launcher *launcher, const struct pf_super_spec *spec)
{
    bool is_auto = launcher->mode == PF_LAUNCH_AUTO, is_crowd = launcher->running >= CROWD;
    uint64_t resident;

    if (launcher->mode != PF_LAUNCH_HELPER && (!is_auto || (!is_crowd && was_always_small())))
        return false;
    if (!launcher->heritage)
        launcher->heritage = malloc(sizeof(*launcher->heritage));
    /* What this process has is not known, or a directory that has no descriptor: a fork has it. */
    if (!launcher->heritage || (spec->cwd < 0 && !spec->cwd_path) ||
        !pf_heritage_read(&launcher->heritage->now, spec->control, &resident) ||
        !pf_helper_may_ask(spec, launcher->heritage->now.limits[RLIMIT_FSIZE][0]))
        return false;
    return !is_auto || is_crowd || resident >= (uint64_t)SMALL_KIB * 1024;
}

/* The processor time of a helper counts against a limit that is meant for each command. */
static bool is_worn_out(const struct pf_launcher *launcher)
{
    return launcher->asked >= ASKED_MAX &&
           launcher->heritage->now.limits[RLIMIT_CPU][1] != (uint64_t)RLIM_INFINITY;
}

/* Under the lock: see that a helper runs that has what this process has now. ret: whether one does;
 * without one it is slower, but works. */
static int have_helper(struct pf_launcher *launcher, bool *ret, struct pinfold_error *err)
{
    struct heritage *heritage = launcher->heritage;
    bool is_auto = launcher->mode == PF_LAUNCH_AUTO;
    const char *helper = launcher->helper_path;
    char path[PATH_MAX];
    int r;

    *ret = true;
    if (launcher->helper.socket >= 0 && pf_heritage_is_same(&heritage->now, &heritage->helper) &&
        !is_worn_out(launcher))
        return 0;
    pf_helper_stop(&launcher->helper); /* it still starts what it has been asked for */
    *ret = helper || pf_helper_find(path);
    if (!*ret)
        return 0;
    launcher->asked = 0;
    heritage->helper = heritage->now;
    pf_heritage_hand_on(&heritage->helper);
    r = pf_helper_start(helper ? helper : path, &heritage->helper, &launcher->helper,
                        is_auto ? NULL : err);
    *ret = r == 0;
    /* It takes more than a fork of this process does of what may be limited. */
    return is_auto ? 0 : r;
}

/* Under the lock. */
static int launch_in_jail(struct pf_launcher *launcher, struct pf_super_spec *spec,
                          struct pinfold_error *err)
{
    int r;

    spec->owner = 0; /* has no number in there; the jail watches its owner itself */
    launcher->last_mode = PF_LAUNCH_JAIL;
    r = pf_helper_ask(&launcher->helper, spec, err);
    if (r != -PINFOLD_EBACKEND)
        return r;
    return pf_fail(
            err, PINFOLD_EBACKEND,
            "the sandbox has died (was it killed, or out of memory?); stop it and start anew");
}

/* Under the lock. Returns 0 when the command is not started yet, 1 when it is. */
static int launch_by_helper(struct pf_launcher *launcher, const struct pf_super_spec *spec,
                            struct pinfold_error *err)
{
    bool found;
    int r;

    for (int attempt = 0; attempt < 2 && wants_helper(launcher, spec); attempt++) {
        r = have_helper(launcher, &found, err);
        if (r < 0 || !found)
            return r;
        launcher->last_mode = PF_LAUNCH_HELPER;
        launcher->asked++;
        r = pf_helper_ask(&launcher->helper, spec, err);
        if (r != -PINFOLD_EBACKEND)
            return r < 0 ? r : 1;
        pf_helper_stop(&launcher->helper); /* it was killed while idle: try a new one */
    }
    return 0; /* also where a limit ends each helper at its start */
}

/* Under the lock. */
static int launch(struct pf_launcher *launcher, struct pf_super_spec *spec, pid_t *ret_pid,
                  struct pinfold_error *err)
{
    int r;

    *ret_pid = 0;
    if (launcher->mode == PF_LAUNCH_JAIL)
        return launch_in_jail(launcher, spec, err);
    r = launch_by_helper(launcher, spec, err);
    if (r != 0)
        return r < 0 ? r : 0;
    launcher->last_mode = PF_LAUNCH_DIRECT;
    spec->stays = launcher->stays && !spec->terminal;
    spec->at_end = launcher->at_end;
    spec->at_end_arg = launcher->at_end_arg;
    *ret_pid = fork_supervisor(spec);
    return *ret_pid < 0 ? pf_fail_os(err, -*ret_pid, "fork a supervisor for the command") : 0;
}

void pf_launcher_doubt(struct pf_launcher *launcher)
{
    pthread_mutex_lock(&launcher->lock);
    if (launcher->mode != PF_LAUNCH_JAIL)
        pf_helper_stop(&launcher->helper);
    pthread_mutex_unlock(&launcher->lock);
}

/* Whether nobody has the other end of a socket any more. Only poll(2) tells that whatever is still
 * in it, and may be kept from it by a limit: see pf_poll(). Returns -1 then. */
static int is_hung_up(int socket)
{
    struct pollfd hang_up = { socket, 0, 0 };

    return poll(&hang_up, 1, 0);
}

bool pf_launcher_lives_on(struct pf_launcher *launcher)
{
    bool lives = false;

    pthread_mutex_lock(&launcher->lock);
    /* Once it is stopped the jail may be closed, and the socket with it. */
    if (launcher->mode == PF_LAUNCH_JAIL && !launcher->stopped) {
        int socket = launcher->helper.socket, r = is_hung_up(socket);
        char byte;
        ssize_t len = r < 0 ? recv(socket, &byte, sizeof(byte), MSG_PEEK | MSG_DONTWAIT) : 1;
        lives = r <= 0 && len != 0 && (len > 0 || errno != ECONNRESET);
    }
    pthread_mutex_unlock(&launcher->lock);
    return lives;
}

void pf_live_nudge(const struct pf_live *live)
{
    pid_t supervisor = live->supervisor;

    if (supervisor > 0)
        kill(supervisor, SIGCONT);
}

static void reap(const struct pf_live *live)
{
    _cleanup_close_ int pidfd = (int)syscall(SYS_pidfd_open, live->pid, 0);
    struct pollfd end = { pidfd, POLLIN, 0 }; /* negative, poll(2) only sleeps */

    while (waitpid(live->pid, NULL, __WALL | WNOHANG) == 0) {
        pf_live_nudge(live);
        pf_poll(&end, 1, pf_clock_poll_ms(pf_clock_deadline(PF_NUDGE_NS)));
    }
}

/* The supervisor has said its last word, or is about to. */
static void bury(struct pf_live *live)
{
    if (live->control >= 0)
        close(live->control);
    if (live->pid > 0)
        reap(live);
    free(live);
}

/* Whether a supervisor has ended; drops what it says meanwhile. */
static bool has_ended(struct pf_live *live)
{
    struct pf_super_message message;
    ssize_t len;

    if (live->over && live->control >= 0)
        return true; /* it waits for our hang-up */
    if (live->control < 0) {
        if (waitpid(live->pid, NULL, __WALL | WNOHANG) == 0)
            return false;
        live->pid = 0;
        return true;
    }
    do
        len = recv(live->control, &message, sizeof(message), MSG_DONTWAIT);
    while (len > 0 || (len < 0 && errno == EINTR));
    return len == 0 || errno != EAGAIN;
}

/* Whether its supervisor ends by itself, or waits for our hang-up. */
static bool is_ending(const struct pf_live *live)
{
    return !live->called && (live->control < 0 || live->over);
}

/* Under the lock: forget commands that have ended of those that are about to, which are few, or of
 * all. */
static void sweep(struct pf_launcher *launcher, bool all)
{
    struct pf_live *live, *next;
    size_t lingering = 0;

    DL_FOREACH_SAFE(launcher->live, live, next) {
        if (!all && !is_ending(live))
            return;
        if (live->called)
            continue;
        if (!has_ended(live)) {
            lingering += !is_ending(live);
            continue;
        }
        DL_DELETE(launcher->live, live);
        bury(live);
    }
    launcher->lingering = lingering;
    launcher->many = 2 * lingering + FEW;
    launcher->sweep_at = pf_clock_deadline(SWEEP_NS);
}

/* Under the lock. */
static bool is_sweep_due(const struct pf_launcher *launcher)
{
    return launcher->lingering >= launcher->many ||
           (launcher->lingering > 0 && pf_clock_now() >= launcher->sweep_at);
}

int pf_launcher_start(struct pf_launcher *launcher, struct pf_super_spec *spec,
                      struct pf_live **ret, struct pinfold_error *err)
{
    _cleanup_free_ struct pf_live *live = calloc(1, sizeof(*live));
    int pair[2], r;

    if (!live)
        return pf_fail_nomem(err);
    spec->owner = getpid();
    if (spec->owner != launcher->owner)
        return pf_fail(err, PINFOLD_ESTART,
                       "process %d is a fork of %d, whose workspace it cannot use: open its own",
                       spec->owner, launcher->owner);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return pf_fail_os(err, errno, "create a socket for the command");
    spec->control = pair[1];
    pthread_mutex_lock(&launcher->lock);
    sweep(launcher, is_sweep_due(launcher));
    r = launcher->stopped ? pf_fail(err, PINFOLD_ESTART, "start a command: already stopped")
                          : launch(launcher, spec, &live->pid, err);
    if (r == 0) {
        live->control = pair[0];
        live->called = true;
        /* A helper that is stopped has started nobody: it is who must be woken then. */
        live->supervisor = live->pid > 0 ? live->pid : launcher->helper.pid;
        DL_APPEND(launcher->live, live);
        launcher->running++;
        *ret = live;
        TAKE(live);
    }
    pthread_mutex_unlock(&launcher->lock);
    close(pair[1]);
    if (r < 0)
        close(pair[0]);
    return r;
}

void pf_live_order(const struct pf_live *live, enum pf_super_order order)
{
    unsigned char byte = (unsigned char)order;

    /* A supervisor that does not read its orders has enough of them. */
    pf_wire_tell(live->control, &byte, sizeof(byte), MSG_DONTWAIT);
}

void pf_live_insist(const struct pf_live *live)
{
    pf_live_order(live, PF_ORDER_KILL);
    pf_live_nudge(live);
}

/* Under the lock. Its last message came, or this hang-up kills the command. Either way it ends
 * alone: waiting here for its teardown would only cost time. The next call or the stop reaps. */
static void hang_up(struct pf_launcher *launcher, struct pf_live *live)
{
    live->called = live->terminal = false;
    close(live->control);
    live->control = -1;
    pf_live_nudge(live);
    DL_DELETE(launcher->live, live);
    if (live->pid == 0)
        free(live);
    else
        DL_PREPEND(launcher->live, live);
}

/* Under the lock. */
static void end_call(struct pf_launcher *launcher)
{
    if (--launcher->running == 0)
        pthread_cond_broadcast(&launcher->idle);
}

void pf_launcher_release(struct pf_launcher *launcher, struct pf_live *live, bool lingers)
{
    pthread_mutex_lock(&launcher->lock);
    live->called = false;
    if (lingers) {
        launcher->lingering++;
    } else if (live->over && launcher->stays && live->pid > 0) {
        /* It is hung up by the next start, or the end of this process. */
        DL_DELETE(launcher->live, live);
        DL_PREPEND(launcher->live, live);
    } else {
        hang_up(launcher, live);
    }
    end_call(launcher);
    pthread_mutex_unlock(&launcher->lock);
}

void pf_launcher_keep(struct pf_launcher *launcher, struct pf_live *live)
{
    pthread_mutex_lock(&launcher->lock);
    live->terminal = true;
    launcher->refs++;
    end_call(launcher);
    pthread_mutex_unlock(&launcher->lock);
}

static void unref(struct pf_launcher *launcher);

void pf_launcher_give_back(struct pf_launcher *launcher, struct pf_live *live)
{
    pthread_mutex_lock(&launcher->lock);
    hang_up(launcher, live);
    pthread_mutex_unlock(&launcher->lock);
    unref(launcher);
}

size_t pf_launcher_count(struct pf_launcher *launcher)
{
    size_t count = 0;

    pthread_mutex_lock(&launcher->lock);
    sweep(launcher, true);
    for (const struct pf_live *live = launcher->live; live; live = live->next)
        count++;
    pthread_mutex_unlock(&launcher->lock);
    return count;
}

static void wait_for_end(struct pf_live *live)
{
    struct pollfd hang_up = { live->control, POLLIN, 0 };

    if (live->control < 0)
        return; /* only to be reaped */
    while (!has_ended(live)) {
        pf_live_insist(live);
        pf_poll(&hang_up, 1, pf_clock_poll_ms(pf_clock_deadline(PF_NUDGE_NS)));
    }
}

/* Under the lock, which is let go meanwhile: wait a while for the calls that are under way. */
static void wait_idle(struct pf_launcher *launcher)
{
    int64_t until = pf_clock_deadline(PF_NUDGE_NS);

    for (const struct pf_live *live = launcher->live; live; live = live->next)
        if (live->control >= 0)
            pf_live_insist(live);
    pthread_cond_clockwait(&launcher->idle, &launcher->lock, CLOCK_MONOTONIC,
                           &(struct timespec){ .tv_sec = until / PF_NS_PER_SEC,
                                               .tv_nsec = until % PF_NS_PER_SEC });
}

/* Where nothing else tells it: one that was told to end already does not mind to be told again. */
static bool takes_orders(const struct pf_live *live)
{
    unsigned char byte = PF_ORDER_KILL;

    return send(live->control, &byte, sizeof(byte), MSG_NOSIGNAL | MSG_DONTWAIT) > 0 ||
           errno == EAGAIN || errno == ENOBUFS || errno == ENOMEM;
}

/* Under the lock, which is let go meanwhile: wait a while for the supervisor of a terminal. What it
 * says is left to the terminal, which may be given back at any moment; so it is a duplicate that is
 * waited for. Returns false when there is none left that has not ended. */
static bool wait_terminal(struct pf_launcher *launcher)
{
    struct pollfd hang_up = { .fd = -1 };
    const struct pf_live *live;
    int left_ms;

    for (live = launcher->live; live; live = live->next) {
        int r = live->terminal ? is_hung_up(live->control) : 1;
        if (r == 0 || (r < 0 && takes_orders(live)))
            break;
    }
    if (!live)
        return false;
    pf_live_insist(live);
    hang_up.fd = fcntl(live->control, F_DUPFD_CLOEXEC, 0);
    left_ms = hang_up.fd < 0 ? 5 : (int)(PF_NUDGE_NS / PF_NS_PER_MS);
    pthread_mutex_unlock(&launcher->lock);
    pf_poll(&hang_up, 1, left_ms);
    if (hang_up.fd >= 0)
        close(hang_up.fd);
    pthread_mutex_lock(&launcher->lock);
    return true;
}

/* Under the lock: all that no terminal has. */
static struct pf_live *take_ended(struct pf_launcher *launcher)
{
    struct pf_live *left = NULL, *live, *next;

    DL_FOREACH_SAFE(launcher->live, live, next)
        if (!live->terminal) {
            DL_DELETE(launcher->live, live);
            LL_PREPEND(left, live);
        }
    return left;
}

/* A jail's sockets are not ours to close. */
static void forget_helper(struct pf_launcher *launcher)
{
    if (launcher->mode == PF_LAUNCH_JAIL)
        launcher->helper.socket = launcher->helper.resident = -1;
    else
        pf_helper_stop(&launcher->helper);
}

void pf_launcher_kill(struct pf_launcher *launcher)
{
    pthread_mutex_lock(&launcher->lock);
    for (const struct pf_live *live = launcher->live; live; live = live->next)
        if (live->control >= 0)
            pf_live_insist(live);
    pthread_mutex_unlock(&launcher->lock);
}

void pf_launcher_stop(struct pf_launcher *launcher)
{
    struct pf_live *left;

    if (launcher->owner != getpid())
        return;
    pthread_mutex_lock(&launcher->lock);
    launcher->stopped = true;
    for (const struct pf_live *live = launcher->live; live; live = live->next)
        if (live->control >= 0)
            pf_live_order(live, PF_ORDER_KILL);
    while (launcher->running > 0)
        wait_idle(launcher);
    while (wait_terminal(launcher)) {
    }
    left = take_ended(launcher);
    forget_helper(launcher);
    pthread_mutex_unlock(&launcher->lock);
    while (left) {
        struct pf_live *live = left;
        left = live->next;
        if (live->over && live->control >= 0) {
            free(live); /* its supervisor ends with this process */
            launcher->has_left_one = true;
            continue;
        }
        wait_for_end(live);
        bury(live);
    }
}

void pf_launcher_free(struct pf_launcher *launcher)
{
    if (!launcher)
        return;
    pf_launcher_stop(launcher);
    unref(launcher);
}

static void unref(struct pf_launcher *launcher)
{
    bool last;

    pthread_mutex_lock(&launcher->lock);
    last = --launcher->refs == 0;
    pthread_mutex_unlock(&launcher->lock);
    if (!last)
        return;
    /* Supervisors of terminals, to be reaped; and in a fork of the host our copies only. */
    while (launcher->live) {
        struct pf_live *live = launcher->live;
        DL_DELETE(launcher->live, live);
        if (launcher->owner != getpid())
            live->pid = 0;
        bury(live);
    }
    forget_helper(launcher);
    free(launcher->heritage);
    pthread_mutex_destroy(&launcher->lock);
    pthread_cond_destroy(&launcher->idle);
    free(launcher);
}
