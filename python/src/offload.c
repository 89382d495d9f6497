/* SPDX-License-Identifier: Apache-2.0 */
/* The Storage type, storages written in Python, and policies of offloading. */
#include <stdlib.h>
#include <string.h>

#include "call.h"
#include "convert.h"
#include "equipment.h"
#include "errors.h"

PyTypeObject *pf_storage_type;

struct storage_object {
    PyObject_HEAD struct pinfold_storage *storage;
};

static struct pinfold_storage *storage_of(PyObject *self)
{
    return ((struct storage_object *)self)->storage;
}

static void storage_dealloc(PyObject *self)
{
    pinfold_storage_unref(storage_of(self));
    pf_free_object(self);
}

/* (key, data, content_type) -> reference */
static PyObject *storage_store(PyObject *self, PyObject *args)
{
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    const char *key, *data, *type;
    char *reference = NULL;
    PyObject *text;
    Py_ssize_t len;
    int r;

    if (!PyArg_ParseTuple(args, "sy#s", &key, &data, &len, &type))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    r = pinfold_storage_store(storage_of(self), key, data, (size_t)len, type, &reference, &err);
    Py_END_ALLOW_THREADS
    if (r < 0)
        return pf_raise(&err, NULL);
    text = pf_path_from(reference);
    free(reference);
    return text;
}

/* (reference) -> (data, content_type) */
static PyObject *storage_retrieve(PyObject *self, PyObject *arg)
{
    struct pf_call *call = pf_call_new(&pf_no_operation, NULL);
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    struct pinfold_bytes data = { 0 };
    PyObject *pair = NULL;
    char *type = NULL;
    const char *reference;
    int r;

    if (!call)
        return NULL;
    reference = pf_call_path(call, "reference", arg);
    if (reference) {
        Py_BEGIN_ALLOW_THREADS
        r = pinfold_storage_retrieve(storage_of(self), reference, &data, &type, &err);
        Py_END_ALLOW_THREADS
        pair = r < 0 ? pf_raise(&err, NULL)
                     : Py_BuildValue("NN",
                                     PyBytes_FromStringAndSize(data.data, (Py_ssize_t)data.len),
                                     pf_text_from(type));
        pinfold_bytes_done(&data);
        free(type);
    }
    Py_DECREF(pf_call_object(call));
    return pair;
}

static PyMethodDef methods[] = {
    { "store", storage_store, METH_VARARGS, NULL },
    { "retrieve", storage_retrieve, METH_O, NULL },
    { 0 },
};

static PyType_Slot slots[] = {
    { Py_tp_dealloc, storage_dealloc },
    { Py_tp_methods, methods },
    { 0 },
};

static PyType_Spec spec = { .name = "_pinfold.Storage",
                            .basicsize = sizeof(struct storage_object),
                            .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                            .slots = slots };

int pf_add_storage(PyObject *module)
{
    return pf_add_type(module, "Storage", &spec, &pf_storage_type);
}

static PyObject *made(int r, struct pinfold_storage *storage, const struct pinfold_error *err)
{
    struct storage_object *self;

    if (r < 0)
        return pf_raise(err, NULL);
    self = PyObject_New(struct storage_object, pf_storage_type);
    if (self)
        self->storage = storage;
    else
        pinfold_storage_unref(storage);
    return (PyObject *)self;
}

PyObject *pf_memory_storage(PyObject *module, PyObject *unused)
{
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    struct pinfold_storage *storage = NULL;

    int r = pinfold_storage_memory_new(&storage, &err);

    (void)module, (void)unused;
    return made(r, storage, &err);
}

PyObject *pf_file_storage(PyObject *module, PyObject *directory)
{
    struct pf_call *call = pf_call_new(&pf_no_operation, NULL);
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    struct pinfold_storage *storage = NULL;
    PyObject *object = NULL;
    const char *path;
    int r;

    (void)module;
    if (!call)
        return NULL;
    path = pf_call_path(call, "artifact_dir", directory);
    if (path) {
        r = pinfold_storage_file_new(path, &storage, &err);
        object = made(r, storage, &err);
    }
    Py_DECREF(pf_call_object(call));
    return object;
}

/* (bucket, prefix, region, endpoint, profile, access_key, secret_key, session_token,
 * allow_plain_http, attempts, timeout); 0 or None: the default. */
