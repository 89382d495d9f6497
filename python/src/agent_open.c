/* SPDX-License-Identifier: Apache-2.0 */
/* Making an agent of what the package gives. */
#include "agent.h"

#include <stdlib.h>
#include <string.h>

#include "backend.h"
#include "call.h"
#include "convert.h"
#include "equipment.h"
#include "errors.h"
#include "manager.h"
#include "sandbox.h"

/* What the library is given, and what is given back afterwards. */
struct opening {
    struct pf_links *links;
    struct pf_call *call; /* has the memory of texts */
    struct pinfold_agent_config config;
    struct pinfold_sync_policy sync;
    struct pinfold_offload_policy offload;
    struct pinfold_tool **tools;
    struct pinfold_plugin **plugins;
    struct pinfold_hooks *hooks;
    const struct pinfold_hooks **hook_pointers;
};

/* ---- vectors of strings ---- */

void pf_strv_done(char **strings)
{
    for (size_t i = 0; strings && strings[i]; i++)
        free(strings[i]);
    free(strings);
}

char **pf_strv_to(PyObject *list)
{
    Py_ssize_t count = PyList_Size(list);
    char **strings = count < 0 ? NULL : calloc((size_t)count + 1, sizeof(char *));

    if (!strings && count >= 0)
        PyErr_NoMemory();
    for (Py_ssize_t i = 0; strings && i < count; i++) {
        const char *text = PyUnicode_AsUTF8AndSize(PyList_GetItem(list, i), NULL);
        if (text && !(strings[i] = strdup(text)))
            PyErr_NoMemory();
        if (!strings[i]) {
            pf_strv_done(strings);
            return NULL;
        }
    }
    return strings;
}

/* ---- equipment ---- */

/* Memory for as many pointers as the list has items, and one more. */
static void *room(PyObject *list, size_t size)
{
    Py_ssize_t count = PyList_Size(list);
    void *memory = count < 0 ? NULL : calloc((size_t)count + 1, size);

    if (!memory && count >= 0)
        PyErr_NoMemory();
    return memory;
}

static int take_tools(struct opening *opening, PyObject *list)
{
    opening->tools = room(list, sizeof(struct pinfold_tool *));
    for (Py_ssize_t i = 0; opening->tools && i < PyList_Size(list); i++) {
        opening->tools[i] = pf_tool_from(opening->links, PyList_GetItem(list, i));
        if (!opening->tools[i])
            return -1;
        opening->config.tool_count++;
    }
    opening->config.tools = opening->tools;
    return opening->tools ? 0 : -1;
}

static int take_plugins(struct opening *opening, PyObject *list)
{
    opening->plugins = room(list, sizeof(struct pinfold_plugin *));
    for (Py_ssize_t i = 0; opening->plugins && i < PyList_Size(list); i++) {
        opening->plugins[i] = pf_plugin_from(opening->links, PyList_GetItem(list, i));
        if (!opening->plugins[i])
            return -1;
        opening->config.plugin_count++;
    }
    opening->config.plugins = opening->plugins;
    return opening->plugins ? 0 : -1;
}

static int take_hooks(struct opening *opening, PyObject *list)
{
    opening->hooks = room(list, sizeof(*opening->hooks));
    opening->hook_pointers = opening->hooks ? room(list, sizeof(struct pinfold_hooks *)) : NULL;
    for (Py_ssize_t i = 0; opening->hook_pointers && i < PyList_Size(list); i++) {
        if (pf_hook_from(opening->links, PyList_GetItem(list, i), &opening->hooks[i]) < 0)
            return -1;
        opening->hook_pointers[i] = &opening->hooks[i];
        opening->config.hook_count++;
    }
    opening->config.hooks = opening->hook_pointers;
    return opening->hook_pointers ? 0 : -1;
}

static void done(struct opening *opening, bool opened)
{
    for (size_t i = 0; i < opening->config.tool_count; i++)
        pinfold_tool_unref(opening->tools[i]);
    for (size_t i = 0; i < opening->config.plugin_count; i++)
        pinfold_plugin_unref(opening->plugins[i]);
    for (size_t i = 0; !opened && i < opening->config.hook_count; i++)
        pf_link_free(opening->hooks[i].ctx);
    free(opening->tools);
    free(opening->plugins);
    free(opening->hooks);
    free(opening->hook_pointers);
    pinfold_model_unref(opening->config.model);
    pf_policy_done(&opening->offload);
    Py_DECREF(pf_call_object(opening->call));
}

