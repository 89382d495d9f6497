/* SPDX-License-Identifier: Apache-2.0 */
/* What has changed in a workspace, its diff, and the operations beyond the specification's: the
 * same on every backend. */
#include "spec.h"

#include <time.h>

/* ---- helpers ---- */

/* File times move with the timer's tick: what comes next is in another one. */
static void next_tick(void)
{
    struct timespec before, now;

    clock_gettime(CLOCK_REALTIME_COARSE, &before);
    do {
        spec_sleep(0.001);
        clock_gettime(CLOCK_REALTIME_COARSE, &now);
    } while (now.tv_sec == before.tv_sec && now.tv_nsec == before.tv_nsec);
}

static void start_seeded(struct spec *s)
{
    next_tick(); /* the seed was there before */
    spec_start_seeded(s);
}

static void write_text(struct spec *s, const char *path, const char *text)
{
    spec_ok(s, pinfold_sandbox_write_file(s->sandbox, path, text, strlen(text), NULL, &s->err));
}

static void check_text(struct spec *s, const char *path, const char *text)
{
    struct pinfold_bytes bytes = { 0 };

    spec_ok(s, pinfold_sandbox_read_file(s->sandbox, path, &bytes, NULL, &s->err));
    assert_string_equal(bytes.data, text);
    pinfold_bytes_done(&bytes);
}

struct found {
    struct pinfold_changes changes;
    char diff[8192];
    size_t len;
};

static int keep(void *ctx, const char *text, size_t len)
{
    struct found *found = ctx;

    assert_true(found->len + len < sizeof(found->diff));
    memcpy(found->diff + found->len, text, len);
    found->len += len;
    return 0;
}

/* The changes, with what the options say, and the diff. */
static struct found find_with(struct spec *s, struct pinfold_changes_options options)
{
    struct found found = { .len = 0 };

    options.size = sizeof(options);
    options.on_diff = keep;
    options.on_diff_ctx = &found;
    spec_ok(s, pinfold_sandbox_changes(s->sandbox, &options, &found.changes, NULL, &s->err));
    found.diff[found.len] = '\0';
    assert_int_equal(found.changes.diff_bytes, found.len);
    return found;
}

static struct found find(struct spec *s)
{
    return find_with(s, (struct pinfold_changes_options){ .size = 0 });
}

static const struct pinfold_change *get(const struct found *found, const char *path)
{
    for (size_t i = 0; i < found->changes.count; i++)
        if (strcmp(found->changes.items[i].path, path) == 0)
            return &found->changes.items[i];
    return NULL;
}

static void check_kind(const struct found *found, const char *path, enum pinfold_change_kind kind)
{
    const struct pinfold_change *change = get(found, path);

    if (!change)
        fail_msg("%s is not among the changes", path);
    assert_string_equal(pinfold_change_kind_name(change->kind), pinfold_change_kind_name(kind));
}

static void done(struct found *found)
{
    pinfold_changes_done(&found->changes);
}

/* ---- changes ---- */

static void nothing_has_changed_at_first(void **state)
{
    struct spec *s = *state;
    struct found found;

    spec_put(s, "seed/a.py", "a\n");
    spec_put(s, "seed/src/deep/b.c", "b\n");
    start_seeded(s);
    found = find(s);
    assert_true(found.changes.seeded);
    assert_int_equal(found.changes.count, 0);
    assert_int_equal(found.changes.errors.count, 0);
    assert_int_equal(found.changes.seed_changes.count, 0);
    assert_int_equal(found.len, 0);
    done(&found);
}

