/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/session.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/cancel.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/strings.h"
#include "sandbox/audit.h"
#include "sandbox/ids.h"

enum state {
    CREATING,
    LIVE,
    CLOSING,
    CLOSED,
};

struct view {
    struct pinfold_backend *backend;
    struct view *next;
};

struct pf_session {
    char *id;
    char *owner_id;                  /* NULL on the per-agent path */
    struct pinfold_manager *manager; /* identity only: a manager outlives its sessions */
    struct pinfold_backend *backend;
    char *storage_key;
    struct pf_sync_config sync;
    struct pinfold_audit_sink audit;
    pf_session_closing_fn on_closing;
    void *on_closing_ctx;
    int64_t ttl_ns;
    int64_t created_at, last_used_at;
    bool prepared;
    bool preparing; /* somebody is */
    bool has_seed_result;
    struct pinfold_seed_result seed_result;
    struct pf_seed_mark seed_mark; /* set once, before anybody else works with the session */
    enum state state;
    struct view *views;
    unsigned in_flight; /* operations, which a close waits for */
    unsigned held;      /* by what lives longer than an operation */
    unsigned refs;
    struct pf_session *prev, *next; /* in the table, until CLOSED */
};

/* The table, and the fields above from prepared on. Held for table work only, never for I/O. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER; /* a state, or in_flight reached 0 */
static struct pf_session *table;
static bool inherited; /* this process is a fork and the table is its parent's */

/* ---- fork: a child owns no sessions ---- */

static void before_fork(void)
{
    pthread_mutex_lock(&lock);
}

static void after_fork_in_parent(void)
{
    pthread_mutex_unlock(&lock);
}

static void after_fork_in_child(void)
{
    struct pf_session *session;

    /* The sessions are the parent's: forgotten here without closing anything. */
    DL_FOREACH(table, session) {
        session->state = CLOSED;
        session->refs--; /* the table's */
    }
    inherited = table != NULL;
    table = NULL;
    pthread_cond_init(&changed, NULL);
    pthread_mutex_unlock(&lock);
}

static void watch_forks(void)
{
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

static void lock_table(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, watch_forks);
    pthread_mutex_lock(&lock);
}

static void unlock_table(void)
{
    pthread_mutex_unlock(&lock);
}

/* Wait for a change; wakes now and then so that a caller can look at its cancellation token. */
static void wait_changed(void)
{
    struct timespec until;
    int64_t deadline = pf_clock_deadline(50 * PF_NS_PER_MS);

    until = (struct timespec){ .tv_sec = deadline / PF_NS_PER_SEC,
                               .tv_nsec = deadline % PF_NS_PER_SEC };
    pthread_cond_clockwait(&changed, &lock, CLOCK_MONOTONIC, &until);
}

/* ---- reading ---- */

static void free_views(struct view *views)
{
    while (views) {
        struct view *view = views;
        views = view->next;
        pinfold_backend_unref(view->backend);
        free(view);
    }
}

static void free_session(struct pf_session *session)
{
    free_views(session->views); /* in a forked child there may be some */
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
    lock_table();
    session->refs++;
    unlock_table();
    return session;
}

void pf_session_unref(struct pf_session *session)
{
    unsigned left;

    if (!session)
        return;
    lock_table();
    left = --session->refs;
    unlock_table();
    if (left == 0)
        free_session(session);
}

void pf_session_unrefp(struct pf_session **session)
{
    pf_session_unref(*session);
}

static struct pf_session *find_locked(const struct pinfold_manager *manager, const char *id)
{
    struct pf_session *session;

    DL_FOREACH(table, session)
        if (session->manager == manager && (!id || strcmp(session->id, id) == 0))
            return session;
    return NULL;
}

struct pf_session *pf_session_find(struct pinfold_manager *manager, const char *id)
{
    struct pf_session *session;

    lock_table();
    session = find_locked(manager, id);
    if (session && session->state == LIVE)
        session->refs++;
    else
        session = NULL;
    unlock_table();
    return session;
}

struct pf_session *pf_session_first(struct pinfold_manager *manager)
{
    struct pf_session *session;

    lock_table();
    session = find_locked(manager, NULL);
    if (session)
        session->refs++;
    unlock_table();
    return session;
}

bool pf_session_live(struct pf_session *session)
{
    bool live;

    lock_table();
    live = session->state == LIVE;
    unlock_table();
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

    lock_table();
    r = snapshot_locked(session, &snapshot);
    unlock_table();
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
    lock_table();
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
    unlock_table();
    pinfold_seed_result_done(&copy);
    return 0;
}

/* ---- opening ---- */

static void leave_table(struct pf_session *session)
{
    lock_table();
    if (session->state != CLOSED) { /* CLOSED already: this is a forked child */
        session->state = CLOSED;
        DL_DELETE(table, session);
        session->refs--; /* the table's */
    }
    pthread_cond_broadcast(&changed);
    unlock_table();
}

