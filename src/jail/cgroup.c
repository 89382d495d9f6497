/* SPDX-License-Identifier: Apache-2.0 */
#include "jail/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/random.h"

#define PREFIX "pinfold-"
#define CPU_PERIOD_US 100000
#define BUSY_NS (1 * PF_NS_PER_SEC) /* how long a group may be, whose processes have ended */
enum { LONGEST_MS = 16 };

static const struct pf_cgroup_place machine = { "/sys/fs/cgroup", "/proc/self/cgroup", 0 };

static int open_in(const char *dir, const char *file, int flags)
{
    char path[PATH_MAX];

    if (snprintf(path, sizeof(path), "%s/%s", dir, file) >= (int)sizeof(path))
        return -1;
    return open(path, flags | O_CLOEXEC, 0600);
}

/* One small write; these files take a value whole or not at all. */
static bool put(const struct pf_cgroup_place *place, const char *dir, const char *file,
                const char *value)
{
    _cleanup_close_ int fd = open_in(dir, file, O_WRONLY | place->create);

    return fd >= 0 && write(fd, value, strlen(value)) == (ssize_t)strlen(value);
}

static bool put_number(const struct pf_cgroup_place *place, const char *dir, const char *file,
                       uint64_t number)
{
    char text[32];

    if (number == PINFOLD_UNLIMITED)
        return true;
    snprintf(text, sizeof(text), "%llu", (unsigned long long)number);
    return put(place, dir, file, text);
}

/* Groups that an owner left because it was killed. One that is in use cannot be removed. Their
 * names have the owner's number and the namespace that it is of: others, where it is another
 * process or none, may share our groups with us. */
static void sweep(const char *parent, unsigned long namespace)
{
    struct dirent *entry;
    DIR *dir = namespace > 0 ? opendir(parent) : NULL;

    while (dir && (entry = readdir(dir))) {
        unsigned long where = 0;
        char *end;
        long owner;
        if (strncmp(entry->d_name, PREFIX, strlen(PREFIX)) != 0)
            continue;
        owner = strtol(entry->d_name + strlen(PREFIX), &end, 10);
        if (*end == '-')
            where = strtoul(end + 1, &end, 10);
        if (*end == '-' && owner > 0 && where == namespace && kill((pid_t)owner, 0) < 0 &&
            errno == ESRCH)
            unlinkat(dirfd(dir), entry->d_name, AT_REMOVEDIR);
    }
    if (dir)
        closedir(dir);
}

/* Whether a controller is in a list such as "cpu,cpuacct", that ends at end. */
static bool has_controller(const char *list, const char *end, const char *controller)
{
    size_t len = strlen(controller);

    while (true) {
        const char *comma = memchr(list, ',', (size_t)(end - list));
        const char *stop = comma ? comma : end;
        if ((size_t)(stop - list) == len && memcmp(list, controller, len) == 0)
            return true;
        if (!comma)
            return false;
        list = comma + 1;
    }
}

/* What a process knows of its groups, read once. */
struct self {
    const struct pf_cgroup_place *place;
    unsigned long namespace; /* of processes; 0: unknown */
    char text[8192];         /* as /proc/self/cgroup: lines "number:controllers:path" */
};

static void read_self(const struct pf_cgroup_place *place, struct self *self)
{
    _cleanup_close_ int fd = open(place->self, O_RDONLY | O_CLOEXEC);
    ssize_t len = fd < 0 ? -1 : read(fd, self->text, sizeof(self->text) - 1);
    struct stat st;

    self->place = place;
    self->namespace = stat("/proc/self/ns/pid", &st) < 0 ? 0 : (unsigned long)st.st_ino;
    self->text[len < 0 ? 0 : len] = '\0';
}

/* Where this process is in the hierarchy of a controller, "" being version 2. */
static bool own_group(const struct self *self, const char *controller, char *ret_path, size_t size)
{
    for (const char *line = self->text; *line;) {
        const char *end = strchrnul(line, '\n'), *list = strchr(line, ':'), *path;
        path = list && list < end ? strchr(list + 1, ':') : NULL;
        if (path && path < end && has_controller(list + 1, path, controller))
            return snprintf(ret_path, size, "%s/%s%.*s", self->place->root, controller,
                            (int)(end - path - 1), path + 1) < (int)size;
        line = *end ? end + 1 : end;
    }
    return false;
}

