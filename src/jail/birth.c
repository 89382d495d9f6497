/* SPDX-License-Identifier: Apache-2.0 */
/* Starting the first process of a jail. */
#include "jail/birth.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "jail/plan.h"

/* That of the network, the most expensive by far, init makes itself while it does other things;
 * that of control groups when it is in its own. */
#define NAMESPACES (CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS)

#define STACK_BYTES (256 << 10)

static void fail_birth(struct pf_birth *birth, const char *step) __attribute__((noreturn));
static void fail_birth(struct pf_birth *birth, const char *step)
{
    birth->sys_errno = errno;
    birth->step = step;
    _exit(127);
}

/* Let what is executed keep the capabilities that building the jail takes: they are those of the
 * new user namespace, and mean nothing outside. */
static void keep_capabilities(struct pf_birth *birth)
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

/* Exactly the descriptors of plan.h, from wherever they are. */
static void place_descriptors(struct pf_birth *birth)
{
    int from[] = { birth->socket, birth->resident, birth->owner, birth->program };

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
    struct pf_birth *birth = arg;
    char name[] = PF_INIT_NAME, network[] = PF_INIT_NETWORK "=1";
    char *argv[] = { name, NULL }, *envp[] = { birth->network ? network : NULL, NULL };

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
    struct pf_birth *birth = arg;
    pid_t pid;

    if (fchdir(birth->workspace) < 0)
        fail_birth(birth, "enter its workspace");
    pid = clone(inner_main, birth->inner_stack,
                (int)(CLONE_VM | CLONE_VFORK | CLONE_PIDFD | NAMESPACES), birth, &birth->pidfd);
    if (pid < 0) {
        birth->refused = true;
        fail_birth(birth, "make namespaces (user, mount, pid, ipc, uts)");
    }
    _exit(0);
}

static void wait_for(pid_t pid)
{
    while (waitpid(pid, NULL, __WALL) < 0 && errno == EINTR) {
    }
}

static void *give_birth(void *arg)
{
    _Alignas(16) char outer[8192], inner[16384];
    struct pf_birth *birth = arg;
    pid_t pid;

    birth->inner_stack = inner + sizeof(inner);
    pid = clone(between_main, outer + sizeof(outer), CLONE_VM | CLONE_VFORK | CLONE_FILES, birth);
    if (pid > 0) {
        wait_for(pid);
    } else {
        birth->sys_errno = errno;
        birth->step = "clone a process";
    }
    return NULL;
}

void pf_birth_begin(struct pf_birth *birth)
{
    pthread_attr_t attributes;
    sigset_t all, old;

    birth->pidfd = -1;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    birth->threaded = pthread_create(&birth->thread, &attributes, give_birth, birth) == 0;
    pthread_attr_destroy(&attributes);
    if (!birth->threaded)
        give_birth(birth);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
}

void pf_birth_end(struct pf_birth *birth)
{
    if (birth->threaded)
        pthread_join(birth->thread, NULL);
    birth->threaded = false;
    if (birth->sys_errno != 0 && birth->pidfd >= 0)
        close(TAKE_FD(birth->pidfd));
}
