/* SPDX-License-Identifier: Apache-2.0 */
/* The tool calls of one turn, several at once. */
#include "agent/agent.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "base/error.h"

/* What the threads share. */
struct turn {
    struct pinfold_agent *agent;
    const struct pf_tool_use *uses;
    size_t count;
    struct pinfold_cancel *cancel; /* fires when one of them fails, too */
    struct pinfold_tool_result *results;
    pthread_mutex_t lock; /* guards what follows */
    size_t next;
    int r; /* of the first that failed */
    struct pinfold_error err;
};

static void fail_turn(struct turn *turn, int r, const struct pinfold_error *err)
{
    pthread_mutex_lock(&turn->lock);
    if (turn->r == 0) {
        turn->r = r;
        turn->err = *err;
    }
    pthread_mutex_unlock(&turn->lock);
    pinfold_cancel_fire(turn->cancel); /* nothing of a turn runs on after it */
}

static void *work(void *ctx)
{
    struct turn *turn = ctx;
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    size_t i;

    for (;;) {
        int r;

        pthread_mutex_lock(&turn->lock);
        i = turn->next++;
        pthread_mutex_unlock(&turn->lock);
        if (i >= turn->count)
            return NULL;
        r = pf_agent_call(turn->agent, &turn->uses[i], turn->cancel, &turn->results[i], &err);
        if (r < 0)
            fail_turn(turn, r, &err);
    }
}

int pf_agent_call_all(struct pinfold_agent *agent, const struct pf_tool_use *uses, size_t count,
                      struct pinfold_cancel *cancel, struct pinfold_tool_result *results,
                      struct pinfold_error *err)
{
    struct turn turn = { .agent = agent,
                         .uses = uses,
                         .count = count,
                         .results = results,
                         .lock = PTHREAD_MUTEX_INITIALIZER };
    size_t wanted = count < agent->max_parallel ? count : agent->max_parallel, started = 0;
    _cleanup_free_ pthread_t *threads = calloc(wanted + 1, sizeof(*threads));
    int r = pf_cancel_new_linked(cancel, &turn.cancel, err);

    if (r < 0)
        return r;
    /* This thread is one of them. Where there can be no more, fewer do it. */
    while (threads && started + 1 < wanted &&
           pthread_create(&threads[started], NULL, work, &turn) == 0)
        started++;
    work(&turn);
    for (size_t i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    pinfold_cancel_free(turn.cancel);
    if (turn.r < 0 && err)
        *err = turn.err;
    return turn.r;
}
