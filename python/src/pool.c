/* SPDX-License-Identifier: Apache-2.0 */
#include "pool.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>

enum {
    MAX_THREADS = 512,
    IDLE_MS = 5000,
    STACK = 1 << 20, /* a call may run Python code */
};

static struct {
    pthread_mutex_t lock;
    pthread_cond_t work, calm;
    struct pf_job *first, **last;
    unsigned queued, threads, idle;
} pool = { .lock = PTHREAD_MUTEX_INITIALIZER,
           .work = PTHREAD_COND_INITIALIZER,
           .calm = PTHREAD_COND_INITIALIZER,
           .last = &pool.first };

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

/* ---- fork ---- */

/* The child has none of the threads, and what they were at is not its business. */
static void after_fork_in_child(void)
{
    pthread_mutex_init(&pool.lock, NULL);
    pthread_cond_init(&pool.work, NULL);
    pthread_cond_init(&pool.calm, NULL);
    pool.first = NULL;
    pool.last = &pool.first;
    pool.queued = pool.threads = pool.idle = 0;
}

static void before_fork(void)
{
    pthread_mutex_lock(&pool.lock);
}

static void after_fork_in_parent(void)
{
    pthread_mutex_unlock(&pool.lock);
}

static void watch_forks(void)
{
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

/* ---- threads ---- */

/* Under the lock: the next job, or NULL when none came for a while. */
static struct pf_job *next_job(void)
{
    struct timespec until = pf_deadline(IDLE_MS);
    struct pf_job *job;

    pool.idle++;
    if (pool.idle == pool.threads)
        pthread_cond_broadcast(&pool.calm);
    while (!pool.first)
        if (pthread_cond_clockwait(&pool.work, &pool.lock, CLOCK_MONOTONIC, &until) == ETIMEDOUT &&
            !pool.first)
            break;
    pool.idle--;
    job = pool.first;
    if (job) {
        pool.first = job->next;
        if (!pool.first)
            pool.last = &pool.first;
        pool.queued--;
    }
    return job;
}

static void *work(void *arg)
{
    struct pf_job *job;

    pthread_mutex_lock(&pool.lock);
    while ((job = next_job())) {
        pthread_mutex_unlock(&pool.lock);
        job->run(job);
        pthread_mutex_lock(&pool.lock);
    }
    pool.threads--;
    pthread_mutex_unlock(&pool.lock);
    return arg;
}

/* Signals are left to the threads of Python, whose handlers expect to run there. */
static int start_thread(void)
{
    pthread_attr_t attributes;
    sigset_t all, old;
    pthread_t thread;
    int r;

    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, STACK);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    r = pthread_create(&thread, &attributes, work, NULL);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_attr_destroy(&attributes);
    return r;
}

int pf_pool_submit(struct pf_job *job)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    int r = 0;

    pthread_once(&once, watch_forks);
    job->next = NULL;
    pthread_mutex_lock(&pool.lock);
    if (pool.idle <= pool.queued && pool.threads < MAX_THREADS) {
        r = start_thread();
        if (r == 0)
            pool.threads++;
        else if (pool.threads > 0)
            r = 0; /* it waits for one of those */
    }
    if (r == 0) {
        *pool.last = job;
        pool.last = &job->next;
        pool.queued++;
        pthread_cond_signal(&pool.work);
    }
    pthread_mutex_unlock(&pool.lock);
    return r;
}

bool pf_pool_wait(double seconds)
{
    struct timespec until = pf_deadline((int64_t)(seconds * 1000));
    bool calm;

    pthread_mutex_lock(&pool.lock);
    while (!(calm = pool.queued == 0 && pool.idle == pool.threads))
        if (pthread_cond_clockwait(&pool.calm, &pool.lock, CLOCK_MONOTONIC, &until) == ETIMEDOUT)
            break;
    pthread_mutex_unlock(&pool.lock);
    return calm;
}
