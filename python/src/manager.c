/* SPDX-License-Identifier: Apache-2.0 */
/* The Manager type: sessions by workspace id. */
#include "manager.h"

#include <string.h>
#include <unistd.h>

#include "backend.h"
#include "convert.h"
#include "errors.h"

PyTypeObject *pf_manager_type;

struct manager {
    PyObject_HEAD struct pinfold_manager *manager;
    int owner; /* process id */
};

struct pinfold_manager *pf_manager_of(PyObject *object)
{
    if (object == Py_None)
        return NULL;
    if (PyObject_TypeCheck(object, pf_manager_type))
        return ((struct manager *)object)->manager;
    PyErr_SetString(PyExc_TypeError, "manager: a SandboxManager is required");
    return NULL;
}

static void unref(void *manager)
{
    pinfold_manager_unref(manager);
}

/* The last reference closes what is still open, which can take long. */
static void manager_dealloc(PyObject *self)
{
    struct manager *manager = (struct manager *)self;

    if (manager->manager && manager->owner == getpid())
        pf_call_later(unref, manager->manager);
    pf_free_object(self);
}

static PyObject *manager_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    struct pinfold_manager_options options = PINFOLD_MANAGER_OPTIONS_INIT;
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    struct manager *self;

    (void)kwargs;
    if (!PyArg_ParseTuple(args, "d", &options.ttl_seconds))
        return NULL;
    options.audit.emit = pf_call_audit;
    self = (struct manager *)PyType_GenericAlloc(type, 0);
    if (!self)
        return NULL;
    self->owner = getpid();
    if (pinfold_manager_new(&options, &self->manager, &err) == 0)
        return (PyObject *)self;
    Py_DECREF((PyObject *)self);
    return pf_raise(&err, NULL);
}

/* ---- sessions ---- */

/* (session_id, backend, prepared, seed, owner_id, created_at, last_used_at); empties it. */
static PyObject *session_from(struct pinfold_session *session)
{
    PyObject *backend = pf_backend_wrap(pinfold_backend_ref(session->backend));
    PyObject *tuple = Py_BuildValue(
            "NNNNNdd", pf_path_from(session->session_id), backend,
            PyBool_FromLong(session->prepared),
            session->seed_result ? pf_seed_from(session->seed_result) : Py_BuildValue(""),
            pf_text_from(session->owner_id), session->created_at, session->last_used_at);

    pinfold_session_done(session);
    return tuple;
}

/* ---- factories: a callable of the package's, which gives a Backend ---- */

static int make(void *ctx, struct pinfold_backend **ret, struct pinfold_error *err)
{
    struct pf_guard guard;
    PyObject *made;

    if (pf_enter(&guard, NULL, err) < 0)
        return -PINFOLD_EBACKEND;
    made = PyObject_CallObject(ctx, NULL);
    if (made)
        *ret = pf_backend_adopt(made);
    return pf_settle(&guard, made, made && *ret, "backend factory", err);
}

struct session_args {
    struct pinfold_manager *manager;
    const char *id, *owner_id, *dest;
    double ttl_seconds;
    struct pinfold_backend_factory factory;
    struct pinfold_close_options options;
    struct pinfold_sync_policy policy;
    struct pinfold_session session;
    struct pinfold_strings ids;
};

static void done(void *ctx)
{
    struct session_args *args = ctx;

    pinfold_session_done(&args->session);
    pinfold_strings_done(&args->ids);
}

static struct pf_call *new_call(const struct pf_operation *operation, PyObject *self,
                                struct session_args **ret)
{
    struct pf_call *call = pf_call_new(operation, self);

    if (!call)
        return NULL;
    *ret = pf_call_args(call);
    (*ret)->manager = ((struct manager *)self)->manager;
    return call;
}

