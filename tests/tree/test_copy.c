/* SPDX-License-Identifier: Apache-2.0 */
#include "sparse.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

#include "tree/copy.h"

static struct pinfold_error err;

struct fixture {
    int src, dst;
    struct pf_globs *include, *exclude;
    struct pf_copy_options options;
    struct pf_copy_result result;
};

static struct fixture prepare(const struct tmp *tmp)
{
    struct fixture f = { .src = -1 };

    if (faccessat(tmp->fd, "src", F_OK, 0) < 0) {
        put_dir(tmp->fd, "src");
        put_dir(tmp->fd, "dst");
    }
    f.src = sub(tmp->fd, "src");
    f.dst = sub(tmp->fd, "dst");
    f.options = (struct pf_copy_options){
        .src_fd = f.src,
        .dst_fd = f.dst,
        .src_name = "src",
        .dst_name = "dst",
    };
    return f;
}

static struct fixture prepare_seed(const struct tmp *tmp)
{
    struct fixture f = prepare(tmp);

    f.options.empty_dirs = f.options.links = true;
    return f;
}

static struct fixture prepare_flush(const struct tmp *tmp, const char *include)
{
    struct fixture f = prepare(tmp);
    const char *const patterns[] = { include, NULL };

    f.options.skip_identical = true;
    if (include) {
        assert_int_equal(pf_globs_new(patterns, &f.include, &err), 0);
        f.options.include = f.include;
    }
    return f;
}

static void exclude(struct fixture *f, const char *pattern)
{
    const char *const patterns[] = { pattern, NULL };

    assert_int_equal(pf_globs_new(patterns, &f->exclude, &err), 0);
    f->options.exclude = f->exclude;
}

static void run(struct fixture *f)
{
    if (pf_copy_tree(&f->options, &f->result, &err) < 0)
        fail_msg("%s", err.msg);
}

static void done(struct fixture *f)
{
    pinfold_strings_done(&f->result.errors);
    pinfold_strings_done(&f->result.skipped);
    pf_globs_free(f->include);
    pf_globs_free(f->exclude);
    close(f->src);
    close(f->dst);
}

/* The list as one text, each item followed by a blank. */
static const char *joined(const struct pinfold_strings *list)
{
    static char text[4096];

    text[0] = '\0';
    for (size_t i = 0; i < list->count; i++)
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s ", list->items[i]);
    return text;
}

static void check_error(const struct fixture *f, size_t index, const char *path, const char *why)
{
    assert_true(index < f->result.errors.count);
    if (!strstr(f->result.errors.items[index], path) || !strstr(f->result.errors.items[index], why))
        fail_msg("says: %s", f->result.errors.items[index]);
}

static void check_counts(const struct fixture *f, uint64_t files, uint64_t bytes, size_t errors)
{
    if (f->result.errors.count != errors)
        fail_msg("errors: %s", joined(&f->result.errors));
    assert_int_equal(f->result.files, files);
    assert_int_equal(f->result.bytes, bytes);
}

static void a_seed_keeps_bytes_modes_names_and_empty_directories(void **state)
{
    struct fixture f = prepare_seed(*state);
    mode_t mask = umask(077);

    put(f.src, "a", "alpha");
    put_dir(f.src, "d");
    put_dir(f.src, "d/empty");
    put(f.src, "d/\xff\xfe\n", "raw");
    put(f.src, "d/run", "#!");
    assert_int_equal(fchmodat(f.src, "d/run", 06751, 0), 0);
    assert_int_equal(fchmodat(f.src, "a", 0464, 0), 0);
    run(&f);
    umask(mask);
    check_counts(&f, 3, 10, 0);
    check_file(f.dst, "a", "alpha");
    check_file(f.dst, "d/\xff\xfe\n", "raw");
    assert_int_equal(mode_of(f.dst, "d/run"), 0751);
    assert_int_equal(mode_of(f.dst, "a"), 0464);
    assert_int_equal(faccessat(f.dst, "d/empty", F_OK, 0), 0);
    done(&f);
}

