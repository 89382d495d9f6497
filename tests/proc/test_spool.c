/* SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"

#include "base/spool.h"

#include <sys/resource.h>

static void both_streams_share_the_cap(void **state)
{
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    struct pinfold_spool *spool = NULL;
    char page[32];

    (void)state;
    assert_int_equal(pf_spool_new(10, &spool, &err), 0);
    pf_spool_write(spool, PINFOLD_STDOUT, "abcdef", 6);
    assert_true(pf_spool_wants(spool, PINFOLD_STDERR));
    pf_spool_write(spool, PINFOLD_STDERR, "123456", 6);
    assert_false(pf_spool_wants(spool, PINFOLD_STDERR));
    assert_int_equal(pinfold_spool_size(spool, PINFOLD_STDOUT), 6);
    assert_int_equal(pinfold_spool_size(spool, PINFOLD_STDERR), 4);
    assert_int_equal(pinfold_spool_read(spool, PINFOLD_STDOUT, 4, page, sizeof(page), &err), 2);
    assert_memory_equal(page, "ef", 2);
    assert_int_equal(pinfold_spool_read(spool, PINFOLD_STDERR, 0, page, 2, &err), 2);
    assert_memory_equal(page, "12", 2);
    assert_int_equal(pinfold_spool_read(spool, PINFOLD_STDERR, 4, page, 2, &err), 0);
    assert_int_equal(pf_spool_errno(spool), 0);
    pinfold_spool_free(spool);
}

/* What each stream may have of a limit, whoever comes first and in whatever pieces. */
static void check_shares(uint64_t limit, size_t out_bytes, size_t err_bytes, bool err_first,
                         size_t piece, uint64_t out_kept, uint64_t err_kept)
{
    enum pinfold_stream order[] = { PINFOLD_STDOUT, PINFOLD_STDERR };
    struct pinfold_spool *spool = NULL;
    char text[4000], page[4000];

    if (err_first) {
        order[0] = PINFOLD_STDERR;
        order[1] = PINFOLD_STDOUT;
    }
    for (size_t i = 0; i < sizeof(text); i++)
        text[i] = (char)(i * 31 % 251);
    assert_int_equal(pf_spool_new(limit, &spool, NULL), 0);
    for (int i = 0; i < 2; i++) {
        size_t bytes = order[i] == PINFOLD_STDOUT ? out_bytes : err_bytes;
        for (size_t at = 0; at < bytes; at += piece)
            pf_spool_write(spool, order[i], text + at, bytes - at < piece ? bytes - at : piece);
    }
    assert_int_equal(pinfold_spool_size(spool, PINFOLD_STDOUT), out_kept);
    assert_int_equal(pinfold_spool_size(spool, PINFOLD_STDERR), err_kept);
    for (int i = 0; i < 2; i++) {
        ssize_t len = pinfold_spool_read(spool, order[i], 0, page, sizeof(page), NULL);
        assert_int_equal(len, order[i] == PINFOLD_STDOUT ? out_kept : err_kept);
        assert_memory_equal(page, text, (size_t)len);
    }
    pinfold_spool_free(spool);
}

