/* SPDX-License-Identifier: Apache-2.0 */
/* An agent's life: its configuration, new, free, and what it says of itself. */
#include "agent/agent.h"
#include "agent/offload.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/strings.h"
#include "sandbox/handle.h"
#include "tree/file.h"

enum { ID_MAX = 255, PARALLEL_TOOLS = 8, TURNS = 200 };

/* ---- configuration ---- */

static int check_id(const char *what, const char *id, struct pinfold_error *err)
{
    if (!id)
        return 0;
    if (!*id || strlen(id) > ID_MAX || strchr(id, '/') || strcmp(id, ".") == 0 ||
        strcmp(id, "..") == 0)
        return pf_fail(err, PINFOLD_EVALUE,
                       "AgentConfig: %s %s: an id has 1 to %d bytes, no '/', and is not \".\" or "
                       "\"..\"",
                       what, PF_QUOTE(id), ID_MAX);
    return 0;
}

int pinfold_agent_config_check(const struct pinfold_agent_config *config, struct pinfold_error *err)
{
    int r;

    if (config->size != sizeof(*config))
        return pf_fail(err, PINFOLD_EVALUE, "AgentConfig: %zu bytes, not %zu", config->size,
                       sizeof(*config));
    if (config->sandbox_mode < PINFOLD_SANDBOX_OFF || config->sandbox_mode > PINFOLD_SANDBOX_LOCAL)
        return pf_fail(err, PINFOLD_EVALUE, "AgentConfig: there is no sandbox_mode %d",
                       (int)config->sandbox_mode);
    if (config->sandbox_attach_mode < PINFOLD_READ_WRITE ||
        config->sandbox_attach_mode > PINFOLD_READ_ONLY)
        return pf_fail(err, PINFOLD_EVALUE, "AgentConfig: there is no sandbox_attach_mode %d",
                       (int)config->sandbox_attach_mode);
    if (config->sandbox && config->sandbox_mode == PINFOLD_SANDBOX_LOCAL)
        return pf_fail(err, PINFOLD_EVALUE,
                       "AgentConfig: sandbox_mode=local_dev leaves host tools to the agent, and "
                       "cannot be combined with sandbox=; use sandbox_mode=sandbox, or "
                       "execution_backend= for development");
    r = check_id("agent_id", config->agent_id, err);
    if (r == 0)
        r = check_id("session_id", config->session_id, err);
    if (r == 0)
        r = check_id("workspace_id", config->workspace_id, err);
    return r;
}

/* What Agent.__init__ checks. */
static int check_combination(const struct pinfold_agent_config *config, struct pinfold_error *err)
{
    const struct pinfold_sync_policy *policy = config->workspace_sync_policy;
    int r = 0;

    if (config->sandbox && config->execution_backend)
        return pf_fail(err, PINFOLD_EVALUE,
                       "Agent: both sandbox= and execution_backend=: give the backend to the "
                       "Sandbox only");
    if (config->sandbox && config->workspace_root)
        return pf_fail(err, PINFOLD_EVALUE,
                       "Agent: both sandbox= and workspace_root=: use Sandbox(seed_from=...)");
    if (config->sandbox && config->sandbox_manager)
        return pf_fail(err, PINFOLD_EVALUE,
                       "Agent: both sandbox= and sandbox_manager=: the manager is the Sandbox's");
    if (config->sandbox_mode == PINFOLD_SANDBOX_ON && !config->sandbox &&
        !config->execution_backend)
        return pf_fail(err, PINFOLD_EVALUE,
                       "Agent: sandbox_mode=sandbox needs a backend: give sandbox= or "
                       "execution_backend=");
    if (policy && policy->exclude_patterns)
        r = pinfold_patterns_check(policy->exclude_patterns, err);
    if (r == 0 && policy && policy->sync_include_patterns)
        r = pinfold_patterns_check(policy->sync_include_patterns, err);
    return r < 0 ? pf_wrap(err, r, "Agent: workspace_sync_policy") : 0;
}

static int copy_text(char **to, const char *text, const char *missing)
{
    if (!text && !missing)
        return 0;
    *to = strdup(text ? text : missing);
    return *to ? 0 : -PINFOLD_ENOMEM;
}