static void each_kind_of_change_is_listed_with_sizes_and_modes(void **state)
{
    struct spec *s = *state;
    struct found found;
    const struct pinfold_change *change;

    spec_put(s, "seed/same.py", "same\n");
    spec_put(s, "seed/edited.py", "one\ntwo\n");
    spec_put(s, "seed/src/gone.py", "gone\n");
    spec_put(s, "seed/src/run.sh", "run\n");
    spec_put(s, "seed/src/program", "run\n");
    spec_mode(s, "seed/src/program", 0755);
    spec_link(s, "edited.py", "seed/src/link");
    start_seeded(s);
    write_text(s, "edited.py", "one\n2\nthree\n");
    write_text(s, "src/new/made.py", "made\n");
    spec_ok(s, pinfold_sandbox_delete(s->sandbox, "src/gone.py", 0, NULL, &s->err));
    spec_run(s, "chmod u+x src/run.sh");
    found = find(s);
    check_kind(&found, "edited.py", PINFOLD_CHANGE_MODIFIED);
    check_kind(&found, "src/new/made.py", PINFOLD_CHANGE_ADDED);
    check_kind(&found, "src/gone.py", PINFOLD_CHANGE_DELETED);
    change = get(&found, "edited.py");
    assert_int_equal(change->old_size, 8);
    assert_int_equal(change->new_size, 12);
    assert_int_equal(change->new_mode, 0100644);
    assert_true(change->syncs);
    assert_false(change->seed_changed);
    assert_int_equal(get(&found, "src/gone.py")->new_size, -1);
    assert_int_equal(get(&found, "src/gone.py")->old_mode, 0100644);
    assert_false(get(&found, "src/gone.py")->syncs);
    check_kind(&found, "src/run.sh", PINFOLD_CHANGE_MODE);
    assert_int_equal(get(&found, "src/run.sh")->new_mode, 0100755);
    assert_null(get(&found, "src/program"));
    assert_null(get(&found, "src/link"));
    assert_null(get(&found, "same.py"));
    done(&found);
}

/* Wherever the workspace is: those that nobody touched are neither changes nor errors. */
static void links_are_compared_by_their_targets(void **state)
{
    struct spec *s = *state;
    struct found found;

    spec_put(s, "seed/a.py", "a\n");
    spec_put(s, "seed/src/b.py", "b\n");
    spec_link(s, "a.py", "seed/same.py");
    spec_link(s, "nowhere", "seed/src/broken.py");
    spec_link(s, "a.py", "seed/moved.py");
    spec_link(s, "a.py", "seed/gone.py");
    start_seeded(s);
    found = find(s);
    assert_int_equal(found.changes.count, 0);
    assert_int_equal(found.changes.errors.count, 0);
    done(&found);
    spec_run(s, "ln -sfn src/b.py moved.py; rm gone.py; ln -s a.py new.py; ln -s /etc/x out.py");
    found = find(s);
    check_kind(&found, "moved.py", PINFOLD_CHANGE_MODIFIED);
    check_kind(&found, "gone.py", PINFOLD_CHANGE_DELETED);
    check_kind(&found, "new.py", PINFOLD_CHANGE_ADDED);
    check_kind(&found, "out.py", PINFOLD_CHANGE_ADDED);
    assert_int_equal(found.changes.count, 4);
    assert_int_equal(found.changes.errors.count, 0);
    assert_int_equal(found.changes.unknown.count, 0);
    for (size_t i = 0; i < found.changes.count; i++)
        assert_false(found.changes.items[i].syncs);
    done(&found);
}

static void the_diff_is_in_the_form_of_git(void **state)
{
    struct spec *s = *state;
    struct found found;

    spec_put(s, "seed/a.py", "one\ntwo\nthree\n");
    spec_put(s, "seed/gone.md", "last words");
    start_seeded(s);
    write_text(s, "a.py", "one\n2\nthree\n");
    write_text(s, "src/b c.py", "new\n");
    spec_ok(s, pinfold_sandbox_delete(s->sandbox, "gone.md", 0, NULL, &s->err));
    found = find(s);
    assert_string_equal(found.diff, "diff --git a/a.py b/a.py\n"
                                    "--- a/a.py\n"
                                    "+++ b/a.py\n"
                                    "@@ -1,3 +1,3 @@\n"
                                    " one\n"
                                    "-two\n"
                                    "+2\n"
                                    " three\n"
                                    "diff --git a/gone.md b/gone.md\n"
                                    "deleted file mode 100644\n"
                                    "--- a/gone.md\n"
                                    "+++ /dev/null\n"
                                    "@@ -1 +0,0 @@\n"
                                    "-last words\n"
                                    "\\ No newline at end of file\n"
                                    "diff --git a/src/b c.py b/src/b c.py\n"
                                    "new file mode 100644\n"
                                    "--- /dev/null\n"
                                    "+++ b/src/b c.py\t\n"
                                    "@@ -0,0 +1 @@\n"
                                    "+new\n");
    assert_int_equal(get(&found, "a.py")->shown, PINFOLD_SHOWN_TEXT);
    assert_false(found.changes.cut);
    done(&found);
}

