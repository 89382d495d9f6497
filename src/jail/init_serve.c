/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Serving the owner: the resident supervisor takes the requests that come one after the other, and
 * forks of the first process take the others. What loses its supervisor is killed.
 */
#include "jail/init.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "proc/serve.h"

static pid_t supervisors[4096]; /* with the resident */
static size_t supervisor_count;
static pid_t resident; /* 0: there is none */

static bool is_supervisor(pid_t pid)
{
    for (size_t i = 0; i < supervisor_count; i++)
        if (supervisors[i] == pid)
            return true;
    return false;
}

static void forget(pid_t pid)
{
    if (pid == resident)
        resident = 0;
    for (size_t i = 0; i < supervisor_count; i++)
        if (supervisors[i] == pid) {
            supervisors[i] = supervisors[--supervisor_count];
            return;
        }
}

/* Children that are no supervisors lost theirs, which somebody inside must have killed: nobody
 * would ever end them. Returns whether there were any. */
static bool kill_orphans(void)
{
    static pid_t pids[4096];
    size_t count = pf_children(pids, PF_COUNT(pids), false);
    bool found = false;

    for (size_t i = 0; i < count; i++)
        if (!is_supervisor(pids[i])) {
            kill(pids[i], SIGKILL);
            found = true;
        }
    return found;
}

/* Returns whether orphans are left, to be looked after again soon. */
static bool reap(void)
{
    int status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0) {
        if (WIFSTOPPED(status)) /* a supervisor that obeys somebody else */
            kill(pid, SIGKILL);
        else
            forget(pid);
    }
    return kill_orphans();
}

bool init_refuses(const struct pf_wire_request *request, const int *fds)
{
    /* Through a directory of the host's tree one could walk out by its "..". */
    if (request->has_cwd)
        pf_super_fail(fds[PF_WIRE_CONTROL], EPERM, PF_STAGE_CWD);
    return request->has_cwd;
}

static void start(const struct pf_wire_request *request, const int *fds)
{
    pid_t pid;

    if (init_refuses(request, fds))
        return;
    if (supervisor_count == PF_COUNT(supervisors)) {
        pf_super_fail(fds[PF_WIRE_CONTROL], EAGAIN, PF_STAGE_FORK);
        return;
    }
    pid = fork();
    if (pid == 0) {
        pf_serve(request, fds, -1, -1);
        _exit(0);
    }
    if (pid < 0)
        pf_super_fail(fds[PF_WIRE_CONTROL], errno, PF_STAGE_FORK);
    else
        supervisors[supervisor_count++] = pid;
}

/* Returns false when the owner has hung up. */
static bool take_request(int socket)
{
    static struct pf_wire_request request;
    int fds[PF_WIRE_MAX], count = pf_serve_receive(socket, &request, fds);

    if (count > 0)
        start(&request, fds);
    for (int i = 0; i < count; i++)
        close(fds[i]);
    return count >= 0;
}

/* What was meant for a resident that died. */
static void take_leased(void)
{
    struct pollfd leased = { PF_INIT_RESIDENT, POLLIN, 0 };

    while (poll(&leased, 1, 0) > 0 && take_request(PF_INIT_RESIDENT)) {
    }
}

/* Without one everything works, and takes longer. */
static void look_for_resident(int retire, int hand_over)
{
    static uint32_t life = PF_FIRST_LIFE;
    pid_t pid;

    if (resident)
        return;
    if (life != PF_FIRST_LIFE)
        take_leased();
    if (retire < 0 || hand_over < 0 || supervisor_count == PF_COUNT(supervisors))
        return;
    pid = fork();
    if (pid == 0)
        init_reside(life, retire, hand_over);
    if (pid < 0)
        return;
    resident = supervisors[supervisor_count++] = pid;
    if (++life == 0)
        life++; /* 0 is no lease */
}

void init_serve(int signals)
{
    enum { REQUEST, LEASED, HANDED_OVER, RETIRED, SIGNALS, OWNER, COUNT };
    int retire[2] = { -1, -1 }, hand_over[2] = { -1, -1 };
    struct signalfd_siginfo info;
    uint64_t files = pf_files_wanted();
    bool orphans = false;
    pid_t busy;

    (void)!pipe2(retire, O_CLOEXEC | O_NONBLOCK);
    (void)!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, hand_over);
    while (true) {
        look_for_resident(retire[1], hand_over[1]);
        struct pollfd fds[COUNT] = {
            [REQUEST] = { PF_INIT_SOCKET, POLLIN, 0 },
            [LEASED] = { resident ? -1 : PF_INIT_RESIDENT, POLLIN, 0 },
            [HANDED_OVER] = { hand_over[0], POLLIN, 0 },
            [RETIRED] = { retire[0], POLLIN, 0 },
            [SIGNALS] = { signals, POLLIN, 0 },
            [OWNER] = { PF_INIT_OWNER, POLLIN, 0 },
        };
        if (poll(fds, COUNT, orphans ? 1 : -1) < 0 && errno != EINTR)
            return;
        if (fds[OWNER].revents || pf_is_deaf(files))
            return;
        if (fds[SIGNALS].revents)
            (void)!read(signals, &info, sizeof(info));
        if (fds[SIGNALS].revents || orphans)
            orphans = reap();
        /* It may be gone by now, and have a successor. */
        if (fds[RETIRED].revents && read(retire[0], &busy, sizeof(busy)) == sizeof(busy) &&
            busy == resident)
            resident = 0;
        for (int i = REQUEST; i <= HANDED_OVER; i++)
            if (fds[i].revents && !take_request(fds[i].fd))
                return;
    }
}
