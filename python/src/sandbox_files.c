/* SPDX-License-Identifier: Apache-2.0 */
/* Calls on the files of a sandbox. */
#include "sandbox.h"

#include <string.h>

#include "convert.h"

struct file_args {
    struct pinfold_sandbox *sandbox;
    const char *path, *dest;
    const char *const *paths;
    const char *data;
    Py_ssize_t len;
    int64_t offset, limit;
    struct pinfold_upload *uploads;
    struct pinfold_download *downloads;
    size_t count;
    int overwrite, memory;
    uint64_t lines;
    struct pinfold_bytes bytes;
    struct pinfold_file_infos infos;
    struct pinfold_strings strings;
    struct pinfold_transfer_results transfers;
};

static void done(void *ctx)
{
    struct file_args *args = ctx;

    pinfold_bytes_done(&args->bytes);
    pinfold_file_infos_done(&args->infos);
    pinfold_strings_done(&args->strings);
    pinfold_transfer_results_done(&args->transfers);
}

static struct pf_call *new_call(const struct pf_operation *operation, PyObject *self,
                                struct file_args **ret)
{
    struct pinfold_sandbox *sandbox = pf_sandbox_of(self);
    struct pf_call *call = sandbox ? pf_call_new(operation, self) : NULL;

    if (!call)
        return NULL;
    *ret = pf_call_args(call);
    (*ret)->sandbox = sandbox;
    return call;
}

/* ---- reading ---- */

static int run_read_file(void *ctx, struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    struct file_args *args = ctx;

    return pinfold_sandbox_read_file(args->sandbox, args->path, &args->bytes, cancel, err);
}

static PyObject *convert_text(void *ctx, int r)
{
    const struct file_args *args = ctx;

    (void)r;
    return PyUnicode_DecodeUTF8(args->bytes.data, (Py_ssize_t)args->bytes.len, NULL);
}

static const struct pf_operation read_file = { "read_file",   sizeof(struct file_args),
                                               run_read_file, convert_text,
                                               NULL,          done };

PyObject *pf_sandbox_read_file(PyObject *self, PyObject *path)
{
    struct file_args *args;
    struct pf_call *call = new_call(&read_file, self, &args);

    return pf_call_finish(call, call && (args->path = pf_call_path(call, "path", path)));
}

/* The text, or None when it is not to be had without waiting. It is no call: nothing to cancel. */
PyObject *pf_sandbox_try_read_file(PyObject *self, PyObject *path)
{
    struct pinfold_sandbox *sandbox = pf_sandbox_of(self);
    PyObject *name = NULL, *text;
    struct pinfold_bytes bytes;
    int found;

    if (!sandbox)
        return NULL;
    /* Other paths, and those that are wrong, are the business of read_file. */
    if (!PyUnicode_Check(path) || !(name = PyUnicode_EncodeFSDefault(path)) ||
        strlen(PyBytes_AsString(name)) != (size_t)PyBytes_Size(name)) {
        PyErr_Clear();
        Py_XDECREF(name);
        Py_RETURN_NONE;
    }
    Py_BEGIN_ALLOW_THREADS
    found = pinfold_sandbox_try_read_file(sandbox, PyBytes_AsString(name), &bytes);
    Py_END_ALLOW_THREADS
    Py_DECREF(name);
    if (!found)
        Py_RETURN_NONE;
    text = PyUnicode_DecodeUTF8(bytes.data, (Py_ssize_t)bytes.len, NULL);
    pinfold_bytes_done(&bytes);
    return text;
}

static int run_read_lines(void *ctx, struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    struct file_args *args = ctx;

    return pinfold_sandbox_read_lines(args->sandbox, args->path, args->offset, args->limit,
                                      &args->bytes, &args->lines, cancel, err);
}

static PyObject *convert_lines(void *ctx, int r)
{
    const struct file_args *args = ctx;

    return Py_BuildValue("NK", convert_text(ctx, r), (unsigned long long)args->lines);
}

