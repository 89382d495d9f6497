/* SPDX-License-Identifier: Apache-2.0 */
/* A Sandbox's life: new, start, stop, and what it says of itself. */
#include "sandbox/sandbox.h"

#include <stdlib.h>
#include <string.h>

#include "base/cancel.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/random.h"
#include "base/strings.h"
#include "sandbox/ids.h"
#include "sandbox/ttl.h"
#include "tree/file.h"

/* ---- making ---- */

static int check_options(const struct pinfold_sandbox_options *options, int64_t *ret_ttl_ns,
                         struct pinfold_error *err)
{
    int r;

    if (options->size != sizeof(*options))
        return pf_fail(err, PINFOLD_EVALUE, "Sandbox: options of %zu bytes, not %zu", options->size,
                       sizeof(*options));
    r = pf_workspace_id_check(options->workspace_id, err);
    if (r == 0)
        r = pf_ttl_ns(options->ttl_seconds, ret_ttl_ns, err);
    if (r == 0)
        r = pinfold_patterns_check(options->seed_exclude, err);
    if (r == 0)
        r = pinfold_patterns_check(options->sync_exclude, err);
    if (r < 0)
        return pf_wrap(err, r, "Sandbox");
    if (!options->backend)
        return pf_fail(err, PINFOLD_ETYPE,
                       "Sandbox %s: a backend is required; if it came from an optional package, "
                       "install that package",
                       PF_QUOTE(options->workspace_id));
    return 0;
}

static int make_manager(struct pinfold_sandbox *sandbox,
                        const struct pinfold_sandbox_options *options, struct pinfold_error *err)
{
    struct pinfold_manager_options own = PINFOLD_MANAGER_OPTIONS_INIT;

    if (options->manager) {
        sandbox->manager = pinfold_manager_ref(options->manager);
        return 0;
    }
    own.ttl_seconds = options->ttl_seconds;
    own.audit = options->audit;
    return pinfold_manager_new(&own, &sandbox->manager, err);
}

/* Resolve host paths now, while the current directory is the one the caller meant, and merge the
 * patterns. */
static int configure(struct pinfold_sandbox *sandbox, const struct pinfold_sandbox_options *options,
                     struct pinfold_error *err)
{
    _cleanup_free_ char *dest = NULL;
    const char *const *excludes[3] = { 0 };
    char **stay;
    int r = 0;

    if (options->seed_from)
        r = pf_path_expand(options->seed_from, &sandbox->seed_from, err);
    if (r == 0 && options->sync_dest)
        r = pf_path_expand(options->sync_dest, &dest, err);
    if (r == 0)
        r = pf_sync_config_init(&sandbox->sync, dest ? dest : sandbox->seed_from,
                                options->sync_policy, err);
    if (r < 0)
        return r;
    sandbox->sync.on_progress = options->on_progress;
    sandbox->sync.on_progress_ctx = options->on_progress_ctx;
    excludes[0] = (const char *const *)sandbox->sync.exclude; /* defaults and the policy's */
    excludes[1] = options->seed_exclude;
    sandbox->exclude = pf_strv_concat(excludes, 2);
    excludes[1] = options->sync_exclude;
    stay = pf_strv_concat(excludes, 2);
    if (!sandbox->exclude || !stay) {
        pf_strv_free(stay);
        return pf_fail_nomem(err);
    }
    pf_strv_free(sandbox->sync.exclude);
    sandbox->sync.exclude = stay;
    return make_manager(sandbox, options, err);
}

void pf_sandbox_freep(struct pinfold_sandbox **slot)
{
    struct pinfold_sandbox *sandbox = *slot;

    if (!sandbox)
        return;
    pf_session_unref(sandbox->session);
    pinfold_seed_result_done(&sandbox->seed_result);
    pinfold_manager_unref(sandbox->manager);
    pinfold_backend_unref(sandbox->backend);
    pf_sync_config_done(&sandbox->sync);
    pf_strv_free(sandbox->exclude);
    pthread_cond_destroy(&sandbox->changed);
    pthread_mutex_destroy(&sandbox->lock);
    free(sandbox->seed_from);
    free(sandbox->view);
    free(sandbox->agent_id);
    free(sandbox->workspace_id);
    free(sandbox);
}

