/* SPDX-License-Identifier: Apache-2.0 */
/* The client against what Daytona's own clients were recorded to send, and what they were answered,
 * over real HTTP with a server on loopback that says what it is told. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base64.h"
#include "base/cleanup.h"
#include "net/daytona.h"
#include "daytona_fixture.h"
#include "vectors.h"

/* ---- recordings ---- */

static void body_of(const json_t *message, struct pf_buf *to)
{
    const json_t *body = json_object_get(message, "body");
    const char *text = text_of(body, "text");

    if (strcmp(text_of(body, "encoding"), "base64") == 0)
        assert_int_equal(pf_base64_decode(text, strlen(text), to), 0);
    else
        assert_int_equal(pf_buf_append(to, text, strlen(text)), 0);
}

static const char *header_of(const json_t *message, const char *name)
{
    size_t i;
    const json_t *pair;

    json_array_foreach(json_object_get(message, "headers"), i, pair) {
        if (strcasecmp(json_string_value(json_array_get(pair, 0)), name) == 0)
            return json_string_value(json_array_get(pair, 1));
    }
    return NULL;
}

/* The name of the first file of the reply that is played: not that of the request, in one that was
 * made nameless by halves. */
static char first_name[300];

static void note_first_name(const struct pf_buf *body)
{
    static const char start[] = "filename=\"";
    const char *at = body->len ? memmem(body->data, body->len, start, strlen(start)) : NULL;

    first_name[0] = '\0';
    if (at)
        sscanf(at + strlen(start), "%299[^\"]", first_name);
}

static void play(const json_t *vector)
{
    const json_t *response = json_object_get(vector, "response");
    PF_CLEANUP(pf_buf_done) struct pf_buf body = PF_BUF_INIT(1 << 20);
    const char *type = header_of(response, "content-type");
    char head[300];

    forget();
    body_of(response, &body);
    note_first_name(&body);
    snprintf(head, sizeof(head), "%d X%s%s",
             (int)json_integer_value(json_object_get(response, "status")),
             type ? "\r\nContent-Type: " : "", type ? type : "");
    answer(head, body.data ? body.data : "", body.len);
}

/* The target with escapes and plus signs undone, so that both spellings are one. */
static void plain(const char *from, size_t len, char *to)
{
    for (size_t i = 0; i < len; i++) {
        unsigned c;
        if (from[i] == '%' && sscanf(from + i + 1, "%2x", &c) == 1) {
            *to++ = (char)c;
            i += 2;
        } else {
            *to++ = from[i] == '+' ? ' ' : from[i];
        }
    }
    *to = '\0';
}

static void same_target(const char *name, const json_t *request, const char *sent)
{
    char line[4000], want[4000], got[4000];
    const char *end = strstr(sent, " HTTP/1.1\r\n");

    snprintf(line, sizeof(line), "%s %s%s", text_of(request, "method"), text_of(request, "path"),
             text_of(request, "query"));
    plain(line, strlen(line), want);
    plain(sent, (size_t)(end - sent), got);
    if (strcmp(want, got) != 0)
        fail_msg("%s: \"%s\" was sent, not \"%s\"", name, got, want);
}

static void has_header(const char *name, const char *sent, const char *header, const char *value)
{
    char line[300];

    snprintf(line, sizeof(line), "\r\n%s: %s\r\n", header, value);
    if (!strcasestr(sent, line))
        fail_msg("%s: no header %s: %s in\n%s", name, header, value, sent);
}

static void same_body(const char *name, const json_t *request, const char *sent)
{
    PF_CLEANUP(pf_buf_done) struct pf_buf want = PF_BUF_INIT(1 << 20);
    const char *body = strstr(sent, "\r\n\r\n") + 4;
    json_t *a, *b;

    body_of(request, &want);
    if (want.len == 0) {
        assert_string_equal(body, "");
        return;
    }
    a = json_loads(want.data, 0, NULL);
    b = json_loads(body, 0, NULL);
    if (a && (!json_equal(a, b)))
        fail_msg("%s: \"%s\" was sent, not \"%s\"", name, body, want.data);
    json_decref(a);
    json_decref(b);
}

