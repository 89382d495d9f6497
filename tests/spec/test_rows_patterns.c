/* SPDX-License-Identifier: Apache-2.0 */
/* Rows 1 to 16 of the semantics: which files travel, and between which roots. */
#include "spec.h"

#include <fcntl.h>
#include <sys/time.h>

#define LIST(...) ((const char *const[]){ __VA_ARGS__, NULL })

static const char *const nothing[] = { NULL };

static bool matches(const char *pattern, const char *path, bool is_dir)
{
    int r = pinfold_patterns_match(LIST(pattern), path, is_dir, NULL);

    assert_true(r == 0 || r == 1);
    return r == 1;
}

static void row_001_secrets_slash_matches_a_directory_at_any_depth(void **state)
{
    struct spec *s = *state;

    assert_true(matches("secrets/", "secrets", true));
    assert_true(matches("secrets/", "a/b/secrets", true));
    assert_true(matches("secrets/", "a/secrets/deep/key", false));
    assert_false(matches("secrets/", "a/secrets", false)); /* a file of that name */
    spec_put(s, "seed/secrets/key", "k");
    spec_put(s, "seed/a/b/secrets/deep/key", "k");
    spec_put(s, "seed/notes/secrets", "only a file");
    spec_put(s, "seed/a/b/kept", "kept");
    spec_start_seeded(s);
    spec_missing(s, "ws/secrets");
    spec_missing(s, "ws/a/b/secrets");
    spec_is(s, "ws/notes/secrets", "only a file");
    spec_is(s, "ws/a/b/kept", "kept");
    assert_true(spec_has(&s->seed.skipped_paths, "secrets/"));
    assert_true(spec_has(&s->seed.skipped_paths, "a/b/secrets/"));
}

static void row_002_a_link_named_secrets_to_a_directory_is_excluded(void **state)
{
    struct spec *s = *state;

    spec_put(s, "seed/vault/key", "k");
    spec_link(s, "vault", "seed/secrets");
    spec_link(s, "../vault", "seed/sub/secrets");
    spec_link(s, "plain", "seed/files/secrets");
    spec_put(s, "seed/files/plain", "p");
    spec_start_seeded(s);
    spec_missing(s, "ws/secrets");
    spec_missing(s, "ws/sub/secrets");
    assert_true(spec_any_contains(&s->seed.skipped_paths, "sub/secrets"));
    spec_is(s, "ws/vault/key", "k");
    assert_true(spec_exists(s, "ws/files/secrets")); /* a link to a file is no directory */
}

static void row_002_on_flush_such_a_link_is_excluded_too(void **state)
{
    struct spec *s = *state;
    struct pinfold_sync_policy policy = { .sync_include_patterns = LIST("*") };
    struct pinfold_sandbox_options options = spec_options(s);

    options.sync_policy = &policy;
    spec_start(s, &options);
    spec_put(s, "ws/vault/key", "k");
    spec_link(s, "vault", "ws/secrets");
    spec_flush(s); /* a link that is included would be an error */
    spec_missing(s, "dest/secrets");
    spec_is(s, "dest/vault/key", "k");
}

static void row_003_dotenv_is_exact_and_the_others_need_a_pattern(void **state)
{
    struct spec *s = *state;
    struct pinfold_sandbox_options options = spec_options(s);

    spec_put(s, "seed/.env", "SECRET=1");
    spec_put(s, "seed/sub/.env", "SECRET=1");
    spec_put(s, "seed/.env.local", "l");
    spec_put(s, "seed/.env.production", "p");
    spec_start_seeded(s);
    spec_missing(s, "ws/.env");
    spec_missing(s, "ws/sub/.env");
    spec_is(s, "ws/.env.local", "l");
    spec_is(s, "ws/.env.production", "p");
    spec_stop(s);

    spec_local(s, &(struct pinfold_local_options){ .size = sizeof(struct pinfold_local_options),
                                                   .workspace_root = spec_at(s, "ws2") });
    options.backend = s->backend;
    options.seed_from = spec_at(s, "seed");
    options.seed_exclude = LIST(".env.*");
    spec_start(s, &options);
    spec_missing(s, "ws2/.env.local");
    spec_missing(s, "ws2/.env.production");
    spec_missing(s, "ws2/.env");
}

