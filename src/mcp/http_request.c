/* SPDX-License-Identifier: Apache-2.0 */
#include "mcp/http_request.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>

/* Requests of one client that are under way, streams among them. */
enum { REQUESTS_MAX = 384 };

/* Where each header goes. What a server before us could read differently must not be there twice.
 */
static const struct {
    const char *name;
    size_t slot;
    bool alone;
} known[] = {
    { "Host", offsetof(struct pf_http_headers, host), true },
    { "Origin", offsetof(struct pf_http_headers, origin), true },
    { "Authorization", offsetof(struct pf_http_headers, authorization), true },
    { "Accept", offsetof(struct pf_http_headers, accept), false },
    { "Content-Type", offsetof(struct pf_http_headers, content_type), true },
    { "Content-Length", offsetof(struct pf_http_headers, content_length), true },
    { "Transfer-Encoding", offsetof(struct pf_http_headers, transfer_encoding), true },
    { "Mcp-Session-Id", offsetof(struct pf_http_headers, session), true },
    { "Mcp-Protocol-Version", offsetof(struct pf_http_headers, version), true },
    { "Last-Event-ID", offsetof(struct pf_http_headers, last_event), true },
};

static enum MHD_Result take_header(void *ctx, enum MHD_ValueKind kind, const char *name,
                                   const char *value)
{
    struct pf_http_headers *headers = ctx;

    (void)kind;
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        const char **slot = (const char **)((char *)headers + known[i].slot);
        if (strcasecmp(known[i].name, name) != 0)
            continue;
        headers->twice |= *slot && known[i].alone;
        *slot = value ? value : "";
    }
    return MHD_YES;
}

void pf_http_headers_read(struct MHD_Connection *connection, struct pf_http_headers *ret)
{
    *ret = (struct pf_http_headers){ 0 };
    MHD_get_connection_values(connection, MHD_HEADER_KIND, take_header, ret);
}

static bool refuse(struct pf_http_refusal *refusal, unsigned status, const char *why)
{
    *refusal = (struct pf_http_refusal){ status, why };
    return false;
}

/* Who asks, and by which name: before anything else is told. */
static bool check_door(struct pf_http_request *request, const struct pf_http_headers *headers,
                       struct pf_http_refusal *refusal)
{
    const struct pf_http *http = request->http;

    if (headers->twice)
        return refuse(refusal, MHD_HTTP_BAD_REQUEST, "a header is there twice");
    if (!headers->host)
        return refuse(refusal, MHD_HTTP_BAD_REQUEST, "no Host");
    if (!pf_http_host_ok(&http->names, headers->host))
        return refuse(refusal, MHD_HTTP_FORBIDDEN,
                      "this server has another name; --http-host gives it more");
    if (headers->origin && !pf_http_origin_ok(&http->names, headers->origin))
        return refuse(refusal, MHD_HTTP_FORBIDDEN, "pages of other sites have no business here");
    if (headers->authorization)
        request->token = pf_http_tokens_find(&http->tokens, headers->authorization);
    if (!request->token)
        return refuse(refusal, MHD_HTTP_UNAUTHORIZED,
                      headers->authorization ? "an unknown token" : "a bearer token is needed");
    return true;
}

static bool check_version(const char *version)
{
    static const char *const known_versions[] = { "2024-11-05", "2025-03-26", "2025-06-18",
                                                  "2025-11-25" };

    for (size_t i = 0; i < sizeof(known_versions) / sizeof(known_versions[0]); i++)
        if (strcmp(known_versions[i], version) == 0)
            return true;
    return false;
}

/* What the body is said to be. Its length has to be known: so there is no second way to find its
 * end, which somebody between us and the client could take. */
static bool check_body(struct pf_http_request *request, const struct pf_http_headers *headers,
                       struct pf_http_refusal *refusal)
{
    uint64_t len = 0;

