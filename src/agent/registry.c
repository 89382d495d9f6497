/* SPDX-License-Identifier: Apache-2.0 */
/* Which tools an agent has, and which names it refuses to call. */
#include "agent/agent.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/log.h"
#include "base/strings.h"

bool pf_is_host_tool(const char *name)
{
    for (size_t i = 0; pinfold_host_execution_tool_names[i]; i++)
        if (strcmp(pinfold_host_execution_tool_names[i], name) == 0)
            return true;
    return false;
}

/* Names that models mix up: equal but for '-' and '_'. */
static bool alike(const char *a, const char *b)
{
    for (; *a && *b; a++, b++)
        if (*a != *b && !((*a == '-' || *a == '_') && (*b == '-' || *b == '_')))
            return false;
    return *a == *b;
}

/* The index of a tool, or tool_count. */
static size_t find_locked(const struct pinfold_agent *agent, const char *name)
{
    size_t i = 0;

    while (i < agent->tool_count && strcmp(pinfold_tool_name(agent->tools[i]), name) != 0)
        i++;
    return i;
}

static int add_locked(struct pinfold_agent *agent, struct pinfold_tool *tool,
                      struct pinfold_error *err)
{
    const char *name = pinfold_tool_name(tool);
    size_t capacity = agent->tool_capacity ? 2 * agent->tool_capacity : 8;
    struct pinfold_tool **tools;

    if (agent->mode == PINFOLD_SANDBOX_ON && pf_is_host_tool(name))
        return pf_fail(err, PINFOLD_EDENIED,
                       "add tool %s: host tools are blocked in the mode \"sandbox\"", name);
    for (size_t i = 0; i < agent->tool_count; i++)
        if (alike(pinfold_tool_name(agent->tools[i]), name))
            return pf_fail(err, PINFOLD_EVALUE, "add tool %s: agent %s has a tool %s already", name,
                           PF_QUOTE(agent->id), pinfold_tool_name(agent->tools[i]));
    if (agent->tool_count == agent->tool_capacity) {
        tools = reallocarray(agent->tools, capacity, sizeof(struct pinfold_tool *));
        if (!tools)
            return pf_fail_nomem(err);
        agent->tools = tools;
        agent->tool_capacity = capacity;
    }
    agent->tools[agent->tool_count++] = pinfold_tool_ref(tool);
    return 0;
}

/* Other tools of the same kind reach the host as well, and are not the documented ones to block. */
static void warn_of_neighbours(struct pinfold_agent *agent, const char *name)
{
    static const char *const reach_the_host[] = { "editor", "http_request", "load_tool", "cron",
                                                  "use_computer" };

    for (size_t i = 0; i < PF_COUNT(reach_the_host); i++)
        if (strcmp(name, reach_the_host[i]) == 0)
            pf_log(PINFOLD_LOG_WARNING,
                   "agent %s: tool %s works on the host, and the mode \"sandbox\" does not block "
                   "it",
                   agent->id, name);
}

int pinfold_agent_add_tool(struct pinfold_agent *agent, struct pinfold_tool *tool,
                           struct pinfold_error *err)
{
    enum pinfold_sandbox_mode mode;
    int r;

    pthread_mutex_lock(&agent->lock);
    r = add_locked(agent, tool, err);
    mode = agent->mode;
    pthread_mutex_unlock(&agent->lock);
    if (r == 0 && mode == PINFOLD_SANDBOX_ON)
        warn_of_neighbours(agent, pinfold_tool_name(tool));
    return r;
}

bool pinfold_agent_remove_tool(struct pinfold_agent *agent, const char *name)
{
    struct pinfold_tool *tool = NULL;
    size_t i;

    pthread_mutex_lock(&agent->lock);
    i = find_locked(agent, name);
    if (i < agent->tool_count) {
        tool = agent->tools[i];
        agent->tool_count--;
        memmove(agent->tools + i, agent->tools + i + 1,
                (agent->tool_count - i) * sizeof(struct pinfold_tool *));
    }
    pthread_mutex_unlock(&agent->lock);
    pinfold_tool_unref(tool);
    return tool;
}

