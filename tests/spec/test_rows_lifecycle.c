/* SPDX-License-Identifier: Apache-2.0 */
/* Rows 81 to 93 of the semantics: who owns a workspace, start and stop. */
#include "spec.h"

#include <pthread.h>
#include <stdatomic.h>

/* A local backend whose steps are counted, written down, and made to fail. */
static struct {
    struct pinfold_backend_ops table; /* s->backend's own functions */
    atomic_int creates, closes, seeds, syncs, builds;
    int create_failures; /* how many creates still fail */
    bool sync_fails;
    char steps[256]; /* in their order, each followed by a space */
    char built_for[64];
} spy;

static void step(const char *name)
{
    strncat(spy.steps, name, sizeof(spy.steps) - strlen(spy.steps) - 1);
    strncat(spy.steps, " ", sizeof(spy.steps) - strlen(spy.steps) - 1);
}

static int refuse(struct pinfold_error *err, const char *text)
{
    if (err) {
        *err = (struct pinfold_error){ .code = PINFOLD_EBACKEND };
        snprintf(err->msg, sizeof(err->msg), "%s", text);
    }
    return -PINFOLD_EBACKEND;
}

static int spy_create(void *state, struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    atomic_fetch_add(&spy.creates, 1);
    spec_sleep(0.05); /* so that those who come at once meet */
    if (spy.create_failures > 0) {
        spy.create_failures--;
        return refuse(err, "create: the machine is on fire");
    }
    return spy.table.create ? spy.table.create(state, cancel, err) : 0;
}

static int spy_close(void *state, struct pinfold_error *err)
{
    atomic_fetch_add(&spy.closes, 1);
    step("close");
    return spy.table.close ? spy.table.close(state, err) : 0;
}

static int spy_seed(void *state, const struct pinfold_seed_request *request,
                    struct pinfold_seed_result *ret, struct pinfold_cancel *cancel,
                    struct pinfold_error *err)
{
    atomic_fetch_add(&spy.seeds, 1);
    return spy.table.seed_workspace(state, request, ret, cancel, err);
}

static int spy_sync(void *state, const struct pinfold_sync_request *request,
                    struct pinfold_sync_result *ret, struct pinfold_cancel *cancel,
                    struct pinfold_error *err)
{
    atomic_fetch_add(&spy.syncs, 1);
    step("flush");
    if (spy.sync_fails)
        return refuse(err, "sync: the line is down");
    return spy.table.sync_artifacts(state, request, ret, cancel, err);
}

/* Put the spy over s->backend, and let it stand in its place. */
static void use_spy(struct spec *s)
{
    static struct pinfold_backend_ops ops;
    struct pinfold_backend *backend = NULL;

    memset(&spy, 0, sizeof(spy));
    spec_copy_table(s, &ops);
    spy.table = ops;
    ops.create = spy_create;
    ops.close = spy_close;
    ops.seed_workspace = spy_seed;
    ops.sync_artifacts = spy_sync;
    spec_ok(s, pinfold_backend_new(&ops, pinfold_backend_get_state(s->backend), NULL, &backend,
                                   &s->err));
    s->below = s->backend;
    s->backend = backend;
}

static struct pinfold_sandbox *make(struct spec *s, const char *id, const char *root)
{
    struct pinfold_local_options local = PINFOLD_LOCAL_OPTIONS_INIT;
    struct pinfold_sandbox_options options = spec_options(s);
    struct pinfold_sandbox *sandbox = NULL;

    local.workspace_root = spec_at(s, root);
    options.workspace_id = id;
    spec_ok(s, pinfold_local_backend_new(&local, &options.backend, &s->err));
    int r = pinfold_sandbox_new(&options, &sandbox, &s->err);
    pinfold_backend_unref(options.backend);
    spec_ok(s, r);
    return sandbox;
}

static int start(struct spec *s, struct pinfold_sandbox *sandbox)
{
    return pinfold_sandbox_start(sandbox, NULL, NULL, &s->err);
}

