/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A jail: the first process of a set of new namespaces, with a file tree of its own and nothing
 * left to gain. It serves the requests of proc/wire.h, as the helper program does, until its owner
 * closes the socket or dies; then the kernel takes down everything inside.
 */
#ifndef PF_JAIL_JAIL_H
#define PF_JAIL_JAIL_H

#include <pinfold/backend.h>

#include "jail/cgroup.h"

#define PF_JAIL_WORKSPACE "/workspace" /* the workspace, as commands see it */
#define PF_JAIL_HOME "/home/agent"
#define PF_JAIL_PROXY_PORT 3128                /* where PINFOLD_NET_ALLOW's proxy listens inside */
#define PF_JAIL_CONNECT "/run/pinfold/connect" /* and a program that asks it, for ssh and git */

struct pf_jail;

/* What a jail is made of. Everything is borrowed for the call. */
struct pf_jail_config {
    int workspace_fd; /* the host directory shown at PF_JAIL_WORKSPACE */
    bool lent;        /* it is a mount of pf_jail_lend() instead, which can be shown once */
    /* Instead of the directory itself an overlay is shown: of the layers in it (plan.h) on this
     * one, which the caller has open. NULL: none. */
    const char *seed;
    int seed_fd;
    bool workspace_read_only;
    const char *const *ro; /* absolute host directories shown read-only at the same path */
    const char *const *rw; /* likewise, writable */
    const char *rootfs;    /* instead of the host's system directories; may be NULL */
    enum pinfold_net net;
    struct pinfold_limits limits;
};

enum { PF_JAIL_NO_OVERLAY = 1 };

/* Make one. Returns when the jail is locked and serves, or -PINFOLD_EOS, -PINFOLD_ENOTSUP (the
 * kernel or its configuration cannot isolate: the message says what is missing and how to turn it
 * on), -PINFOLD_EVALUE, -PINFOLD_EBACKEND, -PINFOLD_ENOMEM. There is no fallback; but when it is
 * the overlay alone that cannot be had the answer is PF_JAIL_NO_OVERLAY, and err says why. */
int pf_jail_open(const struct pf_jail_config *config, struct pf_jail **ret,
                 struct pinfold_error *err);

/* Whether directories may be shown in a sandbox, by their paths alone: nothing is looked at. paths
 * may be NULL. Returns 0 or -PINFOLD_EVALUE. */
int pf_jail_check_shown(const char *const *paths, struct pinfold_error *err);

/* What holds each of its limits, by enum pinfold_limit; those that the owner looks after are its
 * own to know. Borrowed. */
const enum pinfold_holder *pf_jail_holders(const struct pf_jail *jail);
/* What its control groups have counted; refused forks only when asked for. */
void pf_jail_count(const struct pf_jail *jail, bool forks, struct pf_cgroup_counts *ret);

/* The socket that takes requests. Borrowed. */
int pf_jail_socket(const struct pf_jail *jail);
/* That of its resident supervisor, which takes one request at a time. Borrowed. */
int pf_jail_resident(const struct pf_jail *jail);

/* With PINFOLD_NET_ALLOW: the socket that listens inside at PF_JAIL_PROXY_PORT; the caller owns it.
 * -1 otherwise, and after the first call. */
int pf_jail_take_proxy_socket(struct pf_jail *jail);

/* With an overlay: its root, through which the host sees the workspace as commands do; writable
 * whatever it is inside. The caller owns it. -1 otherwise, and after the first call. */
int pf_jail_take_root(struct pf_jail *jail);

/* The workspace of a jail with an overlay, read-only, for another jail of the same owner: no other
 * mount namespace has it. root_fd: as pf_jail_take_root() gave. The caller owns *ret_fd. Returns 0,
 * -PINFOLD_EOS or -PINFOLD_EBACKEND. */
int pf_jail_lend(const struct pf_jail *jail, int root_fd, int *ret_fd, struct pinfold_error *err);

/* Kill everything inside, wait until it is gone (bounded), free. NULL is fine. In a fork of the
 * owner, only give up its copies. */
void pf_jail_close(struct pf_jail *jail);

#endif
