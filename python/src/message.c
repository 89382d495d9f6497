/* SPDX-License-Identifier: Apache-2.0 */
#include "message.h"

#include <stdlib.h>
#include <string.h>

#include "convert.h"
#include "errors.h"

/* ---- to Python ---- */

PyObject *pf_string_from(const char *text, size_t len)
{
    return PyUnicode_DecodeUTF8(text ? text : "", (Py_ssize_t)len, "replace");
}

static PyObject *block_from(const struct pinfold_block *block)
{
    bool flag = block->kind == PINFOLD_BLOCK_TOOL_USE ? block->input_valid : block->is_error;

    return Py_BuildValue("iNNNNN", (int)block->kind, pf_string_from(block->text, block->text_len),
                         pf_text_from(block->id), pf_text_from(block->name), PyBool_FromLong(flag),
                         pf_text_from(block->opaque));
}

static PyObject *blocks_from(const struct pinfold_message *message)
{
    PyObject *list = PyList_New((Py_ssize_t)message->count);

    for (size_t i = 0; list && i < message->count; i++) {
        PyObject *block = block_from(&message->blocks[i]);
        if (!block || PyList_SetItem(list, (Py_ssize_t)i, block) < 0)
            Py_CLEAR(list);
    }
    return list;
}

PyObject *pf_message_from(const struct pinfold_message *message)
{
    return Py_BuildValue("iN", (int)message->role, blocks_from(message));
}

PyObject *pf_messages_from(const struct pinfold_message *messages, size_t count)
{
    PyObject *list = PyList_New((Py_ssize_t)count);

    for (size_t i = 0; list && i < count; i++) {
        PyObject *message = pf_message_from(&messages[i]);
        if (!message || PyList_SetItem(list, (Py_ssize_t)i, message) < 0)
            Py_CLEAR(list);
    }
    return list;
}

PyObject *pf_usage_from(const struct pinfold_model_usage *usage)
{
    if (!usage->known)
        Py_RETURN_NONE;
    return Py_BuildValue("KKKK", (unsigned long long)usage->input,
                         (unsigned long long)usage->output, (unsigned long long)usage->cache_read,
                         (unsigned long long)usage->cache_write);
}

PyObject *pf_reply_from(const struct pinfold_model_reply *reply)
{
    return Py_BuildValue("NiNNN", blocks_from(&reply->message), (int)reply->stop,
                         pf_text_from(reply->stop_detail), pf_text_from(reply->request_id),
                         pf_usage_from(&reply->usage));
}

static PyObject *content_from(const struct pinfold_tool_content *content)
{
    bool text = content->kind == PINFOLD_TOOL_TEXT || content->kind == PINFOLD_TOOL_JSON;
    const struct pinfold_bytes *data = &content->data;

    return Py_BuildValue("iNNN", (int)content->kind,
                         text ? pf_string_from(data->data, data->len)
                              : PyBytes_FromStringAndSize(data->data, (Py_ssize_t)data->len),
                         pf_text_from(content->format), pf_text_from(content->name));
}

PyObject *pf_result_from(const struct pinfold_tool_result *result)
{
    PyObject *list = PyList_New((Py_ssize_t)result->count);

    for (size_t i = 0; list && i < result->count; i++) {
        PyObject *content = content_from(&result->items[i]);
        if (!content || PyList_SetItem(list, (Py_ssize_t)i, content) < 0)
            Py_CLEAR(list);
    }
    return Py_BuildValue("NN", PyBool_FromLong(result->is_error), list);
}

/* ---- from Python ---- */

/* The bytes of a str, as UTF-8, or of a bytes object: a new bytes object. What has no UTF-8, such
 * as half a surrogate pair, becomes "?". */
static PyObject *bytes_of(PyObject *data)
{
    return PyUnicode_Check(data) ? PyUnicode_AsEncodedString(data, "utf-8", "replace")
                                 : PyBytes_FromObject(data);
}

static int check(int r, const struct pinfold_error *err)
{
    if (r < 0)
        pf_raise(err, NULL);
    return r < 0 ? -1 : 0;
}

static int add_block(struct pinfold_message *message, int kind, const char *text, size_t len,
                     const char *const words[3], bool flag)
{
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    const char *id = words[0] ? words[0] : "", *name = words[1] ? words[1] : "";

    switch (kind) {
    case PINFOLD_BLOCK_TEXT:
        return check(pinfold_message_add_text(message, text, len, &err), &err);
    case PINFOLD_BLOCK_TOOL_USE:
        return check(pinfold_message_add_tool_use(message, id, name, text, len, &err), &err);
    case PINFOLD_BLOCK_TOOL_RESULT:
        return check(pinfold_message_add_tool_result(message, id, text, len, flag, &err), &err);
    case PINFOLD_BLOCK_REASONING:
        return check(pinfold_message_add_reasoning(message, text, len, words[2], &err), &err);
    default:
        PyErr_Format(PyExc_ValueError, "there is no kind %d of block", kind);
        return -1;
    }
}

