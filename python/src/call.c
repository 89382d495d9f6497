/* SPDX-License-Identifier: Apache-2.0 */
#include "call.h"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "errors.h"
#include "mailbox.h"
#include "output.h"
#include "pool.h"

enum state {
    MADE,
    RUNNING, /* or waiting for a thread */
    DONE,
};

struct event {
    char *json;
    struct event *next;
};

struct pf_call {
    PyObject_HEAD const struct pf_operation *operation;
    void *args;
    PyObject *kept;      /* a list: the handle, and what the arguments point into */
    PyObject *loop;      /* the event loop that waits: coroutines of Python code run there */
    PyObject *consumer;  /* of streamed output */
    PyObject *causes;    /* a list: what Python code raised that it called */
    PyObject *stopped;   /* what the consumer raised */
    PyObject *on_cancel; /* a callable: what cancels Python code that the call waits for */
    struct pinfold_cancel *cancel;
    struct pf_mailbox *mailbox;
    struct pf_output *output;
    struct pf_job job;
    struct pf_letter letter;
    int state; /* atomic */
    int r;
    bool audited;                       /* somebody wants to hear */
    struct event *events, **last_event; /* of the thread that runs it, then of result() */
    struct pinfold_error err;
};

PyTypeObject *pf_call_type, *pf_mailbox_type;

/* What this thread is at. */
static _Thread_local struct pf_call *current;

/* ---- making ---- */

struct pf_call *pf_call_new(const struct pf_operation *operation, PyObject *owner)
{
    struct pf_call *call = PyObject_New(struct pf_call, pf_call_type);

    if (!call)
        return NULL;
    memset((char *)call + sizeof(PyObject), 0, sizeof(*call) - sizeof(PyObject));
    call->operation = operation;
    call->last_event = &call->events;
    call->kept = PyList_New(0);
    call->args = calloc(1, operation->size ? operation->size : 1);
    if (call->args && call->kept && (!owner || PyList_Append(call->kept, owner) == 0))
        return call;
    if (!PyErr_Occurred())
        PyErr_NoMemory();
    Py_DECREF((PyObject *)call);
    return NULL;
}

PyObject *pf_call_finish(struct pf_call *call, bool ok)
{
    if (ok)
        return (PyObject *)call;
    Py_XDECREF((PyObject *)call);
    return NULL;
}

void *pf_call_args(struct pf_call *call)
{
    return call->args;
}

PyObject *pf_call_object(struct pf_call *call)
{
    return (PyObject *)call;
}

int pf_call_keep(struct pf_call *call, PyObject *object)
{
    int r = object ? PyList_Append(call->kept, object) : -1;

    Py_XDECREF(object);
    return r;
}

static void call_dealloc(PyObject *self)
{
    struct pf_call *call = (struct pf_call *)self;

    if (call->args && call->operation->done)
        call->operation->done(call->args);
    free(call->args);
    while (call->events) {
        struct event *event = call->events;
        call->events = event->next;
        free(event->json);
        free(event);
    }
    pf_output_free(call->output);
    pinfold_cancel_free(call->cancel);
    pf_mailbox_unref(call->mailbox);
    Py_XDECREF(call->kept);
    Py_XDECREF(call->loop);
    Py_XDECREF(call->consumer);
    Py_XDECREF(call->causes);
    Py_XDECREF(call->stopped);
    Py_XDECREF(call->on_cancel);
    pf_free_object(self);
}

/* ---- audit ---- */

static void deliver(const char *json)
{
    PyObject *answer = PyObject_CallFunction(pf_hooks.audit, "s", json);

    if (!answer)
        PyErr_WriteUnraisable(pf_hooks.audit);
    Py_XDECREF(answer);
}

static void deliver_now(const char *json)
{
    PyGILState_STATE gil;

    if (pf_closing())
        return;
    gil = PyGILState_Ensure();
    deliver(json);
    PyGILState_Release(gil);
}

void pf_call_audit(void *ctx, const struct pinfold_audit_event *event)
{
    struct event *entry;
    char *json;

    (void)ctx;
    if (current && !current->audited)
        return;
    if (pinfold_audit_event_json(event, &json, NULL) < 0)
        return;
    entry = current ? calloc(1, sizeof(*entry)) : NULL;
    if (entry) {
        entry->json = json;
        *current->last_event = entry;
        current->last_event = &entry->next;
        return;
    }
    deliver_now(json);
    free(json);
}

