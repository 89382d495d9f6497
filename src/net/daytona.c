/* SPDX-License-Identifier: Apache-2.0 */
/* The control plane, and the way to a sandbox's toolbox. */
#include "net/daytona.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "net/daytona_send.h"

#define PAGE "200"
enum { MAX_PAGES = 50 };

/* The API's address, a path, an id, and more path. */
static int set_path(struct pf_daytona *client, struct pf_daytona_request *request, const char *path,
                    const char *id, const char *tail, struct pinfold_error *err)
{
    int r = pf_daytona_url(request, client->config->api_url, NULL, err);

    if (r == 0)
        r = pf_daytona_url(request, path, id, err);
    return r < 0 ? r : pf_daytona_url(request, tail, NULL, err);
}

static int send_for_sandbox(struct pf_daytona *client, struct pf_daytona_request *request,
                            const struct pf_daytona_call *call, json_t **ret,
                            struct pinfold_error *err)
{
    json_t *reply = NULL;
    const char *id;
    int r = pf_daytona_send_json(client, request, call, &reply, err);

    if (r < 0)
        return r;
    id = json_string_value(json_object_get(reply, "id"));
    if (!id || !*id) {
        json_decref(reply);
        return pf_fail(err, PINFOLD_EBACKEND, "Daytona %s: the reply is no sandbox",
                       request->operation);
    }
    *ret = reply;
    return 0;
}

int pf_daytona_create(struct pf_daytona *client, const json_t *body,
                      const struct pf_daytona_call *call, json_t **ret, struct pinfold_error *err)
{
    PF_DAYTONA_BEGIN("POST", "create sandbox");
    int r = set_path(client, &request, "/sandbox", NULL, "", err);

    request.json = body;
    if (r == 0)
        r = send_for_sandbox(client, &request, call, ret, err);
    /* It is the first request whose failure is told. */
    if (r == -PINFOLD_EBACKEND && (err->http_status == 404 || err->http_status == 0))
        pf_wrap(err, r, "no Daytona API is there (DAYTONA_API_URL mostly ends in /api)");
    return r;
}

int pf_daytona_get(struct pf_daytona *client, const char *id, const struct pf_daytona_call *call,
                   json_t **ret, struct pinfold_error *err)
{
    PF_DAYTONA_BEGIN("GET", "get sandbox");
    int r = set_path(client, &request, "/sandbox/", id, "", err);

    return r < 0 ? r : send_for_sandbox(client, &request, call, ret, err);
}

static int act(struct pf_daytona *client, const char *operation, const char *id, const char *tail,
               const struct pf_daytona_call *call, struct pinfold_error *err)
{
    PF_DAYTONA_BEGIN("POST", operation);
    int r = set_path(client, &request, "/sandbox/", id, tail, err);

    return r < 0 ? r : pf_daytona_send_plain(client, &request, call, err);
}

int pf_daytona_start(struct pf_daytona *client, const char *id, const struct pf_daytona_call *call,
                     struct pinfold_error *err)
{
    return act(client, "start sandbox", id, "/start", call, err);
}

int pf_daytona_stop(struct pf_daytona *client, const char *id, const struct pf_daytona_call *call,
                    struct pinfold_error *err)
{
    return act(client, "stop sandbox", id, "/stop?force=false", call, err);
}

int pf_daytona_touch(struct pf_daytona *client, const char *id, const struct pf_daytona_call *call,
                     struct pinfold_error *err)
{
    return act(client, "keep sandbox awake", id, "/last-activity", call, err);
}

int pf_daytona_delete(struct pf_daytona *client, const char *id, const struct pf_daytona_call *call,
                      struct pinfold_error *err)
{
    PF_DAYTONA_BEGIN("DELETE", "delete sandbox");
    int r = set_path(client, &request, "/sandbox/", id, "", err);

    if (r == 0)
        r = pf_daytona_send_plain(client, &request, call, err);
    return r < 0 && err->http_status == 404 ? 0 : r;
}

/* ---- lists ---- */

static int list_page(struct pf_daytona *client, const char *labels, const char *cursor,
                     const struct pf_daytona_call *call, json_t **ret, struct pinfold_error *err)
{
    PF_DAYTONA_BEGIN("GET", "list sandboxes");
    int r = set_path(client, &request, "/sandbox?limit=" PAGE "&labels=", labels, "", err);

    if (r == 0 && cursor)
        r = pf_daytona_url(&request, "&cursor=", cursor, err);
    return r < 0 ? r : pf_daytona_send_json(client, &request, call, ret, err);
}

