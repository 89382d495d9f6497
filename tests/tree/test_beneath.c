/* SPDX-License-Identifier: Apache-2.0 */
/* Every case is asked of the kernel's openat2 and of the component-wise walk. */
#include "tmp.h"

#include <pthread.h>
#include <stdatomic.h>

#include "tree/beneath.h"

/*
 * The tree:
 *   outside/secret
 *   root/dir/file, root/dir/sub/
 *   root/to_file -> dir/file      root/to_dir -> dir         root/dir/up -> ../dir/file
 *   root/abs -> /etc/passwd       root/out -> ../outside     root/dir/out2 -> ../../outside/secret
 *   root/dangling -> dir/new      root/loop -> loop          root/a -> b, root/b -> a
 *   root/slash -> dir/            root/dots -> dir/sub/../.. root/self -> .
 */
static int setup(void **state)
{
    struct tmp *tmp;
    int root;

    tmp_setup(state);
    tmp = *state;
    put_dir(tmp->fd, "outside");
    put(tmp->fd, "outside/secret", "secret");
    put_dir(tmp->fd, "root");
    root = sub(tmp->fd, "root");
    put_dir(root, "dir");
    put_dir(root, "dir/sub");
    put(root, "dir/file", "content");
    put_link(root, "to_file", "dir/file");
    put_link(root, "to_dir", "dir");
    put_link(root, "dir/up", "../dir/file");
    put_link(root, "abs", "/etc/passwd");
    put_link(root, "out", "../outside");
    put_link(root, "dir/out2", "../../outside/secret");
    put_link(root, "dangling", "dir/new");
    put_link(root, "loop", "loop");
    put_link(root, "a", "b");
    put_link(root, "b", "a");
    put_link(root, "slash", "dir/");
    put_link(root, "dots", "dir/sub/../..");
    put_link(root, "self", ".");
    close(root);
    return 0;
}

static const struct {
    const char *path;
    int flags;
    int expected; /* 0 or -errno */
} cases[] = {
    { ".", O_PATH, 0 },
    { ".", O_RDONLY | O_DIRECTORY, 0 },
    { "dir/file", O_RDONLY, 0 },
    { "dir/file", O_RDONLY | O_DIRECTORY, -ENOTDIR },
    { "dir/file/x", O_RDONLY, -ENOTDIR },
    { "dir/none", O_RDONLY, -ENOENT },
    { "none/none", O_RDONLY, -ENOENT },
    { "to_file", O_RDONLY, 0 },
    { "to_file", O_RDONLY | O_NOFOLLOW, -ELOOP },
    { "to_file", O_PATH | O_NOFOLLOW, 0 },
    { "to_dir/file", O_RDONLY, 0 },
    { "to_dir/file", O_RDONLY | O_NOFOLLOW, 0 },
    { "to_dir", O_RDONLY | O_DIRECTORY, 0 },
    { "to_dir", O_RDONLY | O_DIRECTORY | O_NOFOLLOW, -ENOTDIR },
    { "dir/up", O_RDONLY, 0 },
    { "to_dir/up", O_RDONLY, 0 },
    { "abs", O_RDONLY, -EXDEV },
    { "abs/x", O_RDONLY, -EXDEV },
    { "out", O_RDONLY, -EXDEV },
    { "out/secret", O_RDONLY, -EXDEV },
    { "dir/out2", O_RDONLY, -EXDEV },
    { "..", O_PATH, -EXDEV },
    { "../outside/secret", O_RDONLY, -EXDEV },
    { "dir/../..", O_PATH, -EXDEV },
    { "dir/sub/../file", O_RDONLY, 0 },
    { "to_dir/sub/../file", O_RDONLY, 0 },
    { "/etc/passwd", O_RDONLY, -EXDEV },
    { "dangling", O_RDONLY, -ENOENT },
    { "loop", O_RDONLY, -ELOOP },
    { "loop/x", O_RDONLY, -ELOOP },
    { "a", O_RDONLY, -ELOOP },
    { "slash", O_RDONLY | O_DIRECTORY, 0 },
    { "slash/file", O_RDONLY, 0 },
    { "dots", O_PATH, 0 },
    { "dots/dir/file", O_RDONLY, 0 },
    { "self/self/dir/file", O_RDONLY, 0 },
    { "", O_RDONLY, -ENOENT },
    { "dir", O_WRONLY, -EISDIR },
    { "dir/new", O_WRONLY | O_CREAT | O_EXCL, 0 },
    { "dir/new", O_WRONLY | O_CREAT | O_EXCL, -EEXIST },
    { "to_file", O_WRONLY | O_CREAT | O_EXCL, -EEXIST },
    { "dangling", O_WRONLY | O_CREAT, 0 },
    { "abs", O_WRONLY | O_CREAT, -EXDEV },
    { "out/new", O_WRONLY | O_CREAT, -EXDEV },
    { "dir", O_WRONLY | O_CREAT, -EISDIR },
};

static void check_cases(const struct tmp *tmp)
{
    int root = sub(tmp->fd, "root");

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int r = pf_beneath_open(root, cases[i].path, cases[i].flags, 0600);

        if (r >= 0) {
            assert_int_equal(fcntl(r, F_GETFD), FD_CLOEXEC);
            close(r);
        }
        if ((r < 0 ? r : 0) != cases[i].expected)
            fail_msg("\"%s\" with 0x%x: %s instead of %s", cases[i].path, (unsigned)cases[i].flags,
                     r < 0 ? strerror(-r) : "opened",
                     cases[i].expected ? strerror(-cases[i].expected) : "opened");
    }
    close(root);
    check_file(tmp->fd, "outside/new", NULL);
}

