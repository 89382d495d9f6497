/* SPDX-License-Identifier: Apache-2.0 */
/* S3Storage beside a server of the test's own, which says what S3 says when something is wrong. The
 * signatures, and a real server, are in tests/s3. */
#include "agents.h"

#include <errno.h>

#include "net/aws_fixture.h"

static struct aws_fixture *f;
static struct pinfold_storage *storage;
static struct pinfold_s3_options options;

/* What the server says to requests: one after another, and the last one for ever. */
static struct {
    const char *status_line, *headers, *body;
} answers[4];
static int answered;

static void answer_with(int index, const char *status_line, const char *headers, const char *body)
{
    answers[index].status_line = status_line;
    answers[index].headers = headers;
    answers[index].body = body;
}

static char *answer(void *ctx, const char *request)
{
    int i = answered++;
    char *reply = NULL;

    (void)ctx;
    (void)request;
    while (i > 0 && (i > 3 || !answers[i].status_line))
        i--;
    if (!answers[i].status_line)
        return STALL;
    assert_true(asprintf(&reply,
                         "HTTP/1.1 %s\r\n%sContent-Length: %zu\r\nConnection: close\r\n\r\n%s",
                         answers[i].status_line, answers[i].headers, strlen(answers[i].body),
                         answers[i].body) > 0);
    return reply;
}

static int set_up(void **state)
{
    int r = aws_set_up(state);

    f = *state;
    f->server.answer = answer;
    memset(answers, 0, sizeof(answers));
    answered = 0;
    storage = NULL;
    setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", 1);
    setenv("AWS_SESSION_TOKEN", "the-token-of-a-session", 1);
    options = (struct pinfold_s3_options)PINFOLD_S3_OPTIONS_INIT;
    options.bucket = "my-bucket";
    options.prefix = "agents/a b";
    options.endpoint = f->url;
    return r;
}

static int tear_down(void **state)
{
    pinfold_storage_unref(storage);
    unsetenv("AWS_ACCESS_KEY_ID");
    unsetenv("AWS_SECRET_ACCESS_KEY");
    unsetenv("AWS_SESSION_TOKEN");
    return aws_tear_down(state);
}

static void open_storage(void)
{
    if (pinfold_storage_s3_new(&options, &storage, &f->err) < 0)
        fail_msg("%s", f->err.msg);
}

/* Store "text"; returns what that returned. */
static int store(char **ret_reference)
{
    char *reference = NULL;
    int r = pinfold_storage_store(storage, "call/../1", "text", 4, "text/plain", &reference,
                                  &f->err);

    if (ret_reference)
        *ret_reference = reference;
    else
        free(reference);
    return r;
}

static int retrieve(const char *reference)
{
    struct pinfold_bytes data = { 0 };
    char *type = NULL;
    int r = pinfold_storage_retrieve(storage, reference, &data, &type, &f->err);

    pinfold_bytes_done(&data);
    free(type);
    return r;
}

static void says(const char *part)
{
    has_text(f->err.msg, part);
}

/* ---- requests ---- */

static void an_object_is_put_with_its_type_and_signed(void **state)
{
    char *reference, *header;

    (void)state;
    answer_with(0, "200 OK", "", "");
    open_storage();
    assert_int_equal(store(&reference), 0);
    assert_ptr_equal(strstr(reference, "s3://my-bucket/agents/a b/"), reference);
    has_text(reference, "_call___1");
    assert_int_equal(aws_request_count(f), 1);
    assert_ptr_equal(strstr(f->server.requests[0], "PUT /my-bucket/agents/a%20b/"),
                     f->server.requests[0]);
    has_text(f->server.requests[0], "\r\n\r\ntext");
    header = aws_header(f->server.requests[0], "content-type");
    assert_string_equal(header, "text/plain");
    free(header);
    header = aws_header(f->server.requests[0], "x-amz-content-sha256");
    assert_string_equal(header, "982d9e3eb996f559e633f4d194def3761d909f5a3b647d1a851fead67c32c9d1");
    free(header);
    header = aws_header(f->server.requests[0], "authorization");
    has_text(header, "/us-west-2/s3/aws4_request, SignedHeaders=content-type;host;"
                     "x-amz-content-sha256;x-amz-date;x-amz-security-token, Signature=");
    free(header);
    free(reference);
}

