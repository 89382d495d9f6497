/* SPDX-License-Identifier: Apache-2.0 */
/* Rows 33 to 44 of the semantics: paths that others wrote, and reading. */
#include "spec.h"

#define LIST(...) ((const char *const[]){ __VA_ARGS__, NULL })

static void normal_is(struct spec *s, const char *path, const char *root, const char *expected)
{
    char *normal = NULL;

    spec_ok(s, pinfold_path_normalize(path, strlen(path), root, &normal, &s->err));
    assert_string_equal(normal, expected);
    free(normal);
}

static void not_normal(struct spec *s, const char *path, size_t len, const char *root)
{
    char *normal = NULL;

    spec_refuses(s, PINFOLD_EPATH, pinfold_path_normalize(path, len, root, &normal, &s->err));
    assert_null(normal);
}

static void write_text(struct spec *s, const char *path, const char *text)
{
    spec_ok(s, pinfold_sandbox_write_file(s->sandbox, path, text, strlen(text), NULL, &s->err));
}

static void reads(struct spec *s, const char *path, const char *text)
{
    pinfold_bytes_done(&s->text);
    spec_ok(s, pinfold_sandbox_read_file(s->sandbox, path, &s->text, NULL, &s->err));
    assert_int_equal(s->text.len, strlen(text));
    assert_string_equal(s->text.data, text);
}

static void row_033_dots_are_collapsed_and_what_escapes_is_refused(void **state)
{
    struct spec *s = *state;
    static const char *const escapes[] = { "..",          "../x",           "a/../..",
                                           "a/../../b",   "a/b/../../../c", "./..",
                                           "a/../../ws/b" };

    normal_is(s, "a/../b", NULL, "b");
    normal_is(s, "a/..", NULL, ".");
    normal_is(s, "a..b", NULL, "a..b");
    normal_is(s, "..a/b..", NULL, "..a/b..");
    normal_is(s, ".../x", NULL, ".../x");
    for (size_t i = 0; i < sizeof(escapes) / sizeof(*escapes); i++)
        not_normal(s, escapes[i], strlen(escapes[i]), "/w");
    spec_start_plain(s);
    write_text(s, "not/there/../../b.txt", "b"); /* lexically: b.txt */
    spec_is(s, "ws/b.txt", "b");
    spec_missing(s, "ws/not");
    write_text(s, "a..b", "ab");
    spec_is(s, "ws/a..b", "ab");
}

static void row_034_an_absolute_path_must_lie_under_the_root(void **state)
{
    struct spec *s = *state;
    char path[256];

    normal_is(s, "/w/a", "/w", "a");
    normal_is(s, "/w", "/w", ".");
    normal_is(s, "//w//a/", "/w", "a");
    not_normal(s, "/wx/a", 5, "/w");
    not_normal(s, "/w/../etc", 9, "/w");
    not_normal(s, "/etc/passwd", 11, "/w");
    not_normal(s, "/a", 2, NULL);
    spec_start_plain(s);
    write_text(s, spec_inside(s, "ws/abs.txt"), "abs");
    spec_is(s, "ws/abs.txt", "abs");
    snprintf(path, sizeof(path), "/abs-%s", strrchr(s->dir, '-') + 1);
    spec_refuses(s, PINFOLD_EPATH,
                 pinfold_sandbox_write_file(s->sandbox, path, "x", 1, NULL, &s->err));
    assert_non_null(strstr(s->err.msg, spec_inside(s, "ws"))); /* names the root */
    assert_int_equal(access(path, F_OK), -1);                  /* neither there ... */
    assert_int_equal(spec_entries(s, "ws"), 1);                /* ... nor remapped into the root */
}

