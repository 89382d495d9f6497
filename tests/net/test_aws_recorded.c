/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What botocore was recorded to do: the same environment and files must lead us to the same
 * requests, and to the same credentials or an error of the same kind.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <strings.h>

#include "net/aws_fixture.h"
#include "vectors.h"

#define SOURCE_SECRET "srcsecret"

static struct aws_fixture *fixture;

/* ---- the services, as they answered ---- */

static char *answer(void *ctx, const char *request)
{
    char body[512];

    (void)ctx;
    if (strstr(request, "Action=AssumeRoleWithWebIdentity&"))
        return aws_sts_reply("AssumeRoleWithWebIdentity", "ASIASTSFAKE", 21600);
    if (strstr(request, "Action=AssumeRole&"))
        return aws_sts_reply("AssumeRole", "ASIASTSFAKE", 21600);
    if (strncmp(request, "POST /token ", 12) == 0)
        return aws_reply(200, "{\"accessToken\":\"newtok\",\"expiresIn\":28800,"
                              "\"refreshToken\":\"rt2\",\"tokenType\":\"Bearer\"}");
    if (strncmp(request, "GET /federation/credentials?", 28) == 0) {
        snprintf(body, sizeof(body),
                 "{\"roleCredentials\":{\"accessKeyId\":\"ASIASSOFAKE\",\"secretAccessKey\":"
                 "\"s\",\"sessionToken\":\"ssotoken\",\"expiration\":%lld000}}",
                 (long long)time(NULL) + 21600);
        return aws_reply(200, body);
    }
    if (strncmp(request, "GET /creds ", 11) == 0)
        return aws_metadata_reply("ASIAECSFAKE", "ecstoken", 21600);
    if (strncmp(request, "PUT /latest/api/token ", 22) == 0)
        return aws_reply(200, "FAKEIMDSTOKEN==");
    if (strstr(request, "security-credentials/ HTTP"))
        return aws_reply(200, "my-role");
    return aws_metadata_reply("ASIAIMDSFAKE", "imdstoken", 21600);
}

static void write_files(const char *name)
{
    static const char token[] =
            "{\"startUrl\":\"https://x.awsapps.com/start\",\"region\":\"us-west-2\","
            "\"accessToken\":\"ssoaccesstok\",\"expiresAt\":\"%s\","
            "\"clientId\":\"cid\",\"clientSecret\":\"csec\",\"refreshToken\":\"rt\","
            "\"registrationExpiresAt\":\"2061-01-01T00:00:00Z\"}";
    char text[1024], when[32];

    aws_file(fixture, "config",
             "[default]\nregion = us-east-1\n"
             "[profile src]\naws_access_key_id = AKIASRCFAKE\n"
             "aws_secret_access_key = " SOURCE_SECRET "\n"
             "[profile role]\nrole_arn = arn:aws:iam::123456789012:role/r\n"
             "source_profile = src\nrole_session_name = my-sess\nexternal_id = ext-1\n"
             "duration_seconds = 1800\n"
             "[profile roleenv]\nrole_arn = arn:aws:iam::123456789012:role/r\n"
             "credential_source = Environment\n"
             "[profile proc]\ncredential_process = /bin/sh -c 'printf \"%s\" \"$1\"' sh "
             "\"{\\\"Version\\\": 1, \\\"AccessKeyId\\\": \\\"AKIAPROC\\\", "
             "\\\"SecretAccessKey\\\": "
             "\\\"s\\\", \\\"SessionToken\\\": \\\"t\\\", \\\"Expiration\\\": "
             "\\\"2061-11-29T20:54:35+00:00\\\"}\"\n"
             "[profile \"sso\"]\nsso_session = corp\nsso_account_id = 123456789012\n"
             "sso_role_name = Dev\n"
             "[sso-session corp]\nsso_region = us-west-2\n"
             "sso_start_url = https://x.awsapps.com/start\n"
             "[profile ssolegacy]\nsso_start_url = https://legacy.awsapps.com/start\n"
             "sso_region = us-west-2\nsso_account_id = 123456789012\nsso_role_name = Dev\n");
    aws_file(fixture, "credentials",
             "[default]\naws_access_key_id = AKIADEFAULTFAKE\naws_secret_access_key = x\n"
             "[work]\naws_access_key_id = AKIAWORKFAKE\naws_secret_access_key = x\n"
             "aws_session_token = worktoken\n");
    aws_file(fixture, "oidc.jwt", "eyJfake.jwt.token");
    aws_file(fixture, "atoken", "file-token");
    aws_file(fixture, "atoken2", "file-token\n");
    snprintf(text, sizeof(text), token,
             aws_in(strstr(name, "refresh") ? 5 * 60 : 3600, when)); /* within 15 minutes, or not */
    /* sha1("corp") and sha1("https://legacy.awsapps.com/start") */
    aws_file(fixture, ".aws/sso/cache/ee0bfd2552fbd840c02cc48b6e823320543c450f.json", text);
    aws_file(fixture, ".aws/sso/cache/79e435d7a515078e81c9dffc35f38d5687ebd3a7.json", text);
}

