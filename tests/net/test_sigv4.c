/* SPDX-License-Identifier: Apache-2.0 */
/* Every request that AWS's own clients were recorded to send is signed again: the same canonical
 * request and the same signature must come out. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "net/sigv4.h"
#include "net/uri.h"
#include "vectors.h"

enum { MAX_HEADERS = 32 };

static int signed_again;

static const char *header_value(const json_t *request, const char *name)
{
    size_t i;
    json_t *pair;

    json_array_foreach(json_object_get(request, "headers"), i, pair)
        if (strcasecmp(json_string_value(json_array_get(pair, 0)), name) == 0)
            return json_string_value(json_array_get(pair, 1));
    return NULL;
}

/* The signed headers, in another order than they are signed in. */
static size_t signed_headers(const json_t *request, struct pf_header *ret)
{
    const json_t *names = json_object_get(json_object_get(request, "sigv4"), "signedHeaders");
    size_t count = json_array_size(names);

    assert_in_range(count, 1, MAX_HEADERS);
    for (size_t i = 0; i < count; i++) {
        const char *name = json_string_value(json_array_get(names, count - 1 - i));
        ret[i] = (struct pf_header){ name, header_value(request, name) };
        assert_non_null(ret[i].value);
    }
    return count;
}

static void sign_again(const char *name, const json_t *vector, const json_t *request)
{
    const json_t *sigv4 = json_object_get(request, "sigv4");
    const json_t *credentials = json_object_get(vector, "credentials");
    const char *target = strchr(text_of(request, "requestLine"), ' ') + 1;
    PF_CLEANUP(pf_buf_done) struct pf_buf text = PF_BUF_INIT(100000);
    PF_CLEANUP(pf_buf_done) struct pf_buf authorization = PF_BUF_INIT(10000);
    struct pf_header headers[MAX_HEADERS];
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    char method[16] = "", path[4096], *query;
    const char *body = text_of(request, "bodyUtf8");
    char access_key[64] = "";
    struct pf_aws_keys keys = {
        .access_key = access_key,
        .secret_key = credentials ? text_of(credentials, "secretAccessKey")
                                  : text_of(vector, "secretAccessKey"),
    };
    struct pf_sigv4_request to_sign = {
        .method = method,
        .path = path,
        .headers = headers,
        .header_count = signed_headers(request, headers),
        .region = text_of(sigv4, "region"),
        .service = text_of(sigv4, "service"),
    };

    assert_int_equal(sscanf(header_value(request, "authorization"),
                            "AWS4-HMAC-SHA256 Credential=%63[^/]", access_key),
                     1);
    snprintf(method, sizeof(method), "%.*s", (int)(target - 1 - text_of(request, "requestLine")),
             text_of(request, "requestLine"));
    snprintf(path, sizeof(path), "%.*s", (int)strcspn(target, " "), target);
    query = strchr(path, '?');
    if (query)
        *query++ = '\0';
    to_sign.query = query;
    snprintf(to_sign.date, sizeof(to_sign.date), "%s", header_value(request, "x-amz-date"));
    pf_sha256_hex(body, strlen(body), to_sign.payload_hash);

    assert_int_equal(pf_sigv4_canonical(&to_sign, &text), 0);
    assert_string_equal(text.data, text_of(sigv4, "canonicalRequest"));
    if (pf_sigv4_sign(&to_sign, &keys, &authorization, &err) < 0)
        fail_msg("%s: %s", name, err.msg);
    assert_string_equal(authorization.data, header_value(request, "authorization"));
    signed_again++;
}

static void use(const char *name, const json_t *vector)
{
    size_t i;
    json_t *request;

    json_array_foreach(json_object_get(vector, "requests"), i, request)
        if (json_object_get(json_object_get(request, "sigv4"), "canonicalRequest"))
            sign_again(name, vector, request);
}

static void recorded_requests_get_the_same_signatures(void **state)
{
    (void)state;
    signed_again = 0;
    each_vector("agentcore/recorded", "*.json", use);
    assert_true(signed_again >= 43);
}

/* From the rules of AWS's documentation, as the recordings have no such case. */
static void paths_queries_and_values_are_brought_into_one_form(void **state)
{
    const struct pf_header headers[] = { { "X-Odd", "  a \t  b  " }, { "Host", "h" } };
    struct pf_sigv4_request request = {
        .method = "GET",
        .path = "/a//b/./c/../d%20e/",
        .query = "b=2&a=1&a&=x&a=0",
        .headers = headers,
        .header_count = 2,
        .payload_hash = "HASH",
    };
    PF_CLEANUP(pf_buf_done) struct pf_buf text = PF_BUF_INIT(1000);

    (void)state;
    assert_int_equal(pf_sigv4_canonical(&request, &text), 0);
    assert_string_equal(text.data, "GET\n/a/b/d%2520e/\n=x&a=&a=0&a=1&b=2\nhost:h\nx-odd:a b\n\n"
                                   "host;x-odd\nHASH");
    text.len = 0;
    request.path = "/../..";
    request.query = NULL;
    request.header_count = 0;
    assert_int_equal(pf_sigv4_canonical(&request, &text), 0);
    assert_string_equal(text.data, "GET\n/\n\n\n\nHASH");
}