static void a_second_seed_overwrites_and_never_deletes(void **state)
{
    struct fixture f = prepare_seed(*state);

    put(f.src, "a", "new");
    put(f.dst, "a", "old and longer");
    put(f.dst, "mine", "kept");
    put_dir(f.src, "d");
    put(f.src, "d/x", "x");
    put_dir(f.dst, "d");
    put(f.dst, "elsewhere", "safe");
    put(f.src, "l", "file");
    put_link(f.dst, "l", "elsewhere");
    run(&f);
    check_counts(&f, 3, 8, 0);
    check_file(f.dst, "a", "new");
    check_file(f.dst, "mine", "kept");
    check_file(f.dst, "d/x", "x");
    check_file(f.dst, "l", "file");
    check_file(f.dst, "elsewhere", "safe");
    done(&f);
}

static void excluded_directories_are_one_entry(void **state)
{
    struct fixture f = prepare_seed(*state);

    put_dir(f.src, "a");
    put_dir(f.src, "a/secrets");
    put(f.src, "a/secrets/key", "key");
    put(f.src, "a/ok", "ok");
    put(f.src, "secrets", "a file");
    exclude(&f, "secrets/");
    run(&f);
    check_counts(&f, 2, 8, 0);
    assert_string_equal(joined(&f.result.skipped), "a/secrets/ ");
    assert_int_equal(faccessat(f.dst, "a/secrets", F_OK, 0), -1);
    check_file(f.dst, "secrets", "a file");
    done(&f);
}

static void a_link_counts_as_the_directory_it_may_lead_to(void **state)
{
    struct fixture f = prepare_seed(*state);

    put_dir(f.src, "real");
    put_dir(f.src, "a");
    put(f.src, "file", "f");
    put_link(f.src, "secrets", "real");
    put_link(f.src, "a/secrets", "nowhere");
    put_dir(f.src, "b");
    put_link(f.src, "b/secrets", "../file");
    exclude(&f, "secrets/");
    run(&f);
    assert_string_equal(joined(&f.result.skipped), "a/secrets secrets ");
    assert_int_equal(faccessat(f.dst, "b/secrets", F_OK, 0), 0);
    done(&f);
}

static void links_travel_only_when_they_stay_inside(void **state)
{
    struct tmp *tmp = *state;
    struct fixture f = prepare_seed(tmp);
    char target[16];

    put(tmp->fd, "secret", "secret");
    put(f.src, "file", "f");
    put_dir(f.src, "d");
    put_link(f.src, "d/good", "../file");
    put_link(f.src, "d/later", "not-there-yet");
    put_link(f.src, "d/out", "../../secret");
    put_link(f.src, "abs", "/etc/passwd");
    put_link(f.src, "root", "/");
    put_link(f.src, "hop", "d/out");
    put_link(f.src, "in-and-out", "../src/file");
    put_link(f.src, "loop", "loop");
    run(&f);
    check_counts(&f, 1, 1, 0);
    assert_string_equal(joined(&f.result.skipped), "abs d/out hop in-and-out loop root ");
    assert_int_equal(readlinkat(f.dst, "d/good", target, sizeof(target)), 7);
    assert_memory_equal(target, "../file", 7);
    assert_int_equal(readlinkat(f.dst, "d/later", target, sizeof(target)), 13);
    assert_int_equal(faccessat(f.dst, "hop", F_OK, AT_SYMLINK_NOFOLLOW), -1);
    done(&f);
}

static void special_files_are_skipped_without_waiting(void **state)
{
    struct fixture f = prepare_seed(*state);

    put_dir(f.src, "d");
    assert_int_equal(mkfifoat(f.src, "d/fifo", 0600), 0);
    put(f.src, "f", "x");
    run(&f);
    check_counts(&f, 1, 1, 0);
    assert_string_equal(joined(&f.result.skipped), "d/fifo ");
    done(&f);
}

