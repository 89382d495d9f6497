/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the end of an owner leaves, whichever it is, and what the owner sees of its keeper. Owners
 * are forks of this program; it adopts their orphans, and so can wait until all is over.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>

#include <pinfold/temp_workspace.h>

#include "descriptors.h"
#include "keeper.h"
#include "proc/keeper.h"
#include "tempdir.h"

static const char *first_tmpdir;

struct place {
    char path[128];
    int told[2], go[2]; /* what an owner says, and what it waits for */
};

static int set_up(void **state)
{
    struct place *place = calloc(1, sizeof(*place));

    assert_non_null(place);
    assert_int_equal(setenv("TMPDIR", first_tmpdir, 1), 0);
    assert_non_null(test_tempdir("pinfold-keeper", place->path, sizeof(place->path)));
    assert_int_equal(setenv("TMPDIR", place->path, 1), 0);
    assert_int_equal(pipe2(place->told, O_CLOEXEC), 0);
    assert_int_equal(pipe2(place->go, O_CLOEXEC), 0);
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0);
    *state = place;
    return 0;
}

/* Every process that was started here, and nobody else. */
static void wait_for_all(void)
{
    while (waitpid(-1, NULL, __WALL) > 0 || errno == EINTR) {
    }
}

static int tear_down(void **state)
{
    struct place *place = *state;

    for (int i = 0; i < 2; i++) {
        close(place->told[i]);
        if (place->go[i] >= 0)
            close(place->go[i]);
    }
    wait_for_all();
    assert_int_equal(rmdir(place->path), 0); /* nothing is left in it */
    free(place);
    return 0;
}

static int count_entries(const char *path)
{
    DIR *dir = opendir(path);
    struct dirent *entry;
    int count = 0;

    assert_non_null(dir);
    while ((entry = readdir(dir)))
        count += entry->d_name[0] != '.';
    closedir(dir);
    return count;
}

static void let_go(struct place *place)
{
    close(place->go[1]);
    place->go[1] = -1;
}

/* ---- owners; in these a failed check is an exit status that nobody expects ---- */

static struct pinfold_temp_workspace *make(void)
{
    struct pinfold_temp_workspace *workspace = NULL;

    if (pinfold_temp_workspace_new(&workspace, NULL) < 0)
        _exit(90);
    return workspace;
}

/* With something in it that does not want to go. */
static struct pinfold_temp_workspace *make_full(void)
{
    struct pinfold_temp_workspace *workspace = make();
    char path[300];

    if (chdir(pinfold_temp_workspace_path(workspace)) < 0 || mkdir("closed", 0700) < 0 ||
        mkdir("closed/deeper", 0) < 0 || symlink("/", "outside") < 0 || chmod("closed", 0) < 0 ||
        chdir("/") < 0)
        _exit(91);
    snprintf(path, sizeof(path), "%s", pinfold_temp_workspace_path(workspace));
    if (chmod(path, 0) < 0)
        _exit(92);
    return workspace;
}

static void tell(const struct place *place)
{
    if (write(place->told[1], "x", 1) != 1)
        _exit(93);
}

static void wait_to_go(const struct place *place)
{
    char byte;

    close(place->go[1]);
    while (read(place->go[0], &byte, 1) < 0 && errno == EINTR) {
    }
}

static void wait_until_told(const struct place *place)
{
    char byte;

    assert_int_equal(read(place->told[0], &byte, 1), 1);
}

/* Before Linux 5.16 the end of a process that would dump its core, if that were wanted, is the end
 * of all that share its memory. */
static bool a_dump_kills_who_shares(void)
{
    struct utsname kernel;
    int major = 0, minor = 0;

    assert_int_equal(uname(&kernel), 0);
    assert_int_equal(sscanf(kernel.release, "%d.%d", &major, &minor), 2);
    return major < 5 || (major == 5 && minor < 16);
}

enum end { KILLED, EXITED, EXECUTED, ABORTED, FAULTED };

