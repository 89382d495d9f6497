/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of the tree room share: a directory of their own, and short ways to fill it. */
#ifndef TESTS_TREE_TMP_H
#define TESTS_TREE_TMP_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "descriptors.h"
#include "tree/file.h"
#include "tree/remove.h"

struct tmp {
    char path[64];
    char name[32];
    int parent_fd, fd;
};

static inline int tmp_setup(void **state)
{
    struct tmp *tmp = calloc(1, sizeof(*tmp));
    const char *base = getenv("TMPDIR");

    assert_non_null(tmp);
    if (!base || strlen(base) > 30)
        base = "/tmp";
    snprintf(tmp->path, sizeof(tmp->path), "%s/pinfold-test-XXXXXX", base);
    assert_non_null(mkdtemp(tmp->path));
    snprintf(tmp->name, sizeof(tmp->name), "%s", strrchr(tmp->path, '/') + 1);
    tmp->parent_fd = open(base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    tmp->fd = open(tmp->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(tmp->parent_fd >= 0 && tmp->fd >= 0);
    *state = tmp;
    return 0;
}

static inline int tmp_teardown(void **state)
{
    struct tmp *tmp = *state;
    struct pinfold_error err = PINFOLD_ERROR_INIT;

    close(tmp->fd);
    if (pf_tree_remove(tmp->parent_fd, tmp->name, &err) < 0)
        fail_msg("%s", err.msg);
    close(tmp->parent_fd);
    free(tmp);
    return 0;
}

static inline void put(int dir_fd, const char *name, const char *content)
{
    int fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

    if (fd < 0)
        fail_msg("%s: %s", name, strerror(errno));
    assert_int_equal(write(fd, content, strlen(content)), strlen(content));
    close(fd);
}

static inline void put_dir(int dir_fd, const char *name)
{
    if (mkdirat(dir_fd, name, 0755) < 0)
        fail_msg("%s: %s", name, strerror(errno));
}

static inline void put_link(int dir_fd, const char *name, const char *target)
{
    if (symlinkat(target, dir_fd, name) < 0)
        fail_msg("%s: %s", name, strerror(errno));
}

/* The content must be this; NULL: there must be no such file. */
static inline void check_file(int dir_fd, const char *name, const char *content)
{
    char data[4096];
    int fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    ssize_t len;

    if (!content) {
        if (fd >= 0)
            fail_msg("%s should not exist", name);
        assert_int_equal(errno, ENOENT);
        return;
    }
    if (fd < 0)
        fail_msg("%s: %s", name, strerror(errno));
    len = read(fd, data, sizeof(data) - 1);
    close(fd);
    assert_true(len >= 0);
    data[len] = '\0';
    assert_string_equal(data, content);
}

static inline mode_t mode_of(int dir_fd, const char *name)
{
    struct stat st;

    assert_int_equal(fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW), 0);
    return st.st_mode & 07777;
}

static inline int sub(int dir_fd, const char *name)
{
    int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0)
        fail_msg("%s: %s", name, strerror(errno));
    return fd;
}

#endif
