/* SPDX-License-Identifier: Apache-2.0 */
/* What is sent again, what is not, and what is put right before it is. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "net/agentcore_server.h"

static int start(void)
{
    json_t *reply = NULL;
    int r;

    f->err = (struct pinfold_error)PINFOLD_ERROR_INIT;
    r = pf_agentcore_start(f->client, NULL, &f->call, &reply, &f->err);
    json_decref(reply);
    return r;
}

static int invoke(const char *tool)
{
    struct pf_agentcore_result result = { 0 };
    int r;

    f->err = (struct pinfold_error)PINFOLD_ERROR_INIT;
    r = pf_agentcore_invoke(f->client, "S", tool, NULL, &f->call, &result, &f->err);
    pf_agentcore_result_done(&result);
    return r;
}

static const char *token_in(const char *request)
{
    static char tokens[2][64];
    static unsigned next;
    char *slot = tokens[next++ % 2];
    const char *at = strstr(request, "\"clientToken\":\"");

    assert_non_null(at);
    snprintf(slot, 64, "%.36s", at + 15);
    return slot;
}

static void a_session_is_started_again_with_the_same_token(void **state)
{
    (void)state;
    f->server.replies[0] = BROKEN;
    f->server.replies[1] = BUSY;
    f->server.replies[2] = OK_START;
    assert_int_equal(start(), 0);
    assert_int_equal(f->server.request_count, 3);
    assert_string_equal(token_in(f->server.requests[0]), token_in(f->server.requests[2]));
    assert_non_null(strstr(f->server.requests[2], "amz-sdk-request: attempt=3; max="));
}

static void a_command_is_not_sent_again_when_it_may_have_run(void **state)
{
    (void)state;
    f->server.replies[0] = BROKEN;
    assert_int_equal(invoke("executeCommand"), -PINFOLD_EBACKEND);
    assert_int_equal(f->err.retryable, 0);
    assert_int_equal(f->server.request_count, 1);
    f->server.replies[0] = NULL; /* hang up */
    assert_true(invoke("executeCode") < 0);
    assert_int_equal(f->err.retryable, 0);
    assert_int_equal(f->server.request_count, 2);
}

static void a_command_is_sent_again_when_it_cannot_have_run(void **state)
{
    (void)state;
    f->server.replies[0] = BUSY;
    f->server.replies[1] = TEXT_REPLY("200 OK", "Content-Length: 0\r\n", "");
    assert_int_equal(invoke("executeCommand"), 0);
    assert_int_equal(f->server.request_count, 2);
}

static void files_are_read_again_after_a_failure(void **state)
{
    (void)state;
    f->server.replies[0] = BROKEN;
    f->server.replies[1] = TEXT_REPLY("200 OK", "Content-Length: 0\r\n", "");
    assert_int_equal(invoke("readFiles"), 0);
    assert_int_equal(f->server.request_count, 2);
}

static void expired_credentials_are_asked_for_once_more(void **state)
{
    (void)state;
    f->server.replies[0] = EXPIRED;
    f->server.replies[1] = OK_START;
    assert_int_equal(start(), 0);
    assert_int_equal(f->server.request_count, 2);
    forget_requests();
    f->server.replies[1] = EXPIRED;
    assert_int_equal(start(), -PINFOLD_EBACKEND);
    assert_int_equal(f->server.request_count, 2);
    assert_int_equal(f->err.http_status, 403);
}

static void a_clock_that_is_wrong_is_put_right_once(void **state)
{
    static char reply[300]; /* the server may still look at it when the client has it whole */
    char date[64];
    time_t later = time(NULL) + 3 * 3600;
    struct tm tm;

    (void)state;
    gmtime_r(&later, &tm);
    strftime(date, sizeof(date), "%a, %d %b %Y %H:%M:%S GMT", &tm);
    snprintf(reply, sizeof(reply),
             "HTTP/1.1 403 No\r\nDate: %s\r\nx-amzn-errortype: SignatureDoesNotMatch\r\n"
             "Content-Length: 0\r\n\r\n",
             date);
    f->server.replies[0] = reply;
    f->server.replies[1] = TEXT_REPLY("200 OK", "Content-Length: 0\r\n", "");
    assert_int_equal(invoke("executeCommand"), 0);
    assert_int_equal(f->server.request_count, 2);
    strftime(date, sizeof(date), "x-amz-date: %Y%m%dT%H", &tm);
    assert_non_null(strcasestr(f->server.requests[1], date));
    forget_requests();
    f->server.replies[1] = reply;
    assert_int_equal(invoke("executeCommand"), -PINFOLD_EBACKEND);
    assert_int_equal(f->server.request_count, 1); /* it is right by now: that was not it */
}

/* A reply of an error with a date that is so many seconds ahead of ours. */
static const char *error_at(const char *error, int status, long seconds, char text[static 400])
{
    time_t when = time(NULL) + seconds;
    char date[64];
    struct tm tm;

    gmtime_r(&when, &tm);
    strftime(date, sizeof(date), "%a, %d %b %Y %H:%M:%S GMT", &tm);
    snprintf(text, 400,
             "HTTP/1.1 %d No\r\nDate: %s\r\nx-amzn-errortype: %s\r\nContent-Length: 2\r\n\r\n{}",
             status, date, error);
    return text;
}