    if (headers->transfer_encoding)
        return refuse(refusal,
                      headers->content_length ? MHD_HTTP_BAD_REQUEST : MHD_HTTP_LENGTH_REQUIRED,
                      "the length of a body is told by Content-Length");
    if (headers->content_length && !pf_http_length(headers->content_length, &len))
        return refuse(refusal, MHD_HTTP_BAD_REQUEST, "a Content-Length that is no number");
    if (request->method != PF_HTTP_POST)
        return len ? refuse(refusal, MHD_HTTP_BAD_REQUEST, "a body that does not belong here")
                   : true;
    if (!headers->content_length)
        return refuse(refusal, MHD_HTTP_LENGTH_REQUIRED, "no Content-Length");
    if (len > PF_MCP_MESSAGE_MAX)
        return refuse(refusal, MHD_HTTP_CONTENT_TOO_LARGE, "a message has at most 8 MiB");
    if (!headers->content_type || !pf_http_is_json(headers->content_type))
        return refuse(refusal, MHD_HTTP_UNSUPPORTED_MEDIA_TYPE, "not application/json");
    request->want = (size_t)len;
    return true;
}

static bool check_accept(const struct pf_http_request *request,
                         const struct pf_http_headers *headers, struct pf_http_refusal *refusal)
{
    const char *accept = headers->accept ? headers->accept : "";

    if (request->method != PF_HTTP_DELETE && !pf_http_accepts(accept, "text/event-stream"))
        return refuse(refusal, MHD_HTTP_NOT_ACCEPTABLE, "a client accepts text/event-stream");
    if (request->method == PF_HTTP_POST && !pf_http_accepts(accept, "application/json"))
        return refuse(refusal, MHD_HTTP_NOT_ACCEPTABLE, "a client accepts application/json, too");
    return true;
}

/* Count the request against what its client may have under way. */
static bool count(struct pf_http_request *request, struct pf_http_refusal *refusal)
{
    bool allowed;

    pthread_mutex_lock(&request->http->lock);
    allowed = ++request->token->requests <= REQUESTS_MAX;
    pthread_mutex_unlock(&request->http->lock);
    return allowed ? true
                   : refuse(refusal, MHD_HTTP_TOO_MANY_REQUESTS,
                            "too many requests of this client are under way");
}

/* Use the session that is named. */
static bool enter(struct pf_http_request *request, const struct pf_http_headers *headers,
                  struct pf_http_refusal *refusal)
{
    struct pf_http *http = request->http;

    if (!headers->session)
        return request->method == PF_HTTP_POST
                       ? true
                       : refuse(refusal, MHD_HTTP_BAD_REQUEST, "no Mcp-Session-Id");
    pthread_mutex_lock(&http->lock);
    request->session = pf_http_session_get(http, request->token, headers->session);
    pthread_mutex_unlock(&http->lock);
    return request->session ? true : refuse(refusal, MHD_HTTP_NOT_FOUND, "no such session");
}

/* What of the protocol's is in headers. */
static bool check_protocol(struct pf_http_request *request, const struct pf_http_headers *headers,
                           struct pf_http_refusal *refusal)
{
    if (headers->version && !check_version(headers->version))
        return refuse(refusal, MHD_HTTP_BAD_REQUEST,
                      "MCP-Protocol-Version: 2024-11-05, 2025-03-26, 2025-06-18 or 2025-11-25");
    request->resumes = request->method == PF_HTTP_GET && headers->last_event;
    if (request->resumes &&
        !pf_http_event_id(headers->last_event, &request->stream, &request->event))
        return refuse(refusal, MHD_HTTP_BAD_REQUEST, "a Last-Event-ID that is not of this server");
    return true;
}

bool pf_http_request_check(struct pf_http_request *request, const char *url, const char *method,
                           const struct pf_http_headers *headers, struct pf_http_refusal *refusal)
{
    request->method = strcmp(method, "POST") == 0     ? PF_HTTP_POST
                      : strcmp(method, "GET") == 0    ? PF_HTTP_GET
                      : strcmp(method, "DELETE") == 0 ? PF_HTTP_DELETE
                                                      : PF_HTTP_OTHER;
    if (!check_door(request, headers, refusal) || !count(request, refusal))
        return false;
    if (strcmp(url, PF_HTTP_PATH) != 0)
        return refuse(refusal, MHD_HTTP_NOT_FOUND, "there is " PF_HTTP_PATH " alone");
    if (request->method == PF_HTTP_OTHER)
        return refuse(refusal, MHD_HTTP_METHOD_NOT_ALLOWED, "POST, GET and DELETE");
    return check_body(request, headers, refusal) && check_accept(request, headers, refusal) &&
           check_protocol(request, headers, refusal) && enter(request, headers, refusal);
}
