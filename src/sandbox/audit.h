/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PF_SANDBOX_AUDIT_H
#define PF_SANDBOX_AUDIT_H

#include <pinfold/audit.h>

/* An event in which nothing applies yet. */
#define PF_AUDIT_EVENT_INIT(name)                                                              \
    {                                                                                          \
        .size = sizeof(struct pinfold_audit_event), .event = (name), .files = -1, .bytes = -1, \
        .errors = -1, .command_len = -1, .exit_code = -1, .truncated = -1, .timed_out = -1,    \
        .duration_ns = -1, .cpu_ns = -1, .peak_bytes = -1, .port = -1, .count = -1             \
    }

/* Stamp the time, make the paths printable, note a failure (r < 0 with err, else r is ignored),
 * and hand the event to the sink, if there is one. */
void pf_audit_emit(const struct pinfold_audit_sink *sink, struct pinfold_audit_event *event, int r,
                   const struct pinfold_error *err);

/* Enough digits of a command's SHA-256 to recognise it, and a NUL. */
#define PF_AUDIT_HASH_DIGITS 16

void pf_audit_hash(const char *command, size_t len, char hex[static PF_AUDIT_HASH_DIGITS + 1]);

/* A guess at what a shell command does, from its first word: "shell_delete", ...; NULL when the
 * table has no opinion. Never used to decide anything. */
const char *pf_audit_infer(const char *command, size_t len);

#endif
