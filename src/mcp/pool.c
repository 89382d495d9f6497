/* SPDX-License-Identifier: Apache-2.0 */
#include "mcp/pool.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <utlist.h>

#include "mcp/state.h"

/* How long a thread waits for something to do before it ends. */
#define IDLE_NS (10 * PF_MCP_SECOND)

struct pf_mcp_pool {
    pthread_mutex_t lock;
    pthread_cond_t work; /* there is a task, or the end has come */
    pthread_cond_t gone; /* a thread has ended */
    struct pf_mcp_task *tasks;
    unsigned waiting_tasks;
    unsigned threads, idle, max_threads;
    bool ending;
};

int pf_mcp_pool_new(unsigned max_threads, struct pf_mcp_pool **ret, struct pinfold_error *err)
{
    struct pf_mcp_pool *pool = calloc(1, sizeof(*pool));

    if (!pool)
        return pf_mcp_nomem(err);
    pool->max_threads = max_threads;
    pthread_mutex_init(&pool->lock, NULL);
    pf_mcp_cond_init(&pool->work);
    pthread_cond_init(&pool->gone, NULL);
    *ret = pool;
    return 0;
}

/* The next task, or NULL when this thread is to end. The lock is held. */
static struct pf_mcp_task *next_task(struct pf_mcp_pool *pool)
{
    struct pf_mcp_task *task;
    struct timespec until = pf_mcp_after(IDLE_NS);

    pool->idle++;
    while (!pool->tasks && !pool->ending)
        if (pthread_cond_timedwait(&pool->work, &pool->lock, &until) != 0)
            break;
    pool->idle--;
    task = pool->tasks;
    if (task) {
        DL_DELETE(pool->tasks, task);
        pool->waiting_tasks--;
    }
    return task;
}

static void *work(void *ctx)
{
    struct pf_mcp_pool *pool = ctx;
    struct pf_mcp_task *task;

    pthread_mutex_lock(&pool->lock);
    while ((task = next_task(pool))) {
        pthread_mutex_unlock(&pool->lock);
        task->run(task);
        pthread_mutex_lock(&pool->lock);
    }
    pool->threads--;
    pthread_cond_broadcast(&pool->gone);
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

/* The lock is held. */
static bool add_thread(struct pf_mcp_pool *pool)
{
    pthread_attr_t attr;
    pthread_t thread;
    int failed;

    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    failed = pthread_create(&thread, &attr, work, pool);
    pthread_attr_destroy(&attr);
    if (failed)
        return false;
    pool->threads++;
    return true;
}

int pf_mcp_pool_run(struct pf_mcp_pool *pool, struct pf_mcp_task *task)
{
    int r = 0;

    pthread_mutex_lock(&pool->lock);
    if (pool->waiting_tasks >= pool->idle && pool->threads < pool->max_threads &&
        !add_thread(pool) && pool->threads == 0)
        r = -PINFOLD_EOS;
    if (r == 0) {
        DL_APPEND(pool->tasks, task);
        pool->waiting_tasks++;
        pthread_cond_signal(&pool->work);
    }
    pthread_mutex_unlock(&pool->lock);
    return r;
}

void pf_mcp_pool_drain(struct pf_mcp_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    pool->ending = true;
    pthread_cond_broadcast(&pool->work);
    while (pool->threads)
        pthread_cond_wait(&pool->gone, &pool->lock);
    pthread_mutex_unlock(&pool->lock);
}

void pf_mcp_pool_free(struct pf_mcp_pool *pool)
{
    if (!pool)
        return;
    pf_mcp_pool_drain(pool);
    pthread_cond_destroy(&pool->work);
    pthread_cond_destroy(&pool->gone);
    pthread_mutex_destroy(&pool->lock);
    free(pool);
}