static struct pf_session *new_session(const struct pf_session_claim *claim)
{
    struct pf_session *session = calloc(1, sizeof(*session));

    if (!session)
        return NULL;
    session->id = strdup(claim->id);
    session->owner_id = claim->owner_id ? strdup(claim->owner_id) : NULL;
    if (!session->id || (claim->owner_id && !session->owner_id)) {
        free_session(session);
        return NULL;
    }
    session->manager = claim->manager;
    session->audit = claim->audit;
    session->on_closing = claim->on_closing;
    session->on_closing_ctx = claim->on_closing_ctx;
    session->ttl_ns = claim->ttl_ns;
    session->created_at = session->last_used_at = pf_clock_now();
    session->refs = 2; /* the table's and the caller's */
    return session;
}

/* Who stands in the way of this claim: an owner of the workspace anywhere in the process, for a
 * claim with an owner any session of that id, and otherwise one in this manager. Agents of two
 * managers may have sessions of one id, as all that are called "default" do. */
static struct pf_session *conflict_locked(const struct pf_session_claim *claim)
{
    struct pf_session *session;

    DL_FOREACH(table, session) {
        if (strcmp(session->id, claim->id) != 0)
            continue;
        if (session->manager == claim->manager || session->owner_id || claim->owner_id)
            return session;
    }
    return NULL;
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

    lock_table();
    while (r == 0 && (session = conflict_locked(claim))) {
        if (claim->owner_id || session->owner_id) {
            r = claimed_error(session, err);
        } else if (session->state == LIVE) {
            session->refs++;
            session->last_used_at = pf_clock_now();
            unlock_table();
            free_session(fresh);
            *ret = session;
            return 0;
        } else {
            wait_changed(); /* somebody is making or closing it */
            r = pf_cancel_check(claim->cancel, err);
        }
    }
    if (r == 0)
        DL_APPEND(table, fresh);
    unlock_table();
    if (r == 0) {
        *ret = fresh;
        return 1;
    }
    if (fresh)
        free_session(fresh);
    return r;
}

/* Give a session its backend, unless another session has that very instance: creating it twice, or
 * closing it for one while the other works, must not happen. */
static int claim_instance(struct pf_session *session, struct pinfold_backend *backend,
                          struct pinfold_error *err)
{
    struct pf_session *other;
    int r = 0;

    lock_table();
    DL_FOREACH(table, other)
        if (other->backend == backend)
            break;
    if (other)
        r = pf_fail(err, PINFOLD_ESTART,
                    "workspace %s would use the backend instance of workspace %s; give each an "
                    "instance of its own",
                    PF_QUOTE(session->id), PF_QUOTE(other->id));
    else
        session->backend = backend;
    unlock_table();
    return r;
}

/* Two workspaces never share storage: a created backend whose key another session has is
 * refused. */
static int claim_storage(struct pf_session *session, struct pinfold_error *err)
{
    const char *key = pf_backend_storage_key(session->backend);
    const char *root = pf_backend_root(session->backend);
    struct pf_session *other;
    char *copy;
    int r = 0;

    if (!key)
        return 0;
    copy = strdup(key);
    if (!copy)
        return pf_fail_nomem(err);
    lock_table();
    DL_FOREACH(table, other)
        if (other->storage_key && strcmp(other->storage_key, key) == 0)
            break;
    if (other)
        r = pf_fail(err, PINFOLD_ESTART,
                    "workspace %s would use the storage of workspace %s (%s); give each its own",
                    PF_QUOTE(session->id), PF_QUOTE(other->id), root ? PF_QUOTE(root) : key);
    else
        session->storage_key = TAKE(copy);
    unlock_table();
    free(copy);
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
    r = claim_instance(session, backend, err);
    if (r < 0) {
        pinfold_backend_unref(backend);
        return r;
    }
    pf_session_watch_network(session, true);
    r = pf_backend_create(backend, claim->cancel, err);
    if (r == 0) {
        r = claim_storage(session, err);
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
        leave_table(session);
        pf_session_unref(session);
        *ret = NULL;
        return r;
    }
    if (claim->sync) {
        session->sync = *claim->sync;
        *claim->sync = (struct pf_sync_config){ 0 };
    }
    lock_table();
    session->state = LIVE;
    session->last_used_at = pf_clock_now();
    pthread_cond_broadcast(&changed);
    unlock_table();
    return 0;
}

int pf_session_begin_prepare(struct pf_session *session, struct pinfold_cancel *cancel,
                             struct pinfold_error *err)
{
    int r = 0;

    lock_table();
    while (r == 0 && session->preparing) {
        wait_changed();
        r = pf_cancel_check(cancel, err);
    }
    if (r == 0 && session->state != LIVE)
        r = pf_fail(err, PINFOLD_ESTART, "sandbox %s is not started", PF_QUOTE(session->id));
    else if (r == 0 && !session->prepared)
        r = session->preparing = true;
    unlock_table();
    return r;
}

