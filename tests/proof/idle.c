/* SPDX-License-Identifier: Apache-2.0 */
/*
 * idle SANDBOXES ROUNDS [counted]: open that many sandboxes at once, use a few, close them all, and
 * again. Prints for each round "DESCRIPTORS THREADS KIB" of this process after all are closed.
 * Fails when a process is left, for which this one is the reaper.
 *
 * With "counted" the kernel counts the namespaces: in a user namespace that allows not many more of
 * each kind than one round needs, one that is not given back is missing later.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <malloc.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <pinfold/pinfold.h>

static int fail(const char *what, const struct pinfold_error *err)
{
    fprintf(stderr, "idle: %s: %s\n", what, err ? err->msg : strerror(errno));
    return -1;
}

static int put(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    ssize_t len = fd < 0 ? -1 : write(fd, text, strlen(text));

    if (fd >= 0)
        close(fd);
    return len == (ssize_t)strlen(text) ? 0 : fail(path, NULL);
}

/* Allow so many namespaces of each kind, and be an ordinary user again. */
static int count_namespaces(int allowed)
{
    static const char *const kinds[] = { "user", "mnt", "pid", "net", "ipc", "uts", "cgroup" };
    struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
    struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = { { 0 } };
    char users[64], groups[64], text[64], path[64];

    snprintf(users, sizeof(users), "%u %u 1\n", geteuid(), geteuid());
    snprintf(groups, sizeof(groups), "%u %u 1\n", getegid(), getegid());
    if (unshare(CLONE_NEWUSER) < 0)
        return fail("make a user namespace", NULL);
    if (put("/proc/self/uid_map", users) < 0 || put("/proc/self/setgroups", "deny") < 0 ||
        put("/proc/self/gid_map", groups) < 0)
        return -1;
    snprintf(text, sizeof(text), "%d\n", allowed);
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        snprintf(path, sizeof(path), "/proc/sys/user/max_%s_namespaces", kinds[i]);
        if (put(path, text) < 0)
            return -1;
    }
    return syscall(SYS_capset, &header, none) < 0 ? fail("give up capabilities", NULL) : 0;
}

static int count_entries(const char *path)
{
    DIR *dir = opendir(path);
    int count = 0;

    while (dir && readdir(dir))
        count++;
    if (dir)
        closedir(dir);
    return count - 2;
}

static long memory_kib(void)
{
    FILE *file = fopen("/proc/self/statm", "re");
    long pages = 0;

    malloc_trim(0);
    if (file && fscanf(file, "%*d %ld", &pages) != 1)
        pages = 0;
    if (file)
        fclose(file);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static int use(struct pinfold_sandbox *sandbox)
{
    struct pinfold_execute_options what = PINFOLD_EXECUTE_OPTIONS_INIT;
    struct pinfold_execute_result result = { .exit_code = 0 };
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    int r;

    what.command = "sleep 60 & setsid sleep 60 & echo used > file";
    r = pinfold_sandbox_execute(sandbox, &what, &result, NULL, &err);
    if (r == 0 && result.exit_code != 0)
        r = -1;
    pinfold_execute_result_done(&result);
    return r < 0 ? fail("execute", &err) : 0;
}

/* Namespaces are given back a little after their last process is gone. */
static int start(struct pinfold_sandbox *sandbox)
{
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    int r = pinfold_sandbox_start(sandbox, NULL, NULL, &err);

    for (int i = 0; r < 0 && err.sys_errno == ENOSPC && i < 300; i++) {
        nanosleep(&(struct timespec){ .tv_nsec = 100000000 }, NULL);
        r = pinfold_sandbox_start(sandbox, NULL, NULL, &err);
    }
    return r < 0 ? fail("start", &err) : 0;
}

static int open_one(int number, struct pinfold_sandbox **ret)
{
    struct pinfold_sandbox_options options = PINFOLD_SANDBOX_OPTIONS_INIT;
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    char id[32];
    int r;

    snprintf(id, sizeof(id), "idle-%d", number);
    options.workspace_id = id;
    options.ttl_seconds = 3600;
    if (pinfold_isolated_backend_new(NULL, &options.backend, &err) < 0)
        return fail("backend", &err);
    r = pinfold_sandbox_new(&options, ret, &err);
    pinfold_backend_unref(options.backend);
    if (r < 0)
        return fail("sandbox", &err);
    r = start(*ret);
    return r == 0 && number % 10 == 0 ? use(*ret) : r;
}

static int run_round(struct pinfold_sandbox **sandboxes, int count)
{
    int r = 0;

    for (int i = 0; r == 0 && i < count; i++)
        r = open_one(i, &sandboxes[i]);
    for (int i = 0; i < count; i++) {
        pinfold_sandbox_free(sandboxes[i]);
        sandboxes[i] = NULL;
    }
    if (r == 0 && (waitpid(-1, NULL, WNOHANG | __WALL) >= 0 || errno != ECHILD)) {
        fprintf(stderr, "idle: a process is left\n");
        r = -1;
    }
    printf("%d %d %ld\n", count_entries("/proc/self/fd"), count_entries("/proc/self/task"),
           memory_kib());
    fflush(stdout);
    return r;
}

int main(int argc, char **argv)
{
    int count = argc > 2 ? atoi(argv[1]) : 0, rounds = argc > 2 ? atoi(argv[2]) : 0, r = 0;
    struct pinfold_sandbox **sandboxes = calloc((size_t)count + 1, sizeof(*sandboxes));

    if (!sandboxes || count < 1 || prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
        return 2;
    if (argc > 3)
        r = count_namespaces(count + count / 2 + 2);
    for (int i = 0; r == 0 && i < rounds; i++)
        r = run_round(sandboxes, count);
    free(sandboxes);
    return r < 0;
}
