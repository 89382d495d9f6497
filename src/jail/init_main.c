/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pinfold-init: the first process of a jail. It performs the plan of its owner, locks itself in,
 * and then starts a supervisor for each request. It ends when the owner hangs up or dies, and the
 * kernel ends everything inside with it.
 */
#include "jail/init.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "proc/keeper.h"

static size_t put(char *to, size_t at, size_t max, const char *text)
{
    while (*text && at + 1 < max)
        to[at++] = *text++;
    to[at] = '\0';
    return at;
}

static void send_message(const struct pf_init_message *message, int fd)
{
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))] = { 0 };
    struct iovec iov = { (void *)(uintptr_t)message, sizeof(*message) };
    struct msghdr header = { .msg_iov = &iov, .msg_iovlen = 1 };

    if (fd >= 0) {
        header.msg_control = control;
        header.msg_controllen = sizeof(control);
        struct cmsghdr *part = CMSG_FIRSTHDR(&header);
        part->cmsg_level = SOL_SOCKET;
        part->cmsg_type = SCM_RIGHTS;
        part->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(part), &fd, sizeof(int));
    }
    (void)!sendmsg(PF_INIT_SOCKET, &header, MSG_NOSIGNAL);
}

static void say(enum pf_init_event event, enum pinfold_code code, const char *step,
                const char *object)
{
    struct pf_init_message message = { .event = event,
                                       .error = { .code = code, .sys_errno = errno } };
    char *text = message.error.msg;
    size_t at = put(text, 0, sizeof(message.error.msg), step);

    if (object[0])
        at = put(text, at, sizeof(message.error.msg), " ");
    put(text, at, sizeof(message.error.msg), object);
    send_message(&message, -1);
}

void init_fail(const char *step, const char *object)
{
    say(PF_INIT_FAILED, PINFOLD_EOS, step, object);
    _exit(1);
}

void init_reject(const char *step, const char *object)
{
    say(PF_INIT_FAILED, PINFOLD_EVALUE, step, object);
    _exit(1);
}

void init_no_overlay(const char *step, const char *object)
{
    say(PF_INIT_NO_OVERLAY, PINFOLD_EOS, step, object);
    _exit(1);
}

void init_note(const char *step, const char *object)
{
    say(PF_INIT_NOTE, PINFOLD_EOS, step, object);
}

void init_send(enum pf_init_event event, int fd)
{
    send_message(&(struct pf_init_message){ .event = event }, fd);
}

static const struct pf_plan *map_plan(int fd, size_t *ret_size)
{
    struct stat st;
    const struct pf_plan *plan;

    if (fstat(fd, &st) < 0)
        init_fail("read the plan", "");
    plan = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (plan == MAP_FAILED)
        init_fail("read the plan", "");
    close(fd);
    *ret_size = (size_t)st.st_size;
    return plan;
}

/* Receive up to size bytes of the owner's, and the descriptors that come along. Returns the bytes.
 */
static size_t receive(void *data, size_t size, int fds[static PF_INIT_FDS_MAX], size_t *ret_count)
{
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(PF_INIT_FDS_MAX * sizeof(int))];
    struct iovec iov = { data, size };
    struct msghdr message = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)
    };
    ssize_t len = recvmsg(PF_INIT_SOCKET, &message, MSG_CMSG_CLOEXEC);
    struct cmsghdr *part;

    if (len == 0) /* the owner has thought better of it */
        _exit(0);
    if (len < 0)
        init_fail("receive the plan", "");
    *ret_count = 0;
    part = CMSG_FIRSTHDR(&message);
    if (part && part->cmsg_level == SOL_SOCKET && part->cmsg_type == SCM_RIGHTS) {
        *ret_count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        memcpy(fds, CMSG_DATA(part), *ret_count * sizeof(int));
    }
    return (size_t)len;
}

static _Alignas(struct pf_plan) char received_plan[PF_INIT_PLAN_MAX];

static const struct pf_plan *receive_plan(int *ret_lent)
{
    const struct pf_plan *plan = (const void *)received_plan;
    int fds[PF_INIT_FDS_MAX];
    size_t count, len = receive(received_plan, sizeof(received_plan), fds, &count);

    if (len == 1 && count > 0)
        plan = map_plan(fds[--count], &len);
    if (!init_plan_is_whole(plan, len) || count != plan->lent) {
        errno = EPROTO;
        init_fail("receive the plan", "");
    }
    *ret_lent = count ? fds[0] : -1;
    return plan;
}

/* What is forked from here on is in the groups too. */
static void enter_groups(struct pf_init_groups *ret)
{
    int fds[PF_INIT_FDS_MAX];
    size_t count;

    if (receive(ret, sizeof(*ret), fds, &count) != sizeof(*ret)) {
        errno = EPROTO;
        init_fail("receive what holds the limits", "of the sandbox");
    }
    for (size_t i = 0; i < count; i++) {
        if (write(fds[i], "0", 1) != 1)
            init_fail("enter a control group", "of the sandbox");
        close(fds[i]);
    }
    /* The groups that are entered are its roots: their names, which tell something of the owner,
     * are not seen inside. */
    if (unshare(CLONE_NEWCGROUP) < 0)
        init_fail("make a namespace of control groups", "for the sandbox");
}

/* Blocked signals do not reach PID 1 in any way: not from inside, where it could be meant as an
 * attack, and from outside only SIGKILL. */
static int take_signals(void)
{
    sigset_t set;
    int fd;

    sigfillset(&set);
    pthread_sigmask(SIG_SETMASK, &set, NULL);
    pf_default_signals();
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (fd < 0)
        init_fail("make a descriptor for signals", "");
    return fd;
}

int main(int argc, char **argv)
{
    bool own_network = getenv(PF_INIT_NETWORK) != NULL;
    const struct pf_plan *plan;
    struct pf_init_groups groups;
    int signals, lent, proxy = -1;

    if (argc > 0 && strcmp(argv[0], PF_KEEPER_NAME) == 0)
        return init_keep();
    if (getpid() != 1 || fcntl(PF_INIT_SOCKET, F_SETFD, FD_CLOEXEC) < 0 ||
        fcntl(PF_INIT_RESIDENT, F_SETFD, FD_CLOEXEC) < 0 ||
        fcntl(PF_INIT_OWNER, F_SETFD, FD_CLOEXEC) < 0) {
        static const char text[] = PF_INIT_NAME ": this program is started by pinfold itself\n";
        (void)!write(STDERR_FILENO, text, sizeof(text) - 1);
        return 2;
    }
    close_range(0, 2, 0);
    prctl(PR_SET_NAME, PF_INIT_NAME, 0, 0, 0);
    umask(0);
    signals = take_signals();
    init_offer_memory();
    if (own_network)
        init_network_begin();
    init_empty_bounding_set();
    if (sethostname("pinfold", 7) < 0)
        init_fail("name the sandbox", "");
    plan = receive_plan(&lent);
    init_build_begin(plan, lent);
    if (own_network)
        proxy = init_network_end(plan);
    umask(022);
    enter_groups(&groups);
    init_lock(plan, &groups);
    init_build_end();
    init_lease(PF_INIT_RESIDENT, PF_FIRST_LIFE);
    init_send(PF_INIT_READY, proxy);
    if (proxy >= 0)
        close(proxy);
    if ((const void *)plan != received_plan)
        munmap((void *)(uintptr_t)plan, plan->size);
    init_serve(signals);
    return 0;
}
