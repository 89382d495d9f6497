/* SPDX-License-Identifier: Apache-2.0 */
/* Ctrl-C and its like: fire the cancellation token and let the run end in good order. */
#ifndef PF_CLI_INTERRUPT_H
#define PF_CLI_INTERRUPT_H

#include <signal.h>
#include <stdint.h>

#include <pinfold/cancel.h>

/* What every long-lived command does: SIGINT, SIGTERM, SIGHUP and SIGQUIT get the action, unless
 * they were ignored when we started, and SIGPIPE and SIGXFSZ are ignored, so that a closed stdout
 * and a limit on file sizes are errors of write(2). */
void pf_signals_catch(const struct sigaction *action);

/* pf_signals_catch(), and the first of them fires the token. Returns 0 or a negative pinfold_code.
 */
int pf_interrupt_catch(struct pinfold_cancel **ret_cancel, struct pinfold_error *err);

/* The signal that fired the token, or 0. */
int pf_interrupt_signal(void);

/* After a signal that was caught: a new token in place of the one that has fired, for what is still
 * to be done, so that the next signal is caught anew. Nobody may use the old one any more; it is
 * freed. Returns 0 or a negative pinfold_code. */
int pf_interrupt_again(struct pinfold_cancel **cancel, struct pinfold_error *err);

/* Have blocked writes return EINTR from deadline_ns (CLOCK_MONOTONIC) on, again and again. After
 * a signal that fires the token they do so at once. */
void pf_interrupt_writes_at(int64_t deadline_ns);

/* Leave blocked calls alone again, for a cleanup that nothing disturbs. */
void pf_interrupt_writes_never(void);

int64_t pf_now_ns(void);

#endif
