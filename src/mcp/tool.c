/* SPDX-License-Identifier: Apache-2.0 */
/* tools/list and tools/call. */
#include "mcp/tool.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mcp/state.h"

static const struct pf_mcp_tool *const tools[] = {
    &pf_mcp_execute,      &pf_mcp_read_output,  &pf_mcp_read_file, &pf_mcp_write_file,
    &pf_mcp_edit_file,    &pf_mcp_list_dir,     &pf_mcp_search,    &pf_mcp_delete_file,
    &pf_mcp_move_file,    &pf_mcp_diff,         &pf_mcp_sync,      &pf_mcp_start_process,
    &pf_mcp_read_process, &pf_mcp_stop_process,
};

enum { TOOL_COUNT = sizeof(tools) / sizeof(tools[0]) };

/* What checks the input of each, by the same rules as for agents of the library. */
static struct pinfold_tool *checkers[TOOL_COUNT];

/* ---- results ---- */

void pf_mcp_add_text(struct pf_mcp_result *result, const char *text, size_t len)
{
    json_t *block = json_object();

    result->bad |= pf_mcp_put(block, "type", json_string("text"));
    result->bad |= pf_mcp_put(block, "text", pf_mcp_text(text, len));
    result->bad |= pf_mcp_push(result->content, block);
}

void pf_mcp_addf(struct pf_mcp_result *result, const char *format, ...)
{
    char *text = NULL;
    va_list args;
    int len;

    va_start(args, format);
    len = vasprintf(&text, format, args);
    va_end(args);
    if (len < 0)
        result->bad = -1;
    else
        pf_mcp_add_text(result, text, (size_t)len);
    if (len >= 0)
        free(text);
}

void pf_mcp_set(struct pf_mcp_result *result, const char *key, json_t *value)
{
    if (!result->structured)
        result->structured = json_object();
    result->bad |= pf_mcp_put(result->structured, key, value);
}

int pf_mcp_refuse(struct pinfold_error *err, const char *format, ...)
{
    va_list args;

    *err = (struct pinfold_error){ .code = PINFOLD_EVALUE };
    va_start(args, format);
    vsnprintf(err->msg, sizeof(err->msg), format, args);
    va_end(args);
    return -PINFOLD_EVALUE;
}

const char *pf_mcp_path(const json_t *args, const char *key, const char *missing,
                        struct pinfold_error *err)
{
    size_t len;
    const char *path = pf_mcp_string(args, key, &len);

    if (!path)
        return missing;
    if (strlen(path) == len)
        return path;
    pf_mcp_refuse(err, "%s: a path has no NUL bytes", key);
    return NULL;
}

/* ---- who has which tool ---- */

/* Whether there is, or may yet be, a directory to write back to. */
static bool may_sync(struct pf_mcp_session *session)
{
    const struct pf_options *options = session->server->options;
    bool roots;

    pthread_mutex_lock(&session->lock);
    roots = session->local && session->offers_roots && !options->no_roots && !options->workspace;
    pthread_mutex_unlock(&session->lock);
    return !options->no_sync && (options->seed || options->sync || roots);
}

static bool has(struct pf_mcp_session *session, const struct pf_mcp_tool *tool)
{
    const struct pf_options *options = session->server->options;
    bool writes = session->mode == PINFOLD_READ_WRITE;

    if (tool->traits & PF_MCP_WRITER)
        return writes;
    if (tool->traits & PF_MCP_SYNCER)
        return writes && may_sync(session);
    /* Only this backend has views, in which the kernel keeps a reader from writing. */
    if (tool->traits & PF_MCP_RUNNER)
        return writes || options->isolated;
    return true;
}

static json_t *annotations(const struct pf_mcp_session *session, const struct pf_mcp_tool *tool)
{
    const struct pf_options *options = session->server->options;
    json_t *object = json_object();
    bool walled = options->isolated && !options->host_net && !options->net_allow[0];
    bool reads = tool->traits & PF_MCP_READS ||
                 (tool->traits & PF_MCP_RUNS && session->mode == PINFOLD_READ_ONLY);
    bool outside = tool->traits & PF_MCP_OUTSIDE || (tool->traits & PF_MCP_RUNS && !walled);
    int bad = pf_mcp_put(object, "title", json_string(tool->title));

    bad |= pf_mcp_put(object, "readOnlyHint", json_boolean(reads));
    if (!reads) {
        bad |= pf_mcp_put(object, "destructiveHint", json_boolean(tool->traits & PF_MCP_DESTROYS));
        bad |= pf_mcp_put(object, "idempotentHint", json_boolean(tool->traits & PF_MCP_IDEMPOTENT));
    }
    bad |= pf_mcp_put(object, "openWorldHint", json_boolean(outside));
    return pf_mcp_whole(object, bad);
}

static json_t *describe(const struct pf_mcp_session *session, enum pf_mcp_version version,
                        const struct pf_mcp_tool *tool)
{
    json_t *object = json_object();
    char *made = tool->describe ? tool->describe(session->server->options) : NULL;
    int bad = pf_mcp_put(object, "name", json_string(tool->name));

    if (version >= PF_MCP_2025_06_18)
        bad |= pf_mcp_put(object, "title", json_string(tool->title));
    bad |= pf_mcp_put(object, "description",
                      json_string(tool->describe ? made : tool->description));
    free(made);
    bad |= pf_mcp_put(object, "inputSchema", json_loads(tool->input, 0, NULL));
    if (version >= PF_MCP_2025_06_18)
        bad |= pf_mcp_put(object, "outputSchema", json_loads(tool->output, 0, NULL));
    if (version >= PF_MCP_2025_03_26)
        bad |= pf_mcp_put(object, "annotations", annotations(session, tool));
    return pf_mcp_whole(object, bad);
}

