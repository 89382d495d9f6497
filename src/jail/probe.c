/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What isolation this machine offers. Each thing is tried in a child of its own that shares nothing
 * with the host but its memory image, reports by its exit status, and is killed when it takes long.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "jail/explain.h"
#include "jail/jail.h"
#include "jail/limits.h"

#define ATTEMPT_NS (2 * PF_NS_PER_SEC)

/* Written by the host before the child is there. */
static _Thread_local char uid_map[32], gid_map[32];

static int write_to(const char *path, const char *text)
{
    _cleanup_close_ int fd = open(path, O_WRONLY | O_CLOEXEC);

    return fd < 0 || write(fd, text, strlen(text)) < 0 ? errno : 0;
}

/* Be somebody in the new user namespace. Where AppArmor restricts them, this is what fails. */
static int map_ids(void)
{
    int r = write_to("/proc/self/setgroups", "deny");

    if (r == 0)
        r = write_to("/proc/self/uid_map", uid_map);
    return r == 0 ? write_to("/proc/self/gid_map", gid_map) : r;
}

/* Runs in the child. Returns 0 or an errno. */
typedef int (*attempt_fn)(void);

static int try_nothing(void)
{
    return 0;
}

static int try_mount_api(void)
{
    struct mount_attr attr = { .attr_set = MOUNT_ATTR_RDONLY, .propagation = MS_PRIVATE };
    _cleanup_close_ int fd =
            open_tree(AT_FDCWD, "/", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);

    if (fd < 0 || mount_setattr(fd, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr, sizeof(attr)) < 0)
        return errno;
    return 0;
}

static int make_mount(const char *type, const char *const *options)
{
    _cleanup_close_ int fs = fsopen(type, FSOPEN_CLOEXEC);
    _cleanup_close_ int fd = -1;

    if (fs < 0)
        return -errno;
    for (; options && *options; options += 2)
        if (fsconfig(fs, options[1] ? FSCONFIG_SET_STRING : FSCONFIG_SET_FLAG, options[0],
                     options[1], 0) < 0)
            return -errno;
    if (fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
        return -errno;
    fd = fsmount(fs, FSMOUNT_CLOEXEC, 0);
    return fd < 0 ? -errno : TAKE_FD(fd);
}

/* In a user namespace a process number namespace has to be there, for its first process. */
static int try_proc(void)
{
    int fd = make_mount("proc", NULL);

    return fd < 0 ? -fd : 0;
}

/* An overlay as one of a seed: with marks in user attributes, and a whiteout that hides a file. */
static int try_overlay(void)
{
    static const char *const dirs[] = { "/tmp/lower", "/tmp/lower/seen", "/tmp/hidden",
                                        "/tmp/upper", "/tmp/work" };
    static const char *const options[] = { "lowerdir",  "/tmp/hidden:/tmp/lower",
                                           "upperdir",  "/tmp/upper",
                                           "workdir",   "/tmp/work",
                                           "userxattr", NULL,
                                           NULL };
    _cleanup_close_ int tmp = make_mount("tmpfs", NULL);
    _cleanup_close_ int fd = -1;

    if (tmp < 0)
        return -tmp;
    if (move_mount(tmp, "", AT_FDCWD, "/tmp", MOVE_MOUNT_F_EMPTY_PATH) < 0)
        return errno;
    for (size_t i = 0; i < PF_COUNT(dirs); i++)
        if (mkdir(dirs[i], 0700) < 0)
            return errno;
    if (mknod("/tmp/hidden/seen", S_IFCHR, 0) < 0)
        return errno;
    fd = make_mount("overlay", options);
    if (fd < 0)
        return -fd;
    return faccessat(fd, "seen", F_OK, 0) < 0 && errno == ENOENT ? 0 : EPROTO;
}

static int try_seccomp(void)
{
    uint32_t action = SECCOMP_RET_ERRNO;

    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
                           syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) < 0
                   ? errno
                   : 0;
}

