/* SPDX-License-Identifier: Apache-2.0 */
/* The client against what AWS's own clients were recorded to send and to understand, over real HTTP
 * with a server on loopback that says what it is told. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "net/agentcore_reply.h"
#include "net/agentcore_request.h"
#include "net/agentcore_server.h"
#include "vectors.h"

/* ---- requests ---- */

static const char *recorded_header(const json_t *request, const char *name)
{
    size_t i;
    const json_t *pair;

    json_array_foreach(json_object_get(request, "headers"), i, pair) {
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
        json_array_foreach(value, i, member)
            json_array_append_new(copy, wire_form(member));
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

/* Of what AWS's client signs, we sign all that we send, and what must never be signed we do not. */
static void same_signed_headers(const char *name, const json_t *recorded, const char *sent)
{
    const json_t *names = json_object_get(json_object_get(recorded, "sigv4"), "signedHeaders");
    const char *start = strcasestr(sent, "SignedHeaders=");
    char list[1000], header[80];
    const json_t *one;
    size_t i;

    assert_non_null(start);
    start += strlen("SignedHeaders=");
    snprintf(list, sizeof(list), ";%.*s;", (int)strcspn(start, ","), start);
    assert_true(json_array_size(names) >= 2);
    json_array_foreach(names, i, one) {
        snprintf(header, sizeof(header), ";%s;", json_string_value(one));
        if (strcmp(header, ";content-length;") != 0 && strcmp(header, ";x-amz-user-agent;") != 0 &&
            !strstr(list, header))
            fail_msg("%s: %s is not signed in %s", name, json_string_value(one), list);
    }
    assert_null(strstr(list, ";x-amzn-trace-id;"));
    assert_null(strstr(list, ";user-agent;"));
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
    same_signed_headers(name, recorded, sent);
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

    json_array_foreach(events, i, event) {
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

    json_array_foreach(events, i, event) {
        json_array_foreach(json_object_get(json_object_get(event, "result"), "content"), j, block) {
            const json_t *mine = json_array_get(content, at++);
            json_t *wire = wire_form(block);
            json_object_foreach(wire, key, value) {
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

    json_array_foreach(events, i, event) {
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
    json_array_foreach(json_object_get(vector, "messages"), i, message) {
        if ((size_t)(json_integer_value(json_object_get(message, "offset")) +
                     json_integer_value(json_object_get(message, "totalLength"))) == at)
            return true;
    }
    return false;
}

/* To ask whether a stream may end only looks at it: one that grows by a byte is every cut. */
static void cut_everywhere(const char *name, const json_t *vector)
{
    struct pf_agentcore_stream stream = PF_AGENTCORE_STREAM_INIT;
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    size_t len;
    unsigned char *body = unhex(text_of(vector, "bodyHex"), &len);
    int r = 0;

    for (size_t cut = 0; cut < len && r == 0; cut++) {
        /* A stream may end between messages: then it has the results until there, or none. */
        if (pf_agentcore_stream_end(&stream, &err) == 0 && !stream.failed &&
            !between_messages(vector, cut))
            fail_msg("%s: cut at %zu it was a success", name, cut);
        if (cut == 0)
            assert_int_equal(stream.result.events, 0);
        r = pf_agentcore_stream_take(&stream, body + cut, 1, &err);
    }
    pf_agentcore_stream_done(&stream);
    free(body);
}

static void a_stream_that_is_cut_is_never_a_result(void **state)
{
    (void)state;
    assert_true(each_vector("agentcore/vectors", "v*.json", cut_everywhere) >= 40);
}

/* The same on the wire, where an end between two messages shows, too: the reply's own end, which is
 * told by its "0" and a line end, is missing. */
static void cut_the_wire_everywhere(const char *name, const json_t *vector)
{
    PF_CLEANUP(pf_buf_done) struct pf_buf reply = PF_BUF_INIT(10000000);
    const json_t *parsed = json_object_get(vector, "parsed");
    size_t step, end;

    if (json_object_get(parsed, "callError") || json_object_get(parsed, "streamError"))
        return;
    build_reply(vector, &reply);
    end = strcmp(reply.data + reply.len - 5, "0\r\n\r\n") == 0 ? reply.len - 3 : reply.len;
    step = reply.len > 2000 ? 9973 : 7;
    for (size_t cut = 1; cut < end; cut += end - cut < 24 ? 1 : step) {
        struct pf_agentcore_result result = { 0 };
        int r;
        forget_requests();
        pthread_mutex_lock(&f->server.answering);
        f->server.replies[0] = reply.data;
        f->server.lengths[0] = cut;
        f->server.close_after = true;
        pthread_mutex_unlock(&f->server.answering);
        f->err = (struct pinfold_error)PINFOLD_ERROR_INIT;
        r = pf_agentcore_invoke(f->client, "S", "executeCommand", NULL, &f->call, &result, &f->err);
        if (r == 0)
            fail_msg("%s: cut at %zu of %zu bytes it was a success", name, cut, reply.len);
        assert_int_equal(f->server.request_count, 1);
    }
    withdraw_reply();
}

static void a_reply_that_is_cut_on_the_wire_is_never_a_result(void **state)
{
    (void)state;
    assert_true(each_vector("agentcore/vectors", "v*.json", cut_the_wire_everywhere) >= 47);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_SERVER(recorded_requests_are_sent_again),
        WITH_SERVER(replies_mean_what_the_official_client_makes_of_them),
        WITH_SERVER(a_session_is_described_however_its_times_are_written),
        cmocka_unit_test(a_stream_that_is_cut_is_never_a_result),
        WITH_SERVER(a_reply_that_is_cut_on_the_wire_is_never_a_result),
    };

    return cmocka_run_group_tests_name("agentcore", tests, NULL, NULL);
}
