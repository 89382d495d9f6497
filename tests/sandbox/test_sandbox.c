/* SPDX-License-Identifier: Apache-2.0 */
#include "fake_backend.h"

#include <math.h>

/* Records the names of audit events. */
struct recorder {
    pthread_mutex_t lock;
    char events[1024];
    char last_error[64];
};

static void record(void *ctx, const struct pinfold_audit_event *event)
{
    struct recorder *recorder = ctx;

    pthread_mutex_lock(&recorder->lock);
    snprintf(recorder->events + strlen(recorder->events),
             sizeof(recorder->events) - strlen(recorder->events), "%s ", event->event);
    if (event->error)
        snprintf(recorder->last_error, sizeof(recorder->last_error), "%s", event->error);
    pthread_mutex_unlock(&recorder->lock);
}

static struct recorder recorder = { .lock = PTHREAD_MUTEX_INITIALIZER };

static struct pinfold_sandbox *sandbox_on(struct pinfold_backend *backend, const char *id,
                                          const char *seed)
{
    struct pinfold_sandbox_options options = PINFOLD_SANDBOX_OPTIONS_INIT;
    struct pinfold_sandbox *sandbox = NULL;

    options.workspace_id = id;
    options.backend = backend;
    options.ttl_seconds = 0.05;
    options.seed_from = seed;
    options.audit = (struct pinfold_audit_sink){ .emit = record, .ctx = &recorder };
    assert_int_equal(pinfold_sandbox_new(&options, &sandbox, NULL), 0);
    memset(recorder.events, 0, sizeof(recorder.events));
    return sandbox;
}

static void refuses_options_that_cannot_work(void **unused)
{
    struct fake fake = { 0 };
    struct pinfold_backend *backend = fake_backend(&fake);
    struct pinfold_sandbox_options options = PINFOLD_SANDBOX_OPTIONS_INIT;
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    struct pinfold_sandbox *sandbox = NULL;
    char long_id[300];

    (void)unused;
    memset(long_id, 'x', sizeof(long_id) - 1);
    long_id[sizeof(long_id) - 1] = '\0';
    options.backend = backend;
    options.ttl_seconds = 10;
    for (int i = 0; i < 4; i++) {
        options.workspace_id = (const char *[]){ NULL, "", "a/b", long_id }[i];
        assert_int_equal(pinfold_sandbox_new(&options, &sandbox, &err), -PINFOLD_EVALUE);
    }
    options.workspace_id = "w";
    for (int i = 0; i < 4; i++) {
        options.ttl_seconds = (double[]){ 0, -1, (double)NAN, PINFOLD_TTL_NONE }[i];
        assert_int_equal(pinfold_sandbox_new(&options, &sandbox, &err), -PINFOLD_EVALUE);
    }
    options.ttl_seconds = 10;
    options.backend = NULL;
    assert_int_equal(pinfold_sandbox_new(&options, &sandbox, &err), -PINFOLD_ETYPE);
    options.backend = backend;
    options.seed_exclude = (const char *const[]){ "!keep", NULL };
    assert_int_equal(pinfold_sandbox_new(&options, &sandbox, &err), -PINFOLD_EVALUE);
    assert_null(sandbox);
    pinfold_backend_unref(backend);
}

