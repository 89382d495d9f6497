/* SPDX-License-Identifier: Apache-2.0 */
#include "errors.h"

#include <stdio.h>
#include <string.h>

PyObject *pf_raise(const struct pinfold_error *err, PyObject *partial)
{
    PyObject *exception = PyObject_CallFunction(
            pf_hooks.make_error, "iiiOsO", err->code, err->sys_errno, err->http_status,
            err->retryable ? Py_True : Py_False, err->msg, partial ? partial : Py_None);

    if (exception)
        PyErr_SetObject((PyObject *)Py_TYPE(exception), exception);
    Py_XDECREF(exception);
    return NULL;
}

PyObject *pf_raise_text(enum pinfold_code code, const char *text)
{
    struct pinfold_error err = { .code = (int)code };

    snprintf(err.msg, sizeof(err.msg), "%s", text);
    return pf_raise(&err, NULL);
}

bool pf_parse_error(PyObject *tuple, struct pinfold_error *ret)
{
    const char *message;

    if (!PyArg_ParseTuple(tuple, "iiis", &ret->code, &ret->sys_errno, &ret->retryable, &message))
        return false;
    snprintf(ret->msg, sizeof(ret->msg), "%s", message);
    return true;
}

/* What the package says of an exception. Returns whether it said something. */
static bool explain(PyObject *exception, struct pinfold_error *ret)
{
    PyObject *answer = PyObject_CallFunctionObjArgs(pf_hooks.explain, exception, NULL);
    bool ok = answer && pf_parse_error(answer, ret) && ret->code > 0;

    Py_XDECREF(answer);
    return ok;
}

void pf_tell_exception(PyObject *what)
{
    if (PyErr_ExceptionMatches(PyExc_Exception))
        PyErr_WriteUnraisable(what);
    else
        pf_take_exception(NULL, "callback");
}

int pf_take_exception(struct pinfold_error *err, const char *context)
{
    struct pinfold_error found = { .code = PINFOLD_EBACKEND };
    PyObject *type, *value, *trace;

    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    if (value && trace)
        PyException_SetTraceback(value, trace); /* whoever hears of it wants to know where */
    if (!value || !explain(value, &found)) {
        found = (struct pinfold_error){ .code = PINFOLD_EBACKEND };
        snprintf(found.msg, sizeof(found.msg), "%s: an exception that cannot be told", context);
    }
    PyErr_Clear();
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    if (err)
        *err = found;
    return -found.code;
}
