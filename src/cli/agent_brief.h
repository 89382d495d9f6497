/* SPDX-License-Identifier: Apache-2.0 */
/* Inputs and results of tools in one line. Both are whatever a model or a sandbox wrote. */
#ifndef PF_CLI_AGENT_BRIEF_H
#define PF_CLI_AGENT_BRIEF_H

#include <pinfold/hook.h>

/* Each returns printable text of at most so many characters, to free(), or NULL when out of
 * memory. */
char *pf_brief_input(const struct pinfold_before_tool_call *call, size_t most);
char *pf_brief_result(const struct pinfold_after_tool_call *call, size_t most);

/* The text of a result: its first block of text, or "". */
const char *pf_result_text(const struct pinfold_tool_result *result, size_t *ret_len);

#endif