static void one_life_of_a_sandbox(void **unused)
{
    struct fake fake = { 0 };
    struct pinfold_backend *backend = fake_backend(&fake);
    struct pinfold_sandbox *sandbox = sandbox_on(backend, "w", "/seed");
    struct pinfold_seed_result seeded = { 0 }, again = { 0 };
    struct pinfold_sync_result synced = { 0 };
    char *owner = NULL, *next_owner = NULL;

    (void)unused;
    assert_false(pinfold_sandbox_is_started(sandbox));
    assert_int_equal(pinfold_sandbox_owner_id(sandbox, &owner, NULL), 0);
    assert_null(owner);
    assert_int_equal(pinfold_sandbox_start(sandbox, &seeded, NULL, NULL), 0);
    assert_int_equal(pinfold_sandbox_start(sandbox, &again, NULL, NULL), 0);
    assert_int_equal(fake.seeds, 1);
    assert_int_equal(again.files_seeded, seeded.files_seeded);
    assert_true(pinfold_sandbox_is_started(sandbox));
    assert_int_equal(pinfold_sandbox_owner_id(sandbox, &owner, NULL), 0);
    assert_int_equal(pinfold_sandbox_stop(sandbox, true, &synced, NULL, NULL), 0);
    assert_int_equal(synced.files_synced, 2);
    assert_string_equal(fake.last_dest, "/seed");
    assert_int_equal(fake.stops, 1);
    assert_int_equal(fake.closed, 1);
    assert_int_equal(pinfold_sandbox_stop(sandbox, true, NULL, NULL, NULL), 0);
    assert_int_equal(fake.closed, 1);
    assert_string_equal(recorder.events, "sandbox.start sandbox.flush sandbox.stop ");
    assert_int_equal(pinfold_sandbox_start(sandbox, NULL, NULL, NULL), 0);
    assert_int_equal(fake.seeds, 2);
    assert_int_equal(pinfold_sandbox_owner_id(sandbox, &next_owner, NULL), 0);
    assert_string_not_equal(owner, next_owner);
    pinfold_sandbox_free(sandbox);
    assert_int_equal(fake.closed, 2);
    assert_int_equal(fake.syncs, 1); /* free stops without sync */
    free(owner);
    free(next_owner);
    pinfold_seed_result_done(&seeded);
    pinfold_seed_result_done(&again);
    pinfold_sync_result_done(&synced);
    pinfold_backend_unref(backend);
}

static void *start_in_thread(void *ctx)
{
    struct pinfold_seed_result seeded = { 0 };
    int r = pinfold_sandbox_start(ctx, &seeded, NULL, NULL);
    uint64_t files = seeded.files_seeded;

    pinfold_seed_result_done(&seeded);
    return (void *)(intptr_t)(r < 0 ? r : (int)files);
}

static void concurrent_starts_share_one(void **unused)
{
    enum { THREADS = 8 };
    struct fake fake = { 0 };
    struct pinfold_backend *backend = fake_backend(&fake);
    struct pinfold_sandbox *sandbox = sandbox_on(backend, "w", "/seed");
    pthread_t threads[THREADS];
    void *result;

    (void)unused;
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, start_in_thread, sandbox), 0);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], &result), 0);
        assert_int_equal((intptr_t)result, 3);
    }
    assert_int_equal(fake.seeds, 1);
    assert_int_equal(fake.created, 1);
    pinfold_sandbox_free(sandbox);
    pinfold_backend_unref(backend);
}

struct starter {
    struct pinfold_sandbox *sandbox;
    struct pinfold_cancel *cancel;
};

static void *start_until_cancelled(void *ctx)
{
    struct starter *starter = ctx;

    return (void *)(intptr_t)pinfold_sandbox_start(starter->sandbox, NULL, starter->cancel, NULL);
}

static void a_start_goes_on_without_a_caller_that_is_cancelled(void **unused)
{
    enum { THREADS = 4 };
    struct fake fake = { .seed_us = 200000 };
    struct pinfold_backend *backend = fake_backend(&fake);
    struct starter starter = { .sandbox = sandbox_on(backend, "w", "/seed") };
    pthread_t first, threads[THREADS];
    void *result;

    (void)unused;
    assert_int_equal(pinfold_cancel_new(&starter.cancel, NULL), 0);
    assert_int_equal(pthread_create(&first, NULL, start_until_cancelled, &starter), 0);
    while (__atomic_load_n(&fake.seeds, __ATOMIC_SEQ_CST) == 0)
        usleep(1000);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, start_in_thread, starter.sandbox), 0);
    usleep(50000); /* so that they wait for the first */
    pinfold_cancel_fire(starter.cancel);
    assert_int_equal(pthread_join(first, &result), 0);
    assert_int_equal((intptr_t)result, -PINFOLD_ECANCELLED);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], &result), 0);
        assert_int_equal((intptr_t)result, 3);
    }
    assert_int_equal(fake.seeds, 2);
    assert_int_equal(fake.created, 2);
    assert_int_equal(fake.closed, 1);
    pinfold_sandbox_free(starter.sandbox);
    pinfold_backend_unref(backend);
    pinfold_cancel_free(starter.cancel);
}

