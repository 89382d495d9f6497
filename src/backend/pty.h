/* SPDX-License-Identifier: Apache-2.0 */
/* Terminals of backends on this machine. */
#ifndef PF_BACKEND_PTY_H
#define PF_BACKEND_PTY_H

#include "backend/directory.h"

/* A terminal's options as those of a command. Returns 0 or -PINFOLD_EVALUE; without a command it is
 * shell, a line for /bin/sh. */
int pf_pty_options(const struct pinfold_terminal_options *options, const char *shell,
                   struct pinfold_execute_options *ret, struct pinfold_error *err);

/* "TERM=..." on the heap; NULL: out of memory. */
char *pf_pty_term(const struct pinfold_terminal_options *options);

/* Adds to how a command ended what its backend knows of that: which limit it was. */
typedef void (*pf_pty_judge_fn)(void *ctx, struct pinfold_terminal_exit *end);

/* Start what request says on a terminal. judge, which may be NULL, is called by each wait that sees
 * the end, on whatever thread; ctx, on the heap, is the terminal's from success on. */
int pf_pty_open(struct pf_launcher *launcher, const struct pf_run_request *request,
                const struct pinfold_terminal_options *options, pf_pty_judge_fn judge, void *ctx,
                struct pinfold_terminal **ret_terminal, struct pinfold_error *err);

#endif
