/* SPDX-License-Identifier: Apache-2.0 */
/* Files in a sandbox. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "net/daytona_send.h"
#include "net/multipart.h"

static int set_path(const struct pf_daytona_toolbox *toolbox, struct pf_daytona_request *request,
                    const char *tail, const char *path, struct pinfold_error *err)
{
    int r = pf_daytona_url(request, toolbox->base, NULL, err);

    return r < 0 ? r : pf_daytona_url(request, tail, path, err);
}

/* ---- one path ---- */

/* Daemons before 0.178 list at "/files/" only, and those before 0.189 delete there only: they
 * answer with a redirection, or with the text of a router that knows no such path. A path that is
 * not there has no body, or JSON. */
static bool wants_slash(const struct pinfold_error *err)
{
    return err->http_status == 301 || err->http_status == 307 ||
           (err->http_status == 404 && strstr(err->msg, "404 page not found"));
}

static int send_files(struct pf_daytona_toolbox *toolbox, struct pf_daytona_request *request,
                      const char *path, const char *more, const struct pf_daytona_call *call,
                      json_t **ret, struct pinfold_error *err)
{
    bool slash = toolbox->slash;
    int r;

    for (;;) {
        request->url.len = 0;
        r = set_path(toolbox, request, slash ? "/files/?path=" : "/files?path=", path, err);
        if (r == 0)
            r = pf_daytona_url(request, more, NULL, err);
        if (r == 0)
            r = ret ? pf_daytona_send_json(toolbox->client, request, call, ret, err)
                    : pf_daytona_send_plain(toolbox->client, request, call, err);
        if (r == 0 || slash || !wants_slash(err))
            break;
        slash = true;
    }
    if (r == 0)
        toolbox->slash = slash;
    return r;
}

int pf_daytona_files_list(struct pf_daytona_toolbox *toolbox, const char *path,
                          const struct pf_daytona_call *call, json_t **ret,
                          struct pinfold_error *err)
{
    PF_DAYTONA_BEGIN("GET", "list");
    int r;

    request.reply_max = PF_DAYTONA_LARGE_MAX;
    r = send_files(toolbox, &request, path, "", call, ret, err);

    if (r == 0 && !json_is_array(*ret)) {
        json_decref(TAKE(*ret));
        return pf_fail(err, PINFOLD_EBACKEND, "Daytona list: the reply is no list");
    }
    return r;
}

int pf_daytona_file_delete(struct pf_daytona_toolbox *toolbox, const char *path, bool recursive,
                           const struct pf_daytona_call *call, struct pinfold_error *err)
{
    PF_DAYTONA_BEGIN("DELETE", "delete");

    return send_files(toolbox, &request, path, recursive ? "&recursive=true" : "", call, NULL, err);
}

int pf_daytona_file_info(struct pf_daytona_toolbox *toolbox, const char *path,
                         const struct pf_daytona_call *call, json_t **ret,
                         struct pinfold_error *err)
{
    PF_DAYTONA_BEGIN("GET", "look at");
    int r = set_path(toolbox, &request, "/files/info?path=", path, err);

    return r < 0 ? r : pf_daytona_send_json(toolbox->client, &request, call, ret, err);
}

int pf_daytona_folder(struct pf_daytona_toolbox *toolbox, const char *path, unsigned mode,
                      const struct pf_daytona_call *call, struct pinfold_error *err)
{
    PF_DAYTONA_BEGIN("POST", "make directory");
    char tail[32];
    int r = set_path(toolbox, &request, "/files/folder?path=", path, err);

    snprintf(tail, sizeof(tail), "&mode=%o", mode);
    if (r == 0)
        r = pf_daytona_url(&request, tail, NULL, err);
    return r < 0 ? r : pf_daytona_send_plain(toolbox->client, &request, call, err);
}

int pf_daytona_file_move(struct pf_daytona_toolbox *toolbox, const char *from, const char *to,
                         const struct pf_daytona_call *call, struct pinfold_error *err)
{
    PF_DAYTONA_BEGIN("POST", "move");
    int r = set_path(toolbox, &request, "/files/move?source=", from, err);

    if (r == 0)
        r = pf_daytona_url(&request, "&destination=", to, err);
    return r < 0 ? r : pf_daytona_send_plain(toolbox->client, &request, call, err);
}

