/* SPDX-License-Identifier: Apache-2.0 */
/* Where requests go: what the environment and the profiles say, and AWS's own hosts. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "net/agentcore.h"
#include "net/aws_fixture.h"

static struct aws_fixture *f;

static int set_up(void **state)
{
    int r = aws_set_up(state);

    f = *state;
    unsetenv("AWS_ENDPOINT_URL_STS");
    unsetenv("AWS_ENDPOINT_URL_SSO");
    unsetenv("AWS_ENDPOINT_URL_SSO_OIDC");
    return r;
}

/* Ask as a new program would. */
static int locate(const char *service, const char *host, const char *region, const char *given,
                  char **ret)
{
    static const struct pf_aws_options none;

    f->err = (struct pinfold_error)PINFOLD_ERROR_INIT;
    return pf_aws_service_url(&none, given, service, host, region, ret, &f->err);
}

static void is_at(const char *service, const char *host, const char *region, const char *wanted)
{
    _cleanup_free_ char *url = NULL;

    if (locate(service, host, region, NULL, &url) < 0)
        fail_msg("%s in %s: %s", service, region, f->err.msg);
    assert_string_equal(url, wanted);
}

static void agentcore_is_at(const char *wanted)
{
    is_at("bedrock_agentcore", "bedrock-agentcore", "us-west-2", wanted);
}

static void is_refused(const char *given, const char *because)
{
    char *url;

    assert_int_equal(locate("bedrock_agentcore", "bedrock-agentcore", "us-west-2", given, &url),
                     -PINFOLD_EVALUE);
    if (!strstr(f->err.msg, because))
        fail_msg("\"%s\" does not say \"%s\"", f->err.msg, because);
}

/* ---- AWS's own ---- */

static void hosts_are_those_of_the_region_and_of_the_kind_that_is_wanted(void **state)
{
    static const struct {
        const char *service, *host, *region, *urls[4]; /* usual, FIPS, dual stack, both */
    } rows[] = {
#define ROW(service, host, both_host, fips_host, region, suffix, dual)                            \
    {                                                                                             \
        service, host, region,                                                                    \
        {                                                                                         \
            "https://" host "." region "." suffix, "https://" fips_host "." region "." suffix,    \
                    "https://" host "." region "." dual, "https://" both_host "." region "." dual \
        }                                                                                         \
    }
#define AGENTCORE(region, suffix, dual)                                     \
    ROW("bedrock_agentcore", "bedrock-agentcore", "bedrock-agentcore-fips", \
        "bedrock-agentcore-fips", region, suffix, dual)
        AGENTCORE("us-west-2", "amazonaws.com", "api.aws"),
        AGENTCORE("il-central-1", "amazonaws.com", "api.aws"),
        AGENTCORE("us-gov-west-1", "amazonaws.com", "api.aws"),
        AGENTCORE("cn-north-1", "amazonaws.com.cn", "api.amazonwebservices.com.cn"),
        AGENTCORE("eusc-de-east-1", "amazonaws.eu", "api.amazonwebservices.eu"),
        AGENTCORE("us-iso-east-1", "c2s.ic.gov", "api.aws.ic.gov"),
        AGENTCORE("us-isob-east-1", "sc2s.sgov.gov", "api.aws.scloud"),
        AGENTCORE("us-isof-south-1", "csp.hci.ic.gov", "api.aws.hci.ic.gov"),
        AGENTCORE("eu-isoe-west-1", "cloud.adc-e.uk", "api.cloud-aws.adc-e.uk"),
        ROW("sts", "sts", "sts-fips", "sts-fips", "us-west-2", "amazonaws.com", "api.aws"),
        ROW("sts", "sts", "sts-fips", "sts", "us-gov-west-1", "amazonaws.com", "api.aws"),
        ROW("sso", "portal.sso", "portal.sso-fips", "portal.sso-fips", "us-east-1", "amazonaws.com",
            "api.aws"),
        ROW("bedrock_runtime", "bedrock-runtime", "bedrock-runtime-fips", "bedrock-runtime-fips",
            "us-gov-west-1", "amazonaws.com", "api.aws"),
        { "s3",
          "s3",
          "us-gov-west-1",
          { "https://s3.us-gov-west-1.amazonaws.com", "https://s3-fips.us-gov-west-1.amazonaws.com",
            "https://s3.dualstack.us-gov-west-1.amazonaws.com",
            "https://s3-fips.dualstack.us-gov-west-1.amazonaws.com" } },
        ROW("sso_oidc", "oidc", "oidc-fips", "oidc", "us-gov-east-1", "amazonaws.com", "api.aws"),
#undef AGENTCORE
#undef ROW
    };

    (void)state;
    for (unsigned kind = 0; kind < 4; kind++) {
        setenv("AWS_USE_FIPS_ENDPOINT", kind & 1 ? "true" : "false", 1);
        setenv("AWS_USE_DUALSTACK_ENDPOINT", kind & 2 ? "TRUE" : "False", 1);
        for (size_t i = 0; i < PF_COUNT(rows); i++)
            is_at(rows[i].service, rows[i].host, rows[i].region, rows[i].urls[kind]);
    }
}

