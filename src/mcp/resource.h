/* SPDX-License-Identifier: Apache-2.0 */
/* Inside mcp/: resources. */
#ifndef PF_MCP_RESOURCE_H
#define PF_MCP_RESOURCE_H

#include "mcp/call.h"

json_t *pf_mcp_resources_list(struct pf_mcp_call *call, struct pf_mcp_fault *fault);
json_t *pf_mcp_templates_list(struct pf_mcp_call *call, struct pf_mcp_fault *fault);
json_t *pf_mcp_resources_read(struct pf_mcp_call *call, struct pf_mcp_fault *fault);

#endif
