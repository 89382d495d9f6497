/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"

static void time_does_not_go_back(void **state)
{
    int64_t before = pf_clock_now();

    (void)state;
    for (int i = 0; i < 1000; i++) {
        int64_t now = pf_clock_now();
        assert_true(now >= before);
        before = now;
    }
}

static void deadlines_saturate(void **state)
{
    int64_t now = pf_clock_now();

    (void)state;
    assert_true(pf_clock_deadline(5 * PF_NS_PER_SEC) >= now + 5 * PF_NS_PER_SEC);
    assert_true(pf_clock_deadline(PF_NEVER) == PF_NEVER);
    assert_true(pf_clock_deadline(PF_NEVER - 1) == PF_NEVER);
}

static void poll_gets_a_rounded_up_wait(void **state)
{
    (void)state;
    assert_int_equal(pf_clock_poll_ms(PF_NEVER), -1);
    assert_int_equal(pf_clock_poll_ms(pf_clock_now() - PF_NS_PER_SEC), 0);
    assert_int_equal(pf_clock_poll_ms(0), 0);
    assert_int_equal(pf_clock_poll_ms(PF_NEVER - 1), INT_MAX);
    /* never 0 while time is left: that would spin */
    assert_true(pf_clock_poll_ms(pf_clock_now() + 3600 * PF_NS_PER_SEC) > 3500 * 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(time_does_not_go_back),
        cmocka_unit_test(deadlines_saturate),
        cmocka_unit_test(poll_gets_a_rounded_up_wait),
    };

    return cmocka_run_group_tests_name("clock", tests, NULL, NULL);
}
