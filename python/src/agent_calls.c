/* SPDX-License-Identifier: Apache-2.0 */
/* Calls on an agent: invocations, tools, and its workspace. */
#include "agent.h"

#include <string.h>

#include "call.h"
#include "convert.h"
#include "equipment.h"
#include "errors.h"
#include "message.h"
#include "sandbox.h"

struct agent_args {
    struct pinfold_agent *agent;
    const char *text, *more; /* a prompt, a name, a path; input, content */
    Py_ssize_t len;
    int64_t offset, limit;
    int sync;
    struct pinfold_invocation invocation;
    struct pinfold_tool_result result;
    struct pinfold_bytes bytes;
    uint64_t lines;
    struct pinfold_file_infos infos;
    struct pinfold_seed_result seed;
    struct pinfold_sync_result synced;
    struct pinfold_execute_options options;
    struct pinfold_execute_result executed;
};

static void done(void *ctx)
{
    struct agent_args *args = ctx;

    pinfold_invocation_done(&args->invocation);
    pinfold_tool_result_done(&args->result);
    pinfold_bytes_done(&args->bytes);
    pinfold_file_infos_done(&args->infos);
    pinfold_seed_result_done(&args->seed);
    pinfold_sync_result_done(&args->synced);
    pinfold_execute_result_done(&args->executed);
}

static struct pf_call *new_call(const struct pf_operation *operation, PyObject *self,
                                struct agent_args **ret)
{
    struct pinfold_agent *agent = pf_agent_of(self);
    struct pf_call *call = agent ? pf_call_new(operation, self) : NULL;

    if (!call)
        return NULL;
    *ret = pf_call_args(call);
    (*ret)->agent = agent;
    return call;
}

/* ---- invocations ---- */

static int run_invoke(void *ctx, struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    struct agent_args *args = ctx;

    return pinfold_agent_invoke(args->agent, args->text, &args->invocation, cancel, err);
}

/* (text, stop, out_of_turns, turns, tool_calls, usage) */
static PyObject *convert_invocation(void *ctx, int r)
{
    const struct pinfold_invocation *invocation = &((struct agent_args *)ctx)->invocation;

    (void)r;
    return Py_BuildValue("NiNIIN", pf_string_from(invocation->text.data, invocation->text.len),
                         (int)invocation->stop, PyBool_FromLong(invocation->out_of_turns),
                         invocation->turns, invocation->tool_calls,
                         pf_usage_from(&invocation->usage));
}

static const struct pf_operation invoke = { .name = "invoke",
                                            .size = sizeof(struct agent_args),
                                            .run = run_invoke,
                                            .convert = convert_invocation,
                                            .done = done,
                                            .nests = true };

/* The prompt, or None. */
PyObject *pf_agent_invoke(PyObject *self, PyObject *prompt)
{
    struct agent_args *args;
    struct pf_call *call = new_call(&invoke, self, &args);
    bool ok = call != NULL;

    if (ok && prompt != Py_None) {
        args->text = pf_call_text(call, "prompt", prompt);
        ok = args->text != NULL;
    }
    return pf_call_finish(call, ok);
}

static int run_call_tool(void *ctx, struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    struct agent_args *args = ctx;

    return pinfold_agent_call_tool(args->agent, args->text, args->more, (size_t)args->len,
                                   &args->result, cancel, err);
}

static PyObject *convert_result(void *ctx, int r)
{
    (void)r;
    return pf_result_from(&((struct agent_args *)ctx)->result);
}

static const struct pf_operation call_tool = { .name = "call_tool",
                                               .size = sizeof(struct agent_args),
                                               .run = run_call_tool,
                                               .convert = convert_result,
                                               .done = done,
                                               .nests = true };

/* A name, and JSON. */
PyObject *pf_agent_call_tool(PyObject *self, PyObject *given)
{
    struct agent_args *args;
    struct pf_call *call = new_call(&call_tool, self, &args);
    PyObject *name, *input;

    return pf_call_finish(call,
                          call && PyArg_ParseTuple(given, "OO", &name, &input) &&
                                  (args->text = pf_call_text(call, "name", name)) &&
                                  (args->more = pf_call_data(call, "input", input, &args->len)));
}

