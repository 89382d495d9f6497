/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads for calls that block. They know nothing of Python and take its lock (the GIL) only where
 * a call calls back into Python: two hundred commands that end at once do not queue for it.
 *
 * There is one thread for each call that runs, and a few more that wait for the next one; a thread
 * with nothing to do ends after some seconds. Their number is limited, but for those that are in
 * Python code: it may wait for other calls, which would wait for its thread.
 */
#ifndef PF_PYTHON_POOL_H
#define PF_PYTHON_POOL_H

#include <stdbool.h>
#include <stdint.h>

struct pf_job {
    void (*run)(struct pf_job *job); /* may free it */
    struct pf_job *prev, *next;
    unsigned queued; /* of which process's pool, 0 of none: it waits for a thread */
};

/* Once in a process, before all else, and the sooner the better: before it has threads. */
void pf_pool_set_up(void);

/* Have a thread run the job. Returns 0, or an errno when there is no thread and none can be made;
 * the job is then still the caller's. After a fork the child has threads of its own. */
int pf_pool_submit(struct pf_job *job);

/* The same for a job that ends what others are at: it does not wait for their threads. */
int pf_pool_submit_first(struct pf_job *job);

/* Take back a job that no thread has begun. Returns whether it is the caller's again. */
bool pf_pool_withdraw(struct pf_job *job);

/* This thread goes into Python code, and comes back. They nest, and may be of any thread. */
void pf_pool_step_out(void);
void pf_pool_step_in(void);

/* Have a thread of its own run the job, beside the pool: it may wait for other jobs. Returns 0, or
 * an errno when none can be made. */
int pf_pool_start(struct pf_job *job);

/* Wait until nothing runs and nothing waits to be run. Returns whether that came in time. */
bool pf_pool_wait(double seconds);

/* A time from now in milliseconds, of CLOCK_MONOTONIC. */
struct timespec pf_deadline(int64_t ms);

#endif
