/* SPDX-License-Identifier: Apache-2.0 */
/* Inside mcp/: the server, and the workspace that it holds. */
#ifndef PF_MCP_STATE_H
#define PF_MCP_STATE_H

#include "cli/box.h"
#include "mcp/audit.h"
#include "mcp/call.h"
#include "mcp/clock.h"

enum pf_mcp_life {
    PF_MCP_CLOSED,
    PF_MCP_MOVING, /* somebody opens or closes it: wait for him */
    PF_MCP_OPEN,
};

struct pf_mcp_workspace {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    enum pf_mcp_life state;
    unsigned life; /* how often it has been opened */
    struct pf_box box;
    char *root;         /* the client's, to seed from when no seed is named; NULL: none */
    unsigned asked;     /* clients that were asked for their roots and have not answered */
    bool waited;        /* for them, and in vain: that is not done twice */
    unsigned users;     /* calls and processes in it */
    unsigned readers;   /* of them, those that may hold a whole file */
    int64_t idle_since; /* CLOCK_MONOTONIC, with no users */
    bool overlay;       /* its directory has only what was changed */
};

struct pf_mcp_server {
    const struct pf_options *options;
    struct pf_mcp_pool *pool;
    pthread_mutex_t lock; /* of all below but the workspace */
    pthread_cond_t changed;
    struct pf_mcp_session *sessions;
    unsigned processes; /* threads that wait for one */
    bool ending;
    pthread_t keeper;
    struct pf_mcp_audit audit;
    struct pf_mcp_workspace workspace;
};

int pf_mcp_nomem(struct pinfold_error *err);

void pf_mcp_server_add(struct pf_mcp_server *server, struct pf_mcp_session *session);
void pf_mcp_server_remove(struct pf_mcp_server *server, struct pf_mcp_session *session);

/* ---- the workspace ---- */

void pf_mcp_workspace_init(struct pf_mcp_workspace *workspace);

/* Begin to use the workspace, opening it if that has not been done: gives the session's handle on
 * it, to be used until pf_mcp_workspace_end(). Returns 0, -PINFOLD_ECANCELLED, or what opening
 * returned. */
int pf_mcp_workspace_begin(struct pf_mcp_session *session, struct pinfold_cancel *cancel,
                           struct pinfold_sandbox **ret, struct pinfold_error *err);
void pf_mcp_workspace_end(struct pf_mcp_session *session);

/* As pf_mcp_workspace_begin(), for what holds a whole file in memory: few do at once, the others
 * wait. Memory that agents have this process take is held by no limit of the sandbox. */
int pf_mcp_reading_begin(struct pf_mcp_session *session, struct pinfold_cancel *cancel,
                         struct pinfold_sandbox **ret, struct pinfold_error *err);
void pf_mcp_reading_end(struct pf_mcp_session *session);

/* Whether the client works in another workspace than before, and has to be told: true once. */
bool pf_mcp_workspace_renewed(struct pf_mcp_session *session);

/* The session is over. */
void pf_mcp_workspace_leave(struct pf_mcp_session *session);

/* A client was asked for its roots; it has answered, or will not any more. root is taken, and may
 * be NULL. */
void pf_mcp_workspace_asked(struct pf_mcp_workspace *workspace);
void pf_mcp_workspace_root(struct pf_mcp_workspace *workspace, char *root);

/* Close the workspace if nobody has used it for the time that the options say. */
void pf_mcp_workspace_expire(struct pf_mcp_server *server);

/* Write back if the options say so, and close. Nobody uses it any more. */
int pf_mcp_workspace_close(struct pf_mcp_server *server, struct pinfold_error *err);

#endif
