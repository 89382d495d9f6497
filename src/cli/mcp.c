/* SPDX-License-Identifier: Apache-2.0 */
/* pinfold mcp: checks how it was called; the server is a program of its own. */
#include <stddef.h>

#include "cli/command.h"
#include "cli/extras.h"
#include "cli/options.h"

static int run_mcp(const struct pf_command *command, int argc, char **argv)
{
    struct pf_options options;
    int status;

    if (!pf_options_parse(command, argc, argv, &options, &status))
        return status;
    if (options.command[0])
        status = pf_usage_error(command, "%s: takes no command; clients say what to run",
                                options.command[0]);
    else if (!pf_hand_over(PF_MCP, argv - 1, &status)) {
        /* Only now is it known what the policy says. */
        status = pf_options_check(command, &options);
        if (!status)
            status = pf_serve_mcp(&options);
    }
    pf_options_done(&options);
    return status;
}

const struct pf_command pf_command_mcp = {
    .name = "mcp",
    .usage = "[OPTION]...",
    .summary = "serve a workspace to an agent program, over the Model Context Protocol",
    .help = "An agent program starts this, and talks to it by stdin and stdout:\n"
            "  claude mcp add pinfold -- pinfold mcp --seed .\n",
    .bit = PF_FOR_RUN | PF_FOR_MCP,
    .run = run_mcp,
};
