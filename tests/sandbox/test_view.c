/* SPDX-License-Identifier: Apache-2.0 */
/* Views over a backend in memory: who is called, in what order, and what is left when a step fails.
 * What a view shows and refuses is in tests/spec/test_views.c. */
#include "fake_backend.h"

/* A sandbox on a fake, whose views are fakes too. */
struct fixture {
    struct fake fake, view_fake;
    struct pinfold_backend *backend;
    struct pinfold_sandbox *sandbox, *view;
    bool fail_view;
};

static struct fixture *now; /* for the table's function */
static int closed_before;   /* of the view, when its sandbox's backend was closed */

static struct pinfold_backend_ops view_table, table;

static int make_view(void *state, struct pinfold_backend **ret, struct pinfold_error *err)
{
    (void)state;
    if (now->fail_view)
        return fake_fail(err, PINFOLD_EOS, EMFILE, "view: nothing left");
    return pinfold_backend_new(&view_table, &now->view_fake, "view", ret, err);
}

static int close_main(void *state, struct pinfold_error *err)
{
    closed_before = now->view_fake.closed;
    return fake_close(state, err);
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    struct pinfold_sandbox_options options = PINFOLD_SANDBOX_OPTIONS_INIT;

    assert_non_null(f);
    view_table = table = fake_ops;
    table.view = make_view;
    table.close = close_main;
    closed_before = -1;
    pthread_mutex_init(&f->fake.lock, NULL);
    pthread_cond_init(&f->fake.changed, NULL);
    pthread_mutex_init(&f->view_fake.lock, NULL);
    pthread_cond_init(&f->view_fake.changed, NULL);
    assert_int_equal(pinfold_backend_new(&table, &f->fake, "main", &f->backend, NULL), 0);
    options.workspace_id = "ws-view";
    options.backend = f->backend;
    options.ttl_seconds = 60;
    assert_int_equal(pinfold_sandbox_new(&options, &f->sandbox, NULL), 0);
    assert_int_equal(pinfold_sandbox_start(f->sandbox, NULL, NULL, NULL), 0);
    *state = now = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    pinfold_sandbox_free(f->view);
    pinfold_sandbox_free(f->sandbox);
    pinfold_backend_unref(f->backend);
    fake_clear(&f->fake);
    fake_clear(&f->view_fake);
    free(f);
    return 0;
}

static void open_view(struct fixture *f)
{
    assert_int_equal(pinfold_sandbox_view(f->sandbox, "v", &f->view, NULL), 0);
}

static void a_view_reads_by_a_backend_of_its_own(void **state)
{
    struct fixture *f = *state;
    struct pinfold_execute_options run = PINFOLD_EXECUTE_OPTIONS_INIT;
    struct pinfold_execute_result result = { 0 };
    struct pinfold_bytes text = { 0 };

    open_view(f);
    assert_int_equal(f->view_fake.created, 1);
    assert_int_equal(fake_write_file(&f->view_fake, "a", "seen", 4, false, NULL, NULL), 0);
    assert_int_equal(pinfold_sandbox_read_file(f->view, "a", &text, NULL, NULL), 0);
    assert_string_equal(text.data, "seen");
    pinfold_bytes_done(&text);
    assert_int_equal(pinfold_sandbox_read_file(f->sandbox, "a", &text, NULL, NULL), -PINFOLD_EOS);
    run.command = "true";
    run.cwd = "/workspace/d";
    assert_int_equal(pinfold_sandbox_execute(f->view, &run, &result, NULL, NULL), 0);
    assert_string_equal(f->view_fake.last_cwd, "d");
    assert_string_equal(f->fake.last_cwd, "");
    pinfold_execute_result_done(&result);
}

static void what_is_refused_reaches_no_backend(void **state)
{
    struct fixture *f = *state;
    const char *const paths[] = { "a", NULL };
    struct pinfold_error err = PINFOLD_ERROR_INIT;

    open_view(f);
    assert_int_equal(fake_write_file(&f->fake, "a", "1", 1, false, NULL, NULL), 0);
    assert_int_equal(fake_write_file(&f->view_fake, "a", "1", 1, false, NULL, NULL), 0);
    assert_int_equal(pinfold_sandbox_write_file(f->view, "b", "1", 1, NULL, &err),
                     -PINFOLD_EDENIED);
    assert_string_equal(err.msg, "write_file: v is a read-only view of sandbox ws-view");
    assert_int_equal(pinfold_sandbox_delete_files(f->view, paths, NULL, NULL), -PINFOLD_EDENIED);
    assert_int_equal(pinfold_sandbox_move_file(f->view, "a", "b", NULL, NULL), -PINFOLD_EDENIED);
    assert_int_equal(pinfold_sandbox_flush(f->view, "/nowhere", NULL, NULL, NULL),
                     -PINFOLD_EDENIED);
    assert_int_equal(pinfold_sandbox_stop(f->view, true, NULL, NULL, NULL), -PINFOLD_EDENIED);
    assert_int_equal(fake_find(&f->view_fake, "a"), 0);
    assert_int_equal(fake_find(&f->view_fake, "b"), -1);
    assert_int_equal(fake_find(&f->fake, "a"), 0);
    assert_int_equal(f->fake.syncs + f->view_fake.syncs + f->fake.closed, 0);
}

