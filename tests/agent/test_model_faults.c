/* SPDX-License-Identifier: Apache-2.0 */
/* Services that fail, stall, lie and cut off; keys that must stay where they belong. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "agent/fake_models.h"
#include "base/cleanup.h"
#include "descriptors.h"

/* A model whose requests are kept under a token, made with "id=TOKEN," before the switches. */
static struct pinfold_model *kept_model(int provider, const char *name, const char *token,
                                        const char *switches, unsigned attempts)
{
    char all[300], url[500];
    struct pinfold_model_options options;

    snprintf(all, sizeof(all), "id=%s,%s", token, switches);
    options = options_for(provider, name, all, url);
    options.attempts = attempts;
    return make_model(provider, &options);
}

/* ---- trying again ---- */

static void what_passes_is_tried_again(void **state)
{
    static const int statuses[] = { 408, 409, 429, 500, 502, 503, 529 };

    (void)state;
    for (int provider = 0; provider < PROVIDERS; provider++)
        for (size_t i = 0; i < PF_COUNT(statuses); i++) {
            const char *token = new_token();
            char switches[50];
            struct pinfold_model *model;
            struct pinfold_model_reply reply;
            static struct ear ear;

            ear = (struct ear){ .len = 0 };
            snprintf(switches, sizeof(switches), "fail=%d,times=2", statuses[i]);
            model = kept_model(provider, "text", token, switches, 0);
            assert_int_equal(ask(model, &hello, 1, &ear, &reply, NULL), 0);
            assert_int_equal(reply.attempts, 3);
            assert_int_equal(count_kept(token), 3);
            assert_int_equal(ear.retries, 2);
            snprintf(switches, sizeof(switches), "HTTP %d", statuses[i]);
            assert_non_null(strstr(ear.heard, switches));
            pinfold_model_reply_done(&reply);
            pinfold_model_unref(model);
        }
}

static void what_does_not_pass_is_not(void **state)
{
    static const struct {
        int status, code;
    } cases[] = {
        { 400, PINFOLD_EVALUE }, { 401, PINFOLD_EOS },    { 402, PINFOLD_EBACKEND },
        { 403, PINFOLD_EOS },    { 404, PINFOLD_EVALUE }, { 413, PINFOLD_EVALUE },
        { 422, PINFOLD_EVALUE },
    };

    (void)state;
    for (int provider = 0; provider < PROVIDERS; provider++)
        for (size_t i = 0; i < PF_COUNT(cases); i++) {
            const char *token = new_token();
            char switches[50];
            struct pinfold_model *model;
            struct pinfold_model_reply reply;
            struct pinfold_error err;

            snprintf(switches, sizeof(switches), "fail=%d", cases[i].status);
            model = kept_model(provider, "text", token, switches, 0);
            assert_int_equal(ask(model, &hello, 1, NULL, &reply, &err), -cases[i].code);
            assert_int_equal(err.http_status, cases[i].status);
            assert_int_equal(err.sys_errno, cases[i].code == PINFOLD_EOS ? EACCES : 0);
            assert_int_equal(err.retryable, 0);
            assert_int_equal(count_kept(token), 1);
            pinfold_model_unref(model);
        }
}

static void errors_say_who_said_what(void **state)
{
    static const char *const wanted[] = {
        "anthropic model text: HTTP 529 overloaded_error (request req_1): It was asked for",
        "openai model text: HTTP 529 overloaded_error: It was asked for",
        "bedrock model text: HTTP 529 ServiceUnavailableException (request aws-req-1): It was "
        "asked "
        "for",
    };

    (void)state;
    for (int provider = 0; provider < PROVIDERS; provider++) {
        struct pinfold_model *model = kept_model(provider, "text", new_token(), "fail=529", 1);
        struct pinfold_model_reply reply;
        struct pinfold_error err;

        assert_int_equal(ask(model, &hello, 1, NULL, &reply, &err), -PINFOLD_EBACKEND);
        assert_string_equal(err.msg, wanted[provider]);
        assert_int_equal(err.retryable, 1);
        pinfold_model_unref(model);
    }
}

