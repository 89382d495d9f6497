/* SPDX-License-Identifier: Apache-2.0 */
/* What pinfold run and pinfold shell have in common: all but the command. */
#ifndef PF_CLI_RUN_H
#define PF_CLI_RUN_H

#include "cli/command.h"
#include "cli/options.h"

/* Seed a workspace, run the command, or for pf_command_shell a shell on a terminal, and bring the
 * results back. Returns the exit status. */
int pf_run_command(const struct pf_command *command, int argc, char **argv);

/* What is wrong with seed, sync and workspace together, or NULL. */
const char *pf_check_travel(const struct pf_options *options);

/* Complain about an option that another backend than the chosen one has. Returns false when there
 * is none; else true with the exit status. */
bool pf_check_backend(const struct pf_command *command, const struct pf_options *options,
                      int *ret_status);

#endif
