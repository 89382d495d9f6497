/* SPDX-License-Identifier: Apache-2.0 */
/* Inside mcp/: commands that run while their client does other things. */
#ifndef PF_MCP_PROCESS_H
#define PF_MCP_PROCESS_H

#include "mcp/call.h"

/* Kill all of a session's processes. Does not wait: pf_mcp_process_wait() does. */
void pf_mcp_process_end_all(struct pf_mcp_session *session);

/* Free what is left of them; they have ended. */
void pf_mcp_process_free_all(struct pf_mcp_session *session);

/* Wait until no process of any session runs any more. */
void pf_mcp_process_wait(struct pf_mcp_server *server);

#endif
