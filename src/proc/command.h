/* SPDX-License-Identifier: Apache-2.0 */
/* Inside proc/: what a request means for a supervisor, and what that says of it, for commands with
 * pipes and with terminals alike. */
#ifndef PF_PROC_COMMAND_H
#define PF_PROC_COMMAND_H

#include "proc/run.h"
#include "proc/super.h"

/* Enough for "sh -c" of most commands; longer ones are copied to the heap. */
#define PF_SHORT_COMMAND 512

/* How a request's command reaches /bin/sh. */
struct pf_command {
    char small[PF_SHORT_COMMAND];
    char *copy;
    const char *shell[5]; /* the argument vector, unless the request has one */
    int script;           /* becomes PF_SCRIPT_FD; -1: none */
};

void pf_command_init(struct pf_command *command);
void pf_command_done(struct pf_command *command);

/* The request that the options of a call make, without where and how long it runs. output_limit:
 * unless they have one. */
struct pf_run_request pf_command_request(const struct pinfold_execute_options *options,
                                         size_t output_limit, struct pinfold_cancel *cancel);

/* Why there is nothing to run, or NULL. */
const char *pf_command_nothing(const struct pf_run_request *request);
/* What that gives instead of an error: exit code 1, and the reason. Returns 0 or
 * -PINFOLD_ENOMEM. */
int pf_command_answer_nothing(const char *reason, struct pinfold_execute_result *ret,
                              struct pinfold_error *err);
/* Fill an initialised struct; on failure it is to be emptied all the same. Returns 0,
 * -PINFOLD_ENOMEM or -PINFOLD_EOS. */
int pf_command_prepare(const struct pf_run_request *request, struct pf_command *command,
                       struct pinfold_error *err);

/* The error of a command that could not be started. */
int pf_command_explain(const struct pf_super_message *failure, struct pinfold_error *err);
/* As shells have it; 124 at the deadline, 137 when it was killed. */
int pf_command_exit_code(const struct pf_super_message *exit);

#endif