/* ---- the environment ---- */

/* "./tmpX/name" is a file of ours, and every address the server's. */
static void set_variable(const char *name, const char *value)
{
    char text[512];

    if (strncmp(value, "./tmp", 5) == 0)
        snprintf(text, sizeof(text), "%s%s", fixture->dir, strchr(value + 2, '/'));
    else if (strncmp(value, "http://127.0.0.1:", 17) == 0)
        snprintf(text, sizeof(text), "%s%s", fixture->url, value + 17 + strcspn(value + 17, "/"));
    else
        snprintf(text, sizeof(text), "%s", value);
    setenv(name, text, 1);
}

static void set_environment(const json_t *vector)
{
    const char *name;
    json_t *value;

    aws_environment(fixture);
    unsetenv("AWS_REGION");
    json_object_foreach(json_object_get(vector, "env"), name, value)
        set_variable(name, json_string_value(value));
}

/* ---- requests ---- */

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The parameters of a form, sorted; the default name of a session is everybody's own. */
static void sort_form(const char *form, char *ret, size_t size)
{
    char *copy = strdup(form), *params[32], *save = NULL;
    size_t count = 0, len = 0;

    ret[0] = '\0'; /* of an empty body */
    for (char *at = strtok_r(copy, "&", &save); at && count < 32; at = strtok_r(NULL, "&", &save))
        params[count++] = at;
    qsort(params, count, sizeof(*params), compare_texts);
    for (size_t i = 0; i < count; i++) {
        bool named = strncmp(params[i], "RoleSessionName=botocore-session-", 33) == 0 ||
                     strncmp(params[i], "RoleSessionName=pinfold-", 24) == 0;
        len += (size_t)snprintf(ret + len, size - len, "&%s",
                                named ? "RoleSessionName=" : params[i]);
    }
    free(copy);
}

static void check_body(const char *recorded, const char *sent)
{
    char a[4096], b[4096];

    if (*recorded == '{') {
        json_t *x = json_loads(recorded, 0, NULL), *y = json_loads(sent, 0, NULL);
        assert_true(x && y && json_equal(x, y));
        json_decref(x);
        json_decref(y);
        return;
    }
    sort_form(recorded, a, sizeof(a));
    sort_form(sent, b, sizeof(b));
    assert_string_equal(a, b);
}

static void hmac(unsigned char key[static 32], size_t key_len, const char *text)
{
    unsigned char out[32];
    unsigned len = 0;

    assert_non_null(
            HMAC(EVP_sha256(), key, (int)key_len, (const void *)text, strlen(text), out, &len));
    memcpy(key, out, 32);
}

static void to_hex(const unsigned char *data, char text[static 65])
{
    for (int i = 0; i < 32; i++)
        snprintf(text + 2 * i, 3, "%02x", data[i]);
}

/* The signature over what was really sent, by other lines than those under test. */
static void check_signature(const char *request, const char *authorization)
{
    unsigned char key[64] = "AWS4" SOURCE_SECRET, hash[32];
    char text[4096], hex[65], day[9], *date = aws_header(request, "x-amz-date");
    char *host = aws_header(request, "host"), *type = aws_header(request, "content-type");
    const char *body = strstr(request, "\r\n\r\n") + 4;

    assert_non_null(date);
    snprintf(day, sizeof(day), "%.8s", date);
    EVP_Digest(body, strlen(body), hash, NULL, EVP_sha256(), NULL);
    to_hex(hash, hex);
    snprintf(text, sizeof(text),
             "POST\n/\n\ncontent-type:%s\nhost:%s\nx-amz-date:%s\n\n"
             "content-type;host;x-amz-date\n%s",
             type, host, date, hex);
    EVP_Digest(text, strlen(text), hash, NULL, EVP_sha256(), NULL);
    to_hex(hash, hex);
    snprintf(text, sizeof(text), "AWS4-HMAC-SHA256\n%s\n%s/us-west-2/sts/aws4_request\n%s", date,
             day, hex);
    hmac(key, 4 + strlen(SOURCE_SECRET), day);
    hmac(key, 32, "us-west-2");
    hmac(key, 32, "sts");
    hmac(key, 32, "aws4_request");
    hmac(key, 32, text);
    to_hex(key, hex);
    snprintf(text, sizeof(text),
             "AWS4-HMAC-SHA256 Credential=AKIASRCFAKE/%s/us-west-2/sts/aws4_request, "
             "SignedHeaders=content-type;host;x-amz-date, Signature=%s",
             day, hex);
    assert_string_equal(authorization, text);
    free(date);
    free(host);
    free(type);
}

