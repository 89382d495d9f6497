/* SPDX-License-Identifier: Apache-2.0 */
/* A fake of all three services (tests/models/fake.py), and models that ask it. Include after
 * cmocka.h. */
#ifndef TESTS_AGENT_FAKE_MODELS_H
#define TESTS_AGENT_FAKE_MODELS_H

#include <jansson.h>
#include <pinfold/model.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/talk.h"
#include "fake_service.h"

#define KEY "sk-test-0123456789"

static struct fake_service fake;
static struct pinfold_message hello; /* "hello", for any request */

static inline int set_up(void **state)
{
    static const char *const others[] = { "ANTHROPIC_API_KEY", "OPENAI_API_KEY",
                                          "AWS_BEARER_TOKEN_BEDROCK", "ANTHROPIC_BASE_URL",
                                          "OPENAI_BASE_URL" };

    (void)state;
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        unsetenv(others[i]);
    hello = user("hello");
    return start_service(&fake, "PINFOLD_FAKE_MODELS");
}

static inline int tear_down(void **state)
{
    (void)state;
    pinfold_message_done(&hello);
    end_service(&fake);
    return 0;
}

/* The requests that came under a token. The caller owns the list. */
static inline json_t *kept(const char *token)
{
    char url[500];

    snprintf(url, sizeof(url), "%s/kept/%s", fake.endpoint, token);
    return ask_service("GET", url, NULL);
}

static inline size_t count_kept(const char *token)
{
    json_t *list = kept(token);
    size_t count = json_array_size(list);

    json_decref(list);
    return count;
}

/* The body of the last request under a token. The caller owns it. */
static inline json_t *last_body(const char *token)
{
    json_t *list = kept(token);
    json_t *body =
            json_incref(json_object_get(json_array_get(list, json_array_size(list) - 1), "body"));

    json_decref(list);
    assert_non_null(body);
    return body;
}

/* Another token each time. */
static inline const char *new_token(void)
{
    static char token[32];
    static int number;

    snprintf(token, sizeof(token), "t%d", ++number);
    return token;
}

/* ---- models ---- */

enum { ANTHROPIC, OPENAI, BEDROCK, PROVIDERS };

static const char *const provider_names[] = { "anthropic", "openai", "bedrock" };

static int (*const makers[])(const struct pinfold_model_options *, struct pinfold_model **,
                             struct pinfold_error *) = { pinfold_model_anthropic_new,
                                                         pinfold_model_openai_new,
                                                         pinfold_model_bedrock_new };

/* Options that reach the fake; what is in them may be changed before a model is made. */
static inline struct pinfold_model_options options_for(int provider, const char *model,
                                                       const char *switches, char url[static 500])
{
    struct pinfold_model_options options = PINFOLD_MODEL_OPTIONS_INIT;

    snprintf(url, 500, "%s/s/x=%s%s%s%s", fake.endpoint, provider_names[provider],
             *switches ? "," : "", switches, provider == OPENAI ? "/v1" : "");
    options.model = model;
    options.base_url = url;
    options.backoff_seconds = 0.01;
    if (provider == BEDROCK) {
        options.region = "us-west-2";
        options.access_key = "AKIDEXAMPLE";
        options.secret_key = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";
        options.session_token = "session/token==";
    } else {
        options.api_key = KEY;
    }
    return options;
}

static inline struct pinfold_model *make_model(int provider,
                                               const struct pinfold_model_options *options)
{
    struct pinfold_model *model = NULL;
    struct pinfold_error err = PINFOLD_ERROR_INIT;

    if (makers[provider](options, &model, &err) < 0)
        fail_msg("%s: %s", provider_names[provider], err.msg);
    return model;
}

static inline struct pinfold_model *model_of(int provider, const char *model, const char *switches)
{
    char url[500];
    struct pinfold_model_options options = options_for(provider, model, switches, url);

    return make_model(provider, &options);
}

#endif
