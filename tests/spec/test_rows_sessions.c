/* SPDX-License-Identifier: Apache-2.0 */
/* Rows 94 to 105 of the semantics: activity, expiry, identifiers, and the end of the process. */
#include "spec.h"

#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>

static void start_with_manager(struct spec *s, double manager_ttl, double ttl)
{
    struct pinfold_manager_options options = PINFOLD_MANAGER_OPTIONS_INIT;
    struct pinfold_sandbox_options sandbox = spec_options(s);

    options.ttl_seconds = manager_ttl;
    options.audit = sandbox.audit;
    spec_ok(s, pinfold_manager_new(&options, &s->manager, &s->err));
    sandbox.manager = s->manager;
    sandbox.ttl_seconds = ttl;
    sandbox.sync_dest = spec_at(s, "dest");
    spec_start(s, &sandbox);
}

static double last_used(struct spec *s)
{
    struct pinfold_session session = { 0 };

    assert_int_equal(spec_ok(s, pinfold_manager_get_session(s->manager, "spec", &session, &s->err)),
                     1);
    double at = session.last_used_at;
    pinfold_session_done(&session);
    return at;
}

/* How many sessions a cleanup closes; s->paths names them. */
static size_t cleanup(struct spec *s)
{
    pinfold_strings_done(&s->paths);
    spec_ok(s, pinfold_manager_cleanup_expired(s->manager, &s->paths, &s->err));
    return s->paths.count;
}

static void row_094_every_operation_counts_at_its_start_and_at_its_end(void **state)
{
    static const char *const paths[] = { "g", NULL };
    struct spec *s = *state;
    struct pinfold_file_infos infos = { 0 };
    struct spec_call call = {
        .s = s, .options = spec_shell("touch on; while [ ! -e go ]; do sleep 0.02; done", 60)
    };
    pthread_t thread;
    double before, during;

    start_with_manager(s, 0, 3600);
    before = last_used(s);
    assert_true(last_used(s) == before); /* looking does not count */
#define COUNTS(operation)                   \
    do {                                    \
        spec_sleep(0.002);                  \
        spec_ok(s, operation);              \
        assert_true(last_used(s) > before); \
        before = last_used(s);              \
    } while (0)
    COUNTS(pinfold_sandbox_write_file(s->sandbox, "f", "x", 1, NULL, &s->err));
    COUNTS(pinfold_sandbox_read_file(s->sandbox, "f", &s->text, NULL, &s->err));
    COUNTS(pinfold_sandbox_list_dir(s->sandbox, ".", &infos, NULL, &s->err));
    COUNTS(pinfold_sandbox_move_file(s->sandbox, "f", "g", NULL, &s->err));
    COUNTS(pinfold_sandbox_delete_files(s->sandbox, paths, NULL, &s->err));
    COUNTS(pinfold_sandbox_flush(s->sandbox, NULL, &s->sync, NULL, &s->err));
    pinfold_file_infos_done(&infos);

    assert_int_equal(pthread_create(&thread, NULL, spec_call, &call), 0);
    spec_wait_for(s, "ws/on");
    during = last_used(s);
    spec_sleep(0.002);
    spec_put(s, "ws/go", "");
    pthread_join(thread, NULL);
    pinfold_execute_result_done(&call.result);
    assert_int_equal(call.r, 0);
    assert_true(during > before);
    assert_true(last_used(s) > during);
}

static void row_095_a_running_command_is_not_idle(void **state)
{
    struct spec *s = *state;
    struct spec_call call = {
        .s = s, .options = spec_shell("touch on; while [ ! -e go ]; do sleep 0.02; done", 60)
    };
    pthread_t thread;

    start_with_manager(s, 0, 0.01);
    assert_int_equal(pthread_create(&thread, NULL, spec_call, &call), 0);
    spec_wait_for(s, "ws/on");
    spec_sleep(0.1); /* ten times the ttl */
    size_t closed = cleanup(s);
    bool started = pinfold_sandbox_is_started(s->sandbox);
    spec_put(s, "ws/go", "");
    pthread_join(thread, NULL);
    int exit_code = call.result.exit_code;
    pinfold_execute_result_done(&call.result);
    assert_int_equal(closed, 0);
    assert_true(started);
    assert_int_equal(call.r, 0);
    assert_int_equal(exit_code, 0);
    spec_sleep(0.1);
    assert_int_equal(cleanup(s), 1); /* now it is */
    assert_string_equal(s->paths.items[0], "spec");
}

