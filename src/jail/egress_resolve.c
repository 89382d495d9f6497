/* SPDX-License-Identifier: Apache-2.0 */
#include "jail/egress_resolve.h"

#include <ares.h>
#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"

struct pf_egress_lookup {
    ares_channel channel;
    int epoll; /* of the channel's sockets: readable when one of them is ready */
    bool over;
    const char *fault;
    struct pf_egress_ip ips[PF_EGRESS_ADDRESSES];
    size_t count;
};

static void sockets_changed(void *data, ares_socket_t fd, int readable, int writable)
{
    struct pf_egress_lookup *lookup = data;
    struct epoll_event event = { .data.fd = fd };

    event.events = (readable ? EPOLLIN : 0u) | (writable ? EPOLLOUT : 0u);
    if (event.events == 0)
        epoll_ctl(lookup->epoll, EPOLL_CTL_DEL, fd, NULL);
    else if (epoll_ctl(lookup->epoll, EPOLL_CTL_ADD, fd, &event) < 0 && errno == EEXIST)
        epoll_ctl(lookup->epoll, EPOLL_CTL_MOD, fd, &event);
}

static void resolved(void *data, int status, int timeouts, struct ares_addrinfo *result)
{
    struct pf_egress_lookup *lookup = data;

    (void)timeouts;
    for (struct ares_addrinfo_node *node = result ? result->nodes : NULL; node;
         node = node->ai_next) {
        if (lookup->count < PF_EGRESS_ADDRESSES &&
            pf_egress_ip_from_sockaddr(node->ai_addr, &lookup->ips[lookup->count]))
            lookup->count++;
    }
    if (result)
        ares_freeaddrinfo(result);
    if (lookup->count == 0)
        lookup->fault = status == ARES_SUCCESS ? "the name has no address" : ares_strerror(status);
    lookup->over = true;
}

static int open_channel(struct pf_egress_lookup *lookup, const char *servers)
{
    static char hosts_and_dns[] = "fb", dns[] = "b";
    struct ares_options options = {
        /* Only the name that was allowed is asked for: no search domains, no HOSTALIASES. */
        .flags = ARES_FLAG_NOSEARCH | ARES_FLAG_NOALIASES,
        .timeout = 3000,
        .tries = 3,
        .lookups = servers ? dns : hosts_and_dns,
        .sock_state_cb = sockets_changed,
        .sock_state_cb_data = lookup,
    };
    int status = ares_init_options(&lookup->channel, &options,
                                   ARES_OPT_FLAGS | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES |
                                           ARES_OPT_LOOKUPS | ARES_OPT_SOCK_STATE_CB);

    if (status != ARES_SUCCESS)
        lookup->channel = NULL;
    else if (servers)
        status = ares_set_servers_ports_csv(lookup->channel, servers);
    return status;
}

int pf_egress_lookup_new(const char *name, const char *servers,
                         struct pf_egress_lookup **ret_lookup, struct pinfold_error *err)
{
    const struct ares_addrinfo_hints hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM };
    struct pf_egress_lookup *lookup = calloc(1, sizeof *lookup);
    int status;

    if (!lookup)
        return pf_fail_nomem(err);
    lookup->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (lookup->epoll < 0) {
        int error = errno;

        free(lookup);
        return pf_fail_os(err, error, "resolve %s: epoll_create1", name);
    }
    status = open_channel(lookup, servers);
    if (status != ARES_SUCCESS) {
        pf_egress_lookup_free(lookup);
        return pf_fail(err, status == ARES_ENOMEM ? PINFOLD_ENOMEM : PINFOLD_EOS, "resolve %s: %s",
                       name, ares_strerror(status));
    }
    ares_getaddrinfo(lookup->channel, name, NULL, &hints, resolved, lookup);
    *ret_lookup = lookup;
    return 0;
}

void pf_egress_lookup_free(struct pf_egress_lookup *lookup)
{
    if (!lookup)
        return;
    if (lookup->channel)
        ares_destroy(lookup->channel);
    close(lookup->epoll);
    free(lookup);
}

int pf_egress_lookup_fd(const struct pf_egress_lookup *lookup)
{
    return lookup->epoll;
}

int64_t pf_egress_lookup_deadline(const struct pf_egress_lookup *lookup)
{
    struct timeval wait;

    if (lookup->over)
        return 0;
    if (!ares_timeout(lookup->channel, NULL, &wait))
        return PF_NEVER;
    return pf_clock_deadline(wait.tv_sec * PF_NS_PER_SEC + wait.tv_usec * 1000);
}

bool pf_egress_lookup_work(struct pf_egress_lookup *lookup)
{
    struct epoll_event events[ARES_GETSOCK_MAXNUM];
    int count = epoll_wait(lookup->epoll, events, PF_COUNT(events), 0);

    for (int i = 0; i < count; i++) {
        uint32_t what = events[i].events;
        int fd = events[i].data.fd;

        /* An error shows on whichever of the two is asked about. */
        ares_process_fd(lookup->channel, (what & ~(uint32_t)EPOLLOUT) ? fd : ARES_SOCKET_BAD,
                        (what & EPOLLOUT) ? fd : ARES_SOCKET_BAD);
    }
    if (count <= 0) /* timeouts alone */
        ares_process_fd(lookup->channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
    return lookup->over;
}

size_t pf_egress_lookup_addresses(const struct pf_egress_lookup *lookup,
                                  const struct pf_egress_ip **ret_ips)
{
    *ret_ips = lookup->ips;
    return lookup->count;
}

const char *pf_egress_lookup_fault(const struct pf_egress_lookup *lookup)
{
    return lookup->fault;
}
