/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Output of a running command on its way from the thread that reads it to the event loop that
 * shows it. It holds a bounded number of bytes: when the loop is slow, the command waits.
 */
#ifndef PF_PYTHON_OUTPUT_H
#define PF_PYTHON_OUTPUT_H

#include "mailbox.h"
#include "module.h"

struct pf_output;

struct pf_output *pf_output_new(void);         /* NULL: out of memory */
void pf_output_free(struct pf_output *output); /* NULL is fine; nobody may use it any more */

/* Whom to tell. Both are borrowed. */
void pf_output_deliver_to(struct pf_output *output, struct pf_mailbox *mailbox,
                          struct pf_letter *letter, struct pinfold_cancel *cancel);

/* From the thread of the command: waits for room; 0, or 1 to stop the command. */
int pf_output_put(struct pf_output *output, enum pinfold_stream stream, const char *data,
                  size_t len);

/* Have a put that waits look at the token. NULL is fine. */
void pf_output_wake(struct pf_output *output);

/* With the GIL: a list of (stream, bytes) of what has come. NULL is fine and has nothing. */
PyObject *pf_output_take(struct pf_output *output);

#endif
