/* SPDX-License-Identifier: Apache-2.0 */
#include "tree/hide.h"

#include "tmp.h"

static const char *const excludes[] = { ".env", "secrets/", "*.pem", NULL };

struct hidden {
    int seed, layer;
    struct pf_copy_result result;
    char why[256];
    struct pinfold_error err;
};

static int hide(struct tmp *tmp, struct hidden *h)
{
    struct pf_globs *exclude;
    int r;

    memset(h, 0, sizeof(*h));
    put_dir(tmp->fd, "layer");
    h->seed = openat(tmp->fd, "seed", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    h->layer = openat(tmp->fd, "layer", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(pf_globs_new(excludes, &exclude, &h->err), 0);
    r = pf_hide_tree(
            &(struct pf_copy_options){
                    .src_fd = h->seed, .dst_fd = h->layer, .src_name = "seed", .exclude = exclude },
            &h->result, h->why, sizeof(h->why), &h->err);
    pf_globs_free(exclude);
    return r;
}

static void done(struct hidden *h)
{
    close(h->seed);
    close(h->layer);
    pinfold_strings_done(&h->result.skipped);
    pinfold_strings_done(&h->result.errors);
}

static bool is_whiteout(int layer, const char *path)
{
    struct stat st;

    return fstatat(layer, path, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISCHR(st.st_mode) &&
           st.st_rdev == 0;
}

static bool is_there(int layer, const char *path)
{
    struct stat st;

    return fstatat(layer, path, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

static void the_layer_holds_whiteouts_and_the_way_to_them(void **state)
{
    struct tmp *tmp = *state;
    struct hidden h;

    put_dir(tmp->fd, "seed");
    put_dir(tmp->fd, "seed/a");
    put_dir(tmp->fd, "seed/a/b");
    put_dir(tmp->fd, "seed/a/b/secrets");
    put_dir(tmp->fd, "seed/plain");
    put(tmp->fd, "seed/a/b/secrets/key", "key");
    put(tmp->fd, "seed/a/b/file", "12345");
    put(tmp->fd, "seed/a/x.pem", "pem");
    put(tmp->fd, "seed/plain/file", "123");
    put(tmp->fd, "seed/.env", "env");
    put_link(tmp->fd, "seed/out", "/etc/passwd");
    put_link(tmp->fd, "seed/in", "a/b/file");
    assert_int_equal(mkfifoat(tmp->fd, "seed/fifo", 0600), 0);
    assert_int_equal(hide(tmp, &h), 0);
    assert_int_equal(h.result.files, 2);
    assert_int_equal(h.result.bytes, 8);
    assert_int_equal(h.result.errors.count, 0);
    assert_int_equal(h.result.skipped.count, 5);
    assert_string_equal(h.result.skipped.items[1], "a/b/secrets/");
    assert_true(is_whiteout(h.layer, ".env"));
    assert_true(is_whiteout(h.layer, "out"));
    assert_true(is_whiteout(h.layer, "fifo"));
    assert_true(is_whiteout(h.layer, "a/x.pem"));
    assert_true(is_whiteout(h.layer, "a/b/secrets"));
    assert_false(is_there(h.layer, "plain"));
    assert_false(is_there(h.layer, "in"));
    assert_false(is_there(h.layer, "a/b/file"));
    done(&h);
}

static void directories_have_the_mode_that_a_copy_would_give_them(void **state)
{
    struct tmp *tmp = *state;
    struct hidden h;
    struct stat st;

    put_dir(tmp->fd, "seed");
    put_dir(tmp->fd, "seed/group");
    put_dir(tmp->fd, "seed/shut");
    put(tmp->fd, "seed/group/.env", "");
    assert_int_equal(fchmodat(tmp->fd, "seed/group", 0750, 0), 0);
    assert_int_equal(fchmodat(tmp->fd, "seed/shut", 0500, 0), 0);
    assert_int_equal(hide(tmp, &h), 0);
    assert_int_equal(fstatat(h.layer, "group", &st, 0), 0);
    assert_int_equal(st.st_mode & 07777, 0750);
    assert_int_equal(fstatat(h.layer, "shut", &st, 0), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
    done(&h);
}

/* Deeper than descriptors are kept, and than a path may be long. */
static void any_depth_is_hidden(void **state)
{
    enum { DEPTH = 60, NAME = 100 };
    struct tmp *tmp = *state;
    char name[NAME + 1];
    struct hidden h;
    int fd, next;

    memset(name, 'd', NAME);
    name[NAME] = '\0';
    put_dir(tmp->fd, "seed");
    fd = openat(tmp->fd, "seed", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; i < DEPTH; i++) {
        put_dir(fd, name);
        next = openat(fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (i % 20 == 19)
            put(next, ".env", "");
        close(fd);
        fd = next;
    }
    close(fd);
    assert_int_equal(hide(tmp, &h), 0);
    assert_int_equal(h.result.skipped.count, DEPTH / 20);
    fd = dup(h.layer);
    for (int i = 0; i < DEPTH; i++) {
        next = openat(fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_true(next >= 0);
        close(fd);
        fd = next;
    }
    assert_true(is_whiteout(fd, ".env"));
    close(fd);
    done(&h);
}

static void a_set_id_bit_makes_a_seed_unfit(void **state)
{
    struct tmp *tmp = *state;
    struct hidden h;

    put_dir(tmp->fd, "seed");
    put(tmp->fd, "seed/tool", "");
    assert_int_equal(fchmodat(tmp->fd, "seed/tool", 04755, 0), 0);
    assert_int_equal(hide(tmp, &h), 1);
    assert_non_null(strstr(h.why, "\"tool\""));
    done(&h);
}

static void what_belongs_to_another_makes_a_seed_unfit(void **state)
{
    struct tmp *tmp = *state;
    struct hidden h;

    if (geteuid() != 0)
        skip(); /* only root can give a file away */
    put_dir(tmp->fd, "seed");
    put_dir(tmp->fd, "seed/d");
    put(tmp->fd, "seed/d/theirs", "");
    assert_int_equal(fchownat(tmp->fd, "seed/d/theirs", (uid_t)-1, 12345, 0), 0);
    assert_int_equal(hide(tmp, &h), 1);
    assert_non_null(strstr(h.why, "\"d/theirs\""));
    done(&h);
}

static void a_cancelled_walk_says_so(void **state)
{
    struct tmp *tmp = *state;
    struct pinfold_cancel *cancel;
    struct pf_copy_result result = { 0 };
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    char why[16];

    put_dir(tmp->fd, "layer");
    assert_int_equal(pinfold_cancel_new(&cancel, &err), 0);
    pinfold_cancel_fire(cancel);
    assert_int_equal(pf_hide_tree(&(struct pf_copy_options){ .src_fd = tmp->fd,
                                                             .dst_fd = tmp->fd,
                                                             .src_name = "seed",
                                                             .cancel = cancel },
                                  &result, why, sizeof(why), &err),
                     -PINFOLD_ECANCELLED);
    pinfold_cancel_free(cancel);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, tmp_setup, tmp_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_layer_holds_whiteouts_and_the_way_to_them),
        TEST(directories_have_the_mode_that_a_copy_would_give_them),
        TEST(any_depth_is_hidden),
        TEST(a_set_id_bit_makes_a_seed_unfit),
        TEST(what_belongs_to_another_makes_a_seed_unfit),
        TEST(a_cancelled_walk_says_so),
    };

    return cmocka_run_group_tests_name("hide", tests, NULL, NULL);
}
