/* SPDX-License-Identifier: Apache-2.0 */
/* Filling struct pinfold_error: the one place that formats errors. */
#ifndef PF_BASE_ERROR_H
#define PF_BASE_ERROR_H

#include <pinfold/error.h>

/* Fill err (may be NULL) and return -code. */
int pf_fail(struct pinfold_error *err, enum pinfold_code code, const char *format, ...)
        PINFOLD_PRINTF(3, 4);

/* As pf_fail, for a system call that set sys_errno: appends ": " and its text. The code is
 * PINFOLD_EOS, or PINFOLD_ENOMEM for ENOMEM. */
int pf_fail_os(struct pinfold_error *err, int sys_errno, const char *format, ...)
        PINFOLD_PRINTF(3, 4);

/* Out of memory. */
int pf_fail_nomem(struct pinfold_error *err);

/* Put context in front of an error that is already filled: "context: old text". Returns result. */
int pf_wrap(struct pinfold_error *err, int result, const char *format, ...) PINFOLD_PRINTF(3, 4);

/* The last of several attempts failed with err. If it only ran out of time, what the one before it
 * was told is the reason that the time ran out: "old text; before that: text of before", and its
 * HTTP status where err has none. Otherwise, and where before has no code or ran out of time too,
 * err stays as it is. */
void pf_tell_before(struct pinfold_error *err, const struct pinfold_error *before);

/* Enough for any path in an error: what does not fit loses its middle. */
#define PF_QUOTE_MAX 120

/* A name for people: bytes that are not printable UTF-8 become \xNN, and what is longer than
 * PF_QUOTE_MAX - 1 bytes loses its middle to "...". Returns buffer. No allocation,
 * async-signal-safe. */
const char *pf_quote(const char *text, char buffer[static PF_QUOTE_MAX]);

/* pf_quote into a buffer of the enclosing full expression's block. */
#define PF_QUOTE(text) pf_quote((text), (char[PF_QUOTE_MAX]){ 0 })

/* The whole text escaped as by pf_quote, nothing shortened. Returns NULL when out of memory. */
char *pf_escape(const char *text);

#endif
