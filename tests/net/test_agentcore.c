/* SPDX-License-Identifier: Apache-2.0 */
/* The client against what AWS's own clients were recorded to send and to understand, over real HTTP
 * with a server on loopback that says what it is told. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "descriptors.h"
#include "net/agentcore.h"
#include "net/agentcore_reply.h"
#include "net/agentcore_request.h"
#include "read_request.h"
#include "vectors.h"

#define TEXT_REPLY(status, headers, body) "HTTP/1.1 " status "\r\n" headers "\r\n" body
#define OK_START TEXT_REPLY("200 OK", "Content-Length: 19\r\n", "{\"sessionId\":\"S1\"}\n")
#define BUSY                            \
    TEXT_REPLY("429 Too Many Requests", \
               "Content-Length: 2\r\nx-amzn-errortype: ThrottlingException\r\n", "{}")
#define BROKEN TEXT_REPLY("500 Oops", "Content-Length: 2\r\n", "{}")
#define EXPIRED                 \
    TEXT_REPLY("403 Forbidden", \
               "Content-Length: 2\r\nx-amzn-errortype: ExpiredTokenException\r\n", "{}")

enum { MAX_REQUESTS = 8, REQUEST_MAX = 32768 };

struct server {
    int listener, port;
    pthread_t thread;
    pthread_mutex_t
            answering; /* held while a reply is sent: the client may have it before the end */
    const char *replies[MAX_REQUESTS]; /* the last one again and again; NULL: hang up */
    size_t lengths[MAX_REQUESTS];      /* 0: of the text */
    bool close_after;
    char *requests[MAX_REQUESTS];
    unsigned request_count;
};

static struct fixture {
    struct server server;
    struct pf_http *http;
    struct pf_aws_provider *provider;
    struct pf_agentcore *client;
    struct pinfold_error err;
    struct pf_agentcore_call call;
    int descriptors;
} * f;

/* ---- the server ---- */

static bool send_all(int fd, const char *data, size_t len)
{
    while (len > 0) {
        ssize_t n = send(fd, data, len, MSG_NOSIGNAL);
        if (n <= 0)
            return false;
        data += n;
        len -= (size_t)n;
    }
    return true;
}

/* Under the lock. Returns whether the connection stays. */
static bool answer(struct server *server, int fd, const char *text)
{
    unsigned at = server->request_count < MAX_REQUESTS ? server->request_count : MAX_REQUESTS - 1;

    if (server->request_count < MAX_REQUESTS)
        server->requests[at] = strdup(text);
    server->request_count++;
    while (at > 0 && !server->replies[at] && !server->lengths[at])
        at--;
    return server->replies[at] &&
           send_all(fd, server->replies[at],
                    server->lengths[at] ? server->lengths[at] : strlen(server->replies[at])) &&
           !server->close_after;
}

static void serve(struct server *server, int fd)
{
    static char text[REQUEST_MAX];
    bool stays = true;

    while (stays && read_request(fd, text, REQUEST_MAX)) {
        pthread_mutex_lock(&server->answering);
        stays = answer(server, fd, text);
        pthread_mutex_unlock(&server->answering);
    }
}

static void *run_server(void *arg)
{
    struct server *server = arg;
    int fd;

    while ((fd = accept4(server->listener, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
        serve(server, fd);
        close(fd);
    }
    return NULL;
}

/* ---- the fixture ---- */

static void start_client(const char *identifier)
{
    char endpoint[64];
    struct pf_agentcore_options options = { .region = "us-west-2",
                                            .identifier = identifier,
                                            .endpoint = endpoint,
                                            .http = f->http,
                                            .provider = f->provider };

    snprintf(endpoint, sizeof(endpoint), "http://127.0.0.1:%d", f->server.port);
    pf_agentcore_free(TAKE(f->client));
    assert_int_equal(pf_agentcore_new(&options, &f->client, &f->err), 0);
}

static int set_up(void **state)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    const struct pf_aws_options keys = { .access_key = "AKIAFAKEFAKEFAKEFAKE",
                                         .secret_key = "fakeSecretKey",
                                         .session_token = "fakeToken==" };
    socklen_t len = sizeof(address);

    f = calloc(1, sizeof(*f));
    assert_non_null(f);
    assert_int_equal(pf_http_new(&f->http, &f->err), 0);
    f->descriptors = count_descriptors();
    f->server.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(f->server.listener, (void *)&address, sizeof(address)), 0);
    assert_int_equal(listen(f->server.listener, 8), 0);
    assert_int_equal(getsockname(f->server.listener, (void *)&address, &len), 0);
    f->server.port = ntohs(address.sin_port);
    setenv("no_proxy", "127.0.0.1", 1);
    assert_int_equal(pf_aws_provider_new(&keys, f->http, &f->provider, &f->err), 0);
    start_client("aws.codeinterpreter.v1");
    f->call.deadline = pf_clock_deadline(60 * PF_NS_PER_SEC);
    pthread_mutex_init(&f->server.answering, NULL);
    pthread_create(&f->server.thread, NULL, run_server, &f->server);
    *state = f;
    return 0;
}