static const struct pf_operation read_lines = { "read_lines",   sizeof(struct file_args),
                                                run_read_lines, convert_lines,
                                                NULL,           done };

PyObject *pf_sandbox_read_lines(PyObject *self, PyObject *given)
{
    struct file_args *args;
    struct pf_call *call = new_call(&read_lines, self, &args);
    PyObject *path, *offset, *limit;

    return pf_call_finish(call, call && PyArg_ParseTuple(given, "OOO", &path, &offset, &limit) &&
                                        (args->path = pf_call_path(call, "path", path)) &&
                                        pf_lines_of(offset, limit, &args->offset, &args->limit));
}

static int run_list_dir(void *ctx, struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    struct file_args *args = ctx;

    return pinfold_sandbox_list_dir(args->sandbox, args->path, &args->infos, cancel, err);
}

static PyObject *convert_infos(void *ctx, int r)
{
    (void)r;
    return pf_infos_from(&((struct file_args *)ctx)->infos);
}

static const struct pf_operation list_dir = { "list_dir",   sizeof(struct file_args),
                                              run_list_dir, convert_infos,
                                              NULL,         done };

PyObject *pf_sandbox_list_dir(PyObject *self, PyObject *path)
{
    struct file_args *args;
    struct pf_call *call = new_call(&list_dir, self, &args);

    return pf_call_finish(call, call && (args->path = pf_call_path(call, "path", path)));
}

/* ---- changing ---- */

static int run_write_file(void *ctx, struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    struct file_args *args = ctx;

    return pinfold_sandbox_write_file(args->sandbox, args->path, args->data, (size_t)args->len,
                                      cancel, err);
}

static const struct pf_operation write_file = { "write_file",   sizeof(struct file_args),
                                                run_write_file, NULL,
                                                NULL,           done };

PyObject *pf_sandbox_write_file(PyObject *self, PyObject *given)
{
    struct file_args *args;
    struct pf_call *call = new_call(&write_file, self, &args);
    PyObject *path, *data;

    return pf_call_finish(call,
                          call && PyArg_ParseTuple(given, "OO", &path, &data) &&
                                  (args->path = pf_call_path(call, "path", path)) &&
                                  (args->data = pf_call_data(call, "content", data, &args->len)));
}

static int run_delete_files(void *ctx, struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    struct file_args *args = ctx;

    return pinfold_sandbox_delete_files(args->sandbox, args->paths, cancel, err);
}

static const struct pf_operation delete_files = {
    "delete_files", sizeof(struct file_args), run_delete_files, NULL, NULL, done
};

PyObject *pf_sandbox_delete_files(PyObject *self, PyObject *paths)
{
    struct file_args *args;
    struct pf_call *call = new_call(&delete_files, self, &args);

    return pf_call_finish(call, call && pf_call_vector(call, "paths", paths, &args->paths) == 0);
}

static int run_move_file(void *ctx, struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    struct file_args *args = ctx;

    return pinfold_sandbox_move_file(args->sandbox, args->path, args->dest, cancel, err);
}

static const struct pf_operation move_file = { "move_file",   sizeof(struct file_args),
                                               run_move_file, NULL,
                                               NULL,          done };

PyObject *pf_sandbox_move_file(PyObject *self, PyObject *given)
{
    struct file_args *args;
    struct pf_call *call = new_call(&move_file, self, &args);
    PyObject *src, *dest;

    return pf_call_finish(call, call && PyArg_ParseTuple(given, "OO", &src, &dest) &&
                                        (args->path = pf_call_path(call, "src", src)) &&
                                        (args->dest = pf_call_path(call, "dest", dest)));
}

/* ---- many at once ---- */

static int run_add_files(void *ctx, struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    struct file_args *args = ctx;

    return pinfold_sandbox_add_files(args->sandbox, args->uploads, args->count, args->overwrite,
                                     &args->strings, cancel, err);
}

