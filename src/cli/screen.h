/* SPDX-License-Identifier: Apache-2.0 */
/* The person's own terminal: its raw mode, and the way back. */
#ifndef PF_CLI_SCREEN_H
#define PF_CLI_SCREEN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <termios.h>

struct pf_screen {
    int in, out;  /* stdin and stdout, as files of our own that do not block where possible */
    int lifeline; /* its end tells the guard that we are gone */
    pid_t guard;  /* restores the modes when we could not */
    bool raw;
    struct termios before, during;
};

/* Take stdin, which must be a terminal, and stdout. Returns 0 or an errno. */
int pf_screen_open(struct pf_screen *screen);

/* Pass every key and every byte on as it is; again, after somebody else has had the terminal, too.
 * Returns 0 or an errno. */
int pf_screen_raw(struct pf_screen *screen);

/* As it was before. What was typed and not read is dropped, the terminal's own answers to questions
 * of a program that is gone among it: they would be typed into the shell. */
void pf_screen_restore(struct pf_screen *screen);

/* Restore it, and let go. */
void pf_screen_close(struct pf_screen *screen);

/* 0 by 0 when it does not know. */
void pf_screen_size(const struct pf_screen *screen, uint16_t *ret_rows, uint16_t *ret_cols);

#endif
