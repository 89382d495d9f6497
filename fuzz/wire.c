/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests to the servers of commands: pinfold-launch, and the first process of a jail with its
 * resident. The first byte says how many descriptors come along, the second how much of the rest is
 * the datagram; what is behind that is the file that each descriptor leads to. What the supervisor
 * is given are texts that lie within the one or the other, and only if all were there.
 */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proc/serve.h"
#include "fuzz.h"

static struct {
    const struct pf_wire_request *request;
    unsigned supervised, failed;
} served;

/* ---- in place of what a request starts ---- */

static void check_text(const char *text)
{
    const char *start = served.request->text, *end = start + served.request->blob_len;

    demand(text != NULL);
    if (!served.request->has_blob)
        demand(text >= start && text < end && memchr(text, '\0', (size_t)(end - text)));
    demand(strlen(text) <= served.request->blob_len);
}

static size_t check_vector(const char *const *vector)
{
    size_t count = 0;

    for (; vector[count]; count++)
        check_text(vector[count]);
    return count;
}

void pf_supervise(const struct pf_super_spec *spec)
{
    const struct pf_wire_request *request = served.request;

    served.supervised++;
    demand(check_vector(spec->argv) == request->argc && request->argc > 0);
    demand(check_vector(spec->envp) == request->envc);
    demand((spec->cwd_path != NULL) == (request->has_cwd_path != 0));
    if (spec->cwd_path)
        check_text(spec->cwd_path);
    demand(fcntl(spec->control, F_GETFD) == FD_CLOEXEC);
    demand((spec->cwd >= 0) == (request->has_cwd != 0));
    demand((spec->script >= 0) == (request->has_script != 0));
    for (int i = 0; i < 2; i++)
        demand((spec->read_end[i] >= 0) == !request->terminal &&
               (spec->write_end[i] >= 0) == !request->terminal);
}

void pf_super_fail(int control, int sys_errno, enum pf_super_stage stage)
{
    demand(fcntl(control, F_GETFD) >= 0 && sys_errno > 0 && stage == PF_STAGE_SETUP);
    served.failed++;
}

/* ---- the request ---- */

static void send_datagram(int socket, const uint8_t *data, size_t size, int fd, size_t count)
{
    int fds[PF_WIRE_MAX + 1];
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(fds))] = { 0 };
    struct iovec iov = { (void *)(uintptr_t)data, size };
    struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1 };
    struct cmsghdr *part;

    for (size_t i = 0; i < count; i++)
        fds[i] = fd;
    if (count > 0) {
        message.msg_control = control;
        message.msg_controllen = CMSG_SPACE(count * sizeof(int));
        part = CMSG_FIRSTHDR(&message);
        part->cmsg_level = SOL_SOCKET;
        part->cmsg_type = SCM_RIGHTS;
        part->cmsg_len = CMSG_LEN(count * sizeof(int));
        memcpy(CMSG_DATA(part), fds, count * sizeof(int));
    }
    demand(sendmsg(socket, &message, MSG_NOSIGNAL) == (ssize_t)size);
}

static void serve(int socket)
{
    /* Of before; and none of it may be seen now. */
    struct pf_wire_request *request = malloc(sizeof(*request));
    int fds[PF_WIRE_MAX], count;

    demand(request != NULL);
    memset(request, 0x55, sizeof(*request));
    served.request = request;
    served.supervised = served.failed = 0;
    count = pf_serve_receive(socket, request, fds);
    demand(count >= 0 && count <= PF_WIRE_MAX);
    if (count > 0) {
        pf_serve(request, fds, -1, -1);
        demand(served.supervised + served.failed == 1);
    }
    for (int i = 0; i < count; i++)
        demand(close(fds[i]) == 0);
    free(request);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const size_t head = offsetof(struct pf_wire_request, text);
    size_t count, len;
    int pair[2], fd;

    if (size < 3)
        return 0;
    count = data[0] % (PF_WIRE_MAX + 2);
    len = data[1] ? head + data[1] - 128 : size - 2;
    if (len > size - 2)
        len = size - 2;
    if (len == 0)
        return 0;
    fd = memfd_create("fuzz", MFD_CLOEXEC);
    demand(fd >= 0 && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
    demand(write(fd, data + 2 + len, size - 2 - len) == (ssize_t)(size - 2 - len));
    send_datagram(pair[0], data + 2, len, fd, count);
    serve(pair[1]);
    close(fd);
    close(pair[0]);
    close(pair[1]);
    return 0;
}
