/* SPDX-License-Identifier: Apache-2.0 */
/* Inside agent/: what models share. */
#ifndef PF_AGENT_MODEL_H
#define PF_AGENT_MODEL_H

#include <pinfold/model.h>

/* Check a request, and say which part of it makes no sense. Returns 0, -PINFOLD_EVALUE or
 * -PINFOLD_ENOMEM. */
int pf_model_check_request(const struct pinfold_model_request *request, struct pinfold_error *err);

/* Check what a model made, which may be somebody else's. Returns 0 or -PINFOLD_EBACKEND. */
int pf_model_check_reply(const struct pinfold_model *model, const struct pinfold_model_reply *reply,
                         struct pinfold_error *err);

/* Append an empty block of a kind, owned by the message. Returns NULL when out of memory. */
struct pinfold_block *pf_message_append(struct pinfold_message *message,
                                        enum pinfold_block_kind kind);

/* What a status other than 2xx means. Fill err with it, and return the negative code. */
int pf_model_refused(int status, bool retryable, const char *text, struct pinfold_error *err);

#endif
