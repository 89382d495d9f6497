/* SPDX-License-Identifier: Apache-2.0 */
/* The full program, without what talks to services. */
#include <stddef.h>

#include "cli/extras.h"

const enum pf_program pf_program = PF_FULL;

int (*const pf_new_remote)(const struct pf_options *options, struct pinfold_backend **ret_backend,
                           struct pinfold_error *err) = NULL;

const struct pf_mcp_extras *const pf_mcp_extras = NULL;

int (*const pf_serve_mcp)(const struct pf_options *options) = NULL;

int (*const pf_run_agent)(const struct pf_command *command, struct pf_options *options) = NULL;
