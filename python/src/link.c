/* SPDX-License-Identifier: Apache-2.0 */
#include "link.h"

#include <stdlib.h>
#include <utlist.h>

#include "call.h"
#include "errors.h"
#include "pool.h"

struct pf_link {
    PyObject *target;       /* NULL: nowhere */
    struct pf_links *links; /* NULL: it has no owner */
    struct pf_link *prev, *next;
};

struct pf_link *pf_link_new(struct pf_links *links, PyObject *target)
{
    struct pf_link *link = calloc(1, sizeof(*link));

    if (!link) {
        PyErr_NoMemory();
        return NULL;
    }
    Py_INCREF(target);
    link->target = target;
    if (links)
        pf_links_adopt(links, link);
    return link;
}

void pf_links_adopt(struct pf_links *links, struct pf_link *link)
{
    link->links = links;
    DL_APPEND(links->first, link);
}

static void release(struct pf_link *link)
{
    if (link->links)
        DL_DELETE(link->links->first, link);
    link->links = NULL;
}

void pf_links_release(struct pf_links *links)
{
    while (links->first)
        release(links->first);
}

static void cut(struct pf_link *link)
{
    PyObject *target = link->target;

    release(link);
    link->target = NULL;
    Py_XDECREF(target); /* last: it may lead to anything */
}

void pf_link_free(void *ctx)
{
    struct pf_link *link = ctx;
    PyGILState_STATE gil;

    if (pf_closing()) /* nobody may touch Python, nor the list that the link is in */
        return;
    gil = PyGILState_Ensure();
    cut(link);
    PyGILState_Release(gil);
    free(link);
}

PyObject *pf_link_target(const struct pf_link *link)
{
    return link->target;
}

int pf_links_keep(struct pf_links *links, PyObject *object)
{
    if (!links->kept && !(links->kept = PyList_New(0)))
        return -1;
    return PyList_Append(links->kept, object);
}

int pf_links_traverse(const struct pf_links *links, visitproc visit, void *arg)
{
    struct pf_link *link;

    Py_VISIT(links->kept);
    DL_FOREACH(links->first, link)
        Py_VISIT(link->target);
    return 0;
}

void pf_links_clear(struct pf_links *links)
{
    while (links->first)
        cut(links->first);
}

void pf_link_introduce(const struct pf_link *link, struct pinfold_agent *agent)
{
    if (link->links && link->links->agent && !*link->links->agent)
        *link->links->agent = agent;
}

struct pf_links *pf_link_siblings(const struct pf_link *link)
{
    return link->links;
}

PyObject *pf_link_call(const struct pf_link *link, PyObject *args)
{
    PyObject *target = link->target, *answer = NULL;

    if (args && target) {
        Py_INCREF(target); /* the call may cut the link */
        answer = PyObject_CallObject(target, args);
        Py_DECREF(target);
    } else if (args) {
        PyErr_SetString(PyExc_ReferenceError, "the agent is gone");
    }
    Py_XDECREF(args);
    return answer;
}

/* ---- from C into Python ---- */

static _Thread_local struct pinfold_cancel *token;

int pf_enter(struct pf_guard *guard, struct pinfold_cancel *given, struct pinfold_error *err)
{
    if (pf_closing()) {
        *err = (struct pinfold_error){ .code = PINFOLD_EBACKEND,
                                       .msg = "the Python interpreter is ending" };
        return -PINFOLD_EBACKEND;
    }
    pf_pool_step_out();
    guard->gil = PyGILState_Ensure();
    guard->outer = token;
    token = given;
    return 0;
}

int pf_leave(struct pf_guard *guard, int r)
{
    token = guard->outer;
    PyGILState_Release(guard->gil);
    pf_pool_step_in();
    return r;
}

int pf_settle(struct pf_guard *guard, PyObject *answer, bool understood, const char *context,
              struct pinfold_error *err)
{
    int r = answer && understood ? 0 : pf_take_exception(err, context);

    Py_XDECREF(answer);
    return pf_leave(guard, r);
}

bool pf_token_fired(void)
{
    return pinfold_cancel_fired(token);
}
