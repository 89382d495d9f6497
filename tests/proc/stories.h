/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each story is lived in a process of its own, once in a small one that forks its commands and once
 * in a large one, whose helper does, for whoever runs the tests and for an ordinary user: what both
 * tell must be the same, and what was meant.
 */
#ifndef TESTS_PROC_STORIES_H
#define TESTS_PROC_STORIES_H

#include "harness.h"

#include <grp.h>
#include <sys/mman.h>

#define HEAP ((size_t)64 << 20)

/* What a story tells, in memory that it shares with the test. */
struct told {
    size_t used;
    int by_helper, by_fork, helpers;
    char text[200000];
};

static struct told *told;

struct teller {
    struct fixture f; /* without a descriptor of its own: a story ends with its process */
    pid_t helper;     /* the last one */
};

typedef void (*story_fn)(struct teller *teller);

static inline void __attribute__((format(printf, 1, 2))) tell(const char *format, ...)
{
    va_list arguments;
    int len;

    va_start(arguments, format);
    len = vsnprintf(told->text + told->used, sizeof(told->text) - told->used, format, arguments);
    va_end(arguments);
    told->used += (size_t)len;
    if (told->used >= sizeof(told->text))
        _exit(8);
}

/* What a story cannot go on without. */
#define NEED(what)                                      \
    do {                                                \
        if (!(what)) {                                  \
            tell("cannot %s: %d\n", #what, (int)errno); \
            _exit(9);                                   \
        }                                               \
    } while (0)

/* Run a command, and tell what came of it. */
static inline void command(struct teller *teller, const char *text)
{
    struct fixture *f = &teller->f;
    int r = run(f, text);

    if (r < 0)
        tell("error %d\n", r);
    else
        tell("%d: %s\n", f->result.exit_code, f->result.output);
    if (pf_launcher_last_mode(f->launcher) == PF_LAUNCH_DIRECT)
        told->by_fork++;
    else
        told->by_helper++;
    if (pf_launcher_helper(f->launcher) > 0 && pf_launcher_helper(f->launcher) != teller->helper) {
        teller->helper = pf_launcher_helper(f->launcher);
        told->helpers++;
    }
}

static inline void become(uid_t uid)
{
    if (uid == geteuid())
        return;
    NEED(setgroups(0, NULL) == 0);
    NEED(setresgid(uid, uid, uid) == 0);
    NEED(setresuid(uid, uid, uid) == 0);
}

/* The helper, where every user can get at it. */
static inline void copy_helper(const struct fixture *f, char *path, size_t size)
{
    char line[3 * PATH_MAX];

    snprintf(path, size, "%s/pinfold-launch", f->dir);
    snprintf(line, sizeof(line), "cp --remove-destination -- '%s' '%s'", helper_path(), path);
    assert_int_equal(system(line), 0);
}

static inline void live(const struct fixture *f, story_fn story, bool large, uid_t uid,
                        const char *helper)
{
    static struct teller teller;
    char *heap =
            large ? mmap(NULL, HEAP, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
                  : NULL;

    NEED(heap != MAP_FAILED);
    if (heap)
        memset(heap, 1, HEAP);
    become(uid);
    teller.f = *f;
    teller.f.launcher = NULL;
    NEED(pf_launcher_new(&teller.f.launcher, NULL) == 0);
    pf_launcher_force(teller.f.launcher, large ? PF_LAUNCH_AUTO : PF_LAUNCH_DIRECT, helper);
    story(&teller);
    pf_launcher_free(teller.f.launcher);
}

/* Live the story, and return what it told. */
static inline char *hear(const struct fixture *f, story_fn story, bool large, uid_t uid)
{
    char helper[200];
    int status;
    pid_t pid;

    copy_helper(f, helper, sizeof(helper));
    memset(told, 0, sizeof(*told));
    pid = fork();
    if (pid == 0) {
        live(f, story, large, uid, helper);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (status != 0)
        fail_msg("status %x: %s", (unsigned)status, told->text);
    return strdup(told->text);
}

/* A user of this test's own: a limit counts what others run, too. */
static inline uid_t stranger(void)
{
    return 0x2000000 + (uid_t)getpid();
}

/* Small and large, for this user or another. Returns what both told. */
static inline char *same_story(const struct fixture *f, story_fn story, uid_t uid)
{
    char *small = hear(f, story, false, uid), *large;

    assert_int_equal(told->by_helper, 0);
    assert_true(told->by_fork > 0);
    large = hear(f, story, true, uid);
    assert_true(told->by_helper > 0);
    assert_string_equal(small, large);
    free(small);
    return large;
}

typedef void (*judge_fn)(const char *text);

static inline void for_each_user(void **state, story_fn story, judge_fn judge)
{
    struct fixture *f = *state;
    char *text;

    if (under_valgrind())
        skip(); /* it has limits of its own, and a vfork is none there */
    assert_int_equal(chmod(f->dir, 0777), 0); /* for who was somebody else before */
    text = same_story(f, story, geteuid());
    judge(text);
    free(text);
    if (geteuid() != 0)
        return;
    text = same_story(f, story, stranger());
    judge(text);
    free(text);
}

static inline int count(const char *text, const char *what)
{
    int found = 0;

    for (const char *at = text; (at = strstr(at, what)); at++)
        found++;
    return found;
}

static inline bool make_stories(void)
{
    told = mmap(NULL, sizeof(*told), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return told != MAP_FAILED;
}

#define STORY(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

#endif
