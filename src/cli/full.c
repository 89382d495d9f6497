/* SPDX-License-Identifier: Apache-2.0 */
/* What the programs that can do everything on this machine have in common. */
#include <stddef.h>

#include "cli/command.h"
#include "cli/extras.h"

const struct pf_command *const pf_commands[] = {
    &pf_command_run,    &pf_command_shell,  &pf_command_agent,   &pf_command_plan, &pf_command_mcp,
    &pf_command_config, &pf_command_doctor, &pf_command_version, &pf_command_help, NULL,
};

static const struct pf_extras extras = {
    .new_report = pf_report_new_json,
    .open_audit = pinfold_audit_file_open,
    .audit_sink = pinfold_audit_file_sink,
    .close_audit = pinfold_audit_file_close,
};

const struct pf_extras *const pf_extras = &extras;