/* The examples of AWS's documentation of S3, which signs paths its own way. */
static void s3_signs_a_path_as_it_is(void **state)
{
    static const struct pf_header get[] = {
        { "Host", "examplebucket.s3.amazonaws.com" },
        { "Range", "bytes=0-9" },
        { "x-amz-content-sha256",
          "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
        { "x-amz-date", "20130524T000000Z" },
    };
    static const struct pf_header put[] = {
        { "Host", "examplebucket.s3.amazonaws.com" },
        { "Date", "Fri, 24 May 2013 00:00:00 GMT" },
        { "x-amz-content-sha256",
          "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072" },
        { "x-amz-date", "20130524T000000Z" },
        { "x-amz-storage-class", "REDUCED_REDUNDANCY" },
    };
    const struct pf_aws_keys keys = { .access_key = "AKIAIOSFODNN7EXAMPLE",
                                      .secret_key = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY" };
    struct pf_sigv4_request request = {
        .method = "GET",
        .path = "/test.txt",
        .plain_path = true,
        .headers = get,
        .header_count = PF_COUNT(get),
        .date = "20130524T000000Z",
        .region = "us-east-1",
        .service = "s3",
    };
    PF_CLEANUP(pf_buf_done) struct pf_buf text = PF_BUF_INIT(1000);

    (void)state;
    pf_sha256_hex("", 0, request.payload_hash);
    assert_int_equal(pf_sigv4_sign(&request, &keys, &text, NULL), 0);
    assert_non_null(strstr(text.data, "Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd9"
                                      "1039c6036bdb41"));
    text.len = 0;
    request.method = "PUT";
    request.path = "/test%24file.text";
    request.headers = put;
    request.header_count = PF_COUNT(put);
    pf_sha256_hex("Welcome to Amazon S3.", 21, request.payload_hash);
    assert_int_equal(pf_sigv4_sign(&request, &keys, &text, NULL), 0);
    assert_non_null(strstr(text.data, "Signature=98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5"
                                      "971af0ece108bd"));
}

static void dates_are_in_utc(void **state)
{
    char date[PF_SIGV4_DATE_MAX];

    (void)state;
    pf_sigv4_date(0, date);
    assert_string_equal(date, "19700101T000000Z");
    pf_sigv4_date(1796000000, date);
    assert_string_equal(date, "20261130T005320Z");
}

static void everything_but_the_unreserved_is_encoded(void **state)
{
    PF_CLEANUP(pf_buf_done) struct pf_buf text = PF_BUF_INIT(1000);

    (void)state;
    assert_int_equal(pf_uri_encode(&text, "aZ0-._~ /:!*'()\0\xff", 17, ""), 0);
    assert_string_equal(text.data, "aZ0-._~%20%2F%3A%21%2A%27%28%29%00%FF");
    text.len = 0;
    assert_int_equal(pf_uri_encode(&text, "a/b\0", 4, "/"), 0);
    assert_string_equal(text.data, "a/b%00");
}

static void what_does_not_fit_is_an_error(void **state)
{
    struct pf_header header = { "x-large", NULL };
    struct pf_sigv4_request request = { .method = "GET",
                                        .path = "/",
                                        .headers = &header,
                                        .header_count = 1,
                                        .region = "r",
                                        .service = "s" };
    const struct pf_aws_keys keys = { .access_key = "a", .secret_key = "s" };
    PF_CLEANUP(pf_buf_done) struct pf_buf text = PF_BUF_INIT(1000);
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    _cleanup_free_ char *large = malloc(2 << 20);

    (void)state;
    assert_non_null(large);
    memset(large, 'x', (2 << 20) - 1);
    large[(2 << 20) - 1] = '\0';
    header.value = large;
    assert_int_equal(pf_sigv4_sign(&request, &keys, &text, &err), -PINFOLD_EVALUE);
    assert_string_equal(err.msg, "sign a request: it is too large");
    assert_int_equal(text.len, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(recorded_requests_get_the_same_signatures),
        cmocka_unit_test(paths_queries_and_values_are_brought_into_one_form),
        cmocka_unit_test(s3_signs_a_path_as_it_is),
        cmocka_unit_test(dates_are_in_utc),
        cmocka_unit_test(everything_but_the_unreserved_is_encoded),
        cmocka_unit_test(what_does_not_fit_is_an_error),
    };

    return cmocka_run_group_tests_name("sigv4", tests, NULL, NULL);
}
