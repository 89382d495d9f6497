/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What operations cost that have more and more to do, or more and more around them:
 *
 *     growth tree KIND DIRECTORY          seed and flush DIRECTORY/seed, list, search, compare
 *     growth size BYTES DIRECTORY         read, write, search and compare one file of that size
 *     growth lingering COUNT DIRECTORY    a command, with so many files in the workspace
 *     growth background COUNT DIRECTORY   a command, after so many that left a process behind
 *     growth live COUNT DIRECTORY         a command and a start, with so many sandboxes open
 *     growth managed COUNT DIRECTORY      a start and small work, with one manager of so many
 *     growth run COUNT DIRECTORY          a command, after so many
 *     growth output BYTES DIRECTORY       a command that writes so much
 *
 * Prints lines of a name and nanoseconds; several of one name are several measurements.
 */
#include <fcntl.h>
#include <limits.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "driver.h"

enum { COMMANDS = 30 };

static const char *directory;

/* A new empty directory below the one that was given. */
static const char *make(const char *name)
{
    static char paths[8][4096];
    static int used;
    char *path = paths[used++ % 8];

    snprintf(path, sizeof(paths[0]), "%s/%s", directory, name);
    if (mkdir(path, 0755) < 0)
        bench_die(path);
    return path;
}

static struct pinfold_execute_result execute(struct pinfold_sandbox *sandbox,
                                             const struct pinfold_execute_options *options)
{
    struct pinfold_execute_result result;

    if (pinfold_sandbox_execute(sandbox, options, &result, NULL, &bench_err) < 0 ||
        result.exit_code != 0)
        bench_die("run a command");
    return result;
}

static void shell(struct pinfold_sandbox *sandbox, const char *command)
{
    struct pinfold_execute_options options = PINFOLD_EXECUTE_OPTIONS_INIT;
    struct pinfold_execute_result result;

    options.command = command;
    result = execute(sandbox, &options);
    pinfold_execute_result_done(&result);
}

static void run_true(struct pinfold_sandbox *sandbox)
{
    static const char *const argv[] = { "true", NULL };
    struct pinfold_execute_options options = PINFOLD_EXECUTE_OPTIONS_INIT;
    struct pinfold_execute_result result;

    options.argv = argv;
    result = execute(sandbox, &options);
    pinfold_execute_result_done(&result);
}

static void measure_commands(struct pinfold_sandbox *sandbox, const char *name)
{
    for (int i = 0; i < COMMANDS; i++) {
        int64_t began = bench_now();
        run_true(sandbox);
        bench_print(name, began);
    }
}

static struct pinfold_sandbox *isolated(const char *name)
{
    struct pinfold_sandbox *sandbox = bench_sandbox(BENCH_ISOLATED, make(name), NULL);

    bench_start(sandbox);
    run_true(sandbox);
    return sandbox;
}

/* ---- trees ---- */

static int swallow(void *ctx, const char *text, size_t len)
{
    (void)text;
    *(uint64_t *)ctx += len;
    return 0;
}

/* Compare with the seed, and write the diff when a name is given for that. */
static void compare(struct pinfold_sandbox *sandbox, const char *name, bool diff, uint64_t expected)
{
    struct pinfold_changes_options options = PINFOLD_CHANGES_OPTIONS_INIT;
    struct pinfold_changes changes = { 0 };
    uint64_t bytes = 0;
    int64_t began = bench_now();

    options.on_diff = diff ? swallow : NULL;
    options.on_diff_ctx = &bytes;
    options.max_diff_bytes = UINT64_C(1) << 30;
    options.max_file_bytes = UINT64_C(1) << 28;
    if (pinfold_sandbox_changes(sandbox, &options, &changes, NULL, &bench_err) < 0)
        bench_die("compare");
    bench_print(name, began);
    if (changes.count != expected || (diff && expected > 0 && bytes == 0)) {
        fprintf(stderr, "bench: %zu changes, not %" PRIu64 "\n", changes.count, expected);
        exit(1);
    }
    pinfold_changes_done(&changes);
}

static void search(struct pinfold_sandbox *sandbox, const char *name)
{
    struct pinfold_search_options options = PINFOLD_SEARCH_OPTIONS_INIT;
    struct pinfold_search_result found = { 0 };
    int64_t began = bench_now();

    options.text = "no file has this";
    options.everything = true;
    options.max_file_bytes = UINT64_C(1) << 30;
    if (pinfold_sandbox_search(sandbox, &options, &found, NULL, &bench_err) < 0 ||
        found.errors.count > 0)
        bench_die("search");
    bench_print(name, began);
    pinfold_search_result_done(&found);
}

/* List the directory that the first file is in. */
static void list(struct pinfold_sandbox *sandbox, const struct pinfold_search_result *files)
{
    struct pinfold_file_infos infos = { 0 };
    char *path = strdup(files->items[0].path), *slash = strrchr(path, '/');
    int64_t began;

    if (slash)
        *slash = '\0';
    began = bench_now();
    if (pinfold_sandbox_list_dir(sandbox, slash ? path : ".", &infos, NULL, &bench_err) < 0)
        bench_die("list a directory");
    bench_print("list one directory", began);
    pinfold_file_infos_done(&infos);
    free(path);
}

