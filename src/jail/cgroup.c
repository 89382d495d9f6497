/* SPDX-License-Identifier: Apache-2.0 */
#include "jail/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/random.h"

#define ROOT "/sys/fs/cgroup"
#define PREFIX "pinfold-"

/* One small write; these files take a value whole or not at all. */
static bool put(const char *dir, const char *file, const char *value)
{
    char path[PATH_MAX];

    if (snprintf(path, sizeof(path), "%s/%s", dir, file) >= (int)sizeof(path))
        return false;
    _cleanup_close_ int fd = open(path, O_WRONLY | O_CLOEXEC);
    return fd >= 0 && write(fd, value, strlen(value)) == (ssize_t)strlen(value);
}

static bool put_number(const char *dir, const char *file, uint64_t number)
{
    char text[32];

    if (number == PINFOLD_UNLIMITED)
        return true;
    snprintf(text, sizeof(text), "%llu", (unsigned long long)number);
    return put(dir, file, text);
}

/* Groups that an owner left because it was killed. One that is in use cannot be removed. */
static void sweep(const char *parent)
{
    struct dirent *entry;
    DIR *dir = opendir(parent);

    while (dir && (entry = readdir(dir))) {
        char *end;
        long owner;
        if (strncmp(entry->d_name, PREFIX, strlen(PREFIX)) != 0)
            continue;
        owner = strtol(entry->d_name + strlen(PREFIX), &end, 10);
        if (*end == '-' && owner > 0 && kill((pid_t)owner, 0) < 0 && errno == ESRCH)
            unlinkat(dirfd(dir), entry->d_name, AT_REMOVEDIR);
    }
    if (dir)
        closedir(dir);
}

/* Where this process is in the hierarchy of a controller, "" being version 2. */
static bool own_group(const char *controller, char *ret_path, size_t size)
{
    char line[PATH_MAX];
    bool found = false;
    FILE *file = fopen("/proc/self/cgroup", "re");

    while (file && !found && fgets(line, sizeof(line), file)) {
        char *name = strchr(line, ':'), *path = name ? strchr(name + 1, ':') : NULL;
        if (!path)
            continue;
        *path++ = '\0';
        path[strcspn(path, "\n")] = '\0';
        found = strcmp(name + 1, controller) == 0 &&
                snprintf(ret_path, size, "%s%s%s", ROOT "/", controller, path) < (int)size;
    }
    if (file)
        fclose(file);
    return found;
}

static char *make(const char *parent)
{
    char *path = NULL, digits[9];

    sweep(parent);
    pf_random_hex(digits, 8);
    if (asprintf(&path, "%s/" PREFIX "%d-%s", parent, (int)getpid(), digits) < 0)
        return NULL;
    if (mkdir(path, 0755) < 0) {
        free(path);
        return NULL;
    }
    return path;
}

/* One controller of version 1. */
static char *make_old(const char *controller, const char *file, uint64_t limit)
{
    char parent[PATH_MAX], *dir;

    if (!own_group(controller, parent, sizeof(parent)) || !(dir = make(parent)))
        return NULL;
    if (put_number(dir, file, limit))
        return dir;
    rmdir(dir);
    free(dir);
    return NULL;
}

/* Version 2: the groups of our parent are siblings of our own, which has us in it and so cannot
 * have children with controllers. */
static char *make_new(struct pf_cgroup *cgroup, uint64_t memory, uint64_t processes)
{
    char parent[PATH_MAX], *slash, *dir;

    if (access(ROOT "/cgroup.controllers", F_OK) < 0 || !own_group("", parent, sizeof(parent)))
        return NULL;
    slash = strrchr(parent, '/');
    if (strlen(parent) > strlen(ROOT "/") && slash)
        *slash = '\0';
    dir = make(parent);
    if (!dir)
        return NULL;
    cgroup->limits_processes = put_number(dir, "pids.max", processes);
    cgroup->limits_memory = put_number(dir, "memory.max", memory);
    if (cgroup->limits_processes || cgroup->limits_memory)
        return dir;
    rmdir(dir);
    free(dir);
    return NULL;
}

void pf_cgroup_make(uint64_t memory_bytes, uint64_t processes, struct pf_cgroup *ret)
{
    *ret = (struct pf_cgroup){ .limits_processes = false };
    ret->dirs[0] = make_new(ret, memory_bytes, processes);
    if (ret->dirs[0])
        return;
    ret->dirs[0] = make_old("pids", "pids.max", processes);
    ret->limits_processes = ret->dirs[0] != NULL;
    ret->dirs[1] = make_old("memory", "memory.limit_in_bytes", memory_bytes);
    ret->limits_memory = ret->dirs[1] != NULL;
}

static int open_entry(const char *dir)
{
    static const char *const names[] = { "tasks", "cgroup.procs" }; /* of versions 1 and 2 */
    char path[PATH_MAX];
    int fd = -1;

    for (size_t i = 0; fd < 0 && i < PF_COUNT(names); i++) {
        snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
        fd = open(path, O_WRONLY | O_CLOEXEC);
    }
    return fd < 0 ? -errno : fd;
}

int pf_cgroup_entries(const struct pf_cgroup *cgroup, int fds[static PF_CGROUP_MAX])
{
    int count = 0;

    for (int i = 0; i < PF_CGROUP_MAX; i++) {
        int fd = cgroup->dirs[i] ? open_entry(cgroup->dirs[i]) : -1;
        if (fd >= 0)
            fds[count++] = fd;
        if (!cgroup->dirs[i] || fd >= 0)
            continue;
        while (count > 0)
            close(fds[--count]);
        return fd;
    }
    return count;
}

void pf_cgroup_done(struct pf_cgroup *cgroup)
{
    for (int i = 0; i < PF_CGROUP_MAX; i++) {
        if (cgroup->dirs[i])
            rmdir(cgroup->dirs[i]);
        free(cgroup->dirs[i]);
    }
    *cgroup = (struct pf_cgroup){ .limits_processes = false };
}
