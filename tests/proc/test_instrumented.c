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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(there_is_no_keeper),
    };

    return cmocka_run_group_tests_name("instrumented", tests, NULL, NULL);
}