static void count_unwire(void *agent, void *ctx)
{
    (void)ctx;
    ++*(int *)agent;
}

static void row_096_expiry_syncs_closes_detaches_and_tells_the_owner(void **state)
{
    struct spec *s = *state;
    int agent = 0;
    struct pinfold_attach_request request = {
        .size = sizeof(request), .agent = &agent, .agent_id = "a", .unwire = count_unwire
    };
    char *owner = NULL;

    start_with_manager(s, 0, 0.05);
    spec_put(s, "ws/result.md", "r");
    spec_run(s, "sh -c 'echo $$ > child; exec sleep 300' >/dev/null 2>&1 & "
                "while [ ! -s child ]; do sleep 0.02; done");
    pid_t child = spec_pid(s, "ws/child");
    spec_ok(s, pinfold_sandbox_attach(s->sandbox, &request, &s->err));
    spec_sleep(0.3);
    assert_int_equal(cleanup(s), 1);
    spec_is(s, "dest/result.md", "r");
    assert_false(pinfold_sandbox_is_started(s->sandbox));
    assert_int_equal(agent, 1);
    assert_false(spec_alive(s, child));
    spec_ok(s, pinfold_sandbox_owner_id(s->sandbox, &owner, &s->err));
    assert_null(owner);
    spec_refuses(s, PINFOLD_ESTART,
                 pinfold_sandbox_read_file(s->sandbox, "result.md", &s->text, NULL, &s->err));
    assert_int_equal(spec_event_count(s, "sandbox.expire"), 1);
    spec_stop(s); /* nothing is left to do */
    spec_ok(s, pinfold_sandbox_start(s->sandbox, NULL, NULL, &s->err));
    assert_true(pinfold_sandbox_is_started(s->sandbox));
}

static void row_096_errors_of_an_expiry_go_to_the_audit_only(void **state)
{
    struct spec *s = *state;

    start_with_manager(s, 0, 0.05);
    spec_put(s, "ws/clash.md", "a file");
    spec_put(s, "dest/clash.md/inner", "a directory in the way");
    spec_sleep(0.2);
    assert_int_equal(cleanup(s), 1);
    assert_false(pinfold_sandbox_is_started(s->sandbox));
    bool told = false;
    for (size_t i = 0; i < s->event_count; i++)
        told |= s->events[i].errors > 0 || s->events[i].error[0] != '\0';
    assert_true(told);
}

struct user {
    struct spec *s;
    atomic_bool stop;
    int done, refused, strange;
};

static void *use(void *arg)
{
    /* Long enough that all of them pause at once now and then, whatever an operation takes. */
    const double pause = spec_lacks("host directory") ? 0.05 : 0.0005;
    struct user *user = arg;

    for (int i = 0; !atomic_load(&user->stop); i++) {
        char name[16];
        snprintf(name, sizeof(name), "f%d", i % 10);
        int r = pinfold_sandbox_write_file(user->s->sandbox, name, "x", 1, NULL, NULL);
        user->done += r == 0;
        user->refused += r == -PINFOLD_ESTART;
        user->strange += r != 0 && r != -PINFOLD_ESTART;
        if (r == -PINFOLD_ESTART)
            pinfold_sandbox_start(user->s->sandbox, NULL, NULL, NULL);
        spec_sleep(i % 7 * pause);
    }
    return NULL;
}