int pinfold_sandbox_new(const struct pinfold_sandbox_options *options,
                        struct pinfold_sandbox **ret_sandbox, struct pinfold_error *err)
{
    PF_CLEANUP(pf_sandbox_freep) struct pinfold_sandbox *sandbox = NULL;
    int64_t ttl_ns;
    int r = check_options(options, &ttl_ns, err);

    if (r < 0)
        return r;
    sandbox = calloc(1, sizeof(*sandbox));
    if (!sandbox)
        return pf_fail_nomem(err);
    pthread_mutex_init(&sandbox->lock, NULL);
    pthread_cond_init(&sandbox->changed, NULL);
    sandbox->backend = pinfold_backend_ref(options->backend);
    sandbox->ttl_ns = ttl_ns;
    sandbox->audit = options->audit;
    sandbox->on_progress = options->on_progress;
    sandbox->on_progress_ctx = options->on_progress_ctx;
    sandbox->workspace_id = strdup(options->workspace_id);
    if (!sandbox->workspace_id)
        return pf_fail_nomem(err);
    r = configure(sandbox, options, err);
    if (r < 0)
        return pf_wrap(err, r, "Sandbox %s", PF_QUOTE(options->workspace_id));
    *ret_sandbox = TAKE(sandbox);
    return 0;
}

void pinfold_sandbox_free(struct pinfold_sandbox *sandbox)
{
    if (!sandbox)
        return;
    if (sandbox->view)
        pf_view_end(sandbox);
    else
        pinfold_sandbox_stop(sandbox, false, NULL, NULL, NULL);
    pf_sandbox_freep(&sandbox);
}

/* ---- operations ---- */

int pf_sandbox_begin(struct pinfold_sandbox *sandbox, struct pf_session **ret,
                     struct pinfold_error *err)
{
    struct pf_session *session = NULL;
    int r;

    pthread_mutex_lock(&sandbox->lock);
    if (sandbox->state == PF_STARTED)
        session = pf_session_ref(sandbox->session);
    pthread_mutex_unlock(&sandbox->lock);
    if (!session)
        return pf_fail(err, PINFOLD_ESTART, "sandbox %s is not started",
                       PF_QUOTE(sandbox->workspace_id));
    r = pf_session_begin(session, err);
    if (r < 0) {
        pf_session_unref(session);
        return r;
    }
    *ret = session;
    return 0;
}

int pf_sandbox_begin_change(struct pinfold_sandbox *sandbox, struct pinfold_audit_event *event,
                            struct pf_session **ret, struct pinfold_error *err)
{
    int r = pf_view_refuse(sandbox, event, err);

    return r < 0 ? r : pf_sandbox_begin(sandbox, ret, err);
}

void pf_sandbox_end(struct pf_session *session)
{
    pf_session_end(session);
    pf_session_unref(session);
}

void pf_sandbox_endp(struct pf_session **session)
{
    if (*session)
        pf_sandbox_end(*session);
}

struct pinfold_backend *pf_sandbox_reader(const struct pinfold_sandbox *sandbox,
                                          const struct pf_session *session)
{
    return sandbox->view ? sandbox->backend : pf_session_backend(session);
}

int pf_sandbox_path(const struct pf_session *session, const char *path, char **ret_path,
                    struct pinfold_error *err)
{
    return pinfold_path_normalize(path, strlen(path), pf_backend_root(pf_session_backend(session)),
                                  ret_path, err);
}

void pf_sandbox_audit(struct pinfold_sandbox *sandbox, const struct pf_session *session,
                      struct pinfold_audit_event *event, int r, const struct pinfold_error *err)
{
    event->workspace_id = sandbox->workspace_id;
    event->view = sandbox->view;
    if (!event->agent_id)
        event->agent_id = sandbox->agent_id;
    event->owner_id = session ? pf_session_owner(session) : NULL;
    event->backend_type = session ? pf_session_backend(session)->ops->type_name
                                  : sandbox->backend->ops->type_name;
    pf_audit_emit(&sandbox->audit, event, r, err);
}

/* ---- starting ---- */

