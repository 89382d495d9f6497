/* SPDX-License-Identifier: Apache-2.0 */
/* Control groups in a directory of the test's own: which files are written, and what is read from
 * them. What the kernel makes of it is tested where it lets us make groups. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "jail/limits.h"
#include "tempdir.h"

struct fixture {
    char dir[128], self[160];
    struct pf_cgroup_place place;
    struct pinfold_limits limits;
    struct pf_cgroup cgroup;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    assert_non_null(f);
    assert_non_null(test_tempdir("pinfold-cgroup", f->dir, sizeof(f->dir)));
    snprintf(f->self, sizeof(f->self), "%s/self", f->dir);
    f->place = (struct pf_cgroup_place){ f->dir, f->self, O_CREAT };
    f->limits = (struct pinfold_limits){ .memory_bytes = 1 << 20, .processes = 7, .cpus = 1.5 };
    f->cgroup = (struct pf_cgroup)PF_CGROUP_INIT;
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    char command[256];

    pf_cgroup_done(&f->cgroup);
    snprintf(command, sizeof(command), "rm -rf '%s'", f->dir);
    assert_int_equal(system(command), 0);
    free(f);
    return 0;
}

static void make_dir(const struct fixture *f, const char *name)
{
    char path[256];

    snprintf(path, sizeof(path), "%s/%s", f->dir, name);
    assert_int_equal(mkdir(path, 0700), 0);
}

static void put_file(const char *dir, const char *name, const char *text)
{
    char path[512];

    snprintf(path, sizeof(path), "%s/%s", dir, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void assert_file(const char *dir, const char *name, const char *text)
{
    char path[512], found[128] = "";

    snprintf(path, sizeof(path), "%s/%s", dir, name);
    FILE *file = fopen(path, "r");
    if (!file)
        fail_msg("%s: %s", path, strerror(errno));
    found[fread(found, 1, sizeof(found) - 1, file)] = '\0';
    fclose(file);
    assert_string_equal(found, text);
}

static int count_groups(const struct fixture *f, const char *parent)
{
    char path[256];
    struct dirent *entry;
    int count = 0;

    snprintf(path, sizeof(path), "%s/%s", f->dir, parent);
    DIR *dir = opendir(path);
    assert_non_null(dir);
    while ((entry = readdir(dir)))
        count += strncmp(entry->d_name, "pinfold-", 8) == 0;
    closedir(dir);
    return count;
}

/* A machine with version 2, where we are in user/session. */
static void be_in_session(const struct fixture *f)
{
    put_file(f->dir, "self", "0::/user/session\n");
    put_file(f->dir, "cgroup.controllers", "cpu memory pids\n");
    make_dir(f, "user");
    make_dir(f, "user/session");
}

static void version_2_is_one_group_beside_our_own(void **state)
{
    struct fixture *f = *state;
    int entries[PF_CGROUP_MAX];

    be_in_session(f);
    pf_cgroup_make(&f->place, &f->limits, &f->cgroup);
    assert_int_equal(f->cgroup.holder, PINFOLD_HOLDER_CGROUP2);
    assert_true(f->cgroup.limits_memory && f->cgroup.limits_processes && f->cgroup.limits_cpu);
    assert_non_null(strstr(f->cgroup.dirs[0], "/user/pinfold-"));
    assert_null(f->cgroup.dirs[1]);
    assert_file(f->cgroup.dirs[0], "memory.max", "1048576");
    assert_file(f->cgroup.dirs[0], "memory.swap.max", "0");
    assert_file(f->cgroup.dirs[0], "pids.max", "7");
    assert_file(f->cgroup.dirs[0], "cpu.max", "150000 100000");
    put_file(f->cgroup.dirs[0], "cgroup.procs", "");
    assert_int_equal(pf_cgroup_entries(&f->cgroup, entries), 1);
    assert_int_equal(write(entries[0], "0", 1), 1);
    close(entries[0]);
    assert_file(f->cgroup.dirs[0], "cgroup.procs", "0");
}

