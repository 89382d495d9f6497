/* SPDX-License-Identifier: Apache-2.0 */
/* Comparing two files, holes and all. The judge of equality is cmp(1). */
#include "sparse.h"

#include <sys/wait.h>

#include "tree/data.h"

static char buffer[PF_DATA_BUFFER];

static int open_in(const struct tmp *tmp, const char *name)
{
    int fd = openat(tmp->fd, name, O_RDWR | O_CREAT | O_CLOEXEC, 0644);

    assert_true(fd >= 0);
    return fd;
}

/* Ends what would not for hours. */
static int have_enough(void *ctx, uint64_t bytes)
{
    uint64_t *total = ctx;

    *total += bytes;
    return *total < 16 * (uint64_t)LITTLE ? 0 : -ECANCELED;
}

static int same(const struct tmp *tmp, const char *a, const char *b)
{
    int fd_a = open_in(tmp, a), fd_b = open_in(tmp, b);
    uint64_t total = 0;
    int r = pf_data_same(fd_a, fd_b, buffer, have_enough, &total);

    close(fd_a);
    close(fd_b);
    return r;
}

static int same_by_cmp(const struct tmp *tmp)
{
    int status;
    pid_t child = fork();

    if (child == 0) {
        if (fchdir(tmp->fd) == 0)
            execlp("cmp", "cmp", "-s", "a", "b", (char *)NULL);
        _exit(127);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) <= 1);
    return WEXITSTATUS(status) == 0;
}

static void of_what_is_a_hole_nothing_is_read(void **state)
{
    struct tmp *tmp = *state;
    uint64_t before;
    off_t size = put_huge(tmp->fd, "a", "end");

    assert_int_equal(put_huge(tmp->fd, "b", "end"), size);
    put_huge(tmp->fd, "last", "enD");
    put_huge(tmp->fd, "more", "nothing but the end");
    before = bytes_read();
    assert_int_equal(same(tmp, "a", "b"), 1);
    assert_int_equal(same(tmp, "a", "last"), 0);
    assert_int_equal(same(tmp, "a", "more"), 0);
    assert_true(bytes_read() - before < LITTLE);
}

/* Data against a hole is data that has to be zeros; only one side of it is read. */
static void a_hole_is_the_same_as_zeros(void **state)
{
    enum { ZEROS = 4 * 1024 * 1024 };
    struct tmp *tmp = *state;
    off_t size = put_huge(tmp->fd, "a", "end");
    char *zeros = calloc(1, ZEROS);
    int fd = open_in(tmp, "b");
    uint64_t before;

    put_huge(tmp->fd, "b", "end");
    assert_int_equal(pwrite(fd, zeros, ZEROS, size / 4), ZEROS);
    before = bytes_read();
    assert_int_equal(same(tmp, "a", "b"), 1);
    assert_int_equal(same(tmp, "b", "a"), 1);
    assert_true(bytes_read() - before < 2 * ZEROS + LITTLE);
    assert_int_equal(pwrite(fd, "x", 1, size / 4 + ZEROS - 1), 1);
    assert_int_equal(same(tmp, "a", "b"), 0);
    assert_int_equal(same(tmp, "b", "a"), 0);
    close(fd);
    free(zeros);
}

static unsigned long long seed = 1;

static unsigned draw(unsigned below)
{
    seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return (unsigned)(seed >> 33) % below;
}

/* Pieces of data, zeros and holes of which most are whole blocks, and the size sometimes not. */
static void fill(int fd, off_t size, unsigned pieces)
{
    static char data[70000];

    for (unsigned i = 0; i < pieces; i++) {
        off_t at = draw((unsigned)size);
        size_t len = draw(sizeof(data));
        if (draw(4)) {
            at -= at % 4096;
            len -= len % 4096;
        }
        if ((off_t)len > size - at)
            len = (size_t)(size - at);
        memset(data, draw(3) ? 'a' : 0, len);
        assert_int_equal(pwrite(fd, data, len, at), len);
    }
}