static void what_is_no_region_is_no_part_of_a_host(void **state)
{
    static const char *const bad[] = { "",           "us",        "us-west", "us-west-2.evil.org",
                                       "us-west-2/", "US-WEST-2", "us--1",   "-us-1",
                                       "us-west-2@x" };
    char *url;

    (void)state;
    for (size_t i = 0; i < PF_COUNT(bad); i++)
        assert_int_equal(locate("bedrock_agentcore", "bedrock-agentcore", bad[i], NULL, &url),
                         -PINFOLD_EVALUE);
}

/* ---- configured ones ---- */

static void each_place_of_an_endpoint_hides_those_after_it(void **state)
{
    _cleanup_free_ char *url = NULL;

    (void)state;
    aws_file(f, ".aws/config", "[default]\nendpoint_url = http://of-profile/\n");
    agentcore_is_at("http://of-profile");
    aws_file(f, ".aws/config",
             "[default]\nservices = mine\nendpoint_url = http://of-profile\n"
             "[services mine]\nsts =\n  endpoint_url = http://of-sts\n"
             "bedrock_agentcore =\n  endpoint_url = http://of-service:81/\n");
    agentcore_is_at("http://of-service:81");
    is_at("sts", "sts", "us-west-2", "http://of-sts");
    is_at("sso", "portal.sso", "us-west-2", "http://of-profile");
    setenv("AWS_ENDPOINT_URL", "http://of-all", 1);
    agentcore_is_at("http://of-all");
    setenv("AWS_ENDPOINT_URL_BEDROCK_AGENTCORE", "http://of-one:1//", 1);
    agentcore_is_at("http://of-one:1");
    assert_int_equal(
            locate("bedrock_agentcore", "bedrock-agentcore", "us-west-2", "http://given/", &url),
            0);
    assert_string_equal(url, "http://given");
    setenv("AWS_ENDPOINT_URL_BEDROCK_AGENTCORE", "", 1); /* as if it were not there */
    agentcore_is_at("http://of-all");
}

static void another_profile_has_its_own_services(void **state)
{
    (void)state;
    aws_file(f, ".aws/config",
             "[default]\nendpoint_url = http://of-default\n"
             "[profile other]\nservices = theirs\n"
             "[services theirs]\nbedrock_agentcore =\n  endpoint_url = http://of-other\n"
             "[profile bare]\nservices = none\n");
    agentcore_is_at("http://of-default");
    setenv("AWS_PROFILE", "other", 1);
    agentcore_is_at("http://of-other");
    setenv("AWS_PROFILE", "bare", 1);
    agentcore_is_at("https://bedrock-agentcore.us-west-2.amazonaws.com");
}

