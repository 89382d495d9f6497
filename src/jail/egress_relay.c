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

static bool is_holding(const struct pf_egress_conn *conn)
{
    return conn->protocol == PF_BY_HTTP && !conn->replied;
}

/* How much may be read from the server now. A head that is held shall have room to grow. */
static size_t down_room(struct pf_egress_conn *conn)
{
    struct pf_egress_pipe *down = &conn->down;
    size_t room;

    if (!is_holding(conn))
        return pipe_room(down);
    memmove(down->data, down->data + down->start, pipe_len(down));
    down->end -= down->start;
    down->start = 0;
    room = sizeof down->data - down->end;
    room = room > PF_EGRESS_REPLY_GROWTH ? room - PF_EGRESS_REPLY_GROWTH : 0;
    return room < PF_EGRESS_REPLY_MAX - conn->held ? room : PF_EGRESS_REPLY_MAX - conn->held;
}

/* Let whole heads of an answer go, rewritten; all that follows the last one is let go as it is.
 * Returns what is wrong with the answer, or NULL. */
static const char *release_heads(struct pf_egress_conn *conn)
{
    struct pf_egress_pipe *down = &conn->down;
    char head[PF_EGRESS_REPLY_MAX + PF_EGRESS_REPLY_GROWTH];

    while (is_holding(conn)) {
        char *data = down->data + down->end - conn->held;
        size_t len = pf_egress_head_end(data, conn->held, &conn->reply_scanned);
        const char *fault;
        size_t head_len;

        if (len == 0 && conn->held >= PF_EGRESS_REPLY_MAX)
            return "its answer has a head of more than 32 KiB";
        if (len == 0)
            return conn->server.eof ? "it ended without a whole answer" : NULL;
        fault = pf_egress_reply_rewrite(data, len, head, &head_len, &conn->replied);
        if (fault)
            return fault;
        conn->held -= len;
        memmove(data + head_len, data + len, conn->held);
        memcpy(data, head, head_len);
        down->end = down->end - len + head_len;
        conn->reply_scanned = 0;
    }
    conn->held = 0;
    return NULL;
}

/* All but what is held. */
static bool drain_down(struct pf_egress_conn *conn)
{
    struct pf_egress_pipe *down = &conn->down;
    size_t len = pipe_len(down) - conn->held;
    ssize_t put;

    if (conn->held == 0)
        return pf_egress_pipe_drain(down, &conn->client);
    if (len == 0)
        return true;
    put = send(conn->client.fd, down->data + down->start, len, MSG_NOSIGNAL);
    if (put < 0)
        return errno == EAGAIN || errno == EINTR;
    down->start += (size_t)put;
    return true;
}

/* Returns false when the connection is gone. */
static bool move_down(struct pf_egress_conn *conn)
{
    struct pf_egress_pipe *down = &conn->down;
    const char *fault;
    size_t got;

    if (!pf_egress_pipe_fill(down, &conn->server, down_room(conn), &got))
        return false;
    conn->received += got;
    if (is_holding(conn)) {
        conn->held += got;
        fault = release_heads(conn);
        if (fault) {
            down->end -= conn->held;
            conn->held = 0;
            pf_egress_answer(conn, PF_EGRESS_FAILED, 502, fault);
            return true;
        }
    }
    return drain_down(conn);
}

void pf_egress_relay(struct pf_egress_conn *conn)
{
    uint64_t before = conn->sent + conn->received;
    size_t down_before = pipe_len(&conn->down);

    if (!move_up(conn) || !move_down(conn)) {
        pf_egress_conn_abort(conn);
        return;
    }
    if (conn->state != PF_EGRESS_RELAYING)
        return;
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
                                 (pipe_len(&conn->down) > conn->held ? EPOLLOUT : 0u));
    if (conn->state == PF_EGRESS_RELAYING)
        pf_egress_conn_watch(conn, &conn->server,
                             (!conn->server.eof && down_room(conn) > 0 ? EPOLLIN : 0u) |
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