static int claim(struct pinfold_sandbox *sandbox, struct pf_session **ret,
                 struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    PF_CLEANUP(pinfold_backend_factory_done) struct pinfold_backend_factory factory = { 0 };
    PF_CLEANUP(pf_sync_config_done) struct pf_sync_config sync = { 0 };
    char owner_id[32] = "sandbox-";
    int r = pinfold_backend_factory_for_session(sandbox->backend, sandbox->workspace_id, &factory,
                                                err);

    if (r < 0)
        return r;
    r = pf_sync_config_copy(&sync, &sandbox->sync);
    if (r < 0)
        return pf_fail_nomem(err);
    pf_random_hex(owner_id + strlen(owner_id), 16);
    return pf_session_open(&(struct pf_session_claim){ .manager = sandbox->manager,
                                                       .id = sandbox->workspace_id,
                                                       .owner_id = owner_id,
                                                       .factory = &factory,
                                                       .ttl_ns = sandbox->ttl_ns,
                                                       .audit = sandbox->audit,
                                                       .sync = &sync,
                                                       .on_closing = pf_sandbox_detach_all,
                                                       .on_closing_ctx = sandbox,
                                                       .cancel = cancel },
                           ret, err);
}

static int open_root(const struct pinfold_backend *backend)
{
    _cleanup_close_ int upper_fd = -1;
    int root_fd = -1;

    if (backend->ops->open_root)
        backend->ops->open_root(backend->state, &root_fd, &upper_fd, NULL, NULL);
    return root_fd;
}

static int seed(struct pinfold_sandbox *sandbox, struct pf_session *session,
                struct pinfold_seed_result *result, struct pinfold_cancel *cancel,
                struct pinfold_error *err)
{
    PF_CLEANUP(pf_seed_mark_done) struct pf_seed_mark mark = { .source = NULL };
    struct pinfold_backend *backend = pf_session_backend(session);
    const char *const *exclude = (const char *const *)sandbox->exclude;
    _cleanup_close_ int root_fd = sandbox->seed_from ? open_root(backend) : -1;
    int r = 0;

    if (sandbox->seed_from) {
        if (pf_seed_mark_begin(&mark, sandbox->seed_from, exclude, root_fd) < 0)
            return pf_fail_nomem(err);
        r = PF_BACKEND_CALL(
                backend, err, seed_workspace,
                &(struct pinfold_seed_request){ .size = sizeof(struct pinfold_seed_request),
                                                .source = sandbox->seed_from,
                                                .exclude = exclude,
                                                .on_progress = sandbox->on_progress,
                                                .on_progress_ctx = sandbox->on_progress_ctx },
                result, cancel, err);
        pf_seed_mark_end(&mark, root_fd);
        if (r == 0 && result->errors.count > 0)
            r = pf_fail(err, PINFOLD_EPREPARE, "seed from %s: %zu path(s) failed, first: %s",
                        PF_QUOTE(sandbox->seed_from), result->errors.count,
                        result->errors.items[0]);
    }
    if (r == 0 && pf_session_mark_prepared(session, sandbox->seed_from ? result : NULL, &mark) < 0)
        r = pf_fail_nomem(err);
    return r;
}

/* Seeding counts as an operation: one that takes longer than the ttl is not idleness, and a close
 * waits for its end. */
int pf_sandbox_seed(struct pinfold_sandbox *sandbox, struct pf_session *session,
                    struct pinfold_seed_result *result, struct pinfold_cancel *cancel,
                    struct pinfold_error *err)
{
    int r = pf_session_begin(session, err);

    if (r < 0)
        return r;
    r = seed(sandbox, session, result, cancel, err);
    pf_session_end(session);
    return r;
}

/* One whole start. On failure nothing of it remains but the seed result. */
static int start_once(struct pinfold_sandbox *sandbox, struct pf_session **ret,
                      struct pinfold_seed_result *result, struct pinfold_cancel *cancel,
                      struct pinfold_error *err)
{
    struct pinfold_audit_event event = PF_AUDIT_EVENT_INIT("sandbox.start");
    struct pf_session *session = NULL;
    int64_t began = pf_clock_now();
    int r = claim(sandbox, &session, cancel, err);

