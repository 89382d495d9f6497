/* SPDX-License-Identifier: Apache-2.0 */
/* Everything public, and the version. */
#ifndef PINFOLD_PINFOLD_H
#define PINFOLD_PINFOLD_H

#include <pinfold/agent.h>
#include <pinfold/agentcore.h>
#include <pinfold/audit.h>
#include <pinfold/backend.h>
#include <pinfold/cancel.h>
#include <pinfold/changes.h>
#include <pinfold/daytona.h>
#include <pinfold/error.h>
#include <pinfold/hook.h>
#include <pinfold/limits.h>
#include <pinfold/log.h>
#include <pinfold/manager.h>
#include <pinfold/model.h>
#include <pinfold/offload.h>
#include <pinfold/policy.h>
#include <pinfold/result.h>
#include <pinfold/sandbox.h>
#include <pinfold/search.h>
#include <pinfold/temp_workspace.h>
#include <pinfold/terminal.h>
#include <pinfold/tool.h>

PINFOLD_BEGIN_DECLS

/**
 * The version of the library that is running, for example "0.1.0".
 *
 * Returns a static string.
 * Threads: any.
 */
PINFOLD_API const char *pinfold_version(void);

PINFOLD_END_DECLS

#endif