static void same_request(const char *name, const json_t *vector)
{
    const json_t *request = json_object_get(vector, "request");
    const char *sent = f->requests[0], *version = header_of(request, "x-daytona-sdk-version");
    const char *type = header_of(request, "content-type");

    assert_int_equal(f->request_count, 1);
    same_target(name, request, sent);
    has_header(name, sent, "authorization", "Bearer " KEY);
    if (version)
        has_header(name, sent, "x-daytona-sdk-version", version);
    if (type && strcmp(type, "application/json") == 0)
        has_header(name, sent, "content-type", type);
    if (strcmp(text_of(request, "method"), "POST") == 0 && !strcasestr(sent, "\r\ncontent-length:"))
        fail_msg("%s: the body has no length", name);
    /* Parts of uploads have names drawn at random; of that one download the paths in the reply are
     * others than in the request, which was made nameless. */
    if (!strstr(name, "bulk-upload") && strncmp(name, "043-", 4) != 0)
        same_body(name, request, sent);
}

/* ---- the operations of the recordings ---- */

static int work_dir(void)
{
    _cleanup_free_ char *dir = NULL;
    int r = pf_daytona_dir(&f->toolbox, "work-dir", &f->call, &dir, &f->err);

    if (r == 0)
        assert_string_equal(dir, "/home/daytona");
    return r;
}

static int execute(void)
{
    PF_CLEANUP(pf_buf_done) struct pf_buf text = PF_BUF_INIT(1000);
    int status = -2, r;

    r = pf_daytona_execute(&f->toolbox, "echo hi", 0, &f->call, &status, &text, &f->err);
    if (r == 0) {
        assert_int_equal(status, 0);
        assert_string_equal(text.data, "hi\n");
    }
    return r;
}

static int execute_late(void)
{
    PF_CLEANUP(pf_buf_done) struct pf_buf text = PF_BUF_INIT(1000);
    int status;

    return pf_daytona_execute(&f->toolbox, "echo part; sleep 5", 1, &f->call, &status, &text,
                              &f->err);
}

static int create_session(void)
{
    return pf_daytona_session_create(&f->toolbox, SESSION, &f->call, &f->err);
}

static int exec(void)
{
    _cleanup_free_ char *id = NULL;
    int r = pf_daytona_session_exec(
            &f->toolbox, SESSION,
            "for i in 1 2 3; do echo out$i; echo err$i >&2; sleep 0.3; done; printf nonl; "
            "exit_code() { return 7; }; exit_code",
            &f->call, &id, &f->err);

    if (r == 0)
        assert_string_equal(id, COMMAND);
    return r;
}

static int poll_command(bool want_done)
{
    bool done = !want_done;
    int status = -1;
    int r = pf_daytona_session_poll(&f->toolbox, SESSION, COMMAND, &f->call, &done, &status,
                                    &f->err);

    assert_int_equal(done, want_done);
    if (done)
        assert_int_equal(status, 7);
    return r;
}

static int poll_running(void)
{
    return poll_command(false);
}

static int poll_done(void)
{
    return poll_command(true);
}

static int poll_missing(void)
{
    bool done;
    int status;

    return pf_daytona_session_poll(&f->toolbox, SESSION, "nope", &f->call, &done, &status, &f->err);
}

static int logs(void)
{
    PF_CLEANUP(pf_buf_done) struct pf_buf out = PF_BUF_INIT(1000);
    PF_CLEANUP(pf_buf_done) struct pf_buf errs = PF_BUF_INIT(1000);
    int r = pf_daytona_session_logs(&f->toolbox, SESSION, COMMAND, &f->call, &out, &errs, &f->err);

    if (r == 0) {
        assert_string_equal(out.data, "out1\nout2\nout3\nnonl\n");
        assert_string_equal(errs.data, "err1\nerr2\nerr3\n");
    }
    return r;
}

static int folder(void)
{
    return pf_daytona_folder(&f->toolbox, "work/sub dir", 0755, &f->call, &f->err);
}

static int list(void)
{
    json_auto_t *files = NULL;
    int r = pf_daytona_files_list(&f->toolbox, "work", &f->call, &files, &f->err);

    if (r == 0)
        assert_string_equal(text_of(json_array_get(files, 0), "name"), "a.txt");
    return r;
}

static int list_missing(void)
{
    json_auto_t *files = NULL;

    return pf_daytona_files_list(&f->toolbox, "work/none", &f->call, &files, &f->err);
}

static int info(void)
{
    json_auto_t *file = NULL;
    int r = pf_daytona_file_info(&f->toolbox, "work/a.txt", &f->call, &file, &f->err);

    if (r == 0)
        assert_int_equal(json_integer_value(json_object_get(file, "size")), 6);
    return r;
}

