/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What isolated sandboxes cost, through the library, beside what else one would do:
 *
 *     sandboxes command ROUNDS PROGRAM [ARG]... [--- OTHERS]
 *                            in live sandboxes, and by posix_spawn
 *     sandboxes start ROUNDS [OTHERS]
 *                            from nothing to a finished command, and back to nothing
 *     sandboxes rate N COUNT
 *                            COUNT of them, N at once: start, run true, stop
 *     sandboxes hold COUNT
 *                            so many at once, until a line comes
 *
 * OTHERS are programs as contender.h has them, which take turns with ours. Printed are lines of a
 * name and nanoseconds.
 */
#include <sys/resource.h>

#include "../tests/tempdir.h"
#include "driver.h"

enum { WARM_UP = 20 };

struct box {
    struct pinfold_backend *backend;
    const struct pinfold_backend_ops *ops;
    void *state;
};

static char workspace[256];
static struct contender contenders[CONTENDERS_MAX];

/* Of the backend alone, which is what a program that keeps its own books would use. */
static struct box open_box(enum bench_kind kind)
{
    struct box box;

    /* With a root: what else one would do makes no directory either. */
    box.backend = bench_backend(kind, workspace);
    box.ops = pinfold_backend_get_ops(box.backend);
    box.state = pinfold_backend_get_state(box.backend);
    if (box.ops->create(box.state, NULL, &bench_err) < 0)
        bench_die("start a sandbox");
    return box;
}

static void close_box(const struct box *box)
{
    if (box->ops->close(box->state, &bench_err) < 0)
        bench_die("stop a sandbox");
    pinfold_backend_unref(box->backend);
}

static void run_inside(const struct box *box, const char *const *argv)
{
    struct pinfold_execute_options options = PINFOLD_EXECUTE_OPTIONS_INIT;
    struct pinfold_execute_result result;

    options.argv = argv;
    if (box->ops->execute(box->state, &options, &result, NULL, &bench_err) < 0 ||
        result.exit_code != 0)
        bench_die("run a command in a sandbox");
    pinfold_execute_result_done(&result);
}

static void run_outside(char **argv, bool print)
{
    int64_t took = contender_spawn(argv);

    if (took < 0)
        exit(1);
    if (print)
        printf("spawn %" PRId64 "\n", took);
}

/* The words up to "---", which becomes the end of them. Returns what comes behind. */
static char **cut(char **words)
{
    while (*words && strcmp(*words, "---") != 0)
        words++;
    if (!*words)
        return words;
    *words = NULL;
    return words + 1;
}

static void take_turns(int count)
{
    if (!contenders_turn(contenders, count))
        exit(1);
}

static void measure_commands(int rounds, char **argv)
{
    const char *const *inside = (const char *const *)argv;
    int count = contenders_parse(cut(argv), contenders);
    struct box isolated = open_box(BENCH_ISOLATED), local = open_box(BENCH_LOCAL);

    if (count < 0)
        bench_die("read what else to run");
    for (int i = -WARM_UP; i < rounds; i++) {
        int64_t began = bench_now();
        run_inside(&isolated, inside);
        if (i >= 0)
            bench_print("isolated", began);
        run_outside(argv, i >= 0);
        began = bench_now();
        run_inside(&local, inside);
        if (i >= 0) {
            bench_print("local", began);
            take_turns(count);
        }
    }
    close_box(&isolated);
    close_box(&local);
}

static void measure_starts(int rounds, char **others)
{
    static const char *const argv[] = { "true", NULL };
    int count = contenders_parse(others, contenders);

    if (count < 0)
        bench_die("read what else to run");
    for (int i = -1; i < rounds; i++) {
        int64_t began = bench_now();
        struct box box = open_box(BENCH_ISOLATED);
        run_inside(&box, argv);
        if (i >= 0)
            bench_print("start", began);
        began = bench_now();
        close_box(&box);
        if (i >= 0) {
            bench_print("stop", began);
            take_turns(count);
        }
    }
}

/* ---- many ---- */

static atomic_int left;

static void *open_and_close(void *unused)
{
    static const char *const argv[] = { "true", NULL };

    (void)unused;
    while (left-- > 0) {
        struct box box = open_box(BENCH_ISOLATED);
        run_inside(&box, argv);
        close_box(&box);
    }
    return NULL;
}

static void measure_rate(int threads, int count)
{
    int64_t began = bench_now();

    left = count;
    bench_at_once(threads, open_and_close);
    bench_print("isolated", began);
}

/* Say what was done, and wait until somebody has looked. */
static void pause_after(const char *what, int64_t began)
{
    char line[16];

    bench_print(what, began);
    fflush(stdout);
    if (!fgets(line, sizeof(line), stdin))
        exit(1);
}

static void hold(int count)
{
    struct box *boxes = calloc((size_t)count, sizeof(*boxes));
    struct rlimit files;
    int64_t began;

    if (!boxes)
        bench_die("remember so many sandboxes");
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    pause_after("ready", bench_now());
    began = bench_now();
    for (int i = 0; i < count; i++)
        boxes[i] = open_box(BENCH_ISOLATED);
    pause_after("started", began);
    began = bench_now();
    for (int i = 0; i < count; i++)
        close_box(&boxes[i]);
    free(boxes);
    pause_after("stopped", began);
}

static bool run(int number, char **argv, int argc)
{
    if (number <= 0)
        return false;
    if (strcmp(argv[1], "command") == 0 && argc > 3)
        measure_commands(number, argv + 3);
    else if (strcmp(argv[1], "start") == 0)
        measure_starts(number, argv + 3);
    else if (strcmp(argv[1], "rate") == 0 && argc == 4 && number <= BENCH_THREADS_MAX)
        measure_rate(number, atoi(argv[3]));
    else if (strcmp(argv[1], "hold") == 0 && argc == 3)
        hold(number);
    else
        return false;
    return true;
}

int main(int argc, char **argv)
{
    bool known;

    if (!test_tempdir("pinfold-bench", workspace, sizeof(workspace)))
        bench_die("make a workspace");
    known = run(argc > 2 ? atoi(argv[2]) : 0, argv, argc);
    rmdir(workspace);
    if (!known)
        fprintf(stderr, "usage: sandboxes command ROUNDS PROGRAM [ARG]... [--- OTHERS]\n"
                        "       sandboxes start ROUNDS [OTHERS]\n"
                        "       sandboxes rate N COUNT\n"
                        "       sandboxes hold COUNT\n");
    return known ? 0 : 2;
}
