/* SPDX-License-Identifier: Apache-2.0 */
/* What pinfold run and pinfold shell have in common: all but the command. */
#ifndef PF_CLI_RUN_H
#define PF_CLI_RUN_H

#include "cli/command.h"
#include "cli/options.h"

/* Seed a workspace, run the command, or for pf_command_shell a shell on a terminal, and bring the
 * results back. Returns the exit status. */
int pf_run_command(const struct pf_command *command, int argc, char **argv);

#endif