static void row_004_name_patterns_match_at_any_depth(void **state)
{
    static const char *const paths[] = { "ws/top.md",   "ws/a/b/c/x.md", "ws/a/d.py",
                                         "ws/e/f.json", "ws/g/h.yaml",   "ws/g/i.yml" };
    struct spec *s = *state;

    spec_start_plain(s);
    for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++)
        spec_put(s, paths[i], paths[i]);
    spec_flush(s);
    assert_int_equal(s->sync.files_synced, 6);
    spec_is(s, "dest/top.md", "ws/top.md");
    spec_is(s, "dest/a/b/c/x.md", "ws/a/b/c/x.md");
    spec_is(s, "dest/g/i.yml", "ws/g/i.yml");
}

static void row_005_patterns_with_a_slash_inside_are_anchored_at_the_root(void **state)
{
    struct spec *s = *state;

    assert_true(matches("src/**", "src/a/b.c", false));
    assert_false(matches("src/**", "src", true)); /* needs something below it */
    assert_false(matches("src/**", "lib/src/a.c", false));
    assert_true(matches("/top", "top", false));
    assert_false(matches("/top", "a/top", false));
    assert_false(matches("a/b", "x/a/b", false));
    spec_start_plain(s);
    spec_put(s, "ws/src/a.c", "a");
    spec_put(s, "ws/src/x/y/b.c", "b");
    spec_put(s, "ws/dist/out", "o");
    spec_put(s, "ws/lib/src/a.c", "never");
    spec_put(s, "ws/lib/dist/out", "never");
    spec_flush(s);
    spec_is(s, "dest/src/a.c", "a");
    spec_is(s, "dest/src/x/y/b.c", "b");
    spec_is(s, "dest/dist/out", "o");
    spec_missing(s, "dest/lib");
    assert_int_equal(s->sync.files_synced, 3);
}

static void row_006_wildcards_match_a_leading_dot(void **state)
{
    struct spec *s = *state;

    assert_true(matches("*.pem", ".pem", false));
    assert_true(matches("?git", ".git", true));
    assert_true(matches("[.]x", "a/.x", false));
    assert_true(matches("**/k", ".a/.b/k", false));
    spec_put(s, "seed/.hidden.pem", "key");
    spec_put(s, "seed/.github/x.md", "x");
    spec_put(s, "seed/.hidden.py", "y");
    spec_start_seeded(s);
    spec_missing(s, "ws/.hidden.pem");
    spec_flush(s);
    spec_is(s, "dest/.github/x.md", "x");
    spec_is(s, "dest/.hidden.py", "y");
}

static void row_006_wildcards_never_match_a_slash(void **state)
{
    (void)state;
    assert_false(matches("/a*c", "a/c", false));
    assert_false(matches("/a?c", "a/c", false));
    assert_false(matches("/a[!b]c", "a/c", false));
    assert_true(matches("/a*c", "abbc", false));
    assert_false(matches("A", "a", false)); /* case counts */
}

static void row_007_excludes_of_policy_and_sandbox_are_added_to_the_eight(void **state)
{
    struct spec *s = *state;
    struct pinfold_sync_policy policy = { .exclude_patterns = LIST("vendor"),
                                          .sync_include_patterns = LIST("*") };
    struct pinfold_sandbox_options options = spec_options(s);

    spec_put(s, "seed/.env", "e");
    spec_put(s, "seed/id.pem", "e");
    spec_put(s, "seed/credentials.json", "e");
    spec_put(s, "seed/secrets/k", "e");
    spec_put(s, "seed/.git/config", "e");
    spec_put(s, "seed/node_modules/m", "e");
    spec_put(s, "seed/__pycache__/c", "e");
    spec_put(s, "seed/.venv/v", "e");
    spec_put(s, "seed/vendor/v", "e");
    spec_put(s, "seed/a.tmp", "e");
    spec_put(s, "seed/ok.txt", "ok");
    options.seed_from = spec_at(s, "seed");
    options.seed_exclude = LIST("*.tmp");
    options.sync_policy = &policy;
    spec_start(s, &options);
    assert_int_equal(s->seed.files_seeded, 1);
    assert_int_equal(spec_entries(s, "ws"), 1);
    spec_is(s, "ws/ok.txt", "ok");
    spec_put(s, "ws/.env", "made inside");
    spec_put(s, "ws/vendor/v", "made inside");
    spec_put(s, "ws/b.tmp", "made inside");
    spec_flush(s);
    assert_int_equal(spec_entries(s, "dest"), 2);
    spec_is(s, "dest/ok.txt", "ok");
    spec_is(s, "dest/b.tmp", "made inside"); /* seed_exclude is for seeding alone */
}

