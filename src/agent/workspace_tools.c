/* SPDX-License-Identifier: Apache-2.0 */
/* SandboxPlugin: the tools by which models work in a workspace. What their descriptions say is all
 * that a model knows of it. */
#include "agent/agent.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"

/* What one result shows at most, in bytes: as much as a backend keeps of a command's output. */
enum { SHOWN_MAX = 100000 };

const char pf_sandbox_plugin_name[] = "sandbox";

/* ---- execute ---- */

static const char execute_description[] =
        "Run a shell command (/bin/sh -c) in the workspace and wait for it to end. The result is "
        "the exit code, then stdout, then stderr with each line prefixed by [stderr].\n"
        "- It starts in the workspace root, or in cwd. Nothing is kept from call to call but files "
        "and background processes: no cd, no exported variable, no shell function. Join what "
        "belongs together with &&.\n"
        "- stdin is empty, and there is no terminal: pass -y and the like to programs that ask.\n"
        "- A command that takes longer than the time limit (usually 120 seconds) is killed with "
        "all that it started, with exit code 124. Run servers in the background: "
        "cmd > log.txt 2>&1 &\n"
        "- Long output is cut after about 100,000 bytes, and the result says so: for more, write "
        "the output to a file and page through it with read_file.";

static const char execute_schema[] =
        "{\"type\":\"object\",\"properties\":{"
        "\"command\":{\"type\":\"string\",\"description\":\"Shell command to run in the "
        "workspace.\"},"
        "\"cwd\":{\"type\":[\"string\",\"null\"],\"description\":\"Directory to run it in, "
        "relative to the workspace root; it must exist. Default: the root.\"}},"
        "\"required\":[\"command\"],\"additionalProperties\":false}";

static int run_execute(void *ctx, struct pinfold_tool_call *call,
                       struct pinfold_tool_result *ret_result, struct pinfold_error *err)
{
    PF_CLEANUP(pinfold_execute_result_done) struct pinfold_execute_result result = { 0 };
    PF_CLEANUP(pinfold_bytes_done) struct pinfold_bytes text = { 0 };
    struct pinfold_execute_options options = PINFOLD_EXECUTE_OPTIONS_INIT;
    int r;

    (void)ctx;
    options.command = pinfold_tool_call_string(call, "command", &options.command_len);
    r = pf_tool_call_text(call, "cwd", &options.cwd, err);
    if (r == 0)
        r = pinfold_agent_execute(call->agent, &options, &result, call->cancel, err);
    if (r == 0)
        r = pinfold_execute_result_format(&result, &text, err);
    return r < 0 ? r : pinfold_tool_result_add_text(ret_result, text.data, text.len, err);
}

/* ---- read_file ---- */

static const char read_description[] =
        "Read a text file of the workspace, exactly as stored. Without offset and limit the file "
        "from its start. A result holds at most about 100,000 bytes, in whole lines; when there is "
        "more a last line in brackets tells the offset to continue at. Binary files are refused.";

static const char read_schema[] =
        "{\"type\":\"object\",\"properties\":{"
        "\"path\":{\"type\":\"string\",\"description\":\"File path relative to the workspace "
        "root, such as src/main.c. Absolute paths work only beneath the workspace root.\"},"
        "\"offset\":{\"type\":[\"integer\",\"null\"],\"default\":0,\"description\":\"How many "
        "lines to skip: 0 starts with the first line.\"},"
        "\"limit\":{\"type\":[\"integer\",\"null\"],\"description\":\"Maximum number of lines to "
        "read. Default: all.\"}},"
        "\"required\":[\"path\"],\"additionalProperties\":false}";

/* What a model needs to know of what it does not see. */
static int add_note(struct pf_buf *out, uint64_t offset, uint64_t next, uint64_t lines,
                    size_t shown, const struct pinfold_bytes *text)
{
    if (lines == 0)
        return pf_buf_append_text(out, "[The file is empty.]");
    if (offset >= lines)
        return pf_buf_printf(
                out, "[The file has %" PRIu64 " lines; offset %" PRIu64 " is past its end.]", lines,
                offset);
    if (shown < text->len && text->data[shown - 1] != '\n')
        return pf_buf_printf(out,
                             "\n[Line %" PRIu64 " is longer than %d bytes and was cut here. "
                             "Continue with offset=%" PRIu64 ".]",
                             next, SHOWN_MAX, next);
    if (shown < text->len)
        return pf_buf_printf(out,
                             "[Cut after %d bytes: the file has %" PRIu64
                             " lines. Continue with offset=%" PRIu64 ".]",
                             SHOWN_MAX, lines, next);
    if (next < lines && shown > 0)
        return pf_buf_printf(out,
                             "%s[Lines %" PRIu64 " to %" PRIu64 " of %" PRIu64
                             ". Continue with offset=%" PRIu64 ".]",
                             text->data[shown - 1] == '\n' ? "" : "\n", offset + 1, next, lines,
                             next);
    return 0;
}

