/* SPDX-License-Identifier: Apache-2.0 */
/* resources/list, resources/templates/list and resources/read: the files of the workspace, and the
 * record of what was done in it. */
#include "mcp/resource.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pinfold/search.h>

#include "mcp/audit.h"
#include "mcp/content.h"
#include "mcp/state.h"

#define AUDIT_URI "pinfold://audit"

/* Files on one page, and how many are listed at all: the list is made anew for each page. */
enum { PAGE = 200, LISTED_MAX = 20000 };

/* The largest file that is given as a resource. */
enum { FILE_MAX = 4 * 1024 * 1024 };

/* ---- resources/templates/list ---- */

json_t *pf_mcp_templates_list(struct pf_mcp_call *call, struct pf_mcp_fault *fault)
{
    json_t *result, *list, *template;
    int bad;

    if (json_object_get(call->message.params, "cursor"))
        return pf_mcp_fail(fault, PF_MCP_INVALID_PARAMS, "Invalid cursor: the list has one page");
    result = json_object();
    list = json_array();
    template = json_object();
    bad = pf_mcp_put(template, "uriTemplate", json_string(PF_MCP_FILE_URI "{+path}"));
    bad |= pf_mcp_put(template, "name", json_string("workspace-file"));
    if (call->version >= PF_MCP_2025_06_18)
        bad |= pf_mcp_put(template, "title", json_string("A file of the workspace"));
    bad |= pf_mcp_put(template, "description",
                      json_string("Any file of the workspace, by its path relative to the root"));
    bad |= pf_mcp_push(list, template);
    bad |= pf_mcp_put(result, "resourceTemplates", list);
    return pf_mcp_whole(result, bad);
}

/* ---- resources/list ---- */

static json_t *file_entry(const char *path)
{
    json_t *object = json_object();
    int bad = pf_mcp_put(object, "uri", pf_mcp_uri(path));

    bad |= pf_mcp_put(object, "name", pf_mcp_text(path, strlen(path)));
    return pf_mcp_whole(object, bad);
}

static json_t *audit_entry(const struct pf_mcp_call *call)
{
    json_t *object = json_object();
    int bad = pf_mcp_put(object, "uri", json_string(AUDIT_URI));

    bad |= pf_mcp_put(object, "name", json_string("audit"));
    if (call->version >= PF_MCP_2025_06_18)
        bad |= pf_mcp_put(object, "title", json_string("What was done in the workspace"));
    bad |= pf_mcp_put(object, "description",
                      json_string("The last events of the record, oldest first, one JSON object a "
                                  "line. Commands appear as digests"));
    bad |= pf_mcp_put(object, "mimeType", json_string("application/x-ndjson"));
    return pf_mcp_whole(object, bad);
}

/* Where a cursor says to begin, or -1. It is the number of files before the page. */
static long begin_of(const json_t *cursor)
{
    const char *text = json_string_value(cursor);
    char *end;
    long begin;

    if (!cursor || json_is_null(cursor))
        return 0;
    if (!text || *text < '1' || *text > '9' || strlen(text) != json_string_length(cursor))
        return -1;
    begin = strtol(text, &end, 10);
    return *end || begin > LISTED_MAX ? -1 : begin;
}

/* Fill list from a search by all names. Returns whether there is more behind it. */
static bool add_files(const struct pinfold_search_result *found, long begin, json_t *list, int *bad)
{
    size_t i = (size_t)begin;

    for (; i < found->count && i < (size_t)begin + PAGE; i++)
        *bad |= pf_mcp_push(list, file_entry(found->items[i].path));
    return i < found->count;
}