static void row_096_expiry_and_operations_at_once_end_in_one_or_the_other(void **state)
{
    enum { USERS = 3 };
    struct spec *s = *state;
    struct user users[USERS] = { 0 };
    pthread_t threads[USERS];
    size_t closed = 0;
    int done = 0;

    start_with_manager(s, 0, 0.001);
    for (int i = 0; i < USERS; i++) {
        users[i].s = s;
        assert_int_equal(pthread_create(&threads[i], NULL, use, &users[i]), 0);
    }
    for (int i = 0; i < 300 || (closed == 0 && i < 10000); i++) {
        struct pinfold_strings ids = { 0 };
        if (pinfold_manager_cleanup_expired(s->manager, &ids, NULL) == 0)
            closed += ids.count;
        pinfold_strings_done(&ids);
        spec_sleep(0.001);
    }
    for (int i = 0; i < USERS; i++) {
        atomic_store(&users[i].stop, true);
        pthread_join(threads[i], NULL);
        done += users[i].done;
        assert_int_equal(users[i].strange, 0);
    }
    assert_true(done > 0);
    assert_true(closed > 0);
}

struct maker {
    struct pinfold_backend *backend;
    int made;
};

static int make_backend(void *ctx, struct pinfold_backend **ret, struct pinfold_error *err)
{
    struct maker *maker = ctx;

    (void)err;
    maker->made++;
    *ret = pinfold_backend_ref(maker->backend);
    return 0;
}

static void row_097_an_expired_session_that_is_still_there_is_used_again(void **state)
{
    struct spec *s = *state;
    struct maker maker = { .backend = s->backend };
    struct pinfold_backend_factory factory = { .make = make_backend, .ctx = &maker };
    struct pinfold_manager_options options = PINFOLD_MANAGER_OPTIONS_INIT;
    struct pinfold_session first = { 0 }, second = { 0 };

    options.ttl_seconds = 1;
    spec_ok(s, pinfold_manager_new(&options, &s->manager, &s->err));
    spec_ok(s, pinfold_manager_get_or_create(s->manager, "spec", &factory, &first, NULL, &s->err));
    spec_sleep(1.1);
    spec_ok(s, pinfold_manager_get_or_create(s->manager, "spec", &factory, &second, NULL, &s->err));
    bool same = first.backend == second.backend && first.created_at == second.created_at;
    bool refreshed = second.last_used_at >= first.last_used_at + 1;
    assert_null(second.owner_id);
    pinfold_session_done(&first);
    pinfold_session_done(&second);
    assert_true(same);
    assert_true(refreshed);
    assert_int_equal(maker.made, 1);
    assert_int_equal(cleanup(s), 0); /* it counts from the last use */
}

static void row_098_a_sandbox_brings_its_own_ttl_and_the_rest_has_the_managers(void **state)
{
    struct spec *s = *state;
    struct pinfold_local_options local = PINFOLD_LOCAL_OPTIONS_INIT;
    struct maker maker = { 0 };
    struct pinfold_backend_factory factory = { .make = make_backend, .ctx = &maker };

    start_with_manager(s, 0.05, 3600);
    local.workspace_root = spec_at(s, "ws2");
    spec_ok(s, pinfold_local_backend_new(&local, &maker.backend, &s->err));
    int r = pinfold_manager_get_or_create(s->manager, "agent", &factory, NULL, NULL, &s->err);
    pinfold_backend_unref(maker.backend);
    assert_int_equal(r, 0);
    spec_sleep(0.2);
    assert_int_equal(cleanup(s), 1);
    assert_string_equal(s->paths.items[0], "agent");
    assert_true(pinfold_sandbox_is_started(s->sandbox));
}

static void row_098_a_manager_without_expiry_still_expires_a_sandbox(void **state)
{
    struct spec *s = *state;

    start_with_manager(s, PINFOLD_TTL_NONE, 0.05);
    spec_sleep(0.2);
    assert_int_equal(cleanup(s), 1);
    assert_false(pinfold_sandbox_is_started(s->sandbox));
}

