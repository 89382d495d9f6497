/* SPDX-License-Identifier: Apache-2.0 */
/*
 * System calls without the C library, for a process that shares another one's memory and must not
 * write there: not even errno, which would be that of the thread that made it, and may be gone when
 * that thread is. Inline, in functions that are PF_RAW.
 */
#ifndef PF_PROC_RAW_H
#define PF_PROC_RAW_H

#include <sys/syscall.h>

/* Nothing may be added to such a function that looks for the memory of its thread. */
#if defined(__clang__)
#define PF_RAW                                                                                    \
    __attribute__((no_stack_protector, disable_sanitizer_instrumentation, no_sanitize("address"), \
                   no_sanitize("thread"), no_sanitize("undefined"), no_sanitize("coverage")))
#else
#define PF_RAW                                                                        \
    __attribute__((no_stack_protector, no_sanitize("address"), no_sanitize("thread"), \
                   no_sanitize("undefined")))
#endif

/* Returns what the kernel does: -errno for an error. */
#if defined(__x86_64__)
#define PF_HAS_RAW 1
PF_RAW static inline long pf_raw(long number, long a, long b, long c, long d, long e)
{
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    long result;

    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8)
                     : "rcx", "r11", "memory");
    return result;
}
#elif defined(__aarch64__)
#define PF_HAS_RAW 1
PF_RAW static inline long pf_raw(long number, long a, long b, long c, long d, long e)
{
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    register long x4 __asm__("x4") = e;

    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4) : "memory");
    return x0;
}
#else
#define PF_HAS_RAW 0
#endif

#endif