static void only_what_a_flush_takes_is_listed_unless_everything_is_asked_for(void **state)
{
    struct spec *s = *state;
    struct found found;

    spec_put(s, "seed/.env", "secret\n");
    spec_put(s, "seed/keep.py", "keep\n");
    start_seeded(s);
    write_text(s, "notes.txt", "not included\n");
    write_text(s, "node_modules/x.py", "excluded\n");
    write_text(s, ".env", "mine\n");
    write_text(s, "a.py", "a\n");
    found = find(s);
    assert_int_equal(found.changes.count, 1);
    check_kind(&found, "a.py", PINFOLD_CHANGE_ADDED);
    done(&found);
    found = find_with(s, (struct pinfold_changes_options){ .everything = true });
    assert_int_equal(found.changes.count, 4);
    check_kind(&found, "notes.txt", PINFOLD_CHANGE_ADDED);
    check_kind(&found, "node_modules/x.py", PINFOLD_CHANGE_ADDED);
    check_kind(&found, ".env", PINFOLD_CHANGE_ADDED); /* the seed's was not taken */
    assert_false(get(&found, ".env")->syncs);
    assert_true(get(&found, "a.py")->syncs);
    assert_null(strstr(found.diff, "secret"));
    done(&found);
}

static void what_is_listed_is_what_a_flush_writes(void **state)
{
    struct spec *s = *state;
    struct found found;
    uint64_t writes = 0;

    spec_put(s, "seed/a.py", "a\n");
    spec_put(s, "seed/src/b.c", "b\n");
    start_seeded(s);
    write_text(s, "a.py", "A\n");
    write_text(s, "src/c.c", "c\n");
    write_text(s, "other.txt", "no\n");
    found = find(s);
    for (size_t i = 0; i < found.changes.count; i++)
        writes += found.changes.items[i].syncs;
    done(&found);
    spec_ok(s, pinfold_sandbox_flush(s->sandbox, NULL, &s->sync, NULL, &s->err));
    assert_int_equal(s->sync.files_synced, writes);
    assert_int_equal(writes, 2);
    found = find(s); /* the seed is now what the workspace is */
    assert_int_equal(found.changes.count, 0);
    done(&found);
}

/* What is in the seed now, beside the very files that were looked at before, if they are kept. */
static struct found find_again(struct spec *s, struct found before, bool kept)
{
    const struct pinfold_changes_options whole = { .keep = true, .again = &before.changes };
    bool shows_through = spec_is_overlay();
    struct found found;

    if (!shows_through)
        spec_put(s, "seed/only-here.py", "new\n");
    found = find_with(s, whole);
    assert_int_equal(found.changes.kept != NULL, kept);
    assert_null(before.changes.kept);
    assert_true(shows_through || get(&found, "only-here.py") ||
                spec_has(&found.changes.seed_changes, "only-here.py"));
    assert_int_equal(get(&found, "c.py") != NULL, !kept);
    done(&before);
    return found;
}

/* What was fetched for the changes comes home, whatever has become of it there. A workspace that is
 * here is flushed as it is now. */
static void what_was_looked_at_can_be_what_comes_home(void **state)
{
    const struct pinfold_changes_options whole = { .keep = true };
    const char *const except[] = { "b.py", NULL };
    struct spec *s = *state;
    struct found found, listed;
    bool kept;

    spec_put(s, "seed/a.py", "a\n");
    start_seeded(s);
    spec_run(s, "echo shown >a.py; echo >b.py; mkdir d; echo d >d/d.py; chmod 600 d/d.py");
    listed = find(s);
    found = find_with(s, whole);
    kept = found.changes.kept != NULL;
    assert_null(listed.changes.kept);
    spec_run(s, "echo other >a.py; echo >c.py; echo more >>d/d.py");
    found = find_again(s, found, kept);
    spec_ok(s, pinfold_sandbox_flush_changes(s->sandbox, spec_at(s, "dest"), &found.changes, except,
                                             &s->sync, NULL, &s->err));
    assert_int_equal(s->sync.errors.count, 0);
    assert_int_equal(s->sync.files_synced, kept ? 2 : 3);
    spec_is(s, "dest/a.py", kept ? "shown\n" : "other\n");
    spec_is(s, "dest/d/d.py", kept ? "d\n" : "d\nmore\n");
    assert_int_equal(spec_stat(s, "dest/d/d.py").st_mode & 0777, 0600);
    assert_int_equal(spec_exists(s, "dest/c.py"), !kept);
    spec_missing(s, "dest/b.py");
    if (kept)
        spec_refuses(s, PINFOLD_EVALUE,
                     pinfold_sandbox_flush_changes(s->sandbox, spec_at(s, "elsewhere"),
                                                   &listed.changes, NULL, &s->sync, NULL, &s->err));
    spec_missing(s, "elsewhere");
    done(&listed);
    done(&found);
}

