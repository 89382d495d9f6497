/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Models written in Python: (name, callable), where the callable gets
 *   (system or None, [message], [(name, description or None, schema or None)], max_tokens,
 *    temperature or None, [stop sequence] or None)
 * and returns a reply.
 */
#include "convert.h"
#include "equipment.h"
#include "errors.h"
#include "message.h"

static PyObject *specs_from(const struct pinfold_model_request *request)
{
    PyObject *list = PyList_New((Py_ssize_t)request->tool_count);

    for (size_t i = 0; list && i < request->tool_count; i++) {
        const struct pinfold_tool_spec *spec = &request->tools[i];
        PyObject *tuple =
                Py_BuildValue("NNN", pf_text_from(spec->name), pf_text_from(spec->description),
                              pf_text_from(spec->schema));
        if (!tuple || PyList_SetItem(list, (Py_ssize_t)i, tuple) < 0)
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *arguments(const struct pinfold_model_request *request)
{
    PyObject *temperature =
            request->temperature ? PyFloat_FromDouble(*request->temperature) : Py_BuildValue("");
    PyObject *stops =
            request->stop_sequences ? pf_strv_from(request->stop_sequences) : Py_BuildValue("");

    return Py_BuildValue("(NNNINN)", pf_text_from(request->system),
                         pf_messages_from(request->messages, request->message_count),
                         specs_from(request), request->max_tokens, temperature, stops);
}

static int converse(void *link, const struct pinfold_model_request *request,
                    struct pinfold_model_reply *ret, struct pinfold_cancel *cancel,
                    struct pinfold_error *err)
{
    struct pf_guard guard;
    PyObject *answer;
    int r = pf_enter(&guard, cancel, err);

    if (r < 0)
        return r;
    answer = pf_link_call(link, arguments(request));
    return pf_settle(&guard, answer, answer && pf_reply_to(answer, ret) == 0, "model", err);
}

static const struct pinfold_model_ops ops = {
    .size = sizeof(struct pinfold_model_ops),
    .provider = "python",
    .converse = converse,
    .free = pf_link_free,
};

struct pinfold_model *pf_model_python(struct pf_links *links, PyObject *given)
{
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    struct pinfold_model *model = NULL;
    struct pf_link *link;
    PyObject *target;
    const char *name;

    if (!PyArg_ParseTuple(given, "sO", &name, &target) || !(link = pf_link_new(links, target)))
        return NULL;
    if (pinfold_model_new(&ops, link, name, &model, &err) < 0) {
        pf_link_free(link);
        pf_raise(&err, NULL);
    }
    return model;
}
