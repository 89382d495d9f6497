/* SPDX-License-Identifier: Apache-2.0 */
/* Changes, search, edits and moves over a backend that has no function for any of them. */
#include "fake_backend.h"

struct fixture {
    struct fake fake;
    struct pinfold_backend_ops table;
    struct pinfold_backend *backend;
    struct pinfold_sandbox *sandbox;
    bool meddle; /* somebody writes to a file after it was read */
    struct pinfold_error err;
};

static struct fixture *fixture;

static int read_and_meddle(void *state, const char *path, struct pinfold_bytes *ret,
                           struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    int r = fake_read_file(state, path, ret, cancel, err);

    if (r == 0 && fixture->meddle) {
        fixture->meddle = false;
        r = fake_write_file(state, path, "other", 5, false, cancel, err);
    }
    return r;
}

static int remove_no_directory(void *state, const char *path, struct pinfold_cancel *cancel,
                               struct pinfold_error *err)
{
    if (strcmp(path, "dir") == 0)
        return fake_fail(err, PINFOLD_EOS, EISDIR, "remove: a directory");
    return fake_remove_file(state, path, cancel, err);
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    struct pinfold_sandbox_options options = PINFOLD_SANDBOX_OPTIONS_INIT;

    assert_non_null(f);
    f->table = fake_ops;
    f->table.read_file = read_and_meddle;
    f->table.remove_file = remove_no_directory;
    f->table.execute = NULL;
    pthread_mutex_init(&f->fake.lock, NULL);
    pthread_cond_init(&f->fake.changed, NULL);
    assert_int_equal(pinfold_backend_new(&f->table, &f->fake, "fake", &f->backend, NULL), 0);
    options.workspace_id = "w";
    options.backend = f->backend;
    options.ttl_seconds = 3600;
    assert_int_equal(pinfold_sandbox_new(&options, &f->sandbox, NULL), 0);
    assert_int_equal(pinfold_sandbox_start(f->sandbox, NULL, NULL, NULL), 0);
    fixture = f;
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    pinfold_sandbox_free(f->sandbox);
    pinfold_backend_unref(f->backend);
    fake_clear(&f->fake);
    free(f);
    return 0;
}

static void put(struct fixture *f, const char *path, const char *text)
{
    assert_int_equal(pinfold_sandbox_write_file(f->sandbox, path, text, strlen(text), NULL, NULL),
                     0);
}

static void assert_text(struct fixture *f, const char *path, const char *expected)
{
    struct pinfold_bytes text = { 0 };

    assert_int_equal(pinfold_sandbox_read_file(f->sandbox, path, &text, NULL, NULL), 0);
    assert_string_equal(text.data, expected);
    pinfold_bytes_done(&text);
}

static int edit(struct fixture *f, const char *path, const char *from, const char *to)
{
    struct pinfold_edit_options options = PINFOLD_EDIT_OPTIONS_INIT;

    options.path = path;
    options.old_text = from;
    options.new_text = to;
    return pinfold_sandbox_edit(f->sandbox, &options, NULL, NULL, &f->err);
}

static void an_edit_looks_again_before_it_writes(void **state)
{
    struct fixture *f = *state;

    put(f, "a", "one two");
    assert_int_equal(edit(f, "a", "two", "2"), 0);
    assert_text(f, "a", "one 2");
    f->meddle = true;
    assert_int_equal(edit(f, "a", "one", "1"), -PINFOLD_EOS);
    assert_int_equal(f->err.sys_errno, EAGAIN);
    assert_int_equal(f->err.retryable, 1);
    assert_text(f, "a", "other");
}

static void an_edit_with_options_of_another_size_is_refused(void **state)
{
    struct fixture *f = *state;
    struct pinfold_edit_options options = {
        .size = 3, .path = "a", .old_text = "x", .new_text = "y"
    };

    assert_int_equal(pinfold_sandbox_edit(f->sandbox, &options, NULL, NULL, &f->err),
                     -PINFOLD_EVALUE);
    options = (struct pinfold_edit_options)PINFOLD_EDIT_OPTIONS_INIT;
    assert_int_equal(pinfold_sandbox_edit(f->sandbox, &options, NULL, NULL, &f->err),
                     -PINFOLD_EVALUE);
}