    if (r == 0)
        r = pf_sandbox_seed(sandbox, session, result, cancel, err);
    event.path = sandbox->seed_from;
    event.files = (int64_t)result->files_seeded;
    event.bytes = (int64_t)result->bytes_seeded;
    event.errors = (int64_t)result->errors.count;
    event.duration_ns = pf_clock_now() - began;
    pf_sandbox_audit(sandbox, session, &event, r, err);
    if (r == 0) {
        *ret = session;
        return 0;
    }
    if (session) {
        pf_session_close(session, &(struct pf_session_close){ .sync = false }, NULL);
        pf_session_unref(session);
    }
    return r;
}

/* Wait for a start or stop under way. Called and returns with the lock held. */
static int wait_settled(struct pinfold_sandbox *sandbox, struct pinfold_cancel *cancel,
                        struct pinfold_error *err)
{
    while (sandbox->state == PF_STARTING || sandbox->state == PF_STOPPING) {
        int64_t tick = pf_clock_deadline(50 * PF_NS_PER_MS);
        int r;

        pthread_cond_clockwait(&sandbox->changed, &sandbox->lock, CLOCK_MONOTONIC,
                               &(struct timespec){ .tv_sec = tick / PF_NS_PER_SEC,
                                                   .tv_nsec = tick % PF_NS_PER_SEC });
        r = pf_cancel_check(cancel, err);
        if (r < 0)
            return r;
    }
    return 0;
}

/* What the last start gave, for a caller who did not run it. The lock is held. */
static int repeat_result(struct pinfold_sandbox *sandbox, struct pinfold_seed_result *ret,
                         struct pinfold_error *err)
{
    PF_CLEANUP(pinfold_seed_result_done) struct pinfold_seed_result copy = { 0 };

    if (sandbox->start_result < 0 && err)
        *err = sandbox->start_error;
    if (!ret)
        return sandbox->start_result;
    if (pf_seed_result_copy(&copy, &sandbox->seed_result) < 0)
        return pf_fail_nomem(err);
    *ret = copy;
    copy = (struct pinfold_seed_result){ 0 };
    return sandbox->start_result;
}

/* Decide under the lock who starts. Returns 1: the caller does, after the session of the life
 * before, if the manager has expired one; otherwise the answer is *ret_r. */
static int enter_start(struct pinfold_sandbox *sandbox, struct pinfold_seed_result *ret,
                       struct pf_session **ret_expired, int *ret_r, struct pinfold_cancel *cancel,
                       struct pinfold_error *err)
{
    bool waited = sandbox->state == PF_STARTING;

    *ret_r = wait_settled(sandbox, cancel, err);
    if (*ret_r < 0)
        return 0;
    /* Whoever ran it was cancelled, and not the caller, who begins anew. */
    if (waited && sandbox->start_result == -PINFOLD_ECANCELLED)
        waited = false;
    if (waited || (sandbox->state == PF_STARTED && pf_session_live(sandbox->session))) {
        *ret_r = repeat_result(sandbox, ret, err);
        return 0;
    }
    *ret_expired = TAKE(sandbox->session);
    sandbox->state = PF_STARTING;
    return 1;
}

int pinfold_sandbox_start(struct pinfold_sandbox *sandbox, struct pinfold_seed_result *ret,
                          struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    struct pinfold_audit_event event = PF_AUDIT_EVENT_INIT("sandbox.start");
    struct pinfold_error start_error = PINFOLD_ERROR_INIT;
    struct pinfold_seed_result result = { 0 };
    struct pf_session *session = NULL, *expired = NULL;
    int r;

    if (ret)
        memset(ret, 0, sizeof(*ret));
    r = pf_view_refuse(sandbox, &event, err);
    if (r < 0)
        return r;
    pthread_mutex_lock(&sandbox->lock);
    if (enter_start(sandbox, ret, &expired, &r, cancel, err) == 0) {
        pthread_mutex_unlock(&sandbox->lock);
        return r;
    }
    pthread_mutex_unlock(&sandbox->lock);

    /* The manager may still be at work on it, and it holds the claim and looks at us until it is
     * closed. */
    if (expired)
        pf_session_close(expired, &(struct pf_session_close){ .sync = false }, NULL);
    pf_session_unref(expired);
    r = start_once(sandbox, &session, &result, cancel, &start_error);

    pthread_mutex_lock(&sandbox->lock);
    pinfold_seed_result_done(&sandbox->seed_result);
    sandbox->seed_result = result;
    sandbox->start_result = r;
    sandbox->start_error = start_error;
    sandbox->session = session;
    sandbox->state = r == 0 ? PF_STARTED : PF_STOPPED;
    r = repeat_result(sandbox, ret, err);
    pthread_cond_broadcast(&sandbox->changed);
    pthread_mutex_unlock(&sandbox->lock);
    return r;
}

