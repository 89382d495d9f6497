/* SPDX-License-Identifier: Apache-2.0 */
/* Inside mcp/: a request under way, and what its handler sees of the session and the server. */
#ifndef PF_MCP_CALL_H
#define PF_MCP_CALL_H

#include <pthread.h>
#include <stdint.h>

#include <pinfold/pinfold.h>

#include "mcp/json.h"
#include "mcp/pool.h"
#include "mcp/rpc.h"
#include "mcp/server.h"
#include "mcp/session.h"

/* The revisions that we speak, oldest first: what is older than an enum has not what came then. */
enum pf_mcp_version {
    PF_MCP_NOTHING_AGREED,
    PF_MCP_2024_11_05,
    PF_MCP_2025_03_26, /* annotations of tools, messages of progress, batches */
    PF_MCP_2025_06_18, /* structured results, titles, no batches any more */
    PF_MCP_2025_11_25, /* descriptions of implementations */
};

/* The replies to one message that held several. */
struct pf_mcp_batch {
    unsigned pending;
    json_t *replies;
};

/* A request under way. */
struct pf_mcp_call {
    struct pf_mcp_task task; /* first: what the pool runs */
    struct pf_mcp_session *session;
    json_t *value; /* the whole message, which owns what is below */
    struct pf_mcp_message message;
    const struct pf_mcp_method *method;
    enum pf_mcp_version version; /* when it came */
    void *origin;
    struct pf_mcp_batch *batch; /* NULL: a message of its own */
    struct pinfold_cancel *cancel;
    bool cancelled;   /* by the client: there is no reply */
    json_t *progress; /* the token, or NULL */
    int64_t begun_ns;
    int64_t progressed_ns; /* when the last progress was told */
    struct pf_mcp_call *prev, *next;
};

struct pf_mcp_output;  /* output.h */
struct pf_mcp_process; /* process.h */

/* What answers a method. */
struct pf_mcp_method {
    const char *name;
    /* Returns the result, or NULL with the fault filled; NULL without a fault is want of memory. */
    json_t *(*run)(struct pf_mcp_call *call, struct pf_mcp_fault *fault);
    bool quick; /* never waits: runs on the thread that received it, in the order of arrival */
};

struct pf_mcp_session {
    struct pf_mcp_server *server;
    char *name;
    enum pinfold_attach_mode mode;
    bool local;

    pthread_mutex_t out; /* held while the transport is called, and for ended */
    const struct pf_mcp_transport *transport;
    void *ctx;
    bool ended;

    pthread_mutex_t lock; /* of all below; never held while out is taken */
    unsigned references;  /* one of the transport's, one of each call's and process's */
    bool closing;         /* the client is gone: nothing begins any more */
    enum pf_mcp_version version;
    bool offers_roots;
    int log_level; /* what is less is not told: see log.h */
    struct pf_mcp_call *calls;
    unsigned call_count;
    json_int_t next_id;               /* of our own requests */
    json_int_t roots_id;              /* of the one that asks for roots; 0: none is under way */
    unsigned next_number;             /* of what gets a name */
    struct pf_mcp_output *outputs;    /* oldest first */
    struct pf_mcp_process *processes; /* likewise */

    /* By the workspace's lock: */
    struct pinfold_sandbox *view; /* of a read-only client */
    unsigned life;                /* of the workspace that it is attached to */
    bool renewed; /* that is another than calls before worked in, and nobody has told the client */

    struct pf_mcp_session *prev, *next; /* the server's list, by its lock */
};

/* "2025-11-25", say; NULL for PF_MCP_NOTHING_AGREED. */
const char *pf_mcp_version_text(enum pf_mcp_version version);

/* Find what answers a method; NULL when nothing does. */
const struct pf_mcp_method *pf_mcp_find_method(const char *name);

/* A second has passed: tell who waits long that its request goes on. */
void pf_mcp_session_beat(struct pf_mcp_session *session);

struct pf_mcp_session *pf_mcp_session_ref(struct pf_mcp_session *session);
void pf_mcp_session_unref(struct pf_mcp_session *session);

/* Send a value, which is taken; NULL is want of memory, and nothing is sent. */
void pf_mcp_send(struct pf_mcp_session *session, void *origin, json_t *value, bool lossy);
void pf_mcp_notify(struct pf_mcp_session *session, void *origin, const char *method, json_t *params,
                   bool lossy);
/* The same for who holds session->out, and lossy. */
void pf_mcp_notify_locked(struct pf_mcp_session *session, void *origin, const char *method,
                          json_t *params);

/* Tell the client that a request goes on, if it wants to hear of it and has not just heard. message
 * is what was printed last, raw bytes. */
void pf_mcp_progress(struct pf_mcp_call *call, const char *message, size_t len);

/* Ask the client something. The answer comes to pf_mcp_answered(). */
void pf_mcp_ask_roots(struct pf_mcp_session *session);
void pf_mcp_forget_roots(struct pf_mcp_session *session); /* it will not answer any more */
void pf_mcp_answered(struct pf_mcp_session *session, const struct pf_mcp_message *message);

/* A notification of the client's. */
void pf_mcp_notified(struct pf_mcp_session *session, const struct pf_mcp_message *message);

#endif