/* ---- in the workspace ---- */

static int run_execute(void *ctx, struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    struct agent_args *args = ctx;

    return pinfold_agent_execute(args->agent, &args->options, &args->executed, cancel, err);
}

static PyObject *partial_execute(void *ctx)
{
    return pf_executed_from(&((struct agent_args *)ctx)->executed);
}

static PyObject *convert_execute(void *ctx, int r)
{
    (void)r;
    return partial_execute(ctx);
}

static const struct pf_operation execute = { .name = "execute",
                                             .size = sizeof(struct agent_args),
                                             .run = run_execute,
                                             .convert = convert_execute,
                                             .done = done };

PyObject *pf_agent_execute(PyObject *self, PyObject *given)
{
    struct agent_args *args;
    struct pf_call *call = new_call(&execute, self, &args);

    return pf_call_finish(call, call && pf_parse_execute(call, given, &args->options) == 0);
}

/* With the formatted text beside it; the command is the options'. */
static int run_command(void *ctx, struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    struct agent_args *args = ctx;
    int r = pinfold_agent_execute(args->agent, &args->options, &args->executed, cancel, err);

    return r < 0 ? r : pinfold_execute_result_format(&args->executed, &args->bytes, err);
}

static PyObject *convert_text(void *ctx, int r)
{
    const struct pinfold_bytes *bytes = &((struct agent_args *)ctx)->bytes;

    (void)r;
    return pf_string_from(bytes->data, bytes->len);
}

static const struct pf_operation command = { .name = "run_command",
                                             .size = sizeof(struct agent_args),
                                             .run = run_command,
                                             .convert = convert_text,
                                             .done = done };

PyObject *pf_agent_run_command(PyObject *self, PyObject *given)
{
    struct agent_args *args;
    struct pf_call *call = new_call(&command, self, &args);

    return pf_call_finish(call, call && pf_parse_execute(call, given, &args->options) == 0);
}

static int run_read_lines(void *ctx, struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    struct agent_args *args = ctx;

    return pinfold_read_workspace_file(args->agent, args->text, args->offset, args->limit,
                                       &args->bytes, &args->lines, cancel, err);
}

static const struct pf_operation read_lines = { .name = "read_lines",
                                                .size = sizeof(struct agent_args),
                                                .run = run_read_lines,
                                                .convert = convert_text,
                                                .done = done };

PyObject *pf_agent_read_lines(PyObject *self, PyObject *given)
{
    struct agent_args *args;
    struct pf_call *call = new_call(&read_lines, self, &args);
    PyObject *path, *offset, *limit;

    return pf_call_finish(call, call && PyArg_ParseTuple(given, "OOO", &path, &offset, &limit) &&
                                        (args->text = pf_call_path(call, "path", path)) &&
                                        pf_lines_of(offset, limit, &args->offset, &args->limit));
}

static int run_write_file(void *ctx, struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    const struct agent_args *args = ctx;

    return pinfold_write_workspace_file(args->agent, args->text, args->more, (size_t)args->len,
                                        cancel, err);
}

static const struct pf_operation write_file = {
    .name = "write_file", .size = sizeof(struct agent_args), .run = run_write_file, .done = done
};

PyObject *pf_agent_write_file(PyObject *self, PyObject *given)
{
    struct agent_args *args;
    struct pf_call *call = new_call(&write_file, self, &args);
    PyObject *path, *content;

    return pf_call_finish(
            call, call && PyArg_ParseTuple(given, "OO", &path, &content) &&
                          (args->text = pf_call_path(call, "path", path)) &&
                          (args->more = pf_call_data(call, "content", content, &args->len)));
}

static int run_list_dir(void *ctx, struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    struct agent_args *args = ctx;

    return pinfold_list_workspace_dir(args->agent, args->text, &args->infos, cancel, err);
}

