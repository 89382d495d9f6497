/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Backends written in Python: a table of functions that call the package's adapter of the object
 * (pinfold/_adapter.py), which sees to coroutines, defaults and the shapes of results. What comes
 * here are plain tuples. Each function runs on a thread of its call and takes the GIL for as long
 * as Python code runs.
 */
#include "backend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "convert.h"
#include "errors.h"
#include "link.h"

/* ---- calling ---- */

/* A command under way. */
struct command {
    struct pinfold_cancel *cancel;
    struct command *prev, *next;
};

struct state {
    struct pf_link *adapter;
    struct command *commands; /* under the GIL, which no fork catches in somebody else's hands */
    bool refuses;             /* commands, from their stop to the next create(): likewise */
    char key[32];             /* equal for two backends that are one object */
};

/* Call a method of the adapter; takes over args, which may be NULL with an exception. */
static PyObject *call_method(void *state, const char *name, PyObject *args)
{
    PyObject *adapter = pf_link_target(((struct state *)state)->adapter), *answer = NULL;
    PyObject *method = args ? PyObject_GetAttrString(adapter, name) : NULL;

    if (method)
        answer = PyObject_CallObject(method, args);
    Py_XDECREF(method);
    Py_XDECREF(args);
    return answer;
}

/* The same, when the answer does not matter; leaves. */
static int call_simply(struct pf_guard *guard, void *state, const char *name, PyObject *args,
                       struct pinfold_error *err)
{
    return pf_settle(guard, call_method(state, name, args), true, name, err);
}

/* ---- memory for C ---- */

static bool copy_bytes(const char *data, Py_ssize_t len, struct pinfold_bytes *ret)
{
    char *copy = malloc((size_t)len + 1);

    if (!copy) {
        PyErr_NoMemory();
        return false;
    }
    memcpy(copy, data, (size_t)len);
    copy[len] = '\0';
    *ret = (struct pinfold_bytes){ .data = copy, .len = (size_t)len };
    return true;
}

/* A str as its UTF-8, or as a path. */
static char *copy_text(PyObject *text, size_t *ret_len)
{
    PyObject *bytes = PyUnicode_AsEncodedString(text, "utf-8", "surrogateescape");
    struct pinfold_bytes copy = { 0 };
    Py_ssize_t len;
    char *data;

    if (bytes && PyBytes_AsStringAndSize(bytes, &data, &len) == 0 && copy_bytes(data, len, &copy) &&
        ret_len)
        *ret_len = copy.len;
    Py_XDECREF(bytes);
    return copy.data;
}

static bool copy_strings(PyObject *list, struct pinfold_strings *ret)
{
    Py_ssize_t count = PyList_Size(list);

    ret->items = calloc((size_t)count + 1, sizeof(*ret->items));
    if (count < 0 || !ret->items) {
        if (!PyErr_Occurred())
            PyErr_NoMemory();
        return false;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        ret->items[i] = copy_text(PyList_GetItem(list, i), NULL);
        if (!ret->items[i])
            return false;
        ret->count++;
    }
    return true;
}

/* ---- life ---- */

static int create(void *state, struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    struct pf_guard guard;
    int r = pf_enter(&guard, cancel, err);

    if (r < 0)
        return r;
    ((struct state *)state)->refuses = false;
    return call_simply(&guard, state, "create", PyTuple_New(0), err);
}

static int close_backend(void *state, struct pinfold_error *err)
{
    struct pinfold_error ignored = PINFOLD_ERROR_INIT;
    struct pf_guard guard;
    int r;

    err = err ? err : &ignored;
    r = pf_enter(&guard, NULL, err);
    return r < 0 ? r : call_simply(&guard, state, "close", PyTuple_New(0), err);
}

static int build_for_session(void *state, const char *workspace_id,
                             struct pinfold_backend **ret_backend, struct pinfold_error *err)
{
    struct pf_guard guard;
    PyObject *answer;
    int r = pf_enter(&guard, NULL, err);

    if (r < 0)
        return r;
    answer = call_method(state, "build_for_session",
                         Py_BuildValue("(N)", pf_path_from(workspace_id)));
    *ret_backend = answer ? pf_backend_adopt(answer) : NULL;
    if (*ret_backend)
        pf_backend_own(*ret_backend, pf_link_siblings(((struct state *)state)->adapter));
    return pf_settle(&guard, answer, *ret_backend != NULL, "build_for_session", err);
}