static void forget_requests(void)
{
    pthread_mutex_lock(&f->server.answering);
    for (unsigned i = 0; i < MAX_REQUESTS; i++)
        free(TAKE(f->server.requests[i]));
    f->server.request_count = 0;
    pthread_mutex_unlock(&f->server.answering);
}

/* From here on the server does not look at the first reply. */
static void withdraw_reply(void)
{
    pthread_mutex_lock(&f->server.answering);
    f->server.close_after = false;
    f->server.replies[0] = NULL;
    f->server.lengths[0] = 0;
    pthread_mutex_unlock(&f->server.answering);
}

static int tear_down(void **state)
{
    (void)state;
    pf_agentcore_free(f->client);
    pf_aws_provider_free(f->provider);
    pf_http_free(f->http); /* kept connections end, and the server's read with them */
    shutdown(f->server.listener, SHUT_RDWR);
    pthread_join(f->server.thread, NULL);
    pthread_mutex_destroy(&f->server.answering);
    close(f->server.listener);
    assert_int_equal(count_descriptors(), f->descriptors);
    forget_requests();
    free(f);
    return 0;
}

/* ---- requests ---- */

static const char *recorded_header(const json_t *request, const char *name)
{
    size_t i;
    const json_t *pair;

    json_array_foreach(json_object_get(request, "headers"), i, pair)
    {
        if (strcasecmp(json_string_value(json_array_get(pair, 0)), name) == 0)
            return json_string_value(json_array_get(pair, 1));
    }
    return NULL;
}

static void same_header(const char *name, const json_t *recorded, const char *sent,
                        const char *header)
{
    const char *want = recorded_header(recorded, header);
    char line[1200], wanted[1200];
    const char *at;

    snprintf(line, sizeof(line), "\r\n%s: ", header);
    at = strcasestr(sent, line);
    if (!want) {
        if (at)
            fail_msg("%s: %s was sent", name, header);
        return;
    }
    snprintf(wanted, sizeof(wanted), "\r\n%s: %s\r\n", header, want);
    if (!at || strncasecmp(at, wanted, strlen(wanted)) != 0)
        fail_msg("%s: no %s: %s in %s", name, header, want, sent);
}

/* The body means the same, but for a token that was made up. */
static void same_body(const char *name, const json_t *recorded, const json_t *input,
                      const char *sent)
{
    json_t *want = json_loads(text_of(recorded, "bodyUtf8"), JSON_ALLOW_NUL, NULL);
    json_t *got = json_loads(strstr(sent, "\r\n\r\n") + 4, JSON_ALLOW_NUL, NULL);

    if (json_object_get(want, "clientToken") && !json_object_get(input, "clientToken")) {
        assert_int_equal(strlen(text_of(got, "clientToken")), 36);
        json_object_del(want, "clientToken");
        json_object_del(got, "clientToken");
    }
    if (!json_equal(want, got))
        fail_msg("%s: the body is %s", name, strstr(sent, "\r\n\r\n"));
    json_decref(want);
    json_decref(got);
}

/* The recordings' note of bytes, as they are on the wire. */
static json_t *wire_form(const json_t *value)
{
    const char *key;
    json_t *member, *copy;
    size_t i;

    if (json_object_get(value, "$base64"))
        return json_incref(json_object_get(value, "$base64"));
    if (json_is_array(value)) {
        copy = json_array();
        json_array_foreach(value, i, member) json_array_append_new(copy, wire_form(member));
        return copy;
    }
    if (!json_is_object(value))
        return json_deep_copy(value);
    copy = json_object();
    json_object_foreach((json_t *)(uintptr_t)value, key, member)
            json_object_set_new(copy, key, wire_form(member));
    return copy;
}

