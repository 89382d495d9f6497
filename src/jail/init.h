/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside pinfold-init. Nothing here needs the library: what goes wrong is told to the owner over
 * the socket, and then the process, and with it the jail, is gone.
 */
#ifndef PF_JAIL_INIT_H
#define PF_JAIL_INIT_H

#include "jail/plan.h"
#include "proc/wire.h"

/* What this program is outside of jails: it removes what an owner that has ended has left. Returns
 * its exit status. */
int init_keep(void);

/* Say that a step failed, as in "make the directory" "tmp", with errno; object may be "". */
void init_fail(const char *step, const char *object) __attribute__((noreturn));
/* As init_fail, when the fault is in what the user asked for. */
void init_reject(const char *step, const char *object) __attribute__((noreturn));
/* As init_fail, when all that cannot be had is the overlay. */
void init_no_overlay(const char *step, const char *object) __attribute__((noreturn));
/* Say that the jail does without something. */
void init_note(const char *step, const char *object);

/* A process that does something beside the first one, in its memory: of that it must write nothing
 * but what is its own, and it must not fail by itself, because errno is shared. It is not executed,
 * so that what it opens needs no O_CLOEXEC. */
struct init_helper {
    pid_t pid;
    int sys_errno;
    const char *step, *object;
    _Alignas(16) char stack[8192];
};

/* Start main(arg), which never returns; flags are those of clone(2), besides CLONE_VM. */
void init_helper_start(struct init_helper *helper, int (*main)(void *arg), void *arg, int flags);
/* In the helper: note that a step failed, with errno, and end. */
void init_helper_fail(struct init_helper *helper, const char *step, const char *object)
        __attribute__((noreturn));
/* Wait for it, and fail if it did. */
void init_helper_end(struct init_helper *helper);

/* Send an event that brings a descriptor. */
void init_send(enum pf_init_event event, int fd);

/* Whether what came as a plan is one, so that whoever follows its numbers stays within it. */
bool init_plan_is_whole(const struct pf_plan *plan, size_t size);
/* Call use for each operation between two offsets in turn. */
void init_each(const struct pf_plan *plan, size_t from, size_t to,
               void (*use)(const struct pf_op *op));
const char *init_target(const struct pf_op *op);
const char *init_text(const struct pf_op *op);

/* When the machine is out of memory the kernel shall look here first. Before there are helpers: for
 * memory that is shared it goes through all processes of the machine. */
void init_offer_memory(void);
/* Become the user of the jail, build the tree and make it the root. lent is a mount that is the
 * workspace, or -1. Only after the end is nothing of the host's tree left. */
void init_build_begin(const struct pf_plan *plan, int lent);
void init_build_end(void);
/* Mount the overlay of a seed, with the layers in the working directory. Returns it, attached to
 * nothing yet. */
int init_overlay(const struct pf_plan *plan);
/* Give the owner a way in, once the overlay is in its place. */
void init_give_root(void);
/* Make the network of the jail, beside whatever is done between these two. The second enters it,
 * and returns the socket that listens for the proxy, or -1. */
void init_network_begin(void);
int init_network_end(const struct pf_plan *plan);
/* The part of giving up that does not hinder building, done before there is a plan. */
void init_empty_bounding_set(void);
/* Give up everything: after this nothing can be set up any more. */
void init_lock(const struct pf_plan *plan, const struct pf_init_groups *groups);
void init_landlock(const struct pf_plan *plan);
/* Answer a request that no jail may serve. Returns whether it is one. */
bool init_refuses(const struct pf_wire_request *request, const int *fds);
/* Tell the owner that the resident with this number is free. The first process says it for the
 * first one before that is forked, so that the first command need not wait for it. */
#define PF_FIRST_LIFE 1
bool init_lease(int socket, uint32_t life);
/* The life of a resident supervisor: serve requests that are leased to this life, and no others. It
 * ends when the owner hangs up, and after many commands. retire: see struct pf_super_spec;
 * hand_over: a socket for requests that are not its own. */
void init_reside(uint32_t life, int retire, int hand_over) __attribute__((noreturn));
/* Start a supervisor for each request, until the owner hangs up. signals is readable when a child
 * changes state. */
void init_serve(int signals);

#endif
