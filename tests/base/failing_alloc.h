/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allocation that fails on demand, for programs linked with -Wl,--wrap=malloc and the like. Only
 * calls from the objects of the program itself are caught, not those inside libc.
 */
#ifndef TESTS_BASE_FAILING_ALLOC_H
#define TESTS_BASE_FAILING_ALLOC_H

#include <stdbool.h>

/* Let the n-th allocation from now on fail (1: the next one), once. 0: none. */
void failing_alloc_set(unsigned nth);

/* Whether it has failed since failing_alloc_set(). */
bool failing_alloc_hit(void);

#endif
