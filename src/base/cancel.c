/* SPDX-License-Identifier: Apache-2.0 */
#include "base/cancel.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>

#include "base/cleanup.h"
#include "base/error.h"

struct pinfold_cancel {
    atomic_bool fired;
    int fd;
};

int pinfold_cancel_new(struct pinfold_cancel **ret_cancel, struct pinfold_error *err)
{
    _cleanup_free_ struct pinfold_cancel *cancel = calloc(1, sizeof(*cancel));

    if (!cancel)
        return pf_fail_nomem(err);
    cancel->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (cancel->fd < 0)
        return pf_fail_os(err, errno, "create a cancellation token");
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
    (void)!write(cancel->fd, &(uint64_t){ 1 }, sizeof(uint64_t));
    errno = saved;
}

bool pinfold_cancel_fired(const struct pinfold_cancel *cancel)
{
    return cancel && atomic_load(&cancel->fired);
}

void pinfold_cancel_free(struct pinfold_cancel *cancel)
{
    if (!cancel)
        return;
    close(cancel->fd);
    free(cancel);
}

int pf_cancel_fd(const struct pinfold_cancel *cancel)
{
    return cancel ? cancel->fd : -1;
}

int pf_cancel_check(const struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    return pinfold_cancel_fired(cancel) ? pf_fail(err, PINFOLD_ECANCELLED, "cancelled") : 0;
}
