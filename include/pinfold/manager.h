/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SandboxManager: sessions keyed by workspace id, with idle expiry. Nothing expires by itself:
 * call pinfold_manager_cleanup_expired() on a schedule. Who owns which workspace is known to the
 * whole process, whatever manager it is in.
 */
#ifndef PINFOLD_MANAGER_H
#define PINFOLD_MANAGER_H

#include <pinfold/audit.h>
#include <pinfold/backend.h>

PINFOLD_BEGIN_DECLS

struct pinfold_manager;

/* ttl_seconds that never expires (ttl_seconds=None). */
#define PINFOLD_TTL_NONE (-1.0)

struct pinfold_manager_options {
    size_t size;
    double ttl_seconds; /* idle seconds; 0: 3600; PINFOLD_TTL_NONE: no expiry */
    struct pinfold_audit_sink audit;
};

#define PINFOLD_MANAGER_OPTIONS_INIT PINFOLD_SIZED(struct pinfold_manager_options)

/* Makes the backend of a session when there is none yet. */
struct pinfold_backend_factory {
    int (*make)(void *ctx, struct pinfold_backend **ret_backend, struct pinfold_error *err);
    void *ctx;
    void (*free)(void *ctx); /* may be NULL */
};

/* ManagedSandboxSession: a snapshot. Empty it with pinfold_session_done(). */
struct pinfold_session {
    char *session_id;
    struct pinfold_backend *backend; /* one reference */
    bool prepared;
    struct pinfold_seed_result *seed_result; /* NULL before seeding */
    char *owner_id;                          /* NULL on the per-agent path */
    double created_at;                       /* seconds, CLOCK_MONOTONIC */
    double last_used_at;                     /* likewise */
};

/* What resolve_workspace_id looks at, first one set wins. */
struct pinfold_agent_ids {
    const char *sandbox_workspace_id;
    const char *session_id; /* of the agent's session manager */
    const char *agent_id;
};

/* What close does before it closes. */
struct pinfold_close_options {
    size_t size;
    bool skip_sync;                           /* sync_artifacts=False */
    const char *sync_dest;                    /* NULL: what the session was given, else no sync */
    const struct pinfold_sync_policy *policy; /* NULL: what the session was given, else default */
};

/**
 * Make a manager.
 *
 * options      borrowed, copied; NULL for defaults
 * ret_manager  receives the manager; the caller owns one reference, pinfold_manager_unref()
 * err          borrowed, may be NULL
 *
 * Returns 0, -PINFOLD_EVALUE (ttl negative or not a number) or -PINFOLD_ENOMEM.
 * Threads: any.
 */
PINFOLD_API int pinfold_manager_new(const struct pinfold_manager_options *options,
                                    struct pinfold_manager **ret_manager,
                                    struct pinfold_error *err);

/**
 * Take another reference.
 *
 * manager  borrowed
 *
 * Returns manager, for the caller to own.
 * Threads: any.
 */
PINFOLD_API struct pinfold_manager *pinfold_manager_ref(struct pinfold_manager *manager);

/**
 * Give a reference back; the last one closes every session without sync and frees the manager.
 *
 * manager  owned, NULL is fine
 *
 * Threads: any.
 */
PINFOLD_API void pinfold_manager_unref(struct pinfold_manager *manager);

/**
 * The manager's identity within this process, as a SandboxRef carries it.
 *
 * manager  borrowed
 *
 * Returns text that lives as long as the manager.
 * Threads: any.
 */
PINFOLD_API const char *pinfold_manager_id(const struct pinfold_manager *manager);

/**
 * resolve_workspace_id: the key of an agent's workspace. Warns when the key is the literal
 * "default", because all such agents share one workspace.
 *
 * manager  borrowed
 * ids      borrowed
 * ret_id   receives one of the strings in ids, borrowed
 * err      borrowed, may be NULL
 *
 * Returns 0 or -PINFOLD_EVALUE (none set, or the one that counts is not a valid id).
 * Threads: any.
 */
PINFOLD_API int pinfold_manager_resolve_workspace_id(struct pinfold_manager *manager,
                                                     const struct pinfold_agent_ids *ids,
                                                     const char **ret_id,
                                                     struct pinfold_error *err);

/**
 * resolve_session_id: the old name of pinfold_manager_resolve_workspace_id().
 *
 * manager, ids, ret_id, err  as there
 *
 * Returns as there.
 * Threads: any.
 */
PINFOLD_API int pinfold_manager_resolve_session_id(struct pinfold_manager *manager,
                                                   const struct pinfold_agent_ids *ids,
                                                   const char **ret_id, struct pinfold_error *err);

/**
 * get_session: look a session up. Does not count as activity.
 *
 * manager      borrowed
 * session_id   borrowed
 * ret_session  receives a snapshot; the caller owns it, pinfold_session_done()
 * err          borrowed, may be NULL
 *
 * Returns 1 (found), 0 (none, ret_session is zeroed) or -PINFOLD_ENOMEM.
 * Threads: any.
 */
PINFOLD_API int pinfold_manager_get_session(struct pinfold_manager *manager, const char *session_id,
                                            struct pinfold_session *ret_session,
                                            struct pinfold_error *err);

