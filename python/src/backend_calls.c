/* SPDX-License-Identifier: Apache-2.0 */
/* Calls on a backend itself, without a sandbox around it: the protocol that ExecutionBackend and
 * SandboxBackend are. */
#include "backend.h"

#include <stdlib.h>
#include <string.h>

#include "convert.h"
#include "errors.h"
#include "sandbox.h"

struct backend_args {
    struct pinfold_backend *backend;
    const char *path;
    char *normalised;
    const char *data;
    Py_ssize_t len;
    const char *const *include, *const *exclude;
    struct pinfold_upload upload;
    struct pinfold_download download;
    struct pinfold_bytes bytes;
    struct pinfold_file_infos infos;
    struct pinfold_seed_result seed;
    struct pinfold_sync_result sync;
    struct pinfold_transfer_results transfers;
    struct pinfold_execute_options options;
    struct pinfold_execute_result executed;
};

static void done(void *ctx)
{
    struct backend_args *args = ctx;

    free(args->normalised);
    pinfold_bytes_done(&args->bytes);
    pinfold_file_infos_done(&args->infos);
    pinfold_seed_result_done(&args->seed);
    pinfold_sync_result_done(&args->sync);
    pinfold_transfer_results_done(&args->transfers);
    pinfold_execute_result_done(&args->executed);
}

static struct pf_call *new_call(const struct pf_operation *operation, PyObject *self,
                                struct backend_args **ret)
{
    struct pf_call *call = pf_call_new(operation, self);

    if (!call)
        return NULL;
    *ret = pf_call_args(call);
    (*ret)->backend = ((struct pf_backend_object *)self)->backend;
    return call;
}

static int unsupported(const struct backend_args *args, const char *operation,
                       struct pinfold_error *err)
{
    *err = (struct pinfold_error){ .code = PINFOLD_ENOTSUP };
    snprintf(err->msg, sizeof(err->msg), "backend %s has no %s",
             pinfold_backend_get_ops(args->backend)->type_name, operation);
    return -PINFOLD_ENOTSUP;
}