static void attempts_have_an_end(void **state)
{
    (void)state;
    for (int provider = 0; provider < PROVIDERS; provider++) {
        const char *token = new_token();
        struct pinfold_model *model = kept_model(provider, "text", token, "fail=503", 3);
        struct pinfold_model_reply reply;
        struct pinfold_error err;

        assert_int_equal(ask(model, &hello, 1, NULL, &reply, &err), -PINFOLD_EBACKEND);
        assert_int_equal(count_kept(token), 3);
        pinfold_model_unref(model);
    }
}

static void a_service_may_say_how_long_to_wait(void **state)
{
    static const char *const waits[] = { "fail=429,times=1,after_ms=300",
                                         "fail=429,times=1,after=0.3" };

    (void)state;
    for (size_t i = 0; i < PF_COUNT(waits); i++) {
        struct pinfold_model *model = kept_model(ANTHROPIC, "text", new_token(), waits[i], 0);
        struct pinfold_model_reply reply;
        int64_t begin = pf_clock_now();

        assert_int_equal(ask(model, &hello, 1, NULL, &reply, NULL), 0);
        assert_true(pf_clock_now() - begin >= 300 * PF_NS_PER_MS);
        pinfold_model_reply_done(&reply);
        pinfold_model_unref(model);
    }
}

static void nobody_waits_for_hours(void **state)
{
    static const char *const waits[] = { "fail=429,after=3600", "fail=429,after_date=3600",
                                         "fail=503,after=1e300", "fail=429,should=false" };

    (void)state;
    for (size_t i = 0; i < PF_COUNT(waits); i++) {
        const char *token = new_token();
        struct pinfold_model *model = kept_model(OPENAI, "text", token, waits[i], 0);
        struct pinfold_model_reply reply;
        struct pinfold_error err;

        assert_int_equal(ask(model, &hello, 1, NULL, &reply, &err), -PINFOLD_EBACKEND);
        assert_int_equal(count_kept(token), 1);
        pinfold_model_unref(model);
    }
}

static void a_service_may_ask_to_be_tried_again(void **state)
{
    const char *token = new_token();
    struct pinfold_model *model =
            kept_model(ANTHROPIC, "text", token, "fail=400,times=1,should=true", 0);
    struct pinfold_model_reply reply;

    (void)state;
    assert_int_equal(ask(model, &hello, 1, NULL, &reply, NULL), 0);
    assert_int_equal(count_kept(token), 2);
    pinfold_model_reply_done(&reply);
    pinfold_model_unref(model);
}

static void an_empty_account_is_not_tried_again(void **state)
{
    const char *token = new_token();
    struct pinfold_model *model =
            kept_model(OPENAI, "text", token, "fail=429,type=insufficient_quota", 0);
    struct pinfold_model_reply reply;
    struct pinfold_error err;

    (void)state;
    assert_int_equal(ask(model, &hello, 1, NULL, &reply, &err), -PINFOLD_EBACKEND);
    assert_int_equal(err.retryable, 0);
    assert_int_equal(count_kept(token), 1);
    pinfold_model_unref(model);
}

static void a_connection_that_breaks_is_tried_again(void **state)
{
    (void)state;
    for (int provider = 0; provider < PROVIDERS; provider++) {
        const char *token = new_token();
        struct pinfold_model *model = kept_model(provider, "text", token, "drop=2", 0);
        struct pinfold_model_reply reply;

        assert_int_equal(ask(model, &hello, 1, NULL, &reply, NULL), 0);
        assert_true(count_kept(token) >= 3);
        pinfold_model_reply_done(&reply);
        pinfold_model_unref(model);
    }
}

/* ---- errors in the stream ---- */

static const char *const stream_errors[] = { "error_at=5,type=overloaded_error", "error_at=3",
                                             "error_at=3,type=throttlingException" };
