/* SPDX-License-Identifier: Apache-2.0 */
/* Finding the keeper of a process. Include after cmocka.h. */
#ifndef TESTS_KEEPER_H
#define TESTS_KEEPER_H

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

/* The content of a file of a process in /proc, with a NUL. Returns false when it is gone. */
static inline bool read_proc(pid_t pid, const char *file, char *text, size_t size)
{
    char path[64];
    ssize_t len;
    int fd;

    snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    len = fd < 0 ? -1 : read(fd, text, size - 1);
    if (fd >= 0)
        close(fd);
    text[len < 0 ? 0 : len] = '\0';
    return len > 0;
}

/* The child of a process that has its own name of a keeper, 0: there is none. */
static inline pid_t look_for_keeper(pid_t owner)
{
    DIR *dir = opendir("/proc");
    struct dirent *entry;
    char stat[512];
    pid_t found = 0;

    while (dir && !found && (entry = readdir(dir))) {
        pid_t pid = (pid_t)atoi(entry->d_name);
        const char *end;
        if (pid <= 0 || !read_proc(pid, "stat", stat, sizeof(stat)))
            continue;
        end = strstr(stat, "(pinfold-keeper) ");
        if (end && atoi(end + strlen("(pinfold-keeper) S ")) == owner)
            found = pid;
    }
    if (dir)
        closedir(dir);
    return found;
}

static inline void wait_a_little(void)
{
    nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
}

/* It has been started already, and may still be about to settle. */
static inline pid_t keeper_of(pid_t owner)
{
    pid_t found = 0;

    for (int i = 0; i < 20000 && !(found = look_for_keeper(owner)); i++)
        wait_a_little();
    return found;
}

#endif
