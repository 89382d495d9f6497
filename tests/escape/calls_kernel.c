/* SPDX-License-Identifier: Apache-2.0 */
/* Doors into the kernel that programs seldom need and exploits often do, and odd sockets. */
#include "calls.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static long add_key(void)
{
    return syscall(SYS_add_key, "user", "pinfold-escape", "x", 1, -3 /* process keyring */);
}

static long session_keyring(void)
{
    return syscall(SYS_keyctl, 1, NULL);
} /* CVE-2016-0728 */

static long load_bpf(void)
{
    union bpf_attr attr = {
        .map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 4, .max_entries = 1
    };

    return syscall(SYS_bpf, BPF_MAP_CREATE, &attr, sizeof(attr));
}

static long perf_event(void)
{
    struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE,
                                    .size = sizeof(attr),
                                    .config = PERF_COUNT_SW_TASK_CLOCK };

    return syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
}

static long fault_handler(void)
{
    return syscall(SYS_userfaultfd, 1 /* user mode only */);
}

static long uring(void)
{
    char params[120] = { 0 };

    return syscall(SYS_io_uring_setup, 1, params);
}

/* Only with arguments that no kernel accepts: what counts is who says no. */
static long refused_early(long number)
{
    long r = syscall(number, -1L, -1L, -1L, -1L, -1L);

    if (r < 0 && errno != EPERM && errno != ENOSYS)
        return 0;
    return -1;
}

static long kexec(void)
{
    return refused_early(SYS_kexec_load);
}
static long load_module(void)
{
    return refused_early(SYS_finit_module);
}
static long quota(void)
{
    return refused_early(SYS_quotactl);
}

static long watch_all(void)
{
    return syscall(SYS_fanotify_init, 0x200 /* FID */, O_RDONLY);
}

static long kernel_log(void)
{
    char line[64];

    return syscall(SYS_syslog, 3, line, sizeof(line));
}

static long file_handle(void) /* "Shocker", Docker before 1.0 */
{
    struct {
        struct file_handle head;
        char bytes[128];
    } handle = { .head.handle_bytes = 128 };
    int mount_id;

    if (name_to_handle_at(AT_FDCWD, ".", &handle.head, &mount_id, 0) < 0)
        return -1;
    int dir = open(".", O_RDONLY | O_DIRECTORY);
    return open_by_handle_at(dir, &handle.head, O_RDONLY);
}

static long family(int domain, int type, int protocol)
{
    return socket(domain, type, protocol);
}
static long vsock(void)
{
    return family(40, SOCK_STREAM, 0);
}
static long crypto_socket(void)
{
    return family(38, SOCK_SEQPACKET, 0);
}
static long packet(void)
{
    return family(17, SOCK_RAW, htons(3));
} /* CVE-2017-7308, 2020-14386 */
static long raw_ip(void)
{
    return family(AF_INET, SOCK_RAW, IPPROTO_ICMP);
}
static long raw_ip6(void)
{
    return family(AF_INET6, SOCK_RAW, IPPROTO_ICMPV6);
}
static long netfilter(void)
{
    return family(AF_NETLINK, SOCK_RAW, 12);
} /* CVE-2024-1086 */
static long uevents(void)
{
    return family(AF_NETLINK, SOCK_DGRAM, 15);
}
static long audit_log(void)
{
    return family(AF_NETLINK, SOCK_RAW, 9);
}
static long high_family(void) /* the kernel takes an int */
{
    return syscall(SYS_socket, 0x100000000UL | 38, SOCK_SEQPACKET, 0);
}

static long link_down(void)
{
    struct ifreq request = { .ifr_name = "lo", .ifr_flags = 0 };

    own_namespace(CLONE_NEWNET); /* else it would be the host's */
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    return ioctl(fd, SIOCSIFFLAGS, &request);
}

/* An empty rule set of iptables, the door of CVE-2021-22555: EPERM before anything is looked at. */
static long iptables(void)
{
    char table[96] = "filter";
    own_namespace(CLONE_NEWNET);
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    if (setsockopt(fd, IPPROTO_IP, 64, table, sizeof(table)) < 0 && errno == EPERM)
        return -1;
    return 0;
}

const struct attack kernel_attacks[] = {
    ATTACK(add_key),       ATTACK(session_keyring), ATTACK(load_bpf),   ATTACK(perf_event),
    ATTACK(fault_handler), ATTACK(uring),           ATTACK(kexec),      ATTACK(load_module),
    ATTACK(quota),         ATTACK(watch_all),       ATTACK(kernel_log), ATTACK(file_handle),
    ATTACK(vsock),         ATTACK(crypto_socket),   ATTACK(packet),     ATTACK(raw_ip),
    ATTACK(raw_ip6),       ATTACK(netfilter),       ATTACK(uevents),    ATTACK(audit_log),
    ATTACK(high_family),   ATTACK(link_down),       ATTACK(iptables),   { NULL, NULL },
};
