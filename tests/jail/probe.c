/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of jail/ run inside: static, so that it needs nothing of the tree around it.
 * Prints what became of the attempt that is named, as the name of an errno or "done". */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/keyctl.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

/* Each is made so that a kernel without our filter answers otherwise, where that can be. */
struct attempt {
    const char *name;
    long number, args[6];
};

static const struct attempt attempts[] = {
    { "mount", SYS_mount, { 1, 1, 1, 0, 1 } },
    { "umount2", SYS_umount2, { 1, 0 } },
    { "pivot_root", SYS_pivot_root, { 1, 1 } },
    { "open_tree", SYS_open_tree, { -1, 1, 0 } },
    { "move_mount", SYS_move_mount, { -1, 1, -1, 1, 0 } },
    { "fsopen", SYS_fsopen, { 1, 0 } },
    { "mount_setattr", SYS_mount_setattr, { -1, 1, 0, 0, 0 } },
    { "unshare", SYS_unshare, { 0 } },
    { "setns", SYS_setns, { -1, 0 } },
    { "chroot", SYS_chroot, { 1 } },
    { "clone with a user namespace", SYS_clone, { CLONE_NEWUSER | SIGCHLD } },
    { "clone with a network namespace", SYS_clone, { CLONE_NEWNET | CLONE_NEWUSER | SIGCHLD } },
    { "clone3", SYS_clone3, { 0, 0 } },
    { "bpf", SYS_bpf, { 0, 0, 0 } },
    { "perf_event_open", SYS_perf_event_open, { 0, 0, -1, -1, 0 } },
    { "keyctl", SYS_keyctl, { KEYCTL_GET_KEYRING_ID, KEY_SPEC_SESSION_KEYRING, 1 } },
    { "add_key", SYS_add_key, { 1, 1, 1, 1, 1 } },
    { "request_key", SYS_request_key, { 1, 1, 1, 1 } },
    { "io_uring_setup", SYS_io_uring_setup, { 1, 0 } },
    { "userfaultfd", SYS_userfaultfd, { O_CLOEXEC | 1 } },
    { "process_vm_readv", SYS_process_vm_readv, { 1, 0, 0, 0, 0, 0 } },
    { "pidfd_getfd", SYS_pidfd_getfd, { -1, 0, 0 } },
    { "kcmp", SYS_kcmp, { 0, 0, 0, 0, 0 } },
    { "open_by_handle_at", SYS_open_by_handle_at, { -1, 1, 0 } },
    { "name_to_handle_at", SYS_name_to_handle_at, { -1, 1, 1, 1, 0 } },
    { "fanotify_init", SYS_fanotify_init, { 0, 0 } },
    { "openat2", SYS_openat2, { -1, 1, 1, 24 } },
    { "cachestat, newer than the filter", 451, { -1, 0, 0, 0 } },
    { "TIOCSTI", SYS_ioctl, { 0, TIOCSTI, 1 } },
    { "TIOCSTI with the upper half set", SYS_ioctl, { 0, TIOCSTI | (1L << 32), 1 } },
    { "TIOCLINUX", SYS_ioctl, { 0, TIOCLINUX, 1 } },
    { "TIOCSETD", SYS_ioctl, { 0, TIOCSETD, 1 } },
    { "a vsock socket", SYS_socket, { AF_VSOCK, SOCK_STREAM, 0 } },
    { "a crypto socket", SYS_socket, { AF_ALG, SOCK_SEQPACKET, 0 } },
    { "a crypto socket with the upper half set", SYS_socket, { AF_ALG | (1L << 32), 5, 0 } },
    { "a packet socket", SYS_socket, { AF_PACKET, SOCK_DGRAM, 0 } },
    { "a generic netlink socket", SYS_socket, { AF_NETLINK, SOCK_RAW, 16 } },
    { "a route netlink socket", SYS_socket, { AF_NETLINK, SOCK_RAW, 0 } },
    { "an executable data personality", SYS_personality, { 0x0400000 } },
    { "one hidden behind the highest bit", SYS_personality, { 0x80400000 } },
    { "asking for the personality", SYS_personality, { 0xffffffff } },
    { "a fixed address personality", SYS_personality, { 0x0040000 } },
#ifdef __x86_64__
    { "a call of the x32 kind", 0x40000000 | 39, { 0 } },
    { "modify_ldt", SYS_modify_ldt, { 0, 0, 0 } },
#endif
};

static int report(const char *name, long result)
{
    printf("%s: %s\n", name, result < 0 ? strerrorname_np(errno) : "done");
    return 0;
}

