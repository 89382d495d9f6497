/* SPDX-License-Identifier: Apache-2.0 */
#include "tree/seed_mark.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/strings.h"

#include <pinfold/error.h>

static int64_t read_clock(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return now.tv_sec * PF_NS_PER_SEC + now.tv_nsec;
}

/* The clock that file systems take their times from: it moves with the timer's tick. Whatever is
 * changed later has this time or a later one. What was changed shortly before, too. */
static int64_t file_time(void)
{
    return read_clock(CLOCK_REALTIME_COARSE);
}

static int64_t boot_time(void)
{
    return read_clock(CLOCK_REALTIME) - read_clock(CLOCK_BOOTTIME);
}

int pf_seed_mark_begin(struct pf_seed_mark *mark, const char *source, const char *const *exclude)
{
    struct stat st;

    *mark = (struct pf_seed_mark){ .source = strdup(source), .exclude = pf_strv_copy(exclude) };
    if (!mark->source || !mark->exclude) {
        pf_seed_mark_done(mark);
        return -PINFOLD_ENOMEM;
    }
    if (stat(source, &st) == 0) { /* else seeding says what is wrong */
        mark->dev = st.st_dev;
        mark->ino = st.st_ino;
    }
    mark->booted_ns = boot_time();
    mark->began_ns = file_time();
    return 0;
}

void pf_seed_mark_end(struct pf_seed_mark *mark)
{
    mark->ended_ns = file_time();
}

void pf_seed_mark_done(struct pf_seed_mark *mark)
{
    free(mark->source);
    pf_strv_free(mark->exclude);
    *mark = (struct pf_seed_mark){ .source = NULL };
}

int64_t pf_seed_mark_limit(const struct pf_seed_mark *mark, int64_t moment_ns)
{
    int64_t back = mark->booted_ns - boot_time();

    return back > 0 ? moment_ns - back : moment_ns;
}
