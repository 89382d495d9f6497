/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Run at build time: writes the seccomp filter of a jail as a C header, so that nothing is compiled
 * when one starts and nothing that is installed needs libseccomp.
 *
 * What ordinary programs do is allowed, what is of use to exploits alone is refused with an error
 * that programs know how to live with, and a system call that is newer than this list does not
 * exist: programs then use an older one.
 */
#include <asm/ioctls.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { NEWEST_CALL = 450 }; /* set_mempolicy_home_node, Linux 5.17: all that are judged below */

/* O_TMPFILE is this and O_DIRECTORY. A file of no name can be given one, and keeps its mode. */
#define ONLY_TMPFILE ((uint64_t)(O_TMPFILE & ~O_DIRECTORY))

/* Of the lower half, which is all that the kernel takes of most arguments. */
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define FIRST_ARGUMENT offsetof(struct seccomp_data, args)
#else
#define FIRST_ARGUMENT (offsetof(struct seccomp_data, args) + sizeof(uint32_t))
#endif
#define ASK_PERSONALITY 0xffffffffU

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const char *const refused[] = {
    /* the tree of mounts, and namespaces */
    "mount",
    "umount",
    "umount2",
    "pivot_root",
    "chroot",
    "open_tree",
    "move_mount",
    "fsopen",
    "fsconfig",
    "fsmount",
    "fspick",
    "mount_setattr",
    "unshare",
    "setns",
    /* files by other ways than their paths; watching those of everybody */
    "open_by_handle_at",
    "name_to_handle_at",
    "fanotify_init",
    "quotactl",
    "quotactl_fd",
    /* other processes */
    "process_vm_readv",
    "process_vm_writev",
    "pidfd_getfd",
    "kcmp",
    "move_pages",
    "migrate_pages",
    "process_madvise",
    /* the kernel's keys, programs, counters and traps */
    "add_key",
    "request_key",
    "keyctl",
    "bpf",
    "perf_event_open",
    "userfaultfd",
    "lookup_dcookie",
    /* the machine */
    "init_module",
    "finit_module",
    "delete_module",
    "create_module",
    "query_module",
    "get_kernel_syms",
    "kexec_load",
    "kexec_file_load",
    "reboot",
    "swapon",
    "swapoff",
    "acct",
    "syslog",
    "settimeofday",
    "clock_settime",
    "clock_settime64",
    "stime",
    "sethostname",
    "setdomainname",
    "vhangup",
    "nfsservctl",
    "_sysctl",
    "sysfs",
    "ustat",
    "uselib",
    /* old doors into the processor */
    "iopl",
    "ioperm",
    "modify_ldt",
    "vm86",
    "vm86old",
};

/* Programs have another way when these do not exist. openat2 and clone3 hide what they are asked
 * for in memory, where no filter sees it; io_uring does its work past every filter. */
static const char *const missing[] = {
    "io_uring_setup", "io_uring_enter", "io_uring_register", "clone3", "openat2", "memfd_secret",
};

static void check(int r, const char *what)
{
    if (r == 0)
        return;
    fprintf(stderr, "gen_filter: %s: error %d\n", what, -r);
    _exit(1);
}

static void refuse(scmp_filter_ctx filter, int error, const char *name, unsigned count,
                   const struct scmp_arg_cmp *args)
{
    int number = seccomp_syscall_resolve_name(name);

    if (number == __NR_SCMP_ERROR) {
        fprintf(stderr, "gen_filter: no such system call: %s\n", name);
        _exit(1);
    }
    if (number < 0) /* not on this architecture */
        return;
    check(seccomp_rule_add_array(filter, SCMP_ACT_ERRNO((unsigned)error), number, count, args),
          name);
}

static void refuse_if(scmp_filter_ctx filter, int error, const char *name, struct scmp_arg_cmp arg)
{
    refuse(filter, error, name, 1, &arg);
}

/* The kernel takes only the lower half of such an argument. */
static struct scmp_arg_cmp low(unsigned arg, uint64_t value)
{
    return SCMP_CMP64(arg, SCMP_CMP_MASKED_EQ, 0xffffffff, value);
}

static struct scmp_arg_cmp has_bit(unsigned arg, uint64_t bit)
{
    return SCMP_CMP64(arg, SCMP_CMP_MASKED_EQ, bit, bit);
}

static void refuse_namespaces(scmp_filter_ctx filter)
{
    static const uint64_t flags[] = { CLONE_NEWNS,   CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC,
                                      CLONE_NEWUSER, CLONE_NEWPID,    CLONE_NEWNET };

    for (size_t i = 0; i < COUNT(flags); i++)
        refuse_if(filter, EPERM, "clone", has_bit(0, flags[i]));
}

