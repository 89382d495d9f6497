/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/session_table.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "backend/local_files.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/strings.h"
#include "sandbox/audit.h"

/* ---- closing ---- */

static bool expired_locked(const struct pf_session *session, int64_t now)
{
    return session->state == PF_SESSION_LIVE && session->in_flight == 0 && session->held == 0 &&
           session->ttl_ns != PF_NEVER && now - session->last_used_at > session->ttl_ns;
}

struct pf_session **pf_session_expire(struct pinfold_manager *manager, size_t *ret_count)
{
    struct pf_session **sessions = pf_manager_sessions(manager), **expired = NULL, *session;
    int64_t now = pf_clock_now();
    size_t count = 0, used = 0;

    pf_sessions_lock();
    for (session = *sessions; session; session = session->in_manager.next)
        count += expired_locked(session, now);
    if (count > 0)
        expired = calloc(count, sizeof(struct pf_session *));
    for (session = expired ? *sessions : NULL; session; session = session->in_manager.next)
        if (expired_locked(session, now)) {
            session->state = PF_SESSION_CLOSING;
            session->refs++;
            expired[used++] = session;
        }
    pf_sessions_unlock();
    *ret_count = count;
    return expired;
}

static void wait_idle(struct pf_session *session)
{
    pf_sessions_lock();
    while (session->in_flight > 0)
        pf_sessions_wait();
    pf_sessions_unlock();
}

static int sync_before_close(struct pf_session *session, const struct pf_session_close *how,
                             struct pinfold_error *err)
{
    const struct pf_sync_config *config = how->config ? how->config : &session->sync;
    PF_CLEANUP(pinfold_sync_result_done) struct pinfold_sync_result unused = { 0 };
    struct pinfold_sync_result *result = how->ret_result ? how->ret_result : &unused;
    int r;

    if (!how->sync || !config->dest)
        return 0;
    r = pf_session_sync(session, config, config->dest, NULL, result, how->cancel, err);
    if (r < 0 || result->errors.count == 0)
        return r;
    return pf_fail(err, PINFOLD_EPREPARE, "flush to %s: %zu path(s) failed, first: %s",
                   PF_QUOTE(config->dest), result->errors.count, result->errors.items[0]);
}

int pf_session_finish(struct pf_session *session, const struct pf_session_close *how,
                      struct pinfold_error *err)
{
    struct pinfold_error close_error = PINFOLD_ERROR_INIT;
    struct pf_session_view *views, *view;
    int synced, closed;

    if (session->on_closing)
        session->on_closing(session->on_closing_ctx);
    pf_sessions_lock();
    views = TAKE(session->views); /* from now on they are ours to close, and there come no more */
    pf_sessions_unlock();
    pf_backend_stop_commands(session->backend);
    LL_FOREACH(views, view)
        pf_backend_stop_commands(view->backend);
    wait_idle(session);
    LL_FOREACH(views, view)
        pf_backend_close(view->backend, NULL);
    pf_session_free_views(views);
    synced = sync_before_close(session, how, err);
    closed = pf_backend_close(session->backend, &close_error);
    pf_session_watch_network(session, false);
    pf_sessions_leave(session);
    if (closed < 0 && synced == 0 && err)
        *err = close_error;
    return synced < 0 ? synced : closed;
}

int pf_session_close(struct pf_session *session, const struct pf_session_close *how,
                     struct pinfold_error *err)
{
    bool mine = false;

    pf_sessions_lock();
    while (session->state == PF_SESSION_CREATING)
        pf_sessions_wait();
    if (session->state == PF_SESSION_LIVE) {
        session->state = PF_SESSION_CLOSING;
        mine = true;
    }
    while (!mine && session->state != PF_SESSION_CLOSED)
        pf_sessions_wait();
    pf_sessions_unlock();
    return mine ? pf_session_finish(session, how, err) : 0;
}

/* ---- flushing ---- */

int pf_session_override_sync(const struct pf_session *session, const char *dest,
                             const struct pinfold_sync_policy *policy, struct pf_sync_config *ret,
                             struct pinfold_error *err)
{
    PF_CLEANUP(pf_sync_config_done) struct pf_sync_config config = { 0 };
    int r = pf_sync_config_init(&config, dest ? dest : session->sync.dest, policy, err);

    if (r < 0)
        return r;
    if (!policy && session->sync.include) {
        pf_strv_free(config.include);
        pf_strv_free(config.exclude);
        config.include = pf_strv_copy((const char *const *)session->sync.include);
        config.exclude = pf_strv_copy((const char *const *)session->sync.exclude);
        if (!config.include || !config.exclude)
            return pf_fail_nomem(err);
    }
    config.on_progress = session->sync.on_progress;
    config.on_progress_ctx = session->sync.on_progress_ctx;
    *ret = config;
    config = (struct pf_sync_config){ 0 };
    return 0;
}

static int sync_copy(const struct pf_sync_copy *copy, const struct pinfold_sync_request *request,
                     struct pinfold_sync_result *ret, struct pinfold_cancel *cancel,
                     struct pinfold_error *err)
{
    int r = pf_local_sync_copy(copy->path, request, ret, cancel, err);

    for (size_t i = 0; r == 0 && i < copy->errors->count; i++)
        if (pf_strings_add(&ret->errors, copy->errors->items[i]) < 0)
            r = pf_fail_nomem(err);
    pf_strings_sort(&ret->errors);
    return r;
}

int pf_session_sync(struct pf_session *session, const struct pf_sync_config *config,
                    const char *dest, struct pinfold_plan *plan,
                    struct pinfold_sync_result *ret_result, struct pinfold_cancel *cancel,
                    struct pinfold_error *err)
{
    struct pinfold_sync_request request = {
        .size = sizeof(request),
        .dest = dest,
        .include = (const char *const *)config->include,
        .exclude = (const char *const *)config->exclude,
        .plan = plan,
        .on_progress = config->on_progress,
        .on_progress_ctx = config->on_progress_ctx,
    };
    struct pinfold_audit_event event = PF_AUDIT_EVENT_INIT("sandbox.flush");
    struct pinfold_error local = PINFOLD_ERROR_INIT;
    int64_t started = pf_clock_now();
    int r = config->copy ? sync_copy(config->copy, &request, ret_result, cancel, &local)
                         : PF_BACKEND_CALL(session->backend, &local, sync_artifacts, &request,
                                           ret_result, cancel, &local);

    if (!plan) {
        event.workspace_id = session->id;
        event.owner_id = session->owner_id;
        event.backend_type = session->backend->ops->type_name;
        event.path = dest;
        event.files = (int64_t)ret_result->files_synced;
        event.bytes = (int64_t)ret_result->bytes_synced;
        event.errors = (int64_t)ret_result->errors.count;
        event.duration_ns = pf_clock_now() - started;
        pf_audit_emit(&session->audit, &event, r, &local);
    }
    if (r < 0 && err)
        *err = local;
    return r;
}