static void what_is_kept_is_all_that_a_flush_takes(void **state)
{
    struct pinfold_changes before = { 0 }, changes;
    const struct pinfold_changes_options wrong[] = {
        { .size = sizeof(wrong[0]), .keep = true, .path = "src" },
        { .size = sizeof(wrong[0]), .keep = true, .everything = true },
        { .size = sizeof(wrong[0]), .again = &before },
    };
    struct spec *s = *state;

    spec_start_plain(s);
    spec_run(s, "mkdir src");
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        spec_refuses(s, PINFOLD_EVALUE,
                     pinfold_sandbox_changes(s->sandbox, &wrong[i], &changes, NULL, &s->err));
        pinfold_changes_done(&changes);
    }
}

static void without_a_seed_everything_is_added(void **state)
{
    struct spec *s = *state;
    struct found found;

    spec_start_plain(s);
    write_text(s, "a.py", "a\n");
    found = find(s);
    assert_int_equal(found.changes.seeded, spec_is_overlay()); /* of nothing */
    assert_int_equal(found.changes.count, 1);
    check_kind(&found, "a.py", PINFOLD_CHANGE_ADDED);
    done(&found);
}

static void a_path_limits_what_is_looked_at(void **state)
{
    struct spec *s = *state;
    struct found found;

    spec_put(s, "seed/src/a/x.py", "x\n");
    spec_put(s, "seed/src/ab/y.py", "y\n");
    start_seeded(s);
    write_text(s, "src/a/x.py", "X\n");
    write_text(s, "src/ab/y.py", "Y\n");
    write_text(s, "top.py", "t\n");
    found = find_with(s, (struct pinfold_changes_options){ .path = "./src/a/" });
    assert_int_equal(found.changes.count, 1);
    check_kind(&found, "src/a/x.py", PINFOLD_CHANGE_MODIFIED);
    done(&found);
    found = find_with(s, (struct pinfold_changes_options){ .path = "top.py" });
    assert_int_equal(found.changes.count, 1);
    done(&found);
    spec_refuses(s, PINFOLD_EPATH,
                 pinfold_sandbox_changes(
                         s->sandbox,
                         &(struct pinfold_changes_options){
                                 .size = sizeof(struct pinfold_changes_options), .path = "../x" },
                         &found.changes, NULL, &s->err));
}

static void a_directory_in_the_place_of_a_file_is_one_gone_and_others_come(void **state)
{
    struct spec *s = *state;
    struct found found;

    spec_put(s, "seed/src/thing", "file\n");
    spec_put(s, "seed/src/tree/a", "a\n");
    spec_put(s, "seed/src/tree/b/c", "c\n");
    start_seeded(s);
    spec_run(s, "cd src && rm thing && mkdir thing && echo in > thing/in && rm -r tree && echo t > "
                "tree");
    found = find(s);
    check_kind(&found, "src/thing", PINFOLD_CHANGE_DELETED);
    check_kind(&found, "src/thing/in", PINFOLD_CHANGE_ADDED);
    check_kind(&found, "src/tree/a", PINFOLD_CHANGE_DELETED);
    check_kind(&found, "src/tree/b/c", PINFOLD_CHANGE_DELETED);
    check_kind(&found, "src/tree", PINFOLD_CHANGE_ADDED);
    assert_int_equal(found.changes.count, 5);
    done(&found);
}

static void a_directory_that_is_made_again_lacks_what_was_in_it(void **state)
{
    struct spec *s = *state;
    struct found found;

    spec_put(s, "seed/src/d/one", "1\n");
    spec_put(s, "seed/src/d/two", "2\n");
    start_seeded(s);
    spec_run(s, "rm -r src/d && mkdir src/d && echo 1 > src/d/one && echo 3 > src/d/three");
    found = find(s);
    assert_int_equal(found.changes.count, 2);
    check_kind(&found, "src/d/two", PINFOLD_CHANGE_DELETED);
    check_kind(&found, "src/d/three", PINFOLD_CHANGE_ADDED);
    done(&found);
}