/* Older services give the list alone, and all of it. Returns 1 when there is more. */
static int take_page(const json_t *page, json_t *all, json_t **ret_cursor)
{
    const json_t *items = json_is_array(page) ? page : json_object_get(page, "items");
    json_t *cursor = json_object_get(page, "nextCursor"), *item;
    size_t i;

    if (!json_is_array(items))
        return -PINFOLD_EBACKEND;
    json_array_foreach(items, i, item) {
        if (json_array_append(all, item) < 0)
            return -PINFOLD_ENOMEM;
    }
    json_decref(*ret_cursor);
    *ret_cursor = json_is_string(cursor) ? json_incref(cursor) : NULL;
    return *ret_cursor != NULL;
}

int pf_daytona_list(struct pf_daytona *client, const json_t *labels,
                    const struct pf_daytona_call *call, json_t **ret, struct pinfold_error *err)
{
    _cleanup_free_ char *text = json_dumps(labels, JSON_COMPACT);
    json_auto_t *all = json_array(), *cursor = NULL;
    int r = text && all ? 1 : pf_fail_nomem(err);

    for (int pages = 0; r == 1 && pages < MAX_PAGES; pages++) {
        json_auto_t *page = NULL;
        r = list_page(client, text, json_string_value(cursor), call, &page, err);
        if (r < 0)
            return r;
        r = take_page(page, all, &cursor);
        if (r == -PINFOLD_ENOMEM)
            return pf_fail_nomem(err);
        if (r < 0)
            return pf_fail(err, PINFOLD_EBACKEND, "Daytona list sandboxes: the reply is no list");
    }
    if (r >= 0)
        *ret = json_incref(all);
    return r < 0 ? r : 0;
}

/* ---- the toolbox ---- */

static int ask_text(struct pf_daytona *client, struct pf_daytona_request *request, const char *key,
                    const struct pf_daytona_call *call, char **ret, struct pinfold_error *err)
{
    json_auto_t *reply = NULL;
    const char *text;
    int r = pf_daytona_send_json(client, request, call, &reply, err);

    if (r < 0)
        return r;
    text = json_string_value(json_object_get(reply, key));
    if (!text || !*text)
        return pf_fail(err, PINFOLD_EBACKEND, "Daytona %s: the reply has no \"%s\"",
                       request->operation, key);
    *ret = strdup(text);
    return *ret ? 0 : pf_fail_nomem(err);
}

/* For services that do not say it in the sandbox object: three generations of them. */
static int ask_base(struct pf_daytona *client, const char *id, const struct pf_daytona_call *call,
                    char **ret, struct pinfold_error *err)
{
    PF_DAYTONA_BEGIN("GET", "find toolbox");
    int r = set_path(client, &request, "/sandbox/", id, "/toolbox-proxy-url", err);

    if (r == 0)
        r = ask_text(client, &request, "url", call, ret, err);
    if (r == 0 || err->http_status != 404)
        return r;
    request.url.len = 0;
    r = set_path(client, &request, "/config", NULL, "", err);
    return r < 0 ? r : ask_text(client, &request, "proxyToolboxUrl", call, ret, err);
}

/* The key goes there: never in the clear, unless the API itself is reached like that. */
static int check_base(const struct pf_daytona *client, const char *base, struct pinfold_error *err)
{
    bool https = strncmp(base, "https://", 8) == 0, http = strncmp(base, "http://", 7) == 0;

    if ((https || (http && strncmp(client->config->api_url, "http://", 7) == 0)) &&
        !strpbrk(base, "?#@ \t\r\n\\") && pf_daytona_words(client, base) == base)
        return 0;
    return pf_fail(err, PINFOLD_EBACKEND, "Daytona: the toolbox has no safe address: \"%s\"",
                   PF_QUOTE(pf_daytona_words(client, base)));
}

static int add_id(char *from, const char *id, const char *tail, char **ret,
                  struct pinfold_error *err)
{
    size_t len = strlen(from);