static void row_034_what_pwd_prints_is_accepted(void **state)
{
    struct spec *s = *state;

    spec_dir(s, "real");
    spec_link(s, "real", "alias");
    spec_local(s, &(struct pinfold_local_options){ .size = sizeof(struct pinfold_local_options),
                                                   .workspace_root = spec_at(s, "alias") });
    spec_start_plain(s);
    write_text(s, "sub/f", "f");
    spec_run(s, "cd sub && printf %s/f \"$(pwd -P)\"");
    assert_int_equal(s->run.exit_code, 0);
    s->run.output[s->run.stdout_len] = '\0';
    reads(s, s->run.output, "f");
}

/* Every operation must refuse path without touching what it leads to. */
static void all_refuse(struct spec *s, const char *path)
{
    struct pinfold_file_infos infos = { 0 };
    struct pinfold_transfer_results results = { 0 };
    struct pinfold_upload up = { .path = path, .data = "evil", .len = 4 };
    struct pinfold_download down = { .path = path };
    struct pinfold_execute_options run = PINFOLD_EXECUTE_OPTIONS_INIT;

    run.command = "echo evil > made";
    run.cwd = path;
    spec_refuses(s, PINFOLD_EPATH,
                 pinfold_sandbox_read_file(s->sandbox, path, &s->text, NULL, &s->err));
    spec_refuses(s, PINFOLD_EPATH,
                 pinfold_sandbox_read_lines(s->sandbox, path, 0, 9, &s->text, NULL, NULL, &s->err));
    spec_refuses(s, PINFOLD_EPATH,
                 pinfold_sandbox_write_file(s->sandbox, path, "evil", 4, NULL, &s->err));
    spec_refuses(s, PINFOLD_EPATH,
                 pinfold_sandbox_list_dir(s->sandbox, path, &infos, NULL, &s->err));
    spec_refuses(s, PINFOLD_EPATH,
                 pinfold_sandbox_add_files(s->sandbox, &up, 1, true, NULL, NULL, &s->err));
    spec_refuses(
            s, PINFOLD_EPATH,
            pinfold_sandbox_download_files(s->sandbox, &down, 1, true, &results, NULL, &s->err));
    pinfold_transfer_results_done(&results);
    spec_refuses(s, PINFOLD_EPATH,
                 pinfold_sandbox_delete_files(s->sandbox, LIST(path), NULL, &s->err));
    spec_refuses(s, PINFOLD_EPATH,
                 pinfold_sandbox_move_file(s->sandbox, path, "taken", NULL, &s->err));
    spec_refuses(s, PINFOLD_EPATH,
                 pinfold_sandbox_move_file(s->sandbox, "mine", path, NULL, &s->err));
    spec_refuses(s, PINFOLD_EPATH,
                 pinfold_sandbox_execute(s->sandbox, &run, &s->run, NULL, &s->err));
}

static void row_035_no_link_on_the_way_leads_out(void **state)
{
    struct spec *s = *state;

    spec_start_plain(s);
    spec_put(s, "outside/file", "secret");
    spec_put(s, "ws/mine", "mine");
    spec_link(s, "../outside", "ws/relative");
    spec_link(s, spec_at(s, "outside"), "ws/absolute");
    spec_link(s, "relative", "ws/chain");
    spec_link(s, "..", "ws/up");
    spec_dir(s, "ws/in");
    spec_link(s, "../../outside", "ws/in/deep");
    all_refuse(s, "relative/file");
    all_refuse(s, "absolute/file");
    all_refuse(s, "chain/file");
    all_refuse(s, "in/deep/file");
    all_refuse(s, "up/outside/file");
    all_refuse(s, "relative/new");
    assert_int_equal(spec_entries(s, "outside"), 1);
    spec_is(s, "outside/file", "secret");
    spec_is(s, "ws/mine", "mine");
    spec_missing(s, "ws/taken");
}

static void row_035_links_of_the_proc_file_system_lead_nowhere(void **state)
{
    struct spec *s = *state;
    char target[64];

    spec_start_plain(s);
    snprintf(target, sizeof(target), "/proc/%ld/root/etc", (long)getpid());
    spec_link(s, target, "ws/magic");
    spec_refuses(s, PINFOLD_EPATH,
                 pinfold_sandbox_read_file(s->sandbox, "magic/passwd", &s->text, NULL, &s->err));
}

