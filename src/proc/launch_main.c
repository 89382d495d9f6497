/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pinfold-launch: forks supervisors for a host process that is too large to fork itself. Static and
 * tiny, so that a fork of it costs next to nothing. Ends when the host closes the socket.
 */
#include "proc/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

/* The vectors, out of the blob. */
static bool unpack(const struct pf_wire_request *request, int blob, struct pf_super_spec *spec)
{
    size_t count = (size_t)request->argc + request->envc, slots = 0;
    const char **vector, *text, *end;

    vector = mmap(NULL, (count + 2) * sizeof(*vector), PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (vector == MAP_FAILED)
        return false;
    text = mmap(NULL, request->blob_len, PROT_READ, MAP_PRIVATE, blob, 0);
    if (text == MAP_FAILED)
        return false;
    end = text + request->blob_len;
    for (size_t i = 0; i < count && text < end; i++) {
        if (i == request->argc)
            vector[slots++] = NULL;
        vector[slots++] = text;
        text += strlen(text) + 1;
    }
    vector[slots] = NULL;
    spec->argv = vector;
    spec->envp = vector + request->argc + 1;
    return true;
}

static void supervise(const struct pf_wire_request *request, const int *fds)
        __attribute__((noreturn));
static void supervise(const struct pf_wire_request *request, const int *fds)
{
    const int *cwd = fds + PF_WIRE_OPTIONAL, *script = cwd + request->has_cwd;
    struct pf_super_spec spec = {
        .control = fds[PF_WIRE_CONTROL],
        .read_end = { fds[PF_WIRE_READ], fds[PF_WIRE_READ + 1] },
        .write_end = { fds[PF_WIRE_WRITE], fds[PF_WIRE_WRITE + 1] },
        .cwd = request->has_cwd ? *cwd : -1,
        .script = request->has_script ? *script : -1,
        .owner = request->owner,
        .deadline = request->deadline,
        .search = request->search,
    };

    if (!unpack(request, fds[PF_WIRE_BLOB], &spec)) {
        pf_super_fail(spec.control, errno, PF_STAGE_SETUP);
        _exit(1);
    }
    pf_supervise(&spec);
}

/* Receives one request and its descriptors. Returns how many came, 0 for a request that came
 * incomplete (its sender sees the control socket hang up), -1 at the end. */
static int receive(int socket, struct pf_wire_request *request, int fds[PF_WIRE_MAX])
{
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(PF_WIRE_MAX * sizeof(int))];
    struct iovec iov = { request, sizeof(*request) };
    struct msghdr message = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)
    };
    int count = 0, wanted;
    ssize_t len;

    do
        len = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    while (len < 0 && errno == EINTR);
    if (len <= 0)
        return -1;
    for (struct cmsghdr *part = CMSG_FIRSTHDR(&message); part; part = CMSG_NXTHDR(&message, part))
        if (part->cmsg_level == SOL_SOCKET && part->cmsg_type == SCM_RIGHTS) {
            count = (int)((part->cmsg_len - CMSG_LEN(0)) / sizeof(int));
            memcpy(fds, CMSG_DATA(part), (size_t)count * sizeof(int));
        }
    wanted = PF_WIRE_OPTIONAL + request->has_cwd + request->has_script;
    if (len == (ssize_t)sizeof(*request) && count == wanted && !(message.msg_flags & MSG_CTRUNC))
        return count;
    while (count > 0)
        close(fds[--count]);
    return 0;
}

/* An owner that cannot wait for the supervisor as its child must know it all the same. */
static void tell_started(int control, pid_t pid)
{
    struct pf_super_message message = { .event = PF_EVENT_STARTED, .status = pid };

    (void)!send(control, &message, sizeof(message), MSG_NOSIGNAL);
}

int main(void)
{
    struct pf_wire_request request;
    int fds[PF_WIRE_MAX], count;
    sigset_t all;

    if (fcntl(PF_HELPER_FD, F_SETFD, FD_CLOEXEC) < 0) {
        dprintf(STDERR_FILENO, PF_HELPER_NAME ": this program is started by pinfold itself\n");
        return 2;
    }
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    signal(SIGCHLD, SIG_IGN); /* nobody waits for supervisors */
    setsid();
    close_range(0, 2, 0);
    close_range(PF_HELPER_FD + 1, ~0U, 0);
    (void)!chdir("/");
    while ((count = receive(PF_HELPER_FD, &request, fds)) >= 0) {
        pid_t pid = count > 0 ? fork() : 1;
        if (pid == 0)
            supervise(&request, fds);
        if (pid < 0)
            pf_super_fail(fds[PF_WIRE_CONTROL], errno, PF_STAGE_FORK);
        else if (count > 0)
            tell_started(fds[PF_WIRE_CONTROL], pid);
        while (count > 0)
            close(fds[--count]);
    }
    return 0;
}