static void row_007_a_policy_without_excludes_still_leaves_the_secrets_out(void **state)
{
    struct spec *s = *state;
    struct pinfold_sync_policy policy = { .sync_include_patterns = LIST("*") };
    struct pinfold_sandbox_options options = spec_options(s);

    spec_put(s, "seed/.env", "e");
    spec_put(s, "seed/id.pem", "e");
    spec_put(s, "seed/node_modules/m", "e");
    options.seed_from = spec_at(s, "seed");
    options.sync_policy = &policy;
    spec_start(s, &options);
    assert_int_equal(s->seed.files_seeded, 0);
    assert_int_equal(spec_entries(s, "ws"), 0);
}

static int use_backend(void *ctx, struct pinfold_backend **ret, struct pinfold_error *err)
{
    (void)err;
    *ret = pinfold_backend_ref(ctx);
    return 0;
}

static void row_007_the_per_agent_path_leaves_the_secrets_out_too(void **state)
{
    struct spec *s = *state;
    struct pinfold_backend_factory factory = { .make = use_backend, .ctx = s->backend };
    struct pinfold_sync_policy policy = { .sync_include_patterns = LIST("*") };
    struct pinfold_close_options options = { .size = sizeof(options), .policy = &policy };

    spec_ok(s, pinfold_manager_new(NULL, &s->manager, &s->err));
    spec_ok(s, pinfold_manager_get_or_create(s->manager, "agent", &factory, NULL, NULL, &s->err));
    spec_put(s, "ws/.env", "e");
    spec_put(s, "ws/id.pem", "e");
    spec_put(s, "ws/secrets/k", "e");
    spec_put(s, "ws/node_modules/m", "e");
    spec_put(s, "ws/ok", "ok");
    options.sync_dest = spec_at(s, "dest");
    spec_ok(s, pinfold_manager_close_session(s->manager, "agent", &options, NULL, &s->err));
    assert_int_equal(spec_entries(s, "dest"), 1);
    spec_is(s, "dest/ok", "ok");
}

static void row_008_seed_exclude_can_only_add(void **state)
{
    struct spec *s = *state;
    struct pinfold_sandbox_options options = spec_options(s);

    spec_put(s, "seed/.env", "e");
    spec_put(s, "seed/ok", "ok");
    options.seed_from = spec_at(s, "seed");
    options.seed_exclude = nothing;
    spec_start(s, &options);
    spec_missing(s, "ws/.env");
    spec_stop(s);
    options.seed_exclude = LIST("unrelated");
    spec_start(s, &options);
    spec_missing(s, "ws/.env");
    spec_is(s, "ws/ok", "ok");
}

static void row_008_patterns_that_would_take_back_or_climb_are_refused(void **state)
{
    struct spec *s = *state;
    struct pinfold_sandbox_options options = spec_options(s);
    static const char *const bad[] = { "!.env", "../x", "a/../b", "..", "" };

    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        struct pinfold_sync_policy in = { .sync_include_patterns = LIST(bad[i]) };
        struct pinfold_sync_policy ex = { .exclude_patterns = LIST(bad[i]) };

        spec_refuses(s, PINFOLD_EVALUE, pinfold_patterns_check(LIST(bad[i]), &s->err));
        if (bad[i][0])
            assert_non_null(strstr(s->err.msg, bad[i])); /* names the pattern */
        options.seed_exclude = LIST(bad[i]);
        options.sync_policy = NULL;
        spec_refuses(s, PINFOLD_EVALUE, pinfold_sandbox_new(&options, &s->other, &s->err));
        options.seed_exclude = NULL;
        options.sync_policy = &in;
        spec_refuses(s, PINFOLD_EVALUE, pinfold_sandbox_new(&options, &s->other, &s->err));
        options.sync_policy = &ex;
        spec_refuses(s, PINFOLD_EVALUE, pinfold_sandbox_new(&options, &s->other, &s->err));
        assert_null(s->other);
    }
    spec_ok(s, pinfold_patterns_check(LIST("a..b", "..a", "b.."), &s->err));
    spec_ok(s, pinfold_patterns_check(NULL, &s->err));
}

static void row_009_excludes_win_over_includes_on_flush(void **state)
{
    struct spec *s = *state;

    spec_start_plain(s);
    spec_put(s, "ws/package.json", "{}");
    spec_put(s, "ws/node_modules/p/package.json", "never");
    spec_put(s, "ws/.git/hooks/post.py", "never");
    spec_put(s, "ws/credentials.json", "never");
    spec_put(s, "ws/src/.env", "never");
    spec_flush(s);
    assert_int_equal(s->sync.files_synced, 1);
    assert_int_equal(spec_entries(s, "dest"), 1);
    spec_is(s, "dest/package.json", "{}");
}

