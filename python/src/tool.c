/* SPDX-License-Identifier: Apache-2.0 */
/* Tools: those of the library as Tool objects, and those written in Python. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "convert.h"
#include "equipment.h"
#include "errors.h"
#include "message.h"

PyTypeObject *pf_tool_type;

struct tool_object {
    PyObject_HEAD struct pinfold_tool *tool;
    PyObject *owner; /* what must live as long as the tool: who is asked for consent; may be NULL */
};

PyObject *pf_tool_wrap(struct pinfold_tool *tool)
{
    struct tool_object *self;

    if (!tool)
        Py_RETURN_NONE;
    self = PyObject_New(struct tool_object, pf_tool_type);
    if (!self) {
        pinfold_tool_unref(tool);
        return NULL;
    }
    self->tool = tool;
    self->owner = NULL;
    return (PyObject *)self;
}

static void tool_dealloc(PyObject *self)
{
    pinfold_tool_unref(((struct tool_object *)self)->tool);
    Py_XDECREF(((struct tool_object *)self)->owner);
    pf_free_object(self);
}

static PyObject *get_name(PyObject *self, void *closure)
{
    (void)closure;
    return pf_text_from(pinfold_tool_name(((struct tool_object *)self)->tool));
}

static PyObject *get_description(PyObject *self, void *closure)
{
    (void)closure;
    return pf_text_from(pinfold_tool_description(((struct tool_object *)self)->tool));
}

static PyObject *get_schema(PyObject *self, void *closure)
{
    (void)closure;
    return pf_text_from(pinfold_tool_input_schema(((struct tool_object *)self)->tool));
}

static PyGetSetDef getset[] = {
    { "name", get_name, NULL, NULL, NULL },
    { "description", get_description, NULL, NULL, NULL },
    { "schema", get_schema, NULL, NULL, NULL },
    { 0 },
};

static PyType_Slot slots[] = {
    { Py_tp_dealloc, tool_dealloc },
    { Py_tp_getset, getset },
    { 0 },
};

static PyType_Spec spec = { .name = "_pinfold.Tool",
                            .basicsize = sizeof(struct tool_object),
                            .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                            .slots = slots };

int pf_add_tool(PyObject *module)
{
    return pf_add_type(module, "Tool", &spec, &pf_tool_type);
}

/* ---- written in Python ---- */

static int run_tool(void *link, struct pinfold_tool_call *call, struct pinfold_tool_result *ret,
                    struct pinfold_error *err)
{
    struct pf_guard guard;
    PyObject *answer;
    const char *input;
    size_t len;
    int r = pf_enter(&guard, pinfold_tool_call_cancel_token(call), err);

    if (r < 0)
        return r;
    input = pinfold_tool_call_input(call, &len);
    answer = pf_link_call(link, Py_BuildValue("(NN)", pf_text_from(pinfold_tool_call_id(call)),
                                              pf_string_from(input, len)));
    if (!answer || pf_result_to(answer, ret) < 0)
        r = pf_take_exception(err, "tool");
    Py_XDECREF(answer);
    return pf_leave(&guard, r);
}

static struct pinfold_tool *make_tool(struct pf_links *links, PyObject *given)
{
    struct pinfold_tool_options options = PINFOLD_TOOL_OPTIONS_INIT;
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    struct pinfold_tool *tool = NULL;
    PyObject *target;

    if (!PyArg_ParseTuple(given, "sssO", &options.name, &options.description, &options.input_schema,
                          &target) ||
        !(options.ctx = pf_link_new(links, target)))
        return NULL;
    options.run = run_tool;
    options.free = pf_link_free;
    if (pinfold_tool_new(&options, &tool, &err) < 0) {
        pf_link_free(options.ctx);
        pf_raise(&err, NULL);
    }
    return tool;
}

struct pinfold_tool *pf_tool_from(struct pf_links *links, PyObject *given)
{
    struct tool_object *object = (struct tool_object *)given;

    if (!PyObject_TypeCheck(given, pf_tool_type))
        return make_tool(links, given);
    if (object->owner && pf_links_keep(links, object->owner) < 0)
        return NULL;
    return pinfold_tool_ref(object->tool);
}

/* ---- of the host ---- */

/* The answer is cut to what there is room for: it is a reason, or nothing like "y". */
static bool copy_answer(PyObject *answer, char *to, size_t size)
{
    const char *text = PyUnicode_AsUTF8AndSize(answer, NULL);

    if (text)
        snprintf(to, size, "%s", text);
    return text;
}

static bool ask(void *callable, const char *tool, const char *question, char *answer, size_t size)
{
    struct pinfold_error err;
    struct pf_guard guard;
    PyObject *given;
    bool answered = false;

    if (pf_enter(&guard, NULL, &err) < 0)
        return false;
    given = PyObject_CallFunction(callable, "NN", pf_text_from(tool), pf_text_from(question));
    if (given && given != Py_None)
        answered = copy_answer(given, answer, size);
    if (PyErr_Occurred())
        PyErr_WriteUnraisable(callable);
    Py_XDECREF(given);
    pf_leave(&guard, 0);
    return answered;
}

PyObject *pf_host_tools(PyObject *module, PyObject *callable)
{
    struct pinfold_host_tools_options options = PINFOLD_HOST_TOOLS_OPTIONS_INIT;
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    struct pinfold_tool *tools[PINFOLD_HOST_TOOLS];
    PyObject *list;

    (void)module;
    if (callable != Py_None) {
        options.ask = ask;
        options.ask_ctx = callable;
    }
    if (pinfold_host_tools_new(&options, tools, &err) < 0)
        return pf_raise(&err, NULL);
    list = PyList_New(0);
    for (size_t i = 0; i < PINFOLD_HOST_TOOLS; i++) {
        PyObject *tool = pf_tool_wrap(tools[i]);
        if (tool && callable != Py_None) {
            Py_INCREF(callable);
            ((struct tool_object *)tool)->owner = callable;
        }
        if (list && (!tool || PyList_Append(list, tool) < 0))
            Py_CLEAR(list);
        Py_XDECREF(tool);
    }
    return list;
}