static PyObject *convert_strings(void *ctx, int r)
{
    (void)r;
    return pf_strings_from(&((struct file_args *)ctx)->strings);
}

static PyObject *partial_strings(void *ctx)
{
    return convert_strings(ctx, 0);
}

static const struct pf_operation add_files = { "add_files",     sizeof(struct file_args),
                                               run_add_files,   convert_strings,
                                               partial_strings, done };

/* One file of a mapping: its content as str or bytes, or the path of a host file. */
static bool parse_upload(struct pf_call *call, PyObject *item, struct pinfold_upload *upload)
{
    PyObject *path, *content;
    Py_ssize_t len = 0;

    if (!PyArg_ParseTuple(item, "OO", &path, &content) ||
        !(upload->path = pf_call_path(call, "a path in files", path)))
        return false;
    if (PyObject_HasAttrString(content, "__fspath__"))
        return (upload->host_path = pf_call_path(call, "a host path in files", content)) != NULL;
    upload->data = pf_call_data(call, "content in files", content, &len);
    upload->len = (size_t)len;
    return upload->data != NULL;
}

/* files: a list of (path, content). */
PyObject *pf_sandbox_add_files(PyObject *self, PyObject *given)
{
    struct file_args *args;
    struct pf_call *call = new_call(&add_files, self, &args);
    PyObject *files, *overwrite;
    bool ok = call && PyArg_ParseTuple(given, "O!O", &PyList_Type, &files, &overwrite) &&
              pf_flag_of("overwrite", overwrite, &args->overwrite);

    if (ok) {
        args->count = (size_t)PyList_Size(files);
        args->uploads = pf_call_alloc(call, args->count, sizeof(*args->uploads));
        ok = args->uploads != NULL;
    }
    for (size_t i = 0; ok && i < args->count; i++)
        ok = parse_upload(call, PyList_GetItem(files, (Py_ssize_t)i), &args->uploads[i]);
    return pf_call_finish(call, ok);
}

static int run_download_files(void *ctx, struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    struct file_args *args = ctx;

    return pinfold_sandbox_download_files(args->sandbox, args->downloads, args->count,
                                          args->overwrite, &args->transfers, cancel, err);
}

static PyObject *partial_transfers(void *ctx)
{
    const struct file_args *args = ctx;

    return pf_transfers_from(&args->transfers, args->memory);
}

static PyObject *convert_transfers(void *ctx, int r)
{
    (void)r;
    return partial_transfers(ctx);
}

static const struct pf_operation download_files = { "download_files",   sizeof(struct file_args),
                                                    run_download_files, convert_transfers,
                                                    partial_transfers,  done };

/* files: a list of (path, host path), or of (path, None) to have the bytes. */
PyObject *pf_sandbox_download_files(PyObject *self, PyObject *given)
{
    struct file_args *args;
    struct pf_call *call = new_call(&download_files, self, &args);
    PyObject *files, *overwrite, *path, *dest;
    bool ok = call && PyArg_ParseTuple(given, "O!O", &PyList_Type, &files, &overwrite) &&
              pf_flag_of("overwrite", overwrite, &args->overwrite);

    if (ok) {
        args->count = (size_t)PyList_Size(files);
        args->downloads = pf_call_alloc(call, args->count, sizeof(*args->downloads));
        ok = args->downloads != NULL;
    }
    for (size_t i = 0; ok && i < args->count; i++) {
        struct pinfold_download *one = &args->downloads[i];
        ok = PyArg_ParseTuple(PyList_GetItem(files, (Py_ssize_t)i), "OO", &path, &dest) &&
             (one->path = pf_call_path(call, "a path in files", path)) &&
             pf_call_path_or_none(call, "a host path in files", dest, &one->host_path) == 0;
        args->memory |= ok && !one->host_path;
    }
    return pf_call_finish(call, ok);
}
