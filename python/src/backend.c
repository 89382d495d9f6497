/* SPDX-License-Identifier: Apache-2.0 */
/* The Backend type, and the library's backends of this machine. */
#include "backend.h"

#include <stdlib.h>

#include "convert.h"
#include "errors.h"

PyTypeObject *pf_backend_type;

PyObject *pf_backend_wrap(struct pinfold_backend *backend)
{
    struct pf_backend_object *self = PyObject_New(struct pf_backend_object, pf_backend_type);

    if (!self) {
        pinfold_backend_unref(backend);
        return NULL;
    }
    self->backend = backend;
    self->python = pf_backend_python_object(backend);
    Py_XINCREF(self->python);
    return (PyObject *)self;
}

static struct pinfold_backend *backend_of(PyObject *self)
{
    return ((struct pf_backend_object *)self)->backend;
}

struct pinfold_backend *pf_backend_adopt(PyObject *object)
{
    PyObject *core = PyObject_CallFunctionObjArgs(pf_hooks.adopt, object, NULL);
    struct pinfold_backend *backend = NULL;

    if (core && !PyObject_TypeCheck(core, pf_backend_type))
        PyErr_SetString(PyExc_TypeError, "a backend or a backend template is required");
    else if (core)
        backend = pinfold_backend_ref(backend_of(core));
    Py_XDECREF(core);
    return backend;
}

static void backend_dealloc(PyObject *self)
{
    pinfold_backend_unref(backend_of(self));
    Py_XDECREF(((struct pf_backend_object *)self)->python);
    pf_free_object(self);
}

/* ---- properties ---- */

static PyObject *get_id(PyObject *self, void *closure)
{
    (void)closure;
    return pf_text_from(pinfold_backend_id(backend_of(self)));
}

static PyObject *get_type_name(PyObject *self, void *closure)
{
    (void)closure;
    return pf_text_from(pinfold_backend_get_ops(backend_of(self))->type_name);
}

static PyObject *get_supports_execution(PyObject *self, void *closure)
{
    (void)closure;
    return PyBool_FromLong(pinfold_supports_execution(backend_of(self)));
}

static PyObject *get_is_template(PyObject *self, void *closure)
{
    (void)closure;
    return PyBool_FromLong(pinfold_backend_get_ops(backend_of(self))->build_for_session != NULL);
}

/* Equal for two objects exactly when they are the same backend. */
static PyObject *get_identity(PyObject *self, void *closure)
{
    (void)closure;
    return PyLong_FromVoidPtr(backend_of(self));
}

/* What a backend written in Python is made of, else None. */
static PyObject *get_python(PyObject *self, void *closure)
{
    PyObject *object = ((struct pf_backend_object *)self)->python;

    (void)closure;
    object = object ? object : Py_None;
    Py_INCREF(object);
    return object;
}

static PyGetSetDef getset[] = {
    { "id", get_id, NULL, NULL, NULL },
    { "type_name", get_type_name, NULL, NULL, NULL },
    { "supports_execution", get_supports_execution, NULL, NULL, NULL },
    { "is_template", get_is_template, NULL, NULL, NULL },
    { "identity", get_identity, NULL, NULL, NULL },
    { "python", get_python, NULL, NULL, NULL },
    { 0 },
};

static PyType_Slot slots[] = {
    { Py_tp_dealloc, backend_dealloc },
    { Py_tp_methods, pf_backend_methods },
    { Py_tp_getset, getset },
    { 0 },
};

static PyType_Spec spec = { .name = "_pinfold.Backend",
                            .basicsize = sizeof(struct pf_backend_object),
                            .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                            .slots = slots };

int pf_add_backend(PyObject *module)
{
    return pf_add_type(module, "Backend", &spec, &pf_backend_type);
}

/* ---- the backends of the library ---- */

PyObject *pf_backend_made(struct pf_call *call, int r, struct pinfold_backend *backend,
                          const struct pinfold_error *err)
{
    Py_XDECREF(pf_call_object(call));
    if (r < 0)
        return PyErr_Occurred() ? NULL : pf_raise(err, NULL);
    return pf_backend_wrap(backend);
}

PyObject *pf_local_backend(PyObject *module, PyObject *given)
{
    struct pinfold_local_options options = PINFOLD_LOCAL_OPTIONS_INIT;
    struct pf_call *call = pf_call_new(&pf_no_operation, NULL);
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    struct pinfold_backend *backend = NULL;
    PyObject *root, *env;
    Py_ssize_t max_output_bytes;
    int inherit_env, r = -1;

    (void)module;
    if (!call)
        return NULL;
    if (PyArg_ParseTuple(given, "OdnpO", &root, &options.timeout_seconds, &max_output_bytes,
                         &inherit_env, &env) &&
        (options.workspace_root = pf_call_path(call, "workspace_root", root)) &&
        pf_call_strv(call, "env", env, &options.env) == 0) {
        options.max_output_bytes = (size_t)max_output_bytes;
        options.no_inherit_env = !inherit_env;
        r = pinfold_local_backend_new(&options, &backend, &err);
    }
    return pf_backend_made(call, r, backend, &err);
}

static int parse_limits(PyObject *tuple, struct pinfold_limits *limits)
{
    unsigned long long memory, processes, cpu, files, file, tmp, workspace;

    if (!PyArg_ParseTuple(tuple, "KKKKKKKd", &memory, &processes, &cpu, &files, &file, &tmp,
                          &workspace, &limits->cpus))
        return -1;
    limits->memory_bytes = memory;
    limits->processes = processes;
    limits->cpu_seconds = cpu;
    limits->open_files = files;
    limits->file_bytes = file;
    limits->tmp_bytes = tmp;
    limits->workspace_bytes = workspace;
    return 0;
}

PyObject *pf_isolated_backend(PyObject *module, PyObject *given)
{
    struct pinfold_isolated_options options = PINFOLD_ISOLATED_OPTIONS_INIT;
    struct pf_call *call = pf_call_new(&pf_no_operation, NULL);
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    struct pinfold_backend *backend = NULL;
    PyObject *root, *env, *ro, *rw, *rootfs, *net_allow, *limits;
    int net, read_only, overlay, r = -1;
    Py_ssize_t max_output_bytes;

    (void)module;
    if (!call)
        return NULL;
    if (PyArg_ParseTuple(given, "OdnOOOOiOppO", &root, &options.timeout_seconds, &max_output_bytes,
                         &env, &ro, &rw, &rootfs, &net, &net_allow, &read_only, &overlay,
                         &limits) &&
        pf_call_path_or_none(call, "workspace_root", root, &options.workspace_root) == 0 &&
        pf_call_strv(call, "env", env, &options.env) == 0 &&
        pf_call_strv(call, "ro", ro, &options.ro) == 0 &&
        pf_call_strv(call, "rw", rw, &options.rw) == 0 &&
        pf_call_path_or_none(call, "rootfs", rootfs, &options.rootfs) == 0 &&
        pf_call_strv(call, "network", net_allow, &options.net_allow) == 0 &&
        parse_limits(limits, &options.limits) == 0) {
        options.max_output_bytes = (size_t)max_output_bytes;
        options.net = (enum pinfold_net)net;
        options.workspace_read_only = read_only;
        options.seed_mode = overlay ? PINFOLD_SEED_OVERLAY : PINFOLD_SEED_COPY;
        r = pinfold_isolated_backend_new(&options, &backend, &err);
    }
    return pf_backend_made(call, r, backend, &err);
}
