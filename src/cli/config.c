/* SPDX-License-Identifier: Apache-2.0 */
/* pinfold config check: what holds here, and who said so. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "cli/extras.h"
#include "cli/options.h"
#include "cli/say.h"

static int run_config(const struct pf_command *command, int argc, char **argv)
{
    bool checks = argc > 1 && strcmp(argv[1], "check") == 0;
    struct pf_options options;
    int status;

    /* "check" is a word of ours, and the options follow it. */
    if (!pf_options_parse(command, argc - checks, argv + checks, &options, &status))
        return status;
    if (!checks)
        status = pf_usage_error(command,
                                options.command[0] ? "%s: it can only check"
                                                   : "say 'pinfold config check'",
                                options.command[0]);
    else if (options.command[0])
        status = pf_usage_error(command, "%s: takes options alone", options.command[0]);
    else if (!pf_hand_over(PF_MCP, argv - 1, &status))
        status = pf_mcp_extras->check_config(command, &options, argc - 1, argv + 1);
    pf_options_done(&options);
    return status;
}

const struct pf_command pf_command_config = {
    .name = "config",
    .usage = "check [OPTION]...",
    .summary = "explain the policy: every value, and where it came from",
    .help = "A policy is a file pinfold.toml. 'pinfold mcp' reads the user's, in\n"
            "$XDG_CONFIG_HOME/pinfold or ~/.config/pinfold, and then one in the current "
            "directory,\n"
            "which came with a project and may only tighten: lower limits and times, leave more "
            "out,\n"
            "close the network. --config, or PINFOLD_CONFIG, names one file instead of the two,\n"
            "which may say everything; 'pinfold run' reads none without --config. Stronger than\n"
            "files are variables, PINFOLD_MEMORY=2G for --memory say, and then options. Of a list\n"
            "the strongest counts, but excludes and variables of env add up. What is not known is\n"
            "an error. Relative paths begin at the file.\n"
            "\n"
            "  backend = \"isolated\"\n"
            "  seed = \"~/project\"                      # and seed-mode, workspace, audit, ttl\n"
            "  sync = true                             # back to the seed; or a directory\n"
            "  include = [\"src/**\", \"*.c\"]\n"
            "  exclude = [\"*.log\"]\n"
            "  network = [\"example.org\"]               # or \"none\", \"host\"\n"
            "  ro = [\"~/.nvm/versions\"]                # and rw, rootfs\n"
            "  [env]\n"
            "  LANG = \"C\"\n"
            "  [limits]                                # cpus, cpu-seconds, open-files, "
            "file-size,\n"
            "  memory = \"2G\"                           # tmp-size, workspace-size, max-output, "
            "too\n"
            "  processes = 256\n"
            "  timeout = 60\n"
            "  [http]                                  # and hosts, resume; of pinfold mcp\n"
            "  listen = \"127.0.0.1:8765\"\n"
            "  [[token]]                               # its value is in file, or in env, a "
            "variable\n"
            "  name = \"reviewer\"\n"
            "  mode = \"read_only\"\n"
            "  file = \"~/.config/pinfold/reviewer.token\"\n"
            "  [agentcore]                             # region, profile, interpreter, endpoint,\n"
            "  region = \"eu-central-1\"                 # session-timeout\n"
            "  [daytona]                               # target, snapshot, image\n"
            "  target = \"eu\"\n"
            "\n"
            "The exit status is 0 when the policy can be used, 1 when something in it is wrong,\n"
            "125 when it could not be read.",
    .bit = PF_FOR_RUN | PF_FOR_MCP | PF_FOR_CONFIG,
    .run = run_config,
};