json_t *pf_mcp_resources_list(struct pf_mcp_call *call, struct pf_mcp_fault *fault)
{
    __attribute__((cleanup(pinfold_search_result_done))) struct pinfold_search_result found = { 0 };
    static const char *const all[] = { "*", NULL };
    struct pinfold_search_options options = PINFOLD_SEARCH_OPTIONS_INIT;
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    long begin = begin_of(json_object_get(call->message.params, "cursor"));
    struct pinfold_sandbox *sandbox;
    json_t *result, *list;
    char next[24];
    int r, bad = 0;

    if (begin < 0)
        return pf_mcp_fail(fault, PF_MCP_INVALID_PARAMS, "Invalid cursor");
    options.names = all;
    options.max_results = (uint64_t)begin + PAGE + 1;
    r = pf_mcp_workspace_begin(call->session, call->cancel, &sandbox, &err);
    if (r == 0) {
        r = pinfold_sandbox_search(sandbox, &options, &found, call->cancel, &err);
        pf_mcp_workspace_end(call->session);
    }
    if (r < 0)
        return pf_mcp_fail(fault, PF_MCP_INTERNAL_ERROR, "%s", err.msg);
    result = json_object();
    list = json_array();
    if (begin == 0)
        bad |= pf_mcp_push(list, audit_entry(call));
    if (add_files(&found, begin, list, &bad) && begin + PAGE <= LISTED_MAX) {
        snprintf(next, sizeof(next), "%ld", begin + PAGE);
        bad |= pf_mcp_put(result, "nextCursor", json_string(next));
    }
    bad |= pf_mcp_put(result, "resources", list);
    return pf_mcp_whole(result, bad);
}

/* ---- resources/read ---- */

/* The one content that a result has; takes value. */
static json_t *contents(const char *uri, const char *type, const char *key, json_t *value)
{
    json_t *result = json_object(), *list = json_array(), *object = json_object();
    int bad = pf_mcp_put(object, "uri", json_string(uri));

    bad |= pf_mcp_put(object, "mimeType", json_string(type));
    bad |= pf_mcp_put(object, key, value);
    bad |= pf_mcp_push(list, object);
    bad |= pf_mcp_put(result, "contents", list);
    return pf_mcp_whole(result, bad);
}

static json_t *file_contents(const char *uri, const struct pinfold_bytes *bytes, bool is_text)
{
    const char *image = pf_mcp_image_type(bytes);

    if (is_text)
        return contents(uri, "text/plain", "text", pf_mcp_text(bytes->data, bytes->len));
    return contents(uri, image ? image : "application/octet-stream", "blob",
                    pf_mcp_base64(bytes->data, bytes->len));
}

static json_t *read_file(struct pf_mcp_call *call, const char *uri, const char *path,
                         struct pf_mcp_fault *fault)
{
    __attribute__((cleanup(pinfold_bytes_done))) struct pinfold_bytes bytes = { 0 };
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    struct pinfold_sandbox *sandbox;
    bool is_text = false;
    int r = pf_mcp_reading_begin(call->session, call->cancel, &sandbox, &err);

    if (r == 0) {
        r = pf_mcp_read_whole(sandbox, path, &bytes, &is_text, call->cancel, &err);
        pf_mcp_reading_end(call->session);
    }
    if (r == -PINFOLD_EOS || r == -PINFOLD_EPATH)
        return pf_mcp_fail(fault, PF_MCP_NO_RESOURCE, "Resource not found: %s", err.msg);
    if (r < 0)
        return pf_mcp_fail(fault, PF_MCP_INTERNAL_ERROR, "%s", err.msg);
    if (bytes.len > FILE_MAX)
        return pf_mcp_fail(fault, PF_MCP_INTERNAL_ERROR,
                           "The file has %zu bytes, too many for a resource: read it in parts with "
                           "the tool read_file",
                           bytes.len);
    return file_contents(uri, &bytes, is_text);
}

json_t *pf_mcp_resources_read(struct pf_mcp_call *call, struct pf_mcp_fault *fault)
{
    size_t len, start = strlen(PF_MCP_FILE_URI);
    const char *uri = pf_mcp_string(call->message.params, "uri", &len);
    json_t *result;
    char *path;

    if (!uri || strlen(uri) != len)
        return pf_mcp_fail(fault, PF_MCP_INVALID_PARAMS,
                           "Invalid params: uri has to be a string without NUL bytes");
    if (strcmp(uri, AUDIT_URI) == 0)
        return contents(uri, "application/x-ndjson", "text",
                        pf_mcp_audit_text(&call->session->server->audit));
    if (strncmp(uri, PF_MCP_FILE_URI, start) != 0)
        return pf_mcp_fail(fault, PF_MCP_NO_RESOURCE,
                           "Resource not found: there are " PF_MCP_FILE_URI "PATH and " AUDIT_URI);
    path = pf_mcp_decode(uri + start);
    if (!path)
        return pf_mcp_fail(fault, PF_MCP_NO_RESOURCE,
                           "Resource not found: the URI is not well encoded");
    result = read_file(call, uri, path, fault);
    free(path);
    return result;
}