/* ---- one file out ---- */

struct getting {
    pf_daytona_sink_fn fn;
    void *ctx;
    uint64_t left;
    bool enough;
};

/* A service that does not know ranges sends all of it, of which the rest is not waited for. */
static int take_some(void *ctx, const void *data, size_t len, struct pinfold_error *err)
{
    struct getting *getting = ctx;
    size_t wanted = len > getting->left ? (size_t)getting->left : len;
    int r = wanted > 0 ? getting->fn(getting->ctx, data, wanted, err) : 0;

    getting->left -= wanted;
    getting->enough = r == 0 && wanted < len;
    return getting->enough ? -PINFOLD_EBACKEND : r;
}

int pf_daytona_file_get(struct pf_daytona_toolbox *toolbox, const char *path, uint64_t limit,
                        const struct pf_daytona_call *call, pf_daytona_sink_fn fn, void *ctx,
                        struct pinfold_error *err)
{
    PF_DAYTONA_BEGIN("GET", "download");
    struct getting getting = { fn, ctx, limit, false };
    char range[48];
    int r = set_path(toolbox, &request, "/files/download?path=", path, err);

    if (limit < INT64_MAX && limit > 0) {
        snprintf(range, sizeof(range), "bytes=0-%llu", (unsigned long long)limit - 1);
        request.range = range;
    }
    request.accept = "*/*";
    request.on_body = take_some;
    request.on_body_ctx = &getting;
    if (r == 0)
        r = pf_daytona_send_plain(toolbox->client, &request, call, err);
    /* An empty file has no first byte: that is what 416 says. */
    return r < 0 && (err->http_status == 416 || getting.enough) ? 0 : r;
}

/* ---- many files in ---- */

static int add_files(struct pf_multipart_writer *writer, const struct pf_daytona_put *files,
                     size_t count)
{
    char name[48];
    int r = 0;

    for (size_t i = 0; r == 0 && i < count; i++) {
        const char *last = strrchr(files[i].path, '/');
        snprintf(name, sizeof(name), "files[%zu].path", i);
        r = pf_multipart_add_text(writer, name, files[i].path);
        snprintf(name, sizeof(name), "files[%zu].file", i);
        if (r == 0)
            r = pf_multipart_add_file(writer, name, last ? last + 1 : files[i].path, files[i].data,
                                      files[i].fd, files[i].size);
    }
    return r < 0 ? r : pf_multipart_close(writer);
}

/* What the service says of one file begins with its path, or with its number. */
static const char *complaint_of(const json_t *errors, const char *path, size_t number)
{
    size_t i, len = strlen(path);
    const json_t *item;
    char tags[2][48];

    snprintf(tags[0], sizeof(tags[0]), "file[%zu]:", number);
    snprintf(tags[1], sizeof(tags[1]), "path[%zu]:", number);
    json_array_foreach(errors, i, item) {
        const char *text = json_string_value(item);
        if (text && ((strncmp(text, path, len) == 0 && text[len] == ':') ||
                     strncmp(text, tags[0], strlen(tags[0])) == 0 ||
                     strncmp(text, tags[1], strlen(tags[1])) == 0))
            return text;
    }
    return NULL;
}

static bool is_of(const json_t *item, const char *path)
{
    const char *name = json_string_value(json_object_get(item, "path"));

    return name && strcmp(name, path) == 0;
}

/* Mostly where it stood in the request. */
static const json_t *written(const json_t *list, const char *path, size_t number)
{
    const json_t *item = json_array_get(list, number);
    size_t i;

    if (is_of(item, path))
        return item;
    json_array_foreach(list, i, item) {
        if (is_of(item, path))
            return item;
    }
    return NULL;
}

/* A service that wrote only some says so with status 400; each file must be in its list, with the
 * size it has. */
static void judge_put(const struct pf_daytona *client, const json_t *reply,
                      struct pf_daytona_put *file, size_t number, int status)
{
    const json_t *item = written(json_object_get(reply, "files"), file->path, number);
    const json_t *bytes = json_object_get(item, "bytes");
    const char *text = complaint_of(json_object_get(reply, "errors"), file->path, number);

