/* SPDX-License-Identifier: Apache-2.0 */
/* Inside mcp/: the last events of the audit, in memory, for clients to read. */
#ifndef PF_MCP_AUDIT_H
#define PF_MCP_AUDIT_H

#include <pthread.h>

#include <pinfold/audit.h>

#include "mcp/json.h"

enum { PF_MCP_AUDIT_EVENTS = 500 };

struct pf_mcp_audit {
    pthread_mutex_t lock;
    char *lines[PF_MCP_AUDIT_EVENTS]; /* event n is at n modulo their number */
    size_t count;                     /* that have come */
};

void pf_mcp_audit_init(struct pf_mcp_audit *audit);
void pf_mcp_audit_done(struct pf_mcp_audit *audit);

/* Where events are to go. */
struct pinfold_audit_sink pf_mcp_audit_sink(struct pf_mcp_audit *audit);

/* The events that are kept, one a line; NULL when out of memory. */
json_t *pf_mcp_audit_text(struct pf_mcp_audit *audit);

#endif
