/* SPDX-License-Identifier: Apache-2.0 */
/* Root directories: the ones that the application named, not an agent. */
#include "tree/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/error.h"

/* mkdir -p. What is in the way shows when the directory is opened. */
static int make_dirs(const char *path, struct pinfold_error *err)
{
    _cleanup_free_ char *text = strdup(path);

    if (!text)
        return pf_fail_nomem(err);
    for (char *slash = text; slash; *slash++ = '/') {
        slash = strchr(slash + strspn(slash, "/"), '/');
        if (slash)
            *slash = '\0';
        if (mkdir(text, 0777) < 0 && errno != EEXIST)
            return pf_fail_os(err, errno, "create directory \"%s\"", PF_QUOTE(text));
        if (!slash)
            break;
    }
    return 0;
}

int pf_root_open(const char *path, bool create, char **ret_real, struct pinfold_error *err)
{
    _cleanup_free_ char *real = NULL;
    _cleanup_close_ int fd = -1;
    int r;

    fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT && create) {
        r = make_dirs(path, err);
        if (r < 0)
            return r;
        fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    }
    if (fd < 0)
        return pf_fail_os(err, errno, "open directory \"%s\"", PF_QUOTE(path));
    if (ret_real) {
        real = realpath(path, NULL);
        if (!real)
            return pf_fail_os(err, errno, "resolve directory \"%s\"", PF_QUOTE(path));
        *ret_real = TAKE(real);
    }
    return TAKE_FD(fd);
}

int pf_path_expand(const char *path, char **ret_path, struct pinfold_error *err)
{
    _cleanup_free_ char *start = NULL;
    const char *rest = path;
    char *joined;

    if (path[0] == '\0')
        return pf_fail(err, PINFOLD_EVALUE, "the path of a directory is empty");
    if (path[0] == '~' && (path[1] == '/' || path[1] == '\0')) {
        const char *home = getenv("HOME");

        if (!home || home[0] != '/')
            return pf_fail(err, PINFOLD_EVALUE, "expand \"%s\": HOME is not set", PF_QUOTE(path));
        start = strdup(home);
        rest = path + 1 + (path[1] == '/');
    } else if (path[0] != '/') {
        start = getcwd(NULL, 0);
        if (!start)
            return pf_fail_os(err, errno, "find the current directory for \"%s\"", PF_QUOTE(path));
    } else {
        start = strdup("");
        rest = path + 1;
    }
    if (!start || asprintf(&joined, "%s%s%s", start, *rest || !*start ? "/" : "", rest) < 0)
        return pf_fail_nomem(err);
    *ret_path = joined;
    return 0;
}

static bool same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Whether the directory of *outer is fd or one of its ancestors. Returns 1, 0 or -errno. */
static int lies_inside(int fd, const struct stat *outer)
{
    _cleanup_close_ int dir_fd = openat(fd, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    struct stat here, above;
    int next;

    if (dir_fd < 0 || fstat(dir_fd, &here) < 0)
        return -errno;
    while (!same_file(&here, outer)) {
        next = openat(dir_fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (next < 0)
            return -errno;
        close(dir_fd);
        dir_fd = next;
        if (fstat(dir_fd, &above) < 0)
            return -errno;
        if (same_file(&above, &here))
            return 0; /* "/" is its own parent */
        here = above;
    }
    return 1;
}

int pf_roots_relation(int fd_a, int fd_b, enum pf_root_relation *ret, struct pinfold_error *err)
{
    struct stat a, b;
    int r;

    if (fstat(fd_a, &a) < 0 || fstat(fd_b, &b) < 0)
        return pf_fail_os(err, errno, "look at a root directory");
    if (same_file(&a, &b)) {
        *ret = PF_ROOTS_SAME;
        return 0;
    }
    r = lies_inside(fd_a, &b);
    if (r == 0)
        r = lies_inside(fd_b, &a);
    if (r < 0)
        return pf_fail_os(err, -r, "walk up from a root directory");
    *ret = r ? PF_ROOTS_NESTED : PF_ROOTS_APART;
    return 0;
}