/* Wait for a child, at most so long. Returns its exit status, or an errno. */
static int wait_for(pid_t pid)
{
    int64_t deadline = pf_clock_deadline(ATTEMPT_NS);
    bool killed = false;
    int status;

    while (true) {
        pid_t done = waitpid(pid, &status, __WALL | (killed ? 0 : WNOHANG));
        if (done == pid)
            return killed ? ETIMEDOUT : WIFEXITED(status) ? WEXITSTATUS(status) : EPROTO;
        if (done < 0 && errno != EINTR)
            return errno;
        killed = done == 0 && pf_clock_now() >= deadline;
        if (killed)
            kill(pid, SIGKILL);
        else
            usleep(200);
    }
}

/* A child that no handler of the host runs in, and that no wait of the host sees. Returns 0 or an
 * errno. */
static int attempt(unsigned long namespaces, attempt_fn fn)
{
    sigset_t all, old;
    pid_t pid;
    int saved;

    snprintf(uid_map, sizeof(uid_map), "0 %u 1", (unsigned)geteuid());
    snprintf(gid_map, sizeof(gid_map), "0 %u 1", (unsigned)getegid());
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    pid = (pid_t)syscall(SYS_clone, namespaces, NULL, NULL, NULL, NULL);
    if (pid == 0) {
        int r = map_ids();
        _exit(r == 0 ? fn() : r);
    }
    saved = errno;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return pid < 0 ? saved : wait_for(pid);
}

/* ---- cgroups ---- */

/* Whether a group can be made below our own in a hierarchy; it is removed at once. */
static int try_group(const char *mount_point, const char *own)
{
    _cleanup_free_ char *path = NULL;

    if (asprintf(&path, "%s%s/pinfold-probe-%d", mount_point, own, (int)getpid()) < 0) {
        path = NULL;
        return ENOMEM;
    }
    if (mkdir(path, 0700) < 0)
        return errno;
    rmdir(path);
    return 0;
}

/* Our group in the hierarchy with a controller ("" is version 2). */
static bool find_group(const char *controller, char group[static 512])
{
    FILE *file = fopen("/proc/self/cgroup", "re");
    char line[1024];
    bool found = false;

    while (file && !found && fgets(line, sizeof(line), file)) {
        char *names = strchr(line, ':'), *path = names ? strchr(names + 1, ':') : NULL;
        if (!path)
            continue;
        *path++ = '\0';
        path[strcspn(path, "\n")] = '\0';
        found = strcmp(names + 1, controller) == 0 && strlen(path) < 512;
        if (found)
            memcpy(group, strcmp(path, "/") == 0 ? "" : path,
                   strlen(strcmp(path, "/") == 0 ? "" : path) + 1);
    }
    if (file)
        (void)fclose(file);
    return found;
}

static int try_cgroup1(void)
{
    static const char *const controllers[] = { "memory", "pids" };

    for (size_t i = 0; i < PF_COUNT(controllers); i++) {
        char group[512], mount_point[64];
        int r;
        if (!find_group(controllers[i], group))
            return ENOENT;
        snprintf(mount_point, sizeof(mount_point), "/sys/fs/cgroup/%s", controllers[i]);
        r = try_group(mount_point, group);
        if (r != 0)
            return r;
    }
    return 0;
}

static int try_cgroup2(void)
{
    char group[512], path[640], text[256];
    ssize_t len;

    if (!find_group("", group))
        return ENOENT;
    /* On hybrid machines it is elsewhere, and has no controllers. */
    snprintf(path, sizeof(path), "/sys/fs/cgroup%s/cgroup.controllers", group);
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno;
    len = read(fd, text, sizeof(text) - 1);
    text[len < 0 ? 0 : len] = '\0';
    if (!strstr(text, "memory") || !strstr(text, "pids"))
        return EOPNOTSUPP;
    return try_group("/sys/fs/cgroup", group);
}

/* ---- all of it ---- */

