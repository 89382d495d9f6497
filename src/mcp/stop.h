/* SPDX-License-Identifier: Apache-2.0 */
/* SIGINT, SIGTERM, SIGHUP and SIGQUIT end the server in good order. */
#ifndef PF_MCP_STOP_H
#define PF_MCP_STOP_H

#include <pinfold/error.h>

/* Catch them, unless they were ignored when we started, and ignore SIGPIPE. Returns 0 or
 * -PINFOLD_EOS. */
int pf_mcp_stop_catch(struct pinfold_error *err);

/* A descriptor to poll, readable for ever once a signal has come. */
int pf_mcp_stop_fd(void);

/* The signal that came, or 0. */
int pf_mcp_stop_signal(void);

#endif