/* ---- events ---- */

static int on_event(void *ctx, const struct pinfold_model_event *event)
{
    static const struct pinfold_error none;
    struct pf_agent_object *self = ctx;
    struct pinfold_error err;
    struct pf_guard guard;
    PyObject *answer;

    if (!__atomic_load_n(&self->listening, __ATOMIC_RELAXED) || pf_enter(&guard, NULL, &err) < 0)
        return 0;
    answer = PyObject_CallFunction(self->on_event, "iNNNNId", (int)event->kind,
                                   PyUnicode_DecodeUTF8(event->text ? event->text : "",
                                                        (Py_ssize_t)event->text_len, "replace"),
                                   pf_text_from(event->tool ? event->tool->id : NULL),
                                   pf_text_from(event->tool ? event->tool->name : NULL),
                                   pf_exception_from(event->error ? event->error : &none),
                                   event->attempt, event->delay_seconds);
    if (!answer)
        pf_take_exception(&err, "event");
    Py_XDECREF(answer);
    return pf_leave(&guard, answer ? 0 : 1);
}

/* ---- arguments ---- */

struct given {
    PyObject *workspace_root, *model, *tools, *hooks, *plugins, *sandbox, *offload, *backend;
    PyObject *policy, *manager, *on_event, *agent_id, *name, *session_id, *workspace_id, *prompt;
    int read_only, mode;
};

static int parse(PyObject *args, PyObject *kwargs, struct given *given,
                 struct pinfold_agent_config *config)
{
    static const char *const names[] = { "agent_id",
                                         "name",
                                         "session_id",
                                         "workspace_id",
                                         "system_prompt",
                                         "model",
                                         "max_tokens",
                                         "max_turns",
                                         "max_parallel_tools",
                                         "on_event",
                                         "tools",
                                         "hooks",
                                         "plugins",
                                         "sandbox",
                                         "read_only",
                                         "mode",
                                         "offload",
                                         "backend",
                                         "workspace_root",
                                         "policy",
                                         "manager",
                                         NULL };

    return PyArg_ParseTupleAndKeywords(
                   args, kwargs, "OOOOOOIIIOO!O!O!OpiOOOOO", (char **)(uintptr_t)names,
                   &given->agent_id, &given->name, &given->session_id, &given->workspace_id,
                   &given->prompt, &given->model, &config->max_tokens, &config->max_turns,
                   &config->max_parallel_tools, &given->on_event, &PyList_Type, &given->tools,
                   &PyList_Type, &given->hooks, &PyList_Type, &given->plugins, &given->sandbox,
                   &given->read_only, &given->mode, &given->offload, &given->backend,
                   &given->workspace_root, &given->policy, &given->manager)
                   ? 0
                   : -1;
}

static int take_texts(struct opening *opening, const struct given *given)
{
    struct pinfold_agent_config *config = &opening->config;
    PyObject *excludes, *includes;

    if (pf_call_text_or_none(opening->call, "agent_id", given->agent_id, &config->agent_id) < 0 ||
        pf_call_text_or_none(opening->call, "name", given->name, &config->name) < 0 ||
        pf_call_text_or_none(opening->call, "session_id", given->session_id, &config->session_id) <
                0 ||
        pf_call_text_or_none(opening->call, "workspace_id", given->workspace_id,
                             &config->workspace_id) < 0 ||
        pf_call_text_or_none(opening->call, "system_prompt", given->prompt,
                             &config->system_prompt) < 0 ||
        pf_call_path_or_none(opening->call, "workspace_root", given->workspace_root,
                             &config->workspace_root) < 0)
        return -1;
    if (given->policy == Py_None)
        return 0;
    config->workspace_sync_policy = &opening->sync;
    return PyArg_ParseTuple(given->policy, "OO", &excludes, &includes) &&
                           pf_call_strv(opening->call, "exclude_patterns", excludes,
                                        &opening->sync.exclude_patterns) == 0 &&
                           pf_call_strv(opening->call, "sync_include_patterns", includes,
                                        &opening->sync.sync_include_patterns) == 0
                   ? 0
                   : -1;
}

