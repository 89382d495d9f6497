/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns at starting commands. Whoever asks for 200 commands at once wants to go on meanwhile, but
 * each new process is given a processor before one that has had its share, and as the leader of a
 * session often as much of it as all of the program that asks: its threads would wait for tenths of
 * a second. So a program starts only about as many commands at any moment as there are processors,
 * and what waits is asleep. All of them together take no longer: the processors are busy either
 * way.
 */
#ifndef PF_PROC_TURN_H
#define PF_PROC_TURN_H

#include <stdint.h>

#include "base/clock.h"

struct pf_turn {
    uint64_t ticket; /* 0: none is held */
    unsigned place;
};

/* Wait for a turn. It ends by itself after PF_TURN_NS, whatever the command does, so that nobody
 * has to wait for what a command may hold up. */
struct pf_turn pf_turn_take(void);
#define PF_TURN_NS (4 * PF_NS_PER_MS)
/* End a turn early; one that is not held, or not any more, is fine. */
void pf_turn_end(struct pf_turn *turn);

#endif
