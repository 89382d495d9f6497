/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each allocation on the way of a session into the table made to fail, one after the other, while
 * the table is small and while it grows: the answer is out of memory, and what the session would
 * have had is free.
 */
#include "fake_backend.h"

#include "base/failing_alloc.h"

enum { MANY = 700 };

static struct {
    struct pinfold_manager *manager;
    struct fake fakes[MANY];
    struct pinfold_backend *backends[MANY];
    char keys[MANY][24], ids[MANY][16];
} t;

static int set_up(void **unused)
{
    (void)unused;
    assert_int_equal(pinfold_manager_new(NULL, &t.manager, NULL), 0);
    for (int i = 0; i < MANY; i++) {
        snprintf(t.ids[i], sizeof(t.ids[i]), "w%d", i);
        snprintf(t.keys[i], sizeof(t.keys[i]), "disk:%d", i);
        t.fakes[i] = (struct fake){ .key = t.keys[i] };
        t.backends[i] = fake_backend(&t.fakes[i]);
    }
    return 0;
}

static int tear_down(void **unused)
{
    (void)unused;
    pinfold_manager_unref(t.manager);
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(t.fakes[i].created, t.fakes[i].closed);
        pinfold_backend_unref(t.backends[i]);
    }
    return 0;
}

/* Returns how many allocations there were to fail. */
static unsigned claim_in_spite_of_everything(int i)
{
    struct pinfold_backend_factory factory = { .make = fake_make, .ctx = t.backends[i] };
    struct pinfold_session found = { 0 };

    for (unsigned n = 1;; n++) {
        struct pinfold_error err = PINFOLD_ERROR_INIT;
        bool hit;
        int r;

        assert_true(n < 100);
        failing_alloc_set(n);
        r = pinfold_manager_claim_session(t.manager, t.ids[i], &factory, "me", 0, NULL, NULL, &err);
        hit = failing_alloc_hit();
        failing_alloc_set(0);
        if (!hit) {
            assert_int_equal(r, 0);
            return n - 1;
        }
        assert_int_equal(r, -PINFOLD_ENOMEM);
        assert_int_equal(err.code, PINFOLD_ENOMEM);
        assert_int_equal(pinfold_manager_get_session(t.manager, t.ids[i], &found, NULL), 0);
        assert_int_equal(t.fakes[i].created, t.fakes[i].closed);
        /* And the next try may have the id, the instance and the storage. */
    }
}

static void a_session_that_finds_no_memory_leaves_nothing(void **unused)
{
    unsigned first = claim_in_spite_of_everything(0), usual = claim_in_spite_of_everything(1);
    unsigned grown = 0;

    (void)unused;
    assert_true(usual > 3);
    assert_true(first > usual); /* the tables themselves */
    for (int i = 2; i < MANY; i++)
        grown += claim_in_spite_of_everything(i) - usual;
    assert_in_range(grown, 4, MANY / 10); /* each of the four tables */
    for (int i = 0; i < MANY; i++) {
        struct pinfold_session found = { 0 };
        assert_int_equal(pinfold_manager_get_session(t.manager, t.ids[i], &found, NULL), 1);
        assert_ptr_equal(found.backend, t.backends[i]);
        pinfold_session_done(&found);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_session_that_finds_no_memory_leaves_nothing, set_up,
                                        tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
