/* SPDX-License-Identifier: Apache-2.0 */
/* How an agent holds a workspace; see handle.c. Handles are used through the functions of a
 * Sandbox that look, run and write; once the session has ended these fail with -PINFOLD_ESTART. */
#ifndef PF_SANDBOX_HANDLE_H
#define PF_SANDBOX_HANDLE_H

#include <pinfold/sandbox.h>

/* A handle on the session of a started sandbox, or a read-only view of it (-PINFOLD_ENOTSUP where
 * the backend has none). 0 or what beginning an operation, or the view, returned. */
int pf_sandbox_handle(struct pinfold_sandbox *sandbox, const char *agent_id,
                      struct pinfold_sandbox **ret, struct pinfold_error *err);
int pf_sandbox_view_for(struct pinfold_sandbox *sandbox, const char *agent_id,
                        struct pinfold_sandbox **ret, struct pinfold_error *err);

/* The per-agent path. All borrowed. */
struct pf_own_workspace {
    struct pinfold_manager *manager;
    struct pinfold_backend *backend; /* or a template */
    const char *workspace_id, *agent_id;
    const char *root; /* to seed from and sync to; NULL: neither */
    const struct pinfold_sync_policy *policy;
};

/* Find the session or make it, and seed it if it has not been; -PINFOLD_EPREPARE closes it again.
 * ret_seed is zeroed by the caller. */
int pf_sandbox_handle_own(const struct pf_own_workspace *own, struct pinfold_sandbox **ret,
                          struct pinfold_seed_result *ret_seed, struct pinfold_cancel *cancel,
                          struct pinfold_error *err);
bool pf_sandbox_handle_live(struct pinfold_sandbox *handle);
/* Close the session: as pf_session_close(). */
int pf_sandbox_handle_close(struct pinfold_sandbox *handle, bool sync,
                            struct pinfold_cancel *cancel, struct pinfold_error *err);
/* The handle alone; NULL is fine. */
void pf_sandbox_handle_free(struct pinfold_sandbox *handle);

/* Detach an agent from whatever it is attached to; when this returns nobody is at work on it. */
void pf_sandbox_detach_agent(void *agent);

#endif
