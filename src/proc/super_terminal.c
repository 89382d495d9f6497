/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The terminal of a command, made by its supervisor: there alone /dev/ptmx is the one of the tree
 * that the command sees, so that the terminal has a name in it. The master goes to the owner and
 * nowhere else; no program of the command ever has it.
 */
#include "proc/super.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <termios.h>
#include <unistd.h>

#include "base/cleanup.h"

static int open_master(void)
{
    int master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC), unlock = 0;

    if (master < 0 || ioctl(master, TIOCSPTLCK, &unlock) == 0)
        return master;
    close(master);
    return -1;
}

/* By its master and not by a name, which could be another file's. Returned above the numbers that
 * the leader's stdio and script will have. */
static int open_slave(int master)
{
    int low = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC), slave;

    if (low < 0)
        return -1;
    slave = fcntl(low, F_DUPFD_CLOEXEC, PF_SCRIPT_FD + 1);
    close(low);
    return slave;
}

int pf_super_terminal(struct pf_super_spec *spec)
{
    struct winsize size = { .ws_row = spec->rows, .ws_col = spec->cols };
    _cleanup_close_ int master = open_master();
    struct termios modes;

    if (master < 0)
        return -errno;
    /* Above the leader's stdio, where it would stay open until the execution. */
    if (master <= PF_SCRIPT_FD) {
        int high = fcntl(master, F_DUPFD_CLOEXEC, PF_SCRIPT_FD + 1);
        if (high < 0)
            return -errno;
        close(master);
        master = high;
    }
    spec->slave = open_slave(master);
    if (spec->slave < 0 || ioctl(master, TIOCSWINSZ, &size) < 0 ||
        tcgetattr(spec->slave, &modes) < 0)
        return -errno;
    modes.c_iflag |= IUTF8; /* erase characters, not bytes of them */
    if (tcsetattr(spec->slave, TCSANOW, &modes) < 0)
        return -errno;
    return TAKE_FD(master);
}

void pf_super_send_master(int control, int master)
{
    _Alignas(struct cmsghdr) char space[CMSG_SPACE(sizeof(int))] = { 0 };
    struct pf_super_message message = { .event = PF_EVENT_TERMINAL };
    struct iovec iov = { &message, sizeof(message) };
    struct msghdr header = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof(space)
    };
    struct cmsghdr *part = CMSG_FIRSTHDR(&header);

    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(part), &master, sizeof(int));
    /* A lost owner is noticed elsewhere; then the terminal hangs up here. */
    if (sendmsg(control, &header, MSG_NOSIGNAL) < 0)
        pf_super_fail(control, errno, PF_STAGE_TERMINAL);
    close(master);
}
