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

PyObject *pf_tool_wrap(struct pinfold_tool *tool, PyObject *owner)
{
    struct tool_object *self;

    if (!tool)
        Py_RETURN_NONE;
    self = (struct tool_object *)PyType_GenericAlloc(pf_tool_type, 0);
    if (!self) {
        pinfold_tool_unref(tool);
        return NULL;
    }
    self->tool = tool;
    Py_XINCREF(owner);
    self->owner = owner;
    return (PyObject *)self;
}

static int tool_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(((struct tool_object *)self)->owner);
    return 0;
}

/* An agent that has the tool keeps the owner too. */
static int tool_clear(PyObject *self)
{
    struct tool_object *object = (struct tool_object *)self;
    struct pinfold_tool *tool = object->tool;

    object->tool = NULL;
    pinfold_tool_unref(tool);
    Py_CLEAR(object->owner);
    return 0;
}

static void tool_dealloc(PyObject *self)
{
    PyObject_GC_UnTrack(self);
    tool_clear(self);
    pf_free_object(self);
}

/* Borrowed; NULL with an exception. */
static struct pinfold_tool *tool_of(PyObject *self)
{
    struct pinfold_tool *tool = ((struct tool_object *)self)->tool;

    if (!tool)
        PyErr_SetString(PyExc_ReferenceError, "the tool is gone");
    return tool;
}

static PyObject *get_name(PyObject *self, void *closure)
{
    const struct pinfold_tool *tool = tool_of(self);

    (void)closure;
    return tool ? pf_text_from(pinfold_tool_name(tool)) : NULL;
}

static PyObject *get_description(PyObject *self, void *closure)
{
    const struct pinfold_tool *tool = tool_of(self);

    (void)closure;
    return tool ? pf_text_from(pinfold_tool_description(tool)) : NULL;
}

static PyObject *get_schema(PyObject *self, void *closure)
{
    const struct pinfold_tool *tool = tool_of(self);

    (void)closure;
    return tool ? pf_text_from(pinfold_tool_input_schema(tool)) : NULL;
}

static PyGetSetDef getset[] = {
    { "name", get_name, NULL, NULL, NULL },
    { "description", get_description, NULL, NULL, NULL },
    { "schema", get_schema, NULL, NULL, NULL },
    { 0 },
};

static PyType_Slot slots[] = {
    { Py_tp_dealloc, tool_dealloc },
    { Py_tp_traverse, tool_traverse },
    { Py_tp_clear, tool_clear },
    { Py_tp_getset, getset },
    { 0 },
};

static PyType_Spec spec = { .name = "_pinfold.Tool",
                            .basicsize = sizeof(struct tool_object),
                            .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC |
                                     Py_TPFLAGS_DISALLOW_INSTANTIATION,
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
    return pf_settle(&guard, answer, answer && pf_result_to(answer, ret) == 0, "tool", err);
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
    if (!tool_of(given) || (object->owner && pf_links_keep(links, object->owner) < 0))
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
        pf_tell_exception(callable);
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
        PyObject *tool = pf_tool_wrap(tools[i], callable == Py_None ? NULL : callable);
        if (list && (!tool || PyList_Append(list, tool) < 0))
            Py_CLEAR(list);
        Py_XDECREF(tool);
    }
    return list;
}
