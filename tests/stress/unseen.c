/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Linked in place of a few functions (--wrap), so that ThreadSanitizer does not see them. The
 * library clones children that share its memory until they execute a program, while the thread that
 * did it waits. ThreadSanitizer takes such a child for the process itself: it forbids it to start
 * threads from then on, ends with it, and believes that what the child does to its descriptors was
 * done to ours.
 */
#include <sched.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <unistd.h>

int __clone(int (*fn)(void *), void *stack, int flags, void *arg, ...); /* of the C library's */
int __wrap_clone(int (*fn)(void *), void *stack, int flags, void *arg, ...);
_Noreturn void __wrap__exit(int status);
int __wrap_dup2(int from, int to);
int __wrap_dup3(int from, int to, int flags);

int __wrap_clone(int (*fn)(void *), void *stack, int flags, void *arg, ...)
{
    pid_t *parent;
    va_list args;

    va_start(args, arg);
    parent = flags & (CLONE_PARENT_SETTID | CLONE_PIDFD) ? va_arg(args, pid_t *) : NULL;
    va_end(args);
    return __clone(fn, stack, flags, arg, parent, NULL, NULL);
}

_Noreturn void __wrap__exit(int status)
{
    for (;;)
        syscall(SYS_exit_group, status);
}

/* Nobody but such children calls these. */
int __wrap_dup2(int from, int to)
{
    return (int)syscall(SYS_dup3, from, to, 0);
}

int __wrap_dup3(int from, int to, int flags)
{
    return (int)syscall(SYS_dup3, from, to, flags);
}