static int call_again(const json_t *input, const char *target)
{
    static const char *const outside[] = { "codeInterpreterIdentifier", "traceId", "traceParent" };
    struct pf_agentcore_result result = { 0 };
    const char *session = json_string_value(json_object_get(input, "sessionId"));
    json_t *members = json_deep_copy(input), *reply = NULL, *arguments = NULL;
    int r;

    for (size_t i = 0; i < PF_COUNT(outside); i++)
        json_object_del(members, outside[i]);
    f->call.trace_id = json_string_value(json_object_get(input, "traceId"));
    f->call.trace_parent = json_string_value(json_object_get(input, "traceParent"));
    if (strstr(target, "/sessions/start")) {
        r = pf_agentcore_start(f->client, members, &f->call, &reply, &f->err);
    } else if (strstr(target, "/sessions/stop")) {
        r = pf_agentcore_stop(f->client, session,
                              json_string_value(json_object_get(input, "clientToken")), &f->call,
                              &reply, &f->err);
    } else if (strstr(target, "/sessions/get")) {
        r = pf_agentcore_get(f->client, session, &f->call, &reply, &f->err);
    } else if (strstr(target, "/sessions/list")) {
        r = pf_agentcore_list(f->client, members, &f->call, &reply, &f->err);
    } else {
        if (json_object_get(input, "arguments"))
            arguments = wire_form(json_object_get(input, "arguments"));
        r = pf_agentcore_invoke(f->client, session, text_of(input, "name"), arguments, &f->call,
                                &result, &f->err);
        json_decref(arguments);
        pf_agentcore_result_done(&result);
    }
    json_decref(reply);
    json_decref(members);
    return r;
}

static void send_again(const char *name, const json_t *vector)
{
    const json_t *input = json_object_get(vector, "input");
    const json_t *recorded = json_array_get(json_object_get(vector, "requests"), 0);
    const char *line = text_of(recorded, "requestLine"), *sent;

    /* The first of these two has nothing that could be sent, which is told before anything is. */
    if (!input || !recorded || text_of(input, "codeInterpreterIdentifier")[0] == '\0')
        return;
    start_client(text_of(input, "codeInterpreterIdentifier"));
    forget_requests();
    f->server.replies[0] = strstr(line, "/tools/invoke")
                                   ? TEXT_REPLY("200 OK", "Content-Length: 0\r\n", "")
                                   : OK_START;
    if (call_again(input, line) < 0)
        fail_msg("%s: %s", name, f->err.msg);
    assert_int_equal(f->server.request_count, 1);
    sent = f->server.requests[0];
    if (strncmp(sent, line, strlen(line)) != 0)
        fail_msg("%s: %s, not %.300s", name, line, sent);
    same_header(name, recorded, sent, "x-amzn-code-interpreter-session-id");
    same_header(name, recorded, sent, "x-amzn-trace-id");
    same_header(name, recorded, sent, "traceparent");
    same_header(name, recorded, sent, "content-type");
    if (recorded_header(recorded, "content-type"))
        same_body(name, recorded, input, sent);
    assert_null(strcasestr(sent, "\r\nexpect:"));
    assert_non_null(strcasestr(sent, "\r\nx-amz-security-token: fakeToken==\r\n"));
    assert_non_null(strcasestr(sent, "/us-west-2/bedrock-agentcore/aws4_request, SignedHeaders="));
}

static void recorded_requests_are_sent_again(void **state)
{
    (void)state;
    assert_int_equal(each_vector("agentcore/recorded", "[0-3]?-*.json", send_again), 31);
    assert_true(each_vector("agentcore/recorded", "botocore-[a-qs-z]*.json", send_again) >= 10);
}

/* ---- replies ---- */

static unsigned replies_compared;

static void same_text(const char *name, const json_t *events, const char *member,
                      const struct pf_buf *got)
{
    PF_CLEANUP(pf_buf_done) struct pf_buf want = PF_BUF_INIT(10000000);
    const json_t *event;
    size_t i;

    json_array_foreach(events, i, event)
    {
        const json_t *text = json_object_get(
                json_object_get(json_object_get(event, "result"), "structuredContent"), member);
        if (text)
            pf_buf_append(&want, json_string_value(text), json_string_length(text));
    }
    if (want.len != got->len || (want.len > 0 && memcmp(want.data, got->data, want.len) != 0))
        fail_msg("%s: %s differs", name, member);
}