static void row_081_a_workspace_has_one_owner_in_the_process_whatever_the_manager(void **state)
{
    struct spec *s = *state;

    s->sandbox = make(s, "shared", "ws"); /* each with a manager and a root of its own */
    s->other = make(s, "shared", "ws2");
    spec_ok(s, start(s, s->sandbox));
    spec_refuses(s, PINFOLD_ESTART, start(s, s->other));
    assert_non_null(strstr(s->err.msg, "shared")); /* names the workspace */
    assert_false(pinfold_sandbox_is_started(s->other));
    assert_true(pinfold_sandbox_is_started(s->sandbox));
    spec_ok(s, pinfold_sandbox_stop(s->sandbox, true, NULL, NULL, &s->err));
    spec_ok(s, start(s, s->other));
    spec_refuses(s, PINFOLD_ESTART, start(s, s->sandbox));
    pinfold_sandbox_free(s->other); /* freeing gives the claim back as well */
    s->other = NULL;
    spec_ok(s, start(s, s->sandbox));
}

static int use_backend(void *ctx, struct pinfold_backend **ret, struct pinfold_error *err)
{
    (void)err;
    *ret = pinfold_backend_ref(ctx);
    return 0;
}

static void row_081_the_per_agent_path_and_claims_meet_the_same_table(void **state)
{
    struct spec *s = *state;
    struct pinfold_local_options local = PINFOLD_LOCAL_OPTIONS_INIT;
    struct pinfold_backend_factory factory = { .make = use_backend };
    struct pinfold_backend *backend = NULL;

    s->sandbox = make(s, "shared", "ws");
    spec_ok(s, start(s, s->sandbox));
    spec_ok(s, pinfold_manager_new(NULL, &s->manager, &s->err));
    local.workspace_root = spec_at(s, "ws2");
    spec_ok(s, pinfold_local_backend_new(&local, &backend, &s->err));
    factory.ctx = backend;
    spec_refuses(
            s, PINFOLD_ESTART,
            pinfold_manager_get_or_create(s->manager, "shared", &factory, NULL, NULL, &s->err));
    spec_refuses(s, PINFOLD_ESTART,
                 pinfold_manager_claim_session(s->manager, "shared", &factory, "me", 0, NULL, NULL,
                                               &s->err));
    spec_stop(s);
    spec_ok(s, pinfold_manager_claim_session(s->manager, "shared", &factory, "me", 0, NULL, NULL,
                                             &s->err));
    pinfold_backend_unref(backend);
    spec_refuses(s, PINFOLD_ESTART, start(s, s->sandbox));
    spec_ok(s, pinfold_manager_close_session(s->manager, "shared", NULL, NULL, &s->err));
    spec_ok(s, start(s, s->sandbox));
}

static void row_082_a_second_start_answers_with_the_first_result(void **state)
{
    struct spec *s = *state;
    struct pinfold_sandbox_options options;
    struct pinfold_seed_result again = { 0 };
    char *owner = NULL, *same = NULL;

    use_spy(s);
    options = spec_options(s);
    spec_put(s, "seed/a", "a");
    spec_put(s, "seed/.env", "e");
    options.seed_from = spec_at(s, "seed");
    spec_start(s, &options);
    spec_ok(s, pinfold_sandbox_owner_id(s->sandbox, &owner, &s->err));
    spec_put(s, "seed/b", "later");
    spec_ok(s, pinfold_sandbox_start(s->sandbox, &again, NULL, &s->err));
    spec_ok(s, pinfold_sandbox_owner_id(s->sandbox, &same, &s->err));
    assert_int_equal(again.files_seeded, 1);
    assert_int_equal(again.skipped_paths.count, 1);
    assert_string_equal(again.skipped_paths.items[0], ".env");
    assert_string_equal(owner, same);
    pinfold_seed_result_done(&again);
    free(owner);
    free(same);
    spec_missing(s, "ws/b");
    assert_int_equal(spy.creates, 1);
    assert_int_equal(spy.seeds, 1);
}

static void row_082_a_start_after_stop_is_a_new_cycle(void **state)
{
    struct spec *s = *state;
    struct pinfold_sandbox_options options;
    char *first = NULL, *second = NULL;

    use_spy(s);
    options = spec_options(s);
    spec_put(s, "seed/a", "a");
    options.seed_from = spec_at(s, "seed");
    spec_start(s, &options);
    spec_ok(s, pinfold_sandbox_owner_id(s->sandbox, &first, &s->err));
    spec_stop(s);
    spec_put(s, "seed/b", "b");
    pinfold_seed_result_done(&s->seed);
    spec_ok(s, pinfold_sandbox_start(s->sandbox, &s->seed, NULL, &s->err));
    spec_ok(s, pinfold_sandbox_owner_id(s->sandbox, &second, &s->err));
    assert_non_null(first);
    assert_non_null(second);
    assert_string_not_equal(first, second);
    free(first);
    free(second);
    spec_is(s, "ws/b", "b");
    assert_int_equal(spy.creates, 2);
    assert_int_equal(spy.closes, 1);
    assert_int_equal(spy.seeds, 2);
    spec_run(s, "echo on");
    spec_stdout_is(s, "on\n");
}

