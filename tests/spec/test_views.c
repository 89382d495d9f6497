/* SPDX-License-Identifier: Apache-2.0 */
/* Read-only views of a sandbox: what they show, what they refuse, and when they end. */
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

#include "spec.h"
#include "../descriptors.h"

/* Kept in s->other, which the teardown frees. */
static void open_view(struct spec *s)
{
    spec_ok(s, pinfold_sandbox_view(s->sandbox, "reviewer", &s->other, &s->err));
}

/* With an overlay one file is the seed's, and the other was made since. */
static void start_with_view(struct spec *s)
{
    if (spec_is_overlay()) {
        spec_put(s, "seed/notes.md", "one\ntwo\n");
        spec_start_seeded(s);
        assert_int_equal(s->seed.mode, PINFOLD_SEED_OVERLAY);
    } else {
        spec_start_plain(s);
        spec_put(s, "ws/notes.md", "one\ntwo\n");
    }
    spec_put(s, "ws/src/a.c", "int a;\n");
    open_view(s);
}

static enum pinfold_seed_mode seed_mode(void)
{
    return spec_is_overlay() ? PINFOLD_SEED_OVERLAY : PINFOLD_SEED_COPY;
}

/* Run a command in the view; the result is s->run. */
static void view_run(struct spec *s, const char *command)
{
    struct pinfold_execute_options options = PINFOLD_EXECUTE_OPTIONS_INIT;

    options.command = command;
    options.timeout_seconds = 60;
    pinfold_execute_result_done(&s->run);
    spec_ok(s, pinfold_sandbox_execute(s->other, &options, &s->run, NULL, &s->err));
}

/* ---- what it shows ---- */

static void a_view_looks_for_changes_and_text(void **state)
{
    struct spec *s = *state;
    struct pinfold_search_options options = PINFOLD_SEARCH_OPTIONS_INIT;
    struct pinfold_search_result found = { 0 };
    struct pinfold_changes changes = { 0 };

    start_with_view(s);
    options.text = "two";
    spec_ok(s, pinfold_sandbox_search(s->other, &options, &found, NULL, &s->err));
    assert_int_equal(found.matches, 1);
    assert_string_equal(found.items[0].path, "notes.md");
    pinfold_search_result_done(&found);
    spec_ok(s, pinfold_sandbox_changes(s->other, NULL, &changes, NULL, &s->err));
    assert_int_equal(changes.count, spec_is_overlay() ? 1 : 2);
    assert_string_equal(changes.items[changes.count - 1].path, "src/a.c");
    pinfold_changes_done(&changes);
}

static void a_view_reads_what_is_there_and_what_comes_later(void **state)
{
    struct spec *s = *state;
    struct pinfold_file_infos infos = { 0 };
    uint64_t lines = 0;

    start_with_view(s);
    spec_ok(s, pinfold_sandbox_read_file(s->other, "notes.md", &s->text, NULL, &s->err));
    assert_string_equal(s->text.data, "one\ntwo\n");
    pinfold_bytes_done(&s->text);
    spec_ok(s, pinfold_sandbox_read_lines(s->other, "/workspace/notes.md", 1, 5, &s->text, &lines,
                                          NULL, &s->err));
    assert_string_equal(s->text.data, "two\n");
    assert_int_equal(lines, 2);
    view_run(s, "cat notes.md; pwd");
    spec_stdout_is(s, "one\ntwo\n/workspace\n");
    spec_ok(s, pinfold_sandbox_write_file(s->sandbox, "later/b.md", "new", 3, NULL, &s->err));
    spec_run(s, "rm notes.md");
    view_run(s, "cat later/b.md; ls notes.md");
    spec_stdout_is(s, "new");
    assert_int_equal(s->run.exit_code, 2);
    spec_ok(s, pinfold_sandbox_list_dir(s->other, "", &infos, NULL, &s->err));
    assert_int_equal(infos.count, 2);
    assert_string_equal(infos.items[0].path, "later");
    pinfold_file_infos_done(&infos);
}

static void a_view_downloads_into_memory_and_to_the_host(void **state)
{
    struct spec *s = *state;
    struct pinfold_transfer_results results = { 0 };
    const struct pinfold_download files[] = { { "notes.md", NULL },
                                              { "src/a.c", spec_at(s, "dest/a.c") } };

    start_with_view(s);
    spec_ok(s, pinfold_sandbox_download_files(s->other, files, 2, true, &results, NULL, &s->err));
    assert_string_equal(results.items[0].content.data, "one\ntwo\n");
    spec_is(s, "dest/a.c", "int a;\n");
    pinfold_transfer_results_done(&results);
    assert_string_equal(spec_event(s, "sandbox.download_files")->view, "reviewer");
}