static int move(void)
{
    return pf_daytona_file_move(&f->toolbox, "work/a.txt", "work/c.txt", &f->call, &f->err);
}

static int move_onto(void)
{
    return pf_daytona_file_move(&f->toolbox, "work/c.txt", "work/ok.txt", &f->call, &f->err);
}

static int delete_file(void)
{
    return pf_daytona_file_delete(&f->toolbox, "work/c.txt", false, &f->call, &f->err);
}

static int delete_tree(void)
{
    return pf_daytona_file_delete(&f->toolbox, "work", true, &f->call, &f->err);
}

static int delete_directory(void)
{
    return pf_daytona_file_delete(&f->toolbox, "work", false, &f->call, &f->err);
}

static int delete_session(void)
{
    return pf_daytona_session_delete(&f->toolbox, SESSION, &f->call, &f->err);
}

static int get_sandbox(void)
{
    json_auto_t *sandbox = NULL;

    return pf_daytona_get(f->client, SID, &f->call, &sandbox, &f->err);
}

static int stop_sandbox(void)
{
    return pf_daytona_stop(f->client, SID, &f->call, &f->err);
}

static int start_sandbox(void)
{
    return pf_daytona_start(f->client, SID, &f->call, &f->err);
}

static int delete_sandbox(void)
{
    return pf_daytona_delete(f->client, SID, &f->call, &f->err);
}

static int put_partly(void)
{
    struct pf_daytona_put files[] = {
        { .path = "work/ok.txt", .data = "x", .fd = -1, .size = 1 },
        { .path = "/proc/nope/x.txt", .data = "x", .fd = -1, .size = 1 }
    };
    int r = pf_daytona_files_put(&f->toolbox, files, 2, &f->call, &f->err);

    assert_int_equal(files[0].error.code, 0);
    assert_int_equal(files[1].error.code, PINFOLD_EBACKEND);
    assert_non_null(strstr(files[1].error.msg, "no such file or directory"));
    return r;
}

static int keep(void *ctx, const void *data, size_t len, struct pinfold_error *err)
{
    (void)err;
    return pf_buf_append(ctx, data, len);
}

static int fetch_many(void)
{
    struct pf_buf got[5];
    struct pf_daytona_fetch files[] = { { .path = first_name },
                                        { .path = "work/na\xc3\xafve \"q\".txt" },
                                        { .path = "work/missing.txt" },
                                        { .path = "work" },
                                        { .path = "work/empty.txt" } };
    int r;

    for (int i = 0; i < 5; i++) {
        got[i] = (struct pf_buf)PF_BUF_INIT(1000);
        files[i].fn = keep;
        files[i].ctx = &got[i];
    }
    r = pf_daytona_files_fetch(&f->toolbox, files, 5, &f->call, &f->err);
    if (r == 0) {
        assert_true(files[0].came && files[1].came && files[4].came);
        assert_memory_equal(got[0].data, "\0\1\2\xff\r\n--", 8);
        assert_string_equal(got[1].data, "\xc3\xbcn\xc3\xaf");
        assert_int_equal(files[2].error.http_status, 404);
        assert_int_equal(files[3].error.code, PINFOLD_EBACKEND);
        assert_int_equal(got[4].len, 0);
    }
    for (int i = 0; i < 5; i++)
        pf_buf_done(&got[i]);
    return r;
}

static const struct {
    const char *prefix;
    int (*call)(void);
    int want, status; /* status: of the error */
} exchanges[] = {
    { "002-", get_sandbox, 0, 0 },
    { "005-", work_dir, 0, 0 },
    { "008-", execute, 0, 0 },
    { "009-", execute_late, -PINFOLD_ETIMEOUT, 408 },
    { "012-", create_session, 0, 0 },
    { "013-", create_session, -PINFOLD_EBACKEND, 409 },
    { "014-", exec, 0, 0 },
    { "015-", poll_running, 0, 0 },
    { "024-", poll_done, 0, 0 },
    { "025-", logs, 0, 0 },
    { "034-", poll_missing, -PINFOLD_EBACKEND, 404 },
    { "036-", folder, 0, 0 },
    { "040-", put_partly, 0, 0 },
    { "043-", fetch_many, 0, 0 },
    { "044-", list, 0, 0 },
    { "045-", list_missing, -PINFOLD_EBACKEND, 404 },
    { "046-", info, 0, 0 },
    { "052-", move, 0, 0 },
    { "053-", move_onto, -PINFOLD_EBACKEND, 409 },
    { "054-", delete_file, 0, 0 },
    { "055-", delete_file, -PINFOLD_EBACKEND, 404 },
    { "056-", delete_directory, -PINFOLD_EBACKEND, 400 },
    { "057-", delete_tree, 0, 0 },
    { "058-", delete_session, 0, 0 },
    { "059-", delete_session, 0, 404 }, /* gone is deleted */
    { "065-", stop_sandbox, 0, 0 },
    { "067-", start_sandbox, 0, 0 },
    { "068-", delete_sandbox, 0, 0 },
    { "069-", get_sandbox, -PINFOLD_EBACKEND, 404 },
};