static void a_start_with_seed_errors_leaves_nothing(void **unused)
{
    struct fake fake = { .seed_errors = 2 };
    struct pinfold_backend *backend = fake_backend(&fake);
    struct pinfold_sandbox *sandbox = sandbox_on(backend, "w", "/seed");
    struct pinfold_seed_result seeded = { 0 };
    struct pinfold_error err = PINFOLD_ERROR_INIT;

    (void)unused;
    assert_int_equal(pinfold_sandbox_start(sandbox, &seeded, NULL, &err), -PINFOLD_EPREPARE);
    assert_int_equal(seeded.errors.count, 2);
    assert_non_null(strstr(err.msg, "2 path(s) failed"));
    assert_false(pinfold_sandbox_is_started(sandbox));
    assert_int_equal(fake.closed, 1);
    assert_string_equal(recorder.last_error, "WorkspacePrepareError");
    pinfold_seed_result_done(&seeded);
    fake.seed_errors = 0;
    assert_int_equal(pinfold_sandbox_start(sandbox, NULL, NULL, &err), 0);
    pinfold_sandbox_free(sandbox);
    pinfold_backend_unref(backend);
}

static void stop_tears_down_whatever_fails_and_keeps_the_first_error(void **unused)
{
    struct fake fake = { .sync_errors = 1, .fail_close = 1 };
    struct pinfold_backend *backend = fake_backend(&fake);
    struct pinfold_sandbox *sandbox = sandbox_on(backend, "w", "/seed");
    struct pinfold_error err = PINFOLD_ERROR_INIT;

    (void)unused;
    assert_int_equal(pinfold_sandbox_start(sandbox, NULL, NULL, NULL), 0);
    assert_int_equal(pinfold_sandbox_stop(sandbox, true, NULL, NULL, &err), -PINFOLD_EPREPARE);
    assert_non_null(strstr(err.msg, "flush"));
    assert_int_equal(fake.closed, 1);
    assert_false(pinfold_sandbox_is_started(sandbox));
    fake.sync_errors = 0;
    assert_int_equal(pinfold_sandbox_start(sandbox, NULL, NULL, NULL), 0);
    assert_int_equal(pinfold_sandbox_stop(sandbox, true, NULL, NULL, &err), -PINFOLD_EOS);
    assert_non_null(strstr(err.msg, "lost contact"));
    pinfold_sandbox_free(sandbox);
    pinfold_backend_unref(backend);
}

static void *execute_in_thread(void *ctx)
{
    struct pinfold_execute_options options = PINFOLD_EXECUTE_OPTIONS_INIT;
    struct pinfold_execute_result result;
    int r;

    options.command = "wait";
    r = pinfold_sandbox_execute(ctx, &options, &result, NULL, NULL);
    pinfold_execute_result_done(&result);
    return (void *)(intptr_t)r;
}

static void stop_refuses_new_work_and_waits_for_what_runs(void **unused)
{
    struct fake fake = { .block = true };
    struct pinfold_backend *backend = fake_backend(&fake);
    struct pinfold_sandbox *sandbox = sandbox_on(backend, "w", NULL);
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    struct pinfold_bytes text = { 0 };
    pthread_t thread;
    void *result;

    (void)unused;
    assert_int_equal(pinfold_sandbox_start(sandbox, NULL, NULL, NULL), 0);
    assert_int_equal(pthread_create(&thread, NULL, execute_in_thread, sandbox), 0);
    fake_wait_executing(&fake, 1);
    assert_int_equal(pinfold_sandbox_stop(sandbox, true, NULL, NULL, NULL), 0);
    assert_int_equal(fake.executing, 0);
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_int_equal((intptr_t)result, 0);
    assert_int_equal(pinfold_sandbox_read_file(sandbox, "a", &text, NULL, &err), -PINFOLD_ESTART);
    assert_non_null(strstr(err.msg, "not started"));
    pinfold_sandbox_free(sandbox);
    pinfold_backend_unref(backend);
}