static const char user_hint[] =
        "allow user namespaces: sysctl user.max_user_namespaces=10000, and where they exist "
        "kernel.unprivileged_userns_clone=1 and kernel.apparmor_restrict_unprivileged_userns=0; on "
        "Ubuntu better a profile in /etc/apparmor.d/pinfold: 'abi <abi/4.0>, include "
        "<tunables/global> profile pinfold /usr/{,local/}{bin/pinfold,libexec/pinfold/*} "
        "flags=(unconfined) { userns, }'; in Docker: --security-opt seccomp=unconfined "
        "--security-opt apparmor=unconfined; in a chroot there are none: start it outside";
static const char kernel_hint[] = "the kernel is too old or built without it: Linux 5.12 or newer, "
                                  "with namespaces and seccomp, is needed";
static const char proc_hint[] =
        "the /proc of this container is partly covered, and then no other may be mounted: run it "
        "with --security-opt systempaths=unconfined (Docker) or --security-opt unmask=ALL (Podman)";

static const struct thing {
    const char *name;
    unsigned long namespaces; /* beside the user namespace */
    attempt_fn fn;            /* NULL: find_out() knows */
    bool needed;
    const char *hint;
} things[PINFOLD_PROBE_COUNT] = {
    [PINFOLD_PROBE_USER_NAMESPACE] = { "user namespaces", 0, try_nothing, true, user_hint },
    [PINFOLD_PROBE_MOUNT_NAMESPACE] = { "mount namespaces", CLONE_NEWNS, try_nothing, true,
                                        kernel_hint },
    [PINFOLD_PROBE_PID_NAMESPACE] = { "process namespaces", CLONE_NEWPID, try_nothing, true,
                                      kernel_hint },
    [PINFOLD_PROBE_NET_NAMESPACE] = { "network namespaces", CLONE_NEWNET, try_nothing, true,
                                      kernel_hint },
    [PINFOLD_PROBE_IPC_NAMESPACE] = { "ipc namespaces", CLONE_NEWIPC, try_nothing, true,
                                      kernel_hint },
    [PINFOLD_PROBE_UTS_NAMESPACE] = { "uts namespaces", CLONE_NEWUTS, try_nothing, true,
                                      kernel_hint },
    [PINFOLD_PROBE_CGROUP_NAMESPACE] = { "cgroup namespaces", CLONE_NEWCGROUP, try_nothing, true,
                                         kernel_hint },
    [PINFOLD_PROBE_MOUNT_API] = { "mount API", CLONE_NEWNS, try_mount_api, true, kernel_hint },
    [PINFOLD_PROBE_SECCOMP] = { "seccomp", 0, try_seccomp, true, kernel_hint },
    [PINFOLD_PROBE_PROC] = { "fresh /proc", CLONE_NEWNS | CLONE_NEWPID, try_proc, true, proc_hint },
    [PINFOLD_PROBE_OVERLAY] = { "overlay file system", CLONE_NEWNS, try_overlay, false,
                                "Linux has it in user namespaces since 5.11, and may be built "
                                "without; --seed-mode overlay copies instead, and says so" },
    [PINFOLD_PROBE_LANDLOCK] = { "Landlock", 0, NULL, false,
                                 "boot with lsm=landlock,... on Linux 5.19 or newer (ABI 2); ABI 6 "
                                 "of Linux 6.12 also stops signals and abstract sockets" },
    [PINFOLD_PROBE_CGROUP2] = { "cgroup v2 delegation", 0, NULL, false,
                                "start from a delegated unit: systemd-run --user --scope -p "
                                "Delegate=yes; without it limits are those of each process" },
    [PINFOLD_PROBE_CGROUP1] = { "cgroup v1", 0, NULL, false,
                                "only root has it, on machines that still use it" },
    [PINFOLD_PROBE_SANDBOX] = { "a whole sandbox", 0, NULL, true,
                                "the message names the step; the lines above say what is missing" },
};

