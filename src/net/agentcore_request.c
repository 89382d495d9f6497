/* SPDX-License-Identifier: Apache-2.0 */
#include "net/agentcore_request.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/random.h"
#include "net/uri.h"

static int fail_building(const struct pf_agentcore_request *request, int r,
                         struct pinfold_error *err)
{
    if (r == -PINFOLD_ENOMEM)
        return pf_fail_nomem(err);
    return r < 0 ? pf_fail(err, PINFOLD_EVALUE, "AgentCore %s: the request is too large",
                           request->operation)
                 : 0;
}

static int set_path(struct pf_agentcore_request *request, const char *identifier, const char *tail,
                    struct pinfold_error *err)
{
    int r = pf_buf_append_text(&request->path, "/code-interpreters/");

    if (r == 0)
        r = pf_uri_encode(&request->path, identifier, strlen(identifier), "");
    if (r == 0)
        r = pf_buf_append_text(&request->path, tail);
    return fail_building(request, r, err);
}

static int set_query(struct pf_agentcore_request *request, const char *session,
                     struct pinfold_error *err)
{
    int r = pf_buf_append_text(&request->query, "sessionId=");

    if (r == 0)
        r = pf_uri_encode(&request->query, session, strlen(session), "");
    return fail_building(request, r, err);
}

struct writer {
    struct pf_buf *to;
    int result;
};

static int write_json(const char *data, size_t len, void *ctx)
{
    struct writer *writer = ctx;

    writer->result = pf_buf_append(writer->to, data, len);
    return writer->result;
}

static int set_body(struct pf_agentcore_request *request, const json_t *body,
                    struct pinfold_error *err)
{
    struct writer writer = { &request->body, 0 };

    request->has_body = true;
    if (json_dump_callback(body, write_json, &writer, JSON_COMPACT) == 0)
        return 0;
    return fail_building(request, writer.result < 0 ? writer.result : -PINFOLD_ENOMEM, err);
}

/* The members that are not null, in an object of its own. */
static json_t *without_nulls(json_t *members)
{
    json_t *copy = json_object();
    const char *name;
    json_t *value;

    json_object_foreach(members, name, value) {
        if (copy && !json_is_null(value) && json_object_set(copy, name, value) < 0) {
            json_decref(copy);
            copy = NULL;
        }
    }
    return copy;
}

void pf_agentcore_uuid(char ret[static PF_UUID_MAX])
{
    char digits[33];

    pf_random_hex(digits, 32);
    digits[12] = '4';
    digits[16] = "89ab"[digits[16] & 3];
    snprintf(ret, PF_UUID_MAX, "%.8s-%.4s-%.4s-%.4s-%.12s", digits, digits + 8, digits + 12,
             digits + 16, digits + 20);
}

static int set_token(json_t *body, const char *token)
{
    char uuid[PF_UUID_MAX];

    if (json_object_get(body, "clientToken"))
        return 0;
    pf_agentcore_uuid(uuid);
    return json_object_set_new(body, "clientToken", json_string(token ? token : uuid));
}

int pf_agentcore_request_start(struct pf_agentcore_request *request, const char *identifier,
                               json_t *members, struct pinfold_error *err)
{
    PF_CLEANUP(json_decrefp) json_t *body = without_nulls(members);
    int r;

    request->method = "PUT";
    request->operation = "start session";
    if (!body || set_token(body, NULL) < 0)
        return pf_fail_nomem(err);
    r = set_path(request, identifier, "/sessions/start", err);
    return r < 0 ? r : set_body(request, body, err);
}

int pf_agentcore_request_stop(struct pf_agentcore_request *request, const char *identifier,
                              const char *session, const char *token, struct pinfold_error *err)
{
    PF_CLEANUP(json_decrefp) json_t *body = json_object();
    int r;

    request->method = "PUT";
    request->operation = "stop session";
    if (!body || set_token(body, token) < 0)
        return pf_fail_nomem(err);
    r = set_path(request, identifier, "/sessions/stop", err);
    if (r == 0)
        r = set_query(request, session, err);
    return r < 0 ? r : set_body(request, body, err);
}

int pf_agentcore_request_get(struct pf_agentcore_request *request, const char *identifier,
                             const char *session, struct pinfold_error *err)
{
    int r;

    request->method = "GET";
    request->operation = "get session";
    r = set_path(request, identifier, "/sessions/get", err);
    return r < 0 ? r : set_query(request, session, err);
}

int pf_agentcore_request_list(struct pf_agentcore_request *request, const char *identifier,
                              json_t *members, struct pinfold_error *err)
{
    PF_CLEANUP(json_decrefp) json_t *body = without_nulls(members);
    int r;

    request->method = "POST";
    request->operation = "list sessions";
    if (!body)
        return pf_fail_nomem(err);
    r = set_path(request, identifier, "/sessions/list", err);
    return r < 0 ? r : set_body(request, body, err);
}

/* Reading changes nothing, the same files written again are the same, and what is stopped stays
 * so. */
static bool may_repeat(const char *tool)
{
    static const char *const tools[] = { "readFiles", "listFiles", "writeFiles", "getTask",
                                         "stopTask" };

    for (size_t i = 0; i < PF_COUNT(tools); i++)
        if (strcmp(tool, tools[i]) == 0)
            return true;
    return false;
}

int pf_agentcore_request_invoke(struct pf_agentcore_request *request, const char *identifier,
                                const char *session, const char *tool, json_t *arguments,
                                struct pinfold_error *err)
{
    PF_CLEANUP(json_decrefp) json_t *body = json_object();
    PF_CLEANUP(json_decrefp) json_t *given = arguments ? without_nulls(arguments) : NULL;
    int r;

    request->method = "POST";
    request->operation = tool;
    request->session = session;
    request->runs = !may_repeat(tool);
    if (!body || (arguments && !given) ||
        json_object_set_new(body, "name", json_string(tool)) < 0 ||
        (given && json_object_set(body, "arguments", given) < 0))
        return pf_fail_nomem(err);
    r = set_path(request, identifier, "/tools/invoke", err);
    return r < 0 ? r : set_body(request, body, err);
}

void pf_agentcore_request_done(struct pf_agentcore_request *request)
{
    pf_buf_done(&request->path);
    pf_buf_done(&request->query);
    pf_buf_done(&request->body);
}