static bool is_shown(uint64_t family)
{
    return family == AF_UNIX || family == AF_INET || family == AF_INET6 || family == AF_NETLINK;
}

/* Refuse, among the families below count, a power of two, all that are not shown. The fewest
 * comparisons do, because what the kernel does with a filter at each start takes longer with each
 * instruction: so not one by one, but by the bits that no shown family has in common. */
static void refuse_families(scmp_filter_ctx filter, const char *call, uint64_t count)
{
    bool done[64] = { 0 };

    for (int bits = 1; 1ULL << bits <= count; bits++) /* what few bits tell covers most */
        for (uint64_t mask = 1; mask < count; mask++)
            for (uint64_t value = 0; __builtin_popcountll(mask) == bits && value <= mask; value++) {
                bool use = false, shown = (value & ~mask) != 0;
                for (uint64_t family = 0; family < count; family++)
                    if ((family & mask) == value) {
                        shown = shown || is_shown(family);
                        use = use || !done[family];
                    }
                if (shown || !use)
                    continue;
                refuse_if(filter, EAFNOSUPPORT, call,
                          SCMP_CMP64(0, SCMP_CMP_MASKED_EQ, mask, value));
                for (uint64_t family = 0; family < count; family++)
                    done[family] = done[family] || (family & mask) == value;
            }
}

/* Unix, the internet, and of netlink what asks for addresses and routes. */
static void refuse_sockets(scmp_filter_ctx filter)
{
    enum { FAMILIES = 32 };
    static const char *const calls[] = { "socket", "socketpair" };

    for (size_t i = 0; i < COUNT(calls); i++) {
        refuse_families(filter, calls[i], FAMILIES);
        refuse_if(filter, EAFNOSUPPORT, calls[i], SCMP_CMP64(0, SCMP_CMP_GE, FAMILIES));
        struct scmp_arg_cmp netlink[] = { low(0, AF_NETLINK),
                                          SCMP_CMP64(2, SCMP_CMP_NE, NETLINK_ROUTE) };
        refuse(filter, EPROTONOSUPPORT, calls[i], COUNT(netlink), netlink);
    }
}

/* A program may be debugged by its parent, which started it for that, and by nobody else. */
static void refuse_debuggers(scmp_filter_ctx filter)
{
    refuse_if(filter, EPERM, "ptrace", SCMP_CMP64(0, SCMP_CMP_EQ, PTRACE_ATTACH));
    refuse_if(filter, EPERM, "ptrace", SCMP_CMP64(0, SCMP_CMP_EQ, PTRACE_SEIZE));
}

/* Files with these bits would give the rights of the jail's owner to others on the host. */
static void refuse_set_id(scmp_filter_ctx filter)
{
    static const struct {
        const char *name;
        unsigned mode_arg;
        int flags_arg;   /* the mode counts if these have the bit; -1: always */
        uint64_t needed; /* the bit */
    } calls[] = {
        { "chmod", 1, -1, 0 },          { "fchmod", 1, -1, 0 },
        { "fchmodat", 2, -1, 0 },       { "creat", 1, -1, 0 },
        { "mknod", 1, -1, 0 },          { "mknodat", 2, -1, 0 },
        { "open", 2, 1, O_CREAT },      { "openat", 3, 2, O_CREAT },
        { "open", 2, 1, ONLY_TMPFILE }, { "openat", 3, 2, ONLY_TMPFILE },
    };
    static const uint64_t bits[] = { S_ISUID, S_ISGID };

    for (size_t i = 0; i < COUNT(calls); i++)
        for (size_t j = 0; j < COUNT(bits); j++) {
            struct scmp_arg_cmp args[2] = { has_bit(calls[i].mode_arg, bits[j]) };
            if (calls[i].flags_arg >= 0)
                args[1] = has_bit((unsigned)calls[i].flags_arg, calls[i].needed);
            refuse(filter, EPERM, calls[i].name, calls[i].flags_arg >= 0 ? 2 : 1, args);
        }
}

/* The limit of core dumps must stay what init_lock.c makes it. Programs with secrets lower it, and
 * some give up if they cannot: so they are told that it was done. */
static void keep_core_limit(scmp_filter_ctx filter)
{
    struct scmp_arg_cmp args[] = { low(1, RLIMIT_CORE), SCMP_CMP64(2, SCMP_CMP_NE, 0) };

    refuse_if(filter, 0, "setrlimit", low(0, RLIMIT_CORE));
    refuse(filter, 0, "prlimit64", COUNT(args), args);
}

