/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a sandbox's seed and flush cost, through the library:
 *
 *     workspace seed KIND ROOT SEED            fill the workspace ROOT from SEED
 *     workspace flush ROUNDS KIND ROOT SEED [OTHERS]
 *                       the same, then in each round change every hundredth file, and flush to SEED
 *
 * KIND is local, isolated or overlay. OTHERS are programs as contender.h has them, which are run
 * after each flush: for copying the same changes in another way. Prints a name and nanoseconds.
 */
#include "driver.h"

static int seed(char **argv)
{
    struct pinfold_sandbox *sandbox = bench_sandbox(bench_kind(argv[0]), argv[1], argv[2]);
    int64_t began = bench_now();

    bench_start(sandbox);
    bench_print("seed", began);
    bench_stop(sandbox);
    return 0;
}

static int flush(int rounds, char **argv)
{
    struct pinfold_sandbox *sandbox = bench_sandbox(bench_kind(argv[0]), argv[1], argv[2]);
    struct contender contenders[CONTENDERS_MAX];
    int count = contenders_parse(argv + 3, contenders);
    struct pinfold_search_result files;

    if (count < 0)
        bench_die("read what else to run");
    bench_start(sandbox);
    files = bench_files(sandbox);
    for (int i = 0; i < rounds; i++) {
        uint64_t changed = bench_change(sandbox, &files);
        int64_t began = bench_now();
        bench_flush(sandbox, NULL, changed);
        bench_print("flush", began);
        for (int one = 0; one < count; one++)
            contenders[one].skip = 0; /* they have the same to do each time */
        if (!contenders_turn(contenders, count))
            return 1;
    }
    pinfold_search_result_done(&files);
    bench_stop(sandbox);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 5 && strcmp(argv[1], "seed") == 0)
        return seed(argv + 2);
    if (argc >= 6 && strcmp(argv[1], "flush") == 0 && atoi(argv[2]) > 0)
        return flush(atoi(argv[2]), argv + 3);
    fputs("usage: workspace seed KIND ROOT SEED\n"
          "       workspace flush ROUNDS KIND ROOT SEED [OTHERS]\n",
          stderr);
    return 2;
}
