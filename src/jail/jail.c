/* SPDX-License-Identifier: Apache-2.0 */
/* The owner's side: starting the first process of a jail, and taking it down. */
#include "jail/jail.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/poll.h"
#include "jail/birth.h"
#include "jail/compose.h"
#include "jail/explain.h"
#include "jail/lend.h"
#include "jail/limits.h"
#include "proc/launcher.h"

#define START_LIMIT_NS (30 * PF_NS_PER_SEC) /* a machine that is slower is broken */
#define CLOSE_LIMIT_NS (10 * PF_NS_PER_SEC)

#ifndef P_PIDFD
#define P_PIDFD 3
#endif

struct pf_jail {
    int socket;
    int resident; /* socket of its resident supervisor */
    int pidfd;    /* readable when everything inside is gone */
    int proxy;
    pid_t owner; /* a fork of the host must not end what is its parent's */
    int root;    /* of the overlay */
    struct pf_cgroup cgroup;
    enum pinfold_holder holders[PINFOLD_LIMIT_COUNT];
};

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
    ssize_t len = -1;
    int r;

    *ret_fd = -1;
    do {
        r = pf_poll(&wait, 1, pf_clock_poll_ms(deadline));
        if (r > 0)
            len = recvmsg(socket, &header, MSG_CMSG_CLOEXEC);
        /* Reset, once: it ended before it had read all; what it said before that is there still. */
    } while ((r < 0 && errno == EINTR) || (r > 0 && len < 0 && errno == ECONNRESET));
    if (len != (ssize_t)sizeof(*message))
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

static int hand_over(const struct pf_jail *jail, struct iovec data, const int *fds, size_t count,
                     struct pinfold_error *err)
{
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(PF_INIT_FDS_MAX * sizeof(int))] = { 0 };
    struct msghdr message = { .msg_iov = &data,
                              .msg_iovlen = 1,
                              .msg_control = control,
                              .msg_controllen = count > 0 ? CMSG_SPACE(count * sizeof(int)) : 0 };
    struct cmsghdr *part = CMSG_FIRSTHDR(&message);

    if (part) {
        part->cmsg_level = SOL_SOCKET;
        part->cmsg_type = SCM_RIGHTS;
        part->cmsg_len = CMSG_LEN(count * sizeof(int));
        memcpy(CMSG_DATA(part), fds, count * sizeof(int));
    }
    /* When it is gone it has said why. */
    if (sendmsg(jail->socket, &message, MSG_NOSIGNAL) < 0 && errno != EPIPE && errno != ECONNRESET)
        return pf_fail_os(err, errno, "start a sandbox: hand over its plan");
    return 0;
}

static int send_plan(const struct pf_jail *jail, const struct pf_jail_config *config,
                     struct pinfold_error *err)
{
    _cleanup_free_ struct pf_plan *plan = NULL;
    char byte = 0;
    int r = pf_plan_compose(config, &plan, err);

    if (r < 0)
        return r;
    struct iovec data = { plan, plan->size };
    int fds[2] = { config->workspace_fd };
    size_t count = config->lent;
    if (plan->size <= PF_INIT_PLAN_MAX)
        return hand_over(jail, data, fds, count, err);
    _cleanup_close_ int fd = pf_sealed_file("pinfold-plan", &data, 1);
    if (fd < 0)
        return pf_fail_os(err, -fd, "write the plan of the sandbox");
    fds[count++] = fd;
    return hand_over(jail, (struct iovec){ &byte, 1 }, fds, count, err);
}

static int send_groups(const struct pf_jail *jail, const struct pinfold_limits *limits,
                       struct pinfold_error *err)
{
    /* Where the memory itself is counted, programs may reserve what they like: those built with
     * AddressSanitizer reserve terabytes. */
    bool reserved = jail->holders[PINFOLD_LIMIT_MEMORY] == PINFOLD_HOLDER_RLIMIT;
    /* A group has to refuse first: it counts that, and the rlimit does not. Root has none. */
    bool second = jail->holders[PINFOLD_LIMIT_PROCESSES] == jail->cgroup.holder &&
                  jail->cgroup.limits_processes && geteuid() != 0;
    struct pf_init_groups groups = { reserved ? limits->memory_bytes : PINFOLD_UNLIMITED,
                                     limits->processes + second };
    int fds[PF_CGROUP_MAX], count = pf_cgroup_entries(&jail->cgroup, fds), r;

