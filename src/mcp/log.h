/* SPDX-License-Identifier: Apache-2.0 */
/* Inside mcp/: the levels of log messages. */
#ifndef PF_MCP_LOG_H
#define PF_MCP_LOG_H

/* As syslog and the protocol name them, the least first. */
enum pf_mcp_level {
    PF_MCP_DEBUG,
    PF_MCP_INFO,
    PF_MCP_NOTICE,
    PF_MCP_WARNING,
    PF_MCP_ERROR,
    PF_MCP_CRITICAL,
    PF_MCP_ALERT,
    PF_MCP_EMERGENCY,
    PF_MCP_LEVELS,
    PF_MCP_LOG_DEFAULT = PF_MCP_WARNING, /* until a client says otherwise */
};

/* The level of a word, or -1. */
int pf_mcp_level_of(const char *word);

#endif