/* ---- files ---- */

static int read_file(void *state, const char *path, struct pinfold_bytes *ret,
                     struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    struct pf_guard guard;
    PyObject *answer;
    Py_ssize_t len;
    char *data;
    int r = pf_enter(&guard, cancel, err);

    if (r < 0)
        return r;
    answer = call_method(state, "read_file", Py_BuildValue("(N)", pf_path_from(path)));
    return pf_settle(&guard, answer,
                     answer && PyBytes_AsStringAndSize(answer, &data, &len) == 0 &&
                             copy_bytes(data, len, ret),
                     "read_file", err);
}

static int write_file(void *state, const char *path, const void *data, size_t len, bool exclusive,
                      struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    struct pf_guard guard;
    int r = pf_enter(&guard, cancel, err);

    if (r < 0)
        return r;
    return call_simply(&guard, state, "write_file",
                       Py_BuildValue("(Ny#N)", pf_path_from(path), len ? data : "", (Py_ssize_t)len,
                                     PyBool_FromLong(exclusive)),
                       err);
}

static int remove_file(void *state, const char *path, struct pinfold_cancel *cancel,
                       struct pinfold_error *err)
{
    struct pf_guard guard;
    int r = pf_enter(&guard, cancel, err);

    if (r < 0)
        return r;
    return call_simply(&guard, state, "remove_file", Py_BuildValue("(N)", pf_path_from(path)), err);
}

static int move_file(void *state, const char *src, const char *dest, struct pinfold_cancel *cancel,
                     struct pinfold_error *err)
{
    struct pf_guard guard;
    int r = pf_enter(&guard, cancel, err);

    if (r < 0)
        return r;
    return call_simply(&guard, state, "move_file",
                       Py_BuildValue("(NN)", pf_path_from(src), pf_path_from(dest)), err);
}

static bool copy_infos(PyObject *list, struct pinfold_file_infos *ret)
{
    Py_ssize_t count = PyList_Size(list);
    PyObject *path;
    long long size;
    int is_dir;

    if (count < 0)
        return false;
    ret->items = calloc((size_t)count + 1, sizeof(*ret->items));
    for (Py_ssize_t i = 0; ret->items && i < count; i++) {
        struct pinfold_file_info *info = &ret->items[i];
        if (!PyArg_ParseTuple(PyList_GetItem(list, i), "OpL", &path, &is_dir, &size) ||
            !(info->path = copy_text(path, NULL)))
            return false;
        info->is_dir = is_dir;
        info->size = size;
        ret->count++;
    }
    if (!ret->items)
        PyErr_NoMemory();
    return ret->items != NULL;
}

static int list_dir(void *state, const char *path, struct pinfold_file_infos *ret,
                    struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    struct pinfold_file_infos infos = { 0 };
    struct pf_guard guard;
    PyObject *answer;
    int r = pf_enter(&guard, cancel, err);

    if (r < 0)
        return r;
    answer = call_method(state, "list_dir", Py_BuildValue("(N)", pf_path_from(path)));
    r = pf_settle(&guard, answer, answer && copy_infos(answer, &infos), "list_dir", err);
    if (r == 0)
        *ret = infos;
    else
        pinfold_file_infos_done(&infos);
    return r;
}

/* ---- trees ---- */

/* The adapter cannot know what would be done. */
static int refuse_plan(struct pinfold_error *err)
{
    *err = (struct pinfold_error){ .code = PINFOLD_ENOTSUP,
                                   .msg = "a backend written in Python has no dry runs" };
    return -PINFOLD_ENOTSUP;
}

static int seed_workspace(void *state, const struct pinfold_seed_request *request,
                          struct pinfold_seed_result *ret, struct pinfold_cancel *cancel,
                          struct pinfold_error *err)
{
    unsigned long long files, bytes;
    PyObject *answer, *skipped, *errors;
    struct pf_guard guard;
    int r = request->plan ? refuse_plan(err) : pf_enter(&guard, cancel, err);

