/* SPDX-License-Identifier: Apache-2.0 */
/*
 * _pinfold: the C library as Python sees it, on the stable ABI of Python 3.10. It uses the public
 * headers alone. What people write is the package pinfold, which is Python and sits on this.
 *
 * Every operation that can take long makes a Call (call.h), which either runs where it stands, with
 * the GIL released, or on a thread of the pool while an event loop goes on.
 */
#ifndef PF_PYTHON_MODULE_H
#define PF_PYTHON_MODULE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <pinfold/pinfold.h>

#define PF_COUNT(array) (sizeof(array) / sizeof(*(array)))

/* What the package gives to set_hooks(): callables, all set before anything else is called. */
struct pf_hooks {
    PyObject *make_error; /* (code, errno, http_status, retryable, message, partial) -> exception */
    PyObject *explain;    /* (exception) -> (code, errno, retryable, message) */
    PyObject *audit;      /* (json_text) */
    PyObject *log;        /* (level, text) */
    PyObject *adopt;      /* (object of the caller's) -> Backend */
};

extern struct pf_hooks pf_hooks;

/* The interpreter is about to end: no thread of ours takes the GIL any more. */
bool pf_closing(void);

extern PyTypeObject *pf_call_type, *pf_mailbox_type, *pf_backend_type, *pf_manager_type,
        *pf_sandbox_type, *pf_terminal_type, *pf_spool_type, *pf_agent_type, *pf_tool_type,
        *pf_model_type, *pf_storage_type;

/* Each adds its type to the module. 0, or -1 with an exception. */
int pf_add_call(PyObject *module);
int pf_add_backend(PyObject *module);
int pf_add_manager(PyObject *module);
int pf_add_sandbox(PyObject *module);
int pf_add_terminal(PyObject *module);
int pf_add_spool(PyObject *module);
int pf_add_agent(PyObject *module);
int pf_add_tool(PyObject *module);
int pf_add_model(PyObject *module);
int pf_add_storage(PyObject *module);
/* PyType_FromSpec() and PyModule_AddObjectRef(). */
int pf_add_type(PyObject *module, const char *name, PyType_Spec *spec, PyTypeObject **ret);

/* tp_new of types that only C makes, and tp_dealloc's end for all: instances of heap types hold a
 * reference to their type. */
void pf_free_object(PyObject *self);

/* Functions of the module that make backends; backend*.c. */
PyObject *pf_local_backend(PyObject *module, PyObject *args);
PyObject *pf_isolated_backend(PyObject *module, PyObject *args);
PyObject *pf_agentcore_template(PyObject *module, PyObject *args);
PyObject *pf_daytona_template(PyObject *module, PyObject *args);
PyObject *pf_python_backend(PyObject *module, PyObject *args);

#endif
