/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cancel.h"
#include "base/clock.h"

static bool readable(int fd, int timeout_ms)
{
    struct pollfd pfd = { .fd = fd, .events = POLLIN };

    return poll(&pfd, 1, timeout_ms) == 1 && (pfd.revents & POLLIN);
}

static void a_token_fires_once_and_stays_fired(void **state)
{
    struct pinfold_cancel *cancel = NULL;
    struct pinfold_error err = PINFOLD_ERROR_INIT;

    (void)state;
    assert_int_equal(pinfold_cancel_new(&cancel, &err), 0);
    assert_false(pinfold_cancel_fired(cancel));
    assert_false(readable(pf_cancel_fd(cancel), 0));
    assert_int_equal(pf_cancel_check(cancel, &err), 0);
    assert_int_equal(err.code, 0);
    for (int i = 0; i < 3; i++) {
        pinfold_cancel_fire(cancel);
        assert_true(pinfold_cancel_fired(cancel));
        assert_true(readable(pf_cancel_fd(cancel), 0));
        assert_int_equal(pf_cancel_check(cancel, &err), -PINFOLD_ECANCELLED);
        assert_int_equal(err.code, PINFOLD_ECANCELLED);
        assert_true(err.msg[0] != '\0');
    }
    pinfold_cancel_free(cancel);
}

static void no_token_means_never_cancelled(void **state)
{
    (void)state;
    pinfold_cancel_fire(NULL);
    assert_false(pinfold_cancel_fired(NULL));
    assert_int_equal(pf_cancel_fd(NULL), -1);
    assert_int_equal(pf_cancel_check(NULL, NULL), 0);
    pinfold_cancel_free(NULL);
}

static void *fire(void *cancel)
{
    pinfold_cancel_fire(cancel);
    return NULL;
}

static void firing_wakes_a_waiting_thread(void **state)
{
    struct pinfold_cancel *cancel = NULL;
    pthread_t thread;

    (void)state;
    assert_int_equal(pinfold_cancel_new(&cancel, NULL), 0);
    assert_int_equal(pthread_create(&thread, NULL, fire, cancel), 0);
    assert_true(readable(pf_cancel_fd(cancel), 30000));
    assert_true(pinfold_cancel_fired(cancel));
    pthread_join(thread, NULL);
    pinfold_cancel_free(cancel);
}

static void a_wait_ends_at_its_moment(void **state)
{
    int64_t until = pf_clock_deadline(20 * PF_NS_PER_MS);

    (void)state;
    assert_int_equal(pf_cancel_wait(NULL, NULL, until, NULL), 0);
    assert_true(pf_clock_now() >= until);
    assert_int_equal(pf_cancel_wait(NULL, NULL, until, NULL), 0); /* that has come */
}

static void either_token_ends_a_wait(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct pinfold_error err = PINFOLD_ERROR_INIT;
        struct pinfold_cancel *tokens[2];
        pthread_t thread;
        int64_t until = pf_clock_deadline(300 * PF_NS_PER_SEC);
        assert_int_equal(pinfold_cancel_new(&tokens[0], NULL), 0);
        assert_int_equal(pinfold_cancel_new(&tokens[1], NULL), 0);
        assert_int_equal(pthread_create(&thread, NULL, fire, tokens[i]), 0);
        assert_int_equal(pf_cancel_wait(tokens[0], tokens[1], until, &err), -PINFOLD_ECANCELLED);
        assert_int_equal(err.code, PINFOLD_ECANCELLED);
        assert_true(pf_clock_now() < until);
        pthread_join(thread, NULL);
        /* One that has fired is told at any moment, and without end. */
        assert_int_equal(pf_cancel_wait(tokens[1], tokens[0], 0, NULL), -PINFOLD_ECANCELLED);
        assert_int_equal(pf_cancel_wait(NULL, tokens[i], PF_NEVER, NULL), -PINFOLD_ECANCELLED);
        pinfold_cancel_free(tokens[0]);
        pinfold_cancel_free(tokens[1]);
    }
}

static volatile sig_atomic_t interruptions;

static void interrupt(int sig)
{
    (void)sig;
    interruptions++;
}

