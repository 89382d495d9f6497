/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside backend/: the state of an IsolatedSandboxBackend, and what its files give each other. A
 * state is that of one workspace, or of a read-only view of another's.
 */
#ifndef PF_BACKEND_ISOLATED_H
#define PF_BACKEND_ISOLATED_H

#include <pthread.h>

#include <pinfold/backend.h>
#include <pinfold/temp_workspace.h>

#include "backend/directory.h"
#include "backend/layers.h"
#include "backend/quota.h"
#include "backend/verdict.h"
#include "jail/egress.h"
#include "jail/jail.h"

struct pf_isolated {
    struct pf_directory dir; /* first: the operations of directory.h take it for the state */
    bool own_root;           /* a temporary one, deleted by close */
    struct pinfold_temp_workspace *temporary;
    bool workspace_read_only;
    char **ro, **rw;
    char *rootfs;
    enum pinfold_net net;
    char **net_allow;
    struct pinfold_limits limits;
    enum pinfold_seed_mode seed_mode;
    struct pf_layers layers; /* of an overlay that is in force */
    pthread_mutex_t opening; /* guards jail, which with an overlay is opened when first needed; held
                                while somebody looks at it who must not see it go */
    struct pf_jail *jail;
    struct pf_egress *egress; /* the way out, with PINFOLD_NET_ALLOW */
    struct pf_quota quota;
    struct pf_verdict verdict;
    pinfold_network_fn on_network;
    void *on_network_ctx;
    bool is_view; /* its jail is opened when first needed, too */
    /* Of a view, when what it shows is a mount of this one's jail: NULL otherwise. Borrowed: the
     * session closes views first. */
    const struct pf_isolated *lender;
};

/* ---- isolated_life.c: operations of the table, with the state first ---- */

int pf_isolated_create(void *state, struct pinfold_cancel *cancel, struct pinfold_error *err);
int pf_isolated_close(void *state, struct pinfold_error *err);
void pf_isolated_free(void *state);
const char *pf_isolated_workspace_root(void *state);
void pf_isolated_watch_network(void *state, pinfold_network_fn fn, void *ctx);

/* Open the jail with the workspace's directory at its place, or an overlay of its layers on seed.
 * Returns PF_JAIL_NO_OVERLAY as pf_jail_open() does. */
int pf_isolated_open_jail(struct pf_isolated *isolated, const char *seed,
                          struct pinfold_error *err);

/* Before commands without a seed, and those of a view: open the jail if there is none. When it
 * fails the next command tries again. */
int pf_isolated_need_jail(struct pf_isolated *isolated, struct pinfold_error *err);

/* ---- isolated_seed.c ---- */

int pf_isolated_seed_workspace(void *state, const struct pinfold_seed_request *request,
                               struct pinfold_seed_result *ret_result,
                               struct pinfold_cancel *cancel, struct pinfold_error *err);
int pf_isolated_sync(void *state, const struct pinfold_sync_request *request,
                     struct pinfold_sync_result *ret_result, struct pinfold_cancel *cancel,
                     struct pinfold_error *err);

int pf_isolated_open_root(void *state, int *ret_root, int *ret_upper, struct pinfold_cancel *cancel,
                          struct pinfold_error *err);

/* ---- isolated_execute.c ---- */

int pf_isolated_execute(void *state, const struct pinfold_execute_options *options,
                        struct pinfold_execute_result *ret_result, struct pinfold_cancel *cancel,
                        struct pinfold_error *err);
int pf_isolated_open_terminal(void *state, const struct pinfold_terminal_options *options,
                              struct pinfold_terminal **ret_terminal, struct pinfold_cancel *cancel,
                              struct pinfold_error *err);

#endif