json_t *pf_mcp_tools_list(struct pf_mcp_call *call, struct pf_mcp_fault *fault)
{
    json_t *result = json_object(), *list = json_array();
    int bad = 0;

    /* All fit on the first page, so that no cursor was ever given out. */
    if (json_object_get(call->message.params, "cursor")) {
        json_decref(result);
        json_decref(list);
        return pf_mcp_fail(fault, PF_MCP_INVALID_PARAMS, "Invalid cursor: the list has one page");
    }
    for (size_t i = 0; i < TOOL_COUNT; i++)
        if (has(call->session, tools[i]))
            bad |= pf_mcp_push(list, describe(call->session, call->version, tools[i]));
    bad |= pf_mcp_put(result, "tools", list);
    return pf_mcp_whole(result, bad);
}

/* ---- tools/call ---- */

/* A result that tells the model what is wrong. */
static json_t *failure(const char *text, size_t len)
{
    struct pf_mcp_result what = { .content = json_array() };
    json_t *result = json_object();

    pf_mcp_add_text(&what, text, len);
    what.bad |= pf_mcp_put(result, "content", what.content);
    what.bad |= pf_mcp_put(result, "isError", json_true());
    return pf_mcp_whole(result, what.bad);
}

static json_t *success(const struct pf_mcp_call *call, struct pf_mcp_result *what)
{
    json_t *result = json_object();
    int bad = what->bad | pf_mcp_put(result, "content", json_incref(what->content));

    if (call->version >= PF_MCP_2025_06_18 && what->structured)
        bad |= pf_mcp_put(result, "structuredContent", json_incref(what->structured));
    bad |= pf_mcp_put(result, "isError", json_false());
    return pf_mcp_whole(result, bad);
}

static json_t *run(struct pf_mcp_call *call, const struct pf_mcp_tool *tool, const json_t *args)
{
    struct pf_mcp_result what = { .content = json_array() };
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    int r = tool->run(call, args, &what, &err);
    json_t *result;

    if (r == 0 && pf_mcp_workspace_renewed(call->session))
        pf_mcp_addf(&what, "[The workspace was idle for too long and has ended. This is a new one, "
                           "made from the seed: what was changed before is not in it.]");
    result = r < 0 ? failure(err.msg, strlen(err.msg)) : success(call, &what);

    json_decref(what.content);
    json_decref(what.structured);
    return result;
}

/* Whether the input is what the schema says. What is wrong is for the model to mend: *ret_result is
 * a result that tells it, or NULL when memory is short. */
static bool check(size_t i, const json_t *args, json_t **ret_result)
{
    __attribute__((cleanup(pinfold_bytes_done))) struct pinfold_bytes wrong = { 0 };
    char *text = json_dumps(args, JSON_COMPACT);
    int r = text ? pinfold_tool_check_input(checkers[i], text, strlen(text), &wrong, NULL)
                 : -PINFOLD_ENOMEM;

    free(text);
    *ret_result = r == 0 ? failure(wrong.data, wrong.len) : NULL;
    return r > 0;
}

/* A name with a NUL byte in it is not the name that it begins with. */
static bool is_named(const struct pf_mcp_tool *tool, const json_t *name)
{
    return strcmp(tool->name, json_string_value(name)) == 0 &&
           strlen(tool->name) == json_string_length(name);
}

json_t *pf_mcp_tools_call(struct pf_mcp_call *call, struct pf_mcp_fault *fault)
{
    json_t *name = json_object_get(call->message.params, "name");
    json_t *args = json_object_get(call->message.params, "arguments"), *result;
    _cleanup_json_ json_t *none = NULL;
    size_t i = 0;

    if (!json_is_string(name))
        return pf_mcp_fail(fault, PF_MCP_INVALID_PARAMS, "Invalid params: name has to be a string");
    if (args && !json_is_object(args) && !json_is_null(args))
        return pf_mcp_fail(fault, PF_MCP_INVALID_PARAMS,
                           "Invalid params: arguments has to be an object");
    while (i < TOOL_COUNT && !(is_named(tools[i], name) && has(call->session, tools[i])))
        i++;
    if (i == TOOL_COUNT)
        return pf_mcp_fail(fault, PF_MCP_INVALID_PARAMS, "Unknown tool: %.100s",
                           json_string_value(name));
    if (!json_is_object(args))
        args = none = json_object();
    return check(i, args, &result) ? run(call, tools[i], args) : result;
}

/* ---- checkers ---- */

static int never(void *ctx, struct pinfold_tool_call *call, struct pinfold_tool_result *ret_result,
                 struct pinfold_error *err)
{
    (void)ctx;
    (void)call;
    (void)ret_result;
    return pf_mcp_refuse(err, "this tool only checks");
}

int pf_mcp_tools_open(struct pinfold_error *err)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < TOOL_COUNT; i++) {
        struct pinfold_tool_options options = PINFOLD_TOOL_OPTIONS_INIT;
        options.name = tools[i]->name;
        options.description = tools[i]->description;
        options.input_schema = tools[i]->input;
        options.run = never;
        r = pinfold_tool_new(&options, &checkers[i], err);
    }
    if (r < 0)
        pf_mcp_tools_close();
    return r;
}

void pf_mcp_tools_close(void)
{
    for (size_t i = 0; i < TOOL_COUNT; i++) {
        pinfold_tool_unref(checkers[i]);
        checkers[i] = NULL;
    }
}
