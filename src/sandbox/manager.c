/* SPDX-License-Identifier: Apache-2.0 */
#include <pinfold/manager.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/random.h"
#include "base/strings.h"
#include "sandbox/audit.h"
#include "sandbox/ids.h"
#include "sandbox/ttl.h"
#include "sandbox/session_table.h"

enum { DEFAULT_TTL_SECONDS = 3600 };

struct pinfold_manager {
    char id[32];
    int64_t ttl_ns;
    struct pinfold_audit_sink audit;
    struct pf_session *sessions; /* session_table.c's, under its lock */
    unsigned refs;               /* atomic */
};

struct pf_session **pf_manager_sessions(struct pinfold_manager *manager)
{
    return &manager->sessions;
}

int pf_ttl_ns(double seconds, int64_t *ret, struct pinfold_error *err)
{
    if (isnan(seconds) || seconds <= 0)
        return pf_fail(err, PINFOLD_EVALUE, "ttl_seconds must be more than 0, not %g", seconds);
    *ret = seconds >= 9e9 ? PF_NEVER : (int64_t)(seconds * (double)PF_NS_PER_SEC);
    return 0;
}

int pinfold_manager_new(const struct pinfold_manager_options *options,
                        struct pinfold_manager **ret_manager, struct pinfold_error *err)
{
    static const struct pinfold_manager_options defaults = PINFOLD_MANAGER_OPTIONS_INIT;
    _cleanup_free_ struct pinfold_manager *manager = NULL;
    int64_t ttl_ns = PF_NEVER;
    double ttl;
    int r;

    if (!options)
        options = &defaults;
    if (options->size != sizeof(*options))
        return pf_fail(err, PINFOLD_EVALUE, "SandboxManager: options of %zu bytes, not %zu",
                       options->size, sizeof(*options));
    ttl = fpclassify(options->ttl_seconds) == FP_ZERO ? DEFAULT_TTL_SECONDS : options->ttl_seconds;
    if (!(ttl >= PINFOLD_TTL_NONE && ttl <= PINFOLD_TTL_NONE)) {
        r = pf_ttl_ns(ttl, &ttl_ns, err);
        if (r < 0)
            return pf_wrap(err, r, "SandboxManager");
    }
    manager = calloc(1, sizeof(*manager));
    if (!manager)
        return pf_fail_nomem(err);
    memcpy(manager->id, "manager-", 8);
    pf_random_hex(manager->id + 8, 8);
    manager->ttl_ns = ttl_ns;
    manager->audit = options->audit;
    manager->refs = 1;
    *ret_manager = TAKE(manager);
    return 0;
}

struct pinfold_manager *pinfold_manager_ref(struct pinfold_manager *manager)
{
    __atomic_fetch_add(&manager->refs, 1, __ATOMIC_RELAXED);
    return manager;
}

