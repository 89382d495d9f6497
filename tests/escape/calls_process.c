/* SPDX-License-Identifier: Apache-2.0 */
/* Other processes, identities, terminals, and system calls by another gate. */
#include "calls.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/personality.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static long set_uid_root(void)
{
    return setresuid(0, 0, 0);
}
static long set_groups(void)
{
    gid_t group = 0;
    return setgroups(1, &group);
}

static pid_t victim(void)
{
    pid_t pid = fork();

    if (pid == 0) {
        pause();
        _exit(0);
    }
    return pid;
}

static long end(pid_t pid, long result)
{
    int saved = errno;

    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    errno = saved;
    return result;
}

static long attach(void)
{
    pid_t pid = victim();
    return end(pid, ptrace(PTRACE_ATTACH, pid, NULL, NULL));
}

static long seize(void)
{
    pid_t pid = victim();
    return end(pid, ptrace(PTRACE_SEIZE, pid, NULL, NULL));
}

static long read_memory_of(pid_t pid, int writing)
{
    static char here[8];
    struct iovec mine = { here, sizeof(here) }, other = { here, sizeof(here) };

    return writing ? process_vm_writev(pid, &mine, 1, &other, 1, 0)
                   : process_vm_readv(pid, &mine, 1, &other, 1, 0);
}

static long read_memory(void)
{
    pid_t pid = victim();
    return end(pid, read_memory_of(pid, 0));
}
static long write_memory(void)
{
    pid_t pid = victim();
    return end(pid, read_memory_of(pid, 1));
}

static long steal_descriptor(void)
{
    pid_t pid = victim();
    int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    return end(pid, syscall(SYS_pidfd_getfd, fd, 1, 0));
}

static long compare_processes(void)
{
    pid_t pid = victim();
    return end(pid, syscall(SYS_kcmp, getpid(), pid, 1, 0, 0));
}

static long execute_data(void)
{
    return personality(READ_IMPLIES_EXEC);
}
static long map_zero(void)
{
    return personality(MMAP_PAGE_ZERO);
}
static long old_layout(void)
{
    return personality(ADDR_COMPAT_LAYOUT);
}

static long rename_host(void)
{
    own_namespace(CLONE_NEWUTS);
    return sethostname("escaped", 7);
}

static long descriptor_table(void)
{
#ifdef __x86_64__
    char entry[16] = { 0 };
    return syscall(SYS_modify_ldt, 1, entry, sizeof(entry));
#else
    errno = ENOSYS;
    return -1;
#endif
}

static long terminal_input(unsigned long request)
{
    int main_fd = posix_openpt(O_RDWR | O_NOCTTY);
    char c = 'x';

    if (main_fd < 0 || grantpt(main_fd) < 0 || unlockpt(main_fd) < 0)
        return -1;
    setsid();
    int fd = open(ptsname(main_fd), O_RDWR); /* becomes the controlling one */
    return ioctl(fd, request, &c);
}

static long type_ahead(void)
{
    return terminal_input(TIOCSTI);
} /* CVE-2017-5226 */

static long type_ahead_high(void) /* CVE-2019-10063: only the lower half counts */
{
    return terminal_input(0x100000000UL | TIOCSTI);
}

static long line_discipline(void)
{
    int main_fd = posix_openpt(O_RDWR | O_NOCTTY), discipline = 0;

    return main_fd < 0 ? -1 : ioctl(main_fd, TIOCSETD, &discipline);
}

#ifdef __x86_64__
static long old_gate(void) /* 32-bit numbers mean other calls: 20 is getpid there */
{
    long r;

    __asm__ volatile("int $0x80" : "=a"(r) : "a"(20L) : "memory", "r8", "r9", "r10", "r11");
    if (r < 0) {
        errno = (int)-r;
        return -1;
    }
    return r;
}

static long x32_numbers(void)
{
    long r = syscall(0x40000000L | SYS_getpid);

    /* Without a sandbox most kernels have no x32 at all. */
    return r;
}
#endif

const struct attack process_attacks[] = {
    ATTACK(set_uid_root),     ATTACK(set_groups),
    ATTACK(attach),           ATTACK(seize),
    ATTACK(read_memory),      ATTACK(write_memory),
    ATTACK(steal_descriptor), ATTACK(compare_processes),
    ATTACK(execute_data),     ATTACK(map_zero),
    ATTACK(old_layout),       ATTACK(rename_host),
    ATTACK(descriptor_table), ATTACK(type_ahead),
    ATTACK(type_ahead_high),  ATTACK(line_discipline),
#ifdef __x86_64__
    ATTACK(old_gate),         ATTACK(x32_numbers),
#endif
    { NULL, NULL },
};
