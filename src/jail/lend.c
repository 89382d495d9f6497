/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A mount that a jail made, such as an overlay, is in its own mount namespace alone, and its first
 * process has given up whatever it takes to hand out another. But its owner made the user namespace
 * and has every right in it: a process of the owner's enters both for three system calls. Nobody
 * inside sees it, because it is in none of their process namespace.
 */
#include "jail/lend.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "jail/jail.h"

struct visit {
    int pidfd;
    int fd; /* of the new mount */
    int sys_errno;
    const char *step; /* that failed */
};

static void fail_visit(struct visit *visit, const char *step) __attribute__((noreturn));
static void fail_visit(struct visit *visit, const char *step)
{
    visit->sys_errno = errno;
    visit->step = step;
    _exit(1);
}

/* Shares the owner's memory and descriptors, and the owner waits: what it opens stays open there.
 */
static int visit_main(void *arg)
{
    struct mount_attr attr = { .attr_set =
                                       MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV };
    struct visit *visit = arg;

    if (setns(visit->pidfd, CLONE_NEWUSER | CLONE_NEWNS) < 0)
        fail_visit(visit, "enter its namespaces");
    visit->fd = open_tree(AT_FDCWD, PF_JAIL_WORKSPACE, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
    if (visit->fd < 0)
        fail_visit(visit, "mount its workspace once more");
    /* Here, so that there is never a writable one outside. */
    if (mount_setattr(visit->fd, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0)
        fail_visit(visit, "make its workspace read-only");
    _exit(0);
}

static void pay_visit(struct visit *visit)
{
    _Alignas(16) char stack[16384];
    sigset_t all, old;
    pid_t pid;

    sigfillset(&all); /* no handler of the host runs in there */
    pthread_sigmask(SIG_SETMASK, &all, &old);
    pid = clone(visit_main, stack + sizeof(stack), CLONE_VM | CLONE_VFORK | CLONE_FILES, visit);
    if (pid < 0) {
        visit->sys_errno = errno;
        visit->step = "clone a process";
    }
    while (pid > 0 && waitpid(pid, NULL, __WALL) < 0 && errno == EINTR) {
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
}

static bool is_same(int a, int b)
{
    struct stat one, other;

    return fstat(a, &one) == 0 && fstat(b, &other) == 0 && one.st_dev == other.st_dev &&
           one.st_ino == other.st_ino;
}

int pf_lend_workspace(int pidfd, int root_fd, int *ret_fd, struct pinfold_error *err)
{
    struct visit visit = { .pidfd = pidfd, .fd = -1 };

    pay_visit(&visit);
    _cleanup_close_ int fd = visit.fd;
    if (visit.step)
        return pf_fail_os(err, visit.sys_errno, "show a sandbox's workspace to a view: %s",
                          visit.step);
    if (fd < 0 || !is_same(fd, root_fd))
        return pf_fail(err, PINFOLD_EBACKEND,
                       "show a sandbox's workspace to a view: it is not what was mounted there");
    *ret_fd = TAKE_FD(fd);
    return 0;
}