static unsigned compared;

static void compare(const char *name, const json_t *vector)
{
    for (size_t i = 0; i < PF_COUNT(exchanges); i++) {
        int r;
        if (strncmp(name, exchanges[i].prefix, 4) != 0)
            continue;
        play(vector);
        r = exchanges[i].call();
        if (r != exchanges[i].want)
            fail_msg("%s: %d: %s", name, r, f->err.msg);
        if (exchanges[i].status)
            assert_int_equal(f->err.http_status, exchanges[i].status);
        assert_null(strstr(f->err.msg, KEY));
        same_request(name, vector);
        compared++;
    }
}

static void requests_are_as_recorded_and_replies_are_understood(void **state)
{
    (void)state;
    compared = 0;
    each_vector("daytona/recorded", "[0-9]*.json", compare);
    assert_int_equal(compared, PF_COUNT(exchanges));
}

/* ---- what is repeated, and what is not ---- */

static void what_was_throttled_is_asked_again_when_the_service_says(void **state)
{
    (void)state;
    answer_text("429 X\r\nRetry-After-sandbox-lifecycle: 0\r\n"
                "X-RateLimit-Remaining-sandbox-lifecycle: 0",
                "{\"message\":\"ThrottlerException: Too Many Requests\"}");
    answer_text("200 X", "{}");
    assert_int_equal(stop_sandbox(), 0);
    assert_int_equal(f->request_count, 2);
    forget();
    answer_text(
            "429 X\r\nRetry-After-sandbox-create: 3600\r\nX-RateLimit-Remaining-sandbox-create: 0",
            "{}");
    assert_int_equal(stop_sandbox(), -PINFOLD_EBACKEND);
    assert_int_equal(f->request_count, 1);
    assert_int_equal(f->err.retryable, 1);
    assert_non_null(strstr(f->err.msg, "sandbox-create"));
    assert_non_null(strstr(f->err.msg, "3600"));
}

static void when_time_runs_out_the_answer_before_is_told(void **state)
{
    (void)state;
    f->silent = true;
    answer_text("429 X\r\nRetry-After-sandbox-lifecycle: 0\r\n"
                "X-RateLimit-Remaining-sandbox-lifecycle: 0",
                "{}");
    f->reply_count++;
    f->call.deadline = pf_clock_deadline(500 * PF_NS_PER_MS);
    assert_int_equal(stop_sandbox(), -PINFOLD_ETIMEOUT);
    assert_int_equal(f->request_count, 2);
    assert_int_equal(f->err.http_status, 429);
    assert_non_null(strstr(f->err.msg, "no answer in time; before that: "));
    assert_non_null(strstr(f->err.msg, "too many requests of sandbox-lifecycle"));
}

static void bad_credentials_are_shown_once(void **state)
{
    (void)state;
    answer_text("401 X", "{\"message\":\"Invalid credentials for " KEY "\"}");
    assert_int_equal(get_sandbox(), -PINFOLD_EBACKEND);
    assert_int_equal(f->err.http_status, 401);
    assert_int_equal(f->request_count, 1);
    assert_null(strstr(f->err.msg, KEY));
    assert_non_null(strstr(f->err.msg, "DAYTONA_API_KEY"));
    forget();
    answer_text("429 X\r\nRetry-After: 0\r\nX-RateLimit-Remaining-failed-auth: 0", "");
    assert_int_equal(get_sandbox(), -PINFOLD_EBACKEND);
    assert_int_equal(f->request_count, 1);
}

