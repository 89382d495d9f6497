/* SPDX-License-Identifier: Apache-2.0 */
/* What an agent does, as its hooks see it: it is counted and told, and may be stopped. */
#include "cli/agent_run.h"

#include <stdio.h>

#include "cli/interrupt.h"

enum { BREAKS_MAX = 3 };

static int on_event(void *ctx, const struct pinfold_model_event *event)
{
    struct pf_agent_run *run = ctx;

    pthread_mutex_lock(&run->lock);
    run->heard |= event->kind != PINFOLD_MODEL_RETRY;
    pf_agent_told(run, run->teller->event(run->teller, event));
    pthread_mutex_unlock(&run->lock);
    return run->broken;
}

/* Whether one more reply is paid for. */
static int before_model(void *ctx, struct pinfold_agent *agent, struct pinfold_error *err)
{
    struct pf_agent_run *run = ctx;
    const struct pinfold_model_usage *usage = &run->tally.usage;
    uint64_t most = run->options->agent.max_tokens;

    (void)agent;
    run->heard = false;
    if (!most || usage->input + usage->output + usage->cache_read + usage->cache_write < most)
        return 0;
    run->over_budget = true;
    err->code = PINFOLD_ECANCELLED;
    snprintf(err->msg, sizeof(err->msg), "the tokens of --max-tokens are used up");
    return -PINFOLD_ECANCELLED;
}

/* A provider asks again by itself until something of a reply has come. What broke off after that
 * was seen by the user, and not by the agent: nothing of it counts, and it can be asked for again.
 */
static void ask_again(struct pf_agent_run *run, struct pinfold_after_model_call *event)
{
    if (!run->heard || !event->error->retryable || run->breaks++ == BREAKS_MAX)
        return;
    event->retry = true;
    pthread_mutex_lock(&run->lock);
    pf_agent_told(run, run->teller->broke_off(run->teller, event->error));
    pthread_mutex_unlock(&run->lock);
}

static int after_model(void *ctx, struct pinfold_after_model_call *event, struct pinfold_error *err)
{
    struct pf_agent_run *run = ctx;
    struct pf_agent_tally *tally = &run->tally;
    const struct pinfold_model_reply *reply = event->reply;

    (void)err;
    if (!reply) {
        ask_again(run, event);
        return 0;
    }
    run->breaks = 0;
    pthread_mutex_lock(&run->lock);
    tally->usage.input += reply->usage.input;
    tally->usage.output += reply->usage.output;
    tally->usage.cache_read += reply->usage.cache_read;
    tally->usage.cache_write += reply->usage.cache_write;
    tally->usage.known = reply->usage.known && (tally->usage.known || !tally->turns);
    tally->turns++;
    tally->stop = reply->stop;
    pf_agent_told(run, run->teller->reply(run->teller, reply));
    pthread_mutex_unlock(&run->lock);
    return 0;
}

/* The call that this thread is in: both hooks of a call are called by the thread that runs it. */
static _Thread_local struct {
    unsigned number;
    int64_t begun_ns;
} this_call;

static int before_tool(void *ctx, struct pinfold_before_tool_call *call, struct pinfold_error *err)
{
    struct pf_agent_run *run = ctx;

    (void)err;
    pthread_mutex_lock(&run->lock);
    this_call.number = ++run->tally.calls;
    pf_agent_told(run, run->teller->call(run->teller, this_call.number, call));
    pthread_mutex_unlock(&run->lock);
    this_call.begun_ns = pf_now_ns();
    return 0;
}

static int after_tool(void *ctx, struct pinfold_after_tool_call *call, struct pinfold_error *err)
{
    struct pf_agent_run *run = ctx;
    double seconds = (double)(pf_now_ns() - this_call.begun_ns) / 1e9;

    (void)err;
    pthread_mutex_lock(&run->lock);
    pf_agent_told(run, run->teller->result(run->teller, this_call.number, seconds, call));
    pthread_mutex_unlock(&run->lock);
    return 0;
}

void pf_agent_watch(struct pf_agent_run *run, struct pinfold_agent_config *config,
                    struct pinfold_hooks *hooks)
{
    config->on_event = on_event;
    config->on_event_ctx = run;
    hooks->before_model_call = before_model;
    hooks->after_model_call = after_model;
    hooks->before_tool_call = before_tool;
    hooks->after_tool_call = after_tool;
    hooks->ctx = run;
}
