/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What carries messages between a client and its session. A transport reads messages and gives each
 * to pf_mcp_receive() (session.h); what the session has to say it sends through this table. stdio.c
 * is one. A transport knows nothing of what a message means, except as session.h tells it.
 *
 * origin is the transport's name for what brought a message: the POST of HTTP, say. stdio has one
 * stream for everything and gives NULL. What belongs to a request (its reply, its progress) is sent
 * with the origin of the request; what belongs to none (log messages, requests of our own) with
 * NULL.
 */
#ifndef PF_MCP_TRANSPORT_H
#define PF_MCP_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>

/* The longest message that is taken in, in bytes. A transport drops what is longer while it reads,
 * and answers with pf_mcp_refuse_long(). */
#define PF_MCP_MESSAGE_MAX ((size_t)8 * 1024 * 1024)

struct pf_mcp_transport {
    /* Send one message: text, len bytes of JSON on one line without a newline, borrowed for the
     * time of the call. lossy: drop it rather than wait for a client that does not read. May wait
     * otherwise, but gives up when the transport itself ends. Called from any thread, one at a time
     * for each session; must not call into the session. */
    void (*send)(void *ctx, void *origin, const char *text, size_t len, bool lossy);

    /* Nothing more comes for this origin. Called exactly once, as send is, for each origin that
     * pf_mcp_receive() returned true for, after its reply, or without one when the client has
     * cancelled it. May be NULL. */
    void (*done)(void *ctx, void *origin);
};

#endif
