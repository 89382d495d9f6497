/* SPDX-License-Identifier: Apache-2.0 */
/* The host's side of the helper program. */
#include "proc/launcher.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/poll.h"
#include "base/strings.h"
#include "pf_config.h"
#include "proc/wire.h"

/* Look below the directory of file. */
static bool find_from(const char *file, const char *below, const char *name, char *path)
{
    const char *slash = strrchr(file, '/');

    return slash &&
           snprintf(path, PATH_MAX, "%.*s/%s%s", (int)(slash - file), file, below, name) <
                   PATH_MAX &&
           access(path, X_OK) == 0;
}

/* An installation that was moved as a whole still knows its programs: file is in its bin or lib, or
 * in a directory of lib. */
static bool find_installed(const char *file, const char *name, char *path)
{
    return find_from(file, "../libexec/pinfold/", name, path) ||
           find_from(file, "../../libexec/pinfold/", name, path);
}

bool pf_program_find(const char *name, char *path)
{
    char program[PATH_MAX];
    const char *library = "";
    Dl_info info;
    ssize_t len;

    if (dladdr(PF_HELPER_NAME, &info) && info.dli_fname && info.dli_fname[0] == '/')
        library = info.dli_fname;
    len = readlink("/proc/self/exe", program, sizeof(program) - 1);
    program[len < 0 ? 0 : len] = '\0';
    return find_from(library, "", name, path) || find_from(program, "", name, path) ||
           find_installed(library, name, path) || find_installed(program, name, path) ||
           find_from(PF_LIBEXECDIR "/", "", name, path);
}

bool pf_helper_find(char *path)
{
    return pf_program_find(PF_HELPER_NAME, path);
}

struct birth {
    const char *path;
    int socket;
    char *inner_stack;
    struct pf_heritage *heritage;
    pid_t pid;
    int sys_errno;
};

/* Both share the host's memory, and the host waits, until the helper is executed. Signals are
 * blocked: no handler of the host runs. */
static int helper_main(void *arg)
{
    struct birth *birth = arg;
    char name[] = PF_HELPER_NAME, *argv[] = { name, NULL }, *envp[] = { NULL };
    int flags;

    /* Before a descriptor gets another number, for which there may be no room. */
    pf_heritage_confirm(birth->heritage);
    flags = birth->socket == PF_HELPER_FD ? fcntl(PF_HELPER_FD, F_SETFD, 0)
                                          : dup2(birth->socket, PF_HELPER_FD);
    if (flags >= 0)
        execve(birth->path, argv, envp);
    birth->sys_errno = errno;
    _exit(127);
}

/* execve(2) makes any process one that sends SIGCHLD and that wait(-1) waits for. The host shall
 * see no such child, so the helper is an orphan: this process, between the two, ends at once. */
static int between_main(void *arg)
{
    struct birth *birth = arg;

    birth->pid = clone(helper_main, birth->inner_stack, CLONE_VM | CLONE_VFORK, birth);
    if (birth->pid < 0)
        birth->sys_errno = errno;
    _exit(0);
}

static void wait_for(pid_t pid)
{
    while (waitpid(pid, NULL, __WALL) < 0 && errno == EINTR) {
    }
}

int pf_helper_start(const char *path, struct pf_heritage *heritage, struct pf_helper *ret,
                    struct pinfold_error *err)
{
    _Alignas(16) char outer[8192], inner[8192];
    struct birth birth = { .path = path,
                           .inner_stack = inner + sizeof(inner),
                           .heritage = heritage };
    int pair[2];
    sigset_t all, old;
    pid_t pid;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return pf_fail_os(err, errno, "create a socket for %s", PF_QUOTE(path));
    birth.socket = pair[1];
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    pid = clone(between_main, outer + sizeof(outer), CLONE_VM | CLONE_VFORK, &birth);
    if (pid < 0)
        birth.sys_errno = errno;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (pid > 0)
        wait_for(pid);
    close(pair[1]);
    *ret = (struct pf_helper){ .socket = pair[0], .resident = -1, .pid = birth.pid };
    if (birth.sys_errno == 0)
        return 0;
    pf_helper_stop(ret);
    return pf_fail_os(err, birth.sys_errno, "start the helper program %s", PF_QUOTE(path));
}

void pf_helper_stop(struct pf_helper *helper)
{
    if (helper->socket >= 0)
        close(helper->socket);
    *helper = (struct pf_helper){ .socket = -1, .resident = -1 };
}

