/* SPDX-License-Identifier: Apache-2.0 */
/* What nobody inside can do. */
#include <netinet/in.h>
#include <sys/un.h>

#include "harness.h"

static void a_command_has_no_privilege_at_all(void **state)
{
    static const char *const lines[] = {
        "Uid:\t1000\t1000\t1000\t1000\n",
        "Gid:\t1000\t1000\t1000\t1000\n",
        "CapInh:\t0000000000000000\n",
        "CapPrm:\t0000000000000000\n",
        "CapEff:\t0000000000000000\n",
        "CapBnd:\t0000000000000000\n",
        "CapAmb:\t0000000000000000\n",
        "NoNewPrivs:\t1\n",
        "Seccomp:\t2\n",
        "SigIgn:\t0000000000000000\n",
        "SigBlk:\t0000000000000000\n",
    };
    struct fixture *f = *state;

    assert_run(f, "cat /proc/self/status", 0);
    for (size_t i = 0; i < PF_COUNT(lines); i++)
        assert_non_null(strstr(f->output, lines[i]));
    assert_says(f, "grep -h ^Cap[BP] /proc/1/status", "CapBnd:\t0000000000000000\n");
}

static void system_calls_of_use_to_exploits_are_refused(void **state)
{
    static const char expected[] = "mount: EPERM\n"
                                   "umount2: EPERM\n"
                                   "pivot_root: EPERM\n"
                                   "open_tree: EPERM\n"
                                   "move_mount: EPERM\n"
                                   "fsopen: EPERM\n"
                                   "mount_setattr: EPERM\n"
                                   "unshare: EPERM\n"
                                   "setns: EPERM\n"
                                   "chroot: EPERM\n"
                                   "clone with a user namespace: EPERM\n"
                                   "clone with a network namespace: EPERM\n"
                                   "clone3: ENOSYS\n"
                                   "bpf: EPERM\n"
                                   "perf_event_open: EPERM\n"
                                   "keyctl: EPERM\n"
                                   "add_key: EPERM\n"
                                   "request_key: EPERM\n"
                                   "io_uring_setup: ENOSYS\n"
                                   "userfaultfd: EPERM\n"
                                   "process_vm_readv: EPERM\n"
                                   "pidfd_getfd: EPERM\n"
                                   "kcmp: EPERM\n"
                                   "open_by_handle_at: EPERM\n"
                                   "name_to_handle_at: EPERM\n"
                                   "fanotify_init: EPERM\n"
                                   "openat2: ENOSYS\n"
                                   "cachestat, newer than the filter: ENOSYS\n"
                                   "TIOCSTI: EPERM\n"
                                   "TIOCSTI with the upper half set: EPERM\n"
                                   "TIOCLINUX: EPERM\n"
                                   "TIOCSETD: EPERM\n"
                                   "a vsock socket: EAFNOSUPPORT\n"
                                   "a crypto socket: EAFNOSUPPORT\n"
                                   "a crypto socket with the upper half set: EAFNOSUPPORT\n"
                                   "a packet socket: EAFNOSUPPORT\n"
                                   "a generic netlink socket: EPROTONOSUPPORT\n"
                                   "a route netlink socket: done\n"
                                   "an executable data personality: EPERM\n"
                                   "one hidden behind the highest bit: EPERM\n"
                                   "asking for the personality: done\n"
                                   "a fixed address personality: done\n";
    struct fixture *f = *state;

    bring_probe(f);
    assert_run(f, "./probe calls", 0);
    f->output[sizeof(expected) - 1] = '\0';
    assert_string_equal(f->output, expected);
    assert_run(f, "./probe ptrace", 0);
    assert_string_equal(f->output, "attach to the parent: EPERM\nseize the parent: EPERM\n"
                                   "be traced: done\n");
#ifdef __x86_64__
    assert_says(f, "./probe calls", "a call of the x32 kind: ENOSYS\nmodify_ldt: EPERM\n");
    assert_run(f, "./probe 32", 0);
    assert_string_equal(f->output, "a call of the 32-bit kind: ENOSYS\n");
#endif
}

static void no_file_of_the_owner_can_be_made_to_run_as_the_owner(void **state)
{
    struct fixture *f = *state;

    bring_probe(f);
    assert_run(f, "./probe set-id", 0);
    assert_string_equal(f->output, "chmod u+s: EPERM\nfchmod g+s: EPERM\nfchmodat u+s: EPERM\n"
                                   "open u+s: EPERM\nmknod u+s: EPERM\nchmod: done\n");
}