static void a_view_takes_the_options_of_a_command(void **state)
{
    struct spec *s = *state;
    struct pinfold_execute_options options = PINFOLD_EXECUTE_OPTIONS_INIT;

    start_with_view(s);
    options.argv = (const char *const[]){ "sh", "-c", "pwd; echo $WHO; sleep 50", NULL };
    options.cwd = "src";
    options.env = (const char *const[]){ "WHO=me", NULL };
    options.timeout_seconds = 0.5;
    spec_ok(s, pinfold_sandbox_execute(s->other, &options, &s->run, NULL, &s->err));
    assert_int_equal(s->run.exit_code, 124);
    spec_stdout_is(s, "/workspace/src\nme\n");
    const struct spec_event *event = spec_event(s, "sandbox.execute");
    assert_string_equal(event->view, "reviewer");
    assert_int_equal(event->exit_code, 124);
    options.cwd = "../elsewhere";
    pinfold_execute_result_done(&s->run);
    spec_refuses(s, PINFOLD_EPATH,
                 pinfold_sandbox_execute(s->other, &options, &s->run, NULL, &s->err));
}

static void a_view_keeps_showing_a_directory_that_was_renamed(void **state)
{
    struct spec *s = *state;
    char ws[80], moved[80];

    start_with_view(s);
    /* By their own names: those of spec_at() lead through a descriptor. */
    snprintf(ws, sizeof(ws), "%s/ws", s->dir);
    snprintf(moved, sizeof(moved), "%s/moved", s->dir);
    assert_int_equal(rename(ws, moved), 0);
    assert_int_equal(mkdir(ws, 0755), 0);
    view_run(s, "cat notes.md");
    spec_stdout_is(s, "one\ntwo\n");
    spec_ok(s, pinfold_sandbox_read_file(s->other, "notes.md", &s->text, NULL, &s->err));
    assert_string_equal(s->text.data, "one\ntwo\n");
}

/* ---- what it refuses ---- */

static void commands_of_a_view_change_nothing(void **state)
{
    struct spec *s = *state;

    start_with_view(s);
    /* Each must fail with this very error: 30 is EROFS. */
    view_run(s,
             "cat > /tmp/try.py <<'END'\n"
             "import os\n"
             "tries = dict(\n"
             "    write=lambda: open('notes.md', 'a'), create=lambda: open('new', 'x'),\n"
             "    truncate=lambda: os.truncate('notes.md', 0), remove=lambda: "
             "os.remove('notes.md'),\n"
             "    rename=lambda: os.rename('notes.md', 'n'), mkdir=lambda: os.mkdir('d'),\n"
             "    rmdir=lambda: os.rmdir('src'), link=lambda: os.link('notes.md', 'l'),\n"
             "    symlink=lambda: os.symlink('x', 'l'), fifo=lambda: os.mkfifo('f'),\n"
             "    chmod=lambda: os.chmod('notes.md', 0o600), times=lambda: os.utime('notes.md'),\n"
             "    chown=lambda: os.chown('notes.md', 1000, 1000),\n"
             "    xattr=lambda: os.setxattr('notes.md', 'user.x', b'1'),\n"
             "    again=lambda: open('/proc/self/fd/%d' % os.open('notes.md', os.O_PATH), 'w'),\n"
             "    unnamed=lambda: os.open('.', os.O_TMPFILE | os.O_RDWR))\n"
             "for name, attempt in tries.items():\n"
             "    try: attempt(); print(name, 'was done')\n"
             "    except OSError as e:\n"
             "        if e.errno != 30: print(name, e)\n"
             "END\n"
             "/usr/bin/python3 /tmp/try.py; echo x > new || echo end");
    spec_stdout_is(s, "end\n");
    spec_is(s, "ws/notes.md", "one\ntwo\n");
    assert_int_equal(spec_entries(s, "ws"), 2);
}

static int wire(void *agent, void *ctx, struct pinfold_error *err)
{
    (void)agent;
    (void)err;
    *(bool *)ctx = true;
    return 0;
}

