/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The resident supervisor of a jail. Forking a supervisor for each command, and its end, would cost
 * as much as half of what a small command does; so there is one that stays. Whenever it is free it
 * says so to the owner, who may then send it one request: a lease. What comes while it is busy goes
 * to the first process, which forks a supervisor for it.
 */
#include "jail/init.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proc/serve.h"

/* Where it keeps what it has; what is above is the command's. Below, where the leader's stdio and
 * script go, is /dev/null, so that nothing else gets there. */
enum {
    SOCKET = PF_SCRIPT_FD + 1,
    RETIRE,
    HAND_OVER,
    NOTHING,
    FIRST_FREE,
};

/* Its processor time counts against a limit that is meant for commands. */
#define COMMANDS_MAX 1000

static bool settle(int retire, int hand_over)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    int from[] = {
        [SOCKET] = PF_INIT_RESIDENT, [RETIRE] = retire, [HAND_OVER] = hand_over, [NOTHING] = null
    };

    if (null < 0 || !pf_super_settle())
        return false;
    for (int i = SOCKET; i < FIRST_FREE; i++) {
        from[i] = fcntl(from[i], F_DUPFD_CLOEXEC, FIRST_FREE);
        if (from[i] < 0)
            return false;
    }
    for (int i = SOCKET; i < FIRST_FREE; i++)
        if (dup3(from[i], i, O_CLOEXEC) < 0)
            return false;
    for (int i = 0; i <= PF_SCRIPT_FD; i++)
        if (dup3(NOTHING, i, O_CLOEXEC) < 0)
            return false;
    prctl(PR_SET_NAME, "pinfold-super", 0, 0, 0);
    return true;
}

bool init_lease(int socket, uint32_t life)
{
    return pf_wire_tell(socket, &life, sizeof(life), 0);
}

static void read_limits(struct rlimit limits[static RLIM_NLIMITS])
{
    memset(limits, 0, RLIM_NLIMITS * sizeof(*limits));
    for (int i = 0; i < RLIM_NLIMITS; i++)
        (void)getrlimit(i, &limits[i]);
}

/* Wait until something is asked, and leave it to the first process if a command has changed our
 * limits, as it can: its descriptors may not fit in here any more, and a command has these limits,
 * which none but the one that changed them should. */
static void await_request(const struct rlimit limits[static RLIM_NLIMITS])
{
    struct pollfd asked = { SOCKET, POLLIN, 0 };
    struct rlimit now[RLIM_NLIMITS];

    while (poll(&asked, 1, -1) < 0 && errno == EINTR) {
    }
    read_limits(now);
    if (memcmp(now, limits, sizeof(now)) != 0)
        _exit(0);
}

/* The next request that is ours. */
static void receive(uint32_t life, const struct rlimit *limits, struct pf_wire_request *request,
                    int *fds)
{
    int count;

    do {
        await_request(limits);
        count = pf_serve_receive(SOCKET, request, fds);
        if (count < 0)
            _exit(0);
        if (count > 0 && request->lease == life)
            return;
        /* Meant for one that was killed before it could take it; our own lease is still out. */
        if (count > 0 && pf_wire_send(HAND_OVER, request, fds, (size_t)count, 0) < 0)
            pf_super_fail(fds[PF_WIRE_CONTROL], EAGAIN, PF_STAGE_FORK);
        close_range(FIRST_FREE, ~0U, 0);
    } while (true);
}

void init_reside(uint32_t life, int retire, int hand_over)
{
    static struct pf_wire_request request;
    struct rlimit limits[RLIM_NLIMITS];
    int fds[PF_WIRE_MAX];

    if (!settle(retire, hand_over))
        _exit(1);
    read_limits(limits);
    for (int i = 0; i < COMMANDS_MAX; i++) {
        close_range(FIRST_FREE, ~0U, 0);
        if (!(life == PF_FIRST_LIFE && i == 0) && !init_lease(SOCKET, life))
            _exit(0);
        receive(life, limits, &request, fds);
        if (!init_refuses(&request, fds))
            pf_serve(&request, fds, NOTHING, RETIRE);
        /* Its environment may have held secrets. */
        explicit_bzero(request.text, sizeof(request.text));
    }
    _exit(0);
}