static const int stream_statuses[] = { 529, 0, 429 };

static void an_error_in_the_stream_is_tried_again_if_nobody_has_heard(void **state)
{
    (void)state;
    for (int provider = 0; provider < PROVIDERS; provider++)
        for (int heard = 0; heard < 2; heard++) {
            const char *token = new_token();
            struct pinfold_model *model =
                    kept_model(provider, "text", token, stream_errors[provider], 3);
            struct pinfold_model_reply reply;
            struct pinfold_error err;
            static struct ear ear;

            ear = (struct ear){ .len = 0 };
            assert_int_equal(ask(model, &hello, 1, heard ? &ear : NULL, &reply, &err),
                             -PINFOLD_EBACKEND);
            assert_non_null(strstr(err.msg, provider == ANTHROPIC ? "Overloaded"
                                            : provider == OPENAI  ? "The server had an error"
                                                                  : "It failed"));
            assert_int_equal(err.http_status, stream_statuses[provider]);
            assert_int_equal(err.retryable, 1);
            assert_int_equal(count_kept(token), heard ? 1 : 3);
            assert_int_equal(ear.pieces > 0, heard);
            pinfold_model_unref(model);
        }
}

static void an_error_before_all_text_is_tried_again(void **state)
{
    static const char *const first[] = { "error_at=1", "error_at=0,type=llama", "error_at=1" };

    (void)state;
    for (int provider = 0; provider < PROVIDERS; provider++) {
        const char *token = new_token();
        struct pinfold_model *model = kept_model(provider, "text", token, first[provider], 3);
        struct pinfold_model_reply reply;
        struct pinfold_error err;
        static struct ear ear;

        ear = (struct ear){ .len = 0 };
        assert_int_equal(ask(model, &hello, 1, &ear, &reply, &err), -PINFOLD_EBACKEND);
        assert_int_equal(count_kept(token), 3);
        assert_int_equal(ear.retries, 2);
        pinfold_model_unref(model);
    }
}

static void what_a_stream_refuses_is_not_tried_again(void **state)
{
    static const char *const refusals[] = { "error_at=1,type=invalid_request_error", NULL,
                                            "error_at=1,type=validationException" };

    (void)state;
    for (int provider = 0; provider < PROVIDERS; provider++) {
        const char *token = new_token();
        struct pinfold_model *model;
        struct pinfold_model_reply reply;
        struct pinfold_error err;

        if (!refusals[provider])
            continue;
        model = kept_model(provider, "text", token, refusals[provider], 3);
        assert_int_equal(ask(model, &hello, 1, NULL, &reply, &err), -PINFOLD_EVALUE);
        assert_int_equal(err.http_status, 400);
        assert_int_equal(count_kept(token), 1);
        pinfold_model_unref(model);
    }
}

static void a_model_that_gave_up_is_an_error(void **state)
{
    static const struct {
        int provider;
        const char *finish;
    } cases[] = {
        { OPENAI, "finish=abort" },
        { OPENAI, "finish=error" },
        { BEDROCK, "finish=malformed_tool_use" },
        { BEDROCK, "finish=malformed_model_output" },
    };

    (void)state;
    for (size_t i = 0; i < PF_COUNT(cases); i++) {
        struct pinfold_model *model =
                kept_model(cases[i].provider, "text", new_token(), cases[i].finish, 1);
        struct pinfold_model_reply reply;
        struct pinfold_error err;

        assert_int_equal(ask(model, &hello, 1, NULL, &reply, &err), -PINFOLD_EBACKEND);
        assert_int_equal(err.retryable, 1);
        pinfold_model_unref(model);
    }
}

/* ---- stopping ---- */

