/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a kernel, a container or a user can get wrong: each is told with the step and the cause, and
 * leaves nothing behind. A step is made to fail by a seccomp filter on a fork of the test, which
 * the jail that it opens inherits.
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "harness.h"

static bool deny(long number, int sys_errno, unsigned first_arg_bit)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)number, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, first_arg_bit ? first_arg_bit : ~0U, 0,
                 first_arg_bit ? 1 : 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)sys_errno),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = { PF_COUNT(code), code };

    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/* In a fork: opening fails so, and leaves no descriptor and no child. */
static void must_fail(struct fixture *f, int code, const char *text) __attribute__((noreturn));
static void must_fail(struct fixture *f, int code, const char *text)
{
    int before = count_descriptors(), r = pf_jail_open(&f->config, &f->jail, &f->err);

    if (r != -code || !strstr(f->err.msg, text) || count_descriptors() != before ||
        waitpid(-1, NULL, WNOHANG | __WALL) != -1) {
        dprintf(2, "%d: \"%s\" is not %d with \"%s\", or something is left\n", r, f->err.msg, code,
                text);
        _exit(1);
    }
    _exit(0);
}

#define assert_in_fork(statement)                           \
    do {                                                    \
        int status_;                                        \
        pid_t pid_ = fork();                                \
        if (pid_ == 0) {                                    \
            statement;                                      \
            _exit(2);                                       \
        }                                                   \
        assert_int_equal(waitpid(pid_, &status_, 0), pid_); \
        assert_int_equal(status_, 0);                       \
    } while (0)

static void each_step_that_is_refused_is_named(void **state)
{
    static const struct {
        long number;
        int sys_errno;
        unsigned first_arg_bit;
        int code;
        const char *text;
    } cases[] = {
        { SYS_socketpair, EMFILE, 0, PINFOLD_EOS, "create a socket" },
        { SYS_clone, EAGAIN, CLONE_FILES, PINFOLD_EOS, "clone a process: Resource" },
        { SYS_fchdir, EACCES, 0, PINFOLD_EOS, "enter its workspace: Permission denied" },
        { SYS_clone, EPERM, CLONE_NEWUSER, PINFOLD_ENOTSUP, "make namespaces (user, mount" },
        { SYS_clone, EINVAL, CLONE_NEWUSER, PINFOLD_ENOTSUP, "the kernel is too old" },
        { SYS_capset, EPERM, 0, PINFOLD_ENOTSUP, "get capabilities in its user namespace" },
        { SYS_dup3, EMFILE, 0, PINFOLD_EOS, "place its descriptors" },
        { SYS_close_range, ENOSYS, 0, PINFOLD_EOS, "close descriptors" },
        { SYS_execveat, EACCES, 0, PINFOLD_EOS, "execute pinfold-init: Permission denied" },
        { SYS_signalfd4, EMFILE, 0, PINFOLD_EOS, "make a descriptor for signals" },
        { SYS_mount_setattr, ENOSYS, 0, PINFOLD_ENOTSUP, "since 5.12): Function not impl" },
        { SYS_mount, EPERM, 0, PINFOLD_ENOTSUP, "private: Operation not permitted; in a cont" },
        { SYS_open_tree, EPERM, 0, PINFOLD_ENOTSUP, "show the host's workspace directory" },
        { SYS_fsopen, EPERM, 0, PINFOLD_ENOTSUP, "make a tmpfs for the root" },
        { SYS_fsmount, EPERM, 0, PINFOLD_ENOTSUP, "mount a tmpfs for the root" },
        { SYS_move_mount, EPERM, 0, PINFOLD_ENOTSUP, "mount a tmpfs for the root" },
        { SYS_mkdir, EIO, 0, PINFOLD_EOS, "make the directory usr: Input/output error" },
        { SYS_symlink, EIO, 0, PINFOLD_EOS, "make the link " },
        { SYS_pivot_root, EPERM, 0, PINFOLD_ENOTSUP, "change the root (pivot_root)" },
        { SYS_umount2, EBUSY, 0, PINFOLD_EOS, "let go of the host's root" },
        { SYS_chdir, EACCES, 0, PINFOLD_ENOTSUP, "enter /workspace" },
        { SYS_sethostname, EPERM, 0, PINFOLD_ENOTSUP, "name the sandbox" },
        { SYS_unshare, ENOSPC, 0, PINFOLD_ENOTSUP, "make a network namespace" },
        { SYS_ioctl, EPERM, 0, PINFOLD_ENOTSUP, "bring up the loopback" },
        { SYS_setns, EPERM, 0, PINFOLD_ENOTSUP, "enter the network namespace" },
        { SYS_landlock_restrict_self, E2BIG, 0, PINFOLD_EOS, "enforce the Landlock rules" },
        { SYS_seccomp, EINVAL, 0, PINFOLD_ENOTSUP, "install the seccomp filter" },
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < PF_COUNT(cases); i++)
        assert_in_fork({
            if (!deny(cases[i].number, cases[i].sys_errno, cases[i].first_arg_bit))
                _exit(3);
            must_fail(f, cases[i].code, cases[i].text);
        });
}

