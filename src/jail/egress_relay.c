/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Moving bytes between the two sockets, each direction at its own pace.
 *
 * A full pipe is not read into, and so its sender's window closes: that is all the back-pressure
 * there is. The end of one direction is passed on when its pipe has run empty; the other goes on.
 */
#include "jail/egress_conn.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/clock.h"

#define LINGER_NS (2 * PF_NS_PER_SEC)

static size_t pipe_len(const struct pf_egress_pipe *pipe)
{
    return pipe->end - pipe->start;
}

/* Room at the end; what is in the pipe moves to the front only when the end is reached. */
static size_t pipe_room(struct pf_egress_pipe *pipe)
{
    if (pipe->end == sizeof pipe->data && pipe->start > 0) {
        memmove(pipe->data, pipe->data + pipe->start, pipe_len(pipe));
        pipe->end -= pipe->start;
        pipe->start = 0;
    }
    return sizeof pipe->data - pipe->end;
}

bool pf_egress_pipe_put(struct pf_egress_pipe *pipe, const void *data, size_t len)
{
    if (pipe_room(pipe) < len)
        return false;
    memcpy(pipe->data + pipe->end, data, len);
    pipe->end += len;
    return true;
}

bool pf_egress_pipe_fill(struct pf_egress_pipe *pipe, struct pf_egress_end *from, size_t max,
                         size_t *ret_read)
{
    size_t room = pipe_room(pipe);
    ssize_t got;

    *ret_read = 0;
    if (room > max)
        room = max;
    if (from->eof || room == 0)
        return true;
    got = recv(from->fd, pipe->data + pipe->end, room, 0);
    if (got < 0)
        return errno == EAGAIN || errno == EINTR;
    if (got == 0)
        from->eof = true;
    pipe->end += (size_t)got;
    *ret_read = (size_t)got;
    return true;
}

bool pf_egress_pipe_drain(struct pf_egress_pipe *pipe, struct pf_egress_end *to)
{
    ssize_t put;

    if (pipe_len(pipe) == 0)
        return true;
    put = send(to->fd, pipe->data + pipe->start, pipe_len(pipe), MSG_NOSIGNAL);
    if (put < 0)
        return errno == EAGAIN || errno == EINTR;
    pipe->start += (size_t)put;
    if (pipe->start == pipe->end)
        pipe->start = pipe->end = 0;
    return true;
}

/* Whether more is taken from the client: of a plain request, no more than its body. */
static bool is_reading(const struct pf_egress_conn *conn)
{
    return !conn->client.eof &&
           (conn->protocol != PF_BY_HTTP || !pf_egress_body_ended(&conn->body));
}

static bool read_client(struct pf_egress_conn *conn)
{
    struct pf_egress_pipe *up = &conn->up;
    size_t got;
    ssize_t taken;

    if (!is_reading(conn))
        return true;
    if (!pf_egress_pipe_fill(up, &conn->client, SIZE_MAX, &got))
        return false;
    if (conn->protocol != PF_BY_HTTP)
        return true;
    taken = pf_egress_body_take(&conn->body, up->data + up->end - got, got);
    if (taken < 0)
        return false;
    up->end -= got - (size_t)taken;
    /* A body that ends early: a reset tells the origin so. */
    return !conn->client.eof || pf_egress_body_ended(&conn->body);
}

static bool move_up(struct pf_egress_conn *conn)
{
    struct pf_egress_pipe *up = &conn->up;
    size_t before;

    if (!read_client(conn))
        return false;
    before = pipe_len(up);
    if (!pf_egress_pipe_drain(up, &conn->server))
        return false;
    conn->sent += before - pipe_len(up);
    /* The end of a plain request is where its body ends; some origins drop a client that closes. */
    if (conn->client.eof && pipe_len(up) == 0 && !conn->server.shut &&
        conn->protocol != PF_BY_HTTP) {
        shutdown(conn->server.fd, SHUT_WR);
        conn->server.shut = true;
    }
    return true;
}

static bool move_down(struct pf_egress_conn *conn)
{
    size_t got;

    if (!pf_egress_pipe_fill(&conn->down, &conn->server, SIZE_MAX, &got))
        return false;
    conn->received += got;
    return pf_egress_pipe_drain(&conn->down, &conn->client);
}

void pf_egress_relay(struct pf_egress_conn *conn)
{
    uint64_t before = conn->sent + conn->received;
    size_t down_before = pipe_len(&conn->down);

    if (!move_up(conn) || !move_down(conn)) {
        pf_egress_conn_abort(conn);
        return;
    }
    if (conn->sent + conn->received != before || pipe_len(&conn->down) != down_before)
        pf_egress_conn_until(conn, conn->egress->tuning->idle_ns);
    if (conn->server.eof && conn->protocol == PF_BY_HTTP) {
        pf_egress_linger(conn);
        return;
    }
    if (conn->server.eof && pipe_len(&conn->down) == 0 && !conn->client.shut) {
        shutdown(conn->client.fd, SHUT_WR);
        conn->client.shut = true;
    }
    if (conn->client.shut && conn->server.shut) {
        pf_egress_conn_close(conn);
        return;
    }
    pf_egress_conn_watch(conn, &conn->client,
                         (is_reading(conn) && pipe_room(&conn->up) > 0 ? EPOLLIN : 0u) |
                                 (pipe_len(&conn->down) > 0 ? EPOLLOUT : 0u));
    if (conn->state == PF_EGRESS_RELAYING)
        pf_egress_conn_watch(conn, &conn->server,
                             (!conn->server.eof && pipe_room(&conn->down) > 0 ? EPOLLIN : 0u) |
                                     (pipe_len(&conn->up) > 0 ? EPOLLOUT : 0u));
}

/* Closing a socket with unread bytes resets it, and the client may lose what was sent last. So,
 * send all, close this direction, and read until the client has closed the other. */
void pf_egress_linger(struct pf_egress_conn *conn)
{
    struct pf_egress_pipe *down = &conn->down;
    size_t got;
    bool alive = true;

    if (conn->state != PF_EGRESS_LINGERING) {
        bool relayed = conn->state == PF_EGRESS_RELAYING;

        conn->state = PF_EGRESS_LINGERING;
        pf_egress_conn_leave(conn, false);
        /* A whole answer may still be on its way to a slow client. */
        pf_egress_conn_until(conn, relayed && pipe_len(down) > 0 ? conn->egress->tuning->idle_ns
                                                                 : LINGER_NS);
    }
    alive = pf_egress_pipe_drain(down, &conn->client);
    if (alive && pipe_len(down) == 0 && !conn->client.shut) {
        shutdown(conn->client.fd, SHUT_WR);
        conn->client.shut = true;
        pf_egress_conn_until(conn, LINGER_NS);
    }
    conn->up.start = conn->up.end = 0;
    if (alive)
        alive = pf_egress_pipe_fill(&conn->up, &conn->client, SIZE_MAX, &got);
    conn->up.end = 0;
    if (!alive || (conn->client.eof && conn->client.shut))
        pf_egress_conn_close(conn);
    else
        pf_egress_conn_watch(conn, &conn->client,
                             (conn->client.eof ? 0u : EPOLLIN) |
                                     (pipe_len(down) > 0 ? EPOLLOUT : 0u));
}
