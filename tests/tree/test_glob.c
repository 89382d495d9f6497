/* SPDX-License-Identifier: Apache-2.0 */
#include "tmp.h"

#include "tree/glob.h"

static int match(const char *pattern, const char *path, bool is_dir)
{
    const char *const patterns[] = { pattern, NULL };
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    struct pf_globs *globs = NULL;
    int r = pf_globs_new(patterns, &globs, &err);

    if (r < 0)
        fail_msg("%s", err.msg);
    r = pf_globs_match(globs, path, strlen(path), is_dir);
    pf_globs_free(globs);
    return r;
}

#define YES(pattern, path) assert_int_equal(match(pattern, path, false), 1)
#define NO(pattern, path) assert_int_equal(match(pattern, path, false), 0)
#define YES_DIR(pattern, path) assert_int_equal(match(pattern, path, true), 1)
#define NO_DIR(pattern, path) assert_int_equal(match(pattern, path, true), 0)

static void a_name_matches_at_any_depth(void **state)
{
    (void)state;
    YES(".env", ".env");
    YES(".env", "a/b/.env");
    NO(".env", ".env.local");
    NO(".env", "a.env");
    YES("*.pem", "x/y.pem");
    YES("*.md", ".github/x.md");
    YES("*.py", ".hidden.py");
    YES("*.md", ".md");
    NO("*.md", "a.mdx");
}

static void a_trailing_slash_wants_a_directory(void **state)
{
    (void)state;
    YES_DIR("secrets/", "secrets");
    YES_DIR("secrets/", "a/secrets");
    NO("secrets/", "secrets");
    NO("secrets/", "secrets/x"); /* the walker prunes; see pinfold_patterns_match() */
}

static void an_inner_or_leading_slash_anchors(void **state)
{
    (void)state;
    YES("src/a.c", "src/a.c");
    NO("src/a.c", "lib/src/a.c");
    YES("/a.c", "a.c");
    NO("/a.c", "x/a.c");
    YES_DIR("/build/", "build");
    NO_DIR("/build/", "x/build");
    YES("./a.c", "a.c");
    NO("./a.c", "x/a.c");
    YES("a//b", "a/b");
}

static void two_stars_span_directories(void **state)
{
    (void)state;
    YES("src/**", "src/a");
    YES("src/**", "src/a/b/c");
    NO_DIR("src/**", "src");
    NO("src/**", "lib/src/a");
    YES("**/a", "a");
    YES("**/a", "x/y/a");
    YES("a/**/b", "a/b");
    YES("a/**/b", "a/x/y/b");
    NO("a/**/b", "a/x/y/c");
    YES("a/**/b/**/c", "a/x/b/b/y/c");
    NO("a/**/b/**/c", "a/x/y/c");
    YES("**", "a/b");
    YES_DIR("a/**/", "a/b");
    NO("a/**/", "a/b");
    NO("foo**bar", "foo/bar");
    YES("foo**bar", "fooxbar");
}

static void wildcards_stay_inside_a_component(void **state)
{
    (void)state;
    NO("a/*", "a/b/c");
    YES("a/*", "a/.b");
    YES("a/?", "a/b");
    NO("a?b", "a/b");
    NO("a/[^x]/c", "a/x/c");
    YES("a/[^x]/c", "a/y/c");
    NO("a[^x]c", "a/c");
}

static void sets_have_ranges_classes_and_escapes(void **state)
{
    (void)state;
    YES("[a-c]x", "bx");
    NO("[a-c]x", "dx");
    YES("[!a-c]x", "dx");
    NO("[^a-c]x", "ax");
    YES("[]]", "]");
    YES("[!]]", "a");
    NO("[!]]", "]");
    YES("[a-]", "-");
    YES("[\\]]", "]");
    YES("[[:digit:][:upper:]_]", "7");
    YES("[[:digit:][:upper:]_]", "Q");
    YES("[[:digit:][:upper:]_]", "_");
    NO("[[:digit:][:upper:]_]", "q");
    YES("[[:space:]]", " ");
    YES("[[:punct:]]", "`");
    NO("[[:alpha:]]", "\xe4"); /* bytewise, whatever the locale */
    YES("\\*", "*");
    NO("\\*", "a");
    YES("\\!a", "!a");
    YES("a\\b", "ab");
    YES("#x", "#x");
    YES("\xff*", "\xff\xfe");
}

static void refuse(const char *pattern, const char *why)
{
    const char *const patterns[] = { "ok", pattern, NULL };
    struct pinfold_error err = PINFOLD_ERROR_INIT;

    assert_int_equal(pinfold_patterns_check(patterns, &err), -PINFOLD_EVALUE);
    if (!strstr(err.msg, why))
        fail_msg("\"%s\" says: %s", pattern, err.msg);
    if (*pattern && strlen(pattern) < 20 && !strchr(pattern, '\\'))
        assert_non_null(strstr(err.msg, pattern));
}

