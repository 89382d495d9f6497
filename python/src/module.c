/* SPDX-License-Identifier: Apache-2.0 */
#include "module.h"

#include <stdlib.h>

#include "agent.h"
#include "call.h"
#include "convert.h"
#include "equipment.h"
#include "errors.h"
#include "pool.h"

struct pf_hooks pf_hooks;

static bool closing; /* atomic */

bool pf_closing(void)
{
    return __atomic_load_n(&closing, __ATOMIC_ACQUIRE);
}

int pf_add_type(PyObject *module, const char *name, PyType_Spec *spec, PyTypeObject **ret)
{
    PyObject *type = PyType_FromSpec(spec);

    if (!type)
        return -1;
    *ret = (PyTypeObject *)type; /* this reference is ours for ever */
    return PyModule_AddObjectRef(module, name, type);
}

void pf_free_object(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);

    release(self);
    Py_DECREF((PyObject *)type);
}

/* ---- what must not wait ---- */

struct later {
    struct pf_job job; /* comes first */
    void (*fn)(void *arg);
    void *arg;
};

static void run_later(struct pf_job *job)
{
    struct later *later = (struct later *)job;

    later->fn(later->arg);
    free(later);
}

void pf_call_later(void (*fn)(void *arg), void *arg)
{
    struct later *later;

    if (pf_closing())
        return; /* the end of the process is near, and ends it too */
    later = malloc(sizeof(*later));
    if (later) {
        *later = (struct later){ .job.run = run_later, .fn = fn, .arg = arg };
        if (pf_pool_submit(&later->job) == 0)
            return;
        free(later);
    }
    Py_BEGIN_ALLOW_THREADS
    fn(arg);
    Py_END_ALLOW_THREADS
}

/* ---- diagnostics ---- */

static void log_line(void *ctx, enum pinfold_log_level level, const char *message)
{
    PyObject *type, *value, *trace, *answer;
    PyGILState_STATE gil;

    (void)ctx;
    if (pf_closing())
        return;
    gil = PyGILState_Ensure();
    PyErr_Fetch(&type, &value, &trace);
    answer = PyObject_CallFunction(pf_hooks.log, "is", (int)level, message);
    if (!answer)
        PyErr_WriteUnraisable(pf_hooks.log);
    Py_XDECREF(answer);
    PyErr_Restore(type, value, trace);
    PyGILState_Release(gil);
}

/* ---- functions ---- */

/* What is here, the hooks above all, is one of each process. And the end of another interpreter
 * would look like the end of the process. */
static int check_main(void)
{
    if (PyInterpreterState_GetID(PyInterpreterState_Get()) == 0)
        return 0;
    PyErr_SetString(PyExc_ImportError, "pinfold works in the main interpreter of a process only; "
                                       "use a process, or a thread of the main interpreter");
    return -1;
}