static int run_read(void *ctx, struct pinfold_tool_call *call,
                    struct pinfold_tool_result *ret_result, struct pinfold_error *err)
{
    PF_CLEANUP(pinfold_bytes_done) struct pinfold_bytes text = { 0 };
    struct pf_buf out = PF_BUF_INIT(PF_BUF_UNLIMITED);
    int64_t offset = pinfold_tool_call_integer(call, "offset", 0);
    int64_t limit = pinfold_tool_call_integer(call, "limit", PINFOLD_ALL_LINES);
    uint64_t lines = 0, lines_shown;
    const char *path;
    size_t shown;
    int r = pf_tool_call_text(call, "path", &path, err);

    (void)ctx;
    if (offset < 0)
        offset = 0;
    if (r == 0)
        r = pinfold_read_workspace_file(call->agent, path, offset, limit, &text, &lines,
                                        call->cancel, err);
    if (r < 0)
        return r;
    shown = pinfold_fit_lines(&text, SHOWN_MAX, &lines_shown);
    r = pf_buf_append(&out, text.data, shown);
    if (r == 0)
        r = add_note(&out, (uint64_t)offset, (uint64_t)offset + lines_shown, lines, shown, &text);
    r = r < 0 ? pf_fail_nomem(err) : pf_tool_result_text(ret_result, &out, err);
    pf_buf_done(&out);
    return r;
}

/* ---- write_file ---- */

static const char write_description[] =
        "Write a text file of the workspace: it is created, with its parent directories, or "
        "replaced as a whole. content is the complete new text of the file, with its line breaks "
        "and without line numbers; nothing of what was there before is kept.";

static const char write_schema[] =
        "{\"type\":\"object\",\"properties\":{"
        "\"path\":{\"type\":\"string\",\"description\":\"File path relative to the workspace "
        "root.\"},"
        "\"content\":{\"type\":\"string\",\"description\":\"The whole text to write.\"}},"
        "\"required\":[\"path\",\"content\"],\"additionalProperties\":false}";

static int run_write(void *ctx, struct pinfold_tool_call *call,
                     struct pinfold_tool_result *ret_result, struct pinfold_error *err)
{
    struct pf_buf out = PF_BUF_INIT(PF_BUF_UNLIMITED);
    size_t len;
    const char *path, *content = pinfold_tool_call_string(call, "content", &len);
    int r = pf_tool_call_text(call, "path", &path, err);

    (void)ctx;
    if (r == 0)
        r = pinfold_write_workspace_file(call->agent, path, content, len, call->cancel, err);
    if (r < 0)
        return r;
    r = pf_buf_printf(&out, "Wrote %zu bytes to %s.", len, path);
    r = r < 0 ? pf_fail_nomem(err) : pf_tool_result_text(ret_result, &out, err);
    pf_buf_done(&out);
    return r;
}

/* ---- list_dir ---- */

static const char list_description[] =
        "List one directory of the workspace, hidden files included, one entry a line, sorted: "
        "the path relative to the workspace root; directories end in /, files are followed by "
        "their size. It does not go into subdirectories. Bytes of a name that are not printable "
        "are shown as \\xNN.";

static const char list_schema[] =
        "{\"type\":\"object\",\"properties\":{"
        "\"path\":{\"type\":\"string\",\"description\":\"Directory path relative to the workspace "
        "root; . is the root itself.\"}},"
        "\"required\":[\"path\"],\"additionalProperties\":false}";

static int add_entry(struct pf_buf *out, const struct pinfold_file_info *info)
{
    _cleanup_free_ char *shown = pf_escape(info->path);

    if (!shown)
        return -PINFOLD_ENOMEM;
    if (info->is_dir)
        return pf_buf_printf(out, "%s/\n", shown);
    if (info->size < 0)
        return pf_buf_printf(out, "%s\n", shown);
    return pf_buf_printf(out, "%s  %" PRId64 " bytes\n", shown, info->size);
}

static int run_list(void *ctx, struct pinfold_tool_call *call,
                    struct pinfold_tool_result *ret_result, struct pinfold_error *err)
{
    PF_CLEANUP(pinfold_file_infos_done) struct pinfold_file_infos infos = { 0 };
    struct pf_buf out = PF_BUF_INIT(PF_BUF_UNLIMITED);
    const char *path;
    size_t shown = 0;
    int r = pf_tool_call_text(call, "path", &path, err);