static void a_listener_can_stop_a_reply_at_any_event(void **state)
{
    (void)state;
    for (int provider = 0; provider < PROVIDERS; provider++)
        for (int fire = 0; fire < 2; fire++)
            for (size_t after = 1; after <= 11; after++) {
                int before = count_descriptors();
                struct pinfold_model *model = model_of(provider, "tool", "");
                struct pinfold_model_reply reply;
                struct pinfold_error err;
                static struct ear ear;
                int r;

                ear = (struct ear){ .stop_after = after };
                if (fire)
                    assert_int_equal(pinfold_cancel_new(&ear.fire, NULL), 0);
                r = ask(model, &hello, 1, &ear, &reply, &err);
                /* A token that fires when all is there already may come too late. */
                assert_true(r == -PINFOLD_ECANCELLED || (r == 0 && fire));
                assert_true(r == 0 || ear.events >= after);
                if (r == 0)
                    pinfold_model_reply_done(&reply);
                pinfold_cancel_free(ear.fire);
                pinfold_model_unref(model);
                assert_int_equal(count_descriptors(), before);
            }
}

struct stopper {
    struct pinfold_cancel *cancel;
    const char *token;
};

/* Fires once the request has arrived. */
static void *fire_later(void *ctx)
{
    struct stopper *stopper = ctx;

    while (count_kept(stopper->token) == 0)
        usleep(1000);
    usleep(20000);
    pinfold_cancel_fire(stopper->cancel);
    return NULL;
}

static void a_token_ends_a_wait_for_the_service(void **state)
{
    static const char *const waits[] = { "stall=0", "stall=200", "fail=429,after=50" };

    (void)state;
    for (int provider = 0; provider < PROVIDERS; provider++)
        for (size_t i = 0; i < PF_COUNT(waits); i++) {
            int before = count_descriptors();
            struct stopper stopper = { .token = new_token() };
            struct pinfold_model *model = kept_model(provider, "text", stopper.token, waits[i], 0);
            struct pinfold_model_request request = PINFOLD_MODEL_REQUEST_INIT;
            struct pinfold_model_reply reply;
            struct pinfold_error err;
            pthread_t thread;

            request.messages = &hello;
            request.message_count = 1;
            assert_int_equal(pinfold_cancel_new(&stopper.cancel, NULL), 0);
            pthread_create(&thread, NULL, fire_later, &stopper);
            assert_int_equal(pinfold_model_converse(model, &request, &reply, stopper.cancel, &err),
                             -PINFOLD_ECANCELLED);
            pthread_join(thread, NULL);
            pinfold_cancel_free(stopper.cancel);
            pinfold_model_unref(model);
            assert_int_equal(count_descriptors(), before);
        }
}

static void a_service_that_goes_quiet_is_given_up(void **state)
{
    (void)state;
    for (int provider = 0; provider < PROVIDERS; provider++)
        for (int whole = 0; whole < 2; whole++) {
            char url[500];
            struct pinfold_model_options options = options_for(provider, "text", "stall=200", url);
            struct pinfold_model *model;
            struct pinfold_model_reply reply;
            struct pinfold_error err;

            options.attempts = 2;
            if (whole)
                options.timeout_seconds = 0.5;
            else
                options.idle_timeout_seconds = 0.3;
            model = make_model(provider, &options);
            assert_int_equal(ask(model, &hello, 1, NULL, &reply, &err), -PINFOLD_ETIMEOUT);
            assert_non_null(
                    strstr(err.msg, whole ? "no answer in time" : "nothing arrived for too long"));
            pinfold_model_unref(model);
        }
}

static void when_time_runs_out_the_answer_before_is_told(void **state)
{
    (void)state;
    for (int provider = 0; provider < PROVIDERS; provider++) {
        char switches[100], url[500];
        struct pinfold_model_options options;
        struct pinfold_model *model;
        struct pinfold_model_reply reply;
        struct pinfold_error err;

        snprintf(switches, sizeof(switches), "id=%s,fail=529,times=1,stall=0", new_token());
        options = options_for(provider, "text", switches, url);
        options.timeout_seconds = 2;
        model = make_model(provider, &options);
        assert_int_equal(ask(model, &hello, 1, NULL, &reply, &err), -PINFOLD_ETIMEOUT);
        assert_int_equal(err.http_status, 529);
        assert_non_null(strstr(err.msg, " in time; before that: "));
        assert_non_null(strstr(err.msg, "HTTP 529"));
        pinfold_model_unref(model);
    }
}

