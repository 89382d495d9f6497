/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What isolated sandboxes cost, through the library, beside what else one would do:
 *
 *     sandboxes command ROUNDS PROGRAM [ARG]...   in a live sandbox, and by posix_spawn and wait
 *     sandboxes start ROUNDS [PROGRAM [ARG]...]   from nothing to a finished command, and PROGRAM
 *     sandboxes idle COUNT                        so many at once: memory, and what is left of them
 *
 * The first two take turns and print a line per measurement, its name and nanoseconds; the third
 * prints names and numbers.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <pinfold/pinfold.h>

#include "../tests/tempdir.h"

struct sandbox {
    struct pinfold_backend *backend;
    const struct pinfold_backend_ops *ops;
    void *state;
};

static struct pinfold_error err;
static char workspace[256];

static void die(const char *what) __attribute__((noreturn));
static void die(const char *what)
{
    fprintf(stderr, "sandboxes: %s: %s\n", what, err.msg[0] ? err.msg : strerror(errno));
    exit(1);
}

static int64_t now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void print(const char *name, int64_t began)
{
    printf("%s %" PRId64 "\n", name, now() - began);
}

static struct sandbox open_sandbox(void)
{
    struct pinfold_isolated_options options = PINFOLD_ISOLATED_OPTIONS_INIT;
    struct sandbox box;

    options.workspace_root = workspace; /* what else one would do makes no directory either */
    if (pinfold_isolated_backend_new(&options, &box.backend, &err) < 0)
        die("make a backend");
    box.ops = pinfold_backend_get_ops(box.backend);
    box.state = pinfold_backend_get_state(box.backend);
    if (box.ops->create(box.state, NULL, &err) < 0)
        die("start a sandbox");
    return box;
}

static void close_sandbox(const struct sandbox *box)
{
    if (box->ops->close(box->state, &err) < 0)
        die("stop a sandbox");
    pinfold_backend_unref(box->backend);
}

static void run_inside(const struct sandbox *box, const char *const *argv)
{
    struct pinfold_execute_options options = PINFOLD_EXECUTE_OPTIONS_INIT;
    struct pinfold_execute_result result;

    options.argv = argv;
    if (box->ops->execute(box->state, &options, &result, NULL, &err) < 0 || result.exit_code != 0)
        die("run a command in a sandbox");
    pinfold_execute_result_done(&result);
}

static void run_outside(const char *const *argv)
{
    posix_spawn_file_actions_t actions;
    pid_t pid;
    int status;

    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    errno = posix_spawnp(&pid, argv[0], &actions, NULL, (char *const *)(uintptr_t)argv, environ);
    if (errno != 0 || waitpid(pid, &status, 0) < 0 || status != 0)
        die(argv[0]);
    posix_spawn_file_actions_destroy(&actions);
}

static void measure_commands(int rounds, const char *const *argv)
{
    enum { WARM_UP = 20 };
    struct sandbox box = open_sandbox();

    for (int i = -WARM_UP; i < rounds; i++) {
        int64_t began = now();
        run_inside(&box, argv);
        if (i >= 0)
            print("sandbox", began);
        began = now();
        run_outside(argv);
        if (i >= 0)
            print("spawn", began);
    }
    close_sandbox(&box);
}

static void measure_starts(int rounds, const char *const *contender)
{
    static const char *const argv[] = { "true", NULL };

    for (int i = -1; i < rounds; i++) {
        int64_t began = now();
        struct sandbox box = open_sandbox();
        run_inside(&box, argv);
        if (i >= 0)
            print("start", began);
        began = now();
        close_sandbox(&box);
        if (i >= 0)
            print("stop", began);
        began = now();
        if (contender[0])
            run_outside(contender);
        if (contender[0] && i >= 0)
            print("contender", began);
    }
}

/* ---- many at once ---- */

/* How often a text begins a line of a file, or how often any does. */
static unsigned count_lines(const char *path, const char *word)
{
    char line[4096];
    unsigned count = 0;
    FILE *file = fopen(path, "re");

    while (file && fgets(line, sizeof(line), file))
        count += !word || strstr(line, word) != NULL;
    if (file)
        fclose(file);
    return count;
}

static unsigned count_entries(const char *path)
{
    unsigned count = 0;
    DIR *dir = opendir(path);

    while (dir && readdir(dir))
        count++;
    if (dir)
        closedir(dir);
    return count;
}

