/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/session_table.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/cancel.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/strings.h"

/* ---- references ---- */

void pf_session_free_views(struct pf_session_view *views)
{
    while (views) {
        struct pf_session_view *view = views;
        views = view->next;
        pinfold_backend_unref(view->backend);
        free(view);
    }
}

void pf_session_free(struct pf_session *session)
{
    pf_session_free_views(session->views); /* in a forked child there may be some */
    pinfold_backend_unref(session->backend);
    pf_sync_config_done(&session->sync);
    pinfold_seed_result_done(&session->seed_result);
    pf_seed_mark_done(&session->seed_mark);
    free(session->storage_key);
    free(session->owner_id);
    free(session->id);
    free(session);
}

struct pf_session *pf_session_ref(struct pf_session *session)
{
    pf_sessions_lock();
    session->refs++;
    pf_sessions_unlock();
    return session;
}

void pf_session_unref(struct pf_session *session)
{
    unsigned left;

    if (!session)
        return;
    pf_sessions_lock();
    left = --session->refs;
    pf_sessions_unlock();
    if (left == 0)
        pf_session_free(session);
}

void pf_session_unrefp(struct pf_session **session)
{
    pf_session_unref(*session);
}

/* ---- reading ---- */

struct pf_session *pf_session_find(struct pinfold_manager *manager, const char *id)
{
    struct pf_session *session;

    pf_sessions_lock();
    session = pf_sessions_find(manager, id);
    if (session && session->state == PF_SESSION_LIVE)
        session->refs++;
    else
        session = NULL;
    pf_sessions_unlock();
    return session;
}

struct pf_session *pf_session_first(struct pinfold_manager *manager)
{
    struct pf_session *session;

    pf_sessions_lock();
    session = *pf_manager_sessions(manager);
    if (session)
        session->refs++;
    pf_sessions_unlock();
    return session;
}

bool pf_session_live(struct pf_session *session)
{
    bool live;

    pf_sessions_lock();
    live = session->state == PF_SESSION_LIVE;
    pf_sessions_unlock();
    return live;
}

const char *pf_session_id(const struct pf_session *session)
{
    return session->id;
}

struct pinfold_backend *pf_session_backend(const struct pf_session *session)
{
    return session->backend;
}

const char *pf_session_owner(const struct pf_session *session)
{
    return session->owner_id;
}

struct pinfold_audit_sink pf_session_audit(const struct pf_session *session)
{
    return session->audit;
}

static int snapshot_locked(const struct pf_session *session, struct pinfold_session *ret)
{
    ret->backend = pinfold_backend_ref(session->backend);
    ret->session_id = strdup(session->id);
    ret->owner_id = session->owner_id ? strdup(session->owner_id) : NULL;
    ret->prepared = session->prepared;
    ret->created_at = (double)session->created_at / (double)PF_NS_PER_SEC;
    ret->last_used_at = (double)session->last_used_at / (double)PF_NS_PER_SEC;
    if (!ret->session_id || (session->owner_id && !ret->owner_id))
        return -PINFOLD_ENOMEM;
    if (!session->has_seed_result)
        return 0;
    ret->seed_result = calloc(1, sizeof(*ret->seed_result));
    if (!ret->seed_result)
        return -PINFOLD_ENOMEM;
    return pf_seed_result_copy(ret->seed_result, &session->seed_result);
}

int pf_session_snapshot(struct pf_session *session, struct pinfold_session *ret)
{
    struct pinfold_session snapshot = { 0 };
    int r;

    pf_sessions_lock();
    r = snapshot_locked(session, &snapshot);
    pf_sessions_unlock();
    if (r < 0) {
        pinfold_session_done(&snapshot);
        return r;
    }
    *ret = snapshot;
    return 0;
}

const struct pf_seed_mark *pf_session_seed_mark(const struct pf_session *session)
{
    return &session->seed_mark;
}

