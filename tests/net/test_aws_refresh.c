/* SPDX-License-Identifier: Apache-2.0 */
/* Credentials that threads share: who renews them, when, and who waits for it. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <semaphore.h>
#include <stdatomic.h>
#include <sys/resource.h>

#include "net/aws_fixture.h"

enum { THREADS = 8 };

/* The service of a container, as one test wants it. */
struct service {
    atomic_int seconds; /* that credentials are good for */
    atomic_int status;
    atomic_bool gated; /* answer only when the gate is opened, once for each answer */
    atomic_int stalls; /* which request from now on stays without an answer; 0: none */
    sem_t gate, asked;
};

struct test {
    struct aws_fixture *f; /* first: its set-up makes it */
    struct service service;
    struct pf_aws_provider *provider;
};

static char *say(void *ctx, const char *request)
{
    struct service *service = ctx;
    char id[32];

    (void)request;
    sem_post(&service->asked);
    if (service->stalls > 0 && --service->stalls == 0)
        return STALL;
    if (service->gated)
        sem_wait(&service->gate);
    if (service->status != 200)
        return aws_reply(service->status, "");
    snprintf(id, sizeof(id), "LASTS%d", service->seconds);
    return aws_metadata_reply(id, "t", service->seconds);
}

static int set_up(void **state)
{
    static const struct pf_aws_options none;
    struct test *test = calloc(1, sizeof(*test));
    void *fixture;
    char url[100];

    aws_set_up(&fixture);
    test->f = fixture;
    test->f->server.answer = say;
    test->f->server.ctx = &test->service;
    test->service.status = 200;
    test->service.seconds = 3600;
    sem_init(&test->service.gate, 0, 0);
    sem_init(&test->service.asked, 0, 0);
    snprintf(url, sizeof(url), "%s/creds", test->f->url);
    setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", url, 1);
    assert_int_equal(pf_aws_provider_new(&none, test->f->http, &test->provider, NULL), 0);
    *state = test;
    return 0;
}

static int tear_down(void **state)
{
    struct test *test = *state;
    void *fixture = test->f;

    pf_aws_provider_free(test->provider);
    aws_tear_down(&fixture);
    sem_destroy(&test->service.gate);
    sem_destroy(&test->service.asked);
    free(test);
    return 0;
}

/* One call, of this thread or of another. */
struct call {
    struct test *test;
    int64_t deadline;
    struct pinfold_cancel *cancel;
    pthread_t thread;
    int r;
    struct pinfold_error err;
    struct pf_aws_credentials got;
};

static void *call(void *arg)
{
    struct call *c = arg;

    c->r = pf_aws_provider_get(c->test->provider, c->deadline, &c->got, c->cancel, &c->err);
    return NULL;
}

static void start(struct call *c)
{
    assert_int_equal(pthread_create(&c->thread, NULL, call, c), 0);
}

static void check(struct call *c, int r, int seconds)
{
    char id[32];

    if (c->r != r)
        fail_msg("%d instead of %d: %s", c->r, r, c->err.msg);
    if (r == 0) {
        snprintf(id, sizeof(id), "LASTS%d", seconds);
        assert_string_equal(c->got.access_key, id);
    } else {
        assert_null(c->got.access_key);
        assert_int_equal(c->err.code, -r);
    }
    pf_aws_credentials_done(&c->got);
}

static void get(struct test *test, int r, int seconds)
{
    struct call c = { .test = test, .deadline = aws_soon() };

    call(&c);
    check(&c, r, seconds);
}

static void many_threads_ask_once(void **state)
{
    struct test *test = *state;
    struct call calls[THREADS];

    test->service.gated = true;
    for (int i = 0; i < THREADS; i++) {
        calls[i] = (struct call){ .test = test, .deadline = aws_soon() };
        start(&calls[i]);
    }
    sem_wait(&test->service.asked);
    sem_post(&test->service.gate);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(calls[i].thread, NULL);
        check(&calls[i], 0, 3600);
    }
    get(test, 0, 3600);
    assert_int_equal(aws_request_count(test->f), 1);
}

static void a_failure_is_everybodys(void **state)
{
    struct test *test = *state;
    struct call calls[THREADS];

    test->service.status = 400;
    for (int i = 0; i < THREADS; i++) {
        calls[i] = (struct call){ .test = test, .deadline = aws_soon() };
        start(&calls[i]);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(calls[i].thread, NULL);
        check(&calls[i], -PINFOLD_EBACKEND, 0);
    }
    assert_in_range(aws_request_count(test->f), 1, THREADS);
    test->service.status = 200;
    get(test, 0, 3600);
}

