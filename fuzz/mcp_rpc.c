/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whatever a client sends, a line at a time: each message has the reply that it is due and no
 * other, every reply is a message, and a session can be ended after any of them. The first byte
 * says which revision was agreed on. There is no workspace, and everything runs on one thread.
 */
#include <stdio.h>

#include "cli/box.h"
#include "mcp/state.h"
#include "mcp/tool.h"
#include "fuzz.h"

int __wrap_pf_mcp_pool_run(struct pf_mcp_pool *pool, struct pf_mcp_task *task);

/* What the transport was told of one message. */
struct heard {
    unsigned replies, done;
};

/* ---- in place of what runs ---- */

int __wrap_pf_mcp_pool_run(struct pf_mcp_pool *pool, struct pf_mcp_task *task)
{
    (void)pool;
    task->run(task);
    return 0;
}

int pf_box_open(struct pf_box *box, const struct pf_options *options, const char *workspace,
                struct pinfold_error *err)
{
    (void)box;
    (void)options;
    (void)workspace;
    return pf_mcp_refuse(err, "there is no workspace");
}

int pf_box_close(struct pf_box *box, struct pinfold_error *err)
{
    (void)box;
    (void)err;
    return 0;
}

bool pf_options_remote(const struct pf_options *options)
{
    (void)options;
    return true; /* so that no directory is made for it */
}

/* ---- the transport ---- */

static void hear(void *ctx, void *origin, const char *text, size_t len, bool lossy)
{
    struct heard *heard = origin;
    json_t *value = json_loadb(text, len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);

    (void)lossy;
    if (strcmp(pf_mcp_string(value, "method", NULL) ?: "", "roots/list") == 0)
        *(json_int_t *)ctx = pf_mcp_integer(value, "id", 0);
    demand(value && !memchr(text, '\n', len));
    if (heard && !json_object_get(value, "method")) {
        heard->replies++;
        demand(!heard->done);
        demand(json_is_array(value) || json_object_get(value, "id"));
    }
    json_decref(value);
}

static void hear_done(void *ctx, void *origin)
{
    struct heard *heard = origin;

    (void)ctx;
    heard->done++;
}

static const struct pf_mcp_transport transport = { .send = hear, .done = hear_done };

/* A client that has been asked for its roots is waited for, which takes long. */
static void answer(struct pf_mcp_session *session, json_int_t *id)
{
    char line[128];
    int len =
            snprintf(line, sizeof(line),
                     "{\"jsonrpc\":\"2.0\",\"id\":%lld,\"result\":{\"roots\":[]}}", (long long)*id);

    if (*id)
        pf_mcp_receive(session, line, (size_t)len, NULL);
    *id = 0;
}

static void say(struct pf_mcp_session *session, const char *text, size_t len)
{
    struct heard heard = { 0 };
    bool answered = pf_mcp_receive(session, text, len, &heard);

    /* Nothing was cancelled, since all has run to its end: one reply, or none. */
    demand(heard.done == answered && heard.replies == answered);
}

static void agree(struct pf_mcp_session *session, enum pf_mcp_version version)
{
    char line[256];
    int len = snprintf(line, sizeof(line),
                       "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{"
                       "\"protocolVersion\":\"%s\",\"capabilities\":{\"roots\":{}},"
                       "\"clientInfo\":{}}}",
                       pf_mcp_version_text(version));

    say(session, line, (size_t)len);
    demand(pf_mcp_session_version(session) != NULL);
}

static struct pf_mcp_server *make_server(void)
{
    static struct pf_options options = { .isolated = true };
    static const char *none[1];
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    struct pf_mcp_server *server = NULL;

    options.exclude = options.include = options.env = options.ro = options.rw = none;
    options.net_allow = options.http_hosts = options.tokens = none;
    demand(pf_mcp_tools_open(&err) == 0 && pf_mcp_server_new(&options, &server, &err) == 0);
    return server;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct pf_mcp_server *server;
    static json_int_t asked;
    struct pf_mcp_session_options options = {
        .name = "fuzz", .local = true, .transport = &transport, .ctx = &asked
    };
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    struct pf_mcp_session *session;
    const char *text = (const char *)data, *end = text + size, *line;

    if (size < 1)
        return 0;
    if (!server)
        server = make_server();
    options.mode = data[0] & 8 ? PINFOLD_READ_ONLY : PINFOLD_READ_WRITE;
    demand(pf_mcp_session_new(server, &options, &session, &err) == 0);
    if (data[0] % 5 != PF_MCP_NOTHING_AGREED)
        agree(session, (enum pf_mcp_version)(data[0] % 5));
    for (text++; text < end; text = line + 1) {
        line = memchr(text, '\n', (size_t)(end - text));
        if (!line)
            line = end;
        say(session, text, (size_t)(line - text));
        answer(session, &asked);
    }
    pf_mcp_session_end(session);
    return 0;
}
