/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One client. A transport makes a session, gives it every message that comes, and ends it when the
 * client is gone. Requests run at the same time, each on a thread of the server's pool; a session
 * is freed when it was ended and the last of them has finished.
 */
#ifndef PF_MCP_SESSION_H
#define PF_MCP_SESSION_H

#include <stdbool.h>
#include <stddef.h>

#include <pinfold/sandbox.h>

#include "mcp/transport.h"

struct pf_mcp_server;
struct pf_mcp_session;

struct pf_mcp_session_options {
    const char *name;              /* of the client, for the audit: copied */
    enum pinfold_attach_mode mode; /* what it may do in the workspace */
    bool local; /* it is on this machine, as this user: the roots that it names are directories
                   that it could read itself, and one of them may become the seed */
    const struct pf_mcp_transport *transport; /* borrowed for ever */
    void *ctx;                                /* of the transport */
};

/* Returns 0, -PINFOLD_ENOMEM or -PINFOLD_EBUSY (too many sessions). Any thread. */
int pf_mcp_session_new(struct pf_mcp_server *server, const struct pf_mcp_session_options *options,
                       struct pf_mcp_session **ret, struct pinfold_error *err);

/* Take a message in. Returns whether its origin is used from now on, until transport->done() was
 * called for it (which may have happened already): it holds at least one request, or something that
 * an error answers. Otherwise there will be no reply. Any thread, several at once. */
bool pf_mcp_receive(struct pf_mcp_session *session, const char *text, size_t len, void *origin);

/* Cancel what this origin brought and is still under way, as the client could. */
void pf_mcp_session_cancel(struct pf_mcp_session *session, const void *origin);

/* Answer a message that was longer than PF_MCP_MESSAGE_MAX. */
void pf_mcp_refuse_long(struct pf_mcp_session *session, void *origin);

/* The revision that was agreed on, such as "2025-11-25": static text, or NULL before initialize. */
const char *pf_mcp_session_version(struct pf_mcp_session *session);

/* How many requests are under way. */
unsigned pf_mcp_session_calls(struct pf_mcp_session *session);

/* The client is gone: its requests are cancelled, its processes killed. The transport is not called
 * any more when this returns, for which a send() that waits has to give up. Does not wait for what
 * is killed. NULL is fine. */
void pf_mcp_session_end(struct pf_mcp_session *session);

#endif
