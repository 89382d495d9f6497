/* SPDX-License-Identifier: Apache-2.0 */
/* Inside agent/: offloaders. */
#ifndef PF_AGENT_OFFLOAD_H
#define PF_AGENT_OFFLOAD_H

#include <pinfold/offload.h>

#include "agent/agent.h"
#include "base/buf.h"

extern const char pf_offloader_name[], pf_retrieval_tool_name[];

/* The tool by which a model fetches what was offloaded. Takes a reference to the storage. */
int pf_retrieval_tool_new(struct pinfold_storage *storage, struct pinfold_tool **ret,
                          struct pinfold_error *err);

/* As sandbox_output_offload of an agent's configuration: add an offloader, unless the user gave
 * one.
 */
int pf_offload_policy_apply(struct pinfold_agent *agent,
                            const struct pinfold_offload_policy *policy, struct pinfold_error *err);

/* How many tokens a result is about. */
uint64_t pf_result_tokens(const struct pinfold_tool_result *result);

/* Append a number with ',' between thousands. */
int pf_append_count(struct pf_buf *out, uint64_t number);

#endif
