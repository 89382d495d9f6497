/* SPDX-License-Identifier: Apache-2.0 */
/* Inside agent/: a conversation as the providers want it. */
#ifndef PF_AGENT_MODEL_TURNS_H
#define PF_AGENT_MODEL_TURNS_H

#include <pinfold/model.h>

#include "agent/model_json.h"

/* Messages of one role, one after another, as one: without text that is only white space, which
 * providers refuse, and with the results of tools before all else, where they must stand. */
struct pf_turn {
    enum pinfold_role role;
    const struct pinfold_block **blocks; /* borrowed; at least one */
    size_t count;
};

struct pf_turns {
    struct pf_turn *list;
    size_t count;
    const struct pinfold_block **blocks; /* of all of them */
};

/* Returns 0 or -PINFOLD_ENOMEM. */
int pf_turns_make(const struct pinfold_model_request *request, struct pf_turns *ret);
void pf_turns_done(struct pf_turns *turns);

/* The input of a call as an object, to send back: what was none is put into one. NULL: out of
 * memory. */
json_t *pf_turns_input(const struct pinfold_block *block);

/* Text that is sent as it is. It has been checked to be UTF-8. NULL: out of memory. */
json_t *pf_turns_text(const struct pinfold_block *block);

/* What a block of reasoning holds for this provider; NULL: nothing, as for one of another provider.
 * The caller owns it. Returns 0 or -PINFOLD_ENOMEM. */
int pf_turns_opaque(const struct pinfold_block *block, const char *provider, json_t **ret);

/* An id or a name as a provider takes it, which another one, or the model, may have made otherwise:
 * what is not A-Z a-z 0-9 _ - becomes _, and it is cut to 64. NULL: out of memory. */
json_t *pf_turns_word(const char *word);

/* Append a turn, as {"role", "content"}, to messages, unless nothing of it is sent. block_json
 * makes what is sent of a block; NULL and *ret_r 0: nothing. ctx is its own. Returns 0 or
 * -PINFOLD_ENOMEM. */
int pf_turns_push(json_t *messages, const struct pf_turn *turn,
                  json_t *(*block_json)(const struct pinfold_block *block, const void *ctx,
                                        int *ret_r),
                  const void *ctx);

/* What is told of a tool: its name, its description unless that is NULL, and its schema under key.
 * Name and schema are taken, and may be NULL for want of memory. NULL: out of memory. */
json_t *pf_turns_tool(json_t *name, const char *description, const char *key, json_t *schema);

/* The schema of a tool; any object when it has none. NULL: out of memory. */
json_t *pf_turns_schema(const struct pinfold_tool_spec *tool);

/* The stop sequences of a request as a list; NULL: out of memory. */
json_t *pf_turns_stops(const struct pinfold_model_request *request);

#endif
