/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hammer PLACE SECONDS: the host's side of a race. In PLACE are ws, the workspace, seed, dest,
 * down, and outside, where no operation may come. A command in the sandbox (swap.c) exchanges what
 * the operations are about for links to the outside, while threads of this process do them all:
 * what an operation returns must not have the word of the file "outside/token".
 *
 * Prints for each thread "NAME TRIES SUCCESSES", and "naive TRIES HITS": how often an open() by
 * path came out at the secret. Fails when an operation did.
 */
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <pinfold/pinfold.h>

static char place[PATH_MAX - 100], token[64];
static struct pinfold_backend *backend;
static struct pinfold_sandbox *sandbox;
static double end;
static atomic_uint stolen;

static const char *const paths[] = { "file",     "dir/secret",     "near/secret", "deep/er/secret",
                                     "dir/new",  "near/er/secret", "kind",        "deep/secret",
                                     "dir.link", "file.link",      "kind/secret", "dir" };
#define PATHS (sizeof(paths) / sizeof(paths[0]))

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static const char *at(const char *name, char path[static PATH_MAX])
{
    snprintf(path, PATH_MAX, "%s/%s", place, name);
    return path;
}

static void check(const char *operation, const char *path, const void *data, size_t len)
{
    if (!data || !memmem(data, len, token, strlen(token)))
        return;
    atomic_fetch_add(&stolen, 1);
    fprintf(stderr, "%s %s: came out outside\n", operation, path);
}

/* ---- what the threads do: one operation, which returns whether it worked ---- */

static bool read_one(const char *path)
{
    struct pinfold_bytes text = { .data = NULL };
    bool good = pinfold_sandbox_read_file(sandbox, path, &text, NULL, NULL) == 0;

    check("read_file", path, text.data, text.len);
    pinfold_bytes_done(&text);
    return good;
}

static bool write_one(const char *path)
{
    return pinfold_sandbox_write_file(sandbox, path, "evil\n", 5, NULL, NULL) == 0;
}

static bool upload_one(const char *path)
{
    const struct pinfold_upload file = { .path = path, .data = "evil\n", .len = 5 };

    return pinfold_sandbox_add_files(sandbox, &file, 1, true, NULL, NULL, NULL) == 0;
}

static bool download_one(const char *path)
{
    static atomic_uint number;
    char to[PATH_MAX], name[32];
    struct pinfold_download files[2] = { { .path = path }, { .path = path, .host_path = to } };
    struct pinfold_transfer_results results = { .items = NULL };

    snprintf(name, sizeof(name), "down/%u", atomic_fetch_add(&number, 1) % 16);
    at(name, to);
    pinfold_sandbox_download_files(sandbox, files, 2, true, &results, NULL, NULL);
    bool good = results.count == 2 && results.items[1].error.code == 0;
    if (results.count)
        check("download_files", path, results.items[0].content.data, results.items[0].content.len);
    pinfold_transfer_results_done(&results);
    return good;
}

static bool list_one(const char *path)
{
    char dir[64];
    struct pinfold_file_infos infos = { .items = NULL };

    snprintf(dir, sizeof(dir), "%s", path);
    if (strchr(dir, '/'))
        *strchr(dir, '/') = '\0';
    bool good = pinfold_sandbox_list_dir(sandbox, dir, &infos, NULL, NULL) == 0;
    for (size_t i = 0; i < infos.count; i++)
        check("list_dir", dir, infos.items[i].path, strlen(infos.items[i].path));
    pinfold_file_infos_done(&infos);
    return good;
}

static bool move_one(const char *path)
{
    pinfold_sandbox_write_file(sandbox, "moving", "evil\n", 5, NULL, NULL);
    bool good = pinfold_sandbox_move_file(sandbox, "moving", path, NULL, NULL) == 0;
    pinfold_sandbox_move_file(sandbox, path, "moved", NULL, NULL);
    return good && read_one("moved");
}

static bool delete_one(const char *path)
{
    return pinfold_sandbox_delete_files(sandbox, (const char *const[]){ path, NULL }, NULL, NULL) ==
           0;
}

static bool flush_all(const char *path)
{
    char dest[PATH_MAX];
    struct pinfold_sync_result result = { .files_synced = 0 };

    (void)path;
    bool good = pinfold_sandbox_flush(sandbox, at("dest", dest), &result, NULL, NULL) > 0;
    good = good && result.files_synced > 0;
    pinfold_sync_result_done(&result);
    return good;
}

/* A sandbox seeds once; its backend can do it any time. */
static bool seed_all(const char *path)
{
    static const char *const none[] = { NULL };
    char source[PATH_MAX];
    const struct pinfold_seed_request request = { .size = sizeof(request),
                                                  .source = at("seed", source),
                                                  .exclude = none };
    struct pinfold_seed_result result = { .files_seeded = 0 };

    (void)path;
    bool good = pinfold_backend_get_ops(backend)->seed_workspace(
                        pinfold_backend_get_state(backend), &request, &result, NULL, NULL) == 0;
    good = good && result.files_seeded > 0;
    pinfold_seed_result_done(&result);
    return good;
}

