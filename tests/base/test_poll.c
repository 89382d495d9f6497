/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting goes on when a process may have fewer descriptors than it waits for. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/poll.h"

enum { MOST = 4 };
static const rlim_t limits[] = { 1000, MOST, MOST - 1, 1, 0 };

/* A socket to wait for, and the other end. */
struct pair {
    int ours, theirs;
};

static int make_pairs(void **state)
{
    static struct pair pairs[MOST];

    for (size_t i = 0; i < MOST; i++) {
        int fds[2];
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
        pairs[i] = (struct pair){ fds[0], fds[1] };
    }
    *state = pairs;
    return 0;
}

static int close_pairs(void **state)
{
    struct pair *pairs = *state;

    for (size_t i = 0; i < MOST; i++) {
        close(pairs[i].ours);
        close(pairs[i].theirs);
    }
    return 0;
}

static int poll_under(rlim_t most, struct pollfd *fds, size_t count, int timeout_ms)
{
    struct rlimit old, few;
    int r, saved;

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
    few = (struct rlimit){ most, old.rlim_max };
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    r = pf_poll(fds, count, timeout_ms);
    saved = errno;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
    errno = saved;
    return r;
}

static void what_is_ready_is_told_under_any_limit(void **state)
{
    struct pair *pairs = *state;

    assert_int_equal(write(pairs[1].theirs, "x", 1), 1);
    for (size_t i = 0; i < sizeof(limits) / sizeof(*limits); i++) {
        struct pollfd fds[MOST] = { { pairs[0].ours, POLLIN, 77 },
                                    { pairs[1].ours, POLLIN, 0 },
                                    { -1, POLLIN, 77 },
                                    { pairs[2].ours, POLLIN | POLLOUT, 0 } };
        assert_int_equal(poll_under(limits[i], fds, MOST, -1), 2);
        assert_int_equal(fds[0].revents, 0);
        assert_int_equal(fds[1].revents, POLLIN);
        assert_int_equal(fds[2].revents, 0);
        assert_int_equal(fds[3].revents, POLLOUT);
    }
}

static void nothing_is_waited_for_as_long_as_was_said(void **state)
{
    struct pair *pairs = *state;

    for (size_t i = 0; i < sizeof(limits) / sizeof(*limits); i++) {
        struct pollfd fds[MOST] = { { pairs[0].ours, POLLIN, 77 },
                                    { pairs[1].ours, POLLIN, 77 },
                                    { pairs[2].ours, POLLIN, 77 },
                                    { pairs[3].ours, POLLIN, 77 } };
        assert_int_equal(poll_under(limits[i], fds, MOST, 20), 0);
        for (size_t j = 0; j < MOST; j++)
            assert_int_equal(fds[j].revents, 0);
        assert_int_equal(poll_under(limits[i], NULL, 0, 1), 0);
    }
}

static void an_end_is_told_also_of_a_descriptor_with_a_high_number(void **state)
{
    struct pair *pairs = *state;
    struct rlimit limit;
    int high;

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    high = fcntl(pairs[0].ours, F_DUPFD_CLOEXEC,
                 limit.rlim_cur > 3000 ? 2500 : (int)limit.rlim_cur - 1);
    assert_true(high >= 0);
    close(pairs[0].theirs);
    pairs[0].theirs = -1;
    for (size_t i = 0; i < sizeof(limits) / sizeof(*limits); i++) {
        struct pollfd fds[MOST] = { { -1, POLLIN, 0 },
                                    { high, POLLIN, 0 },
                                    { pairs[2].ours, POLLIN, 0 },
                                    { pairs[3].ours, POLLIN, 0 } };
        assert_int_equal(poll_under(limits[i], fds, MOST, -1), 1);
        assert_true((fds[1].revents & POLLIN) != 0);
    }
    close(high);
}

#define WITH_PAIRS(test) cmocka_unit_test_setup_teardown(test, make_pairs, close_pairs)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_PAIRS(what_is_ready_is_told_under_any_limit),
        WITH_PAIRS(nothing_is_waited_for_as_long_as_was_said),
        WITH_PAIRS(an_end_is_told_also_of_a_descriptor_with_a_high_number),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
