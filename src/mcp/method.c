/* SPDX-License-Identifier: Apache-2.0 */
/* The methods, and those that belong to no part of their own: initialize, ping, logging, roots. */
#include "mcp/call.h"

#include <string.h>

#include "mcp/state.h"
#include "mcp/resource.h"
#include "mcp/tool.h"

static const char *const versions[] = {
    [PF_MCP_2024_11_05] = "2024-11-05",
    [PF_MCP_2025_03_26] = "2025-03-26",
    [PF_MCP_2025_06_18] = "2025-06-18",
    [PF_MCP_2025_11_25] = "2025-11-25",
};

static const char instructions[] =
        "Pinfold is a workspace in which anything may be run: a sandbox of its own, apart from the "
        "user's machine. Work in it with these tools instead of with tools that touch the "
        "machine itself. Paths are relative to the root of the workspace, which is /workspace to "
        "commands. Files are kept from call to call; nothing of the user's own files changes "
        "unless results are written back.";

const char *pf_mcp_version_text(enum pf_mcp_version version)
{
    return versions[version];
}

static enum pf_mcp_version agree(const char *wanted)
{
    enum pf_mcp_version version = PF_MCP_2025_11_25;

    /* A revision that we do not know gets the newest that we do: the client decides. */
    while (version > PF_MCP_2024_11_05 && strcmp(versions[version], wanted) != 0)
        version--;
    return strcmp(versions[version], wanted) == 0 ? version : PF_MCP_2025_11_25;
}

static json_t *capabilities(void)
{
    json_t *object = json_object();
    int bad = pf_mcp_put(object, "logging", json_object());

    bad |= pf_mcp_put(object, "resources", json_object());
    bad |= pf_mcp_put(object, "tools", json_object());
    return pf_mcp_whole(object, bad);
}

static json_t *server_info(enum pf_mcp_version version)
{
    json_t *object = json_object();
    int bad = pf_mcp_put(object, "name", json_string("pinfold"));

    bad |= pf_mcp_put(object, "version", json_string(pinfold_version()));
    if (version >= PF_MCP_2025_06_18)
        bad |= pf_mcp_put(object, "title", json_string("Pinfold"));
    if (version >= PF_MCP_2025_11_25)
        bad |= pf_mcp_put(object, "description",
                          json_string("A workspace where AI agents may run anything"));
    return pf_mcp_whole(object, bad);
}

static json_t *initialize(struct pf_mcp_call *call, struct pf_mcp_fault *fault)
{
    struct pf_mcp_session *session = call->session;
    const json_t *client = json_object_get(call->message.params, "capabilities");
    const char *wanted = pf_mcp_string(call->message.params, "protocolVersion", NULL);
    enum pf_mcp_version version;
    json_t *result;
    bool again;
    int bad;

    if (!wanted || !json_is_object(client) ||
        !json_is_object(json_object_get(call->message.params, "clientInfo")))
        return pf_mcp_fail(fault, PF_MCP_INVALID_PARAMS,
                           "Invalid params: initialize takes protocolVersion, capabilities and "
                           "clientInfo");
    version = agree(wanted);
    pthread_mutex_lock(&session->lock);
    again = session->version != PF_MCP_NOTHING_AGREED;
    if (!again) {
        session->version = version;
        session->offers_roots = json_is_object(json_object_get(client, "roots"));
    }
    pthread_mutex_unlock(&session->lock);
    if (again)
        return pf_mcp_fail(fault, PF_MCP_INVALID_REQUEST,
                           "Invalid Request: the session is initialized already");
    result = json_object();
    bad = pf_mcp_put(result, "protocolVersion", json_string(versions[version]));
    bad |= pf_mcp_put(result, "capabilities", capabilities());
    bad |= pf_mcp_put(result, "serverInfo", server_info(version));
    bad |= pf_mcp_put(result, "instructions", json_string(instructions));
    return pf_mcp_whole(result, bad);
}

static json_t *ping(struct pf_mcp_call *call, struct pf_mcp_fault *fault)
{
    (void)call;
    (void)fault;
    return json_object();
}

static json_t *set_level(struct pf_mcp_call *call, struct pf_mcp_fault *fault)
{
    int level = pf_mcp_level_of(pf_mcp_string(call->message.params, "level", NULL));

    if (level < 0)
        return pf_mcp_fail(fault, PF_MCP_INVALID_PARAMS,
                           "Invalid params: level is one of debug, info, notice, warning, error, "
                           "critical, alert, emergency");
    pthread_mutex_lock(&call->session->lock);
    call->session->log_level = level;
    pthread_mutex_unlock(&call->session->lock);
    return json_object();
}

/* Every method. */
static const struct pf_mcp_method methods[] = {
    { "initialize", initialize, true },
    { "logging/setLevel", set_level, true },
    { "ping", ping, true },
    { "resources/list", pf_mcp_resources_list, false },
    { "resources/read", pf_mcp_resources_read, false },
    { "resources/templates/list", pf_mcp_templates_list, true },
    { "tools/call", pf_mcp_tools_call, false },
    { "tools/list", pf_mcp_tools_list, true },
};

const struct pf_mcp_method *pf_mcp_find_method(const char *name)
{
    for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++)
        if (strcmp(methods[i].name, name) == 0)
            return &methods[i];
    return NULL;
}