static void drop(struct pf_cgroup *cgroup, int i)
{
    pf_keeper_drop(&cgroup->kept[i]);
    free(TAKE(cgroup->dirs[i]));
}

/* Returns its path, which is cgroup's, or NULL. */
static const char *make(struct pf_cgroup *cgroup, const struct self *self, const char *parent)
{
    char digits[9];
    int i = 0;

    if (faccessat(AT_FDCWD, parent, W_OK, AT_EACCESS) < 0)
        return NULL; /* most users may make none: no keeper for these */
    sweep(parent, self->namespace);
    while (cgroup->dirs[i])
        i++;
    pf_random_hex(digits, 8);
    if (asprintf(&cgroup->dirs[i], "%s/" PREFIX "%d-%lu-%s", parent, (int)getpid(), self->namespace,
                 digits) < 0) {
        cgroup->dirs[i] = NULL;
        return NULL;
    }
    pf_keeper_add(&cgroup->kept[i], PF_KEPT_GROUP, cgroup->dirs[i]);
    if (mkdir(cgroup->dirs[i], 0755) < 0)
        drop(cgroup, i);
    return cgroup->dirs[i];
}

static const char *make_old(struct pf_cgroup *cgroup, const struct self *self,
                            const char *controller)
{
    char parent[PATH_MAX];

    return own_group(self, controller, parent, sizeof(parent)) ? make(cgroup, self, parent) : NULL;
}

/* Keep a group that limits, and remove one that does not: it is the last. Returns limits. */
static bool keep(struct pf_cgroup *cgroup, const char *dir, bool limits)
{
    if (dir && !limits)
        for (int i = 0; i < PF_CGROUP_MAX; i++)
            if (cgroup->dirs[i] == dir) {
                rmdir(dir);
                drop(cgroup, i);
                return false;
            }
    return limits;
}

static uint64_t quota_us(double cpus)
{
    double quota = cpus * CPU_PERIOD_US;

    return quota < 1000 ? 1000 : (uint64_t)quota; /* the least that the kernel takes */
}

/* Version 1: each controller has a hierarchy of its own. */
static void make_old_groups(const struct self *self, const struct pinfold_limits *limits,
                            struct pf_cgroup *cgroup)
{
    const struct pf_cgroup_place *place = self->place;
    const char *dir = make_old(cgroup, self, "pids");

    cgroup->limits_processes =
            keep(cgroup, dir, dir && put_number(place, dir, "pids.max", limits->processes));
    dir = make_old(cgroup, self, "memory");
    cgroup->limits_memory =
            keep(cgroup, dir,
                 dir && put_number(place, dir, "memory.limit_in_bytes", limits->memory_bytes));
    if (cgroup->limits_memory) {
        /* Only where swap is counted. Else the limit is of what is not swapped out. */
        put_number(place, dir, "memory.memsw.limit_in_bytes", limits->memory_bytes);
        cgroup->memory_events = open_in(dir, "memory.oom_control", O_RDONLY);
        cgroup->memory_peak = open_in(dir, "memory.max_usage_in_bytes", O_RDONLY);
    }
    if (limits->cpus > 0) {
        dir = make_old(cgroup, self, "cpu");
        cgroup->limits_cpu =
                keep(cgroup, dir,
                     dir && put_number(place, dir, "cpu.cfs_period_us", CPU_PERIOD_US) &&
                             put_number(place, dir, "cpu.cfs_quota_us", quota_us(limits->cpus)));
    }
    if (cgroup->limits_processes || cgroup->limits_memory || cgroup->limits_cpu)
        cgroup->holder = PINFOLD_HOLDER_CGROUP1;
}

/* Version 2: the groups of our parent are siblings of our own, which has us in it and so cannot
 * have children with controllers. A controller is there when its file is. */
static void make_new_group(const struct self *self, const struct pinfold_limits *limits,
                           struct pf_cgroup *cgroup)
{
    const struct pf_cgroup_place *place = self->place;
    char parent[PATH_MAX], text[64], *slash;
    const char *dir;