static uint64_t number_in(const char *path, const char *label)
{
    unsigned long long number = 0;
    char line[512];
    FILE *file = fopen(path, "re");

    while (file && fgets(line, sizeof(line), file))
        if (strncmp(line, label, strlen(label)) == 0)
            number = strtoull(line + strlen(label), NULL, 10);
    if (file)
        fclose(file);
    return number;
}

/* The proportional set of everything that waits in a sandbox, of whosever, in KiB. */
static uint64_t sum_memory(void)
{
    uint64_t total = 0;
    DIR *dir = opendir("/proc");
    struct dirent *entry;

    while (dir && (entry = readdir(dir))) {
        char path[300];
        snprintf(path, sizeof(path), "/proc/%s/status", entry->d_name);
        if (count_lines(path, "Name:\tpinfold-init") == 0 &&
            count_lines(path, "Name:\tpinfold-super") == 0)
            continue;
        snprintf(path, sizeof(path), "/proc/%s/smaps_rollup", entry->d_name);
        total += number_in(path, "Pss:");
    }
    if (dir)
        closedir(dir);
    return total;
}

/* How many control groups there are of a controller. */
static unsigned count_groups(const char *controller)
{
    char line[512], name[64];
    unsigned count = 0, found;
    FILE *file = fopen("/proc/cgroups", "re");

    while (file && fgets(line, sizeof(line), file))
        if (sscanf(line, "%63s %*u %u", name, &found) == 2 && strcmp(name, controller) == 0)
            count = found;
    if (file)
        fclose(file);
    return count;
}

/* Objects of the kernel that a sandbox has some of. Caches that cannot be read, or are merged with
 * others, count as 0. */
static void print_objects(const char *when)
{
    static const char *const caches[] = { "net_namespace ",     "mnt_cache ",
                                          "pid_namespace ",     "user_namespace ",
                                          "uts_namespace ",     "task_struct ",
                                          "shmem_inode_cache ", "sock_inode_cache " };

    for (size_t i = 0; i < sizeof(caches) / sizeof(caches[0]); i++)
        printf("%s %s%" PRIu64 "\n", when, caches[i], number_in("/proc/slabinfo", caches[i]));
    printf("%s descriptors %u\n", when, count_entries("/proc/self/fd"));
    printf("%s mounts %u\n", when, count_lines("/proc/self/mountinfo", NULL));
    printf("%s groups_of_pids %u\n%s groups_of_memory %u\n", when, count_groups("pids"), when,
           count_groups("memory"));
    printf("%s memory_available_mib %" PRIu64 "\n", when,
           number_in("/proc/meminfo", "MemAvailable:") / 1024);
}

static void measure_idle(int count)
{
    struct sandbox *boxes = calloc((size_t)count, sizeof(*boxes));
    struct rlimit files;
    uint64_t memory;
    int64_t began;

    if (!boxes)
        die("remember so many sandboxes");
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    memory = sum_memory();
    print_objects("before");
    began = now();
    for (int i = 0; i < count; i++)
        boxes[i] = open_sandbox();
    print("started_ns", began);
    printf("pss_kib_each %" PRIu64 "\n", (sum_memory() - memory) / (uint64_t)count);
    print_objects("during");
    began = now();
    for (int i = 0; i < count; i++)
        close_sandbox(&boxes[i]);
    print("stopped_ns", began);
    free(boxes);
    sleep(3); /* the kernel clears namespaces away in its own time */
    print_objects("after");
}

int main(int argc, char **argv)
{
    int number = argc > 2 ? atoi(argv[2]) : 0;

    if (!test_tempdir("pinfold-bench", workspace, sizeof(workspace)))
        die("make a workspace");
    if (number > 0 && strcmp(argv[1], "command") == 0 && argc > 3)
        measure_commands(number, (const char *const *)argv + 3);
    else if (number > 0 && strcmp(argv[1], "start") == 0)
        measure_starts(number, (const char *const *)argv + 3);
    else if (number > 0 && strcmp(argv[1], "idle") == 0 && argc == 3)
        measure_idle(number);
    else {
        fprintf(stderr, "usage: sandboxes command ROUNDS PROGRAM [ARG]...\n"
                        "       sandboxes start ROUNDS [PROGRAM [ARG]...]\n"
                        "       sandboxes idle COUNT\n");
        rmdir(workspace);
        return 2;
    }
    rmdir(workspace);
    return 0;
}
