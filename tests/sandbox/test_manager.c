/* SPDX-License-Identifier: Apache-2.0 */
#include "fake_backend.h"

#include <math.h>
#include <sys/wait.h>

static struct pinfold_manager *manager_with_ttl(double ttl)
{
    struct pinfold_manager_options options = PINFOLD_MANAGER_OPTIONS_INIT;
    struct pinfold_manager *manager = NULL;

    options.ttl_seconds = ttl;
    assert_int_equal(pinfold_manager_new(&options, &manager, NULL), 0);
    return manager;
}

static void refuses_a_ttl_that_is_not_a_span_of_time(void **unused)
{
    const double bad[] = { -2.0, -0.5, (double)NAN, -(double)INFINITY };
    struct pinfold_manager_options options = PINFOLD_MANAGER_OPTIONS_INIT;
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    struct pinfold_manager *manager = NULL;

    (void)unused;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        options.ttl_seconds = bad[i];
        assert_int_equal(pinfold_manager_new(&options, &manager, &err), -PINFOLD_EVALUE);
        assert_non_null(strstr(err.msg, "ttl_seconds"));
        assert_null(manager);
    }
    pinfold_manager_unref(manager_with_ttl(PINFOLD_TTL_NONE));
    pinfold_manager_unref(manager_with_ttl((double)INFINITY));
}

static void the_first_id_that_is_set_names_the_workspace(void **unused)
{
    struct pinfold_manager *manager = manager_with_ttl(10);
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    const char *id = NULL;

    (void)unused;
    assert_int_equal(pinfold_manager_resolve_workspace_id(
                             manager,
                             &(struct pinfold_agent_ids){ .sandbox_workspace_id = "w",
                                                          .session_id = "s",
                                                          .agent_id = "a" },
                             &id, &err),
                     0);
    assert_string_equal(id, "w");
    assert_int_equal(pinfold_manager_resolve_session_id(
                             manager,
                             &(struct pinfold_agent_ids){ .session_id = "s", .agent_id = "a" }, &id,
                             &err),
                     0);
    assert_string_equal(id, "s");
    assert_int_equal(pinfold_manager_resolve_workspace_id(
                             manager, &(struct pinfold_agent_ids){ .agent_id = "a" }, &id, &err),
                     0);
    assert_string_equal(id, "a");
    assert_int_equal(pinfold_manager_resolve_workspace_id(
                             manager, &(struct pinfold_agent_ids){ .agent_id = "a/b" }, &id, &err),
                     -PINFOLD_EVALUE);
    assert_int_equal(pinfold_manager_resolve_workspace_id(manager, &(struct pinfold_agent_ids){ 0 },
                                                          &id, &err),
                     -PINFOLD_EVALUE);
    pinfold_manager_unref(manager);
}

static void get_or_create_makes_one_backend_and_shares_it(void **unused)
{
    struct pinfold_manager *manager = manager_with_ttl(10);
    struct fake fake = { 0 };
    struct pinfold_backend *backend = fake_backend(&fake);
    struct pinfold_backend_factory factory = { .make = fake_make, .ctx = backend };
    struct pinfold_session first = { 0 }, second = { 0 }, found = { 0 };

    (void)unused;
    assert_int_equal(pinfold_manager_get_session(manager, "s", &found, NULL), 0);
    assert_null(found.session_id);
    assert_int_equal(pinfold_manager_get_or_create(manager, "s", &factory, &first, NULL, NULL), 0);
    assert_int_equal(pinfold_manager_get_or_create(manager, "s", &factory, &second, NULL, NULL), 0);
    assert_ptr_equal(first.backend, second.backend);
    assert_int_equal(fake.created, 1);
    assert_null(first.owner_id);
    assert_false(first.prepared);
    assert_true(second.last_used_at >= first.last_used_at);
    assert_int_equal(pinfold_manager_get_session(manager, "s", &found, NULL), 1);
    assert_string_equal(found.session_id, "s");
    assert_int_equal(pinfold_manager_close_session(manager, "s", NULL, NULL, NULL), 0);
    assert_int_equal(fake.closed, 1);
    assert_int_equal(pinfold_manager_close_session(manager, "s", NULL, NULL, NULL), 0);
    assert_int_equal(fake.closed, 1);
    pinfold_session_done(&first);
    pinfold_session_done(&second);
    pinfold_session_done(&found);
    pinfold_manager_unref(manager);
    pinfold_backend_unref(backend);
}