static int copy_policy(struct pinfold_agent *agent, const struct pinfold_sync_policy *policy)
{
    if (!policy)
        return 0;
    agent->policy = calloc(1, sizeof(*agent->policy));
    if (!agent->policy)
        return -PINFOLD_ENOMEM;
    if (policy->exclude_patterns)
        agent->policy->exclude_patterns =
                (const char *const *)pf_strv_copy(policy->exclude_patterns);
    if (policy->sync_include_patterns)
        agent->policy->sync_include_patterns =
                (const char *const *)pf_strv_copy(policy->sync_include_patterns);
    return (policy->exclude_patterns && !agent->policy->exclude_patterns) ||
                           (policy->sync_include_patterns && !agent->policy->sync_include_patterns)
                   ? -PINFOLD_ENOMEM
                   : 0;
}

/* The per-agent path. Without a mode it is switched off, and nothing of it is kept. */
static int configure_own(struct pinfold_agent *agent, const struct pinfold_agent_config *config,
                         struct pinfold_error *err)
{
    int r;

    if (config->sandbox_mode == PINFOLD_SANDBOX_OFF || !config->execution_backend)
        return 0;
    if (copy_policy(agent, config->workspace_sync_policy) < 0)
        return pf_fail_nomem(err);
    if (config->workspace_root) {
        r = pf_path_expand(config->workspace_root, &agent->workspace_root, err);
        if (r < 0)
            return r;
    }
    if (config->sandbox_manager) {
        agent->manager = pinfold_manager_ref(config->sandbox_manager);
    } else {
        r = pinfold_manager_new(NULL, &agent->manager, err);
        if (r < 0)
            return r;
    }
    agent->backend = pinfold_backend_ref(config->execution_backend);
    return 0;
}

static int configure(struct pinfold_agent *agent, const struct pinfold_agent_config *config,
                     struct pinfold_error *err)
{
    if (copy_text(&agent->id, config->agent_id, "default") < 0 ||
        copy_text(&agent->name, config->name, "Pinfold agent") < 0 ||
        copy_text(&agent->session_id, config->session_id, NULL) < 0 ||
        copy_text(&agent->workspace_id, config->workspace_id, NULL) < 0 ||
        copy_text(&agent->system_prompt, config->system_prompt, NULL) < 0)
        return pf_fail_nomem(err);
    if (config->model)
        agent->model = pinfold_model_ref(config->model);
    agent->max_tokens = config->max_tokens;
    agent->max_turns = config->max_turns ? config->max_turns : TURNS;
    agent->on_event = config->on_event;
    agent->on_event_ctx = config->on_event_ctx;
    agent->max_parallel = config->max_parallel_tools ? config->max_parallel_tools : PARALLEL_TOOLS;
    return configure_own(agent, config, err);
}

/* ---- new and free ---- */

static void free_agent(struct pinfold_agent *agent, bool free_contexts)
{
    pf_sandbox_detach_agent(agent);
    pf_own_workspace_drop(agent);
    pf_registry_clear(agent);
    pf_plugins_clear(agent);
    pf_hooks_clear(agent, free_contexts);
    pf_messages_clear(agent);
    pinfold_model_unref(agent->model);
    pinfold_backend_unref(agent->backend);
    pinfold_manager_unref(agent->manager);
    if (agent->policy) {
        pf_strv_free((char **)(uintptr_t)agent->policy->exclude_patterns);
        pf_strv_free((char **)(uintptr_t)agent->policy->sync_include_patterns);
    }
    free(agent->policy);
    pthread_cond_destroy(&agent->changed);
    pthread_mutex_destroy(&agent->lock);
    free(agent->workspace_root);
    free(agent->workspace_id);
    free(agent->session_id);
    free(agent->system_prompt);
    free(agent->name);
    free(agent->id);
    free(agent);
}

void pinfold_agent_free(struct pinfold_agent *agent)
{
    if (agent)
        free_agent(agent, true);
}

