/* SPDX-License-Identifier: Apache-2.0 */
/* Where the provider of Amazon Bedrock sends its requests: as AWS's own tools would. */
#include "agents.h"

#include "net/aws_fixture.h"

static struct aws_fixture *f;
static struct pinfold_model *model;
static struct pinfold_model_options options;

static char *refuse(void *ctx, const char *request)
{
    (void)ctx;
    (void)request;
    return aws_reply(400, "{}");
}

static int set_up(void **state)
{
    int r = aws_set_up(state);

    f = *state;
    f->server.answer = refuse;
    model = NULL;
    options = (struct pinfold_model_options)PINFOLD_MODEL_OPTIONS_INIT;
    options.model = "m";
    options.access_key = "AKID";
    options.secret_key = "secret";
    options.attempts = 1;
    return r;
}

static int tear_down(void **state)
{
    unsetenv("https_proxy");
    pinfold_model_unref(model);
    return aws_tear_down(state);
}

/* Ask once; the start of the request that arrives is this. */
static void asks(const char *start)
{
    struct pinfold_model_request request = PINFOLD_MODEL_REQUEST_INIT;
    struct pinfold_message message = { .role = PINFOLD_ROLE_USER };
    struct pinfold_model_reply reply = { 0 };

    pinfold_model_unref(model);
    model = NULL;
    if (pinfold_model_bedrock_new(&options, &model, &f->err) < 0)
        fail_msg("%s", f->err.msg);
    aws_forget(f);
    assert_int_equal(pinfold_message_add_text(&message, "hi", 2, NULL), 0);
    request.messages = &message;
    request.message_count = 1;
    assert_int_not_equal(pinfold_model_converse(model, &request, &reply, NULL, &f->err), 0);
    pinfold_message_done(&message);
    assert_true(aws_request_count(f) > 0);
    if (strncmp(f->server.requests[0], start, strlen(start)) != 0)
        fail_msg("not %s but %.80s", start, f->server.requests[0]);
}

static void every_place_of_an_endpoint_counts(void **state)
{
    char config[512], url[128];

    (void)state;
    snprintf(config, sizeof(config),
             "[default]\nservices = s\n[services s]\nbedrock_runtime =\n  endpoint_url = "
             "%s/profile\n",
             f->url);
    aws_file(f, ".aws/config", config);
    asks("POST /profile/model/m/converse-stream ");
    snprintf(url, sizeof(url), "%s/all", f->url);
    setenv("AWS_ENDPOINT_URL", url, 1);
    asks("POST /all/model/m/converse-stream ");
    snprintf(url, sizeof(url), "%s/env/", f->url);
    setenv("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", url, 1);
    asks("POST /env/model/m/converse-stream ");
    snprintf(url, sizeof(url), "%s/given", f->url);
    options.base_url = url;
    asks("POST /given/model/m/converse-stream ");
    options.base_url = NULL;
    setenv("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "true", 1);
    setenv("https_proxy", f->url, 1);
    asks("CONNECT bedrock-runtime.us-west-2.amazonaws.com:443 ");
}

static void fips_and_dual_stack_have_hosts_of_their_own(void **state)
{
    (void)state;
    setenv("https_proxy", f->url, 1);
    asks("CONNECT bedrock-runtime.us-west-2.amazonaws.com:443 ");
    setenv("AWS_USE_FIPS_ENDPOINT", "true", 1);
    asks("CONNECT bedrock-runtime-fips.us-west-2.amazonaws.com:443 ");
    setenv("AWS_USE_DUALSTACK_ENDPOINT", "true", 1);
    asks("CONNECT bedrock-runtime-fips.us-west-2.api.aws:443 ");
    unsetenv("AWS_USE_FIPS_ENDPOINT");
    asks("CONNECT bedrock-runtime.us-west-2.api.aws:443 ");
    unsetenv("AWS_USE_DUALSTACK_ENDPOINT");
    options.region = "us-gov-west-1";
    setenv("AWS_USE_FIPS_ENDPOINT", "true", 1);
    asks("CONNECT bedrock-runtime-fips.us-gov-west-1.amazonaws.com:443 ");
}

static void an_address_and_fips_exclude_each_other(void **state)
{
    (void)state;
    options.base_url = f->url;
    setenv("AWS_USE_FIPS_ENDPOINT", "true", 1);
    assert_int_equal(pinfold_model_bedrock_new(&options, &model, &f->err), -PINFOLD_EVALUE);
    has_text(f->err.msg, "bedrock model: the endpoint of bedrock_runtime: FIPS and an address of");
    setenv("AWS_USE_FIPS_ENDPOINT", "1", 1);
    assert_int_equal(pinfold_model_bedrock_new(&options, &model, &f->err), -PINFOLD_EVALUE);
    has_text(f->err.msg, "neither true nor false");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(every_place_of_an_endpoint_counts),
        TEST(fips_and_dual_stack_have_hosts_of_their_own),
        TEST(an_address_and_fips_exclude_each_other),
    };

    return cmocka_run_group_tests_name("model_bedrock", tests, NULL, NULL);
}