static void roots_that_are_the_same_or_nested_are_not_copied(void **state)
{
    struct tmp *tmp = *state;
    struct fixture f = prepare_seed(tmp);

    put(f.src, "f", "content");
    f.options.dst_fd = f.src;
    run(&f);
    check_counts(&f, 0, 0, 0);
    check_file(f.src, "f", "content");
    put_dir(f.src, "in");
    f.options.dst_fd = sub(f.src, "in");
    assert_int_equal(pf_copy_tree(&f.options, &f.result, &err), -PINFOLD_EPREPARE);
    assert_non_null(strstr(err.msg, "\"src\""));
    close(f.options.dst_fd);
    f.options.dst_fd = tmp->fd;
    assert_int_equal(pf_copy_tree(&f.options, &f.result, &err), -PINFOLD_EPREPARE);
    check_file(f.src, "f", "content");
    check_file(tmp->fd, "f", NULL);
    done(&f);
}

static void two_names_of_one_file_stay_whole(void **state)
{
    struct tmp *tmp = *state;

    for (int flush = 0; flush < 2; flush++) {
        struct fixture f = flush ? prepare_flush(tmp, "*") : prepare_seed(tmp);

        if (!flush) {
            put(f.src, "f", "content");
            assert_int_equal(linkat(f.src, "f", f.dst, "f", 0), 0);
        }
        run(&f);
        check_counts(&f, 0, 0, 0);
        check_file(f.src, "f", "content");
        check_file(f.dst, "f", "content");
        done(&f);
    }
}

static void a_flush_takes_what_matches_and_differs(void **state)
{
    struct fixture f = prepare_flush(*state, "src/**");
    struct stat before, after;

    put_dir(f.src, "src");
    put_dir(f.src, "src/empty");
    put_dir(f.src, "src/d");
    put(f.src, "src/d/new", "new");
    put(f.src, "src/same", "same");
    put(f.src, "src/changed", "12345");
    put(f.src, "Makefile", "no");
    put_dir(f.src, "other");
    put(f.src, "other/x", "no");
    put_dir(f.dst, "src");
    put(f.dst, "src/same", "same");
    put(f.dst, "src/changed", "54321");
    put(f.dst, "src/host-only", "kept");
    assert_int_equal(fchmodat(f.src, "src/changed", 0755, 0), 0);
    assert_int_equal(fstatat(f.dst, "src/same", &before, 0), 0);
    run(&f);
    check_counts(&f, 2, 8, 0);
    check_file(f.dst, "src/d/new", "new");
    check_file(f.dst, "src/changed", "12345");
    check_file(f.dst, "src/host-only", "kept");
    assert_int_equal(mode_of(f.dst, "src/changed"), 0755);
    assert_int_equal(fstatat(f.dst, "src/same", &after, 0), 0);
    assert_int_equal(before.st_ino, after.st_ino);
    assert_int_equal(before.st_mtim.tv_nsec, after.st_mtim.tv_nsec);
    check_file(f.dst, "Makefile", NULL);
    assert_int_equal(faccessat(f.dst, "other", F_OK, 0), -1);
    assert_int_equal(faccessat(f.dst, "src/empty", F_OK, 0), -1);
    done(&f);
}

static void excludes_win_over_includes(void **state)
{
    struct fixture f = prepare_flush(*state, "*.json");

    put_dir(f.src, "node_modules");
    put(f.src, "node_modules/x.json", "{}");
    put(f.src, "y.json", "{}");
    exclude(&f, "node_modules");
    run(&f);
    check_counts(&f, 1, 2, 0);
    check_file(f.dst, "y.json", "{}");
    assert_int_equal(faccessat(f.dst, "node_modules", F_OK, 0), -1);
    done(&f);
}

