/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PF_PYTHON_AGENT_H
#define PF_PYTHON_AGENT_H

#include "link.h"

struct pf_agent_object {
    PyObject_HEAD struct pinfold_agent *agent; /* NULL before open(), and when it is gone */
    struct pf_links links;
    struct pf_links backends; /* of its own workspace, where nobody else leads to it */
    PyObject *on_event;       /* of replies while they arrive; may be NULL */
    int listening;            /* atomic: somebody wants to hear of them */
    int owner;                /* process id: a fork leaves the agent alone */
};

/* The agent of an Agent object, borrowed; NULL with an exception. */
struct pinfold_agent *pf_agent_of(PyObject *self);

/* agent_open.c */
PyObject *pf_agent_open(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *pf_check_agent_config(PyObject *module, PyObject *args);

/* Methods that make calls; agent_calls.c. */
PyObject *pf_agent_invoke(PyObject *self, PyObject *args);
PyObject *pf_agent_call_tool(PyObject *self, PyObject *args);
PyObject *pf_agent_execute(PyObject *self, PyObject *args);
PyObject *pf_agent_run_command(PyObject *self, PyObject *args);
PyObject *pf_agent_read_lines(PyObject *self, PyObject *args);
PyObject *pf_agent_write_file(PyObject *self, PyObject *args);
PyObject *pf_agent_list_dir(PyObject *self, PyObject *args);
PyObject *pf_agent_prepare(PyObject *self, PyObject *args);
PyObject *pf_agent_sync(PyObject *self, PyObject *args);
PyObject *pf_agent_close(PyObject *self, PyObject *args);

#endif
