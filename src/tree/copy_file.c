/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One file. The common case, a small file that the destination does not have yet, costs eight
 * system calls: open, fstat, read and fstat of the source, open and write of the destination, and
 * two close.
 */
#include "tree/copy_job.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "tree/data.h"
#include "tree/temp.h"

enum { READ_FLAGS = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC };

/* The file that is written: under its own name when nobody can see it yet, or a temporary one. */
struct target {
    int dir_fd;
    const char *name;
    int fd;      /* of a direct one */
    bool direct; /* to be removed when it is not finished */
    struct pf_temp temp;
};

static void target_done(struct target *target)
{
    if (target->fd >= 0)
        close(target->fd);
    if (target->direct)
        unlinkat(target->dir_fd, target->name, 0);
    pf_temp_done(&target->temp);
}

static int target_fd(const struct target *target)
{
    return target->direct ? target->fd : target->temp.fd;
}

static int target_finish(struct target *target)
{
    int fd = target->fd;

    if (!target->direct)
        return pf_temp_place(&target->temp, target->name, false);
    target->fd = -1;
    if (close(fd) < 0 && errno != EINTR)
        return -errno;
    target->direct = false;
    return 0;
}

/* What one copy is about. */
struct copying {
    struct pf_copy_worker *worker;
    struct pf_copy_dir *dir;
    const char *name;
    int src_fd;
    struct stat st;
    ssize_t held; /* bytes of a small file, all in the worker's buffer; -1: a large one */
};

enum outcome { COPIED, LEFT, AGAIN, FAILED };

static enum outcome fail(const struct copying *copying, const char *step, int sys_errno)
{
    pf_copy_fail(copying->worker->job, copying->dir->path, copying->name, step, sys_errno);
    return FAILED;
}

static enum outcome refuse(const struct copying *copying, const char *why)
{
    pf_copy_refuse(copying->worker->job, copying->dir->path, copying->name, why);
    return FAILED;
}

static enum outcome open_source(struct copying *copying)
{
    copying->src_fd = openat(copying->dir->src_fd, copying->name, READ_FLAGS);
    if (copying->src_fd < 0 && errno == ENOENT)
        return LEFT; /* deleted since the directory was read: as if a moment later */
    if (copying->src_fd < 0 && errno == ELOOP)
        return refuse(copying, "open: it has become a symbolic link");
    if (copying->src_fd < 0)
        return fail(copying, "open", errno);
    if (fstat(copying->src_fd, &copying->st) < 0)
        return fail(copying, "look at", errno);
    if (S_ISREG(copying->st.st_mode))
        return COPIED;
    pf_copy_skipped(copying->worker->job, copying->dir->path, copying->name, false);
    return LEFT;
}

/* Whether the source is still what was read. */
static enum outcome check_unchanged(const struct copying *copying)
{
    struct stat after;

    if (fstat(copying->src_fd, &after) < 0)
        return fail(copying, "look at", errno);
    return pf_data_changed(&copying->st, &after) ? AGAIN : COPIED;
}

/* Read a small file whole: then its change can be noticed before anything is written. Asking for
 * one byte more shows in the same read that there is none. */
static enum outcome hold(struct copying *copying)
{
    size_t size = (size_t)copying->st.st_size;

    copying->held = -1;
    if (copying->st.st_size >= (off_t)PF_DATA_BUFFER)
        return COPIED;
    do
        copying->held = read(copying->src_fd, copying->worker->buffer, size + 1);
    while (copying->held < 0 && errno == EINTR);
    if (copying->held < 0)
        return fail(copying, "read", errno);
    return (size_t)copying->held == size ? check_unchanged(copying) : AGAIN;
}

/* Compare with the file that is there. */
static enum outcome compare(const struct copying *copying)
{
    _cleanup_close_ int dst_fd = openat(copying->dir->dst_fd, copying->name, READ_FLAGS);
    int r;

    if (dst_fd < 0)
        return errno == EACCES ? COPIED : fail(copying, "compare with what is there", errno);
    r = pf_data_same(copying->src_fd, dst_fd, copying->worker->buffer, pf_copy_tick_read,
                     copying->worker);
    if (r == -ECANCELED)
        return LEFT;
    if (r == 0 && lseek(copying->src_fd, 0, SEEK_SET) < 0)
        r = -errno;
    if (r < 0)
        return fail(copying, "compare with what is there", -r);
    return r ? LEFT : COPIED;
}

/* Look at what has the name in the destination. COPIED: it may be replaced. */
static enum outcome check_existing(const struct copying *copying)
{
    bool flush = copying->worker->job->options->skip_identical;
    struct stat st;

