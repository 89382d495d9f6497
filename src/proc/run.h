/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Running commands. Each command has a supervisor: a process of its own that is a child subreaper,
 * so that everything the command starts, daemons that called setsid included, stays its
 * descendant and can be killed; it enforces the deadline, and kills everything when the process
 * that asked for the command dies. Supervisors are forked from a launcher.
 */
#ifndef PF_PROC_RUN_H
#define PF_PROC_RUN_H

#include "base/cancel.h"

#include <pinfold/backend.h>

/* Where supervisors come from. A process with a small resident set forks them itself; a large one,
 * where copying page tables would cost milliseconds, starts the small helper program once (by a
 * vfork-style clone) and asks it. Also the table of commands that still have processes. */
struct pf_launcher;

int pf_launcher_new(struct pf_launcher **ret, struct pinfold_error *err);
/* A launcher whose supervisors run in a jail: socket, borrowed, is the jail's. There is no other
 * way when it is gone. Commands must come with cwd_path. */
int pf_launcher_new_in_jail(int socket, int resident, struct pf_launcher **ret,
                            struct pinfold_error *err);

/* This process ends when it has stopped the launcher: supervisors that are done may stay until then
 * and hold their command's working directory, which makes removing it quick. Nobody waits for the
 * last of them. */
void pf_launcher_let_stay(struct pf_launcher *launcher, void (*at_end)(const char *arg),
                          const char *arg);
/* Whether one of them stays after pf_launcher_stop(): it calls at_end when this process has ended,
 * or does not if it is killed. at_end, which may be NULL, must be async-signal-safe and allocate
 * nothing; arg must live as long as the launcher. */
bool pf_launcher_has_left_one(const struct pf_launcher *launcher);

/* Kill every command and what is left of finished ones, wait for it, and refuse new commands.
 * Calls of pf_run() under way return with what they have, exit code 137; do not call this from
 * their output callback, which they would wait for. In a fork of the process that made the
 * launcher: does nothing. */
void pf_launcher_stop(struct pf_launcher *launcher);
/* Kill every command and what is left of finished ones, and do not wait for it. */
void pf_launcher_kill(struct pf_launcher *launcher);
/* pf_launcher_stop(), then free. NULL is fine. No pf_run() may be under way. */
void pf_launcher_free(struct pf_launcher *launcher);

struct pf_run_request {
    const char *command; /* for /bin/sh -c; command_len bytes, checked for NUL by pf_run() */
    size_t command_len;
    const char *const *argv; /* instead of command */
    const char *const *envp; /* the whole environment, NULL-terminated */
    int cwd_fd;              /* borrowed; -1: enter cwd_path */
    const char *cwd_path;    /* entered by the command's first process; for jails, where a
                                descriptor of a host directory would be a way out */
    int64_t timeout_ns;      /* > 0, or PF_NEVER */
    size_t output_limit;     /* bytes of decoded stdout and stderr together kept in the result */
    bool keep_tail;
    bool discard;
    bool secret;          /* with discard: what was read is wiped once on_output has had it */
    uint64_t spool_limit; /* 0: no spool */
    pinfold_output_fn on_output;
    void *on_output_ctx;
    int64_t slow_ns; /* call on_slow once, on this thread, when the command runs longer */
    void (*on_slow)(void *ctx); /* may be NULL */
    void *on_slow_ctx;
    const _Atomic unsigned *kills; /* counts calls of pf_launcher_kill(); may be NULL. When it has
                                      changed, no note says why the command was killed */
    unsigned kills_before;
    struct pinfold_cancel *cancel;
};

/* Run one command to its end. Returns 0 (whatever the command did: exit codes 124, 126, 127 and
 * 128+n included), -PINFOLD_ECANCELLED (ret filled with what there is), -PINFOLD_ESTART (the
 * launcher was stopped, or belongs to the process we were forked from), -PINFOLD_EOS (a vector or
 * an environment that is too large included), -PINFOLD_EBACKEND (the supervisor died),
 * -PINFOLD_ENOMEM. ret is zeroed unless filled. Any thread. */
int pf_run(struct pf_launcher *launcher, const struct pf_run_request *request,
           struct pinfold_execute_result *ret, struct pinfold_error *err);

#endif