/* No time of a file says so: only those of the directories have changed. */
static void files_whose_directories_changed_places_have_changed(void **state)
{
    struct spec *s = *state;
    struct found found;

    spec_put(s, "seed/src/a/in/y.py", "one\n");
    spec_put(s, "seed/src/b/in/y.py", "two\n");
    start_seeded(s);
    next_tick();
    spec_run(s, "cd src && mv a t && mv b a && mv t b");
    found = find(s);
    check_kind(&found, "src/a/in/y.py", PINFOLD_CHANGE_MODIFIED);
    check_kind(&found, "src/b/in/y.py", PINFOLD_CHANGE_MODIFIED);
    assert_int_equal(found.changes.count, 2);
    done(&found);
}

/* What was seeded in the very tick in which the seeding ended may be the workspace's change too. */
static void check_seeds_own(const struct found *found, const char *path)
{
    const struct pinfold_change *change = get(found, path);

    assert_true(change ? change->seed_changed : spec_has(&found->changes.seed_changes, path));
}

static void directories_of_the_seed_that_changed_places_are_its_own_change(void **state)
{
    struct spec *s = *state;
    struct found found;

    if (spec_lacks("host directory") || spec_is_overlay()) /* it is seen at once, or cannot be */
        return;
    spec_put(s, "seed/src/a/x.py", "one\n");
    spec_put(s, "seed/src/b/x.py", "two\n");
    start_seeded(s);
    next_tick();
    assert_int_equal(rename(spec_at(s, "seed/src/a"), spec_at(s, "seed/src/t")), 0);
    assert_int_equal(rename(spec_at(s, "seed/src/b"), spec_at(s, "seed/src/a")), 0);
    assert_int_equal(rename(spec_at(s, "seed/src/t"), spec_at(s, "seed/src/b")), 0);
    found = find(s);
    check_seeds_own(&found, "src/a/x.py");
    check_seeds_own(&found, "src/b/x.py");
    done(&found);
}

static void what_changes_in_the_seed_itself_is_told_apart(void **state)
{
    struct spec *s = *state;
    struct found found;

    spec_put(s, "seed/theirs.py", "old\n");
    spec_put(s, "seed/both.py", "old\n");
    spec_put(s, "seed/mine.py", "old\n");
    start_seeded(s);
    next_tick();
    spec_put(s, "seed/theirs.py", "edited by the user\n");
    spec_put(s, "seed/both.py", "edited by the user\n");
    spec_put(s, "seed/later.py", "made by the user\n");
    write_text(s, "both.py", "edited by the agent\n");
    write_text(s, "mine.py", "edited by the agent\n");
    found = find(s);
    check_kind(&found, "both.py", PINFOLD_CHANGE_MODIFIED);
    assert_true(get(&found, "both.py")->seed_changed);
    assert_false(get(&found, "mine.py")->seed_changed);
    assert_null(get(&found, "later.py"));
    if (spec_lacks("host directory")) { /* times there say nothing of times here */
        assert_true(get(&found, "theirs.py")->seed_changed);
    } else {
        assert_null(get(&found, "theirs.py"));
        assert_int_equal(found.changes.count, 2);
    }
    if (!spec_is_overlay()) /* there it is seen in the workspace at once */
        assert_true(spec_has(&found.changes.seed_changes, "later.py"));
    done(&found);
}

static void a_seed_that_was_replaced_is_no_base(void **state)
{
    struct spec *s = *state;
    struct pinfold_changes changes = { 0 };

    spec_put(s, "seed/a.py", "a\n");
    start_seeded(s);
    assert_int_equal(rename(spec_at(s, "seed"), spec_at(s, "moved")), 0);
    spec_refuses(s, PINFOLD_EPREPARE,
                 pinfold_sandbox_changes(s->sandbox, NULL, &changes, NULL, &s->err));
    assert_non_null(strstr(s->err.msg, "gone"));
    spec_put(s, "seed/a.py", "a\n");
    spec_refuses(s, PINFOLD_EPREPARE,
                 pinfold_sandbox_changes(s->sandbox, NULL, &changes, NULL, &s->err));
    assert_non_null(strstr(s->err.msg, "another directory"));
}

