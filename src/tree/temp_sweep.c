/* SPDX-License-Identifier: Apache-2.0 */
#include "tree/temp_sweep.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "tree/remove.h"

/* What one sweep may cost: entries of a large directory, other workspaces that live, and time. */
#define SWEEP_BATCHES 4
#define SWEEP_LIVING 64
#define SWEEP_NS PF_NS_PER_SEC

/* path is relative to parent_fd. */
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

int pf_temp_delete_locked(int fd, const char *path, struct pinfold_error *err)
{
    return delete_locked(fd, AT_FDCWD, path, err);
}

static bool is_ours(const char *name)
{
    return strncmp(name, PF_TEMP_NAME, strlen(PF_TEMP_NAME)) == 0 &&
           strlen(name) == strlen(PF_TEMP_NAME) + PF_TEMP_DIGITS &&
           strspn(name + strlen(PF_TEMP_NAME), "0123456789abcdef") == PF_TEMP_DIGITS;
}

enum left { NOTHING, LIVING, STUCK };

/* Delete one of ours, if it has no owner. Returns what is left of it. */
static enum left delete_one(int parent_fd, const char *name)
{
    _cleanup_close_ int fd = -1;
    struct stat st;

    /* A stranger's directory of such a name is none of our business, whatever is in it. */
    if (fstatat(parent_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(st.st_mode) ||
        st.st_uid != geteuid())
        return NOTHING;
    fd = pf_tree_open_owned(parent_fd, name);
    if (fd < 0 || fstat(fd, &st) < 0 || st.st_uid != geteuid())
        return NOTHING;
    if (flock(fd, LOCK_EX | LOCK_NB) < 0)
        return LIVING;
    return delete_locked(fd, parent_fd, name, NULL) < 0 ? STUCK : NOTHING;
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
            if (!is_ours(entry->d_name))
                continue;
            if (delete_one(fd, entry->d_name) == LIVING && ++living == SWEEP_LIVING)
                return;
            if (pf_clock_now() > deadline)
                return;
        }
    }
}

/* The directory that a path is in. Returns its last component, or NULL when there is none, or it is
 * too long. */
static const char *split(const char *path, char ret_parent[static PATH_MAX])
{
    const char *slash = strrchr(path, '/');
    size_t len = slash ? (size_t)(slash - path) : 0;

    if (!slash || len >= PATH_MAX)
        return NULL;
    memcpy(ret_parent, path, len);
    if (len == 0)
        ret_parent[len++] = '/';
    ret_parent[len] = '\0';
    return slash + 1;
}

void pf_temp_sweep_beside(const char *workspace)
{
    char place[PATH_MAX];

    if (split(workspace, place))
        sweep(place);
}

bool pf_temp_delete_left(const char *path)
{
    _cleanup_close_ int fd = -1;
    char place[PATH_MAX];
    const char *name = split(path, place);

    if (!name || !is_ours(name))
        return false;
    fd = open(place, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return fd >= 0 && delete_one(fd, name) != NOTHING;
}
