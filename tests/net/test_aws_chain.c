/* SPDX-License-Identifier: Apache-2.0 */
/* Which source is asked when, what stops the search, and what becomes of services that fail. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <pinfold/log.h>

#include "net/aws_fixture.h"

/* What the server says to requests that have a text in them; the first that matches counts. */
struct line {
    const char *having;
    int status; /* 0: say nothing; -1: hang up; -2: credentials */
    const char *body;
};

static const struct line *script;

static char *say(void *ctx, const char *request)
{
    (void)ctx;
    for (const struct line *line = script; line->having; line++) {
        if (!strstr(request, line->having))
            continue;
        if (line->status == -2 && strncmp(request, "POST", 4) == 0)
            return aws_sts_reply(strstr(request, "WebIdentity&") ? "AssumeRoleWithWebIdentity"
                                                                 : "AssumeRole",
                                 line->body, 3600);
        if (line->status == -2)
            return aws_metadata_reply(line->body, "t", 3600);
        return line->status == 0    ? STALL
               : line->status == -1 ? NULL
                                    : aws_reply(line->status, line->body);
    }
    return aws_reply(418, "");
}

static int set_up(void **state)
{
    static const struct line nothing[] = { { NULL, 0, NULL } };
    struct aws_fixture *f;

    aws_set_up(state);
    f = *state;
    script = nothing;
    f->server.answer = say;
    return 0;
}

static void expect(struct aws_fixture *f, const struct pf_aws_options *options, const char *id,
                   const char *source)
{
    int r = aws_get(f, options);

    if (r < 0)
        fail_msg("%s", f->err.msg);
    assert_string_equal(f->got.access_key, id);
    assert_string_equal(f->got.source, source);
}

static void expect_error(struct aws_fixture *f, int code, const char *words)
{
    int r = aws_get(f, NULL);

    if (r != -code || f->err.code != code || !strstr(f->err.msg, words))
        fail_msg("%d instead of %d: %s (%s)", r, -code, f->err.msg, words);
    assert_null(f->got.access_key);
}

#define KEYS(id) "aws_access_key_id = " id "\naws_secret_access_key = SECRETWORD\n"
#define ROLE "role_arn = arn:aws:iam::1:role/r\n"

/* ---- the order ---- */

static void sources_are_asked_in_botocores_order(void **state)
{
    static const struct line lines[] = {
        { "Action=AssumeRole&", -2, "ROLE" },
        { "WebIdentity&", -2, "WEB" },
        { "GET /federation", 200,
          "{\"roleCredentials\":{\"accessKeyId\":\"SSO\",\"secretAccessKey\":\"s\","
          "\"sessionToken\":\"t\",\"expiration\":9999999999000}}" },
        { "GET /container", -2, "CONTAINER" },
        { "PUT ", 200, "token" },
        { "credentials/ HTTP", 200, "role/name" },
        { "credentials/role%2Fname", -2, "IMDS" },
        { NULL, 0, NULL },
    };
    const struct pf_aws_options keys = { .access_key = "GIVEN", .secret_key = "s" };
    const struct pf_aws_options profile = { .profile = "default" };
    struct aws_fixture *f = *state;
    char text[600];

    script = lines;
    setenv("AWS_ACCESS_KEY_ID", "ENVIRONMENT", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "s", 1);
    snprintf(text, sizeof(text), "%s/creds", f->url);
    setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", text, 1);
    snprintf(text, sizeof(text), "%s/container", f->url);
    setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", text, 1);
    setenv("AWS_EC2_METADATA_DISABLED", "false", 1);
    setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", f->url, 1);
    aws_file(f, "token", "jwt");
    aws_file(f, ".aws/credentials", "[default]\n" KEYS("SHARED"));
    aws_file(f, ".aws/config", "[default]\n" KEYS("CONFIG") ROLE "source_profile = default\n");

    expect(f, &keys, "GIVEN", "options");
    expect(f, NULL, "ENVIRONMENT", "environment");
    expect(f, &profile, "ROLE", "profile (role)");
    unsetenv("AWS_ACCESS_KEY_ID");
    expect(f, NULL, "ROLE", "profile (role)");
    snprintf(text, sizeof(text),
             "[default]\n" KEYS("CONFIG") ROLE
             "web_identity_token_file = %s/token\n"
             "sso_account_id = 1\nsso_role_name = r\nsso_region = us-east-1\nsso_start_url = u\n",
             f->dir);
    aws_file(f, ".aws/config", text);
    expect(f, NULL, "WEB", "web identity");
    /* sha1("u") */
    aws_file(f, ".aws/sso/cache/51e69892ab49df85c6230ccc57f8e1d1606caccc.json",
             "{\"accessToken\":\"t\",\"expiresAt\":\"2061-01-01T00:00:00Z\"}");
    aws_file(f, ".aws/config",
             "[default]\n" KEYS("CONFIG") "sso_account_id = 1\nsso_role_name = r\n"
                                          "sso_region = us-east-1\nsso_start_url = u\n");
    expect(f, NULL, "SSO", "profile (SSO)");
    aws_file(f, ".aws/config",
             "[default]\n" KEYS("CONFIG") "credential_process = sh -c \"echo "
                                          "'{\\\"Version\\\":1,\\\"AccessKeyId\\\":\\\"PROCESS\\\","
                                          "\\\"SecretAccessKey\\\":\\\"s\\\"}'\"\n");
    expect(f, NULL, "SHARED", "shared credentials file");
    aws_file(f, ".aws/credentials", "[other]\n");
    expect(f, NULL, "PROCESS", "profile (process)");
    aws_file(f, ".aws/config", "[default]\n" KEYS("CONFIG"));
    expect(f, NULL, "CONFIG", "config file");
    aws_file(f, ".aws/config", "[default]\n");
    expect(f, NULL, "CONTAINER", "container");
    unsetenv("AWS_CONTAINER_CREDENTIALS_FULL_URI");
    expect(f, NULL, "IMDS", "instance metadata");
}

