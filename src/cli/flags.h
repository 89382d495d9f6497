/* SPDX-License-Identifier: Apache-2.0 */
/* The table of the options that several commands take, and how their values are taken in. */
#ifndef PF_CLI_FLAGS_H
#define PF_CLI_FLAGS_H

#include "cli/options.h"

extern const struct pf_flag pf_flags[];
extern const size_t pf_flag_count;

#endif
