/* SPDX-License-Identifier: Apache-2.0 */
/* The local backend through a Sandbox: what is its own, not the engines'. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include <pinfold/pinfold.h>

#include "tempdir.h"

struct fixture {
    char dir[128];  /* holds everything of the test */
    char root[160]; /* the workspace */
    struct pinfold_backend *backend;
    struct pinfold_sandbox *sandbox;
};

static void remove_tree(const char *path)
{
    char command[512];

    snprintf(command, sizeof(command), "chmod -R u+rwx '%s' && rm -rf '%s'", path, path);
    assert_int_equal(system(command), 0);
}

static void open_sandbox(struct fixture *f, const struct pinfold_local_options *given)
{
    struct pinfold_local_options local = *given;
    struct pinfold_sandbox_options options = PINFOLD_SANDBOX_OPTIONS_INIT;
    struct pinfold_error err = PINFOLD_ERROR_INIT;

    local.workspace_root = f->root;
    assert_int_equal(pinfold_local_backend_new(&local, &f->backend, &err), 0);
    options.workspace_id = strrchr(f->dir, '/') + 1;
    options.backend = f->backend;
    options.ttl_seconds = 100;
    assert_int_equal(pinfold_sandbox_new(&options, &f->sandbox, &err), 0);
    if (pinfold_sandbox_start(f->sandbox, NULL, NULL, &err) != 0)
        fail_msg("%s", err.msg);
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    assert_non_null(test_tempdir("pinfold-local", f->dir, sizeof(f->dir)));
    snprintf(f->root, sizeof(f->root), "%s/ws", f->dir);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    pinfold_sandbox_free(f->sandbox);
    pinfold_backend_unref(f->backend);
    remove_tree(f->dir);
    free(f);
    return 0;
}

static const struct pinfold_local_options defaults = PINFOLD_LOCAL_OPTIONS_INIT;

/* Run a command and give its output, which the caller frees. */
static char *output_of(struct fixture *f, const struct pinfold_execute_options *options)
{
    struct pinfold_execute_result result = { 0 };
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    char *output;

    if (pinfold_sandbox_execute(f->sandbox, options, &result, NULL, &err) != 0)
        fail_msg("%s", err.msg);
    output = strdup(result.output);
    pinfold_execute_result_done(&result);
    return output;
}

static void assert_output(struct fixture *f, const char *command, const char *cwd,
                          const char *expected)
{
    struct pinfold_execute_options options = PINFOLD_EXECUTE_OPTIONS_INIT;
    char *output;

    options.command = command;
    options.cwd = cwd;
    output = output_of(f, &options);
    assert_string_equal(output, expected);
    free(output);
}

static void says_what_it_is_and_makes_its_root(void **state)
{
    struct fixture *f = *state;
    struct stat st;

    open_sandbox(f, &defaults);
    assert_int_equal(stat(f->root, &st), 0);
    assert_true(S_ISDIR(st.st_mode));
    assert_string_equal(pinfold_backend_get_ops(f->backend)->type_name, "LocalSandboxBackend");
    assert_memory_equal(pinfold_backend_id(f->backend), "LocalSandboxBackend-", 20);
    assert_true(pinfold_supports_execution(f->backend));
}

static void warn(void *ctx, enum pinfold_log_level level, const char *message)
{
    if (level == PINFOLD_LOG_WARNING && strstr(message, "does not isolate"))
        ++*(int *)ctx;
}

static void warns_that_nothing_is_isolated(void **state)
{
    struct fixture *f = *state;
    int warnings = 0;

    pinfold_log_set_handler(warn, &warnings);
    open_sandbox(f, &defaults);
    pinfold_log_set_handler(NULL, NULL);
    assert_int_equal(warnings, 1);
}

