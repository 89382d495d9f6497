/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A mailbox: where threads put calls that have something to tell, and an event loop takes them out.
 * Its descriptor is readable while there are any.
 */
#ifndef PF_PYTHON_MAILBOX_H
#define PF_PYTHON_MAILBOX_H

#include <stdbool.h>

struct pf_mailbox;

/* What a call has of it; protected by the mailbox's lock. */
struct pf_letter {
    struct pf_letter *next;
    bool queued, done;
};

struct pf_mailbox *pf_mailbox_new(void); /* NULL with errno */
struct pf_mailbox *pf_mailbox_ref(struct pf_mailbox *mailbox);
void pf_mailbox_unref(struct pf_mailbox *mailbox);
int pf_mailbox_fd(const struct pf_mailbox *mailbox);

/* From any thread: put the letter in, unless it is in already. done: this is the last time, and
 * whoever takes it out may free it at once. Returns false when nobody looks into it any more. */
bool pf_mailbox_put(struct pf_mailbox *mailbox, struct pf_letter *letter, bool done);

/* Nobody will look into it again. Letters that still come are orphans, which anybody may take. */
void pf_mailbox_abandon(struct pf_mailbox *mailbox);
struct pf_letter *pf_mailbox_take_orphan(void);

/* The next one, or NULL. *ret_done: nobody will put it in again. */
struct pf_letter *pf_mailbox_take(struct pf_mailbox *mailbox, bool *ret_done);

#endif
