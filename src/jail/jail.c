/* SPDX-License-Identifier: Apache-2.0 */
/* The owner's side: starting the first process of a jail, and taking it down. */
#include "jail/jail.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "jail/compose.h"
#include "jail/explain.h"
#include "jail/limits.h"
#include "proc/launcher.h"

#define START_LIMIT_NS (30 * PF_NS_PER_SEC) /* a machine that is slower is broken */
#define CLOSE_LIMIT_NS (10 * PF_NS_PER_SEC)

#ifndef P_PIDFD
#define P_PIDFD 3
#endif

struct pf_jail {
    int socket;
    int pidfd; /* readable when everything inside is gone */
    int proxy;
    pid_t owner; /* a fork of the host must not end what is its parent's */
    int root;    /* of the overlay */
    struct pf_cgroup cgroup;
    enum pinfold_holder holders[PINFOLD_LIMIT_COUNT];
};

struct birth {
    int program, socket, plan, owner, workspace;
    unsigned long namespaces;
    bool overlay;
    char *inner_stack;
    int pidfd;
    pid_t init;
    int sys_errno;
    const char *step; /* that failed */
    bool refused;     /* because the kernel makes no namespaces, or gives no rights in them */
};

static void fail_birth(struct birth *birth, const char *step) __attribute__((noreturn));
static void fail_birth(struct birth *birth, const char *step)
{
    birth->sys_errno = errno;
    birth->step = step;
    _exit(127);
}

/* Let what is executed keep the capabilities that building the jail takes: they are those of the
 * new user namespace, and mean nothing outside. */
static void keep_capabilities(struct birth *birth)
{
    /* An overlay does its own work with the rights of who mounted it, and closes its work directory
     * to all others: so the last one. */
    static const unsigned wanted[] = { CAP_SYS_ADMIN, CAP_SETPCAP, CAP_NET_ADMIN,
                                       CAP_DAC_OVERRIDE };
    size_t count = PF_COUNT(wanted) - !birth->overlay;
    struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

    birth->refused = true;
    if (syscall(SYS_capget, &header, data) < 0)
        fail_birth(birth, "read the capabilities in its user namespace");
    for (size_t i = 0; i < count; i++)
        data[CAP_TO_INDEX(wanted[i])].inheritable |= CAP_TO_MASK(wanted[i]);
    if (syscall(SYS_capset, &header, data) < 0)
        fail_birth(birth, "get capabilities in its user namespace");
    for (size_t i = 0; i < count; i++)
        if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, wanted[i], 0, 0) < 0)
            fail_birth(birth, "keep capabilities in its user namespace");
    birth->refused = false;
}

/* Exactly the four descriptors of plan.h, from wherever they are. */
static void place_descriptors(struct birth *birth)
{
    int from[] = { birth->socket, birth->plan, birth->owner, birth->program };

    for (size_t i = 0; i < PF_COUNT(from); i++) {
        from[i] = fcntl(from[i], F_DUPFD_CLOEXEC, PF_INIT_PROGRAM + 1);
        if (from[i] < 0)
            fail_birth(birth, "place its descriptors");
    }
    for (size_t i = 0; i < PF_COUNT(from); i++)
        if (dup3(from[i], PF_INIT_SOCKET + (int)i,
                 PF_INIT_SOCKET + (int)i == PF_INIT_PROGRAM ? O_CLOEXEC : 0) < 0)
            fail_birth(birth, "place its descriptors");
    /* A kernel without it (before 5.9) has no mount_setattr(2) either. */
    if (close_range(PF_INIT_PROGRAM + 1, ~0U, 0) < 0)
        fail_birth(birth, "close descriptors");
}

/* Shares the owner's memory, and the owner waits, until init is executed: nothing of this memory is
 * left in it then. Signals are blocked: no handler of the host runs. */
static int inner_main(void *arg)
{
    struct birth *birth = arg;
    char name[] = PF_INIT_NAME, *argv[] = { name, NULL }, *envp[] = { NULL };

    keep_capabilities(birth);
    place_descriptors(birth);
    execveat(PF_INIT_PROGRAM, "", argv, envp, AT_EMPTY_PATH);
    fail_birth(birth, "execute " PF_INIT_NAME);
}

/* The process between the two, so that the host sees no child; it ends at once. It shares the table
 * of descriptors with the host, to get the pidfd there. Its working directory, which it shares with
 * nobody, is the workspace: a new mount namespace takes its creator's along, while a descriptor
 * would go on showing the old one. */
static int between_main(void *arg)
{
    struct birth *birth = arg;
    pid_t pid;

    if (fchdir(birth->workspace) < 0)
        fail_birth(birth, "enter its workspace");
    pid = clone(inner_main, birth->inner_stack,
                (int)(CLONE_VM | CLONE_VFORK | CLONE_PIDFD | birth->namespaces), birth,
                &birth->pidfd);
    birth->init = pid;
    if (pid < 0) {
        birth->refused = true;
        fail_birth(birth, "make namespaces (user, mount, pid, ipc, uts, cgroup, net)");
    }
    _exit(0);
}

