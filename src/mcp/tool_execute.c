/* SPDX-License-Identifier: Apache-2.0 */
/* The tool execute. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "mcp/output.h"
#include "mcp/state.h"
#include "mcp/tool.h"

static const char description[] =
        "Run a shell command (/bin/sh -c) in the workspace and wait for it to end. The result is "
        "the exit code, then stdout, then stderr with each line prefixed by [stderr].\n"
        "- It starts in the workspace root, which is /workspace, or in cwd. Nothing is kept from "
        "call to call but files and background processes: no cd, no exported variable, no shell "
        "function. Join what belongs together with &&.\n"
        "- stdin is empty, and there is no terminal: pass -y and the like to programs that ask.\n"
        "- A command that takes longer than timeout_seconds (by default %.15g) is killed with all "
        "that it started, with exit code 124. For servers, watchers and long builds there is "
        "start_process.\n"
        "- Long output is cut in its middle: its start and its end are shown, and an output_id "
        "with which read_output pages through all of it.";

static const char input[] =
        "{\"type\":\"object\",\"properties\":{"
        "\"command\":{\"type\":\"string\",\"minLength\":1,\"description\":\"Shell command to run "
        "in the workspace.\"},"
        "\"cwd\":{\"type\":[\"string\",\"null\"],\"description\":\"Directory to run it in, "
        "relative to the workspace root; it must exist. Default: the root.\"},"
        "\"timeout_seconds\":{\"type\":[\"number\",\"null\"],\"exclusiveMinimum\":0,\"maximum\":"
        "3600,\"description\":\"How long it may take, at most 3600.\"}},"
        "\"required\":[\"command\"],\"additionalProperties\":false}";

static const char output[] =
        "{\"type\":\"object\",\"properties\":{"
        "\"exit_code\":{\"type\":\"integer\",\"description\":\"124: it ran out of time; 128 and "
        "more: a signal ended it.\"},"
        "\"stdout\":{\"type\":\"string\"},"
        "\"stderr\":{\"type\":\"string\"},"
        "\"truncated\":{\"type\":\"boolean\",\"description\":\"The middle of the output was "
        "cut.\"},"
        "\"output_id\":{\"type\":\"string\",\"description\":\"For read_output, when it was "
        "cut.\"},"
        "\"stdout_bytes\":{\"type\":\"integer\",\"description\":\"What was written, shown or "
        "not.\"},"
        "\"stderr_bytes\":{\"type\":\"integer\"},"
        "\"timed_out\":{\"type\":\"boolean\"},"
        "\"limit\":{\"type\":\"string\",\"description\":\"The limit of the sandbox that ended "
        "it.\"},"
        "\"background_processes\":{\"type\":\"integer\",\"description\":\"That it left "
        "running.\"},"
        "\"duration_seconds\":{\"type\":\"number\"}},"
        "\"required\":[\"exit_code\",\"stdout\",\"stderr\",\"truncated\",\"stdout_bytes\","
        "\"stderr_bytes\",\"timed_out\",\"background_processes\",\"duration_seconds\"]}";

static char *describe(const struct pf_options *options)
{
    char *text;

    return asprintf(&text, description, pf_options_seconds(options)) < 0 ? NULL : text;
}

/* What is to be done with output while it comes. */
struct live {
    struct pf_mcp_call *call;
    struct pf_mcp_tape *tape;
};

static int take_output(void *ctx, enum pinfold_stream stream, const char *data, size_t len)
{
    struct live *live = ctx;

    pf_mcp_tape_write(live->tape, stream, data, len);
    pf_mcp_progress(live->call, data, len);
    return 0;
}

static void add_notes(struct pf_mcp_session *session, const struct pinfold_execute_result *result,
                      struct live *live, struct pf_mcp_result *ret)
{
    char id[PF_MCP_ID_SIZE];
    struct pf_mcp_tape *tape = live->tape;

    if (result->truncated) {
        live->tape = NULL;
        pf_mcp_tape_end(tape);
        if (!pf_mcp_output_keep(session, tape, id)) {
            ret->bad = -1;
            return;
        }
        pf_mcp_addf(ret,
                    "[The output was cut: %" PRIu64 " bytes of stdout and %" PRIu64
                    " of stderr were written. read_output with id=\"%s\" shows the rest.]",
                    result->stdout_bytes, result->stderr_bytes, id);
        pf_mcp_set(ret, "output_id", json_string(id));
    }
    if (result->limit && result->limit != PINFOLD_LIMIT_TIME) {
        pf_mcp_addf(ret, "[It was ended by a limit of the sandbox: %s.]",
                    pinfold_limit_name(result->limit));
        pf_mcp_set(ret, "limit", json_string(pinfold_limit_name(result->limit)));
    }
    if (result->background)
        pf_mcp_addf(ret, "[%u processes that it left in the background are still running.]",
                    result->background);
}

static int show(struct pf_mcp_session *session, const struct pinfold_execute_result *result,
                struct live *live, struct pf_mcp_result *ret, struct pinfold_error *err)
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
    pf_mcp_set(ret, "stdout_bytes", json_integer((json_int_t)result->stdout_bytes));
    pf_mcp_set(ret, "stderr_bytes", json_integer((json_int_t)result->stderr_bytes));
    pf_mcp_set(ret, "timed_out", json_boolean(result->timed_out));
    pf_mcp_set(ret, "background_processes", json_integer(result->background));
    pf_mcp_set(ret, "duration_seconds", json_real((double)result->duration_ns / 1e9));
    add_notes(session, result, live, ret);
    return 0;
}

static int run(struct pf_mcp_call *call, const json_t *args, struct pf_mcp_result *ret,
               struct pinfold_error *err)
{
    __attribute__((
            cleanup(pinfold_execute_result_done))) struct pinfold_execute_result result = { 0 };
    struct pinfold_execute_options options = PINFOLD_EXECUTE_OPTIONS_INIT;
    struct live live = { .call = call, .tape = pf_mcp_tape_new() };
    struct pinfold_sandbox *sandbox;
    int r = live.tape ? 0 : pf_mcp_nomem(err);

    options.command = pf_mcp_string(args, "command", &options.command_len);
    options.cwd = pf_mcp_path(args, "cwd", ".", err);
    options.timeout_seconds = pf_mcp_number(args, "timeout_seconds", 0);
    options.max_output_bytes = pf_mcp_shown(call->session);
    options.keep_tail = true;
    options.on_output = take_output;
    options.on_output_ctx = &live;
    if (r == 0)
        r = options.cwd ? pf_mcp_workspace_begin(call->session, call->cancel, &sandbox, err)
                        : -err->code;
    if (r == 0) {
        r = pinfold_sandbox_execute(sandbox, &options, &result, call->cancel, err);
        pf_mcp_workspace_end(call->session);
    }
    if (r == 0)
        r = show(call->session, &result, &live, ret, err);
    pf_mcp_tape_free(live.tape);
    return r;
}

const struct pf_mcp_tool pf_mcp_execute = {
    .name = "execute",
    .title = "Run a command",
    .description = description,
    .describe = describe,
    .input = input,
    .output = output,
    .traits = PF_MCP_DESTROYS | PF_MCP_RUNS | PF_MCP_RUNNER,
    .run = run,
};
