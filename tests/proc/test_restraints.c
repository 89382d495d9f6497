/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a program, or one thread of it, forbids itself for good holds for its commands, also where
 * nothing that can be counted or named tells it from what was so before.
 */
#include "stories.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#ifndef PR_SET_MDWE
#define PR_SET_MDWE 65
#define PR_GET_MDWE 66
#endif

/* ---- filters of system calls ---- */

struct thread {
    struct teller *teller;
    long forbidden; /* one call, by another number for each thread */
    char said[64];
};

static void forbid(long number)
{
    struct sock_filter program[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)number, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog all = { PF_COUNT(program), program };

    NEED(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    NEED(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &all, 0, 0) == 0);
}

static void *run_with_a_filter(void *arg)
{
    struct thread *thread = arg;
    struct pf_run_request request = thread->teller->f.request;
    struct pinfold_execute_result result;

    if (thread->forbidden >= 0)
        forbid(thread->forbidden);
    request.command = "umask 077 && kill -0 $$ 2>/dev/null && echo may || echo may not";
    request.command_len = strlen(request.command);
    NEED(pf_run(thread->teller->f.launcher, &request, &result, NULL) == 0);
    snprintf(thread->said, sizeof(thread->said), "%s", result.output);
    pinfold_execute_result_done(&result);
    return NULL;
}

/* Each has as many as the next, but not the same: who comes later has its own. */
static void filter_in_threads(struct teller *teller)
{
    const long forbidden[] = { SYS_kill, SYS_swapon, SYS_kill, SYS_swapoff, -1, SYS_swapon };

    command(teller, "true");
    for (size_t i = 0; i < PF_COUNT(forbidden); i++) {
        struct thread thread = { .teller = teller, .forbidden = forbidden[i] };
        pthread_t id;
        NEED(pthread_create(&id, NULL, run_with_a_filter, &thread) == 0);
        pthread_join(id, NULL);
        tell("%s", thread.said);
    }
    command(teller, "echo on");
}

static void only_who_is_forbidden_may_not(const char *text)
{
    assert_string_equal(text, "0: \nmay not\nmay\nmay not\nmay\nmay\nmay\n0: on\n\n");
}

static void each_thread_s_commands_have_its_filters(void **state)
{
    for_each_user(state, filter_in_threads, only_who_is_forbidden_may_not);
}

/* What a container has given to all threads is no reason to start a helper for each. */
static void run_in_threads_after_a_filter(struct teller *teller)
{
    forbid(SYS_swapon);
    for (int i = 0; i < 10; i++) {
        struct thread thread = { .teller = teller, .forbidden = -1 };
        pthread_t id;
        NEED(pthread_create(&id, NULL, run_with_a_filter, &thread) == 0);
        pthread_join(id, NULL);
        command(teller, "true");
    }
}

static void what_all_threads_have_takes_one_helper(void **state)
{
    if (under_valgrind())
        skip();
    free(hear(*state, run_in_threads_after_a_filter, true, geteuid()));
    assert_int_equal(told->by_helper, 10);
    assert_int_equal(told->helpers, 1);
}

/* ---- namespaces of users ---- */

/* In a namespace in which root may do all that there is, and then in one in it, which looks the
 * same. Returns false where there are none. */
static bool become_root_of_another(void)
{
    unsigned uid = geteuid(), gid = getegid();
    const char *const files[] = { "uid_map", "gid_map" };
    char path[64], text[32];

    prctl(PR_SET_DUMPABLE, 1, 0, 0, 0); /* who was somebody else may not write to its own files */
    if (unshare(CLONE_NEWUSER) < 0)
        return false;
    for (size_t i = 0; i < 3; i++) {
        int file, len;
        snprintf(path, sizeof(path), "/proc/self/%s", i == 0 ? "setgroups" : files[i - 1]);
        len = i == 0 ? snprintf(text, sizeof(text), "deny")
                     : snprintf(text, sizeof(text), "0 %u 1", i == 1 ? uid : gid);
        file = open(path, O_WRONLY | O_CLOEXEC);
        NEED(file >= 0 && write(file, text, (size_t)len) == len);
        close(file);
    }
    return true;
}

