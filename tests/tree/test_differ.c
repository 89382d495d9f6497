/* SPDX-License-Identifier: Apache-2.0 */
#include "tree/differ.h"

#include "tmp.h"
#include "tree/unified.h"

static struct pf_text text(const char *words)
{
    return (struct pf_text){ words, strlen(words) };
}

/* ---- the lines that differ ---- */

/* Unchanged lines must go together, and be equal. Returns how many are changed. */
static size_t check_diff(const struct pf_diff *diff)
{
    const struct pf_lines *a = &diff->old_side, *b = &diff->new_side;
    size_t x = 0, y = 0, changed = 0;

    for (;;) {
        while (x < a->count && a->changed[x])
            x++, changed++;
        while (y < b->count && b->changed[y])
            y++, changed++;
        if (x == a->count || y == b->count)
            break;
        assert_int_equal(a->starts[x + 1] - a->starts[x], b->starts[y + 1] - b->starts[y]);
        assert_memory_equal(a->data + a->starts[x], b->data + b->starts[y],
                            a->starts[x + 1] - a->starts[x]);
        x++, y++;
    }
    assert_int_equal(x, a->count);
    assert_int_equal(y, b->count);
    return changed;
}

static size_t count_changed(struct pf_text a, struct pf_text b)
{
    struct pf_diff diff;
    size_t changed;

    assert_int_equal(pf_diff_texts(a, b, &diff), 0);
    changed = check_diff(&diff);
    pf_diff_done(&diff);
    return changed;
}

/* The least possible, by the textbook's table, for texts of lines of one letter. */
static size_t least_changed(const char *a, const char *b)
{
    static unsigned short common[64][64];
    size_t n = strlen(a) / 2, m = strlen(b) / 2;

    memset(common, 0, sizeof(common));
    for (size_t i = 1; i <= n; i++)
        for (size_t j = 1; j <= m; j++)
            common[i][j] = a[2 * i - 2] == b[2 * j - 2] ? (unsigned short)(common[i - 1][j - 1] + 1)
                           : common[i - 1][j] > common[i][j - 1] ? common[i - 1][j]
                                                                 : common[i][j - 1];
    return n + m - 2U * common[n][m];
}

static unsigned next_random(unsigned *state)
{
    *state = *state * 1103515245U + 12345U;
    return *state >> 16;
}

static void fill(char *lines, unsigned *seed, unsigned letters)
{
    size_t n = next_random(seed) % 40;

    for (size_t i = 0; i < n; i++) {
        lines[2 * i] = (char)('a' + next_random(seed) % letters);
        lines[2 * i + 1] = '\n';
    }
    lines[2 * n] = '\0';
}

static void small_texts_differ_by_the_least_number_of_lines(void **state)
{
    char a[128], b[128];
    unsigned seed = 1;

    (void)state;
    for (unsigned i = 0; i < 3000; i++) {
        fill(a, &seed, 1 + i % 7);
        fill(b, &seed, 1 + i % 7);
        if (count_changed(text(a), text(b)) != least_changed(a, b))
            fail_msg("%s---\n%s: more lines than needed", a, b);
    }
}

static void a_last_line_without_its_end_is_another_line(void **state)
{
    (void)state;
    assert_int_equal(count_changed(text("a\nb"), text("a\nb")), 0);
    assert_int_equal(count_changed(text("a\nb"), text("a\nb\n")), 2);
    assert_int_equal(count_changed(text(""), text("")), 0);
    assert_int_equal(count_changed(text(""), text("\n")), 1);
    assert_int_equal(count_changed(text("x"), text("")), 1);
    assert_int_equal(count_changed((struct pf_text){ NULL, 0 }, text("x\ny\n")), 2);
}

/* Many lines, of few kinds, in an order that has nothing to do with the other's. */
static char *make_long(size_t lines, unsigned seed, unsigned letters)
{
    char *data = malloc(2 * lines + 1);

    assert_non_null(data);
    for (size_t i = 0; i < lines; i++) {
        data[2 * i] = (char)('a' + next_random(&seed) % letters);
        data[2 * i + 1] = '\n';
    }
    data[2 * lines] = '\0';
    return data;
}

static void long_texts_that_have_little_in_common_come_to_an_end(void **state)
{
    enum { LINES = 60000 };

    (void)state;
    for (unsigned letters = 2; letters <= 20; letters += 9) {
        char *a = make_long(LINES, 1, letters), *b = make_long(LINES, 2, letters);
        size_t changed = count_changed((struct pf_text){ a, 2 * LINES },
                                       (struct pf_text){ b, 2 * LINES - 14 });
        assert_in_range(changed, 1, 2 * LINES);
        free(a);
        free(b);
    }
}

static void a_long_text_with_few_changes_has_only_these(void **state)
{
    enum { LINES = 100000 };
    char *a = make_long(LINES, 3, 26), *b = strdup(a);

    (void)state;
    assert_non_null(b);
    for (size_t i = 500; i < LINES; i += 1000)
        b[2 * i] = 'A';
    assert_int_equal(
            count_changed((struct pf_text){ a, 2 * LINES }, (struct pf_text){ b, 2 * LINES }), 200);
    free(a);
    free(b);
}

/* ---- the text ---- */

