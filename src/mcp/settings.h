/* SPDX-License-Identifier: Apache-2.0 */
/* Settings of programs that run what stands in them. */
#ifndef PF_MCP_SETTINGS_H
#define PF_MCP_SETTINGS_H

enum { PF_MCP_SETTINGS = 9 };

/* Give the settings that no pattern of include names, NULL-terminated: a sync leaves them alone.
 * The names are static; include is NULL-terminated. */
void pf_mcp_settings_stay(const char *const *include, const char *ret[PF_MCP_SETTINGS + 1]);

#endif
