/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commands from several threads at once, each of which runs one after another:
 *
 *     concurrent local|isolated|spawn THREADS COMMANDS [HEAP_MIB]
 *
 * by a backend, or by posix_spawn(3) and waitpid(2) alone; HEAP_MIB of touched memory are in the
 * process. Prints the nanoseconds of each command, and last those of all together.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <pinfold/pinfold.h>

enum { THREADS_MAX = 256, WARM_UP = 20 };

static const char *const argv_true[] = { "true", NULL };

struct contender {
    struct pinfold_backend *backend; /* NULL: posix_spawn */
    posix_spawn_file_actions_t quiet;
};

struct worker {
    pthread_t thread;
    const struct contender *contender;
    int commands;
    int64_t *took; /* of each */
};

static void die(const char *what, const struct pinfold_error *err)
{
    fprintf(stderr, "concurrent: %s: %s\n", what, err ? err->msg : strerror(errno));
    exit(1);
}

static int64_t now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void run_backend(struct pinfold_backend *backend)
{
    struct pinfold_execute_options options = PINFOLD_EXECUTE_OPTIONS_INIT;
    struct pinfold_execute_result result = { 0 };
    struct pinfold_error err = PINFOLD_ERROR_INIT;

    options.argv = argv_true;
    if (pinfold_backend_get_ops(backend)->execute(pinfold_backend_get_state(backend), &options,
                                                  &result, NULL, &err) < 0 ||
        result.exit_code != 0)
        die("run a command", &err);
    pinfold_execute_result_done(&result);
}

static void run_spawn(const posix_spawn_file_actions_t *quiet)
{
    int status;
    pid_t pid;

    errno = posix_spawnp(&pid, argv_true[0], quiet, NULL, (char *const *)(uintptr_t)argv_true,
                         environ);
    if (errno != 0 || waitpid(pid, &status, 0) < 0 || status != 0)
        die("posix_spawn", NULL);
}

static void run_one(const struct contender *contender)
{
    if (contender->backend)
        run_backend(contender->backend);
    else
        run_spawn(&contender->quiet);
}

static void *work(void *arg)
{
    struct worker *worker = arg;

    for (int i = 0; i < worker->commands; i++) {
        int64_t began = now();
        run_one(worker->contender);
        worker->took[i] = now() - began;
    }
    return NULL;
}

/* Returns the nanoseconds of all together. */
static int64_t run_all(const struct contender *contender, int threads, int commands, int64_t *took)
{
    static struct worker workers[THREADS_MAX];
    int64_t began = now();

    for (int i = 0; i < threads; i++) {
        workers[i] = (struct worker){ .contender = contender,
                                      .commands = commands / threads,
                                      .took = took + i * (commands / threads) };
        errno = pthread_create(&workers[i].thread, NULL, work, &workers[i]);
        if (errno != 0)
            die("start a thread", NULL);
    }
    for (int i = 0; i < threads; i++)
        pthread_join(workers[i].thread, NULL);
    return now() - began;
}

static struct pinfold_backend *open_backend(const char *name, const char *root)
{
    struct pinfold_local_options local = PINFOLD_LOCAL_OPTIONS_INIT;
    struct pinfold_isolated_options isolated = PINFOLD_ISOLATED_OPTIONS_INIT;
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    struct pinfold_backend *backend;
    int r;

    local.workspace_root = root;
    isolated.workspace_root = root;
    r = strcmp(name, "local") == 0 ? pinfold_local_backend_new(&local, &backend, &err)
                                   : pinfold_isolated_backend_new(&isolated, &backend, &err);
    if (r < 0 ||
        pinfold_backend_get_ops(backend)->create(pinfold_backend_get_state(backend), NULL, &err) <
                0)
        die("start a sandbox", &err);
    return backend;
}

static void close_backend(struct pinfold_backend *backend)
{
    struct pinfold_error err = PINFOLD_ERROR_INIT;

    if (pinfold_backend_get_ops(backend)->close(pinfold_backend_get_state(backend), &err) < 0)
        die("stop a sandbox", &err);
    pinfold_backend_unref(backend);
}

static void measure(const struct contender *contender, int threads, int commands)
{
    int64_t *took = calloc((size_t)commands, sizeof(*took));
    int64_t total;

    if (!took)
        die("remember so many commands", NULL);
    for (int i = 0; i < WARM_UP; i++)
        run_one(contender);
    total = run_all(contender, threads, commands, took);
    for (int i = 0; i < commands / threads * threads; i++)
        printf("%" PRId64 "\n", took[i]);
    printf("%" PRId64 "\n", total);
    free(took);
}

int main(int argc, char **argv)
{
    int threads = argc > 3 ? atoi(argv[2]) : 0, commands = argc > 3 ? atoi(argv[3]) : 0;
    size_t heap_len = argc > 4 ? (size_t)atoi(argv[4]) << 20 : 0;
    struct contender contender = { .backend = NULL };
    struct pinfold_temp_workspace *workspace = NULL;
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    char *heap = heap_len ? malloc(heap_len) : NULL;

    if (threads <= 0 || threads > THREADS_MAX || commands < threads || (heap_len && !heap)) {
        fputs("usage: concurrent local|isolated|spawn THREADS COMMANDS [HEAP_MIB]\n", stderr);
        return 2;
    }
    if (heap)
        explicit_bzero(heap, heap_len);
    posix_spawn_file_actions_init(&contender.quiet);
    posix_spawn_file_actions_addopen(&contender.quiet, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    if (pinfold_temp_workspace_new(&workspace, &err) < 0)
        die("make a workspace", &err);
    if (strcmp(argv[1], "spawn") != 0)
        contender.backend = open_backend(argv[1], pinfold_temp_workspace_path(workspace));
    measure(&contender, threads, commands);
    if (contender.backend)
        close_backend(contender.backend);
    pinfold_temp_workspace_free(workspace, NULL);
    posix_spawn_file_actions_destroy(&contender.quiet);
    free(heap);
    return 0;
}
