/* SPDX-License-Identifier: Apache-2.0 */
/* A fake of all three services (tests/models/fake.py), and models that ask it. Include after
 * cmocka.h. */
#ifndef TESTS_AGENT_FAKE_MODELS_H
#define TESTS_AGENT_FAKE_MODELS_H

#include <fcntl.h>
#include <jansson.h>
#include <pinfold/model.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "net/http.h"

#define KEY "sk-test-0123456789"

static struct {
    pid_t pid;
    int leash;
    char endpoint[100];
} fake;

static inline int start_fake(void **state)
{
    char *argv[] = { (char[]){ "python3" }, getenv("PINFOLD_FAKE_MODELS"), NULL };
    posix_spawn_file_actions_t actions;
    int in[2], out[2];
    char line[1000] = "";
    json_t *said;
    FILE *from;

    (void)state;
    if (!argv[1]) {
        print_message("PINFOLD_FAKE_MODELS does not name the fake\n");
        return -1;
    }
    assert_int_equal(pipe2(in, O_CLOEXEC), 0);
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in[0], 0);
    posix_spawn_file_actions_adddup2(&actions, out[1], 1);
    assert_int_equal(posix_spawn(&fake.pid, "/usr/bin/python3", &actions, NULL, argv, environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    close(in[0]);
    close(out[1]);
    fake.leash = in[1];
    from = fdopen(out[0], "re");
    if (!fgets(line, sizeof(line), from)) {
        print_message("the fake did not start\n");
        return -1;
    }
    fclose(from);
    said = json_loads(line, 0, NULL);
    snprintf(fake.endpoint, sizeof(fake.endpoint), "%s",
             json_string_value(json_object_get(said, "endpoint")));
    json_decref(said);
    return 0;
}

static inline int end_fake(void **state)
{
    int status;

    (void)state;
    close(fake.leash);
    assert_int_equal(waitpid(fake.pid, &status, 0), fake.pid);
    return 0;
}

/* The requests that came under a token. The caller owns the list. */
static inline json_t *kept(const char *token)
{
    char url[500];
    struct pf_http *http;
    struct pf_http_response response;
    struct pf_http_request request = { .method = "GET",
                                       .url = url,
                                       .bypass_proxy = true,
                                       .deadline = pf_clock_deadline(60 * PF_NS_PER_SEC),
                                       .response_max = 10000000 };
    json_t *answer;

    snprintf(url, sizeof(url), "%s/kept/%s", fake.endpoint, token);
    assert_int_equal(pf_http_new(&http, NULL), 0);
    assert_int_equal(pf_http_perform(http, &request, &response, NULL, NULL), 0);
    answer = json_loads(response.body.data, 0, NULL);
    pf_http_response_done(&response);
    pf_http_free(http);
    assert_non_null(answer);
    return answer;
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