static void row_036_a_final_link_inside_the_root_is_followed(void **state)
{
    struct spec *s = *state;

    spec_start_plain(s);
    spec_put(s, "ws/CLAUDE.md", "c");
    spec_link(s, "CLAUDE.md", "ws/AGENTS.md");
    spec_put(s, "ws/d/f", "f");
    spec_link(s, "d", "ws/dl");
    spec_link(s, "../CLAUDE.md", "ws/d/up");
    reads(s, "AGENTS.md", "c");
    reads(s, "dl/f", "f");
    reads(s, "dl/up", "c");
    write_text(s, "AGENTS.md", "written through");
    spec_is(s, "ws/CLAUDE.md", "written through");
    assert_true(S_ISLNK(spec_stat(s, "ws/AGENTS.md").st_mode));
}

static void row_036_a_final_link_to_the_outside_is_not(void **state)
{
    struct spec *s = *state;

    spec_start_plain(s);
    spec_put(s, "outside", "secret");
    spec_link(s, "../outside", "ws/link");
    spec_refuses(s, PINFOLD_EPATH,
                 pinfold_sandbox_read_file(s->sandbox, "link", &s->text, NULL, &s->err));
    pinfold_sandbox_write_file(s->sandbox, "link", "evil", 4, NULL, NULL);
    spec_is(s, "outside", "secret");
}

static void row_037_a_bad_path_is_a_path_error_everywhere_and_kills_nothing(void **state)
{
    struct spec *s = *state;

    assert_string_equal(pinfold_code_name(PINFOLD_EPATH), "SandboxPathError");
    spec_start_plain(s);
    spec_put(s, "ws/mine", "mine");
    spec_put(s, "x", "outside");
    all_refuse(s, "../x");
    all_refuse(s, "/etc/hostname");
    spec_is(s, "x", "outside");
    reads(s, "mine", "mine"); /* the sandbox goes on */
    spec_run(s, "echo on");
    spec_stdout_is(s, "on\n");
}

static void row_038_spellings_of_one_path_are_one_path(void **state)
{
    struct spec *s = *state;

    normal_is(s, ".", NULL, ".");
    normal_is(s, "./a", NULL, "a");
    normal_is(s, "a//b", NULL, "a/b");
    normal_is(s, "a/", NULL, "a");
    normal_is(s, "a/./b/.", NULL, "a/b");
    normal_is(s, "~", NULL, "~");
    normal_is(s, "~root/x", NULL, "~root/x");
    not_normal(s, "", 0, NULL);
    not_normal(s, "a\0b", 3, NULL);
    not_normal(s, "a\0", 2, NULL);
    spec_start_plain(s);
    write_text(s, "~/x", "tilde");
    spec_is(s, "ws/~/x", "tilde");
    write_text(s, "./d//f", "f");
    reads(s, "d/f", "f");
    reads(s, "d/./f", "f");
}

static void row_038_the_empty_path_is_the_root_for_list_dir_alone(void **state)
{
    struct spec *s = *state;
    struct pinfold_file_infos infos = { 0 };

    spec_start_plain(s);
    spec_put(s, "ws/f", "f");
    spec_ok(s, pinfold_sandbox_list_dir(s->sandbox, "", &infos, NULL, &s->err));
    assert_int_equal(infos.count, 1);
    assert_string_equal(infos.items[0].path, "f");
    pinfold_file_infos_done(&infos);
    spec_refuses(s, PINFOLD_EPATH,
                 pinfold_sandbox_read_file(s->sandbox, "", &s->text, NULL, &s->err));
    spec_refuses(s, PINFOLD_EPATH,
                 pinfold_sandbox_write_file(s->sandbox, "", "x", 1, NULL, &s->err));
    spec_refuses(s, PINFOLD_EPATH,
                 pinfold_sandbox_delete_files(s->sandbox, LIST(""), NULL, &s->err));
    assert_true(pinfold_sandbox_read_file(s->sandbox, ".", &s->text, NULL, &s->err) < 0);
    assert_true(pinfold_sandbox_write_file(s->sandbox, ".", "x", 1, NULL, &s->err) < 0);
}

