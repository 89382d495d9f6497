/* SPDX-License-Identifier: Apache-2.0 */
/* Inside backend/: what remote backends share of running a command: checking what is asked, and
 * composing a result of output that was fetched. */
#ifndef PF_BACKEND_REMOTE_OUTPUT_H
#define PF_BACKEND_REMOTE_OUTPUT_H

#include "proc/capture.h"

/* Check the options of a command that is to run with these variables, and its own: what the kernel
 * there would refuse in words that say nothing of what is too large is E2BIG here. */
int pf_remote_check(const struct pinfold_execute_options *options, const char *const *env,
                    struct pinfold_error *err);

/* What env, which sets the variables of a command, is to be given in front of a program whose name
 * it would take for an option or for one more variable; "" for any other program. */
const char *pf_remote_run_anyway(const char *program);

/* Append to a script a command that prints these bytes. Returns 0 or what pf_buf_append() says. */
int pf_remote_type(const void *data, size_t len, struct pf_buf *script);

/* A file without a name, in $TMPDIR or /tmp, for data on its way. Returns a descriptor or a
 * negative code. */
int pf_remote_unnamed(struct pinfold_error *err);

/* The errno behind a message of a command, which ends in the system's words; EIO when it does
 * not. */
int pf_remote_errno_of(const char *text);

/* Give a stream, 0 or 1, to what composes results, as if it came out of a pipe: the bytes of fd,
 * which becomes the capture's, or those of data when fd is -1. */
int pf_remote_give(struct pf_capture *capture, int number, const struct pf_buf *data, int fd,
                   struct pinfold_error *err);

#endif
