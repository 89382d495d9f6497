/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels without CONFIG_PROC_CHILDREN list nobody's children: supervisors find what to kill all
 * the same. Here the lists are hidden from the host and its supervisors. */
#include "harness.h"

#include <stdatomic.h>
#include <sys/mman.h>

#include "proc/super.h"

static atomic_int *hidden; /* how often one was asked for; shared with supervisors */

int __real_open64(const char *path, int flags, mode_t mode);
int __wrap_open64(const char *path, int flags, mode_t mode)
{
    const char *name = strrchr(path, '/');

    if (strncmp(path, "/proc/", 6) != 0 || strcmp(name, "/children") != 0)
        return __real_open64(path, flags, mode);
    atomic_fetch_add(hidden, 1);
    errno = ENOENT;
    return -1;
}

static int set_up_unlisted(void **state)
{
    atomic_store(hidden, 0);
    return set_up(state);
}

static int tear_down_unlisted(void **state)
{
    int asked = atomic_load(hidden);
    int r = tear_down(state);

    return asked > 0 ? r : -1;
}

/* A child, and one of its own, that wait until somebody closes the pipe. */
static pid_t fork_two(const int wait[2])
{
    int ready[2];
    char byte;
    pid_t pid;

    assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        close(wait[1]);
        fork();
        _exit(write(ready[1], "", 1) == 1 && read(wait[0], &byte, 1) == 0 ? 0 : 1);
    }
    for (int i = 0; i < 2; i++)
        assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    close(ready[1]);
    return pid;
}

static void children_are_told_from_other_processes(void **state)
{
    pid_t pids[8] = { 0 }, one, two;
    int wait[2], status;

    (void)state;
    assert_int_equal(pipe2(wait, O_CLOEXEC), 0);
    assert_int_equal(pf_children(pids, PF_COUNT(pids), true), 0);
    one = fork_two(wait);
    two = fork_two(wait);
    assert_int_equal(pf_children(pids, PF_COUNT(pids), true), 2);
    assert_true((pids[0] == one && pids[1] == two) || (pids[0] == two && pids[1] == one));
    assert_int_equal(pf_children(pids, 1, true), 1); /* no more than there is room for */
    close(wait[1]);
    assert_int_equal(waitpid(one, &status, 0), one);
    assert_int_equal(status, 0);
    assert_int_equal(waitpid(two, &status, 0), two);
    assert_int_equal(status, 0);
    close(wait[0]);
}

static void daemons_under_misleading_names_are_killed(void **state)
{
    struct fixture *f = *state;

    limit(f, 300);
    /* Names that read as the rest of the line in which the kernel tells who the parent is. */
    assert_run(f,
               "for name in 'a) S 1' ') R 99999 (' '(((' ')))'; do\n"
               "setsid sh -c 'printf %s \"$1\" >/proc/$$/comm; trap \"\" TERM;"
               " echo $$ >>pids; while :; do sleep 50; done' - \"$name\" &\n"
               "done; sleep 50",
               124);
    assert_int_equal(count_gone(f, "pids"), 4);
}

static void a_chain_of_daemons_is_killed(void **state)
{
    struct fixture *f = *state;

    limit(f, 500);
    assert_chain_is_killed(f, 10);
}

static void what_goes_on_is_counted_and_ends_with_the_launcher(void **state)
{
    struct fixture *f = *state;

    assert_run(f, "setsid sh -c 'echo $$ >pid; exec sleep 50' >/dev/null 2>&1 & sleep 0.1", 0);
    assert_int_equal(f->result.background, 1);
    assert_false(is_gone(read_pid(f, "pid")));
    pf_launcher_stop(f->launcher);
    assert_true(is_gone(read_pid(f, "pid")));
}

#define UNLISTED(test)                                                                        \
    {                                                                                         \
#test, test, set_up_unlisted, tear_down_unlisted, (void *)(uintptr_t)PF_LAUNCH_DIRECT \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNLISTED(children_are_told_from_other_processes),
        UNLISTED(daemons_under_misleading_names_are_killed),
        UNLISTED(a_chain_of_daemons_is_killed),
        UNLISTED(what_goes_on_is_counted_and_ends_with_the_launcher),
    };

    hidden = mmap(NULL, sizeof(*hidden), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return hidden == MAP_FAILED ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
