/* SPDX-License-Identifier: Apache-2.0 */
#include "tmp.h"

#include <sys/resource.h>

#include "tree/walk.h"

struct counts {
    unsigned files, links, dirs, dirs_done, specials, errors;
    size_t longest;
    struct pinfold_error error;
};

static struct counts walk_all(int fd)
{
    struct counts counts = { .files = 0 };
    struct pf_walk_entry entry;
    struct pf_walk *walk = NULL;
    int r;

    assert_int_equal(pf_walk_new(fd, &walk, NULL), 0);
    while ((r = pf_walk_next(walk, &entry)) > 0) {
        counts.files += entry.type == PF_WALK_FILE;
        counts.links += entry.type == PF_WALK_LINK;
        counts.dirs += entry.type == PF_WALK_DIR;
        counts.dirs_done += entry.type == PF_WALK_DIR_DONE;
        counts.specials += entry.type == PF_WALK_SPECIAL;
        counts.errors += entry.type == PF_WALK_ERROR;
        if (entry.type == PF_WALK_ERROR)
            counts.error = entry.error;
        if (entry.path_len > counts.longest)
            counts.longest = entry.path_len;
        assert_int_equal(strlen(entry.path), entry.path_len);
    }
    assert_int_equal(r, 0);
    pf_walk_free(walk);
    return counts;
}

static void tells_the_kinds_apart(void **state)
{
    struct tmp *tmp = *state;
    struct counts counts;

    put_dir(tmp->fd, "d");
    put_dir(tmp->fd, "d/e");
    put(tmp->fd, "f", "");
    put(tmp->fd, "d/g", "");
    put_link(tmp->fd, "d/link", "..");
    assert_int_equal(mkfifoat(tmp->fd, "d/e/fifo", 0600), 0);
    counts = walk_all(tmp->fd);
    assert_int_equal(counts.files, 2);
    assert_int_equal(counts.links, 1);
    assert_int_equal(counts.dirs, 2);
    assert_int_equal(counts.dirs_done, 2);
    assert_int_equal(counts.specials, 1);
    assert_int_equal(counts.errors, 0);
}

static void a_directory_comes_before_its_contents_and_after(void **state)
{
    struct tmp *tmp = *state;
    struct pf_walk_entry entry;
    struct pf_walk *walk = NULL;
    char order[256] = "";

    put_dir(tmp->fd, "d");
    put(tmp->fd, "d/f", "");
    put(tmp->fd, "d2", "");
    assert_int_equal(pf_walk_new(tmp->fd, &walk, NULL), 0);
    while (pf_walk_next(walk, &entry) > 0) {
        assert_int_equal(faccessat(entry.dir_fd, entry.name, F_OK, AT_SYMLINK_NOFOLLOW), 0);
        snprintf(order + strlen(order), sizeof(order) - strlen(order), "%s:%u%s ", entry.path,
                 entry.depth, entry.type == PF_WALK_DIR_DONE ? "." : "");
    }
    pf_walk_free(walk);
    assert_string_equal(order, "d2:0 d:0 d/f:1 d:0. ");
}

static void a_skipped_directory_is_not_entered(void **state)
{
    struct tmp *tmp = *state;
    struct pf_walk_entry entry;
    struct pf_walk *walk = NULL;
    unsigned done = 0;

    put_dir(tmp->fd, "d");
    put(tmp->fd, "d/f", "");
    assert_int_equal(pf_walk_new(tmp->fd, &walk, NULL), 0);
    while (pf_walk_next(walk, &entry) > 0) {
        assert_string_equal(entry.path, "d");
        done += entry.type == PF_WALK_DIR_DONE;
        if (entry.type == PF_WALK_DIR)
            pf_walk_skip(walk);
    }
    pf_walk_free(walk);
    assert_int_equal(done, 1);
}

