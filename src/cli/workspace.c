/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Removing a tree that an agent made. Its depth must cost neither stack nor descriptors, and a
 * path built from its names might lead elsewhere by the time it is used. So nothing descends: a
 * directory that is not empty has its subdirectories moved up into the root, each under a new
 * name, and is then empty. At any time two descriptors are open: the root and one directory in it.
 */
#include "cli/workspace.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/say.h"

char *pf_workspace_make(void)
{
    const char *base = getenv("TMPDIR");
    char *path = NULL;

    if (!base || base[0] != '/')
        base = "/tmp";
    if (asprintf(&path, "%s/pinfold-XXXXXX", base) < 0) {
        pf_say("make a workspace: out of memory");
        return NULL;
    }
    if (!mkdtemp(path)) {
        pf_say("make a workspace in %s: %s; set TMPDIR or use --workspace", base, strerror(errno));
        free(path);
        return NULL;
    }
    return path;
}

/* Open a directory for emptying it: that needs all rights, which its owner may have taken away. */
static int open_owned(int parent, const char *name)
{
    int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    int fd = openat(parent, name, flags);
    struct stat st;
    char link[40];
    int pinned;

    if (fd >= 0 && fstat(fd, &st) == 0 && (st.st_mode & S_IRWXU) == S_IRWXU)
        return fd;
    if (fd >= 0) {
        fchmod(fd, S_IRWXU);
        return fd;
    }
    if (errno != EACCES)
        return -1;
    /* O_PATH needs no right, and the link in /proc cannot be exchanged as the name can. */
    pinned = openat(parent, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (pinned < 0)
        return -1;
    snprintf(link, sizeof(link), "/proc/self/fd/%d", pinned);
    if (chmod(link, S_IRWXU) == 0)
        fd = openat(parent, name, flags);
    close(pinned);
    return fd;
}

/* Move a directory that is not empty up into the root, under a name that is free there. */
static bool move_up(int parent, const char *name, int root, unsigned *number)
{
    char fresh[32];
    int fd = open_owned(parent, name); /* moving a directory needs the right to write into it */

    if (fd < 0)
        return false;
    close(fd);
    do {
        snprintf(fresh, sizeof(fresh), "removing-%u", (*number)++);
        if (renameat2(parent, name, root, fresh, RENAME_NOREPLACE) == 0)
            return true;
    } while (errno == EEXIST);
    return false;
}

static DIR *open_dir_of(int fd)
{
    DIR *dir = fdopendir(fd);

    if (!dir)
        close(fd);
    return dir;
}

/* Empty one directory in the root; directories that are not empty move up. */
static bool empty_into(int root, const char *name, unsigned *number)
{
    int fd = open_owned(root, name);
    DIR *dir = fd < 0 ? NULL : open_dir_of(fd);
    bool good = dir;

    while (dir) {
        const struct dirent *entry = readdir(dir);
        if (!entry)
            break;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (unlinkat(dirfd(dir), entry->d_name, 0) == 0 ||
            unlinkat(dirfd(dir), entry->d_name, AT_REMOVEDIR) == 0)
            continue;
        if (errno != ENOTEMPTY || !move_up(dirfd(dir), entry->d_name, root, number))
            good = false;
    }
    if (dir)
        closedir(dir);
    return good && unlinkat(root, name, AT_REMOVEDIR) == 0;
}

/* One pass over the root. Returns whether something could be removed. */
static bool empty_root(int root, unsigned *number)
{
    int fd = openat(root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : open_dir_of(fd);
    bool progress = false;

    while (dir) {
        const struct dirent *entry = readdir(dir);
        unsigned before = *number;
        if (!entry)
            break;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (unlinkat(root, entry->d_name, 0) == 0 ||
            unlinkat(root, entry->d_name, AT_REMOVEDIR) == 0 ||
            empty_into(root, entry->d_name, number) || *number != before)
            progress = true;
    }
    if (dir)
        closedir(dir);
    return progress;
}

void pf_workspace_remove(const char *path)
{
    unsigned number = 0;
    int root;

    if (rmdir(path) == 0)
        return;
    root = open_owned(AT_FDCWD, path);
    while (root >= 0 && empty_root(root, &number))
        ;
    if (root >= 0)
        close(root);
    if (rmdir(path) < 0 && errno != ENOENT)
        pf_say("remove the workspace %s: %s; remove it by hand", path, strerror(errno));
}