static void an_object_comes_back_as_it_was_stored(void **state)
{
    struct pinfold_bytes data = { 0 };
    char *type = NULL;

    (void)state;
    answer_with(0, "200 OK", "Content-Type: image/png\r\n", "bytes");
    open_storage();
    assert_int_equal(pinfold_storage_retrieve(storage, "s3://my-bucket/agents/a b/1_2_x%y", &data,
                                              &type, &f->err),
                     0);
    assert_string_equal(data.data, "bytes");
    assert_string_equal(type, "image/png");
    assert_ptr_equal(strstr(f->server.requests[0], "GET /my-bucket/agents/a%20b/1_2_x%25y HTTP"),
                     f->server.requests[0]);
    pinfold_bytes_done(&data);
    free(type);
}

static void a_type_that_is_no_header_does_not_become_one(void **state)
{
    char *reference = NULL, *header;

    (void)state;
    answer_with(0, "200 OK", "", "");
    open_storage();
    assert_int_equal(pinfold_storage_store(storage, "k", "x", 1, "image/png\r\nx-amz-acl: public",
                                           &reference, &f->err),
                     0);
    header = aws_header(f->server.requests[0], "content-type");
    assert_string_equal(header, "application/octet-stream");
    assert_null(aws_header(f->server.requests[0], "x-amz-acl"));
    free(header);
    free(reference);
}

static void only_references_of_its_own_are_asked_for(void **state)
{
    static const char *const others[] = {
        "s3://my-bucket/secret",
        "s3://other/agents/a b/1_1_x",
        "s3://my-bucket/agents/a b/",
        "s3://my-bucket/agents/a b/../secret",
        "s3://my-bucket/agents/a b/x/y",
        "s3://my-bucket/agents/a b/..",
        "my-bucket/agents/a b/1_1_x",
        "s3://my-bucket/agents/a b/\xff",
        "",
    };

    (void)state;
    answer_with(0, "200 OK", "", "");
    open_storage();
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
        assert_int_equal(retrieve(others[i]), -PINFOLD_EVALUE);
        says("there is no reference \"");
    }
    assert_int_equal(aws_request_count(f), 0);
}

static void two_storages_with_one_prefix_do_not_meet(void **state)
{
    char *first, *second;

    (void)state;
    answer_with(0, "200 OK", "", "");
    open_storage();
    assert_int_equal(store(&first), 0);
    pinfold_storage_unref(storage);
    open_storage();
    assert_int_equal(store(&second), 0);
    /* Not by the time alone: their numbers begin at random. */
    assert_string_not_equal(strstr(first, "_"), strstr(second, "_"));
    free(first);
    free(second);
}

/* ---- refusals ---- */

#define XML(code, rest)                                              \
    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>" code \
    "</Code><Message>The &quot;message&quot;.</Message>" rest "</Error>"

static void what_is_gone_is_no_reference(void **state)
{
    (void)state;
    answer_with(0, "404 Not Found", "", XML("NoSuchKey", "<Key>k</Key>"));
    open_storage();
    assert_int_equal(retrieve("s3://my-bucket/agents/a b/1_1_x"), -PINFOLD_EVALUE);
    says("there is no reference \"s3://my-bucket/agents/a b/1_1_x\"");
}