/* What the official client kept of each block is in ours. */
static void same_blocks(const char *name, const json_t *events, const json_t *content)
{
    const json_t *event, *block, *value;
    size_t i, j, at = 0;
    const char *key;

    json_array_foreach(events, i, event)
    {
        json_array_foreach(json_object_get(json_object_get(event, "result"), "content"), j, block)
        {
            const json_t *mine = json_array_get(content, at++);
            json_t *wire = wire_form(block);
            json_object_foreach(wire, key, value)
            {
                const json_t *other = json_object_get(mine, key);
                if (!json_is_object(value) && !json_equal(value, other))
                    fail_msg("%s: %s of block %zu differs", name, key, j);
            }
            value = json_object_get(wire, "resource");
            if (value && !json_equal(json_object_get(value, "blob"),
                                     json_object_get(json_object_get(mine, "resource"), "blob")))
                assert_null(json_object_get(value, "blob"));
            json_decref(wire);
        }
    }
    assert_int_equal(json_array_size(content), at);
}

static void same_result(const char *name, const json_t *events,
                        const struct pf_agentcore_result *result)
{
    const json_t *exit_code = NULL, *event;
    bool is_error = false;
    unsigned count = 0;
    size_t i;

    json_array_foreach(events, i, event)
    {
        const json_t *one = json_object_get(event, "result");
        const json_t *code = json_object_get(json_object_get(one, "structuredContent"), "exitCode");
        count += one != NULL;
        is_error |= json_is_true(json_object_get(one, "isError"));
        exit_code = code ? code : exit_code;
    }
    assert_int_equal(result->events, count);
    assert_int_equal(result->is_error, is_error);
    assert_int_equal(result->has_exit_code, exit_code != NULL);
    if (exit_code)
        assert_int_equal(result->exit_code, json_integer_value(exit_code));
    same_text(name, events, "stdout", &result->out);
    same_text(name, events, "stderr", &result->errs);
    same_blocks(name, events, result->content);
}

/* The reply as it was recorded to come. */
static void build_reply(const json_t *vector, struct pf_buf *reply)
{
    const json_t *http = json_object_get(vector, "http"), *value;
    json_t *headers = json_object_get(http, "headers");
    bool chunked = strcmp(text_of(http, "transfer"), "chunked") == 0;
    const char *name;
    size_t len;
    unsigned char *body = unhex(text_of(vector, "bodyHex"), &len);

    pf_buf_printf(reply, "HTTP/1.1 %d X\r\n",
                  (int)json_integer_value(json_object_get(http, "status")));
    json_object_foreach(headers, name, value)
            pf_buf_printf(reply, "%s: %s\r\n", name, json_string_value(value));
    if (chunked)
        pf_buf_printf(reply, "Transfer-Encoding: chunked\r\n\r\n");
    else
        pf_buf_printf(reply, "Content-Length: %zu\r\n\r\n", len);
    for (size_t at = 0, step = len / 7 + 1; chunked && at < len; at += step) {
        size_t n = len - at < step ? len - at : step;
        pf_buf_printf(reply, "%zx\r\n", n);
        pf_buf_append(reply, body + at, n);
        pf_buf_printf(reply, "\r\n");
    }
    if (!chunked)
        pf_buf_append(reply, body, len);
    else if (!json_is_true(json_object_get(http, "aborted")))
        pf_buf_printf(reply, "0\r\n\r\n");
    free(body);
}

static void same_failure(const char *name, const json_t *wrong)
{
    const char *code = text_of(wrong, "name");
    const char *message = text_of(wrong, "message");
    json_int_t status = json_integer_value(json_object_get(wrong, "httpStatusCode"));

    if (strstr(code, "Exception") && !strcasestr(f->err.msg, code))
        fail_msg("%s: \"%s\" does not name %s", name, f->err.msg, code);
    if (strstr(code, "Exception") && strlen(message) < 60 && strcmp(message, "Unknown") != 0 &&
        !strstr(f->err.msg, message))
        fail_msg("%s: \"%s\" does not say \"%s\"", name, f->err.msg, message);
    if (status >= 300)
        assert_int_equal(f->err.http_status, status);
    if (status >= 300 && !strstr(f->err.msg, "11111111-2222-3333-4444-555555555555"))
        fail_msg("%s: no request id in \"%s\"", name, f->err.msg);
}

