/* SPDX-License-Identifier: Apache-2.0 */
#include "mcp/server.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "cli/say.h"
#include "mcp/output.h"
#include "mcp/process.h"
#include "mcp/state.h"

/* Requests that run at one time, of all clients; each mostly waits for a command. They are twice as
 * many as one client may have, so that none keeps another waiting. */
enum { THREADS_MAX = 512 };

/* How long output that was cut is kept after it was last looked at. */
#define OUTPUT_NS (1800 * PF_MCP_SECOND)

int pf_mcp_nomem(struct pinfold_error *err)
{
    if (err)
        *err = (struct pinfold_error){ .code = PINFOLD_ENOMEM, .msg = "out of memory" };
    return -PINFOLD_ENOMEM;
}

/* What happens when its time has come, and not because somebody asks: once a second. */
static void *keep(void *ctx)
{
    struct pf_mcp_server *server = ctx;
    struct pf_mcp_session *session;
    struct timespec until;

    pthread_mutex_lock(&server->lock);
    while (!server->ending) {
        DL_FOREACH(server->sessions, session) {
            pf_mcp_output_expire(session, OUTPUT_NS);
            pf_mcp_session_beat(session);
        }
        pthread_mutex_unlock(&server->lock);
        pf_mcp_workspace_expire(server);
        until = pf_mcp_after(PF_MCP_SECOND);
        pthread_mutex_lock(&server->lock);
        while (!server->ending)
            if (pthread_cond_timedwait(&server->changed, &server->lock, &until) != 0)
                break;
    }
    pthread_mutex_unlock(&server->lock);
    return NULL;
}

static void free_server(struct pf_mcp_server *server)
{
    pf_mcp_pool_free(server->pool);
    pf_mcp_audit_done(&server->audit);
    pthread_cond_destroy(&server->changed);
    pthread_mutex_destroy(&server->lock);
    free(server);
}

int pf_mcp_server_new(const struct pf_options *options, struct pf_mcp_server **ret,
                      struct pinfold_error *err)
{
    struct pf_mcp_server *server = calloc(1, sizeof(*server));
    int r, failed;

    if (!server)
        return pf_mcp_nomem(err);
    server->options = options;
    pthread_mutex_init(&server->lock, NULL);
    pf_mcp_cond_init(&server->changed);
    pf_mcp_audit_init(&server->audit);
    pf_mcp_workspace_init(&server->workspace);
    r = pf_mcp_pool_new(THREADS_MAX, &server->pool, err);
    failed = r < 0 ? 0 : pthread_create(&server->keeper, NULL, keep, server);
    if (failed) {
        *err = (struct pinfold_error){ .code = PINFOLD_EOS, .sys_errno = failed };
        snprintf(err->msg, sizeof(err->msg), "make a thread: %s", pf_error_words(failed));
        r = -PINFOLD_EOS;
    }
    if (r < 0) {
        free_server(server);
        return r;
    }
    *ret = server;
    return 0;
}

int pf_mcp_server_free(struct pf_mcp_server *server, struct pinfold_error *err)
{
    int r;

    if (!server)
        return 0;
    pthread_mutex_lock(&server->lock);
    server->ending = true;
    pthread_cond_broadcast(&server->changed);
    pthread_mutex_unlock(&server->lock);
    pthread_join(server->keeper, NULL);
    pf_mcp_process_wait(server);
    pf_mcp_pool_drain(server->pool);
    r = pf_mcp_workspace_close(server, err);
    free_server(server);
    return r;
}

void pf_mcp_server_add(struct pf_mcp_server *server, struct pf_mcp_session *session)
{
    pthread_mutex_lock(&server->lock);
    DL_APPEND(server->sessions, session);
    pthread_mutex_unlock(&server->lock);
}

void pf_mcp_server_remove(struct pf_mcp_server *server, struct pf_mcp_session *session)
{
    pthread_mutex_lock(&server->lock);
    DL_DELETE(server->sessions, session);
    pthread_mutex_unlock(&server->lock);
}

/* ---- log messages ---- */

static const char *const words[PF_MCP_LEVELS] = {
    "debug", "info", "notice", "warning", "error", "critical", "alert", "emergency",
};

int pf_mcp_level_of(const char *word)
{
    for (int i = 0; word && i < PF_MCP_LEVELS; i++)
        if (strcmp(words[i], word) == 0)
            return i;
    return -1;
}

static void tell(struct pf_mcp_session *session, enum pf_mcp_level level, const char *line)
{
    json_t *params = json_object();
    int bad = pf_mcp_put(params, "level", json_string(words[level]));

    bad |= pf_mcp_put(params, "logger", json_string("pinfold"));
    bad |= pf_mcp_put(params, "data", pf_mcp_text(line, strlen(line)));
    pf_mcp_notify(session, NULL, "notifications/message", pf_mcp_whole(params, bad), true);
}

void pf_mcp_log(struct pf_mcp_server *server, enum pf_mcp_level level, const char *format, ...)
{
    struct pf_mcp_session *session;
    char line[512];
    va_list args;

    va_start(args, format);
    vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    if (level >= PF_MCP_ERROR)
        pf_say("%s", line);
    else if (level >= PF_MCP_INFO)
        pf_note("%s", line);
    pthread_mutex_lock(&server->lock);
    DL_FOREACH(server->sessions, session) {
        bool wanted;

        pthread_mutex_lock(&session->lock);
        wanted = session->version != PF_MCP_NOTHING_AGREED && (int)level >= session->log_level;
        pthread_mutex_unlock(&session->lock);
        if (wanted)
            tell(session, level, line);
    }
    pthread_mutex_unlock(&server->lock);
}