static void a_flush_goes_through_no_link_on_either_side(void **state)
{
    struct tmp *tmp = *state;
    struct fixture f = prepare_flush(tmp, "*.md");

    put_dir(tmp->fd, "outside");
    put(tmp->fd, "outside/x.md", "safe");
    put_dir(f.src, "d");
    put(f.src, "d/x.md", "evil");
    put(f.src, "d/y.md", "evil");
    put_link(f.dst, "d", "../outside");
    put(f.src, "f.md", "evil");
    put_link(f.dst, "f.md", "../outside/x.md");
    put_link(f.src, "link.md", "d/x.md");
    put_link(f.src, "unmatched", "d/x.md");
    put_dir(f.src, "g.md");
    put(f.src, "g.md/z", "z");
    put(f.dst, "g.md", "a file in the way");
    put(f.src, "ok.md", "ok");
    run(&f);
    check_counts(&f, 1, 2, 4);
    check_error(&f, 0, "\"d\"", "symbolic link");
    check_error(&f, 1, "\"f.md\"", "symbolic link");
    check_error(&f, 2, "\"g.md\"", "in its place");
    check_error(&f, 3, "\"link.md\"", "symbolic link");
    check_file(tmp->fd, "outside/x.md", "safe");
    check_file(tmp->fd, "outside/y.md", NULL);
    check_file(f.dst, "ok.md", "ok");
    done(&f);
}

static void a_flush_leaves_a_link_that_the_destination_has_too(void **state)
{
    struct tmp *tmp = *state;
    struct fixture f = prepare_flush(tmp, "*");

    put_dir(f.src, "d");
    put_link(f.src, "d/same", "../x");
    put_link(f.src, "d/other", "../x");
    put_link(f.src, "gone", "x");
    put_dir(f.dst, "d");
    put_link(f.dst, "d/same", "../x");
    put_link(f.dst, "d/other", "../y");
    run(&f);
    check_counts(&f, 0, 0, 2);
    check_error(&f, 0, "\"d/other\"", "symbolic link");
    check_error(&f, 1, "\"gone\"", "symbolic link");
    done(&f);
}

static void one_bad_path_does_not_stop_the_rest(void **state)
{
    struct fixture f = prepare_seed(*state);

    put(f.src, "a", "a");
    put_dir(f.dst, "a");
    put_dir(f.src, "b");
    put(f.src, "b/x", "x");
    put(f.dst, "b", "in the way");
    put(f.src, "c", "c");
    run(&f);
    check_counts(&f, 1, 1, 2);
    check_error(&f, 0, "copy \"a\"", "directory");
    check_error(&f, 1, "copy \"b\"", "in its place");
    check_file(f.dst, "c", "c");
    done(&f);
}

