/* SPDX-License-Identifier: Apache-2.0 */
/* What only the last program has, besides the server itself. */
#include "cli/config_check.h"
#include "cli/extras.h"
#include "cli/install.h"

static const struct pf_mcp_extras extras = {
    .words = pf_apply_policy,
    .check_config = pf_config_check,
    .blame = pf_policy_blame,
    .install = pf_install,
};

const struct pf_mcp_extras *const pf_mcp_extras = &extras;