static void what_has_no_limit_is_not_written(void **state)
{
    struct fixture *f = *state;
    char path[512];

    be_in_session(f);
    f->limits = (struct pinfold_limits){ .memory_bytes = PINFOLD_UNLIMITED, .processes = 7 };
    pf_cgroup_make(&f->place, &f->limits, &f->cgroup);
    assert_false(f->cgroup.limits_cpu);
    for (size_t i = 0; i < 3; i++) {
        static const char *const names[] = { "memory.max", "memory.swap.max", "cpu.max" };
        snprintf(path, sizeof(path), "%s/%s", f->cgroup.dirs[0], names[i]);
        assert_int_equal(access(path, F_OK), -1);
    }
}

static void version_1_is_a_group_in_each_hierarchy(void **state)
{
    struct fixture *f = *state;

    put_file(f->dir, "self", "4:memory:/deep/down\n3:cpu,cpuacct:/\n2:pids:/\n0::/user/session\n");
    make_dir(f, "pids");
    make_dir(f, "cpu"); /* where it is with cpuacct, this is a link */
    make_dir(f, "memory");
    make_dir(f, "memory/deep");
    make_dir(f, "memory/deep/down");
    pf_cgroup_make(&f->place, &f->limits, &f->cgroup);
    assert_int_equal(f->cgroup.holder, PINFOLD_HOLDER_CGROUP1);
    assert_true(f->cgroup.limits_memory && f->cgroup.limits_processes && f->cgroup.limits_cpu);
    assert_non_null(strstr(f->cgroup.dirs[0], "/pids/"));
    assert_file(f->cgroup.dirs[0], "pids.max", "7");
    assert_non_null(strstr(f->cgroup.dirs[1], "/memory/deep/down/pinfold-"));
    assert_file(f->cgroup.dirs[1], "memory.limit_in_bytes", "1048576");
    assert_file(f->cgroup.dirs[1], "memory.memsw.limit_in_bytes", "1048576");
    assert_file(f->cgroup.dirs[2], "cpu.cfs_period_us", "100000");
    assert_file(f->cgroup.dirs[2], "cpu.cfs_quota_us", "150000");
}

static void a_controller_that_is_not_there_limits_nothing(void **state)
{
    struct fixture *f = *state;

    put_file(f->dir, "self", "2:pids:/\n1:cpuset:/\n");
    make_dir(f, "pids");
    pf_cgroup_make(&f->place, &f->limits, &f->cgroup);
    assert_true(f->cgroup.limits_processes);
    assert_false(f->cgroup.limits_memory || f->cgroup.limits_cpu);
    assert_null(f->cgroup.dirs[1]);
}

static void a_group_that_takes_no_limit_is_removed(void **state)
{
    struct fixture *f = *state;

    be_in_session(f);
    f->place.create = 0; /* as where no controller is delegated: the files are not there */
    pf_cgroup_make(&f->place, &f->limits, &f->cgroup);
    assert_int_equal(f->cgroup.holder, PINFOLD_HOLDER_NONE);
    assert_int_equal(count_groups(f, "user"), 0);
}