static void who_waits_keeps_an_own_deadline_and_token(void **state)
{
    struct test *test = *state;
    struct call first = { .test = test, .deadline = aws_soon() };
    struct call hasty = { .test = test, .deadline = pf_clock_deadline(50 * PF_NS_PER_MS) };
    struct call stopped = { .test = test, .deadline = aws_soon() };

    assert_int_equal(pinfold_cancel_new(&stopped.cancel, NULL), 0);
    test->service.gated = true;
    start(&first);
    sem_wait(&test->service.asked);
    call(&hasty);
    check(&hasty, -PINFOLD_ETIMEOUT, 0);
    start(&stopped);
    pinfold_cancel_fire(stopped.cancel);
    pthread_join(stopped.thread, NULL);
    check(&stopped, -PINFOLD_ECANCELLED, 0);
    sem_post(&test->service.gate);
    pthread_join(first.thread, NULL);
    check(&first, 0, 3600);
    assert_int_equal(aws_request_count(test->f), 1);
    pinfold_cancel_free(stopped.cancel);
}

/* Also where poll(2) may look at nothing: see pf_poll(). libcurl, which the first one waits in, may
 * give up then. */
static void who_waits_keeps_an_own_deadline_under_any_limit(void **state)
{
    struct test *test = *state;
    struct call first = { .test = test, .deadline = aws_soon() };
    struct call hasty = { .test = test, .deadline = pf_clock_deadline(50 * PF_NS_PER_MS) };
    struct rlimit before, none;

    test->service.gated = true;
    start(&first);
    sem_wait(&test->service.asked);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = (struct rlimit){ 0, before.rlim_max };
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    call(&hasty);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_true(hasty.r < 0);
    sem_post(&test->service.gate);
    pthread_join(first.thread, NULL);
    pf_aws_credentials_done(&first.got);
}

static void another_takes_over_when_one_is_called_off(void **state)
{
    struct test *test = *state;
    struct call first = { .test = test, .deadline = aws_soon() };
    struct call second = { .test = test, .deadline = aws_soon() };

    assert_int_equal(pinfold_cancel_new(&first.cancel, NULL), 0);
    test->service.stalls = 1;
    start(&first);
    sem_wait(&test->service.asked);
    start(&second);
    pinfold_cancel_fire(first.cancel);
    pthread_join(first.thread, NULL);
    check(&first, -PINFOLD_ECANCELLED, 0);
    pthread_join(second.thread, NULL);
    check(&second, 0, 3600);
    assert_int_equal(aws_request_count(test->f), 2);
    pinfold_cancel_free(first.cancel);
}

static void a_silent_service_costs_no_more_than_the_deadline(void **state)
{
    struct test *test = *state;
    struct call hasty = { .test = test, .deadline = pf_clock_deadline(200 * PF_NS_PER_MS) };

    test->service.stalls = 1;
    call(&hasty);
    check(&hasty, -PINFOLD_ETIMEOUT, 0);
}

static void when_time_runs_out_the_answer_before_is_told(void **state)
{
    struct test *test = *state;
    struct call late = { .test = test, .deadline = pf_clock_deadline(3 * PF_NS_PER_SEC) };

    test->service.status = 503;
    test->service.stalls = 2;
    call(&late);
    check(&late, -PINFOLD_ETIMEOUT, 0);
    assert_int_equal(late.err.http_status, 503);
    assert_non_null(strstr(late.err.msg, "; before that: "));
    assert_non_null(strstr(late.err.msg, "HTTP 503"));
}

static void aging_credentials_are_renewed_in_good_time(void **state)
{
    struct test *test = *state;

    test->service.seconds = 12 * 60;
    get(test, 0, 12 * 60);
    test->service.seconds = 3600;
    get(test, 0, 3600);
    get(test, 0, 3600);
    assert_int_equal(aws_request_count(test->f), 2);
}

static void aging_credentials_are_used_while_they_cannot_be_renewed(void **state)
{
    struct test *test = *state;

    test->service.seconds = 12 * 60;
    get(test, 0, 12 * 60);
    test->service.status = 400;
    get(test, 0, 12 * 60);
    get(test, 0, 12 * 60); /* not asked again for a while */
    assert_int_equal(aws_request_count(test->f), 2);
}