static PyObject *convert_infos(void *ctx, int r)
{
    (void)r;
    return pf_infos_from(&((struct agent_args *)ctx)->infos);
}

static const struct pf_operation list_dir = { .name = "list_dir",
                                              .size = sizeof(struct agent_args),
                                              .run = run_list_dir,
                                              .convert = convert_infos,
                                              .done = done };

PyObject *pf_agent_list_dir(PyObject *self, PyObject *path)
{
    struct agent_args *args;
    struct pf_call *call = new_call(&list_dir, self, &args);

    return pf_call_finish(call, call && (args->text = pf_call_path(call, "path", path)));
}

/* ---- the per-agent path ---- */

static int run_prepare(void *ctx, struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    struct agent_args *args = ctx;

    return pinfold_prepare_workspace(args->agent, &args->seed, cancel, err);
}

static PyObject *partial_seed(void *ctx)
{
    return pf_seed_from(&((struct agent_args *)ctx)->seed);
}

static PyObject *convert_seed(void *ctx, int r)
{
    (void)r;
    return partial_seed(ctx);
}

static const struct pf_operation prepare = { .name = "prepare",
                                             .size = sizeof(struct agent_args),
                                             .run = run_prepare,
                                             .convert = convert_seed,
                                             .partial = partial_seed,
                                             .done = done };

PyObject *pf_agent_prepare(PyObject *self, PyObject *unused)
{
    struct agent_args *args;

    (void)unused;
    return pf_call_object(new_call(&prepare, self, &args));
}

static int run_sync(void *ctx, struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    struct agent_args *args = ctx;

    return pinfold_sync_workspace_artifacts(args->agent, &args->synced, cancel, err);
}

static PyObject *partial_sync(void *ctx)
{
    return pf_sync_from(&((struct agent_args *)ctx)->synced);
}

/* 0: there was nothing to sync, or nowhere to. */
static PyObject *convert_sync(void *ctx, int r)
{
    if (r == 0)
        Py_RETURN_NONE;
    return partial_sync(ctx);
}

static const struct pf_operation sync_artifacts = { .name = "sync",
                                                    .size = sizeof(struct agent_args),
                                                    .run = run_sync,
                                                    .convert = convert_sync,
                                                    .partial = partial_sync,
                                                    .done = done };

PyObject *pf_agent_sync(PyObject *self, PyObject *unused)
{
    struct agent_args *args;

    (void)unused;
    return pf_call_object(new_call(&sync_artifacts, self, &args));
}

static int run_close(void *ctx, struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    const struct agent_args *args = ctx;

    return pinfold_close_sandbox_workspace(args->agent, args->sync, cancel, err);
}

static const struct pf_operation close_workspace = {
    .name = "close", .size = sizeof(struct agent_args), .run = run_close, .done = done, .ends = true
};

PyObject *pf_agent_close(PyObject *self, PyObject *sync)
{
    struct agent_args *args;
    struct pf_call *call = new_call(&close_workspace, self, &args);

    return pf_call_finish(call, call && pf_flag_of("sync_artifacts", sync, &args->sync));
}

/* ---- results ---- */

/* (exit_code, output): as the execute tool shows it. */
PyObject *pf_format_result(PyObject *module, PyObject *given)
{
    struct pinfold_execute_result result = { 0 };
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    struct pinfold_bytes text = { 0 };
    PyObject *output, *bytes, *formatted = NULL;
    Py_ssize_t len;

    (void)module;
    if (!PyArg_ParseTuple(given, "iU", &result.exit_code, &output))
        return NULL;
    bytes = PyUnicode_AsEncodedString(output, "utf-8", "replace");
    if (bytes && PyBytes_AsStringAndSize(bytes, &result.output, &len) == 0) {
        result.output_len = (size_t)len;
        if (pinfold_execute_result_format(&result, &text, &err) < 0)
            pf_raise(&err, NULL);
        else
            formatted = pf_string_from(text.data, text.len);
        pinfold_bytes_done(&text);
    }
    Py_XDECREF(bytes);
    return formatted;
}
