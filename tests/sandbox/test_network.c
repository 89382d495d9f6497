/* SPDX-License-Identifier: Apache-2.0 */
/* What a backend tells of the network is in the audit of the sandbox it serves. */
#include "fake_backend.h"

struct trail {
    int count;
    char last[1024];
};

static void keep(void *ctx, const struct pinfold_audit_event *event)
{
    struct trail *trail = ctx;
    char *json = NULL;

    if (strncmp(event->event, "sandbox.network", strlen("sandbox.network")) != 0)
        return;
    assert_int_equal(pinfold_audit_event_json(event, &json, NULL), 0);
    trail->count++;
    snprintf(trail->last, sizeof(trail->last), "%s", strstr(json, "\"event\""));
    free(json);
}

static struct pinfold_sandbox *make(struct fake *fake, struct trail *trail)
{
    struct pinfold_sandbox_options options = PINFOLD_SANDBOX_OPTIONS_INIT;
    struct pinfold_sandbox *sandbox = NULL;
    struct pinfold_backend *backend = fake_backend(fake);
    char id[64];

    snprintf(id, sizeof(id), "net-%d", (int)getpid());
    options.workspace_id = id;
    options.backend = backend;
    options.ttl_seconds = 60;
    if (trail)
        options.audit = (struct pinfold_audit_sink){ .emit = keep, .ctx = trail };
    assert_int_equal(pinfold_sandbox_new(&options, &sandbox, NULL), 0);
    pinfold_backend_unref(backend);
    return sandbox;
}

static void say(struct fake *fake, enum pinfold_network_outcome outcome, const char *host,
                uint16_t port, const char *reason, uint64_t count)
{
    struct pinfold_network_event event = { .size = sizeof(event),
                                           .outcome = outcome,
                                           .protocol = host[0] ? "connect" : "",
                                           .host = host,
                                           .port = port,
                                           .reason = reason,
                                           .count = count };

    assert_non_null(fake->on_network);
    fake->on_network(fake->on_network_ctx, &event);
}

static void refusals_failures_and_connections_are_told_with_their_sandbox(void **unused)
{
    struct trail trail = { 0 };
    struct fake fake = { 0 };
    struct pinfold_sandbox *sandbox = make(&fake, &trail);

    (void)unused;
    assert_int_equal(pinfold_sandbox_start(sandbox, NULL, NULL, NULL), 0);
    say(&fake, PINFOLD_NETWORK_REFUSED, "evil.example", 443, "not allowed", 1);
    assert_non_null(strstr(trail.last, "\"event\":\"sandbox.network_refuse\","
                                       "\"workspace_id\":\"net-"));
    assert_non_null(strstr(trail.last, "\"owner_id\":\"sandbox-"));
    assert_non_null(strstr(trail.last, "\"backend_type\":\"FakeBackend\",\"protocol\":\"connect\","
                                       "\"host\":\"evil.example\",\"port\":443,"
                                       "\"reason\":\"not allowed\",\"count\":1}"));
    say(&fake, PINFOLD_NETWORK_FAILED, "", 0, "many", 1234);
    assert_non_null(strstr(trail.last, "\"event\":\"sandbox.network_fail\""));
    assert_non_null(strstr(trail.last,
                           "\"backend_type\":\"FakeBackend\",\"reason\":\"many\",\"count\":1234}"));
    say(&fake, PINFOLD_NETWORK_OPENED, "example.org", 80, "", 1);
    assert_non_null(strstr(trail.last, "\"event\":\"sandbox.network_open\""));
    assert_null(strstr(trail.last, "reason"));
    assert_int_equal(trail.count, 3);
    pinfold_sandbox_free(sandbox);
}

static void nobody_listens_any_more_after_a_stop(void **unused)
{
    struct trail trail = { 0 };
    struct fake fake = { 0 };
    struct pinfold_sandbox *sandbox = make(&fake, &trail);

    (void)unused;
    assert_int_equal(pinfold_sandbox_start(sandbox, NULL, NULL, NULL), 0);
    assert_non_null(fake.on_network);
    assert_int_equal(pinfold_sandbox_stop(sandbox, false, NULL, NULL, NULL), 0);
    assert_null(fake.on_network);
    assert_int_equal(pinfold_sandbox_start(sandbox, NULL, NULL, NULL), 0);
    assert_non_null(fake.on_network);
    pinfold_sandbox_free(sandbox);
    assert_null(fake.on_network);
}

static void nobody_listens_after_a_start_that_failed(void **unused)
{
    struct trail trail = { 0 };
    struct fake fake = { .fail_create = 1 };
    struct pinfold_sandbox *sandbox = make(&fake, &trail);

    (void)unused;
    assert_true(pinfold_sandbox_start(sandbox, NULL, NULL, NULL) < 0);
    assert_null(fake.on_network);
    pinfold_sandbox_free(sandbox);
}

static void without_an_audit_nobody_listens(void **unused)
{
    struct fake fake = { 0 };
    struct pinfold_sandbox *sandbox = make(&fake, NULL);

    (void)unused;
    assert_int_equal(pinfold_sandbox_start(sandbox, NULL, NULL, NULL), 0);
    assert_null(fake.on_network);
    pinfold_sandbox_free(sandbox);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refusals_failures_and_connections_are_told_with_their_sandbox),
        cmocka_unit_test(nobody_listens_any_more_after_a_stop),
        cmocka_unit_test(nobody_listens_after_a_start_that_failed),
        cmocka_unit_test(without_an_audit_nobody_listens),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
