/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A workspace in use has a name of ours and a lock on its directory; one that is kept has another
 * name. The lock is flock(2)'s: it belongs to the open directory, so that it lasts as long as any
 * process that the owner forked has it, and not longer. A name of ours without a lock is therefore
 * garbage. Both who makes a directory and who sweeps take the lock first and look at what it is on
 * afterwards, so that neither can be between the other's steps. When the owner is killed its keeper
 * deletes the directory; a sweep finds it when the keeper was killed as well.
 */
#include <pinfold/temp_workspace.h>

#include <fcntl.h>
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
#include "proc/keeper.h"
#include "tree/temp_sweep.h"

#define KEPT "pinfold-kept-"
#define SWEEP_EVERY_NS (60 * PF_NS_PER_SEC)

struct pinfold_temp_workspace {
    char *path;
    int fd;      /* with the lock */
    pid_t owner; /* a forked child deletes nothing */
    bool kept;
    struct pf_kept entry; /* of path, while it is not */
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

static void drop_path(struct pinfold_temp_workspace *workspace)
{
    pf_keeper_drop(&workspace->entry);
    free(TAKE(workspace->path));
}

static void workspace_freep(struct pinfold_temp_workspace **workspace)
{
    if (*workspace)
        drop_path(*workspace);
    free(*workspace);
}

int pinfold_temp_workspace_new(struct pinfold_temp_workspace **ret, struct pinfold_error *err)
{
    PF_CLEANUP(workspace_freep)
    struct pinfold_temp_workspace *workspace = calloc(1, sizeof(*workspace));
    char digits[PF_TEMP_DIGITS + 1];
    int r;

    if (!workspace)
        return pf_fail_nomem(err);
    workspace->owner = getpid();
    do {
        drop_path(workspace);
        pf_random_hex(digits, PF_TEMP_DIGITS);
        if (asprintf(&workspace->path, "%s/" PF_TEMP_NAME "%s", place(), digits) < 0) {
            workspace->path = NULL;
            return pf_fail_nomem(err);
        }
        pf_keeper_add(&workspace->entry, PF_KEPT_WORKSPACE, workspace->path);
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
                 name + strlen(PF_TEMP_NAME)) < 0) {
        pf_keeper_drop(&workspace->entry);
        return pf_fail_nomem(err);
    }
    if (renameat2(AT_FDCWD, workspace->path, AT_FDCWD, kept, RENAME_NOREPLACE) < 0) {
        int saved = errno;
        free(kept);
        pf_keeper_drop(&workspace->entry);
        return pf_fail_os(err, saved, "keep the temporary workspace %s", PF_QUOTE(workspace->path));
    }
    drop_path(workspace);
    workspace->path = kept;
    return 0;
}

/* ---- deleting ---- */

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
            r = pf_temp_delete_locked(workspace->fd, workspace->path, err);
        if (is_time())
            pf_temp_sweep_beside(workspace->path);
    }
    close(workspace->fd);
    workspace_freep(&workspace);
    return r;
}
