/* SPDX-License-Identifier: Apache-2.0 */
/* What Python gives to a call, as C wants it. Everything lives in objects that the call keeps. */
#include "call.h"

#include <string.h>

#include "errors.h"

const struct pf_operation pf_no_operation = { .name = "arguments" };

/* ---- what is something else ---- */

/* TypeError; takes the place of an exception that does not name the parameter. */
static void refuse(const char *name, const char *wanted, PyObject *given)
{
    PyObject *type;

    PyErr_Clear();
    type = PyObject_GetAttrString((PyObject *)Py_TYPE(given), "__name__");
    if (type)
        PyErr_Format(PyExc_TypeError, "%s must be %s, not %S", name, wanted, type);
    Py_XDECREF(type);
}

/* Half of a surrogate pair, in a str that no text was decoded to. */
static void refuse_encoding(const char *name)
{
    if (PyErr_ExceptionMatches(PyExc_UnicodeEncodeError))
        PyErr_Format(PyExc_ValueError, "%s holds a character that has no bytes (a surrogate)",
                     name);
}

static void refuse_nul(const char *name, enum pinfold_code code)
{
    char text[128];

    PyOS_snprintf(text, sizeof(text), "%.80s must not contain a NUL byte", name);
    pf_raise_text(code, text);
}

/* ---- strings ---- */

/* The bytes of kept, a bytes object that the call takes over. */
static const char *keep_bytes(struct pf_call *call, PyObject *bytes, Py_ssize_t *ret_len)
{
    char *text;

    if (pf_call_keep(call, bytes) < 0 || PyBytes_AsStringAndSize(bytes, &text, ret_len) < 0)
        return NULL;
    return text;
}

/* The same of what is to end at its first NUL. bytes may be NULL with an exception. */
static const char *keep_string(struct pf_call *call, const char *name, PyObject *bytes,
                               enum pinfold_code code)
{
    Py_ssize_t len;
    const char *text = bytes ? keep_bytes(call, bytes, &len) : NULL;

    if (!text || strlen(text) == (size_t)len)
        return text;
    refuse_nul(name, code);
    return NULL;
}

/* A new bytes object: str as the file system has it, bytes as they are. */
static PyObject *path_bytes(const char *name, const char *wanted, PyObject *path)
{
    PyObject *plain, *bytes;

    if (!PyUnicode_Check(path) && !PyBytes_Check(path) &&
        !PyObject_HasAttrString(path, "__fspath__")) {
        refuse(name, wanted, path);
        return NULL;
    }
    plain = PyOS_FSPath(path);
    if (!plain || PyBytes_Check(plain))
        return plain;
    bytes = PyUnicode_EncodeFSDefault(plain);
    Py_DECREF(plain);
    if (!bytes)
        refuse_encoding(name);
    return bytes;
}

const char *pf_call_path(struct pf_call *call, const char *name, PyObject *path)
{
    return keep_string(call, name, path_bytes(name, "a path (str, bytes or os.PathLike)", path),
                       PINFOLD_EPATH);
}

int pf_call_path_or_none(struct pf_call *call, const char *name, PyObject *path, const char **ret)
{
    *ret = !path || path == Py_None ? NULL : pf_call_path(call, name, path);
    return path && path != Py_None && !*ret ? -1 : 0;
}

/* A str as UTF-8. errors: what becomes of what has none, see codecs; NULL: it is refused. */
static PyObject *encode(const char *name, PyObject *text, const char *errors)
{
    PyObject *bytes = PyUnicode_AsEncodedString(text, "utf-8", errors);

    if (!bytes)
        refuse_encoding(name);
    return bytes;
}

const char *pf_call_text(struct pf_call *call, const char *name, PyObject *text)
{
    if (PyUnicode_Check(text))
        return keep_string(call, name, encode(name, text, NULL), PINFOLD_EVALUE);
    refuse(name, "a str", text);
    return NULL;
}

int pf_call_text_or_none(struct pf_call *call, const char *name, PyObject *text, const char **ret)
{
    *ret = text == Py_None ? NULL : pf_call_text(call, name, text);
    return text != Py_None && !*ret ? -1 : 0;
}

const char *pf_text_of(const char *name, PyObject *text)
{
    const char *found;
    Py_ssize_t len;

    if (!PyUnicode_Check(text)) {
        refuse(name, "a str", text);
        return NULL;
    }
    found = PyUnicode_AsUTF8AndSize(text, &len);
    if (!found) {
        refuse_encoding(name);
    } else if (strlen(found) != (size_t)len) {
        refuse_nul(name, PINFOLD_EVALUE);
        return NULL;
    }
    return found;
}

/* A new bytes object with what a bytes-like one holds. A list of numbers is none. */
static PyObject *bytes_of(const char *name, PyObject *data)
{
    PyObject *view = PyBytes_Check(data) ? NULL : PyMemoryView_FromObject(data), *bytes;

    if (PyErr_Occurred()) {
        refuse(name, "a str or a bytes-like object", data);
        return NULL;
    }
    bytes = PyBytes_FromObject(view ? view : data);
    Py_XDECREF(view);
    return bytes;
}

