/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Agent type. Agents lead to tools and hooks, which lead back to their agent: objects of this
 * type take part in garbage collection, and show it what the library holds for them (link.h).
 */
#include "agent.h"

#include <stdlib.h>
#include <unistd.h>

#include "call.h"
#include "convert.h"
#include "equipment.h"
#include "errors.h"
#include "message.h"
#include "sandbox.h"

PyTypeObject *pf_agent_type;

static struct pf_agent_object *object(PyObject *self)
{
    return (struct pf_agent_object *)self;
}

struct pinfold_agent *pf_agent_of(PyObject *self)
{
    if (!object(self)->agent)
        PyErr_SetString(PyExc_RuntimeError, "the agent was not made");
    return object(self)->agent;
}

/* ---- life ---- */

static PyObject *agent_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *self = PyType_GenericAlloc(type, 0);

    (void)args, (void)kwargs;
    if (self) {
        object(self)->owner = getpid();
        object(self)->links.agent = &object(self)->agent;
    }
    return self;
}

static int agent_traverse(PyObject *self, visitproc visit, void *arg)
{
    int r;

    Py_VISIT(Py_TYPE(self));
    Py_VISIT(object(self)->on_event);
    r = pf_links_traverse(&object(self)->backends, visit, arg);
    return r ? r : pf_links_traverse(&object(self)->links, visit, arg);
}

/* Without the GIL. */
static void close_forgotten(void *arg)
{
    PyGILState_STATE gil;

    pinfold_close_sandbox_workspace(object(arg)->agent, false, NULL, NULL);
    if (pf_closing())
        return;
    gil = PyGILState_Ensure();
    Py_DECREF((PyObject *)arg);
    PyGILState_Release(gil);
}

/* As a sandbox's: a workspace of its own is closed while the cycle is whole, if its backend is
 * part of it. */
static void agent_finalize(PyObject *self)
{
    struct pinfold_agent *agent = object(self)->agent;
    PyObject *type, *value, *trace;
    bool prepared;

    if (!agent || !object(self)->backends.first || object(self)->owner != getpid() || pf_closing())
        return;
    PyErr_Fetch(&type, &value, &trace);
    Py_BEGIN_ALLOW_THREADS
    prepared = pinfold_workspace_is_prepared(agent);
    Py_END_ALLOW_THREADS
    if (prepared) {
        Py_INCREF(self);
        pf_call_later(close_forgotten, self);
    }
    PyErr_Restore(type, value, trace);
}

struct leaving {
    struct pinfold_agent *agent;
    PyObject *kept;
};

/* Without the GIL: it may have to wait for a workspace. */
static void free_agent(void *arg)
{
    struct leaving *leaving = arg;
    PyGILState_STATE gil;

    pinfold_agent_free(leaving->agent);
    if (leaving->kept && !pf_closing()) {
        gil = PyGILState_Ensure();
        Py_DECREF(leaving->kept);
        PyGILState_Release(gil);
    }
    free(leaving);
}

static int agent_clear(PyObject *self)
{
    struct leaving *leaving = calloc(1, sizeof(*leaving));

    if (leaving)
        *leaving = (struct leaving){ object(self)->agent, object(self)->links.kept };
    object(self)->agent = NULL;
    object(self)->links.kept = NULL;
    Py_CLEAR(object(self)->on_event);
    pf_links_clear(&object(self)->links);
    pf_links_release(&object(self)->backends); /* to be closed */
    if (leaving && object(self)->owner == getpid() && (leaving->agent || leaving->kept))
        pf_call_later(free_agent, leaving);
    else
        free(leaving);
    return 0;
}

static void agent_dealloc(PyObject *self)
{
    PyObject_GC_UnTrack(self);
    agent_clear(self);
    pf_free_object(self);
}

/* ---- properties ---- */

static PyObject *get_id(PyObject *self, void *closure)
{
    const struct pinfold_agent *agent = pf_agent_of(self);

    (void)closure;
    return agent ? pf_path_from(pinfold_agent_id(agent)) : NULL;
}

static PyObject *get_name(PyObject *self, void *closure)
{
    const struct pinfold_agent *agent = pf_agent_of(self);

    (void)closure;
    return agent ? pf_path_from(pinfold_agent_name(agent)) : NULL;
}

static PyObject *get_mode(PyObject *self, void *closure)
{
    struct pinfold_agent *agent = pf_agent_of(self);

    (void)closure;
    return agent ? PyLong_FromLong(pinfold_agent_mode(agent)) : NULL;
}

/* A property that is one question; closure points to the function. */
struct question {
    bool (*ask)(struct pinfold_agent *agent);
};

static struct question is_attached = { pinfold_agent_is_attached };
static struct question is_active = { pinfold_sandbox_is_active };
static struct question is_prepared = { pinfold_workspace_is_prepared };