static void refusals_say_what_the_service_said(void **state)
{
    static const struct {
        const char *status, *headers, *body, *says;
        int code, sys_errno;
    } rows[] = {
        { "403 Forbidden", "", XML("AccessDenied", ""),
          "S3 put of bucket my-bucket: HTTP 403 AccessDenied: The \"message\".", PINFOLD_EOS,
          EACCES },
        { "403 Forbidden", "", XML("SignatureDoesNotMatch", ""), "SignatureDoesNotMatch",
          PINFOLD_EOS, EACCES },
        { "404 Not Found", "", XML("NoSuchBucket", ""), "NoSuchBucket", PINFOLD_EVALUE, 0 },
        { "404 Not Found", "", "<html>no</html>", "there is no bucket my-bucket", PINFOLD_EVALUE,
          0 },
        { "301 Moved Permanently", "x-amz-bucket-region: eu-west-1\r\nLocation: http://x/\r\n",
          XML("PermanentRedirect", ""), "my-bucket is in the region eu-west-1, not us-west-2",
          PINFOLD_EVALUE, 0 },
        { "400 Bad Request", "", XML("AuthorizationHeaderMalformed", "<Region>ap-south-1</Region>"),
          "is in the region ap-south-1, not us-west-2", PINFOLD_EVALUE, 0 },
        { "301 Moved Permanently", "", "", "HTTP 301", PINFOLD_EBACKEND, 0 },
        { "400 Bad Request", "", "<Error><Code>&evil;</Code></Error>",
          "S3 put of bucket my-bucket: HTTP 400", PINFOLD_EVALUE, 0 },
    };

    (void)state;
    open_storage();
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        answer_with(0, rows[i].status, rows[i].headers, rows[i].body);
        answered = 0;
        assert_int_equal(store(NULL), -rows[i].code);
        says(rows[i].says);
        assert_int_equal(f->err.http_status, strtol(rows[i].status, NULL, 10));
        assert_int_equal(f->err.sys_errno, rows[i].sys_errno);
        assert_int_equal(answered, 1); /* nothing of it passes */
    }
}

static void a_busy_service_is_asked_again(void **state)
{
    (void)state;
    answer_with(0, "503 Slow Down", "", XML("SlowDown", ""));
    answer_with(1, "500 Internal Error", "", XML("InternalError", ""));
    answer_with(2, "200 OK", "", "");
    open_storage();
    assert_int_equal(store(NULL), 0);
    assert_int_equal(answered, 3);
}

static void a_service_that_stays_busy_is_given_up(void **state)
{
    (void)state;
    answer_with(0, "503 Slow Down", "", XML("SlowDown", ""));
    options.attempts = 3;
    open_storage();
    assert_int_equal(store(NULL), -PINFOLD_EBACKEND);
    says("HTTP 503 SlowDown");
    assert_true(f->err.retryable);
    assert_int_equal(answered, 3);
}

static void expired_credentials_are_fetched_anew_once(void **state)
{
    (void)state;
    answer_with(0, "400 Bad Request", "", XML("ExpiredToken", ""));
    open_storage();
    assert_int_equal(store(NULL), -PINFOLD_EVALUE);
    says("ExpiredToken");
    assert_int_equal(answered, 2);
}

static void a_service_that_says_nothing_is_not_waited_for_without_end(void **state)
{
    (void)state;
    options.timeout_seconds = 0.2;
    open_storage();
    assert_int_equal(store(NULL), -PINFOLD_ETIMEOUT);
}

/* ---- through an agent ---- */

static int give(void *ctx, struct pinfold_tool_call *call, struct pinfold_tool_result *ret,
                struct pinfold_error *err)
{
    char text[4096];

    (void)ctx;
    (void)call;
    memset(text, 'a', sizeof(text));
    return pinfold_tool_result_add_text(ret, text, sizeof(text), err);
}

static struct pinfold_agent *offloading_agent(void)
{
    struct pinfold_offload_policy policy = PINFOLD_OFFLOAD_POLICY_INIT;
    struct pinfold_agent *agent = plain_agent("s3");
    struct pinfold_plugin *plugin = NULL;