    snprintf(parent, sizeof(parent), "%s/cgroup.controllers", place->root);
    if (access(parent, F_OK) < 0 || !own_group(self, "", parent, sizeof(parent)))
        return;
    slash = strrchr(parent, '/');
    *slash = '\0';
    dir = make(cgroup, self, parent);
    if (!dir)
        return;
    cgroup->limits_processes = put_number(place, dir, "pids.max", limits->processes);
    cgroup->limits_memory = put_number(place, dir, "memory.max", limits->memory_bytes);
    if (cgroup->limits_memory && limits->memory_bytes != PINFOLD_UNLIMITED)
        put(place, dir, "memory.swap.max", "0"); /* where swap is counted */
    if (limits->cpus > 0) {
        snprintf(text, sizeof(text), "%llu %d", (unsigned long long)quota_us(limits->cpus),
                 CPU_PERIOD_US);
        cgroup->limits_cpu = put(place, dir, "cpu.max", text);
    }
    if (!keep(cgroup, dir, cgroup->limits_processes || cgroup->limits_memory || cgroup->limits_cpu))
        return;
    cgroup->holder = PINFOLD_HOLDER_CGROUP2;
    cgroup->memory_events = open_in(dir, "memory.events", O_RDONLY);
    cgroup->memory_peak = open_in(dir, "memory.peak", O_RDONLY);
}

void pf_cgroup_make(const struct pf_cgroup_place *place, const struct pinfold_limits *limits,
                    struct pf_cgroup *ret)
{
    struct self self;

    *ret = (struct pf_cgroup)PF_CGROUP_INIT;
    read_self(place ? place : &machine, &self);
    make_new_group(&self, limits, ret);
    if (ret->holder == PINFOLD_HOLDER_NONE)
        make_old_groups(&self, limits, ret);
}

int pf_cgroup_entries(const struct pf_cgroup *cgroup, int fds[static PF_CGROUP_MAX])
{
    const char *file = cgroup->holder == PINFOLD_HOLDER_CGROUP2 ? "cgroup.procs" : "tasks";
    int count = 0, saved;

    for (int i = 0; i < PF_CGROUP_MAX && cgroup->dirs[i]; i++) {
        fds[count] = open_in(cgroup->dirs[i], file, O_WRONLY);
        if (fds[count++] >= 0)
            continue;
        saved = errno;
        while (--count > 0)
            close(fds[count - 1]);
        return -saved;
    }
    return count;
}

/* The number after a word at the start of a line, or the whole file without a word; 0: none. */
static uint64_t read_count(int fd, const char *word)
{
    char text[1024];
    size_t word_len = strlen(word);
    ssize_t len = fd < 0 ? -1 : pread(fd, text, sizeof(text) - 1, 0);

    if (len <= 0)
        return 0;
    text[len] = '\0';
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, word, word_len) == 0 && (!*word || line[word_len] == ' '))
            return strtoull(line + word_len, NULL, 10);
    }
    return 0;
}

/* Asked for seldom: not worth a descriptor that stays. The group of processes is the first. */
static uint64_t count_refused(const struct pf_cgroup *cgroup)
{
    _cleanup_close_ int fd =
            cgroup->limits_processes ? open_in(cgroup->dirs[0], "pids.events", O_RDONLY) : -1;

    return read_count(fd, "max");
}

void pf_cgroup_count(const struct pf_cgroup *cgroup, bool forks, struct pf_cgroup_counts *ret)
{
    *ret = (struct pf_cgroup_counts){
        .memory_kills = read_count(cgroup->memory_events, "oom_kill"),
        .refused_forks = forks ? count_refused(cgroup) : 0,
        .peak_bytes = read_count(cgroup->memory_peak, ""),
    };
}

/* Who has been waited for is in its group until it has left its processor for the last time: a
 * moment more, and on a busy machine some of them. */
static void remove_group(const char *path)
{
    int64_t deadline = pf_clock_deadline(BUSY_NS);

    for (int ms = 0; rmdir(path) < 0 && errno == EBUSY && pf_clock_now() < deadline;
         ms = ms < LONGEST_MS ? 2 * ms + 1 : ms)
        poll(NULL, 0, ms);
}

void pf_cgroup_done(struct pf_cgroup *cgroup)
{
    int fds[] = { cgroup->memory_events, cgroup->memory_peak };

    for (size_t i = 0; i < PF_COUNT(fds); i++)
        if (fds[i] >= 0)
            close(fds[i]);
    for (int i = 0; i < PF_CGROUP_MAX; i++) {
        if (cgroup->dirs[i])
            remove_group(cgroup->dirs[i]);
        drop(cgroup, i);
    }
    *cgroup = (struct pf_cgroup)PF_CGROUP_INIT;
}
