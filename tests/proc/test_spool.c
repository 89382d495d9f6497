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
    assert_true(pf_spool_wants(spool));
    pf_spool_write(spool, PINFOLD_STDERR, "123456", 6);
    assert_false(pf_spool_wants(spool));
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
    assert_false(pf_spool_wants(spool));
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
        cmocka_unit_test(a_failed_write_ends_the_spool_and_is_remembered),
        cmocka_unit_test(freeing_nothing_is_fine),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