static void a_running_command_keeps_its_sandbox_from_expiring(void **unused)
{
    struct fake fake = { .block = true };
    struct pinfold_backend *backend = fake_backend(&fake);
    struct pinfold_manager_options manager_options = PINFOLD_MANAGER_OPTIONS_INIT;
    struct pinfold_sandbox_options options = PINFOLD_SANDBOX_OPTIONS_INIT;
    struct pinfold_manager *manager = NULL;
    struct pinfold_sandbox *sandbox = NULL;
    struct pinfold_strings ids = { 0 };
    pthread_t thread;

    (void)unused;
    assert_int_equal(pinfold_manager_new(&manager_options, &manager, NULL), 0);
    options.workspace_id = "w";
    options.backend = backend;
    options.ttl_seconds = 1; /* counts, not the manager's hour */
    options.manager = manager;
    options.sync_dest = "/artifacts";
    assert_int_equal(pinfold_sandbox_new(&options, &sandbox, NULL), 0);
    assert_int_equal(pinfold_sandbox_start(sandbox, NULL, NULL, NULL), 0);
    assert_int_equal(pthread_create(&thread, NULL, execute_in_thread, sandbox), 0);
    fake_wait_executing(&fake, 1);
    usleep(1100000);
    assert_int_equal(pinfold_manager_cleanup_expired(manager, &ids, NULL), 0);
    assert_int_equal(ids.count, 0);
    fake_stop_commands(&fake, NULL);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(pinfold_manager_cleanup_expired(manager, &ids, NULL), 0);
    assert_int_equal(ids.count, 0); /* its end was activity */
    usleep(1100000);
    assert_int_equal(pinfold_manager_cleanup_expired(manager, &ids, NULL), 0);
    assert_int_equal(ids.count, 1);
    assert_string_equal(fake.last_dest, "/artifacts");
    assert_false(pinfold_sandbox_is_started(sandbox));
    assert_int_equal(pinfold_sandbox_stop(sandbox, true, NULL, NULL, NULL), 0);
    assert_int_equal(fake.closed, 1);
    assert_int_equal(pinfold_sandbox_start(sandbox, NULL, NULL, NULL), 0);
    pinfold_strings_done(&ids);
    pinfold_sandbox_free(sandbox);
    pinfold_manager_unref(manager);
    pinfold_backend_unref(backend);
}

/* Of a sandbox with a manager of the test's own, and a life of nearly nothing. */
static struct pinfold_sandbox *short_lived(struct pinfold_backend *backend,
                                           struct pinfold_manager **ret_manager)
{
    struct pinfold_sandbox_options options = PINFOLD_SANDBOX_OPTIONS_INIT;
    struct pinfold_sandbox *sandbox = NULL;

    assert_int_equal(pinfold_manager_new(NULL, ret_manager, NULL), 0);
    options.workspace_id = "w";
    options.backend = backend;
    options.ttl_seconds = 1e-9;
    options.manager = *ret_manager;
    options.seed_from = "/seed";
    assert_int_equal(pinfold_sandbox_new(&options, &sandbox, NULL), 0);
    return sandbox;
}

static void *start_well(void *ctx)
{
    return pinfold_sandbox_start(ctx, NULL, NULL, NULL) == 0 ? ctx : NULL;
}

static void a_seeding_that_outlasts_the_ttl_is_not_expired(void **unused)
{
    struct fake fake = { 0 };
    struct pinfold_backend *backend = fake_backend(&fake);
    struct pinfold_manager *manager = NULL;
    struct pinfold_sandbox *sandbox = short_lived(backend, &manager);
    struct pinfold_strings ids = { 0 };
    pthread_t thread;
    void *good = NULL;

    (void)unused;
    fake.seed_us = 300000;
    assert_int_equal(pthread_create(&thread, NULL, start_well, sandbox), 0);
    while (__atomic_load_n(&fake.seeds, __ATOMIC_SEQ_CST) == 0)
        usleep(1000);
    assert_int_equal(pinfold_manager_cleanup_expired(manager, &ids, NULL), 0);
    assert_int_equal(ids.count, 0);
    assert_int_equal(fake.syncs, 0);
    assert_int_equal(pthread_join(thread, &good), 0);
    assert_non_null(good);
    pinfold_strings_done(&ids);
    pinfold_sandbox_free(sandbox);
    pinfold_manager_unref(manager);
    pinfold_backend_unref(backend);
}

static void *clean_up(void *ctx)
{
    return pinfold_manager_cleanup_expired(ctx, NULL, NULL) == 0 ? ctx : NULL;
}

static void a_start_waits_until_the_expired_life_is_over(void **unused)
{
    struct fake fake = { 0 };
    struct pinfold_backend *backend = fake_backend(&fake);
    struct pinfold_manager *manager = NULL;
    struct pinfold_sandbox *sandbox = short_lived(backend, &manager);
    pthread_t thread;
    void *good = NULL;

    (void)unused;
    assert_int_equal(pinfold_sandbox_start(sandbox, NULL, NULL, NULL), 0);
    fake.close_us = 300000;
    usleep(1000);
    assert_int_equal(pthread_create(&thread, NULL, clean_up, manager), 0);
    while (pinfold_sandbox_is_started(sandbox))
        usleep(1000);
    assert_int_equal(pinfold_sandbox_start(sandbox, NULL, NULL, NULL), 0);
    assert_int_equal(fake.closed, 1);
    assert_int_equal(fake.created, 2);
    assert_int_equal(pthread_join(thread, &good), 0);
    assert_non_null(good);
    pinfold_sandbox_free(sandbox);
    pinfold_manager_unref(manager);
    pinfold_backend_unref(backend);
}

