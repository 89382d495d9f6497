/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handles: a Sandbox of a third kind, for one agent. Like a view it holds a session for that one
 * life; it works on the session's own backend, and what is done through it is audited with the
 * agent's id. It needs neither the Sandbox that the session may belong to, nor that there is one.
 */
#include "sandbox/sandbox.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/strings.h"

static struct pinfold_sandbox *new_handle(struct pinfold_manager *manager,
                                          struct pf_session *session, const char *agent_id)
{
    PF_CLEANUP(pf_sandbox_freep) struct pinfold_sandbox *handle = calloc(1, sizeof(*handle));

    if (!handle)
        return NULL;
    pthread_mutex_init(&handle->lock, NULL);
    pthread_cond_init(&handle->changed, NULL);
    handle->manager = pinfold_manager_ref(manager);
    handle->backend = pinfold_backend_ref(pf_session_backend(session));
    handle->audit = pf_session_audit(session);
    handle->session = pf_session_ref(session);
    handle->state = PF_STARTED;
    handle->workspace_id = strdup(pf_session_id(session));
    handle->agent_id = strdup(agent_id);
    return handle->workspace_id && handle->agent_id ? TAKE(handle) : NULL;
}

int pf_sandbox_handle(struct pinfold_sandbox *sandbox, const char *agent_id,
                      struct pinfold_sandbox **ret, struct pinfold_error *err)
{
    _cleanup_operation_ struct pf_session *session = NULL;
    int r = pf_sandbox_begin(sandbox, &session, err);

    if (r < 0)
        return r;
    *ret = new_handle(sandbox->manager, session, agent_id);
    return *ret ? 0 : pf_fail_nomem(err);
}

int pf_sandbox_view_for(struct pinfold_sandbox *sandbox, const char *agent_id,
                        struct pinfold_sandbox **ret, struct pinfold_error *err)
{
    struct pinfold_sandbox *view = NULL;
    struct pf_session *session = NULL;
    bool has_views;
    int r = pf_sandbox_begin(sandbox, &session, err);

    if (r < 0)
        return r;
    has_views = pf_session_backend(session)->ops->view;
    pf_sandbox_end(session);
    if (!has_views) /* to try would be audited as a failure */
        return -PINFOLD_ENOTSUP;
    r = pinfold_sandbox_view(sandbox, agent_id, &view, err);
    if (r < 0)
        return r;
    view->agent_id = strdup(agent_id);
    if (!view->agent_id) {
        pinfold_sandbox_free(view);
        return pf_fail_nomem(err);
    }
    *ret = view;
    return 0;
}

/* ---- the per-agent path ---- */

static int configure(struct pinfold_sandbox *handle, const char *root,
                     const struct pinfold_sync_policy *policy, struct pinfold_error *err)
{
    int r = pf_sync_config_init(&handle->sync, root, policy, err);

    if (r < 0)
        return r;
    handle->exclude = pf_strv_copy((const char *const *)handle->sync.exclude);
    if (root)
        handle->seed_from = strdup(root);
    return handle->exclude && (!root || handle->seed_from) ? 0 : pf_fail_nomem(err);
}

/* Seed, if nobody has and nobody is about to. What was half seeded is nobody's workspace. */
static int prepare(struct pinfold_sandbox *handle, struct pinfold_seed_result *result,
                   struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    int r = pf_session_begin_prepare(handle->session, cancel, err);

    if (r <= 0)
        return r;
    r = pf_sandbox_seed(handle, handle->session, result, cancel, err);
    pf_session_end_prepare(handle->session);
    if (r < 0)
        pf_session_close(handle->session, &(struct pf_session_close){ .sync = false }, NULL);
    return r;
}

int pf_sandbox_handle_own(const struct pf_own_workspace *own, struct pinfold_sandbox **ret,
                          struct pinfold_seed_result *ret_seed, struct pinfold_cancel *cancel,
                          struct pinfold_error *err)
{
    PF_CLEANUP(pinfold_backend_factory_done) struct pinfold_backend_factory factory = { 0 };
    PF_CLEANUP(pf_sync_config_done) struct pf_sync_config sync = { 0 };
    PF_CLEANUP(pf_session_unrefp) struct pf_session *session = NULL;
    PF_CLEANUP(pf_sandbox_freep) struct pinfold_sandbox *handle = NULL;
    int r = pinfold_backend_factory_for_session(own->backend, own->workspace_id, &factory, err);

    if (r == 0)
        r = pf_sync_config_init(&sync, own->root, own->policy, err);
    if (r == 0)
        r = pf_manager_open(own->manager, own->workspace_id, &factory, &sync, cancel, &session,
                            err);
    if (r < 0)
        return r;
    handle = new_handle(own->manager, session, own->agent_id);
    if (!handle)
        return pf_fail_nomem(err);
    r = configure(handle, own->root, own->policy, err);
    if (r == 0)
        r = prepare(handle, ret_seed, cancel, err);
    if (r == 0)
        *ret = TAKE(handle);
    return r;
}

bool pf_sandbox_handle_live(struct pinfold_sandbox *handle)
{
    return pf_session_live(handle->session);
}

int pf_sandbox_handle_close(struct pinfold_sandbox *handle, bool sync,
                            struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    return pf_session_close(
            handle->session,
            &(struct pf_session_close){ .sync = sync, .config = &handle->sync, .cancel = cancel },
            err);
}

void pf_sandbox_handle_free(struct pinfold_sandbox *handle)
{
    if (handle && handle->view)
        pinfold_sandbox_free(handle);
    else
        pf_sandbox_freep(&handle);
}