static PyObject *get_answer(PyObject *self, void *closure)
{
    const struct question *question = closure;
    struct pinfold_agent *agent = pf_agent_of(self);
    bool answer;

    if (!agent)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    answer = question->ask(agent);
    Py_END_ALLOW_THREADS
    return PyBool_FromLong(answer);
}

/* ---- tools, hooks, plugins ---- */

static PyObject *checked(int r, const struct pinfold_error *err)
{
    if (r < 0)
        return pf_raise(err, NULL);
    Py_RETURN_NONE;
}

static PyObject *agent_add_tool(PyObject *self, PyObject *given)
{
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    struct pinfold_agent *agent = pf_agent_of(self);
    struct pinfold_tool *tool = agent ? pf_tool_from(&object(self)->links, given) : NULL;
    int r;

    if (!tool)
        return NULL;
    r = pinfold_agent_add_tool(agent, tool, &err);
    pinfold_tool_unref(tool);
    return checked(r, &err);
}

static PyObject *agent_remove_tool(PyObject *self, PyObject *name)
{
    struct pinfold_agent *agent = pf_agent_of(self);
    const char *text = agent ? pf_text_of("name", name) : NULL;

    return text ? PyBool_FromLong(pinfold_agent_remove_tool(agent, text)) : NULL;
}

static PyObject *agent_get_tool(PyObject *self, PyObject *name)
{
    struct pinfold_agent *agent = pf_agent_of(self);
    const char *text = agent ? pf_text_of("name", name) : NULL;

    return text ? pf_tool_wrap(pinfold_agent_get_tool(agent, text), object(self)->links.kept)
                : NULL;
}

static PyObject *agent_tool_names(PyObject *self, PyObject *unused)
{
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    struct pinfold_agent *agent = pf_agent_of(self);
    struct pinfold_strings names;
    PyObject *list;

    (void)unused;
    if (!agent)
        return NULL;
    if (pinfold_agent_tool_names(agent, &names, &err) < 0)
        return pf_raise(&err, NULL);
    list = pf_strings_from(&names);
    pinfold_strings_done(&names);
    return list;
}

static PyObject *agent_add_hook(PyObject *self, PyObject *given)
{
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    struct pinfold_agent *agent = pf_agent_of(self);
    struct pinfold_hooks hooks;
    int r;

    if (!agent || pf_hook_from(&object(self)->links, given, &hooks) < 0)
        return NULL;
    r = pinfold_agent_add_hooks(agent, &hooks, &err);
    if (r < 0)
        pf_link_free(hooks.ctx);
    return checked(r, &err);
}

static PyObject *agent_add_plugin(PyObject *self, PyObject *given)
{
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    struct pinfold_agent *agent = pf_agent_of(self);
    struct pinfold_plugin *plugin = agent ? pf_plugin_from(&object(self)->links, given) : NULL;
    int r;

    if (!plugin)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    r = pinfold_agent_add_plugin(agent, plugin, &err);
    pinfold_plugin_unref(plugin);
    Py_END_ALLOW_THREADS
    return checked(r, &err);
}

static PyObject *agent_has_plugin(PyObject *self, PyObject *name)
{
    struct pinfold_agent *agent = pf_agent_of(self);
    const char *text = agent ? pf_text_of("name", name) : NULL;

    return text ? PyBool_FromLong(pinfold_agent_has_plugin(agent, text)) : NULL;
}

/* ---- the conversation ---- */

static PyObject *agent_messages(PyObject *self, PyObject *unused)
{
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    struct pinfold_agent *agent = pf_agent_of(self);
    struct pinfold_message *messages;
    PyObject *list;
    size_t count;
    int r;

    (void)unused;
    if (!agent)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    r = pinfold_agent_copy_messages(agent, &messages, &count, &err);
    Py_END_ALLOW_THREADS
    if (r < 0)
        return pf_raise(&err, NULL);
    list = pf_messages_from(messages, count);
    pf_messages_free(messages, count);
    return list;
}