/* Everything: each directory at the top, and each file. What is searched comes in order. */
static void delete_all(struct pinfold_sandbox *sandbox, const struct pinfold_search_result *files)
{
    struct pinfold_search_result left;
    int64_t began = bench_now();
    char last[NAME_MAX + 1] = "";

    for (size_t i = 0; i < files->count; i++) {
        const char *path = files->items[i].path;
        size_t len = strcspn(path, "/");

        if (strncmp(path, last, len) == 0 && last[len] == '\0')
            continue;
        snprintf(last, sizeof(last), "%.*s", (int)len, path);
        if (pinfold_sandbox_delete(sandbox, last, PINFOLD_DELETE_RECURSIVE, NULL, &bench_err) < 0)
            bench_die("delete a tree");
    }
    bench_print("delete", began);
    left = bench_files(sandbox);
    if (left.count > 0)
        bench_die("delete all of a tree");
    pinfold_search_result_done(&left);
}

static void tree(const char *kind)
{
    const char *root = make("workspace"), *empty = make("empty");
    struct pinfold_search_result files;
    struct pinfold_sandbox *sandbox;
    uint64_t changed;
    char seed[4096];
    int64_t began;

    snprintf(seed, sizeof(seed), "%s/seed", directory);
    sandbox = bench_sandbox(bench_kind(kind), root, seed);
    began = bench_now();
    bench_start(sandbox);
    bench_print("seed", began);
    began = bench_now();
    files = bench_files(sandbox);
    bench_print("walk", began);
    list(sandbox, &files);
    search(sandbox, "search");
    compare(sandbox, "compare, nothing changed", false, 0);
    changed = bench_change(sandbox, &files);
    compare(sandbox, "compare and diff, 1 % changed", true, changed);
    began = bench_now();
    bench_flush(sandbox, empty, files.count);
    bench_print("flush all", began);
    began = bench_now();
    bench_flush(sandbox, NULL, changed);
    bench_print("flush 1 %", began);
    began = bench_now();
    bench_flush(sandbox, NULL, 0);
    bench_print("flush nothing", began);
    delete_all(sandbox, &files);
    pinfold_search_result_done(&files);
    bench_stop(sandbox);
}

/* ---- one large file ---- */

/* Lines of 64 bytes, each of them different; begin makes them others. */
static char *lines(size_t size, char begin)
{
    char *text = malloc(size + 65);

    if (!text)
        bench_die("make a text");
    for (size_t i = 0; i < size; i += 64)
        snprintf(text + i, 65, "%c%062zu\n", begin, i);
    text[size] = '\0';
    return text;
}

static void write_text(struct pinfold_sandbox *sandbox, const char *text, size_t size)
{
    if (pinfold_sandbox_write_file(sandbox, "file", text, size, NULL, &bench_err) < 0)
        bench_die("write a file");
}

static void edit(struct pinfold_sandbox *sandbox, size_t size)
{
    struct pinfold_edit_options options = PINFOLD_EDIT_OPTIONS_INIT;
    char old[64];
    int64_t began;

    snprintf(old, sizeof(old), "%062zu", (size / 2) & ~(size_t)63);
    options.path = "file";
    options.old_text = old;
    options.new_text = "another line";
    began = bench_now();
    if (pinfold_sandbox_edit(sandbox, &options, NULL, NULL, &bench_err) < 0)
        bench_die("edit a file");
    bench_print("edit one line", began);
}

static void size(long number)
{
    size_t bytes = (size_t)number;
    char *old = lines(bytes, 'a'), *new = lines(bytes, 'b'), seed[4096], path[4110];
    const char *root = make("workspace");
    struct pinfold_bytes content = { 0 };
    struct pinfold_sandbox *sandbox;
    int64_t began;
    FILE *file;

    snprintf(seed, sizeof(seed), "%s", make("seed"));
    snprintf(path, sizeof(path), "%s/file", seed);
    file = fopen(path, "we");
    if (!file || fwrite(old, 1, bytes, file) != bytes || fclose(file) != 0)
        bench_die(path);
    sandbox = bench_sandbox(BENCH_LOCAL, root, seed);
    bench_start(sandbox);
    search(sandbox, "search");
    began = bench_now();
    if (pinfold_sandbox_read_file(sandbox, "file", &content, NULL, &bench_err) < 0)
        bench_die("read a file");
    bench_print("read", began);
    pinfold_bytes_done(&content);
    edit(sandbox, bytes);
    compare(sandbox, "compare and diff, one line changed", true, 1);
    began = bench_now();
    write_text(sandbox, new, bytes);
    bench_print("write", began);
    compare(sandbox, "compare and diff, every line changed", true, 1);
    for (size_t i = 0; i < bytes; i += 128) /* every second line is as it was */
        memcpy(new + i, old + i, 64);
    write_text(sandbox, new, bytes);
    compare(sandbox, "compare and diff, every second line changed", true, 1);
    bench_stop(sandbox);
    free(old);
    free(new);
}

/* ---- commands ---- */