/* Those that mean something to a service; the others are the client's name and habits. */
static void check_headers(const json_t *headers, const char *sent)
{
    static const char *const meaning[] = {
        "content-type",        "x-amz-sso_bearer_token",   "accept",
        "authorization",       "x-aws-ec2-metadata-token", "x-aws-ec2-metadata-token-ttl-seconds",
        "x-amz-security-token"
    };

    for (size_t i = 0; i < sizeof(meaning) / sizeof(meaning[0]); i++) {
        const char *recorded = NULL;
        char *ours = aws_header(sent, meaning[i]);
        json_t *header;
        size_t n;

        json_array_foreach(headers, n, header)
            if (strcasecmp(json_string_value(json_array_get(header, 0)), meaning[i]) == 0)
                recorded = json_string_value(json_array_get(header, 1));
        assert_true(!recorded == !ours);
        if (ours && strncmp(ours, "AWS4-", 5) == 0)
            check_signature(sent, ours);
        else if (ours)
            assert_string_equal(ours, recorded);
        free(ours);
    }
}

static void check_requests(const json_t *requests)
{
    json_t *recorded;
    size_t i;

    assert_int_equal(aws_request_count(fixture), json_array_size(requests));
    json_array_foreach(requests, i, recorded) {
        const char *sent = fixture->server.requests[i], *line = text_of(recorded, "requestLine");
        assert_memory_equal(sent, line, strlen(line));
        assert_memory_equal(sent + strlen(line), "\r\n", 2);
        check_headers(json_object_get(recorded, "headers"), sent);
        check_body(text_of(recorded, "bodyUtf8"), strstr(sent, "\r\n\r\n") + 4);
    }
}

/* ---- results ---- */

static void check_credentials(const json_t *result)
{
    static const char *const sources[][2] = {
        { "env", "environment" },
        { "shared-credentials-file", "shared credentials file" },
        { "config-file", "config file" },
        { "custom-process", "profile (process)" },
        { "assume-role", "profile (role)" },
        { "assume-role-with-web-identity", "web identity" },
        { "sso", "profile (SSO)" },
        { "container-role", "container" },
        { "iam-role", "instance metadata" },
    };
    const char *source = NULL, *token = json_string_value(json_object_get(result, "token"));

    for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++)
        if (strcmp(sources[i][0], text_of(result, "method")) == 0)
            source = sources[i][1];
    assert_non_null(source);
    assert_string_equal(fixture->got.source, source);
    assert_string_equal(fixture->got.access_key, text_of(result, "access_key"));
    assert_true(!token == !fixture->got.session_token);
    if (token)
        assert_string_equal(fixture->got.session_token, token);
    /* Six hours, in the recordings and here; the process has its own idea. */
    if (strcmp(text_of(result, "expires"), "None") == 0)
        assert_int_equal(fixture->got.expires, 0);
    else
        assert_true(fixture->got.expires > pf_aws_now() + 5 * 3600 * PF_NS_PER_SEC);
}

static void check_error(const char *error, int r)
{
    int code = !error || strncmp(error, "CredentialRetrievalError", 24) == 0 ? PINFOLD_EBACKEND
                                                                             : PINFOLD_EVALUE;

    assert_int_equal(r, -code);
    assert_int_equal(fixture->err.code, code);
    assert_true(strstr(fixture->err.msg, "AWS") != NULL);
}

static void replay(const char *name, const json_t *vector)
{
    const json_t *result = json_object_get(vector, "result");
    int r;

    aws_forget(fixture);
    write_files(name);
    set_environment(vector);
    r = aws_get(fixture, NULL);
    print_message("# %s: %s\n", name, r < 0 ? fixture->err.msg : fixture->got.source);
    if (json_is_object(result)) {
        assert_int_equal(r, 0);
        check_credentials(result);
    } else {
        check_error(json_string_value(result), r);
    }
    check_requests(json_object_get(vector, "requests"));
}

static void what_botocore_did_is_done(void **state)
{
    fixture = *state;
    fixture->server.answer = answer;
    assert_int_equal(each_vector("agentcore/recorded", "creds-*.json", replay), 22);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_botocore_did_is_done, aws_set_up, aws_tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