static PyObject *agent_set_messages(PyObject *self, PyObject *list)
{
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    struct pinfold_agent *agent = pf_agent_of(self);
    struct pinfold_message *messages;
    size_t count;
    int r;

    if (!agent)
        return NULL;
    r = pf_messages_to(list, &messages, &count);
    if (r == 0 && (r = pinfold_agent_set_messages(agent, messages, count, &err)) < 0)
        pf_raise(&err, NULL);
    pf_messages_free(messages, count);
    if (r < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *agent_listen(PyObject *self, PyObject *arg)
{
    int listening = PyObject_IsTrue(arg);

    if (listening < 0)
        return NULL;
    __atomic_store_n(&object(self)->listening, listening, __ATOMIC_RELAXED);
    Py_RETURN_NONE;
}

static PyObject *agent_cancel(PyObject *self, PyObject *unused)
{
    struct pinfold_agent *agent = pf_agent_of(self);

    (void)unused;
    if (!agent)
        return NULL;
    pinfold_agent_cancel(agent);
    Py_RETURN_NONE;
}

/* ---- a shared workspace ---- */

static PyObject *agent_attach(PyObject *self, PyObject *args)
{
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    struct pinfold_agent *agent = pf_agent_of(self);
    struct pinfold_sandbox *sandbox;
    PyObject *given;
    int read_only, r;

    if (!agent || !PyArg_ParseTuple(args, "O!p", pf_sandbox_type, &given, &read_only) ||
        !(sandbox = pf_sandbox_of(given)))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    r = pinfold_agent_attach(agent, sandbox, read_only ? PINFOLD_READ_ONLY : PINFOLD_READ_WRITE,
                             &err);
    Py_END_ALLOW_THREADS
    return checked(r, &err);
}

/* From this sandbox only. */
static PyObject *agent_detach(PyObject *self, PyObject *given)
{
    struct pinfold_agent *agent = pf_agent_of(self);
    struct pinfold_sandbox *sandbox;

    if (!agent)
        return NULL;
    if (!PyObject_TypeCheck(given, pf_sandbox_type)) {
        PyErr_SetString(PyExc_TypeError, "detach: a Sandbox is required");
        return NULL;
    }
    sandbox = pf_sandbox_of(given);
    if (!sandbox)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    pinfold_sandbox_detach(sandbox, agent);
    Py_END_ALLOW_THREADS
    Py_RETURN_NONE;
}

static PyObject *agent_ensure_mutation(PyObject *self, PyObject *unused)
{
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    struct pinfold_agent *agent = pf_agent_of(self);

    (void)unused;
    return agent ? checked(pinfold_ensure_sandbox_mutation_allowed(agent, &err), &err) : NULL;
}

/* ---- the type ---- */

static PyMethodDef methods[] = {
    { "open", (PyCFunction)(void (*)(void))pf_agent_open, METH_VARARGS | METH_KEYWORDS, NULL },
    { "add_tool", agent_add_tool, METH_O, NULL },
    { "remove_tool", agent_remove_tool, METH_O, NULL },
    { "get_tool", agent_get_tool, METH_O, NULL },
    { "tool_names", agent_tool_names, METH_NOARGS, NULL },
    { "add_hook", agent_add_hook, METH_O, NULL },
    { "add_plugin", agent_add_plugin, METH_O, NULL },
    { "has_plugin", agent_has_plugin, METH_O, NULL },
    { "messages", agent_messages, METH_NOARGS, NULL },
    { "set_messages", agent_set_messages, METH_O, NULL },
    { "listen", agent_listen, METH_O, NULL },
    { "cancel", agent_cancel, METH_NOARGS, NULL },
    { "attach", agent_attach, METH_VARARGS, NULL },
    { "detach", agent_detach, METH_O, NULL },
    { "ensure_mutation", agent_ensure_mutation, METH_NOARGS, NULL },
    { "invoke", pf_agent_invoke, METH_O, NULL },
    { "call_tool", pf_agent_call_tool, METH_VARARGS, NULL },
    { "execute", pf_agent_execute, METH_VARARGS, NULL },
    { "run_command", pf_agent_run_command, METH_VARARGS, NULL },
    { "read_lines", pf_agent_read_lines, METH_VARARGS, NULL },
    { "write_file", pf_agent_write_file, METH_VARARGS, NULL },
    { "list_dir", pf_agent_list_dir, METH_O, NULL },
    { "prepare", pf_agent_prepare, METH_NOARGS, NULL },
    { "sync", pf_agent_sync, METH_NOARGS, NULL },
    { "close", pf_agent_close, METH_O, NULL },
    { 0 },
};

static PyGetSetDef getset[] = {
    { "id", get_id, NULL, NULL, NULL },
    { "name", get_name, NULL, NULL, NULL },
    { "mode", get_mode, NULL, NULL, NULL },
    { "is_attached", get_answer, NULL, NULL, &is_attached },
    { "is_active", get_answer, NULL, NULL, &is_active },
    { "is_prepared", get_answer, NULL, NULL, &is_prepared },
    { 0 },
};

static PyType_Slot slots[] = {
    { Py_tp_new, agent_new },           { Py_tp_dealloc, agent_dealloc },
    { Py_tp_traverse, agent_traverse }, { Py_tp_clear, agent_clear },
    { Py_tp_finalize, agent_finalize }, { Py_tp_methods, methods },
    { Py_tp_getset, getset },           { 0 },
};

static PyType_Spec spec = { .name = "_pinfold.Agent",
                            .basicsize = sizeof(struct pf_agent_object),
                            .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
                            .slots = slots };

int pf_add_agent(PyObject *module)
{
    return pf_add_type(module, "Agent", &spec, &pf_agent_type);
}
