/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside backend/: how much a workspace, a directory of the host, may hold, and how much space must
 * stay free on its file system. No kernel holds an ordinary user's directory to a size; so the
 * owner looks now and then, and kills what runs when a workspace that is over its limit has grown.
 * What is written between two looks is there all the same.
 */
#ifndef PF_BACKEND_QUOTA_H
#define PF_BACKEND_QUOTA_H

#include <pthread.h>
#include <stdatomic.h>

#include "proc/run.h"

struct pf_quota {
    int root_fd; /* of the host's directory: with an overlay, of its layers */
    struct pf_launcher *launcher;
    uint64_t limit_bytes; /* PINFOLD_UNLIMITED: none */
    uint64_t reserve_bytes, reserve_inodes;

    pthread_mutex_t lock; /* of what follows; held while looking */
    pthread_cond_t wake;
    pthread_t thread;
    pid_t owner; /* a fork of it has no thread to join */
    bool watching, stopping;
    uint64_t used_bytes; /* when it was last added up */
    uint64_t free_bytes, free_inodes;
    int64_t next_sum; /* when adding up is not too soon */

    atomic_bool awake;        /* the thread looks */
    _Atomic unsigned running; /* commands */
    _Atomic int over;         /* enum pinfold_limit that was exceeded when last looked at */
    _Atomic int killed_for;   /* likewise, when everything was last killed */
    _Atomic unsigned kills;   /* how often that was */
    _Atomic int64_t looked_at;
};

/* Begin: how much must stay free is decided by what is free now. limits says workspace_bytes. */
int pf_quota_init(struct pf_quota *quota, int root_fd, uint64_t workspace_bytes,
                  struct pinfold_error *err);
/* Stop watching. A zeroed struct is fine. */
void pf_quota_done(struct pf_quota *quota);

/* Which limits it looks after, for enum pinfold_limit WORKSPACE and DISK. */
void pf_quota_hold(const struct pf_quota *quota, enum pinfold_holder *holders);

/* Have a command's request watched: from the time when it has run for a while, or at once when
 * there is little room left. */
void pf_quota_attach(struct pf_quota *quota, struct pf_run_request *request);
/* After a command: which limit it was killed for. lingers: processes of it run on, and are watched
 * too. */
enum pinfold_limit pf_quota_detach(struct pf_quota *quota, const struct pf_run_request *request,
                                   bool lingers);

/* Whether more may be written: before a command (0 bytes) and host-side writes. -PINFOLD_EOS with
 * EDQUOT or ENOSPC. */
int pf_quota_admit(struct pf_quota *quota, uint64_t bytes, struct pinfold_error *err);

/* After something was deleted from outside: a workspace that was too large is added up anew before
 * more is refused. */
void pf_quota_shrunk(struct pf_quota *quota);

/* After a seed, which is the user's own: what must stay free is decided anew. -PINFOLD_EOS with
 * EDQUOT when it is larger than the workspace may be. */
int pf_quota_seeded(struct pf_quota *quota, struct pinfold_error *err);

#endif