struct starter {
    struct pinfold_sandbox *sandbox;
    struct pinfold_seed_result seed;
    struct pinfold_error err;
    int r;
};

static void *start_it(void *arg)
{
    struct starter *starter = arg;

    starter->r = pinfold_sandbox_start(starter->sandbox, &starter->seed, NULL, &starter->err);
    return NULL;
}

enum { STARTERS = 8 };

static void start_all(struct spec *s, struct starter *starters)
{
    pthread_t threads[STARTERS];

    for (int i = 0; i < STARTERS; i++) {
        starters[i].sandbox = s->sandbox;
        assert_int_equal(pthread_create(&threads[i], NULL, start_it, &starters[i]), 0);
    }
    for (int i = 0; i < STARTERS; i++)
        pthread_join(threads[i], NULL);
}

static void row_083_those_who_start_at_once_share_one_start(void **state)
{
    struct spec *s = *state;
    struct starter starters[STARTERS] = { 0 };
    struct pinfold_sandbox_options options;

    use_spy(s);
    options = spec_options(s);
    spec_put(s, "seed/a", "a");
    spec_put(s, "seed/b", "b");
    options.seed_from = spec_at(s, "seed");
    spec_new(s, &options);
    start_all(s, starters);
    for (int i = 0; i < STARTERS; i++) {
        assert_int_equal(starters[i].r, 0);
        assert_int_equal(starters[i].seed.files_seeded, 2);
        pinfold_seed_result_done(&starters[i].seed);
    }
    assert_int_equal(spy.creates, 1);
    assert_int_equal(spy.seeds, 1);
    assert_int_equal(spec_event_count(s, "sandbox.start"), 1);
}

static void row_083_a_start_that_fails_fails_for_all_or_is_tried_again(void **state)
{
    struct spec *s = *state;
    struct starter starters[STARTERS] = { 0 };
    int failed = 0;

    use_spy(s);
    struct pinfold_sandbox_options options = spec_options(s);
    spy.create_failures = 1;
    spec_new(s, &options);
    start_all(s, starters);
    for (int i = 0; i < STARTERS; i++) {
        failed += starters[i].r < 0;
        assert_int_equal(starters[i].err.code, -starters[i].r); /* each is told why */
    }
    assert_true(failed >= 1);
    assert_int_equal(pinfold_sandbox_is_started(s->sandbox), failed < STARTERS);
    spec_ok(s, start(s, s->sandbox));
}

static void row_084_a_create_that_fails_leaves_nothing_claimed(void **state)
{
    struct spec *s = *state;

    use_spy(s);
    struct pinfold_sandbox_options options = spec_options(s);
    spy.create_failures = 1;
    spec_new(s, &options);
    spec_refuses(s, PINFOLD_EBACKEND, start(s, s->sandbox));
    assert_non_null(strstr(s->err.msg, "on fire"));
    assert_false(pinfold_sandbox_is_started(s->sandbox));
    s->other = make(s, "spec", "ws2");
    spec_ok(s, start(s, s->other)); /* the claim is free */
    spec_ok(s, pinfold_sandbox_stop(s->other, false, NULL, NULL, &s->err));
    spec_ok(s, start(s, s->sandbox)); /* and it can be tried again */
}

static void row_084_a_seed_that_fails_closes_the_backend(void **state)
{
    struct spec *s = *state;

    use_spy(s);
    struct pinfold_sandbox_options options = spec_options(s);
    options.seed_from = spec_at(s, "missing");
    spec_new(s, &options);
    spec_refuses(s, PINFOLD_EPREPARE, start(s, s->sandbox));
    assert_int_equal(spy.creates, spy.closes);
    assert_false(pinfold_sandbox_is_started(s->sandbox));
    spec_put(s, "missing/a", "now there");
    spec_ok(s, start(s, s->sandbox));
    spec_is(s, "ws/a", "now there");
}