static int block_to(PyObject *tuple, struct pinfold_message *message)
{
    const char *words[3];
    PyObject *text, *bytes;
    Py_ssize_t len;
    int kind, flag, r = -1;
    char *data;

    if (!PyArg_ParseTuple(tuple, "iOzzpz", &kind, &text, &words[0], &words[1], &flag, &words[2]))
        return -1;
    bytes = bytes_of(text);
    if (bytes && PyBytes_AsStringAndSize(bytes, &data, &len) == 0)
        r = add_block(message, kind, data, (size_t)len, words, flag);
    Py_XDECREF(bytes);
    return r;
}

static int blocks_to(PyObject *list, struct pinfold_message *ret)
{
    Py_ssize_t count = PyList_Size(list);

    for (Py_ssize_t i = 0; i < count; i++)
        if (block_to(PyList_GetItem(list, i), ret) < 0)
            return -1;
    return count < 0 ? -1 : 0;
}

int pf_message_to(PyObject *tuple, struct pinfold_message *ret)
{
    PyObject *list;
    int role;

    if (!PyArg_ParseTuple(tuple, "iO", &role, &list))
        return -1;
    ret->role = (enum pinfold_role)role;
    return blocks_to(list, ret);
}

int pf_messages_to(PyObject *list, struct pinfold_message **ret, size_t *ret_count)
{
    Py_ssize_t count = PyList_Size(list);

    *ret_count = 0;
    *ret = count < 0 ? NULL : calloc((size_t)count + 1, sizeof(**ret));
    if (!*ret) {
        if (!PyErr_Occurred())
            PyErr_NoMemory();
        return -1;
    }
    *ret_count = (size_t)count;
    for (Py_ssize_t i = 0; i < count; i++)
        if (pf_message_to(PyList_GetItem(list, i), &(*ret)[i]) < 0)
            return -1;
    return 0;
}

void pf_messages_free(struct pinfold_message *messages, size_t count)
{
    for (size_t i = 0; messages && i < count; i++)
        pinfold_message_done(&messages[i]);
    free(messages);
}

static int usage_to(PyObject *usage, struct pinfold_model_usage *ret)
{
    unsigned long long input, output, cache_read, cache_write;

    if (usage == Py_None)
        return 0;
    if (!PyArg_ParseTuple(usage, "KKKK", &input, &output, &cache_read, &cache_write))
        return -1;
    *ret = (struct pinfold_model_usage){ input, output, cache_read, cache_write, true };
    return 0;
}

int pf_reply_to(PyObject *tuple, struct pinfold_model_reply *ret)
{
    PyObject *blocks, *usage;
    const char *detail, *request_id;
    int stop;

    if (!PyArg_ParseTuple(tuple, "OizzO", &blocks, &stop, &detail, &request_id, &usage))
        return -1;
    ret->message.role = PINFOLD_ROLE_ASSISTANT;
    ret->stop = (enum pinfold_stop_reason)stop;
    ret->stop_detail = strdup(detail ? detail : "");
    ret->request_id = strdup(request_id ? request_id : "");
    ret->attempts = 1;
    if (!ret->stop_detail || !ret->request_id) {
        PyErr_NoMemory();
        return -1;
    }
    return usage_to(usage, &ret->usage) < 0 ? -1 : blocks_to(blocks, &ret->message);
}

static int content_to(PyObject *tuple, struct pinfold_tool_result *result)
{
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    struct pinfold_tool_content content = { 0 };
    const char *format, *name;
    PyObject *data, *bytes;
    Py_ssize_t len;
    int kind, r = -1;

    if (!PyArg_ParseTuple(tuple, "iOzz", &kind, &data, &format, &name))
        return -1;
    bytes = bytes_of(data);
    if (bytes && PyBytes_AsStringAndSize(bytes, &content.data.data, &len) == 0) {
        content.kind = (enum pinfold_tool_content_kind)kind;
        content.data.len = (size_t)len;
        content.format = (char *)(uintptr_t)format; /* read, and copied */
        content.name = (char *)(uintptr_t)name;
        r = kind == PINFOLD_TOOL_TEXT
                    ? pinfold_tool_result_add_text(result, content.data.data, (size_t)len, &err)
                    : pinfold_tool_result_add(result, &content, &err);
        r = check(r, &err);
    }
    Py_XDECREF(bytes);
    return r;
}

int pf_result_to(PyObject *tuple, struct pinfold_tool_result *ret)
{
    PyObject *list;
    Py_ssize_t count;
    int is_error;

    if (!PyArg_ParseTuple(tuple, "pO", &is_error, &list))
        return -1;
    ret->is_error = is_error;
    count = PyList_Size(list);
    for (Py_ssize_t i = 0; i < count; i++)
        if (content_to(PyList_GetItem(list, i), ret) < 0)
            return -1;
    return count < 0 ? -1 : 0;
}