static PyObject *check_interpreter(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    if (check_main() < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *set_hooks(PyObject *module, PyObject *args)
{
    struct pf_hooks hooks;

    (void)module;
    if (!PyArg_ParseTuple(args, "OOOOO", &hooks.make_error, &hooks.explain, &hooks.audit,
                          &hooks.log, &hooks.adopt))
        return NULL;
    Py_INCREF(hooks.make_error);
    Py_INCREF(hooks.explain);
    Py_INCREF(hooks.audit);
    Py_INCREF(hooks.log);
    Py_INCREF(hooks.adopt);
    pf_hooks = hooks;
    pinfold_log_set_handler(log_line, NULL);
    Py_RETURN_NONE;
}

static PyObject *wait_idle(PyObject *module, PyObject *arg)
{
    double seconds = PyFloat_AsDouble(arg);
    bool calm;

    (void)module;
    if (PyErr_Occurred())
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    calm = pf_pool_wait(seconds);
    Py_END_ALLOW_THREADS
    return PyBool_FromLong(calm);
}

static PyObject *set_closing(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    __atomic_store_n(&closing, true, __ATOMIC_RELEASE);
    Py_RETURN_NONE;
}

static PyObject *current_call(PyObject *module, PyObject *unused)
{
    PyObject *call = pf_call_current();

    (void)module, (void)unused;
    call = call ? call : Py_None;
    Py_INCREF(call);
    return call;
}

/* Whether what this thread is at is to end. */
static PyObject *cancelled(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return PyBool_FromLong(pf_token_fired());
}

static PyObject *given_id(int r, char *id, const struct pinfold_error *err)
{
    PyObject *text;

    if (r < 0)
        return pf_raise(err, NULL);
    text = pf_path_from(id);
    free(id);
    return text;
}

static PyObject *id_for_run(PyObject *module, PyObject *arg)
{
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    const char *run_id = pf_text_of("run_id", arg);
    char *id = NULL;
    int r;

    (void)module;
    if (!run_id)
        return NULL;
    r = pinfold_workspace_id_for_run(run_id, &id, &err);
    return given_id(r, id, &err);
}

static PyObject *id_for_context(PyObject *module, PyObject *args)
{
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    PyObject *context, *flag;
    const char *context_id;
    char *id = NULL;
    int shared, r;

    (void)module;
    if (!PyArg_ParseTuple(args, "OO", &context, &flag) ||
        !(context_id = pf_text_of("context_id", context)) || !pf_flag_of("shared", flag, &shared))
        return NULL;
    r = pinfold_workspace_id_for_context(context_id, shared, &id, &err);
    return given_id(r, id, &err);
}

/* (patterns, path, is_dir) -> whether they match; checks the patterns. */
static PyObject *match(PyObject *module, PyObject *args)
{
    struct pf_call *call = pf_call_new(&pf_no_operation, NULL);
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    PyObject *patterns, *path;
    const char *const *items;
    const char *text;
    int is_dir, r = -1;

    (void)module;
    if (!call)
        return NULL;
    if (PyArg_ParseTuple(args, "OOp", &patterns, &path, &is_dir) &&
        pf_call_strv(call, "patterns", patterns, &items) == 0 &&
        (text = pf_call_path(call, "path", path))) {
        r = pinfold_patterns_check(items, &err);
        if (r == 0)
            r = pinfold_patterns_match(items, text, is_dir, &err);
        if (r < 0)
            pf_raise(&err, NULL);
    }
    Py_DECREF(pf_call_object(call));
    return r < 0 ? NULL : PyBool_FromLong(r);
}

/* (possible, [(name, works, needed, detail, hint)]) */
static PyObject *probe(PyObject *module, PyObject *unused)
{
    struct pinfold_isolated_probe *answer = calloc(1, sizeof(*answer));
    PyObject *list;
    bool possible;

    (void)module, (void)unused;
    if (!answer)
        return PyErr_NoMemory();
    Py_BEGIN_ALLOW_THREADS
    possible = pinfold_isolated_probe(answer);
    Py_END_ALLOW_THREADS
    list = PyList_New(PINFOLD_PROBE_COUNT);
    for (int i = 0; list && i < PINFOLD_PROBE_COUNT; i++) {
        const struct pinfold_probe_answer *one = &answer->answers[i];
        PyList_SetItem(list, i,
                       Py_BuildValue("(sNNsN)", one->name, PyBool_FromLong(one->works),
                                     PyBool_FromLong(one->needed), one->detail,
                                     pf_text_from(one->hint)));
    }
    free(answer);
    return Py_BuildValue("(NN)", PyBool_FromLong(possible), list);
}

static PyMethodDef functions[] = {
    { "check_interpreter", check_interpreter, METH_NOARGS, NULL },
    { "set_hooks", set_hooks, METH_VARARGS, NULL },
    { "wait_idle", wait_idle, METH_O, NULL },
    { "set_closing", set_closing, METH_NOARGS, NULL },
    { "current_call", current_call, METH_NOARGS, NULL },
    { "cancelled", cancelled, METH_NOARGS, NULL },
    { "workspace_id_for_run", id_for_run, METH_O, NULL },
    { "workspace_id_for_context", id_for_context, METH_VARARGS, NULL },
    { "match", match, METH_VARARGS, NULL },
    { "probe", probe, METH_NOARGS, NULL },
    { "local_backend", pf_local_backend, METH_VARARGS, NULL },
    { "isolated_backend", pf_isolated_backend, METH_VARARGS, NULL },
    { "agentcore_template", pf_agentcore_template, METH_VARARGS, NULL },
    { "daytona_template", pf_daytona_template, METH_VARARGS, NULL },
    { "python_backend", pf_python_backend, METH_VARARGS, NULL },
    { "check_agent_config", pf_check_agent_config, METH_VARARGS, NULL },
    { "host_tools", pf_host_tools, METH_O, NULL },
    { "model_open", pf_model_open, METH_VARARGS, NULL },
    { "model_script", pf_model_script, METH_O, NULL },
    { "memory_storage", pf_memory_storage, METH_NOARGS, NULL },
    { "file_storage", pf_file_storage, METH_O, NULL },
    { "s3_storage", pf_s3_storage, METH_VARARGS, NULL },
    { "format_result", pf_format_result, METH_VARARGS, NULL },
    { 0 },
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_pinfold",
    .m_doc = "The C library; what people write is the package pinfold.",
    .m_size = -1, /* one of each process; check_main() sees to it */
    .m_methods = functions,
};

static int add_constants(PyObject *module)
{
    const struct pinfold_sync_policy policy = pinfold_default_sync_policy();
    const struct {
        const char *name;
        const char *const *values;
    } lists[] = {
        { "DEFAULT_SEED_EXCLUDES", pinfold_default_seed_excludes },
        { "DEFAULT_SYNC_INCLUDES", pinfold_default_sync_includes },
        { "DEFAULT_POLICY_EXCLUDES", pinfold_default_policy_excludes },
        { "SANDBOX_POLICY_EXCLUDES", policy.exclude_patterns },
        { "HOST_EXECUTION_TOOL_NAMES", pinfold_host_execution_tool_names },
        { "SANDBOX_OFFLOAD_TOOL_NAMES", pinfold_sandbox_offload_tool_names },
    };

    for (size_t i = 0; i < PF_COUNT(lists); i++) {
        PyObject *list = pf_strv_from(lists[i].values);
        int r = list ? PyModule_AddObjectRef(module, lists[i].name, list) : -1;
        Py_XDECREF(list);
        if (r < 0)
            return -1;
    }
    return PyModule_AddStringConstant(module, "VERSION", pinfold_version());
}

PyMODINIT_FUNC PyInit__pinfold(void);
PyMODINIT_FUNC PyInit__pinfold(void)
{
    PyObject *module = check_main() < 0 ? NULL : PyModule_Create(&definition);

    pf_pool_set_up();
    if (module && pf_add_call(module) == 0 && pf_add_backend(module) == 0 &&
        pf_add_manager(module) == 0 && pf_add_sandbox(module) == 0 &&
        pf_add_terminal(module) == 0 && pf_add_spool(module) == 0 && pf_add_agent(module) == 0 &&
        pf_add_tool(module) == 0 && pf_add_model(module) == 0 && pf_add_storage(module) == 0 &&
        add_constants(module) == 0)
        return module;
    Py_XDECREF(module);
    return NULL;
}