static void end_so(enum end how) __attribute__((noreturn));
static void end_so(enum end how)
{
    setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
    signal(SIGABRT, SIG_DFL);
    signal(SIGSEGV, SIG_DFL);
    if (how == KILLED)
        raise(SIGKILL);
    if (how == ABORTED)
        abort();
    if (how == FAULTED)
        raise(SIGSEGV);
    if (how == EXECUTED)
        execl("/bin/sh", "sh", "-c", "exit 7", NULL);
    _exit(7);
}

static void whatever_ends_an_owner_leaves_nothing(void **state)
{
    enum end last = a_dump_kills_who_shares() ? EXECUTED : FAULTED;

    for (enum end how = KILLED; how <= last; how++) {
        pid_t owner = fork();
        if (owner == 0) {
            make_full();
            make();
            end_so(how);
        }
        assert_true(owner > 0);
        wait_for_all();
        assert_int_equal(count_entries(((struct place *)*state)->path), 0);
    }
}

/* It need not have run yet. Somebody who kills a group gives nobody in it the time to leave it. */
static void the_end_of_a_whole_group_is_one_as_well(void **state)
{
    for (int i = 0; i < 50; i++) {
        pid_t owner = fork();
        if (owner == 0) {
            if (setpgid(0, 0) < 0)
                _exit(104);
            make();
            kill(0, SIGKILL);
            _exit(105);
        }
        assert_true(owner > 0);
        wait_for_all();
        assert_int_equal(count_entries(((struct place *)*state)->path), 0);
    }
}

/* What it executes lives on, and has nothing to do with the workspace. */
static void an_owner_that_executes_another_program_has_ended(void **state)
{
    struct place *place = *state;
    pid_t owner = fork();

    if (owner == 0) {
        make_full();
        if (dup2(place->go[0], STDIN_FILENO) < 0)
            _exit(94);
        tell(place);
        execl("/bin/sh", "sh", "-c", "read word; exit 0", NULL);
        _exit(95);
    }
    wait_until_told(place);
    while (count_entries(place->path) > 0)
        wait_a_little();
    assert_int_equal(waitpid(owner, NULL, WNOHANG), 0);
    let_go(place);
    wait_for_all();
}

static void what_is_kept_or_given_back_is_not_looked_for(void **state)
{
    const struct place *place = *state;
    char kept[300] = "";
    int end[2];

    assert_int_equal(pipe2(end, O_CLOEXEC), 0);
    if (fork() == 0) {
        struct pinfold_temp_workspace *workspace = make(), *other = make();
        const char *stays;
        make();
        if (pinfold_temp_workspace_keep(workspace, NULL) < 0 ||
            pinfold_temp_workspace_free(other, NULL) < 0)
            _exit(96);
        stays = pinfold_temp_workspace_path(workspace);
        if (write(end[1], stays, strlen(stays) + 1) < 0)
            _exit(97);
        raise(SIGKILL);
    }
    close(end[1]);
    assert_true(read(end[0], kept, sizeof(kept)) > 1);
    close(end[0]);
    wait_for_all();
    assert_int_equal(count_entries(place->path), 1);
    assert_int_equal(rmdir(kept), 0);
}

/* More than there is room for in arguments of a program. Few of them have been made so far. */
static void any_number_of_things_is_kept(void **state)
{
    enum { COUNT = 20000, SOME = 1999 };
    const struct place *place = *state;
    char path[300];

    if (fork() == 0) {
        struct pf_kept *kept = calloc(COUNT, sizeof(*kept));
        for (int i = 0; i < COUNT; i++) {
            snprintf(path, sizeof(path), "%s/%0100d", place->path, i);
            pf_keeper_add(&kept[i], PF_KEPT_GROUP, strdup(path));
            if (i % SOME == 0 && mkdir(path, 0700) < 0)
                _exit(98);
        }
        raise(SIGKILL);
    }
    wait_for_all();
    assert_int_equal(count_entries(place->path), 0);
}

/* Directories that stand for control groups. */
static void add_some(const struct place *place, struct pf_kept *kept, int from, int count)
{
    char path[300];

    for (int i = from; i < from + count; i++) {
        snprintf(path, sizeof(path), "%s/%02d", place->path, i);
        pf_keeper_add(&kept[i], PF_KEPT_GROUP, strdup(path));
        if (mkdir(path, 0700) < 0)
            _exit(106);
    }
}

