/* SPDX-License-Identifier: Apache-2.0 */
/* edit_file, delete_file and move_file. */
#include <inttypes.h>
#include <string.h>

#include <pinfold/changes.h>

#include "mcp/state.h"
#include "mcp/tool.h"

/* ---- edit_file ---- */

static int run_edit(struct pf_mcp_call *call, const json_t *args, struct pf_mcp_result *ret,
                    struct pinfold_error *err)
{
    struct pinfold_edit_options options = PINFOLD_EDIT_OPTIONS_INIT;
    struct pinfold_edit_result result = { 0 };
    struct pinfold_sandbox *sandbox;
    int r;

    options.path = pf_mcp_path(args, "path", NULL, err);
    options.old_text = pf_mcp_string(args, "old_text", &options.old_len);
    options.new_text = pf_mcp_string(args, "new_text", &options.new_len);
    options.replace_all = pf_mcp_flag(args, "replace_all", false);
    r = options.path ? pf_mcp_reading_begin(call->session, call->cancel, &sandbox, err)
                     : -err->code;
    if (r < 0)
        return r;
    r = pinfold_sandbox_edit(sandbox, &options, &result, call->cancel, err);
    pf_mcp_reading_end(call->session);
    if (r < 0)
        return r;
    pf_mcp_addf(ret, "Replaced %" PRIu64 " time%s in %s, first on line %" PRIu64 ".",
                result.replaced, result.replaced == 1 ? "" : "s", options.path, result.line);
    pf_mcp_set(ret, "path", pf_mcp_text(options.path, strlen(options.path)));
    pf_mcp_set(ret, "replaced", json_integer((json_int_t)result.replaced));
    pf_mcp_set(ret, "line", json_integer((json_int_t)result.line));
    pf_mcp_set(ret, "bytes", json_integer((json_int_t)result.bytes));
    return 0;
}

const struct pf_mcp_tool pf_mcp_edit_file = {
    .name = "edit_file",
    .title = "Edit a file",
    .description =
            "Replace an exact text in a file of the workspace. old_text must be in the file "
            "exactly "
            "once, with its white space and line breaks, and without line numbers: take enough of "
            "the lines around it. With replace_all every place is replaced. Nothing is changed "
            "when the text is missing or not unique; the error says on which lines it is.",
    .input = "{\"type\":\"object\",\"properties\":{"
             "\"path\":{\"type\":\"string\",\"description\":\"File path relative to the workspace "
             "root.\"},"
             "\"old_text\":{\"type\":\"string\",\"minLength\":1,\"description\":\"The text that is "
             "there.\"},"
             "\"new_text\":{\"type\":\"string\",\"description\":\"What takes its place; may be "
             "empty.\"},"
             "\"replace_all\":{\"type\":\"boolean\",\"default\":false}},"
             "\"required\":[\"path\",\"old_text\",\"new_text\"],\"additionalProperties\":false}",
    .output = "{\"type\":\"object\",\"properties\":{\"path\":{\"type\":\"string\"},"
              "\"replaced\":{\"type\":\"integer\"},\"line\":{\"type\":\"integer\",\"description\":"
              "\"Of the first place, from 1.\"},\"bytes\":{\"type\":\"integer\",\"description\":"
              "\"Size of the file now.\"}},"
              "\"required\":[\"path\",\"replaced\",\"line\",\"bytes\"]}",
    .traits = PF_MCP_DESTROYS | PF_MCP_WRITER,
    .run = run_edit,
};

/* ---- delete_file ---- */

static int run_delete(struct pf_mcp_call *call, const json_t *args, struct pf_mcp_result *ret,
                      struct pinfold_error *err)
{
    const char *path = pf_mcp_path(args, "path", NULL, err);
    unsigned flags = pf_mcp_flag(args, "recursive", false) ? PINFOLD_DELETE_RECURSIVE : 0;
    struct pinfold_sandbox *sandbox;
    int r = path ? pf_mcp_workspace_begin(call->session, call->cancel, &sandbox, err) : -err->code;

    if (r < 0)
        return r;
    r = pinfold_sandbox_delete(sandbox, path, flags, call->cancel, err);
    pf_mcp_workspace_end(call->session);
    if (r < 0)
        return r;
    pf_mcp_addf(ret, "Deleted %s.", path);
    pf_mcp_set(ret, "path", pf_mcp_text(path, strlen(path)));
    return 0;
}

const struct pf_mcp_tool pf_mcp_delete_file = {
    .name = "delete_file",
    .title = "Delete a file",
    .description =
            "Delete a file, a symbolic link (not what it points to) or an empty directory of "
            "the workspace; with recursive a directory and all that is in it.",
    .input = "{\"type\":\"object\",\"properties\":{"
             "\"path\":{\"type\":\"string\",\"description\":\"Path relative to the workspace "
             "root.\"},"
             "\"recursive\":{\"type\":\"boolean\",\"default\":false}},"
             "\"required\":[\"path\"],\"additionalProperties\":false}",
    .output = "{\"type\":\"object\",\"properties\":{\"path\":{\"type\":\"string\"}},"
              "\"required\":[\"path\"]}",
    .traits = PF_MCP_DESTROYS | PF_MCP_WRITER,
    .run = run_delete,
};

/* ---- move_file ---- */

static int run_move(struct pf_mcp_call *call, const json_t *args, struct pf_mcp_result *ret,
                    struct pinfold_error *err)
{
    const char *source = pf_mcp_path(args, "source", NULL, err);
    const char *destination = source ? pf_mcp_path(args, "destination", NULL, err) : NULL;
    unsigned flags = pf_mcp_flag(args, "overwrite", false) ? 0 : PINFOLD_MOVE_NO_REPLACE;
    struct pinfold_sandbox *sandbox;
    int r = destination ? pf_mcp_workspace_begin(call->session, call->cancel, &sandbox, err)
                        : -err->code;

    if (r < 0)
        return r;
    r = pinfold_sandbox_move(sandbox, source, destination, flags, call->cancel, err);
    pf_mcp_workspace_end(call->session);
    if (r < 0)
        return r;
    pf_mcp_addf(ret, "Moved %s to %s.", source, destination);
    pf_mcp_set(ret, "source", pf_mcp_text(source, strlen(source)));
    pf_mcp_set(ret, "destination", pf_mcp_text(destination, strlen(destination)));
    return 0;
}

const struct pf_mcp_tool pf_mcp_move_file = {
    .name = "move_file",
    .title = "Move a file",
    .description =
            "Move or rename a file, a symbolic link or a directory within the workspace. Parents "
            "of "
            "the destination are created. destination is the new path itself, not the directory to "
            "move into. A file that is there is replaced only with overwrite; a directory never.",
    .input = "{\"type\":\"object\",\"properties\":{"
             "\"source\":{\"type\":\"string\",\"description\":\"Path relative to the workspace "
             "root.\"},"
             "\"destination\":{\"type\":\"string\",\"description\":\"The new path.\"},"
             "\"overwrite\":{\"type\":\"boolean\",\"default\":false}},"
             "\"required\":[\"source\",\"destination\"],\"additionalProperties\":false}",
    .output = "{\"type\":\"object\",\"properties\":{\"source\":{\"type\":\"string\"},"
              "\"destination\":{\"type\":\"string\"}},\"required\":[\"source\",\"destination\"]}",
    .traits = PF_MCP_DESTROYS | PF_MCP_WRITER,
    .run = run_move,
};
