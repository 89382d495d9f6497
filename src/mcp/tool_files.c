/* SPDX-License-Identifier: Apache-2.0 */
/* write_file and list_dir. */
#include "mcp/tool.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/say.h"
#include "mcp/state.h"

/* What one result shows at most, in bytes. */
enum { SHOWN_MAX = 50000 };

/* ---- write_file ---- */

static int run_write(struct pf_mcp_call *call, const json_t *args, struct pf_mcp_result *ret,
                     struct pinfold_error *err)
{
    const char *path = pf_mcp_path(args, "path", NULL, err);
    struct pinfold_sandbox *sandbox;
    size_t len;
    const char *content = pf_mcp_string(args, "content", &len);
    int r = path ? pf_mcp_workspace_begin(call->session, call->cancel, &sandbox, err) : -err->code;

    if (r < 0)
        return r;
    r = pinfold_sandbox_write_file(sandbox, path, content, len, call->cancel, err);
    pf_mcp_workspace_end(call->session);
    if (r < 0)
        return r;
    pf_mcp_addf(ret, "Wrote %zu bytes to %s.", len, path);
    pf_mcp_set(ret, "path", pf_mcp_text(path, strlen(path)));
    pf_mcp_set(ret, "bytes", json_integer((json_int_t)len));
    return 0;
}

const struct pf_mcp_tool pf_mcp_write_file = {
    .name = "write_file",
    .title = "Write a file",
    .description =
            "Write a text file of the workspace: it is created, with its parent directories, or "
            "replaced as a whole. content is the complete new text of the file, with its line "
            "breaks and without line numbers; nothing of what was there before is kept.",
    .input = "{\"type\":\"object\",\"properties\":{"
             "\"path\":{\"type\":\"string\",\"description\":\"File path relative to the workspace "
             "root.\"},"
             "\"content\":{\"type\":\"string\",\"description\":\"The whole text to write.\"}},"
             "\"required\":[\"path\",\"content\"],\"additionalProperties\":false}",
    .output = "{\"type\":\"object\",\"properties\":{\"path\":{\"type\":\"string\"},"
              "\"bytes\":{\"type\":\"integer\"}},\"required\":[\"path\",\"bytes\"]}",
    .traits = PF_MCP_DESTROYS | PF_MCP_IDEMPOTENT | PF_MCP_WRITER,
    .run = run_write,
};

/* ---- list_dir ---- */

static json_t *entry(const struct pinfold_file_info *info, const char *shown)
{
    json_t *object = json_object();
    int bad = pf_mcp_put(object, "path", json_string(shown));

    bad |= pf_mcp_put(object, "type", json_string(info->is_dir ? "directory" : "file"));
    if (info->size >= 0)
        bad |= pf_mcp_put(object, "size", json_integer(info->size));
    return pf_mcp_whole(object, bad);
}

/* Fill text, which holds SHOWN_MAX bytes, and entries. Returns how many entries are shown. */
static size_t show(const struct pinfold_file_infos *infos, char *text, json_t *entries, int *bad)
{
    size_t len = 0, i;

    for (i = 0; i < infos->count; i++) {
        const struct pinfold_file_info *info = &infos->items[i];
        char *shown = pf_printable(info->path);
        size_t room = SHOWN_MAX - len;
        int more = !shown           ? -1
                   : info->is_dir   ? snprintf(text + len, room, "%s/\n", shown)
                   : info->size < 0 ? snprintf(text + len, room, "%s\n", shown)
                                    : snprintf(text + len, room, "%s  %" PRId64 " bytes\n", shown,
                                               info->size);
        bool fits = more >= 0 && (size_t)more < room;

        if (fits)
            *bad |= pf_mcp_push(entries, entry(info, shown));
        *bad |= more < 0 ? -1 : 0;
        free(shown);
        if (!fits)
            break;
        len += (size_t)more;
    }
    text[len] = '\0';
    return i;
}

static int run_list(struct pf_mcp_call *call, const json_t *args, struct pf_mcp_result *ret,
                    struct pinfold_error *err)
{
    __attribute__((cleanup(pinfold_file_infos_done))) struct pinfold_file_infos infos = { 0 };
    const char *path = pf_mcp_path(args, "path", ".", err);
    struct pinfold_sandbox *sandbox;
    json_t *entries = json_array();
    char *text;
    size_t shown;
    int r = path ? pf_mcp_workspace_begin(call->session, call->cancel, &sandbox, err) : -err->code;

    if (r == 0) {
        r = pinfold_sandbox_list_dir(sandbox, path, &infos, call->cancel, err);
        pf_mcp_workspace_end(call->session);
    }
    text = r < 0 ? NULL : malloc(SHOWN_MAX);
    if (!text) {
        json_decref(entries);
        return r < 0 ? r : pf_mcp_nomem(err);
    }
    shown = show(&infos, text, entries, &ret->bad);
    if (shown < infos.count)
        pf_mcp_addf(ret, "%s[%zu of %zu entries are shown.]", text, shown, infos.count);
    else
        pf_mcp_addf(ret, "%s", infos.count ? text : "[The directory is empty.]");
    free(text);
    pf_mcp_set(ret, "entries", entries);
    pf_mcp_set(ret, "total", json_integer((json_int_t)infos.count));
    return 0;
}

const struct pf_mcp_tool pf_mcp_list_dir = {
    .name = "list_dir",
    .title = "List a directory",
    .description = "List one directory of the workspace, hidden files included, one entry a line, "
                   "sorted: the path relative to the workspace root; directories end in /, files "
                   "are followed by their size. It does not go into subdirectories. Bytes of a "
                   "name that are not printable are shown as \\xNN.",
    .input = "{\"type\":\"object\",\"properties\":{"
             "\"path\":{\"type\":[\"string\",\"null\"],\"description\":\"Directory path relative "
             "to the workspace root. Default: the root.\"}},"
             "\"additionalProperties\":false}",
    .output = "{\"type\":\"object\",\"properties\":{\"entries\":{\"type\":\"array\",\"items\":{"
              "\"type\":\"object\",\"properties\":{\"path\":{\"type\":\"string\"},\"type\":{"
              "\"enum\":[\"file\",\"directory\"]},\"size\":{\"type\":\"integer\"}},\"required\":["
              "\"path\",\"type\"]}},\"total\":{\"type\":\"integer\"}},\"required\":[\"entries\","
              "\"total\"]}",
    .traits = PF_MCP_READS,
    .run = run_list,
};
