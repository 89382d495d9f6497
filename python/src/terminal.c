/* SPDX-License-Identifier: Apache-2.0 */
/* The Terminal type: a command on a pseudo-terminal. */
#include <stdlib.h>

#include "convert.h"
#include "errors.h"
#include "sandbox.h"

PyTypeObject *pf_terminal_type;

/* Shared by the Python object and its calls, so that a close waits for neither. */
struct shared {
    struct pinfold_terminal *terminal;
    struct pf_handle *sandbox; /* must not be freed before the terminal is closed */
};

struct terminal {
    PyObject_HEAD struct shared *shared; /* NULL: closed */
    PyObject *sandbox;                   /* its object: what is used is no garbage */
};

static void close_shared(void *arg)
{
    struct shared *shared = arg;

    pinfold_terminal_close(shared->terminal);
    pf_handle_unref(shared->sandbox);
    free(shared);
}

static int terminal_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(((struct terminal *)self)->sandbox);
    return 0;
}

static int terminal_clear(PyObject *self)
{
    Py_CLEAR(((struct terminal *)self)->sandbox);
    return 0;
}

static void terminal_dealloc(PyObject *self)
{
    struct shared *shared = ((struct terminal *)self)->shared;

    PyObject_GC_UnTrack(self);
    if (shared)
        pf_call_later(close_shared, shared);
    terminal_clear(self);
    pf_free_object(self);
}

/* ---- opening ---- */

struct open_args {
    PyObject *object; /* kept by the call */
    struct pf_handle *sandbox;
    struct pinfold_terminal_options options;
    struct pinfold_terminal *terminal;
};

static int run_open(void *ctx, struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    struct open_args *args = ctx;

    return pinfold_sandbox_open_terminal(args->sandbox->sandbox, &args->options, &args->terminal,
                                         cancel, err);
}

/* Opened, and nobody asked for it. */
static void open_done(void *ctx)
{
    struct open_args *args = ctx;
    struct shared *shared = args->terminal ? malloc(sizeof(*shared)) : NULL;

    if (!shared)
        return;
    *shared = (struct shared){ args->terminal, pf_handle_ref(args->sandbox) };
    pf_call_later(close_shared, shared);
}

static PyObject *convert_open(void *ctx, int r)
{
    struct open_args *args = ctx;
    struct terminal *self = (struct terminal *)PyType_GenericAlloc(pf_terminal_type, 0);

    (void)r;
    if (!self)
        return NULL;
    Py_INCREF(args->object);
    self->sandbox = args->object;
    self->shared = malloc(sizeof(*self->shared));
    if (!self->shared) {
        Py_DECREF((PyObject *)self);
        return PyErr_NoMemory();
    }
    *self->shared = (struct shared){ args->terminal, pf_handle_ref(args->sandbox) };
    args->terminal = NULL;
    return (PyObject *)self;
}

static const struct pf_operation open_terminal = {
    "open_terminal", sizeof(struct open_args), run_open, convert_open, NULL, open_done
};

PyObject *pf_sandbox_open_terminal(PyObject *self, PyObject *given)
{
    struct pf_call *call = pf_sandbox_of(self) ? pf_call_new(&open_terminal, self) : NULL;
    PyObject *command, *cwd, *env;
    struct open_args *args;
    bool ok;

    if (!call)
        return NULL;
    args = pf_call_args(call);
    args->object = self;
    args->sandbox = ((struct pf_sandbox *)self)->handle;
    args->options = (struct pinfold_terminal_options)PINFOLD_TERMINAL_OPTIONS_INIT;
    ok = PyArg_ParseTuple(given, "OOOzHHd", &command, &cwd, &env, &args->options.term,
                          &args->options.rows, &args->options.cols,
                          &args->options.timeout_seconds) &&
         pf_call_path_or_none(call, "cwd", cwd, &args->options.cwd) == 0 &&
         pf_call_strv(call, "env", env, &args->options.env) == 0;
    if (ok && PyTuple_Check(given)) { /* what was parsed as borrowed text lives as long as these */
        Py_INCREF(given);
        ok = pf_call_keep(call, given) == 0;
    }
    return pf_call_finish(
            call, ok && (command == Py_None ||
                         pf_call_command(call, command, &args->options.command,
                                         &args->options.command_len, &args->options.argv) == 0));
}

