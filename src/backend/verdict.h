/* SPDX-License-Identifier: Apache-2.0 */
/* Inside backend/: whether a limit ended a command of a jail, and saying so in its result. */
#ifndef PF_BACKEND_VERDICT_H
#define PF_BACKEND_VERDICT_H

#include <stdatomic.h>

#include <pinfold/result.h>
#include <pinfold/terminal.h>

#include "jail/jail.h"

/* One of each sandbox; zeroed before pf_verdict_init(). */
struct pf_verdict {
    const struct pf_jail *jail;   /* borrowed */
    struct pinfold_limits limits; /* resolved */
    enum pinfold_holder holders[PINFOLD_LIMIT_COUNT];
    _Atomic uint64_t kills, refused; /* as they were when last looked at */
    atomic_bool lingering;           /* some command has left processes that run on */
};

/* What happened while a command ran. */
struct pf_evidence {
    uint64_t kills, refused;    /* counted meanwhile */
    enum pinfold_limit stopped; /* the owner killed it because of this one */
};

void pf_verdict_init(struct pf_verdict *verdict, const struct pf_jail *jail,
                     const struct pinfold_limits *limits);

/* Before a command: what has been killed so far. Costs nothing unless something runs already. */
uint64_t pf_verdict_begin(struct pf_verdict *verdict);

/* After it: fill in what the result has about limits and append notes to its output. Returns 0 or
 * -PINFOLD_ENOMEM, with the result as it was but for the notes. */
int pf_verdict_end(struct pf_verdict *verdict, uint64_t kills_before, enum pinfold_limit stopped,
                   struct pinfold_execute_result *result, struct pinfold_error *err);

/* Before a terminal's command, which may run for long beside others: from now on who is killed for
 * memory is looked at before each of these. Returns as pf_verdict_begin(). */
uint64_t pf_verdict_begin_terminal(struct pf_verdict *verdict);
/* Which limit ended it. Less is said than of a command with a result: a shell passes on how the
 * last of many ended. */
enum pinfold_limit pf_verdict_end_terminal(const struct pf_verdict *verdict, uint64_t kills_before,
                                           enum pinfold_limit stopped,
                                           const struct pinfold_terminal_exit *end);

/* Which limit ended a command that has this result. */
enum pinfold_limit pf_verdict_judge(const struct pf_verdict *verdict,
                                    const struct pf_evidence *evidence,
                                    const struct pinfold_execute_result *result);

#endif