    policy.storage = storage;
    policy.max_result_tokens = 100;
    policy.preview_tokens = 10;
    assert_int_equal(pinfold_context_offloader_new(&policy, &plugin, NULL), 0);
    assert_int_equal(pinfold_agent_add_plugin(agent, plugin, NULL), 0);
    pinfold_plugin_unref(plugin);
    give_tool(agent, make_tool("give", NULL, give, NULL));
    return agent;
}

static void long_results_go_to_the_bucket(void **state)
{
    struct pinfold_agent *agent;

    (void)state;
    answer_with(0, "200 OK", "", "");
    open_storage();
    agent = offloading_agent();
    has_text(ask_tool(agent, "give", "{}"), "  s3://my-bucket/agents/a b/");
    pinfold_agent_free(agent);
}

static void a_result_stays_whole_when_the_bucket_fails(void **state)
{
    struct pinfold_agent *agent;

    (void)state;
    answer_with(0, "403 Forbidden", "", XML("AccessDenied", ""));
    open_storage();
    agent = offloading_agent();
    assert_int_equal(strlen(ask_tool(agent, "give", "{}")), 4096);
    pinfold_agent_free(agent);
}

static void *call_give(void *ctx)
{
    struct pinfold_tool_result result = { 0 };

    (void)pinfold_agent_call_tool(ctx, "give", "{}", 2, &result, NULL, NULL);
    pinfold_tool_result_done(&result);
    return NULL;
}

/* With the time that a store may take far away, only cancelling can end it. */
static void cancelling_an_agent_stops_a_store(void **state)
{
    struct pinfold_agent *agent;
    pthread_t thread;

    (void)state;
    options.timeout_seconds = 86400;
    open_storage();
    agent = offloading_agent();
    assert_int_equal(pthread_create(&thread, NULL, call_give, agent), 0);
    while (aws_request_count(f) == 0)
        pause_ms(5);
    pinfold_agent_cancel(agent);
    pthread_join(thread, NULL);
    pinfold_agent_free(agent);
}

/* ---- options ---- */

static void refuses(const char *part)
{
    struct pinfold_storage *none = NULL;

    assert_int_equal(pinfold_storage_s3_new(&options, &none, &f->err), -PINFOLD_EVALUE);
    says(part);
    assert_null(none);
}

static void options_that_cannot_be_are_refused(void **state)
{
    static const char *const prefixes[] = { "/a", "a//b", "a/../b", "..", "./a", "a/.", "\xff" };
    static const char *const buckets[] = { NULL, "", "a/b", "..", "a b", "a?b", "a@b" };
    struct pinfold_s3_options good = options;

    (void)state;
    for (size_t i = 0; i < sizeof(prefixes) / sizeof(*prefixes); i++) {
        options.prefix = prefixes[i];
        refuses("the prefix \"");
    }
    options = good;
    for (size_t i = 0; i < sizeof(buckets) / sizeof(*buckets); i++) {
        options.bucket = buckets[i];
        refuses("cannot be the name of a bucket");
    }
    options = good;
    options.attempts = 21;
    refuses("attempts is 21");
    options = good;
    options.timeout_seconds = -1;
    refuses("timeout is -1 seconds");
    options = good;
    options.size--;
    refuses("options of");
    options = good;
    options.endpoint = "ftp://127.0.0.1";
    refuses("no http or https address");
    options.endpoint = "http://user@127.0.0.1";
    refuses("no http or https address");
    options = good;
    options.endpoint = "http://minio.example:9000";
    refuses("in plain text");
    options.allow_plain_http = true;
    open_storage();
    options = good;
    unsetenv("AWS_REGION");
    refuses("region");
}

static void a_trailing_slash_and_no_prefix_are_fine(void **state)
{
    char *reference;

    (void)state;
    answer_with(0, "200 OK", "", "");
    options.prefix = "a/b//";
    open_storage();
    assert_int_equal(store(&reference), 0);
    assert_ptr_equal(strstr(reference, "s3://my-bucket/a/b/"), reference);
    free(reference);
    pinfold_storage_unref(storage);
    options.prefix = NULL;
    open_storage();
    assert_int_equal(store(&reference), 0);
    assert_null(strchr(reference + strlen("s3://my-bucket/"), '/'));
    free(reference);
}