static void row_099_a_ttl_is_positive(void **state)
{
    struct spec *s = *state;
    const double bad[] = { -2, -0.5, (double)NAN, -(double)INFINITY };
    struct pinfold_manager_options manager = PINFOLD_MANAGER_OPTIONS_INIT;
    struct pinfold_sandbox_options sandbox = spec_options(s);
    struct pinfold_session session = { 0 };

    for (size_t i = 0; i < 4; i++) {
        manager.ttl_seconds = sandbox.ttl_seconds = bad[i];
        spec_refuses(s, PINFOLD_EVALUE, pinfold_manager_new(&manager, &s->manager, &s->err));
        spec_refuses(s, PINFOLD_EVALUE, pinfold_sandbox_new(&sandbox, &s->sandbox, &s->err));
    }
    sandbox.ttl_seconds = 0; /* it is required */
    spec_refuses(s, PINFOLD_EVALUE, pinfold_sandbox_new(&sandbox, &s->sandbox, &s->err));
    sandbox.ttl_seconds = PINFOLD_TTL_NONE;
    spec_refuses(s, PINFOLD_EVALUE, pinfold_sandbox_new(&sandbox, &s->sandbox, &s->err));

    struct maker maker = { .backend = s->backend };
    struct pinfold_backend_factory factory = { .make = make_backend, .ctx = &maker };
    manager.ttl_seconds = PINFOLD_TTL_NONE;
    spec_ok(s, pinfold_manager_new(&manager, &s->manager, &s->err));
    spec_ok(s, pinfold_manager_get_or_create(s->manager, "m", &factory, &session, NULL, &s->err));
    pinfold_session_done(&session);
    spec_sleep(0.05);
    assert_int_equal(cleanup(s), 0);
}

static char logged[2048];

static void keep_log(void *ctx, enum pinfold_log_level level, const char *message)
{
    (void)ctx;
    if (level >= PINFOLD_LOG_WARNING && strlen(logged) + strlen(message) + 2 < sizeof(logged)) {
        strcat(logged, message);
        strcat(logged, "\n");
    }
}

static void resolves_to(struct spec *s, const struct pinfold_agent_ids *ids, const char *expected)
{
    const char *id = NULL, *old_name = NULL;

    spec_ok(s, pinfold_manager_resolve_workspace_id(s->manager, ids, &id, &s->err));
    assert_string_equal(id, expected);
    spec_ok(s, pinfold_manager_resolve_session_id(s->manager, ids, &old_name, &s->err));
    assert_string_equal(old_name, expected);
}

static void row_101_the_chain_of_ids_ends_at_the_agent_and_default_is_warned_of(void **state)
{
    struct spec *s = *state;
    const char *id = NULL;

    spec_ok(s, pinfold_manager_new(NULL, &s->manager, &s->err));
    logged[0] = '\0';
    pinfold_log_set_handler(keep_log, NULL);
    resolves_to(s, &(struct pinfold_agent_ids){ "w", "s", "a" }, "w");
    resolves_to(s, &(struct pinfold_agent_ids){ NULL, "s", "a" }, "s");
    resolves_to(s, &(struct pinfold_agent_ids){ NULL, NULL, "a" }, "a");
    bool quiet = logged[0] == '\0';
    resolves_to(s, &(struct pinfold_agent_ids){ NULL, NULL, "default" }, "default");
    pinfold_log_set_handler(NULL, NULL);
    assert_true(quiet);
    assert_non_null(strstr(logged, "default"));
    spec_refuses(s, PINFOLD_EVALUE,
                 pinfold_manager_resolve_workspace_id(s->manager, &(struct pinfold_agent_ids){ 0 },
                                                      &id, &s->err));
}

static void row_102_workspace_ids_are_short_names(void **state)
{
    struct spec *s = *state;
    struct pinfold_sandbox_options options = spec_options(s);
    char longest[257];
    const char *const bad[] = { NULL, "", "a/b", "/", longest };
    const char *const good[] = { "a:shared-ws", "graph-1", "\xc3\xa9", "a b", longest };

    memset(longest, 'i', 256);
    longest[256] = '\0';
    for (size_t i = 0; i < 5; i++) {
        options.workspace_id = bad[i];
        spec_refuses(s, PINFOLD_EVALUE, pinfold_sandbox_new(&options, &s->sandbox, &s->err));
    }
    longest[255] = '\0';
    for (size_t i = 0; i < 5; i++) {
        options.workspace_id = good[i];
        spec_new(s, &options);
        spec_ok(s, pinfold_sandbox_start(s->sandbox, NULL, NULL, &s->err));
        spec_stop(s);
    }
}

