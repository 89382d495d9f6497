/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hooks written in Python. Each callback is an entry of its own with one function, so that the
 * library keeps their order, among the hooks of its own plugins too. The kinds, what their
 * callables get, and what they return:
 *   0  agent_initialized   ()
 *   1  before_invocation   ()
 *   2  after_invocation    (code) -> prompt to go on with, or None
 *   3  before_model_call   ()
 *   4  after_model_call    (reply or None, exception or None) -> whether to ask again
 *   5  message_added       (message)
 *   6  before_tool_call    (id, name, input, name of the tool or None, cancel or None)
 *                          -> None, or (cancel or None, input or None, tool or None)
 *   7  after_tool_call     (id, name, input, name of the tool or None, cancel or None, result)
 *                          -> (result or None, whether to call again)
 */
#include <stdlib.h>

#include "convert.h"
#include "equipment.h"
#include "errors.h"
#include "message.h"

/* Call a hook that changes nothing; takes over args. */
static int tell(void *link, struct pinfold_cancel *token, PyObject *(*make)(const void *),
                const void *event, struct pinfold_error *err)
{
    struct pf_guard guard;
    PyObject *answer;
    int r = pf_enter(&guard, token, err);

    if (r < 0)
        return r;
    answer = pf_link_call(link, make ? make(event) : PyTuple_New(0));
    return pf_settle(&guard, answer, true, "hook", err);
}

static int agent_initialized(void *link, struct pinfold_agent *agent, struct pinfold_error *err)
{
    struct pf_guard guard;
    int r = pf_enter(&guard, NULL, err);

    if (r < 0)
        return r;
    pf_link_introduce(link, agent);
    return pf_leave(&guard, tell(link, NULL, NULL, NULL, err));
}

static int before_invocation(void *link, struct pinfold_agent *agent, struct pinfold_cancel *cancel,
                             struct pinfold_error *err)
{
    (void)agent;
    return tell(link, cancel, NULL, NULL, err);
}

/* 0, or -1 with an exception. */
static int resume(struct pinfold_agent *agent, PyObject *prompt)
{
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    const char *text = PyUnicode_AsUTF8AndSize(prompt, NULL);

    if (!text)
        return -1;
    if (pinfold_after_invocation_resume(agent, text, &err) < 0) {
        pf_raise(&err, NULL);
        return -1;
    }
    return 0;
}

static int after_invocation(void *link, struct pinfold_agent *agent, int result,
                            struct pinfold_error *err)
{
    struct pf_guard guard;
    PyObject *answer;
    int r = pf_enter(&guard, NULL, err);

    if (r < 0)
        return r;
    answer = pf_link_call(link, Py_BuildValue("(i)", result));
    return pf_settle(&guard, answer, answer == Py_None || (answer && resume(agent, answer) == 0),
                     "hook", err);
}

static int before_model_call(void *link, struct pinfold_agent *agent, struct pinfold_error *err)
{
    (void)agent;
    return tell(link, NULL, NULL, NULL, err);
}

static PyObject *message_arguments(const void *message)
{
    return Py_BuildValue("(N)", pf_message_from(message));
}

static int message_added(void *link, struct pinfold_agent *agent,
                         const struct pinfold_message *message, struct pinfold_error *err)
{
    (void)agent;
    return tell(link, NULL, message_arguments, message, err);
}

static int after_model_call(void *link, struct pinfold_after_model_call *event,
                            struct pinfold_error *err)
{
    static const struct pinfold_error none;
    struct pf_guard guard;
    PyObject *answer;
    int r = pf_enter(&guard, NULL, err), retry;

    if (r < 0)
        return r;
    answer = pf_link_call(
            link,
            Py_BuildValue("(NN)", event->reply ? pf_reply_from(event->reply) : Py_BuildValue(""),
                          pf_exception_from(event->error ? event->error : &none)));
    retry = answer ? PyObject_IsTrue(answer) : -1;
    event->retry |= retry > 0;
    return pf_settle(&guard, answer, retry >= 0, "hook", err);
}

static PyObject *name_of(const struct pinfold_tool *tool)
{
    return pf_text_from(tool ? pinfold_tool_name(tool) : NULL);
}

/* What the callable said is done. 0, or -1 with an exception. */
static int change_call(const struct pf_link *link, PyObject *answer,
                       struct pinfold_before_tool_call *event)
{
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    const char *cancel, *input;
    struct pinfold_tool *tool;
    PyObject *selected;
    Py_ssize_t len;
    int r = 0;

    if (!PyArg_ParseTuple(answer, "zz#O", &cancel, &input, &len, &selected))
        return -1;
    if (cancel)
        r = pinfold_before_tool_call_cancel(event, cancel, &err);
    if (r == 0 && input)
        r = pinfold_before_tool_call_set_input(event, input, (size_t)len, &err);
    if (r < 0) {
        pf_raise(&err, NULL);
        return -1;
    }
    if (selected == Py_None)
        return 0;
    tool = pf_link_siblings(link) ? pf_tool_from(pf_link_siblings(link), selected) : NULL;
    if (tool)
        pinfold_before_tool_call_select(event, tool);
    pinfold_tool_unref(tool);
    return PyErr_Occurred() ? -1 : 0;
}

static int before_tool_call(void *link, struct pinfold_before_tool_call *event,
                            struct pinfold_error *err)
{
    struct pf_guard guard;
    PyObject *answer;
    int r = pf_enter(&guard, NULL, err);

