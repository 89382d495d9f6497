/* SPDX-License-Identifier: Apache-2.0 */
/* What of policies takes the program that has TOML. */
#ifndef PF_CLI_CONFIG_CHECK_H
#define PF_CLI_CONFIG_CHECK_H

#include "cli/clash.h"
#include "cli/options.h"

/* The words of a command line with those of the policy before them: one allocation, to free().
 * Returns NULL after having said what is wrong. */
char **pf_apply_policy(const struct pf_command *command, const struct pf_options *options, int argc,
                       char **argv);

/* Whether the policy that options named, or the usual one, has the option of a clash: then err says
 * what is wrong, and where it stands. */
bool pf_policy_blame(const char *config, const struct pf_clash *clash, struct pinfold_error *err);

/* Print the policy. Returns the exit status. */
int pf_config_check(const struct pf_command *command, const struct pf_options *options, int argc,
                    char **argv);

#endif
