/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs that are run side by side, and how long each takes. The drivers of this directory take
 * them as words:
 *
 *     NAME PROGRAM [ARGUMENT...] [--- NAME PROGRAM [ARGUMENT...]]...
 *
 * "{}" in an argument becomes a number that no other run has, for names of directories and
 * containers. NAME@FILE is run in the mount namespace that FILE is a name of. Standard output and
 * error go to /dev/null.
 */
#ifndef BENCH_CONTENDER_H
#define BENCH_CONTENDER_H

#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { CONTENDERS_MAX = 12, CONTENDER_WORDS = 64, CONTENDER_WORD = 4096 };

/* What takes longer than this is run in every fifth round only. */
#define CONTENDER_SLOW_NS 20000000
enum { CONTENDER_SLOW_SKIPS = 4 };

struct contender {
    char *name;
    char **argv;
    int ns_fd;       /* -1: where we are */
    int64_t fastest; /* run so far; 0: none */
    int skip;        /* so many rounds without it */
};

static inline int64_t bench_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static inline void bench_print(const char *name, int64_t began)
{
    printf("%s %" PRId64 "\n", name, bench_now() - began);
}

enum { BENCH_THREADS_MAX = 64 };

/* Have several threads run a function at once, and wait for them. */
static inline void bench_at_once(int threads, void *(*run)(void *unused))
{
    pthread_t ids[BENCH_THREADS_MAX];

    for (int i = 0; i < threads; i++)
        if (pthread_create(&ids[i], NULL, run, NULL) != 0)
            abort();
    for (int i = 0; i < threads; i++)
        pthread_join(ids[i], NULL);
}

/* Take the file of a namespace off the name. Returns false when it cannot be opened. */
static inline bool contender_init(struct contender *contender, char **words)
{
    char *at = strchr(words[0], '@');

    *contender = (struct contender){ words[0], words + 1, -1, 0, 0 };
    if (!at)
        return true;
    *at = '\0';
    contender->ns_fd = open(at + 1, O_RDONLY | O_CLOEXEC);
    if (contender->ns_fd < 0)
        perror(at + 1);
    return contender->ns_fd >= 0;
}

/* Returns how many there are, or -1 if that is no list of programs. Puts an end to each vector. */
static inline int contenders_parse(char **words, struct contender found[static CONTENDERS_MAX])
{
    int count = 0;

    while (words[0] && words[1] && count < CONTENDERS_MAX) {
        if (!contender_init(&found[count++], words))
            return -1;
        while (*words && strcmp(*words, "---") != 0)
            words++;
        if (!*words)
            return count;
        *words++ = NULL;
    }
    return words[0] ? -1 : count;
}

/* A copy of the arguments with numbers in place of "{}". Returns false when they are too long. */
static inline bool contender_fill(char **argv, char *filled[static CONTENDER_WORDS],
                                  char (*space)[CONTENDER_WORD])
{
    static atomic_int runs;
    int number = runs++, count = 0, used = 0;

    for (; argv[count]; count++) {
        char *hole = strstr(argv[count], "{}");
        if (count + 1 == CONTENDER_WORDS || (hole && used == 2))
            return false;
        filled[count] = argv[count];
        if (!hole)
            continue;
        snprintf(space[used], CONTENDER_WORD, "%.*s%d-%d%s", (int)(hole - argv[count]), argv[count],
                 (int)getpid(), number, hole + 2);
        filled[count] = space[used++];
    }
    filled[count] = NULL;
    return true;
}

/* Go into a mount namespace; other threads stay. Returns a way back, or -1. */
static inline int contender_enter(int ns_fd)
{
    int back = open("/proc/thread-self/ns/mnt", O_RDONLY | O_CLOEXEC);

    if (back < 0 || unshare(CLONE_FS) < 0 || setns(ns_fd, CLONE_NEWNS) < 0) {
        perror("enter a mount namespace");
        return -1;
    }
    return back;
}

/* Returns nanoseconds from the start to the end, or -1 after it said why. */
static inline int64_t contender_spawn(char **argv)
{
    posix_spawn_file_actions_t actions;
    int64_t began, took;
    int status = 0, r;
    pid_t pid;

    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
    began = bench_now();
    r = posix_spawnp(&pid, argv[0], &actions, NULL, argv, environ);
    if (r == 0)
        waitpid(pid, &status, 0);
    took = bench_now() - began;
    posix_spawn_file_actions_destroy(&actions);
    if (r == 0 && status == 0)
        return took;
    fprintf(stderr, "%s: %s\n", argv[0], r ? strerror(r) : "it did not end with 0");
    return -1;
}

/* Run a program. Returns as contender_spawn(). */
static inline int64_t contender_run(const struct contender *contender)
{
    char space[2][CONTENDER_WORD];
    char *argv[CONTENDER_WORDS];
    int64_t took;
    int back = -1;

    if (!contender_fill(contender->argv, argv, space)) {
        fprintf(stderr, "%s: too many words\n", contender->name);
        return -1;
    }
    if (contender->ns_fd >= 0) {
        back = contender_enter(contender->ns_fd);
        if (back < 0)
            return -1;
    }
    took = contender_spawn(argv);
    if (back >= 0) {
        if (setns(back, CLONE_NEWNS) < 0)
            took = -1;
        close(back);
    }
    return took;
}

/* Give each its turn, but not each time to those that are slow, and print "NAME NANOSECONDS".
 * Returns false when one failed. */
static inline bool contenders_turn(struct contender *contenders, int count)
{
    for (struct contender *c = contenders; c < contenders + count; c++) {
        int64_t took;
        if (c->skip-- > 0)
            continue;
        took = contender_run(c);
        if (took < 0)
            return false;
        printf("%s %" PRId64 "\n", c->name, took);
        if (c->fastest == 0 || took < c->fastest)
            c->fastest = took;
        c->skip = c->fastest > CONTENDER_SLOW_NS ? CONTENDER_SLOW_SKIPS : 0;
    }
    return true;
}

#endif
