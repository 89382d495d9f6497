/* SPDX-License-Identifier: Apache-2.0 */
/* A client's roots: the first directory among them becomes the seed, when no other is named. */
#include "mcp/call.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "mcp/content.h"
#include "mcp/state.h"

void pf_mcp_ask_roots(struct pf_mcp_session *session)
{
    const struct pf_options *options = session->server->options;
    bool wanted = session->local && !options->seed && !options->workspace && !options->no_roots;
    json_t *request = NULL;
    json_int_t id;
    int bad;

    pthread_mutex_lock(&session->lock);
    wanted = wanted && session->offers_roots && !session->roots_id;
    if (wanted)
        session->roots_id = ++session->next_id;
    id = session->roots_id;
    pthread_mutex_unlock(&session->lock);
    if (!wanted)
        return;
    pf_mcp_workspace_asked(&session->server->workspace);
    request = json_object();
    bad = pf_mcp_put(request, "jsonrpc", json_string("2.0"));
    bad |= pf_mcp_put(request, "id", json_integer(id));
    bad |= pf_mcp_put(request, "method", json_string("roots/list"));
    pf_mcp_send(session, NULL, pf_mcp_whole(request, bad), false);
}

/* The path of a file URI of this machine, or NULL. */
static char *path_of(const char *uri)
{
    static const char scheme[] = "file://", host[] = "localhost";

    if (!uri || strncmp(uri, scheme, strlen(scheme)) != 0)
        return NULL;
    uri += strlen(scheme);
    if (strncmp(uri, host, strlen(host)) == 0)
        uri += strlen(host);
    return *uri == '/' ? pf_mcp_decode(uri) : NULL;
}

/* Whether a directory is not a project, but what projects and secrets lie in: the root, the home
 * directory and what that lies in. Nobody means to have all of that copied. */
static bool is_too_much(const char *directory)
{
    const char *home = secure_getenv("HOME");
    char real[PATH_MAX], real_home[PATH_MAX];
    size_t len;

    if (!realpath(directory, real))
        return true;
    len = strlen(real);
    if (len == 1)
        return true;
    return home && realpath(home, real_home) && strncmp(real_home, real, len) == 0 &&
           (real_home[len] == '/' || real_home[len] == '\0');
}

static char *choose(struct pf_mcp_server *server, const json_t *roots)
{
    const json_t *root;
    struct stat st;
    size_t i;

    json_array_foreach(roots, i, root) {
        char *path = path_of(pf_mcp_string(root, "uri", NULL));

        if (path && stat(path, &st) == 0 && S_ISDIR(st.st_mode) && !is_too_much(path)) {
            if (json_array_size(roots) > 1)
                pf_mcp_log(server, PF_MCP_NOTICE, "of the client's %zu roots only %s is taken",
                           json_array_size(roots), path);
            return path;
        }
        if (path)
            pf_mcp_log(server, PF_MCP_NOTICE,
                       "the client's root %s is not taken: it is no directory, or has the home "
                       "directory in it; --seed names one",
                       path);
        free(path);
    }
    return NULL;
}

void pf_mcp_forget_roots(struct pf_mcp_session *session)
{
    bool asked;

    pthread_mutex_lock(&session->lock);
    asked = session->roots_id;
    session->roots_id = 0;
    pthread_mutex_unlock(&session->lock);
    if (asked)
        pf_mcp_workspace_root(&session->server->workspace, NULL);
}

void pf_mcp_answered(struct pf_mcp_session *session, const struct pf_mcp_message *message)
{
    bool ours;

    pthread_mutex_lock(&session->lock);
    ours = session->roots_id && json_is_integer(message->id) &&
           json_integer_value(message->id) == session->roots_id;
    if (ours)
        session->roots_id = 0;
    pthread_mutex_unlock(&session->lock);
    if (ours)
        pf_mcp_workspace_root(&session->server->workspace,
                              choose(session->server, json_object_get(message->result, "roots")));
}
