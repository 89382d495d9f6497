/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commands from several threads at once, each of which runs one after another:
 *
 *     concurrent local|isolated|spawn THREADS COMMANDS [HEAP_MIB]
 *
 * in a sandbox, or by posix_spawn(3) and waitpid(2) alone; HEAP_MIB of touched memory are in the
 * process. Prints "command NANOSECONDS" for each, and "all NANOSECONDS" at the end.
 */
#include <pthread.h>

#include "../tests/tempdir.h"
#include "driver.h"

enum { WARM_UP = 20 };

struct worker {
    pthread_t thread;
    struct pinfold_sandbox *sandbox; /* NULL: posix_spawn */
    int commands;
    int64_t *took; /* of each */
};

static int64_t run_inside(struct pinfold_sandbox *sandbox)
{
    static const char *const argv[] = { "true", NULL };
    struct pinfold_execute_options options = PINFOLD_EXECUTE_OPTIONS_INIT;
    struct pinfold_execute_result result = { 0 };
    int64_t began = bench_now(), took;

    options.argv = argv;
    if (pinfold_sandbox_execute(sandbox, &options, &result, NULL, &bench_err) < 0 ||
        result.exit_code != 0)
        bench_die("run a command in a sandbox");
    took = bench_now() - began;
    pinfold_execute_result_done(&result);
    return took;
}

static int64_t run_one(struct pinfold_sandbox *sandbox)
{
    char name[] = "true", *argv[] = { name, NULL };
    int64_t took = sandbox ? run_inside(sandbox) : contender_spawn(argv);

    if (took < 0)
        exit(1);
    return took;
}

static void *work(void *arg)
{
    struct worker *worker = arg;

    for (int i = 0; i < worker->commands; i++)
        worker->took[i] = run_one(worker->sandbox);
    return NULL;
}

static void measure(struct pinfold_sandbox *sandbox, int threads, int commands)
{
    struct worker workers[BENCH_THREADS_MAX];
    int64_t *took = calloc((size_t)(threads * commands), sizeof(*took)), began;

    if (!took)
        bench_die("remember so many commands");
    for (int i = 0; i < WARM_UP; i++)
        run_one(sandbox);
    began = bench_now();
    for (int i = 0; i < threads; i++) {
        workers[i] = (struct worker){ 0, sandbox, commands, took + i * commands };
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0)
            bench_die("start a thread");
    }
    for (int i = 0; i < threads; i++)
        pthread_join(workers[i].thread, NULL);
    bench_print("all", began);
    for (int i = 0; i < threads * commands; i++)
        printf("command %" PRId64 "\n", took[i]);
    free(took);
}

/* Memory that a fork would have to go through. */
static char *fill_heap(size_t len)
{
    char *heap = malloc(len);

    if (!heap)
        bench_die("have such a heap");
    memset(heap, 'x', len);
    return heap;
}

int main(int argc, char **argv)
{
    int threads = argc > 3 ? atoi(argv[2]) : 0, commands = argc > 3 ? atoi(argv[3]) : 0;
    struct pinfold_sandbox *sandbox = NULL;
    char workspace[256], *heap;

    if (threads < 1 || threads > BENCH_THREADS_MAX || commands < threads) {
        fputs("usage: concurrent local|isolated|spawn THREADS COMMANDS [HEAP_MIB]\n", stderr);
        return 2;
    }
    heap = fill_heap(argc > 4 ? (size_t)atoi(argv[4]) << 20 : 1);
    if (!test_tempdir("pinfold-bench", workspace, sizeof(workspace)))
        bench_die("make a workspace");
    if (strcmp(argv[1], "spawn") != 0) {
        sandbox = bench_sandbox(bench_kind(argv[1]), workspace, NULL);
        bench_start(sandbox);
    }
    measure(sandbox, threads, commands / threads);
    if (sandbox)
        bench_stop(sandbox);
    free(heap);
    rmdir(workspace);
    return 0;
}