/* A request that was put right is not why the time ran out: nothing says that it is wrong. */
static void when_time_runs_out_what_was_put_right_is_not_told(void **state)
{
    char switches[100], url[500];
    struct pinfold_model_options options;
    struct pinfold_model *model;
    struct pinfold_model_reply reply;
    struct pinfold_error err;

    (void)state;
    snprintf(switches, sizeof(switches), "id=%s,unknown=stream_options,stall=0", new_token());
    options = options_for(OPENAI, "text", switches, url);
    options.timeout_seconds = 1;
    model = make_model(OPENAI, &options);
    assert_int_equal(ask(model, &hello, 1, NULL, &reply, &err), -PINFOLD_ETIMEOUT);
    assert_int_equal(err.http_status, 0);
    assert_null(strstr(err.msg, "before that"));
    pinfold_model_unref(model);
}

static void a_reply_that_is_whole_does_not_wait_for_the_connection(void **state)
{
    (void)state;
    for (int provider = 0; provider < PROVIDERS; provider++) {
        struct pinfold_model *model = model_of(provider, "text", "hang=1");
        struct pinfold_model_reply reply;

        assert_int_equal(ask(model, &hello, 1, NULL, &reply, NULL), 0);
        pinfold_model_reply_done(&reply);
        pinfold_model_unref(model);
    }
}

/* ---- services that mean no good ---- */

static void replies_have_a_largest_size(void **state)
{
    static const char *const switches[] = { "endless=1", "" };

    (void)state;
    for (int provider = 0; provider < PROVIDERS; provider++)
        for (size_t i = 0; i < 2; i++) {
            char url[500];
            struct pinfold_model_options options = options_for(provider, "long", switches[i], url);
            struct pinfold_model *model;
            struct pinfold_model_reply reply;
            struct pinfold_error err;

            options.max_reply_bytes = 500000;
            model = make_model(provider, &options);
            assert_int_equal(ask(model, &hello, 1, NULL, &reply, &err), -PINFOLD_EBACKEND);
            /* To Bedrock's reader a stream of comments is none from the start. */
            if (i == 1 || provider != BEDROCK)
                assert_non_null(strstr(err.msg, "the reply is larger than 500000 bytes"));
            pinfold_model_unref(model);
        }
}

static void a_web_page_is_no_reply(void **state)
{
    (void)state;
    for (int provider = 0; provider < PROVIDERS; provider++) {
        struct pinfold_model *model = kept_model(provider, "text", new_token(), "html=1", 1);
        struct pinfold_model_reply reply;
        struct pinfold_error err;

        assert_int_equal(ask(model, &hello, 1, NULL, &reply, &err), -PINFOLD_EBACKEND);
        if (provider != BEDROCK)
            assert_non_null(strstr(err.msg, "is the base URL right?"));
        pinfold_model_unref(model);
    }
}

static void redirects_are_not_followed(void **state)
{
    (void)state;
    for (int provider = 0; provider < PROVIDERS; provider++) {
        const char *token = new_token();
        char switches[300];
        struct pinfold_model *model;
        struct pinfold_model_reply reply;
        struct pinfold_error err;

        /* To the same fake: it would keep what comes. */
        snprintf(switches, sizeof(switches), "redirect=%s%%2Fs%%2Fid%%3D%s-b%%2Fv1%%2Fmessages",
                 fake.endpoint, token);
        for (char *at = strstr(switches, "//"); at;) {
            memmove(at + 6, at + 2, strlen(at + 2) + 1);
            memcpy(at, "%2F%2F", 6);
            break;
        }
        model = kept_model(provider, "text", token, switches, 2);
        assert_int_equal(ask(model, &hello, 1, NULL, &reply, &err), -PINFOLD_EBACKEND);
        assert_int_equal(err.http_status, 307);
        assert_non_null(strstr(err.msg, "redirects are not followed"));
        assert_int_equal(count_kept(token), 1);
        snprintf(switches, sizeof(switches), "%s-b", token);
        assert_int_equal(count_kept(switches), 0);
        pinfold_model_unref(model);
    }
}

