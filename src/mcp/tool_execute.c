/* SPDX-License-Identifier: Apache-2.0 */
#include "mcp/tool.h"

#include "mcp/state.h"

static const char description[] =
        "Run a shell command (/bin/sh -c) in the workspace and wait for it to end. The result is "
        "the exit code, then stdout, then stderr with each line prefixed by [stderr].\n"
        "- It starts in the workspace root, or in cwd. Nothing is kept from call to call but files "
        "and background processes: no cd, no exported variable, no shell function. Join what "
        "belongs together with &&.\n"
        "- stdin is empty, and there is no terminal: pass -y and the like to programs that ask.\n"
        "- A command that takes longer than timeout_seconds is killed with all that it started, "
        "with exit code 124.";

static const char input[] =
        "{\"type\":\"object\",\"properties\":{"
        "\"command\":{\"type\":\"string\",\"minLength\":1,\"description\":\"Shell command to run "
        "in the workspace.\"},"
        "\"cwd\":{\"type\":[\"string\",\"null\"],\"description\":\"Directory to run it in, "
        "relative to the workspace root; it must exist. Default: the root.\"},"
        "\"timeout_seconds\":{\"type\":[\"number\",\"null\"],\"exclusiveMinimum\":0,\"maximum\":"
        "3600,\"description\":\"How long it may take. Default: 120.\"}},"
        "\"required\":[\"command\"],\"additionalProperties\":false}";

static const char output[] =
        "{\"type\":\"object\",\"properties\":{"
        "\"exit_code\":{\"type\":\"integer\"},"
        "\"stdout\":{\"type\":\"string\"},"
        "\"stderr\":{\"type\":\"string\"},"
        "\"truncated\":{\"type\":\"boolean\"},"
        "\"timed_out\":{\"type\":\"boolean\"},"
        "\"duration_seconds\":{\"type\":\"number\"}},"
        "\"required\":[\"exit_code\",\"stdout\",\"stderr\",\"truncated\",\"timed_out\","
        "\"duration_seconds\"]}";

static int show(const struct pinfold_execute_result *result, struct pf_mcp_result *ret,
                struct pinfold_error *err)
{
    __attribute__((cleanup(pinfold_bytes_done))) struct pinfold_bytes text = { 0 };
    int r = pinfold_execute_result_format(result, &text, err);

    if (r < 0)
        return r;
    pf_mcp_add_text(ret, text.data, text.len);
    pf_mcp_set(ret, "exit_code", json_integer(result->exit_code));
    pf_mcp_set(ret, "stdout", pf_mcp_text(result->output, result->stdout_len));
    pf_mcp_set(ret, "stderr", pf_mcp_text(result->stderr_text, result->stderr_len));
    pf_mcp_set(ret, "truncated", json_boolean(result->truncated));
    pf_mcp_set(ret, "timed_out", json_boolean(result->timed_out));
    pf_mcp_set(ret, "duration_seconds", json_real((double)result->duration_ns / 1e9));
    return 0;
}

static int run(struct pf_mcp_call *call, const json_t *args, struct pf_mcp_result *ret,
               struct pinfold_error *err)
{
    __attribute__((
            cleanup(pinfold_execute_result_done))) struct pinfold_execute_result result = { 0 };
    struct pinfold_execute_options options = PINFOLD_EXECUTE_OPTIONS_INIT;
    struct pinfold_sandbox *sandbox;
    int r;

    options.cwd = pf_mcp_path(args, "cwd", ".", err);
    if (!options.cwd)
        return -err->code;
    r = pf_mcp_workspace_begin(call->session, call->cancel, &sandbox, err);
    if (r < 0)
        return r;
    options.command = pf_mcp_string(args, "command", &options.command_len);
    options.timeout_seconds = pf_mcp_number(args, "timeout_seconds", 0);
    r = pinfold_sandbox_execute(sandbox, &options, &result, call->cancel, err);
    pf_mcp_workspace_end(call->session);
    return r < 0 ? r : show(&result, ret, err);
}

const struct pf_mcp_tool pf_mcp_execute = {
    .name = "execute",
    .title = "Run a command",
    .description = description,
    .input = input,
    .output = output,
    .traits = PF_MCP_DESTROYS | PF_MCP_RUNNER,
    .run = run,
};
