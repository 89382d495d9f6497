/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A command on a terminal of its own, that lives from open to close. Any number of threads may read
 * and write and wait at once; the last one closes. What a backend on this machine makes a
 * struct pinfold_terminal of.
 */
#ifndef PF_PROC_TERMINAL_H
#define PF_PROC_TERMINAL_H

#include "proc/run.h"

struct pf_terminal;

/* Start a command on a new terminal; of the request what concerns output does not count. Returns
 * when its first process has been executed: 0, -PINFOLD_EVALUE (nothing to run), or as pf_run(). */
int pf_terminal_open(struct pf_launcher *launcher, const struct pf_run_request *request,
                     uint16_t rows, uint16_t cols, struct pf_terminal **ret,
                     struct pinfold_error *err);

/* The functions of struct pinfold_terminal_ops, with a time to wait in place of seconds. */
ssize_t pf_terminal_read(struct pf_terminal *terminal, void *buffer, size_t size,
                         int64_t timeout_ns, struct pinfold_cancel *cancel,
                         struct pinfold_error *err);
ssize_t pf_terminal_write(struct pf_terminal *terminal, const void *data, size_t len,
                          int64_t timeout_ns, struct pinfold_cancel *cancel,
                          struct pinfold_error *err);
int pf_terminal_resize(struct pf_terminal *terminal, uint16_t rows, uint16_t cols,
                       struct pinfold_error *err);
int pf_terminal_signal(struct pf_terminal *terminal, int signal, struct pinfold_error *err);
void pf_terminal_kill(struct pf_terminal *terminal);
int pf_terminal_wait(struct pf_terminal *terminal, int64_t timeout_ns,
                     struct pinfold_terminal_exit *ret, struct pinfold_cancel *cancel,
                     struct pinfold_error *err);
int pf_terminal_fd(const struct pf_terminal *terminal);
void pf_terminal_close(struct pf_terminal *terminal);

#endif
