/* SPDX-License-Identifier: Apache-2.0 */
#include "pool.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#include <utlist.h>

enum {
    MAX_THREADS = 512,
    IDLE_MS = 5000,
    STACK = 1 << 20,       /* a call may run Python code of a backend's */
    STACK_ALONE = 8 << 20, /* tools of users run there: as much as threads of Python have */
    DESCRIPTORS = 4096,    /* as many calls as threads, with eight each */
};

static struct {
    pthread_mutex_t lock;
    pthread_cond_t work, calm;
    struct pf_job *first;
    unsigned process; /* how many forks led to this one, from 1 on */
    unsigned queued, threads, idle;
    unsigned away;  /* of the threads: in Python code, which may wait for what is queued */
    unsigned alone; /* threads that run one job, and are not of the pool */
    bool starting;  /* a thread that has not looked for a job yet */
} pool = { .lock = PTHREAD_MUTEX_INITIALIZER,
           .work = PTHREAD_COND_INITIALIZER,
           .calm = PTHREAD_COND_INITIALIZER,
           .process = 1 };

static _Thread_local bool pooled;        /* this thread is one of the pool's */
static _Thread_local unsigned steps_out; /* into Python code */

struct timespec pf_deadline(int64_t ms)
{
    struct timespec at;

    clock_gettime(CLOCK_MONOTONIC, &at);
    at.tv_sec += ms / 1000;
    at.tv_nsec += ms % 1000 * 1000000;
    if (at.tv_nsec >= 1000000000) {
        at.tv_sec++;
        at.tv_nsec -= 1000000000;
    }
    return at;
}

/* The table of descriptors doubles when it is full, and while a process has threads that takes as
 * long as the kernel's other readers do (synchronize_rcu in expand_fdtable of fs/file.c): 10 to 25
 * ms, in which an event loop stood still that began 200 calls, each with some descriptors. Before
 * there are threads it costs a few kilobytes. */
static void make_room(void)
{
    struct rlimit limit;
    int highest = DESCRIPTORS - 1, some = open("/", O_PATH | O_CLOEXEC), fd;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur <= (rlim_t)highest)
        highest = (int)limit.rlim_cur - 1;
    fd = fcntl(some, F_DUPFD_CLOEXEC, highest);
    if (fd >= 0)
        close(fd);
    if (some >= 0)
        close(some);
}

/* ---- fork ---- */

/* The child has none of the threads, and what they were at is not its business. */
static void after_fork_in_child(void)
{
    pthread_mutex_init(&pool.lock, NULL);
    pthread_cond_init(&pool.work, NULL);
    pthread_cond_init(&pool.calm, NULL);
    pool.first = NULL;
    pool.process++;
    pool.queued = pool.threads = pool.idle = pool.away = pool.alone = 0;
    pooled = false;
    pool.starting = false;
    make_room();
}

static void before_fork(void)
{
    pthread_mutex_lock(&pool.lock);
}

static void after_fork_in_parent(void)
{
    pthread_mutex_unlock(&pool.lock);
}

static void set_up(void)
{
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
    make_room();
}

void pf_pool_set_up(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, set_up);
}

/* ---- threads ---- */

static void *work(void *arg);

/* Signals are left to the threads of Python, whose handlers expect to run there. */
static int start_thread(void *(*run)(void *arg), void *arg, size_t stack)
{
    pthread_attr_t attributes;
    sigset_t all, old;
    pthread_t thread;
    int r;

    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, stack);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    r = pthread_create(&thread, &attributes, run, arg);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_attr_destroy(&attributes);
    return r;
}

/* Under the lock: whether a thread must be started for what is queued; whoever asks does so. One
 * thread is started at a time, and starts the next one when there is still work then: many short
 * calls are done by few threads, and the event loop makes none of them but the first. */
static bool want_thread(void)
{
    if (pool.queued == 0 || pool.idle > 0 || pool.starting ||
        pool.threads - pool.away >= MAX_THREADS)
        return false;
    pool.starting = true;
    pool.threads++;
    return true;
}

/* Under the lock, which is let go meanwhile if there are others to take the work: a new stack waits
 * for each fork of this process that is under way, and the event loop, with more jobs, need not. */
static int add_thread(void)
{
    bool only = pool.threads == 1;
    int r;

    if (!only)
        pthread_mutex_unlock(&pool.lock);
    r = start_thread(work, NULL, STACK);
    if (!only)
        pthread_mutex_lock(&pool.lock);
    if (r != 0) {
        pool.starting = false;
        pool.threads--;
        pthread_cond_broadcast(&pool.calm);
    }
    return r;
}