static void refuses_options_that_cannot_work(void **state)
{
    struct pinfold_local_options options = PINFOLD_LOCAL_OPTIONS_INIT;
    struct pinfold_backend *backend = NULL;
    struct pinfold_error err = PINFOLD_ERROR_INIT;

    (void)state;
    assert_int_equal(pinfold_local_backend_new(&options, &backend, &err), -PINFOLD_EVALUE);
    options.workspace_root = "";
    assert_int_equal(pinfold_local_backend_new(&options, &backend, &err), -PINFOLD_EVALUE);
    options.workspace_root = "/tmp/x";
    options.timeout_seconds = -1;
    assert_int_equal(pinfold_local_backend_new(&options, &backend, &err), -PINFOLD_EVALUE);
    options.timeout_seconds = (double)NAN;
    assert_int_equal(pinfold_local_backend_new(&options, &backend, &err), -PINFOLD_EVALUE);
    options.timeout_seconds = 1;
    options.env = (const char *const[]){ "NOVALUE", NULL };
    assert_int_equal(pinfold_local_backend_new(&options, &backend, &err), -PINFOLD_EVALUE);
    assert_non_null(strstr(err.msg, "entry 1"));
    assert_null(backend);
}

static void the_environment_is_read_at_each_command_and_later_words_win(void **state)
{
    struct fixture *f = *state;
    struct pinfold_local_options local = PINFOLD_LOCAL_OPTIONS_INIT;
    struct pinfold_execute_options options = PINFOLD_EXECUTE_OPTIONS_INIT;
    char *output;

    local.env = (const char *const[]){ "FROM_BACKEND=b", "BOTH=b", NULL };
    open_sandbox(f, &local);
    setenv("FROM_HOST", "h", 1);
    setenv("FROM_BACKEND", "h", 1);
    options.command = "echo $FROM_HOST $FROM_BACKEND $BOTH";
    options.env = (const char *const[]){ "BOTH=e", NULL };
    output = output_of(f, &options);
    unsetenv("FROM_HOST");
    unsetenv("FROM_BACKEND");
    assert_string_equal(output, "h b e\n");
    free(output);
}

static void without_inheritance_there_is_exactly_what_was_given(void **state)
{
    struct fixture *f = *state;
    struct pinfold_local_options local = PINFOLD_LOCAL_OPTIONS_INIT;
    struct pinfold_execute_options options = PINFOLD_EXECUTE_OPTIONS_INIT;
    char expected[256], *output;

    local.no_inherit_env = true;
    local.env = (const char *const[]){ "A=1", NULL };
    open_sandbox(f, &local);
    options.argv = (const char *const[]){ "/usr/bin/env", NULL };
    output = output_of(f, &options);
    snprintf(expected, sizeof(expected), "PWD=%s\nA=1\n", f->root);
    assert_string_equal(output, expected);
    free(output);
}

static void commands_run_where_they_are_told(void **state)
{
    struct fixture *f = *state;
    struct pinfold_execute_options options = PINFOLD_EXECUTE_OPTIONS_INIT;
    struct pinfold_execute_result result;
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    char expected[400];

    open_sandbox(f, &defaults);
    snprintf(expected, sizeof(expected), "%s\n%s\n", f->root, f->root);
    assert_output(f, "pwd; /bin/pwd", NULL, expected);
    assert_output(f, "mkdir -p a/b && ln -s / out && ln -s a in", NULL, "");
    snprintf(expected, sizeof(expected), "%s/a/b\n", f->root);
    assert_output(f, "pwd", "a/b", expected);
    assert_output(f, "/bin/pwd", f->root,
                  (snprintf(expected, sizeof(expected), "%s\n", f->root), expected));
    assert_output(f, "basename \"$(/bin/pwd)\"", "in/b", "b\n");
    options.command = "true";
    for (int i = 0; i < 3; i++) {
        options.cwd = (const char *[]){ "missing", "out", "out/etc" }[i];
        assert_int_equal(pinfold_sandbox_execute(f->sandbox, &options, &result, NULL, &err),
                         i == 0 ? -PINFOLD_EOS : -PINFOLD_EPATH); /* the links leave the root */
        assert_non_null(strstr(err.msg, options.cwd));
    }
    options.cwd = "..";
    assert_int_equal(pinfold_sandbox_execute(f->sandbox, &options, &result, NULL, &err),
                     -PINFOLD_EPATH);
}

