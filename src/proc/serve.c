/* SPDX-License-Identifier: Apache-2.0 */
#include "proc/serve.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

/* What a request brings besides its numbers. A process has one command at a time; a resident has
 * many, and keeps nothing of them. */
struct parcel {
    const char *texts; /* each with its NUL */
    size_t len;
    const char **vector; /* room for argv and envp */
    size_t vector_size;
};

/* Room for so many texts and two NULLs. Returns false with errno. */
static bool make_room(struct parcel *parcel, size_t count)
{
    static const char *few[256];
    void *many;

    parcel->vector = few;
    if (count + 2 <= PF_COUNT(few))
        return true;
    parcel->vector_size = (count + 2) * sizeof(*few);
    many = mmap(NULL, parcel->vector_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                0);
    parcel->vector = many == MAP_FAILED ? NULL : many;
    return parcel->vector != NULL;
}

/* Find the texts in the request or the blob: all of them, up to a NUL. Returns false with errno. */
static bool open_parcel(const struct pf_wire_request *request, int blob, struct parcel *ret)
{
    size_t count = (size_t)request->argc + request->envc;
    struct stat st;
    void *mapped;

    *ret = (struct parcel){ .texts = request->text, .len = request->blob_len };
    errno = EPROTO;
    if (request->argc == 0 || count > ret->len)
        return false;
    if (request->has_blob) {
        ret->texts = NULL;
        if (fstat(blob, &st) < 0 || (uint64_t)st.st_size < ret->len)
            return false;
        mapped = mmap(NULL, ret->len, PROT_READ, MAP_PRIVATE, blob, 0);
        if (mapped == MAP_FAILED)
            return false;
        ret->texts = mapped;
    }
    errno = EPROTO;
    return ret->texts[ret->len - 1] == '\0' && make_room(ret, count);
}

static void close_parcel(const struct pf_wire_request *request, struct parcel *parcel)
{
    if (request->has_blob && parcel->texts)
        munmap((void *)(uintptr_t)parcel->texts, parcel->len);
    if (parcel->vector_size > 0 && parcel->vector)
        munmap(parcel->vector, parcel->vector_size);
}

/* Take count texts into a list, and end that: what it held is another command's. Returns false when
 * there are not so many. */
static bool take_texts(const struct parcel *parcel, size_t *at, const char **list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (*at == parcel->len)
            return false;
        list[i] = parcel->texts + *at;
        *at += strlen(list[i]) + 1;
    }
    list[count] = NULL;
    return true;
}

/* The vectors of a command. Returns false with errno. */
static bool unpack(const struct pf_wire_request *request, const struct parcel *parcel,
                   struct pf_super_spec *spec)
{
    const char **envp = parcel->vector + request->argc + 1, *cwd[2] = { NULL };
    size_t at = 0;

    errno = EPROTO;
    if (!take_texts(parcel, &at, cwd, request->has_cwd_path != 0) ||
        !take_texts(parcel, &at, parcel->vector, request->argc) ||
        !take_texts(parcel, &at, envp, request->envc))
        return false;
    spec->cwd_path = cwd[0];
    spec->argv = parcel->vector;
    spec->envp = envp;
    return true;
}

void pf_serve(const struct pf_wire_request *request, const int *fds, int null, int retire)
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
        .null = null,
        .retire = retire,
    };
    struct parcel parcel;

    for (int i = 0; i < 2 && !request->terminal; i++) {
        spec.read_end[i] = pipes[i];
        spec.write_end[i] = pipes[2 + i];
    }
    if (open_parcel(request, request->has_blob ? *blob : -1, &parcel) &&
        unpack(request, &parcel, &spec))
        pf_supervise(&spec);
    else
        pf_super_fail(spec.control, errno, PF_STAGE_SETUP);
    close_parcel(request, &parcel);
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
    /* The first one comes first, if there was room for any. */
    if (count > 0 && (message.msg_flags & MSG_CTRUNC))
        pf_super_fail(fds[PF_WIRE_CONTROL], EMFILE, PF_STAGE_SETUP);
    while (count > 0)
        close(fds[--count]);
    return 0;
}
