/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "proc/turn.h"

enum { PLACES = 2 }; /* of a program that may use one processor */

static int on_one_processor(void **state)
{
    cpu_set_t set;
    int first = 0;

    (void)state;
    assert_int_equal(sched_getaffinity(0, sizeof(set), &set), 0);
    while (!CPU_ISSET(first, &set))
        first++;
    CPU_ZERO(&set);
    CPU_SET(first, &set);
    return sched_setaffinity(0, sizeof(set), &set);
}

static void who_finds_no_place_waits_until_a_turn_is_old(void **state)
{
    struct pf_turn turns[PLACES];
    int64_t began = pf_clock_now();

    (void)state;
    for (int i = 0; i < PLACES; i++)
        turns[i] = pf_turn_take();
    struct pf_turn next = pf_turn_take();
    assert_true(pf_clock_now() >= began + PF_TURN_NS);
    pf_turn_end(&next);
    for (int i = 0; i < PLACES; i++)
        pf_turn_end(&turns[i]);
}

static void a_late_end_is_nobody_elses(void **state)
{
    struct pf_turn late[PLACES], turns[PLACES];
    int64_t began;

    (void)state;
    for (int i = 0; i < PLACES; i++)
        late[i] = pf_turn_take();
    usleep(PF_TURN_NS / 1000 + 1);
    began = pf_clock_now();
    for (int i = 0; i < PLACES; i++)
        turns[i] = pf_turn_take();
    for (int i = 0; i < PLACES; i++) {
        pf_turn_end(&late[i]);
        assert_true(late[i].ticket == 0);
    }
    struct pf_turn next = pf_turn_take();
    assert_true(pf_clock_now() >= began + PF_TURN_NS);
    pf_turn_end(&next);
    for (int i = 0; i < PLACES; i++)
        pf_turn_end(&turns[i]);
}

static void an_end_is_told_once(void **state)
{
    struct pf_turn turn = pf_turn_take();

    (void)state;
    pf_turn_end(&turn);
    pf_turn_end(&turn);
    assert_true(turn.ticket == 0);
}

static void *take_many(void *arg)
{
    uint64_t last = 0;

    for (int i = 0; i < 500; i++) {
        struct pf_turn turn = pf_turn_take();
        if (turn.ticket <= last)
            return NULL;
        last = turn.ticket;
        pf_turn_end(&turn);
    }
    return arg;
}

static void everybody_gets_turns(void **state)
{
    pthread_t threads[16];
    void *got;

    for (int i = 0; i < 16; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, take_many, state), 0);
    for (int i = 0; i < 16; i++) {
        assert_int_equal(pthread_join(threads[i], &got), 0);
        assert_ptr_equal(got, state);
    }
}

/* Others may be at it when a program forks; its child takes turns of its own. */
static void a_fork_may_take_turns(void **state)
{
    pthread_t threads[4];
    int status;

    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, take_many, state), 0);
    for (int i = 0; i < 20; i++) {
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
            struct pf_turn turn = pf_turn_take();
            pf_turn_end(&turn);
            _exit(turn.ticket == 0 ? 0 : 1);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
    }
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_finds_no_place_waits_until_a_turn_is_old),
        cmocka_unit_test(a_late_end_is_nobody_elses),
        cmocka_unit_test(an_end_is_told_once),
        cmocka_unit_test(everybody_gets_turns),
        cmocka_unit_test(a_fork_may_take_turns),
    };

    return cmocka_run_group_tests(tests, on_one_processor, NULL);
}