struct pinfold_tool *pinfold_agent_get_tool(struct pinfold_agent *agent, const char *name)
{
    struct pinfold_tool *tool = NULL;
    size_t i;

    pthread_mutex_lock(&agent->lock);
    i = find_locked(agent, name);
    if (i < agent->tool_count)
        tool = pinfold_tool_ref(agent->tools[i]);
    pthread_mutex_unlock(&agent->lock);
    return tool;
}

int pinfold_agent_tool_names(struct pinfold_agent *agent, struct pinfold_strings *ret_names,
                             struct pinfold_error *err)
{
    PF_CLEANUP(pinfold_strings_done) struct pinfold_strings names = { 0 };
    int r = 0;

    pthread_mutex_lock(&agent->lock);
    for (size_t i = 0; r == 0 && i < agent->tool_count; i++)
        r = pf_strings_add(&names, pinfold_tool_name(agent->tools[i]));
    pthread_mutex_unlock(&agent->lock);
    if (r < 0)
        return pf_fail_nomem(err);
    *ret_names = names;
    names = (struct pinfold_strings){ 0 };
    return 0;
}

struct pinfold_tool **pf_registry_snapshot(struct pinfold_agent *agent)
{
    struct pinfold_tool **tools;

    pthread_mutex_lock(&agent->lock);
    tools = calloc(agent->tool_count + 1, sizeof(struct pinfold_tool *));
    for (size_t i = 0; tools && i < agent->tool_count; i++)
        tools[i] = pinfold_tool_ref(agent->tools[i]);
    pthread_mutex_unlock(&agent->lock);
    return tools;
}

void pf_registry_snapshot_freep(struct pinfold_tool ***tools)
{
    for (size_t i = 0; *tools && (*tools)[i]; i++)
        pinfold_tool_unref((*tools)[i]);
    free(*tools);
}

void pf_registry_enter_sandbox(struct pinfold_agent *agent)
{
    PF_CLEANUP(pf_registry_snapshot_freep) struct pinfold_tool **tools = NULL;

    pthread_mutex_lock(&agent->lock);
    agent->mode = PINFOLD_SANDBOX_ON;
    pthread_mutex_unlock(&agent->lock);
    for (size_t i = 0; pinfold_host_execution_tool_names[i]; i++)
        pinfold_agent_remove_tool(agent, pinfold_host_execution_tool_names[i]);
    tools = pf_registry_snapshot(agent); /* NULL: there is no memory for a warning */
    for (size_t i = 0; tools && tools[i]; i++)
        warn_of_neighbours(agent, pinfold_tool_name(tools[i]));
}

void pf_registry_clear(struct pinfold_agent *agent)
{
    for (size_t i = 0; i < agent->tool_count; i++)
        pinfold_tool_unref(agent->tools[i]);
    free(agent->tools);
    agent->tools = NULL;
    agent->tool_count = agent->tool_capacity = 0;
}

bool pf_agent_blocks(struct pinfold_agent *agent, const char *name, char *text)
{
    enum pinfold_sandbox_mode mode;
    bool reads;

    pthread_mutex_lock(&agent->lock);
    mode = agent->mode;
    reads = agent->binding && agent->binding->mode == PINFOLD_READ_ONLY;
    pthread_mutex_unlock(&agent->lock);
    if (mode == PINFOLD_SANDBOX_ON && pf_is_host_tool(name))
        snprintf(text, PF_BLOCKED_MAX,
                 "%s works on the host, which is off limits here. Use the workspace tools instead: "
                 "execute for commands, read_file and list_dir to look, write_file to change.",
                 name);
    else if (reads && (strcmp(name, "execute") == 0 || strcmp(name, "write_file") == 0))
        snprintf(text, PF_BLOCKED_MAX,
                 "%s is not available: this workspace is read-only for you. Use read_file and "
                 "list_dir.",
                 name);
    else
        return false;
    return true;
}