/* ---- stopping ---- */

int pinfold_sandbox_stop_commands(struct pinfold_sandbox *sandbox, struct pinfold_error *err)
{
    struct pinfold_audit_event event = PF_AUDIT_EVENT_INIT("sandbox.stop_commands");
    _cleanup_operation_ struct pf_session *session = NULL;
    int r = pf_view_refuse(sandbox, &event, err);

    if (r == 0)
        r = pf_sandbox_begin(sandbox, &session, err);
    if (r < 0)
        return r;
    pf_backend_stop_commands(pf_session_backend(session));
    pf_sandbox_audit(sandbox, session, &event, 0, NULL);
    return 0;
}

int pinfold_sandbox_stop(struct pinfold_sandbox *sandbox, bool sync,
                         struct pinfold_sync_result *ret, struct pinfold_cancel *cancel,
                         struct pinfold_error *err)
{
    struct pinfold_audit_event event = PF_AUDIT_EVENT_INIT("sandbox.stop");
    struct pinfold_error stop_error = PINFOLD_ERROR_INIT;
    struct pf_session *session;
    int64_t began = pf_clock_now();
    int r;

    if (ret)
        memset(ret, 0, sizeof(*ret));
    r = pf_view_refuse(sandbox, &event, err);
    if (r < 0)
        return r;
    pthread_mutex_lock(&sandbox->lock);
    wait_settled(sandbox, NULL, NULL);
    session = TAKE(sandbox->session);
    if (session)
        sandbox->state = PF_STOPPING;
    pthread_mutex_unlock(&sandbox->lock);
    if (!session)
        return 0;

    r = pf_session_close(
            session,
            &(struct pf_session_close){ .sync = sync, .ret_result = ret, .cancel = cancel },
            &stop_error);
    event.duration_ns = pf_clock_now() - began;
    pf_sandbox_audit(sandbox, session, &event, r, &stop_error);
    pf_session_unref(session);
    pthread_mutex_lock(&sandbox->lock);
    sandbox->state = PF_STOPPED;
    pthread_cond_broadcast(&sandbox->changed);
    pthread_mutex_unlock(&sandbox->lock);
    if (r < 0 && err)
        *err = stop_error;
    return r;
}

/* ---- properties ---- */

bool pinfold_sandbox_is_started(struct pinfold_sandbox *sandbox)
{
    bool started;

    pthread_mutex_lock(&sandbox->lock);
    started = sandbox->state == PF_STARTED && pf_session_live(sandbox->session);
    pthread_mutex_unlock(&sandbox->lock);
    return started;
}

int pinfold_sandbox_owner_id(struct pinfold_sandbox *sandbox, char **ret_id,
                             struct pinfold_error *err)
{
    char *id = NULL;
    int r = 0;

    pthread_mutex_lock(&sandbox->lock);
    if (sandbox->state == PF_STARTED && pf_session_live(sandbox->session)) {
        id = strdup(pf_session_owner(sandbox->session));
        r = id ? 0 : -PINFOLD_ENOMEM;
    }
    pthread_mutex_unlock(&sandbox->lock);
    if (r < 0)
        return pf_fail_nomem(err);
    *ret_id = id;
    return 0;
}

int pinfold_sandbox_ref(struct pinfold_sandbox *sandbox, struct pinfold_sandbox_ref *ret_ref,
                        struct pinfold_error *err)
{
    PF_CLEANUP(pinfold_sandbox_ref_done)
    struct pinfold_sandbox_ref ref = {
        .workspace_id = strdup(sandbox->workspace_id),
        .backend_type = strdup(sandbox->backend->ops->type_name),
        .manager_id = strdup(pinfold_manager_id(sandbox->manager)),
    };

    if (!ref.workspace_id || !ref.backend_type || !ref.manager_id)
        return pf_fail_nomem(err);
    *ret_ref = ref;
    ref = (struct pinfold_sandbox_ref){ 0 };
    return 0;
}