static void the_first_process_is_closed(void **state)
{
    struct fixture *f = *state;

    assert_run(f, "cat /proc/1/environ || cat /proc/1/mem || cat /proc/1/maps", 1);
    assert_run(f, "ls /proc/1/root/ || ls /proc/1/cwd/", 2);
    assert_run(f, "readlink /proc/1/exe || readlink /proc/1/root || readlink /proc/1/fd/3", 1);
    assert_run(f, "cat /proc/1/exe", 1);
    assert_run(f, "cat /proc/1/fd/3", 1);
    assert_run(f, "kill -9 1; kill -TERM 1; kill -STOP 1; kill -SEGV 1; sleep 0.1; true", 0);
    assert_run(f, "echo alive", 0);
    /* So are the supervisors, which are forked from it. */
    assert_run(f, "cat /proc/$PPID/environ || cat /proc/$PPID/mem || readlink /proc/$PPID/exe", 1);
}

static void a_command_has_three_descriptors(void **state)
{
    struct fixture *f = *state;
    int stray = open("/etc", O_RDONLY | O_DIRECTORY); /* inheritable */

    pf_jail_close(TAKE(f->jail));
    open_jail(f);
    bring_probe(f);
    assert_run(f, "./probe descriptors", 0);
    close(stray);
    assert_string_equal(f->output, "0 1 2 \n");
}

static void nothing_of_the_host_but_its_system_is_there(void **state)
{
    struct fixture *f = *state;
    char command[512];

    assert_run(f,
               "for i in /root /var /sys /boot /opt /srv /mnt /media /etc/shadow /etc/ssl/private"
               " /etc/ssh /etc/sudoers /run/* /dev/kvm /dev/vda /dev/sda /dev/mem /dev/fuse"
               " /dev/net; do [ ! -e $i ] || echo $i; done",
               0);
    assert_string_equal(f->output, "");
    assert_run(f, "ls -A /home /tmp /home/agent", 0);
    assert_string_equal(f->output, "/home:\nagent\n\n/home/agent:\n\n/tmp:\n");
    snprintf(command, sizeof(command), "[ -e %s ]", f->dir);
    assert_run(f, command, 1);
    assert_run(f, "cat /proc/keys /proc/timer_list && cat /proc/kmsg 2>/dev/null; true", 0);
    assert_string_equal(f->output, "");
}

static void mounts_are_those_that_were_planned(void **state)
{
    struct fixture *f = *state;
    char *rest, *line;
    size_t count = 0;

    assert_run(f, "cut -d' ' -f5,6 /proc/self/mountinfo", 0);
    for (line = strtok_r(f->output, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        static const char *const writable[] = { "/workspace ", "/tmp ", "/home/agent ", "/dev/shm ",
                                                "/dev/" };
        bool may_write = strncmp(line, "/proc/", 6) == 0; /* masks */
        for (size_t i = 0; i < PF_COUNT(writable); i++)
            may_write |= strncmp(line, writable[i], strlen(writable[i])) == 0;
        count++;
        if (may_write)
            continue;
        if (strncmp(line, "/ ", 2) != 0 && strncmp(line, "/usr", 4) != 0 &&
            strncmp(line, "/etc/", 5) != 0 && strncmp(line, "/proc ", 6) != 0 &&
            strncmp(line, "/lib", 4) != 0 && strncmp(line, "/bin ", 5) != 0 &&
            strncmp(line, "/sbin ", 6) != 0)
            fail_msg("not planned: %s", line);
        if (!strstr(line, " ro,nosuid,nodev"))
            fail_msg("not read-only: %s", line);
    }
    assert_in_range(count, 16, 64);
    assert_says(f, "grep ' /workspace ' /proc/self/mountinfo", " rw,nosuid,nodev");
}

static void the_system_is_read_only(void **state)
{
    struct fixture *f = *state;

    assert_run(f,
               "for i in / /usr /usr/bin /etc /etc/ssl/certs /proc /proc/sys /dev /home /run; do"
               " ! touch $i/x || echo $i; done 2>/dev/null",
               0);
    assert_string_equal(f->output, "");
    assert_run(f,
               "for i in sys/kernel/hostname sys/kernel/core_pattern sys/vm/drop_caches"
               " sysrq-trigger self/uid_map self/oom_score_adj; do"
               " ! echo 0 > /proc/$i || echo $i; done 2>/dev/null",
               0);
    assert_string_equal(f->output, "");
    assert_run(f,
               "for i in /tmp /home/agent /dev/shm /workspace; do echo x > $i/x || echo $i; done",
               0);
    assert_string_equal(f->output, "");
    assert_run(f,
               "echo x > /dev/null && head -c 3 /dev/zero | wc -c && mkdir a b && touch a/x &&"
               " mv a/x b && ln b/x a/x && python3 -c 'import os; os.openpty()'",
               0);
}

static int listen_on_host(int family, const void *address, socklen_t len)
{
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    assert_int_equal(bind(fd, address, len), 0);
    assert_int_equal(listen(fd, 4), 0);
    return fd;
}

static int listen_on_loopback(int *ret_port)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t len = sizeof(address);
    int fd = listen_on_host(AF_INET, &address, len);

    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &len), 0);
    *ret_port = ntohs(address.sin_port);
    return fd;
}