static void flush_without_a_destination_does_nothing_even_before_start(void **unused)
{
    struct fake fake = { 0 };
    struct pinfold_backend *backend = fake_backend(&fake);
    struct pinfold_sandbox *sandbox = sandbox_on(backend, "w", NULL);
    struct pinfold_sync_result synced;

    (void)unused;
    assert_int_equal(pinfold_sandbox_flush(sandbox, NULL, &synced, NULL, NULL), 0);
    assert_int_equal(pinfold_sandbox_flush(sandbox, "/d", &synced, NULL, NULL), -PINFOLD_ESTART);
    assert_int_equal(pinfold_sandbox_start(sandbox, NULL, NULL, NULL), 0);
    assert_int_equal(pinfold_sandbox_flush(sandbox, NULL, &synced, NULL, NULL), 0);
    assert_int_equal(pinfold_sync_workspace_for_sandbox(sandbox, "/d", &synced, NULL, NULL), 1);
    assert_int_equal(synced.files_synced, 2);
    assert_int_equal(pinfold_sandbox_flush(sandbox, "/d", NULL, NULL, NULL), 1);
    assert_int_equal(fake.syncs, 2);
    pinfold_sandbox_free(sandbox);
    pinfold_backend_unref(backend);
}

static void stopped_commands_leave_files_and_their_way_home(void **unused)
{
    struct fake fake = { 0 };
    struct pinfold_backend *backend = fake_backend(&fake);
    struct pinfold_sandbox *sandbox = sandbox_on(backend, "w", NULL);

    (void)unused;
    assert_int_equal(pinfold_sandbox_stop_commands(sandbox, NULL), -PINFOLD_ESTART);
    assert_int_equal(pinfold_sandbox_start(sandbox, NULL, NULL, NULL), 0);
    assert_int_equal(pinfold_sandbox_stop_commands(sandbox, NULL), 0);
    assert_int_equal(fake.stops, 1);
    assert_int_equal(fake.closed, 0);
    assert_true(pinfold_sandbox_is_started(sandbox));
    assert_int_equal(pinfold_sandbox_flush(sandbox, "/d", NULL, NULL, NULL), 1);
    assert_int_equal(fake.syncs, 1);
    pinfold_sandbox_free(sandbox);
    assert_int_equal(fake.closed, 1);
    pinfold_backend_unref(backend);
}

static void execute_normalises_the_working_directory(void **unused)
{
    struct fake fake = { 0 };
    struct pinfold_backend *backend = fake_backend(&fake);
    struct pinfold_sandbox *sandbox = sandbox_on(backend, "w", NULL);
    struct pinfold_execute_options options = PINFOLD_EXECUTE_OPTIONS_INIT;
    struct pinfold_execute_result result;

    (void)unused;
    assert_int_equal(pinfold_sandbox_start(sandbox, NULL, NULL, NULL), 0);
    assert_int_equal(pinfold_sandbox_execute(sandbox, &options, &result, NULL, NULL),
                     -PINFOLD_EVALUE); /* neither command nor argv */
    options.command = "true";
    options.cwd = "/workspace/a/../b";
    assert_int_equal(pinfold_sandbox_execute(sandbox, &options, &result, NULL, NULL), 0);
    assert_string_equal(fake.last_cwd, "b");
    pinfold_execute_result_done(&result);
    options.cwd = "../out";
    assert_int_equal(pinfold_sandbox_execute(sandbox, &options, &result, NULL, NULL),
                     -PINFOLD_EPATH);
    pinfold_sandbox_free(sandbox);
    pinfold_backend_unref(backend);
}

static void a_ref_names_the_workspace_before_start(void **unused)
{
    struct fake fake = { 0 };
    struct pinfold_backend *backend = fake_backend(&fake);
    struct pinfold_sandbox *sandbox = sandbox_on(backend, "w", NULL);
    struct pinfold_sandbox_ref ref = { 0 };

    (void)unused;
    assert_int_equal(pinfold_sandbox_ref(sandbox, &ref, NULL), 0);
    assert_string_equal(ref.workspace_id, "w");
    assert_string_equal(ref.backend_type, "FakeBackend");
    assert_non_null(ref.manager_id);
    pinfold_sandbox_ref_done(&ref);
    pinfold_sandbox_free(sandbox);
    pinfold_backend_unref(backend);
}