static int try_calls(void)
{
    for (size_t i = 0; i < sizeof(attempts) / sizeof(attempts[0]); i++) {
        const struct attempt *a = &attempts[i];
        pid_t self = getpid();
        fflush(stdout);
        long r = syscall(a->number, a->args[0], a->args[1], a->args[2], a->args[3], a->args[4],
                         a->args[5]);
        if (getpid() != self) /* a clone that should not be */
            _exit(0);
        report(a->name, r);
    }
    return 0;
}

static int try_ptrace(void)
{
    report("attach to the parent", ptrace(PTRACE_ATTACH, getppid(), NULL, NULL));
    report("seize the parent", ptrace(PTRACE_SEIZE, getppid(), NULL, NULL));
    return report("be traced", ptrace(PTRACE_TRACEME, 0, NULL, NULL));
}

static int try_set_id(void)
{
    int fd = open("file", O_RDWR | O_CREAT | O_CLOEXEC, 0644);

    report("chmod u+s", chmod("file", 04755));
    report("fchmod g+s", fchmod(fd, 02755));
    report("fchmodat u+s", fchmodat(AT_FDCWD, "file", 04755, 0));
    report("open u+s", open("other", O_RDWR | O_CREAT | O_CLOEXEC, 04755));
    report("mknod u+s", mknod("third", S_IFREG | 04755, 0));
    return report("chmod", chmod("file", 0755));
}

static int list_descriptors(void)
{
    for (int fd = 0; fd < 4096; fd++)
        if (fcntl(fd, F_GETFD) >= 0)
            printf("%d ", fd);
    printf("\n");
    return 0;
}

static int connect_to(int port)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_port = htons((uint16_t)port),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    int fd = socket(AF_INET, SOCK_STREAM, 0), r;

    r = connect(fd, (const struct sockaddr *)&address, sizeof(address));
    if (r == 0)
        r = write(fd, "hello", 5) == 5 ? 0 : -1;
    return report("connect", r);
}

static int talk_to_itself(void)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t len = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    if (bind(fd, (const struct sockaddr *)&address, len) < 0 || listen(fd, 1) < 0 ||
        getsockname(fd, (struct sockaddr *)&address, &len) < 0)
        return report("listen", -1);
    return connect_to(ntohs(address.sin_port));
}

static int connect_abstract(const char *name)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);

    strncpy(address.sun_path + 1, name, sizeof(address.sun_path) - 2);
    return report("connect",
                  connect(fd, (const struct sockaddr *)&address,
                          (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name))));
}

static int fill_memory(bool touch)
{
    size_t size = 0;
    char *block;

    while (size < 4096 && (block = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE,
                                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) != MAP_FAILED) {
        if (touch)
            memset(block, 1, 1 << 20);
        size++;
    }
    printf("%zu MiB\n", size);
    return 0;
}

static int fork_many(void)
{
    int count = 0;

    for (pid_t pid; count < 3000 && (pid = fork()) >= 0; count++)
        if (pid == 0) {
            pause();
            _exit(0);
        }
    report("fork", count < 3000 ? -1 : 0);
    signal(SIGTERM, SIG_IGN);
    kill(0, SIGTERM);
    return 0;
}

#ifdef __x86_64__
static int call_as_32_bit(void)
{
    long result;

    __asm__ volatile("int $0x80" : "=a"(result) : "a"(20L) : "memory"); /* getpid */
    errno = (int)-result;
    report("a call of the 32-bit kind", result < 0 ? -1 : 0);
    return 0;
}
#endif

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "", *arg = argc > 2 ? argv[2] : "0";

    setvbuf(stdout, NULL, _IOLBF, 0);
    if (strcmp(what, "calls") == 0)
        return try_calls();
    if (strcmp(what, "ptrace") == 0)
        return try_ptrace();
    if (strcmp(what, "set-id") == 0)
        return try_set_id();
    if (strcmp(what, "descriptors") == 0)
        return list_descriptors();
    if (strcmp(what, "connect") == 0)
        return connect_to(atoi(arg));
    if (strcmp(what, "itself") == 0)
        return talk_to_itself();
    if (strcmp(what, "abstract") == 0)
        return connect_abstract(arg);
    if (strcmp(what, "memory") == 0)
        return fill_memory(false);
    if (strcmp(what, "touch") == 0)
        return fill_memory(true);
    if (strcmp(what, "fork") == 0)
        return fork_many();
#ifdef __x86_64__
    if (strcmp(what, "32") == 0)
        return call_as_32_bit();
#endif
    return 2;
}
