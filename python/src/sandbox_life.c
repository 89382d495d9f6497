/* SPDX-License-Identifier: Apache-2.0 */
/* Calls on the life of a sandbox, and execute. */
#include "sandbox.h"

#include "convert.h"
#include "errors.h"

struct life_args {
    struct pinfold_sandbox *sandbox;
    const char *dest;
    int sync;
    struct pinfold_seed_result seed;
    struct pinfold_sync_result result;
    struct pinfold_plan plan;
};

static void done(void *ctx)
{
    struct life_args *args = ctx;

    pinfold_seed_result_done(&args->seed);
    pinfold_sync_result_done(&args->result);
    pinfold_plan_done(&args->plan);
}

static struct pf_call *new_call(const struct pf_operation *operation, PyObject *self,
                                struct life_args **ret)
{
    struct pinfold_sandbox *sandbox = pf_sandbox_of(self);
    struct pf_call *call = sandbox ? pf_call_new(operation, self) : NULL;

    if (!call)
        return NULL;
    *ret = pf_call_args(call);
    (*ret)->sandbox = sandbox;
    return call;
}

/* ---- start, stop ---- */

static int run_start(void *ctx, struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    struct life_args *args = ctx;

    return pinfold_sandbox_start(args->sandbox, &args->seed, cancel, err);
}

static PyObject *partial_seed(void *ctx)
{
    return pf_seed_from(&((struct life_args *)ctx)->seed);
}

static PyObject *convert_seed(void *ctx, int r)
{
    (void)r;
    return partial_seed(ctx);
}

static const struct pf_operation start = { "start",      sizeof(struct life_args),
                                           run_start,    convert_seed,
                                           partial_seed, done };

PyObject *pf_sandbox_start(PyObject *self, PyObject *unused)
{
    struct life_args *args;
    struct pf_call *call = new_call(&start, self, &args);

    (void)unused;
    return pf_call_finish(call, call != NULL);
}

static int run_stop(void *ctx, struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    struct life_args *args = ctx;

    return pinfold_sandbox_stop(args->sandbox, args->sync, &args->result, cancel, err);
}

static PyObject *partial_sync(void *ctx)
{
    return pf_sync_from(&((struct life_args *)ctx)->result);
}

static const struct pf_operation stop = { .name = "stop",
                                          .size = sizeof(struct life_args),
                                          .run = run_stop,
                                          .partial = partial_sync,
                                          .done = done,
                                          .ends = true };

PyObject *pf_sandbox_stop(PyObject *self, PyObject *sync)
{
    struct life_args *args;
    struct pf_call *call = new_call(&stop, self, &args);

    return pf_call_finish(call, call && pf_flag_of("sync", sync, &args->sync));
}

/* ---- flush, plans ---- */

static int run_flush(void *ctx, struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    struct life_args *args = ctx;

    return pinfold_sandbox_flush(args->sandbox, args->dest, &args->result, cancel, err);
}

/* 0: no destination is known, and nothing was done. */
static PyObject *convert_sync(void *ctx, int r)
{
    if (r == 0)
        Py_RETURN_NONE;
    return partial_sync(ctx);
}

static const struct pf_operation flush = { "flush",   sizeof(struct life_args),
                                           run_flush, convert_sync,
                                           NULL,      done };

PyObject *pf_sandbox_flush(PyObject *self, PyObject *dest)
{
    struct life_args *args;
    struct pf_call *call = new_call(&flush, self, &args);

    return pf_call_finish(call, call && pf_call_path_or_none(call, "dest", dest, &args->dest) == 0);
}

static int run_plan_seed(void *ctx, struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    struct life_args *args = ctx;

    return pinfold_sandbox_plan_seed(args->sandbox, &args->plan, cancel, err);
}

static int run_plan_flush(void *ctx, struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    struct life_args *args = ctx;

    return pinfold_sandbox_plan_flush(args->sandbox, args->dest, &args->plan, cancel, err);
}