/* Call an operation of the backend's table; not within an expression. */
#define CALL(args, operation, ...)                                                          \
    (pinfold_backend_get_ops((args)->backend)->operation                                    \
             ? pinfold_backend_get_ops((args)->backend)                                     \
                       ->operation(pinfold_backend_get_state((args)->backend), __VA_ARGS__) \
             : unsupported(args, #operation, err))

/* Operations get paths that are relative to the root and normalised. */
static int normalise(struct backend_args *args, const char *path, struct pinfold_error *err)
{
    const struct pinfold_backend_ops *ops = pinfold_backend_get_ops(args->backend);
    const char *root = ops->workspace_root
                               ? ops->workspace_root(pinfold_backend_get_state(args->backend))
                               : NULL;

    return pinfold_path_normalize(path, strlen(path), root, &args->normalised, err);
}

/* ---- life ---- */

static int run_create(void *ctx, struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    const struct backend_args *args = ctx;
    const struct pinfold_backend_ops *ops = pinfold_backend_get_ops(args->backend);

    return ops->create ? ops->create(pinfold_backend_get_state(args->backend), cancel, err) : 0;
}

static const struct pf_operation create = { "create",   sizeof(struct backend_args),
                                            run_create, NULL,
                                            NULL,       done };

static int run_close(void *ctx, struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    const struct backend_args *args = ctx;
    const struct pinfold_backend_ops *ops = pinfold_backend_get_ops(args->backend);

    (void)cancel; /* what is begun is finished */
    return ops->close ? ops->close(pinfold_backend_get_state(args->backend), err) : 0;
}

static const struct pf_operation close_backend = { .name = "close",
                                                   .size = sizeof(struct backend_args),
                                                   .run = run_close,
                                                   .done = done,
                                                   .ends = true };

static PyObject *make_create(PyObject *self, PyObject *unused)
{
    struct backend_args *args;

    (void)unused;
    return pf_call_object(new_call(&create, self, &args));
}

static PyObject *make_close(PyObject *self, PyObject *unused)
{
    struct backend_args *args;

    (void)unused;
    return pf_call_object(new_call(&close_backend, self, &args));
}

/* ---- files ---- */

static int run_read_file(void *ctx, struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    struct backend_args *args = ctx;
    int r = normalise(args, args->path, err);

    return r < 0 ? r : CALL(args, read_file, args->normalised, &args->bytes, cancel, err);
}

static PyObject *convert_bytes(void *ctx, int r)
{
    const struct backend_args *args = ctx;

    (void)r;
    return PyBytes_FromStringAndSize(args->bytes.data, (Py_ssize_t)args->bytes.len);
}

static const struct pf_operation read_file = { "read_file",   sizeof(struct backend_args),
                                               run_read_file, convert_bytes,
                                               NULL,          done };

static int run_list_dir(void *ctx, struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    struct backend_args *args = ctx;
    int r = normalise(args, *args->path ? args->path : ".", err);

    return r < 0 ? r : CALL(args, list_dir, args->normalised, &args->infos, cancel, err);
}

static PyObject *convert_infos(void *ctx, int r)
{
    (void)r;
    return pf_infos_from(&((struct backend_args *)ctx)->infos);
}

static const struct pf_operation list_dir = { "list_dir",   sizeof(struct backend_args),
                                              run_list_dir, convert_infos,
                                              NULL,         done };

static int run_remove_file(void *ctx, struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    struct backend_args *args = ctx;
    int r = normalise(args, args->path, err);

    return r < 0 ? r : CALL(args, remove_file, args->normalised, cancel, err);
}

static const struct pf_operation remove_file = {
    "remove_file", sizeof(struct backend_args), run_remove_file, NULL, NULL, done
};

static PyObject *make_with_path(const struct pf_operation *operation, PyObject *self,
                                const char *name, PyObject *path)
{
    struct backend_args *args;
    struct pf_call *call = new_call(operation, self, &args);

    return pf_call_finish(call, call && (args->path = pf_call_path(call, name, path)));
}

static PyObject *make_read_file(PyObject *self, PyObject *path)
{
    return make_with_path(&read_file, self, "path", path);
}

static PyObject *make_list_dir(PyObject *self, PyObject *path)
{
    return make_with_path(&list_dir, self, "path", path);
}

static PyObject *make_remove_file(PyObject *self, PyObject *path)
{
    return make_with_path(&remove_file, self, "path", path);
}

static int run_write_file(void *ctx, struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    struct backend_args *args = ctx;
    int r = normalise(args, args->path, err);

    return r < 0 ? r
                 : CALL(args, write_file, args->normalised, args->data, (size_t)args->len, false,
                        cancel, err);
}

static const struct pf_operation write_file = { "write_file",   sizeof(struct backend_args),
                                                run_write_file, NULL,
                                                NULL,           done };

static PyObject *make_write_file(PyObject *self, PyObject *given)
{
    struct backend_args *args;
    struct pf_call *call = new_call(&write_file, self, &args);
    PyObject *path, *data;

    return pf_call_finish(call,
                          call && PyArg_ParseTuple(given, "OO", &path, &data) &&
                                  (args->path = pf_call_path(call, "path", path)) &&
                                  (args->data = pf_call_data(call, "content", data, &args->len)));
}

/* ---- trees ---- */

static int run_seed(void *ctx, struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    struct backend_args *args = ctx;
    struct pinfold_seed_request request = { .size = sizeof(request),
                                            .source = args->path,
                                            .exclude = args->exclude };

    return CALL(args, seed_workspace, &request, &args->seed, cancel, err);
}

static PyObject *convert_seed(void *ctx, int r)
{
    (void)r;
    return pf_seed_from(&((struct backend_args *)ctx)->seed);
}

static const struct pf_operation seed = {
    "seed_workspace", sizeof(struct backend_args), run_seed, convert_seed, NULL, done
};

static PyObject *make_seed(PyObject *self, PyObject *given)
{
    struct backend_args *args;
    struct pf_call *call = new_call(&seed, self, &args);
    PyObject *source, *exclude;

    return pf_call_finish(call,
                          call && PyArg_ParseTuple(given, "OO", &source, &exclude) &&
                                  (args->path = pf_call_path(call, "source", source)) &&
                                  pf_call_strv(call, "exclude", exclude, &args->exclude) == 0);
}

static int run_sync(void *ctx, struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    struct backend_args *args = ctx;
    struct pinfold_sync_request request = { .size = sizeof(request),
                                            .dest = args->path,
                                            .include = args->include,
                                            .exclude = args->exclude };

    return CALL(args, sync_artifacts, &request, &args->sync, cancel, err);
}

static PyObject *convert_sync(void *ctx, int r)
{
    (void)r;
    return pf_sync_from(&((struct backend_args *)ctx)->sync);
}

static const struct pf_operation sync_artifacts = {
    "sync_artifacts", sizeof(struct backend_args), run_sync, convert_sync, NULL, done
};

static PyObject *make_sync(PyObject *self, PyObject *given)
{
    struct backend_args *args;
    struct pf_call *call = new_call(&sync_artifacts, self, &args);
    PyObject *dest, *include, *exclude;

    return pf_call_finish(call,
                          call && PyArg_ParseTuple(given, "OOO", &dest, &include, &exclude) &&
                                  (args->path = pf_call_path(call, "dest", dest)) &&
                                  pf_call_strv(call, "include", include, &args->include) == 0 &&
                                  pf_call_strv(call, "exclude", exclude, &args->exclude) == 0);
}

/* ---- one file each way; the package makes several ---- */

static int run_upload(void *ctx, struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    struct backend_args *args = ctx;
    int r = normalise(args, args->path, err);

    args->upload = (struct pinfold_upload){ .path = args->normalised,
                                            .data = args->data,
                                            .len = (size_t)args->len };
    return r < 0 ? r
                 : CALL(args, upload_files, &args->upload, 1, true, &args->transfers, cancel, err);
}

static PyObject *convert_transfers(void *ctx, int r)
{
    (void)r;
    return pf_transfers_from(&((struct backend_args *)ctx)->transfers, true);
}

static const struct pf_operation upload = { "upload_files", sizeof(struct backend_args),
                                            run_upload,     convert_transfers,
                                            NULL,           done };

static PyObject *make_upload(PyObject *self, PyObject *given)
{
    struct backend_args *args;
    struct pf_call *call = new_call(&upload, self, &args);
    PyObject *path, *data;

    return pf_call_finish(
            call, call && PyArg_ParseTuple(given, "OO", &path, &data) &&
                          (args->path = pf_call_path(call, "a path in files", path)) &&
                          (args->data = pf_call_data(call, "content in files", data, &args->len)));
}

static int run_download(void *ctx, struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    struct backend_args *args = ctx;
    int r = normalise(args, args->path, err);

    args->download = (struct pinfold_download){ .path = args->normalised };
    return r < 0 ? r
                 : CALL(args, download_files, &args->download, 1, true, &args->transfers, cancel,
                        err);
}

static const struct pf_operation download = {
    "download_files", sizeof(struct backend_args), run_download, convert_transfers, NULL, done
};

static PyObject *make_download(PyObject *self, PyObject *path)
{
    return make_with_path(&download, self, "a path in paths", path);
}

/* ---- execute ---- */

static int run_execute(void *ctx, struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    struct backend_args *args = ctx;
    int r = args->options.cwd ? normalise(args, args->options.cwd, err) : 0;

    if (args->normalised)
        args->options.cwd = args->normalised;
    return r < 0 ? r : CALL(args, execute, &args->options, &args->executed, cancel, err);
}

static PyObject *partial_execute(void *ctx)
{
    return pf_executed_from(&((struct backend_args *)ctx)->executed);
}

static PyObject *convert_execute(void *ctx, int r)
{
    (void)r;
    return partial_execute(ctx);
}

static const struct pf_operation execute = { "execute",       sizeof(struct backend_args),
                                             run_execute,     convert_execute,
                                             partial_execute, done };

static PyObject *make_execute(PyObject *self, PyObject *given)
{
    struct backend_args *args;
    struct pf_call *call = new_call(&execute, self, &args);

    return pf_call_finish(call, call && pf_parse_execute(call, given, &args->options) == 0);
}

/* ---- templates ---- */

static PyObject *build_for_session(PyObject *self, PyObject *arg)
{
    struct pinfold_backend *backend = ((struct pf_backend_object *)self)->backend, *built = NULL;
    const struct pinfold_backend_ops *ops = pinfold_backend_get_ops(backend);
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    const char *id = pf_text_of("workspace_id", arg);
    int r;

    if (!id)
        return NULL;
    if (!ops->build_for_session)
        return pf_raise_text(PINFOLD_ENOTSUP, "this backend is no template");
    Py_BEGIN_ALLOW_THREADS
    r = ops->build_for_session(pinfold_backend_get_state(backend), id, &built, &err);
    Py_END_ALLOW_THREADS
    return r < 0 ? pf_raise(&err, NULL) : pf_backend_wrap(built);
}

PyMethodDef pf_backend_methods[] = {
    { "create", make_create, METH_NOARGS, NULL },
    { "close", make_close, METH_NOARGS, NULL },
    { "read_file", make_read_file, METH_O, NULL },
    { "write_file", make_write_file, METH_VARARGS, NULL },
    { "list_dir", make_list_dir, METH_O, NULL },
    { "remove_file", make_remove_file, METH_O, NULL },
    { "seed_workspace", make_seed, METH_VARARGS, NULL },
    { "sync_artifacts", make_sync, METH_VARARGS, NULL },
    { "upload_file", make_upload, METH_VARARGS, NULL },
    { "download_file", make_download, METH_O, NULL },
    { "execute", make_execute, METH_VARARGS, NULL },
    { "build_for_session", build_for_session, METH_O, NULL },
    { "session", pf_agentcore_session, METH_NOARGS, NULL },
    { "daytona_sandbox", pf_daytona_sandbox, METH_NOARGS, NULL },
    { 0 },
};
