/* SPDX-License-Identifier: Apache-2.0 */
#include "jail/init.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

static void raise_loopback(void)
{
    struct ifreq request = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING };
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &request) < 0)
        init_fail("bring up the loopback", "of the sandbox");
    close(fd);
}

int init_network(const struct pf_plan *plan)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_port = htons((uint16_t)plan->proxy_port),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    int fd;

    if (plan->own_net)
        raise_loopback();
    if (plan->proxy_port == 0)
        return -1;
    fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 ||
        listen(fd, SOMAXCONN) < 0)
        init_fail("listen for the proxy", "of the sandbox");
    return fd;
}