static void row_102_run_and_context_ids_are_checked_with_what_is_added(void **state)
{
    struct spec *s = *state;
    char text[251], *id = NULL;

    memset(text, 'r', 250);
    text[250] = '\0';
    spec_ok(s, pinfold_workspace_id_for_run("42", &id, &s->err));
    assert_string_equal(id, "graph-42");
    free(id);
    spec_ok(s, pinfold_workspace_id_for_context("ctx", false, &id, &s->err));
    assert_string_equal(id, "ctx");
    free(id);
    spec_ok(s, pinfold_workspace_id_for_context("ctx", true, &id, &s->err));
    assert_string_equal(id, "ctx:shared-ws");
    free(id);
    id = NULL;
    spec_refuses(s, PINFOLD_EVALUE, pinfold_workspace_id_for_run("", &id, &s->err));
    spec_refuses(s, PINFOLD_EVALUE, pinfold_workspace_id_for_run("a/b", &id, &s->err));
    spec_refuses(s, PINFOLD_EVALUE, pinfold_workspace_id_for_run(text, &id, &s->err));
    spec_refuses(s, PINFOLD_EVALUE, pinfold_workspace_id_for_context("", true, &id, &s->err));
    spec_refuses(s, PINFOLD_EVALUE, pinfold_workspace_id_for_context("a/b", false, &id, &s->err));
    spec_refuses(s, PINFOLD_EVALUE, pinfold_workspace_id_for_context(text, true, &id, &s->err));
    assert_null(id);
    spec_ok(s, pinfold_workspace_id_for_context(text, false, &id, &s->err));
    free(id);
}

static void row_103_an_owner_id_lives_from_start_to_stop(void **state)
{
    struct spec *s = *state;
    struct pinfold_sandbox_options options = spec_options(s);
    struct pinfold_session session = { 0 };
    char *owner = NULL;

    spec_ok(s, pinfold_manager_new(NULL, &s->manager, &s->err));
    options.manager = s->manager;
    spec_new(s, &options);
    spec_ok(s, pinfold_sandbox_owner_id(s->sandbox, &owner, &s->err));
    assert_null(owner);
    spec_ok(s, pinfold_sandbox_start(s->sandbox, NULL, NULL, &s->err));
    spec_ok(s, pinfold_sandbox_owner_id(s->sandbox, &owner, &s->err));
    assert_non_null(owner);
    spec_ok(s, pinfold_manager_get_session(s->manager, "spec", &session, &s->err));
    bool same = session.owner_id && strcmp(session.owner_id, owner) == 0;
    pinfold_session_done(&session);
    free(owner);
    assert_true(same);
    spec_stop(s);
    owner = (char *)1;
    spec_ok(s, pinfold_sandbox_owner_id(s->sandbox, &owner, &s->err));
    assert_null(owner);
}

static void row_104_ref_is_allowed_before_start(void **state)
{
    struct spec *s = *state;
    struct pinfold_sandbox_options options = spec_options(s);
    struct pinfold_sandbox_ref ref = { 0 };

    spec_ok(s, pinfold_manager_new(NULL, &s->manager, &s->err));
    options.manager = s->manager;
    spec_new(s, &options);
    spec_ok(s, pinfold_sandbox_ref(s->sandbox, &ref, &s->err));
    assert_string_equal(ref.workspace_id, "spec");
    assert_string_equal(ref.backend_type, spec_backend_type());
    assert_string_equal(ref.manager_id, pinfold_manager_id(s->manager));
    pinfold_sandbox_ref_done(&ref);
    assert_false(pinfold_sandbox_is_started(s->sandbox));
}

/* In a process of its own: start, leave a daemon behind, and end in the way asked for. */
static pid_t end_without_stop(struct spec *s, bool killed)
{
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        struct pinfold_sandbox_options options = spec_options(s);
        struct pinfold_execute_result result = { 0 };
        struct pinfold_execute_options run = PINFOLD_EXECUTE_OPTIONS_INIT;
        options.sync_dest = spec_at(s, "dest");
        run.command = "env -i setsid /bin/sh -c 'echo $$ > pid; exec /bin/sleep 300' "
                      ">/dev/null 2>&1 & while [ ! -s pid ]; do sleep 0.02; done; echo r > r.md";
        if (pinfold_sandbox_new(&options, &s->sandbox, NULL) < 0 ||
            pinfold_sandbox_start(s->sandbox, NULL, NULL, NULL) < 0 ||
            pinfold_sandbox_execute(s->sandbox, &run, &result, NULL, NULL) < 0)
            _exit(99);
        if (killed)
            kill(getpid(), SIGKILL);
        fclose(stdout); /* what is buffered there is the parent's to print */
        exit(7);
    }
    return pid;
}