/**
 * get_or_create: the per-agent path. Returns the session there is (even one past its ttl that was
 * not cleaned up yet, refreshing its last use), or makes a backend, creates it and keeps it. Of
 * several callers at once one makes it, the others wait for the outcome.
 *
 * manager      borrowed
 * session_id   borrowed
 * factory      borrowed, called at most once
 * ret_session  receives a snapshot; the caller owns it; may be NULL
 * cancel       borrowed, may be NULL
 * err          borrowed, may be NULL
 *
 * Returns 0, -PINFOLD_EVALUE (bad id), -PINFOLD_ESTART (a Sandbox owns this workspace, or another
 * workspace uses the same storage), -PINFOLD_ECANCELLED, -PINFOLD_ENOMEM, or what the factory or
 * the backend's create returned.
 * Threads: any.
 */
PINFOLD_API int pinfold_manager_get_or_create(struct pinfold_manager *manager,
                                              const char *session_id,
                                              const struct pinfold_backend_factory *factory,
                                              struct pinfold_session *ret_session,
                                              struct pinfold_cancel *cancel,
                                              struct pinfold_error *err);

/**
 * claim_session: take a workspace for one owner and create its backend, in one atomic step.
 *
 * manager      borrowed
 * session_id   borrowed
 * factory      borrowed, called at most once
 * owner_id     borrowed, copied
 * ttl_seconds  of this session; 0: the manager's
 * ret_session  receives a snapshot; the caller owns it; may be NULL
 * cancel       borrowed, may be NULL
 * err          borrowed, may be NULL
 *
 * Returns as pinfold_manager_get_or_create(); -PINFOLD_ESTART when anybody in this process has
 * the workspace.
 * Threads: any.
 */
PINFOLD_API int
pinfold_manager_claim_session(struct pinfold_manager *manager, const char *session_id,
                              const struct pinfold_backend_factory *factory, const char *owner_id,
                              double ttl_seconds, struct pinfold_session *ret_session,
                              struct pinfold_cancel *cancel, struct pinfold_error *err);

/**
 * mark_prepared: remember that a session was seeded.
 *
 * manager      borrowed
 * session_id   borrowed
 * seed_result  borrowed, copied; NULL when there was nothing to seed
 * err          borrowed, may be NULL
 *
 * Returns 0, -PINFOLD_ESTART (no such session) or -PINFOLD_ENOMEM.
 * Threads: any.
 */
PINFOLD_API int pinfold_manager_mark_prepared(struct pinfold_manager *manager,
                                              const char *session_id,
                                              const struct pinfold_seed_result *seed_result,
                                              struct pinfold_error *err);

/**
 * close_session: sync if a destination is known, then close the backend and forget the session.
 * A session that does not exist is a no-op. The backend is closed whatever the sync did.
 *
 * manager     borrowed
 * session_id  borrowed
 * options     borrowed; NULL for defaults
 * cancel      borrowed, may be NULL; stops the sync, never the close
 * err         borrowed, may be NULL
 *
 * Returns 0, -PINFOLD_EPREPARE (the sync reported errors), or what the close returned.
 * Threads: any.
 */
PINFOLD_API int pinfold_manager_close_session(struct pinfold_manager *manager,
                                              const char *session_id,
                                              const struct pinfold_close_options *options,
                                              struct pinfold_cancel *cancel,
                                              struct pinfold_error *err);

/**
 * cleanup_expired: close every session that has been idle for longer than its ttl. A session with
 * an operation under way is not idle. Syncs first where a destination is known; errors of sync
 * and close go to the audit only.
 *
 * manager  borrowed
 * ret_ids  receives the ids of the closed sessions; the caller owns them; may be NULL
 * err      borrowed, may be NULL
 *
 * Returns 0 or -PINFOLD_ENOMEM.
 * Threads: any.
 */
PINFOLD_API int pinfold_manager_cleanup_expired(struct pinfold_manager *manager,
                                                struct pinfold_strings *ret_ids,
                                                struct pinfold_error *err);

/**
 * backend_factory_for_session: a factory that asks the template for the workspace's own backend,
 * or gives the instance itself when it is no template.
 *
 * template_backend  borrowed; the factory keeps a reference
 * session_id        borrowed, copied
 * ret_factory       receives the factory; the caller owns it, pinfold_backend_factory_done()
 * err               borrowed, may be NULL
 *
 * Returns 0, -PINFOLD_ETYPE (no backend), -PINFOLD_EVALUE (bad id) or -PINFOLD_ENOMEM.
 * Threads: any.
 */
PINFOLD_API int pinfold_backend_factory_for_session(struct pinfold_backend *template_backend,
                                                    const char *session_id,
                                                    struct pinfold_backend_factory *ret_factory,
                                                    struct pinfold_error *err);

/* Each empties what it is given; a zeroed struct is fine. Threads: one at a time per struct. */
PINFOLD_API void pinfold_backend_factory_done(struct pinfold_backend_factory *factory);
PINFOLD_API void pinfold_session_done(struct pinfold_session *session);

PINFOLD_END_DECLS

#endif
