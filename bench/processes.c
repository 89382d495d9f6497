/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long whole processes take, from posix_spawn(3) to waitpid(2), with nothing of an interpreter
 * in between. Programs are given as contender.h has it.
 *
 *     processes ROUNDS PROGRAMS              all once in each round, one after another
 *     processes --at-once N COUNT PROGRAM    one of them COUNT times, N at once
 *
 * All programs run once in each round, so that a machine that slows down slows all of them. Prints
 * "NAME NANOSECONDS" for each run; with --at-once for all of them together.
 */
#include "contender.h"

static struct contender contenders[CONTENDERS_MAX];
static atomic_int left;
static atomic_bool failed;

static void *run_some(void *unused)
{
    (void)unused;
    while (!failed && left-- > 0)
        if (contender_run(&contenders[0]) < 0)
            failed = true;
    return NULL;
}

static bool run_at_once(int threads, int count)
{
    int64_t began = bench_now();

    left = count;
    bench_at_once(threads, run_some);
    bench_print(contenders[0].name, began);
    return !failed;
}

static bool run_in_turns(int rounds, int count)
{
    for (int round = 0; round < rounds; round++)
        if (!contenders_turn(contenders, count))
            return false;
    return true;
}

int main(int argc, char **argv)
{
    bool at_once = argc > 4 && strcmp(argv[1], "--at-once") == 0;
    int first = at_once ? 4 : 2;
    int count = argc > first + 1 ? contenders_parse(argv + first, contenders) : -1;
    int rounds = argc > 1 ? atoi(argv[first - 1]) : 0, threads = at_once ? atoi(argv[2]) : 1;

    if (count < 1 || rounds < 1 || threads < 1 || threads > BENCH_THREADS_MAX ||
        (at_once && count > 1)) {
        fputs("usage: processes ROUNDS NAME PROGRAM [ARGUMENT...] [--- NAME PROGRAM ...]...\n"
              "       processes --at-once N COUNT NAME PROGRAM [ARGUMENT...]\n",
              stderr);
        return 2;
    }
    return !(at_once ? run_at_once(threads, rounds) : run_in_turns(rounds, count));
}
