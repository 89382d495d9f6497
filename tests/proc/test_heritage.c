/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A command has what its owner has at the moment of its start, whether the owner forks it itself or
 * is large, and a helper that was started earlier does.
 */
#include "stories.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

/* ---- limits ---- */

/* Under a sanitizer there is no room below any limit of addresses. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define IS_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define IS_SANITIZED 1
#endif
#endif
#ifndef IS_SANITIZED
#define IS_SANITIZED 0
#endif

static const struct {
    int which;
    rlim_t low, high;
    const char *soft; /* as bash's ulimit and /proc show the low one */
} limits[] = {
    { RLIMIT_CPU, 1000, 2000, "Max cpu time              1000" },
    { RLIMIT_FSIZE, 1000448, 2000896, "Max file size             1000448" },
    { RLIMIT_DATA, (rlim_t)1 << 30, (rlim_t)2 << 30, "Max data size             1073741824" },
    { RLIMIT_STACK, 3 << 20, 4 << 20, "Max stack size            3145728" },
    { RLIMIT_CORE, 0, 0, "Max core file size        0" },
    { RLIMIT_RSS, 1 << 28, 1 << 29, "Max resident set          268435456" },
    { RLIMIT_NPROC, 900, 901, "Max processes             900" },
    { RLIMIT_NOFILE, 100, 200, "Max open files            100" },
    { RLIMIT_MEMLOCK, 1 << 12, 1 << 13, "Max locked memory         4096" },
    { RLIMIT_AS, (rlim_t)1 << 31, (rlim_t)2 << 31, "Max address space         2147483648" },
    { RLIMIT_LOCKS, 11, 12, "Max file locks            11" },
    { RLIMIT_SIGPENDING, 500, 501, "Max pending signals       500" },
    { RLIMIT_MSGQUEUE, 1 << 10, 1 << 11, "Max msgqueue size         1024" },
    { RLIMIT_NICE, 0, 0, "Max nice priority         0" },
    { RLIMIT_RTPRIO, 0, 0, "Max realtime priority     0" },
    { RLIMIT_RTTIME, 5000000, 6000000, "Max realtime timeout      5000000" },
};

static bool may_lower(int which)
{
    return !IS_SANITIZED || (which != RLIMIT_AS && which != RLIMIT_DATA && which != RLIMIT_STACK);
}

static void lower_and_raise_each(struct teller *teller)
{
    for (size_t i = 0; i < PF_COUNT(limits); i++) {
        int which = limits[i].which;
        struct rlimit old, new;

        if (!may_lower(which))
            continue;
        NEED(getrlimit(which, &old) == 0);
        new = (struct rlimit){ limits[i].low, old.rlim_max };
        NEED(setrlimit(which, &new) == 0); /* only the soft one */
        command(teller, "cat /proc/self/limits");
        NEED(setrlimit(which, &old) == 0);
        command(teller, "cat /proc/self/limits");
        new.rlim_max = limits[i].high;
        NEED(setrlimit(which, &new) == 0);
        command(teller, "cat /proc/self/limits");
        new.rlim_cur = limits[i].high; /* up to the hard one, which the helper has to know */
        NEED(setrlimit(which, &new) == 0);
        command(teller, "cat /proc/self/limits");
    }
    command(teller, "ulimit -a");
}

static void has_each(const char *text)
{
    for (size_t i = 0; i < PF_COUNT(limits); i++)
        if (may_lower(limits[i].which) && count(text, limits[i].soft) < 2)
            fail_msg("%s is not in %s", limits[i].soft, text);
    assert_int_equal(count(text, "error"), 0);
}

static void a_command_has_the_limits_of_the_moment(void **state)
{
    for_each_user(state, lower_and_raise_each, has_each);
}

/* Only root may raise a hard limit, and then has what it asked for. */
static void raise_hard(struct teller *teller)
{
    struct rlimit few = { 300, 300 }, many = { 400, 500 };

    NEED(setrlimit(RLIMIT_NOFILE, &few) == 0);
    command(teller, "ulimit -Sn; ulimit -Hn");
    tell("%d\n", setrlimit(RLIMIT_NOFILE, &many));
    command(teller, "ulimit -Sn; ulimit -Hn");
}

