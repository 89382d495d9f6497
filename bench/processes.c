/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long whole processes take, from posix_spawn(3) to waitpid(2), with nothing of an interpreter
 * in between.
 *
 *     processes ROUNDS NAME PROGRAM [ARGUMENT...] [--- NAME PROGRAM [ARGUMENT...]]...
 *
 * All programs run once in each round, one after another, so that a machine that slows down slows
 * all of them. Prints "NAME NANOSECONDS" for each run. Standard output and error go to /dev/null.
 */
#include <fcntl.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { CONTENDERS_MAX = 8 };

struct contender {
    const char *name;
    char **argv;
};

static int64_t now(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

/* Returns nanoseconds, or -1 after it said why. */
static int64_t run(const struct contender *contender, const posix_spawn_file_actions_t *actions)
{
    int64_t began = now(), took;
    int status, r;
    pid_t pid;

    r = posix_spawnp(&pid, contender->argv[0], actions, NULL, contender->argv, environ);
    if (r == 0 && waitpid(pid, &status, 0) == pid) {
        took = now() - began;
        if (status == 0)
            return took;
    }
    fprintf(stderr, "processes: %s: %s\n", contender->argv[0],
            r ? strerror(r) : "it did not end with 0");
    return -1;
}

/* Returns how many there are, 0 if that is no list of programs. Puts an end to each vector. */
static size_t parse(char **argv, struct contender contenders[static CONTENDERS_MAX])
{
    size_t count = 0;

    while (argv[0] && argv[1] && count < CONTENDERS_MAX) {
        contenders[count++] = (struct contender){ argv[0], argv + 1 };
        while (*argv && strcmp(*argv, "---") != 0)
            argv++;
        if (!*argv)
            return count;
        *argv++ = NULL;
    }
    return 0;
}

int main(int argc, char **argv)
{
    struct contender contenders[CONTENDERS_MAX];
    size_t count = argc > 3 ? parse(argv + 2, contenders) : 0;
    long rounds = argc > 1 ? strtol(argv[1], NULL, 10) : 0;
    posix_spawn_file_actions_t actions;

    if (count == 0 || rounds <= 0) {
        fputs("usage: processes ROUNDS NAME PROGRAM [ARGUMENT...] [--- NAME PROGRAM ...]...\n",
              stderr);
        return 2;
    }
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
    for (long round = 0; round < rounds; round++) {
        for (size_t i = 0; i < count; i++) {
            int64_t took = run(&contenders[i], &actions);
            if (took < 0)
                return 1;
            printf("%s %lld\n", contenders[i].name, (long long)took);
        }
    }
    posix_spawn_file_actions_destroy(&actions);
    return 0;
}