static void groups_of_dead_owners_are_removed(void **state)
{
    struct fixture *f = *state;
    struct stat here;
    char name[64];
    pid_t pid = fork();

    if (pid == 0)
        _exit(0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_int_equal(stat("/proc/self/ns/pid", &here), 0);
    be_in_session(f);
    snprintf(name, sizeof(name), "user/pinfold-%d-%lu-00000000", (int)pid, here.st_ino);
    make_dir(f, name);
    /* Of one that lives, of one elsewhere, of which nobody knows whether it does, and of others. */
    snprintf(name, sizeof(name), "user/pinfold-%d-%lu-00000000", (int)getpid(), here.st_ino);
    make_dir(f, name);
    snprintf(name, sizeof(name), "user/pinfold-%d-%lu-00000000", (int)pid, here.st_ino + 1);
    make_dir(f, name);
    snprintf(name, sizeof(name), "user/pinfold-%d-%lu", (int)pid, here.st_ino);
    make_dir(f, name);
    pf_cgroup_make(&f->place, &f->limits, &f->cgroup);
    assert_int_equal(count_groups(f, "user"), 4);
}

/* As a group is from whose last process somebody has just been told that it ended. */
static void a_group_that_is_busy_for_a_moment_is_waited_for(void **state)
{
    struct fixture *f = *state;
    char path[512], empty[540];
    int status;
    pid_t pid;

    be_in_session(f);
    pf_cgroup_make(&f->place, &f->limits, &f->cgroup);
    snprintf(path, sizeof(path), "%s", f->cgroup.dirs[0]);
    snprintf(empty, sizeof(empty), "rm %s/*", path); /* as the kernel's are */
    assert_int_equal(system(empty), 0);
    pid = fork();
    if (pid == 0) {
        if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0 || mount("none", path, "tmpfs", 0, NULL) < 0 ||
            rmdir(path) == 0 || errno != EBUSY)
            _exit(2);
        pid = fork();
        if (pid == 0) {
            poll(NULL, 0, 50);
            _exit(umount2(path, MNT_DETACH));
        }
        pf_cgroup_done(&f->cgroup);
        _exit(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0 ? 0 : 3);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(errno, ENOENT);
}

static void a_group_that_cannot_be_entered_is_an_error(void **state)
{
    struct fixture *f = *state;
    int entries[PF_CGROUP_MAX];

    be_in_session(f);
    pf_cgroup_make(&f->place, &f->limits, &f->cgroup);
    assert_int_equal(pf_cgroup_entries(&f->cgroup, entries), -ENOENT);
}

static void what_the_kernel_counts_is_read(void **state)
{
    struct fixture *f = *state;
    struct pf_cgroup_counts counts;

    be_in_session(f);
    pf_cgroup_make(&f->place, &f->limits, &f->cgroup);
    pf_cgroup_count(&f->cgroup, true, &counts);
    assert_int_equal(counts.memory_kills + counts.refused_forks + counts.peak_bytes, 0);
    put_file(f->cgroup.dirs[0], "memory.events",
             "low 0\nhigh 0\nmax 12\noom 3\noom_kill 2\noom_group_kill 9\n");
    put_file(f->cgroup.dirs[0], "memory.peak", "123456789012\n");
    put_file(f->cgroup.dirs[0], "pids.events", "max 41\n");
    snprintf(f->self, sizeof(f->self), "%s/memory.events", f->cgroup.dirs[0]);
    f->cgroup.memory_events = open(f->self, O_RDONLY | O_CLOEXEC);
    snprintf(f->self, sizeof(f->self), "%s/memory.peak", f->cgroup.dirs[0]);
    f->cgroup.memory_peak = open(f->self, O_RDONLY | O_CLOEXEC);
    pf_cgroup_count(&f->cgroup, true, &counts);
    assert_int_equal(counts.memory_kills, 2);
    assert_int_equal(counts.refused_forks, 41);
    assert_true(counts.peak_bytes == 123456789012);
    put_file(f->cgroup.dirs[0], "memory.events",
             "oom_kill_disable 0\nunder_oom 1\noom_kill 5\n"); /* as version 1 has it */
    pf_cgroup_count(&f->cgroup, false, &counts);
    assert_int_equal(counts.memory_kills, 5);
    assert_int_equal(counts.refused_forks, 0);
}

/* ---- what holds a limit ---- */

static void defaults_leave_memory_to_processes(void **state)
{
    struct pinfold_limits limits = { 0 };

    (void)state;
    pf_limits_resolve(&limits);
    assert_true(limits.memory_bytes == 4ULL << 30 && limits.tmp_bytes == 1ULL << 30);
    assert_true(limits.processes == 1024 && limits.cpu_seconds == PINFOLD_UNLIMITED);
    limits = (struct pinfold_limits){ .memory_bytes = 400 << 20 };
    pf_limits_resolve(&limits);
    assert_true(limits.tmp_bytes == 100 << 20);
    limits = (struct pinfold_limits){ .memory_bytes = 1 << 20, .tmp_bytes = 5 << 20 };
    pf_limits_resolve(&limits);
    assert_true(limits.tmp_bytes == 5 << 20);
    limits = (struct pinfold_limits){ .memory_bytes = PINFOLD_UNLIMITED };
    pf_limits_resolve(&limits);
    assert_true(limits.tmp_bytes == 1ULL << 30);
}

static void without_groups_processes_are_held_by_other_means(void **state)
{
    enum pinfold_holder holders[PINFOLD_LIMIT_COUNT] = { 0 };
    struct pf_cgroup none = PF_CGROUP_INIT;
    struct pinfold_limits limits = { .cpu_seconds = 5 };

    (void)state;
    pf_limits_resolve(&limits);
    if (geteuid() != 0 || pf_limits_have_pid_max())
        assert_int_equal(pf_limits_hold(&limits, &none, holders, NULL), 0);
    else
        assert_int_equal(pf_limits_hold(&limits, &none, holders, NULL), -PINFOLD_ENOTSUP);
    if (geteuid() != 0)
        assert_int_equal(holders[PINFOLD_LIMIT_PROCESSES], PINFOLD_HOLDER_RLIMIT);
    else if (pf_limits_have_pid_max())
        assert_int_equal(holders[PINFOLD_LIMIT_PROCESSES], PINFOLD_HOLDER_PID_MAX);
    assert_int_equal(holders[PINFOLD_LIMIT_MEMORY], PINFOLD_HOLDER_RLIMIT);
    assert_int_equal(holders[PINFOLD_LIMIT_CPU_TIME], PINFOLD_HOLDER_RLIMIT);
    assert_int_equal(holders[PINFOLD_LIMIT_FILE_SIZE], PINFOLD_HOLDER_NONE);
    assert_int_equal(holders[PINFOLD_LIMIT_TMP_SIZE], PINFOLD_HOLDER_TMPFS);
}

static void processors_that_nothing_would_hold_are_refused(void **state)
{
    enum pinfold_holder holders[PINFOLD_LIMIT_COUNT] = { 0 };
    struct pinfold_limits limits = { .cpus = 2, .processes = PINFOLD_UNLIMITED };
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    struct pf_cgroup none = PF_CGROUP_INIT;

    (void)state;
    pf_limits_resolve(&limits);
    assert_int_equal(pf_limits_hold(&limits, &none, holders, &err), -PINFOLD_ENOTSUP);
    assert_non_null(strstr(err.msg, "2 processors"));
    none.holder = PINFOLD_HOLDER_CGROUP2;
    none.limits_cpu = true;
    assert_int_equal(pf_limits_hold(&limits, &none, holders, &err), 0);
    assert_int_equal(holders[PINFOLD_LIMIT_CPU_SHARE], PINFOLD_HOLDER_CGROUP2);
    assert_int_equal(holders[PINFOLD_LIMIT_PROCESSES], PINFOLD_HOLDER_NONE);
}

#define IN_DIR(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_DIR(version_2_is_one_group_beside_our_own),
        IN_DIR(what_has_no_limit_is_not_written),
        IN_DIR(version_1_is_a_group_in_each_hierarchy),
        IN_DIR(a_controller_that_is_not_there_limits_nothing),
        IN_DIR(a_group_that_takes_no_limit_is_removed),
        IN_DIR(groups_of_dead_owners_are_removed),
        IN_DIR(a_group_that_is_busy_for_a_moment_is_waited_for),
        IN_DIR(a_group_that_cannot_be_entered_is_an_error),
        IN_DIR(what_the_kernel_counts_is_read),
        cmocka_unit_test(defaults_leave_memory_to_processes),
        cmocka_unit_test(without_groups_processes_are_held_by_other_means),
        cmocka_unit_test(processors_that_nothing_would_hold_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