static void a_stop_closes_views_before_what_they_show(void **state)
{
    struct fixture *f = *state;

    open_view(f);
    assert_int_equal(pinfold_sandbox_stop(f->sandbox, false, NULL, NULL, NULL), 0);
    assert_int_equal(closed_before, 1);
    assert_int_equal(f->view_fake.stops, 1);
    pinfold_sandbox_free(f->view);
    f->view = NULL;
    assert_int_equal(f->view_fake.closed, 1); /* once */
}

static void freeing_a_view_closes_it_once(void **state)
{
    struct fixture *f = *state;

    open_view(f);
    pinfold_sandbox_free(f->view);
    f->view = NULL;
    assert_int_equal(f->view_fake.stops, 1);
    assert_int_equal(f->view_fake.closed, 1);
    assert_int_equal(f->fake.closed, 0);
    assert_int_equal(pinfold_sandbox_stop(f->sandbox, false, NULL, NULL, NULL), 0);
    assert_int_equal(f->view_fake.closed, 1);
}

static void *execute(void *view)
{
    struct pinfold_execute_options run = PINFOLD_EXECUTE_OPTIONS_INIT;
    struct pinfold_execute_result result = { 0 };

    run.command = "true";
    pinfold_sandbox_execute(view, &run, &result, NULL, NULL);
    pinfold_execute_result_done(&result);
    return NULL;
}

static void a_stop_ends_what_runs_in_a_view_and_waits_for_it(void **state)
{
    struct fixture *f = *state;
    pthread_t thread;

    open_view(f);
    f->view_fake.block = true;
    assert_int_equal(pthread_create(&thread, NULL, execute, f->view), 0);
    fake_wait_executing(&f->view_fake, 1);
    assert_int_equal(pinfold_sandbox_stop(f->sandbox, false, NULL, NULL, NULL), 0);
    assert_int_equal(f->view_fake.executing, 0);
    assert_int_equal(closed_before, 1);
    pthread_join(thread, NULL);
}

static void a_view_that_cannot_be_made_leaves_nothing(void **state)
{
    struct fixture *f = *state;
    struct pinfold_error err = PINFOLD_ERROR_INIT;

    f->fail_view = true;
    assert_int_equal(pinfold_sandbox_view(f->sandbox, "v", &f->view, &err), -PINFOLD_EOS);
    assert_int_equal(err.sys_errno, EMFILE);
    f->fail_view = false;
    f->view_fake.fail_create = 1;
    assert_int_equal(pinfold_sandbox_view(f->sandbox, "v", &f->view, &err), -PINFOLD_EOS);
    assert_int_equal(err.sys_errno, EIO);
    assert_null(f->view);
    assert_int_equal(f->view_fake.closed, 0);
    assert_int_equal(pinfold_sandbox_stop(f->sandbox, false, NULL, NULL, NULL), 0);
    assert_int_equal(f->view_fake.closed, 0);
}

static void *view_in_thread(void *ctx)
{
    struct fixture *f = ctx;
    int r = pinfold_sandbox_view(f->sandbox, "late", &f->view, NULL);

    return r == 0 || r == -PINFOLD_ESTART ? f : NULL;
}

static void views_made_and_stopped_at_once_are_all_closed(void **state)
{
    struct fixture *f = *state;

    for (int i = 0; i < 50; i++) {
        pthread_t thread;
        void *fine = NULL;
        assert_int_equal(pthread_create(&thread, NULL, view_in_thread, f), 0);
        assert_int_equal(pinfold_sandbox_stop(f->sandbox, false, NULL, NULL, NULL), 0);
        pthread_join(thread, &fine);
        assert_non_null(fine);
        pinfold_sandbox_free(f->view);
        f->view = NULL;
        assert_int_equal(f->view_fake.created, f->view_fake.closed);
        assert_int_equal(pinfold_sandbox_start(f->sandbox, NULL, NULL, NULL), 0);
    }
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_view_reads_by_a_backend_of_its_own),
        TEST(what_is_refused_reaches_no_backend),
        TEST(a_stop_closes_views_before_what_they_show),
        TEST(freeing_a_view_closes_it_once),
        TEST(a_stop_ends_what_runs_in_a_view_and_waits_for_it),
        TEST(a_view_that_cannot_be_made_leaves_nothing),
        TEST(views_made_and_stopped_at_once_are_all_closed),
    };

    return cmocka_run_group_tests_name("sandbox/view", tests, NULL, NULL);
}