int pf_session_mark_prepared(struct pf_session *session, const struct pinfold_seed_result *result,
                             struct pf_seed_mark *mark)
{
    struct pinfold_seed_result copy = { 0 };

    if (result && pf_seed_result_copy(&copy, result) < 0) {
        pinfold_seed_result_done(&copy);
        return -PINFOLD_ENOMEM;
    }
    pf_sessions_lock();
    session->prepared = true;
    if (mark && !session->seed_mark.source) {
        session->seed_mark = *mark;
        *mark = (struct pf_seed_mark){ .source = NULL };
    }
    if (result) {
        struct pinfold_seed_result old = session->seed_result;
        session->seed_result = copy;
        session->has_seed_result = true;
        copy = old;
    }
    pf_sessions_unlock();
    pinfold_seed_result_done(&copy);
    return 0;
}

/* ---- preparing ---- */

int pf_session_begin_prepare(struct pf_session *session, struct pinfold_cancel *cancel,
                             struct pinfold_error *err)
{
    int r = 0;

    pf_sessions_lock();
    while (r == 0 && session->preparing) {
        pf_sessions_wait();
        r = pf_cancel_check(cancel, err);
    }
    if (r == 0 && session->state != PF_SESSION_LIVE)
        r = pf_fail(err, PINFOLD_ESTART, "sandbox %s is not started", PF_QUOTE(session->id));
    else if (r == 0 && !session->prepared)
        r = session->preparing = true;
    pf_sessions_unlock();
    return r;
}

void pf_session_end_prepare(struct pf_session *session)
{
    pf_sessions_lock();
    session->preparing = false;
    pf_sessions_wake();
    pf_sessions_unlock();
}

/* ---- operations ---- */

int pf_session_begin(struct pf_session *session, struct pinfold_error *err)
{
    bool live;

    pf_sessions_lock();
    live = session->state == PF_SESSION_LIVE;
    if (live) {
        session->in_flight++;
        session->last_used_at = pf_clock_now();
    }
    pf_sessions_unlock();
    if (live)
        return 0;
    return pf_fail(err, PINFOLD_ESTART, "sandbox %s is not started%s", PF_QUOTE(session->id),
                   pf_sessions_inherited() ? " in this process (it was started before a fork)"
                                           : "");
}

void pf_session_end(struct pf_session *session)
{
    pf_sessions_lock();
    session->in_flight--;
    session->last_used_at = pf_clock_now();
    if (session->in_flight == 0)
        pf_sessions_wake();
    pf_sessions_unlock();
}

void pf_session_hold(struct pf_session *session)
{
    pf_sessions_lock();
    session->held++;
    pf_sessions_unlock();
}

void pf_session_let_go(struct pf_session *session)
{
    pf_sessions_lock();
    session->held--;
    session->last_used_at = pf_clock_now();
    pf_sessions_unlock();
}

/* ---- views ---- */

int pf_session_add_view(struct pf_session *session, struct pinfold_backend *backend,
                        struct pinfold_error *err)
{
    struct pf_session_view *view = malloc(sizeof(*view));
    bool live;

    if (!view)
        return pf_fail_nomem(err);
    view->backend = backend;
    pf_sessions_lock();
    live = session->state == PF_SESSION_LIVE;
    if (live) {
        pinfold_backend_ref(backend);
        LL_PREPEND(session->views, view);
    }
    pf_sessions_unlock();
    if (live)
        return 0;
    free(view);
    return pf_fail(err, PINFOLD_ESTART, "sandbox %s is being stopped", PF_QUOTE(session->id));
}

bool pf_session_drop_view(struct pf_session *session, struct pinfold_backend *backend)
{
    struct pf_session_view *view;

    pf_sessions_lock();
    LL_FOREACH(session->views, view)
        if (view->backend == backend)
            break;
    if (view)
        LL_DELETE(session->views, view);
    pf_sessions_unlock();
    if (!view)
        return false;
    view->next = NULL;
    pf_session_free_views(view);
    return true;
}