static void understand(const char *name, const json_t *vector)
{
    PF_CLEANUP(pf_buf_done) struct pf_buf reply = PF_BUF_INIT(10000000);
    struct pf_agentcore_result result = { 0 };
    const json_t *parsed = json_object_get(vector, "parsed");
    const json_t *wrong = json_object_get(parsed, "callError");
    bool throttled = strcasestr(text_of(wrong, "name"), "throttling");
    bool gone = false;
    int r;

    if (!wrong)
        wrong = json_object_get(parsed, "streamError");
    build_reply(vector, &reply);
    f->server.replies[0] = reply.data;
    f->server.lengths[0] = reply.len;
    f->server.close_after =
            json_is_true(json_object_get(json_object_get(vector, "http"), "aborted"));
    forget_requests();
    f->call.session_gone = &gone;
    /* What may be tried again is, until then. */
    f->call.deadline = pf_clock_deadline((throttled ? 4 : 60) * PF_NS_PER_SEC);
    f->err = (struct pinfold_error)PINFOLD_ERROR_INIT;
    r = pf_agentcore_invoke(f->client, "S", "executeCommand", NULL, &f->call, &result, &f->err);
    /* Three stray bytes: a message was begun, and the rest of it is lost. */
    if (strncmp(name, "v41", 3) == 0 || wrong) {
        if (r == 0)
            fail_msg("%s was taken for a success", name);
        assert_int_equal(f->err.code, -r);
        same_failure(name, wrong);
    } else {
        if (r < 0)
            fail_msg("%s: %s", name, f->err.msg);
        same_result(name, json_object_get(parsed, "events"), &result);
    }
    assert_int_equal(gone, strncmp(name, "e01", 3) == 0 || strncmp(name, "e20", 3) == 0 ||
                                   strncmp(name, "v23", 3) == 0);
    if (!throttled && !strstr(name, "expired")) /* nothing runs twice */
        assert_int_equal(f->server.request_count, 1);
    pf_agentcore_result_done(&result);
    withdraw_reply();
    f->call.session_gone = NULL;
    replies_compared++;
}

static void replies_mean_what_the_official_client_makes_of_them(void **state)
{
    (void)state;
    replies_compared = 0;
    each_vector("agentcore/vectors", "[ev]*.json", understand);
    assert_true(replies_compared >= 55);
}

static void read_get_reply(const char *name, const json_t *vector)
{
    PF_CLEANUP(pf_buf_done) struct pf_buf reply = PF_BUF_INIT(100000);
    const json_t *want = json_object_get(json_object_get(vector, "parsed"), "output");
    json_t *got = NULL;

    build_reply(vector, &reply);
    f->server.replies[0] = reply.data;
    if (pf_agentcore_get(f->client, "S", &f->call, &got, &f->err) < 0)
        fail_msg("%s: %s", name, f->err.msg);
    assert_string_equal(text_of(got, "sessionId"), "01K9QWSZFRC2ABCDEFGHJKMNPQ");
    if (want) {
        assert_string_equal(text_of(got, "status"), text_of(want, "status"));
        assert_int_equal(json_integer_value(json_object_get(got, "sessionTimeoutSeconds")),
                         json_integer_value(json_object_get(want, "sessionTimeoutSeconds")));
    }
    json_decref(got);
    withdraw_reply();
}

static void a_session_is_described_however_its_times_are_written(void **state)
{
    (void)state;
    assert_int_equal(each_vector("agentcore/vectors", "g*.json", read_get_reply), 3);
}

/* ---- cut streams ---- */

static bool between_messages(const json_t *vector, size_t at)
{
    const json_t *message;
    size_t i;

    if (at == 0)
        return true;
    json_array_foreach(json_object_get(vector, "messages"), i, message)
    {
        if ((size_t)(json_integer_value(json_object_get(message, "offset")) +
                     json_integer_value(json_object_get(message, "totalLength"))) == at)
            return true;
    }
    return false;
}