static void calls_that_would_change_something_are_denied_and_audited(void **state)
{
    struct spec *s = *state;
    const struct pinfold_upload file = { .path = "new", .data = "x", .len = 1 };
    const char *const paths[] = { "notes.md", NULL };
    const struct pinfold_edit_options edit = {
        .size = sizeof(edit), .path = "notes.md", .old_text = "one", .new_text = "1"
    };
    struct pinfold_plan plan = { 0 };
    bool wired = false;
    const struct pinfold_attach_request request = {
        .size = sizeof(request), .agent = s, .agent_id = "a", .wire = wire, .ctx = &wired
    };

    start_with_view(s);
#define DENIED(call) spec_refuses(s, PINFOLD_EDENIED, call)
    DENIED(pinfold_sandbox_write_file(s->other, "notes.md", "x", 1, NULL, &s->err));
    assert_non_null(strstr(s->err.msg, "reviewer is a read-only view of sandbox spec"));
    DENIED(pinfold_sandbox_add_files(s->other, &file, 1, true, &s->paths, NULL, &s->err));
    DENIED(pinfold_sandbox_delete_files(s->other, paths, NULL, &s->err));
    DENIED(pinfold_sandbox_move_file(s->other, "notes.md", "n", NULL, &s->err));
    DENIED(pinfold_sandbox_edit(s->other, &edit, NULL, NULL, &s->err));
    DENIED(pinfold_sandbox_delete(s->other, "notes.md", 0, NULL, &s->err));
    DENIED(pinfold_sandbox_move(s->other, "notes.md", "n", 0, NULL, &s->err));
    DENIED(pinfold_sandbox_flush(s->other, spec_at(s, "dest"), &s->sync, NULL, &s->err));
    DENIED(pinfold_sandbox_plan_flush(s->other, spec_at(s, "dest"), &plan, NULL, &s->err));
    DENIED(pinfold_sandbox_attach(s->other, &request, &s->err));
    DENIED(pinfold_sandbox_start(s->other, NULL, NULL, &s->err));
    DENIED(pinfold_sandbox_stop(s->other, true, NULL, NULL, &s->err));
    assert_false(wired);
    assert_true(pinfold_sandbox_is_started(s->sandbox));
    spec_is(s, "ws/notes.md", "one\ntwo\n");
    assert_int_equal(spec_entries(s, "ws"), 2);
    assert_int_equal(spec_entries(s, "dest"), 0);
    static const char *const events[] = { "sandbox.write_file",   "sandbox.add_files",
                                          "sandbox.delete_files", "sandbox.move_file",
                                          "sandbox.edit_file",    "sandbox.flush",
                                          "sandbox.plan_flush",   "attach",
                                          "sandbox.stop" };
    for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++) {
        const struct spec_event *event = spec_event(s, events[i]);
        assert_non_null(event);
        assert_string_equal(event->view, "reviewer");
        assert_string_equal(event->error, "SandboxMutationDeniedError");
    }
}

static void a_view_has_no_network_and_a_world_of_its_own(void **state)
{
    struct spec *s = *state;
    struct pinfold_isolated_options isolated = PINFOLD_ISOLATED_OPTIONS_INIT;

    spec_dir(s, "shown");
    isolated.workspace_root = spec_at(s, "ws");
    isolated.net = PINFOLD_NET_HOST;
    isolated.seed_mode = seed_mode();
    isolated.rw = (const char *const[]){ spec_at(s, "shown"), NULL };
    pinfold_backend_unref(s->backend);
    s->backend = NULL;
    spec_ok(s, pinfold_isolated_backend_new(&isolated, &s->backend, &s->err));
    start_with_view(s);
    spec_run(s, "echo x | tee /tmp/mine /dev/shm/mine ~/mine; sleep 50.25 & readlink "
                "/proc/self/ns/net");
    char *host_net = strndup(s->run.output, s->run.stdout_len);
    assert_non_null(host_net);
    view_run(s, "ls /tmp /dev/shm ~; cat /proc/[0-9]*/cmdline | tr '\\0' ' '");
    assert_null(strstr(s->run.output, "mine"));
    assert_null(strstr(s->run.output, "50.25"));
    view_run(s, "grep -c : /proc/net/dev; readlink /proc/self/ns/net");
    assert_memory_equal(s->run.output, "1\n", 2); /* of interfaces: lo */
    assert_null(strstr(host_net, s->run.output + 2));
    free(host_net);
    char command[1300];
    snprintf(command, sizeof(command), "echo x > %s/x", spec_at(s, "shown"));
    view_run(s, command);
    assert_non_null(strstr(s->run.stderr_text, "Read-only file system"));
    spec_run(s, command);
    spec_is(s, "shown/x", "x\n");
}