    if (r < 0)
        return r;
    answer = call_method(
            state, "seed_workspace",
            Py_BuildValue("(NN)", pf_path_from(request->source), pf_strv_from(request->exclude)));
    r = pf_settle(&guard, answer,
                  answer && PyArg_ParseTuple(answer, "KKOO", &files, &bytes, &skipped, &errors) &&
                          copy_strings(skipped, &ret->skipped_paths) &&
                          copy_strings(errors, &ret->errors),
                  "seed_workspace", err);
    if (r == 0) {
        ret->files_seeded = files;
        ret->bytes_seeded = bytes;
    }
    return r;
}

static int sync_artifacts(void *state, const struct pinfold_sync_request *request,
                          struct pinfold_sync_result *ret, struct pinfold_cancel *cancel,
                          struct pinfold_error *err)
{
    unsigned long long files, bytes;
    PyObject *answer, *errors;
    struct pf_guard guard;
    int r = request->plan ? refuse_plan(err) : pf_enter(&guard, cancel, err);

    if (r < 0)
        return r;
    answer = call_method(state, "sync_artifacts",
                         Py_BuildValue("(NNN)", pf_path_from(request->dest),
                                       pf_strv_from(request->include),
                                       pf_strv_from(request->exclude)));
    r = pf_settle(&guard, answer,
                  answer && PyArg_ParseTuple(answer, "KKO", &files, &bytes, &errors) &&
                          copy_strings(errors, &ret->errors),
                  "sync_artifacts", err);
    if (r == 0) {
        ret->files_synced = files;
        ret->bytes_synced = bytes;
    }
    return r;
}

/* ---- many files ---- */

/* (content or None, error or None, skipped); error is what the package's explain() makes of an
 * exception. */
static bool copy_transfer(PyObject *tuple, const char *path, struct pinfold_transfer_result *ret)
{
    PyObject *content, *error;
    Py_ssize_t len;
    int skipped;
    char *data;

    if (!PyArg_ParseTuple(tuple, "OOp", &content, &error, &skipped) || !(ret->path = strdup(path)))
        return false;
    ret->skipped = skipped;
    if (error != Py_None)
        return pf_parse_error(error, &ret->error);
    return content == Py_None || (PyBytes_AsStringAndSize(content, &data, &len) == 0 &&
                                  copy_bytes(data, len, &ret->content));
}

/* requests begin with their path, and are of this size. */
static bool copy_transfers(PyObject *list, const void *requests, size_t size, size_t count,
                           struct pinfold_transfer_results *ret)
{
    const char *path;

    if (PyList_Size(list) != (Py_ssize_t)count) {
        PyErr_SetString(PyExc_RuntimeError, "not one result for each file");
        return false;
    }
    ret->items = calloc(count + 1, sizeof(*ret->items));
    ret->count = ret->items ? count : 0;
    for (size_t i = 0; i < ret->count; i++) {
        memcpy(&path, (const char *)requests + i * size, sizeof(path));
        if (!copy_transfer(PyList_GetItem(list, (Py_ssize_t)i), path, &ret->items[i]))
            return false;
    }
    return ret->items != NULL;
}

/* Files that go one way. */
struct transfer {
    const char *name;
    PyObject *(*entry)(const void *request); /* what the adapter gets of one */
    const void *requests;                    /* begin with their path, and are of this size */
    size_t size, count;
    bool overwrite;
};

static PyObject *transfer_arguments(const struct transfer *transfer)
{
    PyObject *list = PyList_New((Py_ssize_t)transfer->count);

    for (size_t i = 0; list && i < transfer->count; i++) {
        PyObject *entry = transfer->entry((const char *)transfer->requests + i * transfer->size);
        if (!entry || PyList_SetItem(list, (Py_ssize_t)i, entry) < 0)
            Py_CLEAR(list);
    }
    return Py_BuildValue("(NN)", list, PyBool_FromLong(transfer->overwrite));
}

static int move_all(void *state, const struct transfer *transfer,
                    struct pinfold_transfer_results *ret, struct pinfold_cancel *cancel,
                    struct pinfold_error *err)
{
    struct pinfold_transfer_results results = { 0 };
    struct pf_guard guard;
    PyObject *answer;
    int r = pf_enter(&guard, cancel, err);

    if (r < 0)
        return r;
    answer = call_method(state, transfer->name, transfer_arguments(transfer));
    r = pf_settle(&guard, answer,
                  answer && copy_transfers(answer, transfer->requests, transfer->size,
                                           transfer->count, &results),
                  transfer->name, err);
    if (r == 0)
        *ret = results;
    else
        pinfold_transfer_results_done(&results);
    return r;
}

