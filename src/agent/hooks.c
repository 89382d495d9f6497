/* SPDX-License-Identifier: Apache-2.0 */
/* Calling hooks. The list only grows while the agent lives, so that going on to the next entry is
 * all that takes the lock. */
#include "agent/agent.h"

#include <stdlib.h>
#include <utlist.h>

#include "base/error.h"

int pinfold_agent_add_hooks(struct pinfold_agent *agent, const struct pinfold_hooks *hooks,
                            struct pinfold_error *err)
{
    struct pf_hook *hook;

    if (hooks->size != sizeof(*hooks))
        return pf_fail(err, PINFOLD_EVALUE, "hooks: a table of %zu bytes, not %zu", hooks->size,
                       sizeof(*hooks));
    hook = calloc(1, sizeof(*hook));
    if (!hook)
        return pf_fail_nomem(err);
    hook->hooks = *hooks;
    pthread_mutex_lock(&agent->lock);
    DL_APPEND(agent->hooks, hook);
    pthread_mutex_unlock(&agent->lock);
    return 0;
}

/* The hook after this one (NULL: the first), or NULL. */
static const struct pf_hook *next_hook(struct pinfold_agent *agent, const struct pf_hook *hook)
{
    const struct pf_hook *next;

    pthread_mutex_lock(&agent->lock);
    next = hook ? hook->next : agent->hooks;
    pthread_mutex_unlock(&agent->lock);
    return next;
}

/* The hook before this one (NULL: the last), or NULL. The first one's prev is the last. */
static const struct pf_hook *previous_hook(struct pinfold_agent *agent, const struct pf_hook *hook)
{
    const struct pf_hook *previous;

    pthread_mutex_lock(&agent->lock);
    if (!hook)
        previous = agent->hooks ? agent->hooks->prev : NULL;
    else
        previous = hook == agent->hooks ? NULL : hook->prev;
    pthread_mutex_unlock(&agent->lock);
    return previous;
}

/* Hooks always get an error to fill, whether the caller wants it or not. */
static int finish(int r, struct pinfold_error *own, struct pinfold_error *err)
{
    if (r < 0 && !own->code)
        pf_fail(own, (enum pinfold_code) - r, "a hook failed, and did not say why");
    if (r < 0 && err)
        *err = *own;
    return r;
}

int pf_hooks_initialized(struct pinfold_agent *agent, struct pinfold_error *err)
{
    struct pinfold_error own = PINFOLD_ERROR_INIT;
    const struct pf_hook *hook = NULL;
    int r = 0;

    while (r == 0 && (hook = next_hook(agent, hook)))
        if (hook->hooks.agent_initialized)
            r = hook->hooks.agent_initialized(hook->hooks.ctx, agent, &own);
    return finish(r, &own, err);
}

int pf_hooks_before_invocation(struct pinfold_agent *agent, struct pinfold_cancel *cancel,
                               struct pinfold_error *err)
{
    struct pinfold_error own = PINFOLD_ERROR_INIT;
    const struct pf_hook *hook = NULL;
    int r = 0;

    while (r == 0 && (hook = next_hook(agent, hook)))
        if (hook->hooks.before_invocation)
            r = hook->hooks.before_invocation(hook->hooks.ctx, agent, cancel, &own);
    return finish(r, &own, err);
}

int pf_hooks_before_model(struct pinfold_agent *agent, struct pinfold_error *err)
{
    struct pinfold_error own = PINFOLD_ERROR_INIT;
    const struct pf_hook *hook = NULL;
    int r = 0;

    while (r == 0 && (hook = next_hook(agent, hook)))
        if (hook->hooks.before_model_call)
            r = hook->hooks.before_model_call(hook->hooks.ctx, agent, &own);
    return finish(r, &own, err);
}

int pf_hooks_after_model(struct pinfold_agent *agent, struct pinfold_after_model_call *event,
                         struct pinfold_error *err)
{
    struct pinfold_error own = PINFOLD_ERROR_INIT;
    const struct pf_hook *hook = NULL;
    int r = 0;

    while (r == 0 && (hook = previous_hook(agent, hook)))
        if (hook->hooks.after_model_call)
            r = hook->hooks.after_model_call(hook->hooks.ctx, event, &own);
    return finish(r, &own, err);
}

int pf_hooks_message(struct pinfold_agent *agent, const struct pinfold_message *message,
                     struct pinfold_error *err)
{
    struct pinfold_error own = PINFOLD_ERROR_INIT;
    const struct pf_hook *hook = NULL;
    int r = 0;

    while (r == 0 && (hook = next_hook(agent, hook)))
        if (hook->hooks.message_added)
            r = hook->hooks.message_added(hook->hooks.ctx, agent, message, &own);
    return finish(r, &own, err);
}

int pf_hooks_after_invocation(struct pinfold_agent *agent, int result, struct pinfold_error *err)
{
    struct pinfold_error own = PINFOLD_ERROR_INIT;
    const struct pf_hook *hook = NULL;
    int r = 0;

    while (r == 0 && (hook = previous_hook(agent, hook)))
        if (hook->hooks.after_invocation)
            r = hook->hooks.after_invocation(hook->hooks.ctx, agent, result, &own);
    return finish(r, &own, err);
}

int pf_hooks_before_tool(struct pinfold_agent *agent, struct pinfold_before_tool_call *event,
                         struct pinfold_error *err)
{
    struct pinfold_error own = PINFOLD_ERROR_INIT;
    const struct pf_hook *hook = NULL;
    int r = 0;

    while (r == 0 && (hook = next_hook(agent, hook)))
        if (hook->hooks.before_tool_call)
            r = hook->hooks.before_tool_call(hook->hooks.ctx, event, &own);
    return finish(r, &own, err);
}

int pf_hooks_after_tool(struct pinfold_agent *agent, struct pinfold_after_tool_call *event,
                        struct pinfold_error *err)
{
    struct pinfold_error own = PINFOLD_ERROR_INIT;
    const struct pf_hook *hook = NULL;
    int r = 0;

    while (r == 0 && (hook = previous_hook(agent, hook)))
        if (hook->hooks.after_tool_call)
            r = hook->hooks.after_tool_call(hook->hooks.ctx, event, &own);
    return finish(r, &own, err);
}

void pf_hooks_clear(struct pinfold_agent *agent, bool free_contexts)
{
    struct pf_hook *hook, *next;

    DL_FOREACH_SAFE(agent->hooks, hook, next) {
        DL_DELETE(agent->hooks, hook);
        if (free_contexts && hook->hooks.free)
            hook->hooks.free(hook->hooks.ctx);
        free(hook);
    }
}