    file->error = (struct pinfold_error)PINFOLD_ERROR_INIT;
    if (item && !text && (!bytes || (uint64_t)json_integer_value(bytes) == file->size))
        return;
    if (text)
        pf_fail(&file->error, PINFOLD_EBACKEND, "Daytona upload: \"%s\"",
                PF_QUOTE(pf_daytona_words(client, text)));
    else if (item)
        pf_fail(&file->error, PINFOLD_EBACKEND, "Daytona upload \"%s\": %lld of %llu bytes arrived",
                PF_QUOTE(file->path), (long long)json_integer_value(bytes),
                (unsigned long long)file->size);
    else
        pf_fail(&file->error, PINFOLD_EBACKEND, "Daytona upload \"%s\": it was not written",
                PF_QUOTE(file->path));
    file->error.http_status = status;
}

/* The service's own words of status 400 are needed, so the status is looked at here. */
static int send_put(struct pf_daytona_toolbox *toolbox, struct pf_daytona_request *request,
                    const struct pf_daytona_call *call, int *ret_status, json_t **ret,
                    struct pinfold_error *err)
{
    struct pf_http_response response = { 0 };
    int r = pf_daytona_send_any(toolbox->client, request, call, &response, err);

    if (r < 0)
        return r;
    *ret_status = response.status;
    *ret = json_loadb(response.body.data ? response.body.data : "", response.body.len, 0, NULL);
    if ((response.status < 200 || response.status > 299) &&
        (response.status != 400 || !json_is_array(json_object_get(*ret, "errors"))))
        r = pf_daytona_refused(toolbox->client, request->operation, &response, err);
    else if (!json_is_object(*ret))
        r = pf_fail(err, PINFOLD_EBACKEND, "Daytona upload: the reply is no JSON");
    pf_http_response_done(&response);
    return r;
}

int pf_daytona_files_put(struct pf_daytona_toolbox *toolbox, struct pf_daytona_put *files,
                         size_t count, const struct pf_daytona_call *call,
                         struct pinfold_error *err)
{
    PF_DAYTONA_BEGIN("POST", "upload");
    PF_CLEANUP(pf_multipart_writer_done) struct pf_multipart_writer writer;
    json_auto_t *reply = NULL;
    char type[128];
    int r, status = 0;

    pf_multipart_writer_init(&writer);
    if (add_files(&writer, files, count) < 0)
        return pf_fail_nomem(err);
    snprintf(type, sizeof(type), "multipart/form-data; boundary=%s", writer.boundary);
    request.content_type = type;
    request.read_body = pf_multipart_read;
    request.read_ctx = &writer;
    request.body_len = writer.total;
    r = set_path(toolbox, &request, "/files/bulk-upload", NULL, err);
    if (r == 0)
        r = send_put(toolbox, &request, call, &status, &reply, err);
    for (size_t i = 0; r == 0 && i < count; i++)
        judge_put(toolbox->client, reply, &files[i], i, status);
    return r;
}

/* ---- many files out ---- */

struct fetching {
    const struct pf_daytona *client;
    struct pf_daytona_fetch *files;
    size_t count, next; /* the file whose part should come now */
    const struct pf_http_response *response;
    struct pf_multipart_parser parser;
    bool begun;
    struct pf_daytona_fetch *file; /* the part's; NULL: one that nobody asked for */
    bool is_error;
    struct pf_buf message;
};

/* The service names parts by what was asked for; where it does not, they come in that order. A
 * path that was asked for twice comes twice. */
static struct pf_daytona_fetch *find_file(struct fetching *fetching, const char *filename)
{
    for (size_t i = 0; i < fetching->count; i++) {
        size_t at = (fetching->next + i) % fetching->count;
        struct pf_daytona_fetch *file = &fetching->files[at];
        if (file->came || file->error.code || (filename && strcmp(filename, file->path) != 0))
            continue;
        fetching->next = at + 1;
        return file;
    }
    return NULL;
}

static int begin_part(void *ctx, const struct pf_multipart_part *part, struct pinfold_error *err)
{
    struct fetching *fetching = ctx;

    (void)err;
    fetching->file = find_file(fetching, part->filename);
    fetching->is_error = strcmp(part->name, "error") == 0;
    fetching->message.len = 0;
    return 0;
}