static void a_failed_create_leaves_nothing_and_can_be_tried_again(void **unused)
{
    struct pinfold_manager *manager = manager_with_ttl(10);
    struct fake fake = { .fail_create = 1 };
    struct pinfold_backend *backend = fake_backend(&fake);
    struct pinfold_backend_factory factory = { .make = fake_make, .ctx = backend };
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    struct pinfold_session found = { 0 };

    (void)unused;
    assert_int_equal(
            pinfold_manager_claim_session(manager, "s", &factory, "me", 0, NULL, NULL, &err),
            -PINFOLD_EOS);
    assert_int_equal(err.sys_errno, EIO);
    assert_int_equal(pinfold_manager_get_session(manager, "s", &found, NULL), 0);
    assert_int_equal(
            pinfold_manager_claim_session(manager, "s", &factory, "me", 0, NULL, NULL, &err), 0);
    pinfold_manager_unref(manager);
    assert_int_equal(fake.closed, 1); /* the manager closes what it has when it goes */
    pinfold_backend_unref(backend);
}

static void claims_hold_across_managers(void **unused)
{
    struct pinfold_manager *one = manager_with_ttl(10), *two = manager_with_ttl(10);
    struct fake fake_one = { 0 }, fake_two = { 0 };
    struct pinfold_backend *a = fake_backend(&fake_one), *b = fake_backend(&fake_two);
    struct pinfold_backend_factory factory_a = { .make = fake_make, .ctx = a };
    struct pinfold_backend_factory factory_b = { .make = fake_make, .ctx = b };
    struct pinfold_error err = PINFOLD_ERROR_INIT;

    (void)unused;
    assert_int_equal(pinfold_manager_claim_session(one, "s", &factory_a, "me", 0, NULL, NULL, &err),
                     0);
    assert_int_equal(
            pinfold_manager_claim_session(two, "s", &factory_b, "you", 0, NULL, NULL, &err),
            -PINFOLD_ESTART);
    assert_non_null(strstr(err.msg, "owned by another Sandbox"));
    assert_int_equal(fake_two.created, 0);
    assert_int_equal(pinfold_manager_close_session(one, "s", NULL, NULL, NULL), 0);
    assert_int_equal(
            pinfold_manager_claim_session(two, "s", &factory_b, "you", 0, NULL, NULL, &err), 0);
    pinfold_manager_unref(one);
    pinfold_manager_unref(two);
    pinfold_backend_unref(a);
    pinfold_backend_unref(b);
}

static void one_instance_never_serves_two_workspaces(void **unused)
{
    struct pinfold_manager *manager = manager_with_ttl(10);
    struct fake fake = { 0 };
    struct pinfold_backend *backend = fake_backend(&fake);
    struct pinfold_backend_factory factory = { .make = fake_make, .ctx = backend };
    struct pinfold_error err = PINFOLD_ERROR_INIT;

    (void)unused;
    assert_int_equal(pinfold_manager_get_or_create(manager, "a", &factory, NULL, NULL, &err), 0);
    assert_int_equal(pinfold_manager_get_or_create(manager, "b", &factory, NULL, NULL, &err),
                     -PINFOLD_ESTART);
    assert_non_null(strstr(err.msg, "instance"));
    assert_int_equal(fake.created, 1);
    assert_int_equal(fake.closed, 0); /* the first one still works */
    pinfold_manager_unref(manager);
    pinfold_backend_unref(backend);
}

