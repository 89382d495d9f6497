/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Links: how the library holds Python objects. A tool, a hook, a plugin, a model, a storage and a
 * backend each have one, which the library frees with what has it. The link owns a reference, and
 * the Python object of the agent or the sandbox that they are of knows its links: so that the
 * garbage collector sees through the library, which it cannot look into, and finds the cycles that
 * these usually are in.
 *
 * That is sound where the owner is the only one to lead there. A backend that a manager may hand to
 * others has no owner, and its link is the library's alone.
 */
#ifndef PF_PYTHON_LINK_H
#define PF_PYTHON_LINK_H

#include "module.h"

struct pf_link;

/* Of one owner. Used with the GIL. */
struct pf_links {
    struct pf_link *first;
    PyObject *kept; /* a list of what must live as long as the owner; NULL: nothing yet */
    struct pinfold_agent **agent; /* where its owner keeps the agent; NULL: it is none */
};

/* Make a link; without links it has no owner. NULL: no memory, with an exception. */
struct pf_link *pf_link_new(struct pf_links *links, PyObject *target);
/* What the library calls, from any thread. */
void pf_link_free(void *link);

/* Borrowed; NULL when the owner is gone. */
PyObject *pf_link_target(const struct pf_link *link);

/* Have an object live as long as the owner. 0, or -1 with an exception. */
int pf_links_keep(struct pf_links *links, PyObject *object);
int pf_links_traverse(const struct pf_links *links, visitproc visit, void *arg);
/* The owner goes: the links lead nowhere from now on. What was kept is left to the caller. */
void pf_links_clear(struct pf_links *links);
/* The owner goes, and what the library does at its end may still lead through its links: they have
 * no owner from now on. */
void pf_links_release(struct pf_links *links);
/* Make a link without an owner one of these. */
void pf_links_adopt(struct pf_links *links, struct pf_link *link);

/* While an agent is made its Python object does not know it yet, and those that are called then
 * tell. */
void pf_link_introduce(const struct pf_link *link, struct pinfold_agent *agent);

/* The links of the owner of a link; NULL: it is gone, or was never. */
struct pf_links *pf_link_siblings(const struct pf_link *link);

/* Call the target; takes over args, a tuple, which may be NULL with an exception. */
PyObject *pf_link_call(const struct pf_link *link, PyObject *args);

/* ---- from C into Python ---- */

struct pf_guard {
    PyGILState_STATE gil;
    struct pinfold_cancel *outer;
};

/* Take the GIL. token is what fires when the Python code is to end; may be NULL. Returns 0, or
 * -PINFOLD_EBACKEND when the interpreter is ending: then there is nothing to leave. */
int pf_enter(struct pf_guard *guard, struct pinfold_cancel *token, struct pinfold_error *err);
/* Give it back; returns r. */
int pf_leave(struct pf_guard *guard, int r);
/* The end of what calls Python code: gives up its answer and the GIL. Without an answer, or when it
 * was not understood, there is an exception, which goes to err; context is what was tried. */
int pf_settle(struct pf_guard *guard, PyObject *answer, bool understood, const char *context,
              struct pinfold_error *err);
/* Whether the token of the innermost pf_enter() of this thread has fired. */
bool pf_token_fired(void);

#endif
