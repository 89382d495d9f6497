/* SPDX-License-Identifier: Apache-2.0 */
/* Between the terminal of the person and one in a sandbox. */
#ifndef PF_CLI_RELAY_H
#define PF_CLI_RELAY_H

#include <pinfold/pinfold.h>

/* Whether there is a person's terminal to relay: stdin. */
bool pf_relay_possible(void);

/* Open a terminal in the sandbox as what says (its kind and size are filled in here) and relay
 * until its command ends or we are interrupted (interrupt.h); then everything it started is killed,
 * and our terminal is as it was. Returns 0, -PINFOLD_ECANCELLED when interrupted, -PINFOLD_EOS when
 * our own terminal fails, or what opening it returned. */
int pf_relay(struct pinfold_sandbox *sandbox, struct pinfold_terminal_options *what,
             struct pinfold_cancel *cancel, struct pinfold_terminal_exit *ret_exit,
             struct pinfold_error *err);

#endif