static void the_last_error_names_each_source(void **state)
{
    struct aws_fixture *f = *state;

    expect_error(f, PINFOLD_EBACKEND,
                 "no AWS credentials: no AWS_ACCESS_KEY_ID; "
                 "no AWS_WEB_IDENTITY_TOKEN_FILE; no profile default; no "
                 "container's AWS_CONTAINER_CREDENTIALS_*; IMDS: ");
    aws_file(f, ".aws/config", "[default]\n");
    expect_error(f, PINFOLD_EBACKEND, "profile default has no keys, role, SSO or process");
}

static void odd_options_are_refused(void **state)
{
    struct aws_fixture *f = *state;
    const struct pf_aws_options odd[] = {
        { .access_key = "A" },
        { .secret_key = "s" },
        { .session_token = "t" },
        { .access_key = "A", .secret_key = "s", .profile = "p" },
        { .access_key = "A", .secret_key = "s\r\nx: y" },
    };

    for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++)
        assert_int_equal(aws_get(f, &odd[i]), -PINFOLD_EVALUE);
}

/* ---- what is there and wrong ---- */

static void what_is_wrong_hides_what_comes_after(void **state)
{
    static const struct {
        const char *config, *words;
    } cases[] = {
        { "[default]\nk = 1\nk = 2\n", "line 3" },
        { "[default]\naws_access_key_id = A\n", "no aws_secret_access_key" },
        { "[default]\naws_access_key_id = A B\naws_secret_access_key = s\n", "odd characters" },
        { "[default]\n" ROLE, "neither source_profile nor" },
        { "[default]\n" ROLE "source_profile = a\ncredential_source = Environment\n", "both" },
        { "[default]\n" ROLE "source_profile = gone\n", "no profile of the name" },
        { "[default]\n" ROLE "credential_source = Moon\n", "credential_source is none of" },
        { "[default]\n" ROLE "source_profile = default\n", "leads back" },
        { "[default]\n" ROLE "source_profile = a\n[profile a]\n" ROLE "source_profile = b\n"
          "[profile b]\n" ROLE "source_profile = a\n",
          "leads back" },
        { "[default]\n" ROLE "source_profile = a\n[profile a]\nregion = us-east-1\n",
          "has no credentials" },
        { "[default]\n" ROLE "source_profile = a\nmfa_serial = m\n[profile a]\n" KEYS("A"),
          "mfa_serial" },
        { "[default]\n" ROLE "source_profile = a\nduration_seconds = 1h\n[profile a]\n" KEYS("A"),
          "duration_seconds" },
        { "[default]\nweb_identity_token_file = /none\n", "neither AWS_ROLE_ARN nor role_arn" },
        { "[default]\nweb_identity_token_file = /none\n" ROLE, "no such file" },
        { "[default]\nsso_account_id = 1\n", "sso_role_name is missing" },
        { "[default]\nsso_account_id = 1\nsso_role_name = r\nsso_session = s\n",
          "no such sso-session" },
        { "[default]\nsso_account_id = 1\nsso_role_name = r\nsso_session = s\nsso_region = x\n"
          "[sso-session s]\nsso_region = y\nsso_start_url = u\n",
          "differs from its sso-session" },
        { "[default]\nsso_account_id = 1\nsso_role_name = r\nsso_region = evil.com/\n"
          "sso_start_url = u\n",
          "not the name of a region" },
        { "[default]\nsso_account_id = 1\nsso_role_name = r\nsso_region = us-east-1\n"
          "sso_start_url = u\n",
          "nobody has logged in" },
        { "[default]\nlogin_session = x\n", "login_session" },
        { "[default]\ncredential_process = a 'b\n", "a quote is not closed" },
        { "[default]\ncredential_process = echo SECRETWORD\n", "it is not JSON" },
        { "[default]\ncredential_process = echo {}\n", "Version is not 1" },
        { "[default]\ncredential_process = echo '{\"Version\":1,\"AccessKeyId\":\"SECRETWORD\"}'\n",
          "SecretAccessKey is missing" },
        { "[default]\ncredential_process = head -c 100000 /dev/zero\n", "prints more" },
    };
    struct aws_fixture *f = *state;
    char url[100];

    snprintf(url, sizeof(url), "%s/container", f->url);
    setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", url, 1); /* never reached */
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        aws_file(f, ".aws/config", cases[i].config);
        expect_error(f, PINFOLD_EVALUE, cases[i].words);
        assert_null(strstr(f->err.msg, "SECRETWORD"));
    }
    assert_int_equal(aws_request_count(f), 0);
}