static void raised_or_not(const char *text)
{
    bool may = strstr(text, "\n\n0\n") != NULL;

    assert_string_equal(text, may ? "0: 300\n300\n\n0\n0: 400\n500\n\n"
                                  : "0: 300\n300\n\n-1\n0: 300\n300\n\n");
}

static void a_hard_limit_that_was_raised_is_raised(void **state)
{
    for_each_user(state, raise_hard, raised_or_not);
}

/* From many to none: what cannot be started is an error, and what is has the limit. A helper needs
 * a few more, so this is not the same for both. */
static void run_out_of_descriptors(struct teller *teller)
{
    struct rlimit old, now;
    char expected[32];

    NEED(getrlimit(RLIMIT_NOFILE, &old) == 0);
    now = old;
    for (rlim_t left = 40; left > 0; left--) {
        now.rlim_cur = left;
        NEED(setrlimit(RLIMIT_NOFILE, &now) == 0);
        if (run(&teller->f, "ulimit -n") < 0) {
            NEED(teller->f.err.msg[0] != '\0' && !strstr(teller->f.err.msg, "died"));
            told->by_fork++;
            continue;
        }
        if (teller->f.result.exit_code != 0)
            continue;
        snprintf(expected, sizeof(expected), "%ju\n", (uintmax_t)left);
        if (strcmp(teller->f.result.output, expected) != 0)
            tell("with %ju: %s", (uintmax_t)left, teller->f.result.output);
    }
    NEED(setrlimit(RLIMIT_NOFILE, &old) == 0);
    command(teller, "ulimit -n");
}

static void nothing_but_the_end(const char *text)
{
    assert_int_equal(count(text, "with"), 0);
    assert_int_equal(strncmp(text, "0: ", 3), 0);
}

static void few_descriptors_are_an_error_or_just_so_many(void **state)
{
    for_each_user(state, run_out_of_descriptors, nothing_but_the_end);
}

static void run_out_of_processes(struct teller *teller)
{
    struct rlimit old, none;

    NEED(getrlimit(RLIMIT_NPROC, &old) == 0);
    command(teller, "true");
    none = (struct rlimit){ 0, old.rlim_max };
    NEED(setrlimit(RLIMIT_NPROC, &none) == 0);
    command(teller, "ulimit -u 2>/dev/null || ulimit -p");
    NEED(setrlimit(RLIMIT_NPROC, &old) == 0);
    command(teller, "true");
}

static void none_or_root(const char *text)
{
    char expected[64];

    /* The kernel lets root have more. */
    snprintf(expected, sizeof(expected), "0: \nerror %d\n0: \n", -PINFOLD_EOS);
    if (strcmp(text, "0: \n0: 0\n\n0: \n") != 0)
        assert_string_equal(text, expected);
}

static void no_processes_are_an_error(void **state)
{
    for_each_user(state, run_out_of_processes, none_or_root);
}

#if !IS_SANITIZED
/* In which no program can run, the helper included. */
static void run_out_of_addresses(struct teller *teller)
{
    struct rlimit old, none;

    NEED(getrlimit(RLIMIT_AS, &old) == 0);
    command(teller, "echo ran");
    for (int page = 0; page < 3; page++) {
        none = (struct rlimit){ (rlim_t)page << 14, old.rlim_max };
        NEED(setrlimit(RLIMIT_AS, &none) == 0);
        if (run(&teller->f, "echo ran") == 0 && teller->f.result.exit_code == 0)
            tell("with %d: %s", page, teller->f.result.output);
        NEED(setrlimit(RLIMIT_AS, &old) == 0);
        command(teller, "echo ran");
    }
}

static void ran_before_and_after(const char *text)
{
    assert_string_equal(text, "0: ran\n\n0: ran\n\n0: ran\n\n0: ran\n\n");
}

static void without_addresses_nothing_runs(void **state)
{
    for_each_user(state, run_out_of_addresses, ran_before_and_after);
}
#endif

static void live_within_processor_time(struct teller *teller)
{
    struct rlimit limit;

    NEED(getrlimit(RLIMIT_CPU, &limit) == 0);
    for (int i = 0; i < 600; i++)
        NEED(run(&teller->f, "exit 3") == 0 && teller->f.result.exit_code == 3);
    command(teller, "true");
    tell("%d\n", told->helpers);
    limit.rlim_max = 1000;
    limit.rlim_cur = 1000;
    NEED(setrlimit(RLIMIT_CPU, &limit) == 0);
    for (int i = 0; i < 600; i++) {
        NEED(run(&teller->f, "exit 3") == 0 && teller->f.result.exit_code == 3);
        if (pf_launcher_helper(teller->f.launcher) != teller->helper)
            told->helpers++;
        teller->helper = pf_launcher_helper(teller->f.launcher);
    }
}