/* ---- keys ---- */

static void keys_are_in_no_error(void **state)
{
    (void)state;
    for (int provider = 0; provider < PROVIDERS; provider++) {
        char url[500];
        struct pinfold_model_options options =
                options_for(provider, "text", "fail=401,echo=1", url);
        struct pinfold_model *model;
        struct pinfold_model_reply reply;
        struct pinfold_error err;

        options.access_key = options.secret_key = options.session_token = NULL;
        options.api_key = KEY;
        model = make_model(provider, &options);
        assert_int_equal(ask(model, &hello, 1, NULL, &reply, &err), -PINFOLD_EOS);
        assert_non_null(strstr(err.msg, "Wrong key"));
        assert_non_null(strstr(err.msg, "[secret]"));
        assert_null(strstr(err.msg, KEY));
        pinfold_model_unref(model);
    }
}

/* What signs is not sent; what says whose session it is, is. */
static void tokens_of_sessions_are_in_no_error(void **state)
{
    char url[500];
    struct pinfold_model_options options = options_for(BEDROCK, "text", "fail=401,echo=1", url);
    struct pinfold_model *model = make_model(BEDROCK, &options);
    struct pinfold_model_reply reply;
    struct pinfold_error err;

    (void)state;
    assert_int_equal(ask(model, &hello, 1, NULL, &reply, &err), -PINFOLD_EOS);
    assert_non_null(strstr(err.msg, "Wrong key [secret] AWS4"));
    assert_null(strstr(err.msg, options.session_token));
    pinfold_model_unref(model);
}

static void keys_do_not_travel_in_plain_text(void **state)
{
    static const struct {
        const char *base;
        bool ok;
    } cases[] = {
        { "http://models.example:8000/v1", false },
        { "http://127.0.0.1.example/v1", false },
        { "http://localhost.example/v1", false },
        { "http://128.0.0.1/v1", false },
        { "http://[::2]:80/v1", false },
        { "HTTP://models.example/v1", false },
        { "https://models.example/v1", true },
        { "http://127.0.0.1:1/v1", true },
        { "http://127.9.9.9/v1", true },
        { "http://localhost:1/v1/", true },
        { "http://[::1]:1/v1", true },
    };

    (void)state;
    for (int provider = 0; provider < PROVIDERS; provider++)
        for (size_t i = 0; i < PF_COUNT(cases); i++) {
            char url[500];
            struct pinfold_model_options options = options_for(provider, "text", "", url);
            struct pinfold_model *model = NULL;
            struct pinfold_error err;

            if (provider == BEDROCK && strncmp(cases[i].base, "HTTP", 4) == 0)
                continue;
            options.base_url = cases[i].base;
            assert_int_equal(makers[provider](&options, &model, &err),
                             cases[i].ok ? 0 : -PINFOLD_EVALUE);
            if (!cases[i].ok) {
                assert_non_null(strstr(err.msg, "in plain text"));
                assert_null(strstr(err.msg, KEY));
                options.allow_plain_http = true;
                assert_int_equal(makers[provider](&options, &model, &err), 0);
            }
            pinfold_model_unref(model);
        }
}