static void nobody_waits_for_aging_credentials_but_who_renews_them(void **state)
{
    struct test *test = *state;
    struct call renewing = { .test = test, .deadline = aws_soon() };

    test->service.seconds = 12 * 60;
    get(test, 0, 12 * 60);
    sem_wait(&test->service.asked);
    test->service.gated = true;
    test->service.seconds = 3600;
    start(&renewing);
    sem_wait(&test->service.asked);
    get(test, 0, 12 * 60);
    sem_post(&test->service.gate);
    pthread_join(renewing.thread, NULL);
    check(&renewing, 0, 3600);
    get(test, 0, 3600);
    assert_int_equal(aws_request_count(test->f), 2);
}

static void credentials_near_their_end_must_be_renewed(void **state)
{
    struct test *test = *state;

    test->service.seconds = 9 * 60;
    get(test, 0, 9 * 60); /* there were no better ones */
    test->service.status = 400;
    get(test, -PINFOLD_EBACKEND, 0);
    test->service.status = 200;
    test->service.seconds = 3600;
    get(test, 0, 3600);
    assert_int_equal(aws_request_count(test->f), 3);
}

static void refused_credentials_are_fetched_anew_once(void **state)
{
    struct test *test = *state;
    struct pf_aws_credentials old = { 0 };

    assert_int_equal(pf_aws_provider_get(test->provider, aws_soon(), &old, NULL, NULL), 0);
    pf_aws_provider_expire(test->provider, &old);
    test->service.seconds = 7200;
    get(test, 0, 7200);
    pf_aws_provider_expire(test->provider, &old); /* another thread had the old ones, too */
    get(test, 0, 7200);
    assert_int_equal(aws_request_count(test->f), 2);
    pf_aws_credentials_done(&old);
}

static void keys_that_do_not_expire_are_read_once(void **state)
{
    struct test *test = *state;

    setenv("AWS_ACCESS_KEY_ID", "LASTS1", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "s", 1);
    get(test, 0, 1);
    setenv("AWS_ACCESS_KEY_ID", "LASTS2", 1);
    get(test, 0, 1);
    assert_int_equal(aws_request_count(test->f), 0);
}

static void a_token_that_has_fired_stops_at_once(void **state)
{
    struct test *test = *state;
    struct call stopped = { .test = test, .deadline = aws_soon() };

    assert_int_equal(pinfold_cancel_new(&stopped.cancel, NULL), 0);
    pinfold_cancel_fire(stopped.cancel);
    call(&stopped);
    check(&stopped, -PINFOLD_ECANCELLED, 0);
    assert_int_equal(aws_request_count(test->f), 0);
    pinfold_cancel_free(stopped.cancel);
}

static void a_process_that_never_ends_is_ended(void **state)
{
    struct test *test = *state;
    struct call hasty = { .test = test, .deadline = pf_clock_deadline(200 * PF_NS_PER_MS) };
    struct call stopped = { .test = test, .deadline = aws_soon() };

    unsetenv("AWS_CONTAINER_CREDENTIALS_FULL_URI");
    aws_file(test->f, ".aws/config", "[default]\ncredential_process = sleep 600\n");
    call(&hasty);
    check(&hasty, -PINFOLD_ETIMEOUT, 0);
    assert_int_equal(pinfold_cancel_new(&stopped.cancel, NULL), 0);
    start(&stopped);
    pinfold_cancel_fire(stopped.cancel);
    pthread_join(stopped.thread, NULL);
    check(&stopped, -PINFOLD_ECANCELLED, 0);
    pinfold_cancel_free(stopped.cancel);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(many_threads_ask_once),
        TEST(a_failure_is_everybodys),
        TEST(who_waits_keeps_an_own_deadline_and_token),
        TEST(who_waits_keeps_an_own_deadline_under_any_limit),
        TEST(another_takes_over_when_one_is_called_off),
        TEST(a_silent_service_costs_no_more_than_the_deadline),
        TEST(when_time_runs_out_the_answer_before_is_told),
        TEST(aging_credentials_are_renewed_in_good_time),
        TEST(aging_credentials_are_used_while_they_cannot_be_renewed),
        TEST(nobody_waits_for_aging_credentials_but_who_renews_them),
        TEST(credentials_near_their_end_must_be_renewed),
        TEST(refused_credentials_are_fetched_anew_once),
        TEST(keys_that_do_not_expire_are_read_once),
        TEST(a_token_that_has_fired_stops_at_once),
        TEST(a_process_that_never_ends_is_ended),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