static void only_questions_are_asked_again_after_a_broken_connection(void **state)
{
    (void)state;
    f->reply_count = 1; /* nothing: it hangs up */
    answer_text("200 X", "{\"id\":\"" SID "\"}");
    assert_int_equal(get_sandbox(), 0);
    assert_int_equal(f->request_count, 2);
    forget();
    f->reply_count = 1;
    answer_text("200 X", "{\"exitCode\":0,\"result\":\"hi\\n\"}");
    assert_int_equal(execute(), -PINFOLD_EOS);
    assert_int_equal(f->request_count, 1);
    forget();
    answer_text("502 X", "");
    assert_int_equal(get_sandbox(), -PINFOLD_EBACKEND);
    assert_int_equal(f->request_count, 1);
}

static void errors_in_any_dress_are_one_line(void **state)
{
    static const char *const bodies[] = { "",
                                          "404 page not found\n",
                                          "<html>\n<body>edge</body></html>",
                                          "{\"errors\":[\"one\",\"two\"],\"files\":null}",
                                          "{\"error\":\"words\"}",
                                          "null",
                                          "[1]" };

    (void)state;
    for (size_t i = 0; i < PF_COUNT(bodies); i++) {
        forget();
        answer_text("500 X", bodies[i]);
        assert_int_equal(get_sandbox(), -PINFOLD_EBACKEND);
        assert_int_equal(f->err.http_status, 500);
        assert_null(strchr(f->err.msg, '\n'));
        assert_null(strstr(f->err.msg, "html"));
    }
}

/* ---- older services ---- */

static void the_old_daemons_routes_are_found(void **state)
{
    (void)state;
    answer_text("404 X\r\nContent-Type: text/plain", "404 page not found");
    answer_text("200 X", "[{\"name\":\"a.txt\"}]");
    assert_int_equal(list(), 0);
    assert_non_null(strstr(f->requests[1], "GET /toolbox/" SID "/files/?path=work HTTP"));
    forget();
    answer_text("204 X", "");
    assert_int_equal(delete_file(), 0); /* it is remembered */
    assert_non_null(strstr(f->requests[0], "/files/?path="));
}

static void logs_without_json_are_read(void **state)
{
    (void)state;
    answer_text("200 X\r\nContent-Type: text/plain; charset=utf-8",
                "\1\1\1out1\n\2\2\2err1\nerr2\n\1\1\1out2\nout3\nnonl\n\2\2\2err3\n");
    assert_int_equal(logs(), 0);
    forget();
    answer_text("200 X\r\nContent-Type: application/json",
                "{\"output\":\"\\u0001\\u0001\\u0001out1\\nout2\\nout3\\nnonl\\n"
                "\\u0002\\u0002\\u0002err1\\nerr2\\nerr3\\n\",\"stdout\":null}");
    assert_int_equal(logs(), 0);
}

static void bare_lists_and_pages_of_sandboxes_are_read(void **state)
{
    json_auto_t *labels = json_pack("{s:s}", "app", "rec"), *all = NULL, *bare = NULL;

    (void)state;
    answer_text("200 X", "{\"items\":[{\"id\":\"a\"}],\"nextCursor\":\"n/1\"}");
    answer_text("200 X", "{\"items\":[{\"id\":\"b\"}],\"nextCursor\":null}");
    assert_int_equal(pf_daytona_list(f->client, labels, &f->call, &all, &f->err), 0);
    assert_int_equal(json_array_size(all), 2);
    assert_non_null(strstr(f->requests[0], "labels=%7B%22app%22%3A%22rec%22%7D"));
    assert_null(strstr(f->requests[0], "cursor"));
    assert_non_null(strstr(f->requests[1], "&cursor=n%2F1"));
    forget();
    answer_text("200 X", "[{\"id\":\"a\"}]");
    assert_int_equal(pf_daytona_list(f->client, labels, &f->call, &bare, &f->err), 0);
    assert_int_equal(json_array_size(bare), 1);
}

static void finds(const char *sandbox, const char *want_tail)
{
    json_auto_t *object = json_loads(sandbox, 0, NULL);
    struct pf_daytona_toolbox toolbox = { 0 };
    size_t len, tail = strlen(want_tail);

    assert_int_equal(pf_daytona_toolbox_find(f->client, object, &f->call, &toolbox, &f->err), 0);
    len = strlen(toolbox.base);
    assert_true(len > tail);
    assert_string_equal(toolbox.base + len - tail, want_tail);
    pf_daytona_toolbox_done(&toolbox);
}

