/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pinfold-launch: forks supervisors for a host process that is too large to fork itself. Static and
 * tiny, so that a fork of it costs next to nothing. Ends when the host closes the socket.
 */
#include "proc/serve.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/* An owner that cannot wait for the supervisor as its child must know it all the same. */
static void tell_started(int control, pid_t pid)
{
    struct pf_super_message message = { .event = PF_EVENT_STARTED, .status = pid };

    pf_wire_tell(control, &message, sizeof(message), 0);
}

/* What comes with a request is above the command's stdio then, where it can stay, and the command
 * has its stdin. */
static int hold_null(void)
{
    bool held = open("/dev/null", O_RDWR) == STDIN_FILENO &&
                dup2(STDIN_FILENO, STDOUT_FILENO) >= 0 && dup2(STDIN_FILENO, STDERR_FILENO) >= 0;

    return held ? STDIN_FILENO : -1;
}

/* fork(3) would keep state of the C library right that nobody asks for, by seven system calls and
 * some writing to what has just been shared. */
static pid_t fork_bare(void)
{
    return (pid_t)syscall(SYS_clone, (unsigned long)SIGCHLD, NULL, NULL, NULL, NULL);
}

int main(void)
{
    struct pf_wire_request request;
    int fds[PF_WIRE_MAX], count;
    sigset_t all;
    int null;

    if (fcntl(PF_HELPER_FD, F_SETFD, FD_CLOEXEC) < 0) {
        dprintf(STDERR_FILENO, PF_HELPER_NAME ": this program is started by pinfold itself\n");
        return 2;
    }
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, NULL);
    pf_default_signals();
    (void)signal(SIGCHLD, SIG_IGN); /* nobody waits for supervisors */
    setsid();
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); /* see pf_super_settle() */
    close_range(0, 2, 0);
    close_range(PF_HELPER_FD + 1, ~0U, 0);
    null = hold_null();
    (void)!chdir("/");
    while ((count = pf_serve_receive(PF_HELPER_FD, &request, fds)) >= 0) {
        pid_t pid = count > 0 ? fork_bare() : 1;
        if (pid == 0) {
            pf_serve(&request, fds, null, -1);
            _exit(0);
        }
        if (pid < 0)
            pf_super_fail(fds[PF_WIRE_CONTROL], errno, PF_STAGE_FORK);
        else if (count > 0)
            tell_started(fds[PF_WIRE_CONTROL], pid);
        /* Before Linux 5.9 there is no such call. */
        while (close_range(PF_HELPER_FD + 1, ~0U, 0) < 0 && count > 0)
            close(fds[--count]);
    }
    return 0;
}
