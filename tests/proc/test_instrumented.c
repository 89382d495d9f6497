/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that looks like one with ThreadSanitizer, which knows forks and threads and nothing
 * between them: there is no keeper in it, and no harm without one.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

#include <pinfold/temp_workspace.h>

#include "tempdir.h"

#ifndef __SANITIZE_THREAD__
void __tsan_init(void);
void __tsan_init(void)
{
}
#endif

static void there_is_no_keeper(void **state)
{
    struct pinfold_temp_workspace *workspace;
    char path[128];

    (void)state;
    assert_non_null(test_tempdir("pinfold-instrumented", path, sizeof(path)));
    assert_int_equal(setenv("TMPDIR", path, 1), 0);
    assert_int_equal(pinfold_temp_workspace_new(&workspace, NULL), 0);
    assert_int_equal(waitpid(-1, NULL, WNOHANG | __WALL), -1);
    assert_int_equal(errno, ECHILD);
    assert_int_equal(pinfold_temp_workspace_free(workspace, NULL), 0);
    assert_int_equal(rmdir(path), 0);
}

static const char *first_tmpdir;
static atomic_bool stop;

static bool make_and_free(void)
{
    struct pinfold_temp_workspace *workspace;

    return pinfold_temp_workspace_new(&workspace, NULL) == 0 &&
           pinfold_temp_workspace_free(workspace, NULL) == 0;
}

static void *go_on(void *arg)
{
    while (!stop)
        if (!make_and_free())
            return arg;
    return NULL;
}

/* What protects the list of what is kept is free in a fork, whatever other threads had under way.
 */
static void a_fork_finds_no_lock_taken(void **state)
{
    enum { THREADS = 4, FORKS = 300 };
    pthread_t threads[THREADS];
    char path[128];
    void *failed;
    int status;

    assert_int_equal(setenv("TMPDIR", first_tmpdir, 1), 0);
    assert_non_null(test_tempdir("pinfold-instrumented", path, sizeof(path)));
    assert_int_equal(setenv("TMPDIR", path, 1), 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, go_on, state), 0);
    for (int i = 0; i < FORKS; i++) {
        pid_t child = fork();
        if (child == 0) {
            alarm(60);
            _exit(!make_and_free());
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
    }
    stop = true;
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], &failed), 0);
        assert_null(failed);
    }
    assert_int_equal(rmdir(path), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(there_is_no_keeper),
        cmocka_unit_test(a_fork_finds_no_lock_taken),
    };

    first_tmpdir = getenv("TMPDIR") ? strdup(getenv("TMPDIR")) : "/tmp";
    return cmocka_run_group_tests_name("instrumented", tests, NULL, NULL);
}