static void two_backends_on_one_storage_are_refused(void **unused)
{
    struct pinfold_manager *manager = manager_with_ttl(10);
    struct fake fake_one = { .key = "disk:1" }, fake_two = { .key = "disk:1" };
    struct pinfold_backend *a = fake_backend(&fake_one), *b = fake_backend(&fake_two);
    struct pinfold_backend_factory factory_a = { .make = fake_make, .ctx = a };
    struct pinfold_backend_factory factory_b = { .make = fake_make, .ctx = b };
    struct pinfold_error err = PINFOLD_ERROR_INIT;

    (void)unused;
    assert_int_equal(
            pinfold_manager_claim_session(manager, "a", &factory_a, "me", 0, NULL, NULL, &err), 0);
    assert_int_equal(
            pinfold_manager_claim_session(manager, "b", &factory_b, "you", 0, NULL, NULL, &err),
            -PINFOLD_ESTART);
    assert_non_null(strstr(err.msg, "storage"));
    assert_int_equal(fake_two.closed, 1); /* what was created for nothing is closed again */
    pinfold_manager_unref(manager);
    pinfold_backend_unref(a);
    pinfold_backend_unref(b);
}

static void only_idle_sessions_expire(void **unused)
{
    struct pinfold_manager *manager = manager_with_ttl(1);
    struct fake fake = { 0 };
    struct pinfold_backend *backend = fake_backend(&fake);
    struct pinfold_backend_factory factory = { .make = fake_make, .ctx = backend };
    struct pinfold_strings ids = { 0 };

    (void)unused;
    assert_int_equal(pinfold_manager_get_or_create(manager, "s", &factory, NULL, NULL, NULL), 0);
    assert_int_equal(pinfold_manager_cleanup_expired(manager, &ids, NULL), 0);
    assert_int_equal(ids.count, 0);
    usleep(1100000);
    assert_int_equal(pinfold_manager_cleanup_expired(manager, &ids, NULL), 0);
    assert_int_equal(ids.count, 1);
    assert_string_equal(ids.items[0], "s");
    assert_int_equal(fake.closed, 1);
    assert_int_equal(fake.syncs, 0); /* no destination is known */
    pinfold_strings_done(&ids);
    assert_int_equal(pinfold_manager_cleanup_expired(manager, NULL, NULL), 0);
    pinfold_manager_unref(manager);
    pinfold_backend_unref(backend);
}

static void close_session_syncs_to_where_it_is_told(void **unused)
{
    struct pinfold_manager *manager = manager_with_ttl(10);
    struct fake fake = { .sync_errors = 1 };
    struct pinfold_backend *backend = fake_backend(&fake);
    struct pinfold_backend_factory factory = { .make = fake_make, .ctx = backend };
    struct pinfold_close_options options = { .size = sizeof(options), .sync_dest = "/dest" };
    struct pinfold_error err = PINFOLD_ERROR_INIT;

    (void)unused;
    assert_int_equal(pinfold_manager_get_or_create(manager, "s", &factory, NULL, NULL, NULL), 0);
    assert_int_equal(pinfold_manager_close_session(manager, "s", &options, NULL, &err),
                     -PINFOLD_EPREPARE);
    assert_non_null(strstr(err.msg, "write b: broken"));
    assert_string_equal(fake.last_dest, "/dest");
    assert_string_equal(fake.last_include, "src/**");
    assert_non_null(strstr(fake.last_exclude, "secrets/"));
    assert_int_equal(fake.closed, 1); /* whatever the sync did */
    options.skip_sync = true;
    assert_int_equal(pinfold_manager_get_or_create(manager, "s", &factory, NULL, NULL, NULL), 0);
    assert_int_equal(pinfold_manager_close_session(manager, "s", &options, NULL, &err), 0);
    assert_int_equal(fake.syncs, 1);
    pinfold_manager_unref(manager);
    pinfold_backend_unref(backend);
}

static void mark_prepared_keeps_the_seed_result(void **unused)
{
    struct pinfold_manager *manager = manager_with_ttl(10);
    struct fake fake = { 0 };
    struct pinfold_backend *backend = fake_backend(&fake);
    struct pinfold_backend_factory factory = { .make = fake_make, .ctx = backend };
    struct pinfold_seed_result result = { .files_seeded = 7, .bytes_seeded = 70 };
    struct pinfold_session session = { 0 };

    (void)unused;
    assert_int_equal(pinfold_manager_mark_prepared(manager, "s", &result, NULL), -PINFOLD_ESTART);
    assert_int_equal(pinfold_manager_get_or_create(manager, "s", &factory, NULL, NULL, NULL), 0);
    fake_add_line(&result.skipped_paths, ".git/");
    assert_int_equal(pinfold_manager_mark_prepared(manager, "s", &result, NULL), 0);
    assert_int_equal(pinfold_manager_get_session(manager, "s", &session, NULL), 1);
    assert_true(session.prepared);
    assert_int_equal(session.seed_result->files_seeded, 7);
    assert_string_equal(session.seed_result->skipped_paths.items[0], ".git/");
    pinfold_session_done(&session);
    pinfold_seed_result_done(&result);
    pinfold_manager_unref(manager);
    pinfold_backend_unref(backend);
}

