/* SPDX-License-Identifier: Apache-2.0 */
/* How much a workspace may hold, without commands: those are in tests/cli/test_limits.py. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "backend/quota.h"
#include "base/clock.h"
#include "proc/launcher.h"
#include "tempdir.h"
#include "tree/usage.h"

#define MIB (1 << 20)

struct fixture {
    char dir[128];
    int fd;
    struct pf_launcher *launcher;
    struct pf_quota quota;
    struct pinfold_error err;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    assert_non_null(f);
    assert_non_null(test_tempdir("pinfold-quota", f->dir, sizeof(f->dir)));
    f->fd = open(f->dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    assert_true(f->fd >= 0);
    assert_int_equal(pf_launcher_new(&f->launcher, NULL), 0);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    char command[256];

    pf_quota_done(&f->quota);
    pf_quota_done(&f->quota); /* once more does nothing */
    pf_launcher_free(f->launcher);
    close(f->fd);
    snprintf(command, sizeof(command), "rm -rf '%s'", f->dir);
    assert_int_equal(system(command), 0);
    free(f);
    return 0;
}

static void begin(struct fixture *f, uint64_t workspace_bytes)
{
    assert_int_equal(pf_quota_init(&f->quota, f->fd, workspace_bytes, &f->err), 0);
    f->quota.launcher = f->launcher;
}