static PyObject *upload_entry(const void *request)
{
    const struct pinfold_upload *file = request;

    return Py_BuildValue("(Ny#N)", pf_path_from(file->path), file->data ? file->data : "",
                         (Py_ssize_t)file->len, pf_path_from(file->host_path));
}

static int upload_files(void *state, const struct pinfold_upload *files, size_t count,
                        bool overwrite, struct pinfold_transfer_results *ret,
                        struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    return move_all(state,
                    &(struct transfer){ "upload_files", upload_entry, files, sizeof(*files), count,
                                        overwrite },
                    ret, cancel, err);
}

static PyObject *download_entry(const void *request)
{
    const struct pinfold_download *file = request;

    return Py_BuildValue("(NN)", pf_path_from(file->path), pf_path_from(file->host_path));
}

static int download_files(void *state, const struct pinfold_download *files, size_t count,
                          bool overwrite, struct pinfold_transfer_results *ret,
                          struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    return move_all(state,
                    &(struct transfer){ "download_files", download_entry, files, sizeof(*files),
                                        count, overwrite },
                    ret, cancel, err);
}

/* ---- execute ---- */

static PyObject *execute_arguments(const struct pinfold_execute_options *options)
{
    size_t len = options->command_len ? options->command_len
                 : options->command   ? strlen(options->command)
                                      : 0;
    PyObject *command = options->argv ? pf_strv_from(options->argv)
                                      : PyUnicode_DecodeUTF8(options->command, (Py_ssize_t)len,
                                                             "surrogateescape");

    return Py_BuildValue("(NdNN)", command, options->timeout_seconds, pf_path_from(options->cwd),
                         pf_strv_from(options->env));
}

/* (stdout, stderr, output, exit_code, truncated, timed_out) */
static bool copy_executed(PyObject *answer, struct pinfold_execute_result *ret)
{
    PyObject *out, *err;
    int truncated, timed_out;

    if (!PyArg_ParseTuple(answer, "O!O!ipp", &PyUnicode_Type, &out, &PyUnicode_Type, &err,
                          &ret->exit_code, &truncated, &timed_out))
        return false;
    ret->truncated = truncated;
    ret->timed_out = timed_out;
    ret->output = copy_text(out, &ret->output_len);
    ret->stderr_text = copy_text(err, &ret->stderr_len);
    ret->stdout_len = ret->stdout_bytes = ret->output_len;
    ret->stderr_bytes = ret->stderr_len;
    return ret->output && ret->stderr_text;
}

static int execute(void *state, const struct pinfold_execute_options *options,
                   struct pinfold_execute_result *ret, struct pinfold_cancel *cancel,
                   struct pinfold_error *err)
{
    struct command command = { .cancel = cancel }, **commands = &((struct state *)state)->commands;
    struct pf_guard guard;
    PyObject *answer;
    int r = pf_enter(&guard, cancel, err);

    if (r < 0)
        return r;
    if (((struct state *)state)->refuses) {
        *err = (struct pinfold_error){ .code = PINFOLD_ECANCELLED,
                                       .msg = "execute: the sandbox is being stopped" };
        return pf_leave(&guard, -PINFOLD_ECANCELLED);
    }
    DL_APPEND(*commands, &command);
    answer = call_method(state, "execute", execute_arguments(options));
    DL_DELETE(*commands, &command);
    r = pf_settle(&guard, answer, answer && copy_executed(answer, ret), "execute", err);
    /* It has no stream; what it printed comes at once. */
    if (r == 0 && options->on_output && ret->output_len)
        options->on_output(options->on_output_ctx, PINFOLD_STDOUT, ret->output, ret->output_len);
    if (r == 0 && options->on_output && ret->stderr_len)
        options->on_output(options->on_output_ctx, PINFOLD_STDERR, ret->stderr_text,
                           ret->stderr_len);
    return r;
}

