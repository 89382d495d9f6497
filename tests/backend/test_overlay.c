/* SPDX-License-Identifier: Apache-2.0 */
/* Overlay seeding through a Sandbox: what the host's side sees, changes, and leaves alone. */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <pinfold/pinfold.h>

#include "tempdir.h"

struct fixture {
    char dir[128];
    struct pinfold_isolated_options isolated;
    struct pinfold_backend *backend;
    struct pinfold_sandbox *sandbox;
    struct pinfold_seed_result seed;
    struct pinfold_sync_result sync;
    struct pinfold_execute_result run;
    struct pinfold_error err;
};

#define OK(f, call) \
    ((f)->err = (struct pinfold_error)PINFOLD_ERROR_INIT, is_ok(f, call, #call, __LINE__))

static int is_ok(struct fixture *f, int r, const char *call, int line)
{
    if (r < 0) {
        print_error("line %d: %s: %s\n", line, call, f->err.msg);
        _fail(__FILE__, line);
    }
    return r;
}

static const char *at(struct fixture *f, const char *path)
{
    static char slots[4][256];
    static unsigned next;
    char *slot = slots[next++ % 4];

    snprintf(slot, sizeof(slots[0]), "%s/%s", f->dir, path);
    return slot;
}

/* Run a shell command of the host, in the directory of the test. */
static void host(struct fixture *f, const char *command)
{
    char text[1024];

    snprintf(text, sizeof(text), "cd '%s' && { %s; }", f->dir, command);
    assert_int_equal(system(text), 0);
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    assert_non_null(f);
    assert_non_null(test_tempdir("pinfold-overlay", f->dir, sizeof(f->dir)));
    f->isolated = (struct pinfold_isolated_options)PINFOLD_ISOLATED_OPTIONS_INIT;
    f->isolated.seed_mode = PINFOLD_SEED_OVERLAY;
    host(f,
         "mkdir -p seed/src seed/secrets ws && echo one >seed/one.md && echo two >seed/src/two.py"
         " && echo secret >seed/.env && echo secret >seed/secrets/key && ln -s one.md seed/link");
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    char text[512];

    pinfold_sandbox_free(f->sandbox);
    pinfold_backend_unref(f->backend);
    pinfold_seed_result_done(&f->seed);
    pinfold_sync_result_done(&f->sync);
    pinfold_execute_result_done(&f->run);
    snprintf(text, sizeof(text), "chmod -R u+rwx '%s' && rm -rf '%s'", f->dir, f->dir);
    free(f);
    return system(text) == 0 ? 0 : -1;
}

/* Start with the seed as it is by now; its state is kept, to be compared with. */
static void start(struct fixture *f)
{
    struct pinfold_sandbox_options options = PINFOLD_SANDBOX_OPTIONS_INIT;

    host(f, "cp -a seed before");
    if (!f->isolated.workspace_root)
        f->isolated.workspace_root = at(f, "ws");
    OK(f, pinfold_isolated_backend_new(&f->isolated, &f->backend, &f->err));
    options.workspace_id = "overlay";
    options.backend = f->backend;
    options.ttl_seconds = 3600;
    options.seed_from = at(f, "seed");
    OK(f, pinfold_sandbox_new(&options, &f->sandbox, &f->err));
    OK(f, pinfold_sandbox_start(f->sandbox, &f->seed, NULL, &f->err));
    if (f->seed.fallback)
        print_error("copied: %s\n", f->seed.fallback);
    assert_int_equal(f->seed.mode, PINFOLD_SEED_OVERLAY);
}

static void run(struct fixture *f, const char *command, const char *output)
{
    struct pinfold_execute_options options = PINFOLD_EXECUTE_OPTIONS_INIT;

    options.command = command;
    options.timeout_seconds = 60;
    pinfold_execute_result_done(&f->run);
    OK(f, pinfold_sandbox_execute(f->sandbox, &options, &f->run, NULL, &f->err));
    assert_string_equal(f->run.output, output);
}

static void seed_is_untouched(struct fixture *f)
{
    host(f, "diff -r --no-dereference seed before");
}

static void what_the_host_writes_is_seen_inside_and_not_in_the_seed(void **state)
{
    struct fixture *f = *state;
    struct pinfold_bytes text = { 0 };
    struct pinfold_upload upload = { .path = "src/up.py", .data = "up\n", .len = 3 };
    const char *const gone[] = { "link", NULL };

    start(f);
    OK(f, pinfold_sandbox_read_file(f->sandbox, "one.md", &text, NULL, &f->err));
    assert_string_equal(text.data, "one\n");
    pinfold_bytes_done(&text);
    OK(f, pinfold_sandbox_write_file(f->sandbox, "one.md", "changed\n", 8, NULL, &f->err));
    OK(f, pinfold_sandbox_move_file(f->sandbox, "src/two.py", "src/three.py", NULL, &f->err));
    OK(f, pinfold_sandbox_delete_files(f->sandbox, gone, NULL, &f->err));
    OK(f, pinfold_sandbox_add_files(f->sandbox, &upload, 1, true, NULL, NULL, &f->err));
    run(f, "cat one.md; ls -A . src; cat src/three.py src/up.py; echo inside > src/inside",
        "changed\n.:\none.md\nsrc\n\nsrc:\nthree.py\nup.py\ntwo\nup\n");
    OK(f, pinfold_sandbox_read_file(f->sandbox, "src/inside", &text, NULL, &f->err));
    assert_string_equal(text.data, "inside\n");
    pinfold_bytes_done(&text);
    seed_is_untouched(f);
}

static void what_is_hidden_is_hidden_from_the_hosts_side_too(void **state)
{
    struct fixture *f = *state;
    struct pinfold_file_infos infos = { 0 };
    struct pinfold_bytes text = { 0 };

    start(f);
    assert_int_equal(f->seed.files_seeded, 2);
    assert_int_equal(f->seed.bytes_seeded, 8);
    assert_int_equal(f->seed.skipped_paths.count, 2);
    assert_true(pinfold_sandbox_read_file(f->sandbox, ".env", &text, NULL, &f->err) < 0);
    assert_int_equal(f->err.sys_errno, ENOENT);
    assert_true(pinfold_sandbox_read_file(f->sandbox, "secrets/key", &text, NULL, &f->err) < 0);
    OK(f, pinfold_sandbox_list_dir(f->sandbox, ".", &infos, NULL, &f->err));
    assert_int_equal(infos.count, 3);
    pinfold_file_infos_done(&infos);
}

static void a_flush_elsewhere_brings_what_was_not_changed_too(void **state)
{
    struct fixture *f = *state;

    start(f);
    run(f, "rm link; echo new > new.md; rm one.md", "");
    assert_int_equal(
            OK(f, pinfold_sandbox_flush(f->sandbox, at(f, "out"), &f->sync, NULL, &f->err)), 1);
    assert_int_equal(f->sync.files_synced, 2);
    host(f, "[ \"$(cd out && find . -type f | sort | xargs)\" = './new.md ./src/two.py' ]");
    seed_is_untouched(f);
}

static void a_flush_to_the_seed_looks_at_changes_alone(void **state)
{
    struct fixture *f = *state;

    start(f);
    run(f, "echo new > new.md; touch src/two.py; rm one.md", "");
    /* A copy would take the old text of this one back. */
    host(f, "echo by-the-host > seed/src/late.py");
    assert_int_equal(OK(f, pinfold_sandbox_flush(f->sandbox, NULL, &f->sync, NULL, &f->err)), 1);
    assert_int_equal(f->sync.files_synced, 1);
    assert_int_equal(f->sync.errors.count, 0);
    host(f, "[ \"$(cat seed/one.md seed/new.md seed/src/late.py | xargs)\" = "
            "'one new by-the-host' ]");
}

static void a_plan_of_a_flush_to_the_seed_has_no_whiteouts(void **state)
{
    struct fixture *f = *state;
    struct pinfold_plan plan = { 0 };

    start(f);
    run(f, "rm one.md; rm -r src; mkdir src; echo new > src/new.py", "");
    assert_int_equal(OK(f, pinfold_sandbox_plan_flush(f->sandbox, NULL, &plan, NULL, &f->err)), 1);
    assert_int_equal(plan.count, 1);
    assert_string_equal(plan.items[0].path, "src/new.py");
    assert_int_equal(plan.items[0].action, PINFOLD_PLAN_COPY);
    pinfold_plan_done(&plan);
}

static enum pinfold_plan_action planned(const struct pinfold_plan *plan, const char *path)
{
    for (size_t i = 0; i < plan->count; i++)
        if (strcmp(plan->items[i].path, path) == 0)
            return plan->items[i].action;
    fail_msg("%s is not in the plan", path);
    return PINFOLD_PLAN_SKIP;
}

/* Of a sandbox that has been started: what another seed would write over, and what is missing. */
static void a_plan_of_the_seed_tells_what_is_there_by_now(void **state)
{
    struct fixture *f = *state;
    struct pinfold_plan plan = { 0 };

    start(f);
    run(f, "echo changed >one.md; rm src/two.py", "");
    assert_int_equal(OK(f, pinfold_sandbox_plan_seed(f->sandbox, &plan, NULL, &f->err)), 1);
    assert_int_equal(planned(&plan, "one.md"), PINFOLD_PLAN_OVERWRITE);
    assert_int_equal(planned(&plan, "src/two.py"), PINFOLD_PLAN_COPY);
    assert_int_equal(planned(&plan, ".env"), PINFOLD_PLAN_SKIP);
    assert_int_equal(plan.files, 2);
    pinfold_plan_done(&plan);
    run(f, "cat one.md; ls -A", "changed\nlink\none.md\nsrc\n");
    seed_is_untouched(f);
}

static void a_read_only_workspace_is_written_by_the_host_alone(void **state)
{
    struct fixture *f = *state;

    f->isolated.workspace_read_only = true;
    start(f);
    OK(f, pinfold_sandbox_write_file(f->sandbox, "one.md", "host\n", 5, NULL, &f->err));
    run(f, "cat one.md; (echo x > one.md) 2>/dev/null || echo no", "host\nno\n");
    seed_is_untouched(f);
}

static void a_stop_leaves_the_changes_and_no_other_layer(void **state)
{
    struct fixture *f = *state;

    start(f);
    run(f, "echo x > x", "");
    OK(f, pinfold_sandbox_stop(f->sandbox, false, NULL, NULL, &f->err));
    host(f, "[ \"$(find ws | sort | xargs)\" = 'ws ws/changes ws/changes/x' ]");
    seed_is_untouched(f);
}

static void a_sandbox_without_a_seed_has_an_ordinary_workspace(void **state)
{
    struct fixture *f = *state;
    struct pinfold_sandbox_options options = PINFOLD_SANDBOX_OPTIONS_INIT;

    f->isolated.workspace_root = at(f, "ws");
    OK(f, pinfold_isolated_backend_new(&f->isolated, &f->backend, &f->err));
    options.workspace_id = "plain";
    options.backend = f->backend;
    options.ttl_seconds = 3600;
    OK(f, pinfold_sandbox_new(&options, &f->sandbox, &f->err));
    OK(f, pinfold_sandbox_start(f->sandbox, NULL, NULL, &f->err));
    OK(f, pinfold_sandbox_write_file(f->sandbox, "f", "f\n", 2, NULL, &f->err));
    run(f, "cat f; echo g > g", "f\n");
    host(f, "[ \"$(cat ws/f ws/g | xargs)\" = 'f g' ]");
}

static void a_seed_that_is_the_workspace_is_worked_on_directly(void **state)
{
    struct fixture *f = *state;
    struct pinfold_sandbox_options options = PINFOLD_SANDBOX_OPTIONS_INIT;

    f->isolated.workspace_root = at(f, "seed");
    OK(f, pinfold_isolated_backend_new(&f->isolated, &f->backend, &f->err));
    options.workspace_id = "same";
    options.backend = f->backend;
    options.ttl_seconds = 3600;
    options.seed_from = at(f, "seed");
    OK(f, pinfold_sandbox_new(&options, &f->sandbox, &f->err));
    OK(f, pinfold_sandbox_start(f->sandbox, &f->seed, NULL, &f->err));
    assert_int_equal(f->seed.mode, PINFOLD_SEED_COPY);
    assert_int_equal(f->seed.files_seeded, 0);
    run(f, "cat one.md", "one\n");
}

static void a_seed_and_a_workspace_that_are_nested_are_refused(void **state)
{
    struct fixture *f = *state;
    struct pinfold_sandbox_options options = PINFOLD_SANDBOX_OPTIONS_INIT;

    f->isolated.workspace_root = at(f, "seed/ws");
    OK(f, pinfold_isolated_backend_new(&f->isolated, &f->backend, &f->err));
    options.workspace_id = "nested";
    options.backend = f->backend;
    options.ttl_seconds = 3600;
    options.seed_from = at(f, "seed");
    OK(f, pinfold_sandbox_new(&options, &f->sandbox, &f->err));
    assert_int_equal(pinfold_sandbox_start(f->sandbox, &f->seed, NULL, &f->err), -PINFOLD_EPREPARE);
    assert_non_null(strstr(f->err.msg, "one lies inside the other"));
}

/* The backend by itself: a Sandbox seeds first and once. */
static void a_seed_that_comes_late_is_copied(void **state)
{
    struct fixture *f = *state;
    struct pinfold_execute_options what = PINFOLD_EXECUTE_OPTIONS_INIT;
    struct pinfold_seed_request request = { .size = sizeof(request),
                                            .exclude = pinfold_default_seed_excludes };
    const struct pinfold_backend_ops *ops;
    void *backend;

    f->isolated.workspace_root = at(f, "ws");
    OK(f, pinfold_isolated_backend_new(&f->isolated, &f->backend, &f->err));
    ops = pinfold_backend_get_ops(f->backend);
    backend = pinfold_backend_get_state(f->backend);
    OK(f, ops->create(backend, NULL, &f->err));
    what.command = "ls -A";
    OK(f, ops->execute(backend, &what, &f->run, NULL, &f->err));
    assert_int_equal(f->run.output_len, 0);
    request.source = at(f, "seed");
    OK(f, ops->seed_workspace(backend, &request, &f->seed, NULL, &f->err));
    assert_int_equal(f->seed.mode, PINFOLD_SEED_COPY);
    assert_non_null(strstr(f->seed.fallback, "commands have run"));
    pinfold_execute_result_done(&f->run);
    OK(f, ops->execute(backend, &what, &f->run, NULL, &f->err));
    assert_string_equal(f->run.output, "link\none.md\nsrc\n");
    OK(f, ops->close(backend, &f->err));
    host(f, "[ \"$(ls -A ws | xargs)\" = 'link one.md src' ]");
}

/* A kernel that knows no overlay for users, or a container that forbids it: only that takes a
 * fsconfig(2) of a flag. */
static bool deny_overlays(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fsconfig, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, FSCONFIG_SET_FLAG, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = { sizeof(code) / sizeof(code[0]), code };

    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/* In a fork. Returns 0 when the seed was copied, with the reason, and commands work on the copy. */
static int start_without_overlays(struct fixture *f)
{
    struct pinfold_sandbox_options options = PINFOLD_SANDBOX_OPTIONS_INIT;
    struct pinfold_execute_options what = PINFOLD_EXECUTE_OPTIONS_INIT;

    f->isolated.workspace_root = at(f, "ws");
    options.workspace_id = "copied";
    options.ttl_seconds = 3600;
    options.seed_from = at(f, "seed");
    what.command = "cat one.md && echo more >>one.md && ls -A";
    if (!deny_overlays() || pinfold_isolated_backend_new(&f->isolated, &f->backend, &f->err) < 0)
        return 1;
    options.backend = f->backend;
    if (pinfold_sandbox_new(&options, &f->sandbox, &f->err) < 0 ||
        pinfold_sandbox_start(f->sandbox, &f->seed, NULL, &f->err) < 0)
        return 2;
    if (f->seed.mode != PINFOLD_SEED_COPY || !f->seed.fallback ||
        !strstr(f->seed.fallback, "overlay") || !strstr(f->seed.fallback, "Invalid argument"))
        return 3;
    if (pinfold_sandbox_execute(f->sandbox, &what, &f->run, NULL, &f->err) < 0 ||
        strcmp(f->run.output, "one\nlink\none.md\nsrc\n") != 0)
        return 4;
    return pinfold_sandbox_stop(f->sandbox, false, NULL, NULL, &f->err) < 0 ? 5 : 0;
}

static void where_overlays_are_refused_the_seed_is_copied(void **state)
{
    struct fixture *f = *state;
    int status;
    pid_t child;

    host(f, "cp -a seed before");
    child = fork();
    if (child == 0) {
        int r = start_without_overlays(f);
        if (r)
            dprintf(2, "# %s; %s; %s\n", f->err.msg, f->seed.fallback, f->run.output);
        _exit(r);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    seed_is_untouched(f);
    host(f, "[ \"$(cat ws/one.md | xargs)\" = 'one more' ]");
    host(f, "[ \"$(ls -A ws | xargs)\" = 'link one.md src' ]");
}

static void a_mode_that_there_is_not_is_refused(void **state)
{
    struct fixture *f = *state;

    f->isolated.seed_mode = 7;
    assert_int_equal(pinfold_isolated_backend_new(&f->isolated, &f->backend, &f->err),
                     -PINFOLD_EVALUE);
    assert_non_null(strstr(f->err.msg, "seed mode"));
}

/* Counted, not timed: what is open and running afterwards is what was before. */
/* Returns 0 when the start fails and says why. */
static int start_closed(struct fixture *f)
{
    struct pinfold_sandbox_options options = PINFOLD_SANDBOX_OPTIONS_INIT;

    f->isolated.workspace_root = at(f, "ws");
    options.workspace_id = "closed";
    options.ttl_seconds = 3600;
    options.seed_from = at(f, "seed");
    if (pinfold_isolated_backend_new(&f->isolated, &f->backend, &f->err) < 0)
        return 1;
    options.backend = f->backend;
    if (pinfold_sandbox_new(&options, &f->sandbox, &f->err) < 0)
        return 2;
    if (pinfold_sandbox_start(f->sandbox, &f->seed, NULL, &f->err) != -PINFOLD_EPREPARE)
        return 3;
    return strstr(f->err.msg, "one.md") ? 0 : 4;
}

static void a_seed_that_cannot_be_read_leaves_nothing_behind(void **state)
{
    const uid_t uid = geteuid() == 0 ? 0x2000000 + (uid_t)getpid() : geteuid(); /* root reads all */
    struct fixture *f = *state;
    char command[64];
    struct stat st;
    int status;
    pid_t child;

    snprintf(command, sizeof(command), "chmod 0 seed/one.md; chown -R %u .", (unsigned)uid);
    host(f, command);
    child = fork();
    if (child == 0)
        _exit(geteuid() == uid || (setgid(uid) == 0 && setuid(uid) == 0) ? start_closed(f) : 5);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(stat(at(f, "ws/work"), &st), -1);
    assert_int_equal(stat(at(f, "ws/hidden"), &st), -1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_the_host_writes_is_seen_inside_and_not_in_the_seed),
        TEST(what_is_hidden_is_hidden_from_the_hosts_side_too),
        TEST(a_flush_elsewhere_brings_what_was_not_changed_too),
        TEST(a_flush_to_the_seed_looks_at_changes_alone),
        TEST(a_plan_of_a_flush_to_the_seed_has_no_whiteouts),
        TEST(a_plan_of_the_seed_tells_what_is_there_by_now),
        TEST(a_read_only_workspace_is_written_by_the_host_alone),
        TEST(a_stop_leaves_the_changes_and_no_other_layer),
        TEST(a_sandbox_without_a_seed_has_an_ordinary_workspace),
        TEST(a_seed_that_is_the_workspace_is_worked_on_directly),
        TEST(a_seed_and_a_workspace_that_are_nested_are_refused),
        TEST(a_seed_that_comes_late_is_copied),
        TEST(where_overlays_are_refused_the_seed_is_copied),
        TEST(a_mode_that_there_is_not_is_refused),
        TEST(a_seed_that_cannot_be_read_leaves_nothing_behind),
    };

    return cmocka_run_group_tests_name("overlay seeding", tests, NULL, NULL);
}
