/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/progress.h"

#include <stdio.h>
#include <unistd.h>

#include "cli/interrupt.h"
#include "cli/say.h"

enum {
    WAIT_NS = 500000000,  /* what is over sooner needs no progress line */
    EVERY_NS = 100000000, /* at most ten times a second */
};

void pf_progress_begin(struct pf_progress *progress, const char *what, bool wanted)
{
    *progress = (struct pf_progress){ .what = what };
    progress->enabled = wanted && isatty(STDERR_FILENO);
    if (progress->enabled)
        progress->begun_ns = pf_now_ns();
}

void pf_progress_update(void *ctx, uint64_t files, uint64_t bytes)
{
    struct pf_progress *progress = ctx;
    char line[128], size[32];
    int64_t now;
    int len;

    if (!progress->enabled)
        return;
    now = pf_now_ns();
    if (now - progress->begun_ns < WAIT_NS || now - progress->drawn_ns < EVERY_NS)
        return;
    progress->drawn_ns = now;
    len = snprintf(line, sizeof(line), "\rpinfold: %s: %llu files, %s\033[K", progress->what,
                   (unsigned long long)files, pf_format_size(bytes, size));
    pf_put(STDERR_FILENO, line, (size_t)len);
}

void pf_progress_end(struct pf_progress *progress)
{
    if (progress->drawn_ns)
        pf_put(STDERR_FILENO, "\r\033[K", 4);
    progress->enabled = false;
    progress->drawn_ns = 0;
}