/* With the GIL, from the thread that has the outcome. */
static void deliver_events(struct pf_call *call)
{
    PyObject *type, *value, *trace;

    PyErr_Fetch(&type, &value, &trace);
    while (call->events) {
        struct event *event = call->events;
        call->events = event->next;
        deliver(event->json);
        free(event->json);
        free(event);
    }
    call->last_event = &call->events;
    PyErr_Restore(type, value, trace);
}

/* ---- running ---- */

static void give_up(struct pf_call *call)
{
    call->r = -PINFOLD_ECANCELLED;
    call->err = (struct pinfold_error){ .code = PINFOLD_ECANCELLED, .msg = "cancelled" };
}

static void execute(struct pf_call *call)
{
    struct pf_call *outer = current;

    current = call;
    /* What ends something ends it also for who has cancelled that: less is done on the way. */
    if (pinfold_cancel_fired(call->cancel) && !call->operation->ends) {
        give_up(call);
    } else {
        call->r = call->operation->run(call->args, call->cancel, &call->err);
    }
    current = outer;
}

static void bury_orphans(void);

/* Put it into its mailbox: from here on it may be gone. Returns false when nobody will take it out.
 */
static bool conclude(struct pf_call *call)
{
    struct pf_mailbox *mailbox = pf_mailbox_ref(call->mailbox);
    bool taken;

    __atomic_store_n(&call->state, DONE, __ATOMIC_RELEASE);
    taken = pf_mailbox_put(mailbox, &call->letter, true);
    pf_mailbox_unref(mailbox);
    return taken;
}

static void run_job(struct pf_job *job)
{
    struct pf_call *call = (struct pf_call *)((char *)job - offsetof(struct pf_call, job));
    PyGILState_STATE gil;

    execute(call);
    if (conclude(call) || pf_closing())
        return;
    gil = PyGILState_Ensure();
    bury_orphans();
    PyGILState_Release(gil);
}

static bool is_done(struct pf_call *call)
{
    return __atomic_load_n(&call->state, __ATOMIC_ACQUIRE) == DONE;
}

/* Claim the call for its one run. */
static int begin(struct pf_call *call)
{
    struct pinfold_error err = PINFOLD_ERROR_INIT;

    if (call->state != MADE) {
        PyErr_SetString(PyExc_RuntimeError, "a call runs once");
        return -1;
    }
    if (!call->cancel && pinfold_cancel_new(&call->cancel, &err) < 0 && !call->operation->ends) {
        pf_raise(&err, NULL);
        return -1;
    }
    call->state = RUNNING;
    return 0;
}

/* What it gave, or an exception. */
static PyObject *convert(struct pf_call *call)
{
    const struct pf_operation *operation = call->operation;
    PyObject *partial = NULL;

    if (call->r >= 0) {
        if (operation->convert)
            return operation->convert(call->args, call->r);
        Py_RETURN_NONE;
    }
    if (operation->partial && !(partial = operation->partial(call->args)))
        return NULL;
    pf_raise(&call->err, partial);
    Py_XDECREF(partial);
    return NULL;
}

static PyObject *outcome(struct pf_call *call)
{
    PyObject *value;

    deliver_events(call);
    Py_CLEAR(call->loop);
    value = convert(call);
    /* Its arguments are used up, and what they belong to is let go: a call that failed is kept by
     * the traceback of its exception, which its own agent may keep. */
    Py_CLEAR(call->kept);
    return value;
}

static PyObject *call_run(PyObject *self, PyObject *audited)
{
    struct pf_call *call = (struct pf_call *)self;

    if (begin(call) < 0)
        return NULL;
    call->audited = PyObject_IsTrue(audited) > 0;
    Py_BEGIN_ALLOW_THREADS
    execute(call);
    Py_END_ALLOW_THREADS
    call->state = DONE;
    return outcome(call);
}

struct mailbox_object {
    PyObject_HEAD struct pf_mailbox *mailbox;
};

static PyObject *refused(int number, const char *attempt, const char *hint)
{
    const char *why = strerrordesc_np(number);
    PyObject *text = PyUnicode_FromFormat("%s: %s; %s", attempt, why ? why : "an error", hint);
    PyObject *error = PyObject_CallFunction(PyExc_OSError, "iN", number, text);

    if (error)
        PyErr_SetObject((PyObject *)Py_TYPE(error), error);
    Py_XDECREF(error);
    return NULL;
}

