/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside sandbox/: what a session is made of, and the table of all there are in this process.
 * session_open.c enters them there, session.c is what they do while they live, session_close.c has
 * their end, and session_table.c keeps who has which workspace, backend and storage. However many
 * there are, to look one up costs the same.
 */
#ifndef PF_SANDBOX_SESSION_TABLE_H
#define PF_SANDBOX_SESSION_TABLE_H

/* Or uthash ends the process when there is no memory. So what was not added has no hh.tbl. */
#define HASH_NONFATAL_OOM 1
/* What it takes of itself has a switch that clang warns of. */
#define HASH_FUNCTION HASH_OAT
#include <uthash.h>

#include "sandbox/session.h"

enum pf_session_state {
    PF_SESSION_CREATING,
    PF_SESSION_LIVE,
    PF_SESSION_CLOSING,
    PF_SESSION_CLOSED,
};

struct pf_session_view {
    struct pinfold_backend *backend;
    struct pf_session_view *next;
};

struct pf_session {
    char *id;
    char *owner_id;                  /* NULL on the per-agent path */
    struct pinfold_manager *manager; /* identity, and its part of the table: it outlives this */
    struct pinfold_backend *backend;
    char *storage_key;
    struct pf_sync_config sync;
    struct pinfold_audit_sink audit;
    pf_session_closing_fn on_closing;
    void *on_closing_ctx;
    int64_t ttl_ns;
    /* From here on under the table's lock. */
    int64_t created_at, last_used_at;
    bool prepared;
    bool preparing; /* somebody is */
    bool has_seed_result;
    struct pinfold_seed_result seed_result;
    struct pf_seed_mark seed_mark; /* set once, before anybody else works with the session */
    enum pf_session_state state;
    struct pf_session_view *views;
    unsigned in_flight; /* operations, which a close waits for */
    unsigned held;      /* by what lives longer than an operation */
    unsigned refs;
    /* In the table, until CLOSED: */
    struct pf_workspace *workspace;
    struct pf_session *prev, *next; /* in the workspace, oldest first */
    UT_hash_handle in_manager;      /* by id, oldest first */
    UT_hash_handle in_backends;     /* by backend */
    UT_hash_handle in_storages;     /* by storage_key */
};

/* The lock of the table, and of the fields above; for that alone, never over I/O. */
void pf_sessions_lock(void);
void pf_sessions_unlock(void);

/* Under the lock: have those that wait look again, since a state has changed, or in_flight is 0. */
void pf_sessions_wake(void);
/* Wait for that; returns now and then without, for the caller to look at its cancellation token. */
void pf_sessions_wait(void);

/* Under the lock: the session of that id, in whatever state, or NULL. */
struct pf_session *pf_sessions_find(struct pinfold_manager *manager, const char *id);
/* Under the lock: who stands in the way of a claim, or NULL. */
struct pf_session *pf_sessions_conflict(const struct pf_session_claim *claim);
/* Under the lock: enter a session that nobody stands in the way of, with a reference of the
 * table's. Returns 0 or -PINFOLD_ENOMEM; then nothing was entered. */
int pf_sessions_enter(struct pf_session *session);
/* Make a session CLOSED, and take it out of the table, which gives up its reference, unless it went
 * from there by a fork. */
void pf_sessions_leave(struct pf_session *session);

/* Give a session its backend, unless another session has that very instance: creating it twice, or
 * closing it for one while the other works, must not happen. Takes over the reference on success.
 * Returns 0, -PINFOLD_ESTART or -PINFOLD_ENOMEM. */
int pf_sessions_claim_backend(struct pf_session *session, struct pinfold_backend *backend,
                              struct pinfold_error *err);
/* Two workspaces never share storage: a created backend whose key another session has is refused.
 * Returns like the above. */
int pf_sessions_claim_storage(struct pf_session *session, struct pinfold_error *err);

/* Whether this process is a fork of one that had sessions. */
bool pf_sessions_inherited(void);

/* manager.c: where the table keeps the manager's sessions. */
struct pf_session **pf_manager_sessions(struct pinfold_manager *manager);

/* session.c: what the last reference to a session does; and views that are nobody's any more. */
void pf_session_free_views(struct pf_session_view *views);
void pf_session_free(struct pf_session *session);

#endif
