/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions of commands in a sandbox. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "net/daytona_logs.h"
#include "net/daytona_send.h"

/* The address of a session, of a command in it when id is not NULL, and more. */
static int set_path(const struct pf_daytona_toolbox *toolbox, struct pf_daytona_request *request,
                    const char *session, const char *id, const char *tail,
                    struct pinfold_error *err)
{
    int r = pf_daytona_url(request, toolbox->base, NULL, err);

    if (r == 0)
        r = pf_daytona_url(request, "/process/session", NULL, err);
    if (r == 0 && session)
        r = pf_daytona_url(request, "/", session, err);
    if (r == 0 && id)
        r = pf_daytona_url(request, "/command/", id, err);
    return r < 0 ? r : pf_daytona_url(request, tail, NULL, err);
}

int pf_daytona_session_create(struct pf_daytona_toolbox *toolbox, const char *session,
                              const struct pf_daytona_call *call, struct pinfold_error *err)
{
    PF_DAYTONA_BEGIN("POST", "create session");
    json_auto_t *body = json_pack("{s:s}", "sessionId", session);
    int r;

    if (!body)
        return pf_fail_nomem(err);
    request.json = body;
    r = set_path(toolbox, &request, NULL, NULL, "", err);
    return r < 0 ? r : pf_daytona_send_plain(toolbox->client, &request, call, err);
}

int pf_daytona_session_exec(struct pf_daytona_toolbox *toolbox, const char *session,
                            const char *command, const struct pf_daytona_call *call, char **ret_id,
                            struct pinfold_error *err)
{
    PF_DAYTONA_BEGIN("POST", "run command");
    json_auto_t *body = json_pack("{s:s, s:b}", "command", command, "runAsync", 1), *reply = NULL;
    const char *id;
    int r;

    if (!body)
        return pf_fail_nomem(err);
    request.json = body;
    r = set_path(toolbox, &request, session, NULL, "/exec", err);
    if (r == 0)
        r = pf_daytona_send_json(toolbox->client, &request, call, &reply, err);
    if (r < 0)
        return r;
    id = json_string_value(json_object_get(reply, "cmdId"));
    if (!id || !*id)
        return pf_fail(err, PINFOLD_EBACKEND, "Daytona run command: the reply names no command");
    *ret_id = strdup(id);
    return *ret_id ? 0 : pf_fail_nomem(err);
}

int pf_daytona_session_poll(struct pf_daytona_toolbox *toolbox, const char *session, const char *id,
                            const struct pf_daytona_call *call, bool *ret_done, int *ret_status,
                            struct pinfold_error *err)
{
    PF_DAYTONA_BEGIN("GET", "wait for command");
    json_auto_t *reply = NULL;
    const json_t *status;
    int r = set_path(toolbox, &request, session, id, "", err);

    if (r == 0)
        r = pf_daytona_send_json(toolbox->client, &request, call, &reply, err);
    if (r < 0)
        return r;
    status = json_object_get(reply, "exitCode"); /* missing, or null, while it runs */
    if (!json_is_object(reply) ||
        (status && !pf_daytona_is_status(status) && !json_is_null(status)))
        return pf_fail(err, PINFOLD_EBACKEND, "Daytona wait for command: the reply is no command");
    *ret_done = json_is_integer(status);
    *ret_status = (int)json_integer_value(status);
    return 0;
}

/* ---- logs ---- */

static int take(void *ctx, int stream, const char *data, size_t len)
{
    struct pf_buf *const *streams = ctx;

    return pf_buf_append(streams[stream - 1], data, len);
}

static int split(const char *data, size_t len, struct pf_buf *const *streams)
{
    struct pf_daytona_demux demux = { 0 };
    int r = pf_daytona_demux(&demux, data, len, take, (void *)(uintptr_t)streams);

    return r < 0 ? r : pf_daytona_demux_finish(&demux, take, (void *)(uintptr_t)streams);
}

/* The streams, or the log with its marks; older daemons send that as text, and the oldest without
 * marks: then all is stdout. */
static int take_logs(const struct pf_http_response *response, const json_t *json,
                     struct pf_buf *const *streams)
{
    const char *keys[] = { "stdout", "stderr" };
    const json_t *out = json_object_get(json, "stdout"), *log = json_object_get(json, "output");
    const char *data = response->body.data ? response->body.data : "";
    int r = 0;

    if (json_is_string(out)) {
        for (int i = 0; r == 0 && i < 2; i++) {
            const json_t *text = json_object_get(json, keys[i]);
            if (json_is_string(text))
                r = pf_buf_append(streams[i], json_string_value(text), json_string_length(text));
        }
        return r;
    }
    if (json_is_object(json))
        return split(json_is_string(log) ? json_string_value(log) : "", json_string_length(log),
                     streams);
    if (*data == 1 || *data == 2)
        return split(data, response->body.len, streams);
    return pf_buf_append(streams[0], data, response->body.len);
}

int pf_daytona_session_logs(struct pf_daytona_toolbox *toolbox, const char *session, const char *id,
                            const struct pf_daytona_call *call, struct pf_buf *ret_out,
                            struct pf_buf *ret_errs, struct pinfold_error *err)
{
    PF_DAYTONA_BEGIN("GET", "get logs");
    struct pf_buf *const streams[] = { ret_out, ret_errs };
    struct pf_http_response response = { 0 };
    json_auto_t *json = NULL;
    const char *type;
    int r = set_path(toolbox, &request, session, id, "/logs", err);

    request.accept = "application/json,text/plain";
    request.reply_max = PF_DAYTONA_LARGE_MAX;
    if (r == 0)
        r = pf_daytona_send(toolbox->client, &request, call, &response, err);
    if (r < 0)
        return r;
    type = pf_http_header(&response, "content-type");
    if (type && strncasecmp(type, "application/json", 16) == 0) {
        json = json_loadb(response.body.data ? response.body.data : "", response.body.len,
                          JSON_ALLOW_NUL, NULL);
        if (!json_is_object(json))
            r = pf_fail(err, PINFOLD_EBACKEND, "Daytona get logs: the reply is no JSON");
    }
    if (r == 0)
        r = take_logs(&response, json, streams) < 0 ? pf_fail_nomem(err) : 0;
    pf_http_response_done(&response);
    return r;
}

int pf_daytona_session_delete(struct pf_daytona_toolbox *toolbox, const char *session,
                              const struct pf_daytona_call *call, struct pinfold_error *err)
{
    PF_DAYTONA_BEGIN("DELETE", "delete session");
    int r = set_path(toolbox, &request, session, NULL, "", err);

    if (r == 0)
        r = pf_daytona_send_plain(toolbox->client, &request, call, err);
    return r < 0 && err->http_status == 404 ? 0 : r;
}
