/* SPDX-License-Identifier: Apache-2.0 */
/* What of policies takes the program that has TOML. */
#ifndef PF_CLI_CONFIG_CHECK_H
#define PF_CLI_CONFIG_CHECK_H

#include "cli/options.h"

/* The words of a command line with those of the policy before them: one allocation, to free().
 * Returns NULL after having said what is wrong. */
char **pf_apply_policy(const struct pf_command *command, const struct pf_options *options, int argc,
                       char **argv);

/* Print the policy. Returns the exit status. */
int pf_config_check(const struct pf_command *command, const struct pf_options *options, int argc,
                    char **argv);

#endif