/* One that the limit kills takes along the command that it was asked for. */
static void a_helper_does_not_live_longer_than_a_limit_of_time(void **state)
{
    char *text;

    if (under_valgrind())
        skip();
    text = hear(*state, live_within_processor_time, true, geteuid());
    assert_string_equal(text, "0: \n1\n");
    assert_in_range(told->helpers, 3, 5);
    free(text);
}

/* ---- the rest ---- */

static void change_umask(struct teller *teller)
{
    static const mode_t masks[] = { 022, 077, 0, 027, 022 };

    for (size_t i = 0; i < PF_COUNT(masks); i++) {
        umask(masks[i]);
        command(teller, "umask; rm -f new; : >new; stat -c %a new; rm new");
    }
}

static void has_each_umask(const char *text)
{
    assert_string_equal(text, "0: 0022\n644\n\n0: 0077\n600\n\n0: 0000\n666\n\n"
                              "0: 0027\n640\n\n0: 0022\n644\n\n");
}

static void a_command_has_the_umask_of_the_moment(void **state)
{
    for_each_user(state, change_umask, has_each_umask);
}

#define RIGHTS "grep -E '^(Uid|Gid|Groups|Cap|NoNewPrivs|Seccomp)' /proc/self/status"

static void filter_nothing(void)
{
    struct sock_filter all[] = { BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW) };
    struct sock_fprog program = { PF_COUNT(all), all };

    NEED(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0);
}

static void give_up_rights(struct teller *teller)
{
    const gid_t groups[] = { 5, 6, 7 };
    const uid_t uid = 0x3000000;

    command(teller, RIGHTS);
    if (geteuid() == 0) {
        NEED(prctl(PR_CAPBSET_DROP, 20, 0, 0, 0) == 0);
        command(teller, RIGHTS);
        NEED(setgroups(PF_COUNT(groups), groups) == 0);
        command(teller, RIGHTS);
        NEED(setresgid(uid, uid, uid) == 0);
        command(teller, RIGHTS);
        NEED(setresuid(uid, uid, uid) == 0);
        command(teller, RIGHTS);
    }
    NEED(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    command(teller, RIGHTS);
    for (int i = 0; i < 3; i++) {
        filter_nothing();
        command(teller, RIGHTS);
    }
}

static void has_no_rights(const char *text)
{
    assert_int_equal(count(text, "error"), 0);
    assert_int_equal(count(text, "NoNewPrivs:\t1"), 4);
    assert_true(count(text, "Seccomp:\t2") >= 3);
    if (geteuid() == 0 && strstr(text, "Uid:\t0\t0\t0\t0")) {
        assert_true(count(text, "Groups:\t5 6 7") >= 2);
        assert_int_equal(count(text, "Uid:\t50331648\t50331648\t50331648\t50331648"), 5);
        assert_int_equal(count(text, "Gid:\t50331648\t50331648\t50331648\t50331648"), 6);
    }
}

static void a_command_has_the_rights_of_the_moment(void **state)
{
    for_each_user(state, give_up_rights, has_no_rights);
}

#define SCHED "nice; cut -d ' ' -f 41 /proc/self/stat; grep Cpus_allowed_list /proc/self/status"

/* The tests may run with one that nobody may go below. */
static int nicer_by(int more)
{
    int now = getpriority(PRIO_PROCESS, 0);

    return now + more < 19 ? now + more : 19;
}

static void give_way(struct teller *teller)
{
    const struct sched_param none = { 0 };
    int value = nicer_by(2);
    cpu_set_t all, one;
    char nice_now[32];

    NEED(sched_getaffinity(0, sizeof(all), &all) == 0);
    command(teller, SCHED);
    NEED(setpriority(PRIO_PROCESS, 0, value) == 0);
    snprintf(nice_now, sizeof(nice_now), "test `nice` = %d", value);
    command(teller, nice_now);
    NEED(sched_setscheduler(0, SCHED_BATCH, &none) == 0);
    command(teller, SCHED);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &all)) {
            CPU_ZERO(&one);
            CPU_SET(cpu, &one);
            NEED(sched_setaffinity(0, sizeof(one), &one) == 0);
            command(teller, SCHED);
            NEED(sched_setaffinity(0, sizeof(all), &all) == 0);
        }
    command(teller, SCHED);
}

