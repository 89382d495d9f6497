/* SPDX-License-Identifier: Apache-2.0 */
#include "base/poll.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/select.h>

#include "base/cleanup.h"

#define WORD_BITS (sizeof(unsigned long) * CHAR_BIT)

/* A set as select(2) has it, of any size: FD_SET(3) goes up to 1023. */
static void put(unsigned long *set, int fd)
{
    set[(size_t)fd / WORD_BITS] |= 1UL << ((size_t)fd % WORD_BITS);
}

static bool has(const unsigned long *set, int fd)
{
    return set[(size_t)fd / WORD_BITS] >> ((size_t)fd % WORD_BITS) & 1;
}

/* select(2) has no such limit. */
static int poll_by_select(struct pollfd *fds, size_t count, int timeout_ms)
{
    struct timeval left = { timeout_ms / 1000, timeout_ms % 1000 * 1000L };
    _cleanup_free_ unsigned long *sets = NULL;
    unsigned long *writable;
    int end = 0, ready = 0;

    for (size_t i = 0; i < count; i++)
        end = fds[i].fd >= end ? fds[i].fd + 1 : end;
    sets = calloc(2 * ((size_t)end / WORD_BITS + 1), sizeof(*sets));
    if (!sets)
        return -1;
    writable = sets + (size_t)end / WORD_BITS + 1;
    for (size_t i = 0; i < count; i++) {
        if (fds[i].fd >= 0 && (fds[i].events & POLLIN))
            put(sets, fds[i].fd);
        if (fds[i].fd >= 0 && (fds[i].events & POLLOUT))
            put(writable, fds[i].fd);
    }
    if (select(end, (fd_set *)(void *)sets, (fd_set *)(void *)writable, NULL,
               timeout_ms < 0 ? NULL : &left) < 0)
        return -1;
    for (size_t i = 0; i < count; i++) {
        fds[i].revents = 0;
        if (fds[i].fd >= 0 && has(sets, fds[i].fd))
            fds[i].revents |= POLLIN;
        if (fds[i].fd >= 0 && has(writable, fds[i].fd))
            fds[i].revents |= POLLOUT;
        ready += fds[i].revents != 0;
    }
    return ready;
}

int pf_poll(struct pollfd *fds, size_t count, int timeout_ms)
{
    int ready = poll(fds, count, timeout_ms);

    return ready < 0 && errno == EINVAL ? poll_by_select(fds, count, timeout_ms) : ready;
}
