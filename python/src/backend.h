/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PF_PYTHON_BACKEND_H
#define PF_PYTHON_BACKEND_H

#include "call.h"
#include "link.h"

struct pf_backend_object {
    PyObject_HEAD struct pinfold_backend *backend;
    PyObject *python; /* what one written in Python is made of, which others may give up; or NULL */
};

/* A Backend object; takes over the reference, also when it fails. */
PyObject *pf_backend_wrap(struct pinfold_backend *backend);

/* A backend of whatever the caller has: the package makes it a Backend. Without the GIL's release;
 * a reference, or NULL with an exception. */
struct pinfold_backend *pf_backend_adopt(PyObject *object);

/* The Python object that a backend written in Python is; borrowed. NULL: it is no such. */
PyObject *pf_backend_python_object(const struct pinfold_backend *backend);

/* From now on this owner alone leads to a backend written in Python: the garbage collector finds
 * the cycles through it. Nothing is done for other backends, or where there is no owner (NULL). */
void pf_backend_own(const struct pinfold_backend *backend, struct pf_links *owner);

/* What a constructor returned, as an object; call held its arguments, and is given back. */
PyObject *pf_backend_made(struct pf_call *call, int r, struct pinfold_backend *backend,
                          const struct pinfold_error *err);

/* Calls on a backend itself; backend_calls.c. */
extern PyMethodDef pf_backend_methods[];

/* What only backends of services have; backend_remote.c. */
PyObject *pf_agentcore_session(PyObject *self, PyObject *unused);
PyObject *pf_daytona_sandbox(PyObject *self, PyObject *unused);

#endif