/* ---- when it begins and ends ---- */

static void a_view_costs_no_descriptor_before_its_first_command(void **state)
{
    struct spec *s = *state;
    int before;

    start_with_view(s);
    pinfold_sandbox_free(s->other);
    before = count_descriptors();
    open_view(s);
    assert_int_equal(count_descriptors(), before);
    spec_ok(s, pinfold_sandbox_read_file(s->other, "notes.md", &s->text, NULL, &s->err));
    assert_int_equal(count_descriptors(), before);
    view_run(s, "true");
    assert_true(count_descriptors() > before);
    pinfold_sandbox_free(s->other);
    s->other = NULL;
    assert_int_equal(count_descriptors(), before);
}

static void a_view_keeps_its_processes_and_tmp_from_command_to_command(void **state)
{
    struct spec *s = *state;

    start_with_view(s);
    view_run(s, "echo kept > /tmp/kept; sleep 50 >/dev/null 2>&1 & echo $! > /tmp/pid");
    view_run(s, "cat /tmp/kept; kill -0 $(cat /tmp/pid) && echo runs");
    spec_stdout_is(s, "kept\nruns\n");
}

static void views_end_with_their_sandbox_and_do_not_come_back(void **state)
{
    struct spec *s = *state;
    struct pinfold_execute_options run = PINFOLD_EXECUTE_OPTIONS_INIT;
    struct pinfold_sandbox *second = NULL;

    start_with_view(s);
    spec_ok(s, pinfold_sandbox_view(s->other, NULL, &second, &s->err)); /* of a view, as well */
    assert_memory_equal(spec_event(s, "sandbox.view")->view, "view-", 5);
    view_run(s, "sleep 300 >/dev/null 2>&1 & echo $!");
    pid_t sleeper = (pid_t)strtol(s->run.output, NULL, 10);
    assert_true(spec_alive(s, sleeper));
    spec_stop(s);
    assert_true(spec_gone_soon(s, sleeper));
    pinfold_execute_result_done(&s->run);
    for (int life = 0; life < 2; life++) {
        run.command = "true";
        assert_false(pinfold_sandbox_is_started(s->other));
        spec_refuses(s, PINFOLD_ESTART,
                     pinfold_sandbox_execute(s->other, &run, &s->run, NULL, &s->err));
        spec_refuses(s, PINFOLD_ESTART,
                     pinfold_sandbox_read_file(second, "notes.md", &s->text, NULL, &s->err));
        spec_ok(s, pinfold_sandbox_start(s->sandbox, NULL, NULL, &s->err));
    }
    pinfold_sandbox_free(s->other);
    s->other = second; /* freed after the sandbox, by the teardown */
    assert_int_equal(spec_event_count(s, "sandbox.view_end"), 0);
}

static void freeing_a_view_ends_its_commands_alone(void **state)
{
    struct spec *s = *state;

    start_with_view(s);
    spec_run(s, "sleep 300 >/dev/null 2>&1 & echo $! > pid");
    view_run(s, "for i in 1 2 3 4 5 6 7 8 9; do true & done; wait; "
                "sleep 300 >/dev/null 2>&1 & echo $!");
    pid_t mine = spec_pid(s, "ws/pid"), sleeper = (pid_t)strtol(s->run.output, NULL, 10);
    assert_true(sleeper != mine && spec_alive(s, sleeper));
    pinfold_sandbox_free(s->other);
    s->other = NULL;
    assert_true(spec_gone_soon(s, sleeper));
    assert_true(spec_alive(s, mine));
    assert_string_equal(spec_event(s, "sandbox.view_end")->view, "reviewer");
}

static void cancelling_kills_the_command_in_a_view(void **state)
{
    struct spec *s = *state;
    struct pinfold_execute_options run = PINFOLD_EXECUTE_OPTIONS_INIT;
    struct pinfold_cancel *cancel = NULL;

    start_with_view(s);
    spec_ok(s, pinfold_cancel_new(&cancel, &s->err));
    pinfold_cancel_fire(cancel);
    run.command = "sleep 300";
    spec_refuses(s, PINFOLD_ECANCELLED,
                 pinfold_sandbox_execute(s->other, &run, &s->run, cancel, &s->err));
    pinfold_cancel_free(cancel);
    view_run(s, "echo on");
    spec_stdout_is(s, "on\n");
}

