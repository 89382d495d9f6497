/* SPDX-License-Identifier: Apache-2.0 */
/* The Terminal type: a command on a pseudo-terminal. */
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "convert.h"
#include "errors.h"
#include "sandbox.h"

PyTypeObject *pf_terminal_type;

/* A call that is at the terminal. */
struct user {
    struct pinfold_cancel *cancel; /* NULL: it waits for nothing */
    struct user **link, *next;
};

/* Of the Python object and its calls. They come from several threads: a close keeps new ones out,
 * and waits for those that are at it. */
struct shared {
    struct pinfold_terminal *terminal; /* NULL: closed */
    struct pf_handle *sandbox;         /* must not be freed before the terminal is closed */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct user *users;
    bool closing; /* nobody may come to it */
    bool taken;   /* somebody closes it */
    pid_t owner;  /* in a fork a thread of the parent may hold the lock for ever */
};

struct terminal {
    PyObject_HEAD struct shared *shared;
    PyObject *sandbox; /* its object: what is used is no garbage */
};

/* Takes over the terminal; NULL: there is no memory. */
static struct shared *shared_new(struct pinfold_terminal *terminal, struct pf_handle *sandbox)
{
    struct shared *shared = calloc(1, sizeof(*shared));

    if (!shared)
        return NULL;
    shared->terminal = terminal;
    shared->sandbox = pf_handle_ref(sandbox);
    pthread_mutex_init(&shared->lock, NULL);
    pthread_cond_init(&shared->changed, NULL);
    shared->owner = getpid();
    return shared;
}

/* Nobody else has it any more. */
static void free_shared(void *arg)
{
    struct shared *shared = arg;

    pinfold_terminal_close(shared->terminal);
    pf_handle_unref(shared->sandbox);
    free(shared);
}

/* Keep the terminal open until leave(). */
static int enter(struct shared *shared, struct user *user, struct pinfold_cancel *cancel,
                 struct pinfold_error *err)
{
    bool closing;

    if (shared->owner != getpid()) {
        *err = (struct pinfold_error){ .code = PINFOLD_ESTART,
                                       .msg = "the terminal is not open in this process (it was "
                                              "opened before a fork)" };
        return -PINFOLD_ESTART;
    }
    pthread_mutex_lock(&shared->lock);
    closing = shared->closing;
    if (!closing) {
        *user = (struct user){ cancel, &shared->users, shared->users };
        if (user->next)
            user->next->link = &user->next;
        shared->users = user;
    }
    pthread_mutex_unlock(&shared->lock);
    if (!closing)
        return 0;
    *err = (struct pinfold_error){ .code = PINFOLD_EVALUE, .msg = "the terminal is closed" };
    return -PINFOLD_EVALUE;
}

static void leave(struct shared *shared, struct user *user)
{
    pthread_mutex_lock(&shared->lock);
    *user->link = user->next;
    if (user->next)
        user->next->link = user->link;
    pthread_cond_broadcast(&shared->changed);
    pthread_mutex_unlock(&shared->lock);
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
    if (shared && shared->terminal)
        pf_call_later(free_shared, shared);
    else
        free(shared);
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
    struct shared *shared = args->terminal ? shared_new(args->terminal, args->sandbox) : NULL;

    if (shared)
        pf_call_later(free_shared, shared);
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
    self->shared = shared_new(args->terminal, args->sandbox);
    if (!self->shared) {
        Py_DECREF((PyObject *)self);
        return PyErr_NoMemory();
    }
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
    struct shared *shared; /* lives as long as the object, which the call keeps */
    double timeout;
    char *buffer;
    const char *data;
    Py_ssize_t len;
    struct pinfold_terminal_exit end;
};

static struct pf_call *new_call(const struct pf_operation *operation, PyObject *self,
                                struct terminal_args **ret)
{
    struct pf_call *call = pf_call_new(operation, self);

    if (!call)
        return NULL;
    *ret = pf_call_args(call);
    (*ret)->shared = ((struct terminal *)self)->shared;
    return call;
}