static void the_toolbox_of_every_generation_is_found(void **state)
{
    struct pf_daytona_toolbox toolbox = { 0 };
    json_auto_t *evil = json_pack("{s:s, s:s}", "id", "../x", "toolboxProxyUrl", "http://h");

    (void)state;
    finds("{\"id\":\"i\",\"toolboxProxyUrl\":\"https://h/t/\"}", "//h/t/i");
    assert_int_equal(f->request_count, 0);
    answer_text("200 X", "{\"url\":\"http://127.0.0.1/t\"}");
    finds("{\"id\":\"i\"}", "/t/i");
    forget();
    answer_text("404 X", "{}");
    answer_text("200 X", "{\"proxyToolboxUrl\":\"http://127.0.0.1/p\"}");
    finds("{\"id\":\"i\"}", "/p/i");
    forget();
    answer_text("404 X", "{}");
    answer_text("200 X", "{}");
    finds("{\"id\":\"i\"}", "/api/toolbox/i/toolbox");
    assert_int_equal(pf_daytona_toolbox_find(f->client, evil, &f->call, &toolbox, &f->err),
                     -PINFOLD_EBACKEND);
}

static void the_key_does_not_go_in_the_clear_when_the_api_does_not(void **state)
{
    struct pf_daytona_toolbox toolbox = { 0 };
    json_auto_t *sandbox = json_pack("{s:s, s:s}", "id", "i", "toolboxProxyUrl", "http://h/t");
    char *before = f->config.api_url;

    (void)state;
    f->config.api_url = (char[]){ "https://api.example" };
    assert_int_equal(pf_daytona_toolbox_find(f->client, sandbox, &f->call, &toolbox, &f->err),
                     -PINFOLD_EBACKEND);
    f->config.api_url = before;
}

/* ---- files ---- */

static void a_bulk_reply_that_is_cut_is_an_error(void **state)
{
    static const char body[] = "--B\r\nContent-Disposition: form-data; name=\"file\"; "
                               "filename=\"a\"\r\n\r\nabc\r\n--B--";
    PF_CLEANUP(pf_buf_done) struct pf_buf got = PF_BUF_INIT(1000);

    (void)state;
    for (size_t len = 0; len < sizeof(body) - 2; len++) {
        struct pf_daytona_fetch file = { .path = "a", .fn = keep, .ctx = &got };
        forget();
        answer("200 X\r\nContent-Type: multipart/form-data; boundary=B", body, len);
        assert_int_equal(pf_daytona_files_fetch(&f->toolbox, &file, 1, &f->call, &f->err),
                         -PINFOLD_EBACKEND);
        assert_false(file.came && f->err.code == 0);
    }
}

static int count_bytes(void *ctx, const void *data, size_t len, struct pinfold_error *err)
{
    (void)data;
    (void)err;
    *(uint64_t *)ctx += len;
    return 0;
}

static void a_download_ends_where_it_is_to(void **state)
{
    uint64_t count = 0;

    (void)state;
    answer_text("200 X", "0123456789"); /* it knows no ranges */
    assert_int_equal(
            pf_daytona_file_get(&f->toolbox, "/a\xff", 4, &f->call, count_bytes, &count, &f->err),
            0);
    assert_int_equal(count, 4);
    assert_non_null(strstr(f->requests[0], "?path=%2Fa%FF "));
    assert_non_null(strcasestr(f->requests[0], "\r\nrange: bytes=0-3\r\n"));
}

/* ---- credentials ---- */

static void a_jwt_goes_with_its_organization(void **state)
{
    (void)state;
    f->config.organization = strdup("org-fake");
    answer_text("200 X", "{\"id\":\"" SID "\"}");
    assert_int_equal(get_sandbox(), 0);
    has_header("jwt", f->requests[0], "x-daytona-organization-id", "org-fake");
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(requests_are_as_recorded_and_replies_are_understood),
        TEST(what_was_throttled_is_asked_again_when_the_service_says),
        TEST(when_time_runs_out_the_answer_before_is_told),
        TEST(bad_credentials_are_shown_once),
        TEST(only_questions_are_asked_again_after_a_broken_connection),
        TEST(errors_in_any_dress_are_one_line),
        TEST(the_old_daemons_routes_are_found),
        TEST(logs_without_json_are_read),
        TEST(bare_lists_and_pages_of_sandboxes_are_read),
        TEST(the_toolbox_of_every_generation_is_found),
        TEST(the_key_does_not_go_in_the_clear_when_the_api_does_not),
        TEST(a_bulk_reply_that_is_cut_is_an_error),
        TEST(a_download_ends_where_it_is_to),
        TEST(a_jwt_goes_with_its_organization),
    };

    return cmocka_run_group_tests_name("daytona", tests, NULL, NULL);
}
