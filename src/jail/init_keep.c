/* SPDX-License-Identifier: Apache-2.0 */
/*
 * This program in the place of the keeper of an owner that has ended: it deletes what that had. The
 * owner's sandboxes are coming to their end meanwhile, and until then their groups are in use, and
 * something may be written into a workspace: so it tries again for a while.
 */
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "jail/init.h"
#include "proc/keeper.h"
#include "tree/temp_sweep.h"

#define PATIENCE_NS (10 * PF_NS_PER_SEC)
enum { LONGEST_MS = 50, DONE = '-' };

/* Returns whether it is there still. Only one that is in use may become free; what else is wrong
 * stays wrong. */
static bool is_left(char kind, const char *path)
{
    if (kind == PF_KEPT_GROUP)
        return rmdir(path) < 0 && errno == EBUSY;
    return kind == PF_KEPT_WORKSPACE && pf_temp_delete_left(path);
}

/* Delete what can be. Returns whether something is left. */
static bool clean(char *list, size_t size)
{
    bool left = false;
    size_t len;

    for (char *entry = list; entry < list + size; entry += len + 1) {
        len = strnlen(entry, size - (size_t)(entry - list));
        if (len < 2 || entry + len == list + size)
            continue;
        if (is_left(*entry, entry + 1))
            left = true;
        else
            *entry = DONE;
    }
    return left;
}

int init_keep(void)
{
    int64_t deadline = pf_clock_deadline(PATIENCE_NS);
    struct stat st;
    char *list;

    prctl(PR_SET_NAME, PF_KEEPER_NAME, 0, 0, 0);
    if (fstat(STDIN_FILENO, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size == 0)
        return 2;
    list = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_PRIVATE, STDIN_FILENO, 0);
    if (list == MAP_FAILED)
        return 2;
    for (int ms = 1; clean(list, (size_t)st.st_size) && pf_clock_now() < deadline;
         ms = ms < LONGEST_MS / 2 ? 2 * ms : LONGEST_MS)
        poll(NULL, 0, ms);
    return 0;
}