static bool execute_one(const char *path)
{
    struct pinfold_execute_options what = PINFOLD_EXECUTE_OPTIONS_INIT;
    struct pinfold_execute_result result = { .exit_code = 0 };

    (void)path;
    what.command = "cat secret";
    what.cwd = "dir";
    bool good = pinfold_sandbox_execute(sandbox, &what, &result, NULL, NULL) == 0 &&
                result.exit_code == 0;
    check("execute", "dir", result.output, result.stdout_len);
    pinfold_execute_result_done(&result);
    return good;
}

/* What all of it would be without care: the proof that the race is there to be lost. */
static bool naive_one(const char *path)
{
    char name[64], whole[PATH_MAX], data[256];
    ssize_t len = 0;
    int fd;

    snprintf(name, sizeof(name), "ws/%s", path);
    fd = open(at(name, whole), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd >= 0) {
        len = read(fd, data, sizeof(data));
        close(fd);
    }
    return len > 0 && memmem(data, (size_t)len, token, strlen(token));
}

static struct worker {
    const char *name;
    bool (*work)(const char *path);
    unsigned long tries, successes;
} workers[] = {
    { "read", read_one, 0, 0 },     { "write", write_one, 0, 0 },
    { "upload", upload_one, 0, 0 }, { "download", download_one, 0, 0 },
    { "list", list_one, 0, 0 },     { "move", move_one, 0, 0 },
    { "delete", delete_one, 0, 0 }, { "flush", flush_all, 0, 0 },
    { "seed", seed_all, 0, 0 },     { "execute", execute_one, 0, 0 },
    { "naive", naive_one, 0, 0 },
};
#define WORKERS (sizeof(workers) / sizeof(workers[0]))

static void *work(void *arg)
{
    struct worker *worker = arg;

    for (unsigned turn = 0; now() < end; turn++) {
        worker->tries++;
        worker->successes += worker->work(paths[turn % PATHS]);
        if (worker->work == delete_one) /* or there would be nothing for the others */
            nanosleep(&(struct timespec){ .tv_nsec = 2000000 }, NULL);
    }
    return NULL;
}

static int fail(const struct pinfold_error *err)
{
    fprintf(stderr, "hammer: %s\n", err->msg);
    return 1;
}

static int open_sandbox(void)
{
    struct pinfold_isolated_options isolated = PINFOLD_ISOLATED_OPTIONS_INIT;
    struct pinfold_sandbox_options options = PINFOLD_SANDBOX_OPTIONS_INIT;
    static const char *const all[] = { "**", NULL };
    const struct pinfold_sync_policy policy = { .sync_include_patterns = all };
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    char path[PATH_MAX];

    isolated.workspace_root = at("ws", path);
    if (pinfold_isolated_backend_new(&isolated, &backend, &err) < 0)
        return fail(&err);
    options.workspace_id = "hammer";
    options.backend = backend;
    options.ttl_seconds = 3600;
    options.sync_policy = &policy;
    if (pinfold_sandbox_new(&options, &sandbox, &err) < 0 ||
        pinfold_sandbox_start(sandbox, NULL, NULL, &err) < 0)
        return fail(&err);
    return 0;
}

/* In the sandbox, until all is over; prints what swap says. */
static int swap_names(const char *seconds)
{
    struct pinfold_execute_options what = PINFOLD_EXECUTE_OPTIONS_INIT;
    struct pinfold_execute_result result = { .exit_code = 0 };
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    char outside[PATH_MAX];
    int r;

    what.argv = (const char *const[]){ "./swap", seconds, at("outside", outside), NULL };
    what.timeout_seconds = atof(seconds) + 60;
    r = pinfold_sandbox_execute(sandbox, &what, &result, NULL, &err);
    if (r < 0)
        return fail(&err);
    fwrite(result.output, 1, result.stdout_len, stdout);
    r = result.exit_code;
    pinfold_execute_result_done(&result);
    return r;
}

int main(int argc, char **argv)
{
    pthread_t threads[WORKERS];
    char path[PATH_MAX];
    FILE *file;
    int r;

    if (argc != 3)
        return 2;
    snprintf(place, sizeof(place), "%s", argv[1]);
    file = fopen(at("token", path), "re");
    if (!file || !fgets(token, sizeof(token), file) || open_sandbox() != 0)
        return 1;
    fclose(file);
    end = now() + atof(argv[2]);
    for (size_t i = 0; i < WORKERS; i++)
        if (pthread_create(&threads[i], NULL, work, &workers[i]) != 0)
            return 1;
    r = swap_names(argv[2]);
    for (size_t i = 0; i < WORKERS; i++) {
        pthread_join(threads[i], NULL);
        printf("%s %lu %lu\n", workers[i].name, workers[i].tries, workers[i].successes);
    }
    pinfold_sandbox_free(sandbox);
    pinfold_backend_unref(backend);
    return r != 0 || atomic_load(&stolen) != 0;
}