    if (r < 0)
        return r;
    answer = pf_link_call(link, Py_BuildValue("(NNNNN)", pf_text_from(event->tool_use_id),
                                              pf_text_from(event->name),
                                              pf_string_from(event->input, event->input_len),
                                              name_of(event->tool), pf_text_from(event->cancel)));
    return pf_settle(&guard, answer,
                     answer == Py_None || (answer && change_call(link, answer, event) == 0), "hook",
                     err);
}

static int change_result(PyObject *answer, struct pinfold_after_tool_call *event)
{
    struct pinfold_tool_result result = { 0 };
    PyObject *given;
    int retry;

    if (!PyArg_ParseTuple(answer, "Op", &given, &retry))
        return -1;
    event->retry |= retry;
    if (given == Py_None)
        return 0;
    if (pf_result_to(given, &result) < 0) {
        pinfold_tool_result_done(&result);
        return -1;
    }
    pinfold_tool_result_done(event->result);
    *event->result = result;
    return 0;
}

static int after_tool_call(void *link, struct pinfold_after_tool_call *event,
                           struct pinfold_error *err)
{
    struct pf_guard guard;
    PyObject *answer;
    int r = pf_enter(&guard, event->token, err);

    if (r < 0)
        return r;
    answer = pf_link_call(link, Py_BuildValue("(NNNNNN)", pf_text_from(event->tool_use_id),
                                              pf_text_from(event->name),
                                              pf_string_from(event->input, event->input_len),
                                              name_of(event->tool), pf_text_from(event->cancel),
                                              pf_result_from(event->result)));
    return pf_settle(&guard, answer, answer && change_result(answer, event) == 0, "hook", err);
}

/* A table with one function for each kind. */
static const struct pinfold_hooks tables[] = {
    { .agent_initialized = agent_initialized }, { .before_invocation = before_invocation },
    { .after_invocation = after_invocation },   { .before_model_call = before_model_call },
    { .after_model_call = after_model_call },   { .message_added = message_added },
    { .before_tool_call = before_tool_call },   { .after_tool_call = after_tool_call },
};

int pf_hook_from(struct pf_links *links, PyObject *given, struct pinfold_hooks *ret)
{
    struct pf_link *link;
    PyObject *target;
    int kind;

    if (!PyArg_ParseTuple(given, "iO", &kind, &target))
        return -1;
    if (kind < 0 || (size_t)kind >= PF_COUNT(tables)) {
        PyErr_Format(PyExc_ValueError, "there is no kind %d of hook", kind);
        return -1;
    }
    link = pf_link_new(links, target);
    if (!link)
        return -1;
    *ret = tables[kind];
    ret->size = sizeof(*ret);
    ret->ctx = link;
    ret->free = pf_link_free;
    return 0;
}

/* ---- plugins ---- */

static struct pinfold_plugin *make_offloader(struct pf_links *links, PyObject *given)
{
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    struct pinfold_plugin *plugin = NULL;
    struct pinfold_offload_policy policy;

    if (pf_policy_from(links, given, &policy) == 0 &&
        pinfold_context_offloader_new(&policy, &plugin, &err) < 0)
        pf_raise(&err, NULL);
    pf_policy_done(&policy);
    return plugin;
}

static void unref_tools(struct pinfold_tool *const *tools, size_t count)
{
    for (size_t i = 0; i < count; i++)
        pinfold_tool_unref(tools[i]);
}

/* References to the tools of a list. -1 with an exception; *ret_count are there all the same. */
static int take_tools(struct pf_links *links, PyObject *list, struct pinfold_tool **tools,
                      size_t *ret_count)
{
    Py_ssize_t count = PyList_Size(list);

    for (Py_ssize_t i = 0; i < count; i++) {
        if (!(tools[i] = pf_tool_from(links, PyList_GetItem(list, i))))
            return -1;
        *ret_count = (size_t)i + 1;
    }
    return count < 0 ? -1 : 0;
}

static struct pinfold_plugin *make_plugin(struct pf_links *links, PyObject *given)
{
    struct pinfold_plugin_options options = PINFOLD_PLUGIN_OPTIONS_INIT;
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    struct pinfold_plugin *plugin = NULL;
    struct pinfold_tool **tools;
    PyObject *target, *list;

    if (!PyArg_ParseTuple(given, "sO!O", &options.name, &PyList_Type, &list, &target))
        return NULL;
    tools = calloc((size_t)PyList_Size(list) + 1, sizeof(struct pinfold_tool *));
    if (!tools) {
        PyErr_NoMemory();
    } else if (take_tools(links, list, tools, &options.tool_count) == 0 &&
               (options.ctx = pf_link_new(links, target))) {
        options.tools = tools;
        options.init_agent = agent_initialized; /* both only call their target */
        options.free = pf_link_free;
        if (pinfold_plugin_new(&options, &plugin, &err) < 0) {
            pf_link_free(options.ctx);
            pf_raise(&err, NULL);
        }
    }
    if (tools)
        unref_tools(tools, options.tool_count);
    free(tools);
    return plugin;
}

static struct pinfold_plugin *make_sandbox_plugin(void)
{
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    struct pinfold_plugin *plugin = NULL;

    if (pinfold_sandbox_plugin_new(&plugin, &err) < 0)
        pf_raise(&err, NULL);
    return plugin;
}

struct pinfold_plugin *pf_plugin_from(struct pf_links *links, PyObject *given)
{
    if (PyUnicode_Check(given))
        return make_sandbox_plugin();
    return PyTuple_Size(given) == 3 ? make_plugin(links, given) : make_offloader(links, given);
}
