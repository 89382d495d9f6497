/* SPDX-License-Identifier: Apache-2.0 */
/* One line on a terminal that says how far a long seed or flush is. */
#ifndef PF_CLI_PROGRESS_H
#define PF_CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct pf_progress {
    const char *what; /* "seeding", "syncing" */
    int64_t begun_ns;
    int64_t drawn_ns; /* 0: nothing is on the screen */
    bool enabled;
};

/* Start counting; nothing shows unless stderr is a terminal and not in the first half second. */
void pf_progress_begin(struct pf_progress *progress, const char *what, bool wanted);

/* A pinfold_progress_fn; ctx is a struct pf_progress. */
void pf_progress_update(void *ctx, uint64_t files, uint64_t bytes);

/* Erase the line. */
void pf_progress_end(struct pf_progress *progress);

#endif
