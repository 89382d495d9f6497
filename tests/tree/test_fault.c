/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every operation is run again and again, and the Nth call of the C library made to fail, for
 * every N until one run has no failure. Each time: it succeeds or says an error, no descriptor is
 * left, no temporary name, and what lies there is the old content or the new one, never half of it.
 * Leaks are the sanitizer's to find.
 */
#include "tmp.h"

#include <limits.h>

#include "base/error.h"
#include "fault.h"
#include "tree/below.h"
#include "tree/beneath.h"
#include "tree/changes.h"
#include "tree/copy.h"
#include "tree/search.h"
#include "tree/temp.h"
#include "tree/walk.h"

enum { BIG = 300 * 1024 }; /* more than one buffer */

static char big[BIG];
static struct pinfold_error err;

struct place {
    int root, src, dst;
    struct stat src_st;
    struct pf_globs *globs;
};

/* src has files, links and directories; dst an older copy of some. */
static struct place build(const struct tmp *tmp)
{
    static const char *const patterns[] = { "*", NULL };
    struct place place;
    int fd;

    pf_tree_remove(tmp->fd, "root", NULL);
    put_dir(tmp->fd, "root");
    put_dir(tmp->fd, "root/src");
    put_dir(tmp->fd, "root/dst");
    place.root = sub(tmp->fd, "root");
    place.src = sub(place.root, "src");
    place.dst = sub(place.root, "dst");
    put_dir(place.src, "d");
    put_dir(place.src, "d/e");
    put(place.src, "d/e/f", "new");
    put(place.src, "d/g", "new");
    put(place.src, "top", "new");
    put(place.src, "same", "same");
    put_link(place.src, "link", "top");
    fd = openat(place.src, "big", O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    assert_int_equal(write(fd, big, BIG), BIG);
    close(fd);
    fd = openat(place.src, "sparse", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    assert_int_equal(pwrite(fd, "new", 3, BIG), 3);
    close(fd);
    put(place.dst, "top", "old");
    put(place.dst, "same", "same");
    put_dir(place.dst, "d");
    put(place.dst, "d/g", "old");
    put(place.dst, "link", "old");
    assert_int_equal(fstat(place.src, &place.src_st), 0);
    assert_int_equal(pf_globs_new(patterns, &place.globs, NULL), 0);
    return place;
}

static void leave(struct place *place)
{
    pf_globs_free(place->globs);
    close(place->root);
    close(place->src);
    close(place->dst);
}

/* Nothing temporary and nothing half below dst. */
static void check_whole(const struct place *place)
{
    struct pf_walk_entry entry;
    struct pf_walk *walk = NULL;
    struct stat st;

    assert_int_equal(pf_walk_new(place->dst, &walk, NULL), 0);
    while (pf_walk_next(walk, &entry) > 0) {
        assert_null(strstr(entry.path, PF_TEMP_PREFIX));
        if (entry.type != PF_WALK_FILE)
            continue;
        assert_int_equal(fstatat(entry.dir_fd, entry.name, &st, 0), 0);
        if (st.st_size != 3 && st.st_size != 4 && st.st_size != BIG && st.st_size != BIG + 3)
            fail_msg("%s has %lld bytes", entry.path, (long long)st.st_size);
    }
    pf_walk_free(walk);
}

static int seed_or_flush(struct place *place, bool seed)
{
    struct pf_copy_result result = { .files = 0 };
    struct pf_copy_options options = {
        .src_fd = place->src,
        .dst_fd = place->dst,
        .src_name = "src",
        .dst_name = "dst",
        .include = seed ? NULL : place->globs,
        .exclude = NULL,
        .empty_dirs = seed,
        .links = seed,
        .skip_identical = !seed,
        .fsync_files = !seed,
    };
    int r = pf_copy_tree(&options, &result, &err);

    /* Nothing here is to be left out of a seed: what is not there has an error. */
    if (r == 0 && seed && result.errors.count == 0 && result.skipped.count > 0)
        fail_msg("\"%s\" was left out without an error", result.skipped.items[0]);
    /* The flush always has one error: the link. */
    if (r == 0 && result.errors.count > (seed ? 0U : 1U))
        r = 1;
    pinfold_strings_done(&result.errors);
    pinfold_strings_done(&result.skipped);
    return r;
}

static int do_seed(struct place *place)
{
    return seed_or_flush(place, true);
}

static int do_flush(struct place *place)
{
    return seed_or_flush(place, false);
}

static int do_plan(struct place *place)
{
    struct pinfold_plan plan = { .items = NULL };
    struct pf_copy_result result = { .files = 0 };
    struct pf_copy_options options = {
        .src_fd = place->src,
        .dst_fd = place->dst,
        .src_name = "src",
        .dst_name = "dst",
        .skip_identical = true,
        .plan = &plan,
    };
    int r = pf_copy_tree(&options, &result, &err);

    for (size_t i = 0; r == 0 && i < plan.count; i++)
        if (plan.items[i].action == PINFOLD_PLAN_ERROR && strcmp(plan.items[i].path, "link") != 0)
            r = 1;
    pinfold_plan_done(&plan);
    pinfold_strings_done(&result.errors);
    pinfold_strings_done(&result.skipped);
    return r;
}

/* Whether a plan says anything of a path: itself, or that it could not look where it lies. */
static bool tells_of(const struct pinfold_plan *plan, const char *path)
{
    for (size_t i = 0; i < plan->count; i++) {
        const struct pinfold_plan_entry *entry = &plan->items[i];
        size_t len = strlen(entry->path);
        if (strcmp(entry->path, path) == 0 ||
            (entry->action == PINFOLD_PLAN_ERROR && entry->path[len - 1] == '/' &&
             (len == 1 || strncmp(entry->path, path, len) == 0)))
            return true;
    }
    return false;
}

static int do_plan_seed(struct place *place)
{
    static const char *const paths[] = { "big", "d/e/f", "d/g", "link", "same", "sparse", "top" };
    struct pinfold_plan plan = { .items = NULL };
    struct pf_copy_result result = { .files = 0 };
    struct pf_copy_options options = {
        .src_fd = place->src,
        .dst_fd = place->dst,
        .src_name = "src",
        .dst_name = "dst",
        .empty_dirs = true,
        .links = true,
        .plan = &plan,
    };
    int r = pf_copy_tree(&options, &result, &err);

    for (size_t i = 0; r == 0 && i < sizeof(paths) / sizeof(paths[0]); i++)
        if (!tells_of(&plan, paths[i]))
            fail_msg("the plan says nothing of \"%s\"", paths[i]);
    for (size_t i = 0; r == 0 && i < plan.count; i++)
        if (plan.items[i].action == PINFOLD_PLAN_ERROR)
            r = 1;
    pinfold_plan_done(&plan);
    pinfold_strings_done(&result.errors);
    pinfold_strings_done(&result.skipped);
    return r;
}

static int do_walk(struct place *place)
{
    struct pf_walk_entry entry;
    struct pf_walk *walk = NULL;
    int r = pf_walk_new(place->src, &walk, &err), errors = 0;

    if (r < 0)
        return r;
    while ((r = pf_walk_next(walk, &entry)) > 0)
        errors += entry.type == PF_WALK_ERROR;
    pf_walk_free(walk);
    return r < 0 ? pf_fail_nomem(&err) : errors > 0;
}

static int do_globs(struct place *place)
{
    static const char *const patterns[] = { "a/**/[b-c]*", "*.x", "secrets/", NULL };
    struct pf_globs *globs = NULL;
    int r = pf_globs_new(patterns, &globs, &err);

    (void)place;
    pf_globs_free(globs);
    return r;
}

static int do_normalize(struct place *place)
{
    char *path = NULL;
    int r = pinfold_path_normalize("/ws/a/../b", 10, "/ws", &path, &err);

    (void)place;
    free(path);
    return r;
}

static int do_expand(struct place *place)
{
    char *path = NULL;
    int r = pf_path_expand("/a/b", &path, &err);

    (void)place;
    free(path);
    return r;
}

static int do_read(struct place *place)
{
    struct pinfold_bytes bytes = { .data = NULL };
    int r = pf_file_read(place->src, "big", PF_BUF_UNLIMITED, &bytes, NULL, &err);

    if (r == 0)
        assert_int_equal(bytes.len, BIG);
    pinfold_bytes_done(&bytes);
    return r;
}

static int do_write(struct place *place)
{
    return pf_file_write(place->dst, "x/y/new", big, BIG, false, NULL, &err);
}

static int do_overwrite(struct place *place)
{
    return pf_file_write(place->dst, "top", big, BIG, false, NULL, &err);
}

static int do_exclusive(struct place *place)
{
    return pf_file_write(place->dst, "new", big, BIG, true, NULL, &err);
}

static int do_copy(struct place *place)
{
    return pf_file_copy(place->src, "big", place->dst, "x/top", false, NULL, NULL, &err);
}

static int do_copy_sparse(struct place *place)
{
    return pf_file_copy(place->src, "sparse", place->dst, "top", false, NULL, NULL, &err);
}

static int do_move(struct place *place)
{
    return pf_file_move(place->dst, "top", "x/moved", 0, &err);
}

static int do_remove(struct place *place)
{
    return pf_file_remove(place->dst, "top", &err);
}

static int do_replace(struct place *place)
{
    const struct pinfold_bytes old = { (char[]){ "old" }, 3 };

    return pf_file_replace(place->dst, "top", &old, "new", 3, NULL, &err);
}

static int do_dir_remove(struct place *place)
{
    return pf_dir_remove(place->root, "src", true, &err);
}

static int do_move_dir(struct place *place)
{
    return pf_file_move(place->root, "src/d", "dst/x/d", PF_MOVE_DIRS | PF_MOVE_NO_REPLACE, &err);
}

static int count_text(void *ctx, const char *text, size_t len)
{
    (void)text;
    *(size_t *)ctx += len;
    return 0;
}

/* Links of the seed of which only following them tells that they lead out of it: by calls that are
 * never made to fail. */
static void put_links_out(const struct place *place)
{
    static const char *const links[][2] = { { "root", "/" }, { "out", "root/tmp" } };
    char path[64];

    for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++) {
        snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", place->src, links[i][0]);
        assert_int_equal(symlink(links[i][1], path), 0);
    }
}

/* Whether a flush that leaves alone what cannot be told may write over a path without its being
 * among the changes. */
static bool may_be_undone(const struct pinfold_changes *changes, const char *path)
{
    for (size_t i = 0; i < changes->count; i++)
        if (strcmp(changes->items[i].path, path) == 0)
            return false;
    for (size_t i = 0; i < changes->unknown.count; i++)
        if (pf_is_at_or_below(path, changes->unknown.items[i]))
            return false;
    return true;
}

static void check_changes(const struct pinfold_changes *changes)
{
    enum { CHANGES = 6 };
    static const char *const both[] = { "d/g", "top" };

    for (size_t i = 0; i < sizeof(both) / sizeof(both[0]); i++)
        if (may_be_undone(changes, both[i]))
            fail_msg("\"%s\" differs, and nobody knows", both[i]);

    if (changes->errors.count == 0 && changes->count != CHANGES)
        fail_msg("%zu changes and no error", changes->count);
    for (size_t i = 0; i < changes->count; i++) /* what was never seeded is not deleted */
        assert_string_not_equal(changes->items[i].path, "out");
}

/* What is said to have changed is what has, or there is an error. */
static int do_changes(struct place *place)
{
    size_t written = 0;
    struct pinfold_changes_options options = {
        .size = sizeof(options),
        .on_diff = count_text,
        .on_diff_ctx = &written,
    };
    struct pinfold_changes changes = { .items = NULL };
    char source[64];
    struct pf_seed_mark mark = { .source = source, .began_ns = INT64_MAX, .ended_ns = INT64_MAX };
    struct pf_changes_request request = {
        .root_fd = place->dst,
        .upper_fd = -1,
        .mark = &mark,
        .fetched = true,
        .include = place->globs,
        .path = ".",
        .options = &options,
    };
    static const char *const none[] = { NULL };
    struct pf_globs *exclude = NULL;
    int r;

    put_links_out(place);
    mark.dev = place->src_st.st_dev;
    mark.ino = place->src_st.st_ino;
    snprintf(source, sizeof(source), "/proc/self/fd/%d", place->src);
    r = pf_globs_new(none, &exclude, &err);
    request.exclude = request.seed_exclude = exclude;
    if (r == 0)
        r = pf_changes_find(&request, &changes, &err);
    if (r == 0)
        check_changes(&changes);
    if (r == 0)
        r = pf_changes_write(&request, &changes, &err);
    if (r == 0)
        r = changes.errors.count > 0;
    pf_globs_free(exclude);
    pinfold_changes_done(&changes);
    return r;
}

static int do_search(struct place *place)
{
    struct pinfold_search_options options = { .size = sizeof(options),
                                              .text = "e[w]",
                                              .regex = true };
    struct pf_search_request request = { .root_fd = place->src, .path = ".", .options = &options };
    struct pinfold_search_result result = { .items = NULL };
    int r = pf_search(&request, &result, &err);

    if (r == 0 && result.errors.count == 0 && result.matches != 3)
        fail_msg("%llu matches and no error", (unsigned long long)result.matches);
    if (r == 0)
        r = result.errors.count > 0;
    pinfold_search_result_done(&result);
    return r;
}

static int do_list(struct place *place)
{
    struct pinfold_file_infos infos = { .items = NULL };
    int r = pf_dir_list(place->src, ".", &infos, NULL, &err);

    pinfold_file_infos_done(&infos);
    return r;
}

static int do_tree_remove(struct place *place)
{
    return pf_tree_remove(place->root, "src", &err);
}

static int do_relation(struct place *place)
{
    enum pf_root_relation relation;

    return pf_roots_relation(place->src, place->dst, &relation, &err);
}

static int do_fallback(struct place *place)
{
    int fd;

    pf_beneath_force_fallback(true);
    fd = pf_beneath_open(place->src, "d/../link", O_RDONLY, 0);
    pf_beneath_force_fallback(false);
    if (fd >= 0)
        close(fd);
    return fd < 0; /* an errno, not one of our codes */
}

static void torture(void **state, int (*operation)(struct place *), int sys_errno)
{
    const struct tmp *tmp = *state;
    const char *failed;
    unsigned at = 0, faults = 0;
    int before, after;
    struct place place;
    int r;

    do {
        place = build(tmp);
        err = (struct pinfold_error)PINFOLD_ERROR_INIT;
        before = count_descriptors();
        fault_arm(++at, sys_errno);
        r = operation(&place);
        failed = fault_disarm();
        after = count_descriptors();
        if (after != before)
            fail_msg("call %u, %s: %d descriptors are left", at, failed, after - before);
        if (!failed && r != 0)
            fail_msg("without a fault: %d, %s", r, err.msg);
        if (r < 0 && (err.code != -r || err.msg[0] == '\0'))
            fail_msg("call %u, %s: returns %d and says %d \"%s\"", at, failed, r, err.code,
                     err.msg);
        faults += failed && r != 0;
        check_whole(&place);
        leave(&place);
        assert_in_range(at, 1, 5000);
    } while (failed);
    assert_in_range(faults, 1, at);
}

#define TORTURE(operation, name)           \
    static void name(void **state)         \
    {                                      \
        torture(state, operation, EIO);    \
        torture(state, operation, ENOSPC); \
        torture(state, operation, ENOMEM); \
    }

TORTURE(do_seed, seeding_survives_every_fault)
TORTURE(do_flush, flushing_survives_every_fault)
TORTURE(do_plan, a_dry_run_survives_every_fault)
TORTURE(do_plan_seed, a_dry_run_of_a_seed_survives_every_fault)
TORTURE(do_walk, walking_survives_every_fault)
TORTURE(do_globs, compiling_patterns_survives_every_fault)
TORTURE(do_normalize, normalising_survives_every_fault)
TORTURE(do_expand, expanding_survives_every_fault)
TORTURE(do_read, reading_survives_every_fault)
TORTURE(do_write, writing_survives_every_fault)
TORTURE(do_overwrite, overwriting_survives_every_fault)
TORTURE(do_exclusive, exclusive_writing_survives_every_fault)
TORTURE(do_copy, copying_survives_every_fault)
TORTURE(do_copy_sparse, copying_holes_survives_every_fault)
TORTURE(do_move, moving_survives_every_fault)
TORTURE(do_remove, removing_survives_every_fault)
TORTURE(do_replace, replacing_survives_every_fault)
TORTURE(do_dir_remove, removing_a_directory_survives_every_fault)
TORTURE(do_move_dir, moving_a_directory_survives_every_fault)
TORTURE(do_changes, finding_changes_survives_every_fault)
TORTURE(do_search, searching_survives_every_fault)
TORTURE(do_list, listing_survives_every_fault)
TORTURE(do_tree_remove, removing_a_tree_survives_every_fault)
TORTURE(do_relation, comparing_roots_survives_every_fault)
TORTURE(do_fallback, the_walk_by_components_survives_every_fault)

/* File systems that cannot, and files of which the kernel says that they are at their end. */
static void what_the_kernel_does_not_copy_goes_through_the_buffer(void **state)
{
    static const size_t stops[] = { 0, 1, 250 * 1000, BIG, SIZE_MAX };
    static char copied[BIG];

    for (size_t i = 0; i < sizeof(stops) / sizeof(stops[0]); i++)
        for (ssize_t end = -1; end <= 0; end++) {
            struct place place = build(*state);
            uint64_t bytes = 0;
            int fd;

            fault_limit_kernel_copies(stops[i], end);
            assert_int_equal(
                    pf_file_copy(place.src, "big", place.dst, "big", false, &bytes, NULL, &err), 0);
            fault_limit_kernel_copies(SIZE_MAX, 0);
            assert_int_equal(bytes, BIG);
            fd = openat(place.dst, "big", O_RDONLY | O_CLOEXEC);
            assert_int_equal(read(fd, copied, BIG), BIG);
            assert_memory_equal(copied, big, BIG);
            assert_int_equal(read(fd, copied, 1), 0);
            close(fd);
            leave(&place);
        }
}

/* What happens to a file while it is read. */
struct meddling {
    int src;
    const char *name;
    unsigned reads, from, until; /* meddle before these reads, counted from 1 */
    struct pinfold_cancel *cancel;
};

static void meddle(void *ctx)
{
    struct meddling *meddling = ctx;
    int fd;

    if (++meddling->reads < meddling->from || meddling->reads > meddling->until)
        return;
    if (meddling->cancel) {
        pinfold_cancel_fire(meddling->cancel);
        return;
    }
    fd = openat(meddling->src, meddling->name, O_WRONLY | O_APPEND | O_CLOEXEC);
    assert_int_equal(write(fd, "more", 4), 4);
    close(fd);
}

static const unsigned always = UINT_MAX;

/* Seed a source of one file of this size. Returns the size it has in the destination, or -1. */
static off_t seed_meddled(const struct tmp *tmp, size_t size, struct meddling *meddling,
                          struct pf_copy_result *ret, int *ret_r)
{
    struct pf_copy_options options = { .src_name = "src", .dst_name = "dst", .links = true };
    struct place place = build(tmp);
    struct stat st;
    int fd;