static void row_085_stop_is_a_noop_before_start_and_after_stop(void **state)
{
    struct spec *s = *state;

    use_spy(s);
    struct pinfold_sandbox_options options = spec_options(s);
    spec_new(s, &options);
    spec_stop(s);
    spec_ok(s, start(s, s->sandbox));
    spec_stop(s);
    spec_stop(s);
    spec_ok(s, pinfold_sandbox_stop(s->sandbox, true, &s->sync, NULL, &s->err));
    assert_int_equal(spy.closes, 1);
    assert_int_equal(spec_event_count(s, "sandbox.stop"), 1);
}

struct agent {
    int wired, unwired;
    bool refuses;
};

static int wire(void *agent, void *ctx, struct pinfold_error *err)
{
    struct agent *a = agent;

    (void)ctx;
    if (a->refuses) {
        if (err)
            *err = (struct pinfold_error){ .code = PINFOLD_EATTACH, .msg = "no such tool" };
        return -PINFOLD_EATTACH;
    }
    a->wired++;
    return 0;
}

static void unwire(void *agent, void *ctx)
{
    (void)ctx;
    step("detach");
    ((struct agent *)agent)->unwired++;
}

static int attach(struct spec *s, struct agent *agent, enum pinfold_attach_mode mode)
{
    struct pinfold_attach_request request = { .size = sizeof(request),
                                              .agent = agent,
                                              .agent_id = "reviewer",
                                              .mode = mode,
                                              .wire = wire,
                                              .unwire = unwire };

    return pinfold_sandbox_attach(s->sandbox, &request, &s->err);
}

static void row_086_stop_detaches_every_agent_once(void **state)
{
    struct spec *s = *state;
    struct agent one = { 0 }, two = { 0 };

    spec_start_plain(s);
    spec_ok(s, attach(s, &one, PINFOLD_READ_WRITE));
    spec_ok(s, attach(s, &two, PINFOLD_READ_ONLY));
    spec_stop(s);
    assert_int_equal(one.wired, 1);
    assert_int_equal(one.unwired, 1);
    assert_int_equal(two.unwired, 1);
    pinfold_sandbox_detach(s->sandbox, &one); /* not attached any more */
    assert_int_equal(one.unwired, 1);
    assert_int_equal(spec_event_count(s, "detach"), 2);
    spec_refuses(s, PINFOLD_EATTACH, attach(s, &one, PINFOLD_READ_WRITE)); /* not started */
}

static void row_086_a_detached_agent_can_be_attached_again(void **state)
{
    struct spec *s = *state;
    struct agent agent = { 0 };

    spec_start_plain(s);
    spec_ok(s, attach(s, &agent, PINFOLD_READ_WRITE));
    spec_stop(s);
    spec_ok(s, start(s, s->sandbox));
    spec_ok(s, attach(s, &agent, PINFOLD_READ_ONLY));
    pinfold_sandbox_detach(s->sandbox, &agent);
    pinfold_sandbox_detach(s->sandbox, &agent);
    assert_int_equal(agent.wired, 2);
    assert_int_equal(agent.unwired, 2);
    agent.refuses = true;
    spec_refuses(s, PINFOLD_EATTACH, attach(s, &agent, PINFOLD_READ_WRITE));
    assert_non_null(strstr(s->err.msg, "no such tool"));
    spec_stop(s);
    assert_int_equal(agent.unwired, 2); /* what failed to attach is not detached */
}

static void row_087_stop_ends_running_commands_before_it_flushes(void **state)
{
    struct spec *s = *state;
    struct pinfold_sandbox_options options = spec_options(s);
    struct spec_call call = { .s = s,
                              .options = spec_shell(
                                      "trap 'echo saved > last.md; exit 0' TERM; echo $$ > pid; "
                                      "while :; do sleep 0.05; done",
                                      60) };
    pthread_t thread;

    options.sync_dest = spec_at(s, "dest");
    spec_start(s, &options);
    assert_int_equal(pthread_create(&thread, NULL, spec_call, &call), 0);
    pid_t pid = spec_pid(s, "ws/pid");
    int r = pinfold_sandbox_stop(s->sandbox, true, &s->sync, NULL, &s->err);
    pthread_join(thread, NULL);
    int exit_code = call.result.exit_code;
    pinfold_execute_result_done(&call.result);
    assert_int_equal(r, 0);
    assert_false(spec_alive(s, pid));
    assert_true(call.r < 0 || exit_code != 0); /* it did not end by itself */
    spec_is(s, "dest/last.md", "saved\n");     /* what it wrote on TERM was flushed */
    struct pinfold_execute_options late = { .size = sizeof(late), .command = "touch late" };
    pinfold_execute_result_done(&s->run);
    spec_refuses(s, PINFOLD_ESTART,
                 pinfold_sandbox_execute(s->sandbox, &late, &s->run, NULL, &s->err));
    spec_missing(s, "ws/late");
}