/* As AWS's client was recorded to decide, but for commands that may have run. */
static void each_error_is_tried_again_or_not(void **state)
{
    static const struct {
        const char *error;
        int status;
        long ahead; /* seconds of the service's clock */
        unsigned command_requests, get_requests;
    } rows[] = {
        { "ServiceQuotaExceededException", 402, 0, 1, 1 },
        { "ResourceNotFoundException", 404, 0, 1, 1 },
        { "ConflictException", 409, 0, 1, 1 },
        { "ValidationException", 400, 0, 1, 1 },
        { "AccessDeniedException", 403, 0, 1, 1 },
        { "RuntimeClientError", 424, 0, 1, 1 },
        { "ThrottlingException", 429, 0, 2, 2 },
        { "InternalServerException", 500, 0, 1, 2 },
        { "ServiceUnavailable", 503, 0, 1, 2 },
        { "BadGateway", 502, 0, 1, 2 },
        { "GatewayTimeout", 504, 0, 1, 2 },
        { "NotImplemented", 501, 0, 1, 1 },
        { "SignatureDoesNotMatch", 403, 600, 2, 2 },
        { "InvalidSignatureException", 403, -600, 2, 2 },
        { "RequestTimeTooSkewed", 403, 120, 1, 1 },
        { "RequestTimeTooSkewed", 403, 600, 2, 2 },
        { "AccessDenied", 403, 600, 2, 2 },
    };
    char text[400];

    (void)state;
    for (size_t i = 0; i < PF_COUNT(rows); i++) {
        json_t *got = NULL;
        int r;
        start_client("aws.codeinterpreter.v1"); /* which knows no offset yet */
        f->server.replies[0] = error_at(rows[i].error, rows[i].status, rows[i].ahead, text);
        f->server.replies[1] = TEXT_REPLY("200 OK", "Content-Length: 0\r\n", "");
        forget_requests();
        r = invoke("executeCommand");
        if (f->server.request_count != rows[i].command_requests)
            fail_msg("%s: %u requests", rows[i].error, f->server.request_count);
        assert_int_equal(r, rows[i].command_requests == 2 ? 0 : -PINFOLD_EBACKEND);
        start_client("aws.codeinterpreter.v1");
        f->server.replies[1] = OK_START;
        forget_requests();
        r = pf_agentcore_get(f->client, "S", &f->call, &got, &f->err);
        json_decref(got);
        if (f->server.request_count != rows[i].get_requests)
            fail_msg("%s of get: %u requests", rows[i].error, f->server.request_count);
        assert_int_equal(r, rows[i].get_requests == 2 ? 0 : -PINFOLD_EBACKEND);
    }
}

static void waiting_to_try_again_ends_at_once_when_cancelled(void **state)
{
    struct pinfold_cancel *cancel;

    (void)state;
    assert_int_equal(pinfold_cancel_new(&cancel, NULL), 0);
    pinfold_cancel_fire(cancel);
    f->call.cancel = cancel;
    f->server.replies[0] = BUSY;
    assert_int_equal(start(), -PINFOLD_ECANCELLED);
    pinfold_cancel_free(cancel);
    f->call.cancel = NULL;
}

static void when_time_runs_out_the_answer_before_is_told(void **state)
{
    (void)state;
    f->server.replies[0] = TEXT_REPLY("429 Too Many Requests",
                                      "Content-Length: 2\r\nx-amzn-requestid: R7\r\n"
                                      "x-amzn-errortype: ThrottlingException\r\n",
                                      "{}");
    f->server.replies[1] = SILENCE;
    f->call.deadline = pf_clock_deadline(2 * PF_NS_PER_SEC);
    assert_int_equal(invoke("executeCommand"), -PINFOLD_ETIMEOUT);
    assert_int_equal(f->server.request_count, 2);
    assert_int_equal(f->err.http_status, 429);
    assert_int_equal(f->err.retryable, 0); /* the second one may have run */
    assert_non_null(strstr(f->err.msg, "no answer in time; before that: "));
    assert_non_null(strstr(f->err.msg, "HTTP 429 ThrottlingException (request R7)"));
}

static void an_answer_that_repeats_a_secret_does_not_bring_it_into_an_error(void **state)
{
    (void)state;
    f->server.replies[0] =
            TEXT_REPLY("400 No", "Content-Length: 69\r\nx-amzn-requestid: R\r\n",
                       "x-amz-security-token: fakeToken==, fakeToken==\nand fakeSecretKey.\nEnd");
    assert_int_equal(start(), -PINFOLD_EBACKEND);
    assert_null(strstr(f->err.msg, "fakeToken"));
    assert_null(strstr(f->err.msg, "fakeSecret"));
    assert_non_null(strstr(f->err.msg, "token: [secret], [secret]\\x0aand [secret].\\x0aEnd"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_SERVER(a_session_is_started_again_with_the_same_token),
        WITH_SERVER(a_command_is_not_sent_again_when_it_may_have_run),
        WITH_SERVER(a_command_is_sent_again_when_it_cannot_have_run),
        WITH_SERVER(files_are_read_again_after_a_failure),
        WITH_SERVER(expired_credentials_are_asked_for_once_more),
        WITH_SERVER(a_clock_that_is_wrong_is_put_right_once),
        WITH_SERVER(each_error_is_tried_again_or_not),
        WITH_SERVER(when_time_runs_out_the_answer_before_is_told),
        WITH_SERVER(waiting_to_try_again_ends_at_once_when_cancelled),
        WITH_SERVER(an_answer_that_repeats_a_secret_does_not_bring_it_into_an_error),
    };

    return cmocka_run_group_tests_name("agentcore_retry", tests, NULL, NULL);
}