static void a_process_that_fails_says_why(void **state)
{
    struct aws_fixture *f = *state;

    aws_file(f, ".aws/config",
             "[default]\ncredential_process = sh -c \"echo not today >&2; echo more >&2; exit "
             "3\"\n");
    expect_error(f, PINFOLD_EBACKEND, "exit code 3: not today");
    assert_null(strstr(f->err.msg, "more"));
    aws_file(f, ".aws/config", "[default]\ncredential_process = /nowhere/at/all\n");
    expect_error(f, PINFOLD_EBACKEND, "exit code 127");
}

static void a_token_that_would_be_two_headers_is_not_sent(void **state)
{
    struct aws_fixture *f = *state;
    char url[100];

    snprintf(url, sizeof(url), "%s/container", f->url);
    setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", url, 1);
    setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN", "SECRETWORD\r\nx: y", 1);
    expect_error(f, PINFOLD_EVALUE, "line end");
    assert_null(strstr(f->err.msg, "SECRETWORD"));
    setenv("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "@evil.com/", 1);
    expect_error(f, PINFOLD_EVALUE, "does not begin with /");
    assert_int_equal(aws_request_count(f), 0);
}

static void a_token_is_shown_to_nobody_far_without_https(void **state)
{
    static const char *const far[] = { "http://169.254.170.2.evil.com/", "http://10.0.0.1/",
                                       "http://localhost.evil.com/",     "http://2130706433/",
                                       "http://localhost@evil.com/",     "http://[::2]/",
                                       "http://127.0.0.1.evil.com/",     "file:///etc/passwd" };
    struct aws_fixture *f = *state;

    for (size_t i = 0; i < sizeof(far) / sizeof(far[0]); i++) {
        setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", far[i], 1);
        assert_int_equal(aws_get(f, NULL), -PINFOLD_EVALUE);
    }
}

/* ---- roles ---- */

static void a_role_of_a_role_is_signed_with_what_the_first_gave(void **state)
{
    static const struct line lines[] = { { "role%2Fr1", -2, "FIRST" },
                                         { "role%2Fr2", -2, "SECOND" },
                                         { NULL, 0, NULL } };
    struct aws_fixture *f = *state;
    char *authorization, *token;

    script = lines;
    aws_file(f, ".aws/config",
             "[default]\nrole_arn = arn:aws:iam::1:role/r2\nsource_profile = a\n"
             "[profile a]\nrole_arn = arn:aws:iam::1:role/r1\nsource_profile = b\n"
             "role_session_name = a b\n[profile b]\n" KEYS("BASE"));
    expect(f, NULL, "SECOND", "profile (role)");
    assert_string_equal(f->got.secret_key, "s&s");
    assert_int_equal(aws_request_count(f), 2);
    authorization = aws_header(f->server.requests[0], "authorization");
    assert_non_null(strstr(authorization, "Credential=BASE/"));
    free(authorization);
    assert_non_null(strstr(f->server.requests[0], "RoleSessionName=a%20b"));
    authorization = aws_header(f->server.requests[1], "authorization");
    token = aws_header(f->server.requests[1], "x-amz-security-token");
    assert_non_null(strstr(authorization, "Credential=FIRST/"));
    assert_non_null(strstr(authorization, "host;x-amz-date;x-amz-security-token,"));
    assert_string_equal(token, "ststoken");
    free(authorization);
    free(token);
}

static void a_refusal_is_told_without_what_was_asked(void **state)
{
    static const struct line denied[] = {
        { "POST /", 403,
          "<ErrorResponse><Error><Type>Sender</Type><Code>AccessDenied</Code><Message>User x may "
          "not\n\nThe canonical string SECRETWORD</Message></Error></ErrorResponse>" },
        { NULL, 0, NULL },
    };
    static const struct line unsigned_[] = {
        { "POST /", 403,
          "<ErrorResponse><Error><Code>SignatureDoesNotMatch</Code><Message>SECRETWORD</Message>"
          "</Error></ErrorResponse>" },
        { NULL, 0, NULL },
    };
    struct aws_fixture *f = *state;

    aws_file(f, ".aws/config", "[default]\n" ROLE "source_profile = a\n[profile a]\n" KEYS("BASE"));
    script = denied;
    expect_error(f, PINFOLD_EBACKEND, "HTTP 403: AccessDenied: User x may not");
    assert_int_equal(f->err.http_status, 403);
    assert_null(strstr(f->err.msg, "SECRETWORD"));
    script = unsigned_;
    expect_error(f, PINFOLD_EBACKEND, "SignatureDoesNotMatch");
    assert_null(strstr(f->err.msg, "SECRETWORD"));
    assert_int_equal(aws_request_count(f), 2);
}

static void a_service_that_fails_is_asked_three_times(void **state)
{
    static const struct line broken[] = { { "POST /", 500, "SECRETWORD" }, { NULL, 0, NULL } };
    static const struct line gone[] = { { "POST /", -1, NULL }, { NULL, 0, NULL } };
    struct aws_fixture *f = *state;

    aws_file(f, ".aws/config", "[default]\n" ROLE "source_profile = a\n[profile a]\n" KEYS("BASE"));
    script = broken;
    expect_error(f, PINFOLD_EBACKEND, "STS AssumeRole: the answer was HTTP 500");
    assert_null(strstr(f->err.msg, "SECRETWORD"));
    assert_int_equal(aws_request_count(f), 3);
    script = gone;
    expect_error(f, PINFOLD_EOS, "STS AssumeRole: POST ");
    assert_true(aws_request_count(f) >= 6);
}

static void answers_that_are_none_are_errors(void **state)
{
    static const char *const bodies[] = {
        "",
        "{}",
        "<html>",
        "<AssumeRoleResponse/>",
        "<AssumeRoleResponse><AssumeRoleResult><Credentials><AccessKeyId>A</AccessKeyId>"
        "<SecretAccessKey>SECRETWORD</SecretAccessKey><SessionToken>t</SessionToken>"
        "<Expiration>never</Expiration></Credentials></AssumeRoleResult></AssumeRoleResponse>",
    };
    struct aws_fixture *f = *state;
    struct line lines[2] = { { "POST /", 200, NULL }, { NULL, 0, NULL } };
    char *huge = malloc(200000);

    script = lines;
    aws_file(f, ".aws/config", "[default]\n" ROLE "source_profile = a\n[profile a]\n" KEYS("BASE"));
    for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
        lines[0].body = bodies[i];
        expect_error(f, PINFOLD_EBACKEND, "STS AssumeRole: ");
        assert_null(strstr(f->err.msg, "SECRETWORD"));
    }
    memset(huge, 'x', 199999);
    huge[199999] = '\0';
    lines[0].body = huge;
    expect_error(f, PINFOLD_EBACKEND, "too large");
    free(huge);
}