static void remove_some(const struct place *place, const int *numbers, size_t count)
{
    char path[300];

    assert_int_equal(count_entries(place->path), count);
    for (size_t i = 0; i < count; i++) {
        snprintf(path, sizeof(path), "%s/%02d", place->path, numbers[i]);
        assert_int_equal(rmdir(path), 0);
    }
}

static void what_is_dropped_in_any_order_is_not_looked_for(void **state)
{
    /* The oldest, the latest, some beside each other, and what is then the oldest. */
    static const int dropped[] = { 0, 11, 5, 6, 4, 2, 10, 1 };
    const struct place *place = *state;

    if (fork() == 0) {
        struct pf_kept kept[12];
        add_some(place, kept, 0, 12);
        for (size_t i = 0; i < sizeof(dropped) / sizeof(*dropped); i++) {
            pf_keeper_drop(&kept[dropped[i]]);
            pf_keeper_drop(&kept[dropped[i]]);
        }
        raise(SIGKILL);
    }
    wait_for_all();
    remove_some(place, dropped, sizeof(dropped) / sizeof(*dropped));
}

/* Who may write to the directory that a workspace is in may exchange it for what is not one. */
static void what_was_exchanged_for_something_else_stays(void **state)
{
    const struct place *place = *state;
    char file[300];

    if (fork() == 0) {
        const char *path = pinfold_temp_workspace_path(make());
        if (chdir(place->path) < 0 || mkdir("other", 0700) < 0 || mkdir("other/file", 0700) < 0 ||
            rmdir(path) < 0 || symlink("other", path) < 0)
            _exit(99);
        raise(SIGKILL);
    }
    wait_for_all();
    assert_int_equal(count_entries(place->path), 2);
    snprintf(file, sizeof(file), "%s/other/file", place->path);
    assert_int_equal(rmdir(file), 0);
    snprintf(file, sizeof(file), "exec rm -r %s/*", place->path);
    assert_int_equal(system(file), 0);
}

/* ---- what others see of it ---- */

static int sigchld_count;

static void count_sigchld(int sig)
{
    (void)sig;
    sigchld_count++;
}

static void the_host_does_not_see_it(void **state)
{
    int before = count_descriptors();
    struct pinfold_temp_workspace *workspace;

    (void)state;
    signal(SIGCHLD, count_sigchld);
    sigchld_count = 0;
    workspace = make();
    assert_true(keeper_of(getpid()) > 0);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
    assert_int_equal(count_entries("/proc/self/task"), 1);
    assert_int_equal(pinfold_temp_workspace_free(workspace, NULL), 0);
    assert_int_equal(waitpid(-1, NULL, WNOHANG | __WALL), -1);
    assert_int_equal(errno, ECHILD);
    assert_int_equal(sigchld_count, 0);
    assert_int_equal(count_descriptors(), before);
    signal(SIGCHLD, SIG_DFL);
}

static void there_is_one_and_it_ends_with_the_last_thing(void **state)
{
    struct pinfold_temp_workspace *first = make(), *second;
    pid_t keeper = keeper_of(getpid());

    (void)state;
    assert_true(keeper > 0);
    second = make();
    assert_int_equal(pinfold_temp_workspace_free(first, NULL), 0);
    first = make();
    assert_int_equal(look_for_keeper(getpid()), keeper);
    assert_int_equal(pinfold_temp_workspace_free(second, NULL), 0);
    assert_int_equal(kill(keeper, 0), 0);
    assert_int_equal(pinfold_temp_workspace_free(first, NULL), 0);
    assert_int_equal(kill(keeper, 0), -1);
}