static void change_users(struct teller *teller)
{
    char own[64], asked[] = "readlink /proc/self/ns/user";
    ssize_t len;

    for (int depth = 0; depth < 4; depth++) {
        command(teller, "id -u >/dev/null");
        len = readlink("/proc/thread-self/ns/user", own, sizeof(own) - 1);
        NEED(len > 0);
        own[len] = '\0';
        NEED(run(&teller->f, asked) == 0 && teller->f.result.exit_code == 0);
        tell("%s\n",
             strncmp(teller->f.result.output, own, (size_t)len) == 0 ? "ours" : "another's");
        if (!become_root_of_another()) {
            tell("the machine allows no more\n");
            return;
        }
    }
}

static void never_another_s(const char *text)
{
    assert_int_equal(count(text, "another's"), 0);
    assert_true(count(text, "ours") >= 1);
}

static void a_command_is_of_the_users_of_the_moment(void **state)
{
    for_each_user(state, change_users, never_another_s);
}

/* ---- memory ---- */

/* What this program says of itself when it is a command: whether memory that could be written may
 * become executable. */
static int say_rules(void)
{
    printf("rules %d\n", prctl(PR_GET_MDWE, 0UL, 0UL, 0UL, 0UL));
    return 0;
}

static void forbid_new_code(struct teller *teller)
{
    command(teller, "./self --rules");
    if (prctl(PR_SET_MDWE, 1UL, 0UL, 0UL, 0UL) < 0)
        tell("the machine has no such rules\n");
    command(teller, "./self --rules");
}

static void holds_where_there_is_such_a_rule(const char *text)
{
    assert_int_equal(count(text, "rules "), 2);
    if (!strstr(text, "no such rules"))
        assert_string_equal(text, "0: rules 0\n\n0: rules 1\n\n");
}

static void a_command_may_make_no_code_if_its_owner_may_not(void **state)
{
    struct fixture *f = *state;
    char line[300];

    snprintf(line, sizeof(line), "cp /proc/%d/exe '%s/self'", (int)getpid(), f->dir);
    assert_int_equal(system(line), 0);
    for_each_user(state, forbid_new_code, holds_where_there_is_such_a_rule);
}

/* ---- files ---- */

/* What is asked of a helper, and a long text for the shell, are files of their own on the way. */
static void allow_no_files(struct teller *teller)
{
    static char big[60000] = "BIG=", text[200000];
    const char *environment[] = { "PATH=/usr/bin:/bin", big, NULL };

    memset(big + 4, 'x', sizeof(big) - 5);
    memset(text, ' ', sizeof(text) - 1);
    memcpy(text, "echo long;", 10);
    teller->f.request.envp = environment;
    command(teller, "echo short ${#BIG}");
    command(teller, text);
    for (rlim_t most = 100000; most > 0; most /= 10) {
        struct rlimit limit = { most, most };
        NEED(setrlimit(RLIMIT_FSIZE, &limit) == 0);
        command(teller, "echo short ${#BIG}");
        command(teller, text);
    }
}

static void what_is_short_needs_none(const char *text)
{
    assert_int_equal(count(text, "0: short 59995\n"), 7);
    assert_int_equal(count(text, "0: long\n"), 1);
    assert_int_equal(count(text, "error"), 6);
}

static void a_limit_of_files_ends_no_owner(void **state)
{
    for_each_user(state, allow_no_files, what_is_short_needs_none);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        STORY(each_thread_s_commands_have_its_filters),
        STORY(what_all_threads_have_takes_one_helper),
        STORY(a_command_is_of_the_users_of_the_moment),
        STORY(a_command_may_make_no_code_if_its_owner_may_not),
        STORY(a_limit_of_files_ends_no_owner),
    };

    if (argc > 1 && strcmp(argv[1], "--rules") == 0)
        return say_rules();
    return make_stories() ? cmocka_run_group_tests(tests, NULL, NULL) : 1;
}