static void binary_files_and_large_ones_are_told_and_the_rest_is_shown(void **state)
{
    struct spec *s = *state;
    struct found found;

    spec_put(s, "seed/a.py", "a\n");
    start_seeded(s);
    spec_ok(s, pinfold_sandbox_write_file(s->sandbox, "src/bin", "a\0b", 3, NULL, &s->err));
    write_text(s, "src/large", "more than ten bytes\n");
    write_text(s, "src/small", "s\n");
    found = find_with(s, (struct pinfold_changes_options){ .max_file_bytes = 150 });
    assert_int_equal(get(&found, "src/bin")->shown, PINFOLD_SHOWN_BINARY);
    assert_non_null(strstr(found.diff, "Binary files /dev/null and b/src/bin differ\n"));
    done(&found);
    found = find_with(s, (struct pinfold_changes_options){ .max_file_bytes = 10 });
    assert_int_equal(get(&found, "src/large")->shown, PINFOLD_SHOWN_TOO_LARGE);
    assert_true(found.changes.cut);
    assert_non_null(strstr(found.diff, "# src/large: added, not shown: "));
    done(&found);
    found = find_with(s, (struct pinfold_changes_options){ .max_diff_bytes = 1 });
    assert_int_equal(found.len, 0);
    assert_true(found.changes.cut);
    done(&found);
}

static int stop_at_once(void *ctx, const char *text, size_t len)
{
    (void)text;
    (void)len;
    ++*(int *)ctx;
    return 1;
}

static void who_receives_the_diff_can_end_it(void **state)
{
    struct spec *s = *state;
    struct pinfold_changes_options options = PINFOLD_CHANGES_OPTIONS_INIT;
    struct pinfold_changes changes = { 0 };
    int calls = 0;

    spec_start_plain(s);
    write_text(s, "a.py", "a\n");
    write_text(s, "b.py", "b\n");
    options.on_diff = stop_at_once;
    options.on_diff_ctx = &calls;
    spec_refuses(s, PINFOLD_ECANCELLED,
                 pinfold_sandbox_changes(s->sandbox, &options, &changes, NULL, &s->err));
    assert_int_equal(calls, 1);
}

/* ---- edit ---- */

static struct pinfold_edit_options edit_of(const char *path, const char *old_text,
                                           const char *new_text)
{
    struct pinfold_edit_options options = PINFOLD_EDIT_OPTIONS_INIT;

    options.path = path;
    options.old_text = old_text;
    options.new_text = new_text;
    return options;
}

static void an_edit_replaces_the_one_text_and_keeps_the_mode(void **state)
{
    struct spec *s = *state;
    struct pinfold_edit_options options = edit_of("src/run.sh", "two", "2\n2");
    struct pinfold_edit_result result;

    spec_start_plain(s);
    write_text(s, "src/run.sh", "one\ntwo\nthree\n");
    spec_run(s, "chmod 750 src/run.sh");
    spec_ok(s, pinfold_sandbox_edit(s->sandbox, &options, &result, NULL, &s->err));
    assert_int_equal(result.replaced, 1);
    assert_int_equal(result.line, 2);
    assert_int_equal(result.bytes, 14);
    check_text(s, "src/run.sh", "one\n2\n2\nthree\n");
    spec_run(s, "stat -c %a src/run.sh");
    spec_stdout_is(s, "750\n");
}