/* Under the lock. */
static void enqueue(struct pf_job *job)
{
    DL_APPEND(pool.first, job);
    job->queued = pool.process;
    pool.queued++;
}

static void dequeue(struct pf_job *job)
{
    DL_DELETE(pool.first, job);
    job->queued = 0;
    pool.queued--;
}

/* Under the lock: the next job, or NULL when none came for a while, or when those that have come
 * back from Python code are too many. */
static struct pf_job *next_job(void)
{
    struct timespec until = pf_deadline(IDLE_MS);
    struct pf_job *job;

    if (pool.threads - pool.away > MAX_THREADS)
        return NULL;
    pool.idle++;
    pthread_cond_broadcast(&pool.calm);
    while (!pool.first)
        if (pthread_cond_clockwait(&pool.work, &pool.lock, CLOCK_MONOTONIC, &until) == ETIMEDOUT &&
            !pool.first)
            break;
    pool.idle--;
    job = pool.first;
    if (job) {
        dequeue(job);
        if (want_thread())
            add_thread(); /* if none can be made, the work waits for one of those that are */
    }
    return job;
}

static void *work(void *arg)
{
    struct pf_job *job;

    pooled = true;
    pthread_mutex_lock(&pool.lock);
    pool.starting = false;
    while ((job = next_job())) {
        pthread_mutex_unlock(&pool.lock);
        job->run(job);
        pthread_mutex_lock(&pool.lock);
    }
    pool.threads--;
    pthread_cond_broadcast(&pool.calm);
    pthread_mutex_unlock(&pool.lock);
    return arg;
}

int pf_pool_submit(struct pf_job *job)
{
    bool is_first;
    int r;

    pthread_mutex_lock(&pool.lock);
    enqueue(job);
    pthread_cond_signal(&pool.work);
    is_first = pool.threads == 0;
    r = want_thread() ? add_thread() : 0;
    if (r != 0 && is_first) /* nobody would ever take it */
        dequeue(job);
    pthread_mutex_unlock(&pool.lock);
    return is_first ? r : 0;
}

bool pf_pool_withdraw(struct pf_job *job)
{
    bool ours;

    pthread_mutex_lock(&pool.lock);
    ours = job->queued == pool.process; /* in a fork it may be its parent's */
    if (ours) {
        dequeue(job);
        pthread_cond_broadcast(&pool.calm);
    }
    pthread_mutex_unlock(&pool.lock);
    return ours;
}

/* ---- threads that are in Python code ---- */

void pf_pool_step_out(void)
{
    if (!pooled || steps_out++ > 0)
        return;
    pthread_mutex_lock(&pool.lock);
    pool.away++;
    if (want_thread())
        add_thread(); /* if none can be made, the work waits for one of those that are */
    pthread_mutex_unlock(&pool.lock);
}

void pf_pool_step_in(void)
{
    if (!pooled || --steps_out > 0)
        return;
    pthread_mutex_lock(&pool.lock);
    pool.away--;
    pthread_mutex_unlock(&pool.lock);
}

/* ---- threads of their own ---- */

static void end_alone(void)
{
    pthread_mutex_lock(&pool.lock);
    pool.alone--;
    pthread_cond_broadcast(&pool.calm);
    pthread_mutex_unlock(&pool.lock);
}

static void *work_alone(void *arg)
{
    struct pf_job *job = arg;

    job->run(job);
    end_alone();
    return NULL;
}

/* Counted first, since the job may be done before its thread is known to have been made; and made
 * without the lock, for the reason that add_thread() has. */
int pf_pool_start(struct pf_job *job)
{
    int r;

    pthread_mutex_lock(&pool.lock);
    pool.alone++;
    pthread_mutex_unlock(&pool.lock);
    r = start_thread(work_alone, job, STACK_ALONE);
    if (r != 0)
        end_alone();
    return r;
}

int pf_pool_submit_first(struct pf_job *job)
{
    bool is_room;

    pthread_mutex_lock(&pool.lock);
    is_room = pool.idle > pool.queued;
    pthread_mutex_unlock(&pool.lock);
    /* Where no thread can be made one of those that are has to do. */
    return !is_room && pf_pool_start(job) == 0 ? 0 : pf_pool_submit(job);
}

bool pf_pool_wait(double seconds)
{
    struct timespec until = pf_deadline((int64_t)(seconds * 1000));
    bool calm;

    pthread_mutex_lock(&pool.lock);
    while (!(calm = (pool.queued == 0 && pool.idle == pool.threads && pool.alone == 0)))
        if (pthread_cond_clockwait(&pool.calm, &pool.lock, CLOCK_MONOTONIC, &until) == ETIMEDOUT)
            break;
    pthread_mutex_unlock(&pool.lock);
    return calm;
}
