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

/*
 * The time of a change that changes nothing, by the file system's own clock. Since Linux 6.13 a
 * change to what somebody has looked at has a time between two ticks of that clock, and no later
 * change on any file system of that kind has an earlier one: so what was done before is told from
 * what is done after, within the same tick. Before, and without a workspace, what was done in the
 * same tick counts as done after.
 */
static int64_t file_time(int root_fd)
{
    struct stat st;

    if (root_fd < 0 || fstat(root_fd, &st) < 0 || fchmod(root_fd, st.st_mode & 07777) < 0 ||
        fstat(root_fd, &st) < 0)
        return read_clock(CLOCK_REALTIME_COARSE);
    return st.st_ctim.tv_sec * PF_NS_PER_SEC + st.st_ctim.tv_nsec;
}

static int64_t boot_time(void)
{
    return read_clock(CLOCK_REALTIME) - read_clock(CLOCK_BOOTTIME);
}

int pf_seed_mark_begin(struct pf_seed_mark *mark, const char *source, const char *const *exclude,
                       int root_fd)
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
    mark->began_ns = file_time(root_fd);
    return 0;
}

void pf_seed_mark_end(struct pf_seed_mark *mark, int root_fd)
{
    mark->ended_ns = file_time(root_fd);
}

void pf_seed_mark_done(struct pf_seed_mark *mark)
{
    free(mark->source);
    pf_strv_free(mark->exclude);
    *mark = (struct pf_seed_mark){ .source = NULL };
}

int64_t pf_seed_mark_limit(const struct pf_seed_mark *mark, int64_t moment_ns)
{
    /* Two clocks cannot be read at once, and one that is only slowed down is not set back. */
    enum { TOLERANCE_MS = 20 };
    int64_t back = mark->booted_ns - boot_time();

    return back > TOLERANCE_MS * PF_NS_PER_MS ? moment_ns - back : moment_ns;
}