/* In a fork: lending the workspace fails so, and leaves no descriptor and no child. */
static void must_not_lend(struct fixture *f, int root_fd, int code, const char *text)
        __attribute__((noreturn));
static void must_not_lend(struct fixture *f, int root_fd, int code, const char *text)
{
    int before = count_descriptors(), fd = -1, r = pf_jail_lend(f->jail, root_fd, &fd, &f->err);

    if (r != -code || fd != -1 || !strstr(f->err.msg, text) || count_descriptors() != before ||
        waitpid(-1, NULL, WNOHANG | __WALL) != -1) {
        dprintf(2, "%d: \"%s\" is not %d with \"%s\", or something is left\n", r, f->err.msg, code,
                text);
        _exit(1);
    }
    _exit(0);
}

static void a_workspace_that_cannot_be_lent_says_why(void **state)
{
    static const struct {
        long number;
        int sys_errno;
        unsigned first_arg_bit;
        const char *text;
    } cases[] = {
        { SYS_clone, EAGAIN, CLONE_FILES, "clone a process: Resource" },
        { SYS_setns, EPERM, 0, "enter its namespaces: Operation not permitted" },
        { SYS_open_tree, ENOSYS, 0, "mount its workspace once more: Function not impl" },
        { SYS_mount_setattr, EINVAL, 0, "make its workspace read-only: Invalid argument" },
    };
    struct fixture *f = *state;
    struct stat lent, own;
    int fd;

    assert_int_equal(pf_jail_open(&f->config, &f->jail, &f->err), 0);
    for (size_t i = 0; i < PF_COUNT(cases); i++)
        assert_in_fork({
            if (!deny(cases[i].number, cases[i].sys_errno, cases[i].first_arg_bit))
                _exit(3);
            must_not_lend(f, f->config.workspace_fd, PINFOLD_EOS, cases[i].text);
        });
    /* What is mounted there is not what this process believes it to be. */
    fd = open("/usr", O_PATH | O_DIRECTORY | O_CLOEXEC);
    assert_in_fork(must_not_lend(f, fd, PINFOLD_EBACKEND, "it is not what was mounted there"));
    close(fd);
    assert_int_equal(pf_jail_lend(f->jail, f->config.workspace_fd, &fd, &f->err), 0);
    assert_int_equal(fstat(fd, &lent) | fstat(f->config.workspace_fd, &own), 0);
    assert_int_equal(lent.st_ino, own.st_ino);
    assert_int_equal(openat(fd, "file", O_WRONLY | O_CREAT | O_CLOEXEC, 0600), -1);
    assert_int_equal(errno, EROFS);
    close(fd);
}

static void a_plan_that_is_too_large_for_a_datagram_takes_a_file(void **state)
{
    const char *ro[400 + 1] = { NULL };
    struct fixture *f = *state;

    for (size_t i = 0; i + 1 < PF_COUNT(ro); i++)
        ro[i] = "/usr/bin";
    f->config.ro = ro;
    assert_in_fork({
        if (!deny(SYS_memfd_create, EMFILE, 0))
            _exit(3);
        must_fail(f, PINFOLD_EOS, "write the plan");
    });
    assert_int_equal(pf_jail_open(&f->config, &f->jail, &f->err), 0);
}