static void an_edit_wants_the_text_once_and_says_where_it_is(void **state)
{
    struct spec *s = *state;
    struct pinfold_edit_options options = edit_of("a.py", "x", "y");
    struct pinfold_edit_result result;

    spec_start_plain(s);
    write_text(s, "a.py", "x\n\nx x\naaa");
    spec_refuses(s, PINFOLD_EVALUE,
                 pinfold_sandbox_edit(s->sandbox, &options, &result, NULL, &s->err));
    assert_int_equal(result.replaced, 3);
    assert_non_null(strstr(s->err.msg, "3 times (lines 1, 3, 3)"));
    options = edit_of("a.py", "aa", "b"); /* two that overlap */
    spec_refuses(s, PINFOLD_EVALUE,
                 pinfold_sandbox_edit(s->sandbox, &options, &result, NULL, &s->err));
    assert_int_equal(result.replaced, 2);
    options = edit_of("a.py", "z", "y");
    spec_refuses(s, PINFOLD_EVALUE,
                 pinfold_sandbox_edit(s->sandbox, &options, &result, NULL, &s->err));
    assert_int_equal(result.replaced, 0);
    assert_non_null(strstr(s->err.msg, "not in it"));
    options = edit_of("a.py", "", "y");
    spec_refuses(s, PINFOLD_EVALUE,
                 pinfold_sandbox_edit(s->sandbox, &options, &result, NULL, &s->err));
    options = edit_of("a.py", "x", "x");
    spec_refuses(s, PINFOLD_EVALUE,
                 pinfold_sandbox_edit(s->sandbox, &options, &result, NULL, &s->err));
    options = edit_of("none.py", "x", "y");
    spec_refuses(s, PINFOLD_EOS,
                 pinfold_sandbox_edit(s->sandbox, &options, &result, NULL, &s->err));
    assert_int_equal(s->err.sys_errno, ENOENT);
    check_text(s, "a.py", "x\n\nx x\naaa");
}

static void an_edit_can_replace_all(void **state)
{
    struct spec *s = *state;
    struct pinfold_edit_options options = edit_of("a.py", "x", "");
    struct pinfold_edit_result result;

    spec_start_plain(s);
    write_text(s, "a.py", "x\nyx\nxx");
    options.replace_all = true;
    spec_ok(s, pinfold_sandbox_edit(s->sandbox, &options, &result, NULL, &s->err));
    assert_int_equal(result.replaced, 4);
    check_text(s, "a.py", "\ny\n");
    assert_string_equal(spec_event(s, "sandbox.edit_file")->path, "a.py");
}

/* ---- delete and move ---- */

static void a_directory_is_deleted_when_it_is_empty_or_with_all_in_it(void **state)
{
    struct spec *s = *state;

    spec_start_plain(s);
    write_text(s, "d/e/f", "f\n");
    spec_run(s, "ln -s /etc d/e/out && mkdir -- empty -x");
    spec_refuses(s, PINFOLD_EOS, pinfold_sandbox_delete(s->sandbox, "d", 0, NULL, &s->err));
    assert_int_equal(s->err.sys_errno, ENOTEMPTY);
    spec_ok(s, pinfold_sandbox_delete(s->sandbox, "empty", 0, NULL, &s->err));
    spec_ok(s, pinfold_sandbox_delete(s->sandbox, "-x", 0, NULL, &s->err));
    spec_ok(s,
            pinfold_sandbox_delete(s->sandbox, "d/e/out", PINFOLD_DELETE_RECURSIVE, NULL, &s->err));
    spec_ok(s, pinfold_sandbox_delete(s->sandbox, "d", PINFOLD_DELETE_RECURSIVE, NULL, &s->err));
    spec_refuses(s, PINFOLD_EOS, pinfold_sandbox_delete(s->sandbox, "d", 0, NULL, &s->err));
    assert_int_equal(s->err.sys_errno, ENOENT);
    spec_run(s, "ls -A; test -d /etc");
    spec_stdout_is(s, "");
    assert_int_equal(s->run.exit_code, 0);
}

static void the_workspace_itself_is_neither_deleted_nor_moved(void **state)
{
    struct spec *s = *state;

    spec_start_plain(s);
    write_text(s, "a", "a\n");
    spec_refuses(
            s, PINFOLD_EPATH,
            pinfold_sandbox_delete(s->sandbox, "x/..", PINFOLD_DELETE_RECURSIVE, NULL, &s->err));
    spec_refuses(s, PINFOLD_EPATH,
                 pinfold_sandbox_delete(s->sandbox, "..", PINFOLD_DELETE_RECURSIVE, NULL, &s->err));
    spec_refuses(s, PINFOLD_EPATH, pinfold_sandbox_move(s->sandbox, ".", "b", 0, NULL, &s->err));
    spec_refuses(s, PINFOLD_EPATH, pinfold_sandbox_move(s->sandbox, "a", ".", 0, NULL, &s->err));
    spec_refuses(s, PINFOLD_EPATH, pinfold_sandbox_move(s->sandbox, "a", "../b", 0, NULL, &s->err));
    spec_refuses(s, PINFOLD_EVALUE, pinfold_sandbox_delete(s->sandbox, "a", 64, NULL, &s->err));
    check_text(s, "a", "a\n");
}

