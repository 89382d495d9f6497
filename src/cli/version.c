/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include <pinfold/pinfold.h>

#include "cli/command.h"
#include "cli/options.h"

static int run_version(const struct pf_command *command, int argc, char **argv)
{
    struct pf_options options;
    int status = 0;

    if (!pf_options_parse(command, argc, argv, &options, &status))
        return status;
    if (options.command[0])
        status = pf_usage_error(command, "%s: takes no arguments", options.command[0]);
    else
        printf("pinfold %s\n", pinfold_version());
    pf_options_done(&options);
    return status;
}

const struct pf_command pf_command_version = {
    .name = "version",
    .usage = "",
    .summary = "print the version",
    .bit = PF_FOR_OTHERS,
    .run = run_version,
};
