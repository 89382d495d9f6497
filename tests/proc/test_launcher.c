/* SPDX-License-Identifier: Apache-2.0 */
/* Where supervisors come from, and many at a time. */
#include "harness.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "proc/terminal.h"

static size_t resident_bytes(void)
{
    unsigned long total, resident = 0;
    FILE *statm = fopen("/proc/self/statm", "re");

    assert_non_null(statm);
    assert_int_equal(fscanf(statm, "%lu %lu", &total, &resident), 2);
    fclose(statm);
    return resident * (size_t)sysconf(_SC_PAGESIZE);
}

/* A sanitizer or valgrind makes it so. */
static bool is_large(void)
{
    return resident_bytes() >= 16 << 20;
}

static void a_small_process_forks_by_itself(void **state)
{
    struct fixture *f = *state;

    if (is_large())
        skip();
    assert_run(f, "true", 0);
    assert_int_equal(pf_launcher_last_mode(f->launcher), PF_LAUNCH_DIRECT);
}

static void a_process_with_1_GiB_pays_nothing_for_it(void **state)
{
    struct fixture *f = *state;
    size_t size = (size_t)1 << 30, page = (size_t)sysconf(_SC_PAGESIZE);
    char *heap = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct rusage before, after;

    assert_ptr_not_equal(heap, MAP_FAILED);
    madvise(heap, size, MADV_NOHUGEPAGE);
    for (size_t at = 0; at < size; at += page)
        heap[at] = 1;
    assert_run(f, "true", 0);
    assert_int_equal(pf_launcher_last_mode(f->launcher), PF_LAUNCH_HELPER);
    /* After a fork each page that is written again would be a fault. */
    getrusage(RUSAGE_SELF, &before);
    assert_run(f, "exit 4", 4);
    for (size_t at = 0; at < size; at += page)
        heap[at] = 2;
    getrusage(RUSAGE_SELF, &after);
    assert_true(after.ru_minflt - before.ru_minflt < 1000);
    munmap(heap, size);
}

/* Its peak stays large, and so it is in a small program that a large one has executed. */
static void a_process_that_was_large_once_forks_by_itself(void **state)
{
    struct fixture *f = *state;
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    assert_true(usage.ru_maxrss > 1 << 20);
    if (is_large())
        skip();
    assert_run(f, "true", 0);
    assert_int_equal(pf_launcher_last_mode(f->launcher), PF_LAUNCH_DIRECT);
}

/* As those have that a sanitizer watches: more pages than 32 bits count. */
static void a_process_with_much_address_space_and_little_memory_forks_by_itself(void **state)
{
    size_t size = (size_t)17 << 40;
    void *space = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    assert_ptr_not_equal(space, MAP_FAILED);
    a_process_that_was_large_once_forks_by_itself(state);
    assert_int_equal(munmap(space, size), 0);
}

static void without_a_helper_large_processes_fork(void **state)
{
    struct fixture *f = *state;

    pf_launcher_force(f->launcher, PF_LAUNCH_HELPER, NULL); /* none lies beside the tests */
    assert_run(f, "echo works", 0);
    assert_int_equal(pf_launcher_last_mode(f->launcher), PF_LAUNCH_DIRECT);
}

static void a_helper_that_cannot_start_is_an_error_that_names_it(void **state)
{
    struct fixture *f = *state;

    if (under_valgrind())
        skip();
    pf_launcher_force(f->launcher, PF_LAUNCH_HELPER, "/no/such/helper");
    assert_int_equal(run(f, "true"), -PINFOLD_EOS);
    assert_non_null(strstr(f->err.msg, "/no/such/helper: No such file or directory"));
    pf_launcher_force(f->launcher, PF_LAUNCH_HELPER, helper_path());
    assert_run(f, "true", 0);
}

static pid_t helper_of(const struct fixture *f)
{
    pid_t pid = pf_launcher_helper(f->launcher);

    if (under_valgrind())
        skip();
    assert_true(pid > 0);
    return pid;
}