static void credentials_that_have_expired_are_none(void **state)
{
    struct aws_fixture *f = *state;

    setenv("AWS_ACCESS_KEY_ID", "A", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "s", 1);
    setenv("AWS_CREDENTIAL_EXPIRATION", "2020-01-01T00:00:00Z", 1);
    expect_error(f, PINFOLD_EBACKEND, "they have expired");
    setenv("AWS_CREDENTIAL_EXPIRATION", "tomorrow", 1);
    expect_error(f, PINFOLD_EVALUE, "AWS_CREDENTIAL_EXPIRATION is not a time");
}

/* ---- SSO ---- */

#define SSO_PROFILE                                                          \
    "[default]\nsso_session = corp\nsso_account_id = 1\nsso_role_name = r\n" \
    "[sso-session corp]\nsso_region = us-west-2\nsso_start_url = u\n"
#define CACHE ".aws/sso/cache/ee0bfd2552fbd840c02cc48b6e823320543c450f.json" /* sha1("corp") */
#define ROLE_REPLY                                                             \
    "{\"roleCredentials\":{\"accessKeyId\":\"SSO\",\"secretAccessKey\":\"s\"," \
    "\"sessionToken\":\"t\",\"expiration\":9999999999000}}"

static void write_cache(struct aws_fixture *f, int seconds)
{
    char text[512], when[32];

    snprintf(text, sizeof(text),
             "{\"accessToken\":\"OLD\",\"expiresAt\":\"%s\",\"clientId\":\"c\","
             "\"clientSecret\":\"s\",\"refreshToken\":\"r\",\"other\":{\"kept\":true}}",
             aws_in(seconds, when));
    aws_file(f, CACHE, text);
}

