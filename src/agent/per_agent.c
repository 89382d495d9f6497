/* SPDX-License-Identifier: Apache-2.0 */
/* The per-agent path: a workspace that the agent's configuration asks for, made when it is needed,
 * and shared with those who ask the same manager for the same id. */
#include "agent/agent.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "sandbox/handle.h"

bool pf_has_own_workspace(const struct pinfold_agent *agent)
{
    return agent->backend;
}

static void binding_freep(struct pf_binding **binding)
{
    if (*binding)
        pf_sandbox_handle_free((*binding)->sandbox);
    free(*binding);
}

void pf_own_workspace_drop(struct pinfold_agent *agent)
{
    PF_CLEANUP(binding_freep) struct pf_binding *binding = pf_unbind(agent, true);

    (void)binding; /* freed at the end of the scope */
}

/* Whether there is one and its session lives. The lock is held. */
static bool prepared_locked(const struct pinfold_agent *agent)
{
    return agent->binding && agent->binding->own && pf_sandbox_handle_live(agent->binding->sandbox);
}

bool pinfold_workspace_is_prepared(struct pinfold_agent *agent)
{
    bool prepared;

    pthread_mutex_lock(&agent->lock);
    prepared = prepared_locked(agent);
    pthread_mutex_unlock(&agent->lock);
    return prepared;
}

bool pinfold_sandbox_is_active(struct pinfold_agent *agent)
{
    return pf_has_own_workspace(agent) || pinfold_agent_is_attached(agent);
}

/* ---- one at a time ---- */

/* Wait for whoever prepares or closes, and be the next. Returns 0 or -PINFOLD_ECANCELLED. */
static int begin_change(struct pinfold_agent *agent, struct pinfold_cancel *cancel,
                        struct pinfold_error *err)
{
    int r = 0;

    pthread_mutex_lock(&agent->lock);
    while (r == 0 && agent->preparing) {
        int64_t tick = pf_clock_deadline(50 * PF_NS_PER_MS);

        pthread_cond_clockwait(&agent->changed, &agent->lock, CLOCK_MONOTONIC,
                               &(struct timespec){ .tv_sec = tick / PF_NS_PER_SEC,
                                                   .tv_nsec = tick % PF_NS_PER_SEC });
        r = pf_cancel_check(cancel, err);
    }
    if (r == 0)
        agent->preparing = true;
    pthread_mutex_unlock(&agent->lock);
    return r;
}

static void end_change(struct pinfold_agent *agent)
{
    pthread_mutex_lock(&agent->lock);
    agent->preparing = false;
    pthread_cond_broadcast(&agent->changed);
    pthread_mutex_unlock(&agent->lock);
}

/* ---- prepare ---- */

static int prepare(struct pinfold_agent *agent, struct pinfold_seed_result *seed,
                   struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    PF_CLEANUP(binding_freep) struct pf_binding *binding = calloc(1, sizeof(*binding));
    struct pf_own_workspace own = { .manager = agent->manager,
                                    .backend = agent->backend,
                                    .agent_id = agent->id,
                                    .root = agent->workspace_root,
                                    .policy = agent->policy };
    int r;

    if (!binding)
        return pf_fail_nomem(err);
    binding->own = true;
    r = pinfold_manager_resolve_workspace_id(
            agent->manager,
            &(struct pinfold_agent_ids){ .sandbox_workspace_id = agent->workspace_id,
                                         .session_id = agent->session_id,
                                         .agent_id = agent->id },
            &own.workspace_id, err);
    if (r == 0)
        r = pf_sandbox_handle_own(&own, &binding->sandbox, seed, cancel, err);
    if (r == 0)
        pf_bind(agent, TAKE(binding));
    return r;
}

int pinfold_prepare_workspace(struct pinfold_agent *agent, struct pinfold_seed_result *ret_seed,
                              struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    PF_CLEANUP(pinfold_seed_result_done) struct pinfold_seed_result seed = { 0 };
    int r;

    if (ret_seed)
        memset(ret_seed, 0, sizeof(*ret_seed));
    if (!pf_has_own_workspace(agent))
        return 0;
    r = begin_change(agent, cancel, err);
    if (r < 0)
        return r;
    if (!pinfold_workspace_is_prepared(agent)) {
        pf_own_workspace_drop(agent); /* of a session that has ended */
        r = prepare(agent, &seed, cancel, err);
    }
    end_change(agent);
    if (ret_seed) {
        *ret_seed = seed;
        seed = (struct pinfold_seed_result){ 0 };
    }
    return r < 0 ? pf_wrap(err, r, "prepare the workspace of agent %s", PF_QUOTE(agent->id)) : 0;
}

static int orchestrate(void *ctx, struct pinfold_agent *agent, struct pinfold_cancel *cancel,
                       struct pinfold_error *err)
{
    (void)ctx;
    return pinfold_prepare_workspace(agent, NULL, cancel, err);
}

struct pinfold_hooks pinfold_workspace_orchestrator(void)
{
    struct pinfold_hooks hooks = PINFOLD_HOOKS_INIT;

    hooks.before_invocation = orchestrate;
    return hooks;
}

/* ---- sync and close ---- */

int pinfold_sync_workspace_artifacts(struct pinfold_agent *agent,
                                     struct pinfold_sync_result *ret_result,
                                     struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    PF_CLEANUP(pinfold_sync_result_done) struct pinfold_sync_result result = { 0 };
    struct pf_use use;
    int r;

    if (ret_result)
        memset(ret_result, 0, sizeof(*ret_result));
    if (!pinfold_workspace_is_prepared(agent))
        return 0;
    r = pf_use_begin(agent, false, cancel, &use, err);
    if (r < 0)
        return r;
    r = pinfold_sandbox_flush(use.binding->sandbox, NULL, &result, use.op.cancel, err);
    r = pf_use_end(&use, r, err);
    if (r == 1 && result.errors.count > 0)
        r = pf_fail(err, PINFOLD_EPREPARE, "sync to %s: %zu path(s) failed, first: %s",
                    PF_QUOTE(agent->workspace_root), result.errors.count, result.errors.items[0]);
    if (ret_result) {
        *ret_result = result;
        result = (struct pinfold_sync_result){ 0 };
    }
    return r;
}

int pinfold_close_sandbox_workspace(struct pinfold_agent *agent, bool sync_artifacts,
                                    struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    int r = begin_change(agent, NULL, err);
    PF_CLEANUP(binding_freep) struct pf_binding *binding = pf_unbind(agent, true);

    if (binding)
        r = pf_sandbox_handle_close(binding->sandbox, sync_artifacts, cancel, err);
    end_change(agent);
    return r;
}
