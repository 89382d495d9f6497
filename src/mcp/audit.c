/* SPDX-License-Identifier: Apache-2.0 */
#include "mcp/audit.h"

#include <stdio.h>
#include <stdlib.h>

#include "cli/text_stream.h"

void pf_mcp_audit_init(struct pf_mcp_audit *audit)
{
    pthread_mutex_init(&audit->lock, NULL);
}

void pf_mcp_audit_done(struct pf_mcp_audit *audit)
{
    for (size_t i = 0; i < PF_MCP_AUDIT_EVENTS; i++)
        free(audit->lines[i]);
    pthread_mutex_destroy(&audit->lock);
}

static void take(void *ctx, const struct pinfold_audit_event *event)
{
    struct pf_mcp_audit *audit = ctx;
    char *line = NULL;
    char **slot;

    if (pinfold_audit_event_json(event, &line, NULL) < 0)
        return;
    pthread_mutex_lock(&audit->lock);
    slot = &audit->lines[audit->count++ % PF_MCP_AUDIT_EVENTS];
    free(*slot);
    *slot = line;
    pthread_mutex_unlock(&audit->lock);
}

struct pinfold_audit_sink pf_mcp_audit_sink(struct pf_mcp_audit *audit)
{
    return (struct pinfold_audit_sink){ .emit = take, .ctx = audit };
}

json_t *pf_mcp_audit_text(struct pf_mcp_audit *audit)
{
    char *text = NULL;
    size_t len = 0, first;
    FILE *to = pf_text_stream(&text, &len);
    json_t *value = NULL;

    if (!to)
        return NULL;
    pthread_mutex_lock(&audit->lock);
    first = audit->count > PF_MCP_AUDIT_EVENTS ? audit->count - PF_MCP_AUDIT_EVENTS : 0;
    for (size_t i = first; i < audit->count; i++)
        fprintf(to, "%s\n", audit->lines[i % PF_MCP_AUDIT_EVENTS]);
    pthread_mutex_unlock(&audit->lock);
    if (!(ferror(to) | fclose(to)))
        value = pf_mcp_text(text, len);
    free(text);
    return value;
}
