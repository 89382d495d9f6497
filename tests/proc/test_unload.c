/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A host that loads the library for a while, as a plugin may: the keeper runs in the library's
 * code, and must find it there when the host has closed it. The library is the argument.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <errno.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "keeper.h"
#include "tempdir.h"

struct pinfold_temp_workspace;
struct pinfold_error;
typedef int (*make_function)(struct pinfold_temp_workspace **, struct pinfold_error *);

static const char *library;

static void use_and_close(void) __attribute__((noreturn));
static void use_and_close(void)
{
    void *loaded = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    void *found = loaded ? dlsym(loaded, "pinfold_temp_workspace_new") : NULL;
    struct pinfold_temp_workspace *workspace;
    make_function make;

    memcpy(&make, &found, sizeof(make));
    if (!make || make(&workspace, NULL) < 0 || keeper_of(getpid()) == 0 || dlclose(loaded) != 0)
        _exit(90);
    raise(SIGKILL);
    _exit(91);
}

static void a_host_that_has_closed_the_library_leaves_nothing(void **state)
{
    char path[128];
    pid_t owner, ended;
    int status;

    (void)state;
    assert_non_null(test_tempdir("pinfold-unload", path, sizeof(path)));
    assert_int_equal(setenv("TMPDIR", path, 1), 0);
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0);
    owner = fork();
    if (owner == 0)
        use_and_close();
    while ((ended = waitpid(-1, &status, __WALL)) > 0)
        assert_int_equal(status, ended == owner ? SIGKILL : 0);
    assert_int_equal(errno, ECHILD);
    assert_int_equal(rmdir(path), 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_host_that_has_closed_the_library_leaves_nothing),
    };

    library = argc > 1 ? argv[1] : "libpinfold.so.0";
    return cmocka_run_group_tests_name("unload", tests, NULL, NULL);
}
