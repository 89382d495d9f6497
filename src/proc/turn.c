/* SPDX-License-Identifier: Apache-2.0 */
#include "proc/turn.h"

#include <pthread.h>
#include <sched.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"

/* One more than processors, so that none of them is idle until a thread of ours wakes up. */
enum { MORE_THAN_PROCESSORS = 1, MAX_PLACES = 128 };

static struct {
    pthread_mutex_t door; /* held by who waits for a place: only that one wakes up for it */
    pthread_mutex_t lock;
    pthread_cond_t ended;
    pthread_once_t once;
    unsigned places;
    uint64_t tickets;
    struct place {
        uint64_t ticket; /* 0: free */
        int64_t until;
    } place[MAX_PLACES];
} turns = { .door = PTHREAD_MUTEX_INITIALIZER,
            .lock = PTHREAD_MUTEX_INITIALIZER,
            .ended = PTHREAD_COND_INITIALIZER,
            .once = PTHREAD_ONCE_INIT };

static void before_fork(void)
{
    pthread_mutex_lock(&turns.door);
    pthread_mutex_lock(&turns.lock);
}

static void after_fork(void)
{
    pthread_mutex_unlock(&turns.lock);
    pthread_mutex_unlock(&turns.door);
}

static void set_up(void)
{
    cpu_set_t allowed;
    int count = sched_getaffinity(0, sizeof(allowed), &allowed) < 0 ? 1 : CPU_COUNT(&allowed);

    turns.places = (unsigned)count + MORE_THAN_PROCESSORS;
    if (turns.places > MAX_PLACES)
        turns.places = MAX_PLACES;
    pthread_atfork(before_fork, after_fork, after_fork);
}

/* Under the lock: a place, or NULL and the time at which one becomes free at the latest. */
static struct place *find_place(int64_t now, int64_t *ret_until)
{
    *ret_until = PF_NEVER;
    for (unsigned i = 0; i < turns.places; i++) {
        struct place *place = &turns.place[i];
        if (place->ticket == 0 || place->until <= now)
            return place;
        if (place->until < *ret_until)
            *ret_until = place->until;
    }
    return NULL;
}

struct pf_turn pf_turn_take(void)
{
    struct pf_turn turn;
    struct place *place;
    int64_t now, until;

    pthread_once(&turns.once, set_up);
    pthread_mutex_lock(&turns.door);
    pthread_mutex_lock(&turns.lock);
    while (!(place = find_place(now = pf_clock_now(), &until))) {
        struct timespec at = { until / PF_NS_PER_SEC, until % PF_NS_PER_SEC };
        pthread_cond_clockwait(&turns.ended, &turns.lock, CLOCK_MONOTONIC, &at);
    }
    turn = (struct pf_turn){ .ticket = ++turns.tickets, .place = (unsigned)(place - turns.place) };
    *place = (struct place){ turn.ticket, now + PF_TURN_NS };
    pthread_mutex_unlock(&turns.lock);
    pthread_mutex_unlock(&turns.door);
    return turn;
}

void pf_turn_end(struct pf_turn *turn)
{
    if (turn->ticket == 0)
        return;
    pthread_mutex_lock(&turns.lock);
    if (turns.place[turn->place].ticket == turn->ticket) {
        turns.place[turn->place].ticket = 0;
        pthread_cond_signal(&turns.ended);
    }
    pthread_mutex_unlock(&turns.lock);
    turn->ticket = 0;
}