static void a_move_takes_directories_and_can_refuse_to_replace(void **state)
{
    struct spec *s = *state;

    spec_start_plain(s);
    write_text(s, "d/f", "f\n");
    write_text(s, "other", "o\n");
    spec_ok(s, pinfold_sandbox_move(s->sandbox, "d", "new/place", 0, NULL, &s->err));
    check_text(s, "new/place/f", "f\n");
    spec_refuses(s, PINFOLD_EOS,
                 pinfold_sandbox_move(s->sandbox, "new/place/f", "other", PINFOLD_MOVE_NO_REPLACE,
                                      NULL, &s->err));
    assert_int_equal(s->err.sys_errno, EEXIST);
    check_text(s, "other", "o\n");
    spec_refuses(s, PINFOLD_EOS,
                 pinfold_sandbox_move(s->sandbox, "other", "new", 0, NULL, &s->err));
    assert_int_equal(s->err.sys_errno, EISDIR);
    spec_refuses(s, PINFOLD_EOS,
                 pinfold_sandbox_move(s->sandbox, "new", "new/in/itself", 0, NULL, &s->err));
    assert_int_equal(s->err.sys_errno, EINVAL);
    spec_refuses(s, PINFOLD_EOS, pinfold_sandbox_move(s->sandbox, "no", "x", 0, NULL, &s->err));
    assert_int_equal(s->err.sys_errno, ENOENT);
    spec_ok(s, pinfold_sandbox_move(s->sandbox, "new/place/f", "other", 0, NULL, &s->err));
    check_text(s, "other", "f\n");
    spec_ok(s, pinfold_sandbox_move(s->sandbox, "other", "other", 0, NULL, &s->err));
}

static void a_directory_of_the_seed_is_moved_too(void **state)
{
    struct spec *s = *state;

    spec_put(s, "seed/src/a/f.py", "f\n");
    start_seeded(s);
    spec_ok(s, pinfold_sandbox_move(s->sandbox, "src/a", "src/b", 0, NULL, &s->err));
    check_text(s, "src/b/f.py", "f\n");
    spec_refuses(s, PINFOLD_EOS, pinfold_sandbox_delete(s->sandbox, "src/a", 0, NULL, &s->err));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SPEC_TEST(nothing_has_changed_at_first),
        SPEC_TEST(each_kind_of_change_is_listed_with_sizes_and_modes),
        SPEC_TEST(links_are_compared_by_their_targets),
        SPEC_TEST(the_diff_is_in_the_form_of_git),
        SPEC_TEST(only_what_a_flush_takes_is_listed_unless_everything_is_asked_for),
        SPEC_TEST(what_is_listed_is_what_a_flush_writes),
        SPEC_TEST(what_was_looked_at_can_be_what_comes_home),
        SPEC_TEST(what_is_kept_is_all_that_a_flush_takes),
        SPEC_TEST(without_a_seed_everything_is_added),
        SPEC_TEST(a_path_limits_what_is_looked_at),
        SPEC_TEST(a_directory_in_the_place_of_a_file_is_one_gone_and_others_come),
        SPEC_TEST(a_directory_that_is_made_again_lacks_what_was_in_it),
        SPEC_TEST(files_whose_directories_changed_places_have_changed),
        SPEC_TEST(directories_of_the_seed_that_changed_places_are_its_own_change),
        SPEC_TEST(what_changes_in_the_seed_itself_is_told_apart),
        SPEC_TEST(a_seed_that_was_replaced_is_no_base),
        SPEC_TEST(binary_files_and_large_ones_are_told_and_the_rest_is_shown),
        SPEC_TEST(who_receives_the_diff_can_end_it),
        SPEC_TEST(an_edit_replaces_the_one_text_and_keeps_the_mode),
        SPEC_TEST(an_edit_wants_the_text_once_and_says_where_it_is),
        SPEC_TEST(an_edit_can_replace_all),
        SPEC_TEST(a_directory_is_deleted_when_it_is_empty_or_with_all_in_it),
        SPEC_TEST(the_workspace_itself_is_neither_deleted_nor_moved),
        SPEC_TEST(a_move_takes_directories_and_can_refuse_to_replace),
        SPEC_TEST(a_directory_of_the_seed_is_moved_too),
    };

    return spec_run_tests("changes", tests);
}