const char *pf_call_data(struct pf_call *call, const char *name, PyObject *data,
                         Py_ssize_t *ret_len)
{
    PyObject *bytes =
            PyUnicode_Check(data) ? encode(name, data, "surrogateescape") : bytes_of(name, data);

    return bytes ? keep_bytes(call, bytes, ret_len) : NULL;
}

/* ---- memory, and lists ---- */

void *pf_call_alloc(struct pf_call *call, size_t count, size_t size)
{
    PyObject *bytes;
    char *memory;

    if (count > PY_SSIZE_T_MAX / size) {
        PyErr_NoMemory();
        return NULL;
    }
    bytes = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(count * size));
    if (!bytes || pf_call_keep(call, bytes) < 0)
        return NULL;
    memory = PyBytes_AsString(bytes);
    memset(memory, 0, count * size);
    return memory;
}

/* A new list. One string is none, though it can be iterated over. */
static PyObject *list_of(const char *name, PyObject *strings)
{
    bool one = PyUnicode_Check(strings) || PyBytes_Check(strings);
    PyObject *iterator = one ? NULL : PyObject_GetIter(strings), *list;

    if (one)
        PyErr_Format(PyExc_TypeError, "%s must be a list of strings, not one string", name);
    else if (!iterator && PyErr_ExceptionMatches(PyExc_TypeError))
        refuse(name, "a list of strings", strings);
    if (!iterator)
        return NULL;
    list = PySequence_List(iterator);
    Py_DECREF(iterator);
    return list;
}

int pf_call_vector(struct pf_call *call, const char *name, PyObject *strings,
                   const char *const **ret)
{
    PyObject *list = list_of(name, strings);
    const char **items;
    Py_ssize_t count;

    *ret = NULL;
    if (!list || pf_call_keep(call, list) < 0)
        return -1;
    count = PyList_Size(list);
    items = pf_call_alloc(call, (size_t)count + 1, sizeof(*items));
    if (!items)
        return -1;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *bytes = path_bytes(name, "a list of strings", PyList_GetItem(list, i));
        if (!(items[i] = keep_string(call, name, bytes, PINFOLD_EVALUE)))
            return -1;
    }
    *ret = items;
    return 0;
}

int pf_call_strv(struct pf_call *call, const char *name, PyObject *strings, const char *const **ret)
{
    *ret = NULL;
    return !strings || strings == Py_None ? 0 : pf_call_vector(call, name, strings, ret);
}

int pf_call_command(struct pf_call *call, PyObject *command, const char **ret, size_t *ret_len,
                    const char *const **ret_argv)
{
    Py_ssize_t len;

    if (PyUnicode_Check(command) || PyBytes_Check(command)) {
        *ret = pf_call_data(call, "command", command, &len);
        if (!*ret)
            return -1;
        *ret_len = (size_t)len;
        if (!memchr(*ret, '\0', *ret_len))
            return 0;
        refuse_nul("command", PINFOLD_EVALUE);
        return -1;
    }
    if (pf_call_vector(call, "command", command, ret_argv) < 0)
        return -1;
    if (**ret_argv)
        return 0;
    PyErr_SetString(PyExc_ValueError, "command must have at least one word");
    return -1;
}

/* ---- numbers ---- */

bool pf_whole_of(const char *name, PyObject *number, uint64_t least, uint64_t most, uint64_t *ret)
{
    PyObject *index = PyBool_Check(number) ? NULL : PyNumber_Index(number);

    if (!index) {
        if (!PyErr_Occurred() || PyErr_ExceptionMatches(PyExc_TypeError))
            refuse(name, "an int", number);
        return false;
    }
    *ret = PyLong_AsUnsignedLongLong(index);
    Py_DECREF(index);
    if (!PyErr_Occurred() && *ret >= least && *ret <= most)
        return true;
    PyErr_Clear();
    PyErr_Format(PyExc_ValueError, "%s must be from %llu to %llu", name, (unsigned long long)least,
                 (unsigned long long)most);
    return false;
}

bool pf_flag_of(const char *name, PyObject *flag, int *ret)
{
    *ret = flag == Py_True;
    if (PyBool_Check(flag))
        return true;
    refuse(name, "a bool", flag);
    return false;
}

bool pf_seconds_of(const char *name, PyObject *seconds, double *ret)
{
    bool flag = PyBool_Check(seconds);
    double value;

    if (seconds == Py_None)
        return true;
    value = flag ? 0 : PyFloat_AsDouble(seconds);
    if (flag || (PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_TypeError))) {
        refuse(name, "a number of seconds", seconds);
        return false;
    }
    if (PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_OverflowError))
        PyErr_Format(PyExc_ValueError, "%s is too large", name);
    if (PyErr_Occurred())
        return false;
    if (value > 0) {
        *ret = value;
        return true;
    }
    /* What is no time must not become the default by being zero. */
    PyErr_Format(PyExc_ValueError, "%s must be more than 0 seconds", name);
    return false;
}

bool pf_lines_of(PyObject *offset, PyObject *limit, int64_t *ret_offset, int64_t *ret_limit)
{
    uint64_t first, count = INT64_MAX;

    if (!pf_whole_of("offset", offset, 0, INT64_MAX, &first) ||
        (limit != Py_None && !pf_whole_of("limit", limit, 0, INT64_MAX, &count)))
        return false;
    *ret_offset = (int64_t)first;
    *ret_limit = (int64_t)count;
    return true;
}