static void a_refreshed_token_is_kept_for_its_owner_alone(void **state)
{
    static const struct line lines[] = {
        { "POST /token", 200,
          "{\"accessToken\":\"NEW\",\"expiresIn\":3600,\"refreshToken\":\"r2\"}" },
        { "GET /federation", 200, ROLE_REPLY },
        { NULL, 0, NULL },
    };
    struct aws_fixture *f = *state;
    char path[400], *token;
    struct stat st;
    json_t *kept;

    script = lines;
    aws_file(f, ".aws/config", SSO_PROFILE);
    write_cache(f, 60);
    expect(f, NULL, "SSO", "profile (SSO)");
    token = aws_header(f->server.requests[1], "x-amz-sso_bearer_token");
    assert_string_equal(token, "NEW");
    free(token);
    snprintf(path, sizeof(path), "%s/" CACHE, f->dir);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    kept = json_load_file(path, 0, NULL);
    assert_string_equal(json_string_value(json_object_get(kept, "accessToken")), "NEW");
    assert_string_equal(json_string_value(json_object_get(kept, "refreshToken")), "r2");
    assert_string_equal(json_string_value(json_object_get(kept, "clientSecret")), "s");
    assert_true(json_is_true(json_object_get(json_object_get(kept, "other"), "kept")));
    json_decref(kept);
    aws_forget(f);
    expect(f, NULL, "SSO", "profile (SSO)"); /* with what was kept */
    assert_int_equal(aws_request_count(f), 1);
}

static void a_token_is_used_until_its_end_when_it_cannot_be_refreshed(void **state)
{
    static const struct line lines[] = { { "POST /token", 400, "{\"error\":\"SECRETWORD\"}" },
                                         { "GET /federation", 200, ROLE_REPLY },
                                         { NULL, 0, NULL } };
    static const struct line refused[] = { { "GET /federation", 401, "SECRETWORD" },
                                           { NULL, 0, NULL } };
    struct aws_fixture *f = *state;

    script = lines;
    aws_file(f, ".aws/config", SSO_PROFILE);
    write_cache(f, 300);
    expect(f, NULL, "SSO", "profile (SSO)");
    write_cache(f, -1);
    expect_error(f, PINFOLD_EBACKEND, "SSO token refresh: the answer was HTTP 400");
    assert_null(strstr(f->err.msg, "SECRETWORD"));
    aws_file(f, CACHE, "{\"accessToken\":\"OLD\",\"expiresAt\":\"2020-01-01T00:00:00Z\"}");
    expect_error(f, PINFOLD_EVALUE, "the login has expired: log in with aws sso login");
    aws_file(f, CACHE, "{\"accessToken\":\"SECRETWORD\"");
    expect_error(f, PINFOLD_EVALUE, "it is not JSON");
    assert_null(strstr(f->err.msg, "SECRETWORD"));
    script = refused;
    write_cache(f, 3600);
    expect_error(f, PINFOLD_EVALUE, "does not take the token");
}

/* ---- machines ---- */