static void it_holds_nothing_of_the_hosts(void **state)
{
    struct pinfold_temp_workspace *workspace = make();
    pid_t keeper = keeper_of(getpid());
    char text[2048], path[64], cwd[8] = "";

    (void)state;
    snprintf(path, sizeof(path), "/proc/%d/fd", (int)keeper);
    assert_int_equal(count_entries(path), 1);
    snprintf(path, sizeof(path), "/proc/%d/cwd", (int)keeper);
    assert_int_equal(readlink(path, cwd, sizeof(cwd)), 1);
    assert_string_equal(cwd, "/");
    assert_int_equal(getpgid(keeper), keeper);
    assert_int_equal(sched_getscheduler(keeper), SCHED_BATCH);
    assert_true(read_proc(keeper, "status", text, sizeof(text)));
    /* All but the two that nobody can. */
    assert_non_null(strstr(text, "SigBlk:\tfffffffffffbfeff\n"));
    assert_int_equal(pinfold_temp_workspace_free(workspace, NULL), 0);
}

/* Who reads from a pipe of the owner's is not kept waiting, even by a keeper that does nothing. */
static void the_end_of_an_owner_is_the_end_of_its_pipes(void **state)
{
    const struct place *place = *state;
    char byte;
    pid_t owner, keeper;
    int pipe_fds[2];

    assert_int_equal(pipe2(pipe_fds, O_CLOEXEC), 0);
    owner = fork();
    if (owner == 0) {
        close(pipe_fds[0]);
        make();
        tell(place);
        pause();
    }
    close(pipe_fds[1]);
    wait_until_told(place);
    keeper = keeper_of(owner);
    assert_true(keeper > 0);
    assert_int_equal(kill(keeper, SIGSTOP), 0);
    assert_int_equal(kill(owner, SIGKILL), 0);
    assert_int_equal(read(pipe_fds[0], &byte, 1), 0);
    close(pipe_fds[0]);
    assert_int_equal(count_entries(place->path), 1);
    assert_int_equal(kill(keeper, SIGCONT), 0);
    wait_for_all();
    assert_int_equal(count_entries(place->path), 0);
}

static void signals_do_nothing_to_it(void **state)
{
    const struct place *place = *state;
    pid_t owner = fork(), keeper;

    if (owner == 0) {
        make();
        tell(place);
        pause();
    }
    wait_until_told(place);
    keeper = keeper_of(owner);
    assert_true(keeper > 0);
    for (int sig = 1; sig <= SIGRTMAX; sig++)
        if (sig != SIGKILL && sig != SIGSTOP)
            assert_int_equal(kill(keeper, sig), 0);
    assert_int_equal(look_for_keeper(owner), keeper);
    assert_int_equal(count_entries(place->path), 1);
    assert_int_equal(kill(owner, SIGKILL), 0);
    wait_for_all();
    assert_int_equal(count_entries(place->path), 0);
}

static void one_that_was_stopped_or_killed_keeps_nobody_waiting(void **state)
{
    int before = count_descriptors();

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct pinfold_temp_workspace *workspace = make();
        pid_t keeper = keeper_of(getpid());
        assert_true(keeper > 0);
        assert_int_equal(kill(keeper, i ? SIGKILL : SIGSTOP), 0);
        assert_int_equal(pinfold_temp_workspace_free(workspace, NULL), 0);
        assert_int_equal(waitpid(-1, NULL, WNOHANG | __WALL), -1);
    }
    assert_int_equal(count_descriptors(), before);
}

/* A process that is about to end has no time for one, but only for one at a time. */
static void one_that_is_let_go_is_waited_for_by_the_next(void **state)
{
    pid_t owner = fork();
    int status;

    (void)state;
    if (owner == 0) {
        struct pinfold_temp_workspace *workspace = make();
        pid_t keeper = keeper_of(getpid());
        pf_keeper_let_go();
        if (kill(keeper, SIGSTOP) < 0 || pinfold_temp_workspace_free(workspace, NULL) < 0 ||
            kill(keeper, 0) < 0)
            _exit(120);
        workspace = make();
        if (kill(keeper, 0) == 0 || keeper_of(getpid()) == 0)
            _exit(121);
        pinfold_temp_workspace_free(workspace, NULL);
        _exit(0);
    }
    assert_int_equal(waitpid(owner, &status, 0), owner);
    assert_int_equal(status, 0);
}

static bool is_stopped(pid_t pid)
{
    char text[512];

    return read_proc(pid, "stat", text, sizeof(text)) && strstr(text, ") T ");
}

