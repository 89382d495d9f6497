/* SPDX-License-Identifier: Apache-2.0 */
/* A flush that leaves some paths at the destination alone, whatever they are called. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include <pinfold/log.h>
#include <pinfold/sandbox.h>

#include "tempdir.h"

struct fixture {
    char dir[256], work[300], out[300], seed[300];
    struct pinfold_backend *backend;
    struct pinfold_sandbox *sandbox;
};

static void ignore(void *ctx, enum pinfold_log_level level, const char *message)
{
    (void)ctx;
    (void)level;
    (void)message;
}

static int setup(void **state)
{
    static const char *const everything[] = { "**", NULL }, *const stay[] = { "stays", NULL };
    struct pinfold_sync_policy policy = { .sync_include_patterns = everything };
    struct pinfold_local_options local = PINFOLD_LOCAL_OPTIONS_INIT;
    struct pinfold_sandbox_options options = PINFOLD_SANDBOX_OPTIONS_INIT;
    struct fixture *f = calloc(1, sizeof(*f));
    char stays[310];
    int fd;

    pinfold_log_set_handler(ignore, NULL);
    assert_non_null(test_tempdir("flush-except", f->dir, sizeof(f->dir)));
    snprintf(f->work, sizeof(f->work), "%s/work", f->dir);
    snprintf(f->out, sizeof(f->out), "%s/out", f->dir);
    snprintf(f->seed, sizeof(f->seed), "%s/seed", f->dir);
    snprintf(stays, sizeof(stays), "%s/stays", f->seed);
    assert_int_equal(mkdir(f->work, 0700), 0);
    assert_int_equal(mkdir(f->seed, 0700), 0);
    fd = open(stays, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(close(fd), 0);
    local.workspace_root = f->work;
    assert_int_equal(pinfold_local_backend_new(&local, &f->backend, NULL), 0);
    options.workspace_id = "w";
    options.backend = f->backend;
    options.ttl_seconds = 100;
    options.sync_policy = &policy;
    options.sync_dest = f->out;
    options.sync_exclude = stay;
    options.seed_from = f->seed;
    assert_int_equal(pinfold_sandbox_new(&options, &f->sandbox, NULL), 0);
    assert_int_equal(pinfold_sandbox_start(f->sandbox, NULL, NULL, NULL), 0);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    char command[400];

    pinfold_sandbox_free(f->sandbox);
    pinfold_backend_unref(f->backend);
    snprintf(command, sizeof(command), "rm -r '%s'", f->dir);
    assert_int_equal(system(command), 0);
    free(f);
    return 0;
}

static void put(struct fixture *f, const char *path)
{
    assert_int_equal(pinfold_sandbox_write_file(f->sandbox, path, "x", 1, NULL, NULL), 0);
}

static bool came_home(const struct fixture *f, const char *path)
{
    char full[600];

    snprintf(full, sizeof(full), "%s/%s", f->out, path);
    return access(full, F_OK) == 0;
}

/* Flush without these, and see that just so many files came. */
static void flush(struct fixture *f, const char *const *except, unsigned expected)
{
    struct pinfold_sync_result result = { 0 };

    assert_int_equal(pinfold_sandbox_flush_except(f->sandbox, NULL, except, &result, NULL, NULL),
                     1);
    assert_int_equal(result.errors.count, 0);
    assert_int_equal(result.files_synced, expected);
    pinfold_sync_result_done(&result);
}

static void a_path_is_left_alone_and_its_namesakes_are_not(void **state)
{
    struct fixture *f = *state;

    put(f, "a.md");
    put(f, "src/a.md");
    put(f, "dir/a.md");
    put(f, "dir/deep/b.md");
    flush(f, (const char *const[]){ "a.md", "dir", NULL }, 1);
    assert_true(came_home(f, "src/a.md"));
    assert_false(came_home(f, "a.md") || came_home(f, "dir/a.md") || came_home(f, "dir/deep/b.md"));
}

static void a_path_is_no_pattern(void **state)
{
    static const char *const odd[] = { "*",  "a?",        "[a]",      "!b", "back\\slash", "{a}",
                                       "**", "new\nline", "\xff\xfe", " ",  NULL };
    struct fixture *f = *state;

    put(f, "a");
    put(f, "b");
    put(f, "ab");
    for (const char *const *path = odd; *path; path++)
        put(f, *path);
    flush(f, odd, 3);
    for (const char *const *path = odd; *path; path++)
        assert_false(came_home(f, *path));
    assert_true(came_home(f, "a") && came_home(f, "b") && came_home(f, "ab"));
}

static void without_paths_it_is_a_plain_flush(void **state)
{
    struct fixture *f = *state;

    put(f, "a");
    put(f, ".env");
    flush(f, (const char *const[]){ NULL }, 1);
    put(f, "b");
    flush(f, NULL, 1);
    assert_false(came_home(f, ".env"));
}

static void an_empty_path_is_refused_and_nothing_is_written(void **state)
{
    struct fixture *f = *state;
    struct pinfold_error err = PINFOLD_ERROR_INIT;

    put(f, "a");
    assert_int_equal(pinfold_sandbox_flush_except(
                             f->sandbox, NULL, (const char *const[]){ "", NULL }, NULL, NULL, &err),
                     -PINFOLD_EVALUE);
    assert_false(came_home(f, "a"));
    /* What was asked for once does not stay. */
    flush(f, NULL, 1);
}

static void what_is_never_to_come_home_is_seeded_all_the_same(void **state)
{
    struct fixture *f = *state;
    char path[400];

    snprintf(path, sizeof(path), "%s/stays", f->work);
    assert_int_equal(access(path, F_OK), 0);
    put(f, "deep/stays/a");
    put(f, "stays.not");
    flush(f, NULL, 1);
    assert_true(came_home(f, "stays.not"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_path_is_left_alone_and_its_namesakes_are_not, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_path_is_no_pattern, setup, teardown),
        cmocka_unit_test_setup_teardown(without_paths_it_is_a_plain_flush, setup, teardown),
        cmocka_unit_test_setup_teardown(an_empty_path_is_refused_and_nothing_is_written, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(what_is_never_to_come_home_is_seeded_all_the_same, setup,
                                        teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