    if (count < 0)
        return pf_fail_os(err, -count, "start a sandbox: open its control group");
    r = hand_over(jail, (struct iovec){ &groups, sizeof(groups) }, fds, (size_t)count, err);
    while (count > 0)
        close(fds[--count]);
    return r;
}

/* The plan, and the groups that what init forks later will be in: made while init is started and
 * builds. */
static int prepare(struct pf_jail *jail, const struct pf_jail_config *config,
                   struct pinfold_error *err)
{
    struct pf_jail_config resolved = *config;
    int r;

    pf_limits_resolve(&resolved.limits);
    r = send_plan(jail, &resolved, err);
    if (r < 0)
        return r;
    pf_cgroup_make(NULL, &resolved.limits, &jail->cgroup);
    r = pf_limits_hold(&resolved.limits, &jail->cgroup, jail->holders, err);
    return r < 0 ? r : send_groups(jail, &resolved.limits, err);
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
    int pair[2], resident[2], r;

    _cleanup_close_ int program = open(path, O_RDONLY | O_CLOEXEC);
    if (program < 0)
        return pf_fail_os(err, errno, "open %s", PF_QUOTE(path));
    _cleanup_close_ int owner = (int)syscall(SYS_pidfd_open, jail->owner, 0);
    if (owner < 0)
        return pf_fail_os(err, errno, "start a sandbox: open a descriptor of this process");
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return pf_fail_os(err, errno, "create a socket for a sandbox");
    jail->socket = pair[0];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, resident) < 0) {
        r = pf_fail_os(err, errno, "create a socket for a sandbox");
        close(pair[1]);
        return r;
    }
    jail->resident = resident[0];
    struct pf_birth birth = {
        .program = program,
        .socket = pair[1],
        .resident = resident[1],
        .owner = owner,
        .workspace = config->workspace_fd,
        .overlay = config->seed != NULL,
        .network = config->net != PINFOLD_NET_HOST,
    };
    pf_birth_begin(&birth);
    r = prepare(jail, config, err);
    pf_birth_end(&birth);
    jail->pidfd = birth.pidfd;
    close(pair[1]);
    close(resident[1]);
    if (r < 0)
        return r;
    if (birth.sys_errno != 0)
        return birth.refused ? refused(err, birth.sys_errno, birth.step)
                             : pf_fail_os(err, birth.sys_errno, "start a sandbox: %s", birth.step);
    return await_ready(jail, err);
}

int pf_jail_open(const struct pf_jail_config *config, struct pf_jail **ret,
                 struct pinfold_error *err)
{
    char path[PATH_MAX];
    struct pf_jail *jail;
    int r = check_workspace(config->workspace_fd, err);

    if (r < 0)
        return r;
    if (!pf_program_find(PF_INIT_NAME, path)) {
        if (access("/proc/self", F_OK) < 0) /* by which it is looked for beside this program */
            return pf_fail(err, PINFOLD_ENOTSUP, "start a sandbox: %s", pf_jail_switched_off());
        return pf_fail(err, PINFOLD_ENOTSUP,
                       "the program " PF_INIT_NAME " is neither beside this one nor installed");
    }
    jail = malloc(sizeof(*jail));
    if (!jail)
        return pf_fail_nomem(err);
    *jail = (struct pf_jail){
        .socket = -1,
        .resident = -1,
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

int pf_jail_resident(const struct pf_jail *jail)
{
    return jail->resident;
}

int pf_jail_take_proxy_socket(struct pf_jail *jail)
{
    return TAKE_FD(jail->proxy);
}

int pf_jail_take_root(struct pf_jail *jail)
{
    return TAKE_FD(jail->root);
}

int pf_jail_lend(const struct pf_jail *jail, int root_fd, int *ret_fd, struct pinfold_error *err)
{
    return pf_lend_workspace(jail->pidfd, root_fd, ret_fd, err);
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
            r = pf_poll(&gone, 1, pf_clock_poll_ms(deadline));
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
    close_if_open(jail->resident);
    close_if_open(jail->proxy);
    close_if_open(jail->root);
    free(jail);
    errno = saved;
}
