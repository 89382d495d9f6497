/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A workspace in use has a name of ours and a lock on its directory; one that is kept has another
 * name. The lock is flock(2)'s: it belongs to the open directory, so that it lasts as long as any
 * process that the owner forked has it, and not longer. A name of ours without a lock is therefore
 * garbage. Both who makes a directory and who sweeps take the lock first and look at what it is on
 * afterwards, so that neither can be between the other's steps.
 */
#include <pinfold/temp_workspace.h>

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/random.h"
#include "tree/remove.h"
#include "tree/temp_sweep.h"

#define LIVE "pinfold-run-"
#define KEPT "pinfold-kept-"
enum { DIGITS = 16 };

/* What one sweep may cost: entries of a large directory, other workspaces that live, and time. */
#define SWEEP_BATCHES 4
#define SWEEP_LIVING 64
#define SWEEP_NS PF_NS_PER_SEC
#define SWEEP_EVERY_NS (60 * PF_NS_PER_SEC)

struct pinfold_temp_workspace {
    char *path;
    int fd;      /* with the lock */
    pid_t owner; /* a forked child deletes nothing */
    bool kept;
};

/* ---- making ---- */

static const char *place(void)
{
    const char *tmp = getenv("TMPDIR");

    return tmp && tmp[0] == '/' ? tmp : "/tmp";
}

/* Returns 0, -EAGAIN when a sweep was faster, or another -errno. */
static int lock_new(const char *path, int *ret_fd)
{
    _cleanup_close_ int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat st;

    if (fd < 0)
        return errno == ENOENT ? -EAGAIN : -errno;
    /* Where locks do not work no sweep gets one either, and so leaves the directory alone. */
    if (flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK)
        return -EAGAIN;
    if (fstat(fd, &st) < 0)
        return -errno;
    if (st.st_nlink == 0)
        return -EAGAIN;
    *ret_fd = TAKE_FD(fd);
    return 0;
}

static int make_locked(const char *path, int *ret_fd)
{
    int r;

    if (mkdir(path, 0700) < 0)
        return errno == EEXIST ? -EAGAIN : -errno;
    r = lock_new(path, ret_fd);
    if (r < 0 && r != -EAGAIN)
        rmdir(path);
    return r;
}

static void workspace_freep(struct pinfold_temp_workspace **workspace)
{
    if (*workspace)
        free((*workspace)->path);
    free(*workspace);
}

int pinfold_temp_workspace_new(struct pinfold_temp_workspace **ret, struct pinfold_error *err)
{
    PF_CLEANUP(workspace_freep)
    struct pinfold_temp_workspace *workspace = calloc(1, sizeof(*workspace));
    char digits[DIGITS + 1];
    int r;

    if (!workspace)
        return pf_fail_nomem(err);
    workspace->owner = getpid();
    do {
        free(TAKE(workspace->path));
        pf_random_hex(digits, DIGITS);
        if (asprintf(&workspace->path, "%s/" LIVE "%s", place(), digits) < 0) {
            workspace->path = NULL;
            return pf_fail_nomem(err);
        }
        r = make_locked(workspace->path, &workspace->fd);
    } while (r == -EAGAIN);
    if (r < 0)
        return pf_fail_os(err, -r, "make a workspace in %s", PF_QUOTE(place()));
    *ret = TAKE(workspace);
    return 0;
}

const char *pinfold_temp_workspace_path(const struct pinfold_temp_workspace *workspace)
{
    return workspace->path;
}

/* ---- keeping ---- */

int pinfold_temp_workspace_keep(struct pinfold_temp_workspace *workspace, struct pinfold_error *err)
{
    const char *name = strrchr(workspace->path, '/') + 1;
    char *kept;

    if (workspace->kept)
        return 0;
    workspace->kept = true; /* even under a name that a later sweep may find */
    if (asprintf(&kept, "%.*s" KEPT "%s", (int)(name - workspace->path), workspace->path,
                 name + strlen(LIVE)) < 0)
        return pf_fail_nomem(err);
    if (renameat2(AT_FDCWD, workspace->path, AT_FDCWD, kept, RENAME_NOREPLACE) < 0) {
        int saved = errno;
        free(kept);
        return pf_fail_os(err, saved, "keep the temporary workspace %s", PF_QUOTE(workspace->path));
    }
    free(workspace->path);
    workspace->path = kept;
    return 0;
}