/* ---- reading, writing, waiting ---- */

struct terminal_args {
    struct pinfold_terminal *terminal;
    struct shared *closing;
    double timeout;
    char *buffer;
    const char *data;
    Py_ssize_t len;
    struct pinfold_terminal_exit end;
};

static struct pf_call *new_call(const struct pf_operation *operation, PyObject *self,
                                struct terminal_args **ret)
{
    struct shared *shared = ((struct terminal *)self)->shared;
    struct pf_call *call;

    if (!shared) {
        PyErr_SetString(PyExc_ValueError, "the terminal is closed");
        return NULL;
    }
    call = pf_call_new(operation, self);
    if (!call)
        return NULL;
    *ret = pf_call_args(call);
    (*ret)->terminal = shared->terminal;
    return call;
}

static int run_read(void *ctx, struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    struct terminal_args *args = ctx;

    return (int)pinfold_terminal_read(args->terminal, args->buffer, (size_t)args->len,
                                      args->timeout, cancel, err);
}

static PyObject *convert_read(void *ctx, int r)
{
    return PyBytes_FromStringAndSize(((struct terminal_args *)ctx)->buffer, r);
}

static const struct pf_operation read_terminal = { "read",   sizeof(struct terminal_args),
                                                   run_read, convert_read,
                                                   NULL,     NULL };

static PyObject *terminal_read(PyObject *self, PyObject *given)
{
    struct terminal_args *args;
    struct pf_call *call = new_call(&read_terminal, self, &args);

    return pf_call_finish(call, call && PyArg_ParseTuple(given, "nd", &args->len, &args->timeout) &&
                                        (args->buffer = pf_call_alloc(call, (size_t)args->len, 1)));
}

static int run_write(void *ctx, struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    struct terminal_args *args = ctx;

    return (int)pinfold_terminal_write(args->terminal, args->data, (size_t)args->len, args->timeout,
                                       cancel, err);
}

static PyObject *convert_count(void *ctx, int r)
{
    (void)ctx;
    return PyLong_FromLong(r);
}

static const struct pf_operation write_terminal = { "write",   sizeof(struct terminal_args),
                                                    run_write, convert_count,
                                                    NULL,      NULL };

static PyObject *terminal_write(PyObject *self, PyObject *given)
{
    struct terminal_args *args;
    struct pf_call *call = new_call(&write_terminal, self, &args);
    PyObject *data;

    return pf_call_finish(call,
                          call && PyArg_ParseTuple(given, "Od", &data, &args->timeout) &&
                                  (args->data = pf_call_data(call, "data", data, &args->len)));
}

static int run_wait(void *ctx, struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    struct terminal_args *args = ctx;

    return pinfold_terminal_wait(args->terminal, args->timeout, &args->end, cancel, err);
}

/* (exit_code, timed_out, killed, output_bytes, duration, cpu, peak_bytes, limit, supervisor_lost)
 */
static PyObject *convert_wait(void *ctx, int r)
{
    const struct pinfold_terminal_exit *end = &((struct terminal_args *)ctx)->end;

    (void)r;
    return Py_BuildValue("iNNKddKzN", end->exit_code, PyBool_FromLong(end->timed_out),
                         PyBool_FromLong(end->killed), (unsigned long long)end->output_bytes,
                         (double)end->duration_ns / 1e9, (double)end->cpu_ns / 1e9,
                         (unsigned long long)end->peak_bytes,
                         end->limit ? pinfold_limit_name(end->limit) : NULL,
                         PyBool_FromLong(end->supervisor_lost));
}