static void holes_stay_holes(void **state)
{
    enum { SIZE = 64 * 1024 * 1024 };
    struct fixture f = prepare_seed(*state);
    struct stat st;
    char text[4] = "";
    int fd = openat(f.src, "sparse", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

    assert_int_equal(pwrite(fd, "head", 4, 0), 4);
    assert_int_equal(pwrite(fd, "tail", 4, SIZE - 4), 4);
    close(fd);
    run(&f);
    check_counts(&f, 1, SIZE, 0);
    assert_int_equal(fstatat(f.dst, "sparse", &st, 0), 0);
    assert_int_equal(st.st_size, SIZE);
    assert_true(st.st_blocks * 512 < SIZE / 4);
    fd = openat(f.dst, "sparse", O_RDONLY | O_CLOEXEC);
    assert_int_equal(pread(fd, text, 4, SIZE - 4), 4);
    assert_memory_equal(text, "tail", 4);
    close(fd);
    done(&f);
}

/* A flush of what is there already, and what a plan says of it. */
static void a_huge_hole_is_flushed_twice_in_no_time(void **state)
{
    uint64_t before = bytes_read();
    struct fixture f = prepare_flush(*state, NULL);
    struct pinfold_plan plan = { 0 };
    off_t size = put_huge(f.src, "huge", "end");

    run(&f);
    check_counts(&f, 1, (uint64_t)size, 0);
    f.result = (struct pf_copy_result){ 0 };
    run(&f);
    check_counts(&f, 0, 0, 0);
    f.options.plan = &plan;
    run(&f);
    assert_int_equal(plan.count, 1);
    assert_int_equal(plan.items[0].action, PINFOLD_PLAN_IDENTICAL);
    f.options.plan = NULL;
    put_huge(f.src, "huge", "End");
    run(&f);
    check_counts(&f, 1, (uint64_t)size, 0);
    assert_true(bytes_read() - before < LITTLE);
    pinfold_plan_done(&plan);
    done(&f);
}

/* Enough files for the threads to be started, in many directories, some large. */
static void many_files_are_copied_by_several_threads(void **state)
{
    enum { DIRS = 40, FILES = 50, LARGE = 700000 };
    struct fixture f = prepare_seed(*state);
    char name[64], *large = malloc(LARGE + 1), back[16];
    int before;
    int fd;

    assert_non_null(large);
    memset(large, 'L', LARGE);
    large[LARGE] = '\0';
    for (int d = 0; d < DIRS; d++) {
        snprintf(name, sizeof(name), "d%d", d);
        put_dir(f.src, name);
        for (int i = 0; i < FILES; i++) {
            snprintf(name, sizeof(name), "d%d/f%d", d, i);
            put(f.src, name, i ? name : large);
        }
    }
    before = count_descriptors();
    run(&f);
    assert_int_equal(count_descriptors(), before);
    assert_int_equal(f.result.files, DIRS * FILES);
    assert_int_equal(f.result.errors.count, 0);
    for (int d = 0; d < DIRS; d++) {
        for (int i = 1; i < FILES; i++) {
            snprintf(name, sizeof(name), "d%d/f%d", d, i);
            check_file(f.dst, name, name);
        }
        snprintf(name, sizeof(name), "d%d/f0", d);
        fd = openat(f.dst, name, O_RDONLY | O_CLOEXEC);
        assert_int_equal(lseek(fd, 0, SEEK_END), LARGE);
        assert_int_equal(pread(fd, back, 1, LARGE - 1), 1);
        assert_int_equal(back[0], 'L');
        close(fd);
    }
    free(large);
    done(&f);
}

static void a_tree_deeper_than_a_path_can_say_is_copied(void **state)
{
    enum { DEPTH = 400 };
    static const char name[] = "a-directory-with-a-long-name";
    struct fixture f = prepare_seed(*state);
    int fd = sub(f.src, "."), next;

    for (int i = 0; i < DEPTH; i++) {
        put_dir(fd, name);
        put(fd, "z", "z");
        next = sub(fd, name);
        close(fd);
        fd = next;
    }
    put(fd, "bottom", "found");
    close(fd);
    run(&f);
    check_counts(&f, DEPTH + 1, DEPTH + 5, 0);
    fd = sub(f.dst, ".");
    for (int i = 0; i < DEPTH; i++) {
        check_file(fd, "z", "z");
        next = sub(fd, name);
        close(fd);
        fd = next;
    }
    check_file(fd, "bottom", "found");
    close(fd);
    done(&f);
}

static void check_plan(struct fixture *f, const char *expected)
{
    static const char *const actions[] = { "copy", "overwrite", "identical", "skip", "error" };
    struct pinfold_plan plan = { .items = NULL };
    char text[4096] = "";

    f->options.plan = &plan;
    run(f);
    for (size_t i = 0; i < plan.count; i++) {
        const struct pinfold_plan_entry *entry = &plan.items[i];

        snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s %s%s%s %d\n",
                 actions[entry->action], entry->path, entry->reason[0] ? ": " : "", entry->reason,
                 (int)entry->size);
    }
    pinfold_plan_done(&plan);
    assert_string_equal(text, expected);
}

static void a_dry_run_of_a_flush_lists_everything_and_changes_nothing(void **state)
{
    struct fixture f = prepare_flush(*state, "src/**");

    put_dir(f.src, "src");
    put_dir(f.src, "src/new");
    put(f.src, "src/new/n", "123");
    put(f.src, "src/same", "same");
    put(f.src, "src/changed", "12345");
    put(f.src, "src/bad.pem", "key");
    put_link(f.src, "src/link", "same");
    put(f.src, "Makefile", "no");
    put_dir(f.src, "other");
    put(f.src, "other/x", "no");
    put_dir(f.dst, "src");
    put(f.dst, "src/same", "same");
    put(f.dst, "src/changed", "54321");
    exclude(&f, "*.pem");
    check_plan(&f, "skip Makefile: not matched by an include pattern 0\n"
                   "skip other/: not matched by an include pattern 0\n"
                   "skip src/bad.pem: excluded by a pattern 0\n"
                   "overwrite src/changed 5\n"
                   "error src/link: it is a symbolic link, which is not followed 0\n"
                   "copy src/new/n 3\n"
                   "identical src/same: the same bytes are there already 0\n");
    assert_int_equal(faccessat(f.dst, "src/new", F_OK, 0), -1);
    check_file(f.dst, "src/changed", "54321");
    done(&f);
}