/* The kernel wakes it up where its parents are of another session; here they are of this one. */
static void one_that_is_let_go_and_was_stopped_ends(void **state)
{
    pid_t owner = fork();

    (void)state;
    if (owner == 0) {
        struct pinfold_temp_workspace *workspace = make();
        pid_t keeper = keeper_of(getpid());
        pf_keeper_let_go();
        if (kill(keeper, SIGSTOP) < 0)
            _exit(122);
        while (!is_stopped(keeper))
            wait_a_little();
        _exit(pinfold_temp_workspace_free(workspace, NULL) < 0);
    }
    wait_for_all();
}

static int filter_calls(unsigned number, unsigned verdict)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, verdict),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = { sizeof(code) / sizeof(*code), code };

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return -1;
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
}

/* A host may have forbidden itself what the keeper alone does: then it has none, and no harm. */
static void a_filter_of_the_hosts_costs_it_no_more_than_its_keeper(void **state)
{
    static const unsigned calls[] = { SYS_chdir, SYS_sched_setscheduler, SYS_close_range,
                                      SYS_execve, SYS_memfd_create };
    static const unsigned verdicts[] = { SECCOMP_RET_ERRNO | EPERM, SECCOMP_RET_ERRNO | ENOSYS,
                                         SECCOMP_RET_KILL_PROCESS };
    size_t count = sizeof(verdicts) / sizeof(*verdicts) - (a_dump_kills_who_shares() ? 1 : 0);
    int status;

    (void)state;
    for (size_t i = 0; i < count * sizeof(calls) / sizeof(*calls); i++) {
        pid_t owner = fork();
        if (owner == 0) {
            setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
            if (filter_calls(calls[i / count], verdicts[i % count]) < 0)
                _exit(123);
            for (int n = 0; n < 5; n++)
                if (pinfold_temp_workspace_free(make(), NULL) < 0)
                    _exit(124);
            _exit(waitpid(-1, NULL, WNOHANG | __WALL) >= 0);
        }
        assert_int_equal(waitpid(owner, &status, 0), owner);
        assert_int_equal(status, 0);
    }
}

/* ---- forks of the owner ---- */

static void a_fork_of_the_owner_ends_nothing_and_holds_nothing_back(void **state)
{
    struct place *place = *state;
    pid_t owner = fork(), child;

    if (owner == 0) {
        static struct pf_kept kept;
        char path[300];
        int status;
        snprintf(path, sizeof(path), "%s/owners", place->path);
        pf_keeper_add(&kept, PF_KEPT_GROUP, path);
        if (mkdir(path, 0700) < 0)
            _exit(100);
        child = fork();
        if (child == 0) {
            pf_keeper_drop(&kept);
            _exit(0);
        }
        if (waitpid(child, &status, 0) != child || status || access(path, F_OK) < 0 ||
            keeper_of(getpid()) == 0)
            _exit(101);
        if (fork() == 0) { /* it has its own, and lives longer */
            make();
            if (keeper_of(getpid()) == 0)
                _exit(102);
            tell(place);
            wait_to_go(place);
            raise(SIGKILL);
        }
        pause();
    }
    wait_until_told(place);
    assert_int_equal(count_entries(place->path), 2);
    assert_int_equal(kill(owner, SIGKILL), 0);
    while (count_entries(place->path) > 1)
        wait_a_little();
    let_go(place);
    wait_for_all();
    assert_int_equal(count_entries(place->path), 0);
}

/* What its threads had may have been overwritten, by which nobody has dropped anything. */
static void a_fork_may_drop_what_is_its_parents(void **state)
{
    const struct place *place = *state;
    pid_t owner = fork(), child;

    if (owner == 0) {
        struct pf_kept kept[5];
        add_some(place, kept, 0, 3);
        child = fork();
        if (child == 0) {
            add_some(place, kept, 3, 2);
            memset(&kept[0], 0xff, sizeof(kept[0]));
            memset(&kept[2], 0xff, sizeof(kept[2]));
            pf_keeper_drop(&kept[1]);
            pf_keeper_drop(&kept[3]);
            raise(SIGKILL);
        }
        waitpid(child, NULL, 0);
        tell(place);
        pause();
    }
    wait_until_told(place);
    while (count_entries(place->path) > 4)
        wait_a_little();
    assert_int_equal(kill(owner, SIGKILL), 0);
    wait_for_all();
    remove_some(place, (const int[]){ 3 }, 1);
}

