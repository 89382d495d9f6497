/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a destination to a connected socket. The rules are asked twice: about the name, before
 * anybody else hears of it, and about each address it has. The address that was checked is the one
 * that is dialled: nothing is resolved a second time.
 */
#include "jail/egress_conn.h"

#include <errno.h>
#include <ifaddrs.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/cleanup.h"
#include "base/clock.h"

/* Whether an address is one of this machine's; yes when that cannot be told. */
static bool is_own(const struct pf_egress_ip *ip)
{
    struct ifaddrs *list = NULL;
    struct pf_egress_ip other;
    bool own = false;

    if (getifaddrs(&list) < 0)
        return true;
    for (struct ifaddrs *entry = list; entry && !own; entry = entry->ifa_next)
        own = entry->ifa_addr && pf_egress_ip_from_sockaddr(entry->ifa_addr, &other) &&
              pf_egress_ip_equal(ip, &other);
    freeifaddrs(list);
    return own;
}

static bool may_dial(struct pf_egress_conn *conn, const struct pf_egress_ip *ip)
{
    struct pf_egress *egress = conn->egress;
    struct pf_egress_verdict verdict = { 0 };

    /* Through itself it would ask itself for ever. */
    if (conn->port == egress->self_port && pf_egress_ip_equal(ip, &egress->self))
        snprintf(verdict.reason, sizeof verdict.reason, "that is this proxy");
    else
        verdict = pf_egress_rules_address(egress->rules, &conn->host, ip, conn->port, false);
    if (verdict.allowed && is_own(ip))
        verdict = pf_egress_rules_address(egress->rules, &conn->host, ip, conn->port, true);
    if (!verdict.allowed) {
        memcpy(conn->reason, verdict.reason, sizeof conn->reason);
        conn->refused = true;
    }
    return verdict.allowed;
}

static int open_socket(const struct pf_egress_ip *ip, uint16_t port)
{
    struct sockaddr_storage to;
    socklen_t len = pf_egress_ip_to_sockaddr(ip, port, &to);
    _cleanup_close_ int fd = socket(to.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return -1;
    pf_egress_conn_tune(fd);
    if (connect(fd, (const struct sockaddr *)&to, len) < 0 && errno != EINPROGRESS)
        return -1;
    return TAKE_FD(fd);
}

static void note_failure(struct pf_egress_conn *conn, int error)
{
    char text[128];

    conn->refused = false;
    snprintf(conn->reason, sizeof conn->reason, "connect: %s",
             strerror_r(error, text, sizeof text));
}

/* Go on to the next address that may be dialled. */
static void dial_next(struct pf_egress_conn *conn)
{
    while (conn->ip_next < conn->ip_count) {
        size_t left = conn->ip_count - conn->ip_next;
        const struct pf_egress_ip *ip = &conn->ips[conn->ip_next++];

        if (!may_dial(conn, ip))
            continue;
        conn->server.fd = open_socket(ip, conn->port);
        if (conn->server.fd < 0) {
            note_failure(conn, errno);
            continue;
        }
        /* An address that does not answer leaves time for the others. */
        pf_egress_conn_until(conn, (conn->dial_deadline - conn->egress->now) / (int64_t)left);
        pf_egress_conn_watch(conn, &conn->server, EPOLLOUT);
        return;
    }
    pf_egress_answer(conn, conn->refused ? PF_EGRESS_REFUSED : PF_EGRESS_FAILED,
                     conn->refused ? 403 : 502, conn->reason);
}

static void dial_first(struct pf_egress_conn *conn)
{
    conn->state = PF_EGRESS_CONNECTING;
    conn->dial_deadline = conn->egress->now + conn->egress->tuning->connect_ns;
    dial_next(conn);
}

void pf_egress_dial(struct pf_egress_conn *conn)
{
    struct pf_egress *egress = conn->egress;
    struct pf_egress_verdict verdict = pf_egress_rules_host(egress->rules, &conn->host, conn->port);
    struct epoll_event event = { .events = EPOLLIN, .data.ptr = &conn->lookup_source };
    struct pinfold_error error = PINFOLD_ERROR_INIT;

    if (!verdict.allowed) {
        pf_egress_answer(conn, PF_EGRESS_REFUSED, 403, verdict.reason);
        return;
    }
    /* What the client sends from here on waits; that it is gone is still noticed. */
    pf_egress_conn_watch(conn, &conn->client, 0);
    if (conn->state == PF_EGRESS_DEAD)
        return;
    if (conn->host.is_ip) {
        conn->ips[0] = conn->host.ip;
        conn->ip_count = 1;
        dial_first(conn);
        return;
    }
    conn->state = PF_EGRESS_RESOLVING;
    pf_egress_conn_until(conn, egress->tuning->connect_ns);
    if (pf_egress_lookup_new(conn->host.text, egress->tuning->dns_servers, &conn->lookup, &error) <
        0) {
        pf_egress_answer(conn, PF_EGRESS_FAILED, 502, error.msg);
        return;
    }
    if (epoll_ctl(egress->epoll, EPOLL_CTL_ADD, pf_egress_lookup_fd(conn->lookup), &event) < 0) {
        pf_egress_answer(conn, PF_EGRESS_FAILED, 502, "the name cannot be resolved now");
        return;
    }
    pf_egress_dial_lookup(conn);
}

void pf_egress_dial_lookup(struct pf_egress_conn *conn)
{
    struct pf_egress *egress = conn->egress;
    struct pf_egress_lookup *lookup = conn->lookup;
    const struct pf_egress_ip *ips;
    int64_t again;

    if (!pf_egress_lookup_work(lookup)) {
        again = pf_egress_lookup_deadline(lookup);
        if (again < egress->wake)
            egress->wake = again;
        return;
    }
    conn->ip_count = pf_egress_lookup_addresses(lookup, &ips);
    memcpy(conn->ips, ips, conn->ip_count * sizeof *ips);
    if (conn->ip_count == 0)
        snprintf(conn->reason, sizeof conn->reason, "resolve: %s", pf_egress_lookup_fault(lookup));
    pf_egress_conn_leave(conn, false);
    dial_first(conn);
}

void pf_egress_dial_connected(struct pf_egress_conn *conn)
{
    int error = 0;

    if (getsockopt(conn->server.fd, SOL_SOCKET, SO_ERROR, &error, &(socklen_t){ sizeof error }) < 0)
        error = errno;
    if (error) {
        note_failure(conn, error);
        pf_egress_conn_leave(conn, false);
        dial_next(conn);
        return;
    }
    conn->state = PF_EGRESS_RELAYING;
    conn->connected = true;
    pf_egress_conn_say(conn, PF_EGRESS_ALLOWED, "");
    pf_egress_handshake_done(conn);
    pf_egress_conn_until(conn, conn->egress->tuning->idle_ns);
    pf_egress_relay(conn);
}

void pf_egress_dial_timeout(struct pf_egress_conn *conn)
{
    if (conn->state == PF_EGRESS_RESOLVING) {
        pf_egress_answer(conn, PF_EGRESS_FAILED, 504, "resolve: no answer in time");
        return;
    }
    note_failure(conn, ETIMEDOUT);
    pf_egress_conn_leave(conn, false);
    dial_next(conn);
}