static int run_read(void *ctx, struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    struct terminal_args *args = ctx;
    struct user user;
    int r = enter(args->shared, &user, cancel, err);

    if (r < 0)
        return r;
    r = (int)pinfold_terminal_read(args->shared->terminal, args->buffer, (size_t)args->len,
                                   args->timeout, cancel, err);
    leave(args->shared, &user);
    return r;
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
    struct user user;
    int r = enter(args->shared, &user, cancel, err);

    if (r < 0)
        return r;
    r = (int)pinfold_terminal_write(args->shared->terminal, args->data, (size_t)args->len,
                                    args->timeout, cancel, err);
    leave(args->shared, &user);
    return r;
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
    struct user user;
    int r = enter(args->shared, &user, cancel, err);

    if (r < 0)
        return r;
    r = pinfold_terminal_wait(args->shared->terminal, args->timeout, &args->end, cancel, err);
    leave(args->shared, &user);
    return r;
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

/* Whoever comes second waits for the first. A fork has only a copy, which goes with its object. */
static int run_close(void *ctx, struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    struct shared *shared = ((struct terminal_args *)ctx)->shared;
    bool first;

    (void)cancel, (void)err;
    if (shared->owner != getpid())
        return 0;
    pthread_mutex_lock(&shared->lock);
    first = !shared->taken;
    shared->taken = true;
    while (first ? shared->users != NULL : shared->terminal != NULL)
        pthread_cond_wait(&shared->changed, &shared->lock);
    pthread_mutex_unlock(&shared->lock);
    if (!first)
        return 0;
    pinfold_terminal_close(shared->terminal);
    pf_handle_unref(shared->sandbox);
    pthread_mutex_lock(&shared->lock);
    shared->terminal = NULL;
    pthread_cond_broadcast(&shared->changed);
    pthread_mutex_unlock(&shared->lock);
    return 0;
}

static const struct pf_operation close_terminal = {
    .name = "close", .size = sizeof(struct terminal_args), .run = run_close, .ends = true
};

/* Readers are told at once: the close may have to wait for the threads that they hold. */
static PyObject *terminal_close(PyObject *self, PyObject *unused)
{
    struct shared *shared = ((struct terminal *)self)->shared;
    struct terminal_args *args;
    struct pf_call *call = new_call(&close_terminal, self, &args);

    (void)unused;
    if (!call || shared->owner != getpid())
        return pf_call_finish(call, call != NULL);
    pthread_mutex_lock(&shared->lock);
    shared->closing = true;
    for (const struct user *user = shared->users; user; user = user->next)
        pinfold_cancel_fire(user->cancel);
    pthread_mutex_unlock(&shared->lock);
    return pf_call_object(call);
}

/* ---- what does not wait ---- */

static PyObject *terminal_resize(PyObject *self, PyObject *args)
{
    struct shared *shared = ((struct terminal *)self)->shared;
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    unsigned short rows, cols;
    struct user user;
    int r;

    if (!PyArg_ParseTuple(args, "HH", &rows, &cols))
        return NULL;
    if (enter(shared, &user, NULL, &err) < 0)
        return pf_raise(&err, NULL);
    r = pinfold_terminal_resize(shared->terminal, rows, cols, &err);
    leave(shared, &user);
    if (r < 0)
        return pf_raise(&err, NULL);
    Py_RETURN_NONE;
}

static PyObject *terminal_signal(PyObject *self, PyObject *args)
{
    struct shared *shared = ((struct terminal *)self)->shared;
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    struct user user;
    int number, r;

    if (!PyArg_ParseTuple(args, "i", &number))
        return NULL;
    if (enter(shared, &user, NULL, &err) < 0)
        return pf_raise(&err, NULL);
    r = pinfold_terminal_signal(shared->terminal, number, &err);
    leave(shared, &user);
    if (r < 0)
        return pf_raise(&err, NULL);
    Py_RETURN_NONE;
}

static PyObject *terminal_kill(PyObject *self, PyObject *unused)
{
    struct shared *shared = ((struct terminal *)self)->shared;
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    struct user user;

    (void)unused;
    if (enter(shared, &user, NULL, &err) < 0)
        return pf_raise(&err, NULL);
    pinfold_terminal_kill(shared->terminal);
    leave(shared, &user);
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
