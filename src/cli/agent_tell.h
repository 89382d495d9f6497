/* SPDX-License-Identifier: Apache-2.0 */
/* Telling what happens in an agent's run: to a person, or in lines of JSON. */
#ifndef PF_CLI_AGENT_TELL_H
#define PF_CLI_AGENT_TELL_H

#include <pinfold/agent.h>
#include <pinfold/changes.h>

#include "cli/options.h"

/* What was used until now. */
struct pf_agent_tally {
    unsigned turns, calls;
    struct pinfold_model_usage usage; /* known: of each reply until now */
    enum pinfold_stop_reason stop;    /* of the last reply; 0: there was none */
    int64_t begun_ns;
};

/* All of it is told from one thread at a time. Each returns 0, or the errno of a write that failed;
 * EINTR when a signal came. */
struct pf_teller {
    int (*start)(struct pf_teller *teller, const struct pinfold_model *model,
                 const struct pf_options *options);
    int (*seed)(struct pf_teller *teller, const struct pinfold_seed_result *result);
    /* Of the model, while a reply arrives, and when all of it is there. */
    int (*event)(struct pf_teller *teller, const struct pinfold_model_event *event);
    int (*reply)(struct pf_teller *teller, const struct pinfold_model_reply *reply);
    /* What has come of a reply does not count, and is asked for again. */
    int (*broke_off)(struct pf_teller *teller, const struct pinfold_error *err);
    /* Of a tool: number counts the calls of a run. */
    int (*call)(struct pf_teller *teller, unsigned number,
                const struct pinfold_before_tool_call *call);
    int (*result)(struct pf_teller *teller, unsigned number, double seconds,
                  const struct pinfold_after_tool_call *call);
    /* The diff in pieces, and then what it is of. */
    int (*diff)(struct pf_teller *teller, const char *text, size_t len);
    int (*changes)(struct pf_teller *teller, const struct pinfold_changes *changes);
    int (*sync)(struct pf_teller *teller, const struct pinfold_sync_result *result);
    int (*error)(struct pf_teller *teller, const struct pinfold_error *err);
    int (*end)(struct pf_teller *teller, const struct pf_agent_tally *tally, bool written,
               int status);
    void (*free)(struct pf_teller *teller);
};

/* Each returns NULL when out of memory. */
struct pf_teller *pf_teller_new_screen(const struct pf_options *options);
struct pf_teller *pf_teller_new_json(void);

/* The exit status in the result of the tool execute, or -1. */
int pf_result_exit_code(const struct pinfold_after_tool_call *call);

/* The word for why a reply ended. */
const char *pf_stop_word(enum pinfold_stop_reason stop);

#endif