/* ---- attach ---- */

struct agent {
    int wired, unwired;
    bool refuse;
};

static int wire(void *agent, void *ctx, struct pinfold_error *err)
{
    (void)ctx;
    if (((struct agent *)agent)->refuse)
        return fake_fail(err, PINFOLD_EVALUE, 0, "a tool named execute is registered already");
    ((struct agent *)agent)->wired++;
    return 0;
}

static void unwire(void *agent, void *ctx)
{
    (void)ctx;
    ((struct agent *)agent)->unwired++;
}

static struct pinfold_attach_request request_for(struct agent *agent, enum pinfold_attach_mode mode)
{
    return (struct pinfold_attach_request){ .size = sizeof(struct pinfold_attach_request),
                                            .agent = agent,
                                            .agent_id = "coder",
                                            .mode = mode,
                                            .wire = wire,
                                            .unwire = unwire };
}

static void agents_attach_once_and_stop_detaches_them(void **unused)
{
    struct fake fake_one = { 0 }, fake_two = { 0 };
    struct pinfold_backend *a = fake_backend(&fake_one), *b = fake_backend(&fake_two);
    struct pinfold_sandbox *one = sandbox_on(a, "w1", NULL), *two = sandbox_on(b, "w2", NULL);
    struct agent agent = { 0 };
    struct pinfold_attach_request request = request_for(&agent, PINFOLD_READ_WRITE);
    struct pinfold_error err = PINFOLD_ERROR_INIT;

    (void)unused;
    assert_int_equal(pinfold_sandbox_attach(one, &request, &err), -PINFOLD_EATTACH);
    assert_non_null(strstr(err.msg, "not started"));
    assert_int_equal(pinfold_sandbox_start(one, NULL, NULL, NULL), 0);
    assert_int_equal(pinfold_sandbox_start(two, NULL, NULL, NULL), 0);
    assert_int_equal(pinfold_sandbox_attach(one, &request, &err), 0);
    assert_int_equal(pinfold_sandbox_attach(one, &request, &err), 0);
    assert_int_equal(agent.wired, 1);
    request.mode = PINFOLD_READ_ONLY;
    assert_int_equal(pinfold_sandbox_attach(one, &request, &err), -PINFOLD_EATTACH);
    assert_non_null(strstr(err.msg, "read_write"));
    assert_int_equal(pinfold_sandbox_attach(two, &request, &err), -PINFOLD_EATTACH);
    assert_non_null(strstr(err.msg, "w1"));
    pinfold_sandbox_detach(two, &agent);
    assert_int_equal(agent.unwired, 0);
    assert_int_equal(pinfold_sandbox_stop(one, false, NULL, NULL, NULL), 0);
    assert_int_equal(agent.unwired, 1);
    assert_int_equal(pinfold_sandbox_attach(two, &request, &err), 0);
    pinfold_sandbox_detach(two, &agent);
    pinfold_sandbox_detach(two, &agent);
    assert_int_equal(agent.unwired, 2);
    pinfold_sandbox_free(one);
    pinfold_sandbox_free(two);
    pinfold_backend_unref(a);
    pinfold_backend_unref(b);
}

static void an_attach_that_fails_leaves_nothing(void **unused)
{
    struct fake fake = { 0 };
    struct pinfold_backend *backend = fake_backend(&fake);
    struct pinfold_sandbox *sandbox = sandbox_on(backend, "w", NULL);
    struct agent agent = { .refuse = true };
    struct pinfold_attach_request request = request_for(&agent, PINFOLD_READ_WRITE);
    struct pinfold_error err = PINFOLD_ERROR_INIT;

    (void)unused;
    assert_int_equal(pinfold_sandbox_start(sandbox, NULL, NULL, NULL), 0);
    assert_int_equal(pinfold_sandbox_attach(sandbox, &request, &err), -PINFOLD_EATTACH);
    assert_non_null(strstr(err.msg, "registered already"));
    agent.refuse = false;
    request.mode = PINFOLD_READ_ONLY; /* nothing of the first try is in the way */
    assert_int_equal(pinfold_sandbox_attach(sandbox, &request, &err), 0);
    assert_int_equal(agent.wired, 1);
    pinfold_sandbox_free(sandbox);
    assert_int_equal(agent.unwired, 1);
    pinfold_backend_unref(backend);
}