PyObject *pf_s3_storage(PyObject *module, PyObject *args)
{
    struct pinfold_s3_options options = PINFOLD_S3_OPTIONS_INIT;
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    struct pinfold_storage *storage = NULL;
    int allow_plain_http, r;

    (void)module;
    if (!PyArg_ParseTuple(args, "szzzzzzzpId", &options.bucket, &options.prefix, &options.region,
                          &options.endpoint, &options.profile, &options.access_key,
                          &options.secret_key, &options.session_token, &allow_plain_http,
                          &options.attempts, &options.timeout_seconds))
        return NULL;
    options.allow_plain_http = allow_plain_http;
    r = pinfold_storage_s3_new(&options, &storage, &err);
    return made(r, storage, &err);
}

/* ---- written in Python ---- */

static int store(void *link, const char *key, const void *data, size_t len,
                 const char *content_type, char **ret_reference, struct pinfold_error *err)
{
    struct pf_guard guard;
    PyObject *answer;
    const char *text;
    int r = pf_enter(&guard, NULL, err);

    *ret_reference = NULL;
    if (r < 0)
        return r;
    answer = pf_link_call(link, Py_BuildValue("(sNy#s)", "store", pf_text_from(key),
                                              len ? data : "", (Py_ssize_t)len, content_type));
    text = answer ? PyUnicode_AsUTF8AndSize(answer, NULL) : NULL;
    if (text && !(*ret_reference = strdup(text)))
        PyErr_NoMemory();
    return pf_settle(&guard, answer, *ret_reference != NULL, "store", err);
}

static int copy_found(PyObject *answer, struct pinfold_bytes *ret_data, char **ret_type)
{
    const char *data, *type;
    char *copy, *type_copy;
    Py_ssize_t len;

    if (!PyArg_ParseTuple(answer, "y#s", &data, &len, &type))
        return -1;
    copy = malloc((size_t)len + 1);
    type_copy = strdup(type);
    if (!copy || !type_copy) {
        free(copy);
        free(type_copy);
        PyErr_NoMemory();
        return -1;
    }
    memcpy(copy, data, (size_t)len);
    copy[len] = '\0';
    *ret_data = (struct pinfold_bytes){ .data = copy, .len = (size_t)len };
    *ret_type = type_copy;
    return 0;
}

static int retrieve(void *link, const char *reference, struct pinfold_bytes *ret_data,
                    char **ret_content_type, struct pinfold_error *err)
{
    struct pf_guard guard;
    PyObject *answer;
    int r = pf_enter(&guard, NULL, err);

    if (r < 0)
        return r;
    answer = pf_link_call(link, Py_BuildValue("(sN)", "retrieve", pf_text_from(reference)));
    return pf_settle(&guard, answer, answer && copy_found(answer, ret_data, ret_content_type) == 0,
                     "retrieve", err);
}

static const struct pinfold_storage_ops ops = {
    .size = sizeof(struct pinfold_storage_ops),
    .store = store,
    .retrieve = retrieve,
    .free = pf_link_free,
};

struct pinfold_storage *pf_storage_from(struct pf_links *links, PyObject *given)
{
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    struct pinfold_storage *storage = NULL;
    struct pf_link *link;

    if (PyObject_TypeCheck(given, pf_storage_type))
        return pinfold_storage_ref(storage_of(given));
    link = pf_link_new(links, given);
    if (link && pinfold_storage_new(&ops, link, &storage, &err) < 0) {
        pf_link_free(link);
        pf_raise(&err, NULL);
    }
    return storage;
}

/* ---- policies ---- */

void pf_policy_done(struct pinfold_offload_policy *policy)
{
    pinfold_storage_unref(policy->storage);
    pf_strv_done((char **)(uintptr_t)policy->tool_names);
}

int pf_policy_from(struct pf_links *links, PyObject *given, struct pinfold_offload_policy *ret)
{
    PyObject *storage, *names;
    unsigned max, preview;
    int retrieval;

    *ret = (struct pinfold_offload_policy)PINFOLD_OFFLOAD_POLICY_INIT;
    if (!PyArg_ParseTuple(given, "OIIpO", &storage, &max, &preview, &retrieval, &names))
        return -1;
    ret->max_result_tokens = max;
    ret->preview_tokens = preview ? preview : PINFOLD_NO_PREVIEW;
    ret->no_retrieval_tool = !retrieval;
    ret->storage = pf_storage_from(links, storage);
    if (!ret->storage)
        return -1;
    if (names != Py_None && !(ret->tool_names = (const char *const *)pf_strv_to(names)))
        return -1;
    return 0;
}