    meddling->src = place.root;
    put_dir(place.root, "one");
    meddling->name = "one/file";
    fd = openat(place.root, meddling->name, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    assert_int_equal(write(fd, big, size), size);
    close(fd);
    options.src_fd = sub(place.root, "one");
    options.dst_fd = place.dst;
    options.cancel = meddling->cancel;
    fault_hook_reads(meddle, meddling);
    *ret_r = pf_copy_tree(&options, ret, &err);
    fault_hook_reads(NULL, NULL);
    close(options.src_fd);
    if (fstatat(place.dst, "file", &st, 0) < 0)
        st.st_size = -1;
    leave(&place);
    return st.st_size;
}

/* The umask is read through read(2) as well: the second one is the file's. */
static void a_file_that_changes_once_is_read_again(void **state)
{
    static const size_t sizes[] = { 100, BIG };

    for (size_t i = 0; i < 2; i++) {
        struct meddling meddling = { .until = 2 };
        struct pf_copy_result result = { .files = 0 };
        int r;
        off_t size = seed_meddled(*state, sizes[i], &meddling, &result, &r);

        assert_int_equal(r, 0);
        assert_int_equal(result.errors.count, 0);
        assert_int_equal(size, sizes[i] + 8);
        assert_int_equal(result.bytes, sizes[i] + 8);
        pinfold_strings_done(&result.skipped);
    }
}

static void a_file_that_never_rests_is_an_error(void **state)
{
    static const size_t sizes[] = { 100, BIG };

    for (size_t i = 0; i < 2; i++) {
        struct meddling meddling = { .until = always };
        struct pf_copy_result result = { .files = 0 };
        int r;
        off_t size = seed_meddled(*state, sizes[i], &meddling, &result, &r);

        assert_int_equal(r, 0);
        assert_int_equal(size, -1);
        assert_int_equal(result.files, 0);
        assert_int_equal(result.errors.count, 1);
        assert_string_equal(result.errors.items[0], "copy \"file\": it changes while it is read");
        pinfold_strings_done(&result.errors);
        pinfold_strings_done(&result.skipped);
    }
}

static void cancelling_inside_a_large_file_leaves_nothing_of_it(void **state)
{
    struct meddling meddling = { .from = 3, .until = 3 }; /* after the first piece was written */
    struct pf_copy_result result = { .files = 0 };
    int r;

    assert_int_equal(pinfold_cancel_new(&meddling.cancel, NULL), 0);
    fault_limit_kernel_copies(BIG, 0); /* in pieces */
    assert_int_equal(seed_meddled(*state, BIG, &meddling, &result, &r), -1);
    assert_int_equal(r, -PINFOLD_ECANCELLED);
    fault_limit_kernel_copies(SIZE_MAX, 0);
    pinfold_cancel_free(meddling.cancel);
}

/* Seed many files while every write fails. Returns how many files there are in the destination. */
static unsigned seed_failing(const struct tmp *tmp, unsigned count, int sys_errno,
                             struct pf_copy_result *ret)
{
    struct pf_copy_options options = { .src_name = "src", .dst_name = "dst", .links = true };
    struct place place = build(tmp);
    struct pinfold_file_infos infos;
    unsigned found = 0;
    char name[32];