static void wait_for(pid_t pid)
{
    while (waitpid(pid, NULL, __WALL) < 0 && errno == EINTR) {
    }
}

/* The kernel did not do what, which is no fault of the caller's: say how to turn it on. */
static int refused(struct pinfold_error *err, int sys_errno, const char *what)
{
    const char *advice = pf_jail_explain(sys_errno);

    if (advice[0] == '\0')
        return pf_fail_os(err, sys_errno, "start a sandbox: %s", what);
    pf_fail(err, PINFOLD_ENOTSUP, "start a sandbox: %s: %s; %s", what, strerrordesc_np(sys_errno),
            advice);
    if (err)
        err->sys_errno = sys_errno;
    return -PINFOLD_ENOTSUP;
}

static int init_failed(const struct pinfold_error *from, struct pinfold_error *err)
{
    if (from->code != PINFOLD_EVALUE)
        return refused(err, from->sys_errno, from->msg);
    pf_fail(err, PINFOLD_EVALUE, "start a sandbox: %s: %s", from->msg,
            strerrordesc_np(from->sys_errno));
    if (err)
        err->sys_errno = from->sys_errno;
    return -PINFOLD_EVALUE;
}

static int give_birth(struct birth *birth, struct pinfold_error *err)
{
    _Alignas(16) char outer[8192], inner[16384];
    sigset_t all, old;
    pid_t pid;

    birth->inner_stack = inner + sizeof(inner);
    birth->pidfd = -1;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    pid = clone(between_main, outer + sizeof(outer), CLONE_VM | CLONE_VFORK | CLONE_FILES, birth);
    if (pid < 0) {
        birth->sys_errno = errno;
        birth->step = "clone a process";
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (pid > 0)
        wait_for(pid);
    if (birth->sys_errno == 0)
        return 0;
    if (birth->pidfd >= 0)
        close(birth->pidfd);
    return birth->refused ? refused(err, birth->sys_errno, birth->step)
                          : pf_fail_os(err, birth->sys_errno, "start a sandbox: %s", birth->step);
}

/* Receive what init says, and *ret_fd, a descriptor that came along, or -1. Returns false when it
 * is gone, or silent for too long. */
static bool listen_to(int socket, struct pf_init_message *message, int64_t deadline, int *ret_fd)
{
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))];
    struct iovec iov = { message, sizeof(*message) };
    struct msghdr header = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)
    };
    struct pollfd wait = { socket, POLLIN, 0 };
    struct cmsghdr *part;
    int r;

    *ret_fd = -1;
    do
        r = poll(&wait, 1, pf_clock_poll_ms(deadline));
    while (r < 0 && errno == EINTR);
    if (r <= 0 || recvmsg(socket, &header, MSG_CMSG_CLOEXEC) != (ssize_t)sizeof(*message))
        return false;
    part = CMSG_FIRSTHDR(&header);
    if (part && part->cmsg_level == SOL_SOCKET && part->cmsg_type == SCM_RIGHTS)
        memcpy(ret_fd, CMSG_DATA(part), sizeof(int));
    message->error.msg[sizeof(message->error.msg) - 1] = '\0';
    return true;
}

static int await_ready(struct pf_jail *jail, struct pinfold_error *err)
{
    int64_t deadline = pf_clock_deadline(START_LIMIT_NS);
    struct pf_init_message message;
    int fd;

    while (listen_to(jail->socket, &message, deadline, &fd)) {
        if (message.event == PF_INIT_READY) {
            jail->proxy = fd;
            return 0;
        }
        if (message.event == PF_INIT_ROOT) {
            jail->root = fd;
            continue;
        }
        if (message.event == PF_INIT_FAILED)
            return init_failed(&message.error, err);
        if (message.event == PF_INIT_NO_OVERLAY) {
            pf_fail_os(err, message.error.sys_errno, "%s", message.error.msg);
            return PF_JAIL_NO_OVERLAY;
        }
        pf_log(PINFOLD_LOG_WARNING, "a sandbox does without what it could not: %s: %s",
               message.error.msg, strerrordesc_np(message.error.sys_errno));
    }
    return pf_fail(err, PINFOLD_EBACKEND, "start a sandbox: " PF_INIT_NAME " %s",
                   pf_clock_now() >= deadline ? "does not answer" : "died at its start");
}

/* Before the first command: what init forks is where init is. */
static int enter_cgroup(const struct pf_jail *jail, pid_t init, struct pinfold_error *err)
{
    int r = pf_cgroup_enter(&jail->cgroup, init);

    return r < 0 ? pf_fail_os(err, -r, "put a sandbox into its control group %s",
                              PF_QUOTE(jail->cgroup.dirs[0]))
                 : 0;
}

