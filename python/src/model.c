/* SPDX-License-Identifier: Apache-2.0 */
/* The Model type: the providers of the library. */
#include <stdlib.h>

#include "call.h"
#include "convert.h"
#include "equipment.h"
#include "errors.h"

PyTypeObject *pf_model_type;

struct model_object {
    PyObject_HEAD struct pinfold_model *model;
};

static void model_dealloc(PyObject *self)
{
    pinfold_model_unref(((struct model_object *)self)->model);
    pf_free_object(self);
}

static PyObject *get_provider(PyObject *self, void *closure)
{
    (void)closure;
    return pf_text_from(pinfold_model_provider(((struct model_object *)self)->model));
}

static PyObject *get_name(PyObject *self, void *closure)
{
    (void)closure;
    return pf_text_from(pinfold_model_name(((struct model_object *)self)->model));
}

static PyGetSetDef getset[] = {
    { "provider", get_provider, NULL, NULL, NULL },
    { "name", get_name, NULL, NULL, NULL },
    { 0 },
};

static PyType_Slot slots[] = {
    { Py_tp_dealloc, model_dealloc },
    { Py_tp_getset, getset },
    { 0 },
};

static PyType_Spec spec = { .name = "_pinfold.Model",
                            .basicsize = sizeof(struct model_object),
                            .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                            .slots = slots };

int pf_add_model(PyObject *module)
{
    return pf_add_type(module, "Model", &spec, &pf_model_type);
}

/* What a constructor returned, as an object; takes over the model. */
static PyObject *made(int r, struct pinfold_model *model, const struct pinfold_error *err)
{
    struct model_object *self;

    if (r < 0)
        return pf_raise(err, NULL);
    self = PyObject_New(struct model_object, pf_model_type);
    if (self)
        self->model = model;
    else
        pinfold_model_unref(model);
    return (PyObject *)self;
}

/* (spec, base_url, api_key, allow_plain_http, max_tokens, temperature or None, extra, connect, idle
 * and whole timeout, attempts, backoff, max_reply_bytes, send_reasoning, region, profile,
 * access_key, secret_key, session_token); 0 or None: the default. */
PyObject *pf_model_open(PyObject *module, PyObject *args)
{
    struct pinfold_model_options options = PINFOLD_MODEL_OPTIONS_INIT;
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    struct pinfold_model *model = NULL;
    Py_ssize_t max_reply_bytes;
    int allow_plain_http, send_reasoning, r;
    PyObject *temperature;
    const char *which;
    double degrees;

    (void)module;
    if (!PyArg_ParseTuple(args, "szzpIOzdddIdnpzzzzz", &which, &options.base_url, &options.api_key,
                          &allow_plain_http, &options.max_tokens, &temperature, &options.extra,
                          &options.connect_timeout_seconds, &options.idle_timeout_seconds,
                          &options.timeout_seconds, &options.attempts, &options.backoff_seconds,
                          &max_reply_bytes, &send_reasoning, &options.region, &options.profile,
                          &options.access_key, &options.secret_key, &options.session_token))
        return NULL;
    if (temperature != Py_None) {
        degrees = PyFloat_AsDouble(temperature);
        if (PyErr_Occurred())
            return NULL;
        options.temperature = &degrees;
    }
    options.allow_plain_http = allow_plain_http;
    options.send_reasoning = send_reasoning;
    options.max_reply_bytes = (size_t)max_reply_bytes;
    Py_BEGIN_ALLOW_THREADS
    r = pinfold_model_open(which, &options, &model, &err);
    Py_END_ALLOW_THREADS
    return made(r, model, &err);
}

/* A script of JSON, as bytes. */
PyObject *pf_model_script(PyObject *module, PyObject *json)
{
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    struct pinfold_model *model = NULL;
    Py_ssize_t len;
    char *text;
    int r;

    (void)module;
    if (PyBytes_AsStringAndSize(json, &text, &len) < 0)
        return NULL;
    r = pinfold_model_scripted_from_memory(text, (size_t)len, &model, &err);
    return made(r, model, &err);
}

struct pinfold_model *pf_model_from(struct pf_links *links, PyObject *given)
{
    if (PyObject_TypeCheck(given, pf_model_type))
        return pinfold_model_ref(((struct model_object *)given)->model);
    return pf_model_python(links, given);
}
