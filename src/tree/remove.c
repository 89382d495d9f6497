/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The depth of a tree must cost neither stack nor descriptors, and a path built from an agent's
 * names might lead elsewhere by the time it is used. So nothing descends: a directory that is not
 * empty has its subdirectories moved up into the root, each under a new name, and is then empty. At
 * any time three descriptors are open: the root, a reader of it, and one directory in it.
 */
#include "tree/remove.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/error.h"

struct removal {
    int root;
    unsigned number; /* of the next directory that moves up */
    bool progress;   /* this pass over the root has changed something */
    struct pinfold_error failure;
};

/* readdir(3) without an allocation: see remove.h. */
struct reader {
    int fd;
    ssize_t len, at; /* of batch: what was read, and how much of that was given */
    _Alignas(struct dirent64) char batch[8192];
};

static void reader_close(struct reader *reader)
{
    if (reader->fd >= 0)
        close(reader->fd);
}
#define _cleanup_reader_ PF_CLEANUP(reader_close)

/* What somebody else has deleted meanwhile is no failure. */
static void note_failure(struct removal *removal, int sys_errno, const char *name)
{
    if (removal->failure.code == 0 && sys_errno != ENOENT)
        pf_fail_os(&removal->failure, sys_errno, "delete \"%s\"", PF_QUOTE(name));
}

static void allow_all(int fd)
{
    struct stat st;

    if (fstat(fd, &st) < 0 || (st.st_mode & S_IRWXU) != S_IRWXU)
        (void)!fchmod(fd, S_IRWXU); /* when it fails, deleting says why */
}

int pf_tree_open_owned(int parent_fd, const char *name)
{
    int flags = O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    int fd = openat(parent_fd, name, O_RDONLY | flags);
    char link[40];

    if (fd >= 0)
        allow_all(fd);
    if (fd >= 0 || errno != EACCES)
        return fd;
    /* O_PATH needs no right, and the link in /proc cannot be exchanged as the name can. */
    _cleanup_close_ int pinned = openat(parent_fd, name, O_PATH | flags);
    if (pinned < 0)
        return -1;
    snprintf(link, sizeof(link), "/proc/self/fd/%d", pinned);
    return chmod(link, S_IRWXU) == 0 ? openat(parent_fd, name, O_RDONLY | flags) : -1;
}

/* The next name, or NULL at the end; a failure to read leaves errno. */
static const char *next_name(struct reader *reader)
{
    const struct dirent64 *entry;

    do {
        errno = 0;
        if (reader->at == reader->len) {
            reader->at = 0;
            reader->len = getdents64(reader->fd, reader->batch, sizeof(reader->batch));
        }
        if (reader->len <= 0) {
            reader->len = 0;
            return NULL;
        }
        entry = (const struct dirent64 *)(const void *)(reader->batch + reader->at);
        reader->at += entry->d_reclen;
    } while (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0);
    return entry->d_name;
}

/* Returns 0 or an errno: ENOTEMPTY for a directory that something is in. */
static int drop(int dir_fd, const char *name)
{
    if (unlinkat(dir_fd, name, 0) == 0)
        return 0;
    if (errno != EISDIR)
        return errno;
    if (unlinkat(dir_fd, name, AT_REMOVEDIR) == 0)
        return 0;
    return errno == EEXIST ? ENOTEMPTY : errno;
}

/* Move a directory that is not empty up into the root, under a name that is free there. */
static int move_up(struct removal *removal, int parent, const char *name)
{
    char fresh[32];
    int fd = pf_tree_open_owned(parent,
                                name); /* moving a directory needs the right to write into it */

    if (fd < 0)
        return errno;
    close(fd);
    do {
        snprintf(fresh, sizeof(fresh), "removing-%u", removal->number++);
        if (renameat2(parent, name, removal->root, fresh, RENAME_NOREPLACE) == 0)
            return 0;
    } while (errno == EEXIST);
    return errno;
}

/* Delete a directory in the root that is not empty. What is in it and not empty moves up. */
static void drop_full(struct removal *removal, const char *name)
{
    _cleanup_reader_ struct reader dir = { .fd = pf_tree_open_owned(removal->root, name) };
    const char *inner;
    int failed = dir.fd >= 0 ? 0 : errno;

    while (dir.fd >= 0 && (inner = next_name(&dir))) {
        int r = drop(dir.fd, inner);
        if (r == ENOTEMPTY)
            r = move_up(removal, dir.fd, inner);
        if (r == 0)
            removal->progress = true;
        else
            note_failure(removal, r, inner);
    }
    if (dir.fd >= 0)
        failed = errno ? errno : drop(removal->root, name);
    if (failed == 0)
        removal->progress = true;
    else
        note_failure(removal, failed, name);
}

static void pass_over(struct removal *removal)
{
    _cleanup_reader_ struct reader dir = { .fd = pf_tree_open_owned(removal->root, ".") };
    const char *name;
    int failed = dir.fd >= 0 ? 0 : errno;

    removal->progress = false;
    removal->failure = (struct pinfold_error)PINFOLD_ERROR_INIT;
    while (dir.fd >= 0 && (name = next_name(&dir))) {
        int r = drop(removal->root, name);
        if (r == 0)
            removal->progress = true;
        else if (r == ENOTEMPTY)
            drop_full(removal, name);
        else
            note_failure(removal, r, name);
    }
    if (dir.fd >= 0)
        failed = errno;
    if (failed)
        note_failure(removal, failed, ".");
}

int pf_tree_empty(int root_fd, struct pinfold_error *err)
{
    struct removal removal = { .root = root_fd };

    allow_all(root_fd);
    do
        pass_over(&removal);
    while (removal.progress);
    if (removal.failure.code && err)
        *err = removal.failure;
    return -removal.failure.code;
}

int pf_tree_remove(int parent_fd, const char *name, struct pinfold_error *err)
{
    _cleanup_close_ int fd = -1;
    int r;

    if (unlinkat(parent_fd, name, AT_REMOVEDIR) == 0)
        return 0;
    fd = pf_tree_open_owned(parent_fd, name);
    if (fd < 0)
        return pf_fail_os(err, errno, "delete directory \"%s\"", PF_QUOTE(name));
    r = pf_tree_empty(fd, err);
    if (r < 0)
        return r;
    if (unlinkat(parent_fd, name, AT_REMOVEDIR) < 0)
        return pf_fail_os(err, errno, "delete directory \"%s\"", PF_QUOTE(name));
    return 0;
}