static void row_088_stop_detaches_then_flushes_then_closes(void **state)
{
    struct spec *s = *state;
    struct agent agent = { 0 };

    use_spy(s);
    struct pinfold_sandbox_options options = spec_options(s);
    options.sync_dest = spec_at(s, "dest");
    spec_start(s, &options);
    spec_ok(s, attach(s, &agent, PINFOLD_READ_WRITE));
    spec_ok(s, pinfold_sandbox_stop(s->sandbox, true, &s->sync, NULL, &s->err));
    assert_string_equal(spy.steps, "detach flush close ");
}

static void row_088_a_flush_that_fails_does_not_keep_stop_from_closing(void **state)
{
    struct spec *s = *state;
    struct agent agent = { 0 };

    use_spy(s);
    struct pinfold_sandbox_options options = spec_options(s);
    options.sync_dest = spec_at(s, "dest");
    spy.sync_fails = true;
    spec_start(s, &options);
    spec_ok(s, attach(s, &agent, PINFOLD_READ_WRITE));
    s->err = (struct pinfold_error)PINFOLD_ERROR_INIT;
    assert_true(pinfold_sandbox_stop(s->sandbox, true, &s->sync, NULL, &s->err) < 0);
    assert_non_null(strstr(s->err.msg, "line is down"));
    assert_string_equal(spy.steps, "detach flush close ");
    assert_false(pinfold_sandbox_is_started(s->sandbox));
    spy.sync_fails = false;
    spec_ok(s, start(s, s->sandbox));
}

static void row_089_the_workspace_root_is_never_deleted(void **state)
{
    struct spec *s = *state;

    spec_start_plain(s); /* "ws" did not exist: the backend made it */
    spec_put(s, "ws/kept", "k");
    spec_stop(s);
    spec_is(s, "ws/kept", "k");
    spec_ok(s, start(s, s->sandbox));
    pinfold_sandbox_free(s->sandbox);
    s->sandbox = NULL;
    pinfold_backend_unref(s->backend);
    s->backend = NULL;
    spec_is(s, "ws/kept", "k");
}

static void row_090_two_workspaces_never_share_a_root(void **state)
{
    struct spec *s = *state;

    spec_dir(s, "ws");
    spec_link(s, "ws", "alias");
    spec_dir(s, "sub");
    s->sandbox = make(s, "one", "ws");
    spec_ok(s, start(s, s->sandbox));
    s->other = make(s, "two", "sub/../ws");
    spec_refuses(s, PINFOLD_ESTART, start(s, s->other));
    pinfold_sandbox_free(s->other);
    s->other = make(s, "two", "alias"); /* the same real path behind a link */
    spec_refuses(s, PINFOLD_ESTART, start(s, s->other));
    assert_false(pinfold_sandbox_is_started(s->other));
    spec_stop(s);
    spec_ok(s, start(s, s->other));
    assert_true(spec_exists(s, "ws"));
}

static void row_090_two_workspaces_never_share_a_backend_instance(void **state)
{
    struct spec *s = *state;
    struct pinfold_sandbox_options options = spec_options(s);

    options.workspace_id = "one";
    spec_start(s, &options);
    options.workspace_id = "two";
    spec_ok(s, pinfold_sandbox_new(&options, &s->other, &s->err));
    spec_refuses(s, PINFOLD_ESTART, start(s, s->other));
    spec_run(s, "echo on"); /* the first is not harmed */
    spec_stdout_is(s, "on\n");
    spec_stop(s);
    spec_ok(s, start(s, s->other));
}

