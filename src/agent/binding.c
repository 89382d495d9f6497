/* SPDX-License-Identifier: Apache-2.0 */
/* The workspace that an agent has: giving it, taking it away, and operations in it. */
#include "agent/agent.h"

#include <stdlib.h>
#include <utlist.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "sandbox/sandbox.h"

/* ---- operations ---- */

/* Why an operation may not begin. The lock is held. */
static int refuse_locked(const struct pinfold_agent *agent, bool change, struct pinfold_error *err)
{
    const struct pf_binding *binding = agent->binding;

    if (binding && change && binding->mode == PINFOLD_READ_ONLY)
        return pf_fail(err, PINFOLD_EDENIED,
                       "the workspace is read-only for agent %s: it can read and list files, and "
                       "neither run commands nor write",
                       PF_QUOTE(agent->id));
    if (binding)
        return 0;
    if (agent->had_binding && !pf_has_own_workspace(agent))
        return pf_fail(err, PINFOLD_EDETACHED,
                       "agent %s is no longer attached to a workspace; attach it again",
                       PF_QUOTE(agent->id));
    if (pf_has_own_workspace(agent))
        return pf_fail(err, PINFOLD_ESTART,
                       "the workspace of agent %s is not prepared: an invocation, or "
                       "prepare_workspace, does that",
                       PF_QUOTE(agent->id));
    return pf_fail(err, PINFOLD_EDETACHED, "agent %s has no workspace: attach it to a sandbox",
                   PF_QUOTE(agent->id));
}

int pinfold_ensure_sandbox_mutation_allowed(struct pinfold_agent *agent, struct pinfold_error *err)
{
    int r;

    pthread_mutex_lock(&agent->lock);
    r = refuse_locked(agent, true, err);
    pthread_mutex_unlock(&agent->lock);
    return r;
}

int pf_use_begin(struct pinfold_agent *agent, bool change, struct pinfold_cancel *cancel,
                 struct pf_use *use, struct pinfold_error *err)
{
    int r;

    *use = (struct pf_use){ .agent = agent, .parent = cancel };
    r = pf_cancel_new_linked(cancel, &use->op.cancel, err);
    if (r < 0)
        return r;
    pthread_mutex_lock(&agent->lock);
    r = refuse_locked(agent, change, err);
    if (r == 0) {
        use->binding = agent->binding;
        DL_APPEND(use->binding->ops, &use->op);
    }
    pthread_mutex_unlock(&agent->lock);
    if (r < 0)
        pinfold_cancel_free(use->op.cancel);
    return r;
}

int pf_use_end(struct pf_use *use, int r, struct pinfold_error *err)
{
    struct pinfold_agent *agent = use->agent;
    bool ended;

    pthread_mutex_lock(&agent->lock);
    ended = use->binding->ended;
    DL_DELETE(use->binding->ops, &use->op);
    pthread_cond_broadcast(&agent->changed);
    pthread_mutex_unlock(&agent->lock);
    pinfold_cancel_free(use->op.cancel);
    /* What it then says, that it was cancelled or that the sandbox is closing, is not the cause. */
    if (ended && (r == -PINFOLD_ECANCELLED || r == -PINFOLD_ESTART) &&
        !pinfold_cancel_fired(use->parent))
        return pf_fail(err, PINFOLD_EDETACHED, "agent %s was detached from the workspace meanwhile",
                       PF_QUOTE(agent->id));
    return r;
}

/* ---- giving and taking ---- */

void pf_bind(struct pinfold_agent *agent, struct pf_binding *binding)
{
    pthread_mutex_lock(&agent->lock);
    agent->binding = binding;
    agent->had_binding = true;
    pthread_mutex_unlock(&agent->lock);
}

struct pf_binding *pf_unbind(struct pinfold_agent *agent, bool own)
{
    struct pf_binding *binding;
    struct pf_op *op;

    pthread_mutex_lock(&agent->lock);
    binding = agent->binding;
    if (binding && binding->own == own) {
        agent->binding = NULL;
        binding->ended = true;
        DL_FOREACH(binding->ops, op)
            pinfold_cancel_fire(op->cancel);
        while (binding->ops)
            pthread_cond_wait(&agent->changed, &agent->lock);
    } else {
        binding = NULL;
    }
    pthread_mutex_unlock(&agent->lock);
    return binding;
}

/* ---- attach ---- */

struct attach {
    struct pinfold_sandbox *sandbox;
    enum pinfold_attach_mode mode;
};

/* A view for those who may only read, where there can be one: then the kernel holds what hooks and
 * the registry promise. */
