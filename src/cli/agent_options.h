/* SPDX-License-Identifier: Apache-2.0 */
/* The options that pinfold agent alone has. */
#ifndef PF_CLI_AGENT_OPTIONS_H
#define PF_CLI_AGENT_OPTIONS_H

#include "cli/options.h"

extern const struct pf_flag pf_agent_flags[]; /* the last has no name */

/* Fill in what was not given: model, seed, include patterns. Returns NULL, or what is wrong with
 * how the options go together. */
const char *pf_agent_options_complete(struct pf_options *options);

#endif
