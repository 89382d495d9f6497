/* SPDX-License-Identifier: Apache-2.0 */
#include "base/cancel.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/poll.h"

struct pinfold_cancel {
    atomic_bool fired;
    int fd;
    pid_t owner; /* a fork has the same descriptor, and must not end what its parent does */
    int poll_fd; /* of a linked token: an epoll descriptor over its own fd and its ancestors'; else
                    fd. Firing then has nobody to tell, and stays async-signal-safe */
    const struct pinfold_cancel *parent;
};

int pinfold_cancel_new(struct pinfold_cancel **ret_cancel, struct pinfold_error *err)
{
    _cleanup_free_ struct pinfold_cancel *cancel = calloc(1, sizeof(*cancel));

    if (!cancel)
        return pf_fail_nomem(err);
    cancel->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (cancel->fd < 0)
        return pf_fail_os(err, errno, "create a cancellation token");
    cancel->poll_fd = cancel->fd;
    cancel->owner = getpid();
    *ret_cancel = TAKE(cancel);
    return 0;
}

int pf_cancel_new_linked(const struct pinfold_cancel *parent, struct pinfold_cancel **ret_cancel,
                         struct pinfold_error *err)
{
    PF_CLEANUP(pf_cancel_freep) struct pinfold_cancel *cancel = NULL;
    int poll_fd, r = pinfold_cancel_new(&cancel, err);

    if (r < 0)
        return r;
    if (parent) {
        poll_fd = epoll_create1(EPOLL_CLOEXEC);
        if (poll_fd < 0)
            return pf_fail_os(err, errno, "create a cancellation token");
        cancel->poll_fd = poll_fd;
        cancel->parent = parent;
    }
    for (const struct pinfold_cancel *one = parent ? cancel : NULL; one; one = one->parent)
        if (epoll_ctl(cancel->poll_fd, EPOLL_CTL_ADD, one->fd,
                      &(struct epoll_event){ .events = EPOLLIN }) < 0)
            return pf_fail_os(err, errno, "link a cancellation token");
    *ret_cancel = TAKE(cancel);
    return 0;
}

void pinfold_cancel_fire(struct pinfold_cancel *cancel)
{
    int saved = errno;

    if (!cancel)
        return;
    atomic_store(&cancel->fired, true);
    /* Cannot fail: the counter would have to reach 2^64 - 1. */
    if (cancel->owner == getpid())
        (void)!write(cancel->fd, &(uint64_t){ 1 }, sizeof(uint64_t));
    errno = saved;
}

bool pinfold_cancel_fired(const struct pinfold_cancel *cancel)
{
    for (; cancel; cancel = cancel->parent)
        if (atomic_load(&cancel->fired))
            return true;
    return false;
}

void pinfold_cancel_free(struct pinfold_cancel *cancel)
{
    if (!cancel)
        return;
    if (cancel->poll_fd != cancel->fd)
        close(cancel->poll_fd);
    close(cancel->fd);
    free(cancel);
}

void pf_cancel_freep(struct pinfold_cancel **cancel)
{
    pinfold_cancel_free(*cancel);
}

int pf_cancel_fd(const struct pinfold_cancel *cancel)
{
    return cancel ? cancel->poll_fd : -1;
}

int pf_cancel_check(const struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    return pinfold_cancel_fired(cancel) ? pf_fail(err, PINFOLD_ECANCELLED, "cancelled") : 0;
}

int pf_cancel_wait(const struct pinfold_cancel *cancel, const struct pinfold_cancel *also,
                   int64_t until, struct pinfold_error *err)
{
    struct pollfd tokens[] = { { .fd = pf_cancel_fd(cancel), .events = POLLIN },
                               { .fd = pf_cancel_fd(also), .events = POLLIN } };
    int ms, r;

    while ((ms = pf_clock_poll_ms(until)) != 0 && pf_poll(tokens, PF_COUNT(tokens), ms) <= 0)
        ; /* interrupted, or longer than poll(2) can wait */
    r = pf_cancel_check(cancel, err);
    return r < 0 ? r : pf_cancel_check(also, err);
}