    while (len > 0 && from[len - 1] == '/')
        len--;
    if (asprintf(ret, "%.*s/%s%s", (int)len, from, id, tail) >= 0)
        return 0;
    *ret = NULL;
    return pf_fail_nomem(err);
}

int pf_daytona_toolbox_find(struct pf_daytona *client, const json_t *sandbox,
                            const struct pf_daytona_call *call, struct pf_daytona_toolbox *ret,
                            struct pinfold_error *err)
{
    /* What stands for itself in an address. */
    static const char id_characters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                        "0123456789-._~";
    const char *id = json_string_value(json_object_get(sandbox, "id"));
    const char *said = json_string_value(json_object_get(sandbox, "toolboxProxyUrl"));
    _cleanup_free_ char *base = NULL;
    const char *tail = "";
    int r = 0;

    if (!id || strspn(id, id_characters) != strlen(id) || strspn(id, ".") == strlen(id))
        return pf_fail(err, PINFOLD_EBACKEND, "Daytona: a sandbox whose id is none");
    if (said && *said)
        base = strdup(said);
    else
        r = ask_base(client, id, call, &base, err);
    if (r < 0 && (err->http_status == 404 || (r == -PINFOLD_EBACKEND && !err->http_status))) {
        /* The oldest of all have it behind their API. */
        *err = (struct pinfold_error)PINFOLD_ERROR_INIT;
        tail = "/toolbox";
        r = 0;
        if (asprintf(&base, "%s/toolbox", client->config->api_url) < 0)
            base = NULL;
    }
    if (r == 0 && !base)
        r = pf_fail_nomem(err);
    if (base)
        r = check_base(client, base, err);
    if (base && r == 0)
        r = add_id(base, id, tail, &ret->base, err);
    ret->client = client;
    ret->slash = false;
    return r;
}

void pf_daytona_toolbox_done(struct pf_daytona_toolbox *toolbox)
{
    free(toolbox->base);
    toolbox->base = NULL;
}

int pf_daytona_dir(struct pf_daytona_toolbox *toolbox, const char *which,
                   const struct pf_daytona_call *call, char **ret, struct pinfold_error *err)
{
    PF_DAYTONA_BEGIN("GET", which);
    int r = pf_daytona_url(&request, toolbox->base, NULL, err);

    if (r == 0)
        r = pf_daytona_url(&request, "/", which, err);
    return r < 0 ? r : ask_text(toolbox->client, &request, "dir", call, ret, err);
}

/* -1: there is none, as the process did not end by itself. */
bool pf_daytona_is_status(const json_t *status)
{
    return json_is_integer(status) && json_integer_value(status) >= -1 &&
           json_integer_value(status) <= 255;
}

int pf_daytona_execute(struct pf_daytona_toolbox *toolbox, const char *command,
                       unsigned timeout_seconds, const struct pf_daytona_call *call,
                       int *ret_status, struct pf_buf *ret_text, struct pinfold_error *err)
{
    PF_DAYTONA_BEGIN("POST", "execute");
    json_auto_t *body = json_pack("{s:s}", "command", command), *reply = NULL;
    const json_t *status, *text;
    int r;

    if (!body || (timeout_seconds &&
                  json_object_set_new(body, "timeout", json_integer(timeout_seconds)) < 0))
        return pf_fail_nomem(err);
    request.json = body;
    request.reply_max = PF_DAYTONA_LARGE_MAX;
    r = pf_daytona_url(&request, toolbox->base, NULL, err);
    if (r == 0)
        r = pf_daytona_url(&request, "/process/execute", NULL, err);
    if (r == 0)
        r = pf_daytona_send_json(toolbox->client, &request, call, &reply, err);
    if (r < 0)
        return r;
    status = json_object_get(reply, "exitCode");
    if (!json_is_integer(status))
        status = json_object_get(reply, "code"); /* of the oldest daemons */
    text = json_object_get(reply, "result");
    if (!pf_daytona_is_status(status) || !json_is_string(text))
        return pf_fail(err, PINFOLD_EBACKEND, "Daytona execute: the reply is no result");
    *ret_status = (int)json_integer_value(status);
    r = pf_buf_append(ret_text, json_string_value(text), json_string_length(text));
    if (r == -PINFOLD_ENOMEM)
        return pf_fail_nomem(err);
    return r < 0 ? pf_fail(err, PINFOLD_EBACKEND, "Daytona execute: the reply is too large") : 0;
}