static void write_mib(const struct fixture *f, const char *name, int count)
{
    static char block[MIB];
    int fd = openat(f->fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    memset(block, 1, sizeof(block));
    assert_true(fd >= 0);
    while (count-- > 0)
        assert_int_equal(write(fd, block, sizeof(block)), sizeof(block));
    close(fd);
}

static uint64_t usage(const struct fixture *f)
{
    uint64_t bytes = 0;

    assert_int_equal(pf_tree_usage(f->fd, PINFOLD_UNLIMITED, &bytes, NULL), 0);
    return bytes;
}

static void usage_counts_blocks_once_and_each_name(void **state)
{
    struct fixture *f = *state;
    int sparse;

    assert_int_equal(usage(f), 0);
    write_mib(f, "a", 3);
    assert_int_equal(mkdirat(f->fd, "d", 0700), 0);
    assert_in_range(usage(f), 3 * MIB, 3 * MIB + 64 * 1024);
    assert_int_equal(linkat(f->fd, "a", f->fd, "d/b", 0), 0); /* the same blocks */
    assert_in_range(usage(f), 3 * MIB, 3 * MIB + 64 * 1024);
    sparse = openat(f->fd, "d/sparse", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(ftruncate(sparse, 1LL << 40), 0);
    close(sparse);
    assert_in_range(usage(f), 3 * MIB, 3 * MIB + 64 * 1024);
    for (int i = 0; i < 100; i++) {
        char name[16];
        snprintf(name, sizeof(name), "l%d", i);
        assert_int_equal(symlinkat("x", f->fd, name), 0);
    }
    assert_in_range(usage(f), 3 * MIB + 100 * PF_USAGE_PER_ENTRY, 4 * MIB);
}

static void usage_stops_when_there_is_enough(void **state)
{
    struct fixture *f = *state;
    uint64_t bytes = 0;

    for (int i = 0; i < 50; i++) {
        char name[16];
        snprintf(name, sizeof(name), "l%d", i);
        assert_int_equal(symlinkat("x", f->fd, name), 0);
    }
    assert_int_equal(pf_tree_usage(f->fd, 10 * PF_USAGE_PER_ENTRY, &bytes, NULL), 0);
    assert_int_equal(bytes, 11 * PF_USAGE_PER_ENTRY);
}

static void by_default_space_is_kept_free_and_nothing_else_is_asked(void **state)
{
    enum pinfold_holder holders[PINFOLD_LIMIT_COUNT] = { 0 };
    struct fixture *f = *state;

    begin(f, 0);
    pf_quota_hold(&f->quota, holders);
    assert_int_equal(holders[PINFOLD_LIMIT_WORKSPACE], PINFOLD_HOLDER_NONE);
    assert_int_equal(holders[PINFOLD_LIMIT_DISK], PINFOLD_HOLDER_OWNER);
    assert_true(f->quota.reserve_bytes <= 1 << 30);
    assert_int_equal(pf_quota_admit(&f->quota, 100, &f->err), 0);
}

static void unlimited_looks_after_nothing(void **state)
{
    enum pinfold_holder holders[PINFOLD_LIMIT_COUNT] = { 0 };
    struct pf_run_request request = { 0 };
    struct fixture *f = *state;

    begin(f, PINFOLD_UNLIMITED);
    pf_quota_hold(&f->quota, holders);
    assert_int_equal(holders[PINFOLD_LIMIT_DISK], PINFOLD_HOLDER_NONE);
    pf_quota_attach(&f->quota, &request);
    assert_null(request.on_slow);
    assert_int_equal(pf_quota_detach(&f->quota, &request, true), PINFOLD_LIMIT_NONE);
    assert_int_equal(pf_quota_admit(&f->quota, UINT64_MAX / 2, &f->err), 0);
}

static void more_than_fits_is_not_written(void **state)
{
    struct fixture *f = *state;

    begin(f, 4 * MIB);
    assert_int_equal(pf_quota_admit(&f->quota, 3 * MIB, &f->err), 0);
    f->quota.next_sum = PF_NEVER; /* too soon to add up: what was admitted is remembered */
    assert_int_equal(pf_quota_admit(&f->quota, 2 * MIB, &f->err), -PINFOLD_EOS);
    assert_int_equal(f->err.sys_errno, EDQUOT);
    assert_non_null(strstr(f->err.msg, "4194304"));
    f->quota.next_sum = 0;
    assert_int_equal(pf_quota_admit(&f->quota, 2 * MIB, &f->err), 0);
}

static void a_full_disk_admits_nothing(void **state)
{
    struct fixture *f = *state;

    begin(f, 0);
    f->quota.reserve_bytes = PINFOLD_UNLIMITED;
    assert_int_equal(pf_quota_admit(&f->quota, 1, &f->err), -PINFOLD_EOS);
    assert_int_equal(f->err.sys_errno, ENOSPC);
}

static void commands_start_a_little_beyond_the_limit(void **state)
{
    struct fixture *f = *state;

    begin(f, 8 * MIB);
    write_mib(f, "a", 8);
    assert_int_equal(mkdirat(f->fd, "d", 0700), 0);
    assert_int_equal(pf_quota_admit(&f->quota, 1, &f->err), -PINFOLD_EOS); /* looks */
    assert_int_equal(f->quota.over, PINFOLD_LIMIT_WORKSPACE);
    f->quota.next_sum = 0;
    assert_int_equal(pf_quota_admit(&f->quota, 0, &f->err), 0);
    write_mib(f, "b", 2);
    f->quota.next_sum = 0;
    assert_int_equal(pf_quota_admit(&f->quota, 0, &f->err), -PINFOLD_EOS);
    assert_int_equal(unlinkat(f->fd, "a", 0), 0);
    f->quota.next_sum = 0;
    assert_int_equal(pf_quota_admit(&f->quota, 0, &f->err), 0);
    assert_int_equal(f->quota.over, PINFOLD_LIMIT_NONE);
}

static void what_was_deleted_counts_at_once(void **state)
{
    struct fixture *f = *state;

    begin(f, 4 * MIB);
    write_mib(f, "a", 8);
    assert_int_equal(pf_quota_admit(&f->quota, 1, &f->err), -PINFOLD_EOS);
    assert_int_equal(unlinkat(f->fd, "a", 0), 0);
    f->quota.next_sum = PF_NEVER;
    assert_int_equal(pf_quota_admit(&f->quota, 0, &f->err), -PINFOLD_EOS); /* not told */
    pf_quota_shrunk(&f->quota);
    assert_int_equal(pf_quota_admit(&f->quota, 0, &f->err), 0);
    assert_int_equal(f->quota.over, PINFOLD_LIMIT_NONE);
    /* With room to spare nothing is added up for it. */
    f->quota.next_sum = PF_NEVER;
    pf_quota_shrunk(&f->quota);
    assert_int_equal(f->quota.next_sum, PF_NEVER);
}

static void a_seed_that_is_too_large_is_an_error(void **state)
{
    struct fixture *f = *state;

    begin(f, 2 * MIB);
    write_mib(f, "a", 1);
    assert_int_equal(pf_quota_seeded(&f->quota, &f->err), 0);
    write_mib(f, "b", 2);
    assert_int_equal(pf_quota_seeded(&f->quota, &f->err), -PINFOLD_EOS);
    assert_int_equal(f->err.sys_errno, EDQUOT);
}

static bool comes_to_kill(const struct fixture *f)
{
    for (int tries = 0; tries < 1000 && f->quota.kills == 0; tries++)
        usleep(10000);
    return f->quota.kills > 0;
}

static void what_grows_beyond_the_limit_is_killed(void **state)
{
    struct pf_run_request request = { 0 };
    struct fixture *f = *state;

    begin(f, 2 * MIB);
    pf_quota_attach(&f->quota, &request);
    assert_true(request.slow_ns > 0);
    request.on_slow(request.on_slow_ctx);
    write_mib(f, "a", 3);
    assert_true(comes_to_kill(f));
    assert_int_equal(pf_quota_detach(&f->quota, &request, false), PINFOLD_LIMIT_WORKSPACE);
    for (int tries = 0; tries < 1000 && f->quota.awake; tries++)
        usleep(10000);
    assert_false(f->quota.awake); /* nothing runs any more */
    pf_quota_attach(&f->quota, &request);
    assert_int_equal(request.slow_ns, 0); /* looked after from the start */
    assert_int_equal(pf_quota_detach(&f->quota, &request, false), PINFOLD_LIMIT_NONE);
}

static void what_runs_on_is_looked_after_and_killed(void **state)
{
    static const char *const none[] = { NULL };
    const char *command = "sleep 1000 >/dev/null 2>&1 &";
    struct pf_run_request request = { .command = command,
                                      .command_len = strlen(command),
                                      .envp = none,
                                      .timeout_ns = PF_NEVER,
                                      .cwd_fd = -1,
                                      .cwd_path = "/" };
    struct pinfold_execute_result result;
    struct fixture *f = *state;

    begin(f, 2 * MIB);
    pf_quota_attach(&f->quota, &request);
    assert_int_equal(pf_run(f->launcher, &request, &result, NULL), 0);
    assert_int_equal(result.background, 1);
    pinfold_execute_result_done(&result);
    assert_int_equal(pf_quota_detach(&f->quota, &request, true), PINFOLD_LIMIT_NONE);
    write_mib(f, "a", 3);
    assert_true(comes_to_kill(f));
    for (int tries = 0; tries < 1000 && pf_launcher_count(f->launcher) > 0; tries++)
        usleep(10000);
    assert_int_equal(pf_launcher_count(f->launcher), 0);
}

static void a_fork_does_not_wait_for_the_thread(void **state)
{
    struct pf_run_request request = { 0 };
    struct fixture *f = *state;
    int status;
    pid_t pid;

    begin(f, 2 * MIB);
    pf_quota_attach(&f->quota, &request);
    request.on_slow(request.on_slow_ctx);
    pid = fork();
    if (pid == 0) {
        alarm(30);
        pf_quota_done(&f->quota);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

#define IN_DIR(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_DIR(usage_counts_blocks_once_and_each_name),
        IN_DIR(usage_stops_when_there_is_enough),
        IN_DIR(by_default_space_is_kept_free_and_nothing_else_is_asked),
        IN_DIR(unlimited_looks_after_nothing),
        IN_DIR(more_than_fits_is_not_written),
        IN_DIR(a_full_disk_admits_nothing),
        IN_DIR(commands_start_a_little_beyond_the_limit),
        IN_DIR(what_was_deleted_counts_at_once),
        IN_DIR(a_seed_that_is_too_large_is_an_error),
        IN_DIR(what_grows_beyond_the_limit_is_killed),
        IN_DIR(what_runs_on_is_looked_after_and_killed),
        IN_DIR(a_fork_does_not_wait_for_the_thread),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