/* Called with the first output of the command, by the thread that waits for it. */
static int on_output(void *ctx, enum pinfold_stream stream, const char *data, size_t len)
{
    (void)stream;
    (void)data;
    (void)len;
    pinfold_cancel_fire(ctx);
    return 0;
}

static void a_running_command_of_a_view_is_cancelled(void **state)
{
    struct spec *s = *state;
    struct pinfold_execute_options run = PINFOLD_EXECUTE_OPTIONS_INIT;
    struct pinfold_cancel *cancel = NULL;

    start_with_view(s);
    spec_ok(s, pinfold_cancel_new(&cancel, &s->err));
    run.command = "echo $$; exec sleep 300";
    run.on_output = on_output;
    run.on_output_ctx = cancel;
    spec_refuses(s, PINFOLD_ECANCELLED,
                 pinfold_sandbox_execute(s->other, &run, &s->run, cancel, &s->err));
    pid_t sleeper = (pid_t)strtol(s->run.output, NULL, 10);
    assert_true(sleeper > 1);
    assert_false(spec_alive(s, sleeper));
    pinfold_cancel_free(cancel);
}

static void *stop_soon(void *sandbox)
{
    spec_sleep(0.2);
    return pinfold_sandbox_stop(sandbox, false, NULL, NULL, NULL) == 0 ? sandbox : NULL;
}

static void stopping_the_sandbox_kills_what_a_view_runs(void **state)
{
    struct spec *s = *state;
    struct pinfold_execute_options run = PINFOLD_EXECUTE_OPTIONS_INIT;
    pthread_t thread;
    void *stopped = NULL;

    start_with_view(s);
    run.command = "sleep 300";
    run.timeout_seconds = 200;
    assert_int_equal(pthread_create(&thread, NULL, stop_soon, s->sandbox), 0);
    int r = pinfold_sandbox_execute(s->other, &run, &s->run, NULL, &s->err);
    pthread_join(thread, &stopped);
    assert_ptr_equal(stopped, s->sandbox);
    /* Killed, or on a slow machine not even begun. */
    assert_true(r == 0 ? s->run.exit_code == 137 && !s->run.timed_out : r == -PINFOLD_ESTART);
}

static void using_a_view_is_using_the_sandbox(void **state)
{
    struct spec *s = *state;
    struct pinfold_sandbox_options options = spec_options(s);

    spec_ok(s, pinfold_manager_new(NULL, &s->manager, &s->err));
    options.manager = s->manager;
    options.ttl_seconds = 1;
    spec_start(s, &options);
    spec_put(s, "ws/notes.md", "one\n");
    open_view(s);
    view_run(s, "sleep 1.5");
    spec_ok(s, pinfold_manager_cleanup_expired(s->manager, NULL, &s->err));
    assert_true(pinfold_sandbox_is_started(s->other));
    spec_sleep(1.2);
    spec_ok(s, pinfold_manager_cleanup_expired(s->manager, NULL, &s->err));
    assert_false(pinfold_sandbox_is_started(s->other));
    spec_refuses(s, PINFOLD_ESTART,
                 pinfold_sandbox_read_file(s->other, "notes.md", &s->text, NULL, &s->err));
}

struct reader {
    struct pinfold_sandbox *view;
    int failures;
};

static void *read_and_run(void *ctx)
{
    struct reader *reader = ctx;
    struct pinfold_execute_options run = PINFOLD_EXECUTE_OPTIONS_INIT;

    run.command = "cat notes.md && ! touch new 2>/dev/null";
    for (int i = 0; i < 5; i++) {
        struct pinfold_execute_result result = { 0 };
        struct pinfold_bytes text = { 0 };
        int r = pinfold_sandbox_execute(reader->view, &run, &result, NULL, NULL);
        reader->failures += r < 0 || result.exit_code != 0;
        r = pinfold_sandbox_read_file(reader->view, "notes.md", &text, NULL, NULL);
        reader->failures += r < 0;
        pinfold_execute_result_done(&result);
        pinfold_bytes_done(&text);
    }
    return NULL;
}

