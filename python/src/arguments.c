/* SPDX-License-Identifier: Apache-2.0 */
/* What Python gives to a call, as C wants it. Everything lives in objects that the call keeps. */
#include "call.h"

#include <string.h>

#include "errors.h"

const struct pf_operation pf_no_operation = { .name = "arguments" };

/* The bytes of kept, a bytes object that the call takes over. */
static const char *keep_bytes(struct pf_call *call, PyObject *bytes, Py_ssize_t *ret_len)
{
    char *text;

    if (pf_call_keep(call, bytes) < 0 || PyBytes_AsStringAndSize(bytes, &text, ret_len) < 0)
        return NULL;
    return text;
}

/* A new bytes object: str as the file system has it, bytes as they are. */
static PyObject *path_bytes(PyObject *path)
{
    PyObject *plain = PyOS_FSPath(path), *bytes;

    if (!plain || PyBytes_Check(plain))
        return plain;
    bytes = PyUnicode_EncodeFSDefault(plain);
    Py_DECREF(plain);
    return bytes;
}

const char *pf_call_path(struct pf_call *call, PyObject *path)
{
    PyObject *bytes = path_bytes(path);
    Py_ssize_t len;
    const char *text = bytes ? keep_bytes(call, bytes, &len) : NULL;

    if (text && strlen(text) != (size_t)len) {
        pf_raise_text(PINFOLD_EPATH, "a path must not contain a NUL byte");
        return NULL;
    }
    return text;
}

int pf_call_path_or_none(struct pf_call *call, PyObject *path, const char **ret)
{
    *ret = !path || path == Py_None ? NULL : pf_call_path(call, path);
    return path && path != Py_None && !*ret ? -1 : 0;
}

/* A new bytes object with what a bytes-like one holds. A list of numbers is none. */
static PyObject *bytes_of(PyObject *data)
{
    PyObject *view = PyBytes_Check(data) ? NULL : PyMemoryView_FromObject(data), *bytes;

    if (PyErr_Occurred())
        return NULL;
    bytes = PyBytes_FromObject(view ? view : data);
    Py_XDECREF(view);
    return bytes;
}

const char *pf_call_data(struct pf_call *call, PyObject *data, Py_ssize_t *ret_len)
{
    PyObject *bytes = PyUnicode_Check(data)
                              ? PyUnicode_AsEncodedString(data, "utf-8", "surrogateescape")
                              : bytes_of(data);

    return bytes ? keep_bytes(call, bytes, ret_len) : NULL;
}

void *pf_call_alloc(struct pf_call *call, size_t count, size_t size)
{
    PyObject *bytes;
    char *memory;

    if (count > PY_SSIZE_T_MAX / size) {
        PyErr_NoMemory();
        return NULL;
    }
    bytes = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(count * size));
    if (!bytes || pf_call_keep(call, bytes) < 0)
        return NULL;
    memory = PyBytes_AsString(bytes);
    memset(memory, 0, count * size);
    return memory;
}

int pf_call_strv(struct pf_call *call, PyObject *strings, const char *const **ret)
{
    PyObject *list;
    const char **items;
    Py_ssize_t count;

    *ret = NULL;
    if (!strings || strings == Py_None)
        return 0;
    if (PyUnicode_Check(strings) || PyBytes_Check(strings)) {
        PyErr_SetString(PyExc_TypeError, "a list of strings is wanted, not one string");
        return -1;
    }
    list = PySequence_List(strings);
    if (!list || pf_call_keep(call, list) < 0)
        return -1;
    count = PyList_Size(list);
    items = pf_call_alloc(call, (size_t)count + 1, sizeof(*items));
    if (!items)
        return -1;
    for (Py_ssize_t i = 0; i < count; i++)
        if (!(items[i] = pf_call_path(call, PyList_GetItem(list, i))))
            return -1;
    *ret = items;
    return 0;
}
