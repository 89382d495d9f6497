/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a process has from the thread that forks it, and may have changed since the last fork: its
 * limits, its rights, and where and when it runs. The helper program forks commands with what it
 * was started with itself; so it may go on only while that is what the host has now.
 */
#ifndef PF_PROC_HERITAGE_H
#define PF_PROC_HERITAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

struct pf_heritage {
    uint64_t limits[RLIM_NLIMITS][2]; /* soft and hard, see getrlimit(2) */
    uint64_t root[3];                 /* device, inode, mount: changed by chroot and unshare */
    uint64_t secure_bits;
    uint64_t memory_rules; /* whether what can be written may become executable */
    uint64_t users;        /* which namespace */
    uint64_t network;      /* likewise */
    uint64_t sched[4];     /* policy, flags, nice value, priority */
    size_t len;            /* of text; 0: not all is known, and it is the same as nothing */
    pid_t thread;          /* who alone is known to have these filters; 0: all who have so many */
    /* Of /proc/self/status: the umask, users, groups, capabilities, filters of system calls, which
     * processors. What does not fit is not known. */
    char text[16384];
};

/* What a fork of this thread would have. socket is one that this thread has made, so it tells the
 * network. ret_resident receives the bytes of memory that this process has. Returns false when
 * something could not be found out. */
bool pf_heritage_read(struct pf_heritage *ret, int socket, uint64_t *ret_resident);

/* In a fork, which may share memory with its parent: what it has indeed, since other threads change
 * limits, umask and root at any moment. The rest of what ret holds, which the parent has read, are
 * the thread's own. */
void pf_heritage_confirm(struct pf_heritage *ret);

/* What this thread has read of its own becomes a helper's. Filters of system calls can only be
 * counted, and another thread may have as many others. Those that the first thread has as well were
 * there before this one, as a container's are, and are everybody's. */
void pf_heritage_hand_on(struct pf_heritage *heritage);

/* Whether what this thread has now is what a helper has. */
bool pf_heritage_is_same(const struct pf_heritage *now, const struct pf_heritage *helper);

#endif