static void check_unified(const char *path, struct pf_diff_side old_side,
                          struct pf_diff_side new_side, bool binary, const char *expected)
{
    struct pf_diff_file file = { path, old_side, new_side, 3 };
    struct pf_buf out = PF_BUF_INIT(PF_BUF_UNLIMITED);

    assert_int_equal(pf_unified_file(&out, &file, binary), 0);
    assert_string_equal(out.data, expected);
    pf_buf_done(&out);
}

#define REGULAR(words)       \
    (struct pf_diff_side)    \
    {                        \
        0100644, text(words) \
    }
#define NOTHING ((struct pf_diff_side){ 0, { NULL, 0 } })

static void hunks_have_three_lines_around_them_and_join_when_they_touch(void **state)
{
    (void)state;
    check_unified(
            "f", REGULAR("1\n2\n3\n4\n5\n6\n7\n8\n9\n"), REGULAR("1\n2\n3\n4\nX\n6\n7\n8\n9\n"),
            false,
            "diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+X\n 6\n 7\n"
            " 8\n");
    check_unified(
            "f", REGULAR("a\n1\n2\n3\n4\n5\n6\nb\n"), REGULAR("A\n1\n2\n3\n4\n5\n6\nB\n"), false,
            "diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1,8 +1,8 @@\n-a\n+A\n 1\n 2\n 3\n 4\n 5\n"
            " 6\n-b\n+B\n");
    check_unified("f", REGULAR("a\n1\n2\n3\n4\n5\n6\n7\nb\n"),
                  REGULAR("A\n1\n2\n3\n4\n5\n6\n7\nB\n"), false,
                  "diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1,4 +1,4 @@\n-a\n+A\n 1\n 2\n 3\n"
                  "@@ -6,4 +6,4 @@\n 5\n 6\n 7\n-b\n+B\n");
}

static void what_comes_goes_and_changes_its_mode_is_said_in_the_head(void **state)
{
    const struct pf_diff_side program = { 0100755, text("x\n") };

    (void)state;
    check_unified("f", NOTHING, program, false,
                  "diff --git a/f b/f\nnew file mode 100755\n--- /dev/null\n+++ b/f\n"
                  "@@ -0,0 +1 @@\n+x\n");
    check_unified("f", REGULAR("x\n"), NOTHING, false,
                  "diff --git a/f b/f\ndeleted file mode 100644\n--- a/f\n+++ /dev/null\n"
                  "@@ -1 +0,0 @@\n-x\n");
    check_unified("f", REGULAR("x\n"), program, false,
                  "diff --git a/f b/f\nold mode 100644\nnew mode 100755\n");
    check_unified("f", NOTHING, REGULAR(""), false, "diff --git a/f b/f\nnew file mode 100644\n");
    check_unified("f", REGULAR("x"), REGULAR("y"), true,
                  "diff --git a/f b/f\nold mode 100644\nnew mode 100644\n"
                  "Binary files a/f and b/f differ\n");
}

static void hostile_names_are_quoted_as_git_quotes_them(void **state)
{
    (void)state;
    check_unified("a\nb\t\"\\\xc3\xa4\x7f\x01", NOTHING, REGULAR(""), false,
                  "diff --git \"a/a\\nb\\t\\\"\\\\\\303\\244\\177\\001\" "
                  "\"b/a\\nb\\t\\\"\\\\\\303\\244\\177\\001\"\nnew file mode 100644\n");
    check_unified("a b", REGULAR("x\n"), REGULAR("y\n"), false,
                  "diff --git a/a b b/a b\n--- a/a b\t\n+++ b/a b\t\n@@ -1 +1 @@\n-x\n+y\n");
}

static void a_text_past_the_limit_is_refused_whole(void **state)
{
    struct pf_diff_file file = { "f", REGULAR("x\n"), REGULAR("y\n"), 3 };
    struct pf_buf out = PF_BUF_INIT(20);

    (void)state;
    assert_int_equal(pf_unified_file(&out, &file, false), -PINFOLD_EVALUE);
    pf_buf_done(&out);
}

static void a_nul_byte_makes_a_file_binary(void **state)
{
    static char late[9000];

    (void)state;
    memset(late, 'x', sizeof(late));
    late[8500] = '\0';
    assert_true(pf_text_is_binary((struct pf_text){ "a\0b", 3 }));
    assert_false(pf_text_is_binary((struct pf_text){ late, sizeof(late) }));
    assert_false(pf_text_is_binary((struct pf_text){ NULL, 0 }));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_texts_differ_by_the_least_number_of_lines),
        cmocka_unit_test(a_last_line_without_its_end_is_another_line),
        cmocka_unit_test(long_texts_that_have_little_in_common_come_to_an_end),
        cmocka_unit_test(a_long_text_with_few_changes_has_only_these),
        cmocka_unit_test(hunks_have_three_lines_around_them_and_join_when_they_touch),
        cmocka_unit_test(what_comes_goes_and_changes_its_mode_is_said_in_the_head),
        cmocka_unit_test(hostile_names_are_quoted_as_git_quotes_them),
        cmocka_unit_test(a_text_past_the_limit_is_refused_whole),
        cmocka_unit_test(a_nul_byte_makes_a_file_binary),
    };

    return cmocka_run_group_tests_name("differ", tests, NULL, NULL);
}