void pinfold_manager_unref(struct pinfold_manager *manager)
{
    struct pf_session *session;

    if (!manager || __atomic_sub_fetch(&manager->refs, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    while ((session = pf_session_first(manager))) {
        pf_session_close(session, &(struct pf_session_close){ .sync = false }, NULL);
        pf_session_unref(session);
    }
    free(manager);
}

const char *pinfold_manager_id(const struct pinfold_manager *manager)
{
    return manager->id;
}

int pinfold_manager_resolve_workspace_id(struct pinfold_manager *manager,
                                         const struct pinfold_agent_ids *ids, const char **ret_id,
                                         struct pinfold_error *err)
{
    const char *id = ids->sandbox_workspace_id && *ids->sandbox_workspace_id
                             ? ids->sandbox_workspace_id
                     : ids->session_id && *ids->session_id ? ids->session_id
                                                           : ids->agent_id;
    int r = pf_workspace_id_check(id, err);

    if (r < 0)
        return pf_wrap(err, r, "resolve the workspace of an agent");
    if (strcmp(id, "default") == 0)
        pf_log(PINFOLD_LOG_WARNING,
               "the workspace id is \"default\": all agents without an id of their own share one "
               "workspace on %s; give each agent an agent_id",
               manager->id);
    *ret_id = id;
    return 0;
}

int pinfold_manager_resolve_session_id(struct pinfold_manager *manager,
                                       const struct pinfold_agent_ids *ids, const char **ret_id,
                                       struct pinfold_error *err)
{
    return pinfold_manager_resolve_workspace_id(manager, ids, ret_id, err);
}

int pinfold_manager_get_session(struct pinfold_manager *manager, const char *session_id,
                                struct pinfold_session *ret_session, struct pinfold_error *err)
{
    PF_CLEANUP(pf_session_unrefp) struct pf_session *session = pf_session_find(manager, session_id);

    memset(ret_session, 0, sizeof(*ret_session));
    if (!session)
        return 0;
    return pf_session_snapshot(session, ret_session) < 0 ? pf_fail_nomem(err) : 1;
}

/* Open a session and describe it to the caller. */
static int open_session(const struct pf_session_claim *claim, struct pinfold_session *ret_session,
                        struct pinfold_error *err)
{
    PF_CLEANUP(pf_session_unrefp) struct pf_session *session = NULL;
    int r = pf_session_open(claim, &session, err);

    if (r < 0 || !ret_session)
        return r;
    return pf_session_snapshot(session, ret_session) < 0 ? pf_fail_nomem(err) : 0;
}

int pf_manager_open(struct pinfold_manager *manager, const char *id,
                    const struct pinfold_backend_factory *factory, struct pf_sync_config *sync,
                    struct pinfold_cancel *cancel, struct pf_session **ret,
                    struct pinfold_error *err)
{
    return pf_session_open(&(struct pf_session_claim){ .manager = manager,
                                                       .id = id,
                                                       .factory = factory,
                                                       .ttl_ns = manager->ttl_ns,
                                                       .audit = manager->audit,
                                                       .sync = sync,
                                                       .cancel = cancel },
                           ret, err);
}

int pinfold_manager_get_or_create(struct pinfold_manager *manager, const char *session_id,
                                  const struct pinfold_backend_factory *factory,
                                  struct pinfold_session *ret_session,
                                  struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    return open_session(&(struct pf_session_claim){ .manager = manager,
                                                    .id = session_id,
                                                    .factory = factory,
                                                    .ttl_ns = manager->ttl_ns,
                                                    .audit = manager->audit,
                                                    .cancel = cancel },
                        ret_session, err);
}

int pinfold_manager_claim_session(struct pinfold_manager *manager, const char *session_id,
                                  const struct pinfold_backend_factory *factory,
                                  const char *owner_id, double ttl_seconds,
                                  struct pinfold_session *ret_session,
                                  struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    struct pf_session_claim claim = { .manager = manager,
                                      .id = session_id,
                                      .owner_id = owner_id,
                                      .factory = factory,
                                      .ttl_ns = manager->ttl_ns,
                                      .audit = manager->audit,
                                      .cancel = cancel };
    int r;

    if (!owner_id || !*owner_id)
        return pf_fail(err, PINFOLD_EVALUE, "claim workspace %s: owner_id is required",
                       PF_QUOTE(session_id ? session_id : ""));
    if (fpclassify(ttl_seconds) != FP_ZERO) {
        r = pf_ttl_ns(ttl_seconds, &claim.ttl_ns, err);
        if (r < 0)
            return r;
    }
    return open_session(&claim, ret_session, err);
}

int pinfold_manager_mark_prepared(struct pinfold_manager *manager, const char *session_id,
                                  const struct pinfold_seed_result *seed_result,
                                  struct pinfold_error *err)
{
    PF_CLEANUP(pf_session_unrefp) struct pf_session *session = pf_session_find(manager, session_id);

    if (!session)
        return pf_fail(err, PINFOLD_ESTART, "no session %s in this manager", PF_QUOTE(session_id));
    return pf_session_mark_prepared(session, seed_result, NULL) < 0 ? pf_fail_nomem(err) : 0;
}

int pinfold_manager_close_session(struct pinfold_manager *manager, const char *session_id,
                                  const struct pinfold_close_options *options,
                                  struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    PF_CLEANUP(pf_session_unrefp) struct pf_session *session = pf_session_find(manager, session_id);
    PF_CLEANUP(pf_sync_config_done) struct pf_sync_config config = { 0 };
    struct pf_session_close how = { .sync = !options || !options->skip_sync, .cancel = cancel };
    int r;

    if (!session)
        return 0;
    if (options && options->size != sizeof(*options))
        return pf_fail(err, PINFOLD_EVALUE, "close_session: options of %zu bytes, not %zu",
                       options->size, sizeof(*options));
    if (options && (options->sync_dest || options->policy)) {
        r = pf_session_override_sync(session, options->sync_dest, options->policy, &config, err);
        if (r < 0)
            return r;
        how.config = &config;
    }
    return pf_session_close(session, &how, err);
}

/* Close one expired session. What goes wrong here reaches the audit and nobody else. */
static void finish_expired(struct pinfold_manager *manager, struct pf_session *session)
{
    struct pinfold_audit_event event = PF_AUDIT_EVENT_INIT("sandbox.expire");
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    struct pinfold_audit_sink sink =
            manager->audit.emit ? manager->audit : pf_session_audit(session);
    int r = pf_session_finish(session, &(struct pf_session_close){ .sync = true }, &err);

    event.workspace_id = pf_session_id(session);
    event.owner_id = pf_session_owner(session);
    event.backend_type = pf_session_backend(session)->ops->type_name;
    pf_audit_emit(&sink, &event, r, &err);
}

int pinfold_manager_cleanup_expired(struct pinfold_manager *manager,
                                    struct pinfold_strings *ret_ids, struct pinfold_error *err)
{
    _cleanup_free_ struct pf_session **expired = NULL;
    PF_CLEANUP(pinfold_strings_done) struct pinfold_strings ids = { 0 };
    size_t count = 0;
    int r = 0;

    expired = pf_session_expire(manager, &count);
    if (!expired && count > 0)
        return pf_fail_nomem(err);
    for (size_t i = 0; i < count; i++) {
        finish_expired(manager, expired[i]);
        if (pf_strings_add(&ids, pf_session_id(expired[i])) < 0)
            r = pf_fail_nomem(err);
        pf_session_unref(expired[i]);
    }
    if (r < 0)
        return r;
    if (ret_ids) {
        *ret_ids = ids;
        ids = (struct pinfold_strings){ 0 };
    }
    return 0;
}

/* ---- factories ---- */

struct template_factory {
    struct pinfold_backend *backend;
    char *session_id;
};

static int make_from_template(void *ctx, struct pinfold_backend **ret_backend,
                              struct pinfold_error *err)
{
    struct template_factory *factory = ctx;
    struct pinfold_backend *backend = factory->backend;

    if (!backend->ops->build_for_session) {
        *ret_backend = pinfold_backend_ref(backend);
        return 0;
    }
    return backend->ops->build_for_session(backend->state, factory->session_id, ret_backend, err);
}

static void free_template_factory(void *ctx)
{
    struct template_factory *factory = ctx;

    pinfold_backend_unref(factory->backend);
    free(factory->session_id);
    free(factory);
}

int pinfold_backend_factory_for_session(struct pinfold_backend *template_backend,
                                        const char *session_id,
                                        struct pinfold_backend_factory *ret_factory,
                                        struct pinfold_error *err)
{
    _cleanup_free_ struct template_factory *factory = NULL;
    int r = pf_workspace_id_check(session_id, err);

    if (!template_backend)
        return pf_fail(err, PINFOLD_ETYPE, "a backend or a backend template is required");
    if (r < 0)
        return r;
    factory = calloc(1, sizeof(*factory));
    if (!factory || !(factory->session_id = strdup(session_id)))
        return pf_fail_nomem(err);
    factory->backend = pinfold_backend_ref(template_backend);
    *ret_factory = (struct pinfold_backend_factory){ .make = make_from_template,
                                                     .ctx = TAKE(factory),
                                                     .free = free_template_factory };
    return 0;
}

void pinfold_backend_factory_done(struct pinfold_backend_factory *factory)
{
    if (factory->free)
        factory->free(factory->ctx);
    *factory = (struct pinfold_backend_factory){ 0 };
}

void pinfold_session_done(struct pinfold_session *session)
{
    free(session->session_id);
    pinfold_backend_unref(session->backend);
    if (session->seed_result)
        pinfold_seed_result_done(session->seed_result);
    free(session->seed_result);
    free(session->owner_id);
    memset(session, 0, sizeof(*session));
}