static void the_network_is_a_loopback_of_its_own(void **state)
{
    struct fixture *f = *state;
    char command[256];
    int port, host = listen_on_loopback(&port);

    bring_probe(f);
    assert_run(f, "./probe itself", 0);
    assert_string_equal(f->output, "connect: done\n");
    snprintf(command, sizeof(command), "./probe connect %d", port);
    assert_says(f, command, "connect: ECONNREFUSED\n");
    assert_run(f, "tail -n +3 /proc/net/dev | cut -d: -f1", 0);
    assert_string_equal(f->output, "    lo\n");
    close(host);
}

static void the_hosts_network_has_no_abstract_sockets_of_others(void **state)
{
    struct fixture *f = *state;
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    char command[256];
    int port, host = listen_on_loopback(&port);
    int len = snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1, "pinfold-%d", getpid());
    int abstract = listen_on_host(AF_UNIX, &address,
                                  (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + len));

    f->config.net = PINFOLD_NET_HOST;
    open_jail(f);
    bring_probe(f);
    snprintf(command, sizeof(command), "./probe connect %d", port);
    assert_says(f, command, "connect: done\n");
    snprintf(command, sizeof(command), "./probe abstract pinfold-%d", getpid());
    run(f, command);
    /* The kernel may not have this wall, which is new in Linux 6.12. */
    if (!strstr(f->output, "connect: done\n"))
        assert_string_equal(f->output, "connect: EPERM\n");
    close(host);
    close(abstract);
}

static void every_namespace_is_its_own(void **state)
{
    static const char *const names[] = { "user", "mnt", "pid", "net", "ipc", "uts", "cgroup" };
    struct fixture *f = *state;

    for (size_t i = 0; i < PF_COUNT(names); i++) {
        char path[64], command[96], host[64] = "";
        snprintf(path, sizeof(path), "/proc/self/ns/%s", names[i]);
        snprintf(command, sizeof(command), "readlink %s", path);
        assert_true(readlink(path, host, sizeof(host) - 1) > 0);
        assert_run(f, command, 0);
        assert_int_equal(strncmp(f->output, names[i], strlen(names[i])), 0);
        f->output[strcspn(f->output, "\n")] = '\0';
        assert_string_not_equal(f->output, host);
    }
}

static void two_jails_do_not_see_each_other(void **state)
{
    struct fixture *f = *state, other = { .config = f->config };
    struct asked sleeper = ask(f, "echo secret > /tmp/secret; exec sleep 1000");

    open_jail(&other);
    assert_run(f, "until [ -e /tmp/secret ]; do sleep 0.01; done", 0);
    assert_run(&other, "cat /tmp/secret", 1);
    assert_run(&other, "cat /proc/[0-9]*/comm 2>/dev/null; true", 0);
    assert_null(strstr(other.output, "sleep"));
    assert_int_equal(run(&other, "kill -9 -1"), -1); /* its own supervisor, too */
    assert_run(&other, "echo still there", 0);
    assert_run(f, "cat /proc/[0-9]*/comm 2>/dev/null; true", 0);
    assert_non_null(strstr(f->output, "sleep"));
    pf_jail_close(other.jail);
    close(sleeper.control);
    close(sleeper.output);
}

static void a_directory_of_the_host_is_not_taken_in(void **state)
{
    struct fixture *f = *state;
    const char *const argv[] = { "/bin/sh", "-c", "ls ..", NULL };

    finish(f, ask_at(f, NULL, argv, f->config.workspace_fd));
    assert_int_equal(f->failed_stage, PF_STAGE_CWD);
    assert_int_equal(f->failed_errno, EPERM);
    assert_string_equal(f->output, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_JAIL(a_command_has_no_privilege_at_all),
        IN_JAIL(system_calls_of_use_to_exploits_are_refused),
        IN_JAIL(no_file_of_the_owner_can_be_made_to_run_as_the_owner),
        IN_JAIL(the_first_process_is_closed),
        IN_JAIL(a_command_has_three_descriptors),
        IN_JAIL(nothing_of_the_host_but_its_system_is_there),
        IN_JAIL(mounts_are_those_that_were_planned),
        IN_JAIL(the_system_is_read_only),
        IN_JAIL(the_network_is_a_loopback_of_its_own),
        WITH_CONFIG(the_hosts_network_has_no_abstract_sockets_of_others),
        IN_JAIL(every_namespace_is_its_own),
        IN_JAIL(two_jails_do_not_see_each_other),
        IN_JAIL(a_directory_of_the_host_is_not_taken_in),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