static void row_010_no_include_list_means_the_default_and_an_empty_one_nothing(void **state)
{
    struct spec *s = *state;
    struct pinfold_sync_policy policy = { .exclude_patterns = nothing };
    struct pinfold_sandbox_options options = spec_options(s);

    options.sync_policy = &policy;
    spec_start(s, &options);
    spec_put(s, "ws/a.py", "a");
    spec_put(s, "ws/Makefile", "never");
    spec_flush(s);
    assert_int_equal(s->sync.files_synced, 1);
    spec_is(s, "dest/a.py", "a");
    spec_stop(s);

    policy.sync_include_patterns = nothing;
    spec_start(s, &options);
    spec_put(s, "ws/b.py", "b");
    spec_flush(s);
    assert_int_equal(s->sync.files_synced, 0);
    spec_missing(s, "dest/b.py");
}

static void list_is(const char *const *list, const char *const *expected)
{
    size_t i = 0;

    for (; expected[i]; i++) {
        assert_non_null(list[i]);
        assert_string_equal(list[i], expected[i]);
    }
    assert_null(list[i]);
}

static void row_011_the_default_policy_is_the_nine_and_the_eight(void **state)
{
    struct pinfold_sync_policy policy = pinfold_default_sync_policy();
    const char *const *eight = LIST(".git", "node_modules", "__pycache__", ".venv", ".env", "*.pem",
                                    "credentials.json", "secrets/");
    const char *const *nine = LIST("src/**", "tests/**", "*.md", "*.py", "*.json", "*.yaml",
                                   "*.yml", "dist/**", "build/**");

    (void)state;
    list_is(policy.exclude_patterns, eight);
    list_is(policy.sync_include_patterns, nine);
    list_is(pinfold_default_seed_excludes, eight);
    list_is(pinfold_default_sync_includes, nine);
    list_is(pinfold_default_policy_excludes, LIST(".git", "node_modules", "__pycache__", ".venv"));
    list_is(pinfold_host_execution_tool_names,
            LIST("shell", "python_repl", "file_read", "file_write", "environment"));
    list_is(pinfold_sandbox_offload_tool_names,
            LIST("execute", "read_file", "write_file", "list_dir"));
}

static void row_012_flush_never_deletes(void **state)
{
    struct spec *s = *state;

    spec_put(s, "seed/old.py", "old");
    spec_put(s, "seed/src/gone.c", "gone");
    spec_start_seeded(s);
    spec_ok(s,
            pinfold_sandbox_delete_files(s->sandbox, LIST("old.py", "src/gone.c"), NULL, &s->err));
    spec_missing(s, "ws/old.py");
    spec_ok(s, pinfold_sandbox_flush(s->sandbox, NULL, &s->sync, NULL, &s->err));
    assert_int_equal(s->sync.files_synced, 0);
    spec_is(s, "seed/old.py", "old");
    spec_is(s, "seed/src/gone.c", "gone");
}

static void row_013_flush_overwrites_what_differs_and_leaves_the_rest_alone(void **state)
{
    struct spec *s = *state;
    struct timespec past[2] = { { .tv_sec = 1000000000, .tv_nsec = 5 },
                                { .tv_sec = 1000000000, .tv_nsec = 5 } };
    struct stat before, after;

    spec_start_plain(s);
    spec_put(s, "ws/same.py", "identical");
    spec_put(s, "ws/edited.py", "from the sandbox");
    spec_put(s, "ws/length.py", "1234567");
    spec_put(s, "dest/same.py", "identical");
    spec_put(s, "dest/edited.py", "newer on the host");
    spec_put(s, "dest/length.py", "12345678");
    assert_int_equal(utimensat(AT_FDCWD, spec_at(s, "dest/same.py"), past, 0), 0);
    before = spec_stat(s, "dest/same.py");
    spec_flush(s);
    after = spec_stat(s, "dest/same.py");
    assert_int_equal(s->sync.files_synced, 2);
    assert_int_equal(s->sync.bytes_synced, 16 + 7);
    spec_is(s, "dest/edited.py", "from the sandbox");
    spec_is(s, "dest/length.py", "1234567");
    assert_int_equal(after.st_ino, before.st_ino);
    assert_int_equal(after.st_mtim.tv_sec, 1000000000);
    assert_int_equal(after.st_mtim.tv_nsec, 5);
    assert_int_equal(after.st_ctim.tv_sec, before.st_ctim.tv_sec);
    assert_int_equal(after.st_ctim.tv_nsec, before.st_ctim.tv_nsec);
    spec_flush(s);
    assert_int_equal(s->sync.files_synced, 0);
}

