/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The way out of a sandbox that has no network: a proxy in the owner's process, on one socket.
 *
 * The socket listens inside the sandbox's network namespace; accepting on it and dialling outside
 * happens here. HTTP (CONNECT, and plain requests by absolute URL) and SOCKS5 (CONNECT) are told
 * apart by the first byte. Each proxy is one thread, with all signals blocked, that waits for
 * everything at once; what one sandbox can make it hold is bounded.
 */
#ifndef PF_JAIL_EGRESS_H
#define PF_JAIL_EGRESS_H

#include <stdint.h>

#include <pinfold/error.h>

struct pf_egress;
struct pf_egress_rules;

/* At most so many connections at once, or a sixteenth of the process's open files if that is less,
 * and an eighth for all proxies of the process: each takes two of them, four while a name is
 * resolved, and sandboxes shall not use up their owner's. The rest wait in the socket's queue. */
#define PF_EGRESS_CONNECTIONS 256
/* Accepted in a second, so that an agent that connects in a loop does not take its owner's
 * processor, which no limit of the sandbox holds. */
#define PF_EGRESS_RATE 500
#define PF_EGRESS_BUFFER ((size_t)64 * 1024) /* for each direction of a connection */
#define PF_EGRESS_HEAD_MAX ((size_t)16 * 1024)

/* Limits and the resolver; zeroes mean the defaults. */
struct pf_egress_tuning {
    const char *dns_servers; /* "127.0.0.1:5353"; NULL: what /etc/resolv.conf and /etc/hosts say */
    int64_t handshake_ns;    /* from accept to a whole request: 10 s */
    int64_t connect_ns;      /* name resolution, and then connecting: 30 s each */
    int64_t idle_ns;         /* no byte in either direction: 10 min */
    int connections;         /* PF_EGRESS_CONNECTIONS, and not more */
};

enum pf_egress_event_kind {
    PF_EGRESS_REFUSED, /* by the rules, or because the request was malformed (host may be "") */
    PF_EGRESS_FAILED,  /* allowed, and not reached */
    PF_EGRESS_ALLOWED, /* connected */
    PF_EGRESS_CLOSED,  /* an allowed connection has ended: the byte counts are final */
    PF_EGRESS_KINDS,
};

struct pf_egress_event {
    enum pf_egress_event_kind kind;
    const char *protocol; /* "connect", "http" or "socks5" */
    const char *host;     /* a name or an address */
    uint16_t port;
    const char *reason; /* one line, "" when there is nothing to say */
    uint64_t sent;      /* bytes out of the sandbox */
    uint64_t received;
    uint64_t count; /* 1; more: so many, not told one by one, the last of which is described */
};

/* Called on the proxy's thread, and at the end by pf_egress_stop(); the event and its strings are
 * gone when it returns. It must not call pf_egress_stop(). How often it is called is limited
 * (egress_tally.h), but for PF_EGRESS_CLOSED. */
typedef void (*pf_egress_event_fn)(void *ctx, const struct pf_egress_event *event);

/* Read what is allowed: "name", "*.name" (every name below, not the name itself), "*" (every name
 * with a public address), an address, or a network such as 10.0.0.0/8; each with an optional
 * ":port", IPv6 then in brackets ("[fd00::/8]:443"). Without a port an entry means 80 and 443. A
 * string may hold several, with commas between them and no blanks.
 *
 * An address that is not public (loopback, private, link-local, metadata...) needs an entry that
 * lies wholly within its special range: 0.0.0.0/0 allows every public address, and no other. An
 * address of this machine needs an entry for just that address.
 *
 * allow      borrowed, NULL-terminated; NULL allows nothing
 * ret_rules  receives the rules; caller owns, pf_egress_rules_free()
 *
 * Returns 0, -PINFOLD_EVALUE (naming the entry) or -PINFOLD_ENOMEM. Threads: any. */
int pf_egress_rules_new(const char *const *allow, struct pf_egress_rules **ret_rules,
                        struct pinfold_error *err);
void pf_egress_rules_free(struct pf_egress_rules *rules);

/* Change limits before the start. tuning and its string are copied. Returns 0 or -PINFOLD_ENOMEM.
 */
int pf_egress_rules_tune(struct pf_egress_rules *rules, const struct pf_egress_tuning *tuning,
                         struct pinfold_error *err);

/* Serve a listening TCP socket until stopped.
 *
 * listen_fd  owned on success; made non-blocking
 * rules      owned on success
 * on_event   borrowed, may be NULL; ctx is handed to it
 * ret        receives the proxy; caller owns, pf_egress_stop()
 *
 * Returns 0, -PINFOLD_EOS or -PINFOLD_ENOMEM. Threads: any. */
int pf_egress_start(int listen_fd, struct pf_egress_rules *rules, pf_egress_event_fn on_event,
                    void *ctx, struct pf_egress **ret, struct pinfold_error *err);

/* Close every connection, join the thread and free everything. NULL is fine. In a fork of the
 * process that started it, which has no such thread, only close what it listens and waits with. */
void pf_egress_stop(struct pf_egress *egress);

#endif