/* What is off by default is turned on, to see what holds it. */
static const struct pinfold_limits off_by_default = { .cpu_seconds = 1 << 20,
                                                      .file_bytes = 1ULL << 50 };

static int try_sandbox(struct pinfold_probe_answer *answer, enum pinfold_holder *holders)
{
    _cleanup_close_ int workspace = open("/usr", O_PATH | O_DIRECTORY | O_CLOEXEC);
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    struct pf_jail *jail = NULL;
    int r;

    if (workspace < 0)
        return errno;
    r = pf_jail_open(&(struct pf_jail_config){ .workspace_fd = workspace,
                                               .workspace_read_only = true,
                                               .limits = off_by_default },
                     &jail, &err);
    if (r == 0)
        memcpy(holders, pf_jail_holders(jail), PINFOLD_LIMIT_COUNT * sizeof(*holders));
    pf_jail_close(jail);
    if (r == 0)
        return 0;
    memcpy(answer->detail, err.msg, sizeof(answer->detail));
    return err.sys_errno ? err.sys_errno : EPROTO;
}

static int try_landlock(int *ret_abi)
{
    long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);

    if (abi < 0)
        return errno;
    *ret_abi = (int)abi;
    return abi < 2 ? EOPNOTSUPP : 0;
}

static int find_out(enum pinfold_probe_item item, struct pinfold_probe_answer *answer,
                    enum pinfold_holder *holders)
{
    switch (item) {
    case PINFOLD_PROBE_LANDLOCK:
        return try_landlock(&answer->number);
    case PINFOLD_PROBE_CGROUP2:
        return try_cgroup2();
    case PINFOLD_PROBE_CGROUP1:
        return try_cgroup1();
    case PINFOLD_PROBE_SANDBOX:
        return try_sandbox(answer, holders);
    default:
        return attempt(CLONE_NEWUSER | things[item].namespaces, things[item].fn);
    }
}

/* A share of the processors cannot be asked of a sandbox where nothing would hold it. */
static enum pinfold_holder find_cpu_holder(void)
{
    struct pinfold_limits limits = { .cpus = 1 };
    struct pf_cgroup cgroup;
    bool held;
    enum pinfold_holder holder;

    pf_limits_resolve(&limits);
    pf_cgroup_make(NULL, &limits, &cgroup);
    holder = cgroup.holder;
    held = cgroup.limits_cpu;
    pf_cgroup_done(&cgroup);
    return held ? holder : PINFOLD_HOLDER_NONE;
}

static void fill_holders(struct pinfold_isolated_probe *probe)
{
    if (!probe->possible)
        return;
    probe->holders[PINFOLD_LIMIT_CPU_SHARE] = find_cpu_holder();
    probe->holders[PINFOLD_LIMIT_WORKSPACE] = PINFOLD_HOLDER_OWNER;
    probe->holders[PINFOLD_LIMIT_DISK] = PINFOLD_HOLDER_OWNER;
}

bool pinfold_isolated_probe(struct pinfold_isolated_probe *ret)
{
    *ret = (struct pinfold_isolated_probe){ .possible = true };
    for (int i = 0; i < PINFOLD_PROBE_COUNT; i++) {
        struct pinfold_probe_answer *answer = &ret->answers[i];
        answer->name = things[i].name;
        answer->needed = things[i].needed;
        answer->sys_errno = find_out((enum pinfold_probe_item)i, answer, ret->holders);
        answer->works = answer->sys_errno == 0;
        if (answer->works)
            continue;
        /* One switch that is off makes most of the rest fail too. */
        answer->hint = answer->needed ? pf_jail_switched_off() : NULL;
        if (!answer->hint)
            answer->hint = things[i].hint;
        if (!answer->detail[0])
            snprintf(answer->detail, sizeof(answer->detail), "%s",
                     strerrordesc_np(answer->sys_errno) ? strerrordesc_np(answer->sys_errno)
                                                        : "it failed");
        if (answer->needed)
            ret->possible = false;
    }
    fill_holders(ret);
    return ret->possible;
}