static void refuse_others(scmp_filter_ctx filter)
{
    /* Typing into the terminal of somebody else. */
    refuse_if(filter, EPERM, "ioctl", low(1, TIOCSTI));
    refuse_if(filter, EPERM, "ioctl", low(1, TIOCLINUX));
    refuse_if(filter, EPERM, "ioctl", low(1, TIOCSETD)); /* line disciplines are a zoo */
    refuse_if(filter, EPERM, "ioctl", low(1, TIOCCONS));
    /* Whoever opens a file with a lease on it waits for its holder, for 45 seconds if need be; and
     * the host opens files of the workspace. */
    refuse_if(filter, EPERM, "fcntl", low(1, F_SETLEASE));
}

/* What a jail with a read-only workspace refuses besides: over a socket that it meets there, which
 * a read-only mount does not close, a process outside could pass it a descriptor that is open for
 * writing. So no Unix sockets but pairs; and of those none of datagrams, which can be connected
 * anew. */
static void refuse_meetings(scmp_filter_ctx filter)
{
    enum { TYPES = 16 };

    refuse_if(filter, EAFNOSUPPORT, "socket", low(0, AF_UNIX));
    for (uint64_t type = 0; type < TYPES; type++)
        if (type != SOCK_STREAM && type != SOCK_SEQPACKET) {
            struct scmp_arg_cmp args[] = { low(0, AF_UNIX),
                                           SCMP_CMP64(1, SCMP_CMP_MASKED_EQ, TYPES - 1, type) };
            refuse(filter, EPROTONOSUPPORT, "socketpair", COUNT(args), args);
        }
}

/* Print what a filter compiles to, after the name of a macro and what comes before it. */
static void print_program(const char *name, const struct sock_filter *before, size_t count,
                          scmp_filter_ctx filter)
{
    static struct sock_filter program[4096];
    int fd = memfd_create("filter", MFD_CLOEXEC);
    ssize_t len;

    check(seccomp_export_bpf(filter, fd), "export");
    len = pread(fd, program, sizeof(program), 0);
    if (len <= 0 || (size_t)len == sizeof(program) || (size_t)len % sizeof(program[0]) != 0) {
        fprintf(stderr, "gen_filter: cannot read the program back\n");
        _exit(1);
    }
    close(fd);
    printf("#define %s", name);
    for (size_t i = 0; i < count; i++)
        printf(" \\\n    { %u, %u, %u, %uU },", before[i].code, before[i].jt, before[i].jf,
               before[i].k);
    for (size_t i = 0; i < (size_t)len / sizeof(program[0]); i++)
        printf(" \\\n    { %u, %u, %u, %uU },", program[i].code, program[i].jt, program[i].jf,
               program[i].k);
    printf("\n");
}

static scmp_filter_ctx new_filter(void)
{
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);

    if (!filter)
        _exit(1);
    /* Calls by the numbers of another architecture of this processor, which mean something else. */
    check(seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ERRNO(ENOSYS)), "attribute");
    /* A tree instead of a list: when the filter is installed the kernel runs it once for each
     * system call there is, to learn which are always allowed, and a list takes it five times as
     * long. */
    check(seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2), "attribute");
    return filter;
}

static void print_main_filter(void)
{
    /* libseccomp has no word for "every later system call", nor for "any of these bits": so its
     * program is read back and printed with this before it, which answers those and lets all others
     * fall through. The bits are those of personality(2), for execution of data and other old
     * tricks; asking, and the fixed addresses of debuggers and sanitizers, are fine. */
    static const struct sock_filter before[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, NEWEST_CALL, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_personality, 0, 4),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, FIRST_ARGUMENT),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ASK_PERSONALITY, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, ~(uint32_t)ADDR_NO_RANDOMIZE, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
    };
    scmp_filter_ctx filter = new_filter();

    for (size_t i = 0; i < COUNT(refused); i++)
        refuse(filter, EPERM, refused[i], 0, NULL);
    for (size_t i = 0; i < COUNT(missing); i++)
        refuse(filter, ENOSYS, missing[i], 0, NULL);
    refuse_namespaces(filter);
    refuse_sockets(filter);
    refuse_debuggers(filter);
    refuse_set_id(filter);
    keep_core_limit(filter);
    refuse_others(filter);
    print_program("PF_SECCOMP_FILTER", before, COUNT(before), filter);
    seccomp_release(filter);
}

static void print_alone_filter(void)
{
    scmp_filter_ctx filter = new_filter();

    refuse_meetings(filter);
    print_program("PF_SECCOMP_ALONE", NULL, 0, filter);
    seccomp_release(filter);
}

int main(void)
{
    printf("/* Written by gen_filter. */\n");
    print_main_filter();
    print_alone_filter();
    return fflush(stdout) == 0 ? 0 : 1;
}
