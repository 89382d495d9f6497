/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Everything that the backend does with each allocation failing in turn: out of memory, or what was
 * wanted all the same, nothing lost, and the session of further use. The service is a process of
 * its own, for the count is of this one's.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <pinfold/changes.h>

#include "backend/agentcore_fixture.h"
#include "base/failing_alloc.h"

/* Each of the first so many, then every seventh: what comes then are the same calls again. */
static unsigned after(unsigned nth)
{
    return nth < 30 ? nth + 1 : nth + 7;
}

/* Until one gets through without a failure. */
static void fail_everywhere(int (*operate)(void))
{
    unsigned nth = 0, failures = 0;
    int descriptors;
    bool hit = true;

    OK(operate());
    descriptors = count_descriptors();
    while (hit) {
        int r;
        f.err = (struct pinfold_error)PINFOLD_ERROR_INIT;
        nth = after(nth);
        failing_alloc_set(nth);
        r = operate();
        hit = failing_alloc_hit();
        failing_alloc_set(0);
        if (r < 0 && r != -PINFOLD_ENOMEM)
            fail_msg("allocation %u: %d, %s", nth, r, f.err.msg);
        if (r < 0) {
            assert_true(hit);
            assert_int_equal(f.err.code, PINFOLD_ENOMEM);
            failures++;
        }
    }
    print_message("# %u allocations\n", nth);
    assert_true(failures >= 3);
    assert_true(count_descriptors() <= descriptors);
}

static struct pinfold_sandbox *sandbox; /* of look_and_flush() */

static int make_a_session(void)
{
    struct pinfold_agentcore_options options = PINFOLD_AGENTCORE_OPTIONS_INIT;
    struct pinfold_backend *template = NULL, *backend = NULL;
    int r;

    options.region = "us-west-2";
    options.access_key = "AKIAFAKEFAKEFAKEFAKE";
    options.secret_key = "fakeSecretKey/Example+0123456789ABCDEFGH";
    options.endpoint = f.fake.endpoint;
    r = pinfold_agentcore_template_new(&options, &template, &f.err);
    if (r == 0)
        r = template->ops->build_for_session(template->state, "x", &backend, &f.err);
    if (r == 0)
        r = pf_backend_create(backend, NULL, &f.err);
    if (r == 0)
        r = pf_backend_close(backend, &f.err);
    pinfold_backend_unref(backend);
    pinfold_backend_unref(template);
    return r;
}

static int run_something(void)
{
    struct pinfold_execute_options options = PINFOLD_EXECUTE_OPTIONS_INIT;
    struct pinfold_execute_result result = { 0 };
    int r;

    options.command = "echo out; echo err >&2; exit 3";
    r = f.ops->execute(f.backend->state, &options, &result, NULL, &f.err);
    if (r == 0) {
        assert_int_equal(result.exit_code, 3);
        assert_int_equal(result.stdout_bytes, 4);
    }
    pinfold_execute_result_done(&result);
    return r;
}

static int write_and_read(void)
{
    struct pinfold_bytes bytes = { 0 };
    int r = f.ops->write_file(f.backend->state, "d/x", "text", 4, false, NULL, &f.err);

    if (r == 0)
        r = f.ops->read_file(f.backend->state, "d/x", &bytes, NULL, &f.err);
    if (r == 0)
        assert_memory_equal(bytes.data, "text", 4);
    pinfold_bytes_done(&bytes);
    return r;
}

static int list(void)
{
    struct pinfold_file_infos infos = { 0 };
    int r = f.ops->list_dir(f.backend->state, "l", &infos, NULL, &f.err);

    if (r == 0)
        assert_int_equal(infos.count, 3);
    pinfold_file_infos_done(&infos);
    return r;
}

/* What could not be taken home is an error of the flush, or of all of it. */
static int flush(void)
{
    const char *const all[] = { "l/**", NULL };
    struct pinfold_sync_request sync = { .size = sizeof(sync), .include = all };
    struct pinfold_sync_result synced = { 0 };
    int r;

    sync.dest = at_host("dst");
    r = f.ops->sync_artifacts(f.backend->state, &sync, &synced, NULL, &f.err);
    if (r == 0 && access(at_host("dst/l/b"), F_OK) < 0)
        assert_true(synced.errors.count > 0);
    pinfold_sync_result_done(&synced);
    return r;
}

/* Likewise of what was looked at before. */
static int look_and_flush(void)
{
    struct pinfold_changes_options whole = PINFOLD_CHANGES_OPTIONS_INIT;
    struct pinfold_changes changes = { 0 }, first = { 0 };
    struct pinfold_sync_result synced = { 0 };
    int r;

    whole.keep = true;
    whole.again = &first;
    unlink(at_host("home/a.md"));
    r = pinfold_sandbox_changes(sandbox, &whole, &first, NULL, &f.err);
    if (r == 0)
        r = pinfold_sandbox_changes(sandbox, &whole, &changes, NULL, &f.err);
    if (r == 0)
        r = pinfold_sandbox_flush_changes(sandbox, at_host("home"), &changes, NULL, &synced, NULL,
                                          &f.err);
    if (r >= 0 && access(at_host("home/a.md"), F_OK) < 0)
        assert_true(synced.errors.count > 0);
    pinfold_sync_result_done(&synced);
    pinfold_changes_done(&changes);
    pinfold_changes_done(&first);
    return r < 0 ? r : 0;
}

static int seed(void)
{
    struct pinfold_seed_request request = { .size = sizeof(request) };
    struct pinfold_seed_result seeded = { 0 };
    int r;

    request.source = at_host("src");
    r = f.ops->seed_workspace(f.backend->state, &request, &seeded, NULL, &f.err);
    pinfold_seed_result_done(&seeded);
    return r;
}

static void starting_and_stopping(void **state)
{
    (void)state;
    fail_everywhere(make_a_session);
}

static void commands(void **state)
{
    (void)state;
    fail_everywhere(run_something);
}

static void files(void **state)
{
    (void)state;
    fail_everywhere(write_and_read);
    OK(run_in("mkdir l; touch l/a l/b l/c", NULL));
    fail_everywhere(list);
}

static void trees(void **state)
{
    (void)state;
    OK(run_in("mkdir l; touch l/a l/b", NULL));
    fail_everywhere(flush);
    assert_int_equal(mkdir(at_host("src"), 0755), 0);
    assert_int_equal(symlink("x", at_host("src/link")), 0);
    fail_everywhere(seed);
}

static void changes_that_are_kept(void **state)
{
    struct pinfold_sandbox_options options = PINFOLD_SANDBOX_OPTIONS_INIT;

    (void)state;
    options.backend = f.template;
    options.workspace_id = "kept";
    options.ttl_seconds = 600;
    OK(pinfold_sandbox_new(&options, &sandbox, &f.err));
    OK(pinfold_sandbox_start(sandbox, NULL, NULL, &f.err));
    OK(pinfold_sandbox_write_file(sandbox, "a.md", "a", 1, NULL, &f.err));
    fail_everywhere(look_and_flush);
    OK(pinfold_sandbox_stop(sandbox, false, NULL, NULL, &f.err));
    pinfold_sandbox_free(sandbox);
}

static int set_up_tasks(void **state)
{
    return set_up_with(state, true);
}

#define WITH_SESSION(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(starting_and_stopping),
        WITH_SESSION(commands),
        { "long_commands", commands, set_up_tasks, tear_down, NULL },
        WITH_SESSION(files),
        WITH_SESSION(trees),
        WITH_SESSION(changes_that_are_kept),
    };

    return cmocka_run_group_tests_name("agentcore_nomem", tests, start_fake, end_fake);
}
