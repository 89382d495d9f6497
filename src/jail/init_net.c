/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The network of a jail. To make the namespace takes the kernel as long as half of the rest, so a
 * process beside the first one does it, which shares its descriptors: it leaves there a socket of
 * the new namespace, through which the first process finds it. It shares the memory too, which
 * copying would cost more than all else here, and errno with it: so it only notes what fails.
 */
#include "jail/init.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* A socket of the new namespace, far from what the first process opens meanwhile. */
#define INSIDE 40

static struct init_helper helper;

static int make_network(void *arg)
{
    struct ifreq request = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING };
    int fd;

    (void)arg;
    if (unshare(CLONE_NEWNET) < 0)
        init_helper_fail(&helper, "make a network namespace", "");
    fd = socket(AF_INET, SOCK_DGRAM, 0);
    if (fd >= 0 && dup3(fd, INSIDE, O_CLOEXEC) < 0) {
        errno = errno == EBADF ? EMFILE : errno; /* so it says that the limit is lower than that */
        fd = -1;
    }
    if (fd < 0)
        init_helper_fail(&helper, "make a socket", "of the sandbox");
    close(fd);
    if (ioctl(INSIDE, SIOCSIFFLAGS, &request) < 0)
        init_helper_fail(&helper, "bring up the loopback", "of the sandbox");
    _exit(0);
}

void init_network_begin(void)
{
    init_helper_start(&helper, make_network, NULL, CLONE_FILES);
}

static int listen_for_proxy(uint32_t port)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_port = htons((uint16_t)port),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0 || bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 ||
        listen(fd, SOMAXCONN) < 0)
        init_fail("listen for the proxy", "of the sandbox");
    return fd;
}

int init_network_end(const struct pf_plan *plan)
{
    int namespace;

    init_helper_end(&helper);
    namespace = ioctl(INSIDE, SIOCGSKNS);
    if (namespace < 0 || setns(namespace, CLONE_NEWNET) < 0)
        init_fail("enter the network namespace", "of the sandbox");
    close(namespace);
    close(INSIDE);
    return plan->proxy_port ? listen_for_proxy(plan->proxy_port) : -1;
}
