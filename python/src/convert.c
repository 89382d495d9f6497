/* SPDX-License-Identifier: Apache-2.0 */
#include "convert.h"

#include <string.h>

#include "errors.h"
#include "spool.h"

PyObject *pf_path_from(const char *path)
{
    if (!path)
        Py_RETURN_NONE;
    return PyUnicode_DecodeFSDefaultAndSize(path, (Py_ssize_t)strlen(path));
}

PyObject *pf_text_from(const char *text)
{
    if (!text)
        Py_RETURN_NONE;
    return PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "surrogateescape");
}

/* Append a new reference, which may be NULL with an exception; clears the list when that fails. */
static void append(PyObject **list, PyObject *item)
{
    if (*list && (!item || PyList_Append(*list, item) < 0))
        Py_CLEAR(*list);
    Py_XDECREF(item);
}

PyObject *pf_strv_from(const char *const *strings)
{
    PyObject *list = PyList_New(0);

    for (size_t i = 0; list && strings && strings[i]; i++)
        append(&list, pf_path_from(strings[i]));
    return list;
}

PyObject *pf_strings_from(const struct pinfold_strings *strings)
{
    PyObject *list = PyList_New(0);

    for (size_t i = 0; list && i < strings->count; i++)
        append(&list, pf_path_from(strings->items[i]));
    return list;
}

PyObject *pf_infos_from(const struct pinfold_file_infos *infos)
{
    PyObject *list = PyList_New(0);

    for (size_t i = 0; list && i < infos->count; i++) {
        const struct pinfold_file_info *info = &infos->items[i];
        PyObject *size = info->size < 0 ? Py_BuildValue("") : PyLong_FromLongLong(info->size);
        append(&list,
               Py_BuildValue("NNN", pf_path_from(info->path), PyBool_FromLong(info->is_dir), size));
    }
    return list;
}

PyObject *pf_seed_from(const struct pinfold_seed_result *result)
{
    return Py_BuildValue("KKNNsN", (unsigned long long)result->files_seeded,
                         (unsigned long long)result->bytes_seeded,
                         pf_strings_from(&result->skipped_paths), pf_strings_from(&result->errors),
                         result->mode == PINFOLD_SEED_OVERLAY ? "overlay" : "copy",
                         pf_text_from(result->fallback));
}

PyObject *pf_sync_from(const struct pinfold_sync_result *result)
{
    return Py_BuildValue("KKN", (unsigned long long)result->files_synced,
                         (unsigned long long)result->bytes_synced,
                         pf_strings_from(&result->errors));
}

PyObject *pf_exception_from(const struct pinfold_error *err)
{
    PyObject *type, *value, *trace;

    if (err->code == 0)
        Py_RETURN_NONE;
    pf_raise(err, NULL);
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    Py_XDECREF(type);
    Py_XDECREF(trace);
    return value;
}

PyObject *pf_transfers_from(const struct pinfold_transfer_results *results, bool memory)
{
    PyObject *list = PyList_New(0);

    for (size_t i = 0; list && i < results->count; i++) {
        const struct pinfold_transfer_result *one = &results->items[i];
        bool has_content = memory && one->error.code == 0 && !one->skipped;
        PyObject *content = has_content ? PyBytes_FromStringAndSize(one->content.data,
                                                                    (Py_ssize_t)one->content.len)
                                        : Py_BuildValue("");
        append(&list, Py_BuildValue("NNNN", pf_path_from(one->path), content,
                                    pf_exception_from(&one->error), PyBool_FromLong(one->skipped)));
    }
    return list;
}

PyObject *pf_plan_from(const struct pinfold_plan *plan)
{
    static const char *const actions[] = {
        [PINFOLD_PLAN_COPY] = "copy",           [PINFOLD_PLAN_OVERWRITE] = "overwrite",
        [PINFOLD_PLAN_IDENTICAL] = "identical", [PINFOLD_PLAN_SKIP] = "skip",
        [PINFOLD_PLAN_ERROR] = "error",
    };
    PyObject *list = PyList_New(0);

    for (size_t i = 0; list && i < plan->count; i++) {
        const struct pinfold_plan_entry *entry = &plan->items[i];
        append(&list, Py_BuildValue("NsLs", pf_path_from(entry->path), actions[entry->action],
                                    (long long)entry->size, entry->reason));
    }
    return list;
}

static PyObject *limits_hit(unsigned bits)
{
    PyObject *list = PyList_New(0);

    for (int i = 1; list && i < PINFOLD_LIMIT_COUNT; i++)
        if (bits & 1U << i)
            append(&list, pf_text_from(pinfold_limit_name((enum pinfold_limit)i)));
    return list;
}

/* How many characters the first len bytes of valid UTF-8 are. */
static Py_ssize_t count_characters(const char *text, size_t len)
{
    Py_ssize_t count = 0;

    for (size_t i = 0; i < len; i++)
        count += ((unsigned char)text[i] & 0xc0) != 0x80;
    return count;
}

PyObject *pf_executed_from(struct pinfold_execute_result *result)
{
    struct pinfold_spool *spool = result->spool;

    result->spool = NULL;
    return Py_BuildValue(
            "NiNNNnKKdIdKKNNNN",
            PyUnicode_DecodeUTF8(result->output, (Py_ssize_t)result->output_len, "replace"),
            result->exit_code, PyBool_FromLong(result->truncated),
            PyUnicode_DecodeUTF8(result->stderr_text, (Py_ssize_t)result->stderr_len, "replace"),
            PyBool_FromLong(result->timed_out),
            count_characters(result->output, result->stdout_len),
            (unsigned long long)result->stdout_bytes, (unsigned long long)result->stderr_bytes,
            (double)result->duration_ns / 1e9, result->background, (double)result->cpu_ns / 1e9,
            (unsigned long long)result->peak_bytes, (unsigned long long)result->sandbox_peak_bytes,
            result->limit ? pf_text_from(pinfold_limit_name(result->limit)) : Py_BuildValue(""),
            limits_hit(result->limits_hit), pf_spool_from(spool),
            PyBool_FromLong(result->supervisor_lost));
}
