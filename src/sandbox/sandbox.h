/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of a Sandbox, for the files of this room. */
#ifndef PF_SANDBOX_SANDBOX_H
#define PF_SANDBOX_SANDBOX_H

#include <pthread.h>

#include <pinfold/sandbox.h>

#include "sandbox/audit.h"
#include "sandbox/handle.h"
#include "sandbox/session.h"

enum pf_sandbox_state {
    PF_STOPPED,
    PF_STARTING,
    PF_STARTED,
    PF_STOPPING,
};

struct pinfold_sandbox {
    /* Set by new, never changed. */
    char *workspace_id;
    char *view;     /* the name of a read-only view, see view.c; NULL: this is a sandbox */
    char *agent_id; /* of a handle or a view that is one agent's, see handle.c; else NULL */
    struct pinfold_backend *backend; /* instance or template; of a view: its own */
    struct pinfold_manager *manager;
    int64_t ttl_ns;
    char *seed_from;            /* absolute; may be NULL */
    char **exclude;             /* of seeding: defaults, the caller's, the policy's */
    struct pf_sync_config sync; /* dest: sync_dest, else seed_from, else NULL */
    struct pinfold_audit_sink audit;
    pinfold_progress_fn on_progress;
    void *on_progress_ctx;

    pthread_mutex_t lock; /* guards what follows; never held while a backend works */
    pthread_cond_t changed;
    enum pf_sandbox_state state;
    struct pf_session *session; /* a reference, from STARTED until STOPPED */
    int start_result;           /* of the last start, for those who waited for it */
    struct pinfold_error start_error;
    struct pinfold_seed_result seed_result;
};

/* Free one that runs nothing any more. */
void pf_sandbox_freep(struct pinfold_sandbox **slot);

/* Bracket an operation: begin gives a session that is live and counted. */
int pf_sandbox_begin(struct pinfold_sandbox *sandbox, struct pf_session **ret,
                     struct pinfold_error *err);
/* The same for an operation that a view refuses; event is what the audit is to say of that. */
int pf_sandbox_begin_change(struct pinfold_sandbox *sandbox, struct pinfold_audit_event *event,
                            struct pf_session **ret, struct pinfold_error *err);
void pf_sandbox_end(struct pf_session *session);   /* drops the reference too */
void pf_sandbox_endp(struct pf_session **session); /* NULL is fine */

/* An operation that ends when its scope does. */
#define _cleanup_operation_ __attribute__((cleanup(pf_sandbox_endp)))

/* The backend of an operation that reads: the live one, or the view's. */
struct pinfold_backend *pf_sandbox_reader(const struct pinfold_sandbox *sandbox,
                                          const struct pf_session *session);

/* Normalise a path that somebody wrote, against the live backend's root. */
int pf_sandbox_path(const struct pf_session *session, const char *path, char **ret_path,
                    struct pinfold_error *err);

/* Seed the session from seed_from, if there is one, and mark it prepared. result: zeroed by the
 * caller. Counts as an operation. */
int pf_sandbox_seed(struct pinfold_sandbox *sandbox, struct pf_session *session,
                    struct pinfold_seed_result *result, struct pinfold_cancel *cancel,
                    struct pinfold_error *err);

/* Send an event about this sandbox, filling in who and where. err: of the operation, r its
 * result. */
void pf_sandbox_audit(struct pinfold_sandbox *sandbox, const struct pf_session *session,
                      struct pinfold_audit_event *event, int r, const struct pinfold_error *err);

/* Put length, hash and kind of a command into an event, which then points to hash. 0 or
 * -PINFOLD_ENOMEM. */
int pf_sandbox_describe_command(const char *command, size_t command_len, const char *const *argv,
                                struct pinfold_audit_event *event,
                                char hash[static PF_AUDIT_HASH_DIGITS + 1]);

/* 0 for a sandbox; for a view -PINFOLD_EDENIED, and an audit event. */
int pf_view_refuse(struct pinfold_sandbox *sandbox, struct pinfold_audit_event *event,
                   struct pinfold_error *err);
/* What pinfold_sandbox_free() does first with a view: end what runs in it. */
void pf_view_end(struct pinfold_sandbox *view);

/* Detach every agent of a sandbox. ctx is the sandbox. */
void pf_sandbox_detach_all(void *ctx);

#endif
