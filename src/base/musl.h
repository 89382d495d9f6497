/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What musl 1.2 has not of what we take from glibc, included before each file that is compiled for
 * it (-include). Only system calls that have no function there, and a table of words.
 */
#ifndef PF_BASE_MUSL_H
#define PF_BASE_MUSL_H

#include <dirent.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

/* After the C library's header, whose names it repeats. */
#include <linux/mount.h>

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

/* The C library's own takes a buffer of whole entries. */
#undef getdents64
#define getdents64 pf_musl_getdents64
static inline ssize_t pf_musl_getdents64(int fd, void *buffer, size_t size)
{
    return syscall(SYS_getdents64, fd, buffer, size);
}

/* Static text, like glibc's; these differ only for a few errors, where the words are musl's. */
static inline const char *strerrordesc_np(int sys_errno)
{
    return strerror(sys_errno);
}

#endif
