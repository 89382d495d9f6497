/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preloaded into the command: makes one call of the C library fail. Calls are numbered in the order
 * in which the process makes them; FAULT_AT names the one that fails, FAULT_KIND (memory or system)
 * which family is counted, FAULT_ERRNO with what. At exit the count
 * and the name of the call that failed are appended to FAULT_COUNT, so
 * that a first run, with FAULT_AT=0, tells how many there are. Children inherit nothing of this.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static atomic_long *count; /* shared with forked children: one call fails, not one in each */
static long fail_at;
static bool memory, armed;
static int fail_errno;
static char *count_path;
static const char *failed_name = "none";

__attribute__((constructor)) static void set_up(void)
{
    const char *at = getenv("FAULT_AT"), *kind = getenv("FAULT_KIND"),
               *path = getenv("FAULT_COUNT");
    const char *error = getenv("FAULT_ERRNO");

    if (!at || !kind || !path)
        return;
    fail_at = strtol(at, NULL, 10);
    memory = strcmp(kind, "memory") == 0;
    fail_errno = error ? (int)strtol(error, NULL, 10) : ENOMEM;
    count_path = strdup(path);
    count = mmap(NULL, sizeof(*count), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (count == MAP_FAILED)
        abort();
    unsetenv("LD_PRELOAD");
    unsetenv("FAULT_AT");
    unsetenv("FAULT_KIND");
    unsetenv("FAULT_COUNT");
    unsetenv("FAULT_ERRNO");
    armed = true;
}

__attribute__((destructor)) static void tear_down(void)
{
    FILE *file;

    armed = false;
    file = count_path ? fopen(count_path, "a") : NULL;
    if (file) {
        fprintf(file, "%ld %s\n", atomic_load(count), failed_name);
        fclose(file);
    }
}

static bool fails(bool is_memory, const char *name)
{
    if (!armed || is_memory != memory || atomic_fetch_add(count, 1) + 1 != fail_at)
        return false;
    failed_name = name;
    errno = fail_errno;
    return true;
}

/* The C library's own function of this name. */
#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

#define WRAP(is_memory, type, bad, name, params, args)               \
    type name params;                                                \
    __attribute__((visibility("default"))) type name params          \
    {                                                                \
        return fails(is_memory, __func__) ? (bad) : REAL(name) args; \
    }

#define SYSTEM(type, name, params, args) WRAP(false, type, -1, name, params, args)

/* ---- memory: dlsym itself allocates, so the originals come from glibc's other names ---- */

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *old, size_t size);

__attribute__((visibility("default"))) void *malloc(size_t size)
{
    return fails(true, __func__) ? NULL : __libc_malloc(size);
}

__attribute__((visibility("default"))) void *calloc(size_t n, size_t size)
{
    return fails(true, __func__) ? NULL : __libc_calloc(n, size);
}

__attribute__((visibility("default"))) void *realloc(void *old, size_t size)
{
    return fails(true, __func__) ? NULL : __libc_realloc(old, size);
}

/* ---- system calls ---- */

SYSTEM(ssize_t, read, (int fd, void *data, size_t len), (fd, data, len))
SYSTEM(ssize_t, write, (int fd, const void *data, size_t len), (fd, data, len))
SYSTEM(ssize_t, writev, (int fd, const struct iovec *iov, int n), (fd, iov, n))
SYSTEM(int, fstat64, (int fd, struct stat64 *st), (fd, st))
SYSTEM(int, fstatat64, (int fd, const char *path, struct stat64 *st, int flags),
       (fd, path, st, flags))
SYSTEM(int, stat64, (const char *path, struct stat64 *st), (path, st))
SYSTEM(int, lstat64, (const char *path, struct stat64 *st), (path, st))
SYSTEM(int, mkdir, (const char *path, mode_t mode), (path, mode))
SYSTEM(int, mkdirat, (int fd, const char *path, mode_t mode), (fd, path, mode))
SYSTEM(int, renameat, (int a, const char *from, int b, const char *to), (a, from, b, to))
SYSTEM(int, renameat2, (int a, const char *from, int b, const char *to, unsigned flags),
       (a, from, b, to, flags))
SYSTEM(int, linkat, (int a, const char *from, int b, const char *to, int flags),
       (a, from, b, to, flags))
SYSTEM(int, symlinkat, (const char *target, int fd, const char *path), (target, fd, path))
SYSTEM(ssize_t, readlinkat, (int fd, const char *path, char *text, size_t len),
       (fd, path, text, len))
SYSTEM(int, unlinkat, (int fd, const char *path, int flags), (fd, path, flags))
SYSTEM(int, fchmod, (int fd, mode_t mode), (fd, mode))
SYSTEM(int, ftruncate64, (int fd, off64_t len), (fd, len))
SYSTEM(off64_t, lseek64, (int fd, off64_t offset, int whence), (fd, offset, whence))
SYSTEM(ssize_t, copy_file_range,
       (int in, off64_t *in_at, int out, off64_t *out_at, size_t len, unsigned flags),
       (in, in_at, out, out_at, len, flags))