static void check_everywhere(void **state, void (*check)(const struct tmp *tmp))
{
    void *second;

    check(*state);
    setup(&second);
    pf_beneath_force_fallback(true);
    check(second);
    pf_beneath_force_fallback(false);
    tmp_teardown(&second);
}

static void answers_are_the_same_with_and_without_openat2(void **state)
{
    int before = count_descriptors();

    check_everywhere(state, check_cases);
    assert_int_equal(count_descriptors(), before);
}

static void check_chain(const struct tmp *tmp)
{
    char name[16], target[16];
    int fd;

    for (int i = 0; i < 41; i++) {
        snprintf(name, sizeof(name), "l%d", i);
        snprintf(target, sizeof(target), "l%d", i + 1);
        put_link(tmp->fd, name, target);
    }
    put(tmp->fd, "l41", "x");
    assert_int_equal(pf_beneath_open(tmp->fd, "l0", O_RDONLY, 0), -ELOOP);
    fd = pf_beneath_open(tmp->fd, "l1", O_RDONLY, 0);
    assert_true(fd >= 0);
    close(fd);
}

static void forty_links_are_followed_and_no_more(void **state)
{
    check_everywhere(state, check_chain);
}

static void check_long(const struct tmp *tmp)
{
    char path[5001];

    memset(path, 'x', 5000);
    path[5000] = '\0';
    assert_int_equal(pf_beneath_open(tmp->fd, path, O_RDONLY, 0), -ENAMETOOLONG);
    path[300] = '\0';
    assert_int_equal(pf_beneath_open(tmp->fd, path, O_RDONLY, 0), -ENAMETOOLONG);
    for (int i = 0; i < 4000; i += 2)
        memcpy(path + i, "./", 2);
    strcpy(path + 4000, "root/dir");
    int fd = pf_beneath_open(tmp->fd, path, O_PATH, 0);
    assert_true(fd >= 0);
    close(fd);
}

static void long_paths_fail_or_work_alike(void **state)
{
    check_everywhere(state, check_long);
}

static void check_parents(const struct tmp *tmp)
{
    int root = sub(tmp->fd, "root"), fd;
    const char *name = NULL;

    fd = pf_beneath_open_parent(root, "new/deep/er/file", false, &name);
    assert_int_equal(fd, -ENOENT);
    fd = pf_beneath_open_parent(root, "new/deep/er/file", true, &name);
    assert_true(fd >= 0);
    assert_string_equal(name, "file");
    put(fd, name, "x");
    close(fd);
    check_file(root, "new/deep/er/file", "x");

    fd = pf_beneath_open_parent(root, "to_dir/made/file", true, &name);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(mode_of(root, "dir/made") & 0700, 0700);

    assert_int_equal(pf_beneath_open_parent(root, "out/made/file", true, &name), -EXDEV);
    assert_int_equal(pf_beneath_open_parent(root, "abs/made/file", true, &name), -EXDEV);
    assert_int_equal(pf_beneath_open_parent(root, "dir/file/x", true, &name), -ENOTDIR);
    assert_int_equal(pf_beneath_open_parent(root, "dangling/x", true, &name), -ENOENT);
    assert_int_equal(pf_beneath_open_parent(root, ".", true, &name), -EISDIR);
    assert_int_equal(faccessat(tmp->fd, "outside/made", F_OK, 0), -1);
    close(root);
}

static void parents_are_made_beneath_only(void **state)
{
    check_everywhere(state, check_parents);
}

struct race {
    int root;
    atomic_bool stop;
};

/* A directory becomes a link to outside and back again. */
static void *swap(void *arg)
{
    struct race *race = arg;

    while (!atomic_load(&race->stop)) {
        renameat(race->root, "swap", race->root, "away");
        (void)!symlinkat("../outside", race->root, "swap");
        unlinkat(race->root, "swap", 0);
        renameat(race->root, "away", race->root, "swap");
    }
    return NULL;
}

static void check_race(const struct tmp *tmp)
{
    struct race race = { .root = sub(tmp->fd, "root") };
    unsigned opened = 0, tries = 0;
    pthread_t thread;
    char text[8];
    ssize_t len;
    int fd;

    put_dir(race.root, "swap");
    put(race.root, "swap/secret", "mine");
    assert_int_equal(pthread_create(&thread, NULL, swap, &race), 0);
    for (; tries < 20000 || (opened < 100 && tries < 1000000); tries++) {
        fd = pf_beneath_open(race.root, "swap/secret", O_RDONLY, 0);
        if (fd < 0)
            continue;
        opened++;
        len = read(fd, text, sizeof(text));
        close(fd);
        if (len != 4 || memcmp(text, "mine", 4) != 0)
            break; /* asserted below, once the thread has ended */
    }
    atomic_store(&race.stop, true);
    pthread_join(thread, NULL);
    close(race.root);
    assert_true(opened >= 100);
    assert_int_equal(len, 4);
    assert_memory_equal(text, "mine", 4);
}

static void a_swapped_directory_never_leads_outside(void **state)
{
    check_everywhere(state, check_race);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(answers_are_the_same_with_and_without_openat2, setup,
                                        tmp_teardown),
        cmocka_unit_test_setup_teardown(forty_links_are_followed_and_no_more, setup, tmp_teardown),
        cmocka_unit_test_setup_teardown(long_paths_fail_or_work_alike, setup, tmp_teardown),
        cmocka_unit_test_setup_teardown(parents_are_made_beneath_only, setup, tmp_teardown),
        cmocka_unit_test_setup_teardown(a_swapped_directory_never_leads_outside, setup,
                                        tmp_teardown),
    };

    return cmocka_run_group_tests_name("beneath", tests, NULL, NULL);
}
