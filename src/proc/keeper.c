/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keeper waits at the reading end of a pipe. The owner has the only writing end, which the
 * kernel closes when the owner ends, or executes another program: by then no thread of it runs. The
 * keeper shares the owner's memory, so that nothing is copied and what it needs to know is there;
 * it knows what it is to remove from a list in it, and executes a small program that does that.
 *
 * It has no thread of the C library's, and uses nothing of that: see raw.h. It must not be found by
 * a wait for any child, nor send a signal: so there is none for its end.
 */
#include "proc/keeper.h"

#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "proc/launcher.h"
#include "proc/raw.h"

/* The keeper reads first, and what follows from there, when nobody is left who writes; and its own
 * part. One runs at a time, and the next not before the last has ended. */
static struct {
    pthread_mutex_t lock;
    struct pf_kept *_Atomic first;
    int held;         /* the writing end of its pipe; -1: there is no keeper */
    pid_t pid;        /* 0: there is none to be reaped */
    bool is_let_go;   /* see pf_keeper_let_go() */
    unsigned process; /* another number in a fork */
    bool watches_forks, prepared;
    char program[PATH_MAX];
    struct keeper {
        int watched;          /* the reading end, its alone */
        atomic_bool released; /* the pipe was closed because nothing is left to keep */
        _Alignas(16) char stack[4096];
    } keeper;
} own = { .lock = PTHREAD_MUTEX_INITIALIZER, .held = -1 };

/* ---- the keeper ---- */

#if PF_HAS_RAW

#define RAW(name, a, b, c) pf_raw(SYS_##name, (long)(a), (long)(b), (long)(c), 0, 0)

/* No descriptor of the owner's may stay open: others wait for the end of what it is to. */
PF_RAW static bool close_others(int fd)
{
    return (fd == 0 || RAW(close_range, 0, fd - 1, 0) == 0) &&
           RAW(close_range, fd + 1, ~0U, 0) == 0;
}

/* All descriptors are closed: the list becomes the first. */
PF_RAW static void execute(void)
{
    char name[] = PF_KEEPER_NAME, *argv[] = { name, NULL }, *envp[] = { NULL };
    long list = RAW(memfd_create, "pinfold-kept", 0, 0);

    if (list != 0)
        return;
    for (const struct pf_kept *kept = own.first; kept; kept = kept->next) {
        RAW(write, list, &kept->kind, 1);
        RAW(write, list, kept->path, kept->size);
    }
    RAW(execve, own.program, argv, envp);
}

PF_RAW static int keep(void *arg)
{
    const struct keeper *keeper = arg;
    const struct sched_param priority = { 0 };
    uint64_t all = UINT64_MAX;
    char byte;

    /* Those too that the C library keeps for itself. */
    pf_raw(SYS_rt_sigprocmask, SIG_SETMASK, (long)&all, 0, sizeof(all), 0);
    RAW(chdir, "/", 0, 0);
    /* When it is woken the owner is busy with its own end, and shall go on first. */
    RAW(sched_setscheduler, 0, SCHED_BATCH, &priority);
    if (!close_others(keeper->watched))
        return 0;
    RAW(prctl, PR_SET_NAME, PF_KEEPER_NAME, 0);
    while (RAW(read, keeper->watched, &byte, 1) == -EINTR) {
    }
    if (!keeper->released) {
        RAW(close, keeper->watched, 0, 0);
        execute();
    }
    return 0;
}

/* Under the lock. Where it returns the keeper is out of reach of what kills the host's process
 * group, even if it has not run yet; a session costs more, as in pf_super_settle(). */
static pid_t begin(struct keeper *keeper)
{
    sigset_t all, old;
    pid_t pid;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    pid = clone(keep, keeper->stack + sizeof(keeper->stack), CLONE_VM, keeper);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (pid > 0)
        setpgid(pid, pid);
    return pid;
}

/* There in a program that is built with ThreadSanitizer. */
extern void tsan_init(void) __asm__("__tsan_init") __attribute__((weak, visibility("default")));

