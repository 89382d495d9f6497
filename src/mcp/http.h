/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PF_MCP_HTTP_H
#define PF_MCP_HTTP_H

#include "mcp/server.h"

/* Serve clients by Streamable HTTP as the server's options say, until a signal has come: address
 * and tokens are told on stdout first. Returns 0 or a negative code with err. */
int pf_mcp_serve_http(struct pf_mcp_server *server, const struct pf_options *options,
                      struct pinfold_error *err);

#endif