static void lingering(long count)
{
    struct pinfold_sandbox *sandbox = isolated("workspace");
    char command[128];

    snprintf(command, sizeof(command), "seq %ld | xargs touch; cp -r . /tmp/files", count);
    shell(sandbox, command);
    measure_commands(sandbox, "command");
    bench_stop(sandbox);
}

static void background(long count)
{
    struct pinfold_sandbox *sandbox = isolated("workspace");

    for (long i = 0; i < count; i++)
        shell(sandbox, "sleep 3600 >/dev/null 2>&1 &");
    measure_commands(sandbox, "command");
    bench_stop(sandbox);
}

static void raise_files(void)
{
    struct rlimit files;

    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
}

static void live(long count)
{
    struct pinfold_sandbox **sandboxes = calloc((size_t)count, sizeof(struct pinfold_sandbox *));

    raise_files();
    if (!sandboxes)
        bench_die("remember so many sandboxes");
    for (long i = 0; i < count; i++) {
        char name[32];
        int64_t began = bench_now();
        snprintf(name, sizeof(name), "workspace-%ld", i);
        sandboxes[i] = isolated(name);
        if (i >= count - 10)
            bench_print("start, and one command", began);
    }
    measure_commands(sandboxes[0], "command in the first");
    measure_commands(sandboxes[count - 1], "command in the last");
    for (long i = 0; i < count; i++) {
        int64_t began = bench_now();
        bench_stop(sandboxes[i]);
        if (i < 10)
            bench_print("stop", began);
    }
    free(sandboxes);
}

static struct pinfold_sandbox *manage(struct pinfold_manager *manager, long number)
{
    struct pinfold_sandbox_options options = PINFOLD_SANDBOX_OPTIONS_INIT;
    struct pinfold_sandbox *sandbox;
    char id[32];
    int64_t began;

    snprintf(id, sizeof(id), "workspace-%ld", number);
    options.backend = bench_backend(BENCH_LOCAL, make(id));
    options.workspace_id = id;
    options.ttl_seconds = 3600;
    options.manager = manager;
    began = bench_now();
    if (pinfold_sandbox_new(&options, &sandbox, &bench_err) < 0)
        bench_die("make a sandbox");
    bench_start(sandbox);
    pinfold_backend_unref(options.backend);
    bench_print("start", began);
    return sandbox;
}

static void managed(long count)
{
    struct pinfold_sandbox **sandboxes = calloc((size_t)count, sizeof(struct pinfold_sandbox *));
    struct pinfold_manager *manager;

    raise_files();
    if (!sandboxes || pinfold_manager_new(NULL, &manager, &bench_err) < 0)
        bench_die("make a manager");
    for (long i = 0; i < count; i++)
        sandboxes[i] = manage(manager, i);
    for (long i = 0; i < COMMANDS; i++) {
        int64_t began = bench_now();
        write_text(sandboxes[i % count], "text", 4);
        bench_print("write_file", began);
    }
    for (long i = 0; i < count; i++) {
        int64_t began = bench_now();
        bench_stop(sandboxes[i]);
        bench_print("stop", began);
    }
    pinfold_manager_unref(manager);
    free(sandboxes);
}

static void run(long count)
{
    struct pinfold_sandbox *sandbox = isolated("workspace");

    for (long i = 0; i < count; i++)
        run_true(sandbox);
    measure_commands(sandbox, "command");
    bench_stop(sandbox);
}

static void output(long bytes)
{
    struct pinfold_sandbox *sandbox = isolated("workspace");
    struct pinfold_execute_options options = PINFOLD_EXECUTE_OPTIONS_INIT;
    char command[64];

    snprintf(command, sizeof(command), "head -c %ld /dev/zero", bytes);
    options.command = command;
    for (int i = 0; i < 5; i++) {
        static const char *const names[] = { "100,000 bytes kept", "all kept" };
        for (int all = 0; all < 2; all++) {
            int64_t began = bench_now();
            struct pinfold_execute_result result;
            options.max_output_bytes = all ? (size_t)bytes + 1 : 0;
            result = execute(sandbox, &options);
            bench_print(names[all], began);
            pinfold_execute_result_done(&result);
        }
    }
    bench_stop(sandbox);
}

static bool measure(const char *name, long number)
{
    static const struct {
        const char *name;
        void (*measure)(long number);
    } modes[] = { { "size", size },    { "lingering", lingering }, { "background", background },
                  { "live", live },    { "managed", managed },     { "run", run },
                  { "output", output } };

    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++)
        if (strcmp(name, modes[i].name) == 0) {
            modes[i].measure(number);
            return true;
        }
    return false;
}

int main(int argc, char **argv)
{
    long number = argc == 4 ? atol(argv[2]) : 0;

    directory = argc >= 4 ? argv[argc - 1] : NULL;
    if (argc == 4 && strcmp(argv[1], "tree") == 0) {
        tree(argv[2]);
        return 0;
    }
    if (number > 0 && measure(argv[1], number))
        return 0;
    fputs("usage: growth tree local|isolated|overlay DIRECTORY\n"
          "       growth size|lingering|background|live|managed|run|output NUMBER DIRECTORY\n",
          stderr);
    return 2;
}