static void row_038_a_path_of_5000_bytes_is_refused_by_name(void **state)
{
    struct spec *s = *state;
    char path[5001];

    memset(path, 'p', 5000);
    path[5000] = '\0';
    for (size_t i = 100; i < 5000; i += 100)
        path[i] = '/';
    not_normal(s, path, 5000, NULL);
    path[4096] = '\0';
    not_normal(s, path, 4096, NULL);
    normal_is(s, (path[4095] = '\0', path), NULL, path);
    path[4095] = 'p';
    spec_start_plain(s);
    spec_refuses(s, PINFOLD_EPATH,
                 pinfold_sandbox_read_file(s->sandbox, path, &s->text, NULL, &s->err));
    assert_non_null(strstr(s->err.msg, "ppp"));
}

static void row_039_a_binary_file_is_no_text_but_can_be_downloaded(void **state)
{
    static const char png[] = "\x89PNG\r\n\0\x1a\xff";
    struct spec *s = *state;
    struct pinfold_download file = { .path = "p.png" };
    struct pinfold_transfer_results results = { 0 };

    spec_start_plain(s);
    spec_put_bytes(s, "ws/p.png", png, sizeof(png));
    spec_refuses(s, PINFOLD_EENCODING,
                 pinfold_sandbox_read_file(s->sandbox, "p.png", &s->text, NULL, &s->err));
    assert_non_null(strstr(s->err.msg, "p.png"));
    assert_non_null(strstr(s->err.msg, "download_files"));
    assert_string_equal(pinfold_code_name(s->err.code), "UnicodeDecodeError");
    spec_refuses(
            s, PINFOLD_EENCODING,
            pinfold_sandbox_read_lines(s->sandbox, "p.png", 0, 9, &s->text, NULL, NULL, &s->err));
    spec_ok(s, pinfold_sandbox_download_files(s->sandbox, &file, 1, true, &results, NULL, &s->err));
    assert_int_equal(results.count, 1);
    assert_int_equal(results.items[0].content.len, sizeof(png));
    assert_memory_equal(results.items[0].content.data, png, sizeof(png));
    pinfold_transfer_results_done(&results);
}

static void row_040_line_ends_and_byte_order_marks_are_kept(void **state)
{
    static const char text[] = "\xef\xbb\xbf"
                               "a\r\nb\n\rc\r";
    struct spec *s = *state;

    spec_start_plain(s);
    write_text(s, "w", text);
    spec_is(s, "ws/w", text);
    spec_put(s, "ws/r", text);
    reads(s, "r", text);
    pinfold_bytes_done(&s->text);
    spec_ok(s, pinfold_sandbox_read_lines(s->sandbox, "r", 0, 1, &s->text, NULL, NULL, &s->err));
    assert_string_equal(s->text.data, "\xef\xbb\xbf"
                                      "a\r\n");
}

static void lines_are(struct spec *s, int64_t offset, int64_t limit, const char *text,
                      uint64_t count)
{
    uint64_t lines = 99;

    pinfold_bytes_done(&s->text);
    spec_ok(s, pinfold_sandbox_read_lines(s->sandbox, "f", offset, limit, &s->text, &lines, NULL,
                                          &s->err));
    assert_int_equal(s->text.len, strlen(text));
    assert_memory_equal(s->text.data ? s->text.data : "", text, strlen(text));
    assert_int_equal(lines, count);
}