static void row_105_the_end_of_the_process_ends_its_commands(void **state)
{
    struct spec *s = *state;

    for (int killed = 0; killed < 2; killed++) {
        int status = 0;
        unlink(spec_at(s, "ws/pid"));
        pid_t owner = end_without_stop(s, killed);
        assert_int_equal(waitpid(owner, &status, 0), owner);
        if (killed)
            assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        else
            assert_true(WIFEXITED(status) && WEXITSTATUS(status) != 99);
        assert_true(spec_gone_soon(s, spec_pid(s, "ws/pid")));
        spec_is(s, "ws/r.md", "r\n");
        spec_missing(s, "dest/r.md"); /* and there was no flush */
    }
}

static void row_105_a_forked_child_does_not_own_the_sessions(void **state)
{
    struct spec *s = *state;
    struct pinfold_execute_options run = PINFOLD_EXECUTE_OPTIONS_INIT;
    int status = 0;

    start_with_manager(s, 0, 3600);
    spec_run(s, "sh -c 'echo $$ > pid; exec sleep 300' >/dev/null 2>&1 & "
                "while [ ! -s pid ]; do sleep 0.02; done");
    pid_t daemon = spec_pid(s, "ws/pid");
    run.command = "touch by-child";
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct pinfold_execute_result result = { 0 };
        int wrong = 0;
        wrong |= pinfold_sandbox_execute(s->sandbox, &run, &result, NULL, NULL) != -PINFOLD_ESTART;
        wrong |= (pinfold_sandbox_write_file(s->sandbox, "by-child", "x", 1, NULL, NULL) !=
                  -PINFOLD_ESTART)
                 << 1;
        pinfold_sandbox_stop(s->sandbox, true, NULL, NULL, NULL);
        pinfold_sandbox_free(s->sandbox);
        pinfold_manager_unref(s->manager);
        pinfold_backend_unref(s->backend);
        _exit(wrong);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_int_equal(spec_alive(s, daemon), !spec_lacks("background"));
    spec_missing(s, "ws/by-child");
    assert_int_equal(spec_entries(s, "dest"), 0);
    spec_run(s, "echo on");
    spec_stdout_is(s, "on\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SPEC_TEST(row_094_every_operation_counts_at_its_start_and_at_its_end),
        SPEC_TEST(row_095_a_running_command_is_not_idle),
        SPEC_TEST(row_096_expiry_syncs_closes_detaches_and_tells_the_owner),
        SPEC_TEST(row_096_errors_of_an_expiry_go_to_the_audit_only),
        SPEC_TEST(row_096_expiry_and_operations_at_once_end_in_one_or_the_other),
        SPEC_TEST(row_097_an_expired_session_that_is_still_there_is_used_again),
        SPEC_TEST(row_098_a_sandbox_brings_its_own_ttl_and_the_rest_has_the_managers),
        SPEC_TEST(row_098_a_manager_without_expiry_still_expires_a_sandbox),
        SPEC_TEST(row_099_a_ttl_is_positive),
        SPEC_TEST(row_101_the_chain_of_ids_ends_at_the_agent_and_default_is_warned_of),
        SPEC_TEST(row_102_workspace_ids_are_short_names),
        SPEC_TEST(row_102_run_and_context_ids_are_checked_with_what_is_added),
        SPEC_TEST(row_103_an_owner_id_lives_from_start_to_stop),
        SPEC_TEST(row_104_ref_is_allowed_before_start),
        SPEC_TEST(row_105_the_end_of_the_process_ends_its_commands),
        SPEC_TEST(row_105_a_forked_child_does_not_own_the_sessions),
    };

    return spec_run_tests("rows 94-105", tests);
}