    if (fstatat(copying->dir->dst_fd, copying->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? COPIED : fail(copying, "look at the destination", errno);
    if (S_ISDIR(st.st_mode))
        return refuse(copying, "a directory of that name is in the way");
    if (st.st_dev == copying->st.st_dev && st.st_ino == copying->st.st_ino)
        return LEFT; /* two names of one file */
    if (!flush)
        return COPIED;
    if (S_ISLNK(st.st_mode))
        return refuse(copying, "the destination is a symbolic link, which is not written through");
    if (!S_ISREG(st.st_mode))
        return refuse(copying, "the destination is no regular file");
    return st.st_size == copying->st.st_size ? compare(copying) : COPIED;
}

static enum outcome open_target(const struct copying *copying, struct target *target)
{
    mode_t mode = copying->st.st_mode & PF_COPY_ANY_ACCESS;
    enum outcome outcome;
    int r;

    if (!copying->worker->job->options->skip_identical) {
        /* A workspace is not in use while it is seeded: no one can see half a new file. */
        target->fd = openat(target->dir_fd, target->name,
                            O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
        target->direct = target->fd >= 0;
        if (target->direct)
            return COPIED;
        if (errno != EEXIST)
            return fail(copying, "create", errno);
        outcome = check_existing(copying);
        if (outcome != COPIED)
            return outcome;
    }
    r = pf_temp_open(&target->temp, target->dir_fd, mode);
    return r < 0 ? fail(copying, "create", -r) : COPIED;
}

/* Set the mode unless the new file surely has it: the umask takes bits away, and a default ACL of
 * the directory may, which is seen on the first file. */
static enum outcome set_mode(const struct copying *copying, int fd)
{
    struct pf_copy_dir *dir = copying->dir;
    mode_t mode = copying->st.st_mode & PF_COPY_ANY_ACCESS;
    mode_t umask = copying->worker->job->umask;
    struct stat st;

    if (!atomic_load_explicit(&dir->mode_seen, memory_order_acquire)) {
        if (fstat(fd, &st) == 0 && (st.st_mode & PF_COPY_ANY_ACCESS) != (mode & ~umask))
            atomic_store(&dir->mode_lost, true);
        atomic_store_explicit(&dir->mode_seen, true, memory_order_release);
    }
    if (!(mode & umask) && !atomic_load_explicit(&dir->mode_lost, memory_order_relaxed))
        return COPIED;
    return fchmod(fd, mode) < 0 ? fail(copying, "set the mode", errno) : COPIED;
}

static int on_chunk(void *ctx, uint64_t bytes)
{
    struct pf_copy_worker *worker = ctx;

    atomic_fetch_add_explicit(&worker->job->moved, bytes, memory_order_relaxed);
    return pf_copy_tick(worker) ? -ECANCELED : 0;
}

static enum outcome fill(const struct copying *copying, int fd, uint64_t *ret_bytes)
{
    struct pf_data_copy data = {
        .src_fd = copying->src_fd,
        .dst_fd = fd,
        .buffer = copying->worker->buffer,
        .on_chunk = on_chunk,
        .ctx = copying->worker,
    };
    int r;

    if (copying->held >= 0) {
        *ret_bytes = (uint64_t)copying->held;
        r = pf_write_all(fd, copying->worker->buffer, (size_t)copying->held);
        atomic_fetch_add_explicit(&copying->worker->job->moved, *ret_bytes, memory_order_relaxed);
        return r < 0 ? fail(copying, "write", -r) : COPIED;
    }
    r = pf_data_copy(&data, &copying->st, ret_bytes);
    if (r == -ECANCELED)
        return LEFT;
    if (r < 0)
        return fail(copying, data.failed, -r);
    return check_unchanged(copying);
}

static enum outcome write_target(const struct copying *copying, struct target *target,
                                 uint64_t *ret_bytes)
{
    enum outcome outcome = open_target(copying, target);
    int r;

    if (outcome == COPIED)
        outcome = fill(copying, target_fd(target), ret_bytes);
    if (outcome == COPIED)
        outcome = set_mode(copying, target_fd(target));
    if (outcome == COPIED && copying->worker->job->options->fsync_files &&
        fsync(target_fd(target)) < 0)
        outcome = fail(copying, "flush to the disk", errno);
    if (outcome != COPIED)
        return outcome;
    r = target_finish(target);
    return r < 0 ? fail(copying, "put into place", -r) : COPIED;
}

static enum outcome copy_to(struct copying *copying, uint64_t *ret_bytes)
{
    struct target target = {
        .dir_fd = copying->dir->dst_fd,
        .name = copying->name,
        .fd = -1,
        .temp = PF_TEMP_INIT,
    };
    enum outcome outcome;

    outcome = write_target(copying, &target, ret_bytes);
    target_done(&target);
    return outcome;
}

static enum outcome try_copy(struct copying *copying, uint64_t *ret_bytes)
{
    enum outcome outcome = open_source(copying);

    if (outcome == COPIED && copying->worker->job->options->skip_identical)
        outcome = check_existing(copying);
    if (outcome == COPIED)
        outcome = hold(copying);
    if (outcome == COPIED)
        outcome = copy_to(copying, ret_bytes);
    if (copying->src_fd >= 0)
        close(TAKE_FD(copying->src_fd));
    return outcome;
}

void pf_copy_file(struct pf_copy_worker *worker, struct pf_copy_dir *dir, const char *name)
{
    struct copying copying = { .worker = worker, .dir = dir, .name = name, .src_fd = -1 };
    enum outcome outcome = AGAIN;
    uint64_t bytes = 0;

    for (int tries = 0; tries < 2 && outcome == AGAIN; tries++)
        outcome = try_copy(&copying, &bytes);
    if (outcome == AGAIN)
        refuse(&copying, "it changes while it is read");
    if (outcome != COPIED)
        return;
    atomic_fetch_add_explicit(&worker->job->files, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&worker->job->bytes, bytes, memory_order_relaxed);
}
