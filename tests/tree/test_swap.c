/* SPDX-License-Identifier: Apache-2.0 */
/*
 * While another thread exchanges a directory for a link that leads out, again and again, trees are
 * compared, searched, edited, deleted and moved: nothing outside is read, and nothing there
 * changes.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "tmp.h"
#include "tree/changes.h"
#include "tree/search.h"

enum { ROUNDS = 300, MOST_ROUNDS = 30000 };

struct arena {
    struct tmp *tmp;
    int root;
    atomic_bool ended;
    pthread_t thread;
};

static void *swap(void *ctx)
{
    struct arena *arena = ctx;

    while (!atomic_load(&arena->ended))
        renameat2(arena->root, "d", arena->root, "e", RENAME_EXCHANGE);
    return NULL;
}

/* "root/d" is a directory and "root/e" a link to "outside", or the other way round. */
static void begin(struct arena *arena, struct tmp *tmp)
{
    *arena = (struct arena){ .tmp = tmp };
    put_dir(tmp->fd, "outside");
    put(tmp->fd, "outside/f", "secret\n");
    put_dir(tmp->fd, "outside/sub");
    put(tmp->fd, "outside/sub/g", "secret\n");
    put_dir(tmp->fd, "root");
    put_dir(tmp->fd, "root/d");
    put_dir(tmp->fd, "root/d/sub");
    put(tmp->fd, "root/d/f", "inside\n");
    put(tmp->fd, "root/d/sub/g", "inside\n");
    put_link(tmp->fd, "root/e", "../outside");
    arena->root = openat(tmp->fd, "root", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(arena->root >= 0);
    assert_int_equal(pthread_create(&arena->thread, NULL, swap, arena), 0);
}

/* So many rounds, and more, until something was seen: the other thread may be kept from running. */
static bool goes_on(unsigned round, size_t seen)
{
    if (round >= ROUNDS && seen == 0)
        usleep(1000);
    return round < ROUNDS || (seen == 0 && round < MOST_ROUNDS);
}

static void end(struct arena *arena)
{
    atomic_store(&arena->ended, true);
    pthread_join(arena->thread, NULL);
    close(arena->root);
    check_file(arena->tmp->fd, "outside/f", "secret\n");
    check_file(arena->tmp->fd, "outside/sub/g", "secret\n");
    check_file(arena->tmp->fd, "outside/new", NULL);
}

static void a_search_reads_nothing_outside(void **state)
{
    struct pinfold_search_options options = PINFOLD_SEARCH_OPTIONS_INIT;
    struct arena arena;
    size_t inside = 0;

    begin(&arena, *state);
    options.text = "e";
    for (unsigned i = 0; goes_on(i, inside); i++) {
        struct pinfold_search_result result = { 0 };
        struct pf_search_request request = { .root_fd = arena.root,
                                             .path = ".",
                                             .options = &options };
        assert_int_equal(pf_search(&request, &result, NULL), 0);
        for (size_t at = 0; at < result.count; at++) {
            assert_string_equal(result.items[at].text, "inside");
            inside++;
        }
        pinfold_search_result_done(&result);
    }
    assert_true(inside > 0);
    end(&arena);
}

static int look_for_secret(void *ctx, const char *text, size_t len)
{
    *(bool *)ctx |= memmem(text, len, "secret", 6) != NULL;
    return 0;
}

static void a_diff_shows_nothing_outside(void **state)
{
    static const char *const all[] = { "*", NULL }, *const none[] = { NULL };
    struct pinfold_changes_options options = PINFOLD_CHANGES_OPTIONS_INIT;
    struct pf_globs *include = NULL, *exclude = NULL;
    const struct pf_seed_mark mark = { .source = NULL };
    struct arena arena;
    bool seen = false;
    size_t changes_seen = 0;

    begin(&arena, *state);
    assert_int_equal(pf_globs_new(all, &include, NULL), 0);
    assert_int_equal(pf_globs_new(none, &exclude, NULL), 0);
    options.on_diff = look_for_secret;
    options.on_diff_ctx = &seen;
    for (unsigned i = 0; goes_on(i, changes_seen); i++) {
        struct pinfold_changes changes = { 0 };
        struct pf_changes_request request = {
            .root_fd = arena.root,
            .upper_fd = -1,
            .mark = &mark,
            .include = include,
            .exclude = exclude,
            .path = ".",
            .options = &options,
        };
        assert_int_equal(pf_changes_find(&request, &changes, NULL), 0);
        assert_int_equal(pf_changes_write(&request, &changes, NULL), 0);
        changes_seen += changes.count;
        pinfold_changes_done(&changes);
    }
    assert_false(seen);
    assert_true(changes_seen > 0);
    pf_globs_free(include);
    pf_globs_free(exclude);
    end(&arena);
}

static void an_edit_writes_nothing_outside(void **state)
{
    const struct pinfold_bytes inside = { (char[]){ "inside\n" }, 7 };
    const struct pinfold_bytes outside = { (char[]){ "secret\n" }, 7 };
    struct arena arena;
    size_t done = 0;

    begin(&arena, *state);
    for (unsigned i = 0; goes_on(i, done); i++) {
        done += pf_file_replace(arena.root, "d/f", &inside, "inside\n", 7, NULL, NULL) == 0;
        assert_true(pf_file_replace(arena.root, "d/f", &outside, "evil", 4, NULL, NULL) < 0);
    }
    assert_true(done > 0);
    end(&arena);
}

static void nothing_outside_is_deleted_or_moved(void **state)
{
    struct arena arena;

    begin(&arena, *state);
    for (unsigned i = 0; i < ROUNDS; i++) {
        pf_dir_remove(arena.root, "d/sub", true, NULL);
        pf_file_remove(arena.root, "d/f", NULL);
        pf_file_move(arena.root, "d/f", "d/new", PF_MOVE_DIRS, NULL);
        pf_file_move(arena.root, "d/new", "d/f", PF_MOVE_DIRS, NULL);
        pf_file_write(arena.root, "d/f", "x", 1, false, NULL, NULL);
        pf_file_write(arena.root, "d/sub/g", "x", 1, false, NULL, NULL);
    }
    end(&arena);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, tmp_setup, tmp_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_search_reads_nothing_outside),
        TEST(a_diff_shows_nothing_outside),
        TEST(an_edit_writes_nothing_outside),
        TEST(nothing_outside_is_deleted_or_moved),
    };

    return cmocka_run_group_tests_name("swap", tests, NULL, NULL);
}
