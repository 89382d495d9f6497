/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside jail/: starting the first process of a jail. It takes a while, in which the owner has
 * other things to do: so it goes on beside the caller, between begin and end.
 */
#ifndef PF_JAIL_BIRTH_H
#define PF_JAIL_BIRTH_H

#include <pthread.h>
#include <stdbool.h>
#include <sys/types.h>

struct pf_birth {
    /* Borrowed until the end. See plan.h; workspace becomes its working directory. */
    int program, socket, resident, owner, workspace;
    bool overlay; /* it will mount one */
    bool network; /* it makes its own */

    int pidfd;        /* the caller's after the end; -1 when it failed */
    int sys_errno;    /* 0: it runs */
    const char *step; /* that failed */
    bool refused;     /* because the kernel makes no namespaces, or gives no rights in them */

    char *inner_stack; /* the rest is its own */
    pthread_t thread;
    bool threaded;
};

/* Both never fail: the second leaves what happened in birth. */
void pf_birth_begin(struct pf_birth *birth);
void pf_birth_end(struct pf_birth *birth);

#endif
