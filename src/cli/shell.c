/* SPDX-License-Identifier: Apache-2.0 */
/* pinfold shell: a person at a terminal in a workspace. */
#include "cli/command.h"
#include "cli/options.h"
#include "cli/run.h"

const struct pf_command pf_command_shell = {
    .name = "shell",
    .usage = "[OPTION]...",
    .summary = "work in a workspace yourself, at an interactive shell",
    .help = "All options mean what they mean for 'pinfold run', which says more of them. The "
            "shell\n"
            "is /bin/bash in an isolated workspace, or else /bin/sh; on the local backend it is\n"
            "$SHELL; agentcore and daytona have no terminals. Job control, the size of the window\n"
            "and full-screen programs work as ever.\n"
            "\n"
            "When the shell ends, everything that was started from it is killed, what nohup and\n"
            "setsid have detached included; then --sync copies the results back, unless we were\n"
            "ended by a signal.\n"
            "\n"
            "Your terminal obeys what programs inside print, as it would outside: escape\n"
            "sequences can change its title, colours or, where it lets them, the clipboard.\n"
            "Its modes are restored in any case, even when pinfold is killed; a full-screen\n"
            "program that was killed may leave its screen behind, which 'reset' mends.\n"
            "\n"
            "The exit status is the shell's; 124 when --timeout was over, 125 when pinfold itself\n"
            "failed, 128+n when signal n ended us.",
    .bit = PF_FOR_RUN,
    .run = pf_run_command,
};
