/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of proc/ share: a launcher in one of its modes, a directory of its own, and the
 * check that a test leaves no process, no zombie and no descriptor behind. */
#ifndef TESTS_PROC_HARNESS_H
#define TESTS_PROC_HARNESS_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "descriptors.h"
#include "proc/launcher.h"
#include "tempdir.h"

struct fixture {
    struct pf_launcher *launcher;
    struct pf_run_request request;
    struct pinfold_execute_result result;
    struct pinfold_error err;
    char dir[128];
    int dir_fd;
    int descriptors;
};

/* Each test is listed once for each way to start supervisors. */
#define IN_MODE(test, how, mode)                                               \
    {                                                                          \
#test " (" how ")", test, set_up, tear_down, (void *)(uintptr_t)(mode) \
    }
#define IN_BOTH_MODES(test) \
    IN_MODE(test, "direct", PF_LAUNCH_DIRECT), IN_MODE(test, "by the helper", PF_LAUNCH_HELPER)

/* valgrind makes a plain fork of a vfork, so that what a child writes does not reach us, and does
 * not survive an exec that fails late. */
static inline bool under_valgrind(void)
{
    const char *preload = getenv("LD_PRELOAD");

    return preload && strstr(preload, "vgpreload");
}

/* The helper program of this build. */
static inline const char *helper_path(void)
{
    static char path[PATH_MAX];
    char *tests = NULL;
    ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - 32);

    assert_true(len > 0);
    path[len] = '\0';
    for (char *next = strstr(path, "/tests/"); next; next = strstr(next + 1, "/tests/"))
        tests = next;
    assert_non_null(tests);
    strcpy(tests, "/pinfold-launch");
    return path;
}

static inline int set_up(void **state)
{
    enum pf_launch_mode mode = (enum pf_launch_mode)(uintptr_t)*state;
    struct fixture *f = calloc(1, sizeof(*f));

    assert_non_null(f);
    f->descriptors = count_descriptors();
    assert_non_null(test_tempdir("pinfold-proc", f->dir, sizeof(f->dir)));
    f->dir_fd = open(f->dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    assert_true(f->dir_fd >= 0);
    assert_int_equal(pf_launcher_new(&f->launcher, &f->err), 0);
    pf_launcher_force(f->launcher, mode, helper_path());
    f->request = (struct pf_run_request){ .envp = (const char *const *)environ,
                                          .cwd_fd = f->dir_fd,
                                          .timeout_ns = 60 * PF_NS_PER_SEC,
                                          .output_limit = 100000 };
    *state = f;
    return 0;
}

static inline void remove_files(const char *path)
{
    DIR *dir = opendir(path);
    struct dirent *entry;

    assert_non_null(dir);
    while ((entry = readdir(dir)))
        if (entry->d_name[0] != '.')
            unlinkat(dirfd(dir), entry->d_name, 0);
    closedir(dir);
    rmdir(path);
}

static inline int tear_down(void **state)
{
    struct fixture *f = *state;

    pinfold_execute_result_done(&f->result);
    pf_launcher_free(f->launcher);
    close(f->dir_fd);
    remove_files(f->dir);
    assert_int_equal(count_descriptors(), f->descriptors);
    assert_int_equal(waitpid(-1, NULL, WNOHANG | __WALL), -1);
    assert_int_equal(errno, ECHILD);
    free(f);
    return 0;
}

/* Time limits of tests are short where a command shall run into them. */
static inline void limit(struct fixture *f, int64_t ms)
{
    f->request.timeout_ns = ms * PF_NS_PER_MS;
}

/* Run f->request with this command. */
static inline int run(struct fixture *f, const char *command)
{
    pinfold_execute_result_done(&f->result);
    memset(&f->err, 0, sizeof(f->err));
    f->request.command = command;
    f->request.command_len = strlen(command);
    return pf_run(f->launcher, &f->request, &f->result, &f->err);
}

#define assert_run(f, command, code)                     \
    do {                                                 \
        if (run((f), (command)) != 0)                    \
            fail_msg("%s", (f)->err.msg);                \
        assert_int_equal((f)->result.exit_code, (code)); \
    } while (0)

/* A process id that a command wrote into a file of its directory. */
static inline pid_t read_pid(const struct fixture *f, const char *name)
{
    char text[32] = "";

    for (int tries = 0; tries < 500; tries++) {
        int fd = openat(f->dir_fd, name, O_RDONLY | O_CLOEXEC);
        if (fd >= 0) {
            ssize_t len = read(fd, text, sizeof(text) - 1);
            close(fd);
            if (len > 0 && strchr(text, '\n'))
                return (pid_t)strtol(text, NULL, 10);
        }
        usleep(10000);
    }
    fail_msg("no process wrote %s", name);
    return -1;
}

/* Gone, or a zombie that somebody else (init) has not reaped yet. */
static inline bool is_gone(pid_t pid)
{
    char path[64], text[256];
    const char *state;
    ssize_t len;
    int fd;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return true;
    len = read(fd, text, sizeof(text) - 1);
    close(fd);
    if (len <= 0)
        return true;
    text[len] = '\0';
    state = strrchr(text, ')');
    return !state || state[2] == 'Z' || state[2] == 'X';
}

/* How many processes a command wrote into a file of its directory, all of which are gone. */
static inline int count_gone(const struct fixture *f, const char *name)
{
    FILE *pids = fdopen(openat(f->dir_fd, name, O_RDONLY | O_CLOEXEC), "r");
    int pid, count = 0;

    assert_non_null(pids);
    for (; fscanf(pids, "%d", &pid) == 1; count++)
        assert_true(is_gone(pid));
    fclose(pids);
    return count;
}

/* Daemons that start each other, so many deep, until a timeout kills them. */
static inline void assert_chain_is_killed(struct fixture *f, int depth)
{
    char command[200];

    snprintf(command, sizeof(command),
             "cat >deep <<'END'\n"
             "[ \"$1\" -gt 0 ] || { echo $$ >bottom; exec sleep 50; }\n"
             "trap '' TERM; setsid sh ./deep $(($1 - 1)); exit\n"
             "END\n"
             "sh ./deep %d",
             depth);
    assert_run(f, command, 124);
    assert_true(is_gone(read_pid(f, "bottom")));
}

static inline bool comes_to_be_gone(pid_t pid)
{
    for (int tries = 0; tries < 1000; tries++) {
        if (is_gone(pid))
            return true;
        usleep(10000);
    }
    return false;
}

#endif