/* A coroutine is cancelled; a plain function has to end by itself, as when its caller cancels. */
static int stop_commands(void *state, struct pinfold_error *err)
{
    struct pinfold_error ignored = PINFOLD_ERROR_INIT;
    const struct command *command;
    struct pf_guard guard;
    int r = pf_enter(&guard, NULL, err ? err : &ignored);

    if (r < 0)
        return r;
    ((struct state *)state)->refuses = true;
    DL_FOREACH(((struct state *)state)->commands, command)
        pinfold_cancel_fire(command->cancel);
    return pf_leave(&guard, 0);
}

/* One object is one storage, whatever it is: two workspaces must not have it. */
static const char *storage_key(void *state)
{
    return ((struct state *)state)->key;
}

static void free_state(void *ctx)
{
    struct state *state = ctx;

    pf_link_free(state->adapter);
    free(state);
}

/* ---- making ---- */

/* Everything that a backend may have. One written in Python has what its object has. */
static const struct pinfold_backend_ops whole = {
    .size = sizeof(struct pinfold_backend_ops),
    .build_for_session = build_for_session,
    .create = create,
    .close = close_backend,
    .stop_commands = stop_commands,
    .read_file = read_file,
    .write_file = write_file,
    .list_dir = list_dir,
    .remove_file = remove_file,
    .move_file = move_file,
    .seed_workspace = seed_workspace,
    .sync_artifacts = sync_artifacts,
    .upload_files = upload_files,
    .download_files = download_files,
    .execute = execute,
    .storage_key = storage_key,
    .free = free_state,
};

enum {
    HAS_BUILD = 1,
    HAS_MOVE = 2,
    HAS_EXECUTE = 4,
};

/* The library borrows tables for ever, so there is one for each class and never freed. */
struct table {
    struct pinfold_backend_ops ops;
    unsigned has;
    struct table *next;
};

static struct table *tables; /* under the GIL */

static const struct pinfold_backend_ops *table_for(const char *type_name, unsigned has)
{
    struct table *table;

    for (table = tables; table; table = table->next)
        if (table->has == has && strcmp(table->ops.type_name, type_name) == 0)
            return &table->ops;
    table = calloc(1, sizeof(*table));
    if (!table || !(type_name = strdup(type_name))) {
        free(table);
        return NULL;
    }
    table->ops = whole;
    table->ops.type_name = type_name;
    if (!(has & HAS_BUILD))
        table->ops.build_for_session = NULL;
    if (!(has & HAS_MOVE))
        table->ops.move_file = NULL;
    if (!(has & HAS_EXECUTE))
        table->ops.execute = NULL;
    table->has = has;
    table->next = tables;
    tables = table;
    return &table->ops;
}

/* (adapter, object, type_name, id, template, moves, executes) */
PyObject *pf_python_backend(PyObject *module, PyObject *given)
{
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    const struct pinfold_backend_ops *ops;
    struct pinfold_backend *backend;
    int template, moves, executes;
    const char *type_name, *id;
    PyObject *adapter, *object;
    struct state *state;

    (void)module;
    if (!PyArg_ParseTuple(given, "OOszppp", &adapter, &object, &type_name, &id, &template, &moves,
                          &executes))
        return NULL;
    ops = table_for(type_name, (template ? HAS_BUILD : 0) | (moves ? HAS_MOVE : 0) |
                                       (executes ? HAS_EXECUTE : 0));
    state = ops ? calloc(1, sizeof(*state)) : NULL;
    if (!state)
        return PyErr_NoMemory();
    state->adapter = pf_link_new(NULL, adapter);
    if (!state->adapter) {
        free(state);
        return NULL;
    }
    snprintf(state->key, sizeof(state->key), "python %p", (void *)object);
    if (pinfold_backend_new(ops, state, id, &backend, &err) < 0) {
        free_state(state);
        return pf_raise(&err, NULL);
    }
    return pf_backend_wrap(backend);
}

static struct pf_link *link_of(const struct pinfold_backend *backend)
{
    if (pinfold_backend_get_ops(backend)->free != free_state)
        return NULL;
    return ((struct state *)pinfold_backend_get_state(backend))->adapter;
}

PyObject *pf_backend_python_object(const struct pinfold_backend *backend)
{
    const struct pf_link *link = link_of(backend);

    return link ? pf_link_target(link) : NULL;
}

void pf_backend_own(const struct pinfold_backend *backend, struct pf_links *owner)
{
    struct pf_link *link = link_of(backend);

    if (link && owner && !pf_link_siblings(link))
        pf_links_adopt(owner, link);
}