static void row_014_kinds_that_no_pattern_names_are_not_synced(void **state)
{
    struct spec *s = *state;

    spec_start_plain(s);
    spec_put(s, "ws/main.c", "never");
    spec_put(s, "ws/Makefile", "never");
    spec_put(s, "ws/pyproject.toml", "never");
    spec_put(s, "ws/src/main.c", "c");
    spec_flush(s);
    assert_int_equal(spec_entries(s, "dest"), 1);
    spec_is(s, "dest/src/main.c", "c");
}

/* All below a directory that is named is meant, by whatever way it comes home. */
static void row_014_all_below_a_directory_that_is_named_is_synced(void **state)
{
    static const char *const home[] = { "src/deep/b.txt", "src/deep/c/d.txt", "lib/e.txt",
                                        "x/y/keep/f.txt" };
    static const char *const stays[] = { "src/a.txt", "src/deep/.env", "other/g.txt" };
    struct spec *s = *state;
    struct pinfold_sync_policy policy = { .sync_include_patterns =
                                                  LIST("src/deep", "lib/", "**/keep") };
    struct pinfold_sandbox_options options = spec_options(s);
    struct pinfold_plan plan = { 0 };
    char path[64];

    options.sync_policy = &policy;
    spec_start(s, &options);
    for (size_t i = 0; i < 4; i++) {
        snprintf(path, sizeof(path), "ws/%s", home[i]);
        spec_put(s, path, "text");
    }
    for (size_t i = 0; i < 3; i++) {
        snprintf(path, sizeof(path), "ws/%s", stays[i]);
        spec_put(s, path, "never");
    }
    spec_ok(s, pinfold_sandbox_plan_flush(s->sandbox, spec_at(s, "dest"), &plan, NULL, &s->err));
    assert_int_equal(plan.files, 4);
    pinfold_plan_done(&plan);
    spec_flush(s);
    assert_int_equal(s->sync.files_synced, 4);
    for (size_t i = 0; i < 4; i++) {
        snprintf(path, sizeof(path), "dest/%s", home[i]);
        spec_is(s, path, "text");
    }
}

static void row_015_same_root_is_a_noop(void **state)
{
    struct spec *s = *state;
    struct pinfold_sandbox_options options = spec_options(s);

    spec_put(s, "ws/a.py", "content");
    spec_link(s, "ws", "alias");
    options.seed_from = spec_at(s, "alias");
    spec_start(s, &options);
    assert_int_equal(s->seed.files_seeded, 0);
    assert_int_equal(s->seed.bytes_seeded, 0);
    assert_int_equal(spec_ok(s, pinfold_sandbox_flush(s->sandbox, NULL, &s->sync, NULL, &s->err)),
                     1);
    assert_int_equal(s->sync.files_synced, 0);
    assert_int_equal(s->sync.errors.count, 0);
    pinfold_sync_result_done(&s->sync);
    spec_ok(s, pinfold_sandbox_flush(s->sandbox, spec_at(s, "ws/"), &s->sync, NULL, &s->err));
    assert_int_equal(s->sync.files_synced, 0);
    spec_is(s, "ws/a.py", "content");
}

static void row_015_a_nested_seed_is_refused_before_any_copy(void **state)
{
    struct spec *s = *state;
    struct pinfold_sandbox_options options = spec_options(s);

    spec_put(s, "ws/inside/a.py", "a");
    spec_put(s, "ws/keep", "keep");
    options.seed_from = spec_at(s, "ws/inside");
    spec_new(s, &options);
    spec_refuses(s, PINFOLD_EPREPARE, pinfold_sandbox_start(s->sandbox, NULL, NULL, &s->err));
    assert_false(pinfold_sandbox_is_started(s->sandbox));
    spec_missing(s, "ws/a.py");

    spec_put(s, "outer.txt", "outer");
    options.seed_from = s->dir; /* the workspace lies inside the seed */
    spec_new(s, &options);
    spec_refuses(s, PINFOLD_EPREPARE, pinfold_sandbox_start(s->sandbox, NULL, NULL, &s->err));
    spec_missing(s, "ws/outer.txt");
    spec_missing(s, "ws/ws");
    assert_int_equal(spec_entries(s, "ws"), 2);
}

