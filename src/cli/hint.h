/* SPDX-License-Identifier: Apache-2.0 */
/* What to try next, for a person whose command did not find what it wanted. */
#ifndef PF_CLI_HINT_H
#define PF_CLI_HINT_H

#include "cli/options.h"

/* A program was not found inside: say so if this machine has it where the sandbox does not look. */
void pf_hint_missing(const struct pf_options *options);

/* A command failed: if the workspace began empty, and a person is looking, say how to fill it. */
void pf_hint_empty(const struct pf_options *options);

#endif
