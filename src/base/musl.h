/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What musl 1.2 has not of what we take from glibc, included before each file that is compiled for
 * it (-include): system calls that have no function there, and the words for errors.
 */
#ifndef PF_BASE_MUSL_H
#define PF_BASE_MUSL_H

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* After the C library's header, whose names it repeats. */
#include <linux/mount.h>

#ifndef STATX_ATTR_MOUNT_ROOT /* 1.2.5 has it */
#include <linux/stat.h>
static inline int statx(int dir, const char *path, int flags, unsigned mask, struct statx *ret)
{
    return (int)syscall(SYS_statx, dir, path, flags, mask, ret);
}
#endif

#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE (1 << 0)
#endif

static inline int close_range(unsigned first, unsigned last, int flags)
{
    return (int)syscall(SYS_close_range, first, last, flags);
}

static inline int renameat2(int from_dir, const char *from, int to_dir, const char *to,
                            unsigned flags)
{
    return (int)syscall(SYS_renameat2, from_dir, from, to_dir, to, flags);
}

static inline int execveat(int dir, const char *path, char *const *argv, char *const *envp,
                           int flags)
{
    return (int)syscall(SYS_execveat, dir, path, argv, envp, flags);
}

static inline int open_tree(int dir, const char *path, unsigned flags)
{
    return (int)syscall(SYS_open_tree, dir, path, flags);
}

static inline int move_mount(int from_dir, const char *from, int to_dir, const char *to,
                             unsigned flags)
{
    return (int)syscall(SYS_move_mount, from_dir, from, to_dir, to, flags);
}

static inline int mount_setattr(int dir, const char *path, unsigned flags, struct mount_attr *attr,
                                size_t size)
{
    return (int)syscall(SYS_mount_setattr, dir, path, flags, attr, size);
}

static inline int fsopen(const char *type, unsigned flags)
{
    return (int)syscall(SYS_fsopen, type, flags);
}

static inline int fsconfig(int fs, unsigned command, const char *key, const void *value, int aux)
{
    return (int)syscall(SYS_fsconfig, fs, command, key, value, aux);
}

static inline int fsmount(int fs, unsigned flags, unsigned attributes)
{
    return (int)syscall(SYS_fsmount, fs, flags, attributes);
}

/* The C library's own takes a buffer of whole entries. */
#undef getdents64
#define getdents64 pf_musl_getdents64
static inline ssize_t pf_musl_getdents64(int fd, void *buffer, size_t size)
{
    return syscall(SYS_getdents64, fd, buffer, size);
}

/* Cannot fail, like glibc's: a kernel without getrandom(2) has none of what we need. At most 256
 * bytes, which no signal interrupts. */
static inline void arc4random_buf(void *buffer, size_t size)
{
    if (getrandom(buffer, size, 0) != (ssize_t)size)
        abort();
}

/* musl knows the clock of a condition, not of a wait: wait for what is left by the condition's. Who
 * waits here looks around again after a tenth of a second at most, should that clock be set. */
static inline int pthread_cond_clockwait(pthread_cond_t *condition, pthread_mutex_t *mutex,
                                         clockid_t clock, const struct timespec *deadline)
{
    struct timespec now, until;

    clock_gettime(clock, &now);
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += deadline->tv_sec - now.tv_sec;
    until.tv_nsec += deadline->tv_nsec - now.tv_nsec;
    if (until.tv_nsec < 0 || until.tv_nsec >= 1000000000) {
        until.tv_sec += until.tv_nsec < 0 ? -1 : 1;
        until.tv_nsec += until.tv_nsec < 0 ? 1000000000 : -1000000000;
    }
    return pthread_cond_timedwait(condition, mutex, &until);
}

/* glibc's words. Like there: static text, and NULL for what is no error. */
const char *pf_musl_strerrordesc(int sys_errno);
char *pf_musl_strerror(int sys_errno);
#define strerrordesc_np pf_musl_strerrordesc
#define strerror pf_musl_strerror

#endif
