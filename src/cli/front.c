/* SPDX-License-Identifier: Apache-2.0 */
/* The program that starts quickly: what it cannot do it leaves to the others. */
#include <stddef.h>

#include "cli/command.h"
#include "cli/extras.h"

const enum pf_program pf_program = PF_FRONT;

/* The list of all of them, and so their help, is the full program's. */
const struct pf_command *const pf_commands[] = { &pf_command_run, &pf_command_shell,
                                                 &pf_command_doctor, &pf_command_version, NULL };

const struct pf_extras *const pf_extras = NULL;

int (*const pf_new_remote)(const struct pf_options *options, struct pinfold_backend **ret_backend,
                           struct pinfold_error *err) = NULL;

const struct pf_mcp_extras *const pf_mcp_extras = NULL;

int (*const pf_serve_mcp)(const struct pf_options *options) = NULL;