static void a_helper_killed_while_idle_is_started_anew(void **state)
{
    struct fixture *f = *state;
    pid_t first;

    assert_run(f, "true", 0);
    first = helper_of(f);
    kill(first, SIGKILL);
    for (int i = 0; i < 500 && !is_gone(first); i++)
        usleep(1000);
    assert_run(f, "exit 3", 3);
    assert_int_not_equal(pf_launcher_helper(f->launcher), first);
}

static void a_helper_that_dies_with_the_request_is_a_clear_error(void **state)
{
    struct fixture *f = *state;
    pid_t first;

    assert_run(f, "true", 0);
    first = helper_of(f);
    kill(first, SIGSTOP); /* takes the request, never reads it */
    pid_t killer = fork();
    if (killer == 0) {
        usleep(200000);
        kill(first, SIGKILL);
        _exit(0);
    }
    assert_int_equal(run(f, "true"), -PINFOLD_EBACKEND);
    assert_non_null(strstr(f->err.msg, "died"));
    assert_int_equal(waitpid(killer, NULL, 0), killer);
    assert_run(f, "exit 3", 3);
}

/* Let it take what it is asked for next, and die of it. */
static pid_t doom(pid_t helper)
{
    pid_t killer;

    kill(helper, SIGSTOP);
    killer = fork();
    if (killer == 0) {
        usleep(10000);
        kill(helper, SIGKILL);
        _exit(0);
    }
    return killer;
}

/* It may have read the request before it was stopped: then who asked learns of its end before its
 * socket is closed, and the next command is not to go there. */
static void the_next_command_has_another_helper(void **state)
{
    struct fixture *f = *state;

    for (int i = 0; i < 30; i++) {
        pid_t killer;
        assert_run(f, "true", 0);
        killer = doom(helper_of(f));
        assert_int_equal(run(f, "true"), -PINFOLD_EBACKEND);
        assert_int_equal(waitpid(killer, NULL, 0), killer);
        assert_run(f, "exit 3", 3);
    }
}

static void the_next_terminal_has_another_helper(void **state)
{
    struct fixture *f = *state;
    struct pf_terminal *terminal;

    for (int i = 0; i < 60; i++) {
        pid_t killer;
        assert_run(f, "true", 0);
        killer = doom(helper_of(f));
        assert_int_equal(pf_terminal_open(f->launcher, &f->request, 24, 80, &terminal, &f->err),
                         -PINFOLD_EBACKEND);
        assert_int_equal(pf_launcher_helper(f->launcher), 0);
        assert_int_equal(pf_terminal_open(f->launcher, &f->request, 24, 80, &terminal, &f->err), 0);
        pf_terminal_close(terminal);
        assert_int_equal(waitpid(killer, NULL, 0), killer);
    }
}

/* Also where poll(2) may look at none, or at one alone. */
static void whether_a_jail_lives_on_is_known_under_any_limit(void **state)
{
    static const rlim_t limits[] = { 1000, 1, 0 };

    (void)state;
    for (size_t i = 0; i < PF_COUNT(limits); i++) {
        struct pf_launcher *launcher;
        struct rlimit before, few;
        bool lived, lives;
        int pair[2];
        assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
        assert_int_equal(pf_launcher_new_in_jail(pair[0], -1, &launcher, NULL), 0);
        assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
        few = (struct rlimit){ limits[i], before.rlim_max };
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
        lived = pf_launcher_lives_on(launcher);
        close(pair[1]);
        lives = pf_launcher_lives_on(launcher);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
        assert_true(lived);
        assert_false(lives);
        pf_launcher_free(launcher);
        close(pair[0]);
    }
}

static void a_running_command_survives_the_helper(void **state)
{
    struct fixture *f = *state;
    char command[64];

    assert_run(f, "true", 0);
    snprintf(command, sizeof(command), "kill -9 %d; sleep 0.2; echo still here", (int)helper_of(f));
    assert_run(f, command, 0);
    assert_string_equal(f->result.output, "still here\n");
    assert_run(f, "true", 0);
}

struct job {
    struct fixture *f;
    int number, r;
    struct pinfold_execute_result result;
    struct pinfold_error err;
};

