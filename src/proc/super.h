/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The supervisor of one command: what it is told, and what it says. It runs either as a raw clone
 * of the host process, where every other thread may hold any lock, or as a fork of the helper
 * program; so everything behind this header is async-signal-safe, allocates nothing, and needs
 * nothing of the library.
 *
 * Owner and supervisor talk over a SOCK_SEQPACKET pair. The owner sends orders, one byte each; the
 * supervisor sends struct pf_super_message. Its last one is EXITED with left == 0, or GONE; then it
 * exits.
 */
#ifndef PF_PROC_SUPER_H
#define PF_PROC_SUPER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define PF_SCRIPT_FD 3 /* where a leader finds a command too long for an argument */

struct pf_super_spec {
    int control;          /* the supervisor's end of the socket */
    int read_end[2];      /* of the pipes for stdout and stderr: drained once nobody else reads */
    int write_end[2];     /* likewise: the leader's descriptors 1 and 2 */
    int cwd;              /* the leader's working directory; -1: the supervisor's */
    int script;           /* becomes the leader's PF_SCRIPT_FD; -1: none */
    const char *cwd_path; /* instead of cwd: as the leader sees it; NULL: none */
    pid_t owner;          /* whose death ends the command; 0: the hang-up of control tells it */
    int64_t deadline;     /* CLOCK_MONOTONIC in ns, or PF_NEVER */
    int null;             /* /dev/null, for reading and writing; 0: so are 1 and 2; -1: none */
    bool stays;           /* after EXITED as the last word, with cwd, until the owner hangs up */
    /* If an owner has told one that stays to stop, then called when it has hung up; or NULL. */
    void (*at_end)(const char *at_end_arg);
    const char *at_end_arg;
    bool search;         /* look argv[0] up in the command's PATH; else run /bin/sh */
    bool terminal;       /* no pipes: make a terminal, and send its master to the owner */
    uint16_t rows, cols; /* of the terminal */
    int slave;           /* the terminal, once the supervisor has made it */
    bool fresh_signals;  /* none is ignored but SIGCHLD: the leader need not see to it */
    /* Of a resident, which serves one command after the other: gets its process id when the command
     * left others running, for then it stays with them and ends with them; -1: it is none. It has
     * been made a supervisor once and for all by pf_super_settle(), and what is open in it besides
     * its own descriptors, none of which is one that a leader's stdio (or script) goes to, is the
     * command's. It closes that itself. */
    int retire;
    const char *const *argv;
    const char *const *envp;
};

enum pf_super_order {
    PF_ORDER_KILL = 1, /* kill everything, and say when it is gone */
    PF_ORDER_DETACH,   /* nobody reads the pipes any more: drain them, and say COUNT */
};

enum pf_super_event {
    PF_EVENT_FAILED = 1, /* the leader could not be started: sys_errno, stage; EXITED may follow */
    PF_EVENT_EXITED,     /* the leader is gone: status, cause, left */
    PF_EVENT_GONE,       /* after EXITED with left > 0: now everything is gone, or, with left > 0,
                            refuses to die */
    PF_EVENT_COUNT,      /* the answer to DETACH: left */
    PF_EVENT_STARTED,    /* from the helper, at any time: status is the supervisor's process id */
    PF_EVENT_TERMINAL,   /* the master of the leader's terminal comes along: before it may run, and
                            kill whoever would send this */
    PF_EVENT_RUNNING,    /* and now the leader of a terminal runs */
};

enum pf_super_cause {
    PF_CAUSE_NONE, /* it ended by itself */
    PF_CAUSE_DEADLINE,
    PF_CAUSE_KILLED, /* by order, or because the owner is gone */
    PF_CAUSE_DEAF,   /* something has taken the supervisor's means to hear */
    PF_CAUSE_MUTE,   /* the system had no memory for what it had to say */
};

enum pf_super_stage {
    PF_STAGE_FORK,
    PF_STAGE_CWD,
    PF_STAGE_STDIO,
    PF_STAGE_EXEC,
    PF_STAGE_SETUP,
    PF_STAGE_TERMINAL,
};

struct pf_super_message {
    uint32_t event;
    uint32_t cause;
    int32_t status; /* as wait(2) gives it */
    uint32_t left;  /* descendants alive; in EXITED only whether there are any, unless killed */
    int32_t sys_errno;
    uint32_t stage;
    int64_t cpu_ns;      /* EXITED and GONE: of all that was reaped so far */
    uint64_t peak_bytes; /* likewise: the largest resident set among them */
};

/* What makes a process a supervisor, whatever its command. Returns false with errno. */
bool pf_super_settle(void);

/* Be the supervisor of one command. All signals must be blocked. Returns when it is over; then a
 * process that is no resident has only to exit. */
void pf_supervise(const struct pf_super_spec *spec);

/* Tell the owner that the leader could not be started. */
void pf_super_fail(int control, int sys_errno, enum pf_super_stage stage);

/* Start the leader by a vfork-style clone. Returns its process id or -errno. What fails after the
 * clone is sent to the control socket by the child. */
pid_t pf_leader_start(const struct pf_super_spec *spec);

/* Make spec's terminal: sets slave. Returns the master or -errno. */
int pf_super_terminal(struct pf_super_spec *spec);
/* Send the master to the owner; closes it. */
void pf_super_send_master(int control, int master);
/* Set every signal to what it does by default. */
void pf_default_signals(void);

/* Any process of the same user can lower our limits, and only root of the machine raises them
 * again. How many descriptors we may have now, or enough; to be asked before anything is started.
 */
uint64_t pf_files_wanted(void);
/* Whether there are fewer by now: what waits for others, or lists them, may then fail. */
bool pf_is_deaf(uint64_t wanted);

/* Whether pf_children() can see any: it takes a /proc, that of this process's own namespace. */
bool pf_can_list_children(void);

/* List the children of this process, which has one thread; with deep set all descendants that can
 * be seen. Returns how many were stored in pids. */
size_t pf_children(pid_t *pids, size_t max, bool deep);

#endif
