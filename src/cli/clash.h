/* SPDX-License-Identifier: Apache-2.0 */
/* Options that are right one by one, and do not go together: what starts refuses them, and
 * 'pinfold config check' finds them in a policy before that. */
#ifndef PF_CLI_CLASH_H
#define PF_CLI_CLASH_H

#include <stdbool.h>

#include "cli/command.h"
#include "cli/options.h"

struct pf_clash {
    const char *option; /* which of them is blamed */
    char words[256];    /* what is wrong, for who has given options */
    char setting[200];  /* and what is wrong with the option as a setting of a policy */
};

/* Whether something is wrong with seed, sync and workspace together, or another backend than the
 * chosen one has an option. */
bool pf_find_clash(const struct pf_options *options, struct pf_clash *ret);

/* That, or what is wrong with how the words and the policy have a server listen. */
bool pf_find_server_clash(const struct pf_command *command, const struct pf_options *options,
                          int argc, char **argv, struct pf_clash *ret);

/* Complain: with its file and line, where it was not in the words. Returns the exit status. */
int pf_clash_error(const struct pf_command *command, const struct pf_options *options, int argc,
                   char **argv, const struct pf_clash *clash);

#endif
