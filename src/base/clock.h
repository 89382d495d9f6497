/* SPDX-License-Identifier: Apache-2.0 */
/* Monotonic time in nanoseconds, and deadlines made of it. */
#ifndef PF_BASE_CLOCK_H
#define PF_BASE_CLOCK_H

#include <limits.h>
#include <pthread.h>
#include <stdint.h>
#include <time.h>

#define PF_NS_PER_SEC INT64_C(1000000000)
#define PF_NS_PER_MS INT64_C(1000000)
#define PF_NEVER INT64_MAX /* a deadline that does not come */

static inline int64_t pf_clock_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * PF_NS_PER_SEC + now.tv_nsec;
}

/* The deadline after_ns from now; saturates. */
static inline int64_t pf_clock_deadline(int64_t after_ns)
{
    int64_t now = pf_clock_now();

    return after_ns >= PF_NEVER - now ? PF_NEVER : now + after_ns;
}

/* What poll(2) takes to wait until a deadline: -1 for never, rounded up so as not to spin. */
static inline int pf_clock_poll_ms(int64_t deadline)
{
    int64_t left;

    if (deadline == PF_NEVER)
        return -1;
    left = (deadline - pf_clock_now() + PF_NS_PER_MS - 1) / PF_NS_PER_MS;
    return left < 0 ? 0 : left > INT_MAX ? INT_MAX : (int)left;
}

/* A condition whose timed waits end by this clock. */
static inline void pf_clock_cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t attr;

    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(cond, &attr);
    pthread_condattr_destroy(&attr);
}

#endif
