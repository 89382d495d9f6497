/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PF_PYTHON_SANDBOX_H
#define PF_PYTHON_SANDBOX_H

#include "call.h"
#include "link.h"

/* A sandbox of the library, shared by its Python object and by terminals on it. */
struct pf_handle {
    struct pinfold_sandbox *sandbox;
    unsigned refs; /* atomic */
    int owner;     /* process id: a fork leaves it alone */
};

struct pf_handle *pf_handle_ref(struct pf_handle *handle);
/* The last one frees the sandbox, on a thread if it is started: that can take long. */
void pf_handle_unref(struct pf_handle *handle);

struct pf_sandbox {
    PyObject_HEAD struct pf_handle *handle; /* NULL: collected as garbage */
    struct pf_links links; /* a backend written in Python, and agents of others that are attached */
};

/* The sandbox of a Sandbox object, borrowed; NULL with an exception. */
struct pinfold_sandbox *pf_sandbox_of(PyObject *self);

/* Methods that make calls; sandbox_files.c and sandbox_life.c. */
PyObject *pf_sandbox_read_file(PyObject *self, PyObject *args);
PyObject *pf_sandbox_try_read_file(PyObject *self, PyObject *path);
PyObject *pf_sandbox_read_lines(PyObject *self, PyObject *args);
PyObject *pf_sandbox_list_dir(PyObject *self, PyObject *args);
PyObject *pf_sandbox_write_file(PyObject *self, PyObject *args);
PyObject *pf_sandbox_delete_files(PyObject *self, PyObject *args);
PyObject *pf_sandbox_move_file(PyObject *self, PyObject *args);
PyObject *pf_sandbox_add_files(PyObject *self, PyObject *args);
PyObject *pf_sandbox_download_files(PyObject *self, PyObject *args);
PyObject *pf_sandbox_start(PyObject *self, PyObject *args);
PyObject *pf_sandbox_stop(PyObject *self, PyObject *args);
PyObject *pf_sandbox_flush(PyObject *self, PyObject *args);
PyObject *pf_sandbox_plan_seed(PyObject *self, PyObject *args);
PyObject *pf_sandbox_plan_flush(PyObject *self, PyObject *args);
PyObject *pf_sandbox_execute(PyObject *self, PyObject *args);
PyObject *pf_sandbox_open_terminal(PyObject *self, PyObject *args);

/* What execute understands, into options whose memory the call keeps. 0 or -1. */
int pf_parse_execute(struct pf_call *call, PyObject *args, struct pinfold_execute_options *options);

#endif