/* With / as the workspace everything would be shown after all. */
static int check_workspace(int fd, struct pinfold_error *err)
{
    struct stat workspace, root;

    if (fstat(fd, &workspace) < 0)
        return pf_fail_os(err, errno, "start a sandbox: look at its workspace");
    if (!S_ISDIR(workspace.st_mode))
        return pf_fail(err, PINFOLD_EVALUE, "start a sandbox: its workspace is not a directory");
    if (stat("/", &root) == 0 && root.st_dev == workspace.st_dev && root.st_ino == workspace.st_ino)
        return pf_fail(err, PINFOLD_EVALUE, "start a sandbox: / cannot be its workspace");
    return 0;
}

static int start(struct pf_jail *jail, const char *path, const struct pf_jail_config *config,
                 struct pinfold_error *err)
{
    struct pf_jail_config resolved = *config;
    int pair[2], r;

    _cleanup_close_ int program = open(path, O_RDONLY | O_CLOEXEC);
    if (program < 0)
        return pf_fail_os(err, errno, "open %s", PF_QUOTE(path));
    pf_limits_resolve(&resolved.limits);
    pf_cgroup_make(NULL, &resolved.limits, &jail->cgroup);
    r = pf_limits_hold(&resolved.limits, &jail->cgroup, jail->holders, err);
    if (r < 0)
        return r;
    _cleanup_close_ int plan = pf_plan_compose(&resolved, jail->holders, err);
    if (plan < 0)
        return plan;
    _cleanup_close_ int owner = (int)syscall(SYS_pidfd_open, jail->owner, 0);
    if (owner < 0)
        return pf_fail_os(err, errno, "start a sandbox: open a descriptor of this process");
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return pf_fail_os(err, errno, "create a socket for a sandbox");
    jail->socket = pair[0];
    struct birth birth = {
        .program = program,
        .socket = pair[1],
        .plan = plan,
        .owner = owner,
        .workspace = config->workspace_fd,
        .overlay = config->seed != NULL,
        .namespaces = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS |
                      CLONE_NEWCGROUP | (config->net == PINFOLD_NET_HOST ? 0 : CLONE_NEWNET),
    };
    r = give_birth(&birth, err);
    close(pair[1]);
    if (r < 0)
        return r;
    jail->pidfd = birth.pidfd;
    r = await_ready(jail, err);
    return r != 0 ? r : enter_cgroup(jail, birth.init, err);
}

int pf_jail_open(const struct pf_jail_config *config, struct pf_jail **ret,
                 struct pinfold_error *err)
{
    char path[PATH_MAX];
    struct pf_jail *jail;
    int r = check_workspace(config->workspace_fd, err);

    if (r < 0)
        return r;
    if (!pf_program_find(PF_INIT_NAME, path))
        return pf_fail(err, PINFOLD_ENOTSUP,
                       "the program " PF_INIT_NAME " is neither beside this one nor installed");
    jail = malloc(sizeof(*jail));
    if (!jail)
        return pf_fail_nomem(err);
    *jail = (struct pf_jail){
        .socket = -1,
        .pidfd = -1,
        .proxy = -1,
        .root = -1,
        .owner = getpid(),
        .cgroup = PF_CGROUP_INIT,
    };
    r = start(jail, path, config, err);
    if (r != 0)
        pf_jail_close(jail);
    else
        *ret = jail;
    return r;
}

const enum pinfold_holder *pf_jail_holders(const struct pf_jail *jail)
{
    return jail->holders;
}

void pf_jail_count(const struct pf_jail *jail, bool forks, struct pf_cgroup_counts *ret)
{
    pf_cgroup_count(&jail->cgroup, forks, ret);
}

int pf_jail_socket(const struct pf_jail *jail)
{
    return jail->socket;
}

int pf_jail_take_proxy_socket(struct pf_jail *jail)
{
    return TAKE_FD(jail->proxy);
}

int pf_jail_take_root(struct pf_jail *jail)
{
    return TAKE_FD(jail->root);
}

static void close_if_open(int fd)
{
    if (fd >= 0)
        close(fd);
}

void pf_jail_close(struct pf_jail *jail)
{
    int saved = errno, r;
    bool owned = jail && jail->owner == getpid();

    if (!jail)
        return;
    if (owned && jail->pidfd >= 0) {
        struct pollfd gone = { jail->pidfd, POLLIN, 0 };
        int64_t deadline = pf_clock_deadline(CLOSE_LIMIT_NS);
        siginfo_t info;
        syscall(SYS_pidfd_send_signal, jail->pidfd, SIGKILL, NULL, 0);
        do
            r = poll(&gone, 1, pf_clock_poll_ms(deadline));
        while (r < 0 && errno == EINTR);
        if (r == 0)
            pf_log(PINFOLD_LOG_ERROR, "the processes of a sandbox refuse to die");
        /* Init is an orphan, which this process may have adopted; else this fails. */
        waitid(P_PIDFD, (id_t)jail->pidfd, &info, WEXITED | WNOHANG | __WALL);
    }
    if (owned)
        pf_cgroup_done(&jail->cgroup);
    close_if_open(jail->pidfd);
    close_if_open(jail->socket);
    close_if_open(jail->proxy);
    close_if_open(jail->root);
    free(jail);
    errno = saved;
}