static void gave_way(const char *text)
{
    assert_int_equal(count(text, "\n0: \n"), 1); /* as nice as was said */
    assert_true(count(text, "\n3\nCpus_allowed") >= 3);
    assert_int_equal(count(text, "error"), 0);
}

static void a_command_runs_when_its_owner_would(void **state)
{
    for_each_user(state, give_way, gave_way);
}

static void tell_namespaces(struct teller *teller)
{
    static const char *const names[] = { "mnt", "net" };
    char path[64], own[64], asked[64];

    for (size_t i = 0; i < PF_COUNT(names); i++) {
        ssize_t len;
        snprintf(path, sizeof(path), "/proc/thread-self/ns/%s", names[i]);
        len = readlink(path, own, sizeof(own) - 1);
        NEED(len > 0);
        own[len] = '\0';
        snprintf(asked, sizeof(asked), "readlink /proc/self/ns/%s", names[i]);
        NEED(run(&teller->f, asked) == 0 && teller->f.result.exit_code == 0);
        tell("%s %s\n", names[i],
             strncmp(teller->f.result.output, own, strlen(own)) == 0 ? "ours" : "another's");
    }
}

static void move_away(struct teller *teller)
{
    int owns = geteuid() == 0 ? 0 : CLONE_NEWUSER;

    command(teller, "true");
    tell_namespaces(teller);
    if (unshare(owns | CLONE_NEWNS) < 0) {
        tell("the machine allows no namespaces\n");
        return;
    }
    tell_namespaces(teller);
    if (unshare(CLONE_NEWNET) < 0)
        tell("nor of networks\n");
    tell_namespaces(teller);
}

static void never_another_s(const char *text)
{
    assert_int_equal(count(text, "another's"), 0);
    assert_true(count(text, "ours") >= 2);
}

static void a_command_is_in_the_namespaces_of_the_moment(void **state)
{
    for_each_user(state, move_away, never_another_s);
}

/* Into a place that looks the same but for one file. */
static void change_root(struct teller *teller)
{
    char root[200], inside[300];
    int file;

    command(teller, "true");
    NEED(unshare(CLONE_NEWNS) == 0);
    NEED(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
    command(teller, "ls /mnt/inside 2>/dev/null");
    snprintf(root, sizeof(root), "%s/root", teller->f.dir);
    NEED(mkdir(root, 0755) == 0);
    NEED(mount("/", root, NULL, MS_BIND | MS_REC, NULL) == 0);
    snprintf(inside, sizeof(inside), "%s/mnt", root);
    NEED(mount("tmpfs", inside, "tmpfs", 0, NULL) == 0);
    snprintf(inside, sizeof(inside), "%s/mnt/inside", root);
    file = open(inside, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
    NEED(file >= 0);
    close(file);
    command(teller, "ls /mnt/inside 2>/dev/null");
    NEED(chroot(root) == 0);
    command(teller, "ls /mnt/inside 2>/dev/null");
}

static void a_command_has_the_root_of_the_moment(void **state)
{
    struct fixture *f = *state;
    char *text, path[200];

    if (geteuid() != 0 || under_valgrind())
        skip();
    snprintf(path, sizeof(path), "%s/root", f->dir);
    text = hear(f, change_root, false, 0);
    assert_int_equal(rmdir(path), 0);
    assert_string_equal(text, "0: \n2: \n2: \n0: /mnt/inside\n\n");
    free(text);
    text = hear(f, change_root, true, 0);
    assert_int_equal(rmdir(path), 0);
    assert_true(told->by_helper > 0);
    assert_string_equal(text, "0: \n2: \n2: \n0: /mnt/inside\n\n");
    free(text);
}

/* More than there is room for to compare. */
static void join_many_groups(struct teller *teller)
{
    static gid_t groups[4000];

    for (size_t i = 0; i < PF_COUNT(groups); i++)
        groups[i] = 100000 + (gid_t)i;
    command(teller, "id -G | wc -w");
    NEED(setgroups(PF_COUNT(groups), groups) == 0);
    command(teller, "id -G | wc -w");
    tell("%d\n", (int)pf_launcher_last_mode(teller->f.launcher));
}

static void what_cannot_be_compared_is_forked(void **state)
{
    char *text, expected[64];

    if (geteuid() != 0 || under_valgrind())
        skip();
    text = hear(*state, join_many_groups, true, 0);
    snprintf(expected, sizeof(expected), "0: 4001\n\n%d\n", (int)PF_LAUNCH_DIRECT);
    assert_non_null(strstr(text, expected));
    free(text);
}

static void enter(struct teller *teller)
{
    teller->f.request.cwd_fd = -1;
    NEED(chdir("/usr") == 0);
    command(teller, "pwd");
    NEED(chdir("/usr/bin") == 0);
    command(teller, "pwd");
}

static void a_command_without_a_directory_has_its_owner_s(void **state)
{
    struct fixture *f = *state;

    for (int large = 0; large <= 1; large++) {
        char *text = hear(f, enter, large != 0, geteuid());
        assert_string_equal(text, "0: /usr\n\n0: /usr/bin\n\n");
        free(text);
    }
}

struct thread {
    struct teller *teller;
    int nice, wrong;
    pthread_barrier_t *turn;
};

static void *run_with_a_value_of_its_own(void *arg)
{
    struct thread *thread = arg;
    struct pf_run_request request = thread->teller->f.request;
    struct pinfold_execute_result result;
    char expected[16];

    request.command = "nice";
    request.command_len = strlen(request.command);
    snprintf(expected, sizeof(expected), "%d\n", thread->nice);
    setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), thread->nice);
    pthread_barrier_wait(thread->turn);
    for (int i = 0; i < 20; i++) {
        if (pf_run(thread->teller->f.launcher, &request, &result, NULL) < 0)
            thread->wrong += 100;
        else
            thread->wrong += strcmp(result.output, expected) != 0;
        pinfold_execute_result_done(&result);
    }
    return NULL;
}