/* Asked before, since a write that goes beyond it may be the end of this process. */
static bool may_write(const struct iovec *parts, int count)
{
    struct rlimit limit;
    uint64_t total = 0;

    for (int i = 0; i < count; i++)
        total += parts[i].iov_len;
    return getrlimit(RLIMIT_FSIZE, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY ||
           total <= limit.rlim_cur;
}

int pf_sealed_file(const char *name, const struct iovec *parts, int count)
{
    _cleanup_close_ int fd = -1;

    if (!may_write(parts, count))
        return -EFBIG;
    fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return -errno;
    for (int i = 0; i < count; i++)
        for (size_t done = 0; done < parts[i].iov_len;) {
            const char *data = parts[i].iov_base;
            ssize_t len = write(fd, data + done, parts[i].iov_len - done);
            if (len < 0 && errno == EINTR)
                continue;
            if (len < 0)
                return -errno;
            done += (size_t)len;
        }
    if (fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
        return -errno;
    return TAKE_FD(fd);
}

static size_t pack(const char *const *list, char *at)
{
    size_t total = 0;

    for (size_t i = 0; list[i]; i++) {
        size_t len = strlen(list[i]) + 1;
        if (at)
            memcpy(at + total, list[i], len);
        total += len;
    }
    return total;
}

bool pf_helper_may_ask(const struct pf_super_spec *spec, uint64_t most)
{
    const char *const cwd[] = { spec->cwd_path, NULL };
    size_t len;

    if (most == RLIM_INFINITY)
        return true;
    len = pack(cwd, NULL) + pack(spec->argv, NULL) + pack(spec->envp, NULL);
    return len <= PF_WIRE_TEXT || len <= most;
}

/* Put the vectors into the request, or those that are too long for it into *ret_blob. */
static int pack_vectors(const struct pf_super_spec *spec, struct pf_wire_request *request,
                        int *ret_blob)
{
    const char *const cwd[] = { spec->cwd_path, NULL };
    size_t cwd_len = pack(cwd, NULL), argv_len = pack(spec->argv, NULL);
    size_t len = cwd_len + argv_len + pack(spec->envp, NULL);
    _cleanup_free_ char *memory = NULL;
    char *text = request->text;

    request->blob_len = len;
    request->has_blob = len > sizeof(request->text);
    if (request->has_blob)
        text = memory = malloc(len);
    if (!text)
        return -ENOMEM;
    pack(cwd, text);
    pack(spec->argv, text + cwd_len);
    pack(spec->envp, text + cwd_len + argv_len);
    if (request->has_blob)
        *ret_blob = pf_sealed_file("pinfold-request", &(struct iovec){ text, len }, 1);
    return *ret_blob < 0 && request->has_blob ? *ret_blob : 0;
}

/* A resident says when it is free, with the number of its life. If it died its successor has said
 * so too, and only the last word counts. Returns 0 when nobody is free. */
static uint32_t take_lease(int resident)
{
    uint32_t lease = 0;

    while (resident >= 0 &&
           recv(resident, &lease, sizeof(lease), MSG_DONTWAIT) == (ssize_t)sizeof(lease)) {
    }
    return lease;
}

/* A helper that does not read what it is asked may be stopped, and this thread has the lock that
 * whoever could wake it would need. A jail's, which has no number here, nobody outside stops. */
static int send_request(const struct pf_helper *helper, const struct pf_wire_request *request,
                        const int *fds, size_t count)
{
    int socket = request->lease ? helper->resident : helper->socket, r;
    struct pollfd room = { socket, POLLOUT, 0 };

    while ((r = pf_wire_send(socket, request, fds, count, MSG_DONTWAIT)) == -EAGAIN) {
        if (helper->pid > 0)
            kill(helper->pid, SIGCONT);
        pf_poll(&room, 1, (int)(PF_NUDGE_NS / PF_NS_PER_MS));
    }
    return r;
}

int pf_helper_ask(const struct pf_helper *helper, const struct pf_super_spec *spec,
                  struct pinfold_error *err)
{
    struct pf_wire_request request;
    int fds[PF_WIRE_MAX] = { spec->control, spec->read_end[0], spec->read_end[1],
                             spec->write_end[0], spec->write_end[1] };
    size_t count = 1 + (spec->terminal ? 0 : PF_WIRE_PIPES);
    _cleanup_close_ int blob = -1;
    int r;

    memset(&request, 0, offsetof(struct pf_wire_request, text));
    request.deadline = spec->deadline;
    request.argc = (uint32_t)pf_strv_count(spec->argv);
    request.envc = (uint32_t)pf_strv_count(spec->envp);
    request.owner = spec->owner;
    request.search = spec->search;
    request.has_cwd = spec->cwd >= 0;
    request.has_script = spec->script >= 0;
    request.has_cwd_path = spec->cwd_path != NULL;
    request.terminal = spec->terminal;
    request.rows = spec->rows;
    request.cols = spec->cols;
    /* A terminal lives long: no work for who should be free for the next command. */
    request.lease = spec->terminal ? 0 : take_lease(helper->resident);
    r = pack_vectors(spec, &request, &blob);
    if (r == -ENOMEM)
        return pf_fail_nomem(err);
    if (r < 0)
        return pf_fail_os(err, -r, "write the command for the helper program");
    if (request.has_blob)
        fds[count++] = blob;
    if (spec->cwd >= 0)
        fds[count++] = spec->cwd;
    if (spec->script >= 0)
        fds[count++] = spec->script;
    r = send_request(helper, &request, fds, count);
    if (r == -EPIPE || r == -ECONNRESET)
        return pf_fail(err, PINFOLD_EBACKEND, "the helper program " PF_HELPER_NAME " is gone");
    return r < 0 ? pf_fail_os(err, -r, "send a command to the helper program") : 0;
}