/* A chain of directories whose path has 90,000 bytes, each with a file beside the next one. */
static void three_thousand_levels_need_few_descriptors(void **state)
{
    enum { DEPTH = 3000 };
    static const char name[] = "a-directory-with-a-long-names";
    struct tmp *tmp = *state;
    struct rlimit limit, low;
    struct counts counts;
    int before;
    int fd = sub(tmp->fd, ".");

    for (int i = 0; i < DEPTH; i++) {
        int next;

        put_dir(fd, name);
        put(fd, "file", "");
        put_dir(fd, "sibling");
        next = sub(fd, name);
        close(fd);
        fd = next;
    }
    close(fd);
    before = count_descriptors();
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    low = (struct rlimit){ 40, limit.rlim_max };
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
    counts = walk_all(tmp->fd);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_int_equal(counts.files, DEPTH);
    assert_int_equal(counts.dirs, 2 * DEPTH);
    assert_int_equal(counts.dirs_done, 2 * DEPTH);
    assert_int_equal(counts.errors, 0);
    assert_int_equal(counts.longest, DEPTH * sizeof(name) - 1);
    assert_int_equal(count_descriptors(), before);
}

static void a_hundred_thousand_entries_come_once_each(void **state)
{
    enum { COUNT = 100000 };
    struct tmp *tmp = *state;
    struct counts counts;
    char name[32];

    put(tmp->fd, "first", "");
    for (int i = 1; i < COUNT; i++) {
        snprintf(name, sizeof(name), "entry-%d", i);
        assert_int_equal(linkat(tmp->fd, "first", tmp->fd, name, 0) < 0 ? errno : 0, 0);
        if (i % 20000 == 0) { /* ext4 allows 65,000 links to one file */
            unlinkat(tmp->fd, "first", 0);
            put(tmp->fd, "first", "");
        }
        if (i % 10000 == 0) {
            snprintf(name, sizeof(name), "dir-%d", i);
            put_dir(tmp->fd, name);
        }
    }
    counts = walk_all(tmp->fd);
    assert_int_equal(counts.files, COUNT);
    assert_int_equal(counts.dirs, 9);
    assert_int_equal(counts.errors, 0);
}

static void a_directory_that_vanishes_is_an_error_entry(void **state)
{
    struct tmp *tmp = *state;
    struct pf_walk_entry entry;
    struct pf_walk *walk = NULL;
    unsigned errors = 0, done = 0, files = 0;

    put_dir(tmp->fd, "a");
    put_dir(tmp->fd, "b");
    put(tmp->fd, "b/f", "");
    assert_int_equal(pf_walk_new(tmp->fd, &walk, NULL), 0);
    while (pf_walk_next(walk, &entry) > 0) {
        if (entry.type == PF_WALK_DIR && strcmp(entry.path, "a") == 0)
            unlinkat(tmp->fd, "a", AT_REMOVEDIR);
        if (entry.type == PF_WALK_ERROR) {
            errors++;
            assert_string_equal(entry.path, "a");
            assert_non_null(strstr(entry.error.msg, "read directory \"a\""));
            assert_int_equal(entry.error.sys_errno, ENOENT);
        }
        done += entry.type == PF_WALK_DIR_DONE;
        files += entry.type == PF_WALK_FILE;
    }
    pf_walk_free(walk);
    assert_int_equal(errors, 1);
    assert_int_equal(done, 2);
    assert_int_equal(files, 1);
}

/* Walk a chain of 60 directories below root, and at the bottom move two of them. Returns the number
 * of error entries. The file outside must never be met. */