/* Unwiring that takes until the test lets it end. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool begun, may_end, ended;
} slow = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

static void unwire_slowly(void *agent, void *ctx)
{
    (void)agent;
    (void)ctx;
    pthread_mutex_lock(&slow.lock);
    slow.begun = true;
    pthread_cond_broadcast(&slow.changed);
    while (!slow.may_end)
        pthread_cond_wait(&slow.changed, &slow.lock);
    slow.ended = true;
    pthread_mutex_unlock(&slow.lock);
}

struct detaching {
    struct pinfold_sandbox *sandbox;
    void *agent;
};

static void *detach_in_thread(void *ctx)
{
    struct detaching *detaching = ctx;

    pinfold_sandbox_detach(detaching->sandbox, detaching->agent);
    return NULL;
}

static void *stop_in_thread(void *sandbox)
{
    bool ended;

    assert_int_equal(pinfold_sandbox_stop(sandbox, false, NULL, NULL, NULL), 0);
    pthread_mutex_lock(&slow.lock);
    ended = slow.ended;
    pthread_mutex_unlock(&slow.lock);
    return ended ? sandbox : NULL;
}

static void a_stop_waits_for_a_detach_elsewhere(void **unused)
{
    struct fake fake = { 0 };
    struct pinfold_backend *backend = fake_backend(&fake);
    struct pinfold_sandbox *sandbox = sandbox_on(backend, "w", NULL);
    struct agent agent = { 0 };
    struct pinfold_attach_request request = request_for(&agent, PINFOLD_READ_WRITE);
    struct detaching detaching = { sandbox, &agent };
    pthread_t detacher, stopper;
    void *waited = NULL;

    (void)unused;
    request.unwire = unwire_slowly;
    assert_int_equal(pinfold_sandbox_start(sandbox, NULL, NULL, NULL), 0);
    assert_int_equal(pinfold_sandbox_attach(sandbox, &request, NULL), 0);
    assert_int_equal(pthread_create(&detacher, NULL, detach_in_thread, &detaching), 0);
    pthread_mutex_lock(&slow.lock);
    while (!slow.begun)
        pthread_cond_wait(&slow.changed, &slow.lock);
    pthread_mutex_unlock(&slow.lock);
    assert_int_equal(pthread_create(&stopper, NULL, stop_in_thread, sandbox), 0);
    usleep(50000); /* time to return too early; when it is not enough the test passes all the same
                    */
    pthread_mutex_lock(&slow.lock);
    slow.may_end = true;
    pthread_cond_broadcast(&slow.changed);
    pthread_mutex_unlock(&slow.lock);
    pthread_join(detacher, NULL);
    pthread_join(stopper, &waited);
    assert_non_null(waited);
    assert_int_equal(fake.closed, 1);
    pinfold_sandbox_free(sandbox);
    pinfold_backend_unref(backend);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refuses_options_that_cannot_work),
        cmocka_unit_test(one_life_of_a_sandbox),
        cmocka_unit_test(concurrent_starts_share_one),
        cmocka_unit_test(a_start_goes_on_without_a_caller_that_is_cancelled),
        cmocka_unit_test(a_start_with_seed_errors_leaves_nothing),
        cmocka_unit_test(stop_tears_down_whatever_fails_and_keeps_the_first_error),
        cmocka_unit_test(stop_refuses_new_work_and_waits_for_what_runs),
        cmocka_unit_test(a_running_command_keeps_its_sandbox_from_expiring),
        cmocka_unit_test(a_seeding_that_outlasts_the_ttl_is_not_expired),
        cmocka_unit_test(a_start_waits_until_the_expired_life_is_over),
        cmocka_unit_test(flush_without_a_destination_does_nothing_even_before_start),
        cmocka_unit_test(stopped_commands_leave_files_and_their_way_home),
        cmocka_unit_test(execute_normalises_the_working_directory),
        cmocka_unit_test(a_ref_names_the_workspace_before_start),
        cmocka_unit_test(agents_attach_once_and_stop_detaches_them),
        cmocka_unit_test(an_attach_that_fails_leaves_nothing),
        cmocka_unit_test(a_stop_waits_for_a_detach_elsewhere),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
