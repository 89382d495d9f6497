/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starting the first process of a command. The child shares the memory of the supervisor until it
 * executes (CLONE_VM | CLONE_VFORK), which saves copying page tables twice per command.
 */
#include "proc/super.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/cleanup.h"

struct start {
    const struct pf_super_spec *spec;
    pid_t supervisor;
};

/* Exit codes and words as shells have them. */
static void refuse(const char *name, int sys_errno) __attribute__((noreturn));
static void refuse(const char *name, int sys_errno)
{
    bool missing = sys_errno == ENOENT || sys_errno == ENOTDIR;
    const char *reason = missing ? "not found" : strerrordesc_np(sys_errno);
    const char *parts[] = { "pinfold: ", name, ": ", reason ? reason : "cannot be run", "\n" };
    struct iovec iov[PF_COUNT(parts)];

    for (size_t i = 0; i < PF_COUNT(parts); i++)
        iov[i] = (struct iovec){ (void *)(uintptr_t)parts[i], strlen(parts[i]) };
    (void)!writev(STDERR_FILENO, iov, (int)PF_COUNT(iov));
    _exit(missing ? 127 : 126);
}

static const char *find_path(const char *const *envp)
{
    for (size_t i = 0; envp[i]; i++)
        if (strncmp(envp[i], "PATH=", 5) == 0)
            return envp[i] + 5;
    return "/usr/local/bin:/usr/bin:/bin";
}

static void execute(const char *path, const struct pf_super_spec *spec)
{
    /* execve(2) writes to neither vector. */
    execve(path, (char *const *)(uintptr_t)spec->argv, (char *const *)(uintptr_t)spec->envp);
}

/* execvpe(3), but with the PATH of the command's environment, and without its shell fallback for
 * files of unknown format. Returns errno: what stopped it, most telling first. */
static int search_and_execute(const struct pf_super_spec *spec)
{
    const char *name = spec->argv[0], *at, *end;
    size_t name_len = strlen(name), len;
    char candidate[PATH_MAX];
    int worst = ENOENT;

    if (name_len == 0)
        return ENOENT;
    if (strchr(name, '/')) {
        execute(name, spec);
        return errno;
    }
    for (at = find_path(spec->envp);; at = end + 1) {
        end = strchrnul(at, ':');
        len = (size_t)(end - at);
        if (len + name_len + 2 <= sizeof(candidate)) {
            memcpy(candidate, at, len);
            if (len > 0) /* an empty entry is the working directory */
                candidate[len++] = '/';
            memcpy(candidate + len, name, name_len + 1);
            execute(candidate, spec);
            if (errno == EACCES && access(candidate, F_OK) == 0)
                worst = EACCES; /* a directory that is closed to us does not count */
            else if (errno != ENOENT && errno != ENOTDIR && errno != EACCES)
                return errno;
        }
        if (*end == '\0')
            return worst;
    }
}

static void fail(const struct pf_super_spec *spec, enum pf_super_stage stage)
        __attribute__((noreturn));
static void fail(const struct pf_super_spec *spec, enum pf_super_stage stage)
{
    pf_super_fail(spec->control, errno, stage);
    _exit(126);
}

/* exec resets handlers but keeps what is ignored, and hosts ignore SIGPIPE, SIGINT, SIGCHLD. By the
 * system call, because the C library refuses the two signals that it uses itself, which the host
 * may have inherited as ignored all the same. */
void pf_default_signals(void)
{
    enum { KERNEL_SIGNALS = 64 };
    /* At least a struct sigaction as the kernel has it: all zero is SIG_DFL, an empty mask. */
    const unsigned long fresh[8] = { 0 };

    for (int sig = 1; sig <= KERNEL_SIGNALS; sig++)
        syscall(SYS_rt_sigaction, sig, fresh, NULL, KERNEL_SIGNALS / 8);
}

/* Descriptors 0 to 2 are free or nothing, so that the first open(2) is stdin. */
static int set_stdio(const struct pf_super_spec *spec)
{
    int null = spec->null;
    int in = spec->terminal ? spec->slave : null >= 0 ? null : open("/dev/null", O_RDWR);
    int out = spec->terminal ? spec->slave : spec->write_end[0];
    int errs = spec->terminal ? spec->slave : spec->write_end[1];

    if (in < 0 || (in != STDIN_FILENO && dup2(in, STDIN_FILENO) < 0))
        return -1;
    if (dup2(out, STDOUT_FILENO) < 0 || dup2(errs, STDERR_FILENO) < 0)
        return -1;
    return spec->script >= 0 ? dup2(spec->script, PF_SCRIPT_FD) : 0;
}

static int leader_main(void *arg)
{
    const struct start *start = arg;
    const struct pf_super_spec *spec = start->spec;
    sigset_t none;
    int sys_errno;

    setsid(); /* no terminal but its own, and a process group to send signals to */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != start->supervisor)
        _exit(126); /* it died before the line above could see it */
    if (spec->cwd >= 0 && fchdir(spec->cwd) < 0)
        fail(spec, PF_STAGE_CWD);
    if (spec->cwd_path && chdir(spec->cwd_path) < 0)
        fail(spec, PF_STAGE_CWD);
    if (set_stdio(spec) < 0)
        fail(spec, PF_STAGE_STDIO);
    /* A terminal has one session, and ours is new: nothing is taken from anybody. */
    if (spec->terminal && ioctl(STDIN_FILENO, TIOCSCTTY, 0) < 0)
        fail(spec, PF_STAGE_TERMINAL);
    if (!spec->fresh_signals)
        pf_default_signals();
    sigemptyset(&none);
    pthread_sigmask(SIG_SETMASK, &none, NULL);
    if (spec->search) {
        sys_errno = search_and_execute(spec);
    } else {
        execute("/bin/sh", spec);
        sys_errno = errno;
    }
    errno = sys_errno;
    if (errno == E2BIG || errno == ENOMEM || errno == EAGAIN)
        fail(spec, PF_STAGE_EXEC); /* says nothing about the program */
    refuse(spec->search ? spec->argv[0] : "/bin/sh", sys_errno);
}

pid_t pf_leader_start(const struct pf_super_spec *spec)
{
    static _Alignas(16) char stack[32768]; /* one process, one leader: never shared */
    struct start start = { spec, getpid() };
    pid_t pid = clone(leader_main, stack + sizeof(stack), CLONE_VM | CLONE_VFORK | SIGCHLD, &start);

    return pid < 0 ? -errno : pid;
}