/* ---- deleting ---- */

/* fd is the directory that path names, with its lock. */
static int delete_locked(int fd, int parent_fd, const char *path, struct pinfold_error *err)
{
    struct pinfold_error why = PINFOLD_ERROR_INIT;

    if (unlinkat(parent_fd, path, AT_REMOVEDIR) == 0 || errno == ENOENT)
        return 0;
    pf_tree_empty(fd, &why);
    if (unlinkat(parent_fd, path, AT_REMOVEDIR) == 0 || errno == ENOENT)
        return 0;
    return pf_fail_os(err, why.code ? why.sys_errno : errno, "remove the workspace %s by hand",
                      PF_QUOTE(path));
}

static bool is_ours(const char *name)
{
    return strncmp(name, LIVE, strlen(LIVE)) == 0 && strlen(name) == strlen(LIVE) + DIGITS &&
           strspn(name + strlen(LIVE), "0123456789abcdef") == DIGITS;
}

/* Returns whether it is a workspace that lives. */
static bool sweep_one(int parent_fd, const char *name)
{
    _cleanup_close_ int fd = -1;
    struct stat st;

    /* A stranger's directory of such a name is none of our business, whatever is in it. */
    if (fstatat(parent_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(st.st_mode) ||
        st.st_uid != geteuid())
        return false;
    fd = pf_tree_open_owned(parent_fd, name);
    if (fd < 0 || fstat(fd, &st) < 0 || st.st_uid != geteuid())
        return false;
    if (flock(fd, LOCK_EX | LOCK_NB) < 0)
        return true;
    delete_locked(fd, parent_fd, name, NULL);
    return false;
}

static void sweep(const char *path)
{
    _cleanup_close_ int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int64_t deadline = pf_clock_deadline(SWEEP_NS);
    _Alignas(struct dirent64) char batch[32768];
    int living = 0;
    ssize_t len;

    for (int i = 0; fd >= 0 && i < SWEEP_BATCHES; i++) {
        len = getdents64(fd, batch, sizeof(batch));
        if (len <= 0)
            return;
        for (ssize_t at = 0; at < len;) {
            const struct dirent64 *entry = (const struct dirent64 *)(const void *)(batch + at);

            at += entry->d_reclen;
            if (is_ours(entry->d_name) && sweep_one(fd, entry->d_name) && ++living == SWEEP_LIVING)
                return;
            if (is_ours(entry->d_name) && pf_clock_now() > deadline)
                return;
        }
    }
}

void pf_temp_sweep_beside(const char *workspace)
{
    char place[PATH_MAX];
    const char *slash = strrchr(workspace, '/');
    size_t len = slash ? (size_t)(slash - workspace) : 0;

    if (!slash || len >= sizeof(place))
        return;
    memcpy(place, workspace, len);
    place[len] = '\0';
    sweep(len > 0 ? place : "/");
}

static _Atomic int64_t next_sweep;

/* At most once in a while: a process that has a thousand sandboxes would look at all of them each
 * time that it closes one. */
static bool is_time(void)
{
    int64_t now = pf_clock_now(), due = atomic_load(&next_sweep);

    return now >= due && atomic_compare_exchange_strong(&next_sweep, &due, now + SWEEP_EVERY_NS);
}

void pf_temp_sweep_follows(void)
{
    atomic_store(&next_sweep, pf_clock_deadline(SWEEP_EVERY_NS));
}

int pinfold_temp_workspace_free(struct pinfold_temp_workspace *workspace, struct pinfold_error *err)
{
    int r = 0;

    if (!workspace)
        return 0;
    if (workspace->owner == getpid()) {
        if (!workspace->kept)
            r = delete_locked(workspace->fd, AT_FDCWD, workspace->path, err);
        if (is_time())
            pf_temp_sweep_beside(workspace->path);
    }
    close(workspace->fd);
    workspace_freep(&workspace);
    return r;
}