static PyObject *call_submit(PyObject *self, PyObject *args)
{
    struct pf_call *call = (struct pf_call *)self;
    PyObject *mailbox, *loop;
    int audited, r;

    if (!PyArg_ParseTuple(args, "O!Op", pf_mailbox_type, &mailbox, &loop, &audited) ||
        begin(call) < 0)
        return NULL;
    call->audited = audited;
    call->mailbox = pf_mailbox_ref(((struct mailbox_object *)mailbox)->mailbox);
    pf_output_deliver_to(call->output, call->mailbox, &call->letter, call->cancel);
    Py_INCREF(loop);
    call->loop = loop;
    call->job.run = run_job;
    Py_INCREF(self); /* until it is taken out */
    r = call->operation->nests  ? pf_pool_start(&call->job)
        : call->operation->ends ? pf_pool_submit_first(&call->job)
                                : pf_pool_submit(&call->job);
    if (r == 0)
        Py_RETURN_NONE;
    call->state = MADE;
    Py_DECREF(self);
    return refused(r, "start a thread for a call of a sandbox or an agent",
                   "allow more threads (ulimit -u) or memory (ulimit -v)");
}

static PyObject *call_result(PyObject *self, PyObject *unused)
{
    struct pf_call *call = (struct pf_call *)self;

    (void)unused;
    if (!is_done(call)) {
        PyErr_SetString(PyExc_RuntimeError, "the call is not done");
        return NULL;
    }
    return outcome(call);
}

static PyObject *call_cancel(PyObject *self, PyObject *unused)
{
    struct pf_call *call = (struct pf_call *)self;
    PyObject *answer;

    (void)unused;
    if (!call->cancel && __atomic_load_n(&call->state, __ATOMIC_ACQUIRE) == MADE) {
        struct pinfold_error err = PINFOLD_ERROR_INIT;
        if (pinfold_cancel_new(&call->cancel, &err) < 0)
            return pf_raise(&err, NULL);
    }
    pinfold_cancel_fire(call->cancel);
    pf_output_wake(call->output);
    /* What no thread has begun needs none to end. */
    if (!call->operation->ends && pf_pool_withdraw(&call->job)) {
        give_up(call);
        if (!conclude(call))
            bury_orphans();
        Py_RETURN_NONE;
    }
    if (call->on_cancel && call->on_cancel != Py_None) {
        answer = PyObject_CallObject(call->on_cancel, NULL);
        if (!answer)
            return NULL;
        Py_DECREF(answer);
    }
    Py_RETURN_NONE;
}

static PyObject *call_take_output(PyObject *self, PyObject *unused)
{
    (void)unused;
    return pf_output_take(((struct pf_call *)self)->output);
}

/* Called before it is submitted. */
static PyObject *call_stream_to(PyObject *self, PyObject *consumer)
{
    struct pf_call *call = (struct pf_call *)self;

    if (!call->output && !(call->output = pf_output_new()))
        return PyErr_NoMemory();
    Py_INCREF(consumer);
    Py_XDECREF(call->consumer);
    call->consumer = consumer;
    Py_RETURN_NONE;
}

int pf_call_output(void *ctx, enum pinfold_stream stream, const char *data, size_t len)
{
    (void)ctx;
    return current && current->output ? pf_output_put(current->output, stream, data, len) : 0;
}

PyObject *pf_call_current(void)
{
    return (PyObject *)current;
}

/* ---- attributes ---- */

static PyObject *get_done(PyObject *self, void *closure)
{
    (void)closure;
    return PyBool_FromLong(is_done((struct pf_call *)self));
}

static PyObject *get_cancelled(PyObject *self, void *closure)
{
    (void)closure;
    return PyBool_FromLong(pinfold_cancel_fired(((struct pf_call *)self)->cancel));
}

static PyObject *get_object(PyObject *self, void *closure)
{
    PyObject *value = *(PyObject **)((char *)self + (size_t)closure);

    value = value ? value : Py_None;
    Py_INCREF(value);
    return value;
}

static int set_object(PyObject *self, PyObject *value, void *closure)
{
    PyObject **slot = (PyObject **)((char *)self + (size_t)closure), *old = *slot;

    Py_XINCREF(value);
    *slot = value;
    Py_XDECREF(old);
    return 0;
}

static struct pf_call *of_letter(struct pf_letter *letter)
{
    return (struct pf_call *)((char *)letter - offsetof(struct pf_call, letter));
}

/* A call that is done, and whose result nobody asks for. */
static void bury(struct pf_call *call)
{
    Py_CLEAR(call->causes); /* they lead back here */
    Py_DECREF((PyObject *)call);
}