static int take_handles(struct opening *opening, const struct given *given)
{
    struct pinfold_agent_config *config = &opening->config;

    if (given->sandbox != Py_None) {
        if (!PyObject_TypeCheck(given->sandbox, pf_sandbox_type)) {
            PyErr_SetString(PyExc_TypeError, "sandbox: a Sandbox is required");
            return -1;
        }
        config->sandbox = pf_sandbox_of(given->sandbox);
    }
    if (given->backend != Py_None) {
        if (!PyObject_TypeCheck(given->backend, pf_backend_type)) {
            PyErr_SetString(PyExc_TypeError, "backend: a Backend is required");
            return -1;
        }
        config->execution_backend = ((struct pf_backend_object *)given->backend)->backend;
    }
    config->sandbox_manager = pf_manager_of(given->manager);
    config->sandbox_attach_mode = given->read_only ? PINFOLD_READ_ONLY : PINFOLD_READ_WRITE;
    config->sandbox_mode = (enum pinfold_sandbox_mode)given->mode;
    return PyErr_Occurred() ? -1 : 0;
}

static int take_equipment(struct opening *opening, const struct given *given)
{
    if (given->model != Py_None &&
        !(opening->config.model = pf_model_from(opening->links, given->model)))
        return -1;
    if (given->offload != Py_None) {
        if (pf_policy_from(opening->links, given->offload, &opening->offload) < 0)
            return -1;
        opening->config.sandbox_output_offload = &opening->offload;
    }
    return take_tools(opening, given->tools) < 0 || take_hooks(opening, given->hooks) < 0 ||
                           take_plugins(opening, given->plugins) < 0
                   ? -1
                   : 0;
}

static int make(struct pf_agent_object *self, const struct opening *opening)
{
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    struct pinfold_agent *agent = NULL;
    int r;

    Py_BEGIN_ALLOW_THREADS
    r = pinfold_agent_new(&opening->config, &agent, &err);
    Py_END_ALLOW_THREADS
    self->agent = agent; /* NULL on failure, whatever plugins have been shown meanwhile */
    if (r < 0)
        pf_raise(&err, NULL);
    else if (opening->config.execution_backend && !opening->config.sandbox_manager)
        pf_backend_own(opening->config.execution_backend, &self->backends);
    return r;
}

PyObject *pf_agent_open(PyObject *object, PyObject *args, PyObject *kwargs)
{
    struct pf_agent_object *self = (struct pf_agent_object *)object;
    struct opening opening = { .links = &self->links,
                               .config = PINFOLD_AGENT_CONFIG_INIT,
                               .call = pf_call_new(&pf_no_operation, NULL) };
    struct given given;
    int r = -1;

    if (!opening.call)
        return NULL;
    if (self->agent || self->on_event)
        PyErr_SetString(PyExc_RuntimeError, "an agent is made once");
    else if (parse(args, kwargs, &given, &opening.config) == 0 &&
             take_texts(&opening, &given) == 0 && take_handles(&opening, &given) == 0 &&
             take_equipment(&opening, &given) == 0) {
        Py_INCREF(given.on_event);
        self->on_event = given.on_event;
        opening.config.on_event = on_event;
        opening.config.on_event_ctx = self;
        r = make(self, &opening);
    }
    done(&opening, r == 0);
    if (r < 0)
        return NULL;
    Py_RETURN_NONE;
}

/* (sandbox or None, mode, agent_id or None, session_id or None): what a configuration may not be.
 */
PyObject *pf_check_agent_config(PyObject *module, PyObject *args)
{
    struct pinfold_agent_config config = PINFOLD_AGENT_CONFIG_INIT;
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    struct opening opening = { .call = pf_call_new(&pf_no_operation, NULL) };
    struct given given = { .backend = Py_None, .manager = Py_None };
    int r = -1;

    (void)module;
    if (!opening.call)
        return NULL;
    if (PyArg_ParseTuple(args, "OiOO", &given.sandbox, &given.mode, &given.agent_id,
                         &given.session_id) &&
        take_handles(&opening, &given) == 0 &&
        pf_call_text_or_none(opening.call, "agent_id", given.agent_id, &config.agent_id) == 0 &&
        pf_call_text_or_none(opening.call, "session_id", given.session_id, &config.session_id) ==
                0) {
        config.sandbox = opening.config.sandbox;
        config.sandbox_mode = opening.config.sandbox_mode;
        r = pinfold_agent_config_check(&config, &err);
        if (r < 0)
            pf_raise(&err, NULL);
    }
    Py_DECREF(pf_call_object(opening.call));
    if (r < 0)
        return NULL;
    Py_RETURN_NONE;
}
