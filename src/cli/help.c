/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "cli/options.h"

static void show_overview(void)
{
    puts("usage: pinfold COMMAND [OPTION]...\n"
         "Workspaces where AI agents may run anything.\n\n"
         "commands:");
    for (const struct pf_command *const *command = pf_commands; *command; command++)
        printf("  %-10s %s\n", (*command)->name, (*command)->summary);
    puts("\n"
         "example: test a copy of a project, and take the results home\n"
         "  pinfold run --seed . --sync=../results 'make test'\n\n"
         "'pinfold help COMMAND' tells more.");
}

static int run_help(const struct pf_command *command, int argc, char **argv)
{
    const struct pf_command *about;
    struct pf_options options;
    int status = 0;

    if (!pf_options_parse(command, argc, argv, &options, &status))
        return status;
    about = options.command[0] ? pf_command_find(options.command[0]) : NULL;
    if (about == &pf_command_mcp && options.command[1] &&
        strcmp(options.command[1], "install") == 0)
        about = &pf_command_install;
    if (about)
        status = pf_command_show(about);
    else if (options.command[0])
        status = pf_usage_error(command, "%s: no such command", options.command[0]);
    else
        show_overview();
    pf_options_done(&options);
    return status;
}

const struct pf_command pf_command_help = {
    .name = "help",
    .usage = "[COMMAND]",
    .summary = "explain a command",
    .bit = PF_FOR_OTHERS,
    .run = run_help,
};