static void each_stream_has_its_share_whoever_comes_first(void **state)
{
    static const size_t pieces[] = { 1, 7, 100, 4000 };
    static const struct {
        size_t out, err;
        uint64_t out_kept, err_kept;
    } cases[] = {
        { 4000, 0, 1000, 0 },    { 0, 4000, 0, 1000 },    { 4000, 4000, 750, 250 },
        { 4000, 100, 900, 100 }, { 100, 4000, 100, 900 }, { 4000, 250, 750, 250 },
        { 500, 500, 500, 500 },  { 750, 4000, 750, 250 }, { 999, 1, 999, 1 },
        { 800, 4000, 750, 250 }, { 4000, 4, 996, 4 },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        for (size_t k = 0; k < 8; k++)
            check_shares(1000, cases[i].out, cases[i].err, k & 1, pieces[k / 2], cases[i].out_kept,
                         cases[i].err_kept);
    check_shares(3, 4000, 4000, false, 100, 3, 0); /* a quarter of it is no byte */
    check_shares(4, 4000, 4000, true, 100, 3, 1);
}

/* Pieces of both in turn: what is kept of each is its start, without a gap. */
static void streams_that_take_turns_keep_their_starts(void **state)
{
    struct pinfold_spool *spool = NULL;
    char page[1000];

    (void)state;
    assert_int_equal(pf_spool_new(1000, &spool, NULL), 0);
    for (int i = 0; i < 400; i++) {
        char letter[5] = { (char)('a' + i % 26), 'O', 'O', 'O', 'O' };
        pf_spool_write(spool, PINFOLD_STDOUT, letter, 5);
        letter[1] = 'E';
        pf_spool_write(spool, PINFOLD_STDERR, letter, 2);
    }
    assert_false(pf_spool_wants(spool, PINFOLD_STDOUT));
    assert_false(pf_spool_wants(spool, PINFOLD_STDERR));
    for (enum pinfold_stream stream = PINFOLD_STDOUT; stream <= PINFOLD_STDERR; stream++) {
        int step = stream == PINFOLD_STDOUT ? 5 : 2;
        ssize_t len = pinfold_spool_read(spool, stream, 0, page, sizeof(page), NULL);
        assert_true(len >= (stream == PINFOLD_STDOUT ? 700 : 250));
        for (ssize_t at = 0; at < len; at += step)
            assert_int_equal(page[at], 'a' + at / step % 26);
    }
    pinfold_spool_free(spool);
}

static void what_is_no_stream_is_refused(void **state)
{
    static const int numbers[] = { 0, 3, 77, -1 };
    struct pinfold_spool *spool = NULL;
    char page[10];

    (void)state;
    assert_int_equal(pf_spool_new(100, &spool, NULL), 0);
    pf_spool_write(spool, PINFOLD_STDOUT, "abc", 3);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
        enum pinfold_stream stream = (enum pinfold_stream)numbers[i];
        struct pinfold_error err = PINFOLD_ERROR_INIT;
        assert_int_equal(pinfold_spool_read(spool, stream, 0, page, sizeof(page), &err),
                         -PINFOLD_EVALUE);
        assert_non_null(strstr(err.msg, "neither"));
        assert_int_equal(pinfold_spool_size(spool, stream), 0);
    }
    pinfold_spool_free(spool);
}

static void a_failed_write_ends_the_spool_and_is_remembered(void **state)
{
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    struct pinfold_spool *spool = NULL;
    struct rlimit old, small = { 4, RLIM_INFINITY };

    (void)state;
    getrlimit(RLIMIT_FSIZE, &old);
    small.rlim_max = old.rlim_max;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(pf_spool_new(100, &spool, &err), 0);
    setrlimit(RLIMIT_FSIZE, &small);
    pf_spool_write(spool, PINFOLD_STDOUT, "abcdef", 6);
    setrlimit(RLIMIT_FSIZE, &old);
    signal(SIGXFSZ, SIG_DFL);
    assert_int_equal(pf_spool_errno(spool), EFBIG);
    assert_int_equal(pinfold_spool_size(spool, PINFOLD_STDOUT), 4);
    assert_false(pf_spool_wants(spool, PINFOLD_STDOUT));
    assert_false(pf_spool_wants(spool, PINFOLD_STDERR));
    pf_spool_write(spool, PINFOLD_STDERR, "a", 1);
    assert_int_equal(pinfold_spool_size(spool, PINFOLD_STDERR), 0);
    pinfold_spool_free(spool);
}

static void freeing_nothing_is_fine(void **state)
{
    int before = count_descriptors();

    (void)state;
    pinfold_spool_free(NULL);
    assert_int_equal(count_descriptors(), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_streams_share_the_cap),
        cmocka_unit_test(each_stream_has_its_share_whoever_comes_first),
        cmocka_unit_test(streams_that_take_turns_keep_their_starts),
        cmocka_unit_test(what_is_no_stream_is_refused),
        cmocka_unit_test(a_failed_write_ends_the_spool_and_is_remembered),
        cmocka_unit_test(freeing_nothing_is_fine),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