SYSTEM(ssize_t, getdents64, (int fd, void *data, size_t len), (fd, data, len))
SYSTEM(int, faccessat, (int fd, const char *path, int mode, int flags), (fd, path, mode, flags))
SYSTEM(int, pipe2, (int fds[2], int flags), (fds, flags))
SYSTEM(int, socketpair, (int domain, int type, int protocol, int fds[2]),
       (domain, type, protocol, fds))
SYSTEM(int, eventfd, (unsigned initial, int flags), (initial, flags))
SYSTEM(int, signalfd, (int fd, const sigset_t *mask, int flags), (fd, mask, flags))
SYSTEM(int, memfd_create, (const char *name, unsigned flags), (name, flags))
SYSTEM(int, dup2, (int from, int to), (from, to))
SYSTEM(int, fchdir, (int fd), (fd))
SYSTEM(ssize_t, send, (int fd, const void *data, size_t len, int flags), (fd, data, len, flags))
SYSTEM(ssize_t, recv, (int fd, void *data, size_t len, int flags), (fd, data, len, flags))
SYSTEM(ssize_t, sendmsg, (int fd, const struct msghdr *msg, int flags), (fd, msg, flags))
SYSTEM(ssize_t, recvmsg, (int fd, struct msghdr *msg, int flags), (fd, msg, flags))
SYSTEM(int, execve, (const char *path, char *const argv[], char *const envp[]), (path, argv, envp))
SYSTEM(int, poll, (struct pollfd * fds, nfds_t n, int timeout), (fds, n, timeout))
SYSTEM(ssize_t, pread64, (int fd, void *data, size_t len, off64_t at), (fd, data, len, at))
SYSTEM(ssize_t, pwrite64, (int fd, const void *data, size_t len, off64_t at), (fd, data, len, at))
SYSTEM(ssize_t, readlink, (const char *path, char *text, size_t len), (path, text, len))
SYSTEM(int, access, (const char *path, int mode), (path, mode))
SYSTEM(int, chdir, (const char *path), (path))
SYSTEM(int, chmod, (const char *path, mode_t mode), (path, mode))
SYSTEM(int, dup3, (int from, int to, int flags), (from, to, flags))
SYSTEM(int, flock, (int fd, int how), (fd, how))
SYSTEM(int, fsync, (int fd), (fd))
SYSTEM(int, rmdir, (const char *path), (path))
SYSTEM(int, unlink, (const char *path), (path))
SYSTEM(int, fstatfs64, (int fd, struct statfs64 *ret), (fd, ret))
SYSTEM(int, fstatvfs64, (int fd, struct statvfs64 *ret), (fd, ret))
SYSTEM(int, statx, (int fd, const char *path, int flags, unsigned mask, struct statx *ret),
       (fd, path, flags, mask, ret))
SYSTEM(int, setpgid, (pid_t pid, pid_t group), (pid, group))
SYSTEM(pid_t, setsid, (void), ())
SYSTEM(pid_t, fork, (void), ())
SYSTEM(pid_t, waitpid, (pid_t pid, int *status, int flags), (pid, status, flags))
SYSTEM(int, waitid, (idtype_t type, id_t id, siginfo_t *info, int flags), (type, id, info, flags))
WRAP(false, DIR *, NULL, opendir, (const char *path), (path))
WRAP(false, DIR *, NULL, fdopendir, (int fd), (fd))
WRAP(false, char *, NULL, mkdtemp, (char *path), (path))
WRAP(false, char *, NULL, realpath, (const char *path, char *out), (path, out))
WRAP(false, char *, NULL, getcwd, (char *out, size_t size), (out, size))

/* pthread_create returns its error. */
__attribute__((visibility("default"))) int
pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *), void *arg)
{
    return fails(false, __func__) ? EAGAIN : REAL(pthread_create)(thread, attr, run, arg);
}

/* The variadic ones: a fourth argument that was not given is never looked at. */
#define OPEN(name, params, args)                              \
    int name params;                                          \
    __attribute__((visibility("default"))) int name params    \
    {                                                         \
        va_list list;                                         \
        mode_t mode;                                          \
        va_start(list, flags);                                \
        mode = va_arg(list, mode_t);                          \
        va_end(list);                                         \
        return fails(false, __func__) ? -1 : REAL(name) args; \
    }

OPEN(open64, (const char *path, int flags, ...), (path, flags, mode))
OPEN(openat64, (int fd, const char *path, int flags, ...), (fd, path, flags, mode))

__attribute__((visibility("default"))) int fcntl64(int fd, int command, ...)
{
    va_list list;
    void *arg;

    va_start(list, command);
    arg = va_arg(list, void *);
    va_end(list);
    return fails(false, __func__) ? -1 : REAL(fcntl64)(fd, command, arg);
}

__attribute__((visibility("default"))) long syscall(long number, ...)
{
    va_list list;
    long a[6];

    va_start(list, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(list, long);
    va_end(list);
    return fails(false, __func__) ? -1 : REAL(syscall)(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