    put_dir(place.root, "many");
    put_dir(place.root, "empty");
    options.src_fd = sub(place.root, "many");
    options.dst_fd = sub(place.root, "empty");
    for (unsigned i = 0; i < count; i++) {
        snprintf(name, sizeof(name), "file-%05u", i);
        put(options.src_fd, name, "x");
    }
    fault_fail_writes(sys_errno);
    assert_int_equal(pf_copy_tree(&options, ret, &err), 0);
    fault_fail_writes(0);
    assert_int_equal(pf_dir_list(options.dst_fd, ".", &infos, NULL, &err), 0);
    found = (unsigned)infos.count;
    pinfold_file_infos_done(&infos);
    close(options.src_fd);
    close(options.dst_fd);
    leave(&place);
    return found;
}

static void a_full_disk_is_named_and_ends_the_copy_early(void **state)
{
    struct pf_copy_result result = { .files = 0 };
    size_t count;

    assert_int_equal(seed_failing(*state, 500, ENOSPC, &result), 0);
    count = result.errors.count;
    assert_in_range(count, 9, 20); /* eight, the last line, and what was under way */
    assert_non_null(strstr(result.errors.items[0], "copy \"file-"));
    assert_non_null(strstr(result.errors.items[0], "write: No space left on device"));
    assert_string_equal(result.errors.items[count - 1], "stopped: no space is left in \"dst\"");
    assert_int_equal(result.files, 0);
    pinfold_strings_done(&result.errors);
    pinfold_strings_done(&result.skipped);
}

static void a_dying_disk_does_not_fill_the_memory_with_errors(void **state)
{
    struct pf_copy_result result = { .files = 0 };

    assert_int_equal(seed_failing(*state, 10100, EIO, &result), 0);
    assert_int_equal(result.errors.count, 10001);
    assert_string_equal(result.errors.items[10000], "and 100 more errors");
    pinfold_strings_done(&result.errors);
    pinfold_strings_done(&result.skipped);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, tmp_setup, tmp_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(seeding_survives_every_fault),
        TEST(flushing_survives_every_fault),
        TEST(a_dry_run_survives_every_fault),
        TEST(a_dry_run_of_a_seed_survives_every_fault),
        TEST(walking_survives_every_fault),
        TEST(compiling_patterns_survives_every_fault),
        TEST(normalising_survives_every_fault),
        TEST(expanding_survives_every_fault),
        TEST(reading_survives_every_fault),
        TEST(writing_survives_every_fault),
        TEST(overwriting_survives_every_fault),
        TEST(exclusive_writing_survives_every_fault),
        TEST(copying_survives_every_fault),
        TEST(copying_holes_survives_every_fault),
        TEST(moving_survives_every_fault),
        TEST(removing_survives_every_fault),
        TEST(replacing_survives_every_fault),
        TEST(removing_a_directory_survives_every_fault),
        TEST(moving_a_directory_survives_every_fault),
        TEST(finding_changes_survives_every_fault),
        TEST(searching_survives_every_fault),
        TEST(listing_survives_every_fault),
        TEST(removing_a_tree_survives_every_fault),
        TEST(comparing_roots_survives_every_fault),
        TEST(the_walk_by_components_survives_every_fault),
        TEST(what_the_kernel_does_not_copy_goes_through_the_buffer),
        TEST(a_file_that_changes_once_is_read_again),
        TEST(a_file_that_never_rests_is_an_error),
        TEST(cancelling_inside_a_large_file_leaves_nothing_of_it),
        TEST(a_full_disk_is_named_and_ends_the_copy_early),
        TEST(a_dying_disk_does_not_fill_the_memory_with_errors),
    };

    for (unsigned i = 0; i < BIG; i++)
        big[i] = (char)((i * 2654435761U) >> 24);
    return cmocka_run_group_tests_name("fault", tests, NULL, NULL);
}