static void a_dry_run_of_a_seed_needs_no_destination(void **state)
{
    struct fixture f = prepare_seed(*state);

    put_dir(f.src, ".git");
    put(f.src, ".git/config", "x");
    put(f.src, "a", "alpha");
    put_dir(f.src, "d");
    put(f.src, "d/b", "b");
    put_link(f.src, "in", "a");
    put_link(f.src, "out", "/");
    assert_int_equal(mkfifoat(f.src, "fifo", 0600), 0);
    exclude(&f, ".git");
    f.options.dst_fd = -1;
    check_plan(&f, "skip .git/: excluded by a pattern 0\n"
                   "copy a 5\n"
                   "copy d/b 1\n"
                   "skip fifo: no regular file but a FIFO, socket or device 0\n"
                   "copy in 0\n"
                   "skip out: a symbolic link that leaves the source 0\n");
    done(&f);
}

static void a_fired_token_ends_the_copy(void **state)
{
    struct fixture f = prepare_seed(*state);
    struct pinfold_cancel *cancel = NULL;

    put(f.src, "f", "x");
    assert_int_equal(pinfold_cancel_new(&cancel, NULL), 0);
    pinfold_cancel_fire(cancel);
    f.options.cancel = cancel;
    assert_int_equal(pf_copy_tree(&f.options, &f.result, &err), -PINFOLD_ECANCELLED);
    check_file(f.dst, "f", NULL);
    pinfold_cancel_free(cancel);
    done(&f);
}

struct progress {
    unsigned calls;
    uint64_t files, bytes;
    pthread_t thread;
    struct pinfold_cancel *cancel;
};

static void on_progress(void *ctx, uint64_t files, uint64_t bytes)
{
    struct progress *progress = ctx;

    assert_true(pthread_equal(progress->thread, pthread_self()));
    assert_true(files >= progress->files && bytes >= progress->bytes);
    progress->files = files;
    progress->bytes = bytes;
    progress->calls++;
    pinfold_cancel_fire(progress->cancel);
}

/* Cancels once work is under way: the first report comes before there was any. It takes so long
 * that the next one is due at the next occasion. */
static void cancel_later(void *ctx, uint64_t files, uint64_t bytes)
{
    struct pinfold_cancel *cancel = ctx;
    static unsigned reports;

    (void)files;
    (void)bytes;
    if (++reports % 2 == 0)
        pinfold_cancel_fire(cancel);
    else
        usleep(500000);
}