static void cut_everywhere(const char *name, const json_t *vector)
{
    size_t len, step;
    unsigned char *body = unhex(text_of(vector, "bodyHex"), &len);

    step = len > 5000 ? 997 : 1;
    for (size_t cut = 0; cut < len; cut += step) {
        struct pf_agentcore_stream stream = PF_AGENTCORE_STREAM_INIT;
        struct pinfold_error err = PINFOLD_ERROR_INIT;
        int r = pf_agentcore_stream_take(&stream, body, cut, &err);
        if (r == 0)
            r = pf_agentcore_stream_end(&stream, &err);
        /* A stream may end between messages: then it has the results until there, or none. */
        if (r == 0 && !stream.failed && !between_messages(vector, cut))
            fail_msg("%s: cut at %zu it was a success", name, cut);
        if (cut == 0)
            assert_int_equal(stream.result.events, 0);
        pf_agentcore_stream_done(&stream);
    }
    free(body);
}

static void a_stream_that_is_cut_is_never_a_result(void **state)
{
    (void)state;
    assert_true(each_vector("agentcore/vectors", "v*.json", cut_everywhere) >= 40);
}

/* ---- trying again ---- */

static int start(void)
{
    json_t *reply = NULL;
    int r;

    f->err = (struct pinfold_error)PINFOLD_ERROR_INIT;
    r = pf_agentcore_start(f->client, NULL, &f->call, &reply, &f->err);
    json_decref(reply);
    return r;
}

static int invoke(const char *tool)
{
    struct pf_agentcore_result result = { 0 };
    int r;

    f->err = (struct pinfold_error)PINFOLD_ERROR_INIT;
    r = pf_agentcore_invoke(f->client, "S", tool, NULL, &f->call, &result, &f->err);
    pf_agentcore_result_done(&result);
    return r;
}

static const char *token_in(const char *request)
{
    static char tokens[2][64];
    static unsigned next;
    char *slot = tokens[next++ % 2];
    const char *at = strstr(request, "\"clientToken\":\"");

    assert_non_null(at);
    snprintf(slot, 64, "%.36s", at + 15);
    return slot;
}

static void a_session_is_started_again_with_the_same_token(void **state)
{
    (void)state;
    f->server.replies[0] = BROKEN;
    f->server.replies[1] = BUSY;
    f->server.replies[2] = OK_START;
    assert_int_equal(start(), 0);
    assert_int_equal(f->server.request_count, 3);
    assert_string_equal(token_in(f->server.requests[0]), token_in(f->server.requests[2]));
    assert_non_null(strstr(f->server.requests[2], "amz-sdk-request: attempt=3; max="));
}

static void a_command_is_not_sent_again_when_it_may_have_run(void **state)
{
    (void)state;
    f->server.replies[0] = BROKEN;
    assert_int_equal(invoke("executeCommand"), -PINFOLD_EBACKEND);
    assert_int_equal(f->err.retryable, 0);
    assert_int_equal(f->server.request_count, 1);
    f->server.replies[0] = NULL; /* hang up */
    assert_true(invoke("executeCode") < 0);
    assert_int_equal(f->err.retryable, 0);
    assert_int_equal(f->server.request_count, 2);
}

static void a_command_is_sent_again_when_it_cannot_have_run(void **state)
{
    (void)state;
    f->server.replies[0] = BUSY;
    f->server.replies[1] = TEXT_REPLY("200 OK", "Content-Length: 0\r\n", "");
    assert_int_equal(invoke("executeCommand"), 0);
    assert_int_equal(f->server.request_count, 2);
}

static void files_are_read_again_after_a_failure(void **state)
{
    (void)state;
    f->server.replies[0] = BROKEN;
    f->server.replies[1] = TEXT_REPLY("200 OK", "Content-Length: 0\r\n", "");
    assert_int_equal(invoke("readFiles"), 0);
    assert_int_equal(f->server.request_count, 2);
}

static void expired_credentials_are_asked_for_once_more(void **state)
{
    (void)state;
    f->server.replies[0] = EXPIRED;
    f->server.replies[1] = OK_START;
    assert_int_equal(start(), 0);
    assert_int_equal(f->server.request_count, 2);
    forget_requests();
    f->server.replies[1] = EXPIRED;
    assert_int_equal(start(), -PINFOLD_EBACKEND);
    assert_int_equal(f->server.request_count, 2);
    assert_int_equal(f->err.http_status, 403);
}

