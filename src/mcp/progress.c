/* SPDX-License-Identifier: Apache-2.0 */
/* Progress of requests, for clients that gave a token: the time that has passed, in seconds, and
 * the end of what was printed. */
#include <string.h>
#include <utlist.h>

#include "mcp/call.h"
#include "mcp/state.h"

/* Not more often than this; and a message is not longer. */
#define PROGRESS_NS (PF_MCP_SECOND / 5)
enum { MESSAGE_MAX = 400 };

/* How long a request may be silent: clients give up those of which they hear nothing. And how many
 * of one client are told of at one time. */
#define BEAT_NS (5 * PF_MCP_SECOND)
enum { BEATS_MAX = 32 };

/* The end of a text, from the start of a line or of a character on, without what could move the
 * cursor of a client that shows it. */
static size_t take_tail(const char *text, size_t len, char message[static MESSAGE_MAX])
{
    size_t kept = len < MESSAGE_MAX ? len : MESSAGE_MAX, out = 0;
    const char *in = text + len - kept;
    const char *line = kept < len ? memchr(in, '\n', kept - 1) : NULL;

    if (line)
        in = line + 1;
    while (kept < len && !line && in < text + len && (*in & 0xc0) == 0x80)
        in++;
    for (; in < text + len; in++) {
        unsigned char byte = (unsigned char)*in;
        message[out++] = byte == '\n' || (byte >= 0x20 && byte != 0x7f) ? *in : ' ';
    }
    return out;
}

static json_t *params_of(json_t *token, int64_t passed_ns, json_t *message)
{
    json_t *params = json_object();
    int bad = pf_mcp_put(params, "progressToken", json_incref(token));

    bad |= pf_mcp_put(params, "progress", json_real((double)passed_ns / 1e9));
    if (message)
        bad |= pf_mcp_put(params, "message", message);
    return pf_mcp_whole(params, bad);
}

void pf_mcp_progress(struct pf_mcp_call *call, const char *message, size_t len)
{
    struct pf_mcp_session *session = call->session;
    int64_t now = pf_mcp_now();
    json_t *text = NULL;
    char tail[MESSAGE_MAX];
    bool due;

    if (!call->progress)
        return;
    pthread_mutex_lock(&session->lock);
    due = now - call->progressed_ns >= PROGRESS_NS;
    if (due)
        call->progressed_ns = now;
    pthread_mutex_unlock(&session->lock);
    if (!due)
        return;
    if (call->version >= PF_MCP_2025_03_26)
        text = pf_mcp_text(tail, take_tail(message, len, tail));
    pf_mcp_notify(session, call->origin, "notifications/progress",
                  params_of(call->progress, now - call->begun_ns, text), true);
}

/* One that has been silent for long. What it needs is copied: it may end meanwhile. */
struct beat {
    json_t *token;
    void *origin;
    int64_t passed_ns;
};

static int find_silent(struct pf_mcp_session *session, struct beat beats[static BEATS_MAX])
{
    int64_t now = pf_mcp_now();
    struct pf_mcp_call *call;
    int count = 0;

    pthread_mutex_lock(&session->lock);
    DL_FOREACH(session->calls, call) {
        if (!call->progress || now - call->progressed_ns < BEAT_NS || count == BEATS_MAX)
            continue;
        call->progressed_ns = now;
        beats[count++] =
                (struct beat){ json_incref(call->progress), call->origin, now - call->begun_ns };
    }
    pthread_mutex_unlock(&session->lock);
    return count;
}

/* Sending is held from before the look to the end: so nobody can have told the transport meanwhile
 * that it is done with an origin. */
void pf_mcp_session_beat(struct pf_mcp_session *session)
{
    struct beat beats[BEATS_MAX];
    int count;

    if (pthread_mutex_trylock(&session->out) != 0)
        return;
    count = session->ended ? 0 : find_silent(session, beats);
    for (int i = 0; i < count; i++) {
        json_t *params = params_of(beats[i].token, beats[i].passed_ns, NULL);
        pf_mcp_notify_locked(session, beats[i].origin, "notifications/progress", params);
        json_decref(beats[i].token);
    }
    pthread_mutex_unlock(&session->out);
}