static void many_threads_use_several_views(void **state)
{
    enum { VIEWS = 3, THREADS = 9 };
    struct spec *s = *state;
    struct pinfold_sandbox *views[VIEWS];
    struct reader readers[THREADS];
    pthread_t threads[THREADS];

    start_with_view(s);
    for (int i = 0; i < VIEWS; i++)
        spec_ok(s, pinfold_sandbox_view(s->sandbox, NULL, &views[i], &s->err));
    for (int i = 0; i < THREADS; i++) {
        readers[i] = (struct reader){ .view = views[i % VIEWS] };
        assert_int_equal(pthread_create(&threads[i], NULL, read_and_run, &readers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(readers[i].failures, 0);
    }
    for (int i = 0; i < VIEWS; i++)
        pinfold_sandbox_free(views[i]);
    assert_int_equal(spec_event_count(s, "sandbox.view_end"), VIEWS);
}

static void a_forked_child_neither_uses_nor_ends_a_view(void **state)
{
    struct spec *s = *state;
    struct pinfold_isolated_options isolated = PINFOLD_ISOLATED_OPTIONS_INIT;
    int status = 0;

    isolated.workspace_root = spec_at(s, "ws");
    isolated.net = PINFOLD_NET_ALLOW;
    isolated.seed_mode = seed_mode();
    isolated.net_allow = (const char *const[]){ "example.org", NULL };
    pinfold_backend_unref(s->backend);
    s->backend = NULL;
    spec_ok(s, pinfold_isolated_backend_new(&isolated, &s->backend, &s->err));
    start_with_view(s);
    view_run(s, "sleep 300 >/dev/null 2>&1 & echo $!");
    pid_t sleeper = (pid_t)strtol(s->run.output, NULL, 10), child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct pinfold_execute_options run = PINFOLD_EXECUTE_OPTIONS_INIT;
        struct pinfold_execute_result result = { 0 };
        run.command = "true";
        bool right =
                pinfold_sandbox_execute(s->other, &run, &result, NULL, NULL) == -PINFOLD_ESTART;
        pinfold_sandbox_free(s->other);
        pinfold_sandbox_free(s->sandbox);
        pinfold_backend_unref(s->backend);
        _exit(right ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_true(spec_alive(s, sleeper));
    view_run(s, "echo on");
    spec_stdout_is(s, "on\n");
    /* The proxy, a thread of this process, goes on too. */
    spec_run(s, "/usr/bin/python3 -c 'import socket as s; c = s.create_connection((\"127.0.0.1\", "
                "3128)); c.sendall(b\"GET http://x.invalid/ HTTP/1.0\\r\\n\\r\\n\"); "
                "print(c.recv(12).decode())'");
    spec_stdout_is(s, "HTTP/1.1 403\n");
}

static void a_view_is_asked_for_in_the_right_way(void **state)
{
    struct spec *s = *state;
    struct pinfold_sandbox_options options = spec_options(s);
    struct pinfold_sandbox_ref ref = { 0 };
    char *owner = NULL, *same = NULL;

    spec_new(s, &options);
    spec_refuses(s, PINFOLD_ESTART, pinfold_sandbox_view(s->sandbox, NULL, &s->other, &s->err));
    start_with_view(s);
    struct pinfold_sandbox *none = NULL;
    spec_refuses(s, PINFOLD_EVALUE, pinfold_sandbox_view(s->sandbox, "", &none, &s->err));
    assert_null(none);
    spec_ok(s, pinfold_sandbox_ref(s->other, &ref, &s->err));
    assert_string_equal(ref.workspace_id, "spec");
    assert_string_equal(ref.backend_type, "IsolatedSandboxBackend");
    spec_ok(s, pinfold_sandbox_owner_id(s->sandbox, &owner, &s->err));
    spec_ok(s, pinfold_sandbox_owner_id(s->other, &same, &s->err));
    assert_string_equal(owner, same);
    assert_string_equal(spec_event(s, "sandbox.view")->owner_id, owner);
    free(owner);
    free(same);
    pinfold_sandbox_ref_done(&ref);
}

static void a_backend_without_views_says_so(void **state)
{
    struct spec *s = *state;
    struct pinfold_sandbox *none = NULL;

    spec_start_plain(s);
    spec_refuses(s, PINFOLD_ENOTSUP, pinfold_sandbox_view(s->sandbox, "r", &none, &s->err));
    assert_null(none);
    assert_non_null(strstr(s->err.msg, spec_backend_type()));
    assert_non_null(strstr(s->err.msg, "IsolatedSandboxBackend"));
    const struct spec_event *event = spec_event(s, "sandbox.view");
    assert_string_equal(event->error, "NotImplementedError");
    assert_string_equal(event->view, "r");
    spec_run(s, "echo on"); /* and nothing is broken */
    spec_stdout_is(s, "on\n");
}

static void a_view_of_an_overlay_shows_what_its_sandbox_sees(void **state)
{
    struct spec *s = *state;
    static const char look[] = "find . | sort; cat notes.md sub/b; "
                               "grep -c ' / /workspace ' /proc/self/mountinfo";

    spec_put(s, "seed/.env", "TOKEN=1\n");
    spec_put(s, "seed/gone", "x");
    spec_put(s, "seed/sub/b", "b\n");
    start_with_view(s);
    spec_run(s, "rm -r gone; echo three >> notes.md; mv sub/b sub/c; echo new > sub/b");
    spec_run(s, look);
    spec_stdout_is(s, ".\n./notes.md\n./src\n./src/a.c\n./sub\n./sub/b\n./sub/c\n"
                      "one\ntwo\nthree\nnew\n1\n");
    char *seen = strdup(s->run.output);
    view_run(s, look);
    assert_string_equal(s->run.output, seen);
    free(seen);
    spec_is(s, "seed/notes.md", "one\ntwo\n");
}

static void the_layers_of_an_overlay_go_with_its_sandbox(void **state)
{
    struct spec *s = *state;
    char hidden[80], work[80];

    snprintf(hidden, sizeof(hidden), "%s/ws/hidden", s->dir);
    snprintf(work, sizeof(work), "%s/ws/work", s->dir);
    start_with_view(s);
    view_run(s, "sleep 300 >/dev/null 2>&1 & cat notes.md");
    assert_int_equal(access(hidden, F_OK), 0);
    spec_stop(s);
    assert_int_equal(access(hidden, F_OK), -1);
    assert_int_equal(access(work, F_OK), -1);
}

#define OVERLAY_ALONE 2

int main(void)
{
    const struct CMUnitTest isolated[] = {
        SPEC_TEST(a_view_reads_what_is_there_and_what_comes_later),
        SPEC_TEST(a_view_looks_for_changes_and_text),
        SPEC_TEST(a_view_downloads_into_memory_and_to_the_host),
        SPEC_TEST(a_view_takes_the_options_of_a_command),
        SPEC_TEST(a_view_keeps_showing_a_directory_that_was_renamed),
        SPEC_TEST(commands_of_a_view_change_nothing),
        SPEC_TEST(calls_that_would_change_something_are_denied_and_audited),
        SPEC_TEST(a_view_has_no_network_and_a_world_of_its_own),
        SPEC_TEST(a_view_costs_no_descriptor_before_its_first_command),
        SPEC_TEST(a_view_keeps_its_processes_and_tmp_from_command_to_command),
        SPEC_TEST(views_end_with_their_sandbox_and_do_not_come_back),
        SPEC_TEST(freeing_a_view_ends_its_commands_alone),
        SPEC_TEST(cancelling_kills_the_command_in_a_view),
        SPEC_TEST(a_running_command_of_a_view_is_cancelled),
        SPEC_TEST(stopping_the_sandbox_kills_what_a_view_runs),
        SPEC_TEST(using_a_view_is_using_the_sandbox),
        SPEC_TEST(many_threads_use_several_views),
        SPEC_TEST(a_forked_child_neither_uses_nor_ends_a_view),
        SPEC_TEST(a_view_is_asked_for_in_the_right_way),
        /* Of an overlay: OVERLAY_ALONE. */
        SPEC_TEST(a_view_of_an_overlay_shows_what_its_sandbox_sees),
        SPEC_TEST(the_layers_of_an_overlay_go_with_its_sandbox),
    };
    const struct CMUnitTest local[] = {
        SPEC_TEST(a_backend_without_views_says_so),
    };
    size_t count = sizeof(isolated) / sizeof(isolated[0]);

    if (!spec_is_isolated())
        return cmocka_run_group_tests_name("views", local, NULL, NULL);
    if (!spec_is_overlay())
        count -= OVERLAY_ALONE;
    return _cmocka_run_group_tests("views", isolated, count, NULL, NULL);
}
