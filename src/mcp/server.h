/* SPDX-License-Identifier: Apache-2.0 */
/* The server: one workspace, the threads that serve requests, and the sessions of the clients. */
#ifndef PF_MCP_SERVER_H
#define PF_MCP_SERVER_H

#include <pinfold/error.h>

#include "cli/options.h"
#include "mcp/log.h"

struct pf_mcp_server;

/* options, borrowed until the server is freed, say what the workspace is; it is made by the first
 * request that needs it. Returns 0, -PINFOLD_ENOMEM or -PINFOLD_EOS. */
int pf_mcp_server_new(const struct pf_options *options, struct pf_mcp_server **ret,
                      struct pinfold_error *err);

/* End the server, whose sessions have all been ended: wait for what they had under way, write the
 * results back if the options say so, and end the workspace: when this returns no process of any
 * client is left. Returns 0, or a negative code and err when something of the work may be lost.
 * NULL is fine. */
int pf_mcp_server_free(struct pf_mcp_server *server, struct pinfold_error *err);

/* Tell stderr, and the clients that want to hear it. Any thread. */
void pf_mcp_log(struct pf_mcp_server *server, enum pf_mcp_level level, const char *format, ...)
        PINFOLD_PRINTF(3, 4);

#endif
