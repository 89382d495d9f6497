/* SPDX-License-Identifier: Apache-2.0 */
/* What the user reads: messages on stderr, and text made safe to show. */
#ifndef PF_CLI_SAY_H
#define PF_CLI_SAY_H

#include <stddef.h>
#include <stdint.h>
#include <stdbool.h>

#include <pinfold/log.h>
#include <pinfold/result.h>

/* No summaries, notes and warnings from now on; errors are always told. */
void pf_say_set_quiet(bool quiet);

/* Write "pinfold: ...\n" to stderr by one write, with bytes a terminal could obey escaped. */
void pf_say(const char *format, ...) PINFOLD_PRINTF(1, 2);

/* The same, unless quiet. */
void pf_note(const char *format, ...) PINFOLD_PRINTF(1, 2);

/* List up to 20 errors, one a line, indented, and how many more there are. */
void pf_say_list(const struct pinfold_strings *lines);

/* A log handler: warnings and errors become "pinfold: warning: ..." unless quiet. */
void pf_say_log(void *ctx, enum pinfold_log_level level, const char *message);

/* How many bytes the UTF-8 character at text has, which ends with NUL, when it is well formed and
 * printable; else 0. */
size_t pf_printable_char(const char *text);

/* Write bytes that are not printable UTF-8, and backslashes, as \xNN: two names never look alike.
 * Returns text to free(), or NULL when out of memory. */
char *pf_printable(const char *text);

/* "17 B", "34 KiB": buffer holds at least 32 bytes. Returns buffer. */
const char *pf_format_size(uint64_t bytes, char *buffer);

/* The system's words for an error; as strerror(3), which some C libraries keep in one place for all
 * threads. */
const char *pf_error_words(int sys_errno);

/* Write all of it, whatever write(2) does. Returns 0 or the errno. */
int pf_put(int fd, const char *data, size_t len);

#endif