static PyObject *convert_plan(void *ctx, int r)
{
    if (r == 0)
        Py_RETURN_NONE;
    return pf_plan_from(&((struct life_args *)ctx)->plan);
}

static const struct pf_operation plan_seed = { "plan_seed",   sizeof(struct life_args),
                                               run_plan_seed, convert_plan,
                                               NULL,          done };
static const struct pf_operation plan_flush = { "plan_flush",   sizeof(struct life_args),
                                                run_plan_flush, convert_plan,
                                                NULL,           done };

PyObject *pf_sandbox_plan_seed(PyObject *self, PyObject *unused)
{
    struct life_args *args;
    struct pf_call *call = new_call(&plan_seed, self, &args);

    (void)unused;
    return pf_call_finish(call, call != NULL);
}

PyObject *pf_sandbox_plan_flush(PyObject *self, PyObject *dest)
{
    struct life_args *args;
    struct pf_call *call = new_call(&plan_flush, self, &args);

    return pf_call_finish(call, call && pf_call_path_or_none(call, "dest", dest, &args->dest) == 0);
}

/* ---- execute ---- */

struct execute_args {
    struct pinfold_sandbox *sandbox;
    struct pinfold_execute_options options;
    struct pinfold_execute_result result;
};

static void execute_done(void *ctx)
{
    pinfold_execute_result_done(&((struct execute_args *)ctx)->result);
}

static int run_execute(void *ctx, struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    struct execute_args *args = ctx;

    return pinfold_sandbox_execute(args->sandbox, &args->options, &args->result, cancel, err);
}

static PyObject *partial_execute(void *ctx)
{
    return pf_executed_from(&((struct execute_args *)ctx)->result);
}

static PyObject *convert_execute(void *ctx, int r)
{
    (void)r;
    return partial_execute(ctx);
}

static const struct pf_operation execute = { "execute",       sizeof(struct execute_args),
                                             run_execute,     convert_execute,
                                             partial_execute, execute_done };

int pf_parse_execute(struct pf_call *call, PyObject *given, struct pinfold_execute_options *options)
{
    PyObject *command, *timeout, *cwd, *env, *max_output_bytes, *keep_tail, *spool_bytes;
    uint64_t limit = 0;
    int keep, stream;

    *options = (struct pinfold_execute_options)PINFOLD_EXECUTE_OPTIONS_INIT;
    if (!PyArg_ParseTuple(given, "OOOOOOOp", &command, &timeout, &cwd, &env, &max_output_bytes,
                          &keep_tail, &spool_bytes, &stream) ||
        pf_call_command(call, command, &options->command, &options->command_len, &options->argv) <
                0 ||
        !pf_seconds_of("timeout", timeout, &options->timeout_seconds) ||
        (max_output_bytes != Py_None &&
         !pf_whole_of("max_output_bytes", max_output_bytes, 1, PY_SSIZE_T_MAX, &limit)) ||
        !pf_flag_of("keep_tail", keep_tail, &keep) ||
        !pf_whole_of("spool_bytes", spool_bytes, 0, UINT64_MAX, &options->spool_bytes) ||
        pf_call_path_or_none(call, "cwd", cwd, &options->cwd) < 0 ||
        pf_call_strv(call, "env", env, &options->env) < 0)
        return -1;
    options->max_output_bytes = (size_t)limit;
    options->keep_tail = keep;
    if (stream)
        options->on_output = pf_call_output;
    return 0;
}

PyObject *pf_sandbox_execute(PyObject *self, PyObject *given)
{
    struct pinfold_sandbox *sandbox = pf_sandbox_of(self);
    struct pf_call *call = sandbox ? pf_call_new(&execute, self) : NULL;
    struct execute_args *args;

    if (!call)
        return NULL;
    args = pf_call_args(call);
    args->sandbox = sandbox;
    return pf_call_finish(call, pf_parse_execute(call, given, &args->options) == 0);
}