static void row_090_the_per_agent_path_does_not_share_a_root_either(void **state)
{
    struct spec *s = *state;
    struct pinfold_local_options local = PINFOLD_LOCAL_OPTIONS_INIT;
    struct pinfold_backend_factory factory = { .make = use_backend };
    struct pinfold_backend *backend = NULL;

    spec_start_plain(s);
    spec_link(s, "ws", "alias");
    spec_ok(s, pinfold_manager_new(NULL, &s->manager, &s->err));
    local.workspace_root = spec_at(s, "alias");
    spec_ok(s, pinfold_local_backend_new(&local, &backend, &s->err));
    factory.ctx = backend;
    s->err = (struct pinfold_error)PINFOLD_ERROR_INIT;
    int r = pinfold_manager_get_or_create(s->manager, "agent", &factory, NULL, NULL, &s->err);
    pinfold_backend_unref(backend);
    assert_int_equal(r, -PINFOLD_ESTART);
    spec_run(s, "echo on"); /* the first is not harmed */
    spec_stdout_is(s, "on\n");
}

static void row_091_an_instance_is_used_as_it_is(void **state)
{
    struct spec *s = *state;
    struct pinfold_sandbox_options options = spec_options(s);
    struct pinfold_session session = { 0 };

    spec_ok(s, pinfold_manager_new(NULL, &s->manager, &s->err));
    options.manager = s->manager;
    spec_start(s, &options);
    assert_int_equal(spec_ok(s, pinfold_manager_get_session(s->manager, "spec", &session, &s->err)),
                     1);
    bool same = session.backend == s->backend;
    pinfold_session_done(&session);
    assert_true(same);
}

static struct pinfold_backend *built;

static int build(void *state, const char *workspace_id, struct pinfold_backend **ret,
                 struct pinfold_error *err)
{
    (void)state;
    (void)err;
    atomic_fetch_add(&spy.builds, 1);
    snprintf(spy.built_for, sizeof(spy.built_for), "%s", workspace_id);
    *ret = pinfold_backend_ref(built);
    return 0;
}

static void row_091_a_template_builds_a_backend_for_the_workspace(void **state)
{
    static const struct pinfold_backend_ops template_ops = {
        .size = sizeof(template_ops),
        .type_name = "SpecTemplate",
        .build_for_session = build,
    };
    struct spec *s = *state;
    struct pinfold_sandbox_options options = spec_options(s);

    memset(&spy, 0, sizeof(spy));
    built = s->backend;
    spec_ok(s, pinfold_backend_new(&template_ops, NULL, NULL, &options.backend, &s->err));
    int r = pinfold_sandbox_new(&options, &s->sandbox, &s->err);
    pinfold_backend_unref(options.backend);
    assert_int_equal(r, 0);
    assert_int_equal(spy.builds, 0);
    spec_ok(s, start(s, s->sandbox));
    assert_int_equal(spy.builds, 1);
    assert_string_equal(spy.built_for, "spec");
    spec_run(s, "echo built");
    spec_stdout_is(s, "built\n");
}

static void row_092_flush_before_start_is_an_error_unless_it_has_nowhere_to_go(void **state)
{
    struct spec *s = *state;
    struct pinfold_sandbox_options options = spec_options(s);

    spec_new(s, &options);
    assert_int_equal(spec_ok(s, pinfold_sandbox_flush(s->sandbox, NULL, &s->sync, NULL, &s->err)),
                     0);
    spec_refuses(s, PINFOLD_ESTART,
                 pinfold_sandbox_flush(s->sandbox, spec_at(s, "dest"), &s->sync, NULL, &s->err));
    spec_ok(s, start(s, s->sandbox));
    assert_int_equal(spec_ok(s, pinfold_sandbox_flush(s->sandbox, NULL, &s->sync, NULL, &s->err)),
                     0);
    options.sync_dest = spec_at(s, "dest");
    spec_new(s, &options);
    spec_refuses(s, PINFOLD_ESTART,
                 pinfold_sandbox_flush(s->sandbox, NULL, &s->sync, NULL, &s->err));
    spec_refuses(s, PINFOLD_ESTART,
                 pinfold_sync_workspace_for_sandbox(s->sandbox, NULL, &s->sync, NULL, &s->err));
}