static unsigned walk_while_moving(const struct tmp *tmp, const char *second)
{
    struct pf_walk_entry entry;
    struct pf_walk *walk = NULL;
    unsigned errors = 0, dirs = 0, done = 0;
    int fd, next;

    put_dir(tmp->fd, "outside");
    put(tmp->fd, "outside/secret", "");
    put_dir(tmp->fd, "root");
    fd = sub(tmp->fd, "root");
    for (int i = 0; i < 60; i++) {
        put_dir(fd, "d");
        next = sub(fd, "d");
        close(fd);
        fd = next;
    }
    close(fd);
    fd = sub(tmp->fd, "root");
    assert_int_equal(pf_walk_new(fd, &walk, NULL), 0);
    while (pf_walk_next(walk, &entry) > 0) {
        assert_null(strstr(entry.path, "secret"));
        errors += entry.type == PF_WALK_ERROR;
        dirs += entry.type == PF_WALK_DIR;
        done += entry.type == PF_WALK_DIR_DONE;
        if (entry.type == PF_WALK_DIR_DONE && done == 1) {
            assert_int_equal(renameat(tmp->fd, "root/d/d/d/d", tmp->fd, "outside/d"), 0);
            if (second)
                assert_int_equal(renameat(tmp->fd, second, tmp->fd, "outside/e"), 0);
        }
    }
    pf_walk_free(walk);
    close(fd);
    assert_int_equal(dirs, 60);
    assert_int_equal(done, 60);
    return errors;
}

static void the_way_up_from_a_moved_directory_is_found_by_names(void **state)
{
    assert_int_equal(walk_while_moving(*state, NULL), 0);
}

static void a_way_up_that_is_gone_is_reported(void **state)
{
    assert_int_equal(walk_while_moving(*state, "root/d/d"), 2);
}

static void an_unreadable_directory_is_an_error_entry(void **state)
{
    struct tmp *tmp = *state;
    struct counts counts;

    put_dir(tmp->fd, "closed");
    put(tmp->fd, "open", "");
    assert_int_equal(fchmodat(tmp->fd, "closed", 0, 0), 0);
    counts = walk_all(tmp->fd);
    assert_int_equal(counts.files, 1);
    assert_int_equal(counts.dirs_done, 1);
    if (geteuid() != 0) { /* root may read everything */
        assert_int_equal(counts.errors, 1);
        assert_int_equal(counts.error.sys_errno, EACCES);
    }
}

static void a_tree_is_removed_whatever_its_modes_and_links(void **state)
{
    struct tmp *tmp = *state;
    struct pinfold_error err = PINFOLD_ERROR_INIT;

    put_dir(tmp->fd, "keep");
    put(tmp->fd, "keep/file", "kept");
    put_dir(tmp->fd, "gone");
    put_dir(tmp->fd, "gone/closed");
    put(tmp->fd, "gone/closed/f", "");
    put_link(tmp->fd, "gone/link", "../keep");
    put_link(tmp->fd, "gone/closed/abs", tmp->path);
    assert_int_equal(mkfifoat(tmp->fd, "gone/fifo", 0), 0);
    assert_int_equal(fchmodat(tmp->fd, "gone/closed", 0, 0), 0);
    assert_int_equal(pf_tree_remove(tmp->fd, "gone", &err), 0);
    assert_int_equal(faccessat(tmp->fd, "gone", F_OK, 0), -1);
    check_file(tmp->fd, "keep/file", "kept");
    put_link(tmp->fd, "alias", "keep");
    assert_int_equal(pf_tree_remove(tmp->fd, "alias", &err), -PINFOLD_EOS);
    assert_non_null(strstr(err.msg, "alias"));
    check_file(tmp->fd, "keep/file", "kept");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, tmp_setup, tmp_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(tells_the_kinds_apart),
        TEST(a_directory_comes_before_its_contents_and_after),
        TEST(a_skipped_directory_is_not_entered),
        TEST(three_thousand_levels_need_few_descriptors),
        TEST(a_hundred_thousand_entries_come_once_each),
        TEST(a_directory_that_vanishes_is_an_error_entry),
        TEST(the_way_up_from_a_moved_directory_is_found_by_names),
        TEST(a_way_up_that_is_gone_is_reported),
        TEST(an_unreadable_directory_is_an_error_entry),
        TEST(a_tree_is_removed_whatever_its_modes_and_links),
    };

    return cmocka_run_group_tests_name("walk", tests, NULL, NULL);
}