/* Two files of one content, then in half of the cases a byte of one of them is another. */
static void random_files_are_as_cmp_says(void **state)
{
    struct tmp *tmp = *state;
    int equal = 0;

    for (int round = 0; round < 150; round++) {
        off_t size = 1 + draw(round % 3 ? 900000 : 140000);
        unsigned pieces = draw(8);
        unsigned long long start = seed;
        int a = open_in(tmp, "a"), b = open_in(tmp, "b"), expected, r;
        char byte = 0;

        assert_int_equal(ftruncate(a, size) | ftruncate(b, size), 0);
        fill(a, size, pieces);
        seed = start;
        fill(b, size, pieces);
        if (draw(2)) /* zeros that are no hole, there */
            fallocate(b, FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE, draw((unsigned)size), 50000);
        if (draw(2)) {
            off_t at = draw((unsigned)size);
            assert_int_equal(pread(b, &byte, 1, at), 1);
            byte = (char)(draw(2) ? 0 : byte + 1);
            assert_int_equal(pwrite(b, &byte, 1, at), 1);
        }
        r = pf_data_same(a, b, buffer, NULL, NULL);
        expected = same_by_cmp(tmp);
        if (r != expected || pf_data_same(b, a, buffer, NULL, NULL) != expected)
            fail_msg("round %d: %d, but cmp says %d", round, r, expected);
        equal += expected;
        close(a);
        close(b);
        unlinkat(tmp->fd, "a", 0);
        unlinkat(tmp->fd, "b", 0);
    }
    assert_in_range(equal, 20, 130); /* both happen */
}

static void sizes_count(void **state)
{
    struct tmp *tmp = *state;
    int a = open_in(tmp, "a"), b = open_in(tmp, "b");

    assert_int_equal(same(tmp, "a", "b"), 1);
    assert_int_equal(ftruncate(a, 1), 0);
    assert_int_equal(same(tmp, "a", "b"), 0);
    assert_int_equal(ftruncate(a, 1000000) | ftruncate(b, 1000001), 0);
    assert_int_equal(same(tmp, "a", "b"), 0);
    close(a);
    close(b);
}

/* Somebody who, whenever a piece was compared, has put data before whoever compares and made holes
 * of what is behind. */
struct enemy {
    int fds[2];
    off_t at;
    unsigned steps;
};

static int run_ahead(void *ctx, uint64_t bytes)
{
    enum { STEPS_MAX = 200000 }; /* clocks of file systems are slow: the first go unseen */
    struct enemy *enemy = ctx;

    (void)bytes;
    enemy->at += 8192;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pwrite(enemy->fds[i], "x", 1, enemy->at), 1);
        assert_int_equal(
                fallocate(enemy->fds[i], FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, enemy->at),
                0);
    }
    return ++enemy->steps < STEPS_MAX ? 0 : -ECANCELED;
}

static void who_writes_ahead_does_not_keep_it_from_ending(void **state)
{
    struct tmp *tmp = *state;
    struct enemy enemy = { .at = 0 };

    put_huge(tmp->fd, "a", "end");
    put_huge(tmp->fd, "b", "end");
    enemy.fds[0] = open_in(tmp, "a");
    enemy.fds[1] = open_in(tmp, "b");
    assert_int_equal(pf_data_same(enemy.fds[0], enemy.fds[1], buffer, run_ahead, &enemy), 0);
    assert_true(enemy.steps >= 1);
    close(enemy.fds[0]);
    close(enemy.fds[1]);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, tmp_setup, tmp_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(of_what_is_a_hole_nothing_is_read),
        TEST(a_hole_is_the_same_as_zeros),
        TEST(random_files_are_as_cmp_says),
        TEST(sizes_count),
        TEST(who_writes_ahead_does_not_keep_it_from_ending),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
