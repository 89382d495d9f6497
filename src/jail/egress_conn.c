/* SPDX-License-Identifier: Apache-2.0 */
/* A connection's life: made, watched, timed, ended. */
#include "jail/egress_conn.h"

#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/cleanup.h"
#include "base/clock.h"

int pf_egress_total;

/* The kernel's buffers are ours too: what is not sent yet stays little, whatever the bandwidth. */
void pf_egress_conn_tune(int fd)
{
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int));
    setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &(int){ 128 * 1024 }, sizeof(int));
}

struct pf_egress_conn *pf_egress_conn_new(struct pf_egress *egress, int fd)
{
    /* Not calloc: the buffers stay untouched, and so take no memory, until there is traffic. */
    struct pf_egress_conn *conn = malloc(sizeof *conn);

    if (!conn) {
        close(fd);
        return NULL;
    }
    memset(conn, 0, offsetof(struct pf_egress_conn, up));
    conn->up.start = conn->up.end = 0;
    conn->down.start = conn->down.end = 0;
    conn->egress = egress;
    conn->client.fd = fd;
    conn->server.fd = -1;
    conn->client.source = (struct pf_egress_source){ PF_FROM_CLIENT, conn };
    conn->server.source = (struct pf_egress_source){ PF_FROM_SERVER, conn };
    conn->lookup_source = (struct pf_egress_source){ PF_FROM_LOOKUP, conn };
    pf_egress_conn_tune(fd);
    /* The sandbox is near: it needs no large window, and what it fills is the owner's memory. */
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &(int){ 256 * 1024 }, sizeof(int));

    conn->next = egress->conns;
    if (conn->next)
        conn->next->prev = conn;
    egress->conns = conn;
    egress->count++;
    __atomic_fetch_add(&pf_egress_total, 1, __ATOMIC_RELAXED);
    conn->state = PF_EGRESS_HANDSHAKE;
    pf_egress_conn_until(conn, egress->tuning->handshake_ns);
    pf_egress_conn_watch(conn, &conn->client, EPOLLIN);
    return conn;
}

static void close_end(struct pf_egress_conn *conn, struct pf_egress_end *end, bool reset)
{
    if (end->fd < 0)
        return;
    /* A process that the owner is just forking has a copy of the descriptor for a moment: closing
     * this one would then neither end its events nor send anything. */
    epoll_ctl(conn->egress->epoll, EPOLL_CTL_DEL, end->fd, NULL);
    if (reset)
        setsockopt(end->fd, SOL_SOCKET, SO_LINGER, &(struct linger){ 1, 0 }, sizeof(struct linger));
    else
        shutdown(end->fd, SHUT_RDWR);
    close(TAKE_FD(end->fd));
    end->watched = false;
}

void pf_egress_conn_leave(struct pf_egress_conn *conn, bool reset)
{
    close_end(conn, &conn->server, reset);
    if (conn->lookup)
        epoll_ctl(conn->egress->epoll, EPOLL_CTL_DEL, pf_egress_lookup_fd(conn->lookup), NULL);
    pf_egress_lookup_free(TAKE(conn->lookup));
}

static void end_conn(struct pf_egress_conn *conn, bool reset)
{
    struct pf_egress *egress = conn->egress;

    if (conn->state == PF_EGRESS_DEAD)
        return;
    if (conn->connected)
        pf_egress_conn_say(conn, PF_EGRESS_CLOSED, "");
    close_end(conn, &conn->client, reset);
    pf_egress_conn_leave(conn, reset);
    conn->state = PF_EGRESS_DEAD;

    if (conn->next)
        conn->next->prev = conn->prev;
    if (conn->prev)
        conn->prev->next = conn->next;
    else
        egress->conns = conn->next;
    conn->next = egress->dead;
    egress->dead = conn;
    egress->count--;
    __atomic_fetch_sub(&pf_egress_total, 1, __ATOMIC_RELAXED);
}

void pf_egress_conn_close(struct pf_egress_conn *conn)
{
    end_conn(conn, false);
}

void pf_egress_conn_abort(struct pf_egress_conn *conn)
{
    end_conn(conn, true);
}

void pf_egress_conn_until(struct pf_egress_conn *conn, int64_t after_ns)
{
    conn->deadline = conn->egress->now + after_ns;
    if (conn->deadline < conn->egress->wake)
        conn->egress->wake = conn->deadline;
}

void pf_egress_conn_watch(struct pf_egress_conn *conn, struct pf_egress_end *end, uint32_t events)
{
    struct epoll_event event = { .events = events, .data.ptr = &end->source };
    /* With no events asked for, a reset is still reported, and so is, again and again, that both
     * directions are closed: then there is nothing more to learn. */
    bool wanted = events != 0 || !end->shut;
    int epoll = conn->egress->epoll;

    if (!wanted) {
        if (end->watched)
            epoll_ctl(epoll, EPOLL_CTL_DEL, end->fd, NULL);
    } else if (!end->watched) {
        if (epoll_ctl(epoll, EPOLL_CTL_ADD, end->fd, &event) < 0) {
            pf_egress_conn_abort(conn);
            return;
        }
    } else if (end->events != events) {
        epoll_ctl(epoll, EPOLL_CTL_MOD, end->fd, &event);
    }
    end->watched = wanted;
    end->events = events;
}

void pf_egress_conn_say(struct pf_egress_conn *conn, enum pf_egress_event_kind kind,
                        const char *reason)
{
    static const char *const names[] = { [PF_BY_UNKNOWN] = "",
                                         [PF_BY_CONNECT] = "connect",
                                         [PF_BY_HTTP] = "http",
                                         [PF_BY_SOCKS] = "socks5" };
    struct pf_egress_event event = {
        .kind = kind,
        .protocol = names[conn->protocol],
        .host = conn->host.text,
        .port = conn->port,
        .reason = reason,
        .sent = conn->sent,
        .received = conn->received,
        .count = 1,
    };
    struct pf_tally *tally = &conn->egress->tally;

    if (kind != PF_EGRESS_CLOSED)
        pf_tally_add(tally, &event, conn->egress->now);
    else if (tally->tell)
        tally->tell(tally->ctx, &event);
    if (tally->due < conn->egress->wake)
        conn->egress->wake = tally->due;
}
