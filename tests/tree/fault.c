/* SPDX-License-Identifier: Apache-2.0 */
#include "fault.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static atomic_uint countdown; /* 0: not armed */
static _Atomic(const char *) failed;
static int fault_errno;

void fault_arm(unsigned at, int sys_errno)
{
    fault_errno = sys_errno;
    atomic_store(&failed, NULL);
    atomic_store(&countdown, at);
}

const char *fault_disarm(void)
{
    atomic_store(&countdown, 0);
    return atomic_load(&failed);
}

/* Whether this call is the one that fails. */
static bool hit(const char *name, int sys_errno)
{
    unsigned left = atomic_load(&countdown);

    while (left > 0)
        if (atomic_compare_exchange_weak(&countdown, &left, left - 1)) {
            if (left > 1)
                return false;
            atomic_store(&failed, name);
            errno = sys_errno;
            return true;
        }
    return false;
}

#define WRAP(type, name, params, args)                                  \
    type __real_##name params;                                          \
    type __wrap_##name params;                                          \
    type __wrap_##name params                                           \
    {                                                                   \
        return hit(#name, fault_errno) ? (type)-1 : __real_##name args; \
    }

#define WRAP_ALLOC(type, name, params, args)                   \
    type __real_##name params;                                 \
    type __wrap_##name params;                                 \
    type __wrap_##name params                                  \
    {                                                          \
        return hit(#name, ENOMEM) ? NULL : __real_##name args; \
    }

WRAP_ALLOC(void *, malloc, (size_t size), (size))
WRAP_ALLOC(void *, calloc, (size_t count, size_t size), (count, size))
WRAP_ALLOC(void *, realloc, (void *old, size_t size), (old, size))
WRAP_ALLOC(void *, reallocarray, (void *old, size_t count, size_t size), (old, count, size))
WRAP_ALLOC(char *, strdup, (const char *text), (text))
WRAP_ALLOC(char *, strndup, (const char *text, size_t len), (text, len))

static void (*read_hook)(void *ctx);
static void *read_hook_ctx;

void fault_hook_reads(void (*hook)(void *ctx), void *ctx)
{
    read_hook = hook;
    read_hook_ctx = ctx;
}

ssize_t __real_read(int fd, void *data, size_t len);
ssize_t __wrap_read(int fd, void *data, size_t len);
ssize_t __wrap_read(int fd, void *data, size_t len)
{
    if (read_hook)
        read_hook(read_hook_ctx);
    return hit("read", fault_errno) ? -1 : __real_read(fd, data, len);
}

static size_t kernel_copies_left = SIZE_MAX;
static ssize_t kernel_copies_end;

void fault_limit_kernel_copies(size_t bytes, ssize_t result)
{
    kernel_copies_left = bytes;
    kernel_copies_end = result;
}

ssize_t __real_copy_file_range(int src, off_t *from, int dst, off_t *to, size_t len,
                               unsigned flags);
ssize_t __wrap_copy_file_range(int src, off_t *from, int dst, off_t *to, size_t len,
                               unsigned flags);
ssize_t __wrap_copy_file_range(int src, off_t *from, int dst, off_t *to, size_t len, unsigned flags)
{
    enum { PIECE = 100 * 1000 };
    ssize_t n;

    if (read_hook)
        read_hook(read_hook_ctx);
    if (hit("copy_file_range", fault_errno))
        return -1;
    if (kernel_copies_left == SIZE_MAX)
        return __real_copy_file_range(src, from, dst, to, len, flags);
    if (kernel_copies_left == 0) {
        errno = EXDEV;
        return kernel_copies_end;
    }
    len = len > PIECE ? PIECE : len;
    len = len > kernel_copies_left ? kernel_copies_left : len;
    n = __real_copy_file_range(src, from, dst, to, len, flags);
    kernel_copies_left -= n > 0 ? (size_t)n : 0;
    return n;
}

static atomic_int write_errno;

void fault_fail_writes(int sys_errno)
{
    atomic_store(&write_errno, sys_errno);
}

ssize_t __real_write(int fd, const void *data, size_t len);
ssize_t __wrap_write(int fd, const void *data, size_t len);
ssize_t __wrap_write(int fd, const void *data, size_t len)
{
    errno = atomic_load(&write_errno);
    if (errno != 0)
        return -1;
    return hit("write", fault_errno) ? -1 : __real_write(fd, data, len);
}

WRAP(ssize_t, getdents64, (int fd, void *data, size_t len), (fd, data, len))
WRAP(ssize_t, readlinkat, (int fd, const char *path, char *target, size_t len),
     (fd, path, target, len))
WRAP(int, fstat64, (int fd, struct stat *st), (fd, st))
WRAP(int, fstatat64, (int fd, const char *path, struct stat *st, int flags), (fd, path, st, flags))
WRAP(int, fchmod, (int fd, mode_t mode), (fd, mode))
WRAP(int, fsync, (int fd), (fd))
WRAP(int, ftruncate64, (int fd, off_t len), (fd, len))
WRAP(off_t, lseek64, (int fd, off_t offset, int whence), (fd, offset, whence))
WRAP(int, mkdirat, (int fd, const char *path, mode_t mode), (fd, path, mode))
WRAP(int, renameat, (int from_fd, const char *from, int to_fd, const char *to),
     (from_fd, from, to_fd, to))
WRAP(int, renameat2, (int from_fd, const char *from, int to_fd, const char *to, unsigned flags),
     (from_fd, from, to_fd, to, flags))
WRAP(int, symlinkat, (const char *target, int fd, const char *path), (target, fd, path))

/* The ones with variable arguments. */
int __wrap_openat64(int fd, const char *path, int flags, ...);
int __real_openat64(int fd, const char *path, int flags, ...);
int __wrap_openat64(int fd, const char *path, int flags, ...)
{
    mode_t mode;
    va_list args;

    if (hit("openat", fault_errno))
        return -1;
    va_start(args, flags);
    mode = flags & O_CREAT ? va_arg(args, mode_t) : 0;
    va_end(args);
    return __real_openat64(fd, path, flags, mode);
}

int __wrap_fcntl64(int fd, int command, ...);
int __real_fcntl64(int fd, int command, ...);
int __wrap_fcntl64(int fd, int command, ...)
{
    va_list args;
    long arg;

    if (hit("fcntl", EMFILE))
        return -1;
    va_start(args, command);
    arg = va_arg(args, long);
    va_end(args);
    return __real_fcntl64(fd, command, arg);
}

/* Only openat2 is called that way. */
long __wrap_syscall(long number, ...);
long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...)
{
    long a[4];
    va_list args;

    if (hit("openat2", fault_errno))
        return -1;
    va_start(args, number);
    for (int i = 0; i < 4; i++)
        a[i] = va_arg(args, long);
    va_end(args);
    return __real_syscall(number, a[0], a[1], a[2], a[3]);
}

int __wrap_vasprintf(char **ret, const char *format, va_list args);
int __real_vasprintf(char **ret, const char *format, va_list args);
int __wrap_vasprintf(char **ret, const char *format, va_list args)
{
    return hit("vasprintf", ENOMEM) ? -1 : __real_vasprintf(ret, format, args);
}

int __wrap_asprintf(char **ret, const char *format, ...);
int __wrap_asprintf(char **ret, const char *format, ...)
{
    va_list args;
    int r;

    if (hit("asprintf", ENOMEM))
        return -1;
    va_start(args, format);
    r = __real_vasprintf(ret, format, args);
    va_end(args);
    return r;
}

/* What the two above are with _FORTIFY_SOURCE. */
int __wrap___vasprintf_chk(char **ret, int flag, const char *format, va_list args);
int __wrap___vasprintf_chk(char **ret, int flag, const char *format, va_list args)
{
    (void)flag;
    return __wrap_vasprintf(ret, format, args);
}

int __wrap___asprintf_chk(char **ret, int flag, const char *format, ...);
int __wrap___asprintf_chk(char **ret, int flag, const char *format, ...)
{
    va_list args;
    int r;

    (void)flag;
    va_start(args, format);
    r = __wrap_vasprintf(ret, format, args);
    va_end(args);
    return r;
}