static void a_machine_is_asked_the_older_way_when_it_knows_no_other(void **state)
{
    static const struct line older[] = { { "PUT ", 403, "" },
                                         { "credentials/ HTTP", 200, "role\nmore" },
                                         { "credentials/role ", -2, "IMDS" },
                                         { NULL, 0, NULL } };
    static const struct line none[] = { { "PUT ", 200, "t" },
                                        { "credentials/ HTTP", 404, "" },
                                        { NULL, 0, NULL } };
    static const struct line sick[] = { { "PUT ", 200, "t" },
                                        { "credentials/ HTTP", 200, "role" },
                                        { "role ", 200, "{\"Code\":\"AssumeRoleUnauthorized\"}" },
                                        { NULL, 0, NULL } };
    static const struct line odd[] = { { "PUT ", 400, "" }, { NULL, 0, NULL } };
    struct aws_fixture *f = *state;

    setenv("AWS_EC2_METADATA_DISABLED", "", 1);
    setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", f->url, 1);
    script = older;
    expect(f, NULL, "IMDS", "instance metadata");
    setenv("AWS_EC2_METADATA_V1_DISABLED", "true", 1);
    expect_error(f, PINFOLD_EBACKEND, "IMDS: HTTP 403 for a token");
    unsetenv("AWS_EC2_METADATA_V1_DISABLED");
    script = odd;
    expect_error(f, PINFOLD_EBACKEND, "IMDS: HTTP 400 for a token");
    script = none;
    expect_error(f, PINFOLD_EBACKEND, "IMDS: HTTP 404");
    script = sick;
    expect_error(f, PINFOLD_EBACKEND, "IMDS: AssumeRoleUnauthorized");
}

static void keys_that_are_nearly_over_are_stretched(void **state)
{
    static const struct line lines[] = {
        { "PUT ", 200, "t" },
        { "credentials/ HTTP", 200, "role" },
        { "role ", 200,
          "{\"AccessKeyId\":\"A\",\"SecretAccessKey\":\"s\",\"Token\":\"t\","
          "\"Expiration\":\"2020-01-01T00:00:00Z\"}" },
        { NULL, 0, NULL },
    };
    struct aws_fixture *f = *state;

    setenv("AWS_EC2_METADATA_DISABLED", "", 1);
    setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", f->url, 1);
    script = lines;
    expect(f, NULL, "A", "instance metadata");
    assert_true(f->got.expires > pf_aws_now() + 15 * 60 * PF_NS_PER_SEC);
    assert_true(f->got.expires < pf_aws_now() + 26 * 60 * PF_NS_PER_SEC);
}

/* ---- nothing secret goes astray ---- */

static void look_for_secrets(void *ctx, enum pinfold_log_level level, const char *message)
{
    (void)level;
    ++*(int *)ctx;
    assert_null(strstr(message, "SECRETWORD"));
}

static void a_file_that_others_can_read_is_worth_a_line_of_the_log(void **state)
{
    struct aws_fixture *f = *state;
    char path[400];
    int lines = 0;

    aws_file(f, ".aws/credentials", "[default]\n" KEYS("A"));
    snprintf(path, sizeof(path), "%s/.aws/credentials", f->dir);
    assert_int_equal(chmod(path, 0600), 0);
    pinfold_log_set_handler(look_for_secrets, &lines);
    expect(f, NULL, "A", "shared credentials file");
    assert_int_equal(lines, 0);
    assert_int_equal(chmod(path, 0644), 0);
    expect(f, NULL, "A", "shared credentials file");
    assert_int_equal(lines, 1);
    pinfold_log_set_handler(NULL, NULL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, aws_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(sources_are_asked_in_botocores_order),
        TEST(the_last_error_names_each_source),
        TEST(odd_options_are_refused),
        TEST(what_is_wrong_hides_what_comes_after),
        TEST(a_process_that_fails_says_why),
        TEST(a_token_that_would_be_two_headers_is_not_sent),
        TEST(a_token_is_shown_to_nobody_far_without_https),
        TEST(a_role_of_a_role_is_signed_with_what_the_first_gave),
        TEST(a_refusal_is_told_without_what_was_asked),
        TEST(a_service_that_fails_is_asked_three_times),
        TEST(answers_that_are_none_are_errors),
        TEST(credentials_that_have_expired_are_none),
        TEST(a_refreshed_token_is_kept_for_its_owner_alone),
        TEST(a_token_is_used_until_its_end_when_it_cannot_be_refreshed),
        TEST(a_machine_is_asked_the_older_way_when_it_knows_no_other),
        TEST(keys_that_are_nearly_over_are_stretched),
        TEST(a_file_that_others_can_read_is_worth_a_line_of_the_log),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