static void row_015_a_nested_destination_is_refused_before_any_copy(void **state)
{
    struct spec *s = *state;

    spec_start_plain(s);
    spec_put(s, "ws/a.py", "a");
    spec_dir(s, "ws/out");
    spec_refuses(s, PINFOLD_EPREPARE,
                 pinfold_sandbox_flush(s->sandbox, spec_at(s, "ws/out"), &s->sync, NULL, &s->err));
    assert_int_equal(spec_entries(s, "ws/out"), 0);
    spec_refuses(s, PINFOLD_EPREPARE,
                 pinfold_sandbox_flush(s->sandbox, s->dir, &s->sync, NULL, &s->err));
    spec_missing(s, "a.py");
}

static void row_015_a_file_that_is_its_own_source_keeps_its_content(void **state)
{
    struct spec *s = *state;

    spec_put(s, "seed/a.py", "content of one inode");
    spec_dir(s, "ws");
    assert_int_equal(link(spec_at(s, "seed/a.py"), spec_at(s, "ws/a.py")), 0);
    spec_start_seeded(s);
    spec_is(s, "ws/a.py", "content of one inode");
    spec_is(s, "seed/a.py", "content of one inode");
    spec_ok(s, pinfold_sandbox_flush(s->sandbox, NULL, &s->sync, NULL, &s->err));
    assert_int_equal(s->sync.errors.count, 0);
    spec_is(s, "ws/a.py", "content of one inode");
    spec_is(s, "seed/a.py", "content of one inode");
}

static void row_016_seeding_lays_over_what_is_there(void **state)
{
    struct spec *s = *state;

    spec_put_before_seed(s, "ws/other", "stays");
    spec_put_before_seed(s, "ws/dir/other", "stays");
    spec_put_before_seed(s, "ws/same", "old and longer");
    spec_put(s, "seed/same", "new");
    spec_put(s, "seed/dir/more", "more");
    spec_start_seeded(s);
    spec_is(s, "ws/other", "stays");
    spec_is(s, "ws/dir/other", "stays");
    spec_is(s, "ws/dir/more", "more");
    spec_is(s, "ws/same", "new");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SPEC_TEST(row_001_secrets_slash_matches_a_directory_at_any_depth),
        SPEC_TEST(row_002_a_link_named_secrets_to_a_directory_is_excluded),
        SPEC_TEST(row_002_on_flush_such_a_link_is_excluded_too),
        SPEC_TEST(row_003_dotenv_is_exact_and_the_others_need_a_pattern),
        SPEC_TEST(row_004_name_patterns_match_at_any_depth),
        SPEC_TEST(row_005_patterns_with_a_slash_inside_are_anchored_at_the_root),
        SPEC_TEST(row_006_wildcards_match_a_leading_dot),
        SPEC_TEST(row_006_wildcards_never_match_a_slash),
        SPEC_TEST(row_007_excludes_of_policy_and_sandbox_are_added_to_the_eight),
        SPEC_TEST(row_007_a_policy_without_excludes_still_leaves_the_secrets_out),
        SPEC_TEST(row_007_the_per_agent_path_leaves_the_secrets_out_too),
        SPEC_TEST(row_008_seed_exclude_can_only_add),
        SPEC_TEST(row_008_patterns_that_would_take_back_or_climb_are_refused),
        SPEC_TEST(row_009_excludes_win_over_includes_on_flush),
        SPEC_TEST(row_010_no_include_list_means_the_default_and_an_empty_one_nothing),
        SPEC_TEST(row_011_the_default_policy_is_the_nine_and_the_eight),
        SPEC_TEST(row_012_flush_never_deletes),
        SPEC_TEST(row_013_flush_overwrites_what_differs_and_leaves_the_rest_alone),
        SPEC_TEST(row_014_kinds_that_no_pattern_names_are_not_synced),
        SPEC_TEST(row_014_all_below_a_directory_that_is_named_is_synced),
        SPEC_TEST(row_015_same_root_is_a_noop),
        SPEC_TEST(row_015_a_nested_seed_is_refused_before_any_copy),
        SPEC_TEST(row_015_a_nested_destination_is_refused_before_any_copy),
        SPEC_TEST(row_015_a_file_that_is_its_own_source_keeps_its_content),
        SPEC_TEST(row_016_seeding_lays_over_what_is_there),
    };

    return spec_run_tests("rows 1-16", tests);
}
