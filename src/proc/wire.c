/* SPDX-License-Identifier: Apache-2.0 */
#include "proc/wire.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

int pf_wire_send(int socket, const struct pf_wire_request *request, const int *fds, size_t count,
                 int flags)
{
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(PF_WIRE_MAX * sizeof(int))] = { 0 };
    size_t head = offsetof(struct pf_wire_request, text);
    struct iovec iov = { (void *)(uintptr_t)request,
                         head + (request->has_blob ? 0 : request->blob_len) };
    struct msghdr message = { .msg_iov = &iov,
                              .msg_iovlen = 1,
                              .msg_control = control,
                              .msg_controllen = CMSG_SPACE(count * sizeof(int)) };
    struct cmsghdr *part = CMSG_FIRSTHDR(&message);
    ssize_t len;

    if (!part) /* there is room for one */
        return -EINVAL;
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(count * sizeof(int));
    memcpy(CMSG_DATA(part), fds, count * sizeof(int));
    do
        len = sendmsg(socket, &message, MSG_NOSIGNAL | flags);
    while (len < 0 && errno == EINTR);
    return len < 0 ? -errno : 0;
}

bool pf_wire_tell(int socket, const void *message, size_t len, int flags)
{
    enum { TRIES = 10, PAUSE_MS = 10 };

    for (int i = 0; i < TRIES; i++) {
        if (send(socket, message, len, MSG_NOSIGNAL | flags) == (ssize_t)len)
            return true;
        if (errno == EPIPE || errno == ECONNRESET || errno == EAGAIN || errno == EBADF)
            return false;
        poll(NULL, 0, PAUSE_MS);
    }
    return false;
}
