/* SPDX-License-Identifier: Apache-2.0 */
/* Scope-bound cleanup: declare at first use, initialise in the same line, TAKE() to keep. */
#ifndef PF_BASE_CLEANUP_H
#define PF_BASE_CLEANUP_H

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define PF_CLEANUP(fn) __attribute__((cleanup(fn)))

static inline void pf_cleanup_free_impl(void *slot)
{
    int saved = errno;
    free(*(void **)slot);
    errno = saved;
}

static inline void pf_cleanup_close_impl(const int *fd)
{
    int saved = errno;
    if (*fd >= 0)
        close(*fd);
    errno = saved;
}

#define _cleanup_free_ PF_CLEANUP(pf_cleanup_free_impl)
#define _cleanup_close_ PF_CLEANUP(pf_cleanup_close_impl)

/* Hand ownership on: yields the value and leaves NULL (or -1) behind. */
#define TAKE(ptr)                   \
    ({                              \
        __typeof__(ptr) t_ = (ptr); \
        (ptr) = NULL;               \
        t_;                         \
    })
#define TAKE_FD(fd)    \
    ({                 \
        int t_ = (fd); \
        (fd) = -1;     \
        t_;            \
    })

#define PF_STRINGIFY_(value) #value
#define PF_STRINGIFY(value) PF_STRINGIFY_(value)
#define PF_COUNT(array) (sizeof(array) / sizeof((array)[0]))

#endif
