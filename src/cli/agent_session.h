/* SPDX-License-Identifier: Apache-2.0 */
/* The conversation in a file of --session. */
#ifndef PF_CLI_AGENT_SESSION_H
#define PF_CLI_AGENT_SESSION_H

#include <stddef.h>

#include <pinfold/agent.h>

/* Take it in, when there is one, and write it: what is there is replaced whole, or stays. Return 0
 * or a negative pinfold_code; err names the file. */
int pf_agent_session_load(struct pinfold_agent *agent, const char *path, struct pinfold_error *err);
int pf_agent_session_save(struct pinfold_agent *agent, const char *path, struct pinfold_error *err);

/* Whether it could be written now: something is made beside it, and removed. Returns likewise. */
int pf_agent_session_check(const char *path, struct pinfold_error *err);

/* The same without a file. Text is to free(), or NULL when out of memory. What is no session is
 * refused with -PINFOLD_EVALUE, and the agent's conversation stays as it is. */
char *pf_agent_session_text(struct pinfold_agent *agent);
int pf_agent_session_read(struct pinfold_agent *agent, const char *text, size_t len,
                          struct pinfold_error *err);

#endif