void pf_session_end_prepare(struct pf_session *session)
{
    lock_table();
    session->preparing = false;
    pthread_cond_broadcast(&changed);
    unlock_table();
}

/* ---- operations ---- */

int pf_session_begin(struct pf_session *session, struct pinfold_error *err)
{
    bool live;

    lock_table();
    live = session->state == LIVE;
    if (live) {
        session->in_flight++;
        session->last_used_at = pf_clock_now();
    }
    unlock_table();
    if (live)
        return 0;
    return pf_fail(err, PINFOLD_ESTART, "sandbox %s is not started%s", PF_QUOTE(session->id),
                   inherited ? " in this process (it was started before a fork)" : "");
}

void pf_session_end(struct pf_session *session)
{
    lock_table();
    session->in_flight--;
    session->last_used_at = pf_clock_now();
    if (session->in_flight == 0)
        pthread_cond_broadcast(&changed);
    unlock_table();
}

void pf_session_hold(struct pf_session *session)
{
    lock_table();
    session->held++;
    unlock_table();
}

void pf_session_let_go(struct pf_session *session)
{
    lock_table();
    session->held--;
    session->last_used_at = pf_clock_now();
    unlock_table();
}

/* ---- views ---- */

int pf_session_add_view(struct pf_session *session, struct pinfold_backend *backend,
                        struct pinfold_error *err)
{
    struct view *view = malloc(sizeof(*view));
    bool live;

    if (!view)
        return pf_fail_nomem(err);
    view->backend = backend;
    lock_table();
    live = session->state == LIVE;
    if (live) {
        pinfold_backend_ref(backend);
        LL_PREPEND(session->views, view);
    }
    unlock_table();
    if (live)
        return 0;
    free(view);
    return pf_fail(err, PINFOLD_ESTART, "sandbox %s is being stopped", PF_QUOTE(session->id));
}

bool pf_session_drop_view(struct pf_session *session, struct pinfold_backend *backend)
{
    struct view *view;

    lock_table();
    LL_FOREACH(session->views, view)
        if (view->backend == backend)
            break;
    if (view)
        LL_DELETE(session->views, view);
    unlock_table();
    if (!view)
        return false;
    view->next = NULL;
    free_views(view);
    return true;
}

/* ---- closing ---- */

static bool expired_locked(const struct pf_session *session, int64_t now)
{
    return session->state == LIVE && session->in_flight == 0 && session->held == 0 &&
           session->ttl_ns != PF_NEVER && now - session->last_used_at > session->ttl_ns;
}

struct pf_session **pf_session_expire(struct pinfold_manager *manager, size_t *ret_count)
{
    struct pf_session **expired = NULL, *session;
    int64_t now = pf_clock_now();
    size_t count = 0, used = 0;

    lock_table();
    DL_FOREACH(table, session)
        count += session->manager == manager && expired_locked(session, now);
    if (count > 0)
        expired = calloc(count, sizeof(struct pf_session *));
    if (expired)
        DL_FOREACH(table, session)
            if (session->manager == manager && expired_locked(session, now)) {
                session->state = CLOSING;
                session->refs++;
                expired[used++] = session;
            }
    unlock_table();
    *ret_count = count;
    return expired;
}

static void wait_idle(struct pf_session *session)
{
    lock_table();
    while (session->in_flight > 0)
        wait_changed();
    unlock_table();
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
    struct view *views, *view;
    int synced, closed;

    if (session->on_closing)
        session->on_closing(session->on_closing_ctx);
    lock_table();
    views = TAKE(session->views); /* from now on they are ours to close, and there come no more */
    unlock_table();
    pf_backend_stop_commands(session->backend);
    LL_FOREACH(views, view)
        pf_backend_stop_commands(view->backend);
    wait_idle(session);
    LL_FOREACH(views, view)
        pf_backend_close(view->backend, NULL);
    free_views(views);
    synced = sync_before_close(session, how, err);
    closed = pf_backend_close(session->backend, &close_error);
    pf_session_watch_network(session, false);
    leave_table(session);
    if (closed < 0 && synced == 0 && err)
        *err = close_error;
    return synced < 0 ? synced : closed;
}

int pf_session_close(struct pf_session *session, const struct pf_session_close *how,
                     struct pinfold_error *err)
{
    bool mine = false;

    lock_table();
    while (session->state == CREATING)
        wait_changed();
    if (session->state == LIVE) {
        session->state = CLOSING;
        mine = true;
    }
    while (!mine && session->state != CLOSED)
        wait_changed();
    unlock_table();
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
    int r = PF_BACKEND_CALL(session->backend, &local, sync_artifacts, &request, ret_result, cancel,
                            &local);

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
