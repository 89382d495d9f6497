/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PF_MCP_STDIO_H
#define PF_MCP_STDIO_H

#include <pinfold/sandbox.h>

#include "mcp/server.h"

/* Serve one client on stdin and stdout, until it is gone or a signal has come. Returns 0 or a
 * negative code with err. */
int pf_mcp_serve_stdio(struct pf_mcp_server *server, enum pinfold_attach_mode mode,
                       struct pinfold_error *err);

#endif
