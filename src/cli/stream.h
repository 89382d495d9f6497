/* SPDX-License-Identifier: Apache-2.0 */
/* A command's output, passed on to our own stdout and stderr while it runs. */
#ifndef PF_CLI_STREAM_H
#define PF_CLI_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pinfold/cancel.h>
#include <pinfold/result.h>

struct pf_outlet {
    const struct pinfold_cancel *cancel;
    int64_t deadline_ns; /* CLOCK_MONOTONIC: give up a write that still blocks then */
    uint64_t limit;      /* bytes of both streams together that pass; 0: all */
    uint64_t passed;
    uint64_t passed_stdout;
    bool armed;
    bool full[2];  /* stdout, stderr: the limit cut something off it */
    bool cut;      /* of either */
    bool late;     /* a write blocked until the deadline */
    int failed;    /* errno of a write that failed, or 0 */
    int failed_fd; /* where */
};

/* A pinfold_output_fn; ctx is a struct pf_outlet. Stops the command when a write cannot go on. */
int pf_outlet_write(void *ctx, enum pinfold_stream stream, const char *data, size_t len);

#endif