static void a_clock_that_is_wrong_is_put_right_once(void **state)
{
    static char reply[300]; /* the server may still look at it when the client has it whole */
    char date[64];
    time_t later = time(NULL) + 3 * 3600;
    struct tm tm;

    (void)state;
    gmtime_r(&later, &tm);
    strftime(date, sizeof(date), "%a, %d %b %Y %H:%M:%S GMT", &tm);
    snprintf(reply, sizeof(reply),
             "HTTP/1.1 403 No\r\nDate: %s\r\nx-amzn-errortype: SignatureDoesNotMatch\r\n"
             "Content-Length: 0\r\n\r\n",
             date);
    f->server.replies[0] = reply;
    f->server.replies[1] = TEXT_REPLY("200 OK", "Content-Length: 0\r\n", "");
    assert_int_equal(invoke("executeCommand"), 0);
    assert_int_equal(f->server.request_count, 2);
    strftime(date, sizeof(date), "x-amz-date: %Y%m%dT%H", &tm);
    assert_non_null(strcasestr(f->server.requests[1], date));
    forget_requests();
    f->server.replies[1] = reply;
    assert_int_equal(invoke("executeCommand"), -PINFOLD_EBACKEND);
    assert_int_equal(f->server.request_count, 1); /* it is right by now: that was not it */
}

static void waiting_to_try_again_ends_at_once_when_cancelled(void **state)
{
    struct pinfold_cancel *cancel;

    (void)state;
    assert_int_equal(pinfold_cancel_new(&cancel, NULL), 0);
    pinfold_cancel_fire(cancel);
    f->call.cancel = cancel;
    f->server.replies[0] = BUSY;
    assert_int_equal(start(), -PINFOLD_ECANCELLED);
    pinfold_cancel_free(cancel);
    f->call.cancel = NULL;
}

/* ---- where to ---- */

static void endpoints_are_those_of_the_regions_and_of_nobody_else(void **state)
{
    static const char *const bad[] = { "",           "us",        "us-west", "us-west-2.evil.org",
                                       "us-west-2/", "US-WEST-2", "us--1",   "-us-1",
                                       "us-west-2@x" };
    char *endpoint;

    (void)state;
    assert_int_equal(pf_agentcore_endpoint("us-west-2", &endpoint, NULL), 0);
    assert_string_equal(endpoint, "https://bedrock-agentcore.us-west-2.amazonaws.com");
    free(endpoint);
    assert_int_equal(pf_agentcore_endpoint("cn-north-1", &endpoint, NULL), 0);
    assert_string_equal(endpoint, "https://bedrock-agentcore.cn-north-1.amazonaws.com.cn");
    free(endpoint);
    assert_int_equal(pf_agentcore_endpoint("eusc-de-east-1", &endpoint, NULL), 0);
    assert_string_equal(endpoint, "https://bedrock-agentcore.eusc-de-east-1.amazonaws.eu");
    free(endpoint);
    for (size_t i = 0; i < PF_COUNT(bad); i++)
        assert_int_equal(pf_agentcore_endpoint(bad[i], &endpoint, NULL), -PINFOLD_EVALUE);
}

#define WITH_SERVER(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_SERVER(recorded_requests_are_sent_again),
        WITH_SERVER(replies_mean_what_the_official_client_makes_of_them),
        WITH_SERVER(a_session_is_described_however_its_times_are_written),
        cmocka_unit_test(a_stream_that_is_cut_is_never_a_result),
        WITH_SERVER(a_session_is_started_again_with_the_same_token),
        WITH_SERVER(a_command_is_not_sent_again_when_it_may_have_run),
        WITH_SERVER(a_command_is_sent_again_when_it_cannot_have_run),
        WITH_SERVER(files_are_read_again_after_a_failure),
        WITH_SERVER(expired_credentials_are_asked_for_once_more),
        WITH_SERVER(a_clock_that_is_wrong_is_put_right_once),
        WITH_SERVER(waiting_to_try_again_ends_at_once_when_cancelled),
        cmocka_unit_test(endpoints_are_those_of_the_regions_and_of_nobody_else),
    };

    return cmocka_run_group_tests_name("agentcore", tests, NULL, NULL);
}