/* Of the user namespace of the fork alone: there the limit is 0. */
static void set_no_namespaces(void)
{
    char text[64];
    uid_t uid = geteuid();
    int fd, len = snprintf(text, sizeof(text), "0 %d 1", (int)uid);

    if (unshare(CLONE_NEWUSER) < 0)
        _exit(3);
    fd = open("/proc/self/uid_map", O_WRONLY | O_CLOEXEC);
    if (write(fd, text, (size_t)len) != len)
        _exit(4);
    close(fd);
    fd = open("/proc/sys/user/max_user_namespaces", O_WRONLY | O_CLOEXEC);
    if (write(fd, "0", 1) != 1)
        _exit(5);
    close(fd);
}

static void a_limit_of_no_namespaces_is_named_with_its_switch(void **state)
{
    struct fixture *f = *state;

    assert_in_fork({
        set_no_namespaces();
        must_fail(f, PINFOLD_ENOTSUP, "sysctl user.max_user_namespaces=");
    });
}

static void what_cannot_be_a_workspace_is_refused(void **state)
{
    struct fixture *f = *state;
    int workspace = f->config.workspace_fd;

    f->config.workspace_fd = -1;
    assert_in_fork(must_fail(f, PINFOLD_EOS, "its workspace: Bad file descriptor"));
    f->config.workspace_fd = open("/", O_PATH | O_CLOEXEC);
    assert_in_fork(must_fail(f, PINFOLD_EVALUE, "/ cannot be its workspace"));
    close(f->config.workspace_fd);
    f->config.workspace_fd = open("/dev/null", O_PATH | O_CLOEXEC);
    assert_in_fork(must_fail(f, PINFOLD_EVALUE, "its workspace is not a directory"));
    close(f->config.workspace_fd);
    f->config.workspace_fd = workspace;
}

static void directories_that_cannot_be_shown_are_refused(void **state)
{
    static const struct {
        const char *path, *text;
    } cases[] = {
        { "relative", "name an absolute path" },
        { "/", "name an absolute path" },
        { "", "name an absolute path" },
        { "/a/../b", "a part . or .." },
        { "/a//b", "// in it" },
        { "/proc", "/proc there is the sandbox's own" },
        { "/dev/shm", "/dev there is the sandbox's own" },
        { "/workspace/x", "/workspace there is" },
        { "/nonexistent-pinfold", "show the host's /nonexistent-pinfold: No such file" },
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < PF_COUNT(cases); i++) {
        f->config.ro = (const char *const[]){ cases[i].path, NULL };
        assert_in_fork(must_fail(f, PINFOLD_EVALUE, cases[i].text));
        f->config.rw = f->config.ro;
        f->config.ro = NULL;
        assert_in_fork(must_fail(f, PINFOLD_EVALUE, cases[i].text));
        f->config.rw = NULL;
    }
    f->config.rootfs = "/nonexistent-pinfold";
    assert_in_fork(must_fail(f, PINFOLD_EOS, "open the root directory /nonexistent-pinfold"));
}

static void a_link_that_an_agent_left_on_the_way_is_not_followed(void **state)
{
    struct fixture *f = *state;
    char base[128], inner[160], command[512];

    assert_non_null(test_tempdir("pinfold-jail-link", base, sizeof(base)));
    snprintf(inner, sizeof(inner), "%s/link", base);
    assert_int_equal(symlink("/usr", inner), 0);
    f->config.rw = (const char *const[]){ base, inner, NULL };
    assert_in_fork(must_fail(f, PINFOLD_EVALUE, "/link: Too many levels of symbolic links"));
    snprintf(command, sizeof(command), "rm -r %s", base);
    assert_int_equal(system(command), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_CONFIG(each_step_that_is_refused_is_named),
        WITH_CONFIG(a_workspace_that_cannot_be_lent_says_why),
        WITH_CONFIG(a_plan_that_is_too_large_for_a_datagram_takes_a_file),
        WITH_CONFIG(a_limit_of_no_namespaces_is_named_with_its_switch),
        WITH_CONFIG(what_cannot_be_a_workspace_is_refused),
        WITH_CONFIG(directories_that_cannot_be_shown_are_refused),
        WITH_CONFIG(a_link_that_an_agent_left_on_the_way_is_not_followed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