/* Valgrind ends a program that clones like this. It shows programs no vDSO, which all others
 * have. ThreadSanitizer takes the keeper for a fork, and sets to rights in it, on its small stack,
 * what is the owner's. */
static bool may_begin(void)
{
    return getauxval(AT_SYSINFO_EHDR) != 0 && !tsan_init;
}

#else

static pid_t begin(struct keeper *keeper)
{
    (void)keeper;
    return -1;
}

static bool may_begin(void)
{
    return false;
}

#endif

/* ---- the owner ---- */

static void before_fork(void)
{
    pthread_mutex_lock(&own.lock);
}

static void after_fork(void)
{
    pthread_mutex_unlock(&own.lock);
}

/* What is kept is the parent's, and the pipe must be its alone. */
static void in_fork(void)
{
    if (own.held >= 0)
        close(own.held);
    own.held = -1;
    own.pid = 0;
    own.is_let_go = false;
    own.first = NULL;
    own.process++;
    pthread_mutex_unlock(&own.lock);
}

static void watch_forks(void)
{
    own.watches_forks = pthread_atfork(before_fork, after_fork, in_fork) == 0;
}

/* Forks are watched before it is held for the first time, and where there is no keeper too: a fork
 * finds it free. */
static void take_lock(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, watch_forks);
    pthread_mutex_lock(&own.lock);
}

static bool prepare(void)
{
    if (!own.prepared)
        own.prepared =
                own.watches_forks && may_begin() && pf_program_find(PF_KEEPER_PROGRAM, own.program);
    return own.prepared;
}

/* Returns false when there is nothing to wait for any more. */
static bool wait_for(pid_t pid)
{
    int status;
    pid_t found = waitpid(pid, &status, WUNTRACED | __WALL);

    if (found < 0)
        return errno == EINTR;
    if (!WIFSTOPPED(status))
        return false;
    kill(pid, SIGCONT); /* somebody has stopped it */
    return true;
}

/* Under the lock. */
static void reap(void)
{
    while (own.pid > 0 && wait_for(own.pid)) {
    }
    own.pid = 0;
}

/* Under the lock. */
static void start(void)
{
    int ends[2];

    reap();
    if (!prepare() || pipe2(ends, O_CLOEXEC) < 0)
        return;
    own.keeper.watched = ends[0];
    own.keeper.released = false;
    own.pid = begin(&own.keeper);
    close(ends[0]);
    if (own.pid > 0)
        own.held = ends[1];
    else
        close(ends[1]);
}

/* Under the lock. */
static void end(void)
{
    own.keeper.released = true;
    close(own.held);
    own.held = -1;
    if (own.is_let_go)
        kill(own.pid, SIGCONT); /* see wait_for() */
    else
        reap();
}

void pf_keeper_add(struct pf_kept *kept, enum pf_kept_kind kind, const char *path)
{
    kept->path = path;
    kept->size = strlen(path) + 1;
    kept->kind = (char)kind;
    take_lock();
    if (own.held < 0)
        start();
    kept->process = own.process;
    kept->before = NULL;
    kept->next = own.first;
    if (kept->next)
        kept->next->before = kept;
    own.first = kept;
    pthread_mutex_unlock(&own.lock);
}

/* Under the lock. */
static void take_out(const struct pf_kept *kept)
{
    if (kept->process != own.process)
        return; /* the parent's: what is beside it may be anything by now */
    if (kept->next)
        kept->next->before = kept->before;
    if (kept->before)
        kept->before->next = kept->next;
    else
        own.first = kept->next;
}

void pf_keeper_drop(struct pf_kept *kept)
{
    if (!kept->path)
        return;
    take_lock();
    take_out(kept);
    kept->path = NULL;
    if (!own.first && own.held >= 0)
        end();
    pthread_mutex_unlock(&own.lock);
}

void pf_keeper_let_go(void)
{
    take_lock();
    own.is_let_go = true;
    pthread_mutex_unlock(&own.lock);
}