static void nothing_works(struct spec *s)
{
    static const char *const paths[] = { "f", NULL };
    struct pinfold_file_infos infos = { 0 };
    struct pinfold_upload up = { .path = "f", .data = "x", .len = 1 };
    struct pinfold_download down = { .path = "f" };
    struct pinfold_transfer_results results = { 0 };
    struct pinfold_execute_options run = PINFOLD_EXECUTE_OPTIONS_INIT;
    struct agent agent = { 0 };

    run.command = "touch f";
    spec_refuses(s, PINFOLD_ESTART,
                 pinfold_sandbox_read_file(s->sandbox, "f", &s->text, NULL, &s->err));
    assert_non_null(strstr(s->err.msg, "not started"));
    spec_refuses(s, PINFOLD_ESTART,
                 pinfold_sandbox_read_lines(s->sandbox, "f", 0, 1, &s->text, NULL, NULL, &s->err));
    spec_refuses(s, PINFOLD_ESTART,
                 pinfold_sandbox_write_file(s->sandbox, "f", "x", 1, NULL, &s->err));
    spec_refuses(s, PINFOLD_ESTART,
                 pinfold_sandbox_list_dir(s->sandbox, ".", &infos, NULL, &s->err));
    spec_refuses(s, PINFOLD_ESTART,
                 pinfold_sandbox_add_files(s->sandbox, &up, 1, true, NULL, NULL, &s->err));
    spec_refuses(
            s, PINFOLD_ESTART,
            pinfold_sandbox_download_files(s->sandbox, &down, 1, true, &results, NULL, &s->err));
    spec_refuses(s, PINFOLD_ESTART, pinfold_sandbox_delete_files(s->sandbox, paths, NULL, &s->err));
    spec_refuses(s, PINFOLD_ESTART, pinfold_sandbox_move_file(s->sandbox, "f", "g", NULL, &s->err));
    spec_refuses(s, PINFOLD_ESTART,
                 pinfold_sandbox_execute(s->sandbox, &run, &s->run, NULL, &s->err));
    assert_non_null(strstr(s->err.msg, "not started"));
    spec_refuses(s, PINFOLD_EATTACH, attach(s, &agent, PINFOLD_READ_WRITE));
}

static void row_093_nothing_works_before_start_and_after_stop(void **state)
{
    struct spec *s = *state;
    struct pinfold_sandbox_options options = spec_options(s);

    spec_new(s, &options);
    nothing_works(s);
    spec_ok(s, start(s, s->sandbox));
    spec_put(s, "ws/f", "f");
    spec_stop(s);
    nothing_works(s);
    if (!spec_lacks("host directory"))
        spec_is(s, "ws/f", "f");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SPEC_TEST(row_081_a_workspace_has_one_owner_in_the_process_whatever_the_manager),
        SPEC_TEST(row_081_the_per_agent_path_and_claims_meet_the_same_table),
        SPEC_TEST(row_082_a_second_start_answers_with_the_first_result),
        SPEC_TEST(row_082_a_start_after_stop_is_a_new_cycle),
        SPEC_TEST(row_083_those_who_start_at_once_share_one_start),
        SPEC_TEST(row_083_a_start_that_fails_fails_for_all_or_is_tried_again),
        SPEC_TEST(row_084_a_create_that_fails_leaves_nothing_claimed),
        SPEC_TEST(row_084_a_seed_that_fails_closes_the_backend),
        SPEC_TEST(row_085_stop_is_a_noop_before_start_and_after_stop),
        SPEC_TEST(row_086_stop_detaches_every_agent_once),
        SPEC_TEST(row_086_a_detached_agent_can_be_attached_again),
        SPEC_TEST(row_087_stop_ends_running_commands_before_it_flushes),
        SPEC_TEST(row_088_stop_detaches_then_flushes_then_closes),
        SPEC_TEST(row_088_a_flush_that_fails_does_not_keep_stop_from_closing),
        SPEC_TEST(row_089_the_workspace_root_is_never_deleted),
        SPEC_TEST(row_090_two_workspaces_never_share_a_root),
        SPEC_TEST(row_090_two_workspaces_never_share_a_backend_instance),
        SPEC_TEST(row_090_the_per_agent_path_does_not_share_a_root_either),
        SPEC_TEST(row_091_an_instance_is_used_as_it_is),
        SPEC_TEST(row_091_a_template_builds_a_backend_for_the_workspace),
        SPEC_TEST(row_092_flush_before_start_is_an_error_unless_it_has_nowhere_to_go),
        SPEC_TEST(row_093_nothing_works_before_start_and_after_stop),
    };

    return spec_run_tests("rows 81-93", tests);
}
