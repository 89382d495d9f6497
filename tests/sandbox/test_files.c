/* SPDX-License-Identifier: Apache-2.0 */
/* File operations over a backend that has no rename, as remote ones do. */
#include "fake_backend.h"

struct fixture {
    struct fake fake;
    struct pinfold_backend *backend;
    struct pinfold_sandbox *sandbox;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    struct pinfold_sandbox_options options = PINFOLD_SANDBOX_OPTIONS_INIT;

    f->backend = fake_backend(&f->fake);
    options.workspace_id = "w";
    options.backend = f->backend;
    options.ttl_seconds = 10;
    assert_int_equal(pinfold_sandbox_new(&options, &f->sandbox, NULL), 0);
    assert_int_equal(pinfold_sandbox_start(f->sandbox, NULL, NULL, NULL), 0);
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

static void a_move_is_copied_verified_and_then_deleted(void **state)
{
    struct fixture *f = *state;
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    struct pinfold_bytes text = { 0 };

    put(f, "a", "one");
    assert_int_equal(pinfold_sandbox_move_file(f->sandbox, "a", "dir/b", NULL, &err), 0);
    assert_text(f, "dir/b", "one");
    assert_int_equal(pinfold_sandbox_read_file(f->sandbox, "a", &text, NULL, &err), -PINFOLD_EOS);
    assert_int_equal(err.sys_errno, ENOENT);
}

static void what_the_backend_cannot_do_at_once_is_not_tried(void **state)
{
    struct fixture *f = *state;
    struct pinfold_bytes text = { 0 };

    put(f, "a", "one");
    for (const char *const *path = (const char *const[]){ "a", "none", "../x", NULL }; *path;
         path++)
        assert_int_equal(pinfold_sandbox_try_read_file(f->sandbox, *path, &text), 0);
    assert_int_equal(pinfold_sandbox_stop(f->sandbox, false, NULL, NULL, NULL), 0);
    assert_int_equal(pinfold_sandbox_try_read_file(f->sandbox, "a", &text), 0);
}

static void a_move_onto_itself_keeps_the_file(void **state)
{
    struct fixture *f = *state;

    put(f, "a", "one");
    assert_int_equal(pinfold_sandbox_move_file(f->sandbox, "a", "./x/../a", NULL, NULL), 0);
    assert_text(f, "a", "one");
}

static void a_move_that_wrote_something_else_keeps_the_source(void **state)
{
    struct fixture *f = *state;
    struct pinfold_error err = PINFOLD_ERROR_INIT;

    put(f, "a", "one");
    f->fake.corrupt_writes = true;
    assert_int_equal(pinfold_sandbox_move_file(f->sandbox, "a", "b", NULL, &err),
                     -PINFOLD_EBACKEND);
    assert_non_null(strstr(err.msg, "source is kept"));
    assert_text(f, "a", "one");
}

static void add_files_tries_all_and_names_what_failed(void **state)
{
    struct fixture *f = *state;
    const struct pinfold_upload files[] = {
        { .path = "a", .data = "1", .len = 1 },
        { .path = "../out", .data = "2", .len = 1 },
        { .path = "/workspace/b", .data = "3", .len = 1 },
        { .path = "/etc/passwd", .data = "4", .len = 1 },
    };
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    struct pinfold_strings written = { 0 };

    assert_int_equal(pinfold_sandbox_add_files(f->sandbox, files, 4, true, &written, NULL, &err),
                     -PINFOLD_EPATH);
    assert_non_null(strstr(err.msg, "2 of 4 files failed"));
    assert_int_equal(written.count, 2);
    assert_string_equal(written.items[0], "a");
    assert_string_equal(written.items[1], "/workspace/b");
    assert_text(f, "b", "3");
    pinfold_strings_done(&written);
}

static void add_files_without_overwrite_leaves_what_is_there(void **state)
{
    struct fixture *f = *state;
    const struct pinfold_upload files[] = {
        { .path = "a", .data = "new", .len = 3 },
        { .path = "b", .data = "new", .len = 3 },
    };
    struct pinfold_strings written = { 0 };

    put(f, "a", "old");
    assert_int_equal(pinfold_sandbox_add_files(f->sandbox, files, 2, false, &written, NULL, NULL),
                     0);
    assert_int_equal(written.count, 1);
    assert_string_equal(written.items[0], "b");
    assert_text(f, "a", "old");
    pinfold_strings_done(&written);
}

static void delete_files_does_the_rest_and_reports_the_first(void **state)
{
    struct fixture *f = *state;
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    struct pinfold_bytes text = { 0 };

    put(f, "a", "1");
    put(f, "b", "2");
    assert_int_equal(
            pinfold_sandbox_delete_files(
                    f->sandbox, (const char *const[]){ "a", "missing", "b", NULL }, NULL, &err),
            -PINFOLD_EOS);
    assert_int_equal(err.sys_errno, ENOENT);
    assert_int_equal(pinfold_sandbox_read_file(f->sandbox, "b", &text, NULL, NULL), -PINFOLD_EOS);
}

static void lines_end_at_newlines_only(void **state)
{
    static const struct {
        int64_t offset, limit;
        const char *expected;
    } cases[] = {
        { 0, 1,
          "a\x0b"
          "b\r\n" },
        { 1, 1, "\n" },
        { 2, 9, "c" },
        { -5, 1,
          "a\x0b"
          "b\r\n" },
        { 0, 0, "" },
        { 0, -1, "" },
        { 3, 1, "" },
        { INT64_MAX, INT64_MAX, "" },
    };
    struct fixture *f = *state;
    struct pinfold_bytes text = { 0 };
    uint64_t lines = 0;

    put(f, "a",
        "a\x0b"
        "b\r\n\nc");
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(pinfold_sandbox_read_lines(f->sandbox, "a", cases[i].offset,
                                                    cases[i].limit, &text, &lines, NULL, NULL),
                         0);
        assert_string_equal(text.data, cases[i].expected);
        assert_int_equal(lines, 3);
        pinfold_bytes_done(&text);
    }
}