static void options_that_make_no_sense_are_refused(void **state)
{
    static const double hot = 3;

    (void)state;
    for (int provider = 0; provider < PROVIDERS; provider++)
        for (int i = 0; i < 10; i++) {
            char url[500];
            struct pinfold_model_options options = options_for(provider, "text", "", url);
            struct pinfold_model *model = NULL;
            struct pinfold_error err = PINFOLD_ERROR_INIT;

            switch (i) {
            case 0:
                options.model = "";
                break;
            case 1:
                options.base_url = "ftp://x";
                break;
            case 2:
                options.base_url = "https://user@x/";
                break;
            case 3:
                options.base_url = "https:///v1";
                break;
            case 4:
                options.api_key = "a\nb";
                break;
            case 5:
                options.attempts = 21;
                break;
            case 6:
                options.timeout_seconds = -1;
                break;
            case 7:
                options.temperature = &hot;
                break;
            case 8:
                options.extra = "[1]";
                break;
            default:
                options.size = 3;
                break;
            }
            assert_int_equal(makers[provider](&options, &model, &err), -PINFOLD_EVALUE);
            assert_null(model);
            assert_true(err.msg[0]);
        }
}

static void models_are_made_by_provider_and_name(void **state)
{
    struct pinfold_model_options options = PINFOLD_MODEL_OPTIONS_INIT;
    struct pinfold_model *model = NULL;
    struct pinfold_error err;

    (void)state;
    options.api_key = KEY;
    options.region = "us-west-2";
    for (int provider = 0; provider < PROVIDERS; provider++) {
        char spec[50];
        snprintf(spec, sizeof(spec), "%s:some:model", provider_names[provider]);
        assert_int_equal(pinfold_model_open(spec, &options, &model, NULL), 0);
        assert_string_equal(pinfold_model_provider(model), provider_names[provider]);
        assert_string_equal(pinfold_model_name(model), "some:model");
        pinfold_model_unref(model);
    }
    assert_int_equal(pinfold_model_open("scripted:/proc/nonexistent", NULL, &model, &err),
                     -PINFOLD_EOS);
    assert_int_equal(pinfold_model_open("clever:x", &options, &model, &err), -PINFOLD_EVALUE);
    assert_non_null(strstr(err.msg, "there is no provider \"clever\""));
    assert_int_equal(pinfold_model_open("openai:", &options, &model, &err), -PINFOLD_EVALUE);
    assert_int_equal(pinfold_model_open("gpt", &options, &model, &err), -PINFOLD_EVALUE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_passes_is_tried_again),
        cmocka_unit_test(what_does_not_pass_is_not),
        cmocka_unit_test(errors_say_who_said_what),
        cmocka_unit_test(attempts_have_an_end),
        cmocka_unit_test(a_service_may_say_how_long_to_wait),
        cmocka_unit_test(nobody_waits_for_hours),
        cmocka_unit_test(a_service_may_ask_to_be_tried_again),
        cmocka_unit_test(an_empty_account_is_not_tried_again),
        cmocka_unit_test(a_connection_that_breaks_is_tried_again),
        cmocka_unit_test(an_error_in_the_stream_is_tried_again_if_nobody_has_heard),
        cmocka_unit_test(an_error_before_all_text_is_tried_again),
        cmocka_unit_test(what_a_stream_refuses_is_not_tried_again),
        cmocka_unit_test(a_model_that_gave_up_is_an_error),
        cmocka_unit_test(a_listener_can_stop_a_reply_at_any_event),
        cmocka_unit_test(a_token_ends_a_wait_for_the_service),
        cmocka_unit_test(a_service_that_goes_quiet_is_given_up),
        cmocka_unit_test(when_time_runs_out_the_answer_before_is_told),
        cmocka_unit_test(when_time_runs_out_what_was_put_right_is_not_told),
        cmocka_unit_test(a_reply_that_is_whole_does_not_wait_for_the_connection),
        cmocka_unit_test(replies_have_a_largest_size),
        cmocka_unit_test(a_web_page_is_no_reply),
        cmocka_unit_test(redirects_are_not_followed),
        cmocka_unit_test(keys_are_in_no_error),
        cmocka_unit_test(tokens_of_sessions_are_in_no_error),
        cmocka_unit_test(keys_do_not_travel_in_plain_text),
        cmocka_unit_test(options_that_make_no_sense_are_refused),
        cmocka_unit_test(models_are_made_by_provider_and_name),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
