/* SPDX-License-Identifier: Apache-2.0 */
/* Spool: the whole output of a command, to be paged through. */
#include "spool.h"

#include "errors.h"

enum { MAX_PAGE = 64 << 20 };

struct spool {
    PyObject_HEAD struct pinfold_spool *spool;
};

PyTypeObject *pf_spool_type;

PyObject *pf_spool_from(struct pinfold_spool *spool)
{
    struct spool *self;

    if (!spool)
        Py_RETURN_NONE;
    self = PyObject_New(struct spool, pf_spool_type);
    if (!self) {
        pinfold_spool_free(spool);
        return NULL;
    }
    self->spool = spool;
    return (PyObject *)self;
}

static void spool_dealloc(PyObject *self)
{
    pinfold_spool_free(((struct spool *)self)->spool);
    pf_free_object(self);
}

static int parse_stream(int number, enum pinfold_stream *ret)
{
    if (number != PINFOLD_STDOUT && number != PINFOLD_STDERR) {
        PyErr_Format(PyExc_ValueError, "a stream is 1 (stdout) or 2 (stderr), not %d", number);
        return -1;
    }
    *ret = (enum pinfold_stream)number;
    return 0;
}

static PyObject *spool_size(PyObject *self, PyObject *args)
{
    enum pinfold_stream stream;
    int number;

    if (!PyArg_ParseTuple(args, "i", &number) || parse_stream(number, &stream) < 0)
        return NULL;
    return PyLong_FromUnsignedLongLong(pinfold_spool_size(((struct spool *)self)->spool, stream));
}

static PyObject *spool_read(PyObject *self, PyObject *args)
{
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    enum pinfold_stream stream;
    long long offset, size;
    PyObject *page, *cut;
    ssize_t len;
    int number;

    if (!PyArg_ParseTuple(args, "iLL", &number, &offset, &size) ||
        parse_stream(number, &stream) < 0)
        return NULL;
    if (offset < 0 || size < 0 || size > MAX_PAGE) {
        PyErr_Format(PyExc_ValueError, "a page has an offset from 0 on, and at most %d bytes",
                     (int)MAX_PAGE);
        return NULL;
    }
    page = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)size);
    if (!page)
        return NULL;
    len = pinfold_spool_read(((struct spool *)self)->spool, stream, (uint64_t)offset,
                             PyBytes_AsString(page), (size_t)size, &err);
    cut = len < 0 ? pf_raise(&err, NULL) : PyBytes_FromStringAndSize(PyBytes_AsString(page), len);
    Py_DECREF(page);
    return cut;
}

static PyMethodDef methods[] = {
    { "size", spool_size, METH_VARARGS, NULL },
    { "read", spool_read, METH_VARARGS, NULL },
    { 0 },
};

static PyType_Slot slots[] = {
    { Py_tp_dealloc, spool_dealloc },
    { Py_tp_methods, methods },
    { 0 },
};

static PyType_Spec spec = { .name = "_pinfold.Spool",
                            .basicsize = sizeof(struct spool),
                            .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                            .slots = slots };

int pf_add_spool(PyObject *module)
{
    return pf_add_type(module, "Spool", &spec, &pf_spool_type);
}
