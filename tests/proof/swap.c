/* SPDX-License-Identifier: Apache-2.0 */
/*
 * swap SECONDS OUTSIDE: inside a sandbox, exchange files and directories of the workspace for links
 * that lead, on the host, to the directory OUTSIDE, as fast as it goes. Prints how often.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef RENAME_EXCHANGE
#define RENAME_EXCHANGE 2
#endif

static const char *outside;
static double end;

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void put(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);

    if (fd >= 0) {
        (void)!write(fd, "decoy\n", 6);
        close(fd);
    }
}

/* The host deletes and replaces what it finds: make both sides of a swap anew. */
static void make_dir(const char *name, const char *link, const char *target)
{
    char path[256];

    mkdir(name, 0755);
    snprintf(path, sizeof(path), "%s/secret", name);
    put(path);
    if (readlink(link, path, sizeof(path)) < 0) {
        unlink(link);
        (void)!symlink(target, link);
    }
}

static void make_file(const char *name, const char *link, const char *target)
{
    char path[256];

    unlink(name);
    put(name);
    if (readlink(link, path, sizeof(path)) < 0) {
        unlink(link);
        (void)!symlink(target, link);
    }
}

/* Swap two names until the time is over. Returns how often it worked. */
static unsigned long swap(const char *name, const char *link, const char *target,
                          void (*make)(const char *, const char *, const char *))
{
    unsigned long count = 0;

    for (unsigned long turn = 0; now() < end; turn++) {
        if (turn % 64 == 0)
            make(name, link, target);
        if (renameat2(AT_FDCWD, name, AT_FDCWD, link, RENAME_EXCHANGE) == 0)
            count++;
    }
    return count;
}

/* A directory that whoever is in it is taken elsewhere with: to where its .. is another. */
static unsigned long carry(void)
{
    unsigned long count = 0;

    mkdir("away", 0755);
    while (now() < end) {
        mkdir("deep", 0755);
        mkdir("deep/er", 0755);
        put("deep/er/secret");
        count += rename("deep/er", "away/er") == 0;
        count += rename("away/er", "deep/er") == 0;
    }
    return count;
}

/* A file that becomes a link, a FIFO, a directory and a file again. */
static unsigned long change_kind(const char *name, const char *target)
{
    unsigned long count = 0;

    while (now() < end) {
        unlink(name);
        rmdir(name);
        switch (count++ % 4) {
        case 0:
            (void)!symlink(target, name);
            break;
        case 1:
            mkfifo(name, 0600);
            break;
        case 2:
            mkdir(name, 0755);
            break;
        default:
            put(name);
        }
    }
    return count;
}

static unsigned long run(int number)
{
    char secret[256];

    snprintf(secret, sizeof(secret), "%s/secret", outside);
    switch (number) {
    case 0:
        return swap("file", "file.link", secret, make_file);
    case 1:
        return swap("dir", "dir.link", outside, make_dir);
    case 2:
        return swap("near", "near.link", "../outside", make_dir);
    case 3:
        return swap("deep", "deep.link", outside, make_dir);
    case 4:
        return carry();
    default:
        return change_kind("kind", secret);
    }
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    end = now() + atof(argv[1]);
    outside = argv[2];
    for (int number = 0; number < 6; number++)
        if (fork() == 0) {
            printf("swap %d %lu\n", number, run(number));
            fflush(stdout);
            _exit(0);
        }
    while (wait(NULL) > 0)
        ;
    return 0;
}
