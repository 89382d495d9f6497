/* SPDX-License-Identifier: Apache-2.0 */
/* Inside mcp/: output that was too long to be shown, kept for the client that ran the command. */
#ifndef PF_MCP_OUTPUT_H
#define PF_MCP_OUTPUT_H

#include "mcp/call.h"
#include "mcp/tape.h"

/* How much of a command's output one result shows, in bytes, unless --max-output says otherwise. */
enum { PF_MCP_SHOWN = 30000, PF_MCP_ID_SIZE = 24 };

size_t pf_mcp_shown(const struct pf_mcp_session *session);

/* Keep a tape, which is taken, and give it a name. Returns false, with the tape freed, when memory
 * is short. */
bool pf_mcp_output_keep(struct pf_mcp_session *session, struct pf_mcp_tape *tape,
                        char ret_id[static PF_MCP_ID_SIZE]);

/* Forget what is older than max_age_ns. */
void pf_mcp_output_expire(struct pf_mcp_session *session, int64_t max_age_ns);

#endif