static int run_open(void *ctx, struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    struct session_args *args = ctx;

    if (!args->owner_id)
        return pinfold_manager_get_or_create(args->manager, args->id, &args->factory,
                                             &args->session, cancel, err);
    return pinfold_manager_claim_session(args->manager, args->id, &args->factory, args->owner_id,
                                         args->ttl_seconds, &args->session, cancel, err);
}

static PyObject *convert_session(void *ctx, int r)
{
    (void)r;
    return session_from(&((struct session_args *)ctx)->session);
}

static const struct pf_operation open_session = { "open_session", sizeof(struct session_args),
                                                  run_open,       convert_session,
                                                  NULL,           done };

/* (session_id, factory, owner_id or None, ttl_seconds) */
static PyObject *manager_open(PyObject *self, PyObject *given)
{
    struct session_args *args;
    struct pf_call *call = new_call(&open_session, self, &args);
    PyObject *id, *factory, *owner_id;
    bool ok = call &&
              PyArg_ParseTuple(given, "OOOd", &id, &factory, &owner_id, &args->ttl_seconds) &&
              (args->id = pf_call_text(call, "session_id", id)) &&
              pf_call_text_or_none(call, "owner_id", owner_id, &args->owner_id) == 0;

    if (ok) {
        Py_INCREF(factory);
        ok = pf_call_keep(call, factory) == 0;
        args->factory = (struct pinfold_backend_factory){ .make = make, .ctx = factory };
    }
    return pf_call_finish(call, ok);
}

static int run_close(void *ctx, struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    struct session_args *args = ctx;

    return pinfold_manager_close_session(args->manager, args->id, &args->options, cancel, err);
}

static const struct pf_operation close_session = { .name = "close_session",
                                                   .size = sizeof(struct session_args),
                                                   .run = run_close,
                                                   .done = done,
                                                   .ends = true };

/* (session_id, sync, dest or None, (excludes, includes) or None) */
static PyObject *manager_close(PyObject *self, PyObject *given)
{
    struct session_args *args;
    struct pf_call *call = new_call(&close_session, self, &args);
    PyObject *id, *flag, *dest, *pair, *excludes, *includes;
    int sync;

    if (!call)
        return NULL;
    args->options = (struct pinfold_close_options){ .size = sizeof(args->options) };
    if (!PyArg_ParseTuple(given, "OOOO", &id, &flag, &dest, &pair) ||
        !pf_flag_of("sync_artifacts", flag, &sync) ||
        !(args->id = pf_call_text(call, "session_id", id)) ||
        pf_call_path_or_none(call, "workspace_root", dest, &args->options.sync_dest) < 0)
        return pf_call_finish(call, false);
    args->options.skip_sync = !sync;
    if (pair == Py_None)
        return pf_call_finish(call, true);
    args->options.policy = &args->policy;
    return pf_call_finish(call, PyArg_ParseTuple(pair, "OO", &excludes, &includes) &&
                                        pf_call_strv(call, "exclude_patterns", excludes,
                                                     &args->policy.exclude_patterns) == 0 &&
                                        pf_call_strv(call, "sync_include_patterns", includes,
                                                     &args->policy.sync_include_patterns) == 0);
}

static int run_cleanup(void *ctx, struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    struct session_args *args = ctx;

    (void)cancel; /* what has expired is closed */
    return pinfold_manager_cleanup_expired(args->manager, &args->ids, err);
}

static PyObject *convert_ids(void *ctx, int r)
{
    (void)r;
    return pf_strings_from(&((struct session_args *)ctx)->ids);
}

static const struct pf_operation cleanup = { .name = "cleanup_expired",
                                             .size = sizeof(struct session_args),
                                             .run = run_cleanup,
                                             .convert = convert_ids,
                                             .done = done,
                                             .ends = true };

static PyObject *manager_cleanup(PyObject *self, PyObject *unused)
{
    struct session_args *args;
    struct pf_call *call = new_call(&cleanup, self, &args);

    (void)unused;
    return pf_call_finish(call, call != NULL);
}

/* ---- what does not wait ---- */

