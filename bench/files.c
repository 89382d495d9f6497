/* SPDX-License-Identifier: Apache-2.0 */
/*
 * files ROUNDS BYTES DIRECTORY: what it costs to read and to write one small file through the
 * library, beside open, read and close. Prints a name and nanoseconds for each.
 */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "driver.h"

enum { BYTES_MAX = 1 << 20 };

static char text[BYTES_MAX];
static size_t size;

static struct pinfold_sandbox *local, *isolated;
static char path[4104];

static void read_through(struct pinfold_sandbox *sandbox)
{
    struct pinfold_bytes content = { 0 };

    if (pinfold_sandbox_read_file(sandbox, "file", &content, NULL, &bench_err) < 0 ||
        content.len != size)
        bench_die("read a file");
    pinfold_bytes_done(&content);
}

static void write_through(struct pinfold_sandbox *sandbox)
{
    if (pinfold_sandbox_write_file(sandbox, "file", text, size, NULL, &bench_err) < 0)
        bench_die("write a file");
}

static void read_local(void)
{
    read_through(local);
}

static void read_isolated(void)
{
    read_through(isolated);
}

static void write_local(void)
{
    write_through(local);
}

static void write_isolated(void)
{
    write_through(isolated);
}

static void read_plainly(void)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    char *content;

    if (fd < 0 || fstat(fd, &st) < 0 || !(content = malloc((size_t)st.st_size)) ||
        read(fd, content, (size_t)st.st_size) != (ssize_t)size)
        bench_die(path);
    free(content);
    close(fd);
}

static void write_to(const char *name, int flags)
{
    int fd = open(name, O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0644);

    if (fd < 0 || write(fd, text, size) != (ssize_t)size || close(fd) < 0)
        bench_die(name);
}

static void write_plainly(void)
{
    write_to(path, O_TRUNC);
}

/* What a program does that nobody must ever see half a file of. */
static void replace_plainly(void)
{
    char new_path[4200];

    snprintf(new_path, sizeof(new_path), "%s.new", path);
    write_to(new_path, O_EXCL);
    if (rename(new_path, path) < 0)
        bench_die(path);
}

struct work {
    const char *name;
    void (*run)(void);
};

/* All of them, each time beginning with another: what comes first finds the caches cold. */
static void take_turns(const struct work *work, int count, int round, bool print)
{
    for (int i = 0; i < count; i++) {
        const struct work *one = &work[(i + round) % count];
        int64_t began = bench_now();
        one->run();
        if (print)
            bench_print(one->name, began);
    }
}

int main(int argc, char **argv)
{
    static const struct work reads[] = { { "read-isolated", read_isolated },
                                         { "read-plain", read_plainly },
                                         { "read-local", read_local } };
    static const struct work writes[] = { { "write-isolated", write_isolated },
                                          { "write-replace", replace_plainly },
                                          { "write-local", write_local },
                                          { "write-plain", write_plainly } };
    enum { READS = sizeof(reads) / sizeof(reads[0]), WRITES = sizeof(writes) / sizeof(writes[0]) };
    int rounds = argc == 4 ? atoi(argv[1]) : 0, warm_up = 20;
    char roots[3][4096];

    size = argc == 4 ? (size_t)atol(argv[2]) : 0;
    if (rounds <= 0 || size == 0 || size > BYTES_MAX) {
        fputs("usage: files ROUNDS BYTES DIRECTORY\n", stderr);
        return 2;
    }
    memset(text, 'x', size);
    for (int i = 0; i < 3; i++) {
        snprintf(roots[i], sizeof(roots[i]), "%s/%d", argv[3], i);
        if (mkdir(roots[i], 0755) < 0)
            bench_die(roots[i]);
    }
    snprintf(path, sizeof(path), "%s/file", roots[2]);
    bench_start(local = bench_sandbox(BENCH_LOCAL, roots[0], NULL));
    bench_start(isolated = bench_sandbox(BENCH_ISOLATED, roots[1], NULL));
    for (int i = 0; i < rounds + warm_up; i++) {
        take_turns(writes, WRITES, i, i >= warm_up);
        take_turns(reads, READS, i, i >= warm_up);
    }
    bench_stop(isolated);
    bench_stop(local);
    return 0;
}