static void row_041_lines_end_at_newline_only_and_keep_it(void **state)
{
    static const char first[] = "a\x0b"
                                "b\x0c"
                                "c\x1c"
                                "d\xc2\x85"
                                "e\xe2\x80\xa8"
                                "f\rg\n";
    struct spec *s = *state;
    char text[64];

    spec_start_plain(s);
    snprintf(text, sizeof(text), "%ssecond\n\nlast", first);
    spec_put(s, "ws/f", text);
    lines_are(s, 0, 1, first, 4);
    lines_are(s, 1, 1, "second\n", 4);
    lines_are(s, 1, 2, "second\n\n", 4);
    lines_are(s, 3, 5, "last", 4);
    lines_are(s, 0, INT64_MAX, text, 4);
}

static void row_042_offsets_and_limits_out_of_range_give_what_there_is(void **state)
{
    struct spec *s = *state;

    spec_start_plain(s);
    spec_put(s, "ws/f", "one\ntwo\n");
    lines_are(s, -5, 1, "one\n", 2);
    lines_are(s, INT64_MIN, INT64_MAX, "one\ntwo\n", 2);
    lines_are(s, 0, 0, "", 2);
    lines_are(s, 0, -1, "", 2);
    lines_are(s, 2, 9, "", 2);
    lines_are(s, INT64_MAX, INT64_MAX, "", 2);
}

static void row_043_an_empty_file_is_an_empty_text(void **state)
{
    struct spec *s = *state;

    spec_start_plain(s);
    spec_put(s, "ws/f", "");
    spec_ok(s, pinfold_sandbox_read_file(s->sandbox, "f", &s->text, NULL, &s->err));
    assert_int_equal(s->text.len, 0);
    lines_are(s, 0, 9, "", 0);
}

static void row_044_the_library_reads_whole_whatever_the_size(void **state)
{
    enum { SIZE = 3000000 };
    struct spec *s = *state;
    char *text = malloc(SIZE);

    assert_non_null(text);
    for (size_t i = 0; i < SIZE; i++)
        text[i] = i % 80 == 79 ? '\n' : (char)('a' + i % 26);
    spec_start_plain(s);
    spec_put_bytes(s, "ws/f", text, SIZE);
    spec_ok(s, pinfold_sandbox_read_file(s->sandbox, "f", &s->text, NULL, &s->err));
    bool same = s->text.len == SIZE && memcmp(s->text.data, text, SIZE) == 0;
    free(text);
    assert_true(same);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SPEC_TEST(row_033_dots_are_collapsed_and_what_escapes_is_refused),
        SPEC_TEST(row_034_an_absolute_path_must_lie_under_the_root),
        SPEC_TEST(row_034_what_pwd_prints_is_accepted),
        SPEC_TEST(row_035_no_link_on_the_way_leads_out),
        SPEC_TEST(row_035_links_of_the_proc_file_system_lead_nowhere),
        SPEC_TEST(row_036_a_final_link_inside_the_root_is_followed),
        SPEC_TEST(row_036_a_final_link_to_the_outside_is_not),
        SPEC_TEST(row_037_a_bad_path_is_a_path_error_everywhere_and_kills_nothing),
        SPEC_TEST(row_038_spellings_of_one_path_are_one_path),
        SPEC_TEST(row_038_the_empty_path_is_the_root_for_list_dir_alone),
        SPEC_TEST(row_038_a_path_of_5000_bytes_is_refused_by_name),
        SPEC_TEST(row_039_a_binary_file_is_no_text_but_can_be_downloaded),
        SPEC_TEST(row_040_line_ends_and_byte_order_marks_are_kept),
        SPEC_TEST(row_041_lines_end_at_newline_only_and_keep_it),
        SPEC_TEST(row_042_offsets_and_limits_out_of_range_give_what_there_is),
        SPEC_TEST(row_043_an_empty_file_is_an_empty_text),
        SPEC_TEST(row_044_the_library_reads_whole_whatever_the_size),
    };

    return spec_run_tests("rows 33-44", tests);
}