static const struct pf_operation wait_terminal = { "wait",   sizeof(struct terminal_args),
                                                   run_wait, convert_wait,
                                                   NULL,     NULL };

static PyObject *terminal_wait(PyObject *self, PyObject *given)
{
    struct terminal_args *args;
    struct pf_call *call = new_call(&wait_terminal, self, &args);

    return pf_call_finish(call, call && PyArg_ParseTuple(given, "d", &args->timeout));
}

static int run_close(void *ctx, struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    struct terminal_args *args = ctx;

    (void)cancel, (void)err;
    close_shared(args->closing);
    args->closing = NULL;
    return 0;
}

static void close_done(void *ctx)
{
    struct terminal_args *args = ctx;

    if (args->closing)
        pf_call_later(close_shared, args->closing);
}

static const struct pf_operation close_terminal = { .name = "close",
                                                    .size = sizeof(struct terminal_args),
                                                    .run = run_close,
                                                    .done = close_done,
                                                    .ends = true };

/* The package sees to it that no other call is under way. */
static PyObject *terminal_close(PyObject *self, PyObject *unused)
{
    struct terminal_args *args;
    struct pf_call *call = new_call(&close_terminal, self, &args);

    (void)unused;
    if (!call)
        return NULL;
    args->closing = ((struct terminal *)self)->shared;
    ((struct terminal *)self)->shared = NULL;
    return pf_call_object(call);
}

/* ---- what does not wait ---- */

static struct pinfold_terminal *open_one(PyObject *self)
{
    struct shared *shared = ((struct terminal *)self)->shared;

    if (!shared)
        PyErr_SetString(PyExc_ValueError, "the terminal is closed");
    return shared ? shared->terminal : NULL;
}

static PyObject *terminal_resize(PyObject *self, PyObject *args)
{
    struct pinfold_terminal *terminal = open_one(self);
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    unsigned short rows, cols;

    if (!terminal || !PyArg_ParseTuple(args, "HH", &rows, &cols))
        return NULL;
    if (pinfold_terminal_resize(terminal, rows, cols, &err) < 0)
        return pf_raise(&err, NULL);
    Py_RETURN_NONE;
}

static PyObject *terminal_signal(PyObject *self, PyObject *args)
{
    struct pinfold_terminal *terminal = open_one(self);
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    int number;

    if (!terminal || !PyArg_ParseTuple(args, "i", &number))
        return NULL;
    if (pinfold_terminal_signal(terminal, number, &err) < 0)
        return pf_raise(&err, NULL);
    Py_RETURN_NONE;
}

static PyObject *terminal_kill(PyObject *self, PyObject *unused)
{
    struct pinfold_terminal *terminal = open_one(self);

    (void)unused;
    if (!terminal)
        return NULL;
    pinfold_terminal_kill(terminal);
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    { "read", terminal_read, METH_VARARGS, NULL },
    { "write", terminal_write, METH_VARARGS, NULL },
    { "wait", terminal_wait, METH_VARARGS, NULL },
    { "close", terminal_close, METH_NOARGS, NULL },
    { "resize", terminal_resize, METH_VARARGS, NULL },
    { "signal", terminal_signal, METH_VARARGS, NULL },
    { "kill", terminal_kill, METH_NOARGS, NULL },
    { 0 },
};

static PyType_Slot slots[] = {
    { Py_tp_dealloc, terminal_dealloc },
    { Py_tp_traverse, terminal_traverse },
    { Py_tp_clear, terminal_clear },
    { Py_tp_methods, methods },
    { 0 },
};

static PyType_Spec spec = { .name = "_pinfold.Terminal",
                            .basicsize = sizeof(struct terminal),
                            .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC |
                                     Py_TPFLAGS_DISALLOW_INSTANTIATION,
                            .slots = slots };

int pf_add_terminal(PyObject *module)
{
    return pf_add_type(module, "Terminal", &spec, &pf_terminal_type);
}
