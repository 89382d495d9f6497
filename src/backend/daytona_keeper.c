/* SPDX-License-Identifier: Apache-2.0 */
/* The service stops a sandbox that nobody uses for some minutes, and an agent that thinks uses
 * none. While the workspace is open a thread tells the service that it is wanted. */
#include <errno.h>
#include <signal.h>
#include <time.h>

#include "backend/daytona.h"
#include "base/error.h"
#include "base/log.h"

#define MOST_MINUTES (INT64_C(60) * 24 * 365) /* more would not fit in nanoseconds */

static struct timespec after(int64_t ns)
{
    int64_t until = pf_clock_deadline(ns);

    return (struct timespec){ .tv_sec = until / PF_NS_PER_SEC, .tv_nsec = until % PF_NS_PER_SEC };
}

static void *keep(void *arg)
{
    struct pf_dt_box *box = arg;
    int64_t minutes = box->auto_stop_minutes < MOST_MINUTES ? box->auto_stop_minutes : MOST_MINUTES;
    int64_t pause = minutes * 60 * PF_NS_PER_SEC / 3;
    struct timespec until = after(pause);

    pthread_mutex_lock(&box->lock);
    while (!box->ending) {
        struct pinfold_error err = PINFOLD_ERROR_INIT;
        struct pf_daytona_call call = { .also_cancel = box->stop };
        if (pthread_cond_timedwait(&box->changed, &box->lock, &until) != ETIMEDOUT)
            continue;
        pthread_mutex_unlock(&box->lock);
        call.deadline = pf_clock_deadline(30 * PF_NS_PER_SEC);
        /* Who is stopped all the same is started again by the next call. */
        if (pf_daytona_touch(box->client, box->id, &call, &err) < 0 &&
            err.code != PINFOLD_ECANCELLED)
            pf_log(PINFOLD_LOG_WARNING, "%s", err.msg);
        until = after(pause);
        pthread_mutex_lock(&box->lock);
    }
    pthread_mutex_unlock(&box->lock);
    return NULL;
}

void pf_dt_keeper_start(struct pf_dt_box *box)
{
    sigset_t all, before;

    if (box->auto_stop_minutes < 0)
        return;
    sigfillset(&all); /* signals are the program's, and go to its threads */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    box->kept = pthread_create(&box->keeper, NULL, keep, box) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!box->kept)
        pf_log(PINFOLD_LOG_WARNING,
               "Daytona: no thread to keep the sandbox awake: it is stopped after %d minutes "
               "without use",
               box->auto_stop_minutes);
}

void pf_dt_keeper_end(struct pf_dt_box *box)
{
    if (!box->kept)
        return;
    pthread_mutex_lock(&box->lock);
    box->ending = true;
    pthread_cond_broadcast(&box->changed);
    pthread_mutex_unlock(&box->lock);
    pthread_join(box->keeper, NULL);
    box->kept = false;
}
