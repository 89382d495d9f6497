/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside jail/: what the owner tells the first process of a jail to do, and what that says back.
 * The owner decides everything: it writes a flat list of operations, which init performs in their
 * order without a choice of its own.
 */
#ifndef PF_JAIL_PLAN_H
#define PF_JAIL_PLAN_H

#include <pinfold/error.h>
#include <stdint.h>
#include <sys/types.h>

#define PF_INIT_NAME "pinfold-init"

/* The layers of an overlay, in the workspace's directory on the host. */
#define PF_LAYER_CHANGES "changes" /* the upper one: what the agent made */
#define PF_LAYER_HIDDEN "hidden"   /* on the seed, with whiteouts for what is not shown of it */
#define PF_LAYER_WORK "work"       /* the overlay's own */

/* Where init finds its descriptors. Its working directory is the workspace. Two datagrams come over
 * the socket: the plan, which init builds from while the owner makes control groups, or if it is
 * larger than PF_INIT_PLAN_MAX one byte and a sealed file that holds it; in front of that file, if
 * the plan says so, a mount that is the workspace; then struct pf_init_groups and files that a "0"
 * is written to by who wants to be in a group. */
#define PF_INIT_PLAN_MAX (32 << 10)
#define PF_INIT_FDS_MAX 8
/* A variable of init's when the network is the jail's own: it can begin without the plan. Unlike an
 * argument nobody inside can read it. */
#define PF_INIT_NETWORK "own_network"
enum {
    PF_INIT_SOCKET = 3,
    PF_INIT_RESIDENT = 4, /* the socket of the resident supervisor */
    PF_INIT_OWNER = 5,    /* a pidfd: the socket alone does not tell, a fork may have a copy */
    PF_INIT_PROGRAM = 6,  /* closed by its execution */
};

enum pf_op_kind {
    PF_OP_DIR = 1,   /* make target */
    PF_OP_LINK,      /* make target a symbolic link to text */
    PF_OP_FILE,      /* make target a file that holds text */
    PF_OP_BIND,      /* show what is at text on the host as target, which is there */
    PF_OP_DEVICE,    /* as PF_OP_BIND, a device that may be used */
    PF_OP_WORKSPACE, /* show the workspace as target, which is there */
    PF_OP_TMPFS,     /* with text as its options */
    PF_OP_PROC,
    PF_OP_DEVPTS,
    PF_OP_MASK, /* let target, if it is there, read as empty */
};

enum pf_op_flag {
    PF_OP_WRITABLE = 1,
    PF_OP_OPTIONAL = 2, /* a failure is reported, and the jail does without */
    PF_OP_GIVEN = 4,    /* by the user: target may lead through directories of others */
    PF_OP_LATE = 8,     /* to be made in what is mounted, after the root became read-only */
};

/* One operation. target and text follow, each with its NUL; both lengths count it. */
struct pf_op {
    uint32_t size; /* to the next one */
    uint16_t kind, flags;
    uint32_t mode; /* of what is made */
    uint32_t target_len, text_len;
};

struct pf_plan {
    uint64_t size;          /* of the whole */
    uint64_t ops_end;       /* where the operations end */
    uint64_t shown_end;     /* what comes before becomes read-only together: struct pf_draft */
    uint64_t max_processes; /* of the process namespace; 0: as it is */
    uint64_t cpu_seconds, open_files, file_bytes; /* UINT64_MAX: no limit */
    uid_t uid;                                    /* of the owner, who is PF_JAIL_UID inside */
    gid_t gid;
    /* The seed of an overlay: its path, after the operations; 0: the workspace is shown as it is.
     */
    uint64_t seed_at;
    uint64_t seed_dev, seed_ino; /* what must be found there */
    uint32_t alone;      /* the workspace is read-only: let nobody hand in a descriptor to it */
    uint32_t proxy_port; /* listen there and send the socket with READY; 0: do not */
    uint64_t lent;       /* the workspace is a mount that came with the plan */
};

struct pf_init_groups {
    uint64_t data_bytes; /* a limit for each process; UINT64_MAX: none */
    uint64_t processes;  /* likewise, of all: above that of a group, which must be what
                            refuses, because it alone tells */
};

#define PF_JAIL_UID 1000

enum pf_init_event {
    PF_INIT_READY = 1,
    PF_INIT_FAILED,     /* error says what, without the text of its errno; it has exited */
    PF_INIT_NOTE,       /* something optional could not be had */
    PF_INIT_ROOT,       /* brings a descriptor of the root of the overlay */
    PF_INIT_NO_OVERLAY, /* as PF_INIT_FAILED: without the overlay there would have been a jail */
};

struct pf_init_message {
    uint32_t event;
    struct pinfold_error error;
};

#endif
