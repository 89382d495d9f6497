/* SPDX-License-Identifier: Apache-2.0 */
/* The program that talks to services, and is no server. */
#include <stddef.h>

#include "cli/extras.h"

const enum pf_program pf_program = PF_REMOTE;

int (*const pf_serve_mcp)(const struct pf_options *options) = NULL;

const struct pf_mcp_extras *const pf_mcp_extras = NULL;
