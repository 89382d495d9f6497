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
static PyObject *wrap(struct pinfold_sandbox *sandbox)
{
    struct pf_sandbox *self = PyObject_New(struct pf_sandbox, pf_sandbox_type);
    struct pf_handle *handle = self ? malloc(sizeof(*handle)) : NULL;

    if (!handle) {
        pinfold_sandbox_free(sandbox);
        if (!self)
            return NULL;
        self->handle = NULL;
        Py_DECREF((PyObject *)self);
        return PyErr_NoMemory();
    }
    *handle = (struct pf_handle){ .sandbox = sandbox, .refs = 1, .owner = getpid() };
    self->handle = handle;
    return (PyObject *)self;
}

static void sandbox_dealloc(PyObject *self)
{
    pf_handle_unref(((struct pf_sandbox *)self)->handle);
    pf_free_object(self);
}

static struct pinfold_sandbox *sandbox_of(PyObject *self)
{
    return ((struct pf_sandbox *)self)->handle->sandbox;
}

/* ---- making ---- */

static int parse(struct pf_call *call, PyObject *given, struct pinfold_sync_policy *policy,
                 struct pinfold_sandbox_options *options)
{
    PyObject *id, *backend, *manager, *seed_from, *seed_exclude, *pair, *sync_dest;
    PyObject *excludes, *includes;

    if (!PyArg_ParseTuple(given, "OO!dOOOOO", &id, pf_backend_type, &backend, &options->ttl_seconds,
                          &manager, &seed_from, &seed_exclude, &pair, &sync_dest) ||
        !(options->workspace_id = pf_call_path(call, id)) ||
        pf_call_path_or_none(call, seed_from, &options->seed_from) < 0 ||
        pf_call_strv(call, seed_exclude, &options->seed_exclude) < 0 ||
        pf_call_path_or_none(call, sync_dest, &options->sync_dest) < 0)
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
                           pf_call_strv(call, excludes, &policy->exclude_patterns) == 0 &&
                           pf_call_strv(call, includes, &policy->sync_include_patterns) == 0
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
    return r < 0 ? NULL : wrap(sandbox);
}

static PyObject *sandbox_view(PyObject *self, PyObject *name)
{
    struct pf_call *call = pf_call_new(&pf_no_operation, NULL);
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    struct pinfold_sandbox *sandbox = sandbox_of(self), *view = NULL;
    const char *text;
    int r;

    if (!call)
        return NULL;
    r = pf_call_path_or_none(call, name, &text);
    if (r == 0) {
        Py_BEGIN_ALLOW_THREADS
        r = pinfold_sandbox_view(sandbox, text, &view, &err);
        Py_END_ALLOW_THREADS
        if (r < 0)
            pf_raise(&err, NULL);
    }
    Py_DECREF(pf_call_object(call));
    return r < 0 ? NULL : wrap(view);
}

/* ---- properties ---- */

static PyObject *get_is_started(PyObject *self, void *closure)
{
    struct pinfold_sandbox *sandbox = sandbox_of(self);
    bool started;

    (void)closure;
    Py_BEGIN_ALLOW_THREADS
    started = pinfold_sandbox_is_started(sandbox);
    Py_END_ALLOW_THREADS
    return PyBool_FromLong(started);
}

static PyObject *get_owner_id(PyObject *self, void *closure)
{
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    PyObject *text;
    char *id;

    (void)closure;
    if (pinfold_sandbox_owner_id(sandbox_of(self), &id, &err) < 0)
        return pf_raise(&err, NULL);
    text = pf_text_from(id);
    free(id);
    return text;
}

static PyObject *sandbox_ref(PyObject *self, PyObject *unused)
{
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    struct pinfold_sandbox_ref ref;
    PyObject *tuple;

    (void)unused;
    if (pinfold_sandbox_ref(sandbox_of(self), &ref, &err) < 0)
        return pf_raise(&err, NULL);
    tuple = Py_BuildValue("NNN", pf_path_from(ref.workspace_id), pf_text_from(ref.backend_type),
                          pf_text_from(ref.manager_id));
    pinfold_sandbox_ref_done(&ref);
    return tuple;
}

/* ---- agents ---- */

/* An attached agent, and what wires it: (agent, wire, unwire). The tuple is owned by the attachment
 * from a successful wire until unwire. */
static int wire(void *agent, void *ctx, struct pinfold_error *err)
{
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *wires = PyTuple_GetItem(ctx, 1), *answer = NULL;
    int r = 0;

    if (wires != Py_None) {
        answer = PyObject_CallFunctionObjArgs(wires, agent, NULL);
        r = answer ? 0 : pf_take_exception(err, "attach");
        Py_XDECREF(answer);
    }
    if (r == 0)
        Py_INCREF((PyObject *)ctx);
    PyGILState_Release(gil);
    return r;
}

static void unwire(void *agent, void *ctx)
{
    PyGILState_STATE gil;
    PyObject *unwires, *answer;

    if (pf_closing())
        return;
    gil = PyGILState_Ensure();
    unwires = PyTuple_GetItem(ctx, 2);
    if (unwires != Py_None) {
        answer = PyObject_CallFunctionObjArgs(unwires, agent, NULL);
        if (!answer)
            PyErr_WriteUnraisable(unwires);
        Py_XDECREF(answer);
    }
    Py_DECREF((PyObject *)ctx);
    PyGILState_Release(gil);
}

static PyObject *sandbox_attach(PyObject *self, PyObject *args)
{
    struct pinfold_sandbox *sandbox = sandbox_of(self);
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    struct pinfold_attach_request request = { .size = sizeof(request),
                                              .wire = wire,
                                              .unwire = unwire };
    PyObject *agent, *wires, *unwires;
    int read_only, r;

    if (!PyArg_ParseTuple(args, "OspOO", &agent, &request.agent_id, &read_only, &wires, &unwires))
        return NULL;
    request.agent = agent;
    request.mode = read_only ? PINFOLD_READ_ONLY : PINFOLD_READ_WRITE;
    request.ctx = Py_BuildValue("OOO", agent, wires, unwires);
    if (!request.ctx)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    r = pinfold_sandbox_attach(sandbox, &request, &err);
    Py_END_ALLOW_THREADS
    Py_DECREF((PyObject *)request.ctx);
    if (r < 0)
        return pf_raise(&err, NULL);
    Py_RETURN_NONE;
}

static PyObject *sandbox_detach(PyObject *self, PyObject *agent)
{
    struct pinfold_sandbox *sandbox = sandbox_of(self);

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
    { Py_tp_methods, methods },
    { Py_tp_getset, getset },
    { 0 },
};

static PyType_Spec spec = { .name = "_pinfold.Sandbox",
                            .basicsize = sizeof(struct pf_sandbox),
                            .flags = Py_TPFLAGS_DEFAULT,
                            .slots = slots };

int pf_add_sandbox(PyObject *module)
{
    return pf_add_type(module, "Sandbox", &spec, &pf_sandbox_type);
}
