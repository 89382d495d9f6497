/* SPDX-License-Identifier: Apache-2.0 */
/* The clock of everything here, which nobody sets: CLOCK_MONOTONIC. */
#ifndef PF_MCP_CLOCK_H
#define PF_MCP_CLOCK_H

#include <pthread.h>
#include <stdint.h>
#include <time.h>

#define PF_MCP_SECOND INT64_C(1000000000) /* in nanoseconds */

static inline int64_t pf_mcp_now(void) /* nanoseconds */
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * PF_MCP_SECOND + now.tv_nsec;
}

/* A condition whose waits end by this clock, */
static inline void pf_mcp_cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t clock;

    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(cond, &clock);
    pthread_condattr_destroy(&clock);
}

/* and when: after so many nanoseconds. */
static inline struct timespec pf_mcp_after(int64_t ns)
{
    int64_t then = pf_mcp_now() + ns;

    return (struct timespec){ then / PF_MCP_SECOND, then % PF_MCP_SECOND };
}

#endif
