/* SPDX-License-Identifier: Apache-2.0 */
#include "proc/serve.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"

/* Room for so many strings and two NULLs. One process has one command. */
static const char **get_vector(size_t count)
{
    static const char *few[256];
    void *many;

    if (count + 2 <= PF_COUNT(few))
        return few;
    many = mmap(NULL, (count + 2) * sizeof(*few), PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return many == MAP_FAILED ? NULL : many;
}

/* The vectors, out of the request or the blob. */
static bool unpack(const struct pf_wire_request *request, int blob, struct pf_super_spec *spec)
{
    size_t count = (size_t)request->argc + request->envc, slots = 0;
    const char **vector = get_vector(count), *text = request->text, *end;

    if (!vector)
        return false;
    if (request->has_blob)
        text = mmap(NULL, request->blob_len, PROT_READ, MAP_PRIVATE, blob, 0);
    if (text == MAP_FAILED)
        return false;
    end = text + request->blob_len;
    if (request->has_cwd_path) {
        spec->cwd_path = text;
        text += strlen(text) + 1;
    }
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

void pf_serve(const struct pf_wire_request *request, const int *fds,
              const struct pf_resident *resident)
{
    const int *pipes = fds + 1, *blob = pipes + (request->terminal ? 0 : PF_WIRE_PIPES);
    const int *cwd = blob + request->has_blob, *script = cwd + request->has_cwd;
    struct pf_super_spec spec = {
        .control = fds[PF_WIRE_CONTROL],
        .read_end = { -1, -1 },
        .write_end = { -1, -1 },
        .cwd = request->has_cwd ? *cwd : -1,
        .script = request->has_script ? *script : -1,
        .owner = request->owner,
        .deadline = request->deadline,
        .search = request->search,
        .terminal = request->terminal,
        .rows = request->rows,
        .cols = request->cols,
        .slave = -1,
        .fresh_signals = true,
        .resident = resident,
    };

    for (int i = 0; i < 2 && !request->terminal; i++) {
        spec.read_end[i] = pipes[i];
        spec.write_end[i] = pipes[2 + i];
    }
    if (!unpack(request, request->has_blob ? *blob : -1, &spec)) {
        pf_super_fail(spec.control, errno, PF_STAGE_SETUP);
        return;
    }
    pf_supervise(&spec);
}

int pf_serve_receive(int socket, struct pf_wire_request *request, int fds[static PF_WIRE_MAX])
{
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(PF_WIRE_MAX * sizeof(int))];
    const size_t head = offsetof(struct pf_wire_request, text);
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
    if (len >= (ssize_t)head && !(message.msg_flags & (MSG_CTRUNC | MSG_TRUNC))) {
        wanted = 1 + (request->terminal ? 0 : PF_WIRE_PIPES) + request->has_blob +
                 request->has_cwd + request->has_script;
        if (count == wanted && (request->has_blob || (size_t)len - head == request->blob_len))
            return count;
    }
    while (count > 0)
        close(fds[--count]);
    return 0;
}
