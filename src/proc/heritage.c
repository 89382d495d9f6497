/* SPDX-License-Identifier: Apache-2.0 */
/*
 * It is asked for before each command that the helper may get, so by what costs least: what has a
 * system call of its own by that, and the rest, which has none (the umask) or a dozen (rights), by
 * the one file that has to be read for the size of this process anyway.
 */
#include "proc/heritage.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/number.h"

#ifndef SO_NETNS_COOKIE
#define SO_NETNS_COOKIE 71
#endif
#ifndef PR_GET_MDWE
#define PR_GET_MDWE 66
#endif

#define OWN_STATUS "/proc/thread-self/status"

/* The first version of what sched_getattr(2) gives; the C library may have none, or a larger. */
struct attributes {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
};

/* getrlimit(3) takes the way of prlimit(2), which costs twice as much. */
static bool read_limit(int which, uint64_t ret[static 2])
{
    struct rlimit limit;
#if defined(SYS_getrlimit) && defined(__LP64__)
    bool found = syscall(SYS_getrlimit, which, &limit) == 0;
#else
    bool found = getrlimit(which, &limit) == 0;
#endif

    if (!found)
        return false;
    ret[0] = limit.rlim_cur;
    ret[1] = limit.rlim_max;
    return true;
}

/* By the bare system calls, as the next: they are made in a child that shares our memory as well,
 * where neither a cancellation of this thread nor a sanitizer's table of descriptors may come in
 * between. */
static int open_status(const char *path)
{
    return (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
}

static void read_status(int fd, char *text, size_t size)
{
    long len = fd < 0 ? -1 : syscall(SYS_read, fd, text, size - 1);

    text[len < 0 ? 0 : len] = '\0';
}

/* Move the lines from one that begins so on, up to what ends them, to the end of what is kept. at:
 * where to look from. Returns false when there is no such line. */
static bool keep(struct pf_heritage *heritage, const char **at, const char *begin, const char *end)
{
    const char *from = strstr(*at, begin), *to = from ? strstr(from + 1, end) : NULL;

    if (!to)
        return false;
    memmove(heritage->text + heritage->len, from, (size_t)(to - from));
    heritage->len += (size_t)(to - from);
    *at = to;
    return true;
}

static void find_resident(const char *text, uint64_t *ret)
{
    static const char name[] = "\nVmRSS:";
    const char *at = strstr(text, name);

    if (!at)
        return;
    at += sizeof(name) - 1;
    at += strspn(at, " \t");
    if (pf_take_number(&at, UINT64_MAX / 1024, ret))
        *ret *= 1024;
}

/* The lines in their order, of which the last ones stand together. The name of the program, the
 * only word there that others choose, has no line breaks. */
static bool read_text(struct pf_heritage *ret, int status, uint64_t *ret_resident)
{
    const char *at = ret->text;

    ret->len = 0;
    read_status(status, ret->text, sizeof(ret->text));
    if (ret_resident)
        find_resident(at, ret_resident);
    if (keep(ret, &at, "\nUmask:", "\n") && keep(ret, &at, "\nUid:", "\n") &&
        keep(ret, &at, "\nGid:", "\n") && keep(ret, &at, "\nGroups:", "\n") &&
        keep(ret, &at, "\nCapInh:", "\nvoluntary_ctxt_switches:"))
        return true;
    ret->len = 0;
    return false;
}

/* Root of a namespace may be the root of another one, with the same numbers and rights. Where there
 * are no namespaces of users all are in the same. */
static bool read_users(uint64_t *ret)
{
    struct statx users;

    *ret = 0;
    if (statx(AT_FDCWD, "/proc/thread-self/ns/user", AT_STATX_DONT_SYNC, STATX_INO, &users) < 0)
        return errno == ENOENT;
    *ret = users.stx_ino;
    return true;
}

static bool read_process(struct pf_heritage *ret, int status, uint64_t *ret_resident)
{
    struct statx root;

    for (int i = 0; i < RLIM_NLIMITS; i++)
        if (!read_limit(i, ret->limits[i]))
            return false;
    /* A new namespace has copies of all mounts, with numbers of their own. */
    if (statx(AT_FDCWD, "/", AT_STATX_DONT_SYNC, STATX_INO | STATX_MNT_ID, &root) < 0)
        return false;
    ret->root[0] = (uint64_t)root.stx_dev_major << 32 | root.stx_dev_minor;
    ret->root[1] = root.stx_ino;
    ret->root[2] = (root.stx_mask & STATX_MNT_ID) ? root.stx_mnt_id : 0;
    if (!read_users(&ret->users))
        return false;
    ret->secure_bits = (uint64_t)prctl(PR_GET_SECUREBITS, 0, 0, 0, 0);
    ret->memory_rules = (uint64_t)prctl(PR_GET_MDWE, 0UL, 0UL, 0UL, 0UL);
    return read_text(ret, status, ret_resident);
}

bool pf_heritage_read(struct pf_heritage *ret, int socket, uint64_t *ret_resident)
{
    struct attributes sched = { .size = sizeof(sched) };
    socklen_t len = sizeof(ret->network);
    _cleanup_close_ int status = open_status(OWN_STATUS);

    *ret_resident = 0;
    /* Kernels that cannot tell have no such thing, and say so each time. */
    ret->network = 0;
    (void)getsockopt(socket, SOL_SOCKET, SO_NETNS_COOKIE, &ret->network, &len);
    if (syscall(SYS_sched_getattr, 0, &sched, sizeof(sched), 0) < 0)
        sched = (struct attributes){ 0 };
    ret->sched[0] = sched.policy;
    ret->sched[1] = sched.flags;
    ret->sched[2] = (uint64_t)sched.nice;
    ret->sched[3] = sched.priority;
    return read_process(ret, status, ret_resident);
}

void pf_heritage_confirm(struct pf_heritage *ret)
{
    /* It is closed when this process executes the program. */
    if (!read_process(ret, open_status(OWN_STATUS), NULL))
        ret->len = 0;
}

/* How many filters there are; none is also that the kernel does not say so. */
static uint64_t count_filters(const char *text)
{
    static const char name[] = "\nSeccomp_filters:";
    const char *at = strstr(text, name);
    uint64_t count = 0;

    if (!at)
        return 0;
    at += sizeof(name) - 1;
    at += strspn(at, " \t");
    pf_take_number(&at, UINT64_MAX, &count);
    return count;
}

void pf_heritage_hand_on(struct pf_heritage *heritage)
{
    uint64_t filters = count_filters(heritage->text);
    _cleanup_close_ int status = -1;
    char text[8192];

    heritage->thread = 0;
    if (filters == 0)
        return;
    status = open_status("/proc/self/status");
    read_status(status, text, sizeof(text));
    if (count_filters(text) != filters)
        heritage->thread = gettid();
}

bool pf_heritage_is_same(const struct pf_heritage *now, const struct pf_heritage *helper)
{
    /* Numbers without gaps. */
    const size_t size = offsetof(struct pf_heritage, len);

    return now->len > 0 && now->len == helper->len && memcmp(now, helper, size) == 0 &&
           memcmp(now->text, helper->text, now->len) == 0 &&
           (helper->thread == 0 || helper->thread == gettid());
}
