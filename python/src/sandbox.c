/* SPDX-License-Identifier: Apache-2.0 */
/* The Sandbox type: making, properties, agents. */
#include "sandbox.h"

#include <stdlib.h>
#include <unistd.h>

#include "backend.h"
#include "convert.h"
#include "errors.h"
#include "manager.h"

PyTypeObject *pf_sandbox_type;

static struct pf_sandbox *object(PyObject *self)
{
    return (struct pf_sandbox *)self;
}

/* ---- handles ---- */

struct pf_handle *pf_handle_ref(struct pf_handle *handle)
{
    __atomic_fetch_add(&handle->refs, 1, __ATOMIC_RELAXED);
    return handle;
}

static void free_handle(void *arg)
{
    struct pf_handle *handle = arg;

    pinfold_sandbox_free(handle->sandbox);
    free(handle);
}

void pf_handle_unref(struct pf_handle *handle)
{
    if (!handle || __atomic_sub_fetch(&handle->refs, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    if (handle->owner == getpid())
        pf_call_later(free_handle, handle);
}

/* Takes over the sandbox, also when it fails. */
static struct pf_sandbox *wrap(struct pinfold_sandbox *sandbox)
{
    PyObject *self = PyType_GenericAlloc(pf_sandbox_type, 0);
    struct pf_handle *handle = self ? malloc(sizeof(*handle)) : NULL;

    if (!handle) {
        pinfold_sandbox_free(sandbox);
        if (self)
            PyErr_NoMemory();
        Py_XDECREF(self);
        return NULL;
    }
    *handle = (struct pf_handle){ .sandbox = sandbox, .refs = 1, .owner = getpid() };
    object(self)->handle = handle;
    return object(self);
}

struct pinfold_sandbox *pf_sandbox_of(PyObject *self)
{
    if (object(self)->handle)
        return object(self)->handle->sandbox;
    PyErr_SetString(PyExc_ReferenceError, "the sandbox is gone");
    return NULL;
}

/* ---- garbage ---- */

static int sandbox_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    return pf_links_traverse(&object(self)->links, visit, arg);
}

/* Without the GIL. */
static void stop_forgotten(void *arg)
{
    PyGILState_STATE gil;

    pinfold_sandbox_stop(object(arg)->handle->sandbox, false, NULL, NULL, NULL);
    if (pf_closing())
        return;
    gil = PyGILState_Ensure();
    Py_DECREF((PyObject *)arg);
    PyGILState_Release(gil);
}

/* Nothing leads here any more but a cycle, through a backend say. What is started is stopped while
 * all of the cycle is still whole, as its close() wants it; the next collection clears it. */
static void sandbox_finalize(PyObject *self)
{
    const struct pf_handle *handle = object(self)->handle;
    PyObject *type, *value, *trace;
    bool started;

    if (!handle || !object(self)->links.first || handle->owner != getpid() || pf_closing())
        return;
    PyErr_Fetch(&type, &value, &trace);
    Py_BEGIN_ALLOW_THREADS
    started = pinfold_sandbox_is_started(handle->sandbox);
    Py_END_ALLOW_THREADS
    if (started) {
        Py_INCREF(self);
        pf_call_later(stop_forgotten, self);
    }
    PyErr_Restore(type, value, trace);
}

/* What frees the sandbox lets go of what the links lead to. Calls that are under way hold this
 * object, and nothing is cleared then. */
static int sandbox_clear(PyObject *self)
{
    struct pf_handle *handle = object(self)->handle;

    object(self)->handle = NULL;
    pf_links_release(&object(self)->links);
    pf_handle_unref(handle);
    return 0;
}

static void sandbox_dealloc(PyObject *self)
{
    PyObject_GC_UnTrack(self);
    sandbox_clear(self);
    pf_free_object(self);
}

/* ---- making ---- */

static int parse(struct pf_call *call, PyObject *given, struct pinfold_sync_policy *policy,
                 struct pinfold_sandbox_options *options)
{
    PyObject *id, *backend, *manager, *seed_from, *seed_exclude, *pair, *sync_dest;
    PyObject *excludes, *includes;

    if (!PyArg_ParseTuple(given, "OO!dOOOOO", &id, pf_backend_type, &backend, &options->ttl_seconds,
                          &manager, &seed_from, &seed_exclude, &pair, &sync_dest) ||
        !(options->workspace_id = pf_call_text(call, "workspace_id", id)) ||
        pf_call_path_or_none(call, "seed_from", seed_from, &options->seed_from) < 0 ||
        pf_call_strv(call, "seed_exclude", seed_exclude, &options->seed_exclude) < 0 ||
        pf_call_path_or_none(call, "sync_dest", sync_dest, &options->sync_dest) < 0)
        return -1;
    options->backend = ((struct pf_backend_object *)backend)->backend;
    options->manager = pf_manager_of(manager);
    options->audit.emit = pf_call_audit;
    if (PyErr_Occurred())
        return -1;
    if (pair == Py_None)
        return 0;
    options->sync_policy = policy;
    return PyArg_ParseTuple(pair, "OO", &excludes, &includes) &&
                           pf_call_strv(call, "exclude_patterns", excludes,
                                        &policy->exclude_patterns) == 0 &&
                           pf_call_strv(call, "sync_include_patterns", includes,
                                        &policy->sync_include_patterns) == 0
                   ? 0
                   : -1;
}

static PyObject *sandbox_new(PyTypeObject *type, PyObject *given, PyObject *kwargs)
{
    struct pinfold_sandbox_options options = PINFOLD_SANDBOX_OPTIONS_INIT;
    struct pf_call *call = pf_call_new(&pf_no_operation, NULL);
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    struct pinfold_sandbox *sandbox = NULL;
    struct pinfold_sync_policy policy = { 0 };
    struct pf_sandbox *self;
    int r;

    (void)type, (void)kwargs;
    if (!call)
        return NULL;
    r = parse(call, given, &policy, &options);
    if (r == 0) {
        r = pinfold_sandbox_new(&options, &sandbox, &err);
        if (r < 0)
            pf_raise(&err, NULL);
    }
    Py_DECREF(pf_call_object(call));
    self = r < 0 ? NULL : wrap(sandbox);
    if (self)
        pf_backend_own(options.backend, &self->links);
    return (PyObject *)self;
}

static PyObject *sandbox_view(PyObject *self, PyObject *name)
{
    struct pinfold_sandbox *sandbox = pf_sandbox_of(self), *view = NULL;
    struct pf_call *call = sandbox ? pf_call_new(&pf_no_operation, NULL) : NULL;
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    const char *text;
    int r;

    if (!call)
        return NULL;
    r = pf_call_text_or_none(call, "name", name, &text);
    if (r == 0) {
        Py_BEGIN_ALLOW_THREADS
        r = pinfold_sandbox_view(sandbox, text, &view, &err);
        Py_END_ALLOW_THREADS
        if (r < 0)
            pf_raise(&err, NULL);
    }
    Py_DECREF(pf_call_object(call));
    return r < 0 ? NULL : (PyObject *)wrap(view);
}

/* ---- properties ---- */

static PyObject *get_is_started(PyObject *self, void *closure)
{
    struct pinfold_sandbox *sandbox = pf_sandbox_of(self);
    bool started;

    (void)closure;
    if (!sandbox)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    started = pinfold_sandbox_is_started(sandbox);
    Py_END_ALLOW_THREADS
    return PyBool_FromLong(started);
}

static PyObject *get_owner_id(PyObject *self, void *closure)
{
    struct pinfold_sandbox *sandbox = pf_sandbox_of(self);
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    PyObject *text;
    char *id;

    (void)closure;
    if (!sandbox)
        return NULL;
    if (pinfold_sandbox_owner_id(sandbox, &id, &err) < 0)
        return pf_raise(&err, NULL);
    text = pf_text_from(id);
    free(id);
    return text;
}

static PyObject *sandbox_ref(PyObject *self, PyObject *unused)
{
    struct pinfold_sandbox *sandbox = pf_sandbox_of(self);
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    struct pinfold_sandbox_ref ref;
    PyObject *tuple;

    (void)unused;
    if (!sandbox)
        return NULL;
    if (pinfold_sandbox_ref(sandbox, &ref, &err) < 0)
        return pf_raise(&err, NULL);
    tuple = Py_BuildValue("NNN", pf_path_from(ref.workspace_id), pf_text_from(ref.backend_type),
                          pf_text_from(ref.manager_id));
    pinfold_sandbox_ref_done(&ref);
    return tuple;
}

/* ---- agents of other frameworks ---- */

/* What an attachment needs. It has references to what it calls by a link of the sandbox's, from a
 * successful wire until unwire. */
struct wiring {
    struct pf_links *links;
    PyObject *calls; /* (agent, wire, unwire): of whoever attaches, who waits */
    struct pf_link *link;
    unsigned refs; /* under the GIL */
};

static void unref_wiring(struct wiring *wiring)
{
    if (--wiring->refs == 0)
        free(wiring);
}

static int wire(void *agent, void *ctx, struct pinfold_error *err)
{
    PyGILState_STATE gil = PyGILState_Ensure();
    struct wiring *wiring = ctx;
    PyObject *wires = PyTuple_GetItem(wiring->calls, 1), *answer = NULL;
    int r = 0;

    if (wires != Py_None) {
        answer = PyObject_CallFunctionObjArgs(wires, agent, NULL);
        r = answer ? 0 : pf_take_exception(err, "attach");
        Py_XDECREF(answer);
    }
    if (r == 0 && !(wiring->link = pf_link_new(wiring->links, wiring->calls)))
        r = pf_take_exception(err, "attach");
    if (r == 0)
        wiring->refs++;
    PyGILState_Release(gil);
    return r;
}

static void unwire(void *agent, void *ctx)
{
    struct wiring *wiring = ctx;
    PyGILState_STATE gil;
    PyObject *unwires, *answer;

    if (pf_closing())
        return;
    gil = PyGILState_Ensure();
    unwires = PyTuple_GetItem(pf_link_target(wiring->link), 2);
    if (unwires != Py_None) {
        answer = PyObject_CallFunctionObjArgs(unwires, agent, NULL);
        if (!answer)
            pf_tell_exception(unwires);
        Py_XDECREF(answer);
    }
    pf_link_free(wiring->link);
    unref_wiring(wiring);
    PyGILState_Release(gil);
}

static PyObject *sandbox_attach(PyObject *self, PyObject *args)
{
    struct pinfold_sandbox *sandbox = pf_sandbox_of(self);
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    struct pinfold_attach_request request = { .size = sizeof(request),
                                              .wire = wire,
                                              .unwire = unwire };
    PyObject *agent, *wires, *unwires;
    struct wiring *wiring;
    int read_only, r;

    if (!sandbox ||
        !PyArg_ParseTuple(args, "OspOO", &agent, &request.agent_id, &read_only, &wires, &unwires))
        return NULL;
    wiring = calloc(1, sizeof(*wiring));
    if (!wiring)
        return PyErr_NoMemory();
    *wiring = (struct wiring){ .links = &object(self)->links,
                               .calls = Py_BuildValue("OOO", agent, wires, unwires),
                               .refs = 1 };
    request.agent = agent;
    request.mode = read_only ? PINFOLD_READ_ONLY : PINFOLD_READ_WRITE;
    request.ctx = wiring;
    r = wiring->calls ? 0 : -1;
    if (r == 0) {
        Py_BEGIN_ALLOW_THREADS
        r = pinfold_sandbox_attach(sandbox, &request, &err);
        Py_END_ALLOW_THREADS
        if (r < 0)
            pf_raise(&err, NULL);
    }
    Py_CLEAR(wiring->calls);
    unref_wiring(wiring);
    if (r < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *sandbox_detach(PyObject *self, PyObject *agent)
{
    struct pinfold_sandbox *sandbox = pf_sandbox_of(self);

    if (!sandbox)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    pinfold_sandbox_detach(sandbox, agent);
    Py_END_ALLOW_THREADS
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    { "start", pf_sandbox_start, METH_NOARGS, NULL },
    { "stop", pf_sandbox_stop, METH_O, NULL },
    { "flush", pf_sandbox_flush, METH_O, NULL },
    { "plan_seed", pf_sandbox_plan_seed, METH_NOARGS, NULL },
    { "plan_flush", pf_sandbox_plan_flush, METH_O, NULL },
    { "execute", pf_sandbox_execute, METH_VARARGS, NULL },
    { "open_terminal", pf_sandbox_open_terminal, METH_VARARGS, NULL },
    { "read_file", pf_sandbox_read_file, METH_O, NULL },
    { "try_read_file", pf_sandbox_try_read_file, METH_O, NULL },
    { "read_lines", pf_sandbox_read_lines, METH_VARARGS, NULL },
    { "list_dir", pf_sandbox_list_dir, METH_O, NULL },
    { "write_file", pf_sandbox_write_file, METH_VARARGS, NULL },
    { "delete_files", pf_sandbox_delete_files, METH_O, NULL },
    { "move_file", pf_sandbox_move_file, METH_VARARGS, NULL },
    { "add_files", pf_sandbox_add_files, METH_VARARGS, NULL },
    { "download_files", pf_sandbox_download_files, METH_VARARGS, NULL },
    { "view", sandbox_view, METH_O, NULL },
    { "ref", sandbox_ref, METH_NOARGS, NULL },
    { "attach", sandbox_attach, METH_VARARGS, NULL },
    { "detach", sandbox_detach, METH_O, NULL },
    { 0 },
};

static PyGetSetDef getset[] = {
    { "is_started", get_is_started, NULL, NULL, NULL },
    { "owner_id", get_owner_id, NULL, NULL, NULL },
    { 0 },
};

static PyType_Slot slots[] = {
    { Py_tp_new, sandbox_new },
    { Py_tp_dealloc, sandbox_dealloc },
    { Py_tp_traverse, sandbox_traverse },
    { Py_tp_clear, sandbox_clear },
    { Py_tp_finalize, sandbox_finalize },
    { Py_tp_methods, methods },
    { Py_tp_getset, getset },
    { 0 },
};

static PyType_Spec spec = { .name = "_pinfold.Sandbox",
                            .basicsize = sizeof(struct pf_sandbox),
                            .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
                            .slots = slots };

int pf_add_sandbox(PyObject *module)
{
    return pf_add_type(module, "Sandbox", &spec, &pf_sandbox_type);
}