    (void)ctx;
    if (r == 0)
        r = pinfold_list_workspace_dir(call->agent, path, &infos, call->cancel, err);
    if (r < 0)
        return r;
    for (; r == 0 && shown < infos.count && out.len < SHOWN_MAX; shown++)
        r = add_entry(&out, &infos.items[shown]);
    if (r == 0 && infos.count == 0)
        r = pf_buf_append_text(&out, "[The directory is empty.]");
    if (r == 0 && shown < infos.count)
        r = pf_buf_printf(&out, "[%zu of %zu entries are shown.]", shown, infos.count);
    r = r < 0 ? pf_fail_nomem(err) : pf_tool_result_text(ret_result, &out, err);
    pf_buf_done(&out);
    return r;
}

/* ---- the set ---- */

static const struct workspace_tool {
    const char *name, *description, *schema;
    pinfold_tool_fn run;
    bool changes;
} workspace_tools[] = {
    { "execute", execute_description, execute_schema, run_execute, true },
    { "read_file", read_description, read_schema, run_read, false },
    { "write_file", write_description, write_schema, run_write, true },
    { "list_dir", list_description, list_schema, run_list, false },
};

static int add_tool(struct pinfold_agent *agent, const struct workspace_tool *what,
                    struct pinfold_error *err)
{
    PF_CLEANUP(pf_tool_unrefp) struct pinfold_tool *tool = NULL;
    struct pinfold_tool_options options = PINFOLD_TOOL_OPTIONS_INIT;
    int r;

    options.name = what->name;
    options.description = what->description;
    options.input_schema = what->schema;
    options.run = what->run;
    r = pinfold_tool_new(&options, &tool, err);
    return r < 0 ? r : pinfold_agent_add_tool(agent, tool, err);
}

/* Somebody's own tool of such a name would be taken for ours, and might work on the host: also when
 * the mode leaves that name free. */
static int check_names(struct pinfold_agent *agent, struct pinfold_error *err)
{
    for (size_t i = 0; i < PF_COUNT(workspace_tools); i++) {
        struct pinfold_tool *there = pinfold_agent_get_tool(agent, workspace_tools[i].name);

        pinfold_tool_unref(there);
        if (there)
            return pf_fail(err, PINFOLD_EVALUE,
                           "agent %s has a tool %s already, and the workspace needs the name",
                           PF_QUOTE(agent->id), workspace_tools[i].name);
    }
    return 0;
}

int pf_workspace_tools_add(struct pinfold_agent *agent, bool executes,
                           enum pinfold_attach_mode mode, struct pinfold_error *err)
{
    size_t i = 0;
    int r = check_names(agent, err);

    if (r < 0)
        return r;
    for (; r == 0 && i < PF_COUNT(workspace_tools); i++) {
        const struct workspace_tool *one = &workspace_tools[i];

        if ((one->run == run_execute && !executes) || (one->changes && mode == PINFOLD_READ_ONLY))
            continue;
        r = add_tool(agent, one, err);
    }
    /* The last one is not ours if it failed: somebody was quicker to take its name. */
    for (i--; r < 0 && i-- > 0;)
        pinfold_agent_remove_tool(agent, workspace_tools[i].name);
    return r;
}

void pf_workspace_tools_remove(struct pinfold_agent *agent)
{
    for (size_t i = 0; i < PF_COUNT(workspace_tools); i++) {
        PF_CLEANUP(pf_tool_unrefp)
        struct pinfold_tool *tool = pinfold_agent_get_tool(agent, workspace_tools[i].name);

        /* A name that a read-only agent left free may be somebody else's by now. */
        if (tool && pf_tool_runs(tool, workspace_tools[i].run))
            pinfold_agent_remove_tool(agent, workspace_tools[i].name);
    }
}

/* ---- the plugin ---- */

/* Tools of a shared workspace come with attach; those of the agent's own come now. */
static int init_agent(void *ctx, struct pinfold_agent *agent, struct pinfold_error *err)
{
    (void)ctx;
    if (!pf_has_own_workspace(agent))
        return 0;
    return pf_workspace_tools_add(agent, pinfold_supports_execution(agent->backend),
                                  PINFOLD_READ_WRITE, err);
}

int pinfold_sandbox_plugin_new(struct pinfold_plugin **ret_plugin, struct pinfold_error *err)
{
    struct pinfold_plugin_options options = PINFOLD_PLUGIN_OPTIONS_INIT;

    options.name = pf_sandbox_plugin_name;
    options.init_agent = init_agent;
    return pinfold_plugin_new(&options, ret_plugin, err);
}
