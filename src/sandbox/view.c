/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Read-only views. A view is a Sandbox of another kind: it holds the session of the sandbox that it
 * was made from, for that one life, and a backend of its own to read with. Whatever would change
 * something is refused here, before a backend hears of it; what commands try, the kernel refuses.
 */
#include "sandbox/sandbox.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/random.h"

int pf_view_refuse(struct pinfold_sandbox *sandbox, struct pinfold_audit_event *event,
                   struct pinfold_error *err)
{
    struct pinfold_error denied = PINFOLD_ERROR_INIT;
    const char *operation = strrchr(event->event, '.');
    int r;

    if (!sandbox->view)
        return 0;
    r = pf_fail(&denied, PINFOLD_EDENIED, "%s: %s is a read-only view of sandbox %s",
                operation ? operation + 1 : event->event, PF_QUOTE(sandbox->view),
                PF_QUOTE(sandbox->workspace_id));
    pf_sandbox_audit(sandbox, sandbox->session, event, r, &denied);
    if (err)
        *err = denied;
    return r;
}

static char *make_name(const char *name)
{
    char text[16] = "view-";

    if (name)
        return strdup(name);
    pf_random_hex(text + strlen(text), 8);
    return strdup(text);
}

/* A view without its backend. */
static struct pinfold_sandbox *new_view(const struct pinfold_sandbox *sandbox,
                                        struct pf_session *session, const char *name)
{
    PF_CLEANUP(pf_sandbox_freep) struct pinfold_sandbox *view = calloc(1, sizeof(*view));

    if (!view)
        return NULL;
    pthread_mutex_init(&view->lock, NULL);
    pthread_cond_init(&view->changed, NULL);
    view->manager = pinfold_manager_ref(sandbox->manager);
    view->audit = sandbox->audit;
    view->session = pf_session_ref(session);
    view->state = PF_STARTED;
    view->view = make_name(name);
    view->workspace_id = strdup(sandbox->workspace_id);
    return view->view && view->workspace_id ? TAKE(view) : NULL;
}

/* Make and create the backend of a view. From success on it is the session's to close, unless
 * pf_session_drop_view() gives it back. */
static int open_backend(struct pinfold_sandbox *view, struct pf_session *session,
                        struct pinfold_error *err)
{
    struct pinfold_backend *of = pf_session_backend(session);
    int r;

    if (!of->ops->view)
        return pf_fail(err, PINFOLD_ENOTSUP,
                       "view: %s has no read-only views; IsolatedSandboxBackend has",
                       of->ops->type_name);
    r = of->ops->view(of->state, &view->backend, err);
    if (r < 0)
        return r;
    r = pf_backend_create(view->backend, NULL, err);
    if (r < 0)
        return r;
    r = pf_session_add_view(session, view->backend, err);
    if (r < 0)
        pf_backend_close(view->backend, NULL);
    return r;
}

int pinfold_sandbox_view(struct pinfold_sandbox *sandbox, const char *name,
                         struct pinfold_sandbox **ret_view, struct pinfold_error *err)
{
    struct pinfold_audit_event event = PF_AUDIT_EVENT_INIT("sandbox.view");
    PF_CLEANUP(pf_sandbox_freep) struct pinfold_sandbox *view = NULL;
    _cleanup_operation_ struct pf_session *session = NULL;
    struct pinfold_error local = PINFOLD_ERROR_INIT;
    int r;

    if (name && !*name)
        return pf_fail(err, PINFOLD_EVALUE, "view: an empty name");
    r = pf_sandbox_begin(sandbox, &session, err);
    if (r < 0)
        return r;
    view = new_view(sandbox, session, name);
    if (!view)
        return pf_fail_nomem(err);
    r = open_backend(view, session, &local);
    pf_sandbox_audit(view, session, &event, r, &local);
    if (r == 0)
        *ret_view = TAKE(view);
    else if (err)
        *err = local;
    return r;
}

void pf_view_end(struct pinfold_sandbox *view)
{
    struct pinfold_audit_event event = PF_AUDIT_EVENT_INIT("sandbox.view_end");
    _cleanup_operation_ struct pf_session *session = NULL;
    struct pinfold_error local = PINFOLD_ERROR_INIT;
    int r;

    /* Of a sandbox that has ended, and in a fork, there is nothing left to close. */
    if (pf_sandbox_begin(view, &session, NULL) < 0 || !pf_session_drop_view(session, view->backend))
        return;
    pf_backend_stop_commands(view->backend);
    r = pf_backend_close(view->backend, &local);
    pf_sandbox_audit(view, session, &event, r, &local);
}