static PyObject *manager_get(PyObject *self, PyObject *arg)
{
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    struct pinfold_session session;
    const char *id = pf_text_of("session_id", arg);
    int r;

    if (!id)
        return NULL;
    r = pinfold_manager_get_session(((struct manager *)self)->manager, id, &session, &err);
    if (r < 0)
        return pf_raise(&err, NULL);
    if (r == 0)
        Py_RETURN_NONE;
    return session_from(&session);
}

/* (session_id, None or (files, bytes, skipped, errors)): marks it as prepared. */
static PyObject *manager_mark(PyObject *self, PyObject *args)
{
    struct pf_call *call = pf_call_new(&pf_no_operation, NULL);
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    struct pinfold_seed_result seed = { 0 };
    PyObject *tuple, *skipped, *errors;
    const char *id, *const *skips, *const *fails;
    unsigned long long files, bytes;
    int r = -1;

    if (!call)
        return NULL;
    if (PyArg_ParseTuple(args, "sO", &id, &tuple) &&
        (tuple == Py_None || (PyArg_ParseTuple(tuple, "KKOO", &files, &bytes, &skipped, &errors) &&
                              pf_call_strv(call, "skipped_paths", skipped, &skips) == 0 &&
                              pf_call_strv(call, "errors", errors, &fails) == 0))) {
        if (tuple != Py_None) {
            seed.files_seeded = files;
            seed.bytes_seeded = bytes;
            seed.skipped_paths.items = (char **)(uintptr_t)skips; /* only read */
            seed.skipped_paths.count = (size_t)PySequence_Size(skipped);
            seed.errors.items = (char **)(uintptr_t)fails;
            seed.errors.count = (size_t)PySequence_Size(errors);
        }
        r = pinfold_manager_mark_prepared(((struct manager *)self)->manager, id,
                                          tuple == Py_None ? NULL : &seed, &err);
        if (r < 0)
            pf_raise(&err, NULL);
    }
    Py_DECREF(pf_call_object(call));
    if (r < 0)
        return NULL;
    Py_RETURN_NONE;
}

/* (workspace id or None, session id or None, agent id or None) */
static PyObject *manager_resolve(PyObject *self, PyObject *args)
{
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    struct pinfold_agent_ids ids = { 0 };
    const char *id;

    if (!PyArg_ParseTuple(args, "zzz", &ids.sandbox_workspace_id, &ids.session_id, &ids.agent_id))
        return NULL;
    if (pinfold_manager_resolve_workspace_id(((struct manager *)self)->manager, &ids, &id, &err) <
        0)
        return pf_raise(&err, NULL);
    return pf_text_from(id);
}

static PyObject *get_id(PyObject *self, void *closure)
{
    (void)closure;
    return pf_text_from(pinfold_manager_id(((struct manager *)self)->manager));
}

static PyMethodDef methods[] = {
    { "open", manager_open, METH_VARARGS, NULL },
    { "close", manager_close, METH_VARARGS, NULL },
    { "cleanup_expired", manager_cleanup, METH_NOARGS, NULL },
    { "get_session", manager_get, METH_O, NULL },
    { "mark_prepared", manager_mark, METH_VARARGS, NULL },
    { "resolve", manager_resolve, METH_VARARGS, NULL },
    { 0 },
};

static PyGetSetDef getset[] = {
    { "id", get_id, NULL, NULL, NULL },
    { 0 },
};

static PyType_Slot slots[] = {
    { Py_tp_new, manager_new },
    { Py_tp_dealloc, manager_dealloc },
    { Py_tp_methods, methods },
    { Py_tp_getset, getset },
    { 0 },
};

static PyType_Spec spec = { .name = "_pinfold.Manager",
                            .basicsize = sizeof(struct manager),
                            .flags = Py_TPFLAGS_DEFAULT,
                            .slots = slots };

int pf_add_manager(PyObject *module)
{
    return pf_add_type(module, "Manager", &spec, &pf_manager_type);
}
