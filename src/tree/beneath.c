/* SPDX-License-Identifier: Apache-2.0 */
#include "tree/beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"

enum {
    MAX_LINKS = 40, /* as the kernel */
    MAX_RACES = 16, /* tries of openat2 while somebody renames */
};

static atomic_bool forced;  /* pf_beneath_force_fallback() */
static atomic_bool missing; /* this kernel, or a filter above it, has no openat2 */

void pf_beneath_force_fallback(bool on)
{
    atomic_store(&forced, on);
}

/* The component-wise walk: an open directory, how it is called from the root (real directories
 * only, no links), and the text that is still to be resolved. */
struct walk {
    int root_fd;
    int dir_fd; /* owned */
    char done[PATH_MAX];
    size_t done_len;
    char rest[2 * PATH_MAX];
    unsigned links;
};

static int open_dir(int dir_fd, const char *name)
{
    int fd = openat(dir_fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    return fd < 0 ? -errno : fd;
}

static void move_to(struct walk *walk, int dir_fd)
{
    close(walk->dir_fd);
    walk->dir_fd = dir_fd;
}

static int descend(struct walk *walk, const char *name)
{
    size_t len = strlen(name), slash = walk->done_len > 0;
    int fd;

    if (walk->done_len + slash + len >= sizeof(walk->done))
        return -ENAMETOOLONG;
    fd = open_dir(walk->dir_fd, name);
    if (fd < 0)
        return fd;
    move_to(walk, fd);
    if (slash)
        walk->done[walk->done_len++] = '/';
    memcpy(walk->done + walk->done_len, name, len + 1);
    walk->done_len += len;
    return 0;
}

/* "..": not asked of the kernel, since the directory may have been moved meanwhile and its parent
 * lie outside. The shorter path is walked from the root again, without following anything. */
static int ascend(struct walk *walk)
{
    char names[PATH_MAX], *slash, *save = NULL;
    int fd, r = 0;

    if (walk->done_len == 0)
        return -EXDEV;
    slash = memrchr(walk->done, '/', walk->done_len);
    walk->done_len = slash ? (size_t)(slash - walk->done) : 0;
    memcpy(names, walk->done, walk->done_len);
    names[walk->done_len] = '\0';
    fd = open_dir(walk->root_fd, ".");
    if (fd < 0)
        return fd;
    move_to(walk, fd);
    walk->done_len = 0;
    for (char *name = strtok_r(names, "/", &save); name && r == 0;
         name = strtok_r(NULL, "/", &save))
        r = descend(walk, name);
    return r;
}

/* Put a link's target in front of what is left. */
static int expand(struct walk *walk, const char *target, const char *rest)
{
    size_t target_len = strlen(target), rest_len = strlen(rest);

    if (walk->links++ >= MAX_LINKS)
        return -ELOOP;
    if (target[0] == '/')
        return -EXDEV;
    if (target_len + 1 + rest_len >= sizeof(walk->rest))
        return -ENAMETOOLONG;
    memmove(walk->rest + target_len, rest, rest_len + 1); /* rest begins with '/' or is empty */
    memcpy(walk->rest, target, target_len);
    return 0;
}

/* The target of a link. Returns its length, -EINVAL when name is no link, or another error. */
static ssize_t read_link(int dir_fd, const char *name, char target[static PATH_MAX])
{
    ssize_t len = readlinkat(dir_fd, name, target, PATH_MAX - 1);

    if (len < 0)
        return -errno;
    target[len] = '\0';
    return len;
}

static bool is_link(int fd)
{
    struct stat st;

    return fstat(fd, &st) == 0 && S_ISLNK(st.st_mode);
}

/* Open the last component. Returns a descriptor, -EAGAIN when a link was expanded instead, or an
 * error. */
static int open_last(struct walk *walk, const char *name, int flags, mode_t mode)
{
    bool follow = !(flags & O_NOFOLLOW) && (flags & (O_CREAT | O_EXCL)) != (O_CREAT | O_EXCL);
    char target[PATH_MAX];
    int fd, r;

    if (follow && read_link(walk->dir_fd, name, target) >= 0) {
        r = expand(walk, target, "");
        return r < 0 ? r : -EAGAIN;
    }
    fd = openat(walk->dir_fd, name, flags | O_NOFOLLOW | O_CLOEXEC, mode);
    if (fd < 0)
        return -errno;
    if (follow && (flags & O_PATH) && is_link(fd)) { /* it became one in between */
        close(fd);
        return -ELOOP;
    }
    return fd;
}

/* Go through a component that is not the last. */
static int step(struct walk *walk, const char *name, const char *rest)
{
    char target[PATH_MAX];
    int r;

    if (strcmp(name, ".") == 0)
        r = 0;
    else if (strcmp(name, "..") == 0)
        r = ascend(walk);
    else if (read_link(walk->dir_fd, name, target) >= 0)
        return expand(walk, target, rest);
    else
        r = descend(walk, name);
    if (r == 0)
        memmove(walk->rest, rest, strlen(rest) + 1);
    return r;
}

static int resolve(struct walk *walk, int flags, mode_t mode)
{
    char name[NAME_MAX + 1];
    const char *start;
    size_t len;
    int r;

    for (;;) {
        start = walk->rest + strspn(walk->rest, "/");
        len = strcspn(start, "/");
        if (len == 0) { /* the path ended in '/', "." or "..": the directory itself */
            r = openat(walk->dir_fd, ".", (flags & ~O_NOFOLLOW) | O_CLOEXEC, mode);
            return r < 0 ? -errno : r;
        }
        if (len > NAME_MAX)
            return -ENAMETOOLONG;
        memcpy(name, start, len);
        name[len] = '\0';
        if (start[len] == '\0' && strcmp(name, ".") != 0 && strcmp(name, "..") != 0) {
            r = open_last(walk, name, flags, mode);
            if (r != -EAGAIN)
                return r;
        } else {
            r = step(walk, name, start + len);
            if (r < 0)
                return r;
        }
    }
}

static int open_by_components(int root_fd, const char *path, int flags, mode_t mode)
{
    struct walk walk = { .root_fd = root_fd, .dir_fd = -1 };
    int r;

    if (path[0] == '/')
        return -EXDEV;
    if (strlen(path) >= PATH_MAX)
        return -ENAMETOOLONG;
    if (path[0] == '\0')
        return -ENOENT;
    memcpy(walk.rest, path, strlen(path) + 1);
    walk.dir_fd = open_dir(root_fd, ".");
    if (walk.dir_fd < 0)
        return walk.dir_fd;
    r = resolve(&walk, flags, mode);
    close(walk.dir_fd);
    return r;
}

static int open_by_kernel(int root_fd, const char *path, int flags, mode_t mode)
{
    struct open_how how = {
        .flags = (unsigned)flags | O_CLOEXEC,
        .mode = (flags & O_CREAT) ? mode & 07777 : 0,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS,
    };
    long fd;

    for (int tries = 0; tries < MAX_RACES; tries++) {
        fd = syscall(SYS_openat2, root_fd, path, &how, sizeof(how));
        if (fd >= 0 || errno != EAGAIN)
            return fd < 0 ? -errno : (int)fd;
    }
    return -EAGAIN;
}

/* A refusal can mean that the file is immutable, or that a system call filter does not know
 * openat2. The root itself can always be looked at. */
static bool kernel_refuses_openat2(int root_fd, int error)
{
    int fd;

    if (error == -EPERM) {
        fd = open_by_kernel(root_fd, ".", O_PATH, 0);
        if (fd >= 0)
            close(fd);
        error = fd;
    }
    return error == -ENOSYS || error == -EPERM;
}

int pf_beneath_open(int root_fd, const char *path, int flags, mode_t mode)
{
    int fd;

    if (!atomic_load(&forced) && !atomic_load(&missing)) {
        fd = open_by_kernel(root_fd, path, flags, mode);
        if (fd >= 0 || (fd != -ENOSYS && fd != -EPERM && fd != -EAGAIN))
            return fd;
        if (fd != -EAGAIN) {
            if (!kernel_refuses_openat2(root_fd, fd))
                return fd;
            atomic_store(&missing, true);
        }
    }
    return open_by_components(root_fd, path, flags, mode);
}

int pf_beneath_open_cached(int root_fd, const char *path)
{
    /* O_NOATIME: to write down that a file was read can wait for the journal. */
    struct open_how how = {
        .flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_NOATIME | O_CLOEXEC,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV | RESOLVE_CACHED,
    };
    long fd = -ENOSYS;

    if (atomic_load(&forced) || atomic_load(&missing))
        return (int)fd;
    fd = syscall(SYS_openat2, root_fd, path, &how, sizeof(how));
    return fd < 0 ? -errno : (int)fd;
}

/* Open the directory called name in dir_fd, made when it is missing. What is no directory of its
 * own, a link perhaps, is resolved from the root by its whole path. */
static int open_or_make(int root_fd, int dir_fd, const char *name, const char *whole)
{
    int fd = open_dir(dir_fd, name);

    if (fd == -ENOENT) {
        if (mkdirat(dir_fd, name, 0777) < 0 && errno != EEXIST)
            return -errno;
        fd = open_dir(dir_fd, name);
    }
    if (fd == -ENOTDIR || fd == -ELOOP)
        fd = pf_beneath_open(root_fd, whole, O_PATH | O_DIRECTORY, 0);
    return fd;
}

static int make_parents(int root_fd, const char *parent)
{
    _cleanup_close_ int dir_fd = open_dir(root_fd, ".");
    char path[PATH_MAX];
    size_t len, at = 0;
    int fd;

    if (dir_fd < 0)
        return dir_fd;
    for (; parent[at]; at += strspn(parent + at, "/")) {
        len = strcspn(parent + at, "/");
        memcpy(path, parent, at + len);
        path[at + len] = '\0';
        fd = open_or_make(root_fd, dir_fd, path + at, path);
        if (fd < 0)
            return fd;
        close(dir_fd);
        dir_fd = fd;
        at += len;
    }
    return TAKE_FD(dir_fd);
}

int pf_beneath_open_parent(int root_fd, const char *path, bool make, const char **ret_name)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    char parent[PATH_MAX] = ".";
    int fd;

    if (name[0] == '\0' || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return -EISDIR;
    if (slash) {
        if (slash - path >= PATH_MAX)
            return -ENAMETOOLONG;
        memcpy(parent, path, (size_t)(slash - path));
        parent[slash - path] = '\0';
    }
    fd = pf_beneath_open(root_fd, parent, O_PATH | O_DIRECTORY, 0);
    if (fd == -ENOENT && make)
        fd = make_parents(root_fd, parent);
    if (fd >= 0)
        *ret_name = name;
    return fd;
}
