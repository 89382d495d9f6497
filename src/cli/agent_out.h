/* SPDX-License-Identifier: Apache-2.0 */
/* What an agent's run prints: text of others made safe, and writes that Ctrl-C ends. */
#ifndef PF_CLI_AGENT_OUT_H
#define PF_CLI_AGENT_OUT_H

#include <stdbool.h>
#include <stddef.h>

/* What of a text's control characters stays. */
enum pf_keep {
    PF_KEEP_NONE = 0,  /* for one line: a line end is written \n */
    PF_KEEP_LINES = 1, /* line ends and tabs stay */
};

/*
 * Make a text safe for a terminal: what is not printable UTF-8 becomes \xNN, or \t, \n, \r, and so
 * do the characters that change the direction of writing, by which one text can look like another.
 *
 * text    len bytes, then NUL; NUL bytes within are escaped too
 * most    characters of the result at most, "..." included, which stands for the rest; 0: all
 *
 * Returns text to free(), or NULL when out of memory.
 */
char *pf_clean(const char *text, size_t len, enum pf_keep keep, size_t most);

/* Write all of it; unlike pf_put() give up soon after a signal was caught (interrupt.h). Returns 0
 * or the errno, EINTR for a signal. */
int pf_put_or_stop(int fd, const char *data, size_t len);

/* Whether a stream is a terminal that may be coloured: not when NO_COLOR is set. */
bool pf_has_colour(int fd);

/* Columns of a terminal, or 100. */
size_t pf_width(int fd);

#endif