static void *run_job(void *arg)
{
    struct job *job = arg;
    struct pf_run_request request = job->f->request;
    char command[128];

    snprintf(command, sizeof(command), "echo %d; echo e%d >&2; sleep 0.0%d; exit %d", job->number,
             job->number, job->number % 10, job->number);
    request.command = command;
    request.command_len = strlen(command);
    job->r = pf_run(job->f->launcher, &request, &job->result, &job->err);
    return NULL;
}

static void commands_of_64_threads_do_not_mix(void **state)
{
    enum { THREADS = 64 };
    static struct job jobs[THREADS];
    pthread_t threads[THREADS];
    char expected[64];

    for (int i = 0; i < THREADS; i++) {
        jobs[i] = (struct job){ .f = *state, .number = i };
        assert_int_equal(pthread_create(&threads[i], NULL, run_job, &jobs[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++) {
        snprintf(expected, sizeof(expected), "%d\n[stderr] e%d\n", i, i);
        if (jobs[i].r != 0)
            fail_msg("%s", jobs[i].err.msg);
        assert_int_equal(jobs[i].result.exit_code, i);
        assert_string_equal(jobs[i].result.output, expected);
        pinfold_execute_result_done(&jobs[i].result);
    }
}

static void *run_until_told(void *arg)
{
    struct job *job = arg;
    struct pf_run_request request = job->f->request;
    char command[100];

    snprintf(command, sizeof(command), ": >began%d; until [ -e go ]; do sleep 0.01; done",
             job->number);
    request.command = command;
    request.command_len = strlen(command);
    job->r = pf_run(job->f->launcher, &request, &job->result, &job->err);
    return NULL;
}

/* Each fork of a process has all its threads fault in what they write to. */
static void many_commands_at_once_are_the_helper_s(void **state)
{
    enum { CROWD = 4 };
    struct fixture *f = *state;
    struct job jobs[CROWD];
    pthread_t threads[CROWD];
    int began = 0;

    if (is_large())
        skip();
    for (int i = 0; i < CROWD; i++) {
        jobs[i] = (struct job){ .f = f, .number = i };
        assert_int_equal(pthread_create(&threads[i], NULL, run_until_told, &jobs[i]), 0);
    }
    for (int tries = 0; tries < 6000 && began < CROWD; tries++) {
        char name[16];
        snprintf(name, sizeof(name), "began%d", began);
        if (faccessat(f->dir_fd, name, F_OK, 0) == 0)
            began++;
        else
            usleep(10000);
    }
    assert_run(f, ": >go", 0);
    assert_int_equal(pf_launcher_last_mode(f->launcher), PF_LAUNCH_HELPER);
    for (int i = 0; i < CROWD; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(jobs[i].r, 0);
        assert_int_equal(jobs[i].result.exit_code, 0);
        pinfold_execute_result_done(&jobs[i].result);
    }
    assert_int_equal(began, CROWD);
    assert_run(f, "true", 0);
    assert_int_equal(pf_launcher_last_mode(f->launcher), PF_LAUNCH_DIRECT);
}

static void *stop_later(void *launcher)
{
    usleep(200000);
    pf_launcher_stop(launcher);
    return NULL;
}

static void stopping_ends_calls_under_way_with_137(void **state)
{
    struct fixture *f = *state;
    pthread_t thread;

    pthread_create(&thread, NULL, stop_later, f->launcher);
    assert_run(f, "echo said; sleep 50", 137);
    pthread_join(thread, NULL);
    assert_string_equal(f->result.output, "said\n[killed: the call was stopped]\n");
    assert_false(f->result.timed_out);
}

static void a_hundred_commands_leave_no_descriptor_and_no_zombie(void **state)
{
    struct fixture *f = *state;
    int before;

    assert_run(f, "true", 0);
    pf_launcher_count(f->launcher);
    before = count_descriptors();
    for (int i = 0; i < 100; i++)
        assert_run(f, "true", 0);
    assert_int_equal(count_descriptors(), before);
    for (int i = 0; i < 500 && pf_launcher_count(f->launcher) > 0; i++)
        usleep(1000);
    assert_int_equal(pf_launcher_count(f->launcher), 0);
}

/* Run a command that leaves a process behind. */
static pid_t leave_one(struct fixture *f)
{
    assert_run(f, "sleep 600 >/dev/null 2>&1 & echo $! >pid", 0);
    assert_non_null(strstr(f->result.output, "1 background process still running"));
    return read_pid(f, "pid");
}

static void end_one(pid_t pid)
{
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_true(comes_to_be_gone(pid));
}

static void what_commands_left_does_not_pile_up_when_it_ends(void **state)
{
    enum { COMMANDS = 64, BOUND = 24 };
    struct fixture *f = *state;
    int before;

    end_one(leave_one(f)); /* and the helper has started */
    before = count_descriptors();
    for (int i = 0; i < COMMANDS; i++) {
        end_one(leave_one(f));
        assert_in_range(count_descriptors(), 0, before + BOUND);
    }
    for (int i = 0; i < 5000 && pf_launcher_count(f->launcher) > 0; i++)
        usleep(1000);
    assert_int_equal(pf_launcher_count(f->launcher), 0);
}

static void after_a_second_a_start_forgets_what_has_ended(void **state)
{
    enum { FEW = 5 };
    struct fixture *f = *state;
    int before, after = 0;
    pid_t pids[FEW];

    assert_run(f, "true", 0);
    assert_run(f, "true", 0);
    before = count_descriptors();
    for (int i = 0; i < FEW; i++)
        pids[i] = leave_one(f);
    assert_true(pf_launcher_count(f->launcher) >= FEW);
    for (int i = 0; i < FEW; i++)
        end_one(pids[i]);
    for (int tries = 0; tries < 10 && (tries == 0 || after > before); tries++) {
        usleep(1000000);
        assert_run(f, "true", 0);
        after = count_descriptors();
    }
    assert_int_equal(after, before);
}

/* Those that linger are in no order with those that are over, and each is found at the stop. */
static void commands_that_linger_and_that_end_take_turns(void **state)
{
    enum { ROUNDS = 12 };
    struct fixture *f = *state;
    pid_t pids[ROUNDS];

    for (int i = 0; i < ROUNDS; i++) {
        pids[i] = leave_one(f);
        assert_run(f, "true", 0);
        if (i % 3 == 0)
            end_one(pids[i]);
    }
    for (int i = 0; i < 5000 && pf_launcher_count(f->launcher) > ROUNDS * 2 / 3; i++)
        usleep(1000);
    assert_int_equal(pf_launcher_count(f->launcher), ROUNDS * 2 / 3);
    pf_launcher_stop(f->launcher);
    for (int i = 0; i < ROUNDS; i++)
        assert_true(is_gone(pids[i]));
    assert_int_equal(pf_launcher_count(f->launcher), 0);
}

/* Whether a process has a descriptor of a directory. */
static bool holds(pid_t pid, const char *directory)
{
    char path[64], target[PATH_MAX];
    bool found = false;
    DIR *fds;

    snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
    fds = opendir(path);
    for (struct dirent *entry; fds && !found && (entry = readdir(fds));) {
        ssize_t len = readlinkat(dirfd(fds), entry->d_name, target, sizeof(target) - 1);
        target[len < 0 ? 0 : len] = '\0';
        found = strcmp(target, directory) == 0;
    }
    if (fds)
        closedir(fds);
    return found;
}

/* At the end of a supervisor that stayed: a byte for each. */
static void note_end(const char *dir)
{
    char path[300];
    int fd;

    snprintf(path, sizeof(path), "%s/ended", dir);
    fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    (void)!write(fd, "x", 1);
    close(fd);
}

/* Returns 0, or which expectation was not met. */
static int stay_twice(const struct fixture *f)
{
    struct pf_run_request request = f->request;
    struct pinfold_execute_result result;
    struct pf_launcher *launcher = NULL;
    pid_t first[4], second[4];
    char path[300];

    request.command = "exit 0";
    request.command_len = strlen(request.command);
    if (pf_launcher_new(&launcher, NULL) < 0)
        return 1;
    pf_launcher_force(launcher, PF_LAUNCH_DIRECT, NULL);
    pf_launcher_let_stay(launcher, note_end, f->dir);
    if (pf_run(launcher, &request, &result, NULL) < 0 || pf_children(first, 4, false) != 1)
        return 2;
    if (!holds(first[0], f->dir))
        return 3;
    pinfold_execute_result_done(&result);
    if (pf_run(launcher, &request, &result, NULL) < 0 || pf_children(second, 4, false) != 1)
        return 4;
    pinfold_execute_result_done(&result);
    pf_launcher_free(launcher);
    if (pf_children(first, 4, false) != 1 || first[0] != second[0])
        return 5;
    snprintf(path, sizeof(path), "%s/ended", f->dir);
    if (access(path, F_OK) == 0)
        return 7; /* before our end */
    return holds(second[0], f->dir) ? 0 : 6;
}

static void the_last_supervisor_stays_with_its_directory_until_the_process_ends(void **state)
{
    struct fixture *f = *state;
    int status = -1, orphan = -1;
    struct stat ended;
    char path[300];
    pid_t pid;

    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0);
    pid = fork();
    if (pid == 0)
        _exit(stay_twice(f));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    /* It is ours now, and ends without being told. */
    assert_true(waitpid(-1, &orphan, __WALL) > 0);
    assert_int_equal(orphan, 0);
    assert_int_equal(waitpid(-1, NULL, __WALL), -1);
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0), 0);
    /* And has done what it was to do at the end; the first, which went before, has not. */
    snprintf(path, sizeof(path), "%s/ended", f->dir);
    assert_int_equal(stat(path, &ended), 0);
    assert_int_equal(ended.st_size, 1);
    assert_int_equal(unlink(path), 0);
}

