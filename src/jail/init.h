/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside pinfold-init. Nothing here needs the library: what goes wrong is told to the owner over
 * the socket, and then the process, and with it the jail, is gone.
 */
#ifndef PF_JAIL_INIT_H
#define PF_JAIL_INIT_H

#include "jail/plan.h"

/* Say that a step failed, as in "make the directory" "tmp", with errno; object may be "". */
void init_fail(const char *step, const char *object) __attribute__((noreturn));
/* As init_fail, when the fault is in what the user asked for. */
void init_reject(const char *step, const char *object) __attribute__((noreturn));
/* As init_fail, when all that cannot be had is the overlay. */
void init_no_overlay(const char *step, const char *object) __attribute__((noreturn));
/* Say that the jail does without something. */
void init_note(const char *step, const char *object);

/* Send an event that brings a descriptor. */
void init_send(enum pf_init_event event, int fd);

/* Call use for each operation between two offsets in turn. */
void init_each(const struct pf_plan *plan, size_t from, size_t to,
               void (*use)(const struct pf_op *op));
const char *init_target(const struct pf_op *op);
const char *init_text(const struct pf_op *op);

/* Become the user of the jail, build the tree and make it the root. */
void init_build(const struct pf_plan *plan);
/* Mount the overlay of a seed, with the layers in the working directory. Returns it, attached to
 * nothing yet. */
int init_overlay(const struct pf_plan *plan);
/* Give the owner a way in, once the overlay is in its place. */
void init_give_root(void);
/* Returns the socket that listens for the proxy, or -1. */
int init_network(const struct pf_plan *plan);
/* Give up everything: after this nothing can be set up any more. */
void init_lock(const struct pf_plan *plan);
void init_landlock(const struct pf_plan *plan);

#endif
