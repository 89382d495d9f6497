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

static void read_plainly(const char *path)
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

static void write_to(const char *path, int flags)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0644);

    if (fd < 0 || write(fd, text, size) != (ssize_t)size || close(fd) < 0)
        bench_die(path);
}

/* What a program does that nobody must ever see half a file of. */
static void replace_plainly(const char *path)
{
    char new_path[4200];

    snprintf(new_path, sizeof(new_path), "%s.new", path);
    write_to(new_path, O_EXCL);
    if (rename(new_path, path) < 0)
        bench_die(path);
}

#define TIMED(name, call)              \
    do {                               \
        int64_t began_ = bench_now();  \
        call;                          \
        if (i >= 0)                    \
            bench_print(name, began_); \
    } while (0)

int main(int argc, char **argv)
{
    char roots[3][4096], path[4104];
    struct pinfold_sandbox *local, *isolated;
    int rounds = argc == 4 ? atoi(argv[1]) : 0;

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
    for (int i = -20; i < rounds; i++) {
        TIMED("write-isolated", write_through(isolated));
        TIMED("write-plain", write_to(path, O_TRUNC));
        TIMED("write-local", write_through(local));
        TIMED("write-replace", replace_plainly(path));
        TIMED("read-isolated", read_through(isolated));
        TIMED("read-plain", read_plainly(path));
        TIMED("read-local", read_through(local));
    }
    bench_stop(isolated);
    bench_stop(local);
    return 0;
}