static void freeing_no_launcher_is_fine(void **state)
{
    int before = count_descriptors();

    (void)state;
    pf_launcher_free(NULL);
    assert_int_equal(count_descriptors(), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        /* First what asks for a small process, which a sanitizer lets grow with each test. */
        IN_MODE(a_small_process_forks_by_itself, "auto", PF_LAUNCH_AUTO),
        IN_MODE(many_commands_at_once_are_the_helper_s, "auto", PF_LAUNCH_AUTO),
        IN_MODE(a_process_with_1_GiB_pays_nothing_for_it, "auto", PF_LAUNCH_AUTO),
        IN_MODE(a_process_that_was_large_once_forks_by_itself, "auto", PF_LAUNCH_AUTO),
        IN_MODE(a_process_with_much_address_space_and_little_memory_forks_by_itself, "auto",
                PF_LAUNCH_AUTO),
        IN_MODE(without_a_helper_large_processes_fork, "by the helper", PF_LAUNCH_HELPER),
        IN_MODE(a_helper_that_cannot_start_is_an_error_that_names_it, "by the helper",
                PF_LAUNCH_HELPER),
        IN_MODE(a_helper_killed_while_idle_is_started_anew, "by the helper", PF_LAUNCH_HELPER),
        IN_MODE(a_helper_that_dies_with_the_request_is_a_clear_error, "by the helper",
                PF_LAUNCH_HELPER),
        IN_MODE(the_next_command_has_another_helper, "by the helper", PF_LAUNCH_HELPER),
        IN_MODE(the_next_terminal_has_another_helper, "by the helper", PF_LAUNCH_HELPER),
        IN_MODE(a_running_command_survives_the_helper, "by the helper", PF_LAUNCH_HELPER),
        IN_BOTH_MODES(commands_of_64_threads_do_not_mix),
        IN_BOTH_MODES(stopping_ends_calls_under_way_with_137),
        IN_BOTH_MODES(a_hundred_commands_leave_no_descriptor_and_no_zombie),
        IN_BOTH_MODES(what_commands_left_does_not_pile_up_when_it_ends),
        IN_BOTH_MODES(after_a_second_a_start_forgets_what_has_ended),
        IN_BOTH_MODES(commands_that_linger_and_that_end_take_turns),
        IN_MODE(the_last_supervisor_stays_with_its_directory_until_the_process_ends, "direct",
                PF_LAUNCH_DIRECT),
        cmocka_unit_test(whether_a_jail_lives_on_is_known_under_any_limit),
        cmocka_unit_test(freeing_no_launcher_is_fine),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