static int open_handle(struct pinfold_agent *agent, const struct attach *attach,
                       struct pinfold_sandbox **ret, struct pinfold_error *err)
{
    int r = -PINFOLD_ENOTSUP;

    if (attach->mode == PINFOLD_READ_ONLY)
        r = pf_sandbox_view_for(attach->sandbox, agent->id, ret, err);
    return r == -PINFOLD_ENOTSUP ? pf_sandbox_handle(attach->sandbox, agent->id, ret, err) : r;
}

static int check_config(struct pinfold_agent *agent, struct pinfold_error *err)
{
    enum pinfold_sandbox_mode mode = pinfold_agent_mode(agent);

    if (pf_has_own_workspace(agent))
        return pf_fail(err, PINFOLD_EATTACH, "agent %s has a workspace of its own",
                       PF_QUOTE(agent->id));
    if (mode == PINFOLD_SANDBOX_LOCAL)
        return pf_fail(err, PINFOLD_EATTACH,
                       "agent %s is in the mode \"local_dev\", in which host tools stay",
                       PF_QUOTE(agent->id));
    return 0;
}

static int ensure_plugin(struct pinfold_agent *agent, bool *ret_added, struct pinfold_error *err)
{
    struct pinfold_plugin *plugin = NULL;
    int r;

    *ret_added = false;
    if (pinfold_agent_has_plugin(agent, pf_sandbox_plugin_name))
        return 0;
    r = pinfold_sandbox_plugin_new(&plugin, err);
    if (r == 0)
        r = pinfold_agent_add_plugin(agent, plugin, err);
    pinfold_plugin_unref(plugin);
    *ret_added = r == 0;
    return r;
}

static void binding_freep(struct pf_binding **binding)
{
    if (*binding)
        pf_sandbox_handle_free((*binding)->sandbox);
    free(*binding);
}

/* Everything that can fail, and then what cannot. */
static int wire(void *ctx_agent, void *ctx, struct pinfold_error *err)
{
    PF_CLEANUP(binding_freep) struct pf_binding *binding = calloc(1, sizeof(*binding));
    const struct attach *attach = ctx;
    struct pinfold_agent *agent = ctx_agent;
    bool added_plugin;
    int r;

    if (!binding)
        return pf_fail_nomem(err);
    binding->mode = attach->mode;
    r = check_config(agent, err);
    if (r == 0)
        r = open_handle(agent, attach, &binding->sandbox, err);
    if (r == 0)
        r = ensure_plugin(agent, &added_plugin, err);
    if (r < 0)
        return r;
    r = pf_workspace_tools_add(agent, pinfold_supports_execution(attach->sandbox->backend),
                               attach->mode, err);
    if (r < 0 && added_plugin)
        pf_plugin_remove(agent, pf_sandbox_plugin_name);
    if (r < 0)
        return r;
    pf_registry_enter_sandbox(agent);
    pf_bind(agent, TAKE(binding));
    return 0;
}

static void unwire(void *ctx_agent, void *ctx)
{
    struct pinfold_agent *agent = ctx_agent;
    PF_CLEANUP(binding_freep) struct pf_binding *binding = pf_unbind(agent, false);

    (void)ctx;
    (void)binding;
    pf_workspace_tools_remove(agent);
}

int pinfold_agent_attach(struct pinfold_agent *agent, struct pinfold_sandbox *sandbox,
                         enum pinfold_attach_mode mode, struct pinfold_error *err)
{
    struct attach attach = { .sandbox = sandbox, .mode = mode };

    if (!sandbox)
        return pf_fail(err, PINFOLD_EATTACH, "attach agent %s: no sandbox", PF_QUOTE(agent->id));
    if (mode != PINFOLD_READ_WRITE && mode != PINFOLD_READ_ONLY)
        return pf_fail(err, PINFOLD_EATTACH, "attach agent %s: there is no mode %d",
                       PF_QUOTE(agent->id), (int)mode);
    /* attach is looked at by wire alone, before this returns. */
    return pinfold_sandbox_attach(
            sandbox,
            &(struct pinfold_attach_request){ .size = sizeof(struct pinfold_attach_request),
                                              .agent = agent,
                                              .agent_id = agent->id,
                                              .mode = mode,
                                              .wire = wire,
                                              .unwire = unwire,
                                              .ctx = &attach },
            err);
}

void pinfold_agent_detach(struct pinfold_agent *agent)
{
    pf_sandbox_detach_agent(agent);
}

bool pinfold_agent_is_attached(struct pinfold_agent *agent)
{
    bool attached;

    pthread_mutex_lock(&agent->lock);
    attached = agent->binding && !agent->binding->own;
    pthread_mutex_unlock(&agent->lock);
    return attached;
}
