/* SPDX-License-Identifier: Apache-2.0 */
#include "mcp/settings.h"

#include <stdbool.h>
#include <string.h>

/* Whoever opens the project has these read by a program outside, which then runs what they say:
 * hooks of Claude Code, tasks of VS Code, servers of all of them. The client of this server is
 * often that very program, and reads them again as soon as they change. */
static const char *const settings[PF_MCP_SETTINGS] = {
    ".claude", ".codex",        ".cursor", ".gemini",   ".idea",
    ".vscode", ".devcontainer", ".zed",    ".mcp.json",
};

/* Whether a pattern names it as one of its parts. That "*.json" or "**" takes it in is not meant.
 */
static bool names(const char *pattern, const char *setting)
{
    while (*pattern) {
        size_t len = strcspn(pattern, "/");

        if (len == strlen(setting) && strncmp(pattern, setting, len) == 0)
            return true;
        pattern += len + (pattern[len] == '/');
    }
    return false;
}

static bool is_named(const char *const *patterns, const char *setting)
{
    for (size_t i = 0; patterns[i]; i++)
        if (names(patterns[i], setting))
            return true;
    return false;
}

void pf_mcp_settings_stay(const char *const *include, const char *ret[PF_MCP_SETTINGS + 1])
{
    size_t count = 0;

    for (size_t i = 0; i < PF_MCP_SETTINGS; i++)
        if (!is_named(include, settings[i]))
            ret[count++] = settings[i];
    ret[count] = NULL;
}
