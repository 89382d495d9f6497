/* SPDX-License-Identifier: Apache-2.0 */
/* Inside proc/: starting supervisors and keeping the table of them. */
#ifndef PF_PROC_LAUNCHER_H
#define PF_PROC_LAUNCHER_H

#include "base/clock.h"
#include "proc/heritage.h"
#include "proc/run.h"
#include "proc/super.h"

#include <sys/uio.h>

/* A command that has, or may have, a supervisor. */
struct pf_live {
    int control;              /* owner's end of the socket */
    pid_t pid;                /* of a supervisor that is our own child; 0: the helper's */
    bool over;                /* the supervisor has nothing more to say, and may stay */
    bool called;              /* a pf_run() or a terminal has it and takes it out of the table */
    bool terminal;            /* that is a terminal, which outlives calls and the launcher's stop */
    _Atomic pid_t supervisor; /* whoever's child; until the helper has said it, the helper; 0: in a
                                 jail */
    struct pf_live *prev, *next;
};

/* Start a supervisor for spec, whose control field is set here. The descriptors in spec stay the
 * caller's. Returns 0, -PINFOLD_ESTART (stopped), -PINFOLD_EOS, -PINFOLD_EBACKEND or
 * -PINFOLD_ENOMEM. */
int pf_launcher_start(struct pf_launcher *launcher, struct pf_super_spec *spec,
                      struct pf_live **ret, struct pinfold_error *err);

/* The call is over. lingers: processes of the command still run, keep it in the table; else the
 * supervisor ends by itself, or is killed. */
void pf_launcher_release(struct pf_launcher *launcher, struct pf_live *live, bool lingers);

/* A supervisor has died without a word. If it was the helper that died, with a request in its
 * hands, its socket may be open for a moment more: the next command gets another. */
void pf_launcher_doubt(struct pf_launcher *launcher);

/* Whether a supervisor that died without a word was killed by what it watched: from inside its
 * jail, which goes on, and kills what was left to it. */
bool pf_launcher_lives_on(struct pf_launcher *launcher);

/* A terminal keeps what it was started with: no call, and a reference to the launcher. And it gives
 * both back when its supervisor has ended. */
void pf_launcher_keep(struct pf_launcher *launcher, struct pf_live *live);
void pf_launcher_give_back(struct pf_launcher *launcher, struct pf_live *live);

/* Send an order; a supervisor that is gone does not mind. */
void pf_live_order(const struct pf_live *live, enum pf_super_order order);

/* A supervisor that has something to do does it even when the command has stopped it, which any
 * process of its user may, and so does the helper that is to start it: call this now and then while
 * waiting for one that should be done. */
#define PF_NUDGE_NS (100 * PF_NS_PER_MS)
void pf_live_nudge(const struct pf_live *live);

/* Likewise, of one that is to end its command now: the order is sent each time, as the system may
 * have had no memory for the last. It does not mind to be told again. */
void pf_live_insist(const struct pf_live *live);

/* For tests: how supervisors are started, and which helper (NULL: look for it). */
enum pf_launch_mode {
    PF_LAUNCH_AUTO,
    PF_LAUNCH_DIRECT,
    PF_LAUNCH_HELPER,
    PF_LAUNCH_JAIL, /* by the first process of a jail */
};
void pf_launcher_force(struct pf_launcher *launcher, enum pf_launch_mode mode, const char *helper);
enum pf_launch_mode pf_launcher_last_mode(const struct pf_launcher *launcher);
pid_t pf_launcher_helper(const struct pf_launcher *launcher);
size_t pf_launcher_count(struct pf_launcher *launcher); /* commands in the table */

/* The helper program: helper.c. */
struct pf_helper {
    int socket;
    int resident; /* of a jail: the socket of its resident supervisor; -1: there is none */
    pid_t pid;
};

/* Find one of our programs: beside the library, beside the program, or where it is installed. path
 * has PATH_MAX bytes. */
bool pf_program_find(const char *name, char *path);
bool pf_helper_find(char *path);
/* Start it by a vfork-style clone. heritage is what this thread has read of its own; it becomes
 * what the helper has. Returns 0 or -PINFOLD_EOS. */
int pf_helper_start(const char *path, struct pf_heritage *heritage, struct pf_helper *ret,
                    struct pinfold_error *err);
/* Ask for a supervisor. Returns 0, -PINFOLD_ENOMEM, -PINFOLD_EOS or -PINFOLD_EBACKEND (the helper
 * is gone, nothing was started). */
int pf_helper_ask(const struct pf_helper *helper, const struct pf_super_spec *spec,
                  struct pinfold_error *err);
/* Whether a request is short enough, or may be a file when none may have more than so many bytes.
 */
bool pf_helper_may_ask(const struct pf_super_spec *spec, uint64_t most);
/* Hang up: it ends by itself, and is not our child. */
void pf_helper_stop(struct pf_helper *helper);

/* Bytes in an unnamed, sealed file. Returns a descriptor or -errno; -EFBIG also where a limit of
 * this process would be passed by. */
int pf_sealed_file(const char *name, const struct iovec *parts, int count);

#endif