static void a_deleted_root_fails_clearly_and_works_again_when_made_anew(void **state)
{
    struct fixture *f = *state;
    struct pinfold_error err = PINFOLD_ERROR_INIT;

    open_sandbox(f, &defaults);
    remove_tree(f->root);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pinfold_sandbox_write_file(f->sandbox, "a", "x", 1, NULL, &err),
                         -PINFOLD_EOS);
        assert_int_equal(err.sys_errno, ENOENT);
        assert_non_null(strstr(err.msg, "root is gone"));
    }
    assert_int_equal(mkdir(f->root, 0755), 0);
    assert_int_equal(pinfold_sandbox_write_file(f->sandbox, "a", "x", 1, NULL, &err), 0);
    assert_output(f, "cat a", NULL, "x");
}

static void a_root_that_cannot_be_used_is_named_at_start(void **state)
{
    struct fixture *f = *state;
    struct pinfold_local_options local = PINFOLD_LOCAL_OPTIONS_INIT;
    struct pinfold_sandbox_options options = PINFOLD_SANDBOX_OPTIONS_INIT;
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    int fd = open(f->root, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    close(fd);
    local.workspace_root = f->root;
    assert_int_equal(pinfold_local_backend_new(&local, &f->backend, &err), 0);
    options.workspace_id = strrchr(f->dir, '/') + 1;
    options.backend = f->backend;
    options.ttl_seconds = 100;
    assert_int_equal(pinfold_sandbox_new(&options, &f->sandbox, &err), 0);
    assert_int_equal(pinfold_sandbox_start(f->sandbox, NULL, NULL, &err), -PINFOLD_EOS);
    assert_non_null(strstr(err.msg, f->root));
    assert_int_equal(err.sys_errno, ENOTDIR);
    unlink(f->root); /* and when the cause is gone it can be tried again */
    assert_int_equal(pinfold_sandbox_start(f->sandbox, NULL, NULL, &err), 0);
}

static void files_travel_to_and_from_the_host(void **state)
{
    struct fixture *f = *state;
    struct pinfold_transfer_results results = { 0 };
    struct pinfold_strings written = { 0 };
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    char host[192], link[192], out[192];
    struct stat st;
    int fd;

    open_sandbox(f, &defaults);
    snprintf(host, sizeof(host), "%s/host", f->dir);
    snprintf(link, sizeof(link), "%s/link", f->dir);
    snprintf(out, sizeof(out), "%s/new/dir/out", f->dir);
    fd = open(host, O_WRONLY | O_CREAT | O_CLOEXEC, 0750);
    assert_int_equal(write(fd, "host\0data", 9), 9);
    close(fd);
    assert_int_equal(symlink(host, link), 0);
    assert_int_equal(pinfold_sandbox_add_files(f->sandbox,
                                               (const struct pinfold_upload[]){
                                                       { .path = "sub/a", .host_path = link },
                                                       { .path = "b", .host_path = f->dir } },
                                               2, true, &written, NULL, &err),
                     -PINFOLD_EOS);
    assert_int_equal(err.sys_errno, EISDIR);
    assert_int_equal(written.count, 1);
    assert_int_equal(pinfold_sandbox_download_files(f->sandbox,
                                                    (const struct pinfold_download[]){
                                                            { .path = "sub/a", .host_path = out },
                                                            { .path = "sub/a" },
                                                            { .path = "none" } },
                                                    3, true, &results, NULL, &err),
                     -PINFOLD_EOS);
    assert_int_equal(err.sys_errno, ENOENT);
    assert_int_equal(results.items[0].error.code, 0);
    assert_int_equal(results.items[1].content.len, 9);
    assert_memory_equal(results.items[1].content.data, "host\0data", 9);
    assert_string_equal(results.items[2].path, "none");
    assert_int_equal(stat(out, &st), 0);
    assert_int_equal(st.st_size, 9);
    assert_int_equal(st.st_mode & 0777, 0750);
    pinfold_transfer_results_done(&results);
    assert_int_equal(pinfold_sandbox_download_files(
                             f->sandbox,
                             &(struct pinfold_download){ .path = "sub/a", .host_path = out }, 1,
                             false, &results, NULL, &err),
                     0);
    assert_true(results.items[0].skipped);
    pinfold_transfer_results_done(&results);
    pinfold_strings_done(&written);
}

static void a_fired_token_stops_everything_at_once(void **state)
{
    struct fixture *f = *state;
    struct pinfold_execute_options options = PINFOLD_EXECUTE_OPTIONS_INIT;
    struct pinfold_execute_result result;
    struct pinfold_file_infos infos;
    struct pinfold_cancel *cancel = NULL;
    struct pinfold_bytes text;

    open_sandbox(f, &defaults);
    assert_int_equal(pinfold_cancel_new(&cancel, NULL), 0);
    assert_false(pinfold_cancel_fired(cancel));
    pinfold_cancel_fire(cancel);
    options.command = "sleep 100";
    assert_int_equal(pinfold_sandbox_execute(f->sandbox, &options, &result, cancel, NULL),
                     -PINFOLD_ECANCELLED);
    pinfold_execute_result_done(&result);
    assert_int_equal(pinfold_sandbox_write_file(f->sandbox, "a", "x", 1, cancel, NULL),
                     -PINFOLD_ECANCELLED);
    assert_int_equal(pinfold_sandbox_read_file(f->sandbox, "a", &text, cancel, NULL),
                     -PINFOLD_ECANCELLED);
    assert_int_equal(pinfold_sandbox_list_dir(f->sandbox, ".", &infos, cancel, NULL),
                     -PINFOLD_ECANCELLED);
    assert_int_equal(pinfold_sandbox_move_file(f->sandbox, "a", "b", cancel, NULL),
                     -PINFOLD_ECANCELLED);
    assert_int_equal(pinfold_sandbox_delete_files(f->sandbox, (const char *const[]){ "a", NULL },
                                                  cancel, NULL),
                     -PINFOLD_ECANCELLED);
    pinfold_cancel_free(cancel);
}

static void timeouts_are_checked_and_zero_is_the_default(void **state)
{
    struct fixture *f = *state;
    struct pinfold_local_options local = PINFOLD_LOCAL_OPTIONS_INIT;
    struct pinfold_execute_options options = PINFOLD_EXECUTE_OPTIONS_INIT;
    struct pinfold_execute_result result;

    local.timeout_seconds = 0.2;
    open_sandbox(f, &local);
    options.command = "echo early; sleep 100";
    assert_int_equal(pinfold_sandbox_execute(f->sandbox, &options, &result, NULL, NULL), 0);
    assert_true(result.timed_out);
    assert_int_equal(result.exit_code, 124);
    assert_memory_equal(result.output, "early\n", 6);
    pinfold_execute_result_done(&result);
    for (int i = 0; i < 3; i++) {
        options.timeout_seconds = (double[]){ -1, (double)NAN, -(double)INFINITY }[i];
        assert_int_equal(pinfold_sandbox_execute(f->sandbox, &options, &result, NULL, NULL),
                         -PINFOLD_EVALUE);
    }
    options.timeout_seconds = (double)INFINITY;
    options.command = "true";
    assert_int_equal(pinfold_sandbox_execute(f->sandbox, &options, &result, NULL, NULL), 0);
    pinfold_execute_result_done(&result);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(says_what_it_is_and_makes_its_root),
        TEST(warns_that_nothing_is_isolated),
        TEST(refuses_options_that_cannot_work),
        TEST(the_environment_is_read_at_each_command_and_later_words_win),
        TEST(without_inheritance_there_is_exactly_what_was_given),
        TEST(commands_run_where_they_are_told),
        TEST(a_deleted_root_fails_clearly_and_works_again_when_made_anew),
        TEST(a_root_that_cannot_be_used_is_named_at_start),
        TEST(files_travel_to_and_from_the_host),
        TEST(a_fired_token_stops_everything_at_once),
        TEST(timeouts_are_checked_and_zero_is_the_default),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
