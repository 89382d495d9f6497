/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whatever a client sends, a line at a time: each message has the reply that it is due and no
 * other, every reply is a message, and a session can be ended after any of them. The first byte
 * says which revision was agreed on, and whether the first line is the client's roots. There is no
 * workspace, and everything runs on one thread.
 */
#include <stdio.h>
#include <sys/stat.h>

#include "cli/box.h"
#include "mcp/state.h"
#include "mcp/tool.h"
#include "fuzz.h"

int __wrap_pf_mcp_pool_run(struct pf_mcp_pool *pool, struct pf_mcp_task *task);

enum { READ_ONLY = 8, HAS_ROOTS = 128 }; /* of the first byte */

/* What a client was asked, and would answer. */
struct client {
    json_int_t asked;
    const char *roots;
    size_t roots_len;
};

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
        ((struct client *)ctx)->asked = pf_mcp_integer(value, "id", 0);
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
    if (heard)
        heard->done++;
}

static const struct pf_mcp_transport transport = { .send = hear, .done = hear_done };

/* A root that is taken is a directory by its whole path. */
static void check_root(struct pf_mcp_server *server)
{
    struct stat st;

    demand(!server->workspace.root ||
           (server->workspace.root[0] == '/' && stat(server->workspace.root, &st) == 0 &&
            S_ISDIR(st.st_mode)));
}

/* A client that has been asked for its roots is waited for, which takes long: what was no answer is
 * followed by one. */
static void answer(struct pf_mcp_server *server, struct pf_mcp_session *session,
                   struct client *client)
{
    const char *roots[] = { client->roots, "[]" };
    const size_t lens[] = { client->roots_len, 2 };

    for (size_t i = 0; client->asked && i < 2; i++) {
        char *line;
        int len = asprintf(&line, "{\"jsonrpc\":\"2.0\",\"id\":%lld,\"result\":{\"roots\":%.*s}}",
                           (long long)client->asked, (int)lens[i], roots[i]);

        demand(len > 0);
        pf_mcp_receive(session, line, (size_t)len, NULL);
        free(line);
        check_root(server);
    }
    client->asked = 0;
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

/* Returns what is behind the line, and gives its end. */
static const char *take_line(const char *text, const char *end, const char **ret_end)
{
    const char *line = memchr(text, '\n', (size_t)(end - text));

    *ret_end = line ? line : end;
    return line ? line + 1 : end;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct pf_mcp_server *server;
    struct client client = { .roots = "[]", .roots_len = 2 };
    struct pf_mcp_session_options options = {
        .name = "fuzz", .local = true, .transport = &transport, .ctx = &client
    };
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    struct pf_mcp_session *session;
    const char *text = (const char *)data + 1, *end = text + size - 1, *line, *next;

    if (size < 1)
        return 0;
    if (!server)
        server = make_server();
    options.mode = data[0] & READ_ONLY ? PINFOLD_READ_ONLY : PINFOLD_READ_WRITE;
    demand(pf_mcp_session_new(server, &options, &session, &err) == 0);
    if (data[0] & HAS_ROOTS) {
        client.roots = text;
        text = take_line(text, end, &line);
        client.roots_len = (size_t)(line - client.roots);
    }
    if (data[0] % 5 != PF_MCP_NOTHING_AGREED)
        agree(session, (enum pf_mcp_version)(data[0] % 5));
    for (; text < end; text = next) {
        next = take_line(text, end, &line);
        say(session, text, (size_t)(line - text));
        answer(server, session, &client);
    }
    pf_mcp_session_end(session);
    return 0;
}