/* What was read tells that it was not the whole of the two files. */
static void comparing_large_files_can_be_cancelled(void **state)
{
    enum { SIZE = 2 * LITTLE };
    struct fixture f = prepare_flush(*state, NULL);
    struct pinfold_plan plan = { .count = 0 };
    char *data = malloc(SIZE);

    memset(data, 'x', SIZE);
    for (int i = 0; i < 2; i++) {
        int fd = openat(i ? f.src : f.dst, "large", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        assert_true(fd >= 0);
        assert_int_equal(write(fd, data, SIZE), SIZE);
        close(fd);
    }
    free(data);
    for (int i = 0; i < 2; i++) {
        uint64_t before = bytes_read();
        assert_int_equal(pinfold_cancel_new(&f.options.cancel, NULL), 0);
        f.options.on_progress = cancel_later;
        f.options.on_progress_ctx = f.options.cancel;
        f.options.plan = i ? &plan : NULL;
        assert_int_equal(pf_copy_tree(&f.options, &f.result, &err), -PINFOLD_ECANCELLED);
        assert_true(bytes_read() - before < LITTLE);
        pinfold_cancel_free(f.options.cancel);
    }
    pinfold_plan_done(&plan);
    done(&f);
}

static void progress_comes_from_the_calling_thread_and_can_cancel(void **state)
{
    struct fixture f = prepare_seed(*state);
    struct progress progress = { .thread = pthread_self() };

    put(f.src, "f", "content");
    assert_int_equal(pinfold_cancel_new(&progress.cancel, NULL), 0);
    f.options.cancel = progress.cancel;
    f.options.on_progress = on_progress;
    f.options.on_progress_ctx = &progress;
    assert_int_equal(pf_copy_tree(&f.options, &f.result, &err), -PINFOLD_ECANCELLED);
    assert_int_equal(progress.calls, 1);
    check_file(f.dst, "f", NULL);
    pinfold_cancel_free(progress.cancel);
    done(&f);
}

static atomic_uint signals_seen;
static pthread_t main_thread;

static void on_signal(int signal)
{
    (void)signal;
    if (!pthread_equal(main_thread, pthread_self()))
        atomic_fetch_add(&signals_seen, 1);
}

static void *send_signals(void *arg)
{
    const atomic_bool *stop = arg;
    sigset_t all;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, NULL);
    while (!atomic_load(stop)) {
        kill(getpid(), SIGUSR1);
        usleep(200);
    }
    return NULL;
}

/* With the signal blocked in the calling thread, only the copier's threads could take it. */
static void the_threads_take_no_signals(void **state)
{
    struct fixture f = prepare_seed(*state);
    struct sigaction action = { .sa_handler = on_signal }, before;
    sigset_t set, old;
    atomic_bool stop = false;
    pthread_t thread;
    char name[16];

    for (int i = 0; i < 3000; i++) {
        snprintf(name, sizeof(name), "f%d", i);
        put(f.src, name, name);
    }
    main_thread = pthread_self();
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigaction(SIGUSR1, &action, &before);
    pthread_sigmask(SIG_BLOCK, &set, &old);
    assert_int_equal(pthread_create(&thread, NULL, send_signals, &stop), 0);
    run(&f);
    atomic_store(&stop, true);
    pthread_join(thread, NULL);
    check_counts(&f, 3000, f.result.bytes, 0);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    sigaction(SIGUSR1, &before, NULL);
    assert_int_equal(signals_seen, 0);
    done(&f);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, tmp_setup, tmp_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_seed_keeps_bytes_modes_names_and_empty_directories),
        TEST(a_second_seed_overwrites_and_never_deletes),
        TEST(excluded_directories_are_one_entry),
        TEST(a_link_counts_as_the_directory_it_may_lead_to),
        TEST(links_travel_only_when_they_stay_inside),
        TEST(special_files_are_skipped_without_waiting),
        TEST(roots_that_are_the_same_or_nested_are_not_copied),
        TEST(two_names_of_one_file_stay_whole),
        TEST(a_flush_takes_what_matches_and_differs),
        TEST(excludes_win_over_includes),
        TEST(a_flush_goes_through_no_link_on_either_side),
        TEST(a_flush_leaves_a_link_that_the_destination_has_too),
        TEST(one_bad_path_does_not_stop_the_rest),
        TEST(holes_stay_holes),
        TEST(a_huge_hole_is_flushed_twice_in_no_time),
        TEST(many_files_are_copied_by_several_threads),
        TEST(a_tree_deeper_than_a_path_can_say_is_copied),
        TEST(a_dry_run_of_a_flush_lists_everything_and_changes_nothing),
        TEST(a_dry_run_of_a_seed_needs_no_destination),
        TEST(a_fired_token_ends_the_copy),
        TEST(comparing_large_files_can_be_cancelled),
        TEST(progress_comes_from_the_calling_thread_and_can_cancel),
        TEST(the_threads_take_no_signals),
    };

    return cmocka_run_group_tests_name("copy", tests, NULL, NULL);
}