static void a_wait_goes_on_when_it_is_interrupted(void **state)
{
    const struct sigaction action = { .sa_handler = interrupt };
    const struct itimerval often = { { 0, 1000 }, { 0, 1000 } }, never = { 0 };
    struct sigaction old;
    int64_t until = pf_clock_deadline(50 * PF_NS_PER_MS);

    (void)state;
    assert_int_equal(sigaction(SIGALRM, &action, &old), 0);
    assert_int_equal(setitimer(ITIMER_REAL, &often, NULL), 0);
    assert_int_equal(pf_cancel_wait(NULL, NULL, until, NULL), 0);
    assert_true(pf_clock_now() >= until);
    assert_int_equal(setitimer(ITIMER_REAL, &never, NULL), 0);
    assert_int_equal(sigaction(SIGALRM, &old, NULL), 0);
    assert_true(interruptions > 0);
}

static void the_descriptor_is_not_inherited(void **state)
{
    struct pinfold_cancel *cancel = NULL;

    (void)state;
    assert_int_equal(pinfold_cancel_new(&cancel, NULL), 0);
    assert_true(fcntl(pf_cancel_fd(cancel), F_GETFD) & FD_CLOEXEC);
    pinfold_cancel_free(cancel);
    assert_int_equal(fcntl(0, F_GETFD) & FD_CLOEXEC, 0); /* the check can fail */
}

static void a_linked_token_fires_with_each_of_its_ancestors(void **state)
{
    struct pinfold_cancel *grandparent = NULL, *parent = NULL, *first = NULL, *second = NULL;

    (void)state;
    assert_int_equal(pinfold_cancel_new(&grandparent, NULL), 0);
    assert_int_equal(pf_cancel_new_linked(grandparent, &parent, NULL), 0);
    assert_int_equal(pf_cancel_new_linked(parent, &first, NULL), 0);
    assert_int_equal(pf_cancel_new_linked(parent, &second, NULL), 0);
    assert_false(readable(pf_cancel_fd(first), 0));
    pinfold_cancel_fire(first);
    assert_true(readable(pf_cancel_fd(first), 0));
    assert_false(pinfold_cancel_fired(second) || pinfold_cancel_fired(parent));
    assert_false(readable(pf_cancel_fd(second), 0));
    pinfold_cancel_fire(grandparent);
    assert_true(pinfold_cancel_fired(second) && pinfold_cancel_fired(parent));
    assert_true(readable(pf_cancel_fd(second), 0));
    assert_true(fcntl(pf_cancel_fd(second), F_GETFD) & FD_CLOEXEC);
    pinfold_cancel_free(first);
    pinfold_cancel_free(second);
    pinfold_cancel_free(parent);
    pinfold_cancel_free(grandparent);
}

static void a_token_linked_to_none_is_an_ordinary_one(void **state)
{
    struct pinfold_cancel *cancel = NULL;

    (void)state;
    assert_int_equal(pf_cancel_new_linked(NULL, &cancel, NULL), 0);
    assert_false(readable(pf_cancel_fd(cancel), 0));
    pinfold_cancel_fire(cancel);
    assert_true(readable(pf_cancel_fd(cancel), 0));
    pinfold_cancel_free(cancel);
}

static void a_fork_does_not_fire_the_token_of_its_parent(void **state)
{
    struct pinfold_cancel *cancel = NULL, *linked = NULL;
    int status;
    pid_t pid;

    (void)state;
    assert_int_equal(pinfold_cancel_new(&cancel, NULL), 0);
    assert_int_equal(pf_cancel_new_linked(cancel, &linked, NULL), 0);
    pid = fork();
    if (pid == 0) {
        pinfold_cancel_fire(cancel);
        pinfold_cancel_fire(linked);
        _exit(pinfold_cancel_fired(cancel) && pinfold_cancel_fired(linked) ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_false(pinfold_cancel_fired(linked));
    assert_false(readable(pf_cancel_fd(cancel), 0));
    assert_false(readable(pf_cancel_fd(linked), 0));
    pinfold_cancel_free(linked);
    pinfold_cancel_free(cancel);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_token_fires_once_and_stays_fired),
        cmocka_unit_test(no_token_means_never_cancelled),
        cmocka_unit_test(firing_wakes_a_waiting_thread),
        cmocka_unit_test(a_wait_ends_at_its_moment),
        cmocka_unit_test(either_token_ends_a_wait),
        cmocka_unit_test(a_wait_goes_on_when_it_is_interrupted),
        cmocka_unit_test(the_descriptor_is_not_inherited),
        cmocka_unit_test(a_linked_token_fires_with_each_of_its_ancestors),
        cmocka_unit_test(a_token_linked_to_none_is_an_ordinary_one),
        cmocka_unit_test(a_fork_does_not_fire_the_token_of_its_parent),
    };

    return cmocka_run_group_tests_name("cancel", tests, NULL, NULL);
}