static void a_forked_child_owns_nothing(void **unused)
{
    struct pinfold_manager *manager = manager_with_ttl(10);
    struct fake fake = { 0 };
    struct pinfold_backend *backend = fake_backend(&fake);
    struct pinfold_backend_factory factory = { .make = fake_make, .ctx = backend };
    struct pinfold_session session = { 0 };
    int status = -1;
    pid_t pid;

    (void)unused;
    assert_int_equal(
            pinfold_manager_claim_session(manager, "s", &factory, "me", 0, NULL, NULL, NULL), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        int found = pinfold_manager_get_session(manager, "s", &session, NULL);
        pinfold_manager_unref(manager);
        _exit(found != 0 || fake.closed != 0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(pinfold_manager_get_session(manager, "s", &session, NULL), 1);
    pinfold_session_done(&session);
    pinfold_manager_unref(manager);
    pinfold_backend_unref(backend);
}

/* ---- templates ---- */

static int build(void *state, const char *workspace_id, struct pinfold_backend **ret,
                 struct pinfold_error *err)
{
    (void)err;
    return pinfold_backend_new(&fake_ops, state, workspace_id, ret, NULL);
}

static void a_template_builds_a_backend_for_each_workspace(void **unused)
{
    static const struct pinfold_backend_ops template_ops = { .size = sizeof(template_ops),
                                                             .type_name = "FakeTemplate",
                                                             .build_for_session = build };
    struct fake fake = { 0 };
    struct pinfold_backend *template_backend = NULL, *instance = fake_backend(&fake);
    struct pinfold_backend *made = NULL;
    struct pinfold_backend_factory factory = { 0 };

    (void)unused;
    assert_int_equal(pinfold_backend_new(&template_ops, &fake, NULL, &template_backend, NULL), 0);
    assert_int_equal(pinfold_backend_factory_for_session(template_backend, "w1", &factory, NULL),
                     0);
    assert_int_equal(factory.make(factory.ctx, &made, NULL), 0);
    assert_string_equal(pinfold_backend_id(made), "w1");
    pinfold_backend_unref(made);
    pinfold_backend_factory_done(&factory);
    assert_int_equal(pinfold_backend_factory_for_session(instance, "w1", &factory, NULL), 0);
    assert_int_equal(factory.make(factory.ctx, &made, NULL), 0);
    assert_ptr_equal(made, instance);
    pinfold_backend_unref(made);
    pinfold_backend_factory_done(&factory);
    assert_int_equal(pinfold_backend_factory_for_session(NULL, "w1", &factory, NULL),
                     -PINFOLD_ETYPE);
    assert_true(pinfold_supports_execution(instance));
    assert_false(pinfold_supports_execution(template_backend));
    assert_false(pinfold_supports_execution(NULL));
    pinfold_backend_unref(template_backend);
    pinfold_backend_unref(instance);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refuses_a_ttl_that_is_not_a_span_of_time),
        cmocka_unit_test(the_first_id_that_is_set_names_the_workspace),
        cmocka_unit_test(get_or_create_makes_one_backend_and_shares_it),
        cmocka_unit_test(a_failed_create_leaves_nothing_and_can_be_tried_again),
        cmocka_unit_test(claims_hold_across_managers),
        cmocka_unit_test(one_instance_never_serves_two_workspaces),
        cmocka_unit_test(two_backends_on_one_storage_are_refused),
        cmocka_unit_test(only_idle_sessions_expire),
        cmocka_unit_test(close_session_syncs_to_where_it_is_told),
        cmocka_unit_test(mark_prepared_keeps_the_seed_result),
        cmocka_unit_test(a_forked_child_owns_nothing),
        cmocka_unit_test(a_template_builds_a_backend_for_each_workspace),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
