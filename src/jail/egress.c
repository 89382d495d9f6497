/* SPDX-License-Identifier: Apache-2.0 */
/* The proxy's thread: accept, hand events to their connections, keep time. */
#include "jail/egress.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "jail/egress_conn.h"

#define ACCEPT_AGAIN_NS (100 * PF_NS_PER_MS)

static void watch_listener(struct pf_egress *egress, bool accepting)
{
    struct epoll_event event = { .events = EPOLLIN, .data.ptr = &egress->listener };

    if (egress->accepting != accepting)
        epoll_ctl(egress->epoll, accepting ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, egress->listen_fd,
                  &event);
    egress->accepting = accepting;
}

static bool may_accept(struct pf_egress *egress)
{
    if (egress->now - egress->second >= PF_NS_PER_SEC) {
        egress->second = egress->now;
        egress->accepted = 0;
    }
    return egress->accepted < PF_EGRESS_RATE && egress->count < egress->limit &&
           __atomic_load_n(&pf_egress_total, __ATOMIC_RELAXED) < egress->total_limit;
}

static void accept_some(struct pf_egress *egress)
{
    while (may_accept(egress)) {
        int fd = accept4(egress->listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

        egress->accepted += fd >= 0;
        if (fd >= 0 && pf_egress_conn_new(egress, fd))
            continue;
        if (fd < 0 && (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED))
            return;
        break;
    }
    /* Full, too fast, or the process has no descriptors left for us: the others wait in the queue.
     */
    watch_listener(egress, false);
    if (egress->now + ACCEPT_AGAIN_NS < egress->wake)
        egress->wake = egress->now + ACCEPT_AGAIN_NS;
}

static void client_or_server(struct pf_egress_conn *conn, bool server, uint32_t events)
{
    if (events & EPOLLERR && !(server && conn->state == PF_EGRESS_CONNECTING)) {
        /* Reset. Whatever is on its way here or there has lost its end. */
        pf_egress_conn_abort(conn);
        return;
    }
    switch (conn->state) {
    case PF_EGRESS_HANDSHAKE:
        pf_egress_handshake(conn);
        break;
    case PF_EGRESS_CONNECTING:
        if (server)
            pf_egress_dial_connected(conn);
        break;
    case PF_EGRESS_RELAYING:
        pf_egress_relay(conn);
        break;
    case PF_EGRESS_LINGERING:
        if (!server)
            pf_egress_linger(conn);
        break;
    case PF_EGRESS_RESOLVING:
    case PF_EGRESS_DEAD:
        break;
    }
}

/* Returns false when told to stop. */
static bool dispatch(struct pf_egress *egress, const struct epoll_event *event)
{
    struct pf_egress_source *source = event->data.ptr;

    switch (source->what) {
    case PF_FROM_STOP:
        return false;
    case PF_FROM_LISTENER:
        accept_some(egress);
        break;
    case PF_FROM_LOOKUP:
        if (source->conn->state == PF_EGRESS_RESOLVING)
            pf_egress_dial_lookup(source->conn);
        break;
    case PF_FROM_CLIENT:
    case PF_FROM_SERVER:
        client_or_server(source->conn, source->what == PF_FROM_SERVER, event->events);
        break;
    }
    return true;
}

static void timeout(struct pf_egress_conn *conn)
{
    switch (conn->state) {
    case PF_EGRESS_HANDSHAKE:
        pf_egress_answer(conn, PF_EGRESS_REFUSED, 408, "no whole request in time");
        break;
    case PF_EGRESS_RESOLVING:
    case PF_EGRESS_CONNECTING:
        pf_egress_dial_timeout(conn);
        break;
    case PF_EGRESS_LINGERING:
        /* What the kernel has taken, it goes on sending after an orderly close. */
        if (conn->client.shut)
            pf_egress_conn_close(conn);
        else
            pf_egress_conn_abort(conn);
        break;
    case PF_EGRESS_RELAYING:
    case PF_EGRESS_DEAD:
        pf_egress_conn_abort(conn);
        break;
    }
}

/* Deadlines only move away while things go well, so they are looked at only when the nearest of
 * them, as it was at the last look, has come. */
static void keep_time(struct pf_egress *egress)
{
    struct pf_egress_conn *next;

    pf_tally_tick(&egress->tally, egress->now);
    egress->wake = egress->tally.due;
    watch_listener(egress, egress->count < egress->limit);
    for (struct pf_egress_conn *conn = egress->conns; conn; conn = next) {
        next = conn->next;
        if (conn->deadline <= egress->now)
            timeout(conn);
        else if (conn->lookup)
            pf_egress_dial_lookup(conn);
        if (conn->state != PF_EGRESS_DEAD && conn->deadline < egress->wake)
            egress->wake = conn->deadline;
    }
}

static void bury(struct pf_egress *egress)
{
    if (egress->dead && egress->count < egress->limit)
        watch_listener(egress, true);
    while (egress->dead) {
        struct pf_egress_conn *conn = egress->dead;

        egress->dead = conn->next;
        free(conn);
    }
}

static void *serve(void *data)
{
    struct pf_egress *egress = data;
    struct epoll_event events[64];
    bool going = true;

    while (going) {
        int count =
                epoll_wait(egress->epoll, events, PF_COUNT(events), pf_clock_poll_ms(egress->wake));

        egress->now = pf_clock_now();
        for (int i = 0; i < count; i++)
            going = dispatch(egress, &events[i]) && going;
        if (egress->now >= egress->wake)
            keep_time(egress);
        bury(egress);
    }
    while (egress->conns)
        pf_egress_conn_abort(egress->conns);
    bury(egress);
    return NULL;
}

static void free_egress(struct pf_egress *egress)
{
    if (egress->epoll >= 0)
        close(egress->epoll);
    if (egress->stop >= 0)
        close(egress->stop);
    free(egress);
}

static void note_self(struct pf_egress *egress)
{
    struct sockaddr_storage self = { 0 };

    if (getsockname(egress->listen_fd, (struct sockaddr *)&self, &(socklen_t){ sizeof self }) < 0 ||
        !pf_egress_ip_from_sockaddr((const struct sockaddr *)&self, &egress->self))
        return;
    /* The port is at the same place in both families. */
    egress->self_port = ntohs(((const struct sockaddr_in *)&self)->sin_port);
}

/* A connection takes four descriptors at most: all proxies together leave the host half of its. */
static void set_limits(struct pf_egress *egress)
{
    struct rlimit files = { .rlim_cur = RLIM_INFINITY };
    rlim_t share;

    getrlimit(RLIMIT_NOFILE, &files);
    share = files.rlim_cur < INT_MAX ? files.rlim_cur / 8 : INT_MAX;
    egress->total_limit = share < 2 ? 2 : (int)share;
    egress->limit = egress->tuning->connections;
    if (egress->limit > egress->total_limit / 2)
        egress->limit = egress->total_limit / 2;
}

static int start_thread(struct pf_egress *egress)
{
    sigset_t all, before;
    int error;

    /* The owner's signals are for the owner's threads. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    error = pthread_create(&egress->thread, NULL, serve, egress);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!error)
        pthread_setname_np(egress->thread, "pf-egress");
    return error;
}

int pf_egress_start(int listen_fd, struct pf_egress_rules *rules, pf_egress_event_fn on_event,
                    void *ctx, struct pf_egress **ret, struct pinfold_error *err)
{
    struct pf_egress *egress = calloc(1, sizeof *egress);
    struct epoll_event event = { .events = EPOLLIN };
    int flags, error;

    if (!egress)
        return pf_fail_nomem(err);
    egress->listen_fd = listen_fd;
    egress->rules = rules;
    egress->tuning = pf_egress_rules_tuning(rules);
    pf_tally_init(&egress->tally, on_event, ctx, pf_clock_now());
    egress->owner = getpid();
    egress->listener.what = PF_FROM_LISTENER;
    egress->stopper.what = PF_FROM_STOP;
    set_limits(egress);
    egress->wake = PF_NEVER;
    egress->stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    egress->epoll = epoll_create1(EPOLL_CLOEXEC);
    event.data.ptr = &egress->stopper;
    flags = fcntl(listen_fd, F_GETFL);
    if (egress->stop < 0 || egress->epoll < 0 || flags < 0 ||
        fcntl(listen_fd, F_SETFL, flags | O_NONBLOCK) < 0 ||
        epoll_ctl(egress->epoll, EPOLL_CTL_ADD, egress->stop, &event) < 0) {
        error = errno;
        free_egress(egress);
        return pf_fail_os(err, error, "start the sandbox's proxy");
    }
    note_self(egress);
    watch_listener(egress, true);
    error = start_thread(egress);
    if (error) {
        free_egress(egress);
        return pf_fail_os(err, error, "start the sandbox's proxy: pthread_create");
    }
    *ret = egress;
    return 0;
}

void pf_egress_stop(struct pf_egress *egress)
{
    uint64_t one = 1;

    if (!egress)
        return;
    if (egress->owner != getpid()) {
        /* The connections are left as they were found: their thread was at work on them. */
        close(egress->listen_fd);
        close(egress->epoll);
        close(egress->stop);
        return;
    }
    /* An eventfd that nobody has written to takes a 1. */
    (void)!write(egress->stop, &one, sizeof one);
    pthread_join(egress->thread, NULL);
    pf_tally_flush(&egress->tally);
    close(egress->listen_fd);
    pf_egress_rules_free(egress->rules);
    free_egress(egress);
}