static void directories_need_a_function_or_a_command(void **state)
{
    struct fixture *f = *state;

    put(f, "a", "a");
    assert_int_equal(
            pinfold_sandbox_delete(f->sandbox, "dir", PINFOLD_DELETE_RECURSIVE, NULL, &f->err),
            -PINFOLD_ENOTSUP);
    assert_int_equal(pinfold_sandbox_delete(f->sandbox, "a", 0, NULL, &f->err), 0);
    put(f, "a", "a");
    assert_int_equal(
            pinfold_sandbox_move(f->sandbox, "a", "b", PINFOLD_MOVE_NO_REPLACE, NULL, &f->err),
            -PINFOLD_ENOTSUP);
    assert_text(f, "a", "a");
}

static int search(struct fixture *f, bool everything)
{
    struct pinfold_search_options options = PINFOLD_SEARCH_OPTIONS_INIT;
    struct pinfold_search_result result = { 0 };
    int r;

    options.text = "x";
    options.everything = everything;
    r = pinfold_sandbox_search(f->sandbox, &options, &result, NULL, &f->err);
    if (r == 0)
        r = (int)result.errors.count;
    pinfold_search_result_done(&result);
    return r;
}

static int find_changes(struct fixture *f, bool everything)
{
    struct pinfold_changes_options options = PINFOLD_CHANGES_OPTIONS_INIT;
    struct pinfold_changes changes = { 0 };
    int r;

    options.everything = everything;
    r = pinfold_sandbox_changes(f->sandbox, &options, &changes, NULL, &f->err);
    if (r == 0)
        r = (int)changes.errors.count;
    pinfold_changes_done(&changes);
    return r;
}

static void what_has_to_be_fetched_is_what_is_asked_for(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(find_changes(f, false), 0);
    assert_string_equal(f->fake.last_include, pinfold_default_sync_includes[0]);
    assert_non_null(strstr(f->fake.last_exclude, "*.pem"));
    assert_int_equal(search(f, false), 0);
    assert_string_equal(f->fake.last_include, "*");
    assert_non_null(strstr(f->fake.last_exclude, "*.pem"));
    assert_int_equal(search(f, true), 0);
    assert_string_equal(f->fake.last_exclude, "");
    assert_int_equal(find_changes(f, true), 0);
    assert_string_equal(f->fake.last_exclude, "");
    assert_int_equal(access(f->fake.last_dest, F_OK), -1); /* nothing of it is left */
}

static void what_cannot_be_fetched_is_an_error(void **state)
{
    struct fixture *f = *state;

    f->fake.sync_errors = 2;
    assert_int_equal(search(f, false), 2);
    assert_int_equal(find_changes(f, false), 2);
    f->fake.fail_sync = 1;
    assert_int_equal(search(f, false), -PINFOLD_EPREPARE);
    assert_non_null(strstr(f->err.msg, "fetch the workspace"));
    assert_int_equal(find_changes(f, false), -PINFOLD_EPREPARE);
}

static void nothing_works_on_a_sandbox_that_is_not_started(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(pinfold_sandbox_stop(f->sandbox, false, NULL, NULL, NULL), 0);
    assert_int_equal(edit(f, "a", "x", "y"), -PINFOLD_ESTART);
    assert_int_equal(search(f, false), -PINFOLD_ESTART);
    assert_int_equal(find_changes(f, false), -PINFOLD_ESTART);
    assert_int_equal(pinfold_sandbox_delete(f->sandbox, "a", 0, NULL, &f->err), -PINFOLD_ESTART);
    assert_int_equal(pinfold_sandbox_move(f->sandbox, "a", "b", 0, NULL, &f->err), -PINFOLD_ESTART);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_edit_looks_again_before_it_writes),
        TEST(an_edit_with_options_of_another_size_is_refused),
        TEST(directories_need_a_function_or_a_command),
        TEST(what_has_to_be_fetched_is_what_is_asked_for),
        TEST(what_cannot_be_fetched_is_an_error),
        TEST(nothing_works_on_a_sandbox_that_is_not_started),
    };

    return cmocka_run_group_tests_name("changes", tests, NULL, NULL);
}