static int take_part(void *ctx, const void *data, size_t len, struct pinfold_error *err)
{
    struct fetching *fetching = ctx;
    struct pf_daytona_fetch *file = fetching->file;
    int r;

    if (fetching->is_error) {
        r = pf_buf_append(&fetching->message, data, len);
        return r == -PINFOLD_ENOMEM ? pf_fail_nomem(err) : 0; /* too long: its start is enough */
    }
    if (!file || file->error.code)
        return 0;
    r = file->fn(file->ctx, data, len, &file->error);
    if (r != -PINFOLD_ECANCELLED && r != -PINFOLD_ENOMEM)
        return 0;
    *err = file->error;
    return r;
}

static void fail_part(struct fetching *fetching)
{
    const char *said = fetching->message.data ? fetching->message.data : "";
    json_auto_t *json = json_loadb(said, fetching->message.len, 0, NULL);
    const char *text = json_string_value(json_object_get(json, "message"));
    struct pinfold_error *err = &fetching->file->error;

    pf_fail(err, PINFOLD_EBACKEND, "Daytona download: \"%s\"",
            PF_QUOTE(pf_daytona_words(fetching->client, text && *text ? text : said)));
    err->http_status = (int)json_integer_value(json_object_get(json, "statusCode"));
}

static int end_part(void *ctx, struct pinfold_error *err)
{
    struct fetching *fetching = ctx;

    (void)err;
    if (fetching->file && fetching->is_error)
        fail_part(fetching);
    else if (fetching->file && !fetching->file->error.code)
        fetching->file->came = true;
    fetching->file = NULL;
    return 0;
}

static int take_reply(void *ctx, const void *data, size_t len, struct pinfold_error *err)
{
    struct fetching *fetching = ctx;
    const struct pf_multipart_handler handler = { begin_part, take_part, end_part, fetching };
    const char *type;
    int r = 0;

    if (!fetching->begun) {
        type = pf_http_header(fetching->response, "content-type");
        r = pf_multipart_parser_init(&fetching->parser, type ? type : "", &handler, err);
        fetching->begun = r == 0;
    }
    return r < 0 ? r : pf_multipart_feed(&fetching->parser, data, len, err);
}

static json_t *paths_of(const struct pf_daytona_fetch *files, size_t count)
{
    json_t *paths = json_array(), *body;

    for (size_t i = 0; paths && i < count; i++) {
        if (json_array_append_new(paths, json_string(files[i].path)) < 0) {
            json_decref(paths);
            paths = NULL;
        }
    }
    body = paths ? json_pack("{s:o}", "paths", paths) : NULL;
    return body;
}

int pf_daytona_files_fetch(struct pf_daytona_toolbox *toolbox, struct pf_daytona_fetch *files,
                           size_t count, const struct pf_daytona_call *call,
                           struct pinfold_error *err)
{
    PF_DAYTONA_BEGIN("POST", "download");
    struct pf_http_response response = { 0 };
    struct fetching fetching = { .client = toolbox->client,
                                 .files = files,
                                 .count = count,
                                 .response = &response,
                                 .message = PF_BUF_INIT(4096) };
    json_auto_t *body = paths_of(files, count);
    int r = body ? 0 : pf_fail_nomem(err);

    request.json = body;
    request.accept = "multipart/form-data";
    request.on_body = take_reply;
    request.on_body_ctx = &fetching;
    if (r == 0)
        r = set_path(toolbox, &request, "/files/bulk-download", NULL, err);
    if (r == 0)
        r = pf_daytona_send(toolbox->client, &request, call, &response, err);
    if (r == 0 && !fetching.begun)
        r = pf_fail(err, PINFOLD_EBACKEND, "Daytona download: the reply is empty");
    if (r == 0)
        r = pf_multipart_finish(&fetching.parser, err);
    for (size_t i = 0; r == 0 && i < count; i++)
        if (!files[i].came && !files[i].error.code)
            pf_fail(&files[i].error, PINFOLD_EBACKEND, "Daytona download \"%s\": it did not come",
                    PF_QUOTE(files[i].path));
    if (fetching.begun)
        pf_multipart_parser_done(&fetching.parser);
    pf_buf_done(&fetching.message);
    pf_http_response_done(&response);
    return r;
}
