/* SPDX-License-Identifier: Apache-2.0 */
/* One run of an agent, and its end. */
#ifndef PF_CLI_AGENT_RUN_H
#define PF_CLI_AGENT_RUN_H

#include <pthread.h>

#include <pinfold/agent.h>

#include "cli/agent_tell.h"
#include "cli/box.h"

/* Exit statuses besides those of command.h. */
enum {
    PF_EXIT_NOT_WRITTEN = 1, /* there are changes, and they were not written back */
    PF_EXIT_UNFINISHED = 2,  /* the agent did not come to an end */
};

struct pf_agent_run {
    struct pf_options *options;
    struct pf_box box;
    struct pinfold_cancel *cancel;
    struct pinfold_model *model;
    struct pinfold_agent *agent;
    pthread_mutex_t lock; /* guards the teller and what follows: tools run in several threads */
    struct pf_teller *teller;
    struct pf_agent_tally tally;
    int broken;       /* errno of a write that failed; everything was stopped then */
    bool heard;       /* something of the reply that is under way */
    unsigned breaks;  /* replies in a row that broke off */
    bool over_budget; /* of tokens */
    bool overlay;     /* the workspace is one */
    int signal;       /* that ended the agent, or 0 */
    bool written;     /* changes were written back */
};

/* The worse of two exit statuses. */
int pf_agent_worse(int status, int other);

/* Take what a teller returned: when it could not write, everything stops. */
void pf_agent_told(struct pf_agent_run *run, int sys_errno);

/* The exit status when it could not: the output is lost, which is told, or nobody reads it. */
int pf_agent_broken(const struct pf_agent_run *run);

/* Tell of an error. Returns the exit status. */
int pf_agent_failed(struct pf_agent_run *run, const struct pinfold_error *err);

/* Have what an agent does be told, and stopped where it must be: fill in its configuration. */
void pf_agent_watch(struct pf_agent_run *run, struct pinfold_agent_config *config,
                    struct pinfold_hooks *hooks);

/* Show what the agent has changed, ask, and write it back. Returns the exit status. */
int pf_agent_home(struct pf_agent_run *run);

/* What to leave out of the copy: --exclude, and what of our own lies in the seed (a file that
 * stdout or stderr goes to, --session). ret_patterns receives up to PF_OWN_FILES texts to
 * free(). Returns a list to free(), or NULL when out of memory. */
enum { PF_OWN_FILES = 3 };
const char **pf_agent_excludes(const struct pf_options *options, char **ret_patterns);

/* The same, and what the seed's .gitignore names, unless --all. ret_text receives what the list
 * points into, to free(). Returns a list to free(), or NULL when out of memory. */
const char **pf_agent_ignores(const struct pf_options *options, char **ret_text);

/* What the agent is told of where it is, and the instructions of the user: text to free(), or NULL
 * when out of memory. */
char *pf_agent_prompt(const struct pf_options *options);

#endif
