/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sessions: a live backend under a workspace id, and who owns it. One table for the whole process,
 * because each Sandbox may have a manager of its own and still two must never own one workspace.
 *
 * A session is CREATING while its backend is made, LIVE, then CLOSING; operations run only while
 * it is LIVE and are counted, and a close waits until the count is zero.
 */
#ifndef PF_SANDBOX_SESSION_H
#define PF_SANDBOX_SESSION_H

#include <pinfold/manager.h>

#include "backend/backend.h"
#include "tree/seed_mark.h"

struct pf_session;

/* A copy of a workspace's files on this machine, and the errors of what it lacks. */
struct pf_sync_copy {
    const char *path;
    const struct pinfold_strings *errors;
};

/* Where the artifacts of a session go. Strings are owned. */
struct pf_sync_config {
    char *dest; /* NULL: nowhere */
    char **include, **exclude;
    pinfold_progress_fn on_progress;
    void *on_progress_ctx;
    const struct pf_sync_copy *copy; /* to take the files from; NULL: from the backend */
};

/* Resolve a policy (NULL: default) and a destination (may be NULL). */
int pf_sync_config_init(struct pf_sync_config *config, const char *dest,
                        const struct pinfold_sync_policy *policy, struct pinfold_error *err);
int pf_sync_config_copy(struct pf_sync_config *to, const struct pf_sync_config *from);
void pf_sync_config_done(struct pf_sync_config *config);

/* A deep copy. 0 or -PINFOLD_ENOMEM; *to is then to be emptied by the caller. */
int pf_seed_result_copy(struct pinfold_seed_result *to, const struct pinfold_seed_result *from);

/* What a Sandbox asks its session to call: once, after new operations are refused and before
 * anything is closed. */
typedef void (*pf_session_closing_fn)(void *ctx);

struct pf_session_claim {
    struct pinfold_manager *manager;
    const char *id;
    const char *owner_id; /* NULL: the per-agent path, shared by whoever asks for it */
    const struct pinfold_backend_factory *factory;
    int64_t ttl_ns; /* PF_NEVER: no expiry */
    struct pinfold_audit_sink audit;
    struct pf_sync_config *sync; /* may be NULL; taken over on success */
    pf_session_closing_fn on_closing;
    void *on_closing_ctx;
    struct pinfold_cancel *cancel;
};

/* Make a session and its backend. With an owner: -PINFOLD_ESTART when the workspace is taken.
 * Without: the session there is, if any. *ret is a reference. */
int pf_session_open(const struct pf_session_claim *claim, struct pf_session **ret,
                    struct pinfold_error *err);

/* A reference to the session of this id in this manager, or NULL. */
struct pf_session *pf_session_find(struct pinfold_manager *manager, const char *id);
/* References to every session of a manager that is idle past its ttl, each now CLOSING and to be
 * given to pf_session_finish(). count receives how many; NULL with count 0 when there are none;
 * NULL with count > 0: out of memory, nothing was marked. */
struct pf_session **pf_session_expire(struct pinfold_manager *manager, size_t *ret_count);
/* Any session of the manager, or NULL; a reference. */
struct pf_session *pf_session_first(struct pinfold_manager *manager);
struct pf_session *pf_session_ref(struct pf_session *session);
void pf_session_unref(struct pf_session *session);
void pf_session_unrefp(struct pf_session **session);

bool pf_session_live(struct pf_session *session);
const char *pf_session_id(const struct pf_session *session);
struct pinfold_backend *pf_session_backend(const struct pf_session *session); /* borrowed */
const char *pf_session_owner(const struct pf_session *session);               /* may be NULL */
struct pinfold_audit_sink pf_session_audit(const struct pf_session *session);
int pf_session_snapshot(struct pf_session *session, struct pinfold_session *ret);
/* result and mark: of a seed, or NULL. The mark is taken over on success. */
int pf_session_mark_prepared(struct pf_session *session, const struct pinfold_seed_result *result,
                             struct pf_seed_mark *mark);
/* Borrowed, and as the session lives; without a source when there was no seed. */
const struct pf_seed_mark *pf_session_seed_mark(const struct pf_session *session);

/* Who seeds a session that several may find: begin waits for whoever is at it. Returns 1 (the
 * caller does, and calls end), 0 (it is prepared), -PINFOLD_ESTART (it is not live) or
 * -PINFOLD_ECANCELLED. */
int pf_session_begin_prepare(struct pf_session *session, struct pinfold_cancel *cancel,
                             struct pinfold_error *err);
void pf_session_end_prepare(struct pf_session *session);

/* manager.c: a session of the per-agent path. sync: where its artifacts go if it is new; may be
 * NULL; taken over then. *ret is a reference. */
int pf_manager_open(struct pinfold_manager *manager, const char *id,
                    const struct pinfold_backend_factory *factory, struct pf_sync_config *sync,
                    struct pinfold_cancel *cancel, struct pf_session **ret,
                    struct pinfold_error *err);

/* Bracket an operation. begin: 0, or -PINFOLD_ESTART when the session is not live. */
int pf_session_begin(struct pf_session *session, struct pinfold_error *err);
void pf_session_end(struct pf_session *session);

/* Something that was started by an operation lives on: until it is let go the session does not
 * expire, but can be closed. hold: within an operation. */
void pf_session_hold(struct pf_session *session);
void pf_session_let_go(struct pf_session *session);

/* A view of the session's backend, which closing the session closes first. add, in an operation:
 * takes a reference; -PINFOLD_ESTART when the session is being closed already. drop: whether it was
 * there, and so is the caller's to close. */
int pf_session_add_view(struct pf_session *session, struct pinfold_backend *view,
                        struct pinfold_error *err);
bool pf_session_drop_view(struct pf_session *session, struct pinfold_backend *view);

/* The session's sync config with a destination and a policy of the caller's (each may be NULL) in
 * place of its own. */
int pf_session_override_sync(const struct pf_session *session, const char *dest,
                             const struct pinfold_sync_policy *policy, struct pf_sync_config *ret,
                             struct pinfold_error *err);

struct pf_session_close {
    bool sync;
    const struct pf_sync_config *config;    /* NULL: the session's own */
    struct pinfold_sync_result *ret_result; /* may be NULL; zeroed by the caller */
    struct pinfold_cancel *cancel;
};

/* Close: refuse operations, tell the owner, kill commands, wait for operations, sync, close the
 * backend, forget. Everything is torn down whatever fails; the first error is returned. When
 * somebody else is closing it, waits for the end and returns 0. */
int pf_session_close(struct pf_session *session, const struct pf_session_close *how,
                     struct pinfold_error *err);
/* The same for a session that pf_session_expire() has marked. */
int pf_session_finish(struct pf_session *session, const struct pf_session_close *how,
                      struct pinfold_error *err);

/* network.c: have the backend's network events go to the audit, or no longer. Before create and
 * after close; the events that come between need the session to be there. */
void pf_session_watch_network(struct pf_session *session, bool on);

/* Flush a live backend as config says, to config->dest. plan: dry run. */
int pf_session_sync(struct pf_session *session, const struct pf_sync_config *config,
                    const char *dest, struct pinfold_plan *plan,
                    struct pinfold_sync_result *ret_result, struct pinfold_cancel *cancel,
                    struct pinfold_error *err);

#endif