/* It did not say that it ends. */
static void a_fork_of_who_lets_go_waits_for_its_own(void **state)
{
    pid_t owner = fork(), child;
    int status;

    (void)state;
    if (owner == 0) {
        pf_keeper_let_go();
        make();
        child = fork();
        if (child == 0) {
            for (int i = 0; i < 20; i++)
                if (pinfold_temp_workspace_free(make(), NULL) < 0 ||
                    waitpid(-1, NULL, WNOHANG | __WALL) >= 0)
                    _exit(125);
            _exit(0);
        }
        if (waitpid(child, &status, 0) != child)
            _exit(126);
        _exit(status ? 127 : 0);
    }
    assert_int_equal(waitpid(owner, &status, 0), owner);
    assert_int_equal(status, 0);
    wait_for_all();
}

static void *come_and_go(void *arg)
{
    for (int i = 0; i < 200; i++)
        if (pinfold_temp_workspace_free(make(), NULL) < 0)
            return arg;
    return NULL;
}

static void threads_may_come_and_go(void **state)
{
    enum { THREADS = 4 };
    int before = count_descriptors();
    pthread_t threads[THREADS];
    void *failed;

    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, come_and_go, *state), 0);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], &failed), 0);
        assert_null(failed);
    }
    assert_int_equal(waitpid(-1, NULL, WNOHANG | __WALL), -1);
    assert_int_equal(count_descriptors(), before);
}

/* The thread that started a keeper may be long gone when that is needed. */
static void *make_one(void *arg)
{
    make_full();
    return arg;
}

static void it_does_not_need_the_thread_that_started_it(void **state)
{
    const struct place *place = *state;
    pthread_attr_t attributes;
    pthread_t thread;

    if (fork() == 0) {
        /* A stack that is too large to be kept for the next thread. */
        pthread_attr_init(&attributes);
        pthread_attr_setstacksize(&attributes, 64 << 20);
        if (pthread_create(&thread, &attributes, make_one, NULL) != 0 ||
            pthread_join(thread, NULL) != 0)
            _exit(103);
        raise(SIGKILL);
    }
    wait_for_all();
    assert_int_equal(count_entries(place->path), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(whatever_ends_an_owner_leaves_nothing),
        TEST(the_end_of_a_whole_group_is_one_as_well),
        TEST(an_owner_that_executes_another_program_has_ended),
        TEST(what_is_kept_or_given_back_is_not_looked_for),
        TEST(any_number_of_things_is_kept),
        TEST(what_is_dropped_in_any_order_is_not_looked_for),
        TEST(what_was_exchanged_for_something_else_stays),
        TEST(the_host_does_not_see_it),
        TEST(there_is_one_and_it_ends_with_the_last_thing),
        TEST(it_holds_nothing_of_the_hosts),
        TEST(the_end_of_an_owner_is_the_end_of_its_pipes),
        TEST(signals_do_nothing_to_it),
        TEST(one_that_was_stopped_or_killed_keeps_nobody_waiting),
        TEST(one_that_is_let_go_is_waited_for_by_the_next),
        TEST(one_that_is_let_go_and_was_stopped_ends),
        TEST(a_filter_of_the_hosts_costs_it_no_more_than_its_keeper),
        TEST(a_fork_of_the_owner_ends_nothing_and_holds_nothing_back),
        TEST(a_fork_may_drop_what_is_its_parents),
        TEST(a_fork_of_who_lets_go_waits_for_its_own),
        TEST(threads_may_come_and_go),
        TEST(it_does_not_need_the_thread_that_started_it),
    };

    first_tmpdir = getenv("TMPDIR") ? strdup(getenv("TMPDIR")) : "/tmp";
    return cmocka_run_group_tests_name("keeper", tests, NULL, NULL);
}