static void run_from_threads_that_differ(struct teller *teller)
{
    enum { THREADS = 6 };
    struct thread threads[THREADS];
    pthread_t ids[THREADS];
    pthread_barrier_t turn;

    NEED(pthread_barrier_init(&turn, NULL, THREADS) == 0);
    for (int i = 0; i < THREADS; i++) {
        threads[i] = (struct thread){ teller, nicer_by(i / 2), 0, &turn };
        NEED(pthread_create(&ids[i], NULL, run_with_a_value_of_its_own, &threads[i]) == 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(ids[i], NULL);
        tell("%d wrong\n", threads[i].wrong);
    }
    command(teller, "nice");
}

static void none_is_wrong(const char *text)
{
    assert_int_equal(count(text, "0 wrong\n"), 6);
    assert_int_equal(count(text, "wrong"), 6);
}

static void each_thread_s_commands_have_what_it_has(void **state)
{
    for_each_user(state, run_from_threads_that_differ, none_is_wrong);
}

static void change_nothing(struct teller *teller)
{
    for (int i = 0; i < 50; i++)
        command(teller, "true");
}

static void where_nothing_changes_one_helper_does_for_all(void **state)
{
    if (under_valgrind())
        skip();
    free(hear(*state, change_nothing, true, geteuid()));
    assert_int_equal(told->by_helper, 50);
    assert_int_equal(told->helpers, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORY(a_command_has_the_limits_of_the_moment),
        STORY(a_hard_limit_that_was_raised_is_raised),
        STORY(few_descriptors_are_an_error_or_just_so_many),
        STORY(no_processes_are_an_error),
#if !IS_SANITIZED
        STORY(without_addresses_nothing_runs),
#endif
        STORY(a_helper_does_not_live_longer_than_a_limit_of_time),
        STORY(a_command_has_the_umask_of_the_moment),
        STORY(a_command_has_the_rights_of_the_moment),
        STORY(a_command_runs_when_its_owner_would),
        STORY(a_command_is_in_the_namespaces_of_the_moment),
        STORY(a_command_has_the_root_of_the_moment),
        STORY(what_cannot_be_compared_is_forked),
        STORY(a_command_without_a_directory_has_its_owner_s),
        STORY(each_thread_s_commands_have_what_it_has),
        STORY(where_nothing_changes_one_helper_does_for_all),
    };

    if (!make_stories())
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
