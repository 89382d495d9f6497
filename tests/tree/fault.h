/* SPDX-License-Identifier: Apache-2.0 */
/* Making the Nth call of the C library fail: the calls are redirected here by the linker (--wrap,
 * see meson.build). */
#ifndef TESTS_TREE_FAULT_H
#define TESTS_TREE_FAULT_H

#include <stdint.h>
#include <sys/types.h>

/* From now on the countdown runs in all threads; call number `at` (from 1) fails with sys_errno. */
void fault_arm(unsigned at, int sys_errno);

/* Stop. Returns the name of the call that failed, or NULL when there were fewer calls. */
const char *fault_disarm(void);

/* Every write(2) fails with this; 0: none does. */
void fault_fail_writes(int sys_errno);

/* copy_file_range(2) copies that many bytes, in pieces, and then returns result, with EXDEV when
 * that is -1. SIZE_MAX: as ever. */
void fault_limit_kernel_copies(size_t bytes, ssize_t result);

/* Call hook before every read(2) and copy_file_range(2), until hook is NULL. */
void fault_hook_reads(void (*hook)(void *ctx), void *ctx);

#endif
