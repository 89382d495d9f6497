/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/session_table.h"

#include <stdlib.h>
#include <string.h>

#include "base/cancel.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/strings.h"
#include "sandbox/ids.h"

static struct pf_session *new_session(const struct pf_session_claim *claim)
{
    struct pf_session *session = calloc(1, sizeof(*session));

    if (!session)
        return NULL;
    session->id = strdup(claim->id);
    session->owner_id = claim->owner_id ? strdup(claim->owner_id) : NULL;
    if (!session->id || (claim->owner_id && !session->owner_id)) {
        pf_session_free(session);
        return NULL;
    }
    session->manager = claim->manager;
    session->audit = claim->audit;
    session->on_closing = claim->on_closing;
    session->on_closing_ctx = claim->on_closing_ctx;
    session->ttl_ns = claim->ttl_ns;
    session->created_at = session->last_used_at = pf_clock_now();
    session->refs = 1;
    return session;
}

static int claimed_error(const struct pf_session *session, struct pinfold_error *err)
{
    if (session->owner_id)
        return pf_fail(err, PINFOLD_ESTART,
                       "workspace %s is owned by another Sandbox of this process (%s); stop that "
                       "one first, or use another workspace_id",
                       PF_QUOTE(session->id), session->owner_id);
    return pf_fail(err, PINFOLD_ESTART,
                   "workspace %s is in use by a session of manager %s; close that one first",
                   PF_QUOTE(session->id), pinfold_manager_id(session->manager));
}

/* Enter the table, or find the session to share. Returns 1 with a new session in state CREATING,
 * 0 with a live one to share, or an error. */
static int enter_table(const struct pf_session_claim *claim, struct pf_session **ret,
                       struct pinfold_error *err)
{
    struct pf_session *session, *fresh = new_session(claim);
    int r = fresh ? 0 : pf_fail_nomem(err);

    pf_sessions_lock();
    while (r == 0 && (session = pf_sessions_conflict(claim))) {
        if (claim->owner_id || session->owner_id) {
            r = claimed_error(session, err);
        } else if (session->state == PF_SESSION_LIVE) {
            session->refs++;
            session->last_used_at = pf_clock_now();
            pf_sessions_unlock();
            pf_session_free(fresh);
            *ret = session;
            return 0;
        } else {
            pf_sessions_wait(); /* somebody is making or closing it */
            r = pf_cancel_check(claim->cancel, err);
        }
    }
    if (r == 0 && pf_sessions_enter(fresh) < 0)
        r = pf_fail_nomem(err);
    pf_sessions_unlock();
    if (r == 0) {
        *ret = fresh;
        return 1;
    }
    if (fresh)
        pf_session_free(fresh);
    return r;
}

/* Make and create the backend of a session in state CREATING. */
static int create_backend(struct pf_session *session, const struct pf_session_claim *claim,
                          struct pinfold_error *err)
{
    struct pinfold_backend *backend = NULL;
    int r = claim->factory->make(claim->factory->ctx, &backend, err);

    if (r < 0)
        return r;
    r = pf_sessions_claim_backend(session, backend, err);
    if (r < 0) {
        pinfold_backend_unref(backend);
        return r;
    }
    pf_session_watch_network(session, true);
    r = pf_backend_create(backend, claim->cancel, err);
    if (r == 0) {
        r = pf_sessions_claim_storage(session, err);
        if (r < 0)
            pf_backend_close(backend, NULL);
    }
    if (r < 0)
        pf_session_watch_network(session, false);
    return r;
}

int pf_session_open(const struct pf_session_claim *claim, struct pf_session **ret,
                    struct pinfold_error *err)
{
    struct pf_session *session;
    int r = pf_workspace_id_check(claim->id, err);

    if (r == 0)
        r = pf_cancel_check(claim->cancel, err);
    if (r == 0)
        r = enter_table(claim, ret, err);
    if (r <= 0)
        return r;
    session = *ret;
    r = create_backend(session, claim, err);
    if (r < 0) {
        pf_sessions_leave(session);
        pf_session_unref(session);
        *ret = NULL;
        return r;
    }
    if (claim->sync) {
        session->sync = *claim->sync;
        *claim->sync = (struct pf_sync_config){ 0 };
    }
    pf_sessions_lock();
    session->state = PF_SESSION_LIVE;
    session->last_used_at = pf_clock_now();
    pf_sessions_wake();
    pf_sessions_unlock();
    return 0;
}
