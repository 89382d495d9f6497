/* SPDX-License-Identifier: Apache-2.0 */
/* What a client asks for, in whichever protocol, and what it is told. */
#include "jail/egress_conn.h"

#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>

static const char *status_text(int status)
{
    switch (status) {
    case 400:
        return "Bad Request";
    case 403:
        return "Forbidden";
    case 408:
        return "Request Timeout";
    case 431:
        return "Request Header Fields Too Large";
    case 504:
        return "Gateway Timeout";
    default:
        return "Bad Gateway";
    }
}

static void put_http_answer(struct pf_egress_conn *conn, int status, const char *reason)
{
    char body[PF_EGRESS_NAME_MAX + 512];
    char head[1024];
    bool v6 = strchr(conn->host.text, ':');
    int len;

    if (conn->port)
        len = snprintf(body, sizeof body, "pinfold: %s%s%s:%d: %s\n", v6 ? "[" : "",
                       conn->host.text, v6 ? "]" : "", conn->port, reason);
    else
        len = snprintf(body, sizeof body, "pinfold: %s\n", reason);
    /* Of an answer to CONNECT most clients show nothing but the status line. */
    snprintf(head, sizeof head,
             "HTTP/1.1 %d %s: %s\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n"
             "Connection: close\r\n\r\n",
             status, status_text(status), reason, len);
    pf_egress_pipe_put(&conn->down, head, strlen(head));
    pf_egress_pipe_put(&conn->down, body, (size_t)len);
}

void pf_egress_answer(struct pf_egress_conn *conn, enum pf_egress_event_kind kind, int http_status,
                      const char *reason)
{
    uint8_t answer[PF_SOCKS_ANSWER_MAX];
    size_t len;

    pf_egress_conn_say(conn, kind, reason);
    if (conn->protocol == PF_BY_CONNECT || conn->protocol == PF_BY_HTTP) {
        put_http_answer(conn, http_status, reason);
    } else if (conn->protocol == PF_BY_SOCKS && conn->socks.stage == PF_SOCKS_READY) {
        len = pf_egress_socks_answer(
                kind == PF_EGRESS_REFUSED ? PF_SOCKS_REFUSED : PF_SOCKS_UNREACHABLE, answer);
        pf_egress_pipe_put(&conn->down, answer, len);
    }
    pf_egress_linger(conn);
}

void pf_egress_handshake_done(struct pf_egress_conn *conn)
{
    static const char established[] = "HTTP/1.1 200 Connection established\r\n\r\n";
    uint8_t answer[PF_SOCKS_ANSWER_MAX];
    size_t len;

    if (conn->protocol == PF_BY_CONNECT) {
        pf_egress_pipe_put(&conn->down, established, sizeof established - 1);
    } else if (conn->protocol == PF_BY_SOCKS) {
        len = pf_egress_socks_answer(PF_SOCKS_DONE, answer);
        pf_egress_pipe_put(&conn->down, answer, len);
    }
}

/* Put the request as its origin shall see it in the place of what came; the body follows. */
static bool rewrite(struct pf_egress_conn *conn, const struct pf_egress_head *head)
{
    struct pf_egress_pipe *up = &conn->up;
    size_t rest = up->end - head->len;
    /* Nothing is on its way down yet: that buffer is free. */
    size_t len = pf_egress_head_rewrite(up->data, head, conn->down.data, sizeof conn->down.data);
    ssize_t body;

    pf_egress_body_init(&conn->body, head);
    body = pf_egress_body_take(&conn->body, up->data + head->len, rest);
    /* At most PF_EGRESS_HEAD_MAX bytes were read so far, so that it fits. */
    if (len == 0 || body < 0 || len + (size_t)body > sizeof up->data)
        return false;
    memmove(up->data + len, up->data + head->len, (size_t)body);
    memcpy(up->data, conn->down.data, len);
    up->start = 0;
    up->end = len + (size_t)body;
    return true;
}

static void read_http(struct pf_egress_conn *conn)
{
    struct pf_egress_pipe *up = &conn->up;
    size_t len = pf_egress_head_end(up->data, up->end, &conn->scanned);
    struct pf_egress_head head;
    const char *fault;

    conn->protocol = PF_BY_HTTP;
    if (len == 0) {
        if (up->end >= PF_EGRESS_HEAD_MAX)
            pf_egress_answer(conn, PF_EGRESS_REFUSED, 431, "a request head of more than 16 KiB");
        return;
    }
    fault = pf_egress_head_parse(up->data, len, &head);
    if (fault) {
        pf_egress_answer(conn, PF_EGRESS_REFUSED, 400, fault);
        return;
    }
    if (head.connect) {
        conn->protocol = PF_BY_CONNECT;
        up->start = len;
    } else if (!rewrite(conn, &head)) {
        pf_egress_answer(conn, PF_EGRESS_REFUSED, 400, "a malformed chunk in the body");
        return;
    }
    conn->host = head.host;
    conn->port = head.port;
    pf_egress_dial(conn);
}

static void read_socks(struct pf_egress_conn *conn)
{
    struct pf_egress_pipe *up = &conn->up;
    uint8_t answer[PF_SOCKS_ANSWER_MAX];
    size_t answer_len;
    ssize_t taken = 1;

    conn->protocol = PF_BY_SOCKS;
    while (taken > 0 && conn->socks.stage != PF_SOCKS_READY) {
        taken = pf_egress_socks_take(&conn->socks, (const uint8_t *)up->data + up->start,
                                     up->end - up->start, answer, &answer_len);
        pf_egress_pipe_put(&conn->down, answer, answer_len);
        if (taken > 0)
            up->start += (size_t)taken;
    }
    if (taken < 0) {
        pf_egress_answer(conn, PF_EGRESS_REFUSED, 400, conn->socks.fault);
    } else if (conn->socks.stage == PF_SOCKS_READY) {
        conn->host = conn->socks.host;
        conn->port = conn->socks.port;
        pf_egress_dial(conn);
    } else if (!pf_egress_pipe_drain(&conn->down, &conn->client)) {
        pf_egress_conn_abort(conn);
    }
}

void pf_egress_handshake(struct pf_egress_conn *conn)
{
    static const uint8_t no_socks4[8] = { 0, 0x5b };
    size_t got;

    if (!pf_egress_pipe_fill(&conn->up, &conn->client, PF_EGRESS_HEAD_MAX - conn->up.end, &got)) {
        pf_egress_conn_abort(conn);
        return;
    }
    /* A client that has closed its side may still wait for an answer to a whole request. */
    if (conn->up.end == 0 && conn->client.eof) {
        pf_egress_conn_close(conn);
        return;
    }
    if (conn->up.end == 0)
        return;
    switch (conn->up.data[0]) {
    case 4:
        pf_egress_pipe_put(&conn->down, no_socks4, sizeof no_socks4);
        pf_egress_answer(conn, PF_EGRESS_REFUSED, 0, "SOCKS4: this proxy has SOCKS5");
        break;
    case 5:
        read_socks(conn);
        break;
    default:
        read_http(conn);
    }
    if (conn->state == PF_EGRESS_HANDSHAKE && conn->client.eof)
        pf_egress_conn_close(conn);
}