static void malformed_patterns_are_refused_by_name(void **state)
{
    (void)state;
    refuse("", "empty");
    refuse("!a", "'!'");
    refuse("../a", "\"..\"");
    refuse("a/../b", "\"..\"");
    refuse("a/..", "\"..\"");
    refuse("a/\\.\\./b", "\"..\"");
    refuse("/", "nothing");
    refuse("./", "nothing");
    refuse("[a", "']'");
    refuse("[a/b]", "']'");
    refuse("[[:nope:]]", "class");
    refuse("a\\", "'\\'");
    assert_int_equal(pinfold_patterns_check(NULL, NULL), 0);
}

static void paths_below_a_match_match(void **state)
{
    const char *const patterns[] = { "secrets/", "src/**", NULL };

    (void)state;
    assert_int_equal(pinfold_patterns_match(patterns, "a/secrets/x/y", false, NULL), 1);
    assert_int_equal(pinfold_patterns_match(patterns, "secrets", false, NULL), 0);
    assert_int_equal(pinfold_patterns_match(patterns, "secrets/", false, NULL), 1);
    assert_int_equal(pinfold_patterns_match(patterns, "src", true, NULL), 0);
    assert_int_equal(pinfold_patterns_match(patterns, "src/a", false, NULL), 1);
    assert_int_equal(pinfold_patterns_match(patterns, "", false, NULL), 0);
    assert_int_equal(pinfold_patterns_match(NULL, "a", false, NULL), 0);
}

static void the_defaults_mean_what_they_say(void **state)
{
    const char *const *sync = pinfold_default_sync_policy().sync_include_patterns;
    const char *const *seed = pinfold_default_sync_policy().exclude_patterns;

    (void)state;
    assert_int_equal(pinfold_patterns_match(seed, "a/secrets/key", false, NULL), 1);
    assert_int_equal(pinfold_patterns_match(seed, "x/node_modules/y/z.js", false, NULL), 1);
    assert_int_equal(pinfold_patterns_match(seed, ".env.local", false, NULL), 0);
    assert_int_equal(pinfold_patterns_match(sync, "Makefile", false, NULL), 0);
    assert_int_equal(pinfold_patterns_match(sync, "deep/x.yml", false, NULL), 1);
    assert_int_equal(pinfold_patterns_match(sync, "src/main.c", false, NULL), 1);
    assert_int_equal(pinfold_patterns_match(sync, "lib/main.c", false, NULL), 0);
}

static int below(const char *pattern, const char *path)
{
    const char *const patterns[] = { pattern, NULL };
    struct pf_globs *globs = NULL;
    int r;

    assert_int_equal(pf_globs_new(patterns, &globs, NULL), 0);
    r = pf_globs_could_match_below(globs, path, strlen(path));
    pf_globs_free(globs);
    return r;
}

static void says_where_nothing_can_match(void **state)
{
    (void)state;
    assert_int_equal(below("*.md", "any/where"), 1);
    assert_int_equal(below("src/**", "src"), 1);
    assert_int_equal(below("src/**", "lib"), 0);
    assert_int_equal(below("src/**", "src/deep/er"), 1);
    assert_int_equal(below("a/b/c", "a"), 1);
    assert_int_equal(below("a/b/c", "a/b"), 1);
    assert_int_equal(below("a/b/c", "a/b/c"), 0);
    assert_int_equal(below("a/b/c", "a/x"), 0);
    assert_int_equal(below("/a", "a"), 0);
    assert_int_equal(below("a/**/z", "b"), 0);
    assert_int_equal(below("**/z/y", "b"), 1);
}

/* Time is not asserted: with exponential backtracking this would not end before the time limit. */
static void hostile_patterns_end(void **state)
{
    char stars[401], name[2001], deep[2001], dirs[601];

    (void)state;
    for (size_t i = 0; i < 400; i += 2)
        memcpy(stars + i, "*a", 2);
    stars[400] = '\0';
    memset(name, 'a', 2000);
    name[1999] = 'b';
    name[2000] = '\0';
    NO(stars, name);
    for (size_t i = 0; i < 600; i += 5)
        memcpy(dirs + i, "**/a/", 5);
    memcpy(dirs + 595, "**/b", 5);
    for (size_t i = 0; i < 2000; i += 2)
        memcpy(deep + i, "a/", 2);
    deep[1999] = '\0';
    NO(dirs, deep);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_name_matches_at_any_depth),
        cmocka_unit_test(a_trailing_slash_wants_a_directory),
        cmocka_unit_test(an_inner_or_leading_slash_anchors),
        cmocka_unit_test(two_stars_span_directories),
        cmocka_unit_test(wildcards_stay_inside_a_component),
        cmocka_unit_test(sets_have_ranges_classes_and_escapes),
        cmocka_unit_test(malformed_patterns_are_refused_by_name),
        cmocka_unit_test(paths_below_a_match_match),
        cmocka_unit_test(the_defaults_mean_what_they_say),
        cmocka_unit_test(says_where_nothing_can_match),
        cmocka_unit_test(hostile_patterns_end),
    };

    return cmocka_run_group_tests_name("glob", tests, NULL, NULL);
}