static void configured_endpoints_can_be_ignored_but_not_what_the_program_says(void **state)
{
    _cleanup_free_ char *url = NULL;

    (void)state;
    setenv("AWS_ENDPOINT_URL_BEDROCK_AGENTCORE", "http://of-one", 1);
    aws_file(f, ".aws/config", "[default]\nignore_configured_endpoint_urls = true\n");
    agentcore_is_at("https://bedrock-agentcore.us-west-2.amazonaws.com");
    setenv("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "false", 1);
    agentcore_is_at("http://of-one");
    setenv("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "True", 1);
    agentcore_is_at("https://bedrock-agentcore.us-west-2.amazonaws.com");
    assert_int_equal(
            locate("bedrock_agentcore", "bedrock-agentcore", "us-west-2", "http://given", &url), 0);
    assert_string_equal(url, "http://given");
}

static void the_kind_can_be_the_profiles(void **state)
{
    (void)state;
    aws_file(f, ".aws/config",
             "[default]\nuse_fips_endpoint = true\nuse_dualstack_endpoint = true\n");
    agentcore_is_at("https://bedrock-agentcore-fips.us-west-2.api.aws");
    setenv("AWS_USE_FIPS_ENDPOINT", "false", 1);
    agentcore_is_at("https://bedrock-agentcore.us-west-2.api.aws");
}

static void what_contradicts_itself_is_refused(void **state)
{
    (void)state;
    setenv("AWS_USE_FIPS_ENDPOINT", "1", 1);
    is_refused(NULL, "AWS_USE_FIPS_ENDPOINT is \"1\", neither true nor false");
    setenv("AWS_USE_FIPS_ENDPOINT", "true", 1);
    is_refused("http://given", "FIPS");
    setenv("AWS_ENDPOINT_URL", "http://of-all", 1);
    is_refused(NULL, "FIPS");
    unsetenv("AWS_USE_FIPS_ENDPOINT");
    setenv("AWS_USE_DUALSTACK_ENDPOINT", "true", 1);
    is_refused(NULL, "dual stack");
    unsetenv("AWS_USE_DUALSTACK_ENDPOINT");
    setenv("AWS_ENDPOINT_URL", "gopher://x", 1);
    is_refused(NULL, "no http or https address");
    setenv("AWS_PROFILE", "missing", 1);
    is_refused(NULL, "missing");
}

/* ---- the region ---- */

static void the_region_has_an_order_too(void **state)
{
    const struct pf_aws_options given = { .region = "eu-west-1" };
    const struct pf_aws_options none = { 0 }, odd = { .region = "us-east-1.evil.com/" };
    char region[PF_AWS_REGION_MAX];

    (void)state;
    aws_file(f, ".aws/config", "[default]\nregion = ap-south-1\n");
    setenv("AWS_DEFAULT_REGION", "us-east-2", 1);
    assert_int_equal(pf_aws_region(&given, region, &f->err), 0);
    assert_string_equal(region, "eu-west-1");
    assert_int_equal(pf_aws_region(&none, region, &f->err), 0);
    assert_string_equal(region, "us-west-2");
    unsetenv("AWS_REGION");
    assert_int_equal(pf_aws_region(&none, region, &f->err), 0);
    assert_string_equal(region, "us-east-2");
    unsetenv("AWS_DEFAULT_REGION");
    assert_int_equal(pf_aws_region(&none, region, &f->err), 0);
    assert_string_equal(region, "ap-south-1");
    aws_file(f, ".aws/config", "");
    assert_int_equal(pf_aws_region(&none, region, &f->err), -PINFOLD_EVALUE);
    assert_non_null(strstr(f->err.msg, "AWS_DEFAULT_REGION"));
    assert_int_equal(pf_aws_region(&odd, region, &f->err), -PINFOLD_EVALUE);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, aws_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(hosts_are_those_of_the_region_and_of_the_kind_that_is_wanted),
        TEST(what_is_no_region_is_no_part_of_a_host),
        TEST(each_place_of_an_endpoint_hides_those_after_it),
        TEST(another_profile_has_its_own_services),
        TEST(configured_endpoints_can_be_ignored_but_not_what_the_program_says),
        TEST(the_kind_can_be_the_profiles),
        TEST(what_contradicts_itself_is_refused),
        TEST(the_region_has_an_order_too),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