static void the_endpoint_of_the_environment_is_used(void **state)
{
    (void)state;
    answer_with(0, "200 OK", "", "");
    options.endpoint = NULL;
    setenv("AWS_ENDPOINT_URL_S3", f->url, 1);
    open_storage();
    unsetenv("AWS_ENDPOINT_URL_S3");
    assert_int_equal(store(NULL), 0);
    assert_int_equal(aws_request_count(f), 1);
}

/* Which host is asked is seen by a proxy, which lets nothing through. */
static void asks(const char *bucket, const char *host)
{
    char line[128];

    pinfold_storage_unref(storage);
    options.bucket = bucket;
    open_storage();
    aws_forget(f);
    assert_int_not_equal(store(NULL), 0);
    snprintf(line, sizeof(line), "CONNECT %s:443 HTTP", host);
    assert_true(aws_request_count(f) > 0);
    assert_ptr_equal(strstr(f->server.requests[0], line), f->server.requests[0]);
}

static void aws_is_asked_for_a_bucket_by_its_name_as_a_host(void **state)
{
    (void)state;
    answer_with(0, "403 Forbidden", "", "");
    options.endpoint = NULL;
    options.attempts = 1;
    setenv("https_proxy", f->url, 1);
    asks("my-bucket", "my-bucket.s3.us-west-2.amazonaws.com");
    asks("my.bucket", "s3.us-west-2.amazonaws.com"); /* there is no certificate for that */
    options.region = "cn-north-1";
    asks("my-bucket", "my-bucket.s3.cn-north-1.amazonaws.com.cn");
    options.region = "us-gov-west-1";
    setenv("AWS_USE_FIPS_ENDPOINT", "true", 1);
    asks("my-bucket", "my-bucket.s3-fips.us-gov-west-1.amazonaws.com");
    setenv("AWS_USE_DUALSTACK_ENDPOINT", "true", 1);
    asks("my-bucket", "my-bucket.s3-fips.dualstack.us-gov-west-1.amazonaws.com");
    unsetenv("AWS_USE_FIPS_ENDPOINT");
    asks("my-bucket", "my-bucket.s3.dualstack.us-gov-west-1.amazonaws.com");
    unsetenv("AWS_USE_DUALSTACK_ENDPOINT");
    options.endpoint = "https://s3.evilamazonaws.com";
    asks("my-bucket", "s3.evilamazonaws.com");
    unsetenv("https_proxy");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(an_object_is_put_with_its_type_and_signed),
        TEST(an_object_comes_back_as_it_was_stored),
        TEST(a_type_that_is_no_header_does_not_become_one),
        TEST(only_references_of_its_own_are_asked_for),
        TEST(two_storages_with_one_prefix_do_not_meet),
        TEST(what_is_gone_is_no_reference),
        TEST(refusals_say_what_the_service_said),
        TEST(a_busy_service_is_asked_again),
        TEST(a_service_that_stays_busy_is_given_up),
        TEST(expired_credentials_are_fetched_anew_once),
        TEST(a_service_that_says_nothing_is_not_waited_for_without_end),
        TEST(long_results_go_to_the_bucket),
        TEST(a_result_stays_whole_when_the_bucket_fails),
        TEST(cancelling_an_agent_stops_a_store),
        TEST(options_that_cannot_be_are_refused),
        TEST(a_trailing_slash_and_no_prefix_are_fine),
        TEST(the_endpoint_of_the_environment_is_used),
        TEST(aws_is_asked_for_a_bucket_by_its_name_as_a_host),
    };

    return cmocka_run_group_tests_name("storage_s3", tests, NULL, NULL);
}
