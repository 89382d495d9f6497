/* SPDX-License-Identifier: Apache-2.0 */
/* Plugins: a name, tools and hooks, given to one agent or to several. */
#include "agent/agent.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/cleanup.h"
#include "base/error.h"

struct pinfold_plugin {
    unsigned refs; /* atomic */
    char *name;
    struct pinfold_tool **tools;
    size_t tool_count;
    int (*init_agent)(void *ctx, struct pinfold_agent *agent, struct pinfold_error *err);
    struct pinfold_hooks hooks;
    bool has_hooks;
    void *ctx;
    void (*free)(void *ctx);
};

static void plugin_unrefp(struct pinfold_plugin **plugin)
{
    pinfold_plugin_unref(*plugin);
}

int pinfold_plugin_new(const struct pinfold_plugin_options *options,
                       struct pinfold_plugin **ret_plugin, struct pinfold_error *err)
{
    PF_CLEANUP(plugin_unrefp) struct pinfold_plugin *plugin = NULL;

    if (options->size != sizeof(*options))
        return pf_fail(err, PINFOLD_EVALUE, "plugin: options of %zu bytes, not %zu", options->size,
                       sizeof(*options));
    if (!options->name || !*options->name)
        return pf_fail(err, PINFOLD_EVALUE, "plugin: a name is required");
    if (options->hooks && options->hooks->size != sizeof(*options->hooks))
        return pf_fail(err, PINFOLD_EVALUE, "plugin %s: hooks of %zu bytes, not %zu",
                       PF_QUOTE(options->name), options->hooks->size, sizeof(*options->hooks));
    plugin = calloc(1, sizeof(*plugin));
    if (!plugin)
        return pf_fail_nomem(err);
    plugin->refs = 1;
    plugin->name = strdup(options->name);
    plugin->tools = calloc(options->tool_count + 1, sizeof(struct pinfold_tool *));
    if (!plugin->name || !plugin->tools)
        return pf_fail_nomem(err);
    for (; plugin->tool_count < options->tool_count; plugin->tool_count++)
        plugin->tools[plugin->tool_count] = pinfold_tool_ref(options->tools[plugin->tool_count]);
    plugin->init_agent = options->init_agent;
    if (options->hooks) {
        plugin->has_hooks = true;
        plugin->hooks = *options->hooks;
        plugin->hooks.ctx = options->ctx;
        plugin->hooks.free = NULL;
    }
    plugin->ctx = options->ctx;
    plugin->free = options->free;
    *ret_plugin = TAKE(plugin);
    return 0;
}

struct pinfold_plugin *pinfold_plugin_ref(struct pinfold_plugin *plugin)
{
    __atomic_fetch_add(&plugin->refs, 1, __ATOMIC_RELAXED);
    return plugin;
}

void pinfold_plugin_unref(struct pinfold_plugin *plugin)
{
    if (!plugin || __atomic_sub_fetch(&plugin->refs, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    for (size_t i = 0; i < plugin->tool_count; i++)
        pinfold_tool_unref(plugin->tools[i]);
    free(plugin->tools);
    free(plugin->name);
    if (plugin->free)
        plugin->free(plugin->ctx);
    free(plugin);
}

/* ---- of an agent ---- */

static struct pf_plugin_entry *find_locked(struct pinfold_agent *agent, const char *name)
{
    struct pf_plugin_entry *entry;

    DL_FOREACH(agent->plugins, entry)
        if (strcmp(entry->plugin->name, name) == 0)
            return entry;
    return NULL;
}

bool pinfold_agent_has_plugin(struct pinfold_agent *agent, const char *name)
{
    bool has;

    pthread_mutex_lock(&agent->lock);
    has = find_locked(agent, name);
    pthread_mutex_unlock(&agent->lock);
    return has;
}

void pf_plugin_remove(struct pinfold_agent *agent, const char *name)
{
    struct pf_plugin_entry *entry;

    pthread_mutex_lock(&agent->lock);
    entry = find_locked(agent, name);
    if (entry)
        DL_DELETE(agent->plugins, entry);
    pthread_mutex_unlock(&agent->lock);
    if (entry)
        pinfold_plugin_unref(entry->plugin);
    free(entry);
}

/* The name first, so that nobody adds a second one meanwhile. */
static int enter(struct pinfold_agent *agent, struct pinfold_plugin *plugin,
                 struct pinfold_error *err)
{
    _cleanup_free_ struct pf_plugin_entry *entry = calloc(1, sizeof(*entry));
    int r = 0;

    if (!entry)
        return pf_fail_nomem(err);
    pthread_mutex_lock(&agent->lock);
    if (find_locked(agent, plugin->name)) {
        r = pf_fail(err, PINFOLD_EVALUE, "agent %s has a plugin %s already", PF_QUOTE(agent->id),
                    PF_QUOTE(plugin->name));
    } else {
        entry->plugin = pinfold_plugin_ref(plugin);
        DL_APPEND(agent->plugins, entry);
        entry = NULL;
    }
    pthread_mutex_unlock(&agent->lock);
    return r;
}

/* Everything a plugin brings. Hooks last: they could not be removed again. */
static int bring(struct pinfold_agent *agent, struct pinfold_plugin *plugin,
                 struct pinfold_error *err)
{
    struct pinfold_error own = PINFOLD_ERROR_INIT;
    size_t added = 0;
    int r = plugin->init_agent ? plugin->init_agent(plugin->ctx, agent, &own) : 0;

    if (r < 0 && err)
        *err = own;

    while (r == 0 && added < plugin->tool_count) {
        r = pinfold_agent_add_tool(agent, plugin->tools[added], err);
        added += r == 0;
    }
    if (r == 0 && plugin->has_hooks)
        r = pinfold_agent_add_hooks(agent, &plugin->hooks, err);
    while (r < 0 && added > 0)
        pinfold_agent_remove_tool(agent, pinfold_tool_name(plugin->tools[--added]));
    return r;
}

int pinfold_agent_add_plugin(struct pinfold_agent *agent, struct pinfold_plugin *plugin,
                             struct pinfold_error *err)
{
    int r = enter(agent, plugin, err);

    if (r < 0)
        return r;
    r = bring(agent, plugin, err);
    if (r < 0) {
        pf_plugin_remove(agent, plugin->name);
        return pf_wrap(err, r, "add plugin %s", PF_QUOTE(plugin->name));
    }
    return 0;
}

void pf_plugins_clear(struct pinfold_agent *agent)
{
    struct pf_plugin_entry *entry, *next;

    DL_FOREACH_SAFE(agent->plugins, entry, next) {
        DL_DELETE(agent->plugins, entry);
        pinfold_plugin_unref(entry->plugin);
        free(entry);
    }
}