/* Calls that were done after their event loop had gone. */
static void bury_orphans(void)
{
    struct pf_letter *letter;

    while ((letter = pf_mailbox_take_orphan())) {
        deliver_events(of_letter(letter));
        bury(of_letter(letter));
    }
}

/* ---- Mailbox ---- */

static PyObject *mailbox_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    struct mailbox_object *self;

    (void)args, (void)kwargs;
    bury_orphans();
    self = (struct mailbox_object *)PyType_GenericAlloc(type, 0);
    if (self && !(self->mailbox = pf_mailbox_new())) {
        int number = errno;
        Py_DECREF((PyObject *)self);
        return refused(number, "make the mailbox of an event loop",
                       "allow more open files (ulimit -n)");
    }
    return (PyObject *)self;
}

/* The event loop is gone. What it did not take out, and what still runs, is nobody's. */
static void mailbox_dealloc(PyObject *self)
{
    struct pf_mailbox *mailbox = ((struct mailbox_object *)self)->mailbox;
    struct pf_letter *letter;
    bool done;

    if (mailbox)
        pf_mailbox_abandon(mailbox);
    while (mailbox && (letter = pf_mailbox_take(mailbox, &done)))
        if (done)
            bury(of_letter(letter));
    pf_mailbox_unref(mailbox);
    bury_orphans();
    pf_free_object(self);
}

static PyObject *mailbox_fileno(PyObject *self, PyObject *unused)
{
    (void)unused;
    return PyLong_FromLong(pf_mailbox_fd(((struct mailbox_object *)self)->mailbox));
}

static PyObject *mailbox_take(PyObject *self, PyObject *unused)
{
    struct pf_mailbox *mailbox = ((struct mailbox_object *)self)->mailbox;
    PyObject *list = PyList_New(0);
    struct pf_letter *letter;
    bool done;

    (void)unused;
    while (list && (letter = pf_mailbox_take(mailbox, &done))) {
        PyObject *call = (PyObject *)of_letter(letter);
        if (PyList_Append(list, call) < 0)
            Py_CLEAR(list);
        if (done)
            Py_DECREF(call);
    }
    return list;
}

static PyMethodDef call_methods[] = {
    { "run", call_run, METH_O, NULL },
    { "submit", call_submit, METH_VARARGS, NULL },
    { "result", call_result, METH_NOARGS, NULL },
    { "cancel", call_cancel, METH_NOARGS, NULL },
    { "stream_to", call_stream_to, METH_O, NULL },
    { "take_output", call_take_output, METH_NOARGS, NULL },
    { 0 },
};

static PyGetSetDef call_getset[] = {
    { "done", get_done, NULL, NULL, NULL },
    { "cancelled", get_cancelled, NULL, NULL, NULL },
    { "loop", get_object, NULL, NULL, (void *)offsetof(struct pf_call, loop) },
    { "consumer", get_object, NULL, NULL, (void *)offsetof(struct pf_call, consumer) },
    { "causes", get_object, set_object, NULL, (void *)offsetof(struct pf_call, causes) },
    { "stopped", get_object, set_object, NULL, (void *)offsetof(struct pf_call, stopped) },
    { "on_cancel", get_object, set_object, NULL, (void *)offsetof(struct pf_call, on_cancel) },
    { 0 },
};

static PyType_Slot call_slots[] = {
    { Py_tp_dealloc, call_dealloc },
    { Py_tp_methods, call_methods },
    { Py_tp_getset, call_getset },
    { 0 },
};

static PyType_Spec call_spec = { .name = "_pinfold.Call",
                                 .basicsize = sizeof(struct pf_call),
                                 .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                                 .slots = call_slots };

static PyMethodDef mailbox_methods[] = {
    { "fileno", mailbox_fileno, METH_NOARGS, NULL },
    { "take", mailbox_take, METH_NOARGS, NULL },
    { 0 },
};

static PyType_Slot mailbox_slots[] = {
    { Py_tp_new, mailbox_new },
    { Py_tp_dealloc, mailbox_dealloc },
    { Py_tp_methods, mailbox_methods },
    { 0 },
};

static PyType_Spec mailbox_spec = { .name = "_pinfold.Mailbox",
                                    .basicsize = sizeof(struct mailbox_object),
                                    .flags = Py_TPFLAGS_DEFAULT,
                                    .slots = mailbox_slots };

int pf_add_call(PyObject *module)
{
    return pf_add_type(module, "Call", &call_spec, &pf_call_type) < 0 ||
                           pf_add_type(module, "Mailbox", &mailbox_spec, &pf_mailbox_type) < 0
                   ? -1
                   : 0;
}
