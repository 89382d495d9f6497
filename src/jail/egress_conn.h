/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the proxy share: the proxy, and a connection through it. One thread has both.
 */
#ifndef PF_JAIL_EGRESS_CONN_H
#define PF_JAIL_EGRESS_CONN_H

#include <pthread.h>

#include "jail/egress.h"
#include "jail/egress_head.h"
#include "jail/egress_reply.h"
#include "jail/egress_resolve.h"
#include "jail/egress_rules.h"
#include "jail/egress_socks.h"
#include "jail/egress_tally.h"

struct pf_egress_conn;

/* What epoll reports: whose descriptor it is, and which. */
struct pf_egress_source {
    enum { PF_FROM_LISTENER, PF_FROM_STOP, PF_FROM_CLIENT, PF_FROM_SERVER, PF_FROM_LOOKUP } what;
    struct pf_egress_conn *conn;
};

/* One of the two sockets of a connection. */
struct pf_egress_end {
    struct pf_egress_source source;
    int fd;
    bool watched; /* in the epoll set, for events */
    uint32_t events;
    bool eof;  /* nothing more comes from it */
    bool shut; /* nothing more goes to it */
};

/* Bytes on their way; what does not fit stays with its sender. */
struct pf_egress_pipe {
    size_t start, end;
    char data[PF_EGRESS_BUFFER];
};

enum pf_egress_state {
    PF_EGRESS_HANDSHAKE,  /* reading what the client wants */
    PF_EGRESS_RESOLVING,  /* waiting for the addresses of a name */
    PF_EGRESS_CONNECTING, /* waiting for one of them to answer */
    PF_EGRESS_RELAYING,
    PF_EGRESS_LINGERING, /* sending the last bytes, then waiting for the client to hang up */
    PF_EGRESS_DEAD,      /* to be freed when the events at hand are through */
};

enum pf_egress_protocol { PF_BY_UNKNOWN, PF_BY_CONNECT, PF_BY_HTTP, PF_BY_SOCKS };

struct pf_egress_conn {
    struct pf_egress *egress;
    struct pf_egress_conn *prev, *next;
    enum pf_egress_state state;
    int64_t deadline; /* of the state, or of the silence */

    enum pf_egress_protocol protocol;
    size_t scanned; /* of the head */
    struct pf_egress_socks socks;
    struct pf_egress_body body; /* of a plain request: what may still go out */
    bool replied;               /* the head of its answer has been let through */
    size_t held;                /* until then: bytes at the end of down that have not */
    size_t reply_scanned;
    struct pf_egress_host host;
    uint16_t port;

    struct pf_egress_lookup *lookup;
    struct pf_egress_source lookup_source;
    struct pf_egress_ip ips[PF_EGRESS_ADDRESSES];
    size_t ip_count, ip_next;
    int64_t dial_deadline;
    char reason[400]; /* why the last address was not dialled, or did not answer */
    bool refused;     /* the former */

    bool connected;
    uint64_t sent, received;
    struct pf_egress_end client, server;
    struct pf_egress_pipe up, down;
};

struct pf_egress {
    int listen_fd;
    int epoll;
    int stop; /* eventfd */
    pthread_t thread;
    pid_t owner; /* a fork of which has no such thread */
    struct pf_egress_rules *rules;
    const struct pf_egress_tuning *tuning;
    struct pf_tally tally;
    struct pf_egress_source listener, stopper;
    struct pf_egress_ip self; /* where it listens: never dialled */
    uint16_t self_port;
    struct pf_egress_conn *conns, *dead;
    int count, limit, total_limit;
    bool accepting;
    int64_t second; /* began then, and so many were accepted in it */
    int accepted;
    int64_t now;  /* when the events at hand came */
    int64_t wake; /* no deadline passes before */
};

/* egress_conn.c */
extern int pf_egress_total; /* connections of all proxies of the process; atomic */
struct pf_egress_conn *pf_egress_conn_new(struct pf_egress *egress, int fd); /* owns fd */
void pf_egress_conn_close(struct pf_egress_conn *conn);                      /* in order */
void pf_egress_conn_abort(struct pf_egress_conn *conn); /* by a reset, so that no peer takes what it
                                                           has got for the whole */
void pf_egress_conn_leave(struct pf_egress_conn *conn, bool reset); /* the outside half alone */
void pf_egress_conn_tune(int fd);                                   /* a socket of either end */
void pf_egress_conn_until(struct pf_egress_conn *conn, int64_t after_ns);
void pf_egress_conn_watch(struct pf_egress_conn *conn, struct pf_egress_end *end, uint32_t events);
void pf_egress_conn_say(struct pf_egress_conn *conn, enum pf_egress_event_kind kind,
                        const char *reason);

/* egress_relay.c: called for whatever happens on either socket, once there are two; and to send
 * what is left to the client. */
void pf_egress_relay(struct pf_egress_conn *conn);
void pf_egress_linger(struct pf_egress_conn *conn);
bool pf_egress_pipe_put(struct pf_egress_pipe *pipe, const void *data, size_t len);
/* Both return false when the connection is gone. */
bool pf_egress_pipe_fill(struct pf_egress_pipe *pipe, struct pf_egress_end *from, size_t max,
                         size_t *ret_read);
bool pf_egress_pipe_drain(struct pf_egress_pipe *pipe, struct pf_egress_end *to);

/* egress_handshake.c */
void pf_egress_handshake(struct pf_egress_conn *conn);
void pf_egress_handshake_done(struct pf_egress_conn *conn); /* connected: tell the client */

/* End with an answer to the client. kind is PF_EGRESS_REFUSED or PF_EGRESS_FAILED. */
void pf_egress_answer(struct pf_egress_conn *conn, enum pf_egress_event_kind kind, int http_status,
                      const char *reason);

/* egress_dial.c */
void pf_egress_dial(struct pf_egress_conn *conn);        /* the request is read: decide, and go */
void pf_egress_dial_lookup(struct pf_egress_conn *conn); /* the lookup has something to do */
void pf_egress_dial_connected(
        struct pf_egress_conn *conn); /* the socket has connected, or failed */
void pf_egress_dial_timeout(struct pf_egress_conn *conn);

#endif
