/* SPDX-License-Identifier: Apache-2.0 */
/* pinfold mcp: checks how it was called; the server is a program of its own. */
#include <stddef.h>

#include "cli/command.h"
#include "cli/extras.h"
#include "cli/options.h"
#include "cli/run.h"

static int run_mcp(const struct pf_command *command, int argc, char **argv)
{
    struct pf_options options;
    const char *wrong;
    int status;

    if (!pf_options_parse(command, argc, argv, &options, &status))
        return status;
    wrong = pf_check_travel(&options);
    if (options.command[0])
        status = pf_usage_error(command, "%s: takes no command; clients say what to run",
                                options.command[0]);
    else if (wrong)
        status = pf_usage_error(command, "%s", wrong);
    else if (!pf_check_backend(command, &options, &status) &&
             !pf_hand_over(PF_MCP, argv - 1, &status))
        status = pf_serve_mcp(&options);
    pf_options_done(&options);
    return status;
}

const struct pf_command pf_command_mcp = {
    .name = "mcp",
    .usage = "[OPTION]...",
    .summary = "serve a workspace to an agent program, over the Model Context Protocol",
    .help = "An agent program starts this, and talks to it by stdin and stdout:\n"
            "  claude mcp add pinfold -- pinfold mcp\n"
            "\n"
            "The workspace is made by the first call that needs it, and ends with the client. Its\n"
            "seed is what --seed names, else the first root that the client offers; never your\n"
            "home directory as a whole. Nothing is written back unless the client calls the tool\n"
            "sync, or --sync was given: then the results come home when the session ends.\n"
            "--timeout is the default of a command, --max-output what one result shows. The other\n"
            "options mean what they mean for 'pinfold run'; docs/mcp.md has the tools.\n"
            "\n"
            "Messages of its own go to stderr. The exit status is 0 when the client has gone or a\n"
            "signal came, 125 when something failed.",
    .bit = PF_FOR_RUN | PF_FOR_MCP,
    .run = run_mcp,
};