static void as_many_lines_as_fit_are_whole(void **state)
{
    static const struct {
        const char *text;
        size_t max, shown;
        uint64_t lines;
    } cases[] = {
        { "", 0, 0, 0 },
        { "", 9, 0, 0 },
        { "a\nb\nc", 9, 5, 3 },
        { "a\nb\nc", 5, 5, 3 },
        { "a\nb\ncd", 5, 4, 2 },
        { "a\nb\n", 3, 2, 1 },
        { "a\nb\n", 2, 2, 1 },
        { "\n\n\n", 2, 2, 2 },
        { "abc\nd\n", 3, 3, 1 },            /* a line alone is too long */
        { "a\xc3\xa4z\n", 2, 1, 1 },        /* no half of a character */
        { "\xf0\x9f\x98\x80z\n", 1, 4, 1 }, /* but one at least, or nobody would get on */
        { "abc", 0, 1, 1 },
        { "\nabc", 0, 1, 1 },
        { "abc", SIZE_MAX, 3, 1 },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char *data = strdup(cases[i].text);
        const struct pinfold_bytes text = { data, strlen(data) };
        uint64_t lines = 99;

        assert_int_equal(pinfold_fit_lines(&text, cases[i].max, &lines), cases[i].shown);
        assert_int_equal(lines, cases[i].lines);
        assert_int_equal(pinfold_fit_lines(&text, cases[i].max, NULL), cases[i].shown);
        free(data);
    }
}

static void binary_files_are_not_text(void **state)
{
    struct fixture *f = *state;
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    struct pinfold_bytes text = { 0 };

    assert_int_equal(pinfold_sandbox_write_file(f->sandbox, "a", "ok\xff\xfe", 4, NULL, NULL), 0);
    assert_int_equal(pinfold_sandbox_read_file(f->sandbox, "a", &text, NULL, &err),
                     -PINFOLD_EENCODING);
    assert_non_null(strstr(err.msg, "byte 2 of 4"));
    assert_non_null(strstr(err.msg, "download_files"));
    assert_null(text.data);
}

static void an_operation_that_the_backend_lacks_says_so(void **state)
{
    struct fixture *f = *state;
    struct pinfold_file_infos infos = { 0 };
    struct pinfold_error err = PINFOLD_ERROR_INIT;

    assert_int_equal(pinfold_sandbox_list_dir(f->sandbox, ".", &infos, NULL, &err),
                     -PINFOLD_ENOTSUP);
    assert_non_null(strstr(err.msg, "list_dir"));
    assert_int_equal(pinfold_sandbox_download_files(f->sandbox,
                                                    &(struct pinfold_download){ .path = "a" }, 1,
                                                    true, NULL, NULL, &err),
                     -PINFOLD_ENOTSUP);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_move_is_copied_verified_and_then_deleted, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_move_onto_itself_keeps_the_file, setup, teardown),
        cmocka_unit_test_setup_teardown(a_move_that_wrote_something_else_keeps_the_source, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(add_files_tries_all_and_names_what_failed, setup, teardown),
        cmocka_unit_test_setup_teardown(add_files_without_overwrite_leaves_what_is_there, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(delete_files_does_the_rest_and_reports_the_first, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(lines_end_at_newlines_only, setup, teardown),
        cmocka_unit_test_setup_teardown(as_many_lines_as_fit_are_whole, setup, teardown),
        cmocka_unit_test_setup_teardown(what_the_backend_cannot_do_at_once_is_not_tried, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(binary_files_are_not_text, setup, teardown),
        cmocka_unit_test_setup_teardown(an_operation_that_the_backend_lacks_says_so, setup,
                                        teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
