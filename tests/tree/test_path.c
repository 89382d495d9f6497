/* SPDX-License-Identifier: Apache-2.0 */
#include "tmp.h"

#include <pinfold/backend.h>

#include "base/buf.h"

static void check(const char *path, const char *root, const char *expected)
{
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    char *clean = NULL;
    int r = pinfold_path_normalize(path, strlen(path), root, &clean, &err);

    if (r < 0)
        fail_msg("%s", err.msg);
    assert_string_equal(clean, expected);
    free(clean);
}

static void refuse(const char *path, size_t len, const char *root, const char *why)
{
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    char *clean = NULL;

    assert_int_equal(pinfold_path_normalize(path, len, root, &clean, &err), -PINFOLD_EPATH);
    assert_null(clean);
    if (!strstr(err.msg, why))
        fail_msg("says: %s", err.msg);
}

static void collapses_what_means_the_same(void **state)
{
    (void)state;
    check("a", "/ws", "a");
    check("./a", "/ws", "a");
    check("a//b", "/ws", "a/b");
    check("a/", "/ws", "a");
    check(".", "/ws", ".");
    check("./", NULL, ".");
    check("a/..", "/ws", ".");
    check("a/../b", "/ws", "b");
    check("a/b/../../c", "/ws", "c");
    check("a..b", "/ws", "a..b");
    check("...", "/ws", "...");
    check("~", "/ws", "~");
    check("~/x", "/ws", "~/x");
    check("a\\b", "/ws", "a\\b");
    check("\xff/\xfe", "/ws", "\xff/\xfe");
}

static void takes_absolute_paths_under_the_root(void **state)
{
    (void)state;
    check("/ws/a", "/ws", "a");
    check("/ws", "/ws", ".");
    check("/ws/", "/ws", ".");
    check("//ws/./a/../b", "/ws/", "b");
    check("/x/../ws/a", "/ws", "a");
    check("/a/b", "/", "a/b");
}

static void refuses_what_leaves_the_root_and_names_it(void **state)
{
    (void)state;
    refuse("..", 2, "/ws", "/ws");
    refuse("a/../..", 7, "/ws", "/ws");
    refuse("../ws/a", 7, "/ws", "leaves");
    refuse("/etc/passwd", 11, "/ws", "\"/ws\"");
    refuse("/wsx/a", 6, "/ws", "/ws");
    refuse("/ws/../etc", 10, "/ws", "/ws");
    refuse("/..", 3, "/ws", "/ws");
    refuse("/ws/a", 5, NULL, "relative");
    refuse("..", 2, NULL, "leaves");
}

static void refuses_empty_nul_and_long(void **state)
{
    char longer[5001];

    (void)state;
    memset(longer, 'x', 5000);
    longer[5000] = '\0';
    refuse("", 0, "/ws", "empty");
    refuse("a\0b", 3, "/ws", "NUL");
    refuse(longer, 5000, "/ws", "5000 bytes");
    longer[4095] = '\0';
    check(longer, "/ws", longer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(collapses_what_means_the_same),
        cmocka_unit_test(takes_absolute_paths_under_the_root),
        cmocka_unit_test(refuses_what_leaves_the_root_and_names_it),
        cmocka_unit_test(refuses_empty_nul_and_long),
    };

    return cmocka_run_group_tests_name("path", tests, NULL, NULL);
}