/* One that did not get ready: the contexts of its hooks are still the caller's. */
void pf_agent_freep(struct pinfold_agent **agent)
{
    if (*agent)
        free_agent(*agent, false);
}

/* Tools, hooks and plugins, in this order. */
static int equip(struct pinfold_agent *agent, const struct pinfold_agent_config *config,
                 struct pinfold_error *err)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < config->tool_count; i++)
        r = pinfold_agent_add_tool(agent, config->tools[i], err);
    /* Before all other hooks, which may want the workspace. */
    if (r == 0 && agent->backend) {
        struct pinfold_hooks hooks = pinfold_workspace_orchestrator();

        r = pinfold_agent_add_hooks(agent, &hooks, err);
    }
    for (size_t i = 0; r == 0 && i < config->hook_count; i++)
        r = pinfold_agent_add_hooks(agent, config->hooks[i], err);
    for (size_t i = 0; r == 0 && i < config->plugin_count; i++)
        r = pinfold_agent_add_plugin(agent, config->plugins[i], err);
    if (r == 0 && config->sandbox_output_offload)
        r = pf_offload_policy_apply(agent, config->sandbox_output_offload, err);
    return r;
}

int pinfold_agent_new(const struct pinfold_agent_config *config, struct pinfold_agent **ret_agent,
                      struct pinfold_error *err)
{
    PF_CLEANUP(pf_agent_freep) struct pinfold_agent *agent = NULL;
    int r = pinfold_agent_config_check(config, err);

    if (r == 0)
        r = check_combination(config, err);
    if (r < 0)
        return r;
    agent = calloc(1, sizeof(*agent));
    if (!agent)
        return pf_fail_nomem(err);
    pthread_mutex_init(&agent->lock, NULL);
    pthread_cond_init(&agent->changed, NULL);
    r = configure(agent, config, err);
    /* While the mode is OFF host tools are welcome; what was given and is not allowed goes below.
     */
    if (r == 0)
        r = equip(agent, config, err);
    if (r < 0)
        return pf_wrap(err, r, "Agent %s", PF_QUOTE(agent->id ? agent->id : ""));
    if (config->sandbox_mode == PINFOLD_SANDBOX_ON)
        pf_registry_enter_sandbox(agent);
    else
        agent->mode = config->sandbox_mode;
    if (config->sandbox)
        r = pinfold_agent_attach(agent, config->sandbox, config->sandbox_attach_mode, err);
    if (r == 0)
        r = pf_hooks_initialized(agent, err);
    if (r == 0)
        *ret_agent = TAKE(agent);
    return r;
}

/* ---- properties ---- */

const char *pinfold_agent_id(const struct pinfold_agent *agent)
{
    return agent->id;
}

const char *pinfold_agent_name(const struct pinfold_agent *agent)
{
    return agent->name;
}

enum pinfold_sandbox_mode pinfold_agent_mode(struct pinfold_agent *agent)
{
    enum pinfold_sandbox_mode mode;

    pthread_mutex_lock(&agent->lock);
    mode = agent->mode;
    pthread_mutex_unlock(&agent->lock);
    return mode;
}

/* ---- what is under way ---- */

int pf_op_begin(struct pinfold_agent *agent, struct pinfold_cancel *parent, struct pf_op *op,
                struct pinfold_error *err)
{
    int r = pf_cancel_new_linked(parent, &op->cancel, err);

    if (r < 0)
        return r;
    pthread_mutex_lock(&agent->lock);
    DL_APPEND(agent->ops, op);
    pthread_mutex_unlock(&agent->lock);
    return 0;
}

void pf_op_end(struct pinfold_agent *agent, struct pf_op *op)
{
    pthread_mutex_lock(&agent->lock);
    DL_DELETE(agent->ops, op);
    pthread_mutex_unlock(&agent->lock);
    pinfold_cancel_free(op->cancel);
}

void pinfold_agent_cancel(struct pinfold_agent *agent)
{
    struct pf_op *op;

    pthread_mutex_lock(&agent->lock);
    DL_FOREACH(agent->ops, op)
        pinfold_cancel_fire(op->cancel);
    pthread_mutex_unlock(&agent->lock);
}
